"""Weights of a mixture that explain held-out rows best: a concave problem, solved with a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import nnls

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats

_GAP = 1e-12
"""Nats per row that may be lost to the best weights there are."""

_ZERO = 1e-7
"""Weights below this are zero: dropping one costs at most that much, relative to the likelihood."""

_STEEP = 10.0
"""Slope from which a step of EM follows each Newton step: far from the answer, on rows that members explain
by dozens of nats better or worse, the second-order model reaches nowhere."""

_RIDGE = 1e-13
"""Relative size of what is added to the curvature, which is singular where members agree on all rows."""


@final
@dataclass(frozen=True)
class MixtureWeights:
    """Weights of a mixture, and how sure it is that no others are better.

    Attributes
    ----------
    weights : array, shape (C,)
        Non-negative, of sum 1.
    log_likelihood : float
        Mean log-probability of the rows under the mixture.
    gap : float
        No weights are better than these by more than this: the largest slope towards a single member, which
        bounds a concave function.
    n_iterations : int
    """

    weights: Floats
    log_likelihood: float
    gap: float
    n_iterations: int


def mixture_weights(
    log_prob: Floats, sample_weight: Floats | None = None, *, max_iter: int = 200
) -> MixtureWeights:
    """Weights w that maximise the mean of log sum_c w_c p_c(y_i).

    Parameters
    ----------
    log_prob : array, shape (n, C)
        Log-probabilities of n rows by C members that have not seen these rows; minus infinity is allowed
        where another member is finite.
    sample_weight : array, shape (n,), optional
    max_iter : int
        Steps, each the solution of a quadratic problem with non-negative weights; some ten suffice.

    Notes
    -----
    The sum of the weights need not be held at 1: subtracting it from the objective gives the same maximum.
    What is left has no constraint but w >= 0, and its second-order model is a non-negative least-squares
    problem in C unknowns, so that a step costs one pass over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> log_prob = np.log([[0.9, 0.5], [0.1, 0.5], [0.9, 0.5]])
    >>> mixture_weights(log_prob).weights.round(3)
    array([0.417, 0.583])
    """
    log_prob = np.asarray(log_prob, dtype=float)
    share = _shares(log_prob, sample_weight)
    best = log_prob.max(axis=1)
    _require_finite(best)
    prob = np.exp(log_prob - best[:, None])  # of the best member of each row 1: nothing overflows
    weights = np.full(prob.shape[1], 1 / prob.shape[1])
    iterations = 0
    while iterations < max_iter:
        slopes = share @ (prob / (prob @ weights)[:, None])
        if slopes.max() - 1 <= _GAP:
            break
        weights = _step(prob, share, weights, slopes)
        if slopes.max() > _STEEP:
            weights = weights * (share @ (prob / (prob @ weights)[:, None]))
        iterations += 1
    weights = _cleared(prob, share, weights)
    mixed = prob @ weights
    return MixtureWeights(
        weights,
        float(share @ (np.log(mixed) + best)),
        float(max(0.0, (share @ (prob / mixed[:, None])).max() - 1)),
        iterations,
    )


def _shares(log_prob: Floats, sample_weight: Floats | None) -> Floats:
    n = len(log_prob)
    if not n or log_prob.ndim != 2 or not log_prob.shape[1]:
        raise InputError(f"mixture_weights: needs rows and members, found the shape {log_prob.shape}.")
    if sample_weight is None:
        return np.full(n, 1 / n)
    return np.asarray(sample_weight / sample_weight.sum())


def _require_finite(best: Floats) -> None:
    bad = np.flatnonzero(~np.isfinite(best))
    if len(bad):
        raise InputError(
            f"mixture_weights: no member gives row {bad[0]} a positive probability ({len(bad)} such rows);"
            " add a member that rules nothing out, such as PriorClassifier."
        )


def _step(prob: Floats, share: Floats, weights: Floats, slopes: Floats) -> Floats:
    """One Newton step within w >= 0, shortened until the likelihood grows."""
    ratio = prob / (prob @ weights)[:, None]
    curvature = (ratio * share[:, None]).T @ ratio
    # -log u is about (u - 2)^2 / 2 at u = 1, where u = ratio @ w: least squares, and the sum of w on top.
    root = np.linalg.cholesky(curvature + _RIDGE * np.trace(curvature) * np.eye(len(weights)))
    target = np.linalg.solve(root, 2 * slopes - 1)
    aim = nnls(root.T, target, maxiter=100 * len(weights))[0]
    direction, objective = aim - weights, _objective(prob, share, weights)
    slope = (slopes - 1) @ direction
    size = 1.0
    while size > 1e-10:
        trial = weights + size * direction
        if _objective(prob, share, trial) >= objective + 1e-4 * size * slope:
            return np.asarray(trial / trial.sum())
        size /= 2
    return np.asarray(weights * slopes)  # a step of EM, which never falls


def _objective(prob: Floats, share: Floats, weights: Floats) -> float:
    mixed = prob @ weights
    return float(share @ np.log(mixed) - weights.sum()) if (mixed > 0).all() else -np.inf


def _cleared(prob: Floats, share: Floats, weights: Floats) -> Floats:
    """Weights without traces of members, unless a row has nothing else; never worse than one member."""
    kept = np.where(weights < _ZERO, 0.0, weights)
    kept /= kept.sum()
    if _objective(prob, share, kept) < _objective(prob, share, weights) - 1e-9:
        kept = weights
    alone = np.eye(len(weights))[np.argmax(_singly(prob, share))]
    return kept if _objective(prob, share, kept) >= _objective(prob, share, alone) else alone


def _singly(prob: Floats, share: Floats) -> Floats:
    """Log-likelihood (C,) of each member alone, up to what all have in common."""
    with np.errstate(divide="ignore"):
        return np.asarray(share @ np.log(prob))
