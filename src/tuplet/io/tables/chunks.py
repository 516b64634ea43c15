"""Tables piece by piece, so that a file may be larger than memory."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from tuplet.io.tables.archives import ZIP, unpacked_zip
from tuplet.io.tables.encodings import (
    Recoded,
    narrow_encoding,
    require_encoding,
    warn_of_encoding,
    wide_encoding,
    with_byte_order,
)
from tuplet.io.tables.fields import Missing, as_words
from tuplet.io.tables.parquet import parquet_batches
from tuplet.io.tables.read import read_frame
from tuplet.io.tables.source import (
    TEXT_FORMATS,
    FileContent,
    Where,
    detect,
    is_table_name,
    opening,
    recode,
    require_stream,
)
from tuplet.io.tables.text import TextLayout, parse_rows, piece_layout

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
    encoding: str | None = None,
    missing: Missing | None = None,
) -> Iterator[Chunk]:
    r"""Read a table piece by piece: CSV, TSV and Parquet without ever holding all of it.

    Parameters
    ----------
    source : str, Path or file object
        As in `read_table`; what is no file on disk is read once, from the front. Parquet from a stream, and
        formats that are read as a whole (ARFF, Excel, Feather, JSON lines, MATLAB, SVM-light), are cut into
        pieces afterwards.
    words : sequence of str
        Columns that are text even where all their fields look like numbers. Types of the others are found in
        each piece of a CSV or TSV file by itself: whole numbers in one may be fractions in the next.
    format, encoding, missing : optional
        As in `read_table`. The encoding of a piece of text without letters such as ä is that of the next.
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
    require_encoding(encoding, "read_chunks")
    with _opened(source) as (stream, name, path):
        with _refusing_damage(FileContent(name, b"", path)):
            head = FileContent(name, stream.peek(_HEAD), path)
        kind = detect(head, format)
        if kind in TEXT_FORMATS:
            wide = encoding or wide_encoding(head.content)
            if wide is not None:
                stream = _in_utf8(stream, head, wide, given=encoding is not None)
        if kind in ("csv", "tsv"):
            yield from _text(stream, head, kind, words, block, missing)
        elif kind == "parquet" and path is not None and path.is_file() and not _is_packed(path):
            yield from _parquet(head, path, rows)
        else:
            with _refusing_damage(head):
                content = stream.read()
            frame = read_frame(FileContent(name, content, path), kind, missing)
            if kind in ("jsonl", "xlsx"):
                frame = frame.assign(**{word: as_words(frame[word]) for word in words if word in frame})
            yield from _cut(frame, rows, kind == "svmlight")


# -- streams -----------------------------------------------------------------------------------------------


@contextmanager
def _opened(source: Where) -> Iterator[tuple[io.BufferedReader, str, Path | None]]:
    """Open a source, unpacked, with its name for messages, and its path if it has one."""
    if not isinstance(source, (str, Path)):
        yield *_unpacked(_buffered(source), str(getattr(source, "name", "file object"))), None
    elif str(source) == "-":
        yield *_unpacked(_buffered(sys.stdin.buffer), "standard input"), None
    else:
        path = Path(source).expanduser()
        with _open_path(path) as file:
            yield *_unpacked(file, str(source)), path


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
        return file.read(4).startswith((_GZIP, ZIP))


def _unpacked(stream: io.BufferedReader, name: str) -> tuple[io.BufferedReader, str]:
    """Return the stream and its name, or those of the table that is packed by gzip or zip."""
    start = stream.peek(4)
    if start.startswith(_GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=stream), _HEAD), name
    if not start.startswith(ZIP):
        return stream, name
    file = stream if stream.seekable() else io.BytesIO(stream.read())
    found = unpacked_zip(file, name, is_table_name, FileContent(name, b"", None).fail)
    file.seek(0)
    opened: Any = file if found is None else found[0]
    return io.BufferedReader(opened, _HEAD), name if found is None else found[1]


@contextmanager
def _refusing_damage(source: FileContent) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error):
        source.fail("the gzip file is damaged or cut short; copy it again.")
    except zipfile.BadZipFile:
        source.fail("the zip archive is damaged or cut short; copy it again.")
    except UnicodeDecodeError as error:
        source.fail(f"this is not text in {error.encoding}; change encoding=.")


# -- text --------------------------------------------------------------------------------------------------


def _in_utf8(
    stream: io.BufferedReader, head: FileContent, encoding: str, *, given: bool
) -> io.BufferedReader:
    if not given:
        warn_of_encoding(head.name, encoding)
    return io.BufferedReader(Recoded(stream, with_byte_order(encoding, head.content)), _HEAD)


def _text(
    stream: io.BufferedReader,
    head: FileContent,
    kind: str,
    words: Sequence[str],
    block: int,
    missing: Missing | None,
) -> Iterator[Chunk]:
    size = _size(head.path)
    layout: TextLayout | None = None
    texts: list[str] = []
    n_bytes, n_rows = 0, 0
    for piece in _pieces_in_utf8(_blocks(stream, head, block), head):
        first = layout is None
        if layout is None:
            layout, texts = piece_layout(piece, "\t" if kind == "tsv" else None)
            texts += [word for word in words if word in layout.names and word not in texts]
        frame = parse_rows(piece, layout, missing=missing, words=texts, is_first=first)
        n_bytes += len(piece.content)
        if layout.names[0] != "":
            frame.index = pd.RangeIndex(n_rows, n_rows + len(frame))
        n_rows += len(frame)
        if len(frame):
            yield Chunk(frame, None if size is None else min(1.0, n_bytes / size))
    if not n_rows:
        head.fail("there are no rows after the names of the columns." if layout else "the file is empty.")


def _pieces_in_utf8(blocks: Iterator[bytes], head: FileContent) -> Iterator[FileContent]:
    """Yield blocks of text in UTF-8; the first one with other letters than those of ASCII decides."""
    encoding, n_lines = "ascii", 0
    for content in blocks:
        piece = FileContent(head.name, content, head.path, n_lines)
        if encoding == "ascii":
            encoding = narrow_encoding(content) or "utf-8"
            if encoding not in ("ascii", "utf-8"):
                warn_of_encoding(head.name, encoding)
        if encoding not in ("ascii", "utf-8"):
            piece = replace(piece, content=recode(piece, encoding))
        yield piece
        n_lines += content.count(b"\n")


def _size(path: Path | None) -> int | None:
    """Bytes of a file of text; None for a packed one whose size is unknown."""
    return None if path is None or path.suffix in (".gz", ".zip") else max(1, path.stat().st_size)


def _blocks(stream: io.BufferedReader, head: FileContent, block: int) -> Iterator[bytes]:
    """Yield whole lines, about `block` bytes of them at once; line feeds in quotes end no line."""
    waiting = b""
    with _refusing_damage(head):
        while start := stream.read(block):
            text = waiting + start + _rest_of_line(stream, head, start)
            # Lines without values wait for what comes after them: at the end of the file they are nothing.
            full = len(text.rstrip(b"\r\n\t;|, "))
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
