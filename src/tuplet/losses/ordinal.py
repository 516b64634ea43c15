"""Losses that grow with the distance between ordered categories: the median and other quantiles decide."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self, final

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.losses.base import is_number
from tuplet.losses.decomposable import DecomposableLoss
from tuplet.space.classes import ClassSpace


@dataclass(frozen=True)
class DistanceLoss(DecomposableLoss):
    """Mean over the variables of the steps between true and predicted category, each at a price.

    Parameters
    ----------
    levels : sequence of m integers, optional
        Number of categories of each ordered variable, 0 for variables that are not ordered: of these an error
        costs 1. None means that all are ordered. Models, predictions and metrics replace None by the levels
        of their class space.
    """

    levels: Sequence[int] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", tuple(int(k) for k in self.levels))

    @property
    @abstractmethod
    def prices(self) -> tuple[float, float]:
        """What each step costs that an answer is too low, and too high."""

    def for_space(self, space: ClassSpace) -> Self:
        """See `Loss.for_space`; levels that were given are kept."""
        if self.levels is not None:
            return self
        if not any(space.ordered) and max(space.cards) > 2:
            raise InputError(
                f"{self.name}: no class variable is ordered; declare the order of the labels before fit, with"
                " tuplet.declare_order(Y, {name: [lowest, ..., highest]}) or as ordered Categoricals."
            )
        return replace(self, levels=[k * is_in for k, is_in in zip(space.cards, space.ordered, strict=True)])

    def position_values(self, y_true: Codes, y_pred: Codes) -> Floats:
        """See `DecomposableLoss.position_values`; no answer costs as much as the worst one.

        So does any answer where the truth is not one of the known categories.
        """
        levels = self._levels(y_true.shape[-1])
        low, high = self.prices
        steps = y_true - y_pred
        values = np.where(steps > 0, low * steps, -high * steps)
        if levels is None:
            if (y_pred == UNKNOWN).any():
                raise InputError(f"{self.name}: without levels, the price of a missing answer is not known.")
            return values
        unseen = y_true >= levels
        worst = np.maximum(low * y_true, high * (levels - 1 - y_true))
        worst = np.where(unseen, max(low, high) * (levels - 1), worst)
        values = np.where(unseen | (y_pred == UNKNOWN), worst, values)
        return np.where(levels == 0, y_true != y_pred, values)

    def position_risks(self, joint: JointDistribution) -> list[Floats]:
        """See `DecomposableLoss.position_risks`."""
        levels = self._levels(joint.n_variables)
        ordered = [True] * joint.n_variables if levels is None else (levels > 0).tolist()
        return [
            self._risks(p) if is_in else np.column_stack([1.0 - p, np.ones(len(p))])
            for p, is_in in zip(joint.marginals(), ordered, strict=True)
        ]

    def _risks(self, p: Floats) -> Floats:
        """Expected loss (n, k + 1) of each answer of one ordered variable with probabilities p (n, k).

        An answer a is too high by the sum of P(Y <= j) over j < a steps on average, and too low by the sum of
        P(Y > j) over j >= a.
        """
        low, high = self.prices
        nothing = np.zeros((len(p), 1))
        above = np.cumsum(np.cumsum(p, axis=1)[:, :-1], axis=1)
        below = np.cumsum(np.cumsum(p[:, :0:-1], axis=1), axis=1)[:, ::-1]
        risks = high * np.hstack([nothing, above]) + low * np.hstack([below, nothing])
        steps = np.arange(p.shape[1])
        return np.column_stack([risks, p @ np.maximum(low * steps, high * steps[::-1])])

    def _levels(self, m: int) -> Codes | None:
        if self.levels is None:
            return None
        if len(self.levels) != m:
            raise InputError(
                f"{self.name}: {len(self.levels)} levels do not fit {m} class variables; give one number per"
                " variable in order."
            )
        return np.array(self.levels, dtype=np.intp)


@final
@dataclass(frozen=True)
class Absolute(DistanceLoss):
    """Mean number of steps between true and predicted category. The decision is the median of each variable.

    Of variables that are not ordered an error costs 1, and the most probable label is the decision.

    Parameters
    ----------
    levels : sequence of m integers, optional
        Number of categories of each ordered variable, 0 for variables that are not ordered. None means that
        all are ordered where the loss is applied to codes; models, predictions and metrics use their space.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint import Atoms
    >>> stage = Atoms((4,), np.array([[[0], [1], [3]]]), np.log([[0.4, 0.3, 0.3]]))
    >>> Absolute().decide(stage), Absolute().risk(stage, [[1]])
    (array([[1]]), array([1.]))
    """

    name = "absolute"

    @property
    def prices(self) -> tuple[float, float]:
        """See `DistanceLoss.prices`."""
        return 1.0, 1.0


@final
@dataclass(frozen=True)
class Quantile(DistanceLoss):
    """Pinball loss: each step too low costs q, each step too high 1 - q. The decision is the q-quantile.

    That is the lowest category that is not exceeded with a probability of at least q. Of variables that are
    not ordered an error costs 1, and the most probable label is the decision.

    Parameters
    ----------
    q : float
        Between 0 and 1.
    levels : sequence of m integers, optional
        See `Absolute`.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint import Atoms
    >>> stage = Atoms((4,), np.array([[[0], [1], [3]]]), np.log([[0.4, 0.3, 0.3]]))
    >>> Quantile(0.9).decide(stage), Quantile(0.2).decide(stage)
    (array([[3]]), array([[0]]))
    """

    q: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.q) or not 0 < self.q < 1:
            raise InputError(f"Quantile: q must be a number between 0 and 1, found {self.q!r}.")

    @property
    def name(self) -> str:
        """See `Loss.name`."""
        return "quantile" if self.q == 0.5 else f"quantile{self.q:g}"

    @property
    def prices(self) -> tuple[float, float]:
        """See `DistanceLoss.prices`."""
        return self.q, 1.0 - self.q
