"""Benchmark sets from the network: a folder that is served over HTTP, and OpenML."""

from __future__ import annotations

import hashlib
import json
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote
from urllib.request import Request, urlopen

import pandas as pd

from tuplet.datasets.base import Dataset
from tuplet.datasets.files.atomic import open_atomic
from tuplet.exceptions import InputError

_TIMEOUT = 30.0
_BLOCK = 1 << 20

Opener: TypeAlias = Callable[..., Any]
Fetcher: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class OpenMLSet:
    """How OpenML calls a set, and what it must have; labels are its targets, TRUE and FALSE."""

    query: dict[str, Any]
    rows: int
    features: int
    labels: int


OPENML = {
    "emotions": OpenMLSet({"data_id": 40589}, 593, 72, 6),
    "yeast": OpenMLSet({"name": "yeast", "version": 4}, 2417, 103, 14),
}
"""Sets that OpenML has with the same rows, features and labels."""


# -- a folder that is served -------------------------------------------------------------------------------


def is_address(folder: str | Path) -> bool:
    """Return whether a folder is an address of the web and no path."""
    return isinstance(folder, str) and folder.startswith(("http://", "https://"))


def mirror(address: str, cache: Path, opener: Opener = urlopen) -> Path:
    """Return a local folder for a served one, with its manifest; sets come when they are asked for.

    Parameters
    ----------
    address : str
        Where manifest.json and the files are served.
    cache : Path
        Folder of the user's cache; what was fetched once stays there.
    opener : callable
        As `urllib.request.urlopen`.
    """
    digest = hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:12]
    folder = cache / "mirrors" / digest
    manifest = folder / "manifest.json"
    if not _is_json(manifest):
        folder.mkdir(parents=True, exist_ok=True)
        _note_origin(folder, address)
        download(f"{address.rstrip('/')}/manifest.json", manifest, None, opener)
        if not _is_json(manifest):
            manifest.unlink()
            raise InputError(
                f"load_dataset: {address!r} serves no manifest.json; check TUPLET_DATA, or try again later."
            )
    return folder


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _note_origin(folder: Path, address: str) -> None:
    with open_atomic(folder / "origin.json") as file:
        file.write(json.dumps({"address": address.rstrip("/")}).encode())


def fetch_missing(folder: Path, name: str, sha256: str, opener: Opener = urlopen) -> bool:
    """Fetch a file of a mirrored folder; False if the folder mirrors nothing."""
    try:
        address = json.loads((folder / "origin.json").read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if Path(name).name != name:
        raise InputError(
            f"load_dataset: the manifest of {address!r} names {name!r}, which is no plain file name."
        )
    download(f"{address}/{quote(name)}", folder / name, sha256, opener)
    return True


def download(address: str, path: Path, sha256: str | None, opener: Opener = urlopen) -> None:
    """Fetch a file; it is at `path` in full, with the right checksum, or not at all.

    Parameters
    ----------
    address : str
        http or https.
    path : Path
    sha256 : str or None
        The checksum that the content must have; None where nobody knows it.
    opener : callable
        As `urllib.request.urlopen`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with opener(Request(address), timeout=_TIMEOUT) as answer, open_atomic(path) as file:
            while block := answer.read(_BLOCK):
                digest.update(block)
                file.write(block)
            if sha256 is not None and digest.hexdigest() != sha256:
                raise InputError(
                    f"load_dataset: what {address!r} sent is not the file that the manifest describes (its"
                    " SHA-256 differs); try again later, or copy the file from elsewhere."
                )
    except (OSError, HTTPException, ValueError) as error:  # InputError is a ValueError
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"load_dataset: {address!r} could not be fetched ({_reason(error)}); check the address and the"
            " network, or set TUPLET_DATA to a folder with manifest.json and a Parquet file for each set."
        ) from None


def _reason(error: Exception) -> str:
    text = str(getattr(error, "reason", "") or error).strip().rstrip(".")
    return text.splitlines()[0][:200] if text else type(error).__name__


# -- OpenML ------------------------------------------------------------------------------------------------


def fetch_from_openml(name: str, cache: Path, fetcher: Fetcher | None = None) -> Dataset:
    """Return a set as OpenML has it, its labels as 0 and 1; what was fetched once stays in the cache.

    Parameters
    ----------
    name : str
        One of `OPENML`.
    cache : Path
        Folder of the user's cache.
    fetcher : callable, optional
        As `sklearn.datasets.fetch_openml`, which it is by default.
    """
    known = OPENML[name]
    if fetcher is None:
        from sklearn.datasets import fetch_openml

        fetcher = fetch_openml
    said = ", ".join(f"{key} {value}" for key, value in known.query.items())
    try:
        with _patience(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its second attempt, and about versions
            found = fetcher(**known.query, as_frame=True, data_home=str(cache / "openml"), n_retries=1)
            X, Y = found.data, pd.DataFrame(found.target)
    except Exception as error:  # network, parsing, checksums: scikit-learn raises errors of many types
        raise InputError(
            f"load_dataset: {name!r} is in no folder here, and could not be fetched from OpenML ({said}:"
            f" {_reason(error)}); check the network, or set TUPLET_DATA to a folder with manifest.json and a"
            " Parquet file for each set."
        ) from None
    if (X.shape, Y.shape[1]) != ((known.rows, known.features), known.labels):
        raise InputError(
            f"load_dataset: OpenML ({said}) sent {X.shape[0]} rows, {X.shape[1]} features and {Y.shape[1]}"
            f" labels for {name!r}, which has {known.rows}, {known.features} and {known.labels}; set"
            " TUPLET_DATA to a folder of benchmark sets instead."
        )
    return Dataset(name, X.reset_index(drop=True), _as_numbers(Y), f"{name}, from OpenML ({said}).\n")


@contextmanager
def _patience() -> Iterator[None]:
    """Give up on silent servers; scikit-learn would wait for ever, and has no parameter for it."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _as_numbers(Y: pd.DataFrame) -> pd.DataFrame:
    positive = Y.astype(str).apply(lambda column: column.str.upper().isin(["TRUE", "1"]))
    return positive.astype("int8").reset_index(drop=True)
