"""Numbers and categories of few values as columns of numbers."""

from __future__ import annotations

from typing import Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.containers import listing
from tuplet.space.features.inputs import Features, as_floats, number_columns, require_size, unused
from tuplet.space.features.nominal import Nominal


@final
class NumberMatrix:
    """Columns of numbers stay, with medians where a value is missing; categories become 0/1 columns.

    Parameters
    ----------
    impute : bool
        Whether missing numbers are filled in; otherwise they stay NaN.
    keep_categories : int
        A column with so many values at most, for which not a single 0/1 column will do, stays one column of
        categories, behind the others.

    Attributes
    ----------
    names : list of str
        Names of the columns of X.
    medians : array, shape (q,), or None
    nominal : list of Nominal
        The columns that are no numbers.
    """

    def __init__(self, *, impute: bool, keep_categories: int = 0) -> None:
        self.impute, self.keep_categories = impute, keep_categories

    def learn(self, X: Features) -> Self:
        """Learn medians and values from a float array, or a frame of numbers and categories."""
        self.names = [f"x{j}" for j in range(X.shape[1])]
        columns: list[pd.Series] = []
        if isinstance(X, pd.DataFrame):
            self.names = [str(name) for name in X.columns]
            columns = [column for _, column in X.items()]
        self._place(columns, number_columns(X) if columns else np.ones(X.shape[1], dtype=bool))
        require_size("X with a column for each value of its text", len(X), self._width)
        self.medians = _medians(self._numbers(X)) if self.impute else None
        return self

    def _place(self, columns: list[pd.Series], is_number: npt.NDArray[np.bool_]) -> None:
        """Learn the columns (d,) that are no numbers, and where in the answer each column goes."""
        self._numeric = np.flatnonzero(is_number)
        self.nominal = [
            Nominal.learn(j, columns[j], self.keep_categories) for j in np.flatnonzero(~is_number).tolist()
        ]
        widths = np.ones(len(is_number), dtype=np.intp)
        for each in self.nominal:
            widths[each.source] = each.width
        starts = np.cumsum(widths) - widths
        self._width = int(widths.sum())
        self._targets = starts[self._numeric]
        self._one_hot = [each.at(int(starts[each.source])) for each in self.nominal if not each.kept]
        self._kept = [each for each in self.nominal if each.kept]
        if not self._width and not self._kept:
            raise InputError(f"All values of X are missing, in the column {listing(self.names, 5)}.")

    def apply(self, X: Features) -> Features:
        """Return columns of numbers: an array (n, w), or a frame if categories are kept."""
        numbers = self._numbers(X)
        if self.medians is not None:
            numbers = _fill(numbers, self.medians)
        if not self.nominal:
            return numbers
        answer = np.zeros((len(numbers), self._width))
        answer[:, self._targets] = numbers
        columns = [column for _, column in X.items()]
        for each in self._one_hot:
            each.write(each.codes(columns[each.source]), answer)
        return self._with_categories(answer, columns) if self._kept else answer

    def names_out(self, names: list[str]) -> list[str]:
        """Return the names of the columns of the answer, if those of X are these."""
        return [*self._number_names(names), *(names[each.source] for each in self._kept)]

    def widths(self) -> list[int]:
        """Return how many columns each column of X becomes."""
        found = {each.source: max(each.width, int(each.kept)) for each in self.nominal}
        return [found.get(j, 1) for j in range(len(self.names))]

    def _numbers(self, X: Features) -> Floats:
        """Return the columns (n, q) that are numbers."""
        if not isinstance(X, pd.DataFrame):
            if self.nominal:
                raise InputError(f"X must be a frame with the {len(self.names)} columns of fit.")
            return np.asarray(X)
        part = X.iloc[:, self._numeric]
        strange = part.columns[~number_columns(part)]
        if len(strange):
            raise InputError(f"X must hold numbers in the column {listing(strange, 5)}, as in fit.")
        return as_floats(part)

    def _with_categories(self, numbers: Floats, columns: list[pd.Series]) -> pd.DataFrame:
        frame = pd.DataFrame(numbers, columns=self._number_names(self.names))
        kept = {
            self.names[each.source]: pd.Categorical.from_codes(
                each.codes(columns[each.source]), categories=pd.RangeIndex(len(each.categories))
            )
            for each in self._kept
        }
        return pd.concat([frame, pd.DataFrame(kept)], axis=1)

    def _number_names(self, names: list[str]) -> list[str]:
        labels = [label for each in self._one_hot for label in each.labels(names[each.source])]
        plain = [names[j] for j in self._numeric]
        answer = np.empty(self._width, dtype=object)
        answer[self._targets] = plain
        rest = np.setdiff1d(np.arange(self._width), self._targets)
        answer[rest] = unused(labels, [*plain, *(names[each.source] for each in self._kept)])
        return list(answer)


def _medians(numbers: Floats) -> Floats:
    """Return the medians (q,) of what is there in each column, 0 where nothing is."""
    gaps = np.isnan(numbers)
    if not gaps.any():
        return np.median(numbers, axis=0)
    medians, some = np.zeros(numbers.shape[1]), ~gaps.all(axis=0)
    medians[some] = np.nanmedian(numbers[:, some], axis=0)
    return medians


def _fill(numbers: Floats, values: Floats) -> Floats:
    """Return numbers (n, q) with values (q,) in the place of NaN, itself if there is none."""
    gaps = np.isnan(numbers)
    return np.where(gaps, values, numbers) if gaps.any() else numbers
