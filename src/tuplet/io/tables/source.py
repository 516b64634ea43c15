"""The content of a file, its name in messages, and its format."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, TypeAlias

from tuplet.core.exceptions import DataFormatError, InputError

Where: TypeAlias = str | Path | IO[Any]
"""A path, "-" for standard input, or a file object."""

FORMATS = ("arff", "csv", "mat", "parquet", "svmlight", "tsv")

MAX_CELLS = 100_000_000
"""Cells that a sparse file may have as a dense table: 0.8 GB."""

SUFFIXES = {
    ".arff": "arff", ".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".tab": "tsv", ".mat": "mat",
    ".parquet": "parquet", ".pq": "parquet", ".svm": "svmlight", ".svmlight": "svmlight",
    ".libsvm": "svmlight",
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
    """

    name: str
    content: bytes
    path: Path | None
    lines_before: int = 0

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
            self.fail("this is not text in UTF-8; convert the file, for example with iconv.", line)

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
    return _unpacked(FileContent(name, read.encode() if isinstance(read, str) else bytes(read), None))


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
    if not source.content.startswith(b"\x1f\x8b"):
        return source
    try:
        content = gzip.decompress(source.content)
    except (OSError, EOFError, zlib.error):
        source.fail("the gzip file is damaged or cut short; copy it again.")
    return FileContent(source.name, content, source.path)


# -- formats -----------------------------------------------------------------------------------------------


def detect(source: FileContent, requested: str | None) -> str:
    """Return the format: the requested one, that of the suffix, or what the content looks like."""
    if requested is not None:
        if requested not in FORMATS:
            raise InputError(f"read_table: format must be one of {', '.join(FORMATS)}; found {requested!r}.")
        return requested
    return suffix_format(source.name) or _looks_like(source.content)


def suffix_format(name: str) -> str | None:
    """Return the format of the suffix before .gz; None if it is unknown."""
    return SUFFIXES.get(Path(name.removesuffix(".gz")).suffix.lower())


def _looks_like(content: bytes) -> str:
    if content.startswith(b"PAR1"):
        return "parquet"
    if content.startswith((b"MATLAB", b"\x89HDF")):
        return "mat"
    lines = [line for line in content[:100_000].split(b"\n") if line.strip()] or [b""]
    first = lines[0]
    if first.lstrip(b"\xef\xbb\xbf \t").lower().startswith((b"%", b"@relation", b"@attribute")):
        return "arff"
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
