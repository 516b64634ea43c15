"""Correlation matrices given residuals, by Hamiltonian Monte Carlo on free numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tuplet.core.typing import Floats
from tuplet.models.probit.sampling.correlation_kernels import correlation_of, trajectory

_TARGET = 0.8
"""Share of accepted trajectories that the step size is adapted to."""


@dataclass(frozen=True)
class StepSize:
    """Dual averaging of a step size: towards a given acceptance while adapting, then fixed.

    References
    ----------
    M. D. Hoffman, A. Gelman, The No-U-Turn sampler, Journal of Machine Learning Research 15 (2014), 3.2.
    """

    log_size: float
    log_mean: float
    anchor: float
    error: float = 0.0
    count: int = 0

    @classmethod
    def start(cls, size: float) -> StepSize:
        """Begin the search near `size`."""
        return cls(math.log(size), math.log(size), math.log(10 * size))

    def update(self, accepted: float) -> StepSize:
        """Learn from the acceptance probability of one trajectory."""
        count = self.count + 1
        weight = 1 / (count + 10)
        error = (1 - weight) * self.error + weight * (_TARGET - accepted)
        log_size = self.anchor - math.sqrt(count) / 0.05 * error
        rate = count**-0.75
        return StepSize(log_size, rate * log_size + (1 - rate) * self.log_mean, self.anchor, error, count)

    def size(self, adapting: bool) -> float:
        """Step size to use: the latest guess while adapting, then the average of the guesses."""
        return math.exp(self.log_size if adapting else self.log_mean)


@dataclass(frozen=True)
class HamiltonianState:
    """Free numbers, the correlation matrix that they stand for, and the step size so far."""

    matrix: Floats  # (q, q)
    theta: Floats
    size: StepSize = field(repr=False)


@dataclass(frozen=True)
class Hamiltonian:
    """Step of a correlation matrix given residuals: its cost does not depend on their number.

    Parameters
    ----------
    prior : {"lkj", "inverse-wishart"}
        |R|^(eta - 1), or that of the correlations of an inverse-Wishart(q + 1, I) matrix, under which each
        of them alone is uniform.
    eta : float
        Shape of the first prior; 1 is uniform over correlation matrices, larger is nearer to the identity.
    n_factors : int
        0 for any matrix; otherwise R comes from so many factors with standard normal loadings, and the priors
        above play no role.
    n_steps : int
        Leapfrog steps of a trajectory.
    """

    prior: Literal["lkj", "inverse-wishart"] = "lkj"
    eta: float = 1.0
    n_factors: int = 0
    n_steps: int = 8

    def start(self, q: int, n: int, rng: np.random.Generator) -> HamiltonianState:
        """Return a state near the identity for q class variables and n rows."""
        # Loadings of zero are a saddle point: the gradient would never leave it, only the momentum does.
        n_free = q * self.n_factors if self.n_factors else q * (q - 1) // 2
        theta = 0.1 * rng.standard_normal(n_free)
        size = StepSize.start(0.5 / math.sqrt(n + q))
        return HamiltonianState(self._matrix(theta, q), theta, size)

    def step(
        self, state: HamiltonianState, cross: Floats, n: int, rng: np.random.Generator, adapting: bool
    ) -> tuple[HamiltonianState, float]:
        """Move to another correlation matrix.

        Parameters
        ----------
        state : HamiltonianState
        cross : float array (q, q)
            Cross-product E'E of the residuals.
        n : int
            Number of residuals.
        rng : Generator
        adapting : bool
            Whether the step size may change: in burn-in only.

        Returns
        -------
        state : HamiltonianState
        accepted : float
            Acceptance probability of the trajectory.
        """
        q = len(cross)
        if not len(state.theta):
            return state, 1.0
        eta, dof = self._exponents(q)
        # A length that varies keeps trajectories from closing upon themselves.
        size = state.size.size(adapting) * rng.uniform(0.7, 1.3)
        momentum = rng.standard_normal(len(state.theta))
        theta, log_ratio = trajectory(
            state.theta, momentum, cross, float(n), eta, dof, self.n_factors > 0, size, self.n_steps
        )
        accepted = math.exp(min(0.0, log_ratio))
        if adapting:
            state = replace(state, size=state.size.update(accepted))
        if rng.random() < accepted:
            state = replace(state, theta=theta, matrix=self._matrix(theta, q))
        return state, accepted

    def _exponents(self, q: int) -> tuple[float, float]:
        """Exponents of |R|, plus one, and of the diagonal of R^-1 in the prior density of R."""
        if self.prior == "lkj":
            return float(self.eta), 0.0
        return -float(q), float(q + 1)  # |R|^-(dof + q + 1)/2 with dof = q + 1

    def _matrix(self, theta: Floats, q: int) -> Floats:
        return correlation_of(theta, q, self.n_factors > 0)
