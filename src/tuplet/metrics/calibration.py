"""Whether probabilities mean what they say: 70 % of all things given 70 % should happen."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.joint.base import warn_unproven
from tuplet.metrics.encoding import check_weights, encode_truth
from tuplet.prediction import JointPrediction
from tuplet.typing import UNKNOWN, Floats

__all__ = ["expected_calibration_error", "marginal_calibration", "mode_calibration"]


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
    bins = _Bins(n_bins)
    for j, table in enumerate(prediction.distribution.marginals()):
        categories = np.arange(1 if table.shape[1] == 2 else 0, table.shape[1])
        known = truth.known[:, j]
        happened = truth.codes[known, j, None] == categories
        bins.add(table[known][:, categories], happened, weights[known, None])
    return bins.frame()


def mode_calibration(
    Y_true: Any, prediction: JointPrediction, n_bins: int = 10, *, sample_weight: npt.ArrayLike | None = None
) -> pd.DataFrame:
    """Calibration of the probability of the most probable combination; see `marginal_calibration`.

    Where labels are missing, it is the probability that the mode is right about the others.
    """
    truth = encode_truth(Y_true, prediction)
    mode = prediction.distribution.mode()
    warn_unproven("mode_calibration", mode.proven)
    predicted = np.exp(prediction.distribution.log_prob(np.where(truth.known, mode.codes, UNKNOWN)))
    right = ((mode.codes == truth.codes) | ~truth.known).all(axis=1)
    some = truth.known.any(axis=1)
    bins = _Bins(n_bins)
    bins.add(predicted[some], right[some], check_weights(sample_weight, len(prediction))[some])
    return bins.frame()


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


class _Bins:
    """Sums of weights, probabilities and events in bins of equal width."""

    def __init__(self, n_bins: int) -> None:
        if n_bins < 1:
            raise InputError(f"n_bins must be at least 1, found {n_bins}.")
        self.n_bins = n_bins
        self.sums = np.zeros((3, n_bins))

    def add(self, predicted: Floats, happened: npt.NDArray[np.bool_], weights: Floats) -> None:
        """Add events of one shape (...) and weights that broadcast to it."""
        position = np.clip((predicted * self.n_bins).astype(np.intp), 0, self.n_bins - 1)
        events = (np.ones_like(predicted), predicted, happened.astype(float))
        for sums, values in zip(self.sums, events, strict=True):
            sums += np.bincount(position.ravel(), (weights * values).ravel(), self.n_bins)

    def frame(self) -> pd.DataFrame:
        kept = np.flatnonzero(self.sums[0] > 0)
        count, predicted, happened = self.sums[:, kept]
        return pd.DataFrame(
            {
                "bin": kept,
                "lower": kept / self.n_bins,
                "upper": (kept + 1) / self.n_bins,
                "mean_predicted": predicted / count,
                "observed": happened / count,
                "count": count,
            }
        )
