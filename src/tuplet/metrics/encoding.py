"""Labels to codes, weights and averages, for all metrics."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError, LabelError
from tuplet.core.typing import Codes, Floats
from tuplet.prediction.joint import JointPrediction
from tuplet.prediction.truth import Truth, extended, present_labels, read_truth, require_common_labels
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import require_same_order

Reduce = Literal["mean", "median"]


def encode_both(Y_true: Any, Y_pred: Any, space: ClassSpace | None) -> tuple[Codes, Codes, ClassSpace]:
    """Codes (n, m) of true and predicted labels in one space: the given one, or that of all their labels."""
    reject_prediction(Y_true)
    reject_prediction(Y_pred)
    require_same_order("Y_true and Y_pred", _index(Y_true), _index(Y_pred))
    shared = space if space is not None else ClassSpace.from_labels(Y_true)
    try:
        true, pred = shared.encode(Y_true), shared.encode(Y_pred)
    except LabelError:
        require_common_labels(
            shared.names,
            ("Y_pred", present_labels(shared, Y_pred)),
            ("Y_true", present_labels(shared, Y_true)),
        )
        # Of a variable with one known category the positive one must not depend on which of them is new.
        sort = [space is None or len(values) == 1 for values in shared.categories]
        for Y in (Y_true, Y_pred):
            shared = extended(shared, Y, sort)
        true, pred = shared.encode(Y_true), shared.encode(Y_pred)
    if len(true) != len(pred):
        raise InputError(f"Y_true has {len(true)} rows and Y_pred {len(pred)}; they must be the same rows.")
    return true, pred, shared


def encode_truth(Y_true: Any, prediction: JointPrediction) -> Truth:
    """Codes of true labels in the space of a prediction, and which of them it has never seen."""
    if not isinstance(prediction, JointPrediction):
        raise InputError(
            f"This metric compares labels with a JointPrediction, found {type(prediction).__name__};"
            " pass what predict_joint(X) returns."
        )
    reject_prediction(Y_true)
    return read_truth(Y_true, prediction.space, len(prediction), prediction.index)


def check_weights(sample_weight: npt.ArrayLike | None, n: int) -> Floats:
    """Weights (n,) of the rows, ones if none are given."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=float)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise InputError(
            f"sample_weight must be {n} non-negative numbers, not all zero, found shape {weights.shape}."
        )
    return weights


def average(values: Floats, sample_weight: npt.ArrayLike | None, reduce: Reduce = "mean") -> float:
    """Weighted mean or median of the values (n,) that are not nan; nan if there are none."""
    if reduce not in ("mean", "median"):
        raise InputError(f"reduce must be 'mean' or 'median', found {reduce!r}.")
    weights = check_weights(sample_weight, len(values))
    kept = ~np.isnan(values) & (weights > 0)
    if not kept.any():
        return float("nan")
    if reduce == "mean":
        return float(np.average(values[kept], weights=weights[kept]))
    return _median(values[kept], weights[kept])


def reject_prediction(Y: Any) -> None:
    """Raise `InputError` for a joint prediction where labels are expected, before it is read row by row."""
    if isinstance(Y, JointPrediction):
        raise InputError(
            "This metric compares labels with labels, found a JointPrediction; pass model.predict(X) or"
            " prediction.decide(loss)."
        )


def _median(values: Floats, weights: Floats) -> float:
    """Return the value with half of the weight on either side, the middle of two such values."""
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    low, high = np.searchsorted(below, [0.5 - 1e-12, 0.5 + 1e-12])
    return float((values[order[low]] + values[order[high]]) / 2)


def _index(rows: Any) -> pd.Index | None:
    return rows.index if isinstance(rows, pd.DataFrame | pd.Series) else None
