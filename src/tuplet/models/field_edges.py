"""Which pairs of class variables of a random field interact."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csgraph

from tuplet.exceptions import InputError
from tuplet.models.pairwise_field import PairwiseField
from tuplet.space import ClassSpace
from tuplet.typing import Floats


def given_edges(edges: Any, space: ClassSpace) -> list[tuple[int, int]] | None:
    """Return the edges that a user gave, None if they are to be learned.

    Parameters
    ----------
    edges : "all", "tree", int, or sequence of pairs of names or positions
    space : ClassSpace
    """
    m = space.n_variables
    if isinstance(edges, str) and edges == "all":
        return list(combinations(range(m), 2))
    if isinstance(edges, str) and edges == "tree":
        return None
    if isinstance(edges, (int, np.integer)) and not isinstance(edges, bool) and edges >= 0:
        return None if edges < m * (m - 1) // 2 else list(combinations(range(m), 2))
    if isinstance(edges, str) or not isinstance(edges, (Sequence, np.ndarray)):
        raise InputError(
            "RandomFieldClassifier: edges must be 'all', 'tree', how many are wanted, or a list of pairs of"
            f" variables; found {edges!r}."
        )
    pairs = {tuple(sorted(_edge(pair, space))): None for pair in edges}
    return [(i, j) for i, j in pairs]


def _edge(pair: Any, space: ClassSpace) -> list[int]:
    places = [space.position(v) if isinstance(v, str) else v for v in pair]
    valid = all(isinstance(v, (int, np.integer)) and 0 <= v < space.n_variables for v in places)
    if not valid or len(set(places)) != 2:
        raise InputError(
            f"RandomFieldClassifier: an edge must be two different class variables, by name or position from"
            f" 0; found {pair!r}."
        )
    return [int(v) for v in places]


def edge_strengths(field: PairwiseField, residual: Floats, weights: Floats) -> Floats:
    """How much two variables have to say about each other beyond x, (m, m): mean squared correlation.

    Parameters
    ----------
    field : PairwiseField
        Gives the layout of the indicators.
    residual : array, shape (n, w)
        Indicators less their probabilities given x; 0 where a label is missing.
    weights : array, shape (n,)
    """
    covariance = (residual.T * weights) @ residual
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    squares = (covariance / scale / scale[:, None]) ** 2
    m = len(field.cards)
    member = np.equal.outer(np.arange(m), field.variable).astype(float)
    smaller = np.minimum.outer(field.widths, field.widths)
    strength = (member @ squares @ member.T) / np.maximum(smaller, 1)
    np.fill_diagonal(strength, 0.0)
    return strength


def strongest_edges(strength: Floats, edges: Any) -> list[tuple[int, int]]:
    """The tree of the largest sum of strengths (m, m), or so many of the strongest edges."""
    if isinstance(edges, str):
        tree = csgraph.minimum_spanning_tree(-strength).tocoo()
        return sorted((int(min(i, j)), int(max(i, j))) for i, j in zip(tree.row, tree.col, strict=True))
    first, second = np.triu_indices(len(strength), 1)
    best = np.argsort(-strength[first, second], kind="stable")[:edges]
    return sorted((int(first[e]), int(second[e])) for e in best)
