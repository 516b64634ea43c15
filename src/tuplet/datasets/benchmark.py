"""Benchmark sets of multi-label and multi-dimensional classification, from a folder or the network."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from tuplet.datasets.base import Dataset
from tuplet.datasets.fetch import OPENML, fetch_from_openml
from tuplet.datasets.folder import (
    Entry,
    cache_folder,
    find_entry,
    find_folder,
    is_network,
    read_entries,
    read_set,
)
from tuplet.datasets.penguins import load_penguins
from tuplet.exceptions import InputError


@overload
def load_dataset(
    name: str,
    *,
    n_labels: int | None = None,
    discretise: bool = True,
    return_X_y: Literal[False] = False,
    folder: str | Path | None = None,
    download: bool = True,
) -> Dataset: ...
@overload
def load_dataset(
    name: str,
    *,
    n_labels: int | None = None,
    discretise: bool = True,
    return_X_y: Literal[True],
    folder: str | Path | None = None,
    download: bool = True,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def load_dataset(
    name: str,
    *,
    n_labels: int | None = None,
    discretise: bool = True,
    return_X_y: bool = False,
    folder: str | Path | None = None,
    download: bool = True,
) -> Dataset | tuple[pd.DataFrame, pd.DataFrame]:
    """Load a benchmark set: its features, class variables, and the split or folds that it comes with.

    Features and class variables that are names are pandas Categoricals; labels 0 and 1 are integers.
    "emotions" and "yeast" are fetched from OpenML, without the split, if no folder has them.

    Parameters
    ----------
    name : str
        One of `list_datasets()`. "penguins" comes with the package.
    n_labels : int, optional
        Keep the labels that are positive most often, in the order of the columns; multi-label sets only.
    discretise : bool
        Whether numeric targets become the classes that the manifest describes, 0, 1, ... from low to high.
        With False they are left as numbers, which no model takes as labels; Rf1 then has its raw targets.
    return_X_y : bool
        Return the pair (X, Y) instead of a `Dataset`.
    folder : str or Path, optional
        Folder with `manifest.json` and the Parquet files; by default the one that the environment variable
        TUPLET_DATA names, or `tuplet` in the user's cache folder (`$XDG_CACHE_HOME`, `~/.cache`). An address
        (`https://...`) will do: what is needed is fetched into the cache, once, and its checksum looked at.
    download : bool
        Whether OpenML may be asked for what no folder has.

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
        if n_labels is not None:
            raise InputError(_not_multi_label(name))
    else:
        data = _load(name, n_labels, discretise, folder, download)
    return (data.X, data.Y) if return_X_y else data


def _load(
    name: str, n_labels: int | None, discretise: bool, folder: str | Path | None, download: bool
) -> Dataset:
    where = find_folder(folder)
    entries = [] if where is None else read_entries(where)
    if download and name in OPENML and all(entry["name"] != name for entry in entries):
        data = fetch_from_openml(name, cache_folder())
        return data if n_labels is None else replace(data, Y=_most_common(data.Y, name, n_labels))
    if where is None:
        if get_close_matches(str(name).lower(), ["penguins"]):
            raise InputError(f"load_dataset: there is no set {name!r}; did you mean 'penguins'?")
        raise InputError(
            "load_dataset: only 'penguins' comes with the package, and there is no folder of benchmark sets;"
            " set TUPLET_DATA to one with manifest.json and a Parquet file for each set, or copy it to"
            f" {str(cache_folder())!r}."
        )
    entry = find_entry(entries, name, ["penguins"])
    frame = read_set(where, entry)
    targets = entry["target_names"]
    features = [name for name in frame.columns if name not in set(targets) and not name.startswith("__")]
    Y = _targets(frame, entry, discretise)
    if n_labels is not None:
        if entry["task"] != "multi-label":
            raise InputError(_not_multi_label(name))
        Y = _most_common(Y, name, n_labels)
    train = frame["__train__"].to_numpy(dtype=bool) if "__train__" in frame else None
    folds = None
    if "__fold__" in frame:
        folds = (frame["__fold__"] - frame["__fold__"].min()).to_numpy(dtype=np.intp)
    return Dataset(name, frame[features].copy(), Y, _description(entry), train, folds)


