"""Many naive Bayes classifiers on parts of the same rows: the answers of `MixedNaiveBayes`, all at once.

A child with a set of parents needs one classifier for each of their configurations. `BayesBatch` prepares the
rows once; a fit is then a sort of them, and two sums over the rows of each block and class.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tuplet.kernels import sort_rows
from tuplet.local.bayes import SAME, are_equal
from tuplet.local.bayes_experts import BayesExperts
from tuplet.local.bayes_layout import BayesLayout
from tuplet.local.blocks import class_weights
from tuplet.typing import UNKNOWN, Codes, Floats

Mask = npt.NDArray[np.bool_]

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class _Slots:
    """The classes of all blocks that have several: s pairs of a block and a class, sorted by block.

    Parameters
    ----------
    rows, weight : array, shape (r,)
        The rows of these pairs in their order, and their weights.
    starts : int array, shape (s + 1,)
        Pair i has the rows `rows[starts[i] : starts[i + 1]]`.
    first : int array, shape (g,)
        The first pair of every block.
    owner : int array, shape (s,)
        The block of every pair, of 0 to g - 1.
    """

    rows: Codes
    weight: Floats
    starts: Codes
    first: Codes
    owner: Codes

    @classmethod
    def make(cls, y: Codes, blocks: Codes, several: Mask, weight: Floats | None) -> _Slots:
        """Sort the rows with a class y (n,) and a block (n,), of the pairs (q, k) that are several in one."""
        q, k = several.shape
        # The last place is for rows without a class or a block.
        place = np.where((y == UNKNOWN) | (blocks == UNKNOWN), q * k, blocks * k + y)
        if weight is not None:
            place[weight <= 0] = q * k
        pairs = np.flatnonzero(several)
        number = np.full(q * k + 1, len(pairs))
        number[pairs] = np.arange(len(pairs))
        order, starts = sort_rows(number[place], len(pairs) + 1)
        rows = order[: starts[-2]]
        first = np.searchsorted(pairs, k * np.flatnonzero(several.any(axis=1)))
        owner = np.zeros(len(pairs), dtype=np.intp)
        owner[first[1:]] = 1
        some = np.ones(len(rows)) if weight is None else weight[rows]
        return cls(rows, some, starts[:-1], first, owner.cumsum())

    def sums(self, values: Floats) -> Floats:
        """Weighted sums (s, d) of values (r, d) of the rows."""
        answer, starts = np.empty((len(self.owner), values.shape[1])), self.starts.tolist()
        # Faster than a sparse matrix, which takes long to make, and on few rows than numpy's reduceat.
        for i, (start, stop) in enumerate(pairwise(starts)):
            np.dot(self.weight[start:stop], values[start:stop], out=answer[i])
        return answer

    def together(self, values: Floats) -> Floats:
        """Sums (g, d) of the values (s, d) of each block's pairs."""
        return np.asarray(np.add.reduceat(values, self.first, axis=0))


