"""Zip archives with a table inside, and files of other kinds, which are named for what they are."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, NoReturn

from tuplet.core.exceptions import InputError

ZIP = b"PK\x03\x04"

_STARTS = {
    b"\xd0\xcf\x11\xe0": "a workbook of Excel before 2007 (.xls); save it as .xlsx or CSV",
    b"SQLite format 3\0": "a database of SQLite; export the table as CSV",
    b"%PDF-": "a PDF document; export the table as CSV",
    b"BZh91AY&SY": "an archive of bzip2; unpack it first",
    b"\xfd7zXZ": "an archive of xz; unpack it first",
    b"7z\xbc\xaf": "an archive of 7-Zip; unpack it first",
    b"\x28\xb5\x2f\xfd": "an archive of Zstandard; unpack it first",
    b"Rar!\x1a": "an archive of RAR; unpack it first",
    b"$FL2@(#)": "a file of SPSS; read it with pandas.read_spss",
    b"<stata_dta>": "a file of Stata; read it with pandas.read_stata",
    b"\x93NUMPY": "an array of NumPy; pass it to the model in Python",
    b"\x80\x04\x95": "a pickle of Python, which is not read since it could run any code; export it as CSV",
    b"\x80\x05\x95": "a pickle of Python, which is not read since it could run any code; export it as CSV",
    b"\x89PNG": "a picture",
    b"{\\rtf": "a document in RTF; export the table as CSV",
}
_PAGES = (b"<!doctype html", b"<html", b"<table", b"<?xml")

_INSIDE = {
    "header.json": "a model file of tuplet, not a table; load it with load_model",
    "word/document.xml": "a document of Word; save its table as CSV",
    "Index/Document.iwa": "a spreadsheet of Apple Numbers; export it as .xlsx or CSV",
}
_WORKBOOK = "xl/workbook.xml"
_LISTED = 4


def foreign_kind(content: bytes) -> str | None:
    """Return what a file is that holds no table that can be read, and what to do; None for all others."""
    found = next((kind for start, kind in _STARTS.items() if content.startswith(start)), None)
    if found is None and content[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_PAGES):
        return "a page or document with tags (HTML or XML); save its table as CSV or .xlsx"
    return found


def unpacked_zip(
    file: IO[bytes], name: str, is_table: Callable[[str], bool], fail: Callable[[str], NoReturn]
) -> tuple[IO[bytes], str] | None:
    """Return the one table in a zip archive, open, with its name; None for a workbook.

    Parameters
    ----------
    file : binary stream that can be sought
    name : str
        Of the archive.
    is_table : callable
        Whether the name of a file is that of a table.
    fail : callable
        Raises the error about the archive.
    """
    with _refusing_damage(fail):
        archive = zipfile.ZipFile(file)
        names = [each for each in archive.namelist() if not each.endswith("/") and not _is_hidden(each)]
        if _WORKBOOK in names:
            return None
        _require_no_document(archive, names, fail)
        tables = [each for each in names if is_table(each)] or names
        if len(tables) != 1:
            listed = ", ".join(tables[:_LISTED]) + (" and others" if len(tables) > _LISTED else "")
            found = f"several files ({listed})" if tables else "no file"
            fail(f"the zip archive holds {found}, not one table; unpack it, and give one of them.")
        return archive.open(tables[0]), f"{name}/{tables[0]}"


def read_zip(
    content: bytes, name: str, is_table: Callable[[str], bool], fail: Callable[[str], NoReturn]
) -> tuple[bytes, str] | None:
    """Return the content of the one table in a zip archive; see `unpacked_zip`."""
    found = unpacked_zip(io.BytesIO(content), name, is_table, fail)
    if found is None:
        return None
    with _refusing_damage(fail):
        return found[0].read(), found[1]


@contextmanager
def _refusing_damage(fail: Callable[[str], NoReturn]) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except RuntimeError:
        fail("the zip archive is protected by a password; unpack it first.")
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, ValueError, zlib.error):
        fail("the zip archive is damaged or cut short; copy it again.")


def _is_hidden(name: str) -> bool:
    return name.startswith("__MACOSX/") or PurePosixPath(name).name.startswith(".")


def _require_no_document(archive: zipfile.ZipFile, names: list[str], fail: Callable[[str], NoReturn]) -> None:
    for inside, kind in _INSIDE.items():
        if inside in names:
            fail(f"this is {kind}.")
    if "mimetype" in names and archive.read("mimetype").startswith(b"application/vnd.oasis"):
        fail("this is a document of LibreOffice; save it as .xlsx or CSV.")
