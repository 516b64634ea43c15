"""The file itself: a zip archive of header and model, written whole or not at all, read with suspicion."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from tuplet.exceptions import ModelFileError, TupletError

FORMAT = 2
"""Version of the layout of files. Raised whenever an older Tuplet would misread what a newer one writes."""

_HEADER, _MODEL = "header.json", "model.skops"

_HEADER_LIMIT = 64 * 2**20
"""Bytes of a header; names and labels of any sensible model take far less."""

_GROWTH = 50
"""How many times larger than the file its unpacked parts may be; what packs better is stored unpacked."""


# -- writing -----------------------------------------------------------------------------------------------


def write(path: Path, header: dict[str, Any], model: bytes) -> None:
    """Write a file under a temporary name next to `path`, then rename it: readers never see half of it."""
    header = {"format": FORMAT, **header, "sha256": hashlib.sha256(model).hexdigest()}
    text = json.dumps(header, indent=1, ensure_ascii=False).encode()
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as file:
            _pack(file, text, model, zipfile.ZIP_DEFLATED)
            if len(text) + len(model) > _GROWTH * file.tell():
                file.truncate(file.seek(0))
                _pack(file, text, model, zipfile.ZIP_STORED)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise ModelFileError(f"The model cannot be written to {str(path)!r}: {error.strerror}.") from None
    finally:
        draft.unlink(missing_ok=True)


def _pack(file: Any, header: bytes, model: bytes, compression: int) -> None:
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr(_HEADER, header)
        archive.writestr(_MODEL, model)
    file.seek(0, os.SEEK_END)


# -- reading -----------------------------------------------------------------------------------------------


def read_raw_header(path: Path) -> dict[str, Any]:
    """Return the header of a file as the JSON that it is, after a look at the version of the format."""
    with _opened(path) as archive:
        header = json.loads(_read(archive, path, _HEADER, limit=_HEADER_LIMIT))
        if not isinstance(header, dict) or type(header.get("format")) is not int:
            damaged(path, "its header does not say which format it has")
        if header["format"] != FORMAT:
            raise ModelFileError(_other_format(path, header))
        return header


def _other_format(path: Path, header: dict[str, Any]) -> str:
    versions = header.get("versions")
    writer = versions.get("tuplet") if isinstance(versions, dict) else None
    which = "a newer" if header["format"] > FORMAT else "that"
    return (
        f"{str(path)!r} has format {header['format']}, written by tuplet {writer or 'of an unknown version'};"
        f" this version reads format {FORMAT} only. Load the file with {which} version of tuplet, or fit and"
        " save the model again."
    )


def read_model_part(path: Path, header: dict[str, Any]) -> bytes:
    """Return the bytes of the model, which are those that the header was written for."""
    with _opened(path) as archive:
        model = _read(archive, path, _MODEL, limit=_GROWTH * path.stat().st_size)
        if hashlib.sha256(model).hexdigest() != header.get("sha256"):
            damaged(path, "the model in it is not the one that its header describes")
        return model


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    if not path.is_file():
        raise ModelFileError(f"There is no file {str(path)!r}.")
    with refusing_damage(path), zipfile.ZipFile(path) as archive:
        yield archive


def _read(archive: zipfile.ZipFile, path: Path, name: str, *, limit: int) -> bytes:
    """Return one part of an archive; never more bytes than `limit`, whatever the archive promises."""
    parts = [part for part in archive.infolist() if part.filename == name]
    if len(parts) != 1:
        damaged(path, f"it has no part {name!r}" if not parts else f"it has several parts {name!r}")
    if parts[0].file_size > limit:
        damaged(path, f"its part {name!r} would unpack to {parts[0].file_size:,} bytes")
    return archive.read(parts[0])


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Turn whatever libraries say about a damaged file into one sentence of our own."""
    try:
        yield
    except TupletError:
        raise
    except OSError as error:
        raise ModelFileError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # zipfile, zlib, json, numpy, skops: each has its own ways to complain
        reason = str(error).strip().splitlines() or [type(error).__name__]
        damaged(path, f"reading it ended with {reason[0].rstrip('.')!r}")


def damaged(path: Path, reason: str) -> NoReturn:
    """Say that a file is not, or no longer, a model."""
    raise ModelFileError(
        f"{str(path)!r} is no model of tuplet, or a damaged one: {reason}. Save the model again, or ask for"
        " another copy."
    ) from None
