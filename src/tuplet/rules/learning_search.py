"""Which rule to add next, and how strong it should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from tuplet.rules.learning_data import Evidence
from tuplet.rules.learning_screen import Pattern, Screen
from tuplet.rules.learning_terms import STRONGEST, AnyTerm, Term
from tuplet.typing import Floats

_CRISP = 3.0
"""Cost at which categories outside of a pattern start, q = .05: the pattern is what is looked at first."""


@dataclass(frozen=True)
class Settings:
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
    max_cells: int = 2**12
    shrinkage: float = 2.0
    least_gain: float = 2.0
    n_tried: int = 2
    beam: int = 10


@dataclass(frozen=True, eq=False)
class Candidate:
    """A rule with what it adds to the penalised log-likelihood of the training rows."""

    term: Term
    gain: float


def best_rule(
    evidence: Evidence, terms: Sequence[AnyTerm], settings: Settings, rng: np.random.Generator
) -> Candidate | None:
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
    return None if term is None else Candidate(term, best.gain)


def _scopes_that_fit(
    evidence: Evidence, terms: Sequence[AnyTerm], max_cells: int
) -> Callable[[tuple[int, ...]], bool]:
    known: dict[tuple[int, ...], bool] = {}

    def fits(scope: tuple[int, ...]) -> bool:
        if scope not in known:
            known[scope] = evidence.cells_with(terms, scope) <= max_cells
        return known[scope]

    return fits


def _fit_pattern(
    evidence: Evidence, terms: Sequence[AnyTerm], pattern: Pattern, settings: Settings
) -> Candidate:
    scope = tuple(v for v, _ in pattern)
    costs = [np.where(np.arange(evidence.cards[v]) == category, 0.0, _CRISP) for v, category in pattern]
    inside, outside = evidence.truth_of(terms, scope), evidence.marginals_of(terms, scope)
    return fit_term(Term(scope, 0.0, tuple(costs)), inside, outside, evidence.weights, settings)


def fit_term(term: Term, inside: Floats, outside: Floats, weights: Floats, settings: Settings) -> Candidate:
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
    settings : Settings
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
    return Candidate(term.moved(whole), -float(found.fun))


def _local(term: Term, inside: Floats, outside: Floats, weights: Floats) -> tuple[float, Floats]:
    table = np.exp(term.log_table()).reshape(-1)
    above, below = table @ inside, table @ outside
    value = float(weights @ (np.log(above) - np.log(below)))
    by_cell = table * (inside @ (weights / above) - outside @ (weights / below))
    return value, term.chain(by_cell.reshape(term.shape))


def fit_strengths(evidence: Evidence, terms: Sequence[AnyTerm], settings: Settings) -> list[AnyTerm]:
    """Return the rules with the strengths that fit best together, everything else of them unchanged."""
    if not terms:
        return []
    firsts: npt.NDArray[np.intp] = np.cumsum([0, *(len(term.parameters) for term in terms)])[:-1]
    whole = np.concatenate([term.parameters for term in terms])

    def moved(strengths: Floats) -> list[AnyTerm]:
        whole[firsts] = strengths
        return [t.moved(part) for t, part in zip(terms, np.split(whole, firsts[1:]), strict=True)]

    def loss(strengths: Floats) -> tuple[float, Floats]:
        value, gradient = evidence.value_and_gradient(moved(strengths))
        slope = np.concatenate(gradient)[firsts] - strengths / settings.shrinkage**2
        return 0.5 * float(strengths @ strengths) / settings.shrinkage**2 - value, -slope

    bounds = [(-STRONGEST, STRONGEST)] * len(terms)
    found = minimize(loss, whole[firsts], jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60})
    return moved(found.x)
