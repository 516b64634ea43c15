"""Expectation maximisation for mixtures of any components that can be fitted to weighted rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from scipy.special import logsumexp

from tuplet.core.typing import Floats


class Component(Protocol):
    """A distribution that was fitted to weighted rows."""

    @property
    def structure(self) -> Any:
        """What stays as it is when it is fitted again."""

    @property
    def log_likelihood(self) -> Floats:
        """Log-probability (n,) of the labels of each training row."""

    @property
    def penalty(self) -> float:
        """What its parameters cost: a fit to weights w tries to maximise w @ log_likelihood - penalty."""


Refit = Callable[[Any, Floats], Any]
"""(component, weights (n,)) -> the component fitted to these weights; never worse than it was."""


@final
@dataclass(frozen=True)
class EMSettings:
    """When EM ends.

    Parameters
    ----------
    tol : float
        Relative change of the objective below which it counts as settled.
    max_iter : int
        Limit of iterations.
    max_refits : float
        Fits of single components after which a mixture does not grow any further.
    """

    tol: float = 1e-4
    max_iter: int = 50
    max_refits: float = np.inf


class EMInfo(NamedTuple):
    """How a run went."""

    path: tuple[float, ...]  # the penalised log-likelihood, at the start and after each iteration
    n_iter: int
    converged: bool


@final
@dataclass(frozen=True)
class MixtureState:
    """Components and the logarithms (K,) of their weights."""

    components: tuple[Any, ...]
    log_weights: Floats

    @classmethod
    def of(cls, components: Sequence[Any], weights: Floats) -> MixtureState:
        """Make a state; weights need not sum to 1, and a weight of zero becomes a tiny one."""
        weights = np.maximum(weights / weights.sum(), np.finfo(float).tiny)
        return cls(tuple(components), np.log(weights / weights.sum()))

    @property
    def structures(self) -> tuple[Any, ...]:
        """What the components keep when they are fitted again."""
        return tuple(component.structure for component in self.components)

    def log_terms(self) -> Floats:
        """log(lambda_k P_k(y_n | x_n)) of the training rows, (n, K)."""
        return np.stack([c.log_likelihood for c in self.components], axis=1) + self.log_weights

    def log_likelihood(self) -> Floats:
        """Log-probability (n,) of the labels of each training row."""
        return np.asarray(logsumexp(self.log_terms(), axis=1))

    def responsibilities(self) -> Floats:
        """Probability of each component given x and y of the training rows, (n, K)."""
        terms = self.log_terms()
        return np.exp(terms - logsumexp(terms, axis=1, keepdims=True))

    def objective(self, weight: Floats) -> float:
        """Penalised log-likelihood, which `run_em` never lowers."""
        return float(weight @ self.log_likelihood()) - sum(c.penalty for c in self.components)


def run_em(
    state: MixtureState, refit: Refit, weight: Floats, settings: EMSettings
) -> tuple[MixtureState, EMInfo]:
    """Improve a mixture until its penalised log-likelihood settles.

    Parameters
    ----------
    state : MixtureState
        Where to start.
    refit : callable
        See `Refit`. It gets the weights w_n gamma_k(n) as they are: rescaled, the components would maximise
        something else in each iteration.
    weight : array, shape (n,)
        Weights w_n of the rows.
    settings : EMSettings

    Returns
    -------
    state : MixtureState
    info : EMInfo

    Notes
    -----
    The objective is sum_n w_n log sum_k lambda_k P_k(y_n | x_n) - sum_k penalty_k. With responsibilities
    gamma_k(n) it is bounded from below by a sum of one term for the weights, which their mean maximises, and
    one for each component, which its refit does not lower; the bound touches the objective where it started.
    """
    path, converged = [state.objective(weight)], False
    while len(path) <= settings.max_iter and not converged:
        shares = weight[:, None] * state.responsibilities()
        components = [refit(c, shares[:, k]) for k, c in enumerate(state.components)]
        state = MixtureState.of(components, shares.sum(axis=0))
        path.append(state.objective(weight))
        converged = path[-1] - path[-2] <= settings.tol * abs(path[-2])
    return state, EMInfo(tuple(path), len(path) - 1, converged)
