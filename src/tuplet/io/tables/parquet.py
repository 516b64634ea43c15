"""Parquet files, in and out, and Feather files, in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import pandas as pd

from tuplet.core.atomic_files import write_bytes
from tuplet.core.exceptions import InputError, MissingDependencyError
from tuplet.io.dataset import Dataset
from tuplet.io.tables.source import FileContent, Where
from tuplet.io.tables.table import FileTable, all_columns, apply_note, make_note, require_writable

_KEY = b"tuplet"


def _arrow(kind: str = "Parquet") -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError(f"{kind} files need pyarrow; run `pip install tuplet[data]`.") from None
    return pyarrow, pyarrow.parquet


def read_parquet(source: FileContent) -> FileTable:
    """Read a Parquet file, with the note of `write_parquet` if it has one."""
    pyarrow, parquet = _arrow()
    if not source.content:
        source.fail("the file is empty.")
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(source.content), page_checksum_verification=True)
        table = file.read(use_threads=False)
        note = (table.schema.metadata or {}).get(_KEY)
        frame = _frame(source, pyarrow, table)
    except InputError:
        raise
    except Exception as error:  # what a damaged file makes of pyarrow and pandas is of every type
        _damaged(source, error)
    if not len(frame):
        source.fail("there are no rows.")
    read = FileTable(frame, None, source.stem)
    return read if note is None else apply_note(read, _parsed(source, note), source)


def read_feather(source: FileContent) -> FileTable:
    """Read a Feather file, which is one of Arrow's."""
    pyarrow, _ = _arrow("Feather")
    from pyarrow import feather

    try:
        frame = _frame(source, pyarrow, feather.read_table(pyarrow.BufferReader(source.content)))
    except InputError:
        raise
    except Exception as error:
        _damaged(source, error, "Feather")
    if not len(frame):
        source.fail("there are no rows.")
    return FileTable(frame, None, source.stem)


def parquet_batches(source: FileContent, path: Path, rows: int) -> Iterator[tuple[pd.DataFrame, int]]:
    """Read a Parquet file some rows at a time, each with the number of rows of the whole file."""
    pyarrow, parquet = _arrow()
    try:
        # Without a buffer, pages of a row group would be read all at once, whatever the size of the batches.
        with parquet.ParquetFile(path, page_checksum_verification=True, buffer_size=1 << 20) as file:
            total = file.metadata.num_rows
            if not total:
                source.fail("there are no rows.")
            for batch in file.iter_batches(rows, use_threads=False):
                yield _frame(source, pyarrow, pyarrow.Table.from_batches([batch])), total
    except InputError:
        raise
    except Exception as error:
        _damaged(source, error)


def _frame(source: FileContent, pyarrow: Any, table: Any) -> pd.DataFrame:
    table.validate(full=True)
    _require_flat(source, pyarrow, table)
    frame: pd.DataFrame = table.to_pandas(use_threads=False)
    if frame.columns.has_duplicates or not all(isinstance(name, str) for name in frame.columns):
        source.fail("columns need names that are strings, each once; rename them.")
    return frame


def _damaged(source: FileContent, error: Exception, kind: str = "Parquet") -> NoReturn:
    source.fail(f"the {kind} file is damaged or cut short ({_brief(error)}); copy it again.")


def _brief(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:120]}" if lines else type(error).__name__


def _require_flat(source: FileContent, pyarrow: Any, table: Any) -> None:
    names = table.schema.names
    if len(set(names)) < len(names):
        source.fail("two columns have the same name; rename one.")
    for field in table.schema:
        if pyarrow.types.is_nested(field.type):
            source.fail(f"the column {field.name!r} holds {field.type}, not single values; flatten it.")


def _parsed(source: FileContent, note: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(note)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        source.fail("the note of write_parquet is damaged; copy the file again.")
    return parsed


def write_parquet(dataset: Dataset, path: Where) -> None:
    """Write a data set as a Parquet file from which `read_table` brings it back exactly.

    Features come first, then class variables, then `__train__` and `__fold__` where there are such; which is
    which, and the order of categories, is noted in the file. The index of the rows is not kept. An existing
    file is replaced when the new one is complete.

    Parameters
    ----------
    dataset : Dataset
    path : str, Path or file object
        "-" is standard output.

    Examples
    --------
    >>> from io import BytesIO
    >>> from tuplet.io import load_penguins, read_table
    >>> file = BytesIO()
    >>> write_parquet(load_penguins(), file)
    >>> read_table(BytesIO(file.getvalue()))
    Dataset(penguins: 344 rows, 5 features, class variables species, island, sex)
    """
    pyarrow, parquet = _arrow()
    require_writable(dataset, "write_parquet")
    try:
        table = pyarrow.Table.from_pandas(all_columns(dataset), preserve_index=False, nthreads=1)
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        raise InputError(
            f"write_parquet: a column cannot be written ({_brief(error)}); convert it."
        ) from None
    for field in table.schema:
        if pyarrow.types.is_nested(field.type):
            raise InputError(
                f"write_parquet: {field.name!r} holds {field.type}, not single values; flatten it."
            )
    note = json.dumps(make_note(dataset, "write_parquet")).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: note})

    def write(file: IO[bytes]) -> None:
        parquet.write_table(table, file, write_page_checksum=True)

    write_bytes(path, write, "write_parquet")
