"""Features as discrete variables: categories as they are, numbers in bins, learned from training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, final

import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.exceptions import InputError
from tuplet.local.inputs import Features, as_floats, is_number, n_rows, unused
from tuplet.local.nominal import Nominal, days, kind_of
from tuplet.typing import UNKNOWN, Codes, Floats


@final
@dataclass(frozen=True, eq=False)
class Bins:
    """A column of numbers or dates, cut at edges: bin i holds what is above edge i - 1 and not above edge i.

    Parameters
    ----------
    edges : array, shape (bins - 1,)
        Increasing.
    states : tuple of str
        Names of the bins.
    dates : bool
        Whether the column holds dates, which are counted in days.
    """

    edges: Floats
    states: tuple[str, ...]
    dates: bool = False

    @property
    def is_number(self) -> bool:
        """Whether an array of numbers can hold the column."""
        return not self.dates

    def codes(self, column: Any) -> Codes:
        """Return the bins (n,) of a column, `UNKNOWN` where a number is missing."""
        numbers = _numbers(column, self.dates)
        found = np.searchsorted(self.edges, numbers, side="left")
        return np.where(np.isnan(numbers), UNKNOWN, found).astype(np.intp)


@final
@dataclass(frozen=True, eq=False)
class Values:
    """A column of categories; what training did not see is `UNKNOWN`."""

    nominal: Nominal
    states: tuple[str, ...]
    is_number = False

    def codes(self, column: Any) -> Codes:
        """Return the codes (n,) of a column, `UNKNOWN` where it is missing or new."""
        return np.asarray(self.nominal.codes(column), dtype=np.intp)


Column: TypeAlias = Bins | Values


@final
@dataclass(frozen=True, eq=False)
class DiscreteColumns:
    """All columns of X as discrete variables.

    Parameters
    ----------
    names : tuple of str
    columns : tuple of Bins or Values

    Examples
    --------
    >>> X = pd.DataFrame({"size": [1.0, 2.0, None, 9.0], "sex": ["f", "m", "m", None]})
    >>> columns = DiscreteColumns.learn(X, ("size", "sex"), n_bins=2)
    >>> columns.states
    (('<= 5.5', '> 5.5'), ('f', 'm'))
    >>> columns.codes(pd.DataFrame({"size": [0.0, 6.0], "sex": ["m", "x"]}))
    array([[ 0,  1],
           [ 1, -1]])
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]

    @classmethod
    def learn(
        cls, X: Features, names: Sequence[str], n_bins: int, weights: Floats | None = None
    ) -> DiscreteColumns:
        """Learn categories and edges from a float array, a sparse matrix or a frame; see `learn_bins`."""
        columns: list[Column] = []
        for j, column in enumerate(_opened(X)):
            kind = kind_of(column) if isinstance(column, pd.Series) else "number"
            if kind == "nominal":
                columns.append(_learn_values(j, column))
            else:
                columns.append(learn_bins(_numbers(column, kind == "date"), n_bins, weights, kind == "date"))
        return cls(tuple(names), tuple(columns))

    @property
    def states(self) -> tuple[tuple[str, ...], ...]:
        """Names of the values of each column."""
        return tuple(column.states for column in self.columns)

    @property
    def cards(self) -> tuple[int, ...]:
        """Number of values of each column."""
        return tuple(len(column.states) for column in self.columns)

    def codes(self, X: Features) -> Codes:
        """Return the codes (n, m) of X, `UNKNOWN` where a value is missing or new."""
        codes = np.empty((n_rows(X), len(self.columns)), dtype=np.intp)
        for j, (mine, column) in enumerate(zip(self.columns, _opened(X), strict=True)):
            codes[:, j] = mine.codes(column)
        return codes


def learn_bins(numbers: Floats, n_bins: int, weights: Floats | None = None, dates: bool = False) -> Bins:
    """Cut numbers (n,), NaN where missing, into bins.

    With at most `n_bins` different values each is a bin; otherwise bins hold about equally many rows
    (weights). Edges lie halfway between neighbouring values.

    Examples
    --------
    >>> learn_bins(np.array([3.0, 1.0, 2.0, 8.0, 9.0, np.nan]), 2).edges
    array([5.5])
    """
    known = ~np.isnan(numbers)
    values, place = np.unique(numbers[known], return_inverse=True)
    weights = np.ones(len(place)) if weights is None else weights[known]
    cuts = np.arange(max(0, len(values) - 1))
    if len(values) > n_bins:
        share = np.cumsum(np.bincount(place, weights)) / weights.sum()
        wanted = np.arange(1, n_bins) / n_bins
        cuts = np.unique(np.searchsorted(share, wanted - 1e-12))  # sums of weights are rounded
        cuts = cuts[cuts < len(values) - 1]
    edges = values[cuts] / 2 + values[cuts + 1] / 2
    if len(values) <= n_bins:
        states = [f"{value:g}" for value in values] or ["none"]
    else:
        inside = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
        states = [f"<= {edges[0]:g}", *inside, f"> {edges[-1]:g}"] if len(edges) else ["any"]
    return Bins(edges, tuple(unused(states, ())), dates)


def _learn_values(j: int, column: pd.Series) -> Values:
    nominal = Nominal.learn(j, column, keep=0)
    return Values(nominal, tuple(unused(map(str, nominal.categories), ())) or ("none",))


def _opened(X: Features) -> list[Any]:
    """Return the columns of X one by one."""
    if isinstance(X, pd.DataFrame):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    dense: Any = X.toarray() if sparse.issparse(X) else X  # type: ignore[attr-defined]
    return list(np.asarray(dense).T)


def _numbers(column: Any, dates: bool) -> Floats:
    if not isinstance(column, pd.Series):
        return np.asarray(column, dtype=float)
    if dates:
        return days(column)
    if not is_number(column):
        raise InputError(f"X must hold numbers in the column {str(column.name)!r}, as in fit.")
    return as_floats(column.to_frame())[:, 0]
