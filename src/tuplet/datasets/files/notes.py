"""What the writers keep about a data set beside its columns, and how readers bring it back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tuplet.datasets.base import Dataset
from tuplet.datasets.files.source import Source
from tuplet.datasets.files.table import SHIPPED, Table
from tuplet.exceptions import InputError

_JSON = (str, int, float, bool)


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


def apply_note(table: Table, note: dict[str, Any], source: Source) -> Table:
    """Return the table as it was written."""
    try:
        return _applied(table, note)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        source.fail(
            f"the note about types and targets does not fit the rows ({type(error).__name__}: {error}); copy"
            " the file again."
        )


def _applied(table: Table, note: dict[str, Any]) -> Table:
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


def _typed(column: pd.Series, said: Any) -> pd.Series:
    is_nominal = isinstance(column.dtype, pd.CategoricalDtype)
    if isinstance(said, dict):
        dtype = pd.CategoricalDtype(said["categories"], ordered=said["ordered"])
        if not is_nominal:
            return pd.Series(pd.Categorical(column, dtype=dtype), name=column.name)
        if len(dtype.categories) < len(column.cat.categories):
            raise ValueError(f"{column.name!r} has other categories")
        return pd.Series(_recoded(column, dtype), name=column.name)
    if not is_nominal:
        return column if str(column.dtype) == said else column.astype(said)
    # Labels that are no Categoricals are nominal in ARFF, which MEKA asks for.
    values = column.astype(object)
    if said in ("bool", "boolean"):
        values = values.map({"0": False, "1": True})
    elif said not in ("str", "object", "string"):
        values = values.map(_number, na_action="ignore")
    return values.astype(said)


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
