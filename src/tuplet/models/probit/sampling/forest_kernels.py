"""Sums of trees at many rows; compiled.

Trees come in preorder, one behind the other: a node is a feature, or -1 for a leaf; splits have a cut,
leaves a value, each in an array of its own. Where a subtree ends follows from that; nothing else is stored.
Features of the rows are ranks among the cuts of their column: x <= cut number c exactly if the rank of x is
at most c.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tuplet.core.compiled import entry, inner
from tuplet.core.typing import Codes, Floats

Ints = npt.NDArray[Any]


@inner()
def _right_children(features: Ints, start: int, right: Codes, stack: Codes) -> int:
    """Fill `right` for the tree whose nodes begin at `start`, counted from there; return its size."""
    at, depth = 0, 0
    while True:
        if features[start + at] >= 0:
            stack[depth] = at
            depth += 1
        else:
            if depth == 0:
                return at + 1
            right[stack[depth - 1]] = at + 1
            depth -= 1
        at += 1


@inner()
def _add_tree(
    ranks: Ints, features: Ints, cut_of: Ints, value_of: Floats, right: Codes, start: int, out: Floats
) -> None:
    """Add the values of one tree at all rows; cuts and values are indexed by node within the tree."""
    for i in range(len(out)):
        v = 0
        feature = features[start]
        while feature >= 0:
            v = v + 1 if ranks[feature, i] <= cut_of[v] else right[v]
            feature = features[start + v]
        out[i] += value_of[v]


@inner()
def _add_stump(ranks: Ints, cut: int, low: float, high: float, out: Floats) -> None:
    for i in range(len(out)):
        out[i] += low if ranks[i] <= cut else high


@entry("s2 h1 s1 f1 i1 i1 i f3", "s2 s1 s1 f1 i1 i1 i f3")
def predict_forests(
    ranks: Ints,
    features: Ints,
    cuts: Ints,
    leaves: Floats,
    node_starts: Codes,
    leaf_starts: Codes,
    largest: int,
    means: Floats,
) -> None:
    """Fill `means` (draws, n, q) with the sums of trees.

    Parameters
    ----------
    ranks : int32 array (d, n)
        Ranks of the rows' features among the cuts.
    features : int16 or int32 array (nodes,)
    cuts : int32 array (splits,)
    leaves : float array (leaves,)
    node_starts, leaf_starts : int array (draws q + 1,)
        Where the forests of each draw, and in it of each label, start.
    largest : int
        Number of nodes of the largest tree.
    means : float array (draws, n, q)
    """
    n_draws, n, q = means.shape
    out = np.empty(n)
    right, stack = np.zeros(largest, np.intp), np.zeros(largest, np.intp)
    cut_of, value_of = np.zeros(largest, np.int32), np.zeros(largest)
    for forest in range(n_draws * q):
        out[:] = 0.0
        node, leaf = node_starts[forest], leaf_starts[forest]
        split = node - leaf
        while node < node_starts[forest + 1]:
            size = _right_children(features, node, right, stack)
            for v in range(size):
                if features[node + v] >= 0:
                    cut_of[v] = cuts[split]
                    split += 1
                else:
                    value_of[v] = leaves[leaf]
                    leaf += 1
            if size == 1:
                out += value_of[0]
            elif size == 3:
                _add_stump(ranks[features[node]], cut_of[0], value_of[1], value_of[2], out)
            else:
                _add_tree(ranks, features, cut_of, value_of, right, node, out)
            node += size
        means[forest // q, :, forest % q] = out


@entry("h1 i1 i", "s1 i1 i")
def count_splits(features: Ints, node_starts: Codes, n_features: int) -> Ints:
    """Count the splits of each forest on each feature, (forests, n_features)."""
    counts = np.zeros((len(node_starts) - 1, n_features), np.int32)
    for forest in range(len(counts)):
        for v in range(node_starts[forest], node_starts[forest + 1]):
            if features[v] >= 0:
                counts[forest, features[v]] += 1
    return counts


@entry("s1 f1")
def log_dirichlet_counts(counts: Ints, concentrations: Floats) -> Floats:
    """Log-probabilities of counts (d,), but for a constant, whose probabilities are Dirichlet(c / d)."""
    answer = np.empty(len(concentrations))
    total = counts.sum()
    for g in range(len(answer)):
        each = concentrations[g] / len(counts)
        value = math.lgamma(concentrations[g]) - math.lgamma(concentrations[g] + total)
        for count in counts:
            if count > 0:
                value += math.lgamma(each + count) - math.lgamma(each)
        answer[g] = value
    return answer
