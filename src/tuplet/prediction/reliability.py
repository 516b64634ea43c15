"""Observed against predicted: bins of probabilities, and coverage by the k best combinations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, Ranking, warn_unproven
from tuplet.prediction.truth import Truth


def marginal_bins(joint: JointDistribution, truth: Truth, n_bins: int, weights: Floats) -> pd.DataFrame:
    """Bins of the marginal probabilities of all variables; see `tuplet.metrics.marginal_calibration`.

    Parameters
    ----------
    joint : JointDistribution
    truth : Truth
    n_bins : int
    weights : array, shape (n,)
    """
    bins = _Bins(n_bins)
    for j, table in enumerate(joint.marginals()):
        categories = np.arange(1 if table.shape[1] == 2 else 0, table.shape[1])
        known = truth.known[:, j]
        happened = truth.codes[known, j, None] == categories
        bins.add(table[known][:, categories], happened, weights[known, None])
    return bins.frame()


def mode_bins(
    joint: JointDistribution, truth: Truth, n_bins: int, weights: Floats, query: str
) -> pd.DataFrame:
    """Bins of the probability of the most probable combination; see `tuplet.metrics.mode_calibration`."""
    mode = joint.mode()
    warn_unproven(query, mode.proven)
    predicted = np.exp(joint.log_prob(np.where(truth.known, mode.codes, UNKNOWN)))
    right = ((mode.codes == truth.codes) | ~truth.known).all(axis=1)
    some = truth.known.any(axis=1)
    bins = _Bins(n_bins)
    bins.add(predicted[some], right[some], weights[some])
    return bins.frame()


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


# -- the k best --------------------------------------------------------------------------------------------


def found_within(best: Ranking, truth: Truth) -> npt.NDArray[np.bool_]:
    """Whether the truth is each of the combinations of a ranking, (n, k), as far as it is known."""
    agree = (best.codes == truth.codes[:, None]) & ~truth.unseen[:, None] | ~truth.known[:, None]
    return np.asarray(agree.all(axis=2))


def coverage_curve(joint: JointDistribution, truth: Truth, k: int, query: str) -> pd.DataFrame:
    """Share of rows whose labels are among the k best combinations, observed and expected under the model.

    Where labels are missing, the others must agree with one of these combinations; rows without any label
    are left out.

    Parameters
    ----------
    joint : JointDistribution
    truth : Truth
    k : int
        The largest number of combinations.
    query : str
        Name of the query, for messages.

    Returns
    -------
    DataFrame
        A line for each number of combinations: `k`, `observed`, `expected` and `count`, the number of rows.
    """
    rows = np.flatnonzero(truth.known.any(axis=1))
    if not len(rows):
        raise InputError(f"{query}: there is no row with a known label.")
    truth, part = Truth(truth.codes[rows], truth.known[rows], truth.unseen[rows]), joint[rows]
    best = part.top_k(k)
    warn_unproven(query, best.proven)
    found = np.maximum.accumulate(found_within(best, truth), axis=1)
    expected = np.minimum(np.cumsum(_chances(part, best, truth.known), axis=1), 1.0)
    return pd.DataFrame(
        {
            "k": np.arange(1, found.shape[1] + 1),
            "observed": found.mean(axis=0),
            "expected": expected.mean(axis=0),
            "count": len(rows),
        }
    )


def _chances(joint: JointDistribution, best: Ranking, known: npt.NDArray[np.bool_]) -> Floats:
    """Probabilities (n, k) of the known labels of combinations; zero where a better one has the same."""
    chances = np.exp(best.log_prob)
    gaps = np.flatnonzero(~known.all(axis=1))
    if len(gaps):
        codes = np.where(known[gaps, None], best.codes[gaps], UNKNOWN)
        part = np.exp(joint[gaps].log_prob(codes.transpose(1, 0, 2))).T
        new = _first_times(codes) & np.isfinite(best.log_prob[gaps])
        chances[gaps] = np.where(new, part, 0.0)
    return chances


def _first_times(codes: Codes) -> npt.NDArray[np.bool_]:
    """Whether each of the outcomes (n, k, m) of a row is none of those before it, (n, k)."""
    n, k, m = codes.shape
    row = np.repeat(np.arange(n), k)[:, None]
    _, first = np.unique(np.hstack([row, codes.reshape(-1, m)]), axis=0, return_index=True)
    answer = np.zeros(n * k, dtype=bool)
    answer[first] = True
    return answer.reshape(n, k)
