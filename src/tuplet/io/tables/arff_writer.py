"""Writer of ARFF files, in MEKA's form or Mulan's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from tuplet.core.atomic_files import write_bytes
from tuplet.core.exceptions import InputError
from tuplet.io.dataset import Dataset
from tuplet.io.tables.arff_reader import NOTE
from tuplet.io.tables.source import Where
from tuplet.io.tables.table import make_note, make_split_note, require_writable
from tuplet.io.tables.targets import format_label_list

_CHUNK = 2_000
_EXACT = 2**53
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "'": "\\'"}
_PLAIN = re.compile(r"[^\s,'\"%{}\\?@]+")


def write_arff(dataset: Dataset, path: Where, *, meka: bool = True) -> None:
    """Write a data set as an ARFF file from which `read_table` brings it back exactly.

    Class variables and Categoricals are nominal attributes with their values in order, text is of type
    string. What ARFF has no words for (types of numbers, ordered categories, split, folds) goes into a
    comment, which other programs pass over. The index of the rows is not kept. An existing file is replaced
    when the new one is complete.

    Parameters
    ----------
    dataset : Dataset
    path : str, Path or file object
        "-" is standard output; a path that ends in .gz is packed.
    meka : bool
        With True, class variables come first and the relation has `-C m`, as MEKA requires. With False they
        come last, and a list of labels in Mulan's XML is written beside the file.

    Examples
    --------
    >>> from io import BytesIO
    >>> from tuplet.io import load_penguins, read_table
    >>> file = BytesIO()
    >>> write_arff(load_penguins(), file)
    >>> print(file.getvalue().decode().splitlines()[1])
    @relation 'penguins: -C 3'
    >>> read_table(BytesIO(file.getvalue()))
    Dataset(penguins: 344 rows, 5 features, class variables species, island, sex)
    """
    require_writable(dataset, "write_arff")
    parts = [dataset.Y, dataset.X] if meka else [dataset.X, dataset.Y]
    columns = [
        _Column(part.iloc[:, j], is_target=part is dataset.Y) for part in parts for j in range(part.shape[1])
    ]
    name = dataset.name.partition(":")[0].strip() or "data"
    relation = f"{name}: -C {dataset.Y.shape[1]}" if meka and dataset.Y.shape[1] else name
    note = json.dumps(make_note(dataset, "write_arff") | make_split_note(dataset))

    def write(file: IO[bytes]) -> None:
        header = [
            f"{NOTE}{note}",
            f"@relation {_quote(relation)}",
            "",
            *(column.declared for column in columns),
        ]
        file.write(("\n".join([*header, "", "@data"]) + "\n").encode())
        for text in _rows(columns, len(dataset.X)):
            file.write(text.encode())

    if not meka and isinstance(path, (str, Path)) and str(path) != "-":
        labels = format_label_list([str(label) for label in dataset.Y.columns])
        beside = Path(str(path).removesuffix(".gz")).with_suffix(".xml")
        write_bytes(beside, lambda file: _write_text(file, labels), "write_arff")
    write_bytes(path, write, "write_arff")


def _write_text(file: IO[Any], text: str) -> None:
    file.write(text.encode())


def _rows(columns: list[_Column], n: int) -> Iterator[str]:
    for start in range(0, n, _CHUNK):
        rows = zip(*(column.texts(slice(start, start + _CHUNK)) for column in columns), strict=True)
        yield "".join(",".join(row) + "\n" for row in rows)


class _Column:
    """One column: its line in the header, and its values as text."""

    def __init__(self, column: pd.Series, is_target: bool) -> None:
        self.column = column.reset_index(drop=True)
        self.name = str(column.name)
        self.quoted: list[str] | None = None
        self.declared = f"@attribute {_quote(self.name)} {self._kind(is_target)}"

    def _kind(self, is_target: bool) -> str:
        dtype = self.column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return self._nominal(self.column)
        if pd.api.types.is_bool_dtype(dtype):
            answers = pd.CategoricalDtype([0, 1])
            return self._nominal(self.column.astype("Int8").astype(answers))
        if dtype.kind in "iu" or (dtype.kind == "f" and is_target and self._is_whole()):
            self._require_exact()
            return self._nominal(self._labels()) if is_target else "integer"
        if dtype.kind == "f":
            return "numeric"
        if dtype.kind == "M":
            return self._date()
        if pd.api.types.infer_dtype(self.column, skipna=True) in ("string", "empty"):
            return self._nominal(self.column.astype("category")) if is_target else "string"
        raise InputError(
            f"write_arff: {self.name!r} holds {dtype}, which ARFF does not have; convert it to numbers, text"
            " or a Categorical."
        )

    def _nominal(self, column: pd.Series) -> str:
        values = [str(category) for category in column.cat.categories]
        if len(set(values)) < len(values):
            raise InputError(f"write_arff: two categories of {self.name!r} are written alike; rename one.")
        self.column = column
        self.quoted = [*map(_quote, values), "?"]
        return "{" + ",".join(self.quoted[:-1]) + "}"

    def _labels(self) -> pd.Series:
        """Return whole numbers as categories; both 0 and 1 if there are no others."""
        found = sorted(set(self.column.dropna().astype(int).tolist()))
        categories = [0, 1] if set(found) <= {0, 1} else found
        return pd.Series(pd.Categorical(self.column, categories=categories), name=self.name)

    def _is_whole(self) -> bool:
        numbers = self.column.dropna().to_numpy(dtype=float)
        return bool(np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all())

    def _require_exact(self) -> None:
        present = self.column.dropna()
        limit = 2**63 if len(present) == len(self.column) and self.column.dtype.kind == "i" else _EXACT
        if len(present) and max(abs(int(present.max())), abs(int(present.min()))) >= limit:
            raise InputError(
                f"write_arff: {self.name!r} holds whole numbers that ARFF cannot keep exactly; use"
                " write_parquet, or convert them to text."
            )

    def _date(self) -> str:
        present = self.column.dropna()
        if getattr(self.column.dtype, "tz", None) is not None or (present.dt.microsecond % 1000).any():
            raise InputError(
                f"write_arff: {self.name!r} holds points in time with a zone or microseconds, which ARFF does"
                " not have; use write_parquet."
            )
        return "date \"yyyy-MM-dd'T'HH:mm:ss.SSS\""

    def texts(self, rows: slice) -> list[str]:
        """Return values as the file has them, a question mark where one is missing."""
        part = self.column.iloc[rows]
        if self.quoted is not None:
            return [self.quoted[code] for code in part.cat.codes]
        missing = part.isna().to_numpy()
        if part.dtype.kind == "M":
            texts = part.dt.strftime("%Y-%m-%dT%H:%M:%S.%f").str[:-3].fillna("?").tolist()
        elif part.dtype.kind in "iu":
            texts = [str(value) for value in part.tolist()]
        elif part.dtype.kind == "f":
            texts = list(map(repr, part.astype(float).tolist()))
        else:
            texts = [_quote(str(value)) for value in part.tolist()]
        return ["?" if gap else text for gap, text in zip(missing, texts, strict=True)]


def _quote(text: str) -> str:
    """Return a name or value as a file has it: in quotes where it needs them."""
    if _PLAIN.fullmatch(text):
        return text
    return "'" + "".join(_ESCAPES.get(mark, mark) for mark in text) + "'"
