"""Whether chains agree and how many independent draws theirs are worth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tuplet.probit.draws import Draws
from tuplet.typing import Floats

__all__ = ["Convergence", "convergence_of"]

FEWEST = 100
"""Draws of a chain below which nothing is judged."""


class Convergence(NamedTuple):
    """The worst R-hat and the least effective sample size of all correlations and label frequencies."""

    r_hat: float
    effective_size: float

    @property
    def poor(self) -> bool:
        """Whether chains disagree, or posterior means rest on few independent draws."""
        return self.r_hat > 1.1 or self.effective_size < 50


def convergence_of(draws: Draws) -> Convergence | None:
    """Judge correlations and levels of all chains; None with too few draws, or without arviz-stats."""
    if draws.levels.shape[1] < FEWEST:
        return None
    try:
        from arviz_stats.base.array import array_stats
    except ModuleNotFoundError:
        return None
    statistics: Any = array_stats
    watched = _watched(draws)
    if not watched.size:
        return None
    axes = {"chain_axis": 0, "draw_axis": 1}
    # Halves of chains are compared, so that one chain can be judged, too.
    return Convergence(
        float(np.max(statistics.rhat(watched, **axes))), float(np.min(statistics.ess(watched, **axes)))
    )


def _watched(draws: Draws) -> Floats:
    """All that is judged, (chains, draws, numbers); what never changes is left out."""
    q = draws.levels.shape[2]
    pairs = draws.correlations[:, :, *np.triu_indices(q, 1)]
    numbers = np.concatenate([pairs, draws.levels], axis=2)
    return numbers[:, :, np.ptp(numbers, axis=(0, 1)) > 0]
