"""Recipes of containers: arrays of objects and of text, dicts with keys of any kind, sparse matrices.

And of one function with its settings, with which boosting of scikit-learn checks columns of numbers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from tuplet.exceptions import ModelFileError

_NUMBERS: dict[str, Any] = {"dtype": [np.float64], "ensure_all_finite": False}
"""How boosting asks for numbers; a partial function of anything else would be code, which no file holds."""


def has_simple_keys(mapping: dict[Any, Any]) -> bool:
    """Whether all keys are words, or all are whole numbers: JSON confuses 1, "1", 1.0 and True."""
    kinds = {type(key) for key in mapping}
    return kinds <= {str} or kinds <= {int}


def take_apart(obj: Any) -> tuple[str, tuple[Any, ...]] | None:
    """Return the kind and the ingredients of an object of this family, None of any other."""
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


def _dict(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))


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


BUILDERS = {
    "objects": _objects,
    "texts": _texts,
    "text dtype": lambda: np.dtypes.StringDType(),
    "dict": _dict,
    "sparse": _sparse,
    "check of numbers": lambda: partial(check_array, **_NUMBERS),
}
