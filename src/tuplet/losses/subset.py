"""Right only as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, warn_unproven
from tuplet.losses.base import Loss, align, nan_if_unknown


@final
@dataclass(frozen=True)
class SubsetZeroOne(Loss):
    """1 unless all positions are right. The decision is the mode: the most probable combination.

    Examples
    --------
    >>> SubsetZeroOne().value([[0, 1, 2], [0, 1, -1]], [[0, 1, 1], [0, 1, 1]])
    array([1., 0.])
    """

    name = "subset"

    def value(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.value`."""
        true, pred, known = align(y_true, y_pred)
        return nan_if_unknown(((true != pred) & known).any(axis=-1).astype(float), known)

    def decide(self, joint: JointDistribution) -> Codes:
        """See `Loss.decide`; warns where the search for the mode ended on its budget."""
        mode = joint.mode()
        warn_unproven("SubsetZeroOne.decide", mode.proven)
        return mode.codes

    def risk(self, joint: JointDistribution, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.risk`."""
        codes = joint._as_codes(y_pred)
        answered = (codes != UNKNOWN).all(axis=-1)  # a gap in an answer is not right, whatever the truth
        return np.where(answered, -np.expm1(np.minimum(0.0, joint.log_prob(codes))), 1.0)
