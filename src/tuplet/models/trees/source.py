"""The trees of a mixture: the best forest that it does not have yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, final

from tuplet.models.trees.anything import Trees
from tuplet.structure import Edge, ParentSets, best_forest, edges
from tuplet.typing import Floats

MAX_TRIES = 1000
"""Sets of edges to do without that are tried for a forest that is new."""


@final
@dataclass(frozen=True)
class TreeSource:
    """The best forests; see `Source`. A structure is a `ParentSets`."""

    trees: Trees
    required: Sequence[Edge] = ()
    forbidden: Sequence[Edge] = ()

    def propose(self, weight: Floats, seen: Sequence[ParentSets]) -> ParentSets | None:
        """See `Source.propose`."""
        return new_forest(self.trees.edges(weight).gains, seen, self.required, self.forbidden)

    def fit(self, structure: ParentSets, weight: Floats, start: Any = None) -> Any:
        """See `Source.fit`."""
        return self.trees.fit(structure, weight, start)


def new_forest(
    gains: Floats, seen: Sequence[ParentSets], required: Sequence[Edge] = (), forbidden: Sequence[Edge] = ()
) -> ParentSets | None:
    """Return the best forest of positive gains that is not among those seen; None if there is none.

    Forests come in descending order: the next best lacks some edge of those that were better. (Lawler 1972)

    Examples
    --------
    >>> import numpy as np
    >>> gains = np.array([[0.0, 2.0], [1.0, 0.0]])
    >>> new_forest(gains, [((), (0,))])
    ((1,), ())
    >>> new_forest(gains, [((), (0,)), ((1,), ())])
    ((), ())
    """

    def free(forest: ParentSets) -> set[Edge]:
        return set(edges(forest)) - set(required)  # what all forests have says nothing about their order

    queue: list[tuple[float, tuple[Edge, ...], ParentSets]] = []
    asked: set[tuple[Edge, ...]] = set()

    def look_at(banned: tuple[Edge, ...]) -> None:
        if banned not in asked:
            asked.add(banned)
            forest = best_forest(gains, required=required, forbidden=banned)
            heappush(queue, (-sum(float(gains[edge]) for edge in free(forest)), banned, forest))

    look_at(tuple(sorted(forbidden)))
    while queue and len(asked) < MAX_TRIES:
        _, banned, forest = heappop(queue)
        if forest not in seen:
            return forest
        for edge in free(forest):
            look_at(tuple(sorted((*banned, edge))))
    return None
