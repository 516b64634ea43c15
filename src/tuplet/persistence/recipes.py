"""What is no plain data is stored as a recipe: a word and plain ingredients, from which it is made again.

Objects of pandas, polars and of compiled code have states that only their own libraries may restore. Before a
model is written, a copy of it is made in which each of them is a `Recipe`. The constructor of `Recipe` does
not return one: it checks the ingredients and returns what they make. It is the only constructor of ours that
reading a file calls.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

from tuplet.exceptions import ModelFileError
from tuplet.persistence import compiled, frames, plain

_FAMILIES = (plain, frames, compiled)

_BUILDERS: dict[str, Callable[..., Any]] = {}
for _family in _FAMILIES:
    _BUILDERS.update(_family.BUILDERS)


class Recipe:
    """How to make an object again.

    Parameters
    ----------
    kind : str
        What it is.
    *parts
        What it is made of: plain data, arrays, and objects made by other recipes.
    """

    kind: str
    parts: tuple[Any, ...]

    def __new__(cls, kind: str, *parts: Any) -> Any:
        """Make the object."""
        if not isinstance(kind, str) or kind not in _BUILDERS:
            raise ModelFileError(
                f"The file holds a {kind!r}, which this version of tuplet does not know; update it."
            )
        return _BUILDERS[kind](*parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Recipe, (self.kind, *self.parts)


def _write_down(kind: str, parts: tuple[Any, ...]) -> Recipe:
    recipe: Recipe = object.__new__(Recipe)
    recipe.kind, recipe.parts = kind, parts
    return recipe


def rewrite(model: Any) -> Any:
    """Return a copy of a model with recipes in the place of what is no plain data.

    Pickle makes the copy, because it knows how to copy everything and keeps shared objects shared. It never
    leaves this function: what is read back is what was written a moment ago.
    """
    buffer = io.BytesIO()
    writer = _Writer(buffer)
    writer.dump(model)
    buffer.seek(0)
    return _Reader(buffer, writer.kept).load()


class _Writer(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, protocol=5)
        self.kept: list[Recipe] = []

    def reducer_override(self, obj: Any) -> Any:
        for family in _FAMILIES:
            taken = family.take_apart(obj)
            if taken is not None:
                return _write_down, taken
        return NotImplemented

    def persistent_id(self, obj: Any) -> int | None:
        # Pickle does not ask `reducer_override` about dicts, and skops knows no keys but words and numbers.
        if type(obj) is not dict or plain.has_simple_keys(obj):
            return None
        self.kept.append(_write_down("dict", (rewrite(list(obj)), rewrite(list(obj.values())))))
        return len(self.kept) - 1


class _Reader(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, kept: list[Recipe]) -> None:
        super().__init__(buffer)
        self.kept = kept

    def persistent_load(self, pid: int) -> Recipe:
        return self.kept[pid]
