"""A noisy-or rule as numbers that an optimiser can move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from tuplet.typing import Codes, Floats

STRONGEST = float(np.log(0.999 / 0.001))
"""Largest |logit p| of a learned rule: the leak p = .999 keeps every outcome possible."""


@dataclass(frozen=True, eq=False)
class Term:
    """A rule f(y) = 1 - Q(y) + Q(y) exp(-strength), with Q(y) = exp(-sum of costs_j[y_j]) over the scope.

    It is p (1 - Q) + (1 - p) Q divided by p, where strength = logit p: what breaks the rule wholly (Q = 1)
    loses `strength` nats. A negative strength rewards. In the paper's own form p is .999 and the product of
    the largest q of every label may be below 1; dividing the labels' q by their largest and moving that
    number into p gives the same posterior. So every noisy-or rule has one canonical form, in which the least
    cost of every label is 0 and labels that cost nothing are not in the scope.

    Parameters
    ----------
    scope : tuple of int
        Variables, ascending.
    strength : float
        logit p.
    costs : tuple of arrays (k_j,)
        -log q of every category, at least 0.
    """

    scope: tuple[int, ...]
    strength: float
    costs: tuple[Floats, ...]

    @property
    def probability(self) -> float:
        """The rule's p."""
        return float(1.0 / (1.0 + np.exp(-self.strength)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of categories in the scope."""
        return tuple(len(cost) for cost in self.costs)

    @property
    def parameters(self) -> Floats:
        """Strength and costs side by side, (1 + sum of k_j,)."""
        return np.concatenate([[self.strength], *self.costs])

    def moved(self, parameters: Floats) -> Term:
        """Return the rule with other `parameters`."""
        ends = np.cumsum(self.shape)[:-1]
        return Term(self.scope, float(parameters[0]), tuple(np.split(parameters[1:], ends)))

    def log_inhibition(self) -> Floats:
        """Return log Q of every cell, (*shape)."""
        return -reduce(np.add.outer, self.costs)

    def log_table(self) -> Floats:
        """Return log f of every cell, (*shape)."""
        return np.log1p(np.exp(self.log_inhibition()) * np.expm1(-self.strength))

    def chain(self, by_cell: Floats) -> Floats:
        """Turn the derivative by log f of every cell (*shape) into the derivative by `parameters`."""
        inhibition = np.exp(self.log_inhibition())
        drop = -np.expm1(-self.strength)
        scaled = by_cell * inhibition / (1.0 - inhibition * drop)
        strength = -np.exp(-self.strength) * scaled.sum()
        axes = range(scaled.ndim)
        sums = [drop * scaled.sum(axis=tuple(a for a in axes if a != axis)) for axis in axes]
        return np.concatenate([[strength], *sums])

    def canonical(self, negligible: float = 0.0) -> Term | None:
        """Return the same rule with least costs of 0 and without labels that do not matter; None if empty.

        A label does not matter if its costs differ by no more than `negligible`.
        """
        least = [float(cost.min()) for cost in self.costs]
        kept = [j for j, cost in enumerate(self.costs) if np.ptp(cost) > negligible]
        share = np.exp(-sum(least))
        strength = -np.log1p(share * np.expm1(-self.strength))
        if not kept or strength == 0:
            return None
        return Term(
            tuple(self.scope[j] for j in kept), float(strength), tuple(self.costs[j] - least[j] for j in kept)
        )


@dataclass(frozen=True, eq=False)
class GivenTerm:
    """An expert's rule whose probability is learned: f(y) = 1 - Q(y) + Q(y) exp(-strength) with a given Q.

    Parameters
    ----------
    scope : tuple of int
    strength : float
        logit p.
    breach : array, shape (cards of the scope)
        Q: how much every combination breaks the rule.
    """

    scope: tuple[int, ...]
    strength: float
    breach: Floats

    @property
    def probability(self) -> float:
        """The rule's p."""
        return float(1.0 / (1.0 + np.exp(-self.strength)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of categories in the scope."""
        return self.breach.shape

    @property
    def parameters(self) -> Floats:
        """The strength alone, (1,)."""
        return np.array([self.strength])

    def moved(self, parameters: Floats) -> GivenTerm:
        """Return the rule with another strength."""
        return GivenTerm(self.scope, float(parameters[0]), self.breach)

    def log_table(self) -> Floats:
        """Return log f of every cell, (*shape)."""
        return np.log1p(self.breach * np.expm1(-self.strength))

    def chain(self, by_cell: Floats) -> Floats:
        """Turn the derivative by log f of every cell (*shape) into the derivative by `parameters`."""
        table = 1.0 + self.breach * np.expm1(-self.strength)
        return np.array([-np.exp(-self.strength) * (by_cell * self.breach / table).sum()])


AnyTerm: TypeAlias = Term | GivenTerm


def cells_of(scope: Sequence[int], cards: Sequence[int], codes: Codes) -> Codes:
    """Return the number of the cell of a scope's table that every row of codes (n, m) falls into, (n,)."""
    shape = tuple(cards[v] for v in scope)
    return np.ravel_multi_index(tuple(codes[:, v] for v in scope), shape)
