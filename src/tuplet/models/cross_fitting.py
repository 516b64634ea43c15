"""Folds for out-of-fold predictions, which depend on the rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.core.typing import Codes, Floats
from tuplet.space.features.inputs import Features
from tuplet.space.features.nominal import codes_and_values


def fold_weights(X: Features, codes: Codes, sample_weight: Floats | None, n_folds: int) -> Floats:
    """How much of the weight of each row lies in each fold, (n, n_folds).

    The fold of a row follows from a digest of its features and codes: it depends neither on the order of the
    rows nor on a random number. Equal rows go to one fold after the other, and a row of weight 3 counts as
    three of them; so whole weights mean what repeated rows mean. Others, such as weights that balance
    classes, are importances, not counts: then every row is in one fold, and no model that was fitted to a
    part of it predicts it.
    """
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    if (weights % 1).any():
        return weights[:, None] * fold_weights(X, codes, (weights > 0).astype(float), n_folds)
    keys = np.fromiter(_digests(X, codes), dtype=np.uint64, count=len(codes))
    _, which = np.unique(keys, return_inverse=True)
    # Equal rows lie end to end on a line whose units belong to the folds in turn, from the fold of the first.
    start = _running_total(which, weights)
    turn = (np.arange(n_folds) - which[:, None]) % n_folds
    shares = _units(start + weights, turn, n_folds) - _units(start, turn, n_folds)
    return np.minimum(shares, weights[:, None])  # rounding must not give a fold more than there is


def _digests(X: Features, codes: Codes) -> Iterator[int]:
    """Yield a number for each row that is the same for equal rows and otherwise as good as random."""
    for row, code in zip(_bytes(X), np.ascontiguousarray(codes), strict=True):
        yield int.from_bytes(blake2b(row + code.tobytes(), digest_size=8).digest(), "little")


def _bytes(X: Features) -> Iterator[bytes]:
    if isinstance(X, pd.DataFrame):
        for key in _row_keys(X):
            yield int(key).to_bytes(8, "little")
    elif sparse.issparse(X):
        rows: Any = X
        rows = rows.tocsr(copy=True)
        rows.sum_duplicates()  # and in the order of the columns, so that equal rows are equal bytes
        rows.eliminate_zeros()
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            yield rows.indices[start:stop].astype(np.int64).tobytes() + rows.data[start:stop].tobytes()
    else:
        for row in np.ascontiguousarray(X) + 0.0:  # -0.0 becomes 0.0, which has other bytes
            yield row.tobytes()


def _row_keys(frame: pd.DataFrame) -> pd.Series:
    try:
        return pd.util.hash_pandas_object(frame, index=False)
    except TypeError:
        for j in range(frame.shape[1]):
            codes_and_values(frame.iloc[:, j])  # raises an error with the name of the column
        raise


def _running_total(group: Codes, weights: Floats) -> Floats:
    """Total weight (n,) of the earlier rows of the same group."""
    order = np.argsort(group, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    first = np.searchsorted(group[order], group[order])
    total = np.empty(len(group))
    total[order] = before - before[first]
    return total


def _units(length: Floats, turn: Codes, n_folds: int) -> Floats:
    """How much of [0, length), (n,), lies in units whose number is `turn` (n, n_folds) modulo `n_folds`."""
    cycles = np.floor(length / n_folds)
    return cycles[:, None] + np.clip((length - n_folds * cycles)[:, None] - turn, 0.0, 1.0)
