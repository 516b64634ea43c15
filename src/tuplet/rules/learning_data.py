"""Beliefs and labels that rules are learned from, and what a set of rules makes of them: exact passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuplet.inference import Exact, Factor, Problem
from tuplet.inference.noisy_or import noisy_or
from tuplet.inference.plan import make_plan
from tuplet.rules.factor import RuleFactor
from tuplet.rules.learning_terms import AnyTerm, cells_of
from tuplet.typing import UNKNOWN, Codes, Floats

_ENGINE = Exact(chunk_cells=2**18)

_LONG = 2**12
"""Cells beyond which a given noisy-or rule is not a table: hidden variables then run along its scope."""


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
    """

    log_beliefs: tuple[Floats, ...]
    codes: Codes
    weights: Floats
    given: tuple[RuleFactor, ...] = ()

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
        return replace(self, log_beliefs=tables, codes=self.codes[rows], weights=self.weights[rows])

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
        weight = sum((factor.log_values(self.complete) for factor in self.given), np.zeros(self.n))
        if len(self.partial):
            weight[self.partial] = self.clamped.log_partition(())
        return np.flatnonzero(np.isfinite(weight))

    # -- passes -------------------------------------------------------------------------------------------

    def problem(self, terms: Sequence[AnyTerm], extra: Sequence[tuple[int, ...]] = ()) -> Problem:
        """Return the posterior as a product of factors over the variables that rules or `extra` name.

        The factors of the terms come first, then those of `extra`, which are constant. Variables that no rule
        names are independent of all others and add nothing.
        """
        scopes = [*(term.scope for term in terms), *extra, *(factor.scope for factor in self.given)]
        named = sorted({v for scope in scopes for v in scope})
        place = {v: i for i, v in enumerate(named)}
        cards = [self.cards[v] for v in named]
        factors = [Factor(tuple(place[v] for v in t.scope), t.log_table()[..., None]) for t in terms]
        for scope in extra:
            shape = tuple(self.cards[v] for v in scope)
            factors.append(Factor(tuple(place[v] for v in scope), np.zeros((*shape, 1))))
        factors += [Factor((i,), self.log_beliefs[v].T) for v, i in place.items()]
        for rule in self.given:
            new = _given_factors(rule, place, len(cards))
            cards += [2] * (len(new) - 1)
            factors += new
        return Problem(tuple(cards), tuple(factors), self.n, len(named))

    def cells_with(self, terms: Sequence[AnyTerm], *more: tuple[int, ...]) -> int:
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
        named = sorted({v for scope in scopes for v in scope})
        place = {v: i for i, v in enumerate(named)}
        cards = tuple(self.cards[v] for v in named)
        return cards, tuple(tuple(place[v] for v in scope) for scope in dict.fromkeys(scopes))

    def log_partition(self, terms: Sequence[AnyTerm]) -> Floats:
        """Return log Z (n,): how far the beliefs agree with the rules."""
        if not terms and not self.given:
            return np.zeros(self.n)
        return _ENGINE.log_partition(self.problem(terms))

    def marginals_of(self, terms: Sequence[AnyTerm], scope: tuple[int, ...]) -> Floats:
        """Return the posterior of the cells of a scope under the rules, (cells, n)."""
        answers = _ENGINE.factor_marginals(self.problem(terms, [scope]))
        return answers[len(terms)].reshape(-1, self.n)

    def truth_of(self, terms: Sequence[AnyTerm], scope: tuple[int, ...]) -> Floats:
        """Return the posterior of the cells of a scope under rules and known labels, (cells, n)."""
        truth = np.zeros((math.prod(self.cards[v] for v in scope), self.n))
        truth[cells_of(scope, self.cards, self.complete), np.arange(self.n)] = 1.0
        if len(self.partial):
            truth[:, self.partial] = self.clamped.marginals_of(terms, scope)
        return truth

    def sample(self, terms: Sequence[AnyTerm], size: int, rng: np.random.Generator) -> Codes:
        """Return draws of all variables from the posterior, (size, n, m)."""
        every = [(v,) for v in range(len(self.cards))]
        return _ENGINE.sample(self.problem(terms, every), size, rng)

    def log_gain(self, terms: Sequence[AnyTerm]) -> Floats:
        """Return what rules add to the log-probability of the known labels of every row, (n,).

        To be added to their log-probability under the beliefs and the given rules.
        """
        if not terms:
            return np.zeros(self.n)
        known = np.zeros(self.n)
        for term in terms:
            known += term.log_table().reshape(-1)[cells_of(term.scope, self.cards, self.complete)]
        if len(self.partial):
            part = self.clamped
            known[self.partial] = part.log_partition(terms) - part._given_partition
        return known - self.log_partition(terms) + self._given_partition

    @cached_property
    def _given_partition(self) -> Floats:
        return self.log_partition(())

    def value_and_gradient(self, terms: Sequence[AnyTerm]) -> tuple[float, list[Floats]]:
        """Return the weighted sum of `log_gain` and its derivatives by the parameters of every term.

        d log Z / d log f(cell) is the posterior probability of the cell, so one calibrated pass (two with
        missing labels) gives all of them.
        """
        value = float(self.weights @ self.log_gain(terms))
        expected = self._expected(terms)
        full = np.delete(np.arange(self.n), self.partial)
        inside = self.clamped._expected(terms) if len(self.partial) else None
        gradient = []
        for i, term in enumerate(terms):
            cells = cells_of(term.scope, self.cards, self.complete[full])
            counts = np.bincount(cells, self.weights[full], minlength=expected[i].size)
            observed: Floats = counts.astype(float).reshape(term.shape)
            if inside is not None:
                observed = observed + inside[i]
            gradient.append(term.chain(observed - expected[i]))
        return value, gradient

    def _expected(self, terms: Sequence[AnyTerm]) -> list[Floats]:
        """Return the weighted number of rows in every cell of every term under the posterior, (*shape)."""
        answers = _ENGINE.factor_marginals(self.problem(terms))[: len(terms)]
        return [answer @ self.weights for answer in answers]


def _given_factors(rule: RuleFactor, place: dict[int, int], first_hidden: int) -> list[Factor]:
    scope = tuple(place[v] for v in rule.scope)
    if rule.q is None or rule.n_cells <= _LONG:
        return [Factor(scope, rule.log_table()[..., None])]
    return noisy_or(scope, rule.q, rule.p, first_hidden)
