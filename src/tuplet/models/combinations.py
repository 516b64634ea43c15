"""Combinations of labels in training rows, and the probability of those that no training row has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.factor import Factor
from tuplet.joint.mixture import Mixture


class Combinations(NamedTuple):
    """The combinations of labels in some training rows."""

    codes: Codes  # (a, m), distinct
    weights: Floats  # (a,) total weight of the rows of each
    member: Codes  # (n,) that of each row; UNKNOWN where a label is missing


def seen_combinations(codes: Codes, sample_weight: Floats | None) -> Combinations:
    """Return the combinations of the rows of codes (n, m) that are complete."""
    complete = (codes != UNKNOWN).all(axis=1)
    if not complete.any():
        raise InputError(
            "Learning combinations of labels needs at least one row in which no label is missing; use"
            " IndependentClassifier or ChainClassifier."
        )
    distinct, inverse = np.unique(codes[complete], axis=0, return_inverse=True)
    member = np.full(len(codes), UNKNOWN)
    member[complete] = inverse.ravel()
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    return Combinations(distinct, np.bincount(member[complete], weights[complete]).astype(float), member)


def unseen_mass(combinations: Combinations, cards: tuple[int, ...]) -> float:
    """Return the probability that a new row shows a combination that none of the training rows shows.

    Good and Turing's estimate: the share of the rows whose combination is theirs alone. It is kept between
    1 / (N + 1), because none is no proof, and 1/2, because the classifier should not be drowned out where
    every combination is unique. If every possible combination was seen it is 0.

    References
    ----------
    I. J. Good, The population frequencies of species and the estimation of population parameters,
    Biometrika 40, 1953.
    """
    outcomes = 1
    for card in cards:
        outcomes *= card
    if len(combinations.codes) == outcomes:
        return 0.0
    total, alone = combinations.weights.sum(), combinations.weights <= 1
    return float(np.clip(combinations.weights[alone].sum() / total, 1 / (total + 1), 0.5))


def log_marginals(codes: Codes, cards: tuple[int, ...], sample_weight: Floats | None) -> list[Floats]:
    """Return the log training frequencies (k_j,) of each variable, one row added to every value."""
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    answer = []
    for code, card in zip(codes.T, cards, strict=True):
        known = code != UNKNOWN
        counts = np.bincount(code[known], weights[known], minlength=card) + 1.0
        answer.append(np.log(counts / counts.sum()))
    return answer


def independent(marginals: list[Floats], n: int) -> FactorGraph:
    """Return n rows of independent variables with these log-probabilities (k_j,)."""
    factors = [Factor((j,), row[:, None]) for j, row in enumerate(marginals)]
    return FactorGraph(tuple(map(len, marginals)), factors, n, log_normalizer=0.0)


def with_unseen(atoms: Atoms, mass: float, marginals: list[Floats]) -> JointDistribution:
    """Return (1 - mass) * atoms + mass * the product of these log-marginals (k_j,)."""
    if mass == 0:
        return atoms
    n = len(atoms)
    log_weights = np.broadcast_to(np.log([1 - mass, mass]), (n, 2))
    return Mixture(log_weights, (atoms, independent(marginals, n)))
