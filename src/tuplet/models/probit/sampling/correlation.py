"""Steps of the correlation matrix given residuals: one contract, four ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.models.probit.sampling.hamiltonian import Hamiltonian
from tuplet.models.probit.sampling.metropolis import Metropolis

Correlation: TypeAlias = Literal["hmc", "metropolis", "factors", "identity"]
Prior: TypeAlias = Literal["lkj", "inverse-wishart"]


class CorrelationState(Protocol):
    """What a step carries along; only the matrix means anything to others."""

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


def correlation_step(
    kind: Correlation, *, prior: Prior = "lkj", eta: float = 1.0, n_factors: int = 4
) -> CorrelationStep:
    """Return the step that a name stands for.

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
    if kind == "identity":
        return Identity()
    raise InputError(f"correlation must be 'hmc', 'metropolis', 'factors' or 'identity', found {kind!r}.")
