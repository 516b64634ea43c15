"""Samples of rows, and the digests of rows that samples and folds follow from.

Whether a row is in a sample depends neither on the order of the rows nor on a random number, and whole
weights mean what repeated rows mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from tuplet.core.limits import row_blocks
from tuplet.core.typing import Codes, Floats
from tuplet.space.features.inputs import Features
from tuplet.space.features.nominal import codes_and_values

SAMPLE_SIZE = 2**15
"""Rows by which models choose penalties, structures and numbers of components where there are more of them;
parameters are then fitted to all rows."""

Positions = npt.NDArray[np.intp]


class RowSample(NamedTuple):
    """Positions (r,) of some rows, in ascending order, and their weights (r,), None where rows have none.

    Of a row whose weight is a number of equal rows, a part can be in the sample.
    """

    rows: Positions
    weights: Floats | None

    def shares(self, sample_weight: Floats | None) -> Floats:
        """How much of the weight of each of these rows is in the sample, (r,), by the weights of all rows."""
        if self.weights is None or sample_weight is None:
            return np.ones(len(self.rows))
        return self.weights / sample_weight[self.rows]


def sample_rows(X: Features, codes: Codes, sample_weight: Floats | None, size: int | None) -> RowSample:
    """Return a sample of about `size` rows; all rows if there are no more, or if it is None."""
    if size is None or len(codes) <= size:
        return RowSample(np.arange(len(codes)), sample_weight)
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    taken = sample_weights(row_keys(X, codes), weights, size)
    rows = np.flatnonzero(taken > 0)
    return RowSample(rows, None if sample_weight is None else taken[rows])


def sample_weights(keys: npt.NDArray[np.uint64], weights: Floats, size: int) -> Floats:
    """How much of the weight of each row lies in a sample of about `size` rows, (n,).

    All of it if no more rows have weight. Equal rows, and the units of a whole weight, are taken at equal
    distances.

    Parameters
    ----------
    keys : array of int, shape (n,)
        Those of `row_keys`.
    weights : array, shape (n,)
    size : int
    """
    if np.count_nonzero(weights) <= size:
        return weights
    if (weights % 1).any():
        return weights * sample_weights(keys, (weights > 0).astype(float), size)
    _, which = np.unique(keys, return_inverse=True)
    share, first = size / weights.sum(), keys / 2.0**64
    start = running_total(which, weights)
    return np.floor((start + weights) * share + first) - np.floor(start * share + first)


# -- digests -----------------------------------------------------------------------------------------------


def row_keys(X: Features, codes: Codes) -> npt.NDArray[np.uint64]:
    """Return a number (n,) for each row that is the same for equal rows and otherwise as good as random."""
    return np.fromiter(_digests(X, codes), dtype=np.uint64, count=len(codes))


def _digests(X: Features, codes: Codes) -> Iterator[int]:
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
        for block in row_blocks(*X.shape):
            for row in np.ascontiguousarray(X[block]) + 0.0:  # -0.0 becomes 0.0, which has other bytes
                yield row.tobytes()


def _row_keys(frame: pd.DataFrame) -> pd.Series:
    try:
        return pd.util.hash_pandas_object(frame, index=False)
    except TypeError:
        for j in range(frame.shape[1]):
            codes_and_values(frame.iloc[:, j])  # raises an error with the name of the column
        raise


def running_total(group: Codes, weights: Floats) -> Floats:
    """Total weight (n,) of the earlier rows of the same group."""
    order = np.argsort(group, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    first = np.searchsorted(group[order], group[order])
    total = np.empty(len(group))
    total[order] = before - before[first]
    return total
