"""MATLAB files, versions 5 to 7: the multi-dimensional collection, and matrices of other collections.

The variables are read by code of our own because the reader of SciPy relies on the lengths in a damaged file:
it allocates gigabytes, or ends the process. Here every length is compared with the remaining bytes before it
is used.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.typing import Floats
from tuplet.io.tables.source import MAX_CELLS, FileContent
from tuplet.io.tables.table import FileTable

_DATA, _TARGET = ("data", "X"), ("target", "targets", "Y")
_HDF = b"\x89HDF\r\n\x1a\n"
_KINDS = {"d_wo_o": False, "b": False, "d_w_o": True}
"""Lists of discrete features in `data_type`, and whether their values are ordered."""

_HEADER = 128
_MATRIX, _PACKED = 14, 15
_CODES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXT = {1: "utf-8", 2: "utf-8", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_CELL, _STRUCT, _CHAR, _SPARSE, _NUMBERS = 1, 2, 4, 5, range(6, 16)
_DEPTH = 20
_MAX_UNPACKED = 2**31


def read_mat(source: FileContent) -> FileTable:
    """Read `data` (a matrix, or a struct with orig and norm) and `target`; features x1, ..., classes y1, ...

    `orig` is preferred: it has the discrete features as they are, and `data_type` lists these.
    """
    variables = _load(source)
    data, target = _variable(source, variables, _DATA), _variable(source, variables, _TARGET)
    X, is_original = _features(source, data)
    X, Y = _oriented(source, X, _require_matrix(source, target, "target"))
    frame = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(X.shape[1])])
    if is_original:
        _declare(source, frame, variables.get("data_type"))
    labels = pd.DataFrame(_labels(Y), columns=[f"y{j + 1}" for j in range(Y.shape[1])])
    folds = _folds(variables.get("idx_folds"), len(X))
    title = variables.get("data_name")
    name = title if isinstance(title, str) and title else source.stem
    return FileTable(pd.concat([frame, labels], axis=1), tuple(labels.columns), name, folds=folds)


def _load(source: FileContent) -> dict[str, Any]:
    if source.content.startswith((b"MATLAB 7.3", _HDF)) or _HDF in source.content[:1024]:
        source.fail("this is a MATLAB 7.3 file (HDF5); save it again in MATLAB with save(..., '-v7').")
    try:
        return read_mat_variables(source.content)
    except _MatError as error:
        source.fail(f"the MATLAB file is damaged or cut short ({error}); copy it again.")


def _variable(source: FileContent, variables: dict[str, Any], names: tuple[str, ...]) -> Any:
    found = next((variables[name] for name in names if name in variables), None)
    if found is None:
        source.fail(f"there is no variable {names[0]!r}; the file must have 'data' and 'target'.")
    return found


def _field(struct: Any, name: str) -> Any:
    """Return a field of a struct, also of one alone in a cell; None if there is none."""
    if isinstance(struct, list) and len(struct) == 1:
        struct = struct[0]
    return struct.get(name) if isinstance(struct, dict) else None


def _require_matrix(source: FileContent, value: Any, name: str) -> Floats:
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        found = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        source.fail(f"{name!r} must be a matrix of numbers, found {found}.")
    return value.astype(float)


def _features(source: FileContent, data: Any) -> tuple[Floats, bool]:
    original, normed = _field(data, "orig"), _field(data, "norm")
    for value, name in ((original, "data.orig"), (normed, "data.norm")):
        if isinstance(value, np.ndarray) and value.size:
            return _require_matrix(source, value, name), name == "data.orig"
    return _require_matrix(source, data, "data"), False


def _oriented(source: FileContent, X: Floats, Y: Floats) -> tuple[Floats, Floats]:
    """Return both with one row for each case; the collections differ in what they call a row."""
    for features, labels in ((X, Y), (X, Y.T), (X.T, Y), (X.T, Y.T)):
        if len(features) == len(labels) and min(*features.shape, *labels.shape) > 0:
            return features, labels
    raise source.error(f"'data' of shape {X.shape} and 'target' of shape {Y.shape} have no length in common.")


def _declare(source: FileContent, frame: pd.DataFrame, kinds: Any) -> None:
    """Make the discrete features Categoricals of numbers."""
    for kind, ordered in _KINDS.items():
        positions = _field(kinds, kind)
        for position in _numbers(positions):
            if not 1 <= position <= frame.shape[1]:
                source.fail(f"data_type.{kind} names feature {position}, of {frame.shape[1]}; copy it again.")
            name = f"x{position}"
            frame[name] = pd.Categorical(_shortest(frame[name].to_numpy()), ordered=ordered)


def _numbers(value: Any) -> list[int]:
    """Return positions, from 1 as in MATLAB; nothing where there are none."""
    if not isinstance(value, np.ndarray):
        return []
    return [int(number) for number in value.ravel() if np.isfinite(number)]


def _labels(Y: Floats) -> npt.NDArray[Any]:
    """Return whole numbers as such, and -1 and 1 throughout as 0 and 1."""
    if np.isin(Y, (-1, 1)).all():
        return (Y > 0).astype(np.int8)
    return _shortest(Y)


def _shortest(values: Floats) -> npt.NDArray[Any]:
    whole = np.isfinite(values).all() and (values == np.floor(values)).all() and (abs(values) < 2**53).all()
    return values.astype(np.int64) if whole else values


def _folds(cells: Any, n: int) -> npt.NDArray[np.intp] | None:
    """Return the fold in which each row is a test row; None if there is not one for every row."""
    if not isinstance(cells, list):
        return None
    folds = np.full(n, -1, dtype=np.intp)
    for fold, cell in enumerate(cells):
        rows = np.array(_numbers(_field(cell, "test")), dtype=np.intp) - 1
        if ((rows < 0) | (rows >= n)).any() or (folds[rows] >= 0).any():
            return None
        folds[rows] = fold
    return None if (folds < 0).any() else folds


# -- variables ---------------------------------------------------------------------------------------------


class _MatError(Exception):
    """The file is damaged; never leaves the reader."""


def read_mat_variables(content: bytes) -> dict[str, Any]:
    """Return the variables of a file.

    Matrices are arrays, text is str, a struct is a dict (a list of them if it is an array of structs), a
    cell array a list in the order of MATLAB; objects and functions are None.
    """
    if len(content) < _HEADER or content[126:128] not in (b"IM", b"MI"):
        raise _MatError("no header of a MATLAB file, version 5 to 7")
    mark = "<" if content[126:128] == b"IM" else ">"
    part = _Part(content, _HEADER, len(content), mark, 0)
    variables: dict[str, Any] = {}
    while part.left:
        kind, inner = part.element()
        if kind == _PACKED:
            kind, inner = _decompressed(inner).element()
        if kind == _MATRIX:
            name, value = _read_matrix(inner)
            variables[name] = value
    return variables


def _decompressed(part: _Part) -> _Part:
    worker = zlib.decompressobj()
    try:
        content = worker.decompress(part.content[part.at : part.end], _MAX_UNPACKED)
    except zlib.error:
        raise _MatError("a packed variable is damaged") from None
    if not worker.eof:
        raise _MatError("a packed variable is cut short")
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
            raise _MatError("an element is cut short")
        kind, size = (int(number) for number in np.frombuffer(self.content, f"{self.mark}u4", 2, self.at))
        if kind >> 16:  # up to four bytes are in the tag itself
            kind, size, start, after = kind & 0xFFFF, kind >> 16, self.at + 4, self.at + 8
            fits = size <= 4
        else:
            start = self.at + 8
            # Elements are padded to eight bytes, packed ones are not; writers differ on the very last.
            after = min(start + (size if kind == _PACKED else -(-size // 8) * 8), self.end)
            fits = start + size <= self.end
        if not fits:
            raise _MatError("an element is longer than the file")
        self.at = after
        return kind, _Part(self.content, start, start + size, self.mark, self.depth + 1)

    def numbers(self) -> npt.NDArray[Any]:
        """Take the next element as numbers."""
        kind, part = self.element()
        code = _CODES.get(kind)
        if code is None:
            raise _MatError("numbers of an unknown type")
        dtype = np.dtype(part.mark + code)
        if part.left % dtype.itemsize:
            raise _MatError("numbers that are cut short")
        return np.frombuffer(part.content[part.at : part.end], dtype)

    def text(self) -> str:
        """Take the next element as text."""
        kind, part = self.element()
        coding = _TEXT.get(kind)
        if coding is None:
            raise _MatError("text of an unknown type")
        if coding != "utf-8":
            coding += "-le" if part.mark == "<" else "-be"
        return part.content[part.at : part.end].decode(coding, errors="replace")


def _read_matrix(part: _Part) -> tuple[str, Any]:
    """Return name and value of a matrix, which is anything that MATLAB has."""
    if not part.left:
        return "", np.zeros((0, 0))
    if part.depth > _DEPTH:
        raise _MatError("structs within structs without end")
    flags = part.numbers()
    dims = [int(size) for size in part.numbers()]
    name = part.text()
    if not len(flags) or len(dims) < 2 or min(dims) < 0:
        raise _MatError("a matrix without dimensions")
    kind, n = int(flags[0]) & 0xFF, math.prod(dims)
    if kind in _NUMBERS:
        values = part.numbers()
        if len(values) != n:
            raise _MatError("a matrix that has not as many numbers as its dimensions say")
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
        raise _MatError("a cell array or struct that is cut short")
    return n


def _inner(part: _Part) -> Any:
    kind, inner = part.element()
    if kind != _MATRIX:
        raise _MatError("something else than a matrix within a struct")
    return _read_matrix(inner)[1]


def _struct(part: _Part, n: int) -> Any:
    width = part.numbers()
    _, names = part.element()
    text = names.content[names.at : names.end]
    if len(width) != 1 or not 0 < int(width[0]) <= max(len(text), 1):
        raise _MatError("a struct without names of its fields")
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
        raise _MatError("a sparse matrix that is too large, or without its columns")
    n = int(starts[-1])
    counts = np.diff(starts)
    if starts[0] != 0 or (counts < 0).any() or not n <= min(len(rows), len(values)):
        raise _MatError("a sparse matrix whose columns do not follow each other")
    rows = rows[:n].astype(np.int64)
    if n and not 0 <= rows.min() <= rows.max() < dims[0]:
        raise _MatError("a sparse matrix with a row that it does not have")
    dense = np.zeros(dims)
    dense[rows, np.repeat(np.arange(dims[1]), counts)] = values[:n]
    return dense
