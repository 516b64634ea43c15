"""Many naive Bayes classifiers on parts of the same rows, fitted at once.

A child with a set of parents needs one classifier for each of their configurations. `BayesLayout` encodes
rows as numbers and indicators. `BayesBatch` prepares the rows once; a fit is then a sort of them, and two
sums over the rows of each block and class. `ManyBayes` holds the fitted classifiers. `MixedNaiveBayes` is the
same with one block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.limits import CACHE_CELLS, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.base import class_weights, sort_into_blocks
from tuplet.space.features.inputs import require_size

Mask = npt.NDArray[np.bool_]

_EPS = float(np.finfo(float).eps)

_SAME = 1e-12
"""Relative difference up to which numbers count as equal."""

_LARGEST = 1e100
"""Numbers beyond it are taken for it: their squares would not be finite."""

_OTHER = np.inf
"""In a list of values: anything that is not in it."""

_ROOT = math.sqrt(2 * math.pi)


# -- encoding ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BayesLayout:
    """How naive Bayes classifiers of parts of the rows take them: numbers, then indicators of values.

    With `categorical="auto"` the kind of a column depends on the part: counts that are only 0 and 1 in a few
    rows are categories there. Such a column is laid out as both; each part uses one of them.

    Parameters
    ----------
    alpha, variance_floor : float
        See `MixedNaiveBayes`.
    auto : bool
        Whether a part takes columns to be categories where it shows 0 and 1 alone.
    n_features : int
        Number of columns of X.
    number_at : int array, shape (d,)
        Columns of X that are numbers in some part.
    category_at : int array, shape (c,)
        Columns of X that are categories in some part.
    values : tuple of c arrays
        Their values in increasing order, v in total; always with 0 and 1, which come together.
    column : int array, shape (v,)
        For each value the column that it belongs to, of 0 to c - 1.
    """

    alpha: float
    variance_floor: float
    auto: bool
    n_features: int
    number_at: Codes
    category_at: Codes
    values: tuple[Floats, ...]
    column: Codes

    @classmethod
    def make(cls, X: Floats, categorical: Any, alpha: float, variance_floor: float) -> BayesLayout:
        """Lay out the columns of X (n, d) for all parts of the rows; see `MixedNaiveBayes`.

        A column without 0 and 1 is a number everywhere, one with nothing else a category everywhere.
        """
        X = np.asarray(X, dtype=np.float64)
        auto = isinstance(categorical, str)
        chosen = categorical_columns(X, categorical)
        if auto:
            binary, missing = (X == 0) | (X == 1), np.isnan(X)
            categories, other = binary.any(axis=0), ~(binary | missing).all(axis=0)
            values = [np.array([0.0, 1.0, _OTHER][: 2 + both]) for both in other[categories]]
        else:
            categories, other = chosen, ~chosen
            values = [np.union1d(part[~np.isnan(part)], (0.0, 1.0)) for part in X[:, chosen].T]
        column = np.repeat(np.arange(len(values)), [len(each) for each in values])
        places = np.flatnonzero(other), np.flatnonzero(categories)
        return cls(alpha, variance_floor, auto, X.shape[1], *places, tuple(values), column)

    @property
    def width(self) -> int:
        """Number of columns d + v of encoded rows."""
        return len(self.number_at) + len(self.column)

    def encode(self, X: Any) -> Floats:
        """Return rows (n, d + v): numbers, NaN where missing, and 0 or 1 for each value of each category."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features or np.isinf(X).any():
            raise InputError(
                f"MixedNaiveBayes: X must have the {self.n_features:,} columns of training and no infinity."
            )
        d = len(self.number_at)
        answer = np.zeros((len(X), self.width))
        answer[:, :d] = np.clip(X[:, self.number_at], -_LARGEST, _LARGEST)
        for j, values in zip(self.category_at, self.values, strict=True):
            place = np.searchsorted(values, X[:, j])
            known = np.append(values, np.nan)[place] == X[:, j]
            if values[-1] == _OTHER:
                place, known = np.where(known, place, len(values) - 1), ~np.isnan(X[:, j])
            answer[np.flatnonzero(known), d + place[known]] = 1.0
            d += len(values)
        return answer

    def numbers(self, rows: Floats) -> Floats:
        """Return the numbers (n, d) of encoded rows."""
        return rows[:, : len(self.number_at)]

    def indicators(self, rows: Floats) -> Floats:
        """Return which values (n, v) encoded rows have."""
        return rows[:, len(self.number_at) :]

    def by_column(self, values: npt.NDArray[Any]) -> Floats:
        """Sums (..., c) over the values (..., v) of each category."""
        return np.asarray(np.add.reduceat(values, self._starts, axis=-1, dtype=float))

    def known(self, seen: Mask) -> tuple[Mask, Mask]:
        """Return which values (g, v) count as categories for parts that show these (g, v), and which do not.

        Returns
        -------
        known : array of bool, shape (g, v)
            All False for a column that is a number in this part.
        numeric : array of bool, shape (g, d)
            Which columns are numbers.
        """
        numeric = np.ones((len(seen), len(self.number_at)), dtype=bool)
        if not self.values:
            return seen, numeric
        beyond = self.by_column(seen & ~self._binary) > 0
        known = np.where(beyond[:, self.column], seen & (not self.auto), self._binary)
        as_number, as_category = self._both
        numeric[:, as_number] = beyond[:, as_category]
        return known, numeric

    @cached_property
    def _starts(self) -> Codes:
        """The first value of every category (c,)."""
        return np.searchsorted(self.column, np.arange(len(self.values)))

    @cached_property
    def _binary(self) -> Mask:
        """Which values (v,) are 0 or 1."""
        return np.isin(np.concatenate(self.values), (0.0, 1.0))

    @cached_property
    def _both(self) -> tuple[Codes, Codes]:
        """Columns that are laid out as both: their places among the numbers, and among the categories."""
        _, here, there = np.intersect1d(self.number_at, self.category_at, return_indices=True)
        return here, there


