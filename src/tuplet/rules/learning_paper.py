"""The learner of the paper: random scopes, stochastic gradients, a prior on the softest inhibition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import beta

from tuplet.rules.learning_data import Evidence
from tuplet.rules.learning_dense import DensePasses
from tuplet.rules.learning_terms import STRONGEST, AnyTerm, Term
from tuplet.typing import Codes, Floats

_LEAK = 0.999

_LARGEST = 2**14
"""Combinations of labels up to which all of them are listed; beyond, variables are eliminated."""


@dataclass(frozen=True)
class PaperSettings:
    """Settings of the paper (section 3.7) and of its reference implementation.

    Parameters
    ----------
    max_scope : int
        Labels of each rule, J0.
    n_iterations, batch : int
        Steps of Adam, and rows that each of them looks at.
    learning_rate : float
    decay : float
        What the regulariser is multiplied by after every step.
    hardness : float
        Alpha of the soft minimum.
    shapes : pair of float
        Of the Beta distribution of the soft minimum.
    epsilon : float
        Keeps the logarithms of the regulariser finite.
    """

    max_scope: int = 5
    n_iterations: int = 1000
    batch: int = 20
    learning_rate: float = 0.001
    decay: float = 0.98
    hardness: float = 20.0
    shapes: tuple[float, float] = (0.6, 0.15)
    epsilon: float = 1e-4


def learn_as_in_the_paper(
    evidence: Evidence,
    fixed: Sequence[AnyTerm],
    n_rules: int,
    settings: PaperSettings,
    rng: np.random.Generator,
) -> list[Term]:
    """Return rules in canonical form; fewer than asked for if some of them say nothing.

    Adam ascends the mean log-likelihood of small batches plus a regulariser that fades. Scopes are drawn at
    random and stay: in the reference, too, they hardly ever differ from the random start.
    """
    cards = np.asarray(evidence.cards)
    length = min(settings.max_scope, len(cards))
    scopes = np.sort([rng.choice(len(cards), length, replace=False) for _ in range(n_rules)], axis=1)
    owners = cards[scopes].reshape(-1)
    q = rng.uniform(0.9, 1.0, owners.sum())
    passes = _passes(evidence, scopes, fixed)
    first, second = np.zeros_like(q), np.zeros_like(q)
    for step in range(1, settings.n_iterations + 1):
        rows = rng.choice(evidence.n, min(settings.batch, evidence.n), replace=False)
        gradient = passes.gradient(q, rows)[1] / evidence.weights[rows].sum()
        gradient += settings.decay ** (step - 1) * regulariser(q, owners, settings)[1]
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        size = settings.learning_rate * math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        q = np.clip(q + size * first / (np.sqrt(second) + 1e-8), 1e-5, 1.0)
    found = [term.canonical() for term in _terms(q, scopes, cards)]
    return [term for term in found if term is not None]


def regulariser(q: Floats, owners: Codes, settings: PaperSettings) -> tuple[float, Floats]:
    """Return the paper's equation 14 (without its decay) and its derivatives by all q.

    The soft minimum has the mean inside of its logarithm: with the sum, as printed, it is too small by ln k /
    alpha and may be negative.

    Parameters
    ----------
    q : array, shape (P,)
        Inhibitions, label after label.
    owners : array of int, shape (labels of all rules,)
        How many of them each label has.
    settings : PaperSettings
    """
    a, b = settings.shapes
    weight = np.exp(-settings.hardness * q)
    mean = np.add.reduceat(weight, np.cumsum([0, *owners[:-1]])) / owners
    soft = -np.log(mean) / settings.hardness
    low, high = soft + settings.epsilon, 1.0 - soft + settings.epsilon
    scale = 1.0 / float(beta(a, b))
    value = scale * float(((a - 1) * np.log(low) + (b - 1) * np.log(high)).sum())
    slope = scale * ((a - 1) / low - (b - 1) / high)
    return value, np.repeat(slope / (mean * owners), owners) * weight


def _terms(q: Floats, scopes: Codes, cards: Codes) -> list[Term]:
    costs = iter(np.split(-np.log(q), np.cumsum(cards[scopes].reshape(-1))[:-1]))
    return [Term(tuple(map(int, scope)), STRONGEST, tuple(next(costs) for _ in scope)) for scope in scopes]


class _Eliminating:
    """What `DensePasses` gives, by eliminating variables: for more labels than can be listed."""

    def __init__(self, evidence: Evidence, scopes: Codes, fixed: Sequence[AnyTerm]) -> None:
        self.evidence, self.scopes, self.fixed = evidence, scopes, fixed

    def gradient(self, q: Floats, rows: npt.NDArray[np.intp]) -> tuple[float, Floats]:
        terms = _terms(q, self.scopes, np.asarray(self.evidence.cards))
        value, slopes = self.evidence.rows(rows).value_and_gradient([*self.fixed, *terms])
        return value, -np.concatenate([slope[1:] for slope in slopes[len(self.fixed) :]]) / q


def _passes(evidence: Evidence, scopes: Codes, fixed: Sequence[AnyTerm]) -> DensePasses | _Eliminating:
    if math.prod(evidence.cards) <= _LARGEST and not evidence.given:
        return DensePasses(evidence, scopes, _LEAK, fixed)
    return _Eliminating(evidence, scopes, fixed)
