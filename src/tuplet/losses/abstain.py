"""The right not to answer, at a price."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.losses.base import Loss, align, is_number, nan_if_unknown
from tuplet.losses.decomposable import DecomposableLoss
from tuplet.losses.expectation import TIE
from tuplet.losses.registry import get_loss
from tuplet.space.classes import ClassSpace


@final
@dataclass(frozen=True)
class Abstain(Loss):
    """Another loss with the option to leave open (`UNKNOWN`) what would cost more to answer.

    Losses that are an average over the variables leave open single positions, each at the price `cost`
    and with the weight it has in the average. All others leave open whole rows.

    Parameters
    ----------
    loss : Loss or str
        The loss of the answers that are given.
    cost : float
        Price of no answer, on the scale of `loss`: with Hamming and 0.1, what is less than 90 % certain
        is left open.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint import Atoms
    >>> joint = Atoms((2, 2), np.array([[[0, 1], [1, 1]]]), np.log([[0.6, 0.4]]))
    >>> Abstain("hamming", 0.1).decide(joint), Abstain("subset", 0.5).decide(joint)
    (array([[-1,  1]]), array([[0, 1]]))
    """

    loss: Loss | str
    cost: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", get_loss(self.loss))
        if not is_number(self.cost) or self.cost < 0:
            raise InputError(f"Abstain: cost must be a number of at least 0, found {self.cost!r}.")

    @cached_property
    def _rule(self) -> Loss:
        loss = get_loss(self.loss)
        if isinstance(loss, DecomposableLoss):
            return _OpenPositions(loss, self.cost)
        return _OpenRows(loss, self.cost)

    @property
    def name(self) -> str:
        """See `Loss.name`."""
        return f"{get_loss(self.loss).name}_or_{self.cost:g}"

    @property
    def abstains(self) -> Literal["never", "positions", "rows"]:  # type: ignore[override]
        """See `Loss.abstains`."""
        return self._rule.abstains

    @property
    def binary(self) -> bool:  # type: ignore[override]
        """See `Loss.binary`."""
        return get_loss(self.loss).binary

    def value(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.value`."""
        return self._rule.value(y_true, y_pred)

    def decide(self, joint: JointDistribution) -> Codes:
        """See `Loss.decide`."""
        return self._rule.decide(joint)

    def risk(self, joint: JointDistribution, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.risk`."""
        return self._rule.risk(joint, y_pred)

    def for_space(self, space: ClassSpace) -> Abstain:
        """See `Loss.for_space`."""
        return Abstain(get_loss(self.loss).for_space(space), self.cost)


@final
@dataclass(frozen=True)
class _OpenPositions(DecomposableLoss):
    """No answer is one more answer at every position, with a price of its own."""

    loss: DecomposableLoss
    cost: float
    name = "open positions"
    abstains = "positions"

    def position_weights(self, m: int) -> Floats:
        return self.loss.position_weights(m)

    def position_values(self, y_true: Codes, y_pred: Codes) -> Floats:
        return np.where(y_pred == UNKNOWN, self.cost, self.loss.position_values(y_true, y_pred))

    def position_risks(self, joint: JointDistribution) -> list[Floats]:
        risks = self.loss.position_risks(joint)
        return [np.column_stack([answers[:, :-1], np.full(len(joint), self.cost)]) for answers in risks]


@final
@dataclass(frozen=True)
class _OpenRows(Loss):
    """No answer at all is one more answer for the row."""

    loss: Loss
    cost: float
    name = "open rows"
    abstains = "rows"

    def value(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
        true, pred, known = align(y_true, y_pred)
        is_open = (pred == UNKNOWN).all(axis=-1)
        answered = np.where(is_open[..., None], 0, pred)  # -1 may mean nothing to the loss of another author
        return nan_if_unknown(np.where(is_open, self.cost, self.loss.value(true, answered)), known)

    def decide(self, joint: JointDistribution) -> Codes:
        codes = self.loss.decide(joint)
        too_dear = self.loss.risk(joint, codes) > self.cost + TIE
        return np.where(too_dear[:, None], UNKNOWN, codes)

    def risk(self, joint: JointDistribution, y_pred: npt.ArrayLike) -> Floats:
        codes = joint._as_codes(y_pred)
        is_open = (codes == UNKNOWN).all(axis=-1)
        answered = np.where(is_open[..., None], 0, codes)
        return np.where(is_open, self.cost, self.loss.risk(joint, answered))
