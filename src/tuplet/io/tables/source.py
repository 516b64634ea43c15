"""The content of a file, its name in messages, and its format."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NoReturn, TypeAlias

from tuplet.core.exceptions import DataFormatError, InputError
from tuplet.io.tables.archives import ZIP, foreign_kind, read_zip
from tuplet.io.tables.encodings import narrow_encoding, require_encoding, warn_of_encoding, wide_encoding

Where: TypeAlias = str | Path | IO[Any]
"""A path, "-" for standard input, or a file object."""

FORMATS = ("arff", "csv", "feather", "jsonl", "mat", "parquet", "svmlight", "tsv", "xlsx")

TEXT_FORMATS = ("arff", "csv", "jsonl", "svmlight", "tsv")

MAX_CELLS = 100_000_000
"""Cells that a sparse file may have as a dense table: 0.8 GB."""

SUFFIXES = {
    ".arff": "arff", ".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".tab": "tsv", ".mat": "mat",
    ".parquet": "parquet", ".pq": "parquet", ".svm": "svmlight", ".svmlight": "svmlight",
    ".libsvm": "svmlight", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".feather": "feather",
    ".arrow": "feather", ".xlsx": "xlsx", ".xlsm": "xlsx",
}  # fmt: skip

_SVMLIGHT = re.compile(rb"(?:[-+.,\deE]*|\d+:[^\s:]+)(?:[ \t]+(?:qid|\d+):[^\s:]+)+[ \t]*(?:#.*)?\r?$")


@dataclass(frozen=True)
class FileContent:
    """The content of a file, unpacked, with a name for messages.

    Parameters
    ----------
    name : str
        The path, "standard input", or the name of a file object.
    content : bytes
    path : Path or None
        None where there is no file on disk.
    lines_before : int
        Lines of the file before this content, if it is a piece of it.
    encoding : str or None
        The encoding of the content, None as long as it is not known.
    """

    name: str
    content: bytes
    path: Path | None
    lines_before: int = 0
    encoding: str | None = None

    @property
    def stem(self) -> str:
        """The name without folders, the suffix of its format, and .gz."""
        name = Path(self.name).name.removesuffix(".gz")
        return Path(name).stem or "data"

    def error(self, found: str, line: int | None = None) -> DataFormatError:
        """Return the error about this file; `found` is the problem and what to do."""
        line = None if line is None else line + self.lines_before
        where = f"{self.name!r}" + (f", line {line:,}" if line is not None else "")
        return DataFormatError(f"read_table: {where}: {found}", line=line)

    def fail(self, found: str, line: int | None = None) -> NoReturn:
        """Raise the error about this file, whatever other one led to it."""
        raise self.error(found, line) from None

    def text(self) -> str:
        """Return the content as text: UTF-8, with or without a byte order mark."""
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.content.count(b"\n", 0, error.start) + 1
            self.fail(
                "a byte that is not UTF-8; the file is damaged, no text, or in an encoding that encoding="
                " must name.",
                line,
            )

    def lines(self) -> list[str]:
        """Return the lines of the text; only line feeds end one, so that the numbers are those of editors."""
        return [line.removesuffix("\r") for line in self.text().split("\n")]


def open_source(where: Where) -> FileContent:
    """Read everything that a path, "-" (standard input) or a file object has, and unpack gzip."""
    if isinstance(where, (str, Path)) and str(where) != "-":
        path = Path(where).expanduser()
        with opening(path, "read_table"):
            content = path.read_bytes()
        return _unpacked(FileContent(str(where), content, path))
    stream = sys.stdin.buffer if isinstance(where, (str, Path)) else where
    require_stream(stream, "read_table")
    name = "standard input" if stream is sys.stdin.buffer else str(getattr(stream, "name", "file object"))
    read = stream.read()
    if isinstance(read, str):
        return FileContent(name, read.encode(), None, encoding="utf-8")
    return _unpacked(FileContent(name, bytes(read), None))


@contextmanager
def opening(path: Path, reader: str) -> Iterator[None]:
    """Turn errors of opening a file into an `InputError` with the reason."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{reader}: there is no file {str(path)!r}; check the path.") from None
    except (OSError, ValueError) as error:  # a null byte in a path is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{reader}: {str(path)!r} cannot be read: {reason}.") from None


