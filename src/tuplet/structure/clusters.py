"""Cluster cuts: what all networks satisfy, and which of it a fractional choice of families violates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.structure._kernels import Ints, compiled
from tuplet.structure.local_scores import LocalScores
from tuplet.typing import UNKNOWN, Floats

__all__ = ["LEAST_EXCESS", "cluster_cut", "violated_clusters"]

Bools = npt.NDArray[np.bool_]

LEAST_EXCESS = 1e-4
"""Violation that is worth a cut."""

_MAX_CUTS = 40
"""Cuts per round."""


def cluster_cut(scores: LocalScores, cluster: Bools) -> tuple[npt.NDArray[np.intp], Floats, float]:
    """Return the cut of a set of variables: families, their coefficients, and the least value of the sum.

    In a network some child of the cluster has no parent in it: the families of its children without a parent
    in it sum up to at least one (equation 20 of the paper, with >= for >). As the families of a child sum up
    to one, those *with* a parent inside can be counted instead, negatively; each child does what is shorter.
    """
    within = (cluster[scores.parents] & (scores.parents != UNKNOWN)).any(axis=1)
    families, coefficients, least = [], [], 1.0
    for child in np.flatnonzero(cluster):
        begin, end = scores.starts[child : child + 2]
        inside = begin + np.flatnonzero(within[begin:end])
        if 2 * len(inside) < end - begin:
            families.append(inside)
            coefficients.append(np.full(len(inside), -1.0))
            least -= 1.0
        else:
            families.append(begin + np.flatnonzero(~within[begin:end]))
            coefficients.append(np.ones(len(families[-1])))
    return np.concatenate(families), np.concatenate(coefficients), least


def violated_clusters(scores: LocalScores, weights: Floats) -> list[Bools]:
    """Find sets of variables whose cut is violated by weights (f,) of the families, the most violated first.

    A search by growing sets, without guarantee; a cycle in a choice that is not fractional is always found
    by looking for it (`find_cycle`).
    """
    used = np.flatnonzero(weights > 1e-6)
    clusters, excess = find_clusters(
        scores.n_variables, scores.children[used], scores.parents[used], weights[used], LEAST_EXCESS
    )
    order = np.argsort(-excess, kind="stable")
    found = {clusters[k].tobytes(): clusters[k] for k in order[excess[order] > LEAST_EXCESS]}
    return list(found.values())[:_MAX_CUTS]


@compiled
def find_clusters(
    m: int, children: Ints, parents: Ints, weights: Floats, least: float
) -> tuple[Bools, Floats]:
    """Look for sets of variables in which a fractional choice of families has a cycle.

    A network has in every set C a child with no parent in C. So the weight of the families with a parent in
    C, over the children in C, is at most |C| - 1. From every variable a set grows by the variable that adds
    most of that weight, up to the whole, and the most violated set on the way is kept.

    Returns
    -------
    clusters : array of bool, shape (m, m)
        One set per start, empty where nothing is violated by more than `least`.
    excess : array, shape (m,)
        How much each is violated; `least` for the empty ones.
    """
    clusters = np.zeros((m, m), np.bool_)
    excess = np.full(m, least)
    entered = np.empty(m, np.int64)  # the size with which a variable came in; m + 1 for those outside
    gains = np.empty(m)
    for seed in range(m):
        for u in range(m):
            entered[u] = m + 1
        v, total, best_size = seed, 0.0, 0
        for size in range(1, m + 1):
            entered[v] = size
            cluster_gains(entered, children, parents, weights, gains)
            if total - (size - 1) > excess[seed]:
                excess[seed], best_size = total - (size - 1), size
            v = 0
            for u in range(1, m):
                if gains[u] > gains[v]:
                    v = u
            total += gains[v]
        for u in range(m):
            clusters[seed, u] = entered[u] <= best_size
    return clusters, excess


@compiled
def cluster_gains(entered: Ints, children: Ints, parents: Ints, weights: Floats, gains: Floats) -> None:
    """Fill what each variable would add to the weight inside; -1 for those that are in already."""
    m = len(entered)
    for u in range(m):
        gains[u] = 0.0 if entered[u] > m else -1.0
    for f in range(len(children)):
        hit = False
        for k in range(parents.shape[1]):
            hit |= parents[f, k] >= 0 and entered[parents[f, k]] <= m
        if hit and entered[children[f]] > m:
            gains[children[f]] += weights[f]
        elif not hit and entered[children[f]] <= m:
            for k in range(parents.shape[1]):
                if parents[f, k] >= 0:
                    gains[parents[f, k]] += weights[f]
