"""Labels in losses: which label is positive, and names of variables and labels as positions and codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.space.classes import ClassSpace
from tuplet.space.labels import show


def floats_or_none(values: Any) -> Floats | None:
    """Return numbers as a new array of floats; None if they are no numbers or no array."""
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError):
        return None


def reject_names(loss: str, what: str, values: Any, wanted: str) -> None:
    """Refuse mappings, frames and series: their keys would be ignored, in silence or not."""
    if isinstance(values, Mapping | pd.Series) or hasattr(values, "columns"):
        raise InputError(
            f"{loss}: a loss sees codes, neither names nor labels; found a {type(values).__name__} as {what}."
            f" Give {wanted}, or names with {loss}.from_labels(space, ...)."
        )


def by_position(query: str, space: ClassSpace, named: Any) -> dict[int, Any]:
    """Return what is given by name by the position of the variable instead."""
    if not isinstance(space, ClassSpace):
        raise InputError(
            f"{query}: space must be a ClassSpace such as model.space_, found {type(space).__name__}."
        )
    if not isinstance(named, Mapping):
        raise InputError(
            f"{query}: give a mapping of the names of class variables, found {type(named).__name__}."
        )
    return {space.position(name): value for name, value in named.items()}


def cost_table(space: ClassSpace, name: str, costs: Any) -> Floats:
    """Return the costs (k, k) of one variable in code order, rows true, columns predicted.

    Parameters
    ----------
    space : ClassSpace
    name : str
        The class variable.
    costs : pandas DataFrame, or a mapping of true labels to mappings of predicted labels to costs
        The diagonal is 0 where it is left out; every other pair must be there.
    """
    table = np.full((space.cards[space.position(name)],) * 2, np.nan)
    np.fill_diagonal(table, 0.0)
    for true, row in zip(*_rows(space, name, costs), strict=True):
        predicted = _codes(space, name, list(row))
        values = floats_or_none(list(row.values()))
        if values is None:
            raise InputError(f"CostMatrix.from_labels: the costs of {name!r} must be numbers, found {row}.")
        given = ~((predicted == true) & np.isnan(values))  # a gap on the diagonal is the zero it must be
        table[true, predicted[given]] = values[given]
    _require_complete(space, name, table)
    return table


def positives(
    loss: str, true: Codes, pred: Codes, known: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return where truth and answer are positive (..., m), among the positions whose truth is known."""
    if max(true.max(initial=0), pred.max(initial=0)) > 1:
        codes = np.maximum(true, pred).reshape(-1, true.shape[-1]).max(axis=0)
        j = int(np.argmax(codes > 1))
        raise InputError(
            f"{loss}: needs binary variables (code 0 negative, 1 positive), but variable {j} has code"
            f" {codes[j]}.",
            variable=j,
        )
    return true == 1, (pred == 1) & known


def _rows(space: ClassSpace, name: str, costs: Any) -> tuple[Codes, list[Mapping[Any, Any]]]:
    """Return the codes of the true labels and, for each, the costs by predicted label."""
    if isinstance(costs, pd.DataFrame):
        if not costs.columns.is_unique:
            raise InputError(f"CostMatrix.from_labels: a label of {name!r} is given twice in the columns.")
        rows: list[Mapping[Any, Any]] = [
            dict(zip(costs.columns, row, strict=True)) for row in costs.to_numpy()
        ]
        return _codes(space, name, list(costs.index)), rows
    if isinstance(costs, Mapping) and all(isinstance(row, Mapping) for row in costs.values()):
        return _codes(space, name, list(costs)), list(costs.values())
    raise InputError(
        f"CostMatrix.from_labels: the costs of {name!r} must be a pandas DataFrame (true labels as index,"
        f" predicted ones as columns) or a dict of dicts, found {type(costs).__name__}."
    )


def _codes(space: ClassSpace, name: str, labels: list[Any]) -> Codes:
    codes = space.codes_of(name, labels)
    if (codes == UNKNOWN).any() or len(np.unique(codes)) < len(codes):
        raise InputError(
            f"CostMatrix.from_labels: the labels of {name!r} must be there once each, found"
            f" {', '.join(map(show, labels))}."
        )
    return codes


def _require_complete(space: ClassSpace, name: str, table: Floats) -> None:
    gaps = np.argwhere(np.isnan(table))
    if len(gaps):
        true, predicted = (show(space.categories[space.position(name)][code]) for code in gaps[0])
        raise InputError(
            f"CostMatrix.from_labels: {name!r} lacks the cost of predicting {predicted} where {true} is true"
            f" ({len(gaps)} such pairs in all)."
        )
