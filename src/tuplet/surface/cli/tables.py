"""Tables from files: for training, and in the columns of a fitted model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype

from tuplet.core.exceptions import InputError, NoTargetsError
from tuplet.io.dataset import Dataset
from tuplet.io.tables.chunks import Chunk, read_chunks
from tuplet.io.tables.fields import MISSING
from tuplet.io.tables.read import read_table
from tuplet.io.tables.table import as_dates, as_label
from tuplet.space.containers import listing
from tuplet.space.features.reading import written_numbers
from tuplet.surface.cli.catalogue import split_names
from tuplet.surface.cli.terminal import is_special

_BLOCK = 2_000_000


@dataclass(frozen=True)
class FileOptions:
    """How a file is read.

    Parameters
    ----------
    format, encoding : str or None
        See `read_table`.
    missing : dict
        Texts that are no value, by the names of columns, "*" for all others.
    """

    format: str | None = None
    encoding: str | None = None
    missing: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, format: str | None, encoding: str | None, missing: Sequence[str] | None) -> FileOptions:
        """Return the options, with texts for missing values as "A,B" or "column=A,B"."""
        texts: dict[str, list[str]] = {}
        for name, _, given in (text.rpartition("=") for text in missing or ()):
            texts.setdefault(name.strip() or "*", []).extend(split_names(given))
        return cls(format, encoding, texts)

    def read(self, source: Any, targets: Any = None) -> Dataset:
        """Read a whole table."""
        return read_table(source, targets, self.format, encoding=self.encoding, missing=self.missing or None)


def read_data(
    path: str,
    targets: str | None,
    ignore: str | None,
    options: FileOptions,
    groups: str | None = None,
    time: str | None = None,
) -> Dataset:
    """Read a table without the ignored columns and those of groups and of time, by which rows are sorted."""
    data = options.read(path, split_names(targets) or None)
    left_out = split_names(ignore)
    lacking = [name for name in left_out if name not in data.X]
    if lacking:
        raise InputError(f"--ignore: {path!r} has no feature {lacking[0]!r}; check its name.")
    special = {"--groups": groups, "--time": time}
    for option, name in special.items():
        if name is not None and name not in data.X:
            raise InputError(f"{option}: {path!r} has no column {name!r} besides the class variables.")
    named = [name for name in special.values() if name is not None]
    X = data.X.drop(columns=list({*left_out, *named}))
    if not X.shape[1]:
        raise InputError(f"{path!r} has no columns besides the class variables; features are needed.")
    whole = replace(data, X=X, groups=None if groups is None else data.X[groups].to_numpy())
    return whole if time is None else _in_order(whole, data.X[time])


def _in_order(data: Dataset, time: pd.Series) -> Dataset:
    """Return the rows of a table from the earliest to the latest."""
    time = _typed(time.to_frame())[str(time.name)] if is_string_dtype(time.dtype) else time
    if time.isna().any():
        raise InputError(f"--time: {int(time.isna().sum())} rows have no value in {time.name!r}.")
    if not (pd.api.types.is_numeric_dtype(time) or pd.api.types.is_datetime64_any_dtype(time)):
        raise InputError(
            f"--time: the column {time.name!r} holds neither numbers nor dates; write dates as 2026-01-31."
        )
    order = np.argsort(time.to_numpy(), kind="stable")
    X, Y = (table.iloc[order].reset_index(drop=True) for table in (data.X, data.Y))
    rest: dict[str, Any] = {
        name: None if (values := getattr(data, name)) is None else np.asarray(values)[order]
        for name in ("train", "folds", "groups")
    }
    return replace(data, X=X, Y=Y, **rest)


def read_data_or_all(path: str, targets: str | None, options: FileOptions) -> Dataset:
    """Read a table; without any information on class variables, all columns are features."""
    if targets is not None:
        return read_data(path, targets, None, options)
    is_pipe = path == "-" or is_special(path)
    source: Any = _Stream(path) if is_pipe else path
    try:
        return options.read(source)
    except NoTargetsError:
        if is_pipe:
            source.seek(0)
        return options.read(source, [])


class _Stream(BytesIO):
    """Content of a pipe, which is read twice."""

    def __init__(self, path: str) -> None:
        super().__init__(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes())
        self.name = "standard input" if path == "-" else path


# -- columns of a model ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelColumns:
    """The columns of a file that a model uses.

    Parameters
    ----------
    model : JointClassifier or DecisionClassifier
        Fitted.
    """

    model: Any

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the class variables."""
        return tuple(self.model.space_.names)

    @property
    def features(self) -> list[str] | None:
        """Names of the features, None if the model was fitted to columns without names."""
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _words(self) -> list[str]:
        inner = getattr(self.model, "estimator_", self.model)
        text = getattr(self.model, "text_features_", getattr(inner, "text_features_", []))
        space = self.model.space_
        labels = [
            name
            for name, values in zip(space.names, space.categories, strict=True)
            if any(isinstance(value, str) for value in values.tolist())
        ]
        return [*text, *labels]

    def _missing(self, options: FileOptions) -> dict[str, list[str]]:
        """Return texts that are no value; labels of the model are values, such as NA."""
        others = options.missing.get("*", MISSING)
        space, kept = self.model.space_, {}
        for name, values in zip(space.names, space.categories, strict=True):
            texts = options.missing.get(name, others)
            labels = {value for value in values.tolist() if isinstance(value, str)}
            if labels & set(texts):
                kept[name] = [text for text in texts if text not in labels]
        return {**options.missing, **kept}

    def chunks(
        self, where: str, options: FileOptions, *, rows: int, also_text: Sequence[str] = ()
    ) -> Iterator[Chunk]:
        """Read a file piece by piece."""
        chunks = read_chunks(
            where,
            words=[*self._words(), *also_text],
            format=options.format,
            rows=rows,
            block=_BLOCK,
            encoding=options.encoding,
            missing=self._missing(options) or None,
        )
        for chunk in chunks:
            yield replace(chunk, frame=self._filled(chunk.frame)) if chunk.sparse else chunk

    def _filled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Add the columns that a sparse file leaves out because they are zero in all rows."""
        labelled = any(name in frame for name in self.variables)  # new rows have no labels
        names = [*(self.features or ()), *(self.variables if labelled else ())]
        zeros = pd.DataFrame(0, index=frame.index, columns=[name for name in names if name not in frame])
        return pd.concat([frame, zeros], axis=1)

    def features_of(self, frame: pd.DataFrame, where: str) -> Any:
        """Return the features of a table, in the order of the model."""
        if self.features is None:
            rest = [name for name in frame if name not in self.variables and not str(name).startswith("__")]
            return frame[rest].to_numpy()
        lacking = [name for name in self.features if name not in frame]
        if lacking:
            raise InputError(
                f"{where!r} lacks the column{'s' if len(lacking) > 1 else ''} {listing(lacking, 5)} that the"
                f" model was fitted to; its columns are {listing(list(frame.columns), 12)}."
            )
        words = getattr(self.model, "text_features_", self.features)
        texts = [name for name in self.features if is_string_dtype(frame[name].dtype) and name not in words]
        return frame[self.features].assign(**_typed(frame[texts]))

    def labels_of(self, frame: pd.DataFrame, where: str) -> pd.DataFrame:
        """Return the labels of a table."""
        lacking = [name for name in self.variables if name not in frame]
        if lacking:
            raise InputError(
                f"{where!r} lacks the class variable{'s' if len(lacking) > 1 else ''} {listing(lacking, 5)};"
                " the true labels are needed."
            )
        return pd.DataFrame({name: as_label(frame[name]) for name in self.variables})

    def has_labels(self, frame: pd.DataFrame) -> bool:
        """Whether a table has all class variables."""
        return all(name in frame for name in self.variables)

    def whole(self, where: str, options: FileOptions) -> pd.DataFrame:
        """Read all of a file."""
        return pd.concat([chunk.frame for chunk in self.chunks(where, options, rows=100_000)])


def _typed(texts: pd.DataFrame) -> dict[str, pd.Series]:
    """Convert text to numbers, booleans or dates, for a model that was fitted to these."""
    columns = {str(name): _as_booleans(column) for name, column in texts.items()}
    columns |= {name: as_dates(column) for name, column in columns.items() if is_string_dtype(column.dtype)}
    for name, reader in written_numbers(texts).items():
        columns[name] = pd.Series(reader.read(texts[name])[0], texts.index, name=name)
    return columns


def _as_booleans(column: pd.Series) -> pd.Series:
    lower = column.str.lower()
    if not lower.dropna().isin(["true", "false"]).all():
        return column
    return lower.map({"true": True, "false": False}).astype("boolean")
