"""The folder of benchmark sets: where it is, what its manifest says, and its files, verified."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from tuplet.datasets.fetch import fetch_missing, is_address, mirror
from tuplet.exceptions import InputError, MissingDependencyError

Entry: TypeAlias = dict[str, Any]
"""What the manifest says about one set."""

_VARIABLE = "TUPLET_DATA"


def find_folder(folder: str | Path | None) -> Path | None:
    """Return the folder given, the one that TUPLET_DATA names, or the cache; None if there is none.

    Both may be an address of the web, whose files are fetched into the cache as they are needed.
    """
    named = folder if folder is not None else os.environ.get(_VARIABLE)
    if named:
        if is_address(named):
            return mirror(str(named), cache_folder())
        what = "the folder" if folder is not None else f"the folder that {_VARIABLE} names"
        return _with_manifest(Path(named).expanduser(), what)
    cache = cache_folder()
    return cache if (cache / "manifest.json").is_file() else None


def cache_folder() -> Path:
    """Return where sets are looked for if nothing else is said."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tuplet"


def _with_manifest(folder: Path, what: str) -> Path:
    if not folder.is_dir():
        raise InputError(f"Benchmark sets: {what}, {str(folder)!r}, does not exist.")
    if not (folder / "manifest.json").is_file():
        raise InputError(f"Benchmark sets: {what}, {str(folder)!r}, has no manifest.json.")
    return folder


def read_entries(folder: Path) -> list[Entry]:
    """Return what the manifest of a folder says about its sets and networks."""
    try:
        entries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["sets"]
        return [dict(entry) for entry in entries]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"Benchmark sets: {str(folder / 'manifest.json')!r} cannot be read: {error}."
        ) from None


def is_network(entry: Entry) -> bool:
    """Return whether an entry is a Bayesian network and no table."""
    return bool(entry["task"] == "bayesian-network")


def find_entry(entries: list[Entry], name: str, others: list[str]) -> Entry:
    """Return the entry of this name; `others` are further names that a user may have meant."""
    found = next((entry for entry in entries if entry["name"] == name), None)
    if found is None:
        names = [*others, *(entry["name"] for entry in entries if not is_network(entry))]
        known = {each.lower(): each for each in names}
        close = difflib.get_close_matches(str(name).lower(), known, n=1)
        hint = f"did you mean {known[close[0]]!r}?" if close else f"there are {', '.join(names)}."
        raise InputError(f"load_dataset: there is no set {name!r}; {hint}")
    if is_network(found):
        raise InputError(
            f"load_dataset: {name!r} is a Bayesian network, not a table of rows; choose another."
        )
    return found


def read_set(folder: Path, entry: Entry) -> pd.DataFrame:
    """Return the rows of a set, after a look at the checksum of its file; fetch it if it is not there yet."""
    path = folder / entry["file"]
    if not path.is_file() and not fetch_missing(folder, entry["file"], entry["sha256"]):
        raise InputError(f"load_dataset: the manifest names {str(path)!r}, but there is no such file.")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise InputError(
            f"load_dataset: {str(path)!r} is not the file that the manifest describes (its SHA-256 differs);"
            " copy it again."
        )
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            "Benchmark sets are Parquet files, which need pyarrow; run `pip install tuplet[data]`."
        ) from None
    return pd.read_parquet(BytesIO(content), engine="pyarrow")
