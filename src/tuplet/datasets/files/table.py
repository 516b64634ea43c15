"""What every reader returns, before features and class variables are told apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_string_dtype

from tuplet.datasets.base import Dataset
from tuplet.datasets.files.source import Source

_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_ZONED = re.compile(rf".*\d\d:\d\d.*{_ZONE}")
_DATE = re.compile(rf"\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?{_ZONE}?)?")
"""Dates and points in time of ISO 8601; the order of others, such as 1/2/2024, is anybody's guess."""

SHIPPED = ("__train__", "__fold__")
"""Columns that are no features: the training rows of a split, and the fold of each test row."""


@dataclass(frozen=True)
class Table:
    """All columns of a file, and what the file itself says about them.

    Parameters
    ----------
    frame : pandas DataFrame
    targets : tuple of str, or None
        The class variables that the file names; None if it names none.
    name, description : str
    train : array of bool (n,), optional
    folds : array of int (n,), optional
    exact : bool
        Whether the types are those that the data had when Tuplet wrote them, and stay as they are.
    guessed : bool
        Whether the types were guessed from text, which may hold dates.
    """

    frame: pd.DataFrame
    targets: tuple[str, ...] | None
    name: str
    description: str = ""
    train: npt.NDArray[np.bool_] | None = None
    folds: npt.NDArray[np.intp] | None = None
    exact: bool = False
    guessed: bool = False


def take_shipped(table: Table, source: Source) -> Table:
    """Return the table with the columns `__train__` and `__fold__` taken out as split and folds."""
    frame, train, folds = table.frame, table.train, table.folds
    if "__train__" in frame:
        train = _whole(frame["__train__"], source) != 0
    if "__fold__" in frame:
        numbers = _whole(frame["__fold__"], source)
        folds = (numbers - numbers.min()).astype(np.intp) if len(numbers) else numbers
    shipped = [name for name in SHIPPED if name in frame]
    return replace(table, frame=frame.drop(columns=shipped), train=train, folds=folds)


def _whole(column: pd.Series, source: Source) -> npt.NDArray[np.intp]:
    try:
        numbers = column.astype(str).replace({"True": "1", "False": "0"}).astype(float).to_numpy()
        whole = numbers.astype(np.intp) if np.isfinite(numbers).all() else None
    except (ValueError, TypeError, OverflowError):
        whole = None
    if whole is None or (whole != numbers).any():
        source.fail(f"the column {str(column.name)!r} must hold whole numbers without gaps; rename it.")
    return whole


def make_dataset(table: Table, targets: list[str]) -> Dataset:
    """Tell features and class variables apart; names with two leading underscores are never features."""
    chosen = set(targets)
    features = [name for name in table.frame if name not in chosen and not str(name).startswith("__")]
    Y = table.frame[targets].copy()
    if not table.exact:
        for name in targets:
            Y[name] = as_label(Y[name])
    X = table.frame[features].copy()
    if table.guessed:
        X = X.assign(**{str(name): as_dates(X[name]) for name in X if is_string_dtype(X[name].dtype)})
    return Dataset(table.name, X, Y, table.description, table.train, table.folds)


def all_columns(dataset: Dataset) -> pd.DataFrame:
    """Return features, class variables, and split and folds as the columns that `take_shipped` reads."""
    frame = pd.concat([dataset.X, dataset.Y], axis=1).reset_index(drop=True)
    shipped = zip(SHIPPED, (dataset.train, dataset.folds), strict=True)
    return frame.assign(**{name: values for name, values in shipped if values is not None})


def as_dates(column: pd.Series) -> pd.Series:
    """Return text that is all dates, or points in time, of ISO 8601 as such; anything else as it is."""
    known = column.dropna()
    if not len(known) or not _DATE.fullmatch(str(known.iloc[0])) or not known.str.fullmatch(_DATE).all():
        return column
    try:
        return pd.to_datetime(column, format="ISO8601", utc=bool(known.str.fullmatch(_ZONED).any()))
    except ValueError:  # a thirteenth month
        return column


def as_label(column: pd.Series) -> pd.Series:
    """Return labels 0 and 1 as integers, whatever they were declared as, and whole numbers as integers."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        if set(map(str, column.cat.categories)) != {"0", "1"}:
            return column
        # As text first: the categories are strings in ARFF files and numbers in others.
        numbers = column.astype(object).map(lambda label: int(label), na_action="ignore")
        return numbers.astype("Int8" if column.isna().any() else "int8")
    if column.dtype.kind == "f":
        known = column.dropna().to_numpy(dtype=float)
        if len(known) and (np.abs(known) < 2**53).all() and (known == np.floor(known)).all():
            return column.astype("Int64" if len(known) < len(column) else "int64")
    return column
