"""The loss of taking one category for another, given by a matrix of costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.losses.decomposable import DecomposableLoss
from tuplet.losses.labelled import by_position, cost_table, floats_or_none, reject_names
from tuplet.space.classes import ClassSpace

_ADVICE = "one matrix per variable in order, its rows and columns in code order"


@final
@dataclass(frozen=True, eq=False)
class CostMatrix(DecomposableLoss):
    """Mean over the variables of what it costs to take one category for another.

    A loss sees codes, and labels are coded in sorted order unless a categorical type declares another:
    "low", "mid", "high" become high = 0, low = 1, mid = 2. A matrix written in the order low, mid, high
    would be applied to the wrong labels without a word; `from_labels` takes labels instead.

    Parameters
    ----------
    matrices : array (k, k), or a sequence of m arrays (k_j, k_j)
        Non-negative costs, rows true, columns predicted, in code order (`model.space_.categories`), zeros
        on the diagonal. One matrix serves all variables; several stand in the order of the variables.
        (Where a right answer has a price of its own, take it off its row: no decision changes.)

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint import Atoms
    >>> missed_alarm = CostMatrix([[0, 1], [9, 0]])
    >>> rare = Atoms((2,), np.array([[[0], [1]]]), np.log([[0.8, 0.2]]))
    >>> missed_alarm.decide(rare), missed_alarm.risk(rare, [[1]])
    (array([[1]]), array([0.8]))
    """

    matrices: npt.ArrayLike | Sequence[npt.ArrayLike]
    name = "cost_matrix"

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrices", tuple(_opened(self.matrices)))

    @classmethod
    def from_labels(cls, space: ClassSpace, costs: Mapping[str, Any]) -> Self:
        """Costs by name and label, so that the order of codes does not matter.

        Parameters
        ----------
        space : ClassSpace
            Names and labels: `model.space_`, or `ClassSpace.from_labels(Y)`.
        costs : mapping of names to pandas DataFrames or dicts of dicts
            A frame has the true labels as its index and the predicted ones as its columns; dicts read
            `{true: {predicted: cost}}`. All pairs of different labels need a cost; the diagonal may be left
            out. Variables that are not named cost 1 for every error.

        Examples
        --------
        >>> import pandas as pd
        >>> space = ClassSpace.from_labels(pd.DataFrame({"risk": ["low", "mid", "high"]}))
        >>> far = {"low": {"mid": 1, "high": 2}, "mid": {"low": 1, "high": 1}, "high": {"low": 9, "mid": 5}}
        >>> CostMatrix.from_labels(space, {"risk": far}).matrices[0]  # high, low, mid
        array([[0., 9., 5.],
               [2., 0., 1.],
               [1., 1., 0.]])
        """
        named = by_position("CostMatrix.from_labels", space, costs)
        return cls(
            [
                _checked(cost_table(space, name, named[j]), f"the matrix of {name!r}", None)
                if j in named
                else 1 - np.eye(space.cards[j])
                for j, name in enumerate(space.names)
            ]
        )

    def position_values(self, y_true: Codes, y_pred: Codes) -> Floats:
        """See `DecomposableLoss.position_values`; no answer costs as much as the worst one."""
        costs = self._priced(y_true.shape[-1])
        values = np.empty(y_true.shape)
        for j, cost in enumerate(costs):
            true, pred = y_true[..., j], y_pred[..., j]
            if true.size and max(true.max(), pred.max()) >= len(cost):
                raise InputError(
                    f"CostMatrix: variable {j} has a code {max(true.max(), pred.max())}, but its matrix is"
                    f" {len(cost)} x {len(cost)}.",
                    variable=j,
                )
            values[..., j] = cost[true, pred]
        return values

    def position_risks(self, joint: JointDistribution) -> list[Floats]:
        """See `DecomposableLoss.position_risks`."""
        costs = self._priced(joint.n_variables)
        for j, (cost, k) in enumerate(zip(costs, joint.cards, strict=True)):
            if len(cost) != k:
                raise InputError(
                    f"CostMatrix: variable {j} has {k} values, but its matrix is {len(cost)} x {len(cost)}.",
                    variable=j,
                )
        return [p @ cost for p, cost in zip(joint.marginals(), costs, strict=True)]

    def _priced(self, m: int) -> list[Floats]:
        """Return the matrices of m variables, each with a last column for no answer."""
        matrices: tuple[Floats, ...] = self.matrices  # type: ignore[assignment]
        if len(matrices) not in (1, m):
            raise InputError(
                f"CostMatrix: {len(matrices)} matrices do not fit {m} class variables; give one, or"
                f" {_ADVICE}."
            )
        priced = [np.column_stack([matrix, matrix.max(axis=1)]) for matrix in matrices]
        return priced if len(priced) == m else priced * m


def _opened(matrices: Any) -> list[Floats]:
    """Return one matrix, or one per variable, as checked arrays."""
    reject_names("CostMatrix", "matrices", matrices, _ADVICE)
    whole = floats_or_none(matrices)
    if whole is not None and whole.ndim == 2 and whole.size:
        return [_checked(whole, "the matrix", None)]
    try:
        given = list(matrices)
    except TypeError:
        given = []
    if not given:
        raise InputError(f"CostMatrix: give one matrix, or {_ADVICE}; found {matrices!r}.")
    for j, matrix in enumerate(given):
        reject_names("CostMatrix", f"the matrix of variable {j}", matrix, _ADVICE)
    return [_checked(matrix, f"the matrix of variable {j}", j) for j, matrix in enumerate(given)]


def _checked(matrix: npt.ArrayLike, which: str, variable: int | None) -> Floats:
    costs = floats_or_none(matrix)
    if costs is None or costs.ndim != 2 or costs.shape[0] != costs.shape[1] or not costs.size:
        found = "no numbers" if costs is None else f"shape {costs.shape}"
        raise InputError(f"CostMatrix: {which} must be square, found {found}.", variable=variable)
    if not np.isfinite(costs).all() or (costs < 0).any() or np.diag(costs).any():
        raise InputError(
            f"CostMatrix: {which} must hold costs of at least 0, and 0 on its diagonal.", variable=variable
        )
    costs.flags.writeable = False
    return costs
