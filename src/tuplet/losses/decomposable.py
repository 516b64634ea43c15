"""Losses that are an average over the variables: only marginals matter, and every position decides alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.losses.base import Loss, align
from tuplet.losses.expectation import first_lowest
from tuplet.losses.labelled import by_position, floats_or_none, reject_names
from tuplet.space.classes import ClassSpace


class DecomposableLoss(Loss):
    """A weighted mean over positions of a loss that looks at one variable only.

    A new one writes `position_values` and `position_risks`. A position without an answer (`UNKNOWN` in
    `y_pred`) has a price too: it is the last column of the position's risks, where the code -1 finds it.
    As the lowest code wins ties, a price that no answer exceeds means that every position is answered.
    """

    @abstractmethod
    def position_values(self, y_true: Codes, y_pred: Codes) -> Floats:
        """Loss (..., m) of each position of codes (..., m); any finite number where the truth is unknown."""

    @abstractmethod
    def position_risks(self, joint: JointDistribution) -> list[Floats]:
        """Expected loss of each answer at each position, m arrays (n, k_j + 1), the last one no answer."""

    def position_weights(self, m: int) -> Floats:
        """Weights (m,) of the positions; they add up to 1."""
        return np.full(m, 1.0 / m)

    def value(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.value`; the weights of the known positions are scaled to add up to 1."""
        true, pred, known = align(y_true, y_pred)
        weights = self.position_weights(true.shape[-1]) * known
        total = weights.sum(axis=-1)
        summed = (self.position_values(true, pred) * weights).sum(axis=-1)
        return np.divide(summed, total, out=np.full(total.shape, np.nan), where=total > 0)

    def decide(self, joint: JointDistribution) -> Codes:
        """See `Loss.decide`."""
        self.position_weights(joint.n_variables)  # no decision needs them, but they must fit
        codes = np.column_stack([first_lowest(risks) for risks in self.position_risks(joint)])
        return np.where(codes == np.array(joint.cards), UNKNOWN, codes)

    def risk(self, joint: JointDistribution, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.risk`; read off the marginals."""
        codes = joint._as_codes(y_pred)
        rows = np.arange(len(joint))
        risks = self.position_risks(joint)
        answered = np.stack([risks[j][rows, codes[..., j]] for j in range(joint.n_variables)], axis=-1)
        return answered @ self.position_weights(joint.n_variables)


@final
@dataclass(frozen=True)
class Hamming(DecomposableLoss):
    """Share of wrong positions. The decision is the most probable value of every variable.

    Parameters
    ----------
    weights : sequence of m non-negative numbers, optional
        Importance of the variables; only their proportions matter. A loss sees codes: one weight per
        variable, in the order of the variables (`model.space_.names`). A wrong order is not noticed;
        `from_labels` takes names instead.

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
        reject_names("Hamming", "weights", self.weights, "one weight per variable in order")
        weights = floats_or_none(self.weights)
        if (
            weights is None
            or weights.ndim != 1
            or not np.isfinite(weights).all()
            or (weights < 0).any()
            or not weights.any()
        ):
            raise InputError(
                "Hamming: weights must be one weight per variable in order, non-negative numbers and not"
                f" all zero, found {self.weights!r}."
            )
        object.__setattr__(self, "weights", tuple(weights.tolist()))

    @classmethod
    def from_labels(cls, space: ClassSpace, weights: Mapping[str, float]) -> Self:
        """Weights by name.

        Parameters
        ----------
        space : ClassSpace
            The names in their order: `model.space_`, or `ClassSpace.from_labels(Y)`.
        weights : mapping of names to non-negative numbers
            Variables that are not named weigh 1.

        Examples
        --------
        >>> import pandas as pd
        >>> space = ClassSpace.from_labels(pd.DataFrame({"sex": ["f", "m"], "island": ["a", "b"]}))
        >>> Hamming.from_labels(space, {"island": 5})
        Hamming(weights=(1.0, 5.0))
        """
        named = by_position("Hamming.from_labels", space, weights)
        return cls([named.get(j, 1.0) for j in range(space.n_variables)])

    def position_weights(self, m: int) -> Floats:
        """See `DecomposableLoss.position_weights`."""
        if self.weights is None:
            return super().position_weights(m)
        if len(self.weights) != m:
            raise InputError(
                f"Hamming: {len(self.weights)} weights do not fit {m} class variables; give one weight per"
                " variable in order, or names with Hamming.from_labels(space, {name: weight})."
            )
        return np.array(self.weights) / sum(self.weights)

    def position_values(self, y_true: Codes, y_pred: Codes) -> Floats:
        """See `DecomposableLoss.position_values`; no answer is a wrong one."""
        return (y_true != y_pred).astype(float)

    def position_risks(self, joint: JointDistribution) -> list[Floats]:
        """See `DecomposableLoss.position_risks`."""
        return [np.column_stack([1.0 - p, np.ones(len(p))]) for p in joint.marginals()]

    def decide(self, joint: JointDistribution) -> Codes:
        """See `Loss.decide`; no answer is never better than one, so its risk is left out."""
        self.position_weights(joint.n_variables)  # no decision needs them, but they must fit
        answer = np.empty((len(joint), joint.n_variables), dtype=np.intp)
        for j, p in enumerate(joint.marginals()):
            answer[:, j] = first_lowest(1.0 - p)
        return answer
