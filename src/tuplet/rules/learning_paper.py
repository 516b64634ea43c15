"""The learner of the paper: random scopes, stochastic gradients, a prior on the softest inhibition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import beta

from tuplet.rules.learning_data import STRONGEST, Evidence, LearnedTerm, Term
from tuplet.typing import Codes, Floats


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
    fixed: Sequence[Term],
    n_rules: int,
    settings: PaperSettings,
    rng: np.random.Generator,
) -> list[LearnedTerm]:
    """Return rules in canonical form; fewer than `n_rules` if some of them have no effect.

    Adam ascends the mean log-likelihood of small batches plus a regulariser that fades. Scopes are drawn at
    random and stay: in the reference, too, they hardly ever differ from the random start.
    """
    cards = np.asarray(evidence.cards)
    length = min(settings.max_scope, len(cards))
    scopes = np.sort([rng.choice(len(cards), length, replace=False) for _ in range(n_rules)], axis=1)
    owners = cards[scopes].reshape(-1)
    q = rng.uniform(0.9, 1.0, owners.sum())
    first, second = np.zeros_like(q), np.zeros_like(q)
    for step in range(1, settings.n_iterations + 1):
        rows = rng.choice(evidence.n, min(settings.batch, evidence.n), replace=False)
        gradient = _slope(evidence.rows(rows), fixed, _terms(q, scopes, cards)) / q
        gradient /= evidence.weights[rows].sum()
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


def _terms(q: Floats, scopes: Codes, cards: Codes) -> list[LearnedTerm]:
    costs = iter(np.split(-np.log(q), np.cumsum(cards[scopes].reshape(-1))[:-1]))
    return [
        LearnedTerm(tuple(map(int, scope)), STRONGEST, tuple(next(costs) for _ in scope)) for scope in scopes
    ]


def _slope(batch: Evidence, fixed: Sequence[Term], terms: Sequence[LearnedTerm]) -> Floats:
    """Return the derivatives of the log-likelihood of a batch by the log q of all terms, (P,)."""
    slopes = batch.gradient([*fixed, *terms])[len(fixed) :]
    return -np.concatenate([slope[1:] for slope in slopes])
