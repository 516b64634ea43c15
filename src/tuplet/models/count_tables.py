"""The probability of a label given how many of the neighbours of a row have it, learned by counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Floats

_STRENGTHS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e6)
"""Rows with the distribution of all rows that may be added to either side, beside one row for each cell. The
last leaves nothing of what the sides differ in: the probabilities of labels are then their frequencies."""


class CountTables(NamedTuple):
    """Distributions of the number of neighbours with a label.

    Parameters
    ----------
    prior : array, shape (w,)
        Share of rows with each label.
    likelihood : array, shape (2, w, k + 1)
        P(so many neighbours have the label | the row has it not, or has it).
    score : float
        Mean log-probability of the labels of the rows that were counted, each row left out.
    """

    prior: Floats
    likelihood: Floats
    score: float = np.nan

    @classmethod
    def with_rows(cls, prior: Floats, counted: Floats, rows: Floats | float) -> CountTables:
        """Return the tables of rows (2, w, k + 1) that were counted, with rows (w, k + 1) added to each."""
        total = counted + rows
        return cls(prior, total / total.sum(axis=2, keepdims=True))

    @classmethod
    def shrunk(cls, prior: Floats, counted: Floats) -> CountTables:
        """Return tables that are drawn towards the distribution of all rows.

        How many rows with that distribution are added to either side, the same for all labels, is chosen by
        the probabilities of the labels of the rows that were counted, each of which is left out.
        """
        scores = [_left_out(prior, counted, strength) for strength in _STRENGTHS]
        best = len(scores) - 1 - int(np.argmax(scores[::-1]))  # of equal ones the strongest
        added = _added(counted.sum(axis=0), _STRENGTHS[best])
        return cls.with_rows(prior, counted, added)._replace(score=scores[best])

    def proba(self, counts: Floats) -> Floats:
        """Return the probabilities (n, w) of labels that so many neighbours have."""
        without, having = (_read(table, counts) for table in self.likelihood)
        having, without = having * self.prior, without * (1 - self.prior)
        return having / (having + without)


def _added(pooled: Floats, strength: float) -> Floats:
    """Return the rows (..., k + 1) to be added to those of either side, by the rows of both."""
    return 1.0 + strength * (pooled + 1.0) / (pooled + 1.0).sum(axis=-1, keepdims=True)


def _left_out(prior: Floats, counted: Floats, strength: float) -> float:
    """Return the mean log-probability of labels, summed over labels, if each row is left out of the tables.

    Rows of one side and cell have the same probability, so sums over cells suffice.
    """
    totals, pooled = counted.sum(axis=2, keepdims=True), counted.sum(axis=0)
    shares, unit = np.stack([1 - prior, prior])[:, :, None], np.minimum(counted, 1.0)
    size = pooled.shape[1]
    shape = (pooled - unit + 1.0) / (pooled.sum(axis=1)[:, None] - unit + size)
    own = shares * (counted - unit + 1.0 + strength * shape) / (totals - unit + size + strength)
    other = (1 - shares) * (counted[::-1] + 1.0 + strength * shape) / (totals[::-1] + size + strength)
    weight = shares * counted / np.maximum(totals, np.finfo(float).tiny)
    return float((weight * np.log(own / (own + other))).sum())


def counted_rows(counts: Floats, sides: Sequence[Floats], k: int) -> Floats:
    """Return the weight (2, w, k + 1) of rows of either side, (n, w) each, by their counts (n, w)."""
    return np.stack([_histogram(counts, side, k) for side in sides])


def _between(counts: Floats, k: int) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the entry below each count, at most k - 1, and how far above it the count is."""
    low = np.clip(np.floor(counts).astype(np.intp), 0, k - 1)
    return low, np.clip(counts - low, 0.0, 1.0)


def _histogram(counts: Floats, weights: Floats, k: int) -> Floats:
    """Total weight (w, k + 1) of every count from 0 to k, for counts and weights (n, w)."""
    w = counts.shape[1]
    low, above = _between(counts, k)
    cell = low + np.arange(w) * (k + 1)
    total = np.bincount(cell.ravel(), (weights * (1 - above)).ravel(), minlength=w * (k + 1))
    total = total + np.bincount(cell.ravel() + 1, (weights * above).ravel(), minlength=w * (k + 1))
    return np.asarray(total, dtype=float).reshape(w, k + 1)


def _read(table: Floats, counts: Floats) -> Floats:
    """Return the entries of a table (w, k + 1) at counts (n, w)."""
    low, above = _between(counts, table.shape[1] - 1)
    column = np.arange(len(table))
    return (1 - above) * table[column, low] + above * table[column, low + 1]
