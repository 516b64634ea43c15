"""The best tree or forest: every variable has at most one parent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Floats
from tuplet.structure.parents import Edge, EdgeRules, ParentSets

if TYPE_CHECKING:
    from tuplet.structure.local_scores import LocalScores

Ints = npt.NDArray[np.intp]


def best_forest(
    gains: npt.ArrayLike, *, required: Iterable[Edge] = (), forbidden: Iterable[Edge] = ()
) -> ParentSets:
    """Return the forest of directed trees with the largest sum of gains.

    Parameters
    ----------
    gains : array, shape (m, m)
        `gains[j, i]` is what child i gains from parent j over having no parent. The diagonal is not looked
        at, and minus infinity forbids an edge.
    required, forbidden : iterable of (parent, child)
        Edges that must or must not be there. Others are used only if their gain is positive.

    Returns
    -------
    ParentSets
        Tuples of at most one parent each.

    Notes
    -----
    A virtual root with edges of gain 0 to all variables turns the forest into one spanning arborescence,
    found by contracting cycles (Chu and Liu 1965, Edmonds 1967) in time proportional to m squared (Tarjan
    1977).

    Examples
    --------
    >>> gains = [[0.0, 2.0, -1.0], [3.0, 0.0, 0.5], [-1.0, -1.0, 0.0]]
    >>> best_forest(gains)
    ((1,), (), (1,))
    >>> best_forest(gains, required=[(0, 1)])
    ((), (0,), (1,))
    """
    table = np.array(gains, dtype=float)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise InputError(f"Forest: gains must be a square table, found shape {table.shape}.")
    np.fill_diagonal(table, 0.0)
    if np.isnan(table).any() or (table == np.inf).any():
        raise InputError("Forest: gains must be finite, or minus infinity for an edge that is not allowed.")
    rules = EdgeRules.of(len(table), required, forbidden)
    parents = _arborescence(_with_root(table, rules))
    return tuple(() if p == 0 else (int(p) - 1,) for p in parents[1:])


def listed_forest(scores: LocalScores) -> ParentSets | None:
    """Return the best forest of the listed candidates; None where a variable must have parents.

    Examples
    --------
    >>> from tuplet.structure.local_scores import LocalScores
    >>> listed_forest(LocalScores.of([{(): -3.0, (1,): -1.0}, {(): -2.0, (0,): -1.5}]))
    ((1,), ())
    """
    m, sizes = scores.n_variables, (scores.parents != UNKNOWN).sum(axis=1)
    alone, single = np.flatnonzero(sizes == 0), np.flatnonzero(sizes == 1)
    if len(alone) < m:
        return None
    gains, base = np.full((m, m), -np.inf), np.empty(m)
    base[scores.children[alone]] = scores.values[alone]
    children = scores.children[single]
    gains[scores.parents[single].max(axis=1, initial=0), children] = scores.values[single] - base[children]
    return best_forest(gains)


def _with_root(gains: Floats, rules: EdgeRules) -> Floats:
    """Put the root before all variables: shape (m + 1, m + 1), minus infinity where there is no edge.

    An edge that gains nothing is never better than the root's. Ties go to the root, which comes first.
    """
    weights = np.full((len(gains) + 1, len(gains) + 1), -np.inf)
    weights[0, 1:] = 0.0
    weights[1:, 1:] = np.where(gains > 0, gains, -np.inf)
    np.fill_diagonal(weights, -np.inf)
    for child, members in enumerate(rules.forbidden):
        weights[[v + 1 for v in members], child + 1] = -np.inf
    for child, members in enumerate(rules.required):
        if len(members) > 1:
            raise InputError(
                f"Forest: variable {child} has {len(members)} required parents; a tree has room for one.",
                variable=child,
            )
        for parent in members:
            weights[:, child + 1] = -np.inf
            weights[parent + 1, child + 1] = 0.0  # the only choice, whatever its gain
    return weights


class _Contraction:
    """A dense graph under contraction of cycles: 0 is the root, a cycle lives on in its first node.

    `weights[u, v]` is the best edge from node u to node v, relative to the edges inside v that it replaces,
    and `tails`, `heads` are the ends of that edge in the given graph.
    """

    def __init__(self, weights: Floats) -> None:
        n = len(weights)
        self.weights = weights.copy()
        self.tails = np.repeat(np.arange(n)[:, None], n, axis=1)
        self.heads = np.repeat(np.arange(n)[None], n, axis=0)
        self.tree = list(range(n))  # the part of the contraction tree that each node stands for
        self.above: list[int] = [-1] * n  # contraction tree: leaves are the given nodes
        self.parts: list[list[int]] = [[] for _ in range(n)]
        self.entry: list[Edge] = [(-1, -1)] * n  # the given edge that enters each part

    def enter(self, v: int) -> int:
        """Choose the best edge into node v; return the node that it comes from."""
        u = int(np.argmax(self.weights[:, v]))
        self.entry[self.tree[v]] = (int(self.tails[u, v]), int(self.heads[u, v]))
        return u

    def merge(self, cycle: list[int], sources: list[int]) -> None:
        """Contract a cycle of nodes, whose chosen edges come from `sources`, to its first one."""
        keep, rest = cycle[0], cycle[1:]
        into = self.weights[:, cycle] - self.weights[sources, cycle]
        self._replace(keep, cycle, into.argmax(axis=1), into.max(axis=1), column=True)
        out = self.weights[cycle]
        self._replace(keep, cycle, out.argmax(axis=0), out.max(axis=0), column=False)
        self.weights[rest], self.weights[:, rest] = -np.inf, -np.inf
        self.weights[cycle, keep] = self.weights[keep, cycle] = -np.inf
        self.parts.append([self.tree[v] for v in cycle])
        self.above.append(-1)
        self.entry.append((-1, -1))
        for part in self.parts[-1]:
            self.above[part] = len(self.parts) - 1
        self.tree[keep] = len(self.parts) - 1

    def _replace(self, keep: int, cycle: list[int], which: Ints, best: Floats, *, column: bool) -> None:
        """Make the best edges of a cycle's nodes the edges of the node that stays."""
        member = np.asarray(cycle)[which]
        every = np.arange(len(member))
        where = (every, member) if column else (member, every)
        target = (slice(None), keep) if column else (keep, slice(None))
        tails, heads = self.tails[where], self.heads[where]
        self.weights[target], self.tails[target], self.heads[target] = best, tails, heads

    def expand(self) -> Ints:
        """Return the parent of every given node: an edge into a cycle replaces the one that it meets."""
        parents = np.full(len(self.weights), -1)
        tops = [part for part, above in enumerate(self.above) if above < 0 and part != 0]
        while tops:
            top = tops.pop()
            tail, head = self.entry[top]
            parents[head] = tail
            part = head
            while part != top:  # all else on the way down from the top keeps its own edge
                tops += [other for other in self.parts[self.above[part]] if other != part]
                part = self.above[part]
        return parents


def _arborescence(weights: Floats) -> Ints:
    """Return the parent of every node in the heaviest arborescence from node 0; -1 for node 0.

    From every node the best entering edges are followed backwards until the walk meets the root, or nodes
    that are known to lead there; a node met twice closes a cycle, which is contracted on the spot.
    """
    graph = _Contraction(weights)
    settled = np.zeros(len(weights), dtype=bool)
    settled[0] = True
    for start in range(1, len(weights)):
        if settled[start]:
            continue
        path, sources = [start], [graph.enter(start)]
        while not settled[sources[-1]]:
            u = sources[-1]
            if u in path:
                at = path.index(u)
                settled[path[at + 1 :]] = True  # they go on as u, which is on the path itself
                graph.merge(path[at:], sources[at:])
                path, sources = path[:at], sources[:at]
            path.append(u)
            sources.append(graph.enter(u))
        settled[path] = True
    return graph.expand()
