"""Class variables, beliefs and priors as users pass them: checked, and in the order of the categories."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.dependencies as kinds
import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.models.rules.language.names import Names
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.labels import as_array

_SLOPPY = 0.02
"""How far beliefs may be from adding up to one; rounded ones are scaled, others are a mistake."""


def read_class_space(variables: Any) -> ClassSpace:
    """Return the class space of a mapping of names to lists of categories.

    Examples
    --------
    >>> read_class_space({"sky": ["clear", "cloudy"], "rain": None}).cards
    (2, 2)
    """
    if not isinstance(variables, Mapping) or not variables:
        raise InputError(
            f"RuleModel: variables must map names to lists of categories, found {type(variables).__name__}."
        )
    categories = tuple(_categories(name, given, "RuleModel") for name, given in variables.items())
    return ClassSpace(tuple(str(name) for name in variables), categories)


def add_to_space(space: ClassSpace, name: str, categories: Any, who: str) -> ClassSpace:
    """Return a class space with a further variable; `who` is the method named in messages."""
    if str(name) in space.names:
        raise InputError(f"{who}: there is a class variable {name!r} already.")
    categories = (*space.categories, _categories(name, categories, who))
    return ClassSpace((*space.names, str(name)), categories, ordered=(*space.ordered, False))


def _categories(name: Any, given: Any, who: str) -> npt.NDArray[Any]:
    """Return distinct labels as an array; an empty list means 0 and 1."""
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


def read_beliefs(
    space: ClassSpace, given: Mapping[str, Any], priors: Mapping[str, Floats]
) -> tuple[list[Floats], pd.Index | None]:
    """Log-beliefs (n, k_j) of all class variables, and the index of the rows if frames have one.

    Parameters
    ----------
    space : ClassSpace
    given : mapping of names to tables
        A table is a frame, an array (n, k) or (k,), a mapping of categories to probabilities, or a number;
        one row serves all rows. A row that is missing altogether (NaN) gets the prior.
    priors : mapping of names to arrays (k_j,)
        Of every class variable.
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f"Beliefs must be a mapping of class variables to tables, found {type(given).__name__}; as in"
            f" {{{space.names[0]!r}: table}}."
        )
    tables = {space.position(name): _read_table(space, name, table) for name, table in given.items()}
    n = _common({space.names[j]: len(table) for j, table in tables.items()})
    beliefs = []
    for j, name in enumerate(space.names):
        prior = np.broadcast_to(priors[name], (n, space.cards[j]))
        table = tables.get(j, prior)
        belief = np.broadcast_to(table, prior.shape)
        gone = np.isnan(belief).all(axis=1, keepdims=True)
        beliefs.append(np.where(gone, prior, belief))
    with np.errstate(divide="ignore"):
        return [np.log(belief) for belief in beliefs], _index(given.values(), n)


def _common(sizes: dict[str, int]) -> int:
    """Return the number of rows; tables of one row serve all rows."""
    many = {name: size for name, size in sizes.items() if size != 1}
    if len(set(many.values())) > 1:
        listed = ", ".join(f"{name!r} {size}" for name, size in many.items())
        raise InputError(f"Tables of beliefs must have equally many rows, found {listed}.")
    return next(iter(many.values()), 1)


def _index(tables: Any, n: int) -> pd.Index | None:
    found = [table.index for table in tables if isinstance(table, pd.DataFrame) and len(table) == n]
    for other in found[1:]:
        if not other.equals(found[0]):
            raise InputError("The frames of beliefs have different indices; put their rows in one order.")
    return found[0] if found else None


def _read_table(space: ClassSpace, name: str, table: Any) -> Floats:
    """Beliefs (n, k) about one class variable.

    Parameters
    ----------
    table : frame, array (n, k) or (k,), mapping of categories to probabilities, or a number
        Columns of frames and keys of mappings are categories, in any order. A number is the probability of
        yes of a yes/no variable.
    """
    j = space.position(name)
    array = _by_category(space, j, table)
    if array.shape[1] != space.cards[j]:
        raise InputError(
            f"The beliefs about {name!r} must have {space.cards[j]} columns"
            f" ({listing(space.categories[j])}), found {array.shape[1]}."
        )
    gone = np.isnan(array).all(axis=1)
    total = array.sum(axis=1)
    wrong = ~gone & ~((np.abs(total - 1.0) <= _SLOPPY) & (array >= 0).all(axis=1))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"The beliefs about {name!r} must be probabilities that add up to 1; row {row} is"
            f" {', '.join(f'{value:g}' for value in array[row])}."
        )
    return array / np.where(gone, 1.0, total)[:, None]


def read_priors(space: ClassSpace, given: Any) -> dict[str, Floats]:
    """Probabilities (k_j,) of the class variables that a mapping names, each as one table of beliefs."""
    if not isinstance(given, Mapping):
        raise InputError(
            "Priors must be a mapping of class variables to probabilities, as in"
            f" {{{space.names[0]!r}: [...]}}, found {given!r}."
        )
    priors = {}
    for name, table in given.items():
        array = _read_table(space, name, table)
        if len(array) != 1 or np.isnan(array).any():
            found = f"{len(array)} rows" if len(array) != 1 else "missing values"
            raise InputError(f"The prior of {name!r} must be one row of probabilities, found {found}.")
        priors[space.names[space.position(name)]] = array[0]
    return priors


def _by_category(space: ClassSpace, j: int, table: Any) -> Floats:
    if isinstance(table, pd.Series) and not isinstance(table.index, pd.RangeIndex):
        table = table.to_dict()  # value_counts, or a row of a frame: what belongs to what is in its index
    if isinstance(table, Mapping):
        row = _numbers(space, j, list(table.values()))
        if row.ndim != 1:
            raise InputError(
                f"The beliefs about {space.names[j]!r} are a mapping, which holds one probability for each"
                " category; pass a frame for several rows."
            )
        return _ordered(space, j, list(table), row[None])
    if isinstance(table, pd.DataFrame) or kinds.is_polars_dataframe(table):
        return _ordered(space, j, list(table.columns), _numbers(space, j, table.to_numpy()))
    array = _numbers(space, j, table)
    if array.ndim == 0:
        yes = Names(space).yes(j)
        if yes is None:
            raise InputError(
                f"The beliefs about {space.names[j]!r} must be a table; one number is for yes/no variables."
            )
        return np.array([[1.0 - array, array] if yes == 1 else [array, 1.0 - array]], dtype=float)
    if array.ndim > 2:
        raise InputError(f"The beliefs about {space.names[j]!r} must be a table, found shape {array.shape}.")
    return np.atleast_2d(array)


def _numbers(space: ClassSpace, j: int, values: Any) -> Floats:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            f"The beliefs about {space.names[j]!r} must be numbers, equally many in every row; found"
            f" {reprlib.repr(values)}."
        ) from None


def _ordered(space: ClassSpace, j: int, columns: Sequence[Any], array: Floats) -> Floats:
    """Put columns that are named by categories into their order."""
    names = Names(space)
    codes = [names.code(j, column) for column in columns]
    if sorted(code for code in codes if code is not None) != list(range(space.cards[j])) or None in codes:
        raise InputError(
            f"The beliefs about {space.names[j]!r} must have one column for each of"
            f" {listing(space.categories[j])}, found {listing(columns)}."
        )
    return array[:, np.argsort(np.array(codes, dtype=np.intp))]
