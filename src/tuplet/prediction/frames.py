"""Tables that go with labels: polars frames if the labels came in one, pandas frames otherwise."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tuplet.space import ClassSpace
from tuplet.space.labels import show
from tuplet.typing import Codes, Floats


def marginal_frame(space: ClassSpace, j: int, table: Floats, index: pd.Index | None) -> Any:
    """Return probabilities (n, k) of variable j with its labels as columns."""
    categories = space.categories[j]
    if not space.is_polars:
        return pd.DataFrame(table, index=index, columns=pd.Index(categories, name=space.keys[j]))
    import polars as pl

    titles = [str(label) for label in categories]
    if len(set(titles)) < len(titles):
        titles = [show(label) for label in categories]
    return pl.DataFrame(table, schema=titles, orient="row")  # polars would guess from the memory layout


def tidy_frame(
    space: ClassSpace,
    codes: Codes,
    before: dict[str, Any],
    after: dict[str, Any],
    index: pd.Index | None = None,
) -> Any:
    """Return labels of codes (n, m) between other columns, whose names give way to those of the variables."""
    labels, keys = space.decode_frame(codes, index), space.keys
    columns = {
        **{_free(name, keys): values for name, values in before.items()},
        **{key: labels[key] for key in keys},
        **{_free(name, keys): values for name, values in after.items()},
    }
    if not space.is_polars:
        return pd.DataFrame(columns, index=labels.index)
    import polars as pl

    return pl.DataFrame({name: _plain(values) for name, values in columns.items()})


def _plain(values: Any) -> Any:
    return values.to_list() if isinstance(values, pd.Index) else values


def _free(name: str, taken: tuple[Any, ...]) -> str:
    while name in taken:
        name += "_"
    return name
