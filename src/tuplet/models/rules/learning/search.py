"""Which rule to add next, and how strong it should be.

`Screen` counts patterns of labels that the present rules expect too often or too seldom; `best_rule` fits a
rule to the most surprising of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from tuplet.core.limits import FEW_OUTCOMES
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.models.rules.learning.evidence import STRONGEST, Evidence, Term

Pattern = tuple[tuple[int, int], ...]
"""Variables, ascending, with one category each."""

_Found = dict[tuple[int, ...], float]
"""Patterns as ascending lines of the 0/1 tables, with their surprise."""

_CRISP = 3.0
"""Cost at which categories outside of a pattern start, q = .05: the search begins with the pattern."""

_DRAWS, _DRAWS_PER_ROW = 20_000, 200
"""Draws that patterns are counted in, at most. They choose scopes; what is fitted is fitted exactly."""


@dataclass(frozen=True)
class SearchSettings:
    """How rules are looked for.

    Parameters
    ----------
    max_scope : int
        Most labels in a rule.
    max_cells : int
        Most cells of exact tables for one row: rules that would entangle the labels beyond it are not added,
        so that everything stays exact however many labels there are.
    shrinkage : float
        Standard deviation of the normal distribution around 0 that strengths (logit p) are expected to have.
    least_gain : float
        Nats of training log-likelihood that a rule, and any further label of a rule, must add.
    n_tried : int
        Patterns of the screening that are fitted.
    beam : int
        Patterns of every length that the screening follows.
    """

    max_scope: int = 6
    max_cells: int = FEW_OUTCOMES
    shrinkage: float = 2.0
    least_gain: float = 2.0
    n_tried: int = 2
    beam: int = 10


@dataclass(frozen=True, eq=False)
class _FittedTerm:
    """A rule with what it adds to the penalised log-likelihood of the training rows."""

    term: Term
    gain: float


def best_rule(
    evidence: Evidence, terms: Sequence[Term], settings: SearchSettings, rng: np.random.Generator
) -> _FittedTerm | None:
    """Return the best rule to add to others, None if none adds `least_gain`."""
    screen = Screen.draw(evidence, terms, rng)
    patterns = screen.patterns(
        settings.n_tried,
        settings.beam,
        settings.max_scope,
        settings.least_gain,
        _scopes_that_fit(evidence, terms, settings.max_cells),
    )
    found = [_fit_pattern(evidence, terms, pattern, settings) for pattern in patterns]
    best = max(found, key=lambda candidate: candidate.gain, default=None)
    if best is None or best.gain < settings.least_gain:
        return None
    term = best.term.canonical(negligible=0.01)
    return None if term is None else _FittedTerm(term, best.gain)


def _scopes_that_fit(
    evidence: Evidence, terms: Sequence[Term], max_cells: int
) -> Callable[[tuple[int, ...]], bool]:
    known: dict[tuple[int, ...], bool] = {}

    def fits(scope: tuple[int, ...]) -> bool:
        if scope not in known:
            known[scope] = evidence.cells_with(terms, scope) <= max_cells
        return known[scope]

    return fits


def _fit_pattern(
    evidence: Evidence, terms: Sequence[Term], pattern: Pattern, settings: SearchSettings
) -> _FittedTerm:
    scope = tuple(v for v, _ in pattern)
    costs = [np.where(np.arange(evidence.cards[v]) == category, 0.0, _CRISP) for v, category in pattern]
    inside, outside = evidence.truth_of(terms, scope), evidence.marginals_of(terms, scope)
    return fit_term(Term(scope, 0.0, tuple(costs)), inside, outside, evidence.weights, settings)


def fit_term(
    term: Term, inside: Floats, outside: Floats, weights: Floats, settings: SearchSettings
) -> _FittedTerm:
    """Return the rule on a scope that adds most, all other rules staying as they are.

    Adding f multiplies the probability of the known labels by E[f | labels] / E[f], expectations under the
    present rules; so all that matters is the posterior of the scope's cells.

    Parameters
    ----------
    term : Term
        Where to start. One category of each label costs nothing and stays so: the rule's pattern.
    inside, outside : arrays, shape (cells, n)
        Posterior of the cells with and without the known labels.
    weights : array, shape (n,)
    settings : SearchSettings
    """
    whole = term.parameters
    if whole[0] == 0:  # start in the direction in which the likelihood rises
        whole[0] = 1e-3
        whole[0] = 0.5 if _local(term.moved(whole), inside, outside, weights)[1][0] > 0 else -0.5
    free = np.concatenate([[True], *(np.arange(len(cost)) != np.argmin(cost) for cost in term.costs)])

    def loss(moving: Floats) -> tuple[float, Floats]:
        whole[free] = moving
        value, gradient = _local(term.moved(whole), inside, outside, weights)
        gradient[0] -= whole[0] / settings.shrinkage**2
        return 0.5 * (whole[0] / settings.shrinkage) ** 2 - value, -gradient[free]

    bounds = [(-STRONGEST, STRONGEST), *[(0.0, STRONGEST)] * (int(free.sum()) - 1)]
    found = minimize(loss, whole[free], jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
    whole[free] = found.x
    return _FittedTerm(term.moved(whole), -float(found.fun))


def _local(term: Term, inside: Floats, outside: Floats, weights: Floats) -> tuple[float, Floats]:
    table = np.exp(term.log_table()).reshape(-1)
    above, below = table @ inside, table @ outside
    value = float(weights @ (np.log(above) - np.log(below)))
    by_cell = table * (inside @ (weights / above) - outside @ (weights / below))
    return value, term.chain(by_cell.reshape(term.shape))


def fit_strengths(evidence: Evidence, terms: Sequence[Term], settings: SearchSettings) -> list[Term]:
    """Return the rules with the strengths that fit best together, everything else of them unchanged."""
    if not terms:
        return []
    firsts: npt.NDArray[np.intp] = np.cumsum([0, *(len(term.parameters) for term in terms)])[:-1]
    whole = np.concatenate([term.parameters for term in terms])

    def moved(strengths: Floats) -> list[Term]:
        whole[firsts] = strengths
        return [t.moved(part) for t, part in zip(terms, np.split(whole, firsts[1:]), strict=True)]

    def loss(strengths: Floats) -> tuple[float, Floats]:
        value, gradient = evidence.value_and_gradient(moved(strengths))
        slope = np.concatenate(gradient)[firsts] - strengths / settings.shrinkage**2
        return 0.5 * float(strengths @ strengths) / settings.shrinkage**2 - value, -slope

    bounds = [(-STRONGEST, STRONGEST)] * len(terms)
    found = minimize(loss, whole[firsts], jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60})
    return moved(found.x)


# -- screening ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Screen:
    """Labels of rows, and draws from the posterior of these rows: a line of 0 and 1 for every category.

    Parameters
    ----------
    cards : tuple of int
    truth : array of float32, shape (sum of cards, n)
        Zero where a label is missing.
    drawn : array of float32, shape (sum of cards, draws)
        Zero where the row's label is missing: what cannot be observed is not expected.
    truth_weights, drawn_weights : arrays, shapes (n,) and (draws,)
        Of the same total.
    """

    cards: tuple[int, ...]
    truth: Floats
    drawn: Floats
    truth_weights: Floats
    drawn_weights: Floats

    @classmethod
    def draw(cls, evidence: Evidence, terms: Sequence[Term], rng: np.random.Generator) -> Screen:
        """Draw from the posterior under the rules so far."""
        size = int(np.clip(_DRAWS // max(1, evidence.n), 2, _DRAWS_PER_ROW))
        draws = evidence.sample(terms, size, rng)
        draws[:, evidence.codes == UNKNOWN] = UNKNOWN
        return cls(
            evidence.cards,
            _one_hot(evidence.codes, evidence.cards),
            _one_hot(draws.reshape(-1, draws.shape[2]), evidence.cards),
            evidence.weights.astype(np.float32),
            np.tile(evidence.weights / size, size).astype(np.float32),
        )

    @cached_property
    def owner(self) -> Codes:
        """Variable of every line."""
        return np.repeat(np.arange(len(self.cards)), self.cards)

    def patterns(
        self, n: int, width: int, longest: int, least: float, fits: Callable[[tuple[int, ...]], bool]
    ) -> list[Pattern]:
        """Return the n most surprising patterns.

        A beam search: the most surprising pairs of labels, each made longer by one label at a time as long as
        that adds to the surprise.

        Parameters
        ----------
        n : int
        width : int
            Patterns of a length that are made longer.
        longest : int
            Most labels of a pattern.
        least : float
            Nats that a further label must add.
        fits : callable
            Whether a scope is allowed.
        """
        beam = self._first_that_fit(self._pairs(4 * width), width, fits) if longest > 1 else {}
        done: _Found = dict(beam)
        for _ in range(longest - 2):
            longer: _Found = {}
            for lines, value in beam.items():
                longer |= self._longer(lines, value + least, width)
            beam = self._first_that_fit(longer, width, fits)
            done |= beam
        best = sorted(done, key=lambda lines: -done[lines])[:n]
        return [tuple(self._literal(i) for i in lines) for lines in best]

    def _first_that_fit(self, found: _Found, width: int, fits: Callable[[tuple[int, ...]], bool]) -> _Found:
        """Return the most surprising patterns whose scopes are allowed."""
        kept: _Found = {}
        for lines in sorted(found, key=lambda lines: -found[lines]):
            if len(kept) == width:
                break
            if fits(tuple(int(v) for v in self.owner[list(lines)])):
                kept[lines] = found[lines]
        return kept

    def _pairs(self, n: int) -> _Found:
        """Return the n most surprising pairs."""
        observed = (self.truth * self.truth_weights) @ self.truth.T
        expected = (self.drawn * self.drawn_weights) @ self.drawn.T
        value = self._surprise(observed, expected)
        value[self.owner[:, None] >= self.owner] = -1.0
        order = np.argsort(-value, axis=None, kind="stable")[:n]
        pairs = [divmod(int(flat), len(self.owner)) for flat in order]
        return {pair: float(value[pair]) for pair in pairs if value[pair] > 0}

    def _longer(self, lines: tuple[int, ...], least: float, n: int) -> _Found:
        """Return the n most surprising patterns of one more label whose surprise is at least so much."""
        chosen = list(lines)
        observed = self.truth @ (self.truth_weights * self.truth[chosen].prod(axis=0))
        expected = self.drawn @ (self.drawn_weights * self.drawn[chosen].prod(axis=0))
        value = self._surprise(observed, expected)
        value[np.isin(self.owner, self.owner[chosen])] = -1.0
        order = np.argsort(-value, kind="stable")[:n]
        return {tuple(sorted((*lines, int(i)))): float(value[i]) for i in order if value[i] >= least}

    def _literal(self, line: int) -> tuple[int, int]:
        v = int(self.owner[line])
        return v, int(line - np.searchsorted(self.owner, v))

    def _surprise(self, observed: Floats, expected: Floats) -> Floats:
        """Return a lower bound of what the log-likelihood gains when a rule corrects the number of rows.

        A rule that weights a pattern by e^-s adds sum_i log f(y_i) - sum_i log E_i f, which is at least the
        same with the mean of E_i f in the place of each (Jensen). The best s then makes the expected number
        the observed one and gains their divergence.
        """
        total = float(self.truth_weights.sum())
        o = np.clip(observed.astype(float), 0.1, max(0.1, total - 0.1))
        e = np.clip(expected.astype(float), 0.1, max(0.1, total - 0.1))
        rest_o, rest_e = np.maximum(total - o, 0.1), np.maximum(total - e, 0.1)
        gain: Floats = o * np.log(o / e) + rest_o * np.log(rest_o / rest_e)
        return gain


def _one_hot(codes: Codes, cards: Sequence[int]) -> Floats:
    parts = [code == np.arange(card)[:, None] for code, card in zip(codes.T, cards, strict=True)]
    return np.vstack(parts).astype(np.float32)
