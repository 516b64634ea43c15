"""A metric on label vectors under which the true one is the nearest to the prediction, by a margin."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import ConvergenceWarning
from tuplet.core.typing import Floats

_SWEEPS = 200
"""Largest number of sweeps of coordinate ascent over the labels."""

_SMALL_STEP = 1e-6
"""A row is done when no label moves further in a sweep."""


class MarginMetric(NamedTuple):
    """The answer of `fit_metric`."""

    metric: Floats  # (m, m), symmetric, no negative eigenvalue
    objective: float
    gap: float  # objective less a lower bound on the least possible one
    n_cuts: int


def fit_metric(
    labels: Floats,
    predicted: Floats,
    known: npt.NDArray[np.bool_],
    weights: Floats,
    *,
    C: float,
    tol: float,
    max_cuts: int,
) -> MarginMetric:
    """Least Q with the true label vectors near, and all others far from, the predictions.

        min  1/2 |Q|^2 + C mean_i xi_i   over symmetric Q without negative eigenvalues,   such that
        |y - f_i|_Q^2 - |y_i - f_i|_Q^2 >= hamming(y_i, y) - xi_i   for all y in [0, 1]^m

    where |v|_Q^2 = v Q v. The corners of the cube are the label vectors; its inside is there because the
    most violated constraint over the whole cube is found exactly, by maximising a concave function. Each
    round adds the mean of all rows' most violated constraints as one cut and solves for all cuts so far.

    Parameters
    ----------
    labels, predicted : arrays, shape (n, m)
        True 0/1 labels y_i and predictions f_i.
    known : array of bool, shape (n, m)
        Labels that are not known are held at their predictions: they add no loss and no distance.
    weights : array, shape (n,)
    C : float
        Price of violations.
    tol : float
        Largest gap to the optimum, relative to the objective.
    max_cuts : int
    """
    share = weights / weights.sum()
    m = labels.shape[1]
    truth = np.where(known, labels, predicted)
    Q, alpha = np.zeros((m, m)), np.zeros(0)
    losses, slopes = np.zeros(0), np.zeros((0, m, m))
    answer, rivals = MarginMetric(Q, np.inf, np.inf, 0), truth.copy()
    lower = 0.0
    for n_cuts in range(1, max_cuts + 1):
        rivals = impostors(Q, truth, predicted, known, rivals)
        loss, slope, slack = _cut(Q, truth, rivals, predicted, share)
        objective = 0.5 * float((Q**2).sum()) + C * slack
        if objective < answer.objective:
            answer = answer._replace(metric=Q, objective=objective)
        answer = answer._replace(gap=answer.objective - lower, n_cuts=n_cuts)
        if answer.gap <= tol * max(answer.objective, 1e-12):
            return answer
        losses, slopes = np.append(losses, loss), np.concatenate([slopes, slope[None]])
        alpha, Q = _solve(losses, slopes, np.append(alpha, 0.0), C)
        lower = float(losses @ alpha) - 0.5 * float((Q**2).sum())
    warnings.warn(
        f"The metric of the output codes has not converged with {max_cuts} cuts (gap {answer.gap:.1e} of"
        f" {answer.objective:.1e}); raise max_cuts or tol.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return answer


def impostors(
    Q: Floats, truth: Floats, predicted: Floats, known: npt.NDArray[np.bool_], start: Floats
) -> Floats:
    """Vectors (n, m) of the cube that are near the predictions though far from the truth.

    They maximise hamming(y_i, y) - |y - f_i|_Q^2, by coordinate ascent for all rows at once; it is concave,
    and separable constraints make coordinate-wise optima optimal.
    """
    # Labels on the first axis: one label of all rows is then one piece of memory.
    gain = np.where(known, 0.5 - truth, 0.0).T  # half of what a unit of the label is worth
    answer, active = start.T.copy(), np.arange(len(truth))
    pull = Q @ (answer - predicted.T)
    for _ in range(_SWEEPS):
        y, near, worth, free = answer[:, active], pull[:, active], gain[:, active], known.T[:, active]
        largest = np.zeros(len(active))
        for j in range(len(Q)):
            slope = worth[j] - near[j]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                best = np.clip(y[j] + slope / Q[j, j], 0.0, 1.0)
            step = np.where(free[j] & (slope != 0.0), best - y[j], 0.0)
            y[j] += step
            near += Q[j][:, None] * step
            np.maximum(largest, np.abs(step), out=largest)
        answer[:, active], pull[:, active] = y, near
        active = active[largest > _SMALL_STEP]
        if not len(active):
            break
    return answer.T


def _cut(
    Q: Floats, truth: Floats, rivals: Floats, predicted: Floats, share: Floats
) -> tuple[float, Floats, float]:
    """Mean loss of the rivals, scatter of theirs less that of the truth (m, m), and the mean slack at Q."""
    loss = np.abs(truth - rivals).sum(axis=1)
    near, far = truth - predicted, rivals - predicted
    slack = loss + ((near @ Q) * near).sum(axis=1) - ((far @ Q) * far).sum(axis=1)
    used = share * (slack > 0)
    slope = (far.T * used) @ far - (near.T * used) @ near
    return float(used @ loss), slope, float(share @ np.maximum(slack, 0.0))


def _solve(losses: Floats, slopes: Floats, start: Floats, C: float) -> tuple[Floats, Floats]:
    """Multipliers (t,) and metric for the cuts so far, by an accelerated gradient method on the dual.

    The dual is losses . alpha - 1/2 |P(sum_t alpha_t slopes_t)|^2 over alpha >= 0 with sum at most C, where P
    leaves out negative eigenvalues; the metric is what stands inside the norm.
    """
    flat = slopes.reshape(len(slopes), -1)
    step = 1.0 / max(float(np.linalg.eigvalsh(flat @ flat.T)[-1]), 1e-12)
    alpha = ahead = start
    momentum = 1.0
    for _ in range(2000):
        gradient = losses - flat @ _nonnegative(ahead, slopes).ravel()
        new = _onto_simplex(ahead + step * gradient, C)
        change = new - alpha
        if change @ gradient < 0:  # momentum has overshot: start it again
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / following * change
        alpha, momentum = new, following
        if np.abs(change).max() <= 1e-9 * C:
            break
    return alpha, _nonnegative(alpha, slopes)


def _nonnegative(alpha: Floats, slopes: Floats) -> Floats:
    values, vectors = np.linalg.eigh(np.tensordot(alpha, slopes, axes=1))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _onto_simplex(point: Floats, total: float) -> Floats:
    """Nearest point whose entries are not negative and sum to `total` at most."""
    positive = np.maximum(point, 0.0)
    if positive.sum() <= total:
        return positive
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(point) + 1)
    return np.maximum(point - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)
