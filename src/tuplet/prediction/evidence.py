"""Labels that are known of some variables, as codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.dependencies as kinds
import numpy as np
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.space import ClassSpace
from tuplet.space.labels import show
from tuplet.typing import UNKNOWN, Codes

__all__ = ["encode_known", "known_text"]


def encode_known(space: ClassSpace, known: Any, n_rows: int, query: str) -> Codes:
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
    """
    columns = _named_columns(space, known)
    if columns is None:
        codes = space.encode(known)
        _check_length(len(codes), "Y", n_rows, query)
        return codes
    codes = np.full((n_rows, space.n_variables), UNKNOWN, dtype=np.intp)
    for name, values in columns.items():
        column = space.codes_of(name, values)
        if column.ndim:
            _check_length(len(column), repr(name), n_rows, query)
        codes[:, space.position(name)] = column
    return codes


def _named_columns(space: ClassSpace, known: Any) -> Mapping[str, Any] | None:
    """Return labels of some variables by name; None if labels of all variables were given."""
    if isinstance(known, Mapping):
        return known
    if not isinstance(known, pd.DataFrame) and not kinds.is_polars_dataframe(known):
        return None
    names = [str(name) for name in known.columns]
    overlap = set(space.names) & set(names)
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