class BayesBatch:
    """Features, prepared once for any number of naive Bayes classifiers on parts of their rows.

    Parameters
    ----------
    X : array, shape (n, d)
        Numbers, NaN where a value is missing.
    layout : BayesLayout
        Of these columns.

    Examples
    --------
    >>> from tuplet.local.bayes import MixedNaiveBayes
    >>> X = np.array([[1.0, 0], [1.2, 0], [np.nan, 1], [3.0, 1], [3.3, 0], [2.0, 0]])
    >>> batch = BayesBatch(X, BayesLayout.make(X, MixedNaiveBayes()))
    >>> y, blocks = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 0, 0, 0, 0, 1])
    >>> batch.fit(y, blocks, 2, 2).proba(batch.rows[2:3], np.array([0])).round(2)
    array([[0.22, 0.78]])
    """

    def __init__(self, X: Floats, layout: BayesLayout) -> None:
        self.layout = layout
        self.rows = layout.encode(X)
        there = ~np.isnan(layout.numbers(self.rows))
        filled, gaps = np.nan_to_num(self.rows), () if there.all() else (there,)
        self._rows = np.hstack([filled, *gaps])  # and on the right what is there, if that is not all

    def fit(
        self,
        y: Codes,
        blocks: Codes,
        n_blocks: int,
        n_classes: int,
        weight: Floats | None = None,
        *,
        n_jobs: int | None = None,
    ) -> BayesExperts:
        """See `Batch.fit`; one thread is all that it needs."""
        counts = class_weights(y, blocks, n_blocks, n_classes, weight)
        present = counts > 0
        several = present & (present.sum(axis=1) > 1)[:, None]
        slots, total = _Slots.make(y, blocks, several, weight), counts[several]
        log_prior = np.log(total / slots.together(total)[slots.owner])
        rows, d, width = self._rows.take(slots.rows, axis=0), len(self.layout.number_at), self.layout.width
        sums = slots.sums(rows)
        log_share, numeric = self._categories(slots, sums[:, d:width])
        if rows.shape[1] == width:
            there, count = None, total[:, None]
        else:
            there, count = rows[:, width:], sums[:, width:]
        mean, scale = self._numbers(slots, rows[:, :d], there, sums[:, :d], count, numeric)
        return BayesExperts(self.layout, counts, several, log_prior, mean, scale, log_share)

    def _categories(self, slots: _Slots, count: Floats) -> tuple[Floats, Mask]:
        """Log-shares (s, v) of all values, 0 where they say nothing, and which columns are numbers (g, d)."""
        layout = self.layout
        known, numeric = layout.known(slots.together(count) > 0)
        if not known.shape[1]:
            return count, numeric
        total = layout.by_column(count) + layout.alpha * layout.by_column(known)[slots.owner]
        log_share = np.log(count + layout.alpha) - np.log(np.maximum(total, layout.alpha))[:, layout.column]
        return np.where(known[slots.owner], log_share, 0.0), numeric

    def _numbers(
        self, slots: _Slots, values: Floats, there: Floats | None, sums: Floats, count: Floats, numeric: Mask
    ) -> tuple[Floats, Floats]:
        """Means and inverse standard deviations (s, d); the latter are 0 in columns that say nothing.

        The squares are those of deviations, and the variance of a block is put together from those of its
        classes and their means: nothing is subtracted that could lose digits.
        """
        all_count = slots.together(count)
        centre = _ratio(slots.together(sums), all_count, 0.0)
        mean = _ratio(sums, count, centre[slots.owner])
        deviation = values - mean.repeat(slots.starts[1:] - slots.starts[:-1], axis=0)
        if there is not None:
            deviation *= there
        squares = slots.sums(np.square(deviation, out=deviation))
        between = count * (mean - centre[slots.owner]) ** 2
        spread = _ratio(slots.together(squares + between), all_count, 0.0)
        self._drop_constant(spread, centre, values, there, slots)
        floor = self.layout.variance_floor * spread
        variance = np.maximum(_ratio(squares, count, spread[slots.owner]), floor[slots.owner])
        useful = (numeric & (floor > 0))[slots.owner]
        return mean, np.sqrt(np.divide(1.0, variance, where=useful, out=np.zeros(mean.shape)))

    def _drop_constant(
        self, spread: Floats, centre: Floats, values: Floats, there: Floats | None, slots: _Slots
    ) -> None:
        """Set the variance (g, d) of columns whose values in a block are equal to 0; it may be rounding."""
        rounding = (8 * (len(values) + 8) * _EPS + 2 * SAME) * centre
        doubtful = np.flatnonzero(((spread > 0) & (spread <= rounding**2)).any(axis=0))
        if len(doubtful):
            use = np.ones((1, 1), dtype=bool) if there is None else there[:, doubtful] > 0
            some, at = values[:, doubtful], slots.starts[slots.first]
            low = np.minimum.reduceat(np.where(use, some, np.inf), at, axis=0)
            high = np.maximum.reduceat(np.where(use, some, -np.inf), at, axis=0)
            spread[:, doubtful] = np.where(are_equal(low, high), 0.0, spread[:, doubtful])


def _ratio(above: Floats, below: Floats, otherwise: Any) -> Floats:
    """Return above / below, and something else where that is 0 / 0."""
    some = below > 0
    if some.all():
        return np.asarray(above / below)
    return np.where(some, above / np.where(some, below, 1.0), otherwise)
