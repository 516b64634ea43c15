"""Values that the parameters of estimators take: declared once each, checked by `fit` before anything else.

scikit-learn's declarations are in a private module (`sklearn.utils._param_validation`), and take True for 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Any, TypeAlias, final

import numpy as np

from tuplet.core.exceptions import InputError

_LONGEST = 120
"""Characters of a value in an error."""


@final
@dataclass(frozen=True)
class Whole:
    """Integers of Python and numpy, but no booleans."""

    at_least: float = -inf
    other_than: int | None = None

    def accepts(self, value: Any) -> bool:
        """Return whether a parameter takes this value."""
        return _is_number(value, Integral) and value >= self.at_least and value != self.other_than

    def __str__(self) -> str:
        return _limited("a whole number", {"of at least": self.at_least, "other than": self.other_than})


@final
@dataclass(frozen=True)
class Number:
    """Finite real numbers of any type, but no booleans."""

    above: float = -inf
    at_least: float = -inf
    below: float = inf

    def accepts(self, value: Any) -> bool:
        """Return whether a parameter takes this value."""
        return _is_number(value, Real) and self.at_least <= value and self.above < value < self.below

    def __str__(self) -> str:
        return _limited("a number", {"above": self.above, "of at least": self.at_least, "below": self.below})


@final
@dataclass(frozen=True)
class Having:
    """Objects with an attribute, such as `fit`, described by a text; classes and strings are none of them."""

    text: str
    attribute: str

    def accepts(self, value: Any) -> bool:
        """Return whether a parameter takes this value."""
        return not isinstance(value, (type, str)) and hasattr(value, self.attribute)

    def __str__(self) -> str:
        return self.text


Allowed: TypeAlias = Whole | Number | Having | type | str | None
"""Some values of a parameter; a type stands for its instances, a string and None for themselves."""

Parameters: TypeAlias = Mapping[str, tuple[Allowed, ...]]
"""What the parameters of an estimator take, by their names."""

FUNCTION = Having("a function", "__call__")
PAIRS = Having("a sequence of pairs of class variables", "__iter__")

_SHARED: dict[str, Allowed | tuple[Allowed, ...]] = {
    "cv": (
        Whole(at_least=2),
        Having("a splitter of scikit-learn", "split"),
        Having("an iterable of (train, test) positions", "__iter__"),
    ),
    "columns": (
        Mapping,
        Having("a transformer of scikit-learn", "transform"),
        None,
    ),
    "estimator": object,
    "forbidden": PAIRS,
    "max_iter": Whole(at_least=1),
    "n_bins": Whole(at_least=2),
    "n_chains": Whole(at_least=1),
    "n_folds": Whole(at_least=2),
    "n_jobs": (Whole(other_than=0), None),
    "n_learned": (Whole(at_least=1), None),
    "n_neighbors": Whole(at_least=1),
    "progress": ("auto", bool),
    "random_state": (Whole(at_least=0), np.random.Generator, np.random.RandomState, None),
    "required": PAIRS,
    "rules": object,
    "standardize": bool,
    "temperature": bool,
    "time_budget": Number(above=0),
}
"""Parameters that several estimators have: a name has one meaning in the whole package."""


def declare(shared: str = "", **own: Allowed | tuple[Allowed, ...]) -> dict[str, tuple[Allowed, ...]]:
    """Return what the parameters of an estimator take, for its class attribute `_parameters`.

    Parameters
    ----------
    shared : str
        Names of parameters that other estimators have as well, separated by spaces.
    **own
        Values of the other parameters. The type `object` takes anything: such a parameter is checked later in
        `fit`, by the class variables, the features or other parameters.

    Examples
    --------
    >>> declare("n_chains", order=("random", None))
    {'n_chains': (Whole(at_least=1, other_than=None),), 'order': ('random', None)}
    """
    declared = {name: _SHARED[name] for name in shared.split()} | own
    return {name: each if isinstance(each, tuple) else (each,) for name, each in declared.items()}


def check_parameters(estimator: Any) -> None:
    """Raise `InputError` unless every parameter that the estimator declares has a value that it takes."""
    for name, allowed in estimator._parameters.items():
        value = getattr(estimator, name)
        if not any(_accepts(each, value) for each in allowed):
            *others, last = (text for each in allowed for text in _texts(each))
            wanted = f"{', '.join(others)} or {last}" if others else last
            raise InputError(f"{type(estimator).__name__}: {name} must be {wanted}; found {_short(value)}.")


def _accepts(allowed: Allowed, value: Any) -> bool:
    if allowed is None:
        return value is None
    if isinstance(allowed, str):
        return isinstance(value, str) and value == allowed
    if isinstance(allowed, type):
        return isinstance(value, (bool, np.bool_) if allowed is bool else allowed)
    return allowed.accepts(value)


def _texts(allowed: Allowed) -> Iterator[str]:
    if allowed is bool:
        yield from ("True", "False")
    elif isinstance(allowed, type):
        yield f"an instance of {allowed.__name__}"
    else:
        yield repr(allowed) if allowed is None or isinstance(allowed, str) else str(allowed)


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _limited(kind: str, limits: Mapping[str, float | None]) -> str:
    words = [f"{word} {limit:g}" for word, limit in limits.items() if limit is not None and abs(limit) < inf]
    return f"{kind} {' and '.join(words)}".rstrip()
