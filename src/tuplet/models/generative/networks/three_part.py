"""The graph of a generative classifier: classes, features, and what joins them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

from tuplet.core.exceptions import InputError
from tuplet.joint.inference.plan import cliques_along, min_fill_order
from tuplet.structure.parents import Edge, ParentSets, connected_parts, moral_width, topological_order


class ClassComponent(NamedTuple):
    """Classes that hang together by class and bridge edges, and the features below them (positions)."""

    classes: tuple[int, ...]
    features: tuple[int, ...]


@final
@dataclass(frozen=True)
class ThreePartGraph:
    """A directed acyclic graph over d classes and then m features, in which no feature is a class's parent.

    Parameters
    ----------
    parents : ParentSets
        Of all d + m variables, the classes first.
    n_classes : int
        d.

    Notes
    -----
    Given all features, a class graph is left: the *pruned graph* joins the class parents of every variable
    (and the variable itself, if it is a class). Its width determines the cost of prediction, not that of the
    whole graph. No edge of it leaves a component.

    References
    ----------
    Learning tractable multidimensional Bayesian network classifiers; definitions 1 to 3, theorem 4.

    Examples
    --------
    >>> graph = ThreePartGraph(((), (0,), (), (1,), (0, 3), (2,)), n_classes=3)
    >>> graph.class_parents, graph.bridge_parents, graph.feature_parents
    (((), (0,), ()), ((1,), (0,), (2,)), ((), (0,), ()))
    >>> graph.components
    (ClassComponent(classes=(0, 1), features=(0, 1)), ClassComponent(classes=(2,), features=(2,)))
    >>> graph.pruned_edges, graph.width
    (((0, 1),), 1)
    """

    parents: ParentSets
    n_classes: int

    def __post_init__(self) -> None:
        topological_order(self.parents)  # no cycles
        for v, members in enumerate(self.parents[: self.n_classes]):
            if any(p >= self.n_classes for p in members):
                raise InputError(f"A class must have no features as parents; variable {v} has.", variable=v)

    @property
    def n_features(self) -> int:
        """Number of features m."""
        return len(self.parents) - self.n_classes

    @property
    def class_parents(self) -> ParentSets:
        """Class subgraph: the parents of each class."""
        return self.parents[: self.n_classes]

    @property
    def bridge_parents(self) -> ParentSets:
        """Bridge subgraph: the class parents of each feature, as positions of classes."""
        return tuple(
            tuple(p for p in members if p < self.n_classes) for members in self.parents[self.n_classes :]
        )

    @property
    def feature_parents(self) -> ParentSets:
        """Feature subgraph: the feature parents of each feature, as positions of features."""
        d = self.n_classes
        return tuple(tuple(p - d for p in members if p >= d) for members in self.parents[d:])

    @cached_property
    def scopes(self) -> tuple[tuple[int, ...], ...]:
        """Classes that each family leaves when the features are known, each set once; single ones too."""
        families = [(*members, v) for v, members in enumerate(self.class_parents)]
        return tuple(dict.fromkeys(tuple(sorted(f)) for f in (*families, *self.bridge_parents) if f))

    @cached_property
    def pruned_edges(self) -> tuple[Edge, ...]:
        """Undirected edges (i, j), i < j, of the pruned graph."""
        found = {(a, b) for scope in self.scopes for a in scope for b in scope if a < b}
        return tuple(sorted(found))

    @cached_property
    def components(self) -> tuple[ClassComponent, ...]:
        """Parts that class and bridge edges hold together; features without class parents are in none."""
        return tuple(
            ClassComponent(
                tuple(part), tuple(f for f, above in enumerate(self.bridge_parents) if {*above} & {*part})
            )
            for part in connected_parts(self.n_classes, self.pruned_edges)
        )

    @cached_property
    def width(self) -> int:
        """Min-fill width of the pruned graph."""
        return max(map(len, self._cliques((2,) * self.n_classes))) - 1

    @cached_property
    def full_width(self) -> int:
        """Min-fill width of the moral graph of all variables."""
        return moral_width(self.parents)

    def induced_size(self, cards: tuple[int, ...]) -> int:
        """Cells of all tables that eliminating the classes in min-fill order makes, for one row.

        Parameters
        ----------
        cards : tuple of int
            Cardinalities of the classes.
        """
        return sum(math.prod(cards[v] for v in clique) for clique in self._cliques(cards))

    def _cliques(self, cards: tuple[int, ...]) -> list[tuple[int, ...]]:
        order = min_fill_order(cards, self.pruned_edges)
        return list(cliques_along(self.pruned_edges, order))
