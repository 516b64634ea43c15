"""The header of an ARFF file, and how the fields of its lines are quoted."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tuplet.io.tables.source import FileContent

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


class BadTokenError(Exception):
    """Part of a line that cannot be read; never leaves the reader."""


@dataclass(frozen=True)
class Attribute:
    """One column: its name, kind, declared values (nominal) and format (dates)."""

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    format: str = ""


@dataclass(frozen=True)
class Header:
    """What comes before the rows.

    Parameters
    ----------
    relation : str
    attributes : tuple of Attribute
    note : dict or None
        What `write_arff` wrote into a comment; None in other files.
    n_lines : int
        Lines of the header, @data included.
    """

    relation: str
    attributes: tuple[Attribute, ...]
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


def read_arff_header(source: FileContent, lines: list[str]) -> Header:
    """Read up to and with the line @data."""
    relation, attributes = "", dict[str, Attribute]()
    note: dict[str, Any] | None = None
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        word = text[:10].lower()
        if text.startswith(NOTE.strip()):
            note = _note(source, text, number)
        elif not text or text.startswith("%"):
            continue
        elif word.startswith("@relation"):
            relation = _unquote(without_comment(text)[9:].strip())
        elif word == "@attribute":
            attribute = _attribute(source, without_comment(text).strip(), number)
            if attribute.name in attributes:
                source.fail(f"two attributes are called {attribute.name!r}; rename one.", number)
            attributes[attribute.name] = attribute
        elif word.startswith("@data"):
            if not attributes:
                source.fail("@data comes before any @attribute.", number)
            return Header(relation, tuple(attributes.values()), note, number)
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


def _attribute(source: FileContent, text: str, line: int) -> Attribute:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        source.fail(f"expected '@attribute name type', found {text[:40]!r}.", line)
    name, declared = _unquote(match[1]), match[2].strip()
    if declared.startswith("{"):
        return Attribute(name, "nominal", _values(source, declared, line))
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
    return Attribute(name, kind, format=_date_format(source, rest, line) if kind == "date" else "")


def _values(source: FileContent, declared: str, line: int) -> tuple[str, ...]:
    if not declared.endswith("}"):
        source.fail("the list of values has no closing brace; the line may be cut short.", line)
    inner = declared[1:-1]
    try:
        values = ["?" if value is None else value for value in split_fields(inner)] if inner.strip() else []
    except BadTokenError as error:
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


def split_fields(text: str) -> list[str | None]:
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
            raise BadTokenError(
                f"a quote that does not end, or is not followed by a comma: {text[position:][:30]!r}"
            )
        quoted, bare, mark = match.groups()
        value = (bare or "").strip()
        found.append(_unquote(quoted) if quoted is not None else None if value == "?" else value)
        if not mark:
            return found
        position = match.end()


def split_pairs(text: str) -> tuple[list[int], list[str | None]]:
    """Return positions and values of the inner part of a sparse row, `1 a, 4 'b c'`."""
    positions: list[int] = []
    values: list[str | None] = []
    start, n = 0, len(text)
    while start < n and not (not positions and text.isspace()):
        match = _PAIR.match(text, start)
        if match is None:
            raise BadTokenError(f"expected 'position value' between commas, found {text[start:][:30]!r}")
        position, quoted, bare, mark = match.groups()
        positions.append(int(position[:10]))  # more digits than any file has attributes
        values.append(_unquote(quoted) if quoted is not None else None if bare == "?" else bare)
        if not mark:
            return positions, values
        start = match.end()
        if start == n:
            raise BadTokenError("nothing follows the last comma")
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


def without_comment(line: str) -> str:
    """Return a line without a comment at its end: a percent sign after a blank, outside quotes."""
    if "%" not in line:
        return line
    return "".join(
        piece for piece in _PIECE.findall(line) if not piece.lstrip().startswith("%") or piece == "%"
    )
