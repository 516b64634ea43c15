"""Whether chains agree and how many independent draws theirs are worth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tuplet.exceptions import MissingDependencyError
from tuplet.probit.draws import Draws
from tuplet.typing import Floats

FEWEST = 100
"""Draws of a chain below which nothing is judged."""


class Convergence(NamedTuple):
    """The worst R-hat and the least effective sample size of all correlations and label frequencies."""

    r_hat: float
    effective_size: float

    @property
    def poor(self) -> bool:
        """Whether chains disagree, or posterior means rest on few independent draws."""
        return not (self.r_hat <= 1.1 and self.effective_size >= 50)  # nan is no good sign, either


def convergence_of(draws: Draws) -> Convergence | None:
    """Judge correlations and levels of all chains; None with too few draws, or without arviz-stats."""
    if draws.levels.shape[1] < FEWEST:
        return None
    watched = _watched(draws)
    if not watched.size:
        return None
    try:
        r_hat, ess = diagnose(watched)
    except MissingDependencyError:
        return None
    return Convergence(float(np.max(r_hat)), float(np.min(ess)))


def diagnose(array: Floats) -> tuple[Floats, Floats]:
    """Return R-hat and the effective sample size of draws (chains, draws, v), nan for what never changes."""
    try:
        from arviz_stats.base.array import array_stats
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "R-hat and effective sample sizes need arviz-stats; run `pip install tuplet[bart]`."
        ) from None
    statistics: Any = array_stats
    r_hat, ess = np.full((2, array.shape[2]), np.nan)
    moving = np.ptp(array, axis=(0, 1)) > 0
    if moving.any() and array.shape[1] >= 4:
        draws, axes = array[..., moving], {"chain_axis": 0, "draw_axis": 1}
        ess[moving] = statistics.ess(draws, **axes)
        if len(draws) == 1:  # of one chain the halves are compared
            draws = np.stack(np.split(draws[0, : draws.shape[1] // 2 * 2], 2))
        r_hat[moving] = statistics.rhat(draws, **axes)
    return r_hat, ess


def _watched(draws: Draws) -> Floats:
    """All that is judged, (chains, draws, numbers); what never changes is left out."""
    q = draws.levels.shape[2]
    pairs = draws.correlations[:, :, *np.triu_indices(q, 1)]
    numbers = np.concatenate([pairs, draws.levels], axis=2)
    return numbers[:, :, np.ptp(numbers, axis=(0, 1)) > 0]
