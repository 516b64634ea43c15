"""Which features a sum of trees splits on: probabilities with a sparse prior."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.kernels.forests import log_dirichlet_counts
from tuplet.typing import Floats

_SHARES = (np.arange(40) + 0.5) / 40
"""Grid of c / (c + d), c the concentration of the Dirichlet prior over d features; Beta(1/2, 1) a priori."""

_ODDS, _LOG_PRIOR = _SHARES / (1 - _SHARES), -0.5 * np.log(_SHARES)


def draw_feature_weights(counts: npt.NDArray[np.int32], rng: np.random.Generator) -> Floats:
    """Draw the splitting probabilities of d features given how often trees split on each.

    Parameters
    ----------
    counts : int array (d,)
    rng : Generator

    Returns
    -------
    float array (d,)
        A draw from Dirichlet(c / d + counts), the concentration c drawn before it, given the counts.

    References
    ----------
    A. R. Linero, Bayesian regression trees for high-dimensional prediction and variable selection, Journal of
    the American Statistical Association 113 (2018).
    """
    shape = _draw_concentration(counts, rng) / len(counts) + counts
    # A gamma variable of a tiny shape underflows; its logarithm, by U^(1 / shape), does not.
    log_weight = np.log(rng.standard_gamma(shape + 1)) + np.log(1 - rng.random(len(counts))) / shape
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum()


def _draw_concentration(counts: npt.NDArray[np.int32], rng: np.random.Generator) -> float:
    """Draw c from its posterior on a grid, the probabilities integrated out."""
    grid = len(counts) * _ODDS
    log_density = log_dirichlet_counts(counts, grid) + _LOG_PRIOR
    total = np.exp(log_density - log_density.max()).cumsum()
    return float(grid[np.searchsorted(total, rng.random() * total[-1])])
