"""Recipes of pandas and polars: types of columns, indices, frames, and single values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals.dependencies as kinds
import numpy as np
import pandas as pd

from tuplet.exceptions import InputError, MissingDependencyError

Parts = tuple[str, tuple[Any, ...]]


def take_apart(obj: Any) -> Parts | None:
    """Return the kind and the ingredients of an object of this family, None of any other."""
    if not type(obj).__module__.startswith(("pandas", "polars", "builtins")):
        return None  # most objects; spares them the questions below
    return _value(obj) or _type(obj) or _index(obj) or _columns(obj) or _polars_type(obj)


# -- values ------------------------------------------------------------------------------------------------


def _value(obj: Any) -> Parts | None:
    if obj is pd.NA:
        return "NA", ()
    if obj is pd.NaT:
        return "NaT", ()
    if isinstance(obj, pd.Timestamp):
        count = int(obj.to_numpy().astype(np.int64))
        return "timestamp", (count, obj.unit, None if obj.tz is None else str(obj.tz))
    if isinstance(obj, pd.Timedelta):
        return "timedelta", (int(obj.to_numpy().astype(np.int64)), obj.unit)
    if isinstance(obj, pd.Period):
        return "period", (obj.ordinal, obj.freqstr)
    if isinstance(obj, pd.Interval):
        return "interval", (obj.left, obj.right, obj.closed)
    return None


def _timestamp(count: int, unit: str, zone: str | None) -> pd.Timestamp:
    time = pd.Timestamp(np.datetime64(count, unit))  # type: ignore[call-overload]
    return time if zone is None else time.tz_localize("UTC").tz_convert(zone)


# -- types of columns --------------------------------------------------------------------------------------


def _type(obj: Any) -> Parts | None:
    if not isinstance(obj, pd.api.extensions.ExtensionDtype):
        return None
    if isinstance(obj, pd.CategoricalDtype):
        return "categories", (obj.categories, obj.ordered)
    if isinstance(obj, pd.StringDtype):
        return "string", (obj.storage, obj.na_value is pd.NA)
    if pd.api.types.pandas_dtype(str(obj)) != obj:
        raise InputError(f"columns of type {obj} cannot be saved")
    return "dtype", (str(obj),)


def _string(storage: Any, has_na: bool) -> pd.StringDtype:
    return pd.StringDtype(storage, na_value=pd.NA if has_na else np.nan)


# -- indices and frames ------------------------------------------------------------------------------------


def _values(column: Any) -> np.ndarray:
    """Return the values of an index or a column as an array that says all there is to say with its type."""
    dtype = object if isinstance(column.dtype, pd.api.extensions.ExtensionDtype) else column.dtype
    return np.array(column, dtype=dtype)


def _index(obj: Any) -> Parts | None:
    if isinstance(obj, pd.MultiIndex):
        levels = [obj.get_level_values(level) for level in range(obj.nlevels)]
        return "levels", (levels, list(obj.names))
    if isinstance(obj, pd.RangeIndex):
        return "range", (obj.start, obj.stop, obj.step, obj.name)
    if isinstance(obj, pd.Index):
        return "index", (_values(obj), obj.dtype, obj.name)
    return None


def _columns(obj: Any) -> Parts | None:
    if isinstance(obj, pd.DataFrame):
        columns = [(_values(obj.iloc[:, j]), obj.dtypes.iloc[j]) for j in range(obj.shape[1])]
        return "frame", (columns, obj.columns, obj.index)
    if isinstance(obj, pd.Series):
        return "series", (_values(obj), obj.dtype, obj.index, obj.name)
    if isinstance(obj, pd.api.extensions.ExtensionArray):
        return "column", (_values(obj), obj.dtype)
    return None


def _frame(columns: list[tuple[np.ndarray, Any]], names: pd.Index, index: pd.Index) -> pd.DataFrame:
    series = {j: pd.Series(values, index, dtype) for j, (values, dtype) in enumerate(columns)}
    return pd.DataFrame(series, index=index).set_axis(names, axis=1)


# -- polars ------------------------------------------------------------------------------------------------

_POLARS = (
    *("Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64", "Float32"),
    *("Float64", "Boolean", "String", "Categorical", "Date", "Time", "Object", "Null", "Binary"),
)
"""Types without parameters, or with none that labels need."""


def _polars_type(obj: Any) -> Parts | None:
    pl = kinds.get_polars()
    if pl is None:
        return None
    is_class = isinstance(obj, type)
    if not (issubclass(obj, pl.DataType) if is_class else isinstance(obj, pl.DataType)):
        return None
    name = obj.__name__ if is_class else type(obj).__name__
    if is_class or name in _POLARS:
        parts: tuple[Any, ...] = ()
    elif name == "Enum":
        parts = (obj.categories.to_list(),)
    elif name in ("Datetime", "Duration", "Decimal"):
        parts = tuple(vars(obj).values())
    else:
        raise InputError(f"columns of the polars type {obj} cannot be saved")
    return "polars", (name, is_class, *parts)


def _polars(name: str, is_class: bool, *parts: Any) -> Any:
    try:
        import polars as pl
    except ImportError:
        raise MissingDependencyError(
            "The labels of this model were polars columns; run `pip install polars` to load it."
        ) from None
    if name not in (*_POLARS, "Enum", "Datetime", "Duration", "Decimal"):
        raise InputError(f"There is no polars type {name!r}.")
    return getattr(pl, name) if is_class else getattr(pl, name)(*parts)


BUILDERS: dict[str, Callable[..., Any]] = {
    "NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "timestamp": _timestamp,
    "timedelta": lambda count, unit: pd.Timedelta(np.timedelta64(count, unit)),
    "period": lambda ordinal, freq: pd.Period(ordinal=ordinal, freq=freq),
    "interval": lambda left, right, closed: pd.Interval(left, right, closed),
    "categories": lambda categories, ordered: pd.CategoricalDtype(categories, ordered),
    "string": _string,
    "dtype": lambda name: pd.api.types.pandas_dtype(str(name)),
    "levels": lambda levels, names: pd.MultiIndex.from_arrays(levels, names=names),
    "range": lambda start, stop, step, name: pd.RangeIndex(start, stop, step, name=name),
    "index": lambda values, dtype, name: pd.Index(values, dtype=dtype, name=name),
    "frame": _frame,
    "series": lambda values, dtype, index, name: pd.Series(values, index, dtype, name),
    "column": lambda values, dtype: pd.array(values, dtype=dtype),
    "polars": _polars,
}
