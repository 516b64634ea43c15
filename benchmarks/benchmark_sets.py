"""Benchmark sets of multi-label and multi-dimensional classification, from the folder that TUPLET_DATA names.

The folder has a Parquet file for each set, and `manifest.json`, which describes the sets: their class
variables, the checksums of the files, and how numeric targets are made discrete.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.io import Dataset, read_table


def read_manifest() -> dict[str, dict[str, Any]]:
    """Return the entries of the manifest by name, Bayesian networks included."""
    text = (_folder() / "manifest.json").read_text(encoding="utf-8")
    return {entry["name"]: entry for entry in json.loads(text)["sets"]}


def benchmark_names() -> list[str]:
    """Return the names of all sets."""
    return [name for name, entry in read_manifest().items() if entry["task"] != "bayesian-network"]


def load_benchmarks(*names: str) -> dict[str, Dataset]:
    """Return sets by name, as `compare` takes them."""
    return {name: load_benchmark(name) for name in names}


def load_benchmark(name: str, *, n_labels: int | None = None, discretise: bool = True) -> Dataset:
    """Return a benchmark set with the split or folds that it comes with.

    Parameters
    ----------
    name : str
        One of `benchmark_names()`.
    n_labels : int, optional
        Keep the labels that are positive most often, in the order of the columns; multi-label sets only.
    discretise : bool
        Whether numeric targets become the classes that the manifest describes, 0, 1, ... from low to high.
        With False they are left as numbers.
    """
    if name not in benchmark_names():
        raise InputError(f"There is no benchmark set {name!r}; there are {', '.join(benchmark_names())}.")
    entry = read_manifest()[name]
    path = _folder() / entry["file"]
    if hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
        raise InputError(f"{str(path)!r} is not the file that the manifest describes: its SHA-256 differs.")
    data = read_table(path, targets=entry["target_names"], name=name)
    Y = _discrete(data.Y, entry) if discretise else _numeric(data.Y, path)
    return replace(data, Y=Y if n_labels is None else _most_frequent(Y, entry, n_labels))


def _folder() -> Path:
    folder = os.environ.get("TUPLET_DATA")
    if not folder:
        raise InputError("Set TUPLET_DATA to the folder with manifest.json and the benchmark sets.")
    return Path(folder)


def _discrete(Y: pd.DataFrame, entry: dict[str, Any]) -> pd.DataFrame:
    rules = entry.get("mdc_discretisation", {}).get("ours_equal_frequency", {})
    # "class = number of cuts strictly below the value"
    classes = {
        name: np.searchsorted(rule["cuts"], Y[name], side="left").astype(np.int8)
        for name, rule in rules.items()
    }
    return Y.assign(**classes)


def _numeric(Y: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the raw targets where the file has them beside the classes."""
    frame = pd.read_parquet(path)
    raw = {name: frame[f"__raw__{name}"] for name in Y if f"__raw__{name}" in frame}
    return Y.assign(**raw)


def _most_frequent(Y: pd.DataFrame, entry: dict[str, Any], n_labels: int) -> pd.DataFrame:
    if entry["task"] != "multi-label" or n_labels not in range(1, Y.shape[1] + 1):
        raise InputError(
            f"n_labels must be from 1 to the number of labels of a multi-label set; found {n_labels!r} for"
            f" {entry['name']!r}, which is {entry['task']} with {Y.shape[1]} class variables."
        )
    order = np.argsort(-Y.sum().to_numpy(), kind="stable")[:n_labels]
    return Y.iloc[:, np.sort(order)].copy()
