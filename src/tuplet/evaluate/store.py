"""Finished fits on disk, one small file each, so that a run can be continued."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tuplet.core.atomic_files import open_atomic
from tuplet.core.exceptions import InputError, TupletWarning

Record = dict[str, Any]

_NEEDED = {"dataset", "model", "fold", "status", "scores", "settings", "plan", "n_folds"}
"""Keys of every record."""


class Store:
    """A folder of records, one JSON file for each fit.

    Records are written atomically: a run that is killed leaves complete records only, and two runs in one
    folder do not damage each other's. At worst they make the same fit twice.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).expanduser()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"The folder for finished fits cannot be made ({error}); pass another one as cache."
            ) from None

    def get(self, key: str) -> Record | None:
        """Return the record of a key, None if there is none."""
        path = self.folder / key
        return _read(path) if path.exists() else None

    def put(self, key: str, record: Record) -> None:
        """Write a record: all of it or nothing."""
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path) as file:
            file.write(json.dumps(record, indent=1).encode())

    def __iter__(self) -> Iterator[Record]:
        """Yield all records, in the order of their names."""
        found = (_read(path) for path in sorted(self.folder.glob("*/*.json")))
        return (record for record in found if record is not None)


def record_key(dataset: str, model: str, fold: int, digest: str) -> str:
    """Return the path of the record of a fit: names for readers, and a digest that identifies it.

    Examples
    --------
    >>> record_key("yeast", "chain, 10 orders", 3, "0a1b")
    'yeast/chain-10-orders.3.0a1b.json'
    """
    return f"{_slug(dataset)}/{_slug(model)}.{fold}.{digest}.json"


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-")[:60] or "unnamed"


def _read(path: Path) -> Record | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and set(record) >= _NEEDED:
            return record
        problem = "it holds no record"
    except (OSError, ValueError) as error:
        problem = str(error)
    warnings.warn(
        f"The finished fit in {path.name} cannot be read ({problem}); it is made again.",
        TupletWarning,
        stacklevel=3,
    )
    return None
