"""SVM-light files with several labels in a row."""

from __future__ import annotations

import re
from bisect import bisect_left
from io import BytesIO

import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.io.tables.source import FileContent, Where, open_source, require_cells
from tuplet.io.tables.table import FileTable

_EMPTY_ROW = re.compile(r"^[ \t]+(?=$|#)")


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
    # A row of spaces has neither labels nor features; scikit-learn would leave it out.
    lines = [_EMPTY_ROW.sub("qid:0 ", line) for line in source.lines()]
    try:
        X, labels = _parse(lines)
    except (ValueError, OverflowError):
        line = bisect_left(range(len(lines)), True, key=lambda last: _is_wrong(lines[: last + 1]))
        source.fail(
            "expected labels, whole numbers with commas between them, then index:value with indices that"
            f" rise from 0 or 1, found {lines[line][:40]!r}.",
            line + 1,
        )
    if not labels:
        source.fail("the file has no rows; expected lines such as '1,3 5:0.2 7:1'.")
    first = 0 if (X.indices == 0).any() else 1
    return sparse.csr_array(X[:, first:]), _label_frame(source, labels), first


def _parse(lines: list[str]) -> tuple[sparse.csr_matrix, list[tuple[float, ...]]]:
    from sklearn.datasets import load_svmlight_file  # readers of other formats do without scikit-learn

    content = BytesIO("\n".join(lines).encode())
    X, labels = load_svmlight_file(content, multilabel=True, zero_based=True)
    if not all(label.is_integer() for row in labels for label in row):
        raise ValueError
    return X, labels


def _is_wrong(lines: list[str]) -> bool:
    try:
        _parse(lines)
    except (ValueError, OverflowError):
        return True
    return False


def _label_frame(source: FileContent, rows: list[tuple[float, ...]]) -> pd.DataFrame:
    from sklearn.preprocessing import MultiLabelBinarizer

    distinct = sorted(set().union(*rows))
    require_cells(source, len(rows), len(distinct))
    values = MultiLabelBinarizer(classes=distinct).fit_transform(rows)
    return pd.DataFrame(values.astype(np.int8), columns=[f"y{int(label)}" for label in distinct])
