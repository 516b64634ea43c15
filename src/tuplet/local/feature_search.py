"""Which discrete features to add to the parents of a class variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np


class Wanted(NamedTuple):
    """A family to be scored; only a score above `floor` matters."""

    child: int
    parents: tuple[int, ...]
    floor: float = -np.inf


Score: TypeAlias = Callable[[Sequence[Wanted]], Iterable[float]]
Bound: TypeAlias = Callable[[int, tuple[int, ...]], float]
_Set: TypeAlias = tuple[int, ...]


def n_subsets(n_features: int, largest: int) -> int:
    """Return the number of subsets of features with `largest` members at most."""
    return sum(comb(n_features, size) for size in range(largest + 1))


def all_subsets(
    family: Wanted, features: Sequence[int], largest: int, score: Score, bound: Bound
) -> tuple[float, _Set]:
    """Return the score of a family with the best of all subsets of features as further parents, and these.

    Minus infinity if it is not above the family's floor.

    Parameters
    ----------
    family : Wanted
        A child with class parents.
    features : sequence of int
        Numbers of the features, all behind those of the class variables.
    largest : int
        Number of features that may be added.
    score, bound : callable
        See `FamilyScorer`.

    Notes
    -----
    A subset whose bound is no better than the best found so far is skipped with all its supersets. Proof: the
    bound holds for them too, and only the best of all is asked for.
    """
    child, parents, best = family
    chosen: _Set = ()
    found = -np.inf
    alive: set[_Set] = {()}
    for size in range(largest + 1):
        level = [
            subset
            for subset in combinations(features, size)
            if all(part in alive for part in combinations(subset, size - 1))
            and bound(child, (*parents, *subset)) > best
        ] if size else [()]  # fmt: skip
        alive = set(level)
        values = score([Wanted(child, (*parents, *subset), best) for subset in level])
        for subset, value in zip(level, values, strict=True):
            if value > best:
                best, found, chosen = value, value, subset
    return found, chosen


def one_at_a_time(
    family: Wanted, features: Sequence[int], largest: int, score: Score, start: _Set = ()
) -> tuple[float, _Set]:
    """Return the score of a family with features that were added and dropped one at a time, and these.

    Minus infinity if it is not above the family's floor: if that is so with the features to start with, no
    others are tried.

    Parameters
    ----------
    start : tuple of int
        Features to begin with.
    """
    child, parents, floor = family
    (best,) = score([Wanted(child, (*parents, *start), floor)])
    if not best > floor:
        return -np.inf, start
    chosen, seen = start, {start}
    while level := [subset for subset in _neighbours(chosen, features, largest) if subset not in seen]:
        seen.update(level)
        values = score([Wanted(child, (*parents, *subset), best) for subset in level])
        value, subset = max(zip(values, level, strict=True))
        if not value > best:
            break
        best, chosen = value, subset
    return best, chosen


def _neighbours(chosen: _Set, features: Sequence[int], largest: int) -> list[_Set]:
    """Subsets with one feature more or less."""
    more = [tuple(sorted((*chosen, f))) for f in features if f not in chosen and len(chosen) < largest]
    return more + [tuple(g for g in chosen if g != f) for f in chosen]
