"""Columns of X as discrete variables: which are discrete, and their values or bins as codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, final

import narwhals as nw
import narwhals.dependencies as kinds
import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.space.containers import listing
from tuplet.space.features.dates import days
from tuplet.space.features.inputs import (
    Features,
    as_floats,
    as_pandas,
    holds_numbers,
    kind_of,
    n_rows,
    unused,
)
from tuplet.space.features.nominal import Nominal

_TOGETHER = 8
"""Columns of numbers that are copied at once: as many as share the lines that a processor reads."""


def declared_columns(X: Any) -> tuple[int, ...]:
    """Return the positions of columns that are discrete by their kind: text, categories and booleans.

    Only frames have such columns; the numbers of an array are numbers.

    Examples
    --------
    >>> declared_columns(pd.DataFrame({"size": [1.5, 2], "sex": ["f", "m"], "adult": [True, False]}))
    (1, 2)
    """
    if not kinds.is_into_dataframe(X):
        return ()
    boolean = [dtype == nw.Boolean for dtype in nw.from_native(X, eager_only=True).schema.values()]
    columns = [column for _, column in as_pandas(X).items()]
    return tuple(j for j, column in enumerate(columns) if boolean[j] or _is_discrete(column))


def _is_discrete(column: pd.Series) -> bool:
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        return True
    return kind_of(column) == "nominal"


def named_columns(named: Sequence[int | str], names: Sequence[str], known: bool) -> tuple[int, ...]:
    """Return the positions of columns that are given by name or position.

    Parameters
    ----------
    named : sequence of int or str
    names : sequence of str
        Those of all columns.
    known : bool
        Whether the columns have names at all.
    """
    positions = []
    for each in named:
        if isinstance(each, str):
            if not known or each not in names:
                there = f"these are {listing(names, 5)}" if known else "X has no names of columns"
                raise InputError(f"discrete_features names {each!r}, which is no column of X; {there}.")
            positions.append(list(names).index(each))
        elif isinstance(each, (int, np.integer)) and 0 <= each < len(names):
            positions.append(int(each))
        else:
            raise InputError(
                f"discrete_features names the column {each!r}, but those of X are numbered from 0 to"
                f" {len(names) - 1}."
            )
    return tuple(sorted(set(positions)))


def as_categories(X: Features, columns: Sequence[int], names: Sequence[str]) -> Features:
    """Return X with some columns of numbers as pandas categories.

    `names` are those of all columns, for X without names.
    """
    _require_dense(X)
    frame = X.copy(deep=False) if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=list(names))
    for j in columns:
        frame.isetitem(j, pd.Categorical(frame.iloc[:, j]))
    return frame


# -- columns as codes ---------------------------------------------------------------------------------------


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
    """A column of categories.

    Parameters
    ----------
    nominal : Nominal
    states : tuple of str
        Names of the values.
    gap : bool
        Whether a missing value is a category of its own, the last.
    """

    nominal: Nominal
    states: tuple[str, ...]
    gap: bool = False
    is_number = False

    @classmethod
    def learn(cls, position: int, column: Any, gap: bool = False) -> Values:
        """Learn the values of a column; with `gap`, "missing" is one if a value is missing."""
        column = pd.Series(column)
        nominal, gap = Nominal.learn(position, column, keep=0), gap and bool(column.isna().any())
        states = unused([*map(str, nominal.categories), *["missing"] * gap], ())
        return cls(nominal, tuple(states) or ("none",), gap)

    def codes(self, column: Any) -> Codes:
        """Return the codes (n,) of a column; `UNKNOWN` for new values, and for missing ones without `gap`."""
        column = pd.Series(column)
        codes = np.asarray(self.nominal.codes(column), dtype=np.intp)
        return np.where(column.isna(), len(self.nominal.categories), codes) if self.gap else codes


Column: TypeAlias = Bins | Values


@final
@dataclass(frozen=True, eq=False)
class DiscreteColumns:
    """Columns of X as discrete variables, learned from training rows.

    Parameters
    ----------
    names : tuple of str
    columns : tuple of Bins or Values
    positions : tuple of int
        Their positions in X.

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
    positions: tuple[int, ...]

    @classmethod
    def learn(
        cls, X: Features, names: Sequence[str], n_bins: int, weights: Floats | None = None
    ) -> DiscreteColumns:
        """Learn all columns: categories as they are, numbers and dates in bins (see `learn_bins`).

        Missing values are `UNKNOWN`.
        """
        columns: list[Column] = []
        for j, column in enumerate(_columns(X, range(X.shape[1]))):
            kind = kind_of(column) if isinstance(column, pd.Series) else "number"
            if kind == "nominal":
                columns.append(Values.learn(j, column))
            else:
                columns.append(learn_bins(_numbers(column, kind == "date"), n_bins, weights, kind == "date"))
        return cls(tuple(names), tuple(columns), tuple(range(len(columns))))

    @classmethod
    def learn_values(cls, X: Features, names: Sequence[str], positions: Sequence[int]) -> DiscreteColumns:
        """Learn some columns: each value is a category, and so is a missing value if there are any.

        Columns with one value are left out, because they are not informative, and columns with more values
        than half of the rows, because they identify rows.

        Parameters
        ----------
        names : sequence of str
            Those of all columns of X.

        Examples
        --------
        >>> frame = pd.DataFrame({"sex": ["f", "m", "m", "f"] * 2, "place": ["a", "b", None, "a"] * 2})
        >>> features = DiscreteColumns.learn_values(frame, ("sex", "place"), (0, 1))
        >>> features.cards
        (2, 3)
        >>> features.codes(pd.DataFrame({"sex": ["m", "?"], "place": [None, "b"]})).tolist()
        [[1, 2], [-1, 1]]
        """
        if len(positions):
            _require_dense(X)
        most = max(2, n_rows(X) / 2)
        learned = {
            j: Values.learn(j, column, gap=True)
            for j, column in zip(positions, _columns(X, positions), strict=True)
        }
        kept = {j: values for j, values in learned.items() if 1 < len(values.states) <= most}
        return cls(tuple(names[j] for j in kept), tuple(kept.values()), tuple(kept))

    @property
    def states(self) -> tuple[tuple[str, ...], ...]:
        """Names of the values of each column."""
        return tuple(column.states for column in self.columns)

    @property
    def cards(self) -> tuple[int, ...]:
        """Number of values of each column."""
        return tuple(len(column.states) for column in self.columns)

    def codes(self, X: Features) -> Codes:
        """Return the codes (n, m) of rows of X."""
        codes = np.empty((len(self.columns), n_rows(X)), dtype=np.intp).T  # a column is one piece of memory
        for i, (column, given) in enumerate(zip(self.columns, _columns(X, self.positions), strict=True)):
            codes[:, i] = column.codes(given)
        return codes

    def state(self, column: int, code: int) -> str:
        """Return the name of the value of a column that has a code, "?" for `UNKNOWN`."""
        return "?" if code == UNKNOWN else self.states[column][code]