def categorical_columns(X: Floats, categorical: Any) -> Mask:
    """Return which columns (d,) of X hold categories; see `MixedNaiveBayes`."""
    if isinstance(categorical, str) and categorical == "auto":
        return np.array(((X == 0) | (X == 1) | np.isnan(X)).all(axis=0) & ~np.isnan(X).all(axis=0))
    chosen, mask = np.asarray(categorical), np.zeros(X.shape[1], dtype=bool)
    whole = chosen.ndim == 1 and (chosen.size == 0 or chosen.dtype.kind in "iub")
    inside = whole and (
        len(chosen) == len(mask)
        if chosen.dtype == bool
        else not chosen.size or -len(mask) <= chosen.min() <= chosen.max() < len(mask)
    )
    if not inside:
        raise InputError(
            f'MixedNaiveBayes: categorical must be "auto", positions of columns, or a mask of the'
            f" {len(mask)} columns of X; found {categorical!r}."
        )
    mask[chosen if chosen.size else []] = True
    return mask


# -- fitting -----------------------------------------------------------------------------------------------


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
    >>> X = np.array([[1.0, 0], [1.2, 0], [np.nan, 1], [3.0, 1], [3.3, 0], [2.0, 0]])
    >>> batch = BayesBatch(X, BayesLayout.make(X, "auto", 1.0, 1e-3))
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
    ) -> ManyBayes:
        """Fit one classifier to each block; see `PreparedFeatures.fit`."""
        counts = class_weights(y, blocks, n_blocks, n_classes, weight)
        present = counts > 0
        return self.estimate(y, blocks, counts, present & (present.sum(axis=1) > 1)[:, None], weight)

    def estimate(
        self, y: Codes, blocks: Codes, counts: Floats, pairs: Mask, weight: Floats | None
    ) -> ManyBayes:
        """Estimate the parameters of some pairs (q, k) of a block and a class, which have `counts` (q, k)."""
        slots, total = _Slots.make(y, blocks, pairs, weight), counts[pairs]
        log_prior = np.log(total / slots.together(total)[slots.owner])
        rows, d, width = self._rows.take(slots.rows, axis=0), len(self.layout.number_at), self.layout.width
        sums = slots.sums(rows)
        log_share, numeric = self._categories(slots, sums[:, d:width])
        if rows.shape[1] == width:
            there, count = None, total[:, None]
        else:
            there, count = rows[:, width:], sums[:, width:]
        mean, scale = self._numbers(slots, rows[:, :d], there, sums[:, :d], count, numeric)
        return ManyBayes(self.layout, counts, pairs, log_prior, mean, scale, log_share)

    def _categories(self, slots: _Slots, count: Floats) -> tuple[Floats, Mask]:
        """Log-shares (s, v) of all values, 0 where unused, and which columns are numbers (g, d)."""
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
        """Means and inverse standard deviations (s, d); the latter are 0 in columns that are not used.

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
        rounding = (8 * (len(values) + 8) * _EPS + 2 * _SAME) * centre
        doubtful = np.flatnonzero(((spread > 0) & (spread <= rounding**2)).any(axis=0))
        if len(doubtful):
            use = np.ones((1, 1), dtype=bool) if there is None else there[:, doubtful] > 0
            some, at = values[:, doubtful], slots.starts[slots.first]
            low = np.minimum.reduceat(np.where(use, some, np.inf), at, axis=0)
            high = np.maximum.reduceat(np.where(use, some, -np.inf), at, axis=0)
            spread[:, doubtful] = np.where(_are_equal(low, high), 0.0, spread[:, doubtful])


@dataclass(frozen=True)
class _Slots:
    """Pairs of a block and a class, sorted by block, and their rows.

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
    def make(cls, y: Codes, blocks: Codes, pairs: Mask, weight: Floats | None) -> _Slots:
        """Sort the rows with a class y (n,) and a block (n,) that are among the pairs (q, k)."""
        q, k = pairs.shape
        # The last place is for rows without a class or a block.
        place = np.where((y == UNKNOWN) | (blocks == UNKNOWN), q * k, blocks * k + y)
        if weight is not None:
            place[weight <= 0] = q * k
        flat = np.flatnonzero(pairs)
        number = np.full(q * k + 1, len(flat))
        number[flat] = np.arange(len(flat))
        order, starts = sort_into_blocks(number[place], len(flat) + 1)
        rows = order[: starts[-2]]
        first = np.searchsorted(flat, k * np.flatnonzero(pairs.any(axis=1)))
        owner = np.zeros(len(flat), dtype=np.intp)
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


