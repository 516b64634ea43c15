"""Modes of linear probit models of single labels, and the scales of slopes that suit labels best."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, softmax

from tuplet.core.typing import Codes, Floats
from tuplet.models.probit.sampling.design import LinearDesign

_N_EXPECTED, _N_NEWTON = 15, 6
"""Steps of the expectation-maximisation algorithm and of Newton's method to a mode."""

_MOST_DENSE = 200
"""Positions of a label up to which their curvature is a matrix, rather than its diagonal."""

_SCALES = np.geomspace(1e-3, 3.0, 12)
"""Scales that are tried; with larger slopes of standardised predictors, labels would be certain."""

_N_STEPS = 4
"""Steps to the mode of a scale from that of the scale before."""


def estimate_scales(design: LinearDesign, signs: Codes, offsets: Floats) -> Floats:
    """Return prior standard deviations (q,) of the slopes of each label: posterior means of a scale.

    The scale has a half-Cauchy prior with median 1 / sqrt(d), under which d predictors together matter about
    as much as the noise. The probability of the signs (q, n) of a label alone given the scale is Laplace's
    approximation with the mean curvature of all rows.
    """
    median = 1 / math.sqrt(max(len(design.centre), 1))
    means = np.repeat(offsets[:, None], signs.shape[1], axis=1)
    log_weights = np.empty((len(signs), len(_SCALES)))
    for i, scale in enumerate(_SCALES):
        tried = design.with_scales(np.full(len(signs), scale))
        positions, means = _expect(tried, signs, offsets, means, _N_STEPS)
        log_weights[:, i] = _log_evidence(tried, signs, positions, means)
        # The density of the logarithm of the scale, since the grid is even in it.
        log_weights[:, i] += math.log(scale) - math.log1p((scale / median) ** 2)
    return softmax(log_weights, axis=1) @ _SCALES


def _log_evidence(design: LinearDesign, signs: Codes, positions: Floats, means: Floats) -> Floats:
    """Return log-probabilities (q,) of the signs of each label, from modes (q, r) and their means (q, n)."""
    curvature = information_of(means, signs).mean(axis=1)[:, None] * design.strengths * design.deviations**2
    log_density = log_ndtr(signs * means).sum(axis=1) - 0.5 * (positions**2).sum(axis=1)
    return log_density - 0.5 * np.log1p(curvature).sum(axis=1)


def find_modes(design: LinearDesign, signs: Codes, offsets: Floats) -> tuple[Floats, Floats]:
    """Return positions (q, r) near the mode of labels without correlations, and their means (q, n)."""
    start = np.repeat(offsets[:, None], signs.shape[1], axis=1)
    positions, means = _expect(design, signs, offsets, start, _N_EXPECTED)
    for _ in range(_N_NEWTON):
        roots = curvature_roots(design, information_of(means, signs))
        slope = design.slopes(signs * hazard(signs * means)) - positions
        step = times(roots, times(roots, slope, transposed=True))
        tried = design.means(positions + step) + offsets[:, None]
        gain = (log_ndtr(signs * tried) - log_ndtr(signs * means)).sum(axis=1)
        gain -= 0.5 * ((positions + step) ** 2 - positions**2).sum(axis=1)
        better = gain[:, None] > 0
        positions, means = positions + step * better, np.where(better, tried, means)
    return positions, means


def _expect(
    design: LinearDesign, signs: Codes, offsets: Floats, means: Floats, n_steps: int
) -> tuple[Floats, Floats]:
    """Take steps of the expectation-maximisation algorithm from means (q, n); return positions and means."""
    positions = np.zeros_like(design.deviations)
    for _ in range(n_steps):
        expected = means - offsets[:, None] + signs * hazard(signs * means)
        positions = design.slopes(expected) / (design.strengths * design.deviations**2 + 1)
        means = design.means(positions) + offsets[:, None]
    return positions, means


def information_of(means: Floats, signs: Codes) -> Floats:
    """Return how much labels of these means (q, n) say about them; nothing where they are not known."""
    return np.where(signs == 0, 0.0, hazard(means) * hazard(-means))


def curvature_roots(design: LinearDesign, information: Floats) -> Floats:
    """Return roots of the inverse curvature of positions, (q, r, r) or diagonals (q, r)."""
    r = len(design.strengths)
    if r > _MOST_DENSE:
        return (1 + information.mean(axis=1)[:, None] * design.strengths * design.deviations**2) ** -0.5
    curvature = [
        np.eye(r) + (design.rotated.T * each) @ design.rotated * np.outer(scales, scales)
        for each, scales in zip(information, design.deviations, strict=True)
    ]
    return np.ascontiguousarray(np.linalg.inv(np.linalg.cholesky(curvature)).transpose(0, 2, 1))


def times(roots: Floats, numbers: Floats, transposed: bool = False) -> Floats:
    """Multiply the numbers (q, r) of each label by its root, (q, r, r) or a diagonal (q, r)."""
    if roots.ndim == 2:
        return roots * numbers
    return np.asarray(np.einsum("kji,kj->ki" if transposed else "kij,kj->ki", roots, numbers))


def hazard(t: Floats) -> Floats:
    """Return phi(t) / Phi(t)."""
    return np.exp(-0.5 * t * t - log_ndtr(t)) / math.sqrt(2 * math.pi)
