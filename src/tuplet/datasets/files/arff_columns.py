"""Columns of ARFF files: from text to arrays, chunk by chunk, and to the types of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.datasets.files.arff_header import Attribute

Tokens = Sequence[str | None]


def convert(attribute: Attribute, tokens: Tokens) -> npt.NDArray[Any]:
    """Return values as an array: floats or integers, codes of nominal values (-1: missing), or text.

    A KeyError, TypeError, ValueError or OverflowError says that one of them is not of the attribute's kind.
    """
    n = len(tokens)
    if attribute.kind == "nominal":
        codes: dict[str | None, int] = {value: code for code, value in enumerate(attribute.values)}
        codes[None] = -1
        return np.fromiter(map(codes.__getitem__, tokens), dtype=np.int32, count=n)
    if attribute.kind in ("string", "date"):
        text = np.empty(n, dtype=object)
        text[:] = tokens
        return text
    if attribute.kind == "integer":
        try:
            return np.fromiter(map(int, tokens), dtype=np.int64, count=n)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            pass  # gaps, or numbers like 1.0
    numbers = (np.nan if token is None else float(token) for token in tokens)
    return np.fromiter(numbers, dtype=np.float64, count=n)


def implicit(attribute: Attribute, n: int) -> npt.NDArray[Any]:
    """Return n times what an attribute is in sparse rows that leave it out.

    Zero stands for the first of the declared values; what it stands for in a string is not in the file.
    """
    if attribute.kind == "nominal":
        return np.full(n, 0 if attribute.values else -1, dtype=np.int32)
    if attribute.kind in ("string", "date"):
        return np.full(n, None, dtype=object)
    return np.zeros(n, dtype=np.int64 if attribute.kind == "integer" else np.float64)


def first_bad(attribute: Attribute, tokens: Tokens) -> tuple[int, str]:
    """Return the place of the first value that `convert` does not take, and what is wrong with it."""
    for place, token in enumerate(tokens):
        try:
            convert(attribute, [token])
        except (KeyError, ValueError, OverflowError):
            if attribute.kind == "nominal":
                return place, f"{str(token)[:40]!r} is no declared value of {attribute.name!r}"
            return place, f"{str(token)[:40]!r} is no number, but {attribute.name!r} is {attribute.kind}"
    return 0, f"the values of {attribute.name!r} cannot be read"


def make_column(attribute: Attribute, chunks: list[npt.NDArray[Any]]) -> pd.Series:
    """Return the column of an attribute; a ValueError says that a date is not of its format."""
    values = np.concatenate(chunks)
    if attribute.kind == "nominal":
        dtype = pd.CategoricalDtype(pd.Index(attribute.values, dtype="str"))
        return pd.Series(pd.Categorical.from_codes(values, dtype=dtype), name=attribute.name)
    if attribute.kind == "string":
        return pd.Series(values, dtype="str", name=attribute.name)
    if attribute.kind == "date":
        return pd.Series(pd.to_datetime(values, format=attribute.format), name=attribute.name)
    if attribute.kind == "integer" and values.dtype.kind == "f" and _whole(values):
        values = values.astype(np.int64)
    return pd.Series(values, name=attribute.name)


def _whole(values: npt.NDArray[np.float64]) -> bool:
    return bool((np.abs(values) < 2**53).all() and (values == np.floor(values)).all())
