"""Recipes: objects that are not plain data, stored as a word and plain parts from which they are made again.

Objects of pandas, polars and of compiled code have states that only their own libraries may restore. Before a
model is written, a copy of it is made in which each of them is a `Recipe`. The constructor of `Recipe` does
not return one: it checks the parts and returns the object that they make. It is the only constructor of
tuplet that is called with parts of a file.

This module has the recipes of arrays of objects and of text, dicts with keys of any kind, sparse matrices,
and the types of pandas and polars. Those of scikit-learn's compiled structures are in `compiled`.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import narwhals.dependencies as kinds
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_array

from tuplet.core.exceptions import InputError, MissingDependencyError, ModelFileError
from tuplet.io.saved_models import compiled

Parts = tuple[str, tuple[Any, ...]]
"""Kind of a recipe, and what it is made of."""

_NUMBERS: dict[str, Any] = {"dtype": [np.float64], "ensure_all_finite": False}
"""How boosting checks columns of numbers; any other partial function would be code, which no file holds."""

_POLARS = (
    *("Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64", "Float32"),
    *("Float64", "Boolean", "String", "Categorical", "Date", "Time", "Object", "Null", "Binary"),
)
"""Types of polars without parameters, or with none that labels need."""


class Recipe:
    """Instructions for making an object again.

    Parameters
    ----------
    kind : str
        Name of the builder.
    *parts
        Its arguments: plain data, arrays, and objects made by other recipes.
    """

    kind: str
    parts: tuple[Any, ...]

    def __new__(cls, kind: str, *parts: Any) -> Any:
        """Make the object."""
        if not isinstance(kind, str) or kind not in _BUILDERS:
            raise ModelFileError(
                f"The file holds an object of kind {kind!r}, which this version of tuplet cannot make."
            )
        return _BUILDERS[kind](*parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Recipe, (self.kind, *self.parts)


def _write_down(kind: str, parts: tuple[Any, ...]) -> Recipe:
    recipe: Recipe = object.__new__(Recipe)
    recipe.kind, recipe.parts = kind, parts
    return recipe


def rewrite(model: Any) -> Any:
    """Return a copy of a model with recipes in place of everything that is not plain data.

    Pickle makes the copy, because it can copy almost everything and keeps shared objects shared. The pickle
    never leaves this function: what is read back is what was written a moment ago.
    """
    buffer = io.BytesIO()
    writer = _Writer(buffer)
    writer.dump(model)
    buffer.seek(0)
    return _Reader(buffer, writer.kept).load()


class _Writer(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, protocol=5)
        self.kept: list[Recipe] = []

    def reducer_override(self, obj: Any) -> Any:
        for take_apart in _FAMILIES:
            taken = take_apart(obj)
            if taken is not None:
                return _write_down, taken
        return NotImplemented

    def persistent_id(self, obj: Any) -> int | None:
        # Pickle does not pass dicts to `reducer_override`, and skops supports no keys but text and integers.
        if type(obj) is not dict or _has_simple_keys(obj):
            return None
        self.kept.append(_write_down("dict", (rewrite(list(obj)), rewrite(list(obj.values())))))
        return len(self.kept) - 1


class _Reader(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, kept: list[Recipe]) -> None:
        super().__init__(buffer)
        self.kept = kept

    def persistent_load(self, pid: int) -> Recipe:
        return self.kept[pid]


# -- arrays, dicts, sparse matrices ------------------------------------------------------------------------


def _has_simple_keys(mapping: dict[Any, Any]) -> bool:
    """Whether all keys are text, or all are integers: JSON confuses 1, "1", 1.0 and True."""
    kinds = {type(key) for key in mapping}
    return kinds <= {str} or kinds <= {int}


def _container(obj: Any) -> Parts | None:
    """Return the recipe of an array, a dtype of text, a sparse matrix or one partial function."""
    if type(obj) is np.ndarray and obj.dtype == object:
        return "objects", (obj.shape, obj.ravel().tolist())
    if type(obj) is np.ndarray and obj.dtype.kind == "T":
        return "texts", (obj.shape, obj.ravel().tolist())
    if isinstance(obj, np.dtype) and obj.kind == "T":
        return "text dtype", ()
    if sparse.issparse(obj):
        return "sparse", _sparse_parts(obj)
    if type(obj) is partial and obj.func is check_array and not obj.args and obj.keywords == _NUMBERS:
        return "check of numbers", ()
    return None


def _sparse_parts(matrix: Any) -> tuple[Any, ...]:
    rows = matrix.tocsc() if matrix.format == "csc" else matrix.tocsr()
    is_array = isinstance(matrix, sparse.sparray)
    return matrix.format, is_array, matrix.shape, rows.data, rows.indices, rows.indptr


def _objects(shape: tuple[int, ...], values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    # One by one, since numpy would look into values that are sequences.
    for i, value in enumerate(values):
        array[i] = value
    return array.reshape(shape)


def _texts(shape: tuple[int, ...], values: list[str]) -> np.ndarray:
    return np.array(values, dtype=np.dtypes.StringDType()).reshape(shape)


def _sparse(
    format: str, is_array: bool, shape: Any, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray
) -> Any:
    """Return a sparse matrix whose indices are inside of it: compiled code does not check them."""
    kind = "csc" if format == "csc" else "csr"
    matrix = getattr(sparse, f"{kind}_{'array' if is_array else 'matrix'}")(
        (data, indices, indptr), shape=shape, copy=False
    )
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise ModelFileError(f"The file holds a broken sparse matrix: {error}.") from None
    return matrix.asformat(format)


_CONTAINERS: dict[str, Callable[..., Any]] = {
    "objects": _objects,
    "texts": _texts,
    "text dtype": lambda: np.dtypes.StringDType(),
    "dict": lambda keys, values: dict(zip(keys, values, strict=True)),
    "sparse": _sparse,
    "check of numbers": lambda: partial(check_array, **_NUMBERS),
}


# -- pandas and polars -------------------------------------------------------------------------------------


def _pandas_or_polars(obj: Any) -> Parts | None:
    """Return the recipe of a value, dtype, index, column or frame."""
    if not type(obj).__module__.startswith(("pandas", "polars", "builtins")):
        return None  # most objects; skips the checks below
    return _value(obj) or _type(obj) or _index(obj) or _columns(obj) or _polars_type(obj)


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


def _values(column: Any) -> np.ndarray:
    """Return the values of an index or a column as an array that restores it together with its dtype."""
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


_FRAMES: dict[str, Callable[..., Any]] = {
    "NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "timestamp": _timestamp,
    "timedelta": lambda count, unit: pd.Timedelta(np.timedelta64(count, unit)),
    "period": lambda ordinal, freq: pd.Period(ordinal=ordinal, freq=freq),
    "interval": lambda left, right, closed: pd.Interval(left, right, closed),
    "categories": lambda categories, ordered: pd.CategoricalDtype(categories, ordered),
    "string": lambda storage, has_na: pd.StringDtype(storage, na_value=pd.NA if has_na else np.nan),
    "dtype": lambda name: pd.api.types.pandas_dtype(str(name)),
    "levels": lambda levels, names: pd.MultiIndex.from_arrays(levels, names=names),
    "range": lambda start, stop, step, name: pd.RangeIndex(start, stop, step, name=name),
    "index": lambda values, dtype, name: pd.Index(values, dtype=dtype, name=name),
    "frame": _frame,
    "series": lambda values, dtype, index, name: pd.Series(values, index, dtype, name),
    "column": lambda values, dtype: pd.array(values, dtype=dtype),
    "polars": _polars,
}

_FAMILIES = (_container, _pandas_or_polars, compiled.take_apart)
_BUILDERS: dict[str, Callable[..., Any]] = {**_CONTAINERS, **_FRAMES, **compiled.BUILDERS}
