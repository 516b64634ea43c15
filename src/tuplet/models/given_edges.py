"""Edges among class variables that the settings of a model name, as positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.space.classes import ClassSpace
from tuplet.structure.parents import Edge, ParentSets, find_cycle

Pairs: TypeAlias = Sequence[tuple[int | str, int | str]]
"""Edges (parent, child)."""


class _GivenEdges(NamedTuple):
    """Edges that must be there and edges that must not, by positions."""

    required: list[Edge]
    forbidden: list[Edge]


def given_edges(model: Any, most: int) -> _GivenEdges:
    """Return the edges that the parameters `required` and `forbidden` of a model name, checked.

    Parameters
    ----------
    model : JointClassifier
        With a `space_`.
    most : int
        Largest number of parents of a variable.
    """
    rules = _GivenEdges(edge_positions(model, "required"), edge_positions(model, "forbidden"))
    both = sorted(set(rules.required) & set(rules.forbidden))
    if both:
        raise InputError(
            f"{_parameter(model, 'required')} and forbidden both have {_edge_text(model, both[0])}."
        )
    _parents(model, "required", rules.required, most)
    return rules


def given_parents(model: Any, which: str, most: int) -> ParentSets:
    """Return the parents of every class variable by a parameter of a model that names all edges."""
    return _parents(model, which, edge_positions(model, which), most)


def edge_positions(model: Any, which: str) -> list[Edge]:
    """Return the pairs of class variables that a parameter of a model has, by positions."""
    what, edges, pairs = _parameter(model, which), [], getattr(model, which)
    for pair in pairs:
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
            raise InputError(f"{what} must hold pairs of class variables, found {pair!r}.")
        edge = _position(model.space_, pair[0], what), _position(model.space_, pair[1], what)
        if edge[0] == edge[1]:
            raise InputError(f"{what} must join two variables, found {_edge_text(model, edge)}.")
        edges.append(edge)
    return edges


def _parents(model: Any, which: str, edges: Iterable[Edge], most: int) -> ParentSets:
    """Return edges as parents, unless they form a cycle or are too many for a variable."""
    names, members = model.space_.names, [set[int]() for _ in model.space_.names]
    for parent, child in edges:
        members[child].add(parent)
    crowded = next((child for child, inside in enumerate(members) if len(inside) > most), None)
    if crowded is not None:
        raise InputError(
            f"{_parameter(model, which)} has {len(members[crowded])} parents of {names[crowded]!r}; a"
            f" variable can have {most} at most."
        )
    if cycle := find_cycle(members):
        round_trip = " -> ".join(repr(names[v]) for v in (*cycle, cycle[0]))
        raise InputError(f"{_parameter(model, which)} has a cycle, {round_trip}; drop one of its edges.")
    return tuple(tuple(sorted(inside)) for inside in members)


def _position(space: ClassSpace, variable: int | str, what: str) -> int:
    if isinstance(variable, str):
        return space.position(variable)
    if not isinstance(variable, (int, np.integer)):
        raise InputError(f"{what} must name class variables, or number them from 0; found {variable!r}.")
    if not 0 <= variable < space.n_variables:
        raise InputError(
            f"{what} names the class variable {variable}, but they are numbered from 0 to"
            f" {space.n_variables - 1}."
        )
    return int(variable)


def _parameter(model: Any, which: str) -> str:
    return f"{type(model).__name__}: {which}"


def _edge_text(model: Any, edge: Edge) -> str:
    return " -> ".join(repr(model.space_.names[v]) for v in edge)
