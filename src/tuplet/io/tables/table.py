"""All columns of a file, how they become a data set, and the note that writers add for readers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_string_dtype

from tuplet.core.exceptions import InputError, TupletWarning, warn_outside
from tuplet.io.dataset import Dataset
from tuplet.io.tables.source import FileContent

_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_ZONED = re.compile(rf".*\d\d:\d\d.*{_ZONE}")
_DATE = re.compile(rf"\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?{_ZONE}?)?")
"""Dates and points in time of ISO 8601; the order of day and month in others, as 1/2/2024, is ambiguous."""

SHIPPED = ("__train__", "__fold__")
"""Columns that are not features: the training rows of a split, and the fold of each test row."""

_JSON = (str, int, float, bool)


@dataclass(frozen=True)
class FileTable:
    """All columns of a file, and what the file itself declares about them.

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


def take_shipped(table: FileTable, source: FileContent) -> FileTable:
    """Return the table with the columns `__train__` and `__fold__` taken out as split and folds."""
    frame, train, folds = table.frame, table.train, table.folds
    if "__train__" in frame:
        train = _whole(frame["__train__"], source) != 0
    if "__fold__" in frame:
        numbers = _whole(frame["__fold__"], source)
        folds = (numbers - numbers.min()).astype(np.intp) if len(numbers) else numbers
    shipped = [name for name in SHIPPED if name in frame]
    return replace(table, frame=frame.drop(columns=shipped), train=train, folds=folds)


def _whole(column: pd.Series, source: FileContent) -> npt.NDArray[np.intp]:
    try:
        numbers = column.astype(str).replace({"True": "1", "False": "0"}).astype(float).to_numpy()
        whole = numbers.astype(np.intp) if np.isfinite(numbers).all() else None
    except (ValueError, TypeError, OverflowError):
        whole = None
    if whole is None or (whole != numbers).any():
        source.fail(f"the column {str(column.name)!r} must hold whole numbers without gaps; rename it.")
    return whole


def make_dataset(table: FileTable, targets: list[str]) -> Dataset:
    """Separate features and class variables; names with two leading underscores are never features."""
    chosen = set(targets)
    features = [name for name in table.frame if name not in chosen and not str(name).startswith("__")]
    Y = table.frame[targets].copy()
    if not table.exact:
        for name in targets:
            Y[name] = as_label(Y[name])
    X = table.frame[features].copy()
    if table.guessed:
        warn_of_single_labels(Y)
        X = X.assign(**{str(name): as_dates(X[name]) for name in X if is_string_dtype(X[name].dtype)})
    return Dataset(table.name, X, Y, table.description, table.train, table.folds)


def warn_of_single_labels(Y: pd.DataFrame) -> None:
    """Warn about class variables with one label, where others may have been taken for gaps.

    Variables of 0 and 1 always have both labels, as do booleans.
    """
    for name, column in Y.items():
        labels, n_missing = column.dropna().unique().tolist(), int(column.isna().sum())
        if len(labels) != 1 or labels[0] in (0, 1) or len(column) == 1:
            continue
        gaps = f" and {n_missing:,} missing values; if these are labels, such as NA, give missing="
        warn_outside(
            f"The class variable {str(name)!r} has one label only, {str(labels[0])!r}"
            f"{gaps if n_missing else ''}.",
            TupletWarning,
        )


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


# -- notes -------------------------------------------------------------------------------------------------


def require_writable(dataset: Dataset, writer: str) -> None:
    """Refuse names that are no strings or occur twice, which files cannot keep."""
    seen: set[object] = set()
    for name in (*dataset.Y.columns, *dataset.X.columns):
        if not isinstance(name, str) or not name or name in seen or "\0" in name:
            raise InputError(
                f"{writer}: columns need names that are strings, each once; found {name!r}; rename it."
            )
        seen.add(name)


