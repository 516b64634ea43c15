"""Smaller problems: families that no best network has, and groups of variables that are solved apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tuplet.core.typing import UNKNOWN
from tuplet.structure.exact import best_network
from tuplet.structure.kernels import best_within, flip
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.parents import ParentSets, score_of

_GROUP = 14
"""Variables of a group whose best network is part of a bound: some milliseconds each."""


def drop_hopeless(scores: LocalScores, reached: float) -> LocalScores:
    """Drop families that no network better than one of score `reached` can have.

    Every child loses at least nothing against its best family, so a family that alone loses more than the
    network that is known loses in total is in no better network. The known network itself keeps its families.
    """
    best = scores.values[scores.starts[:-1]]
    loss = best[scores.children] - scores.values
    rounding = 1e-9 * (1.0 + np.abs(best).sum())
    return scores.take(loss <= scores.bound - reached + rounding)


def strong_components(scores: LocalScores) -> list[npt.NDArray[np.intp]]:
    """Group the variables so that every cycle of possible edges lies within a group.

    Then each group can be solved apart: parents from other groups never make a cycle.
    """
    families, columns = np.nonzero(scores.parents != UNKNOWN)
    parents = scores.parents[families, columns]
    m = scores.n_variables
    possible = csr_array((np.ones(len(parents)), (parents, scores.children[families])), shape=(m, m))
    n_groups, group = connected_components(possible, directed=True, connection="strong")
    return [np.flatnonzero(group == g) for g in range(n_groups)]


def project(scores: LocalScores, group: npt.NDArray[np.intp]) -> LocalScores:
    """Return the problem of some variables when all others are parents free of charge.

    Variables are numbered as in `group`. Of the families with equal parents inside, the best stands for
    all. The best network of the projection has at least the score that these children have in any network.
    """
    m = scores.n_variables
    place = np.full(m + 1, len(group))  # outside, and the padding at -1, go to the end
    place[group] = np.arange(len(group))
    rows = np.flatnonzero(place[scores.children] < len(group))
    inside = np.sort(place[scores.parents[rows]], axis=1)
    keys = np.column_stack([place[scores.children[rows]], inside])
    _, first = np.unique(keys, axis=0, return_index=True)  # the first is the best, since families are sorted
    parents = np.where(inside == len(group), UNKNOWN, inside)[first]
    return LocalScores._sorted(len(group), keys[first, 0], parents, scores.values[rows[first]])


def lift_parents(
    scores: LocalScores, group: npt.NDArray[np.intp], parents: ParentSets
) -> dict[int, tuple[int, ...]]:
    """Turn a network of a projection into sets of parents of the whole problem, with the same scores."""
    outside = np.zeros((1, scores.masks.shape[1]), dtype=np.uint64)
    for v in np.setdiff1d(np.arange(scores.n_variables), group):
        flip(outside, 0, v)
    lifted = {}
    for child, members in zip(group.tolist(), parents, strict=True):
        allowed = outside.copy()
        for v in members:
            flip(allowed, 0, group[v])
        lifted[child] = scores.members(best_within(child, allowed, scores.starts, scores.masks))
    return lifted


def group_bound(scores: LocalScores, parents: ParentSets) -> float:
    """Bound the score of any network from above: cycles are forbidden inside groups of variables only.

    Parameters
    ----------
    scores : LocalScores
    parents : ParentSets
        A good network; variables that it joins are put into the same group, where their conflicts count.
    """
    total = 0.0
    for group in _groups(parents, _GROUP):
        part = project(scores, np.array(group))
        best = best_network(part)
        total += part.bound if best is None else score_of(best, part)
    return min(total, scores.bound)


def _groups(parents: ParentSets, size: int) -> list[list[int]]:
    """Cut the variables into groups, each grown by the variable with most neighbours in it."""
    near: list[set[int]] = [set(members) for members in parents]
    for child, members in enumerate(parents):
        for v in members:
            near[v].add(child)
    rest, groups = set(range(len(parents))), []
    while rest:
        group: list[int] = []
        while rest and len(group) < size:
            v = max(sorted(rest), key=lambda u: len(near[u].intersection(group)))
            group.append(v)
            rest.remove(v)
        groups.append(group)
    return groups
