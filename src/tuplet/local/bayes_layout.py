"""How naive Bayes wants to see rows: numbers on the left, and a column for each value of a category."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.typing import Codes, Floats

Mask = npt.NDArray[np.bool_]

_OTHER = np.inf
"""In a list of values: anything that is not in it."""


@dataclass(frozen=True)
class BayesLayout:
    """Columns that are numbers or categories for classifiers that see different parts of the rows.

    What a column is depends on the part with `categorical="auto"`: counts of which a few rows show 0 and 1
    alone are categories there. Such a column is laid out as both; each part uses one of them.

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
    def make(cls, X: Floats, model: Any) -> BayesLayout:
        """Lay out the columns of X (n, d) for a `MixedNaiveBayes` and all parts of the rows.

        A column without 0 and 1 is a number everywhere, one with nothing else a category everywhere.
        """
        X = np.asarray(X, dtype=np.float64)
        auto = isinstance(model.categorical, str)
        chosen = model._which(X)
        if auto:
            binary, missing = (X == 0) | (X == 1), np.isnan(X)
            categories, other = binary.any(axis=0), ~(binary | missing).all(axis=0)
            values = [np.array([0.0, 1.0, _OTHER][: 2 + both]) for both in other[categories]]
        else:
            categories, other = chosen, ~chosen
            values = [np.union1d(part[~np.isnan(part)], (0.0, 1.0)) for part in X[:, chosen].T]
        column = np.repeat(np.arange(len(values)), [len(each) for each in values])
        places = np.flatnonzero(other), np.flatnonzero(categories)
        return cls(model.alpha, model.variance_floor, auto, X.shape[1], *places, tuple(values), column)

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
        answer[:, :d] = X[:, self.number_at]
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
