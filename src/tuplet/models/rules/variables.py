"""Class variables as people list them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.space import ClassSpace
from tuplet.space.labels import as_array


def read_variables(variables: Any) -> ClassSpace:
    """Return the class space of a mapping of names to lists of categories.

    Examples
    --------
    >>> read_variables({"sky": ["clear", "cloudy"], "rain": None}).cards
    (2, 2)
    """
    if not isinstance(variables, Mapping) or not variables:
        raise InputError(
            f"RuleModel: variables must map names to lists of categories, found {type(variables).__name__}."
        )
    categories = tuple(_categories(name, given, "RuleModel") for name, given in variables.items())
    return ClassSpace(tuple(str(name) for name in variables), categories)


def widened(space: ClassSpace, name: str, categories: Any, who: str) -> ClassSpace:
    """Return a class space with a further variable; `who` asks for it."""
    if str(name) in space.names:
        raise InputError(f"{who}: there is a class variable {name!r} already.")
    return ClassSpace((*space.names, str(name)), (*space.categories, _categories(name, categories, who)))


def _categories(name: Any, given: Any, who: str) -> npt.NDArray[Any]:
    """Return distinct labels as an array; none at all stand for 0 and 1."""
    try:
        listed = [0, 1] if given is None else list(given) or [0, 1]
        distinct = len(set(listed)) == len(listed)
    except TypeError:  # not a list, or labels that cannot be compared
        distinct = False
    if isinstance(given, str) or not distinct:
        raise InputError(
            f"{who}: the categories of {name!r} must be a list of distinct labels, found {given!r}."
        )
    return as_array(listed)
