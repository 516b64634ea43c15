"""Cluster cuts: what all networks satisfy, and which of it a fractional choice of families violates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.structure._kernels import find_clusters
from tuplet.structure.local_scores import LocalScores
from tuplet.typing import UNKNOWN, Floats

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
