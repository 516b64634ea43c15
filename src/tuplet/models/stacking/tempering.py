"""A power of a distribution: sharper or flatter as held-out rows want it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import logsumexp

from tuplet.core.limits import PASS_CELLS, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution, all_outcomes
from tuplet.local.calibration import best_power
from tuplet.models.prior import independent, least_mass, log_marginals
from tuplet.models.stacking.held_out import gain_of

OUTCOMES_LIMIT = 1024
"""Outcomes up to which a distribution is raised to a power: all of them are needed to add up to one again."""

_CELLS = 2**21
"""Probabilities of held-out rows that are kept for each model."""

_POWERS = (0.25, 4.0)
"""Least and largest power."""


@final
@dataclass(frozen=True)
class Tempering:
    """The power that held-out rows want, and what it gains.

    Attributes
    ----------
    power : float
        1 leaves the distribution as it is, and is the answer where nothing else is clearly better; the
        temperature is its inverse.
    gain : float
        Nats per held-out row.
    error : float
        Standard error of the gain.
    """

    power: float = 1.0
    gain: float = 0.0
    error: float = 0.0


def n_tables(cards: tuple[int, ...], n: int) -> int:
    """Return of how many of n held-out rows all outcomes are kept; none if there are too many outcomes."""
    outcomes = int(np.prod(cards, dtype=float))
    return 0 if outcomes > OUTCOMES_LIMIT else min(n, _CELLS // outcomes)


def find_power(
    table: Floats, codes: Codes, weights: Floats, cards: tuple[int, ...], groups: Codes | None = None
) -> Tempering:
    """Power that maximises the held-out log-likelihood, and is kept only where it gains two standard errors.

    Parameters
    ----------
    table : array, shape (n, outcomes)
        Held-out log-probabilities of all outcomes.
    codes : int array, shape (n, m)
        What was found; rows with missing labels are left out.
    weights : array, shape (n,)
    cards : tuple of int
    groups : int array, shape (n,), optional
        For the standard error of the gain.
    """
    known = (codes != UNKNOWN).all(axis=1)
    if known.sum() < 2:
        return Tempering()
    if not known.all():
        table, codes, weights = table[known], codes[known], weights[known]
        groups = None if groups is None else groups[known]
    weights, found = weights / weights.sum(), _positions(codes, cards)
    seen = table[np.arange(len(table)), found]
    power = best_power(table, found, weights, bounds=_POWERS)
    gain = gain_of(power * seen - _log_totals(table, power) - seen, weights, groups)
    return Tempering(power, *gain) if gain.is_clear else Tempering()


def _log_totals(table: Floats, power: float) -> Floats:
    """Return what powers of probabilities (n, outcomes) add up to in each row, as logarithms."""
    totals = np.empty(len(table))
    for rows in row_blocks(len(table), table.shape[1], PASS_CELLS):
        totals[rows] = logsumexp(power * table[rows], axis=1)
    return totals


def _positions(codes: Codes, cards: tuple[int, ...]) -> Codes:
    """Return the places (n,) of outcomes in the order of `all_outcomes`."""
    return np.ravel_multi_index(tuple(codes.T), cards).astype(np.intp)


def temper(joint: JointDistribution, power: float, counts: Sequence[Floats]) -> JointDistribution:
    """Raise a distribution of few outcomes to a power, and let it add up to one again.

    A power does not have the bounds of the distribution, so the pseudo-row of labels with these counts (k_j,)
    is added, except to outcomes that are impossible; see `tuplet.local.smoothing`.
    """
    if power == 1.0:
        return joint
    outcomes, table = all_outcomes(joint.cards), power * joint._log_table()
    table -= logsumexp(table, axis=1, keepdims=True)
    frequencies = independent(log_marginals(counts), 1)._log_table()
    least = least_mass(counts)
    mixed = np.logaddexp(np.log1p(-least) + table, np.log(least) + frequencies)
    return Atoms(joint.cards, outcomes[None], np.where(np.isneginf(table), -np.inf, mixed))
