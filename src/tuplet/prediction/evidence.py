"""Labels that are known of some variables, as codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.dependencies as kinds
import numpy as np
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.space import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.labels import show
from tuplet.space.rows import require_same_order
from tuplet.typing import UNKNOWN, Codes


def encode_known(
    space: ClassSpace, known: Any, n_rows: int, query: str, index: pd.Index | None = None
) -> Codes:
    """Return known labels as codes (n, m), `UNKNOWN` for every label that is not known.

    Parameters
    ----------
    space : ClassSpace
        Names and labels.
    known : mapping, frame, or anything that `ClassSpace.encode` takes
        A mapping or a frame may leave variables out. In a mapping, a value is one label for all rows or one
        label per row; missing labels are unknown.
    n_rows : int
        Number of rows n.
    query : str
        Who asks, for messages.
    index : pandas Index, optional
        Names of the rows. Labels go by position; those with the same names in another order are an error.
    """
    columns = _named_columns(space, known, query)
    _check_order(known, "Y", query, index)
    if columns is None:
        codes = space.encode(known)
        _check_length(len(codes), "Y", n_rows, query)
        return codes
    codes = np.full((n_rows, space.n_variables), UNKNOWN, dtype=np.intp)
    for name, values in columns.items():
        _check_order(values, repr(name), query, index)
        column = space.codes_of(name, values)
        if column.ndim:
            _check_length(len(column), repr(name), n_rows, query)
        codes[:, space.position(name)] = column
    return codes


def _check_order(labels: Any, what: str, query: str, index: pd.Index | None) -> None:
    if isinstance(labels, (pd.DataFrame, pd.Series)):
        require_same_order(f"{query}: the prediction and {what}", index, labels.index)


def _named_columns(space: ClassSpace, known: Any, query: str) -> Mapping[Any, Any] | None:
    """Return labels of some variables by name; None if labels of all variables were given."""
    if isinstance(known, Mapping):
        return known
    if not isinstance(known, pd.DataFrame) and not kinds.is_polars_dataframe(known):
        return None
    names = [str(name) for name in known.columns]
    overlap = set(space.names) & set(names)
    if not overlap and space.named:
        raise InputError(
            f"{query}: none of the columns {listing(names)} is a class variable; these are"
            f" {listing(space.names)}."
        )
    if not overlap or len(overlap) == space.n_variables:
        return None
    return {str(name): known[name] for name in known.columns}


def _check_length(found: int, what: str, n_rows: int, query: str) -> None:
    if found != n_rows:
        raise InputError(f"{query}: {what} has {found} labels for the {n_rows} rows of the prediction.")


def known_text(space: ClassSpace, codes: Codes) -> str:
    """Return the known labels of one row of codes (m,) as `name=label, ...`."""
    return ", ".join(
        f"{name}={show(space.categories[j][code])}"
        for j, (name, code) in enumerate(zip(space.names, codes, strict=True))
        if code != UNKNOWN
    )
