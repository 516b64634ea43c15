"""`tuplet data`: data sets by name, and tables from one format into another."""

from __future__ import annotations

from typing import IO

import pandas as pd

from tuplet.cli.terminal import out, remark, say, show
from tuplet.datasets import Dataset, list_datasets, load_dataset, write_arff, write_parquet
from tuplet.datasets.files.atomic import write_bytes
from tuplet.datasets.files.source import suffix_format
from tuplet.datasets.files.table import all_columns
from tuplet.datasets.files.text import MISSING
from tuplet.exceptions import InputError

_WRITERS = ("arff", "csv", "parquet", "tsv")


def list_sets() -> None:
    """Print what `load_dataset` can load."""
    sets = list_datasets()
    columns = ["name", "task", "rows", "features", "variables", "source"]
    rows = [tuple(line) for line in sets[columns].astype(str).itertuples(index=False)]
    console = out()
    show("Data sets", columns, rows, left=2)
    console.print("\n`tuplet data get NAME FILE` writes one to a file.", markup=False)


def convert(data: Dataset, target: str) -> None:
    """Write a table and print its size."""
    write_dataset(data, target)
    n, d, m = len(data.X), data.X.shape[1], data.Y.shape[1]
    say(f"{n:,} rows, {d:,} features, {m:,} class variables into {target}.")


def write_dataset(data: Dataset, target: str) -> None:
    """Write a table in the format of the suffix."""
    format = suffix_format(target)
    if format == "parquet":
        write_parquet(data, target)
    elif format == "arff":
        write_arff(data, target)
    elif format in ("csv", "tsv"):
        frame = all_columns(data)
        _warn_of_lost_text(frame)
        text = frame.to_csv(index=False, sep="\t" if format == "tsv" else ",", lineterminator="\n")

        def write(file: IO[bytes]) -> None:
            file.write(text.encode())

        write_bytes(target, write, "data convert")
    else:
        raise InputError(f"The suffix of {target!r} tells no format; use one of .{', .'.join(_WRITERS)}.")


def _warn_of_lost_text(frame: pd.DataFrame) -> None:
    """Name the columns that hold text that is read as a missing value."""
    for name, column in frame.items():
        if column.dtype.kind not in "biufmM" and column.dropna().astype(str).isin(MISSING).any():
            remark(
                f"the column {str(name)!r} holds text that stands for a missing value in such files; write"
                " Parquet or ARFF to keep it."
            )


def get(name: str, target: str) -> None:
    """Write a data set to a file."""
    convert(load_dataset(name), target)
