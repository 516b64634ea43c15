"""Variables of MATLAB files, versions 5 to 7.

Written anew because the reader of SciPy believes the lengths in a damaged file: it takes gigabytes, or ends
the process. Here every length is held against the bytes that are left before it is used.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuplet.datasets.files.source import MAX_CELLS

_HEADER = 128
_MATRIX, _PACKED = 14, 15
_CODES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXT = {1: "utf-8", 2: "utf-8", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_CELL, _STRUCT, _CHAR, _SPARSE, _NUMBERS = 1, 2, 4, 5, range(6, 16)
_DEPTH = 20
_MAX_UNPACKED = 2**31


class MatError(Exception):
    """The file is damaged; never leaves the reader."""


def read_variables(content: bytes) -> dict[str, Any]:
    """Return the variables of a file.

    Matrices are arrays, text is str, a struct is a dict (a list of them if it is an array of structs), a
    cell array a list in the order of MATLAB; objects and functions are None.
    """
    if len(content) < _HEADER or content[126:128] not in (b"IM", b"MI"):
        raise MatError("no header of a MATLAB file, version 5 to 7")
    mark = "<" if content[126:128] == b"IM" else ">"
    part = _Part(content, _HEADER, len(content), mark, 0)
    variables: dict[str, Any] = {}
    while part.left:
        kind, inner = part.element()
        if kind == _PACKED:
            kind, inner = _unpacked(inner).element()
        if kind == _MATRIX:
            name, value = _matrix(inner)
            variables[name] = value
    return variables


def _unpacked(part: _Part) -> _Part:
    worker = zlib.decompressobj()
    try:
        content = worker.decompress(part.content[part.at : part.end], _MAX_UNPACKED)
    except zlib.error:
        raise MatError("a packed variable is damaged") from None
    if not worker.eof:
        raise MatError("a packed variable is cut short")
    return _Part(content, 0, len(content), part.mark, part.depth)


@dataclass
class _Part:
    """A stretch of bytes that is read from its start."""

    content: bytes
    at: int
    end: int
    mark: str
    depth: int

    @property
    def left(self) -> int:
        return self.end - self.at

    def element(self) -> tuple[int, _Part]:
        """Take the next element: its type and its content."""
        if self.left < 8:
            raise MatError("an element is cut short")
        kind, size = (int(number) for number in np.frombuffer(self.content, f"{self.mark}u4", 2, self.at))
        if kind >> 16:  # up to four bytes stand in the tag itself
            kind, size, start, after = kind & 0xFFFF, kind >> 16, self.at + 4, self.at + 8
            fits = size <= 4
        else:
            start = self.at + 8
            # Elements are padded to eight bytes, packed ones are not; writers differ on the very last.
            after = min(start + (size if kind == _PACKED else -(-size // 8) * 8), self.end)
            fits = start + size <= self.end
        if not fits:
            raise MatError("an element is longer than the file")
        self.at = after
        return kind, _Part(self.content, start, start + size, self.mark, self.depth + 1)

    def numbers(self) -> npt.NDArray[Any]:
        """Take the next element as numbers."""
        kind, part = self.element()
        code = _CODES.get(kind)
        if code is None:
            raise MatError("numbers of an unknown type")
        dtype = np.dtype(part.mark + code)
        if part.left % dtype.itemsize:
            raise MatError("numbers that are cut short")
        return np.frombuffer(part.content[part.at : part.end], dtype)

    def text(self) -> str:
        """Take the next element as text."""
        kind, part = self.element()
        coding = _TEXT.get(kind)
        if coding is None:
            raise MatError("text of an unknown type")
        if coding != "utf-8":
            coding += "-le" if part.mark == "<" else "-be"
        return part.content[part.at : part.end].decode(coding, errors="replace")


def _matrix(part: _Part) -> tuple[str, Any]:
    """Return name and value of a matrix, which is anything that MATLAB has."""
    if not part.left:
        return "", np.zeros((0, 0))
    if part.depth > _DEPTH:
        raise MatError("structs within structs without end")
    flags = part.numbers()
    dims = [int(size) for size in part.numbers()]
    name = part.text()
    if not len(flags) or len(dims) < 2 or min(dims) < 0:
        raise MatError("a matrix without dimensions")
    kind, n = int(flags[0]) & 0xFF, math.prod(dims)
    if kind in _NUMBERS:
        values = part.numbers()
        if len(values) != n:
            raise MatError("a matrix that has not as many numbers as its dimensions say")
        return name, values.reshape(dims, order="F")
    if kind == _CHAR:
        return name, part.text() if part.left else ""
    if kind == _SPARSE:
        return name, _sparse(part, dims)
    if kind == _CELL:
        return name, [_inner(part) for _ in range(_fitting(part, n))]
    return name, _struct(part, n) if kind == _STRUCT else None


def _fitting(part: _Part, n: int) -> int:
    """Return n, if so many elements can follow at all."""
    if n > part.left // 8:
        raise MatError("a cell array or struct that is cut short")
    return n


def _inner(part: _Part) -> Any:
    kind, inner = part.element()
    if kind != _MATRIX:
        raise MatError("something else than a matrix within a struct")
    return _matrix(inner)[1]


def _struct(part: _Part, n: int) -> Any:
    width = part.numbers()
    _, names = part.element()
    text = names.content[names.at : names.end]
    if len(width) != 1 or not 0 < int(width[0]) <= max(len(text), 1):
        raise MatError("a struct without names of its fields")
    step = int(width[0])
    fields = [text[i : i + step].split(b"\0")[0].decode(errors="replace") for i in range(0, len(text), step)]
    _fitting(part, n * len(fields))
    rows = [{field: _inner(part) for field in fields} for _ in range(min(n, part.left // 8 + 1))]
    return rows[0] if len(rows) == 1 else rows


def _sparse(part: _Part, dims: list[int]) -> npt.NDArray[Any]:
    """Return a sparse matrix spread out."""
    rows, starts, values = (part.numbers() for _ in range(3))
    starts = starts.astype(np.int64)
    if len(dims) != 2 or math.prod(dims) > MAX_CELLS or len(starts) != dims[1] + 1:
        raise MatError("a sparse matrix that is too large, or without its columns")
    n = int(starts[-1])
    counts = np.diff(starts)
    if starts[0] != 0 or (counts < 0).any() or not n <= min(len(rows), len(values)):
        raise MatError("a sparse matrix whose columns do not follow each other")
    rows = rows[:n].astype(np.int64)
    if n and not 0 <= rows.min() <= rows.max() < dims[0]:
        raise MatError("a sparse matrix with a row that it does not have")
    dense = np.zeros(dims)
    dense[rows, np.repeat(np.arange(dims[1]), counts)] = values[:n]
    return dense
