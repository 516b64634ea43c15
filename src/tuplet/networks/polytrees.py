"""Spanning trees, and directions for their edges from tests of independence."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from tuplet.structure import Edge
from tuplet.typing import Floats


def spanning_forest(weights: Floats) -> list[Edge]:
    """Edges (i, j), i < j, of the forest with the largest sum of positive weights (m, m), symmetric.

    Of equal weights the pair that comes first is taken (Kruskal).

    Examples
    --------
    >>> spanning_forest(np.array([[0, 3, 2, 0], [3, 0, 2, 0], [2, 2, 0, 0], [0, 0, 0, 0]], dtype=float))
    [(0, 1), (0, 2)]
    """
    first, second = np.triu_indices(len(weights), 1)
    values = weights[first, second]
    part = np.arange(len(weights))
    chosen = []
    for k in np.argsort(-values, kind="stable"):
        a, b = int(first[k]), int(second[k])
        if values[k] <= 0:
            break
        if part[a] != part[b]:
            part[part == part[b]] = part[a]
            chosen.append((a, b))
    return sorted(chosen)


def orient(skeleton: list[Edge], independent: npt.NDArray[np.bool_], rooms: list[int]) -> list[list[int]]:
    """Direct the edges of a forest: two neighbours of a node that are independent point to it.

    1. Nodes in their order: two neighbours that are independent of each other become parents.
    2. A further neighbour of a node with parents becomes a parent too, if it is independent of one of
       them, and a child otherwise; as long as there are such.
    3. The lowest node with undirected edges gets them all as edges to children; then on with 2.

    Parameters
    ----------
    skeleton : list of (i, j)
        Edges of a forest.
    independent : array of bool, shape (m, m)
        Symmetric: which pairs are independent.
    rooms : list of int, length m
        Largest number of parents. An edge that finds room at neither end is left out.

    Returns
    -------
    list of lists of int
        Parents of each node.

    References
    ----------
    Rebane and Pearl (1987).

    Examples
    --------
    >>> independent = np.zeros((4, 4), dtype=bool)
    >>> independent[0, 1] = independent[1, 0] = True
    >>> orient([(0, 2), (1, 2), (2, 3)], independent, [2, 2, 2, 2])
    [[], [], [0, 1], [2]]
    """
    return _Orientation(skeleton, independent, rooms).run()


class _Orientation:
    """Parents so far, and the neighbours to which an edge has no direction yet."""

    def __init__(self, skeleton: list[Edge], independent: npt.NDArray[np.bool_], rooms: list[int]) -> None:
        self.independent, self.rooms = independent, rooms
        self.parents: list[list[int]] = [[] for _ in rooms]
        self.open: list[set[int]] = [set() for _ in rooms]
        for a, b in skeleton:
            self.open[a].add(b)
            self.open[b].add(a)

    def run(self) -> list[list[int]]:
        for z in range(len(self.rooms)):
            self._collide(z)
        self._spread()
        for a in range(len(self.rooms)):
            for b in sorted(self.open[a]):
                self._direct(a, b)
            self._spread()
        return [sorted(members) for members in self.parents]

    def _collide(self, z: int) -> None:
        """Make parents of z of neighbours that are independent of each other."""
        for x, y in combinations(sorted(self.open[z] | set(self.parents[z])), 2):
            new = [v for v in (x, y) if v in self.open[z]]
            if self.independent[x, y] and len(self.parents[z]) + len(new) <= self.rooms[z]:
                for v in new:
                    self._direct(v, z)

    def _spread(self) -> None:
        """Direct the edges of nodes that have parents, until nothing changes."""
        waiting = [z for z, members in enumerate(self.parents) if members and self.open[z]]
        while waiting:
            z = waiting.pop(0)
            for w in sorted(self.open[z]):
                above = any(self.independent[w, x] for x in self.parents[z])
                ends = (w, z) if above and len(self.parents[z]) < self.rooms[z] else (z, w)
                self._direct(*ends)
                if self.parents[w] and self.open[w]:
                    waiting.append(w)

    def _direct(self, a: int, b: int) -> None:
        """Make a the parent of b; or the other way round, or nothing, where there is no room."""
        self.open[a].discard(b)
        self.open[b].discard(a)
        if len(self.parents[b]) < self.rooms[b]:
            self.parents[b].append(a)
        elif len(self.parents[a]) < self.rooms[a]:
            self.parents[a].append(b)
