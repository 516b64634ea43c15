"""How sure a model is of its probabilities, where it has draws of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.joint import Probit
from tuplet.joint.base import JointDistribution
from tuplet.space import ClassSpace
from tuplet.typing import Codes, Floats


def require_draws(joint: JointDistribution) -> Probit:
    """Return the distribution if it has draws; raise `InputError` otherwise."""
    if not isinstance(joint, Probit):
        raise InputError(
            "intervals: credible intervals need draws of a model's parameters, which"
            f" {type(joint).__name__} does not have; ProbitClassifier and ProbitForestClassifier give them."
        )
    return joint


def label_intervals(joint: Probit, space: ClassSpace, rows: Any, level: float) -> pd.DataFrame:
    """Return a line for each row and class variable: P(second label) and its credible interval."""
    limits = joint.marginal_intervals(level)  # (n, m, 2)
    positive = np.stack([table[:, 1] for table in joint.marginals()], axis=1)
    n, m = positive.shape
    return pd.DataFrame(
        {
            "row": np.repeat(np.asarray(rows), m),
            "variable": np.tile(np.array(space.names, dtype=object), n),
            "label": np.tile(np.array([str(labels[1]) for labels in space.categories], dtype=object), n),
            "probability": positive.ravel(),
            "lower": limits[..., 0].ravel(),
            "upper": limits[..., 1].ravel(),
        }
    )


def outcome_intervals(
    joint: Probit, codes: Codes, log_prob: Floats, index: pd.Index | None, level: float
) -> pd.DataFrame:
    """Return a line for each row: the probability of its codes (n, m) and its credible interval."""
    limits = joint.intervals(codes, level)
    columns = {"probability": np.exp(log_prob), "lower": limits[:, 0], "upper": limits[:, 1]}
    return pd.DataFrame(columns, index=index)
