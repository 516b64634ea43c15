"""Calibration: of all events that are predicted with probability 70 %, 70 % should occur."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import pandas as pd

from tuplet.metrics.encoding import check_weights, encode_truth
from tuplet.prediction.joint import JointPrediction
from tuplet.prediction.reliability import marginal_bins, mode_bins


def marginal_calibration(
    Y_true: Any, prediction: JointPrediction, n_bins: int = 10, *, sample_weight: npt.ArrayLike | None = None
) -> pd.DataFrame:
    """Calibration of the marginal probabilities of all variables together.

    A binary variable enters with the probability of its second category, any other with those of all its
    categories.

    Parameters
    ----------
    Y_true : labels, shape (n, m)
        Missing ones are left out.
    prediction : JointPrediction
    n_bins : int
        Bins of equal width between 0 and 1.
    sample_weight : array, shape (n,), optional

    Returns
    -------
    DataFrame
        A line for each bin that is not empty: `bin`, its limits `lower` and `upper`, `mean_predicted`,
        `observed` frequency and `count` (the sum of the weights, if there are any).
    """
    truth = encode_truth(Y_true, prediction)
    weights = check_weights(sample_weight, len(prediction))
    return marginal_bins(prediction.distribution, truth, n_bins, weights)


def mode_calibration(
    Y_true: Any, prediction: JointPrediction, n_bins: int = 10, *, sample_weight: npt.ArrayLike | None = None
) -> pd.DataFrame:
    """Calibration of the probability of the most probable combination; see `marginal_calibration`.

    Where labels are missing, it is the probability that the mode is right about the others.
    """
    truth = encode_truth(Y_true, prediction)
    weights = check_weights(sample_weight, len(prediction))
    return mode_bins(prediction.distribution, truth, n_bins, weights, "mode_calibration")


def expected_calibration_error(calibration: pd.DataFrame) -> float:
    """Mean distance between predicted and observed frequency, each bin weighted by its count.

    Parameters
    ----------
    calibration : DataFrame
        From `marginal_calibration` or `mode_calibration`.

    Examples
    --------
    >>> import pandas as pd
    >>> bins = pd.DataFrame({"mean_predicted": [0.2, 0.9], "observed": [0.3, 0.9], "count": [5, 5]})
    >>> round(expected_calibration_error(bins), 3)
    0.05
    """
    distance = (calibration["mean_predicted"] - calibration["observed"]).abs()
    total = calibration["count"].sum()
    return float((distance * calibration["count"]).sum() / total) if total else float("nan")
