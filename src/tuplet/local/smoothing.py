"""The pseudo-row that keeps every probability of a label above zero.

One row with the smoothed training frequencies f of the labels is added to the N rows that a model has seen:

    p'(y | x) = (N p(y | x) + f(y)) / (N + 1)

So p' is at least f(y) / (N + 1), whatever x is. Where every table p(y_j | x, parents) of a graph has the
pseudo-row, every marginal has this bound, because it is an average of such tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats

_ROUNDING = 1e-9
"""Relative error of probabilities that may be due to rounding."""


def label_counts(codes: Codes, card: int, weight: Floats | None = None) -> Floats:
    """Return the total weight (k,) of each label among codes (n,), without those that are `UNKNOWN`."""
    known = codes != UNKNOWN
    some = None if weight is None else weight[known]
    return np.bincount(codes[known], some, minlength=card).astype(float)


def smoothed_frequencies(counts: Floats) -> Floats:
    """Return the frequencies (k,) of labels with these counts, one row added to each label.

    Examples
    --------
    >>> smoothed_frequencies(np.array([6.0, 0.0]))
    array([0.875, 0.125])
    """
    return np.asarray((counts + 1.0) / (counts.sum() + len(counts)))


def pseudo_row(counts: Floats) -> Floats:
    """Return what the pseudo-row adds to the probabilities (k,) of labels with these counts.

    The probabilities themselves are multiplied by one less its sum, N / (N + 1).
    """
    return smoothed_frequencies(counts) / (counts.sum() + 1.0)


def with_pseudo_row(proba: Floats, share: Floats) -> Floats:
    """Return probabilities (..., k) with the share (k,) of the pseudo-row; they are overwritten."""
    proba *= 1.0 - share.sum()
    proba += share
    return proba


def has_bound(proba: Floats, share: Floats, counts: Floats) -> npt.NDArray[np.bool_]:
    """Return the rows (n,) in which no label that was seen has a probability (n, k) below its share."""
    return np.asarray((proba[:, counts > 0] >= (1.0 - _ROUNDING) * share[counts > 0]).all(axis=1))


def bounded_tables(weights: Sequence[Floats], counts: Sequence[Floats]) -> list[Floats]:
    """Return log-probabilities (n, k_j), with the pseudo-row in the rows that would be below its share.

    Parameters
    ----------
    weights : sequence of arrays (n, k_j)
        Probabilities that need not add up to one.
    counts : sequence of arrays (k_j,)
    """
    answer = []
    for table, each in zip(weights, counts, strict=True):
        proba, share = table / table.sum(axis=1, keepdims=True), pseudo_row(each)
        below = ~has_bound(proba, share, each)
        proba[below] = with_pseudo_row(proba[below], share)
        answer.append(np.log(proba, out=proba))
    return answer
