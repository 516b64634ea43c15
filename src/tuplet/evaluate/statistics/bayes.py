"""The Bayesian signed-rank test: how probable it is that a model is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.limits import PASS_CELLS, row_blocks
from tuplet.core.typing import Floats, Seed
from tuplet.evaluate.statistics.scores import check_choice, complete_rows, differences, rows_text

_NOISE = 1e-13
"""Distance from the edge of the rope, relative to the scores, that rounding errors can make."""


@dataclass(frozen=True, eq=False, repr=False)
class BayesianSignedRank:
    """Result of `bayesian_signed_rank`.

    Attributes
    ----------
    a, b : labels of the models
    p_a, p_equal, p_b : float
        Probabilities that a is better, that both are practically equal, and that b is better.
    standard_error : float
        Largest Monte Carlo standard error of the three.
    rope : float
        Differences of at most this size are practically none.
    n_samples : int
    n_rows, n_left_out : int
    """

    a: Any
    b: Any
    p_a: float
    p_equal: float
    p_b: float
    standard_error: float
    rope: float
    n_samples: int
    n_rows: int
    n_left_out: int

    @property
    def probabilities(self) -> tuple[float, float, float]:
        """Of a being better, of practical equality, and of b being better."""
        return self.p_a, self.p_equal, self.p_b

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        equal = f", practically equal (within {self.rope:g}) {self.p_equal:.3f}" if self.rope else ""
        return (
            f"Bayesian signed ranks: {self.a} is better {self.p_a:.3f}{equal}, {self.b} is better"
            f" {self.p_b:.3f} (± {self.standard_error:.3f}); {rows_text(self.n_rows, self.n_left_out)}"
        )

    def __repr__(self) -> str:
        return self.summary


def bayesian_signed_rank(
    scores: pd.DataFrame,
    a: Any,
    b: Any,
    *,
    rope: float = 0.0,
    prior_strength: float = 0.5,
    prior_place: Literal["equal", "a", "b"] = "equal",
    n_samples: int = 50_000,
    random_state: Seed = 0,
) -> BayesianSignedRank:
    """Posterior probabilities that a model is better than another, and that they are practically equal.

    Parameters
    ----------
    scores : DataFrame, shape (n, k)
        Rows are data sets, columns are models, greater is better. Only gaps of a and b matter.
    a, b : labels of columns
    rope : float
        Half-width of the region of practical equivalence, in the unit of the scores: 0.01 calls accuracies
        equal that are at most one percent point apart. With 0 there is no such region.
    prior_strength : float
        Weight of the prior, in data sets.
    prior_place : {"equal", "a", "b"}
        Where the prior expects the difference: at zero, or as far as can be in favour of a or of b.
    n_samples : int
        Draws from the posterior.
    random_state : int, Generator or None

    Notes
    -----
    The differences z_1, ..., z_n and a pseudo-difference z_0 of the prior get weights w from a Dirichlet
    distribution with parameters (prior_strength, 1, ..., 1). The share of a is the sum of w_i w_j over all
    (i, j) with z_i + z_j > 2 rope, that of b over those below -2 rope, and sums on the edge count by half.
    The answer is how often each of the three shares is the largest; draws in which several are largest are
    divided among them.

    References
    ----------
    Benavoli et al. (2017), section 4.2.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"chain": [0.42, 0.55, 0.61, 0.38], "independent": [0.40, 0.50, 0.58, 0.37]})
    >>> result = bayesian_signed_rank(scores, "chain", "independent", rope=0.1)
    >>> result.probabilities
    (0.0, 1.0, 0.0)
    """
    _check(rope, prior_strength, prior_place, n_samples)
    complete = complete_rows("bayesian_signed_rank", scores, [a, b], finite=True)
    pseudo = {"equal": 0.0, "a": np.inf, "b": -np.inf}[prior_place]
    shifts = np.append(pseudo, differences(complete.values))
    noise = _NOISE * float(np.abs(complete.values).max())
    parameters = np.append(prior_strength, np.ones(len(shifts) - 1))
    rng = np.random.default_rng(random_state)
    won = np.zeros(3)
    for block in row_blocks(n_samples, len(shifts), PASS_CELLS):
        weights = rng.dirichlet(parameters, size=block.stop - block.start)
        won += _winners(_shares(weights, shifts, rope, noise))
    p_a, p_equal, p_b = (float(p) for p in won / n_samples)
    error = max(float(np.sqrt(p * (1 - p) / n_samples)) for p in (p_a, p_equal, p_b))
    n_rows = len(complete.values)
    return BayesianSignedRank(a, b, p_a, p_equal, p_b, error, rope, n_samples, n_rows, complete.n_left_out)


def _shares(weights: Floats, shifts: Floats, rope: float, noise: float) -> Floats:
    """Shares (n, 3) of a, of equality and of b in draws of weights (n, number of shifts)."""
    sums = shifts[:, None] + shifts[None, :]
    above = _step(sums - 2 * rope, noise)
    below = _step(-sums - 2 * rope, noise)
    of_a = np.einsum("ni,ni->n", weights @ above, weights)
    of_b = np.einsum("ni,ni->n", weights @ below, weights)
    # Without a rope the two shares sum to one, up to rounding that must not make a third.
    return np.stack([of_a, 1 - of_a - of_b if rope else np.zeros(len(of_a)), of_b], axis=1)


def _step(values: Floats, noise: float) -> Floats:
    """1 above zero, 0 below, a half where only rounding makes a difference."""
    return np.where(np.abs(values) <= noise, 0.5, values > 0)


def _winners(shares: Floats) -> Floats:
    """How many draws each of the three wins; a draw with several winners is divided among them."""
    best = shares >= shares.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((best / best.sum(axis=1, keepdims=True)).sum(axis=0))


def _check(rope: float, prior_strength: float, prior_place: str, n_samples: int) -> None:
    check_choice("bayesian_signed_rank", "prior_place", prior_place, ("equal", "a", "b"))
    if not (np.isfinite(rope) and rope >= 0):
        raise InputError(f"bayesian_signed_rank: rope must be zero or a positive number, found {rope!r}.")
    if not prior_strength > 0:
        raise InputError(f"bayesian_signed_rank: prior_strength must be positive, found {prior_strength!r}.")
    if n_samples < 1:
        raise InputError(f"bayesian_signed_rank: n_samples must be at least 1, found {n_samples!r}.")
