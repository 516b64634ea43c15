"""What makes two fits the same fit: the model's settings, the rows, the seed and the versions."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from inspect import isfunction
from types import CodeType
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from narwhals.dependencies import is_polars_series
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from tuplet.space.containers import open_table

__all__ = ["data_digest", "describe", "digest"]

_DIGITS = 16


def digest(*parts: str | bytes) -> str:
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
    "{'C': 1.0, 'order': [2, 1]}"
    >>> describe(LogisticRegression(C=2)).startswith("sklearn.linear_model._logistic.LogisticRegression(C=2,")
    True
    """
    if isinstance(thing, BaseEstimator) or (hasattr(thing, "get_params") and not isinstance(thing, type)):
        params = thing.get_params(deep=False)
        return (
            _path(type(thing)) + "(" + ", ".join(f"{k}={describe(params[k])}" for k in sorted(params)) + ")"
        )
    if thing is None or isinstance(thing, (bool, int, float, str, bytes, np.generic)):
        return repr(thing.item() if isinstance(thing, np.generic) else thing)
    if isinstance(thing, (list, tuple)):
        inner = ", ".join(map(describe, thing))
        return f"[{inner}]" if isinstance(thing, list) else f"({inner})"
    if isinstance(thing, Mapping):
        return "{" + ", ".join(f"{key!r}: {describe(thing[key])}" for key in sorted(thing, key=repr)) + "}"
    if isinstance(thing, functools.partial):
        return f"partial({describe(thing.func)}, {describe(thing.args)}, {describe(thing.keywords)})"
    return _opaque(thing)


def _opaque(thing: Any) -> str:
    if not hasattr(thing, "__qualname__"):
        return f"{_path(type(thing))}#{joblib.hash(thing)}"
    nameless = (
        "<" in thing.__qualname__ or thing.__module__ == "__main__"
    )  # lambdas, local functions, notebooks
    return _path(thing) + (f"#{_function_digest(thing)}" if nameless and isfunction(thing) else "")


def _function_digest(function: Any) -> str:
    """Return a digest of what a function does: its code, its defaults and what it has closed over."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return digest(*_code_parts(function.__code__), describe(function.__defaults__), describe(cells))


def _code_parts(code: CodeType) -> Iterator[str | bytes]:
    yield code.co_code
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(constant)


def _path(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def data_digest(X: Any, Y: Any) -> str:
    """Return a text that differs where features or labels do: values, types, names and order."""
    return digest(_table_bytes(X), _table_bytes(Y))


def _table_bytes(table: Any) -> bytes:
    if issparse(table):
        rows: Any = table
        rows = rows.tocsr()
        return _array_bytes(rows.data) + _array_bytes(rows.indices) + _array_bytes(rows.indptr)
    if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
        return _array_bytes(table)
    opened = open_table(table)
    names = "\n".join(f"{name}:{kind}" for name, kind in zip(opened.names(), opened.form.dtypes, strict=True))
    return names.encode() + b"".join(_column_bytes(column) for column in opened.columns)


def _column_bytes(column: Any) -> bytes:
    series = column.to_pandas() if is_polars_series(column) else pd.Series(column)
    return _array_bytes(pd.util.hash_pandas_object(series, index=False).to_numpy())


def _array_bytes(array: npt.NDArray) -> bytes:
    solid = np.ascontiguousarray(array)
    return f"{solid.dtype}{solid.shape}".encode() + hashlib.sha256(solid.tobytes()).digest()
