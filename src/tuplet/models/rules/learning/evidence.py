"""What rules are learned from: rows of beliefs and labels, and rules as numbers that an optimiser can change.

`Evidence` computes what a set of rules adds to the log-likelihood of the known labels, and its gradient, by
exact inference. A rule is a `Term`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import final

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.inference.engine import Exact
from tuplet.joint.inference.factor import AnyFactor, Factor, Problem, RuleFactor
from tuplet.joint.inference.plan import make_plan

STRONGEST = float(np.log(0.999 / 0.001))
"""Largest |logit p| of a learned rule: the leak p = .999 keeps every outcome possible."""

_ENGINE = Exact(chunk_cells=2**18)


@final
@dataclass(frozen=True, eq=False)
class Term:
    """A rule f(y) = 1 - Q(y) + Q(y) exp(-strength), where Q(y) is how much the labels y break it.

    It is the `RuleFactor` p (1 - Q) + (1 - p) Q divided by p, where strength = logit p: what breaks the rule
    wholly (Q = 1) loses `strength` nats. A negative strength rewards.

    A learned rule is a noisy-or rule, Q(y) = exp(-sum of costs_j[y_j]) over the scope. In the paper's own
    form p is .999 and the product of the largest q of every label may be below 1; dividing the labels' q by
    their largest and moving that number into p gives the same posterior. So every noisy-or rule has one
    canonical form, in which the least cost of every label is 0 and labels that cost nothing are not in the
    scope. Of an expert's rule, Q is given and only the strength is learned.

    Parameters
    ----------
    scope : tuple of int
        Variables, ascending.
    strength : float
        logit p.
    costs : tuple of arrays (k_j,)
        -log q of every category, at least 0; empty if `breach` is given.
    breach : array, shape (cards of the scope), optional
        Q: how much every combination breaks the rule.
    """

    scope: tuple[int, ...]
    strength: float
    costs: tuple[Floats, ...] = ()
    breach: Floats | None = None

    def breach_table(self) -> Floats:
        """Q of every cell, (*shape)."""
        return np.exp(-reduce(np.add.outer, self.costs)) if self.breach is None else self.breach

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of categories in the scope."""
        return tuple(len(cost) for cost in self.costs) if self.breach is None else self.breach.shape

    @property
    def parameters(self) -> Floats:
        """What can be changed: strength and costs side by side, (1 + sum of k_j,)."""
        return np.concatenate([[self.strength], *self.costs])

    def moved(self, parameters: Floats) -> Term:
        """Return the rule with other `parameters`."""
        ends = np.cumsum([len(cost) for cost in self.costs])[:-1]
        costs = tuple(np.split(parameters[1:], ends)) if self.costs else ()
        return replace(self, strength=float(parameters[0]), costs=costs)

    def chain(self, by_cell: Floats) -> Floats:
        """Turn the derivative by log f of every cell (*shape) into the derivative by `parameters`."""
        breach = self.breach_table()
        scaled = by_cell * breach / (1.0 + breach * np.expm1(-self.strength))
        drop = -np.expm1(-self.strength)
        axes = range(scaled.ndim)
        sums = [
            drop * scaled.sum(axis=tuple(a for a in axes if a != axis)) for axis in range(len(self.costs))
        ]
        return np.concatenate([[-np.exp(-self.strength) * scaled.sum()], *sums])

    @property
    def probability(self) -> float:
        """The rule's p."""
        return float(1.0 / (1.0 + np.exp(-self.strength)))

    def log_table(self) -> Floats:
        """Return log f of every cell, (*shape)."""
        return np.log1p(self.breach_table() * np.expm1(-self.strength))

    def canonical(self, negligible: float = 0.0) -> Term | None:
        """Return the same learned rule with least costs of 0 and without labels that do not matter.

        A label does not matter if its costs differ by no more than `negligible`. None if nothing is left.
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
class Evidence:
    """n rows with beliefs about m class variables, their labels as far as known, weights, and given rules.

    Parameters
    ----------
    log_beliefs : tuple of arrays (n, k_j)
        Normalised.
    codes : array, shape (n, m)
        `UNKNOWN` where a label is missing.
    weights : array, shape (n,)
    given : tuple of RuleFactor
        Rules that hold whatever is learned.
    groups : int array, shape (n,), optional
        Rows of one group are held out together.
    """

    log_beliefs: tuple[Floats, ...]
    codes: Codes
    weights: Floats
    given: tuple[RuleFactor, ...] = ()
    groups: Codes | None = None

    @cached_property
    def cards(self) -> tuple[int, ...]:
        """Numbers of categories."""
        return tuple(table.shape[1] for table in self.log_beliefs)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def complete(self) -> Codes:
        """Codes (n, m) with 0 in the place of what is missing."""
        return np.where(self.codes == UNKNOWN, 0, self.codes)

    @cached_property
    def partial(self) -> npt.NDArray[np.intp]:
        """Rows in which some label is missing."""
        return np.flatnonzero((self.codes == UNKNOWN).any(axis=1))

    def rows(self, rows: npt.NDArray[np.intp]) -> Evidence:
        """Return some rows."""
        tables = tuple(table[rows] for table in self.log_beliefs)
        groups = None if self.groups is None else self.groups[rows]
        return replace(
            self, log_beliefs=tables, codes=self.codes[rows], weights=self.weights[rows], groups=groups
        )

    @cached_property
    def clamped(self) -> Evidence:
        """The rows of `partial`, with beliefs that are certain of the known labels."""
        part = self.rows(self.partial)
        tables = []
        for table, code in zip(part.log_beliefs, part.codes.T, strict=True):
            surely = np.where(np.arange(table.shape[1]) == code[:, None], 0.0, -np.inf)
            tables.append(np.where(code[:, None] == UNKNOWN, table, surely))
        return replace(part, log_beliefs=tuple(tables))

    def possible(self) -> npt.NDArray[np.intp]:
        """Return the rows whose known labels the given rules allow."""
        if not self.given:
            return np.arange(self.n)
        weight = sum((factor.at(self.complete) for factor in self.given), np.zeros(self.n))
        if len(self.partial):
            weight[self.partial] = self.clamped.log_partition(())
        return np.flatnonzero(np.isfinite(weight))

    # -- passes -------------------------------------------------------------------------------------------

    def problem(self, terms: Sequence[Term], extra: Sequence[tuple[int, ...]] = ()) -> Problem:
        """Return the posterior as a product of factors over the variables that rules or `extra` name.

        The factors of the terms come first, then those of `extra`, which are constant. Variables that no rule
        names are independent of all others and add nothing.
        """
        scopes = [*(term.scope for term in terms), *extra, *(factor.scope for factor in self.given)]
        named = self._named(scopes)
        place = {v: i for i, v in enumerate(named)}
        cards = tuple(self.cards[v] for v in named)
        factors: list[AnyFactor] = [
            Factor(tuple(place[v] for v in term.scope), term.log_table()[..., None]) for term in terms
        ]
        for scope in extra:
            shape = tuple(self.cards[v] for v in scope)
            factors.append(Factor(tuple(place[v] for v in scope), np.zeros((*shape, 1))))
        factors += [Factor((i,), self.log_beliefs[v].T) for v, i in place.items()]
        factors += [rule.renamed(place) for rule in self.given]
        return Problem(cards, tuple(factors), self.n, len(named)).tabulated

    @staticmethod
    def _named(scopes: Sequence[tuple[int, ...]]) -> list[int]:
        return sorted({v for scope in scopes for v in scope})

    def cells_with(self, terms: Sequence[Term], *more: tuple[int, ...]) -> int:
        """Return the cells of all tables of one row that sums need when rules over more scopes are added."""
        cards, scopes = self._structure([*(term.scope for term in terms), *more])
        return sum(make_plan(cards, scopes, frozenset()).sizes)

    def _structure(
        self, scopes: Sequence[tuple[int, ...]]
    ) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """Return cards and scopes of the product of these factors and the given rules, without numbers."""
        if self.given:
            problem = self.problem((), scopes)
            return problem.cards, problem.scopes
        named = self._named(scopes)
        place = {v: i for i, v in enumerate(named)}
        cards = tuple(self.cards[v] for v in named)
        return cards, tuple(tuple(place[v] for v in scope) for scope in dict.fromkeys(scopes))

    def log_partition(self, terms: Sequence[Term]) -> Floats:
        """Return log Z (n,): how far the beliefs agree with the rules."""
        if not terms and not self.given:
            return np.zeros(self.n)
        return _ENGINE.log_partition(self.problem(terms))

    def marginals_of(self, terms: Sequence[Term], scope: tuple[int, ...]) -> Floats:
        """Return the posterior of the cells of a scope under the rules, (cells, n)."""
        answers = _ENGINE.factor_marginals(self.problem(terms, [scope]))
        return answers[len(terms)].reshape(-1, self.n)

    def truth_of(self, terms: Sequence[Term], scope: tuple[int, ...]) -> Floats:
        """Return the posterior of the cells of a scope under rules and known labels, (cells, n)."""
        truth = np.zeros((math.prod(self.cards[v] for v in scope), self.n))
        truth[_cells_of(scope, self.cards, self.complete), np.arange(self.n)] = 1.0
        if len(self.partial):
            truth[:, self.partial] = self.clamped.marginals_of(terms, scope)
        return truth

    def sample(self, terms: Sequence[Term], size: int, rng: np.random.Generator) -> Codes:
        """Return draws of all variables from the posterior, (size, n, m)."""
        named = self._named([*(term.scope for term in terms), *(factor.scope for factor in self.given)])
        draws = np.empty((size, self.n, len(self.cards)), dtype=np.intp)
        if named:
            draws[:, :, named] = _ENGINE.sample(self.problem(terms), size, rng)
        for v in sorted(set(range(len(self.cards))) - set(named)):
            below = np.cumsum(np.exp(self.log_beliefs[v]), axis=1)[:, :-1]
            draws[:, :, v] = (rng.random((size, self.n, 1)) > below).sum(axis=2)
        return draws

    def log_gain(self, terms: Sequence[Term]) -> Floats:
        """Return what rules add to the log-probability of the known labels of every row, (n,).

        To be added to their log-probability under the beliefs and the given rules.
        """
        if not terms:
            return np.zeros(self.n)
        known = np.zeros(self.n)
        for term in terms:
            known += term.log_table().reshape(-1)[_cells_of(term.scope, self.cards, self.complete)]
        if len(self.partial):
            part = self.clamped
            known[self.partial] = part.log_partition(terms) - part._given_partition
        return known - self.log_partition(terms) + self._given_partition

    @cached_property
    def _given_partition(self) -> Floats:
        return self.log_partition(())

    def value_and_gradient(self, terms: Sequence[Term]) -> tuple[float, list[Floats]]:
        """Return the weighted sum of `log_gain` and its derivatives by the parameters of every term."""
        return float(self.weights @ self.log_gain(terms)), self.gradient(terms)

    def gradient(self, terms: Sequence[Term]) -> list[Floats]:
        """Return the derivatives of the weighted sum of `log_gain` by the parameters of every term.

        d log Z / d log f(cell) is the posterior probability of the cell, so one calibrated pass (two with
        missing labels) gives all of them.
        """
        expected = self._expected(terms)
        full = np.delete(np.arange(self.n), self.partial)
        inside = self.clamped._expected(terms) if len(self.partial) else None
        gradient = []
        for i, term in enumerate(terms):
            cells = _cells_of(term.scope, self.cards, self.complete[full])
            counts = np.bincount(cells, self.weights[full], minlength=expected[i].size)
            observed: Floats = counts.astype(float).reshape(term.shape)
            if inside is not None:
                observed = observed + inside[i]
            gradient.append(term.chain(observed - expected[i]))
        return gradient

    def _expected(self, terms: Sequence[Term]) -> list[Floats]:
        """Return the weighted number of rows in every cell of every term under the posterior, (*shape)."""
        answers = _ENGINE.factor_marginals(self.problem(terms))[: len(terms)]
        return [answer @ self.weights for answer in answers]


def _cells_of(scope: Sequence[int], cards: Sequence[int], codes: Codes) -> Codes:
    """Return the number of the cell of a scope's table that every row of codes (n, m) falls into, (n,)."""
    shape = tuple(cards[v] for v in scope)
    return np.ravel_multi_index(tuple(codes[:, v] for v in scope), shape)
