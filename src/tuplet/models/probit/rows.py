"""Training rows as the probit models take them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse

from tuplet.exceptions import InputError, TupletWarning
from tuplet.local.inputs import Features
from tuplet.prediction.estimates import warn_outside
from tuplet.space import ClassSpace
from tuplet.typing import UNKNOWN, Codes, Floats

_MOST_ROWS = 10_000_000
"""Rows that weights may amount to."""

_LARGEST = 1e100
"""Size of a feature; squares of larger ones, which variances are made of, may overflow."""


def dense(X: Features) -> Floats:
    """Return X as an array."""
    return (
        np.asarray(X.toarray())
        if isinstance(X, sparse.csr_array | sparse.csr_matrix)
        else np.asarray(X, dtype=float)
    )


def require_binary(space: ClassSpace, model: str) -> None:
    """Raise `InputError` unless every class variable has two labels."""
    for name, card in zip(space.names, space.cards, strict=True):
        if card != 2:
            remedy = (
                "use ChainClassifier or PowersetClassifier, or give each of its labels a 0/1 column"
                if card > 2
                else "leave it out, or pass it as 0/1, so that both labels are known"
            )
            raise InputError(
                f"{model}: Only binary classification is supported. The class variable {name!r} has {card}"
                f" class{'es' if card > 1 else ''}; {remedy}."
            )


def require_moderate(X: Floats, model: str) -> Floats:
    """Return X, or raise `InputError` if it holds numbers too large to be scaled; NaN may stay."""
    beyond = X[np.abs(X) > _LARGEST]
    if len(beyond):
        raise InputError(
            f"{model}: the features hold {beyond[0]:g}, which is too large to compute with (limit"
            f" {_LARGEST:g}); clip or rescale them, or mark the value as missing (NaN)."
        )
    return X


def rows_by_weight(X: Floats, codes: Codes, sample_weight: Floats | None, model: str) -> Codes:
    """Return positions of rows, sorted by what they hold, so that their order does not matter, and repeated.

    Raises
    ------
    InputError
        If weights are no whole numbers: a row has latent variables, and there is no part of them.
    """
    order = np.lexsort(np.concatenate([codes, X], axis=1).T)
    if sample_weight is None:
        return order
    counts = np.rint(sample_weight).astype(np.intp)
    if not np.array_equal(counts, sample_weight):
        raise InputError(
            f"{model} repeats rows by their sample_weight, which must be whole numbers, but"
            f" {sample_weight[counts != sample_weight][0]:g} is not; round the weights, or resample the rows."
        )
    if counts.sum() > _MOST_ROWS:
        raise InputError(
            f"{model} repeats rows by their sample_weight, which amounts to {counts.sum():,} rows (at most"
            f" {_MOST_ROWS:,}); divide the weights and round them."
        )
    return np.repeat(order, counts[order])


def warn_of_odd_labels(codes: Codes, space: ClassSpace, model: str) -> None:
    """Warn of class variables of which the rows show one label only, and of such that are the same."""
    names = space.names
    for name, column in zip(names, codes.T, strict=True):
        seen = np.unique(column[column != UNKNOWN])
        if len(seen) < 2:
            found = "one label only" if len(seen) else "no label"
            warn_outside(
                f"{model}: the training rows show {found} of the class variable {name!r}; its probabilities"
                " and correlations rest on the prior. Leave it out unless that is meant.",
                TupletWarning,
            )
    twins = [f"{names[i]!r} and {names[j]!r}" for i, j in _twins(codes)]
    if twins:
        more = f" (and {len(twins) - 1} other pairs)" if len(twins) > 1 else ""
        warn_outside(
            f"{model}: the class variables {twins[0]}{more} say the same in all training rows; their"
            " correlation runs into its limit and is found slowly. Leave one of them out.",
            TupletWarning,
        )


def _twins(codes: Codes) -> list[tuple[int, int]]:
    """Pairs of columns that always agree, or never do, where both are known; constant ones do not count."""
    found = []
    for i in range(codes.shape[1]):
        for j in range(i):
            known = (codes[:, i] != UNKNOWN) & (codes[:, j] != UNKNOWN)
            a, b = codes[known, i], codes[known, j]
            if len(a) > 1 and np.ptp(a) and (np.array_equal(a, b) or np.array_equal(a, 1 - b)):
                found.append((j, i))
    return found


def digest_of(*arrays: Any) -> str:
    """Return a digest of what arrays hold."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
