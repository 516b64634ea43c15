"""What users pass to the queries of a prediction, checked: counts, rows, losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError, NoSuchRowError
from tuplet.losses import Loss, get_loss
from tuplet.space import ClassSpace
from tuplet.space.labels import show


def check_count(query: str, name: str, value: Any, least: int) -> int:
    """Return a whole number that is at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{query}: {name} must be a whole number of at least {least}, found {value!r}.")
    return int(value)


def row_positions(rows: Any, n: int, query: str = "prediction[...]") -> npt.NDArray[np.intp]:
    """Return the positions (r,) of rows given by a position, a slice, positions or a mask."""
    chosen = rows if isinstance(rows, slice) else np.asarray(rows)
    if isinstance(chosen, np.ndarray):
        if not chosen.size:
            chosen = chosen.astype(np.intp)  # numpy calls an empty list floats
        if chosen.dtype.kind not in "iub" or chosen.ndim > 1:
            raise NoSuchRowError(
                f"{query}: a row goes by its position, from 0 to {n - 1}, not by its name; found {rows!r}."
            )
    try:
        return np.atleast_1d(np.arange(n)[chosen])
    except IndexError:
        raise NoSuchRowError(
            f"{query}: there are {n} rows, at the positions 0 to {n - 1}; found {rows!r}."
        ) from None


def check_loss(loss: str | Loss, space: ClassSpace) -> Loss:
    """Return the loss, after a look at whether it is clear which labels are positive, if it asks for that."""
    chosen = get_loss(loss)
    if not getattr(chosen, "binary", False) or max(space.cards) > 2:
        return chosen  # of too many labels the loss speaks itself
    unclear = [j for j in range(space.n_variables) if not space.knows_positive(j)]
    if unclear:
        j = unclear[0]
        labels = " and ".join(show(label) for label in space.categories[j])
        raise InputError(
            f"{chosen.name} needs to know which label is positive, but {space.names[j]!r} has {labels}; code"
            " them as 0/1 or booleans, or declare a Categorical with the positive label last."
        )
    return chosen
