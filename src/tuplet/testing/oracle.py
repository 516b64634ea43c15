"""The slow, obvious truth: every outcome of every form, from its definition alone."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from tuplet.joint import Atoms, Autoregressive, FactorGraph, JointDistribution, Mixture
from tuplet.joint.base import all_outcomes
from tuplet.typing import UNKNOWN, Codes, Floats

__all__ = ["enumerate_joint"]


@singledispatch
def enumerate_joint(joint: JointDistribution) -> Floats:
    """Probabilities (n, number of outcomes) in the order of `all_outcomes`, by brute force.

    A form of your own registers its definition with `enumerate_joint.register`; until then its own `log_prob`
    is taken for the truth, and `check_joint` still compares every other query with it.
    """
    return np.exp(joint.log_prob(all_outcomes(joint.cards)[:, None])).T


@enumerate_joint.register
def _(joint: Atoms) -> Floats:
    outcomes = all_outcomes(joint.cards)
    probabilities = np.zeros((len(joint), len(outcomes)))
    for i in range(len(joint)):
        atoms = joint.codes[0 if len(joint.codes) == 1 else i]
        for atom, log_weight in zip(atoms, joint.log_weights[i], strict=True):
            probabilities[i, (outcomes == atom).all(axis=1)] += np.exp(log_weight)
    return probabilities


@enumerate_joint.register
def _(joint: FactorGraph) -> Floats:
    every = all_outcomes((*joint.cards, *joint.hidden_cards))
    log_weight = np.zeros((len(joint), len(every)))
    for factor in joint.factors:
        for i in range(len(joint)):
            table = factor.log_table[..., i if factor.log_table.shape[-1] != 1 else 0]
            log_weight[i] += table[tuple(every[:, v] for v in factor.scope)]
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    # Hidden variables come last, so they run fastest.
    visible = weight.reshape(len(joint), joint.n_outcomes, -1).sum(axis=2)
    return visible / visible.sum(axis=1, keepdims=True)


@enumerate_joint.register
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
    return probabilities / probabilities.sum(axis=1, keepdims=True)


@enumerate_joint.register
def _(joint: Mixture) -> Floats:
    weights = np.exp(joint.log_weights)
    parts = np.stack([enumerate_joint(component) for component in joint.components], axis=1)
    mixed: Floats = (weights[:, :, None] * parts).sum(axis=1)
    return mixed / mixed.sum(axis=1, keepdims=True)


def _agrees(outcomes: Codes, known: Codes) -> np.ndarray:
    return ((outcomes == known) | (known == UNKNOWN)).all(axis=1)
