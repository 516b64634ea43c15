"""Recipes: objects that are not plain data, stored as a word and plain parts from which they are made again.

Objects of pandas, polars and of compiled code have states that only their own libraries may restore. Before a
model is written, a copy of it is made in which each of them is a `Recipe`. The constructor of `Recipe` does
not return one: it checks the parts and returns the object that they make. It is the only constructor of
tuplet that is called with parts of a file.

There are recipes of arrays of objects and of text, dicts with keys of any kind, sparse matrices, the types of
pandas and polars, and scikit-learn's compiled structures. Compiled code does not check the indices that it
follows, and a forged file could make it read memory outside of its arrays: so sparse matrices, trees and
support vectors are checked, and search trees of neighbours are built again from their points.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import narwhals.dependencies as kinds
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.neighbors import BallTree, KDTree
from sklearn.svm._base import BaseSVC
from sklearn.tree._tree import Tree
from sklearn.utils import check_array

from tuplet.core.exceptions import InputError, MissingDependencyError, ModelFileError

Parts = tuple[str, tuple[Any, ...]]
"""Kind of a recipe, and what it is made of."""

_NUMBERS: dict[str, Any] = {"dtype": [np.float64], "ensure_all_finite": False}
"""How boosting checks columns of numbers; any other partial function would be code, which no file holds."""

_POLARS = (
    *("Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64", "Float32"),
    *("Float64", "Boolean", "String", "Categorical", "Date", "Time", "Object", "Null", "Binary"),
)
"""Types of polars without parameters, or with none that labels need."""

_METRICS = ("euclidean", "manhattan", "chebyshev", "hamming", "canberra", "braycurtis", "haversine")
"""Distances without parameters, by the names of their classes and of scikit-learn's arguments."""


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


# -- compiled structures ----------------------------------------------------------------------------------


def _structure(obj: Any) -> Parts | None:
    """Return the recipe of a tree or of a search tree of neighbours, None for any other object."""
    if type(obj) is Tree:
        _, sizes, state = obj.__reduce__()
        return "tree", (*sizes, state["max_depth"], state["nodes"], state["values"])
    if type(obj) is TreePredictor:
        return "boosted tree", (obj.nodes, obj.binned_left_cat_bitsets, obj.raw_left_cat_bitsets)
    if type(obj) in (KDTree, BallTree):
        state = obj.__getstate__()
        return "neighbors", (type(obj).__name__, state[0], state[4], _metric(state[11]), state[12])
    return None


def _metric(metric: Any) -> dict[str, Any]:
    name = type(metric).__name__.removesuffix("64").removesuffix("Distance").lower()
    if name in _METRICS:
        return {"metric": name}
    if name == "minkowski":
        p, weights, _ = metric.__getstate__()
        return {"metric": name, "p": p} | ({"w": weights} if len(weights) else {})
    raise InputError(f"neighbours by the distance {type(metric).__name__} cannot be saved")


def _tree(
    n_features: int, n_classes: np.ndarray, n_outputs: int, depth: int, nodes: np.ndarray, values: np.ndarray
) -> Tree:
    classes = np.ascontiguousarray(n_classes, dtype=np.intp)
    _require(n_outputs >= 1 and classes.shape == (n_outputs,) and classes.min() >= 1)
    _require(values.shape == (len(nodes), n_outputs, classes.max()))
    inner = nodes["left_child"] != -1
    _check_nodes(inner, nodes["left_child"], nodes["right_child"])
    _require(_inside(nodes["feature"][inner], n_features))
    tree = Tree(int(n_features), classes, int(n_outputs))
    tree.__setstate__({"max_depth": int(depth), "node_count": len(nodes), "nodes": nodes, "values": values})
    return tree


def _boosted_tree(nodes: np.ndarray, binned: np.ndarray, raw: np.ndarray) -> TreePredictor:
    inner = nodes["is_leaf"] == 0
    _check_nodes(inner, nodes["left"], nodes["right"])
    _require(binned.shape == raw.shape == (len(raw), 8) and binned.dtype == raw.dtype == np.uint32)
    _require(_inside(nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)], len(raw)))
    _require(nodes["feature_idx"].min() >= 0)
    return TreePredictor(nodes, binned, raw)


def _check_nodes(inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Children exist and come after their parents, so every path ends at a leaf."""
    place = np.arange(len(inner))
    _require(len(inner) > 0)
    for child in (left, right):
        _require(bool((child[inner] > place[inner]).all()) and _inside(child[inner], len(inner)))


def _neighbors(
    kind: str, points: np.ndarray, leaf_size: int, metric: dict[str, Any], weights: np.ndarray | None
) -> Any:
    _require(kind in ("KDTree", "BallTree") and metric["metric"] in (*_METRICS, "minkowski"))
    made = KDTree if kind == "KDTree" else BallTree
    return made(points, leaf_size=leaf_size, sample_weight=weights, **metric)


def _inside(values: np.ndarray, end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


def _require(sound: bool) -> None:
    if not sound:
        raise ModelFileError("The file has trees or vectors with invalid indices: forged or damaged.")


_STRUCTURES: dict[str, Callable[..., Any]] = {
    "tree": _tree,
    "boosted tree": _boosted_tree,
    "neighbors": _neighbors,
}

_FAMILIES = (_container, _pandas_or_polars, _structure)
_BUILDERS: dict[str, Callable[..., Any]] = {**_CONTAINERS, **_FRAMES, **_STRUCTURES}


# -- checks that need the owner of a structure -------------------------------------------------------------


def check_whole(model: Any) -> None:
    """Check that trees use only features that the estimators that own them get."""
    for part in _parts(model):
        n_features: int = getattr(part, "n_features_in_", 0)
        if isinstance(getattr(part, "tree_", None), Tree):
            _require(part.tree_.n_features == n_features)
        if isinstance(part, BaseForest | BaseGradientBoosting):
            trees = np.ravel(getattr(part, "estimators_", ()))
            _require(all(tree.n_features_in_ == n_features for tree in trees))
        if isinstance(part, BaseHistGradientBoosting):
            rounds = getattr(part, "_predictors", ())
            _require(
                all(_inside(tree.nodes["feature_idx"], n_features) for trees in rounds for tree in trees)
            )
        if isinstance(part, BaseSVC) and hasattr(part, "support_"):
            _check_vectors(part)


def _check_vectors(svc: Any) -> None:
    """Check that the arrays of a support vector machine have the sizes that its compiled part expects."""
    n, k = len(svc.support_), len(svc._n_support)
    pairs = k * (k - 1) // 2
    _require(svc.support_vectors_.shape == (n, svc.n_features_in_))
    _require(svc._dual_coef_.shape == (k - 1, n) and svc._intercept_.shape == (pairs,))
    _require(bool((svc._n_support >= 0).all()) and svc._n_support.sum() == n)
    _require(len(svc._probA) == len(svc._probB) and len(svc._probA) in (0, pairs))


def _parts(model: Any) -> Iterator[Any]:
    """Yield every object with attributes that a model refers to, once."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        obj = waiting.pop()
        if id(obj) in seen:
            continue
        seen.add(id(obj))
        if isinstance(obj, dict):
            waiting.extend(obj.values())
        elif isinstance(obj, list | tuple | set):
            waiting.extend(obj)
        elif isinstance(obj, np.ndarray):
            waiting.extend(obj.ravel().tolist() if obj.dtype == object else ())
        elif hasattr(obj, "__dict__") and not isinstance(obj, type):
            waiting.extend(vars(obj).values())
            yield obj
