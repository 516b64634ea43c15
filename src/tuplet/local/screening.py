"""Screening of sets of parents by an estimate of their gain, before slow scores are computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import final

import numpy as np

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.families import FamilyScorer
from tuplet.local.mixed_families import MixedFamilyScorer
from tuplet.local.split import configurations
from tuplet.structure.candidates import Family

_PROMISING = 8
"""Class variables that sets are made of: those with the largest estimated gains by themselves."""

_ROUNDS = 10
"""Rounds of scaling, after which the estimate is close enough."""

_PSEUDO = 1.0
"""Rows, spread as the model without parents has it, that each configuration is given beforehand."""


@final
@dataclass
class Shortlist:
    """Scores of a few families of each child: those with the largest estimated gains, and all their subsets.

    A set is in the list only if its estimated gain is above that of each of its subsets.

    The estimate is the gain in log-likelihood from scaling the held-out probabilities of the model without
    parents by a factor for each category and configuration, less the penalty of the BIC. It needs no further
    fits. Information that x has already is no gain; information that parents have only in interaction with x
    is missed.

    Parameters
    ----------
    scorer : FamilyScorer or MixedFamilyScorer
    codes : int array, shape (n, m)
        Codes of the class variables.
    cards : sequence of int
    size : int
        Number of sets in the list of each child.
    max_parents : int
    weight : array, shape (n,), or None
    required, forbidden : iterable of (parent, child)
    """

    scorer: FamilyScorer | MixedFamilyScorer
    codes: Codes
    cards: Sequence[int]
    size: int
    max_parents: int
    weight: Floats | None = None
    required: Iterable[tuple[int, int]] = ()
    forbidden: Iterable[tuple[int, int]] = ()
    _lists: dict[int, list[frozenset[int]]] = field(default_factory=dict)

    def score(self, families: Sequence[Family]) -> Iterator[float]:
        """See `FamilyScorer.score`."""
        return self.scorer.score(families)

    def bound(self, child: int, parents: tuple[int, ...]) -> float:
        """Bound of the scorer; minus infinity where neither a set nor a superset of it is in the list."""
        own = np.inf if self.scorer.bound is None else self.scorer.bound(child, parents)
        given = frozenset(parents) - self._required(child)
        if not given:
            return own
        if child not in self._lists:
            self._lists[child] = self._list(child)
        return own if any(given <= listed for listed in self._lists[child]) else -np.inf

    def _required(self, child: int) -> frozenset[int]:
        return frozenset(parent for parent, other in self.required if other == child)

    def _list(self, child: int) -> list[frozenset[int]]:
        """Return the sets of free parents with the largest estimated gains."""
        table, required = self.scorer.without_parents(child), self._required(child)
        banned = {parent for parent, other in self.forbidden if other == child} | required | {child}
        room = self.max_parents - len(required)

        def gain_of(some: tuple[int, ...]) -> float:
            parents = sorted((*some, *required))
            cards = [self.cards[p] for p in parents]
            blocks = configurations(self.codes[:, parents], cards)
            gain, n = tilted_gain(table, self.codes[:, child], blocks, self.weight)
            return gain - 0.5 * math.log(max(n, 1.0)) * (math.prod(cards) - 1) * (self.cards[child] - 1)

        single = {(v,): gain_of((v,)) for v in range(self.codes.shape[1]) if v not in banned}
        best = sorted(v for (v,) in sorted(single, key=lambda some: -single[some])[:_PROMISING])
        sizes = range(2, min(room, len(best)) + 1)
        more = chain.from_iterable(combinations(best, size) for size in sizes)
        values = single | {some: gain_of(some) for some in more} if room else {}
        return _maximal(values, gain_of(()))[: self.size]


def tilted_gain(table: Floats, y: Codes, blocks: Codes, weight: Floats | None = None) -> tuple[float, float]:
    """Return the gain in log-likelihood from a factor for each category in each block, and the rows' weight.

    Parameters
    ----------
    table : array, shape (n, k)
        Probabilities of the categories.
    y : int array, shape (n,)
    blocks : int array, shape (n,)
        Rows in which this or y is `UNKNOWN` gain nothing.
    weight : array, shape (n,), optional

    Notes
    -----
    The factors are multiplied by seen over expected counts, round by round, which never lowers the likelihood
    (iterative scaling).

    Examples
    --------
    >>> y = np.array([0, 0, 1, 1] * 10)
    >>> gain, n = tilted_gain(np.full((40, 2), 0.5), y, y)
    >>> bool(0.99 * 40 * np.log(2) < gain < 40 * np.log(2)), n
    (True, 40.0)
    >>> tilted_gain(np.full((40, 2), 0.5), y, np.arange(40) % 2)[0]
    0.0
    """
    weights = np.ones(len(y)) if weight is None else weight
    n = float(weights[y != UNKNOWN].sum())
    used = (y != UNKNOWN) & (blocks != UNKNOWN)
    table, y, weights = table[used], y[used], weights[used]
    present, block = np.unique(blocks[used], return_inverse=True)
    q, k = len(present), table.shape[1]
    seen = np.bincount(block * k + y, weights, minlength=q * k).reshape(q, k)
    prior = _sums(table * weights[:, None], block, q)
    prior *= _PSEUDO / np.maximum(prior.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    factors, tilted = np.ones((q, k)), table
    for _ in range(_ROUNDS):
        factors *= (seen + prior) / (_sums(tilted * weights[:, None], block, q) + prior)
        tilted = table * factors[block]
        tilted /= tilted.sum(axis=1, keepdims=True)
    at = np.arange(len(y)), y
    return float(weights @ np.log(tilted[at] / table[at])), n


def _maximal(values: dict[tuple[int, ...], float], nothing: float) -> list[frozenset[int]]:
    """Sets of higher value than all their subsets, the highest first; at least one, if there is any."""
    order = [frozenset(some) for some in sorted(values, key=lambda some: -values[some])]
    value = {frozenset(some): gain for some, gain in values.items()} | {frozenset(): nothing}
    better = [
        some
        for some in order
        if all(value[some] > value.get(frozenset(part), -np.inf)
               for size in range(len(some)) for part in combinations(some, size))
    ]  # fmt: skip
    return better or order[:1]


def _sums(values: Floats, block: Codes, q: int) -> Floats:
    """Sums (q, k) of the rows of values (n, k) over blocks (n,)."""
    return np.column_stack([np.bincount(block, column, minlength=q) for column in values.T])
