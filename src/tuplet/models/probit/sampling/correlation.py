"""Steps of the correlation matrix given residuals: Hamiltonian, Metropolis, factors, identity."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular

from tuplet.core.typing import Floats
from tuplet.models.probit.sampling.correlation_kernels import correlation_of, density_of, trajectory

Correlation: TypeAlias = Literal["hmc", "metropolis", "factors", "identity"]
Prior: TypeAlias = Literal["lkj", "inverse-wishart"]

_METROPOLIS_ACCEPTANCE = 0.3
"""Share of accepted proposals to which `Metropolis` tunes its proposals: the middle of 20 to 40 %."""

_SPREAD = 1.0
"""Prior standard deviation of the logarithm of each variance, where correlations and variances are apart."""

_HAMILTONIAN_ACCEPTANCE = 0.8
"""Share of accepted trajectories to which `Hamiltonian` adapts its step size."""


def correlation_step(
    kind: Correlation, *, prior: Prior = "lkj", eta: float = 1.0, n_factors: int = 4
) -> CorrelationStep:
    """Return the step of the given name.

    Parameters
    ----------
    kind : {"hmc", "metropolis", "factors", "identity"}
    prior, eta
        See `Hamiltonian`; "factors" and "identity" do not use them.
    n_factors : int
        For "factors".
    """
    if kind == "hmc":
        return Hamiltonian(prior, eta)
    if kind == "metropolis":
        return Metropolis(prior, eta)
    if kind == "factors":
        return Hamiltonian(n_factors=n_factors)
    return Identity()


class CorrelationState(Protocol):
    """State of a step; other code uses the matrix only."""

    @property
    def matrix(self) -> Floats:
        """Correlation matrix (q, q)."""


class CorrelationStep(Protocol):
    """How R moves, given the cross-product E'E of n residuals."""

    def start(self, q: int, n: int, rng: np.random.Generator) -> Any:
        """Return a first state."""

    def step(
        self, state: Any, cross: Floats, n: int, rng: np.random.Generator, adapting: bool
    ) -> tuple[Any, float]:
        """Return the next state and the acceptance probability of the move."""


# -- Hamiltonian -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HamiltonianState:
    """Free numbers, the correlation matrix that they parametrise, and the step size so far."""

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
        theta = 0.1 * rng.standard_normal(self.n_free(q))
        size = StepSize.start(0.5 / math.sqrt(n + q))
        return HamiltonianState(self.matrix_of(theta, q), theta, size)

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
            state = replace(state, theta=theta, matrix=self.matrix_of(theta, q))
        return state, accepted

    def _exponents(self, q: int) -> tuple[float, float]:
        """Exponents of |R|, plus one, and of the diagonal of R^-1 in the prior density of R."""
        if self.prior == "lkj":
            return float(self.eta), 0.0
        return -float(q), float(q + 1)  # |R|^-(dof + q + 1)/2 with dof = q + 1

    def n_free(self, q: int) -> int:
        """Return how many free numbers parametrise the matrix of q class variables."""
        return q * self.n_factors if self.n_factors else q * (q - 1) // 2

    def matrix_of(self, theta: Floats, q: int) -> Floats:
        """Return the correlation matrix (q, q) of free numbers."""
        return correlation_of(theta, q, self.n_factors > 0)

    def free_of(self, matrix: Floats) -> Floats:
        """Return free numbers of a matrix (q, q), or, with factors, of one that is near it."""
        if self.n_factors:
            return _loadings_of(matrix, self.n_factors).ravel()
        lower = np.linalg.cholesky(matrix)
        left = 1 - np.cumsum(lower**2, axis=1) + lower**2  # of the variance, before each column
        partial = np.clip(lower / np.sqrt(np.maximum(left, 1e-12)), -0.999, 0.999)
        return np.arctanh(partial[np.tril_indices(len(matrix), -1)])

    def per_number(self, information: Floats) -> Floats:
        """Return how much is known of each free number, from what is known of pairs (q, q)."""
        if self.n_factors:
            return np.repeat(information.mean(axis=1), self.n_factors)
        return information[np.tril_indices(len(information), -1)]

    def prior_of(self, theta: Floats, q: int) -> tuple[float, Floats]:
        """Return the log-density of free numbers a priori and its gradient."""
        return density_of(theta, np.zeros((q, q)), 0.0, *self._exponents(q), self.n_factors > 0)


