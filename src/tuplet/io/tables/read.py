"""One function that reads a table of any format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from tuplet.core.exceptions import InputError, NoTargetsError
from tuplet.io.dataset import Dataset
from tuplet.io.tables.arff_reader import read_arff
from tuplet.io.tables.fields import Missing
from tuplet.io.tables.json_lines import read_json_lines
from tuplet.io.tables.mat import read_mat
from tuplet.io.tables.parquet import read_feather, read_parquet
from tuplet.io.tables.sheets import read_workbook
from tuplet.io.tables.source import TEXT_FORMATS, FileContent, Where, as_utf8, detect, open_source
from tuplet.io.tables.svmlight import read_svmlight_table
from tuplet.io.tables.table import FileTable, make_dataset, take_shipped
from tuplet.io.tables.targets import Targets, choose_targets, find_label_list, read_label_list
from tuplet.io.tables.text import read_csv, read_tsv

_READERS: dict[str, Callable[[FileContent], FileTable]] = {
    "arff": read_arff,
    "feather": read_feather,
    "mat": read_mat,
    "parquet": read_parquet,
    "svmlight": read_svmlight_table,
}

_READERS_OF_FIELDS: dict[str, Callable[[FileContent, Missing | None], FileTable]] = {
    "csv": read_csv,
    "jsonl": read_json_lines,
    "tsv": read_tsv,
    "xlsx": read_workbook,
}
"""Formats in which a text may stand for a missing value."""


def read_table(
    source: Where,
    targets: Targets | None = None,
    format: str | None = None,
    *,
    labels: Where | None = None,
    name: str | None = None,
    encoding: str | None = None,
    missing: Missing | None = None,
) -> Dataset:
    r"""Read features and class variables from a file.

    Parameters
    ----------
    source : str, Path or file object
        The file, "-" for standard input, or an open file; gzip is unpacked, and zip with one table inside.
    targets : str, int, slice, re.Pattern or a sequence of these, optional
        The class variables; all other columns are features. A string is the name of a column; where no column
        has that name, a position ("-1" is the last column), a slice of positions ("-3:" is the last three), a
        regular expression if it starts with "re:", or else a pattern with `*`, `?` and `[...]`. Regular
        expressions match whole names. An integer is a position, from 0, or from the end if negative. An empty
        list: all are features.
        By default those that the file itself declares: see Notes.
    format : {"arff", "csv", "feather", "jsonl", "mat", "parquet", "svmlight", "tsv", "xlsx"}, optional
        By default that of the suffix, or what the content looks like.
    labels : str, Path or file object, optional
        A label list in Mulan's XML, instead of `targets`.
    name : str, optional
        Name of the data set; by default that of the file.
    encoding : str, optional
        Encoding of a file of text, such as "cp1252". By default UTF-8 or UTF-16; what is neither is read as
        cp1252, or latin-1 if cp1252 lacks a byte of it. A warning names any other than UTF-8.
    missing : sequence of str, or mapping of names of columns to such, optional
        Texts that are no value, instead of the usual ones (see csv below); an empty field never is one. A
        mapping has them by column, and with the name "*" for all others: with `missing={"country": []}` NA is
        a country.

    Returns
    -------
    Dataset

    Raises
    ------
    DataFormatError
        If the file is damaged, cut short, or not of its format; `line` is the place.
    InputError
        If there is no such file.
    NoTargetsError
        If neither the file nor `targets` determines the class variables.

    Notes
    -----
    csv, tsv
        The first line names the columns; they are separated by commas, semicolons, tabs or `|`, or as a line
        `sep=;` before it declares. A first column without a name is the index. Columns are numbers, booleans
        (true, false) or text without blanks at its ends; features that are all dates or points in time of ISO
        8601 (2024-05-16) are dates. Numbers as 12.345,5 or 45% are text here, which models read as numbers
        (see `FeatureEncoder`). Empty fields, `?`, `NA`, `N/A`, `NaN`, `null` and errors of spreadsheets, such
        as `#N/A` and `#DIV/0!`, are missing. Lines that begin with `#` are comments if they have
        not as many fields as the others. Separators at the end of all lines, and rows without any value at
        the end of the file, are left out.
    jsonl
        An object for each line, or an array of objects. Text is never missing, unless `missing` has it.
    xlsx
        Needs openpyxl. The first sheet with values, whose first row names the columns.
    parquet, feather
        Need pyarrow. Files of `write_parquet` declare their class variables.
    arff
        Dense and sparse. Nominal attributes are Categoricals in the declared order. The class variables are
        what `write_arff` noted, MEKA's `-C n` in the relation name (the first n, or the last |n|), or those
        of Mulan's XML of the same name beside the file. Attributes that a sparse row leaves out are 0 or the
        first declared value, as in Weka; strings and dates are missing.
    mat
        Of the multi-dimensional collection, with `data`, `target` and perhaps `data_type` and `idx_folds`;
        also matrices `data` and `target` of other collections, in either orientation.
    svmlight
        Labels, then `index:value`; one 0/1 class variable for each label. Features are spread out into a
        frame; `read_svmlight` leaves them sparse.

    Labels 0 and 1 become integers. Columns that start with two underscores are never features: `__train__`
    and `__fold__` are the split and the folds, others are left out.

    Examples
    --------
    >>> from io import StringIO
    >>> file = StringIO("age,late,place\n31,0,north\n45,1,south\n,1,north\n")
    >>> data = read_table(file, targets=["late", "place"], name="trains")
    >>> data
    Dataset(trains: 3 rows, 1 feature, class variables late, place)
    >>> data.X["age"].tolist()
    [31.0, 45.0, nan]
    """
    if targets is not None and labels is not None:
        raise InputError("read_table: targets and labels both name the class variables; give one of them.")
    opened = open_source(source)
    kind = detect(opened, format)
    opened = as_utf8(opened, encoding) if kind in TEXT_FORMATS else opened
    table = take_shipped(_file_table(opened, kind, missing), opened)
    chosen = _targets(table, opened, targets, labels)
    return make_dataset(table if name is None else replace(table, name=name), chosen)


def read_frame(source: FileContent, format: str, missing: Missing | None = None) -> pd.DataFrame:
    """Return all columns of a file of this format, including those that are not features."""
    source = as_utf8(source, None) if format in TEXT_FORMATS else source
    return _file_table(source, format, missing).frame


def _file_table(source: FileContent, format: str, missing: Missing | None) -> FileTable:
    if format in _READERS:
        return _READERS[format](source)
    return _READERS_OF_FIELDS[format](source, missing)


def _targets(
    table: FileTable, source: FileContent, targets: Targets | None, labels: Where | None
) -> list[str]:
    columns = [str(name) for name in table.frame.columns]
    if targets is not None:
        return choose_targets(targets, columns, source.name)
    if labels is not None:
        return read_label_list(open_source(labels), columns)
    if table.targets is not None:
        return list(table.targets)
    found = find_label_list(source.path)
    if found is not None:
        return read_label_list(open_source(found), columns)
    raise NoTargetsError(
        f"read_table: the class variables of {source.name!r} are not known; give targets=, by"
        f" name, pattern or position, of {', '.join(columns[:8])}{' ...' if len(columns) > 8 else ''}."
    )