def _targets(frame: pd.DataFrame, entry: Entry, discretise: bool) -> pd.DataFrame:
    targets = entry["target_names"]
    raw = [f"__raw__{name}" for name in targets]
    if not discretise and set(raw) <= set(frame.columns):
        return frame[raw].set_axis(targets, axis=1)
    Y = frame[targets].copy()
    for name, rule in _cuts(entry).items() if discretise else ():
        # "class = number of cuts strictly below the value"
        Y[name] = np.searchsorted(rule["cuts"], Y[name], side="left").astype(np.int8)
    return Y


def _cuts(entry: Entry) -> dict[str, Any]:
    """Return the rule by which each numeric target becomes classes."""
    return dict(entry.get("mdc_discretisation", {}).get("ours_equal_frequency", {}))


def _most_common(Y: pd.DataFrame, name: str, n_labels: int) -> pd.DataFrame:
    if not isinstance(n_labels, (int, np.integer)) or n_labels not in range(1, Y.shape[1] + 1):
        raise InputError(
            f"load_dataset: n_labels must be from 1 to {Y.shape[1]}, the labels of {name!r}; found"
            f" {n_labels!r}."
        )
    often = np.argsort(-Y.sum().to_numpy(), kind="stable")[:n_labels]
    return Y.iloc[:, np.sort(often)].copy()


def _not_multi_label(name: str) -> str:
    return f"load_dataset: n_labels is for multi-label sets, which {name!r} is not; leave it out."


def _description(entry: Entry) -> str:
    lines = [
        f"{entry['title']}: {entry['what']}.",
        f"Source: {entry['source']}.",
        f"Licence: {entry['licence']}.",
    ]
    lines += [f"Note: {note}." for note in entry["notes"]]
    discretised = entry.get("mdc_discretisation")
    if discretised:
        lines.append(f"Discretisation ({discretised['status']}): {discretised['how']}.")
    lines += [f"{target}: {', '.join(levels)}." for target, levels in entry.get("target_levels", {}).items()]
    return "\n".join(lines) + "\n"


# -- what there is -----------------------------------------------------------------------------------------


def list_datasets(folder: str | Path | None = None) -> pd.DataFrame:
    """Return what `load_dataset` can load, one row each; only the penguins if there is no folder of sets.

    Parameters
    ----------
    folder : str or Path, optional
        See `load_dataset`.

    Returns
    -------
    pandas DataFrame
        With the columns name, task, rows, features, numeric, nominal, variables (number of class variables),
        cardinalities (a tuple), label_cardinality (mean number of positive labels; NaN where it makes no
        sense) and split ("391 / 202" rows to train and test, "folds" or "").

    Examples
    --------
    >>> list_datasets()[["name", "rows", "variables", "cardinalities"]].head(1)
           name  rows  variables cardinalities
    0  penguins   344          3     (3, 3, 2)
    """
    where = find_folder(folder)
    entries = [] if where is None else [entry for entry in read_entries(where) if not is_network(entry)]
    return pd.DataFrame([_penguins(), *map(_row, entries)])


def _row(entry: Entry) -> dict[str, Any]:
    cuts = _cuts(entry)
    cards = zip(entry["target_names"], entry["target_cardinalities"], strict=True)
    return {
        "name": entry["name"],
        "task": "multi-label" if entry["task"] == "multi-label" else "multi-dimensional",
        "rows": entry["rows"],
        "features": entry["features"]["total"],
        "numeric": entry["features"]["numeric"],
        "nominal": entry["features"]["nominal"],
        "variables": entry["n_targets"],
        "cardinalities": tuple(cuts[name]["bins"] if name in cuts else card for name, card in cards),
        "label_cardinality": np.nan if entry["label_cardinality"] is None else entry["label_cardinality"],
        "split": _split(entry),
    }


def _split(entry: Entry) -> str:
    if "__train__" in entry["aux_columns"]:
        return f"{entry['split']['train']} / {entry['split']['test']}"
    return "folds" if "__fold__" in entry["aux_columns"] else ""


def _penguins() -> dict[str, Any]:
    data = load_penguins()
    return {
        "name": "penguins",
        "task": "multi-dimensional",
        "rows": len(data.X),
        "features": data.X.shape[1],
        "numeric": data.X.shape[1],
        "nominal": 0,
        "variables": data.Y.shape[1],
        "cardinalities": tuple(data.Y.nunique().tolist()),
        "label_cardinality": np.nan,
        "split": "",
    }
