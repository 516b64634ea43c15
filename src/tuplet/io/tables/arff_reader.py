"""Rows of ARFF files, dense and sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.io.tables.arff_header import (
    Attribute,
    BadTokenError,
    Header,
    read_arff_header,
    split_fields,
    split_pairs,
    without_comment,
)
from tuplet.io.tables.source import FileContent, require_cells
from tuplet.io.tables.table import FileTable, apply_note

_Tokens = Sequence[str | None]

_CHUNK = 2_000
"""Rows that are text at the same time; as text they need many times the memory of numbers."""


def read_arff(source: FileContent) -> FileTable:
    """Read an ARFF file: its attributes in their order, with MEKA's targets if the relation names them."""
    lines = source.lines()
    header = read_arff_header(source, lines)
    columns = _Columns(source, header)
    for number, line in enumerate(lines[header.n_lines :], start=header.n_lines + 1):
        text = line.strip()
        if text and not text.startswith("%"):
            columns.add(without_comment(text).strip(), number)
    frame = columns.frame()
    table = FileTable(frame, header.meka_targets(source), header.title or source.stem)
    return table if header.note is None else apply_note(table, header.note, source)


class _Columns:
    """Gathers rows, and turns them into arrays chunk by chunk; a chunk is all dense or all sparse."""

    def __init__(self, source: FileContent, header: Header) -> None:
        self.source = source
        self.attributes = header.attributes
        self.chunks: list[list[npt.NDArray[Any]]] = [[] for _ in header.attributes]
        self.n_rows = 0
        self._start()

    def _start(self) -> None:
        self.lines: list[int] = []
        self.dense: list[list[str | None]] = []
        self.sparse: list[tuple[list[int], list[str | None]]] = []

    def add(self, text: str, line: int) -> None:
        """Parse one row."""
        is_sparse = text.startswith("{")
        if self.lines and (len(self.lines) == _CHUNK or is_sparse != bool(self.sparse)):
            self._flush()
        try:
            if is_sparse:
                self.sparse.append(self._sparse_row(text, line))
            else:
                self.dense.append(self._dense_row(text, line))
        except BadTokenError as error:
            self.source.fail(f"{error}.", line)
        self.lines.append(line)

    def _dense_row(self, text: str, line: int) -> list[str | None]:
        fields = split_fields(text)
        if len(fields) != len(self.attributes):
            self.source.fail(
                f"expected {len(self.attributes)} values, one for each attribute, found {len(fields)}; the"
                " line may be cut short, or a value with a comma lacks its quotes.",
                line,
            )
        return fields

    def _sparse_row(self, text: str, line: int) -> tuple[list[int], list[str | None]]:
        if not text.endswith("}"):
            self.source.fail("the sparse row has no closing brace; the line may be cut short.", line)
        positions, values = split_pairs(text[1:-1])
        if len(set(positions)) < len(positions) or max(positions, default=0) >= len(self.attributes):
            self.source.fail(
                f"positions in a sparse row are 0 to {len(self.attributes) - 1}, each once; found"
                f" {positions[-1]}.",
                line,
            )
        return positions, values

    def _flush(self) -> None:
        n = len(self.lines)
        self.n_rows += n
        if self.sparse:
            require_cells(self.source, self.n_rows, len(self.attributes))
            arrays = self._sparse_arrays(n)
        else:
            rows = zip(*self.dense, strict=True)
            arrays = [
                self._convert(attribute, tokens, self.lines)
                for attribute, tokens in zip(self.attributes, rows, strict=True)
            ]
        for chunks, values in zip(self.chunks, arrays, strict=True):
            chunks.append(values)
        self._start()

    def _sparse_arrays(self, n: int) -> list[npt.NDArray[Any]]:
        arrays = [_implicit(attribute, n) for attribute in self.attributes]
        entries: dict[int, tuple[list[int], list[str | None]]] = {}
        for row, (positions, tokens) in enumerate(self.sparse):
            for position, token in zip(positions, tokens, strict=True):
                rows, found = entries.setdefault(position, ([], []))
                rows.append(row)
                found.append(token)
        for position, (rows, found) in entries.items():
            lines = [self.lines[row] for row in rows]
            values = self._convert(self.attributes[position], found, lines)
            array = arrays[position].astype(np.result_type(arrays[position], values), copy=False)
            array[rows] = values
            arrays[position] = array
        return arrays

    def _convert(self, attribute: Attribute, tokens: _Tokens, lines: list[int]) -> npt.NDArray[Any]:
        try:
            return _parse(attribute, tokens)
        except (KeyError, TypeError, ValueError, OverflowError):
            place, what = _first_bad(attribute, tokens)
        raise self.source.error(f"{what}; correct the value or the header.", lines[place])

    def frame(self) -> pd.DataFrame:
        """Return everything that was added."""
        if self.lines:
            self._flush()
        if not self.n_rows:
            self.source.fail("there are no rows after @data; the file may be cut short.")
        columns = {}
        for attribute, chunks in zip(self.attributes, self.chunks, strict=True):
            try:
                columns[attribute.name] = _make_column(attribute, chunks)
            except ValueError:
                self.source.fail(f"a date of {attribute.name!r} is not of the declared format.")
        return pd.DataFrame(columns)


# -- columns -----------------------------------------------------------------------------------------------


def _parse(attribute: Attribute, tokens: _Tokens) -> npt.NDArray[Any]:
    """Return values as an array: floats or integers, codes of nominal values (-1: missing), or text.

    Raises KeyError, TypeError, ValueError or OverflowError if one of them is not of the attribute's kind.
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


def _implicit(attribute: Attribute, n: int) -> npt.NDArray[Any]:
    """Return the value of an attribute in n sparse rows that leave it out.

    Zero means the first of the declared values; strings and dates are missing.
    """
    if attribute.kind == "nominal":
        return np.full(n, 0 if attribute.values else -1, dtype=np.int32)
    if attribute.kind in ("string", "date"):
        return np.full(n, None, dtype=object)
    return np.zeros(n, dtype=np.int64 if attribute.kind == "integer" else np.float64)


def _first_bad(attribute: Attribute, tokens: _Tokens) -> tuple[int, str]:
    """Return the position of the first value that `_parse` refuses, and the problem."""
    for place, token in enumerate(tokens):
        try:
            _parse(attribute, [token])
        except (KeyError, ValueError, OverflowError):
            if attribute.kind == "nominal":
                return place, f"{str(token)[:40]!r} is no declared value of {attribute.name!r}"
            return place, f"{str(token)[:40]!r} is no number, but {attribute.name!r} is {attribute.kind}"
    return 0, f"the values of {attribute.name!r} cannot be read"


def _make_column(attribute: Attribute, chunks: list[npt.NDArray[Any]]) -> pd.Series:
    """Return the column of an attribute; raises ValueError if a date is not of its format."""
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
