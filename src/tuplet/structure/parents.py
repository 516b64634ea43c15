"""A directed acyclic graph as a value: for every variable, the sorted tuple of its parents.

`EdgeRules` holds the edges that a graph must or must not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import TYPE_CHECKING, Self, TypeAlias, final

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tuplet.core.exceptions import InputError
from tuplet.structure.kernels import width_of

if TYPE_CHECKING:
    from tuplet.structure.local_scores import LocalScores

ParentSets: TypeAlias = tuple[tuple[int, ...], ...]
"""Entry i is the sorted tuple of the parents of variable i. A value: never changed, compared with `==`."""

Edge: TypeAlias = tuple[int, int]
"""(parent, child)."""


def edges(parents: ParentSets) -> tuple[Edge, ...]:
    """List the edges as (parent, child), child by child.

    Examples
    --------
    >>> edges(((), (0,), (0, 1)))
    ((0, 1), (0, 2), (1, 2))
    """
    return tuple((parent, child) for child, members in enumerate(parents) for parent in members)


def topological_order(parents: ParentSets) -> tuple[int, ...]:
    """Order the variables so that parents come first; among those that may be next, the lowest first.

    Raises
    ------
    InputError
        If the graph has a cycle.

    Examples
    --------
    >>> topological_order(((2,), (0,), ()))
    (2, 0, 1)
    """
    if cycle := find_cycle(parents):
        raise InputError(f"The graph has a cycle: {_cycle_text(cycle)}.")
    sorter = TopologicalSorter(dict(enumerate(parents)))
    sorter.prepare()
    order, ready = [], list(sorter.get_ready())
    while ready:
        order.append(min(ready))
        ready.remove(order[-1])
        sorter.done(order[-1])
        ready += sorter.get_ready()
    return tuple(order)


def is_acyclic(parents: ParentSets) -> bool:
    """Return whether the graph has no directed cycle.

    Examples
    --------
    >>> is_acyclic(((), (0,))), is_acyclic(((1,), (0,)))
    (True, False)
    """
    return not find_cycle(parents)


def find_cycle(parents: Sequence[Iterable[int]]) -> tuple[int, ...]:
    """Return the variables of one directed cycle, each a parent of the next; empty if there is none.

    Examples
    --------
    >>> find_cycle([(1,), (2,), (0,)])
    (0, 2, 1)
    """
    try:
        TopologicalSorter(dict(enumerate(parents))).prepare()
    except CycleError as error:
        cycle = error.args[1][1:]  # it begins and ends with the same variable
        first = cycle.index(min(cycle))
        return (*cycle[first:], *cycle[:first])
    return ()


def connected_parts(n: int, edges: Iterable[Edge]) -> list[list[int]]:
    """Return the parts of n nodes that edges connect in any direction, each sorted, the lowest nodes first.

    Examples
    --------
    >>> connected_parts(4, [(3, 1)])
    [[0], [1, 3], [2]]
    """
    ends = np.array(list(edges), dtype=np.intp).reshape(-1, 2).T
    links = coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(n, n))
    n_parts, part = connected_components(links, directed=False)
    return [np.flatnonzero(part == p).tolist() for p in range(n_parts)]


def moral_width(parents: ParentSets, limit: int | None = None) -> int:
    """Induced width of the moral graph along a min-fill order, which determines the cost of exact inference.

    An upper bound on the treewidth. The largest table of an elimination has one variable more than this. With
    a limit, the answer is some number above it as soon as the width is known to be above it.

    Examples
    --------
    >>> moral_width(((), (0,), (1,))), moral_width(((), (), (0, 1)))
    (1, 2)
    """
    m = len(parents)
    graph = np.zeros((m, m), dtype=bool)
    for child, members in enumerate(parents):
        for a, b in combinations((*members, child), 2):
            graph[a, b] = graph[b, a] = True
    return int(width_of(graph, m if limit is None else limit))


def score_of(parents: ParentSets, scores: LocalScores) -> float:
    """Sum of the local scores of a graph; minus infinity where it uses a set that is not listed."""
    return sum(scores.value(child, members) for child, members in enumerate(parents))


@final
@dataclass(frozen=True)
class EdgeRules:
    """Required and forbidden parents of every variable, checked against each other.

    Examples
    --------
    >>> rules = EdgeRules.of(3, required=[(0, 1)], forbidden=[(2, 1), (1, 0)])
    >>> rules.required, rules.free(1)
    (((), (0,), ()), ())
    """

    required: tuple[tuple[int, ...], ...]
    forbidden: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, m: int, required: Iterable[Edge] = (), forbidden: Iterable[Edge] = ()) -> Self:
        """Make rules for m variables from edges (parent, child)."""
        rules = cls(_by_child(m, required, "required"), _by_child(m, forbidden, "forbidden"))
        for child in range(m):
            for parent in set(rules.required[child]) & set(rules.forbidden[child]):
                raise InputError(
                    f"Edges: variable {parent} -> variable {child} is both required and forbidden.",
                    variable=child,
                )
        if cycle := find_cycle(rules.required):
            raise InputError(
                f"Edges: the required edges form a cycle, {_cycle_text(cycle)}; drop one of them."
            )
        return rules

    def free(self, child: int) -> tuple[int, ...]:
        """Variables that may be parents of a child but need not."""
        taken = {child, *self.required[child], *self.forbidden[child]}
        return tuple(v for v in range(len(self.required)) if v not in taken)


def _cycle_text(cycle: Sequence[int]) -> str:
    """Write a cycle for a message."""
    return " -> ".join(f"variable {v}" for v in (*cycle, *cycle[:1]))


def _by_child(m: int, edges: Iterable[Edge], kind: str) -> tuple[tuple[int, ...], ...]:
    members: list[set[int]] = [set() for _ in range(m)]
    for parent, child in edges:
        if not (0 <= parent < m and 0 <= child < m) or parent == child:
            raise InputError(
                f"Edges: a {kind} edge joins two variables among the {m}, found {parent} -> {child}."
            )
        members[child].add(int(parent))
    return tuple(tuple(sorted(inside)) for inside in members)
