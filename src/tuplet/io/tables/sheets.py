"""Workbooks of Excel, through pandas and openpyxl."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from tuplet.core.exceptions import MissingDependencyError, TupletWarning, warn_outside
from tuplet.io.tables.fields import Missing, cleaned, missing_by_column
from tuplet.io.tables.source import FileContent
from tuplet.io.tables.table import FileTable


def read_workbook(source: FileContent, missing: Missing | None = None) -> FileTable:
    """Read the first sheet of a workbook; its first row with values names the columns."""
    sheets = _sheets(source)
    filled = {name: sheet for name, sheet in sheets.items() if len(sheet)}
    if not filled:
        source.fail("the workbook is empty; expected a row with the names of the columns.")
    first, *others = filled
    if others:
        warn_outside(
            f"{source.name!r}: the sheet {first!r} is read; to read {', '.join(map(repr, others))}, save that"
            " as a file of its own.",
            TupletWarning,
        )
    table = filled[first]
    names = _names(source, table)
    rows = table.iloc[1:, : len(names)].reset_index(drop=True).set_axis(names, axis=1)
    if not len(rows):
        source.fail("there are no rows after the names of the columns.")
    without_value = missing_by_column(missing, names)
    columns = {name: _typed(rows[name], without_value[name]) for name in names}
    return FileTable(pd.DataFrame(columns), None, source.stem, guessed=True)


def _sheets(source: FileContent) -> dict[str, pd.DataFrame]:
    """Return all sheets as tables of cells, without empty rows at the ends and empty columns at the right."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parts of workbooks that hold no cells
            found: dict[Any, pd.DataFrame] = pd.read_excel(
                BytesIO(source.content), sheet_name=None, header=None, dtype=object, keep_default_na=False
            )
    except ImportError:
        raise MissingDependencyError(
            f"{source.name!r} is a workbook of Excel, which needs openpyxl; run `pip install tuplet[data]`,"
            " or save the table as CSV."
        ) from None
    except Exception as error:  # what a damaged file makes of openpyxl is of every type
        source.fail(f"the workbook is damaged ({type(error).__name__}); open it, and save it again.")
    return {str(name): _trimmed(sheet) for name, sheet in found.items()}


def _trimmed(sheet: pd.DataFrame) -> pd.DataFrame:
    filled = sheet.notna() & (sheet != "")
    rows, columns = (np.flatnonzero(filled.any(axis=axis)) for axis in (1, 0))
    return sheet.iloc[rows[0] : rows[-1] + 1, : columns[-1] + 1] if len(rows) else sheet.iloc[:0]


def _names(source: FileContent, table: pd.DataFrame) -> list[str]:
    names = ["" if pd.isna(name) else str(name).strip() for name in table.iloc[0]]
    if "" in names:
        source.fail(f"column {names.index('') + 1} has no name; the first row must name the columns.", 1)
    twice = pd.Index(names).duplicated()
    if twice.any():
        source.fail(f"two columns are called {names[int(twice.argmax())]!r}; rename one.", 1)
    return names


def _typed(column: pd.Series, missing: list[str]) -> pd.Series:
    """Return the cells of a column as numbers, dates or booleans if they are that, else as text."""
    column = column.where(~column.isin(missing), None)
    typed = column.infer_objects()
    return cleaned(pd.to_numeric(typed) if _is_mixed(typed) else typed, missing)


def _is_mixed(column: pd.Series) -> bool:
    kinds = ("integer", "floating", "mixed-integer-float")
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in kinds