def _loadings_of(matrix: Floats, n_factors: int) -> Floats:
    """Return loadings (q, f) whose products are near the correlations (q, q)."""
    values, vectors = np.linalg.eigh(matrix - np.eye(len(matrix)))
    b = np.zeros((len(matrix), n_factors))
    some = min(n_factors, len(matrix))
    b[:, :some] = vectors[:, ::-1][:, :some] * np.sqrt(np.maximum(values[::-1][:some], 0.0))
    size = np.minimum((b**2).sum(axis=1, keepdims=True), 0.9)
    return b / np.sqrt(1 - size)


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
    goal: float
    error: float = 0.0
    count: int = 0

    @classmethod
    def start(cls, size: float, goal: float = _HAMILTONIAN_ACCEPTANCE) -> StepSize:
        """Begin the search near `size`; `goal` is the acceptance to reach."""
        return cls(math.log(size), math.log(size), math.log(10 * size), goal)

    def update(self, accepted: float) -> StepSize:
        """Learn from the acceptance probability of one trajectory."""
        count = self.count + 1
        weight = 1 / (count + 10)
        error = (1 - weight) * self.error + weight * (self.goal - accepted)
        log_size = self.anchor - math.sqrt(count) / 0.05 * error
        rate = count**-0.75
        log_mean = rate * log_size + (1 - rate) * self.log_mean
        return replace(self, log_size=log_size, log_mean=log_mean, error=error, count=count)

    def size(self, adapting: bool) -> float:
        """Step size to use: the latest estimate while adapting, then the average of the estimates."""
        return math.exp(self.log_size if adapting else self.log_mean)


# -- Metropolis --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MetropolisState:
    """A covariance matrix, its correlation matrix, and the degrees of freedom of the proposals so far."""

    matrix: Floats  # (q, q) correlations
    covariance: Floats  # (q, q); its variances are auxiliary
    log_excess: float  # logarithm of the degrees of freedom beyond q + 1
    count: int = 0


