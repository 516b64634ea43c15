"""Data sets by name: the Palmer penguins, which come with the package, and sets that OpenML has."""

from __future__ import annotations

import difflib
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.io.dataset import Dataset

_CLASSES = ["species", "island", "sex"]

_DESCRIPTION = """\
Palmer penguins: 344 adult penguins of three species on three islands of the Palmer Archipelago, Antarctica,
measured from 2007 to 2009.

Class variables: species (Adelie, Chinstrap, Gentoo), island (Biscoe, Dream, Torgersen), sex (female, male).
Features: bill length and depth and flipper length in mm, body mass in g, and the year.
Missing: the sex of 11 penguins, and all four measurements of 2 of these.

Horst AM, Hill AP, Gorman KB (2020). palmerpenguins: Palmer Archipelago (Antarctica) penguin data.
https://allisonhorst.github.io/palmerpenguins/, doi:10.5281/zenodo.3960218. Public domain (CC0).
"""

_TIMEOUT = 30.0
"""Seconds without an answer after which a download is given up."""


@dataclass(frozen=True)
class _OpenMLSet:
    """The query that finds a multi-label set on OpenML, and the size that it must have."""

    query: dict[str, Any]
    rows: int
    features: int
    labels: int


OPENML = {
    "emotions": _OpenMLSet({"data_id": 40589}, 593, 72, 6),
    "yeast": _OpenMLSet({"name": "yeast", "version": 4}, 2417, 103, 14),
}
"""Sets that OpenML has with the same rows, features and labels as the collections that papers use."""


@overload
def load_penguins(return_X_y: Literal[False] = False) -> Dataset: ...
@overload
def load_penguins(return_X_y: Literal[True]) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def load_penguins(return_X_y: bool = False) -> Dataset | tuple[pd.DataFrame, pd.DataFrame]:
    """Load the Palmer penguins: species, island and sex from four measurements and the year.

    Missing values are kept, in the measurements and in the labels.

    Parameters
    ----------
    return_X_y : bool
        Return the pair (X, Y) instead of a `Dataset`.

    Returns
    -------
    Dataset, or (X, Y)

    References
    ----------
    Horst AM, Hill AP, Gorman KB (2020). palmerpenguins: Palmer Archipelago (Antarctica) penguin data.

    Examples
    --------
    >>> penguins = load_penguins()
    >>> penguins
    Dataset(penguins: 344 rows, 5 features, class variables species, island, sex)
    >>> X, Y = load_penguins(return_X_y=True)
    >>> int(Y["sex"].isna().sum())
    11
    """
    with (files("tuplet.io") / "penguins.csv").open(encoding="utf-8") as file:
        frame = pd.read_csv(file)
    X, Y = frame.drop(columns=_CLASSES), frame[_CLASSES].copy()
    return (X, Y) if return_X_y else Dataset("penguins", X, Y, _DESCRIPTION)


@overload
def load_dataset(name: str, *, return_X_y: Literal[False] = False) -> Dataset: ...
@overload
def load_dataset(name: str, *, return_X_y: Literal[True]) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def load_dataset(name: str, *, return_X_y: bool = False) -> Dataset | tuple[pd.DataFrame, pd.DataFrame]:
    """Load a data set by its name: "penguins", or a set that is downloaded from OpenML.

    Downloads are kept in `tuplet` in the user's cache folder (`$XDG_CACHE_HOME`, `~/.cache`). Labels of
    multi-label sets are 0 and 1.

    Parameters
    ----------
    name : str
        One of `list_datasets()`.
    return_X_y : bool
        Return the pair (X, Y) instead of a `Dataset`.

    Returns
    -------
    Dataset, or (X, Y)

    Examples
    --------
    >>> load_dataset("penguins")
    Dataset(penguins: 344 rows, 5 features, class variables species, island, sex)
    """
    if name == "penguins":
        data = load_penguins()
    elif name in OPENML:
        data = _fetch(name, OPENML[name])
    else:
        raise InputError(_unknown(str(name)))
    return (data.X, data.Y) if return_X_y else data


def list_datasets() -> pd.DataFrame:
    """Return what `load_dataset` can load, one row each.

    Returns
    -------
    pandas DataFrame
        With the columns name, task, rows, features, variables (number of class variables), cardinalities (a
        tuple) and source ("package" or "OpenML").

    Examples
    --------
    >>> list_datasets()[["name", "rows", "variables", "source"]]
           name  rows  variables   source
    0  penguins   344          3  package
    1  emotions   593          6   OpenML
    2     yeast  2417         14   OpenML
    """
    columns = ["name", "task", "rows", "features", "variables", "cardinalities", "source"]
    penguins = ("penguins", "multi-dimensional", 344, 5, 3, (3, 3, 2), "package")
    fetched = [
        (name, "multi-label", each.rows, each.features, each.labels, (2,) * each.labels, "OpenML")
        for name, each in OPENML.items()
    ]
    return pd.DataFrame([penguins, *fetched], columns=columns)


def _unknown(name: str) -> str:
    names = ["penguins", *OPENML]
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}."
    return f"load_dataset: there is no set {name!r}; {hint} Files are read with read_table."


# -- OpenML ------------------------------------------------------------------------------------------------


def _fetch(name: str, known: _OpenMLSet) -> Dataset:
    """Return a set as OpenML has it, with labels 0 and 1."""
    query = ", ".join(f"{key} {value}" for key, value in known.query.items())
    try:
        X, Y = _download(known.query)
    except Exception as error:  # network, parsing, checksums: scikit-learn raises errors of many types
        raise InputError(
            f"load_dataset: {name!r} could not be fetched from OpenML ({query}: {_reason(error)}); check the"
            " network, or read a copy of the set with read_table."
        ) from None
    if (X.shape, Y.shape[1]) != ((known.rows, known.features), known.labels):
        raise InputError(
            f"load_dataset: OpenML ({query}) sent {X.shape[0]} rows, {X.shape[1]} features and {Y.shape[1]}"
            f" labels for {name!r}, which has {known.rows}, {known.features} and {known.labels}; read a copy"
            " of the set with read_table."
        )
    return Dataset(name, X.reset_index(drop=True), _as_numbers(Y), f"{name}, from OpenML ({query}).\n")


def _download(query: dict[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    from sklearn.datasets import fetch_openml

    with _time_limit(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its second attempt, and about versions
        found = fetch_openml(**query, as_frame=True, data_home=str(_cache_folder() / "openml"), n_retries=1)
    return found.data, pd.DataFrame(found.target)


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tuplet"


@contextmanager
def _time_limit() -> Iterator[None]:
    """Give up on servers that do not answer: scikit-learn waits without limit and has no parameter for it."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _reason(error: Exception) -> str:
    text = str(getattr(error, "reason", "") or error).strip().rstrip(".")
    return text.splitlines()[0][:200] if text else type(error).__name__


def _as_numbers(Y: pd.DataFrame) -> pd.DataFrame:
    positive = Y.astype(str).apply(lambda column: column.str.upper().isin(["TRUE", "1"]))
    return positive.astype("int8").reset_index(drop=True)
