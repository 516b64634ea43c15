"""ARFF files, dense and sparse: the header, the rows, and how their fields are quoted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.io.tables.source import FileContent, require_cells
from tuplet.io.tables.table import FileTable, apply_note

_QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""

_FIELD = re.compile(rf"\s*(?:({_QUOTED})\s*|([^,'\"][^,]*)?)(,|$)")
_PAIR = re.compile(rf"\s*(\d+)\s+(?:({_QUOTED})|([^,\s'\"][^,]*?))\s*(,|$)")
_PIECE = re.compile(rf"{_QUOTED}|\s%.*|.", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}

NOTE = "% tuplet: "
"""Begins the comment in which `write_arff` keeps what ARFF cannot express."""

Kind: TypeAlias = Literal["numeric", "integer", "nominal", "string", "date"]

_KINDS: dict[str, Kind] = {
    "numeric": "numeric", "real": "numeric", "integer": "integer", "string": "string", "date": "date",
}  # fmt: skip
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{'\"][^\s{{]*)\s*(.*)", re.IGNORECASE)
_MEKA = re.compile(r"-C\s+(-?\d{1,9})\b")
_DATE = re.compile(r"yyyy|MM|dd|HH|mm|ss|SSS|'[^']*'|[^A-Za-z']")
_STRPTIME = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f"}

_Tokens = Sequence[str | None]

_CHUNK = 2_000
"""Rows that are text at the same time; as text they need many times the memory of numbers."""


def read_arff(source: FileContent) -> FileTable:
    """Read an ARFF file: its attributes in their order, with MEKA's targets if the relation names them."""
    lines = source.lines()
    header = _read_header(source, lines)
    columns = _Columns(source, header)
    for number, line in enumerate(lines[header.n_lines :], start=header.n_lines + 1):
        text = line.strip()
        if text and not text.startswith("%"):
            columns.add(_without_comment(text).strip(), number)
    frame = columns.frame()
    table = FileTable(frame, header.meka_targets(source), header.title or source.stem)
    return table if header.note is None else apply_note(table, header.note, source)


# -- rows --------------------------------------------------------------------------------------------------


class _Columns:
    """Gathers rows, and turns them into arrays chunk by chunk; a chunk is all dense or all sparse."""

    def __init__(self, source: FileContent, header: _Header) -> None:
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
        except _BadTokenError as error:
            self.source.fail(f"{error}.", line)
        self.lines.append(line)

    def _dense_row(self, text: str, line: int) -> list[str | None]:
        fields = _split_fields(text)
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
        positions, values = _split_pairs(text[1:-1])
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

    def _convert(self, attribute: _Attribute, tokens: _Tokens, lines: list[int]) -> npt.NDArray[Any]:
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


def _parse(attribute: _Attribute, tokens: _Tokens) -> npt.NDArray[Any]:
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


def _implicit(attribute: _Attribute, n: int) -> npt.NDArray[Any]:
    """Return the value of an attribute in n sparse rows that leave it out.

    Zero means the first of the declared values; strings and dates are missing.
    """
    if attribute.kind == "nominal":
        return np.full(n, 0 if attribute.values else -1, dtype=np.int32)
    if attribute.kind in ("string", "date"):
        return np.full(n, None, dtype=object)
    return np.zeros(n, dtype=np.int64 if attribute.kind == "integer" else np.float64)


def _first_bad(attribute: _Attribute, tokens: _Tokens) -> tuple[int, str]:
    """Return the position of the first value that `_parse` refuses, and the problem."""
    for place, token in enumerate(tokens):
        try:
            _parse(attribute, [token])
        except (KeyError, ValueError, OverflowError):
            if attribute.kind == "nominal":
                return place, f"{str(token)[:40]!r} is no declared value of {attribute.name!r}"
            return place, f"{str(token)[:40]!r} is no number, but {attribute.name!r} is {attribute.kind}"
    return 0, f"the values of {attribute.name!r} cannot be read"


def _make_column(attribute: _Attribute, chunks: list[npt.NDArray[Any]]) -> pd.Series:
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


# -- header ------------------------------------------------------------------------------------------------


class _BadTokenError(Exception):
    """Part of a line that cannot be read; never leaves the reader."""


@dataclass(frozen=True)
class _Attribute:
    """One column: its name, kind, declared values (nominal) and format (dates)."""

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    format: str = ""


@dataclass(frozen=True)
class _Header:
    """What comes before the rows.

    Parameters
    ----------
    relation : str
    attributes : tuple of _Attribute
    note : dict or None
        What `write_arff` wrote into a comment; None in other files.
    n_lines : int
        Lines of the header, @data included.
    """

    relation: str
    attributes: tuple[_Attribute, ...]
    note: dict[str, Any] | None
    n_lines: int

    def meka_targets(self, source: FileContent) -> tuple[str, ...] | None:
        """Return the attributes that `-C n` in the relation names: the first n, or the last |n|."""
        match = _MEKA.search(self.relation)
        if match is None:
            return None
        n, names = int(match[1]), [attribute.name for attribute in self.attributes]
        if not 0 < abs(n) <= len(names):
            source.fail(f"the relation has -C {n}, but there are {len(names)} attributes; give targets=.")
        return tuple(names[:n] if n > 0 else names[n:])

    @property
    def title(self) -> str:
        """The relation without MEKA's options."""
        return self.relation.partition(":")[0].strip() if _MEKA.search(self.relation) else self.relation