@dataclass(frozen=True)
class Metropolis:
    """Step of a correlation matrix given residuals: propose a covariance matrix from IW(w, w Sigma).

    It mixes slowly beyond a few labels: one scalar, w, has to suit all correlations. `Hamiltonian` has the
    same target.

    Parameters
    ----------
    prior : {"lkj", "inverse-wishart"}
        |R|^(eta - 1) with log-normal variances apart from it, or an inverse-Wishart(q + 1, I) covariance
        matrix, as in the paper.
    eta : float
        Shape of the first prior.

    References
    ----------
    J. Tian, H. Chipman, T. Loughin, MLCBART (2026), section 3.2, step 3. The Jacobian factors of its ratio
    belong to target and proposal alike and cancel: everything here is a density of Sigma.
    """

    prior: Literal["lkj", "inverse-wishart"] = "lkj"
    eta: float = 1.0

    def start(self, q: int, n: int, rng: np.random.Generator) -> MetropolisState:
        """Return the identity for q class variables and n rows."""
        return MetropolisState(np.eye(q), np.eye(q), math.log(n + q))

    def step(
        self, state: MetropolisState, cross: Floats, n: int, rng: np.random.Generator, adapting: bool
    ) -> tuple[MetropolisState, float]:
        """Propose another matrix; see `Hamiltonian.step`."""
        q = len(cross)
        if q < 2:
            return state, 1.0
        dof = q + 1 + math.exp(state.log_excess)
        proposal = _draw_inverse_wishart(dof, dof * state.covariance, rng)
        log_ratio = self._log_target(proposal, cross, n) - self._log_target(state.covariance, cross, n)
        log_ratio += _log_proposal_ratio(state.covariance, proposal, dof)
        accepted = math.exp(min(0.0, log_ratio)) if math.isfinite(log_ratio) else 0.0
        if adapting:
            state = self._tune(state, accepted)
        if rng.random() < accepted:
            state = replace(state, covariance=proposal, matrix=_correlation(proposal))
        return state, accepted

    def _tune(self, state: MetropolisState, accepted: float) -> MetropolisState:
        count = state.count + 1
        # Robbins and Monro: the more is accepted, the fewer degrees of freedom, so the wider the proposals.
        change = (_METROPOLIS_ACCEPTANCE - accepted) * 2 / count**0.6
        return replace(state, count=count, log_excess=min(max(state.log_excess + change, -2.0), 30.0))

    def _log_target(self, covariance: Floats, cross: Floats, n: int) -> float:
        """Log-density of a covariance matrix, but for a constant."""
        q = len(cross)
        R, variances = _correlation(covariance), np.diag(covariance)
        log_det, inverse = _log_det(R), np.linalg.inv(R)
        value = -0.5 * (n * log_det + float((inverse * cross).sum()))
        if self.prior == "inverse-wishart":
            trace = float((np.diag(inverse) / variances).sum())
            return value - (q + 1) * (log_det + float(np.log(variances).sum())) - 0.5 * trace
        logs = np.log(variances)
        # dSigma = prod variances^((q - 1) / 2) dR dvariances, and the variances are log-normal.
        return (
            value
            + (self.eta - 1) * log_det
            - float((logs**2).sum()) / (2 * _SPREAD**2)
            - (q + 1) / 2 * float(logs.sum())
        )


def _correlation(covariance: Floats) -> Floats:
    deviations = np.sqrt(np.diag(covariance))
    matrix = covariance / np.outer(deviations, deviations)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _log_det(matrix: Floats) -> float:
    sign, value = np.linalg.slogdet(matrix)
    return float(value) if sign > 0 else math.inf


def _draw_inverse_wishart(dof: float, scale: Floats, rng: np.random.Generator) -> Floats:
    """Draw from IW(dof, scale) by Bartlett's decomposition: with scale = L L', (L^-T T)^-1 its root."""
    q = len(scale)
    T = np.tril(rng.standard_normal((q, q)), -1)
    T[np.diag_indices(q)] = np.sqrt(rng.chisquare(dof - np.arange(q)))
    # Wishart(dof, scale^-1) = (L^-T T)(L^-T T)', so its inverse is (L T^-T)(L T^-T)'.
    root = solve_triangular(T, np.linalg.cholesky(scale).T, lower=True, check_finite=False)
    return root.T @ root


def _log_proposal_ratio(old: Floats, new: Floats, dof: float) -> float:
    """Logarithm of f(old | new) / f(new | old) for proposals from IW(dof, dof Sigma)."""
    q = len(old)
    log_dets = _log_det(new) - _log_det(old)
    traces = float((np.linalg.inv(old) * new).sum() - (np.linalg.inv(new) * old).sum())
    return (dof + (q + 1) / 2) * log_dets - 0.5 * dof * traces


# -- identity ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IdentityState:
    """The identity."""

    matrix: Floats


@dataclass(frozen=True)
class Identity:
    """No correlation: one univariate probit model for each label."""

    def start(self, q: int, n: int, rng: np.random.Generator) -> IdentityState:
        """Return the identity."""
        return IdentityState(np.eye(q))

    def step(
        self, state: IdentityState, cross: Floats, n: int, rng: np.random.Generator, adapting: bool
    ) -> tuple[IdentityState, float]:
        """Stay."""
        return state, 1.0