def learn_bins(numbers: Floats, n_bins: int, weights: Floats | None = None, dates: bool = False) -> Bins:
    """Cut numbers (n,), NaN where missing, into bins.

    With at most `n_bins` different values each is a bin; otherwise bins hold about equally many rows
    (weights). Edges lie halfway between neighbouring values.

    Examples
    --------
    >>> learn_bins(np.array([3.0, 1.0, 2.0, 8.0, 9.0, np.nan]), 2).edges
    array([5.5])
    """
    values, totals = _totals(numbers, weights)
    cuts = np.arange(max(0, len(values) - 1))
    if len(values) > n_bins:
        share = np.cumsum(totals) / totals.sum()
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


def _totals(numbers: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return the different numbers, ascending and without NaN, and the weight of each."""
    known = ~np.isnan(numbers)
    if weights is None:  # numpy sorts several times faster if it need not return the order
        values, counts = np.unique(numbers[known], return_counts=True)
        return values, counts.astype(float)
    values, place = np.unique(numbers[known], return_inverse=True)
    return values, np.bincount(place, weights[known]).astype(float)


def _columns(X: Features, positions: Sequence[int]) -> Iterator[Any]:
    """Yield some columns of X: series of a frame, otherwise arrays (n,)."""
    if isinstance(X, pd.DataFrame):
        yield from (X.iloc[:, j] for j in positions)
        return
    table: Any = X
    table = table.tocsc() if sparse.issparse(X) else table
    for start in range(0, len(positions), _TOGETHER):
        part = table[:, list(positions[start : start + _TOGETHER])]
        yield from np.ascontiguousarray((part.toarray() if sparse.issparse(X) else np.asarray(part)).T)


def _numbers(column: Any, dates: bool) -> Floats:
    if not isinstance(column, pd.Series):
        return np.asarray(column, dtype=float)
    # Dates that an encoder has turned into days are dates again for a model that was read from a .bif file.
    if dates or kind_of(column) == "date":
        return days(column)
    if not holds_numbers(column):
        raise InputError(f"X must hold numbers in the column {str(column.name)!r}, as in fit.")
    return as_floats(column.to_frame())[:, 0]


def _require_dense(X: Features) -> None:
    if sparse.issparse(X):
        raise InputError("discrete_features: a sparse matrix has no discrete columns; pass X.toarray().")
