"""Scores of families from counts, one row after the other, as in the text books."""

import math

import numpy as np
from scipy.special import gammaln

from tuplet.core.typing import UNKNOWN


def slow_raw(codes, cards, child, parents, weights, criterion, size):
    """Likelihood or marginal likelihood of a child in complete rows, one configuration after the other."""
    q = math.prod(cards[p] for p in parents)
    prior = {"k2": 1.0, "bdeu": size / (q * cards[child])}.get(criterion)
    tables = {}
    for row, weight in zip(codes, weights, strict=True):
        counts = tables.setdefault(tuple(row[list(parents)]), np.zeros(cards[child]))
        counts[row[child]] += weight
    total = 0.0
    for counts in tables.values():
        if prior is None:
            total += sum(x * math.log(x / counts.sum()) for x in counts if x > 0)
        else:
            r = cards[child]
            total += gammaln(r * prior) - gammaln(counts.sum() + r * prior)
            total += sum(gammaln(x + prior) - gammaln(prior) for x in counts)
    return total


def slow_score(codes, cards, child, parents, weights, criterion, size=10.0):
    """The score of a family; with gaps, its gain on complete rows on top of the score without parents."""
    known = codes[:, child] != UNKNOWN
    complete = known & (codes[:, list(parents)] != UNKNOWN).all(axis=1)
    raw = slow_raw(codes[complete], cards, child, parents, weights[complete], criterion, size)
    raw -= slow_raw(codes[complete], cards, child, (), weights[complete], criterion, size)
    raw += slow_raw(codes[known], cards, child, (), weights[known], criterion, size)
    free = math.prod(cards[p] for p in parents) * (cards[child] - 1)
    return raw - {"bic": math.log(max(1.0, weights.sum())) / 2, "aic": 1.0}.get(criterion, 0.0) * free
