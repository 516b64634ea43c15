"""One column of labels: what values it has, which codes they get, and the way back.

A column is a 1-D numpy array, a pandas Series or a polars Series. Two labels are the same if they are equal
in Python: 1, 1.0, True and `numpy.int64(1)` are one label, "1" is another.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import narwhals.dependencies as kinds
import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError, LabelError
from tuplet.core.typing import UNKNOWN, Codes

_EXACT_IN_FLOAT = 2**53
"""Integers up to here are exact as floats."""

_NUMBERS = {"integer", "floating", "boolean", "mixed-integer-float"}
"""What pandas calls objects that are all numbers."""


# -- reading a column --------------------------------------------------------------------------------------


def present_and_missing(column: Any) -> tuple[np.ndarray, npt.NDArray[np.bool_]]:
    """Return the labels that are there, as an array without gaps, and where (n,) the others are missing."""
    values: np.ndarray
    if isinstance(column, pd.Series):
        missing = column.isna().to_numpy(dtype=bool, copy=True)
        values = np.asarray(column[~missing].to_numpy())
    elif kinds.is_polars_series(column):
        missing = np.array(column.is_null().to_numpy(), dtype=bool)
        values = _polars_values(column.drop_nulls())
    else:
        missing = np.array(np.ma.getmaskarray(column))
        values = np.ma.getdata(column)[~missing]
    # A NaN need not be the container's own mark of a missing value: polars and masked arrays have both.
    if values.dtype.kind in "fcmMO":
        gaps = np.asarray(pd.isna(values))
        missing[~missing] = gaps
        values = values[~gaps]
    return values, missing


def _polars_values(column: Any) -> np.ndarray:
    import polars as pl

    categorical = isinstance(column.dtype, pl.Enum | pl.Categorical)
    return np.asarray((column.cast(pl.String) if categorical else column).to_numpy())


def declared(dtype: Any) -> np.ndarray | None:
    """Return the categories that the type of a column declares, in its order, or None."""
    if isinstance(dtype, pd.CategoricalDtype):
        return np.array(dtype.categories)
    # An Enum of polars has a list of them; its Categorical declares none.
    listed = getattr(getattr(dtype, "categories", None), "to_list", None)
    return None if listed is None else np.array(listed(), dtype=object)


def is_ordered(dtype: Any) -> bool:
    """Return whether the type of a column declares an order: an ordered Categorical, or an Enum of polars."""
    if isinstance(dtype, pd.CategoricalDtype):
        return bool(dtype.ordered)
    return declared(dtype) is not None


def ordered_dtype(dtype: Any, categories: np.ndarray, container: str, name: str) -> Any:
    """Return the type of a column whose labels have an order; arrays have no such type and keep theirs."""
    if container == "pandas":
        return pd.CategoricalDtype(pd.Index(categories), ordered=True)
    if container == "polars":
        return _enum(categories, name)
    return dtype


def _enum(categories: np.ndarray, name: str) -> Any:
    import polars as pl

    if not _all_text(categories):
        raise InputError(
            f"An Enum of polars holds text only, found {show(categories[0])} among the labels of {name!r};"
            " pass text or a frame of pandas."
        )
    return pl.Enum(categories.tolist())


# -- learning ----------------------------------------------------------------------------------------------


def learn(column: Any, name: str) -> np.ndarray:
    """Return the categories of a column in code order: declared ones as they are, found ones sorted.

    Where nothing but 0 or nothing but 1 (False, True) was found, the other one is a category too: it is a yes
    or no, whose code must not depend on the rows.
    """
    values, _ = present_and_missing(column)
    categories = declared(column.dtype)
    if categories is None:
        if not len(values):
            raise InputError(
                f"All labels of {name!r} are missing; drop this class variable, or declare its labels:"
                " pandas.Categorical(y, categories=[...])."
            )
        _reject_continuous(values, name)
        categories = _both_answers(_unique(values, name))
    return categories


def _both_answers(categories: np.ndarray) -> np.ndarray:
    """Return 0 and 1, as numbers or booleans of the same type, where only one of them was found."""
    if len(categories) > 1 or _as_numbers(categories).dtype.kind not in "biuf":
        return categories
    if categories[0] not in (0, 1):
        return categories
    kind = type(categories[0]) if categories.dtype == object else bool
    return np.array([kind(0), kind(1)], dtype=categories.dtype)


def _reject_continuous(values: np.ndarray, name: str) -> None:
    numbers = _as_numbers(values)
    if numbers.dtype.kind in "cV":
        raise InputError(f"Unknown label type: {name!r} holds values of type {numbers.dtype}.")
    if numbers.dtype.kind != "f":
        return
    if np.isinf(numbers).any():
        raise InputError(f"Input Y contains infinity: the labels of {name!r} must be finite.")
    fractional = numbers != np.floor(numbers)
    if fractional.any():
        raise InputError(
            f"Unknown label type: continuous. {name!r} holds fractional numbers such as"
            f" {numbers[fractional][0]:g}; discretise it, for example with pandas.cut."
        )


def _unique(values: np.ndarray, name: str) -> np.ndarray:
    """Return distinct values, sorted where they can be compared."""
    if values.dtype != object:
        return np.unique(values)
    numbers = _as_numbers(values)
    if numbers.dtype != object:
        return values[np.unique(numbers, return_index=True)[1]]
    distinct = _distinct_objects(values, name)
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=lambda label: (type(label).__name__, repr(label)))
    array = np.empty(len(distinct), dtype=object)
    array[:] = distinct
    return array


def _distinct_objects(values: np.ndarray, name: str) -> list[Any]:
    if _all_text(values):
        return list(pd.unique(values))
    try:
        return list(dict.fromkeys(values.tolist()))
    except TypeError:
        raise InputError(
            f"Unknown label type: {name!r} holds lists or other containers; a label is a single value."
        ) from None


def _as_numbers(values: np.ndarray) -> np.ndarray:
    """Return objects that are all numbers as numbers; anything else as it is."""
    if values.dtype != object or pd.api.types.infer_dtype(values, skipna=False) not in _NUMBERS:
        return values
    numbers = np.array(values.tolist())
    return numbers if numbers.dtype.kind in "biuf" else values


def _all_text(values: np.ndarray) -> bool:
    return pd.api.types.infer_dtype(values, skipna=False) == "string"


def in_order(found: np.ndarray, given: Any, name: str) -> np.ndarray:
    """Return labels in the order given, which must have all that were found, each once."""
    categories = as_array(list(given))
    if len(set(listed(categories))) < len(categories):
        raise InputError(f"The order of {name!r} has a label twice: {', '.join(map(show, categories))}.")
    positions = _lookup(found, categories)
    if (positions < 0).any():
        raise InputError(
            f"The order of {name!r} lacks {show(found[positions < 0][0])}; it must have every label of Y."
        )
    return categories


def are_comparable(categories: np.ndarray) -> bool:
    """Return whether sorted labels are in a meaningful order: numbers, booleans and dates, but not text."""
    return _as_numbers(categories).dtype.kind in "biufmM"


# -- labels to codes ---------------------------------------------------------------------------------------


def encode(column: Any, categories: np.ndarray, name: str) -> Codes:
    """Return the codes (n,) of a column; `UNKNOWN` where a label is missing.

    Raises
    ------
    LabelError
        If a label is not among the categories.
    """
    codes, unseen = seen_codes(column, categories)
    if unseen.any():
        values, missing = present_and_missing(column)
        raise LabelError(_unseen(values[unseen[~missing]], categories, name))
    return codes


def seen_codes(column: Any, categories: np.ndarray) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """Return the codes (n,) of a column, and where its labels are not among the categories.

    There, and where a label is missing, the code is `UNKNOWN`.
    """
    values, missing = present_and_missing(column)
    positions = _lookup(values, categories)
    codes, unseen = np.full(len(missing), UNKNOWN, dtype=np.intp), np.zeros(len(missing), dtype=bool)
    codes[~missing], unseen[~missing] = positions, positions < 0
    return codes, unseen


def _lookup(values: np.ndarray, categories: np.ndarray) -> Codes:
    """Return the position of each value among the categories, -1 where it is not one of them."""
    (left, family), (right, other) = _hashable(values), _hashable(categories)
    if family == other != "mixed":
        return np.asarray(pd.Index(right).get_indexer(pd.Index(left)), dtype=np.intp)
    position = {label: code for code, label in enumerate(listed(categories))}
    try:
        return np.array([position.get(value, -1) for value in listed(values)], dtype=np.intp)
    except TypeError:  # a container among the labels
        return np.full(len(values), -1, dtype=np.intp)


def as_array(categories: Any) -> np.ndarray:
    """Return labels as an array, each as what it is: numpy would make all of them text if one is."""
    if isinstance(categories, np.ndarray):
        return categories
    plain = np.asarray(categories)
    if plain.dtype.kind not in "US" or all(isinstance(label, str) for label in categories):
        return plain
    return np.array(list(categories), dtype=object)


def listed(values: np.ndarray) -> list[Any]:
    """Return labels as objects; points in time to the nanosecond are Timestamps, not numbers."""
    return pd.Index(values).tolist() if values.dtype.kind in "mM" else values.tolist()


def _hashable(values: np.ndarray) -> tuple[np.ndarray, str]:
    """Return an array that pandas can hash and a word for the values it can be compared with."""
    values = _as_numbers(values)
    kind = values.dtype.kind
    if kind in "biuf":
        plain = {"b": np.int64, "f": np.float64}.get(kind, values.dtype)
        return values.astype(plain, copy=False), "number"
    if kind in "UT":
        return values.astype(object), "text"
    if kind == "O":
        return values, "text" if _all_text(values) else "mixed"
    return values, kind


def _unseen(strange: np.ndarray, categories: np.ndarray, name: str) -> str:
    distinct = list(dict.fromkeys(show(label) for label in strange[:1000]))
    known = ", ".join(show(label) for label in categories[:8])
    return (
        f"Unknown label{'s' if len(distinct) > 1 else ''} {', '.join(distinct[:3])}"
        f"{', ...' if len(distinct) > 3 else ''} of {name!r};"
        f" the known ones are {known}{f' and {len(categories) - 8} more' if len(categories) > 8 else ''}."
    )


def show(label: Any) -> str:
    """Return a label as it would be typed, without the wrapper of a numpy scalar."""
    if isinstance(label, (np.datetime64, np.timedelta64, datetime, timedelta)):
        (label,) = pd.Index([label]).astype(str).str.removesuffix(" 00:00:00")
    return repr(label.item() if isinstance(label, np.generic) else label)


# -- codes to labels ---------------------------------------------------------------------------------------


def decode(codes: Codes, categories: np.ndarray) -> np.ndarray:
    """Return the labels of codes of any shape, missing where the code is `UNKNOWN`.

    Only then is the type widened, and only if it has no missing value: integers become floats unless that
    would change them, everything else becomes objects with None.
    """
    unknown = codes == UNKNOWN
    labels = categories[np.where(unknown, 0, codes)]
    if not unknown.any():
        return labels
    kind = labels.dtype.kind
    if kind in "fmM":
        labels[unknown] = np.array("NaT" if kind in "mM" else "nan", labels.dtype)
        return labels
    if kind in "iu" and np.abs(categories.astype(float)).max() < _EXACT_IN_FLOAT:
        return np.where(unknown, np.nan, labels)
    labels = labels.astype(object)
    labels[unknown] = None
    return labels
