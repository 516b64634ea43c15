"""What the user knows about the graph: edges that must be there and edges that must not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, final

from tuplet.exceptions import InputError
from tuplet.structure.parents import Edge, cycle_text, find_cycle


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
                f"Edges: the required edges form a cycle, {cycle_text(cycle)}; drop one of them."
            )
        return rules

    def free(self, child: int) -> tuple[int, ...]:
        """Variables that may be parents of a child but need not."""
        taken = {child, *self.required[child], *self.forbidden[child]}
        return tuple(v for v in range(len(self.required)) if v not in taken)


def _by_child(m: int, edges: Iterable[Edge], kind: str) -> tuple[tuple[int, ...], ...]:
    members: list[set[int]] = [set() for _ in range(m)]
    for parent, child in edges:
        if not (0 <= parent < m and 0 <= child < m) or parent == child:
            raise InputError(
                f"Edges: a {kind} edge joins two variables among the {m}, found {parent} -> {child}."
            )
        members[child].add(int(parent))
    return tuple(tuple(sorted(inside)) for inside in members)
