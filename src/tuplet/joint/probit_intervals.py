"""Credible intervals of the probabilities of a `Probit`: what its draws say, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from tuplet.exceptions import InputError
from tuplet.joint.probit_points import Visit, unit_points
from tuplet.kernels.ghk import log_paths
from tuplet.typing import UNKNOWN, Codes, Floats

if TYPE_CHECKING:
    from tuplet.joint.probit import Probit

_POINTS = 4096
"""Points that are visited at once."""


def marginal_intervals(joint: Probit, level: float) -> Floats:
    """See `Probit.marginal_intervals`."""
    _check_level(level)
    answer = np.empty((len(joint), joint.n_variables, 2))
    for rows in joint._blocks():
        probability = ndtr(joint._latent_means(rows)[..., list(joint.variables)])
        answer[rows] = _quantiles(probability.transpose(1, 2, 0), np.ones(len(probability)), level)
    known = np.flatnonzero(joint._is_known.any(axis=1))
    if len(known):
        one = np.full((joint.n_variables, 1, joint.n_variables), UNKNOWN)
        one[np.arange(len(one)), 0, np.arange(len(one))] = 1
        answer[known] = joint[known].intervals(np.repeat(one, len(known), axis=1), level).transpose(1, 0, 2)
    return answer


def intervals(joint: Probit, codes: Codes, level: float, n_points: int) -> Floats:
    """See `Probit.intervals`; codes (s, n, m), answer (s, n, 2)."""
    _check_level(level)
    answer = np.empty((*codes.shape[:2], 2))
    for rows in joint._blocks(len(codes) * len(joint.correlations)):
        part = joint[rows]
        logs = _per_draw(part, codes[:, rows], n_points)
        nothing = np.full((1, len(rows), joint.n_variables), UNKNOWN)
        log_known = (
            _per_draw(part, nothing, n_points)[0] if part._is_known.any() else np.zeros(logs.shape[1:])
        )
        with np.errstate(invalid="ignore"):
            conditional = np.exp(np.minimum(logs - log_known, 0.0))
        weights = np.exp(log_known - log_known.max(axis=1, keepdims=True))
        answer[:, rows] = _quantiles(conditional, weights, level)
    return answer


def _per_draw(joint: Probit, codes: Codes, n_points: int) -> Floats:
    """Return log p(codes, evidence) of every draw, (s, n, D)."""
    means = joint._latent_means(np.arange(len(joint)))
    answer = np.full((*codes.shape[:2], len(means)), -np.inf)
    points = unit_points(1, n_points, joint.correlations.shape[1] - 1, joint.seed)
    step = max(1, _POINTS // n_points)
    for which, row, order, asked in joint._queries(codes, np.arange(len(joint))):
        for first in range(0, len(means), step):
            draws = slice(first, first + step)
            answer[which, row, draws] = _log_draws(
                joint.correlations[draws], means[draws], order, points, row, asked
            )
    return answer


def _log_draws(
    correlations: Floats, means: Floats, order: tuple[int, ...], points: Floats, row: Codes, asked: Codes
) -> Floats:
    """Return the log-probabilities (Q, b) of codes (Q, v) in some rows (Q,), for b draws at equal points."""
    b, n_points = len(means), points.shape[1]
    answer = np.zeros((len(row), b))
    if order:
        visit = Visit.make(correlations, order, np.tile(points, b), n_points)
        log_paths(row, asked, visit.scale(means), visit.factors, visit.log_u, answer)
    return answer


def _quantiles(values: Floats, weights: Floats, level: float) -> Floats:
    """Return the two ends (..., 2) of what holds the middle `level` of weighted values (..., D).

    Each end is one of the values: between values of very unequal weight there is nothing to interpolate.
    """
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    below = np.cumsum(np.take_along_axis(np.broadcast_to(weights, values.shape), order, axis=-1), axis=-1)
    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        # A hair less, so that a sum that is a rounding error short of the share still reaches it.
        place = (below < share * (1 - 1e-12) * below[..., -1:]).sum(axis=-1, keepdims=True)
        ends.append(np.take_along_axis(ordered, place, axis=-1))
    return np.concatenate(ends, axis=-1)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"Probit: the level of an interval must lie between 0 and 1, found {level}.")
