"""Predictions as files: CSV, TSV, Parquet or JSON lines, piece by piece, and complete or not at all."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Protocol, cast

import numpy as np
import pandas as pd

from tuplet.core.atomic_files import open_atomic
from tuplet.core.exceptions import InputError, MissingDependencyError
from tuplet.core.typing import Floats
from tuplet.io.tables.source import SUFFIXES
from tuplet.surface.cli.terminal import is_special

FORMATS = ("csv", "tsv", "parquet", "jsonl")
_SUFFIXES = {suffix: format for suffix, format in SUFFIXES.items() if format in FORMATS} | dict.fromkeys(
    (".jsonl", ".ndjson", ".json"), "jsonl"
)

_GROUP = 100_000
"""Rows of a row group of a Parquet file; small groups are slow to read."""


@dataclass(frozen=True)
class Piece:
    """Predictions of some rows.

    Parameters
    ----------
    kept : DataFrame
        Columns that are copied from the input.
    labels : DataFrame
        The decision; missing for variables of which it abstains.
    chances : DataFrame
        `P(name)`, the probability of each label by itself; or `P(name=label)` for all labels.
    combinations : list of (DataFrame, array (n,))
        The most probable combinations, best first, with their probabilities; where there are fewer, labels
        are missing and the probability is 0.
    """

    kept: pd.DataFrame
    labels: pd.DataFrame
    chances: pd.DataFrame
    combinations: list[tuple[pd.DataFrame, Floats]]

    def flat(self) -> pd.DataFrame:
        """One line per row: copied columns, labels, their probabilities, then combinations and theirs."""
        parts = [self.kept, self.labels, self.chances]
        for rank, (labels, chance) in enumerate(self.combinations, 1):
            parts.append(labels.add_prefix(f"top{rank}."))
            parts.append(pd.DataFrame({f"top{rank}.probability": chance}, index=labels.index))
        return pd.concat(parts, axis=1)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one JSON object per row, with an object for each part."""
        kept, labels, chances = _rows(self.kept), _rows(self.labels), _rows(self.chances)
        combinations = [(_rows(frame), chance.tolist()) for frame, chance in self.combinations]
        for i in range(len(labels)):
            record = {**kept[i], "labels": labels[i], "probabilities": chances[i]}
            if combinations:
                record["combinations"] = [
                    {"labels": frame[i], "probability": chance[i]}
                    for frame, chance in combinations
                    if chance[i] > 0
                ]
            yield record


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    names = [str(name) for name in frame.columns]
    columns = [[_plain(value) for value in values.tolist()] for _, values in frame.items()]
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    """Return a value that JSON can represent; missing values are null."""
    if value is pd.NA or value is pd.NaT or (isinstance(value, float) and not np.isfinite(value)):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


# -- formats -----------------------------------------------------------------------------------------------


class _Sink(Protocol):
    """Writer of pieces with the same columns."""

    def write(self, piece: Piece) -> None:
        """Add rows."""

    def close(self) -> None:
        """Write the remaining rows."""


def output_format(path: str, given: str | None) -> str:
    """Return the given format, or that of the suffix."""
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"--out-format: expected one of {', '.join(FORMATS)}, found {given!r}.")
        return given
    if path == "-" or is_special(path):
        return "csv"
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            f"--out: the suffix of {path!r} is not a known format; use one of {', '.join(_SUFFIXES)}, or"
            " --out-format."
        )
    return _SUFFIXES[suffix]


@contextmanager
def open_sink(path: str, format: str) -> Iterator[_Sink]:
    """Open a sink; the file is replaced when the block ends without an error."""
    if path == "-":
        sink = _sink(sys.stdout.buffer, format)
        yield sink
        sink.close()
        sys.stdout.buffer.flush()
        return
    place = Path(path).expanduser()
    try:
        # A pipe or device is written to; of a link, the target is replaced.
        with place.open("wb") if is_special(path) else open_atomic(place.resolve()) as file:
            packed = (
                cast(IO[bytes], gzip.GzipFile("", "wb", fileobj=file, mtime=0))
                if path.endswith(".gz")
                else file
            )
            sink = _sink(packed, format)
            yield sink
            sink.close()
            if packed is not file:
                packed.close()
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"--out: {path!r} cannot be written: {error.strerror}.") from None


def _sink(file: IO[bytes], format: str) -> _Sink:
    if format == "parquet":
        return _Parquet(file)
    return _Lines(file) if format == "jsonl" else _Text(file, "\t" if format == "tsv" else ",")


class _Text:
    def __init__(self, file: IO[bytes], mark: str) -> None:
        self._file, self._mark, self._started = file, mark, False

    def write(self, piece: Piece) -> None:
        text = (
            _exact(piece)
            .flat()
            .to_csv(
                sep=self._mark,
                index=False,
                header=not self._started,
                float_format="%.6g",
                lineterminator="\n",
            )
        )
        self._file.write(text.encode())
        self._started = True

    def close(self) -> None:
        """All rows have been written."""


def _exact(piece: Piece) -> Piece:
    """Return labels and copied columns with all digits; only probabilities are rounded."""
    return replace(
        piece,
        kept=_digits(piece.kept),
        labels=_digits(piece.labels),
        combinations=[(_digits(labels), chance) for labels, chance in piece.combinations],
    )


def _digits(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({name: _column_digits(column) for name, column in frame.items()}, index=frame.index)


def _column_digits(column: pd.Series) -> pd.Series:
    values = getattr(column.dtype, "categories", column)
    if values.dtype.kind != "f":
        return column
    return column.astype(object).map(lambda x: repr(float(x)).removesuffix(".0"), na_action="ignore")


class _Lines:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, piece: Piece) -> None:
        lines = (json.dumps(each, ensure_ascii=False, allow_nan=False) for each in piece.records())
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """All rows have been written."""


class _Parquet:
    def __init__(self, file: IO[bytes]) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise MissingDependencyError(
                "Parquet files need pyarrow; run `pip install tuplet[data]`."
            ) from None
        self._arrow, self._file = pyarrow, file
        self._schema: Any = None
        self._writer: Any = None
        self._waiting: list[Any] = []

    def write(self, piece: Piece) -> None:
        # The types of the first piece apply to all: a later one may lack all labels of a variable.
        part = self._arrow.Table.from_pandas(piece.flat(), self._schema, preserve_index=False, nthreads=1)
        self._schema = part.schema
        self._waiting.append(part)
        if sum(len(part) for part in self._waiting) >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        whole = self._arrow.concat_tables(self._waiting)
        if self._writer is None:
            self._writer = self._arrow.parquet.ParquetWriter(self._file, whole.schema)
        self._writer.write_table(whole)
        self._waiting = []

    def close(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()
