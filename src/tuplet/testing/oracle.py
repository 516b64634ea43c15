"""The slow, obvious truth: every outcome of every form, from its definition alone.

In logarithms, because an outcome of probability exp(-5000) is possible and one of probability zero is not.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from scipy.special import logsumexp

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import JointDistribution, all_outcomes
from tuplet.joint.graph import FactorGraph
from tuplet.joint.mixture import Mixture


def enumerate_joint(joint: JointDistribution) -> Floats:
    """Probabilities (n, number of outcomes) in the order of `all_outcomes`, by brute force."""
    return np.exp(enumerate_log_joint(joint))


@singledispatch
def enumerate_log_joint(joint: JointDistribution) -> Floats:
    """Log-probabilities (n, number of outcomes) in the order of `all_outcomes`, by brute force.

    A form of your own registers its definition with `enumerate_log_joint.register`; until then its own
    `log_prob` is taken for the truth, and `check_joint` still compares every other query with it.
    """
    return joint.log_prob(all_outcomes(joint.cards)[:, None]).T


@enumerate_log_joint.register
def _(joint: Atoms) -> Floats:
    position = np.ravel_multi_index(tuple(np.moveaxis(joint.codes, -1, 0)), joint.cards)
    answer = np.full((len(joint), joint.n_outcomes), -np.inf)
    for i, log_weights in enumerate(joint.log_weights):
        for place, log_weight in zip(position[i % len(position)], log_weights, strict=True):
            answer[i, place] = np.logaddexp(answer[i, place], log_weight)
    return answer


@enumerate_log_joint.register
def _(joint: FactorGraph) -> Floats:
    every = all_outcomes((*joint.cards, *joint.hidden_cards))
    log_weight = np.zeros((len(joint), len(every)))
    for factor in joint.factors:
        cells = factor.log_table[tuple(every[:, v] for v in factor.scope)]
        log_weight += cells.T if factor.scope else cells[:, None]
    # Hidden variables come last, so they run fastest.
    visible = log_total(log_weight.reshape(len(joint), joint.n_outcomes, -1))
    return visible - log_total(visible)[:, None]


@enumerate_log_joint.register
def _(joint: Autoregressive) -> Floats:
    outcomes = all_outcomes(joint.cards)
    probabilities = np.ones((len(joint), len(outcomes)))
    for i in range(len(joint)):
        for o, outcome in enumerate(outcomes):
            for depth, variable in enumerate(joint.order):
                prefix = np.full((1, len(joint.cards)), UNKNOWN)
                earlier = list(joint.order[:depth])
                prefix[0, earlier] = outcome[earlier]
                log_p = joint.conditional(variable, joint.rows[i : i + 1], prefix)[0, outcome[variable]]
                probabilities[i, o] *= np.exp(log_p)
        if joint.evidence is not None:
            probabilities[i, ~_agrees(outcomes, joint.evidence[i])] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(probabilities / probabilities.sum(axis=1, keepdims=True))


@enumerate_log_joint.register
def _(joint: Mixture) -> Floats:
    parts = np.stack([enumerate_log_joint(component) for component in joint.components], axis=-1)
    with np.errstate(invalid="ignore"):
        return log_total(np.where(np.isneginf(parts), -np.inf, joint.log_weights[:, None] + parts))


def log_total(log_values: Floats) -> Floats:
    """Log of the sum over the last axis."""
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(log_values, axis=-1))


def _agrees(outcomes: Codes, known: Codes) -> np.ndarray:
    return ((outcomes == known) | (known == UNKNOWN)).all(axis=1)
