"""Labels with an order, for containers that declare none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.dependencies as kinds
import pandas as pd

from tuplet.space.classes import ClassSpace
from tuplet.space.containers import open_table


def declare_order(Y: Any, order: Mapping[Any, Sequence[Any]] | Sequence[Any]) -> Any:
    """Return labels in which some class variables are ordered, to be passed to `fit` and metrics.

    Parameters
    ----------
    Y : labels as for `fit`, shape (n,) or (n, m)
    order : mapping of names to labels, or names
        The ordered variables, each with all its labels from the lowest to the highest; names alone suffice
        for numbers, dates and declared categories. The columns of an array are named y0, y1, ...

    Returns
    -------
    frame or series
        With ordered Categoricals, or Enums if Y is of polars; other columns are unchanged. Arrays, lists and
        sparse matrices become pandas objects.

    Examples
    --------
    >>> import pandas as pd
    >>> Y = pd.DataFrame({"stage": ["II", "I", "III"], "fever": ["no", "yes", "no"]})
    >>> staged = declare_order(Y, {"stage": ["I", "II", "III", "IV"]})
    >>> staged["stage"].max()
    'III'
    >>> ClassSpace.from_labels(staged)
    ClassSpace(stage: I < II < III < IV; fever: no | yes)
    """
    frame = Y if kinds.is_into_dataframe(Y) or kinds.is_into_series(Y) else _as_pandas(Y)
    space = ClassSpace.from_labels(frame, order=order)
    coded = space.decode(space.encode(frame), getattr(frame, "index", None))
    if space.single:
        return coded
    keys = [space.keys[space.position(name)] for name in order]
    if space.is_polars:
        return frame.with_columns(coded[key] for key in keys)
    answer = frame.copy()
    for key in keys:
        answer[key] = coded[key]
    return answer


def _as_pandas(Y: Any) -> Any:
    """Return arrays, lists and sparse matrices as a frame, or as a series if they have one dimension."""
    table = open_table(Y)
    if table.form.single:
        return pd.Series(table.columns[0])
    return pd.DataFrame(dict(zip(table.names(), table.columns, strict=True)))
