"""JSON lines: an object for each row; also one array of such objects."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from tuplet.io.tables.fields import Missing, cleaned, missing_by_column
from tuplet.io.tables.source import FileContent
from tuplet.io.tables.table import FileTable

_VALUES = (str, int, float, bool, type(None))


def read_json_lines(source: FileContent, missing: Missing | None = None) -> FileTable:
    """Read objects with the same names; null and names that an object lacks are missing values.

    Text stays text, such as "NA", unless `missing` has it: JSON has a word of its own for missing values.
    """
    rows = _array(source) if source.text().lstrip().startswith("[") else _lines(source)
    if not rows:
        source.fail('there are no rows; expected lines such as {"size": 3, "place": "north"}.')
    for line, row in rows:
        _require_flat(source, row, line)
    frame = pd.DataFrame([row for _, row in rows])
    without_value = missing_by_column(missing, list(map(str, frame.columns)), usual=[])
    columns = {name: _typed(column, without_value[str(name)]) for name, column in frame.items()}
    return FileTable(pd.DataFrame(columns), None, source.stem, guessed=True)


def _lines(source: FileContent) -> list[tuple[int | None, Any]]:
    return [
        (number, _parsed(source, line, number))
        for number, line in enumerate(source.lines(), start=1)
        if line.strip()
    ]


def _array(source: FileContent) -> list[tuple[int | None, Any]]:
    rows = _parsed(source, source.text(), None)
    return [(None, row) for row in rows]


def _parsed(source: FileContent, text: str, line: int | None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        number = getattr(error, "lineno", None) if line is None else line
        source.fail(f"this is no JSON ({getattr(error, 'msg', error)}); the file may be cut short.", number)


def _require_flat(source: FileContent, row: Any, line: int | None) -> None:
    if not isinstance(row, dict) or not row:
        source.fail(
            'each row must be an object such as {"size": 3, "place": "north"}; found'
            f" {type(row).__name__} {str(row)[:40]!r}.",
            line,
        )
    for name, value in row.items():
        if not name or not isinstance(value, _VALUES):
            source.fail(f"{name!r} holds {type(value).__name__}, not a single value; flatten it.", line)


def _typed(column: pd.Series, missing: list[str]) -> pd.Series:
    """Return numbers as such, and other columns as those of text files."""
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if column.dtype == object and kind in ("integer", "floating", "mixed-integer-float"):
        column = pd.to_numeric(column)
    return cleaned(column, missing)
