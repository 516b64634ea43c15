"""Strength of the dependence between class variables: in labels, and in predictions given x."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr, xlogy

from tuplet.core.limits import PASS_CELLS, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, category_offsets


def label_dependence(codes: Codes) -> Floats:
    """Dependence (m, m) of all pairs of columns of codes (n, m), in the rows where both are known.

    Mutual information I, less what chance adds to it, as sqrt(1 - exp(-2 I)): between 0 and 1, and for normal
    variables the size of their correlation (Linfoot, 1957). The diagonal is NaN.

    Examples
    --------
    >>> codes = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]] * 25)
    >>> label_dependence(codes).round(2)
    array([[ nan, 0.86, 0.  ],
           [0.86,  nan, 0.  ],
           [0.  , 0.  ,  nan]])
    """
    counts, starts = _pair_counts(codes)
    known = np.add.reduceat(counts, starts, axis=1)  # (K, m): how often a value meets a known other one
    n = np.add.reduceat(known, starts, axis=0)
    alone = np.add.reduceat(xlogy(known, known), starts, axis=0)
    together = np.add.reduceat(np.add.reduceat(xlogy(counts, counts), starts, axis=0), starts, axis=1)
    seen = np.add.reduceat(known > 0, starts, axis=0, dtype=float)
    rows = np.maximum(n, 1)
    nats = (together - alone - alone.T + xlogy(n, n)) / rows
    excess = np.maximum(seen - 1, 0) * np.maximum(seen.T - 1, 0) / (2 * rows)
    return as_strength(np.where(n > 0, nats - excess, 0.0))


def conditional_dependence(joint: JointDistribution) -> Floats:
    """Dependence (m, m) that is left between all pairs of variables once x is known, mean over n rows.

    It is the mean over the rows of the mutual information under p(y_i, y_j | x), on the scale of
    `label_dependence`.
    """
    return as_strength(mean_information(joint))


def mean_information(joint: JointDistribution) -> Floats:
    """Mutual information (m, m) of all pairs of variables given x in nats, mean over the rows."""
    nats = np.zeros((joint.n_variables,) * 2)
    for (i, j), table in joint.pairwise().items():
        nats[i, j] = nats[j, i] = _information(table).mean()
    return nats


def as_strength(nats: Floats) -> Floats:
    """Return information (m, m) on a scale from 0 to 1, without the diagonal."""
    matrix = np.sqrt(-np.expm1(-2 * np.maximum(0.0, nats)))
    np.fill_diagonal(matrix, np.nan)
    return matrix


def _pair_counts(codes: Codes) -> tuple[Floats, npt.NDArray[np.intp]]:
    """How often two values come together, (K, K) for the K values of all columns, and where columns start."""
    cards = np.maximum(codes.max(axis=0, initial=0) + 1, 1)
    starts = category_offsets(cards.tolist())[:-1]
    counts = np.zeros((int(cards.sum()),) * 2)
    for block in row_blocks(len(codes), len(counts), PASS_CELLS):
        part = codes[block]
        row, column = np.nonzero(part != UNKNOWN)
        hot = np.zeros((len(part), len(counts)), dtype=np.float32)  # exact: counts of a chunk are small
        hot[row, starts[column] + part[row, column]] = 1
        counts += hot.T @ hot
    return counts, starts


def _information(tables: Floats) -> Floats:
    """Mutual information (n,) of tables (n, k_i, k_j) in nats."""
    apart = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True)
    return np.asarray(rel_entr(tables, apart).sum(axis=(1, 2)))
