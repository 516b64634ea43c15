"""The slow, obvious truth in logarithms, for outcomes whose probability is too small to be written down.

An outcome of probability exp(-5000) is possible, one of probability zero is not. The probabilities of
`enumerate_joint` are zero for both; these logarithms tell them apart.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from scipy.special import logsumexp

from tuplet.joint import Atoms, FactorGraph, JointDistribution, Mixture
from tuplet.joint.base import all_outcomes
from tuplet.testing.oracle import enumerate_joint
from tuplet.typing import Floats

__all__ = ["enumerate_log_joint", "log_total"]


@singledispatch
def enumerate_log_joint(joint: JointDistribution) -> Floats:
    """Log-probabilities (n, number of outcomes) in the order of `all_outcomes`, by brute force.

    A form registers its definition here only if its probabilities may leave the range of floating point;
    otherwise the logarithm of `enumerate_joint` is the truth.
    """
    with np.errstate(divide="ignore"):
        return np.log(enumerate_joint(joint))


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
def _(joint: Mixture) -> Floats:
    parts = np.stack([enumerate_log_joint(component) for component in joint.components], axis=-1)
    with np.errstate(invalid="ignore"):
        return log_total(np.where(np.isneginf(parts), -np.inf, joint.log_weights[:, None] + parts))


def log_total(log_values: Floats) -> Floats:
    """Log of the sum over the last axis."""
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(log_values, axis=-1))
