"""SVM-light files with several labels in a row."""

from __future__ import annotations

from array import array

import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.io.tables.source import FileContent, Where, open_source, require_cells
from tuplet.io.tables.table import FileTable

_LAST_INDEX = 2**31 - 2


def read_svmlight(source: Where) -> tuple[sparse.csr_array, pd.DataFrame]:
    r"""Read an SVM-light file with several labels per row, and leave the features sparse.

    A row is `1,3 5:0.2 7:1`: its labels, separated by commas (none at all is fine), then features that are
    not zero, `index:value` with rising indices. What follows a `#` is a comment; `qid:` is skipped.

    Parameters
    ----------
    source : str, Path or file object
        The file, "-" for standard input, or an open file; gzip is unpacked.

    Returns
    -------
    X : scipy.sparse.csr_array, shape (n, d)
        One column for each index, from 1, or from 0 if index 0 occurs.
    Y : pandas DataFrame, shape (n, m)
        One 0/1 column for each label that occurs, `y1` for label 1, in rising order.

    Examples
    --------
    >>> from io import StringIO
    >>> X, Y = read_svmlight(StringIO("1,3 1:0.5 4:2\n3 2:1\n"))
    >>> X.shape, Y.to_dict("list")
    ((2, 4), {'y1': [1, 0], 'y3': [1, 1]})
    """
    opened = open_source(source)
    X, Y, _ = _read(opened)
    if not Y.shape[1]:
        opened.fail("no row has a label; expected lines such as '1,3 5:0.2 7:1'.")
    return X, Y


def read_svmlight_table(source: FileContent) -> FileTable:
    """Read an SVM-light file and spread it out: features `x1`, ... named by their index, labels `y1`, ..."""
    X, Y, first = _read(source)
    n, d = X.shape
    require_cells(source, n, d)
    frame = pd.DataFrame(X.toarray(), columns=[f"x{index + first}" for index in range(d)])
    # Without any label there are rows to be predicted.
    return FileTable(pd.concat([frame, Y], axis=1), tuple(Y.columns) or None, source.stem)


def _read(source: FileContent) -> tuple[sparse.csr_array, pd.DataFrame, int]:
    """Return features, labels, and the index of the first feature."""
    rows, data, indices, starts = [], array("d"), array("i"), array("q", [0])
    for number, line in enumerate(source.lines(), start=1):
        parts = line.partition("#")[0].split()
        if not parts and not line.startswith((" ", "\t")):
            continue
        labels = parts.pop(0) if parts and ":" not in parts[0] else ""
        rows.append(_labels(source, labels, number))
        _features(source, parts, number, indices, data)
        starts.append(len(indices))
    if not rows:
        source.fail("the file has no rows; expected lines such as '1,3 5:0.2 7:1'.")
    columns = np.asarray(indices, dtype=np.int64)
    first = 0 if (columns == 0).any() else 1
    shape = (len(rows), int(columns.max(initial=first - 1)) + 1 - first)
    X = sparse.csr_array((np.asarray(data), columns - first, np.asarray(starts)), shape=shape)
    return X, _label_frame(source, rows), first


def _labels(source: FileContent, text: str, line: int) -> list[int]:
    labels = []
    for part in text.split(",") if text else ():
        try:
            number = float(part)
            labels.append(int(number))
        except (ValueError, OverflowError):
            number = np.nan
        if not number.is_integer():
            source.fail(f"labels are whole numbers with commas between them, found {text[:40]!r}.", line)
    return labels


def _features(
    source: FileContent, parts: list[str], line: int, indices: array[int], data: array[float]
) -> None:
    last = -1
    for part in parts:
        index, _, value = part.partition(":")
        if index == "qid":
            continue
        try:
            number = int(index)
            data.append(float(value))
        except ValueError:
            source.fail(f"expected index:value with a whole number and a number, found {part[:40]!r}.", line)
        if not last < number <= _LAST_INDEX:
            source.fail(
                f"indices must rise from 0 or 1, found {index[:20]} after {last}; sort the row.", line
            )
        indices.append(number)
        last = number


def _label_frame(source: FileContent, rows: list[list[int]]) -> pd.DataFrame:
    distinct = sorted(set().union(*rows))
    require_cells(source, len(rows), len(distinct))
    position = {label: j for j, label in enumerate(distinct)}
    values = np.zeros((len(rows), len(distinct)), dtype=np.int8)
    for row, labels in zip(values, rows, strict=True):
        row[[position[label] for label in labels]] = 1
    return pd.DataFrame(values, columns=[f"y{label}" for label in distinct])
