"""Names and values of ARFF files: fields, quotes, comments."""

from __future__ import annotations

import re

QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""

_FIELD = re.compile(rf"\s*(?:({QUOTED})\s*|([^,'\"][^,]*)?)(,|$)")
_PAIR = re.compile(rf"\s*(\d+)\s+(?:({QUOTED})|([^,\s'\"][^,]*?))\s*(,|$)")
_PIECE = re.compile(rf"{QUOTED}|\s%.*|.", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
_CODES = {mark: f"\\{letter}" for letter, mark in _LETTERS.items()} | {"\\": "\\\\", "'": "\\'"}
_PLAIN = re.compile(r"[^\s,'\"%{}\\?@]+")


class BadTokenError(Exception):
    """Part of a line that cannot be read; never leaves the reader."""


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
        found.append(unquote(quoted) if quoted is not None else None if value == "?" else value)
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
        values.append(unquote(quoted) if quoted is not None else None if bare == "?" else bare)
        if not mark:
            return positions, values
        start = match.end()
        if start == n:
            raise BadTokenError("nothing follows the last comma")
    return positions, values


def unquote(text: str) -> str:
    """Return a name or value without its quotes and escapes."""
    if text[:1] not in ("'", '"'):
        return text
    inner = text[1:-1]
    return _ESCAPED.sub(_meaning, inner) if "\\" in inner else inner


def _meaning(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _LETTERS.get(code, code)


def quote(text: str) -> str:
    """Return a name or value as a file has it: in quotes where it needs them."""
    if _PLAIN.fullmatch(text):
        return text
    return "'" + "".join(_CODES.get(mark, mark) for mark in text) + "'"


def without_comment(line: str) -> str:
    """Return a line without a comment at its end: a percent sign after a blank, outside quotes."""
    if "%" not in line:
        return line
    return "".join(
        piece for piece in _PIECE.findall(line) if not piece.lstrip().startswith("%") or piece == "%"
    )
