"""Losses that are an average over the variables: only marginals matter, and every position decides alone."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.losses.base import Loss, align
from tuplet.losses.expectation import first_lowest


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
