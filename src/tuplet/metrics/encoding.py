"""The rim of the metrics: labels to codes, weights, averages."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError, LabelError
from tuplet.metrics.pairing import reject_prediction, require_common_labels, require_same_rows
from tuplet.prediction import JointPrediction
from tuplet.space import ClassSpace, labels
from tuplet.space.containers import open_table
from tuplet.typing import UNKNOWN, Codes, Floats

__all__ = ["Reduce", "Truth", "average", "check_weights", "encode_both", "encode_truth"]

Reduce = Literal["mean", "median"]


class Truth(NamedTuple):
    """True labels as a prediction sees them."""

    codes: Codes  # (n, m), UNKNOWN where the label is missing or unseen
    known: npt.NDArray[np.bool_]  # (n, m), False where the label is missing
    unseen: npt.NDArray[np.bool_]  # (n, m), True for a label that the prediction does not know at all


def encode_both(Y_true: Any, Y_pred: Any, space: ClassSpace | None) -> tuple[Codes, Codes, ClassSpace]:
    """Codes (n, m) of true and predicted labels in one space: the given one, or that of all their labels."""
    reject_prediction(Y_true)
    reject_prediction(Y_pred)
    require_same_rows("Y_true and Y_pred", Y_true, Y_pred)
    shared = space if space is not None else ClassSpace.from_labels(Y_true)
    try:
        true, pred = shared.encode(Y_true), shared.encode(Y_pred)
    except LabelError:
        require_common_labels(
            shared.names, ("Y_pred", _columns(shared, Y_pred)), ("Y_true", _columns(shared, Y_true))
        )
        for Y in (Y_true, Y_pred):
            shared = _extended(shared, Y, in_order=space is None)
        true, pred = shared.encode(Y_true), shared.encode(Y_pred)
    if len(true) != len(pred):
        raise InputError(f"Y_true has {len(true)} rows and Y_pred {len(pred)}; they must be the same rows.")
    return true, pred, shared


def encode_truth(Y_true: Any, prediction: JointPrediction) -> Truth:
    """Codes of true labels in the space of a prediction, and which of them it has never seen.

    A category that is absent from a training fold is no reason to give up: its probability is zero.
    """
    if not isinstance(prediction, JointPrediction):
        raise InputError(
            f"This metric compares labels with a JointPrediction, found {type(prediction).__name__};"
            " pass what predict_joint(X) returns."
        )
    space = prediction.space
    reject_prediction(Y_true)
    require_same_rows("Y_true and the prediction", Y_true, prediction)
    try:
        codes = space.encode(Y_true)
    except LabelError:
        known = list(space.categories)
        require_common_labels(space.names, ("Y_true", _columns(space, Y_true)), ("the prediction", known))
        codes = _extended(space, Y_true, in_order=False).encode(Y_true)
    if len(codes) != len(prediction):
        raise InputError(f"Y_true has {len(codes)} rows and the prediction {len(prediction)}.")
    unseen = codes >= np.array(space.cards)
    return Truth(np.where(unseen, UNKNOWN, codes), codes != UNKNOWN, unseen)


def _extended(space: ClassSpace, Y: Any, in_order: bool) -> ClassSpace:
    """Return the space with the labels of Y that it lacks: behind the others, or all of them in order."""
    categories = []
    for values, name, own in zip(_columns(space, Y), space.names, space.categories, strict=True):
        distinct = list(dict.fromkeys([*own.tolist(), *values.tolist()]))
        every = np.empty(len(distinct), dtype=object)
        every[:] = distinct
        categories.append(labels.learn(every, name) if in_order else every)
    return ClassSpace(space.names, tuple(categories), space.form)


def _columns(space: ClassSpace, Y: Any) -> list[np.ndarray]:
    """Return the labels of each variable that are there."""
    return [labels.present_and_missing(column)[0] for column in space._match(open_table(Y))]


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


def _median(values: Floats, weights: Floats) -> float:
    """Return the value with half of the weight on either side, the middle of two such values."""
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    low, high = np.searchsorted(below, [0.5 - 1e-12, 0.5 + 1e-12])
    return float((values[order[low]] + values[order[high]]) / 2)
