"""The header of an ARFF file: its relation and attributes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tuplet.datasets.files.arff_tokens import QUOTED, BadTokenError, split_fields, unquote, without_comment
from tuplet.datasets.files.source import Source

NOTE = "% tuplet: "
"""Begins the comment in which `write_arff` keeps what ARFF cannot say."""

Kind: TypeAlias = Literal["numeric", "integer", "nominal", "string", "date"]

_KINDS: dict[str, Kind] = {
    "numeric": "numeric", "real": "numeric", "integer": "integer", "string": "string", "date": "date",
}  # fmt: skip
_ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{'\"][^\s{{]*)\s*(.*)", re.IGNORECASE)
_MEKA = re.compile(r"-C\s+(-?\d{1,9})\b")
_DATE = re.compile(r"yyyy|MM|dd|HH|mm|ss|SSS|'[^']*'|[^A-Za-z']")
_STRPTIME = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f"}


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

    def meka_targets(self, source: Source) -> tuple[str, ...] | None:
        """Return the attributes that `-C n` in the relation names: the first n, or the last |n|."""
        match = _MEKA.search(self.relation)
        if match is None:
            return None
        n, names = int(match[1]), [attribute.name for attribute in self.attributes]
        if not 0 < abs(n) <= len(names):
            source.fail(f"the relation says -C {n}, but there are {len(names)} attributes; give targets=.")
        return tuple(names[:n] if n > 0 else names[n:])

    @property
    def title(self) -> str:
        """The relation without MEKA's options."""
        return self.relation.partition(":")[0].strip() if _MEKA.search(self.relation) else self.relation


def read_header(source: Source, lines: list[str]) -> Header:
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
            relation = unquote(without_comment(text)[9:].strip())
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


def _note(source: Source, text: str, line: int) -> dict[str, Any]:
    try:
        note = json.loads(text[len(NOTE.strip()) :])
    except (ValueError, RecursionError):
        note = None
    if not isinstance(note, dict):
        source.fail("the note of write_arff is damaged; copy the file again, or delete this line.", line)
    return note


def _attribute(source: Source, text: str, line: int) -> Attribute:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        source.fail(f"expected '@attribute name type', found {text[:40]!r}.", line)
    name, said = unquote(match[1]), match[2].strip()
    if said.startswith("{"):
        return Attribute(name, "nominal", _values(source, said, line))
    word, _, rest = said.partition(" ")
    if word.lower() == "relational":
        source.fail(f"{name!r} is relational, a table within a row, which is not read; flatten it.", line)
    kind = _KINDS.get(word.lower())
    if kind is None:
        source.fail(
            f"the type of {name!r} must be numeric, real, integer, string, date or {{a, b}}; found"
            f" {said[:30]!r}.",
            line,
        )
    return Attribute(name, kind, format=_date_format(source, rest, line) if kind == "date" else "")


def _values(source: Source, said: str, line: int) -> tuple[str, ...]:
    if not said.endswith("}"):
        source.fail("the list of values has no closing brace; the line may be cut short.", line)
    inner = said[1:-1]
    try:
        values = ["?" if value is None else value for value in split_fields(inner)] if inner.strip() else []
    except BadTokenError as error:
        source.fail(f"the list of values has {error}.", line)
    if len(set(values)) < len(values):
        source.fail("the list of values has one twice; remove it.", line)
    return tuple(values)


def _date_format(source: Source, said: str, line: int) -> str:
    """Return a Java date format as Python has it."""
    java = unquote(said.strip()) or "yyyy-MM-dd'T'HH:mm:ss"
    pieces = _DATE.findall(java)
    if "".join(pieces) != java:
        source.fail(
            f"dates of the format {java[:30]!r} are not read; use yyyy, MM, dd, HH, mm, ss, SSS.", line
        )
    return "".join(_STRPTIME.get(piece) or piece.strip("'").replace("%", "%%") for piece in pieces)