def _ratio(above: Floats, below: Floats, otherwise: Any) -> Floats:
    """Return above / below, and something else where that is 0 / 0."""
    some = below > 0
    if some.all():
        return np.asarray(above / below)
    return np.where(some, above / np.where(some, below, 1.0), otherwise)


def _are_equal(low: Floats, high: Floats) -> Mask:
    """Return whether all numbers between two are the same but for rounding, or none; any shape.

    A mean that was filled in for what was missing is not quite the value of a constant column.
    """
    near = high - low <= _SAME * np.maximum(np.abs(low), np.abs(high))
    return np.array(near | (low > high))


# -- prediction --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ManyBayes:
    """One naive Bayes classifier for each of q blocks of rows; see `BlockClassifiers`.

    Rows are encoded by the layout.

    Parameters
    ----------
    layout : BayesLayout
    counts : array, shape (q, k)
        Training weight of every class in every block.
    pairs : array of bool, shape (q, k)
        The s pairs of a block and a class that have parameters, in this order. A block without any gives its
        only class the probability 1.
    log_prior : array, shape (s,)
    mean : array, shape (s, d)
    scale : array, shape (s, d)
        One over the standard deviations; 0 for columns that are not used in a block.
    log_share : array, shape (s, v)
        Log-probabilities of the values of categories; 0 for those that are not used in a block.
    """

    layout: BayesLayout
    counts: Floats
    pairs: Mask
    log_prior: Floats
    mean: Floats
    scale: Floats
    log_share: Floats

    @cached_property
    def totals(self) -> Floats:
        """See `BlockClassifiers.totals`."""
        return np.asarray(self.counts.sum(axis=1))

    def proba(self, Z: Floats, blocks: Codes) -> Floats:
        """See `BlockClassifiers.proba`."""
        q, k = self.counts.shape
        place = np.where((blocks == UNKNOWN) | ~self._is_mixed[blocks], q, blocks)
        order, starts = sort_into_blocks(place, q + 1)
        rows, certain = order[: starts[q]], order[starts[q] :]
        log_joint, Z = np.full((k, len(rows)), -np.inf), Z.take(rows, axis=0)
        for g in np.flatnonzero(starts[1:-1] > starts[:-2]).tolist():
            own = slice(starts[g], starts[g + 1])
            log_joint[self.pairs[g], own] = self.log_joint(g, Z[own])
        answer = np.zeros((len(blocks), k))
        answer[rows] = _softmax(log_joint).T
        if len(certain):
            known = (blocks[certain] != UNKNOWN)[:, None]
            answer[certain] = np.where(known, self._certain[blocks[certain]], 0.0)
        return answer

    def table(self, Z: Floats) -> Floats:
        """See `BlockClassifiers.table`."""
        (q, k), n = self.counts.shape, len(Z)
        require_size(f"Probabilities by {q:,} classifiers", q * n, k)
        answer = np.repeat(self._certain[:, :, None], n, axis=2)
        for g in np.flatnonzero(self._is_mixed).tolist():
            answer[g, self.pairs[g]] = _softmax(self.log_joint(g, Z))
        return answer

    @cached_property
    def _is_mixed(self) -> Mask:
        return np.array(self.pairs.any(axis=1))

    @cached_property
    def _certain(self) -> Floats:
        """Probabilities (q, k) of blocks with a single class; 0 elsewhere."""
        return np.where(self._is_mixed[:, None], 0.0, self.counts > 0)

    @cached_property
    def _slots(self) -> list[int]:
        """The first pair of every block (q + 1,)."""
        return [0, *self.pairs.sum(axis=1).cumsum().tolist()]

    @cached_property
    def _log_scale(self) -> Floats:
        """Logarithms (s, d) of the factors in front of the normal densities."""
        return np.log(np.where(self.scale > 0, self.scale / _ROOT, 1.0))

    @cached_property
    def _bias(self) -> Floats:
        return np.asarray(self.log_prior + self._log_scale.sum(axis=1))

    def log_joint(self, g: int, Z: Floats) -> Floats:
        """Log-densities (c, n) of rows Z together with each of the c classes of a block."""
        slots = slice(self._slots[g], self._slots[g + 1])
        numbers, mean, scale = self.layout.numbers(Z), self.mean[slots, None], self.scale[slots, None]
        answer = np.empty((len(mean), len(Z)))
        for rows in row_blocks(len(Z), mean.size, CACHE_CELLS):
            deviation = numbers[rows] - mean
            deviation *= scale
            np.einsum("cij,cij->ci", deviation, deviation, out=answer[:, rows])
        answer *= -0.5
        answer += self._bias[slots, None]
        gaps = np.flatnonzero(np.isnan(answer[0]))
        if len(gaps):
            answer[:, gaps] = self._with_gaps(slots, numbers[gaps])
        if self.log_share.shape[1]:
            answer += self.log_share[slots] @ self.layout.indicators(Z).T
        return answer

    def _with_gaps(self, slots: slice, numbers: Floats) -> Floats:
        """Return the part of `log_joint` from numbers (n, d), some of them missing; these are left out."""
        there = ~np.isnan(numbers)
        answer = self.log_prior[slots, None] + self._log_scale[slots] @ there.T
        for own, mean, scale in zip(answer, self.mean[slots], self.scale[slots], strict=True):
            deviation = np.where(there, numbers - mean, 0.0) * scale
            own -= 0.5 * np.einsum("ij,ij->i", deviation, deviation)
        return np.asarray(answer)


def _softmax(log_joint: Floats) -> Floats:
    """Probabilities (k, n) in proportion to joint densities, whose logarithms are overwritten."""
    with np.errstate(invalid="ignore"):  # infinitely far from all classes: refused below
        log_joint -= log_joint.max(axis=0)
        proba = np.exp(log_joint, out=log_joint)
        total = proba.sum(axis=0)
    if not np.isfinite(total).all():
        raise InputError(
            "MixedNaiveBayes: the features of some rows are too far from all classes for probabilities; look"
            " at the scale of the features."
        )
    proba /= total
    return proba
