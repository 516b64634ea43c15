"""Edges that a user asks for or rules out, by names or positions of the class variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tuplet.exceptions import InputError
from tuplet.space import ClassSpace
from tuplet.structure import Edge

__all__ = ["Pairs", "edge_positions"]

Pairs: TypeAlias = Sequence[tuple[int | str, int | str]]
"""Edges (parent, child)."""


def edge_positions(model: Any, which: str) -> list[Edge]:
    """Return the edges that the parameter `which` of a model names, by positions."""
    what, edges, pairs = f"{type(model).__name__}: {which}", [], getattr(model, which)
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise InputError(f"{what} must be a sequence of pairs (parent, child), found {pairs!r}.")
    for pair in pairs:
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
            raise InputError(f"{what} must hold pairs (parent, child), found {pair!r}.")
        edges.append((_position(model.space_, pair[0], what), _position(model.space_, pair[1], what)))
    return edges


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
