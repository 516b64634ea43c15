"""One column of values as codes, and its 0/1 columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.space.features.inputs import holds_numbers


@dataclass(frozen=True)
class Nominal:
    """The values of a column that is no number, and its place among the columns of numbers.

    Parameters
    ----------
    source : int
        Position of the column in X.
    categories : tuple
        Its values, by code.
    single : bool
        Whether one 0/1 column, for the second value, stands for both of two values.
    kept : bool
        Whether it stays one column of categories.
    start : int
        First of its 0/1 columns.
    """

    source: int
    categories: tuple[Any, ...]
    single: bool
    kept: bool
    start: int = 0

    @classmethod
    def learn(cls, source: int, column: pd.Series, keep: int) -> Nominal:
        """Return the values of a column, in declared order or sorted; if they are `keep` at most, as one."""
        codes, values = codes_and_values(column)
        seen = np.bincount(codes[codes != UNKNOWN], minlength=len(values)) > 0
        complete = bool((codes != UNKNOWN).all())
        declared = isinstance(column.dtype, pd.CategoricalDtype)
        # A declared binary column keeps both values: its encoding must not depend on the rows of a fold.
        both = declared and len(values) == 2 and complete
        found = [value for value, there in zip(values, seen, strict=True) if there or both]
        categories = tuple(found if declared else _in_order(found))
        single = complete and len(categories) == 2
        return cls(source, categories, single, not single and 0 < len(categories) <= keep)

    def at(self, start: int) -> Nominal:
        """Return the same with its 0/1 columns at another place."""
        return replace(self, start=start)

    @property
    def width(self) -> int:
        """Number of 0/1 columns."""
        if self.kept:
            return 0
        return 1 if self.single else len(self.categories)

    def labels(self, name: str) -> list[str]:
        """Return the names of the 0/1 columns."""
        return [f"{name}={value}" for value in self.categories[len(self.categories) - self.width :]]

    def codes(self, column: pd.Series) -> Codes:
        """Return the codes (n,) of a column, `UNKNOWN` where it is missing or was not seen in fit."""
        codes, values = codes_and_values(column)
        if not isinstance(column.dtype, pd.CategoricalDtype) and values and holds_numbers(column):
            self._require_numbers(column)
        position = {value: code for code, value in enumerate(self.categories)}
        # A missing value has the code -1, which picks the last entry.
        table = np.array([*(position.get(value, UNKNOWN) for value in values), UNKNOWN], dtype=np.intp)
        return table[codes]

    def _require_numbers(self, column: pd.Series) -> None:
        if all(isinstance(value, str) for value in self.categories):
            raise InputError(f"X holds numbers in the column {str(column.name)!r}, but text in fit.")

    def write(self, codes: Codes, answer: Floats) -> None:
        """Put the 0/1 columns of codes (n,) into `answer`, which is zero there."""
        if self.single:
            answer[:, self.start] = codes == 1
        else:
            known = np.flatnonzero(codes != UNKNOWN)
            answer[known, self.start + codes[known]] = 1.0


def codes_and_values(column: pd.Series) -> tuple[npt.NDArray[Any], list[Any]]:
    """Return codes (n,), -1 where missing, and the values that they stand for."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.array.codes, column.array.categories.tolist()
    try:
        codes, values = pd.factorize(column)
    except TypeError:
        raise InputError(
            f"X holds lists or other containers in the column {str(column.name)!r}; drop or encode it."
        ) from None
    return codes, values.tolist()


def _in_order(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


RARE = "(rare)"
"""Stands for all values that are too rare for a column of their own."""


@final
@dataclass(frozen=True)
class MergedValues:
    """A column of values of which the rare ones are one value, as are those that training did not show.

    Parameters
    ----------
    kept : tuple
        The other values.
    together : bool
        Whether rare values are the value "(rare)"; otherwise they count as missing.
    """

    kept: tuple[Any, ...]
    together: bool

    def names(self, name: str) -> list[str]:
        """Return the name of the column."""
        return [name]

    def read(self, column: pd.Series) -> list[Any]:
        """Return the column as a pandas Categorical."""
        codes, values = codes_and_values(column)
        position = {value: code for code, value in enumerate(self.kept)}
        rare = len(self.kept) if self.together else UNKNOWN
        table = np.array([*(position.get(value, rare) for value in values), UNKNOWN], dtype=np.intp)
        categories = pd.Index([*self.kept, *[RARE] * self.together], dtype=object)
        return [pd.Categorical.from_codes(table[codes], categories=categories)]


def merge_rare(column: pd.Series, floor: float, most: int) -> MergedValues:
    """Keep the values that occur in so many rows, `floor`, and of these the `most` frequent ones."""
    codes, values = codes_and_values(column)
    counts = np.bincount(codes[codes != UNKNOWN], minlength=len(values))
    order = np.argsort(-counts, kind="stable")[:most]
    frequent = set(order[counts[order] >= max(1, floor)].tolist())
    kept = [value for code, value in enumerate(values) if code in frequent]
    declared = isinstance(column.dtype, pd.CategoricalDtype)
    rest = counts.sum() - sum(int(counts[code]) for code in frequent)
    return MergedValues(tuple(kept if declared else _in_order(kept)), bool(rest >= max(1, floor)))
