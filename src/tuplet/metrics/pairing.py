"""Whether what a metric compares belongs together: kinds of arguments, rows, types of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.prediction import JointPrediction
from tuplet.space.labels import show
from tuplet.space.rows import require_same_order

__all__ = ["reject_prediction", "require_common_labels", "require_same_rows"]

_SHOWN = 4
"""Labels that a message shows."""

_KINDS = {
    "string": "text",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "boolean": "number",
}
"""Kinds of labels of which it is sure that they never match each other, by pandas' names for values."""


def reject_prediction(Y: Any) -> None:
    """Refuse a joint prediction where labels are wanted, before anything looks into it row by row."""
    if isinstance(Y, JointPrediction):
        raise InputError(
            "This metric compares labels with labels, found a JointPrediction; pass model.predict(X) or"
            " prediction.decide(loss)."
        )


def require_same_rows(what: str, left: Any, right: Any) -> None:
    """Refuse two tables of pandas, or a table and a prediction, with the same rows in another order."""
    require_same_order(what, _index(left), _index(right))


def _index(rows: Any) -> pd.Index | None:
    return rows.index if isinstance(rows, pd.DataFrame | pd.Series | JointPrediction) else None


def require_common_labels(
    names: Sequence[str], left: tuple[str, list[np.ndarray]], right: tuple[str, list[np.ndarray]]
) -> None:
    """Refuse labels that cannot match: text on one side, numbers on the other.

    Parameters
    ----------
    names : m names of the class variables
    left, right : tuples of a title for messages and m arrays of labels
        Arrays without missing labels; two empty ones have nothing to compare.
    """
    for name, here, there in zip(names, left[1], right[1], strict=True):
        kinds = {_kind(here), _kind(there)}
        if kinds == {"text", "number"}:  # then no label of one side occurs on the other
            raise InputError(
                f"No label of {name!r} in {left[0]} ({_listed(here)}) occurs in {right[0]}"
                f" ({_listed(there)}); are the types the same?"
            )


def _kind(values: np.ndarray) -> str:
    return _KINDS.get(pd.api.types.infer_dtype(values, skipna=False), "other")


def _listed(values: np.ndarray) -> str:
    distinct = sorted(set(values.tolist()))
    return ", ".join(map(show, distinct[:_SHOWN])) + (", ..." if len(distinct) > _SHOWN else "")
