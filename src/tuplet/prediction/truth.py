"""True labels in the codes of a prediction: which are missing, and which are not in its space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError, LabelError
from tuplet.core.typing import UNKNOWN, Codes
from tuplet.space import labels
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import open_table, require_same_order
from tuplet.space.labels import show

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


class Truth(NamedTuple):
    """True labels in the codes of a prediction."""

    codes: Codes  # (n, m), UNKNOWN where the label is missing or unseen
    known: npt.NDArray[np.bool_]  # (n, m), False where the label is missing
    unseen: npt.NDArray[np.bool_]  # (n, m), True for a label that is not in the space of the prediction


def read_truth(Y_true: Any, space: ClassSpace, n: int, index: pd.Index | None) -> Truth:
    """Codes of the true labels of n rows in a space, and which of them it does not have.

    A category that is absent from a training fold is no reason to give up: its probability is zero.

    Parameters
    ----------
    Y_true : labels, shape (n, m)
    space : ClassSpace
        Of the prediction.
    n : int
        Rows of the prediction.
    index : pandas Index or None
        Names of these rows; labels with the same names in another order are an error.
    """
    own = Y_true.index if isinstance(Y_true, pd.DataFrame | pd.Series) else None
    require_same_order("Y_true and the prediction", own, index)
    try:
        codes = space.encode(Y_true)
    except LabelError:
        found = ("Y_true", present_labels(space, Y_true))
        require_common_labels(space.names, found, ("the prediction", list(space.categories)))
        codes = extended(space, Y_true, [False] * len(space.names)).encode(Y_true)
    if len(codes) != n:
        raise InputError(f"Y_true has {len(codes)} rows and the prediction {n}.")
    unseen = codes >= np.array(space.cards)
    return Truth(np.where(unseen, UNKNOWN, codes), codes != UNKNOWN, unseen)


def extended(space: ClassSpace, Y: Any, in_order: Sequence[bool]) -> ClassSpace:
    """Return the space with the labels of Y that it lacks.

    They come behind the others, or, for variables that are `in_order` (m,), where sorting puts
    them.
    """
    categories = []
    every_variable = zip(present_labels(space, Y), space.names, space.categories, in_order, strict=True)
    for values, name, own, sort in every_variable:
        distinct = list(dict.fromkeys([*labels.listed(own), *labels.listed(values)]))
        every = np.empty(len(distinct), dtype=object)
        every[:] = distinct
        categories.append(labels.learn(every, name) if sort else every)
    return ClassSpace(space.names, tuple(categories), space.form, space.ordered)


def present_labels(space: ClassSpace, Y: Any) -> list[np.ndarray]:
    """Return the labels of each variable that are there."""
    return [labels.present_and_missing(column)[0] for column in space._match(open_table(Y))]


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