def require_stream(stream: Any, reader: str) -> None:
    """Refuse what cannot be read from."""
    if not hasattr(stream, "read"):
        raise InputError(
            f"{reader}: expected a path, '-' or a file object, found {type(stream).__name__}; pass a path."
        )


def _unpacked(source: FileContent) -> FileContent:
    """Return the content of a file that is packed by gzip or zip; a workbook, which is a zip, as it is."""
    if source.content.startswith(ZIP):
        found = read_zip(source.content, source.name, is_table_name, source.fail)
        return source if found is None else FileContent(found[1], found[0], source.path)
    if not source.content.startswith(b"\x1f\x8b"):
        return source
    try:
        content = gzip.decompress(source.content)
    except (OSError, EOFError, zlib.error):
        source.fail("the gzip file is damaged or cut short; copy it again.")
    return FileContent(source.name, content, source.path)


# -- encodings ---------------------------------------------------------------------------------------------


def as_utf8(source: FileContent, encoding: str | None) -> FileContent:
    """Return a file of text in UTF-8: from the given encoding, or the one that it seems to have."""
    require_encoding(encoding, "read_table")
    found = source.encoding or encoding or wide_encoding(source.content) or narrow_encoding(source.content)
    if encoding is None and found in (None, "ascii", "utf-8"):  # None: text() names the damage
        return replace(source, encoding="utf-8")
    assert found is not None
    if encoding is None:
        warn_of_encoding(source.name, found)
    return replace(source, content=recode(source, found), encoding="utf-8")


def recode(source: FileContent, encoding: str) -> bytes:
    """Return the content in UTF-8."""
    try:
        return source.content.decode(encoding).encode()
    except UnicodeDecodeError as error:
        line = source.content.count(b"\n", 0, error.start) + 1
        source.fail(f"this is not text in {encoding}; change encoding=.", line)


# -- formats -----------------------------------------------------------------------------------------------


def detect(source: FileContent, requested: str | None) -> str:
    """Return the format: the requested one, that of the suffix, or what the content looks like."""
    if requested is not None:
        if requested not in FORMATS:
            raise InputError(f"read_table: format must be one of {', '.join(FORMATS)}; found {requested!r}.")
        return requested
    if source.encoding is None:
        kind = foreign_kind(source.content)
        if kind is not None:
            source.fail(f"this is {kind}.")
    return _binary_format(source) or suffix_format(source.name) or _looks_like(source.content)


def is_table_name(name: str) -> bool:
    """Return whether the suffix of a name is that of a table."""
    return suffix_format(name) is not None


def suffix_format(name: str) -> str | None:
    """Return the format of the suffix before .gz; None if it is unknown."""
    return SUFFIXES.get(Path(name.removesuffix(".gz")).suffix.lower())


def _binary_format(source: FileContent) -> str | None:
    """Return the format of content with a mark of its own, whatever the file is called."""
    if source.content.startswith(b"PAR1"):
        return "parquet"
    if source.content.startswith((b"ARROW1", b"FEA1")):
        return "feather"
    if source.content.startswith(ZIP):  # other archives have been unpacked
        return "xlsx"
    return "mat" if source.content.startswith((b"MATLAB", b"\x89HDF")) else None


def _looks_like(content: bytes) -> str:
    wide = wide_encoding(content)
    if wide is not None:
        content = content[:400_000].decode(wide, "ignore").encode()
    lines = [line for line in content[:100_000].split(b"\n") if line.strip()] or [b""]
    first = lines[0]
    if first.lstrip(b"\xef\xbb\xbf \t").lower().startswith((b"%", b"@relation", b"@attribute")):
        return "arff"
    if first.lstrip(b"\xef\xbb\xbf \t").startswith((b"{", b"[{")):
        return "jsonl"
    row = next((line for line in lines if not line.startswith(b"#")), b"")
    if _SVMLIGHT.match(row[:10_000]):
        return "svmlight"
    return "tsv" if first.count(b"\t") > first.count(b",") else "csv"


def require_cells(source: FileContent, n_rows: int, n_columns: int) -> None:
    """Refuse a sparse file that would not fit into memory as a dense table."""
    if n_rows * n_columns > MAX_CELLS:
        source.fail(
            f"{n_rows:,} rows of {n_columns:,} columns are more than the {MAX_CELLS:,} cells that fit into a"
            " frame; read SVM-light files with read_svmlight, whose sparse matrix models take."
        )