def _read_header(source: FileContent, lines: list[str]) -> _Header:
    """Read up to and with the line @data."""
    relation, attributes = "", dict[str, _Attribute]()
    note: dict[str, Any] | None = None
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        word = text[:10].lower()
        if text.startswith(NOTE.strip()):
            note = _note(source, text, number)
        elif not text or text.startswith("%"):
            continue
        elif word.startswith("@relation"):
            relation = _unquote(_without_comment(text)[9:].strip())
        elif word == "@attribute":
            attribute = _attribute(source, _without_comment(text).strip(), number)
            if attribute.name in attributes:
                source.fail(f"two attributes are called {attribute.name!r}; rename one.", number)
            attributes[attribute.name] = attribute
        elif word.startswith("@data"):
            if not attributes:
                source.fail("@data comes before any @attribute.", number)
            return _Header(relation, tuple(attributes.values()), note, number)
        else:
            source.fail(f"expected @relation, @attribute or @data, found {text[:30]!r}.", number)
    raise source.error("there is no @data; the file is cut short, or no ARFF file.")


def _note(source: FileContent, text: str, line: int) -> dict[str, Any]:
    try:
        note = json.loads(text[len(NOTE.strip()) :])
    except (ValueError, RecursionError):
        note = None
    if not isinstance(note, dict):
        source.fail("the note of write_arff is damaged; copy the file again, or delete this line.", line)
    return note


def _attribute(source: FileContent, text: str, line: int) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        source.fail(f"expected '@attribute name type', found {text[:40]!r}.", line)
    name, declared = _unquote(match[1]), match[2].strip()
    if declared.startswith("{"):
        return _Attribute(name, "nominal", _values(source, declared, line))
    word, _, rest = declared.partition(" ")
    if word.lower() == "relational":
        source.fail(f"{name!r} is relational, a table within a row, which is not read; flatten it.", line)
    kind = _KINDS.get(word.lower())
    if kind is None:
        source.fail(
            f"the type of {name!r} must be numeric, real, integer, string, date or {{a, b}}; found"
            f" {declared[:30]!r}.",
            line,
        )
    return _Attribute(name, kind, format=_date_format(source, rest, line) if kind == "date" else "")


def _values(source: FileContent, declared: str, line: int) -> tuple[str, ...]:
    if not declared.endswith("}"):
        source.fail("the list of values has no closing brace; the line may be cut short.", line)
    inner = declared[1:-1]
    try:
        values = ["?" if value is None else value for value in _split_fields(inner)] if inner.strip() else []
    except _BadTokenError as error:
        source.fail(f"the list of values has {error}.", line)
    if len(set(values)) < len(values):
        source.fail("the list of values has one twice; remove it.", line)
    return tuple(values)


def _date_format(source: FileContent, declared: str, line: int) -> str:
    """Return a Java date format as Python has it."""
    java = _unquote(declared.strip()) or "yyyy-MM-dd'T'HH:mm:ss"
    pieces = _DATE.findall(java)
    if "".join(pieces) != java:
        source.fail(
            f"dates of the format {java[:30]!r} are not read; use yyyy, MM, dd, HH, mm, ss, SSS.", line
        )
    return "".join(_STRPTIME.get(piece) or piece.strip("'").replace("%", "%%") for piece in pieces)


# -- fields ------------------------------------------------------------------------------------------------


def _split_fields(text: str) -> list[str | None]:
    """Return the fields between commas, unquoted; None where a bare question mark stands."""
    if "'" not in text and '"' not in text:
        fields = text.split(",")
        if len(fields) == 1 and "," not in text and len(text.split()) > 1:
            fields = text.split()  # Weka takes blanks for separators, too
        return [None if field == "?" else field for field in map(str.strip, fields)]
    found: list[str | None] = []
    position = 0
    while True:
        match = _FIELD.match(text, position)
        if match is None:
            raise _BadTokenError(
                f"a quote that does not end, or is not followed by a comma: {text[position:][:30]!r}"
            )
        quoted, bare, mark = match.groups()
        value = (bare or "").strip()
        found.append(_unquote(quoted) if quoted is not None else None if value == "?" else value)
        if not mark:
            return found
        position = match.end()


def _split_pairs(text: str) -> tuple[list[int], list[str | None]]:
    """Return positions and values of the inner part of a sparse row, `1 a, 4 'b c'`."""
    positions: list[int] = []
    values: list[str | None] = []
    start, n = 0, len(text)
    while start < n and not (not positions and text.isspace()):
        match = _PAIR.match(text, start)
        if match is None:
            raise _BadTokenError(f"expected 'position value' between commas, found {text[start:][:30]!r}")
        position, quoted, bare, mark = match.groups()
        positions.append(int(position[:10]))  # more digits than any file has attributes
        values.append(_unquote(quoted) if quoted is not None else None if bare == "?" else bare)
        if not mark:
            return positions, values
        start = match.end()
        if start == n:
            raise _BadTokenError("nothing follows the last comma")
    return positions, values


def _unquote(text: str) -> str:
    """Return a name or value without its quotes and escapes."""
    if text[:1] not in ("'", '"'):
        return text
    inner = text[1:-1]
    return _ESCAPED.sub(_meaning, inner) if "\\" in inner else inner


def _meaning(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _LETTERS.get(code, code)


def _without_comment(line: str) -> str:
    """Return a line without a comment at its end: a percent sign after a blank, outside quotes."""
    if "%" not in line:
        return line
    return "".join(
        piece for piece in _PIECE.findall(line) if not piece.lstrip().startswith("%") or piece == "%"
    )
