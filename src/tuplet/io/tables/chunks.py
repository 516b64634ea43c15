"""Tables piece by piece, so that a file may be larger than memory."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tuplet.io.tables.parquet import parquet_batches
from tuplet.io.tables.read import read_frame
from tuplet.io.tables.source import FileContent, Where, detect, opening, require_stream
from tuplet.io.tables.text import parse_rows, read_names, separator

_BLOCK = 8_000_000
"""Bytes of text that are taken apart at once."""

_LONGEST = 256_000_000
"""Bytes after which a field in quotes is taken for one whose end is missing."""

_HEAD = 1 << 17
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table.

    Parameters
    ----------
    frame : pandas DataFrame
        All columns; its index continues that of the chunk before, unless the table has one.
    share : float or None
        How much of the file has been read with them, from 0 to 1; None where its end is not known.
    sparse : bool
        Whether a column that is not there is one of zeros.
    """

    frame: pd.DataFrame
    share: float | None
    sparse: bool = False


def read_chunks(
    source: Where,
    *,
    words: Sequence[str] = (),
    format: str | None = None,
    rows: int = 50_000,
    block: int = _BLOCK,
) -> Iterator[Chunk]:
    r"""Read a table piece by piece: CSV, TSV and Parquet without ever holding all of it.

    Parameters
    ----------
    source : str, Path or file object
        As in `read_table`; what is no file on disk is read once, from the front. Parquet and formats that are
        read as a whole (ARFF, MATLAB, SVM-light) are cut into pieces afterwards if they come from a stream.
    words : sequence of str
        Columns of a CSV or TSV file that are text even where all their fields look like numbers. Types of the
        others are found in each piece by itself: whole numbers in one may be fractions in the next.
    format : str, optional
        As in `read_table`.
    rows : int
        Rows of a piece, other than of text.
    block : int
        Bytes of a piece of text; lines are never broken.

    Yields
    ------
    Chunk

    Raises
    ------
    DataFormatError, InputError
        As `read_table` does, when the piece in question is reached.

    Examples
    --------
    >>> file = io.BytesIO(b"size,place\n1,01\n2,02\n3,n\n")
    >>> for chunk in read_chunks(file, words=["place"], block=21):
    ...     print(chunk.frame.to_dict("list"))
    {'size': [1, 2], 'place': ['01', '02']}
    {'size': [3], 'place': ['n']}
    """
    with _opened(source) as (stream, name, path):
        with _refusing_damage(FileContent(name, b"", path)):
            head = FileContent(name, stream.peek(_HEAD), path)
        kind = detect(head, format)
        if kind in ("csv", "tsv"):
            yield from _text(stream, head, kind, words, block)
        elif kind == "parquet" and path is not None and path.is_file() and not _is_packed(path):
            yield from _parquet(head, path, rows)
        else:
            with _refusing_damage(head):
                content = stream.read()
            yield from _cut(read_frame(FileContent(name, content, path), kind), rows, kind == "svmlight")


# -- streams -----------------------------------------------------------------------------------------------


@contextmanager
def _opened(source: Where) -> Iterator[tuple[io.BufferedReader, str, Path | None]]:
    """Open a source, unpacked, with its name for messages, and its path if it has one."""
    if not isinstance(source, (str, Path)):
        yield _unpacked(_buffered(source)), str(getattr(source, "name", "file object")), None
    elif str(source) == "-":
        yield _unpacked(_buffered(sys.stdin.buffer)), "standard input", None
    else:
        path = Path(source).expanduser()
        with _open_path(path) as file:
            yield _unpacked(file), str(source), path


def _open_path(path: Path) -> io.BufferedReader:
    with opening(path, "read_chunks"):
        return io.BufferedReader(io.FileIO(path), _HEAD)


def _buffered(stream: Any) -> io.BufferedReader:
    if isinstance(stream, io.BufferedReader):
        return stream
    require_stream(stream, "read_chunks")
    if not isinstance(stream, io.RawIOBase | io.BytesIO):
        content = stream.read()
        stream = io.BytesIO(content.encode() if isinstance(content, str) else bytes(content))
    return io.BufferedReader(stream, _HEAD)


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == _GZIP


def _unpacked(stream: io.BufferedReader) -> io.BufferedReader:
    if not stream.peek(2).startswith(_GZIP):
        return stream
    return io.BufferedReader(gzip.GzipFile(fileobj=stream), _HEAD)


@contextmanager
def _refusing_damage(source: FileContent) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error):
        source.fail("the gzip file is damaged or cut short; copy it again.")


# -- text --------------------------------------------------------------------------------------------------


def _text(
    stream: io.BufferedReader, head: FileContent, kind: str, words: Sequence[str], block: int
) -> Iterator[Chunk]:
    size = _size(head.path)
    header: list[str] = []
    mark, n_lines, n_bytes, n_rows = "\t", 0, 0, 0
    for content in _blocks(stream, head, block):
        piece = FileContent(head.name, content, head.path, n_lines)
        first = not header
        if first:
            text = piece.text()
            if not text.strip():
                piece.fail("the file is empty; expected a line with the names of the columns.")
            mark = separator(text.split("\n", 1)[0]) if kind == "csv" else "\t"
            header = read_names(piece, text, mark)
        frame = parse_rows(piece, mark, header, words=[w for w in words if w in header], names_first=first)
        n_lines += content.count(b"\n")
        n_bytes += len(content)
        if header[0] != "":
            frame.index = pd.RangeIndex(n_rows, n_rows + len(frame))
        n_rows += len(frame)
        if len(frame):
            yield Chunk(frame, None if size is None else min(1.0, n_bytes / size))
    if not n_rows:
        head.fail("there are no rows after the names of the columns." if header else "the file is empty.")


def _size(path: Path | None) -> int | None:
    """Bytes of a file of text; None for a packed one whose size is unknown."""
    return None if path is None or path.suffix == ".gz" else max(1, path.stat().st_size)


def _blocks(stream: io.BufferedReader, head: FileContent, block: int) -> Iterator[bytes]:
    """Yield whole lines, about `block` bytes of them at once; line feeds in quotes end no line."""
    waiting = b""
    with _refusing_damage(head):
        while start := stream.read(block):
            text = waiting + start + _rest_of_line(stream, head, start)
            # Empty lines wait for what comes after them: at the end of the file they are nothing.
            full = len(text.rstrip(b"\r\n"))
            end = (text.find(b"\n", full) + 1 or len(text)) if full else 0
            if end:
                yield text[:end]
            waiting = text[end:]


def _rest_of_line(stream: io.BufferedReader, head: FileContent, start: bytes) -> bytes:
    lines, left = [], _LONGEST
    last, in_quotes = start, start.count(b'"') % 2
    while in_quotes or not last.endswith(b"\n"):
        last = stream.readline(left)
        if not last:
            break
        lines.append(last)
        in_quotes ^= last.count(b'"') % 2
        left -= len(last)
        if not left:
            head.fail("a field in quotes never ends; check the quotes.")
    return b"".join(lines)


# -- others ------------------------------------------------------------------------------------------------


def _parquet(source: FileContent, path: Path, rows: int) -> Iterator[Chunk]:
    done = 0
    for frame, total in parquet_batches(source, path, rows):
        frame.index = pd.RangeIndex(done, done + len(frame))
        done += len(frame)
        yield Chunk(frame, done / total)


def _cut(frame: pd.DataFrame, rows: int, sparse: bool) -> Iterator[Chunk]:
    for start in range(0, len(frame), rows):
        part = frame.iloc[start : start + rows]
        yield Chunk(part, min(1.0, (start + len(part)) / len(frame)), sparse)
