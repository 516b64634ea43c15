"""Losses of single variables: wrong or right, or as dear as a cost matrix says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.joint.base import JointDistribution
from tuplet.losses.decomposable import DecomposableLoss
from tuplet.typing import Codes, Floats

__all__ = ["CostMatrix", "Hamming"]


@final
@dataclass(frozen=True)
class Hamming(DecomposableLoss):
    """Share of wrong positions. The decision is the most probable value of every variable.

    Parameters
    ----------
    weights : sequence of m non-negative numbers, optional
        Importance of the variables; only their proportions matter.

    Examples
    --------
    >>> Hamming().value([[0, 1, 2]], [[0, 1, 1]]).round(3)
    array([0.333])
    >>> Hamming(weights=[1, 1, 2]).value([[0, 1, 2]], [[0, 1, 1]])
    array([0.5])
    """

    weights: Sequence[float] | None = None
    name = "hamming"

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        weights = np.asarray(self.weights, dtype=float)
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise InputError(
                "Hamming: weights must be one non-negative number per class variable, not all zero,"
                f" found {self.weights}."
            )
        object.__setattr__(self, "weights", tuple(weights.tolist()))

    def position_weights(self, m: int) -> Floats:
        """See `DecomposableLoss.position_weights`."""
        if self.weights is None:
            return super().position_weights(m)
        if len(self.weights) != m:
            raise InputError(f"Hamming: {len(self.weights)} weights do not fit {m} class variables.")
        return np.array(self.weights) / sum(self.weights)

    def position_values(self, y_true: Codes, y_pred: Codes) -> Floats:
        """See `DecomposableLoss.position_values`; no answer is a wrong one."""
        return (y_true != y_pred).astype(float)

    def position_risks(self, joint: JointDistribution) -> list[Floats]:
        """See `DecomposableLoss.position_risks`."""
        return [np.column_stack([1.0 - p, np.ones(len(p))]) for p in joint.marginals()]


@final
@dataclass(frozen=True, eq=False)
class CostMatrix(DecomposableLoss):
    """Mean over the variables of what it costs to take one category for another.

    Parameters
    ----------
    matrices : array (k, k), or a sequence of m arrays (k_j, k_j)
        Non-negative costs, rows true, columns predicted, zeros on the diagonal. One matrix serves all
        variables. (Where a right answer has a price of its own, take it off its row: no decision changes.)

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
        given: list[Any] = list(self.matrices)  # type: ignore[arg-type]
        if not given:
            raise InputError("CostMatrix: give one matrix, or one per class variable; found none.")
        if np.ndim(given[0]) == 1:
            given = [given]
        object.__setattr__(self, "matrices", tuple(_checked(matrix, j) for j, matrix in enumerate(given)))

    def position_values(self, y_true: Codes, y_pred: Codes) -> Floats:
        """See `DecomposableLoss.position_values`; no answer costs as much as the worst one."""
        costs = self._priced(y_true.shape[-1])
        values = np.empty(y_true.shape)
        for j, cost in enumerate(costs):
            true, pred = y_true[..., j], y_pred[..., j]
            if true.size and max(true.max(), pred.max()) >= len(cost):
                raise InputError(
                    f"CostMatrix: variable {j} has a code {max(true.max(), pred.max())}, but its matrix is"
                    f" {len(cost)} x {len(cost)}."
                )
            values[..., j] = cost[true, pred]
        return values

    def position_risks(self, joint: JointDistribution) -> list[Floats]:
        """See `DecomposableLoss.position_risks`."""
        costs = self._priced(joint.n_variables)
        for j, (cost, k) in enumerate(zip(costs, joint.cards, strict=True)):
            if len(cost) != k:
                size = f"{len(cost)} x {len(cost)}"
                raise InputError(f"CostMatrix: variable {j} has {k} values, but its matrix is {size}.")
        return [p @ cost for p, cost in zip(joint.marginals(), costs, strict=True)]

    def _priced(self, m: int) -> list[Floats]:
        """Return the matrices of m variables, each with a last column for no answer."""
        matrices: tuple[Floats, ...] = self.matrices  # type: ignore[assignment]
        if len(matrices) not in (1, m):
            raise InputError(f"CostMatrix: {len(matrices)} matrices do not fit {m} class variables.")
        priced = [np.column_stack([matrix, matrix.max(axis=1)]) for matrix in matrices]
        return priced if len(priced) == m else priced * m


def _checked(matrix: npt.ArrayLike, j: int) -> Floats:
    costs = np.array(matrix, dtype=float)
    if costs.ndim != 2 or costs.shape[0] != costs.shape[1] or not costs.size:
        raise InputError(f"CostMatrix: matrix {j} must be square, found shape {costs.shape}.")
    if not np.isfinite(costs).all() or (costs < 0).any() or np.diag(costs).any():
        raise InputError(f"CostMatrix: matrix {j} must hold costs of at least 0, and 0 on its diagonal.")
    costs.flags.writeable = False
    return costs
