"""Correlation matrices given residuals, by the inverse-Wishart random walk of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular

from tuplet.core.typing import Floats

_TARGET = 0.3
"""Share of accepted proposals that the degrees of freedom are tuned to: the middle of 20 to 40 %."""

_SPREAD = 1.0
"""Prior standard deviation of the logarithm of each variance, where correlations and variances are apart."""


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
        change = (_TARGET - accepted) * 2 / count**0.6
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
