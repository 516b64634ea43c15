"""Rows of ARFF files, dense and sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.datasets.files.arff_columns import Tokens, convert, first_bad, implicit, make_column
from tuplet.datasets.files.arff_header import Attribute, Header, read_header
from tuplet.datasets.files.arff_tokens import BadTokenError, split_fields, split_pairs, without_comment
from tuplet.datasets.files.notes import apply_note
from tuplet.datasets.files.source import Source, require_cells
from tuplet.datasets.files.table import Table

_CHUNK = 2_000
"""Rows that are text at the same time; as text they need many times the memory of numbers."""


def read_arff(source: Source) -> Table:
    """Read an ARFF file: its attributes in their order, with MEKA's targets if the relation names them."""
    lines = source.lines()
    header = read_header(source, lines)
    columns = _Columns(source, header)
    for number, line in enumerate(lines[header.n_lines :], start=header.n_lines + 1):
        text = line.strip()
        if text and not text.startswith("%"):
            columns.add(without_comment(text).strip(), number)
    frame = columns.frame()
    table = Table(frame, header.meka_targets(source), header.title or source.stem)
    return table if header.note is None else apply_note(table, header.note, source)


class _Columns:
    """Gathers rows, and turns them into arrays chunk by chunk; a chunk is all dense or all sparse."""

    def __init__(self, source: Source, header: Header) -> None:
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
        """Take one row apart."""
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
        arrays = [implicit(attribute, n) for attribute in self.attributes]
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

    def _convert(self, attribute: Attribute, tokens: Tokens, lines: list[int]) -> npt.NDArray[Any]:
        try:
            return convert(attribute, tokens)
        except (KeyError, TypeError, ValueError, OverflowError):
            place, what = first_bad(attribute, tokens)
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
                columns[attribute.name] = make_column(attribute, chunks)
            except ValueError:
                self.source.fail(f"a date of {attribute.name!r} is not of the declared format.")
        return pd.DataFrame(columns)
