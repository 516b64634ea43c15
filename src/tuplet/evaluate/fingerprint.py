"""What makes two fits the same fit: the model's settings, the rows, the seed and the versions."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import CodeType
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from narwhals.dependencies import is_polars_series
from scipy.sparse import issparse

from tuplet.core.exceptions import InputError
from tuplet.space.containers import open_table

_DIGITS = 16


def short_digest(*parts: str | bytes) -> str:
    """Return a short text that differs where the parts do."""
    total = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        total.update(len(raw).to_bytes(8, "little"))  # or ("ab", "c") would be ("a", "bc")
        total.update(raw)
    return total.hexdigest()[:_DIGITS]


def describe(thing: Any) -> str:
    """Return an estimator or a setting as a text that is the same in every process.

    Estimators are their class and all their parameters, also those left at their defaults: a default that
    changes is another model. An object that shows nothing of itself is described by its pickled form.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> describe({"C": 1.0, "order": [2, 1]})
    "{'C': 1.0, 'order': list(2, 1)}"
    >>> describe(LogisticRegression(C=2)).startswith("sklearn.linear_model._logistic.LogisticRegression(C=2,")
    True
    """
    return _text(thing, ())


def _text(thing: Any, outer: tuple[int, ...]) -> str:
    """Return the text of a thing; `outer` are the things it is in, for some are in themselves."""
    if id(thing) in outer:
        return "..."
    inner = (*outer, id(thing))
    if hasattr(thing, "get_params") and not isinstance(thing, type):
        params = thing.get_params(deep=False)
        settings = ", ".join(f"{name}={_text(params[name], inner)}" for name in sorted(params))
        return f"{_path(type(thing))}({settings})"
    if thing is None or isinstance(thing, (bool, int, float, str, bytes, np.generic)):
        return repr(thing.item() if isinstance(thing, np.generic) else thing)
    if isinstance(thing, (list, tuple, set, frozenset)):
        parts = [_text(part, inner) for part in thing]
        ordered = sorted(parts) if isinstance(thing, (set, frozenset)) else parts
        return f"{type(thing).__name__}({', '.join(ordered)})"
    if isinstance(thing, Mapping):
        return (
            "{" + ", ".join(f"{key!r}: {_text(thing[key], inner)}" for key in sorted(thing, key=repr)) + "}"
        )
    if isinstance(thing, functools.partial):
        return f"partial({_text((thing.func, thing.args, thing.keywords), inner)})"
    if inspect.ismethod(thing):
        return f"{_path(thing)} of {_text(thing.__self__, inner)}"
    return _opaque(thing, inner)


def _opaque(thing: Any, outer: tuple[int, ...]) -> str:
    if not hasattr(thing, "__qualname__"):
        return f"{_path(type(thing))}#{_pickled_digest(thing)}"
    nameless = "<" in thing.__qualname__ or thing.__module__ == "__main__"  # lambdas, notebooks
    return _path(thing) + (f"#{_code_digest(thing, outer)}" if nameless and inspect.isfunction(thing) else "")


def _pickled_digest(thing: Any) -> str:
    try:
        return str(joblib.hash(thing))
    except Exception as error:
        raise InputError(
            f"compare: a {type(thing).__name__} in a model or scorer cannot be told from others ({error});"
            " pass something that can be pickled."
        ) from None


def _code_digest(function: Any, outer: tuple[int, ...]) -> str:
    """Return a digest of what a function does: its code, its defaults and what it has closed over."""
    cells = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a name that has no value yet
            cells.append(_text(cell.cell_contents, outer))
    defaults = _text((function.__defaults__, function.__kwdefaults__), outer)
    return short_digest(*_code_parts(function.__code__, outer), defaults, *cells)


def _code_parts(code: CodeType, outer: tuple[int, ...]) -> Iterator[str | bytes]:
    yield code.co_code
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant, outer)
        else:
            yield _text(constant, outer)


def _path(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def data_digest(X: Any, Y: Any, groups: Any = None) -> str:
    """Return a text that differs where features, labels or groups do: values, types, names and order."""
    parts = [X, Y] if groups is None else [X, Y, groups]
    return short_digest(*map(_table_bytes, parts))


def _table_bytes(table: Any) -> bytes:
    if issparse(table):
        rows: Any = table
        rows = rows.tocsr()
        parts = (rows.data, rows.indices, rows.indptr)
        return str(rows.shape).encode() + b"".join(map(_array_bytes, parts))
    if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
        return _array_bytes(table)
    opened = open_table(table)
    return "\n".join(opened.names()).encode() + b"".join(map(_column_bytes, opened.columns))


def _column_bytes(column: Any) -> bytes:
    series = column.to_pandas() if is_polars_series(column) else pd.Series(column)
    kind = f"{column.dtype} {series.dtype}"
    if isinstance(series.dtype, pd.CategoricalDtype):  # which others could occur, and their order, matter too
        kind += f" {series.cat.categories.tolist()!r} {series.cat.ordered}"
    elif series.dtype == object:  # 1 and "1" have the same hash
        kind += f" {[type(value).__name__ for value in series]}"
    return kind.encode() + _array_bytes(pd.util.hash_pandas_object(series, index=False).to_numpy())


def _array_bytes(array: npt.NDArray) -> bytes:
    solid = np.ascontiguousarray(array)
    return f"{solid.dtype}{solid.shape}".encode() + hashlib.sha256(solid.tobytes()).digest()
