"""The learner of the paper: random scopes, stochastic gradients, a prior on the softest inhibition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import beta

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import all_outcomes
from tuplet.models.rules.learning.evidence import STRONGEST, Evidence, Term

# Without the dense gradient, learning on emotions (6 labels) takes 33.4 instead of 3.8 CPU seconds. With 20
# rules it is faster up to 10 binary labels (1.3 against 3.3 CPU seconds) and slower from 11 on (4.9, 3.0).
_MOST_COMBINATIONS = 2**10
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
    fixed: Sequence[Term],
    n_rules: int,
    settings: PaperSettings,
    rng: np.random.Generator,
) -> list[Term]:
    """Return rules in canonical form; fewer than `n_rules` if some of them have no effect.

    Adam ascends the mean log-likelihood of small batches plus a regulariser that fades. Scopes are drawn at
    random and stay: in the reference, too, they hardly ever differ from the random start.
    """
    cards = np.asarray(evidence.cards)
    length = min(settings.max_scope, len(cards))
    scopes = np.sort([rng.choice(len(cards), length, replace=False) for _ in range(n_rules)], axis=1)
    owners = cards[scopes].reshape(-1)
    q = rng.uniform(0.9, 1.0, owners.sum())
    gradient_of = _gradient_function(evidence, fixed, scopes)
    first, second = np.zeros_like(q), np.zeros_like(q)
    for step in range(1, settings.n_iterations + 1):
        rows = rng.choice(evidence.n, min(settings.batch, evidence.n), replace=False)
        gradient = gradient_of(q, rows) / evidence.weights[rows].sum()
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


class DenseGradient:
    """Derivatives of the log-likelihood of batches by the inhibitions q, over all combinations of labels.

    Rules do not depend on the row: their product is one vector over the combinations, and a batch needs one
    softmax for the posterior and one for the posterior given the known labels.

    Parameters
    ----------
    evidence : Evidence
        Without given rules.
    fixed : sequence of Term
        Rules that do not change.
    scopes : array, shape (K, J)
        Variables of the rules, whose strength is `STRONGEST`.
    """

    def __init__(self, evidence: Evidence, fixed: Sequence[Term], scopes: Codes) -> None:
        cards, outcomes = np.asarray(evidence.cards), all_outcomes(evidence.cards)
        starts = np.cumsum([0, *cards[scopes].reshape(-1)])[:-1].reshape(scopes.shape)
        self.index = starts[:, None, :] + outcomes[:, scopes].transpose(1, 0, 2)  # (K, combinations, J)
        self.one_hot = _one_hot(outcomes, evidence.cards).T
        self.log_beliefs, self.weights = np.hstack(evidence.log_beliefs), evidence.weights
        self.allowed = _one_hot(evidence.codes, evidence.cards)
        self.n_labels = len(cards)
        self.log_fixed = np.zeros(len(outcomes))
        for term in fixed:
            self.log_fixed += term.log_table()[tuple(outcomes[:, term.scope].T)]

    def __call__(self, q: Floats, rows: npt.NDArray[np.intp]) -> Floats:
        """Return the derivatives by q (P,) of the weighted log-likelihood of some rows."""
        drop = -np.expm1(-STRONGEST)
        breach = q[self.index].prod(axis=2)
        factor = 1.0 - drop * breach
        log_weight = self.log_beliefs[rows] @ self.one_hot + (self.log_fixed + np.log(factor).sum(axis=0))
        agrees = self.allowed[rows] @ self.one_hot == self.n_labels
        inside = _softmax(np.where(agrees, log_weight, -np.inf))
        surplus = self.weights[rows] @ (inside - _softmax(log_weight))
        by_log_q = np.repeat(-drop * surplus * breach / factor, self.index.shape[2])
        return np.bincount(self.index.reshape(-1), by_log_q, minlength=len(q)) / q


def _one_hot(codes: Codes, cards: Sequence[int]) -> Floats:
    """Return 1 for every category that codes (n, m) allow, (n, sum of cards); a missing label allows all."""
    known = zip(codes.T[:, :, None], cards, strict=True)
    return np.hstack([(code == np.arange(card)) | (code == UNKNOWN) for code, card in known]).astype(float)


def _softmax(log_weight: Floats) -> Floats:
    """Return rows that sum to 1: `scipy.special.softmax` has more overhead for small arrays."""
    weight: Floats = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def _terms(q: Floats, scopes: Codes, cards: Codes) -> list[Term]:
    costs = iter(np.split(-np.log(q), np.cumsum(cards[scopes].reshape(-1))[:-1]))
    return [Term(tuple(map(int, scope)), STRONGEST, tuple(next(costs) for _ in scope)) for scope in scopes]


def _gradient_function(
    evidence: Evidence, fixed: Sequence[Term], scopes: Codes
) -> Callable[[Floats, npt.NDArray[np.intp]], Floats]:
    if math.prod(evidence.cards) <= _MOST_COMBINATIONS and not evidence.given:
        return DenseGradient(evidence, fixed, scopes)
    return partial(_eliminated_gradient, evidence, fixed, scopes)


def _eliminated_gradient(
    evidence: Evidence, fixed: Sequence[Term], scopes: Codes, q: Floats, rows: npt.NDArray[np.intp]
) -> Floats:
    """Return what `DenseGradient` returns, for any number of labels."""
    terms = _terms(q, scopes, np.asarray(evidence.cards))
    slopes = evidence.rows(rows).gradient([*fixed, *terms])[len(fixed) :]
    return -np.concatenate([slope[1:] for slope in slopes]) / q
