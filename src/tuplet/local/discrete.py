"""Discrete features: which columns of X they are, and their values as codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import narwhals.dependencies as kinds
import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.exceptions import InputError
from tuplet.local.inputs import Features, as_pandas
from tuplet.local.nominal import Nominal, kind_of
from tuplet.space.containers import listing
from tuplet.typing import UNKNOWN, Codes


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
    """Return the positions of columns that the user names, by name or position.

    Parameters
    ----------
    named : sequence of int or str
    names : sequence of str
        Those of all columns.
    known : bool
        Whether the columns have names at all.
    """
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise InputError(f"discrete_features must be a list of columns, found {named!r}; pass [{named!r}].")
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
    """Return X with some columns of numbers as pandas categories; itself if there are none.

    So that they are encoded as what they are. `names` are those of all columns, for X without any.
    """
    if not len(columns):
        return X
    _require_dense(X)
    frame = X.copy(deep=False) if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=list(names))
    for j in columns:
        frame.isetitem(j, pd.Categorical(frame.iloc[:, j]))
    return frame


@dataclass(frozen=True)
class DiscreteFeatures:
    """Discrete features as further variables: codes for values, learned from the training rows.

    A feature that training rows lack now and then has one more category for that, the last: what is missing
    may be telling. A value that training did not show is `UNKNOWN`, and so is a missing one if none was
    missing in training.

    Parameters
    ----------
    columns : tuple of Nominal
        Position in X, and values, of each.
    names : tuple of str
    gaps : tuple of bool
        Whether values were missing in training.
    """

    columns: tuple[Nominal, ...]
    names: tuple[str, ...]
    gaps: tuple[bool, ...]

    @classmethod
    def learn(cls, X: Features, positions: Sequence[int], names: Sequence[str]) -> DiscreteFeatures:
        """Learn the values of the columns at some positions of X.

        Left out are columns with one value, which tell nothing, and with more values than half of the rows:
        these name rows, not kinds.

        Parameters
        ----------
        names : sequence of str
            Those of all columns of X.

        Examples
        --------
        >>> frame = pd.DataFrame({"sex": ["f", "m", "m", "f"] * 2, "place": ["a", "b", None, "a"] * 2})
        >>> features = DiscreteFeatures.learn(frame, (0, 1), ("sex", "place"))
        >>> features.cards
        (2, 3)
        >>> features.codes(pd.DataFrame({"sex": ["m", "?"], "place": [None, "b"]})).tolist()
        [[1, 2], [-1, 1]]
        """
        if len(positions):
            _require_dense(X)
        kept, gaps = [], []
        for j in positions:
            column = _column(X, j)
            nominal, gap = Nominal.learn(j, column, 0), bool(column.isna().any())
            if 1 < len(nominal.categories) + gap <= max(2, len(column) / 2):
                kept.append(nominal)
                gaps.append(gap)
        return cls(tuple(kept), tuple(names[each.source] for each in kept), tuple(gaps))

    @property
    def cards(self) -> tuple[int, ...]:
        """Number of categories of each."""
        return tuple(len(c.categories) + gap for c, gap in zip(self.columns, self.gaps, strict=True))

    def codes(self, X: Features) -> Codes:
        """Return the codes (n, f) of rows."""
        answer = np.empty((X.shape[0], len(self.columns)), dtype=np.intp)
        for f, (nominal, gap) in enumerate(zip(self.columns, self.gaps, strict=True)):
            column = _column(X, nominal.source)
            answer[:, f] = nominal.codes(column)
            if gap:
                answer[column.isna().to_numpy(), f] = len(nominal.categories)
        return answer

    def value(self, feature: int, code: int) -> str:
        """Return the value of a feature that a code stands for, for people to read."""
        categories = self.columns[feature].categories
        if code == UNKNOWN:
            return "?"
        return str(categories[code]) if code < len(categories) else "missing"


def _require_dense(X: Features) -> None:
    if sparse.issparse(X):
        raise InputError("discrete_features: a sparse matrix has no discrete columns; pass X.toarray().")


def _column(X: Features, j: int) -> pd.Series:
    return X.iloc[:, j] if isinstance(X, pd.DataFrame) else pd.Series(X[:, j])
