"""`tuplet data` and `tuplet info`: data sets by name, conversion of tables, and what a file holds."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pandas as pd

from tuplet.core.atomic_files import write_bytes
from tuplet.core.exceptions import InputError
from tuplet.io.dataset import Dataset
from tuplet.io.loading import list_datasets, load_dataset
from tuplet.io.tables.arff_writer import write_arff
from tuplet.io.tables.fields import MISSING
from tuplet.io.tables.parquet import write_parquet
from tuplet.io.tables.source import suffix_format
from tuplet.io.tables.table import all_columns
from tuplet.space.features.reading import number_styles
from tuplet.space.labels import is_ordered
from tuplet.space.words import clip, column_kind, first_words, values_text
from tuplet.surface.cli.terminal import print_table, print_text, print_warning, result_console

if TYPE_CHECKING:
    from tuplet.io.saved_models.files import ModelHeader

_WRITERS = ("arff", "csv", "parquet", "tsv")
_LABELS = 60
_WRITTEN_BY = ("tuplet", "scikit-learn")
_COLUMNS = 40


def list_sets() -> None:
    """Print the sets that `load_dataset` can load."""
    sets = list_datasets()
    columns = ["name", "task", "rows", "features", "variables", "source"]
    rows = [tuple(line) for line in sets[columns].astype(str).itertuples(index=False)]
    console = result_console()
    print_table("Data sets", columns, rows, left=2)
    console.print("\n`tuplet data get NAME FILE` writes one to a file.", markup=False)


def convert(data: Dataset, target: str) -> None:
    """Write a table and print its size."""
    write_dataset(data, target)
    n, d, m = len(data.X), data.X.shape[1], data.Y.shape[1]
    print_text(f"{n:,} rows, {d:,} features, {m:,} class variables written to {target}.")


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
        raise InputError(f"The suffix of {target!r} is not a known format; use .{', .'.join(_WRITERS)}.")


def _warn_of_lost_text(frame: pd.DataFrame) -> None:
    """Warn about columns with text that would be read as a missing value."""
    for name, column in frame.items():
        if column.dtype.kind not in "biufmM" and column.dropna().astype(str).isin(MISSING).any():
            print_warning(
                f"the column {str(name)!r} holds text that means a missing value in text files; write"
                " Parquet or ARFF to keep it."
            )


def get(name: str, target: str) -> None:
    """Write a data set to a file."""
    convert(load_dataset(name), target)


# -- info --------------------------------------------------------------------------------------------------


def describe_model(path: str, header: ModelHeader, as_json: bool) -> None:
    """Print the header of a model file."""
    if as_json:
        sys.stdout.write(json.dumps(asdict(header), indent=2, default=str) + "\n")
        return
    console = result_console()
    facts: list[tuple[str, Any]] = [
        ("model", header.model),
        ("saved", header.saved.replace("T", " ").replace("+00:00", " UTC")),
        ("training rows", "unknown" if header.n_rows is None else f"{header.n_rows:,}"),
        ("features", "unknown" if header.n_features is None else f"{header.n_features:,}"),
    ]
    if header.log_likelihood is not None:
        facts.append(("held-out log-likelihood", f"{header.log_likelihood:.3f} per row"))
    facts.append(("written by", ", ".join(f"{name} {header.versions.get(name)}" for name in _WRITTEN_BY)))
    print_table(Path(path).name, ["", ""], facts, left=2)
    console.print()
    rows = [
        (each.name, first_words([str(label) for label in each.labels], ", ", _LABELS), len(each.labels))
        for each in header.variables
    ]
    print_table("Class variables", ["name", "values", "labels"], rows, left=2)
    given = [(name, clip(value, _LABELS)) for name, value in header.parameters.items()]
    console.print()
    print_table("Parameters", ["name", "value"], given, left=2)


def describe_data(data: Dataset, as_json: bool) -> None:
    """Print rows, columns and class variables of a table."""
    variables = {str(name): _labels(column) for name, column in data.Y.items()}
    features = {str(name): _feature(column) for name, column in data.X.items()}
    for name, style in number_styles(data.X).items():
        features[name] |= {"type": "numeric text", "written": style}
    combinations = len(data.Y.drop_duplicates())
    if as_json:
        answer = {
            "name": data.name,
            "rows": len(data.X),
            "combinations": combinations,
            "class_variables": variables,
            "features": features,
        }
        sys.stdout.write(json.dumps(answer, indent=2, default=str) + "\n")
        return
    console = result_console()
    labels = f"{data.Y.shape[1]:,} class variables, {combinations:,} combinations of labels"
    console.print(
        f"{data.name}: {len(data.X):,} rows, {data.X.shape[1]:,} {'features' if variables else 'columns'}"
        + (f", {labels}" if variables else "; use --targets to name the class variables")
    )
    if variables:
        _show_variables(variables)
    lines = [
        (name, each["type"], clip(each["values"], _LABELS), each["missing"])
        for name, each in list(features.items())[:_COLUMNS]
    ]
    console.print()
    print_table("Features" if variables else "Columns", ["name", "type", "values", "missing"], lines, left=3)
    _more(len(features))


def _show_variables(variables: dict[str, dict[str, Any]]) -> None:
    rows = [
        (
            name,
            first_words([f"{label} {n:,}" for label, n in each["counts"].items()], ", ", _LABELS),
            each["missing"],
        )
        for name, each in list(variables.items())[:_COLUMNS]
    ]
    result_console().print()
    print_table("Class variables", ["name", "rows per label", "missing"], rows, left=2)
    _more(len(variables))


def _more(n: int) -> None:
    if n > _COLUMNS:
        result_console().print(f"... {n - _COLUMNS:,} more")


def _labels(column: pd.Series) -> dict[str, Any]:
    counts = column.value_counts(sort=not is_ordered(column.dtype))
    return {"counts": {str(k): int(v) for k, v in counts.items()}, "missing": int(column.isna().sum())}


def _feature(column: pd.Series) -> dict[str, Any]:
    missing = int(column.isna().sum())
    return {"type": column_kind(column), "values": values_text(column), "missing": missing}
