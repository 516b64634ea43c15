"""A graph in layers: edges lead from each layer to the next, with few crossings.

The method of Sugiyama, Tagawa and Toda (1981): layers by longest paths, a bend wherever an edge passes a
layer, and an order of each layer by the barycentres of its neighbours, improved by swaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.structure.parents import Edge, ParentSets, edges, topological_order

_SWEEPS = 24
_PATIENCE = 6
"""Sweeps over all layers, and how many of them may bring nothing."""

Layers = list[list[int]]


class Layered(NamedTuple):
    """A graph of n nodes in layers; points from n on are bends of edges that pass a layer."""

    layers: Layers  # points of each layer, in their order
    chains: dict[Edge, list[int]]  # parent, bends, child of each edge
    n_points: int

    @property
    def links(self) -> npt.NDArray[np.intp]:
        """Pairs of neighbours (links, 2), the upper first."""
        pairs = [pair for chain in self.chains.values() for pair in pairwise(chain)]
        return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def components(parents: ParentSets) -> list[list[int]]:
    """Return the sets of nodes that edges connect in any direction, each sorted, the largest first.

    Examples
    --------
    >>> components(((), (3,), (), ()))
    [[1, 3], [0], [2]]
    """
    member = list(range(len(parents)))
    for parent, child in edges(parents):
        old, new = member[child], member[parent]
        member = [new if each == old else each for each in member]
    groups = [[v for v, each in enumerate(member) if each == name] for name in dict.fromkeys(member)]
    return sorted(groups, key=len, reverse=True)


def layered(parents: ParentSets) -> Layered:
    """Put a graph into layers, ordered so that few edges cross.

    Examples
    --------
    >>> layered(((), (0,), (0, 1)))
    Layered(layers=[[0], [1, 3], [2]], chains={(0, 1): [0, 1], (0, 2): [0, 3, 2], (1, 2): [1, 2]}, n_points=4)
    """
    depth = _depths(parents)
    layers: Layers = [[] for _ in range(max(depth, default=-1) + 1)]
    for v in topological_order(parents):
        layers[depth[v]].append(v)
    chains, n_points = {}, len(parents)
    for parent, child in edges(parents):
        bends = list(range(n_points, n_points + depth[child] - depth[parent] - 1))
        n_points += len(bends)
        for layer, bend in enumerate(bends, start=depth[parent] + 1):
            layers[layer].append(bend)
        chains[parent, child] = [parent, *bends, child]
    graph = Layered(layers, chains, n_points)
    return graph._replace(layers=_ordered(graph))


def _depths(parents: ParentSets) -> list[int]:
    """Return the layer of each node: below all of its parents, and not far from its children."""
    order = topological_order(parents)
    depth = [0] * len(parents)
    for v in order:
        depth[v] = max((depth[parent] + 1 for parent in parents[v]), default=0)
    children: list[list[int]] = [[] for _ in parents]
    for parent, child in edges(parents):
        children[parent].append(child)
    for v in reversed(order):
        # A step down shortens the edges to the children and makes those from the parents longer.
        if len(children[v]) > len(parents[v]):
            depth[v] = min(depth[child] for child in children[v]) - 1
    return depth


# -- the order within layers -------------------------------------------------------------------------------


def _ordered(graph: Layered) -> Layers:
    """Sweep down and up again; keep the order with the fewest crossings."""
    above, below = _neighbours(graph)
    layers = _first_order(graph, below)
    best, fewest, idle = layers, count_crossings(layers, below), 0
    for sweep in range(_SWEEPS):
        if fewest == 0 or idle == _PATIENCE:
            break
        down = sweep % 2 == 0
        # Ties turn round in every other pair of sweeps: what is equal from above may not be from below.
        layers = _sweep(layers, above if down else below, down, turn=sweep % 4 > 1)
        layers = _swapped(layers, above, below)
        crossings = count_crossings(layers, below)
        idle = 0 if crossings < fewest else idle + 1
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _neighbours(graph: Layered) -> tuple[list[list[int]], list[list[int]]]:
    """Return the neighbours of each point in the layer above and in the one below."""
    above: list[list[int]] = [[] for _ in range(graph.n_points)]
    below: list[list[int]] = [[] for _ in range(graph.n_points)]
    for upper, lower in graph.links.tolist():
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _first_order(graph: Layered, below: list[list[int]]) -> Layers:
    """Order every layer as a depth-first walk meets its points, so that trees have no crossings."""
    met: dict[int, int] = {}
    stack = [v for layer in reversed(graph.layers) for v in reversed(layer)]
    while stack:
        v = stack.pop()
        if v not in met:
            met[v] = len(met)
            stack.extend(reversed(below[v]))
    return [sorted(layer, key=lambda v: met[v]) for layer in graph.layers]


def _sweep(layers: Layers, neighbours: list[list[int]], down: bool, turn: bool) -> Layers:
    """Order each layer by the mean positions of its points' neighbours in the layer before."""
    answer = [layer[::-1] if turn else list(layer) for layer in layers]
    walk = answer if down else answer[::-1]
    for before, layer in pairwise(walk):
        place = {v: i for i, v in enumerate(before)}
        own = {v: i * len(before) / len(layer) for i, v in enumerate(layer)}
        middle = {
            v: sum(place[u] for u in neighbours[v]) / len(neighbours[v]) if neighbours[v] else own[v]
            for v in layer
        }
        layer.sort(key=lambda v, middle=middle: middle[v])  # type: ignore[misc]
    return answer


def _swapped(layers: Layers, above: list[list[int]], below: list[list[int]]) -> Layers:
    """Swap neighbours within their layers as long as crossings go away."""
    place = {v: i for layer in layers for i, v in enumerate(layer)}

    def crossings(left: int, right: int) -> int:
        return sum(
            place[a] > place[b]
            for neighbours in (above, below)
            for a in neighbours[left]
            for b in neighbours[right]
        )

    improved = True
    while improved:
        improved = False
        for layer in layers:
            for i in range(len(layer) - 1):
                left, right = layer[i], layer[i + 1]
                if crossings(left, right) > crossings(right, left):
                    layer[i], layer[i + 1] = right, left
                    place[left], place[right] = i + 1, i
                    improved = True
    return layers


def count_crossings(layers: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> int:
    """Count the pairs of links between neighbouring layers that cross.

    Examples
    --------
    >>> count_crossings([[0, 1], [2, 3]], [[3], [2], [], []])
    1
    """
    total = 0
    for upper, lower in pairwise(layers):
        place = {v: i for i, v in enumerate(lower)}
        ends = np.array([(i, place[w]) for i, v in enumerate(upper) for w in below[v]]).reshape(-1, 2)
        start, end = ends[:, 0], ends[:, 1]
        total += int(((start[:, None] < start) & (end[:, None] > end)).sum())
    return total