def make_note(dataset: Dataset, writer: str) -> dict[str, Any]:
    """Return what brings the columns of a data set back exactly, and which are targets; fit for JSON."""
    return {
        "version": 1,
        "name": dataset.name,
        "description": dataset.description,
        "rows": len(dataset.X),
        "targets": list(dataset.Y.columns),
        "types": {str(name): _type(column, writer) for name, column in dataset.frame.items()},
    }


def make_split_note(dataset: Dataset) -> dict[str, Any]:
    """Return split and folds, for files in which a column of them would be taken for a feature by others."""
    note: dict[str, Any] = {}
    if dataset.train is not None:
        note["train"] = "".join(np.where(dataset.train, "1", "0"))
    if dataset.folds is not None:
        note["folds"] = dataset.folds.tolist()
    return note


def _type(column: pd.Series, writer: str) -> Any:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return str(column.dtype)
    categories = column.cat.categories.tolist()
    if not all(isinstance(category, _JSON) for category in categories):
        raise InputError(
            f"{writer}: the categories of {column.name!r} must be text, numbers or booleans; convert them."
        )
    return {"categories": categories, "ordered": bool(column.cat.ordered)}


def apply_note(table: FileTable, note: dict[str, Any], source: FileContent) -> FileTable:
    """Return the table as it was written."""
    try:
        return _applied(table, note)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        source.fail(
            f"the note about types and targets does not fit the rows ({type(error).__name__}: {error}); copy"
            " the file again."
        )


def _applied(table: FileTable, note: dict[str, Any]) -> FileTable:
    targets, types, n = [str(name) for name in note["targets"]], note["types"], note["rows"]
    if n != len(table.frame) or set(types) != set(table.frame.columns) - set(SHIPPED):
        raise ValueError(f"written were {n} rows, found {len(table.frame)}, or other columns")
    frame = pd.DataFrame(
        {
            name: _typed(column, types[name]) if name in types else column
            for name, column in table.frame.items()
        }
    )
    train = np.array([mark == "1" for mark in note["train"]]) if "train" in note else None
    folds = np.array(note["folds"], dtype=np.intp) if "folds" in note else None
    if any(shipped is not None and shipped.shape != (n,) for shipped in (train, folds)):
        raise ValueError("the split is not one of these rows")
    return replace(
        table,
        frame=frame,
        targets=tuple(targets),
        name=str(note["name"]),
        description=str(note["description"]),
        train=train,
        folds=folds,
        exact=True,
    )


def _typed(column: pd.Series, dtype_note: Any) -> pd.Series:
    is_nominal = isinstance(column.dtype, pd.CategoricalDtype)
    if isinstance(dtype_note, dict):
        dtype = pd.CategoricalDtype(dtype_note["categories"], ordered=dtype_note["ordered"])
        if not is_nominal:
            return pd.Series(pd.Categorical(column, dtype=dtype), name=column.name)
        if len(dtype.categories) < len(column.cat.categories):
            raise ValueError(f"{column.name!r} has other categories")
        return pd.Series(_recoded(column, dtype), name=column.name)
    if not is_nominal:
        return column if str(column.dtype) == dtype_note else column.astype(dtype_note)
    # Labels that are not Categoricals are nominal in ARFF, which MEKA requires.
    values = column.astype(object)
    if dtype_note in ("bool", "boolean"):
        values = values.map({"0": False, "1": True})
    elif dtype_note not in ("str", "object", "string"):
        values = values.map(_number, na_action="ignore")
    return values.astype(dtype_note)


def _recoded(column: pd.Series, dtype: pd.CategoricalDtype) -> pd.Categorical:
    """Return the same values as categories of `dtype`, which files may have as text, or not have all."""
    places = {str(category): code for code, category in enumerate(dtype.categories)}
    codes = np.array([places[str(category)] for category in column.cat.categories] + [-1], dtype=np.intp)
    return pd.Categorical.from_codes(codes[column.cat.codes.to_numpy()], dtype=dtype)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
