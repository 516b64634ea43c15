"""Tables with separators: CSV and TSV."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Sequence
from io import BytesIO, StringIO

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype

from tuplet.io.tables.source import FileContent
from tuplet.io.tables.table import FileTable

_COMMA_NUMBER = r"[+-]?\d+(?:,\d+)?(?:[eE][+-]?\d+)?"

MISSING = ["", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL"]
"""Fields that hold no value; "None" is text, as it is an answer in many questionnaires."""


def read_csv(source: FileContent) -> FileTable:
    """Read a table; its separator is the most frequent of comma, semicolon and tab in the first line."""
    return _read(source, None)


def read_tsv(source: FileContent) -> FileTable:
    """Read a table with tabs between its fields."""
    return _read(source, "\t")


def separator(header: str) -> str:
    """Return the separator of a table with this first line."""
    return max(",;\t", key=header.count)


def _read(source: FileContent, mark: str | None) -> FileTable:
    text = _clean(source)
    if not text.strip():
        source.fail("the file is empty; expected a line with the names of the columns.")
    first = text[: text.find("\n")] if "\n" in text else text
    mark = separator(first) if mark is None else mark
    header = read_names(source, text, mark)
    _require_fields(source, text, mark, len(header))
    frame = _frame(source, text, mark, header, names_first=True, words=_codes(source, text, mark, header))
    if not len(frame):
        source.fail("there are no rows after the names of the columns.")
    return FileTable(frame, None, source.stem, guessed=True)


def _codes(source: FileContent, text: str, mark: str, header: list[str]) -> list[str]:
    """Return columns of digits some of which begin with a zero: codes, which are others as numbers."""
    if not re.search(rf'[{mark}\n"]0\d+(?:["{mark}\n]|\Z)', text):
        return []
    words = _frame(source, text, mark, header, names_first=True, words=header)
    return [str(name) for name, column in words.items() if _is_code(column.dropna())]


def _is_code(column: pd.Series) -> bool:
    return bool(column.str.fullmatch(r"\d+").all() and column.str.fullmatch(r"0\d+").any())


def parse_rows(
    source: FileContent,
    mark: str,
    header: Sequence[str],
    *,
    words: Sequence[str] = (),
    names_first: bool = False,
) -> pd.DataFrame:
    """Return the rows of a piece of a table, whose columns are known.

    Parameters
    ----------
    source : FileContent
        Whole lines.
    mark : str
        The separator.
    header : sequence of str
        Names of the columns, the first one empty for an index.
    words : sequence of str
        Columns that are text even where all their fields look like numbers.
    names_first : bool
        Whether the names come again before the rows.
    """
    text = _clean(source)
    _require_fields(source, text, mark, len(header))
    return _frame(source, text, mark, list(header), names_first=names_first, words=words)


def _clean(source: FileContent) -> str:
    """Return the text, with one character at the end of each line."""
    text = source.text()
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        source.fail("a null byte; this is no text, or not in UTF-8.", line)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_names(source: FileContent, text: str, mark: str) -> list[str]:
    """Return the names of the columns of a table, whose first line has them."""
    try:
        header = next((row for row in csv.reader(StringIO(text), delimiter=mark, strict=True) if row), [])
    except csv.Error as error:
        source.fail(f"the names of the columns cannot be read ({error}); check the quotes.", 1)
    header = [name.strip() for name in header]
    nameless = [position + 1 for position, name in enumerate(header) if not name and position]
    if nameless:
        source.fail(f"column {nameless[0]} has no name; the first line must name the columns.", 1)
    twice = pd.Index(header).duplicated()
    if twice.any():
        source.fail(f"two columns are called {header[int(twice.argmax())]!r}; rename one.", 1)
    return header


def _require_fields(source: FileContent, text: str, mark: str, expected: int) -> None:
    """Refuse rows with too few or too many fields, which pandas would fill up or push into the index."""
    if '"' in text:
        wrong = _first_wrong_quoted(source, text, mark, expected)
    else:
        wrong = _first_wrong_plain(text, mark, expected)
    if wrong is not None:
        line, found = wrong
        source.fail(
            f"expected {expected} fields as in the first line, found {found}; the file may be cut short, or a"
            " field with a separator lacks its quotes.",
            line,
        )


def _first_wrong_plain(text: str, mark: str, expected: int) -> tuple[int, int] | None:
    content = np.frombuffer(text.encode(), dtype=np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    if not len(content) or content[-1] != ord("\n"):
        ends = np.append(ends, len(content))
    starts = np.concatenate([[0], ends[:-1] + 1])
    marks = np.flatnonzero(content == ord(mark))
    fields = np.searchsorted(marks, ends) - np.searchsorted(marks, starts) + 1
    wrong = np.flatnonzero((fields != expected) & (ends > starts))
    return None if not len(wrong) else (int(wrong[0]) + 1, int(fields[wrong[0]]))


def _first_wrong_quoted(source: FileContent, text: str, mark: str, expected: int) -> tuple[int, int] | None:
    reader = csv.reader(StringIO(text, newline=""), delimiter=mark, strict=True)
    try:
        for row in reader:
            if row and len(row) != expected:
                return reader.line_num, len(row)
    except csv.Error as error:
        source.fail(f"the line cannot be taken apart ({error}); check its quotes.", reader.line_num)
    return None


def _frame(
    source: FileContent,
    text: str,
    mark: str,
    header: list[str],
    *,
    names_first: bool,
    words: Sequence[str] = (),
) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = pd.read_csv(
                BytesIO((text.strip("\n") if names_first else text.rstrip("\n")).encode()),
                sep=mark,
                header=0 if names_first else None,
                names=header,
                index_col=False,
                keep_default_na=False,
                na_values=MISSING,
                low_memory=False,
                skip_blank_lines=len(header) > 1,  # of a single column, an empty line is a row without value
                encoding="utf-8",
                dtype=dict.fromkeys(words, "str"),
            )
    except (ValueError, OverflowError, Warning, pd.errors.ParserError) as error:
        source.fail(f"the table cannot be read: {str(error).strip().rstrip('.')}.")
    frame = pd.DataFrame({name: _without_objects(column) for name, column in frame.items()})
    if mark != ",":
        texts = [name for name in frame if name not in words and is_string_dtype(frame[name].dtype)]
        frame = frame.assign(**{str(name): _with_decimal_commas(frame[name]) for name in texts})
    if header[0] == "":
        frame = frame.set_index("").rename_axis(index=None)
    return frame


def _without_objects(column: pd.Series) -> pd.Series:
    """Return booleans with gaps as such, and other mixtures as text."""
    if column.dtype != object:
        return column
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        return column.astype("boolean")
    return column.where(column.isna(), column.astype(str))


def _with_decimal_commas(column: pd.Series) -> pd.Series:
    """Return text that is all numbers, some with a comma in the place of the point, as numbers."""
    known = column.dropna()
    if not len(known) or not known.str.contains(",").any() or not known.str.fullmatch(_COMMA_NUMBER).all():
        return column
    return pd.to_numeric(column.str.replace(",", "."))
