"""Hypothesis strategies for small random joint distributions of every form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from scipy.special import softmax

from tuplet.core.typing import Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import JointDistribution, all_outcomes
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.engine import Exact
from tuplet.joint.inference.factor import AnyFactor, Factor, RuleFactor
from tuplet.joint.inference.signed import SignedElimination
from tuplet.joint.linear_chain import LinearChain, LinearTerms
from tuplet.joint.mixture import Mixture

Cards = tuple[int, ...]

_SCALES = (1, 1, 1, 1, 1, 150, 400, 3000)
"""Scales of log-factors: mostly plain, some that underflow in sums only, some in every number."""


def cardinalities(
    max_variables: int = 5, max_card: int = 4, *, binary: bool = False
) -> st.SearchStrategy[Cards]:
    """Cardinalities of one to `max_variables` variables; a variable may have a single value."""
    card = st.just(2) if binary else st.integers(1, max_card)
    return st.lists(card, min_size=1, max_size=max_variables).map(tuple)


@st.composite
def atoms(draw: st.DrawFn, cards: Cards | None = None, n: int | None = None) -> Atoms:
    """Some of all outcomes with random weights; shared by the rows or not."""
    cards, n, rng = _frame(draw, cards, n)
    outcomes = all_outcomes(cards)
    size = int(rng.integers(1, len(outcomes) + 1))
    lists = 1 if draw(st.booleans()) else n
    codes = np.stack([outcomes[rng.permutation(len(outcomes))[:size]] for _ in range(lists)])
    log_weights = 2 * rng.normal(size=(n, size))
    log_weights[:, 1:][rng.random((n, size - 1)) < 0.2] = -np.inf
    return Atoms(cards, codes, log_weights)


@st.composite
def factor_graphs(
    draw: st.DrawFn, cards: Cards | None = None, n: int | None = None, max_hidden: int = 2
) -> FactorGraph:
    """Random scopes over class variables and up to `max_hidden` hidden ones; some cells are impossible.

    Now and then the log-factors are so far apart that their exponentials leave the range of floating point.
    """
    cards, n, rng = _frame(draw, cards, n)
    scale = draw(st.sampled_from(_SCALES))
    hidden = tuple(int(card) for card in rng.integers(1, 4, size=draw(st.integers(0, max_hidden))))
    every = (*cards, *hidden)
    factors = []
    for _ in range(draw(st.integers(0, 6))):
        size = int(rng.integers(0, min(3, len(every)) + 1))
        scope = tuple(int(v) for v in rng.permutation(len(every))[:size])
        shape = (*(every[v] for v in scope), n if rng.random() < 0.7 else 1)
        table = 2 * scale * rng.normal(size=shape)
        # The all-zero outcome stays possible, so that the factors never contradict each other.
        forbidden = (rng.random(shape) < 0.15) & (np.indices(shape)[:-1].sum(axis=0) > 0) if scope else False
        factors.append(Factor(scope, np.where(forbidden, -np.inf, table)))
    return FactorGraph(cards, factors, n, hidden)


@st.composite
def rule_graphs(draw: st.DrawFn, cards: Cards | None = None, n: int | None = None) -> FactorGraph:
    """Independent variables under rules, which are noisy-or rules or tables."""
    cards, n, rng = _frame(draw, cards, n)
    tables = [np.log(rng.dirichlet(np.ones(card), size=n)).T for card in cards]
    factors: list[AnyFactor] = [Factor((j,), table) for j, table in enumerate(tables)]
    for _ in range(draw(st.integers(1, 2))):
        scope = tuple(int(v) for v in rng.permutation(len(cards))[: rng.integers(1, 4)])
        p, shape = float(rng.uniform(0.5, 0.999)), tuple(cards[v] for v in scope)
        if rng.random() < 0.7:
            factors.append(RuleFactor(scope, p, q=tuple(rng.random(card) for card in shape)))
        else:
            factors.append(RuleFactor(scope, p, violated=np.round(rng.random(shape))))
    return FactorGraph(cards, factors, n, engine=draw(st.sampled_from([Exact(), SignedElimination()])))


@st.composite
def autoregressives(draw: st.DrawFn, cards: Cards | None = None, n: int | None = None) -> Autoregressive:
    """Random order and random conditional tables."""
    cards, n, rng = _frame(draw, cards, n)
    order = tuple(int(v) for v in rng.permutation(len(cards)))
    tables = []
    for place, variable in enumerate(order):
        shape = (n, *(cards[v] for v in order[:place]), cards[variable])
        weights = rng.gamma(0.7, size=shape) + 1e-3
        weights[..., 1:][rng.random(weights[..., 1:].shape) < 0.15] = 0.0
        tables.append(weights / weights.sum(axis=-1, keepdims=True))
    return Autoregressive(cards, order, _TableConditional(order, tuple(tables)), n)


@st.composite
def linear_chains(draw: st.DrawFn, cards: Cards | None = None, n: int | None = None) -> Autoregressive:
    """Random order, and softmax conditionals of random sums; some values are impossible."""
    cards, n, rng = _frame(draw, cards, n)
    order = tuple(int(v) for v in rng.permutation(len(cards)))
    terms = [_random_terms(cards, order, v, n, rng) for v in range(len(cards))]
    return Autoregressive(cards, order, SoftmaxConditional(order, tuple(terms)), n)


def _random_terms(cards: Cards, order: Cards, v: int, n: int, rng: np.random.Generator) -> LinearTerms:
    k = cards[v]
    classes = np.sort(rng.permutation(k)[: int(rng.integers(1, k + 1))])
    if len(classes) == 1:
        return LinearTerms(np.zeros((n, 0)), {}, np.arange(0), 1.0, np.eye(k)[classes[0]])
    c = 1 if len(classes) == 2 else len(classes)
    earlier = order[: order.index(v)]
    effects = {u: 2 * rng.normal(size=(cards[u], c)) for u in earlier if rng.random() < 0.8}
    share = rng.dirichlet(np.ones(k)) * 0.1 * rng.integers(0, 2)
    return LinearTerms(2 * rng.normal(size=(n, c)), effects, classes, 1 - share.sum(), share)


@st.composite
def mixtures(draw: st.DrawFn, cards: Cards | None = None, n: int | None = None) -> Mixture:
    """One to three components of any other form; some weights are zero."""
    cards, n, rng = _frame(draw, cards, n)
    parts = st.one_of(
        atoms(cards, n),
        factor_graphs(cards, n, max_hidden=1),
        rule_graphs(cards, n),
        autoregressives(cards, n),
        linear_chains(cards, n),
    )
    components = tuple(draw(st.lists(parts, min_size=1, max_size=3)))
    log_weights = rng.normal(size=(n, len(components)))
    log_weights[:, 1:][rng.random((n, len(components) - 1)) < 0.2] = -np.inf
    return Mixture(log_weights, components)


FORMS: dict[str, Callable[[Cards | None, int | None], st.SearchStrategy[Any]]] = {
    "atoms": atoms,
    "factor graph": factor_graphs,
    "rules": rule_graphs,
    "autoregressive": autoregressives,
    "linear chain": linear_chains,
    "mixture": mixtures,
}
"""Strategies of all forms, by name: each takes `cards` and `n`."""


@st.composite
def joints(draw: st.DrawFn, cards: Cards | None = None, n: int | None = None) -> JointDistribution:
    """Any form."""
    return draw(FORMS[draw(st.sampled_from(sorted(FORMS)))](cards, n))


@dataclass(frozen=True)
class _TableConditional:
    """Conditionals p(variable | earlier variables) as tables, with zeros in them."""

    order: tuple[int, ...]
    tables: tuple[Floats, ...]  # per place in the order: (n, *cards of the earlier ones, k)

    def __call__(self, variable: int, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """Log-probabilities (r, k) of a variable, given the earlier ones in codes (r, m)."""
        place = self.order.index(variable)
        with np.errstate(divide="ignore"):
            return np.log(self.tables[place][(rows, *(codes[:, v] for v in self.order[:place]))])


@dataclass(frozen=True)
class SoftmaxConditional:
    """Softmax conditionals of sums; see `LinearConditional`."""

    order: tuple[int, ...]
    terms: tuple[LinearTerms, ...]  # by variable

    def __call__(self, variable: int, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """Log-probabilities (r, k) of a variable, given the earlier ones in codes (r, m)."""
        terms = self.terms[variable]
        logits = terms.base[rows] + sum(effect[codes[:, u]] for u, effect in terms.effects.items())
        if logits.shape[1] == 1:
            logits = np.hstack([np.zeros_like(logits), logits])
        p = np.tile(terms.share, (len(rows), 1))
        if logits.shape[1]:
            p[:, terms.classes] += terms.scale * softmax(logits, axis=1)
        with np.errstate(divide="ignore"):
            return np.log(p)

    def linear_chain(self) -> LinearChain:
        """See `LinearConditional.linear_chain`."""
        return LinearChain.pack([len(each.share) for each in self.terms], self.order, self.terms)


def _frame(draw: st.DrawFn, cards: Cards | None, n: int | None) -> tuple[Cards, int, np.random.Generator]:
    """Fill in arguments that are not given; numbers come from one seed: examples stay small and fast."""
    chosen = draw(cardinalities()) if cards is None else cards
    rows = draw(st.integers(1, 4)) if n is None else n
    return chosen, rows, np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
