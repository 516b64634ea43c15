"""Answers as frames: labels, probabilities and credible intervals.

Frames of labels and marginals are polars frames if the labels came in one, and pandas frames otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.probit import Probit
from tuplet.space.classes import ClassSpace
from tuplet.space.labels import show


def marginal_frame(space: ClassSpace, j: int, table: Floats, index: pd.Index | None) -> Any:
    """Return probabilities (n, k) of variable j with its labels as columns."""
    categories = space.categories[j]
    if not space.is_polars:
        return pd.DataFrame(table, index=index, columns=pd.Index(categories, name=space.keys[j]))
    import polars as pl

    titles = [str(label) for label in categories]
    if len(set(titles)) < len(titles):
        titles = [show(label) for label in categories]
    return pl.DataFrame(table, schema=titles, orient="row")  # polars would guess from the memory layout


def tidy_frame(
    space: ClassSpace,
    codes: Codes,
    before: dict[str, Any],
    after: dict[str, Any],
    index: pd.Index | None = None,
) -> Any:
    """Return labels of codes (n, m) between other columns, whose names give way to those of the variables."""
    labels, keys = space.decode_frame(codes, index), space.keys
    columns = {
        **{_free(name, keys): values for name, values in before.items()},
        **{key: labels[key] for key in keys},
        **{_free(name, keys): values for name, values in after.items()},
    }
    if not space.is_polars:
        return pd.DataFrame(columns, index=labels.index)
    import polars as pl

    return pl.DataFrame({name: _plain(values) for name, values in columns.items()})


def _plain(values: Any) -> Any:
    return values.to_list() if isinstance(values, pd.Index) else values


def _free(name: str, taken: tuple[Any, ...]) -> str:
    while name in taken:
        name += "_"
    return name


# -- credible intervals ------------------------------------------------------------------------------------


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
