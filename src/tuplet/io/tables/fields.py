"""Fields of text: which of them hold no value, and what columns of them are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pandas as pd
from pandas.api.types import is_string_dtype

from tuplet.core.exceptions import InputError

Missing: TypeAlias = Sequence[str] | Mapping[str, Sequence[str]]
"""Fields that hold no value: in all columns, or by the names of columns, "*" for all others."""

_ERRORS = [
    "#N/A", "#NV", "#N/V", "#N/D", "#DIV/0!", "#VALUE!", "#WERT!", "#VALEUR!", "#REF!", "#BEZUG!", "#NAME?",
    "#NOM?", "#NUM!", "#ZAHL!", "#NOMBRE!", "#NULL!", "#NUL!",
]  # fmt: skip
"""What spreadsheets in English, German and French write where there is no result."""

MISSING = ["", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", *_ERRORS]
"""Fields that hold no value; "None" is text, as it is an answer in many questionnaires."""


def missing_by_column(
    missing: Missing | None, names: Sequence[str], usual: Sequence[str] = MISSING
) -> dict[str, list[str]]:
    """Return the fields of each column that hold no value: the given or the usual ones, and empty ones."""
    if isinstance(missing, str):
        raise InputError(f"read_table: missing must be a list of texts; found {missing!r}, a single one.")
    given = missing if isinstance(missing, Mapping) else {} if missing is None else {"*": missing}
    others = given.get("*", usual)
    return {name: ["", *map(str, given.get(name, others))] for name in names}


def is_text(column: pd.Series) -> bool:
    """Return whether a column holds text, perhaps among other values."""
    return column.dtype == object or is_string_dtype(column.dtype)


def cleaned(column: pd.Series, missing: Sequence[str], *, strip: bool = True) -> pd.Series:
    """Return booleans with gaps as such, other mixtures as text, and text without blanks at its ends.

    Parameters
    ----------
    column : Series
    missing : sequence of str
        Texts that are no value.
    strip : bool
        Whether there may be blanks at the ends.
    """
    if not is_text(column):
        return column
    if column.dtype == object:
        kind = pd.api.types.infer_dtype(column, skipna=True)
        if kind == "boolean":
            return column.astype("boolean")
        if kind == "empty":
            return column.astype(float)
        column = column if kind == "string" else as_words(column)
    return _stripped(column, missing) if strip else column


def _stripped(column: pd.Series, missing: Sequence[str]) -> pd.Series:
    codes, values = pd.factorize(column)
    stripped = pd.Index([str(value).strip() for value in values], dtype=object)
    kept = stripped.where(~stripped.isin(missing), None)
    if kept.equals(pd.Index(values, dtype=object)):
        return column
    values_and_gap = kept.append(pd.Index([None], dtype=object))  # a gap has the code -1
    return pd.Series(values_and_gap.take(codes), column.index, object, column.name).infer_objects()


def as_words(column: pd.Series) -> pd.Series:
    """Return values as text; whole numbers have no decimals, as which gaps may have left them."""
    if column.dtype.kind == "f":
        known = column.dropna()
        if (known == known.round()).all():
            column = column.astype("Int64")
    # Not by astype(str), which makes text of missing values in pandas 2.
    return column.astype(object).map(str, na_action="ignore").infer_objects()
