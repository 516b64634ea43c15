"""Propositional formulas over class variables: values made by a parser or by Python operators."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError

Truth: TypeAlias = npt.NDArray[np.bool_]

WORDS = frozenset({"and", "or", "not", "xor", "implies", "iff"})
PLAIN = re.compile(r"\w+(?:[-.]\w+)*")
"""Names that need no quotes."""

DEEPEST = 64
"""Levels of formulas in formulas, or of parentheses: all work on them is recursive."""

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w|[-.]\w)")


class Formula(ABC):
    """A statement about the labels of a row, true or false.

    Formulas are combined by `&`, `|`, `~`, `^` (one of the two, not both), `>>` (implies) and `iff`. In
    Python `>>` binds more tightly than `&`, unlike `->` in text: write `(a & b) >> c`.

    Examples
    --------
    >>> high, standing, overhead = Is("hands", "high"), Is("shoes", "standing"), Label("overhead")
    >>> print((high & standing) >> overhead)
    hands == high & shoes == standing -> overhead
    """

    level: ClassVar[int]  # how tightly it binds; leaves most of all

    @property
    def depth(self) -> int:
        """Levels of formulas in formulas; 0 of a leaf."""
        return 0

    def __bool__(self) -> bool:
        raise InputError(f"Rule: combine formulas by &, | and ~, not by `and`, `or` and `not`; found {self}.")

    def __and__(self, other: Formula) -> And:
        return And((*(self.parts if isinstance(self, And) else [self]), other))

    def __or__(self, other: Formula) -> Or:
        return Or((*(self.parts if isinstance(self, Or) else [self]), other))

    def __xor__(self, other: Formula) -> Xor:
        return Xor((self, other))

    def __rshift__(self, other: Formula) -> Implies:
        return Implies((self, other))

    def __invert__(self) -> Not:
        return Not((self,))

    def iff(self, other: Formula) -> Iff:
        """Return the statement that both are true or both are false."""
        return Iff((self, other))

    @abstractmethod
    def leaves(self) -> Iterator[Leaf]:
        """Yield the statements about single class variables, from left to right."""

    @abstractmethod
    def truth(self, of_leaf: Callable[[Leaf], Truth]) -> Truth:
        """Return where the formula is true, given where its leaves are; arrays that broadcast."""


@dataclass(frozen=True)
class _Compound(Formula):
    """A formula made of others."""

    parts: tuple[Formula, ...]

    sign: ClassVar[str]
    nests: ClassVar[int | None]  # the place at which a part of the same kind needs no parentheses

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, Formula) for part in self.parts):
            raise InputError(
                f"Rule: formulas are made of formulas such as Label('rain'), found {self.parts!r}."
            )
        require_shallow(self.depth)

    @cached_property
    def depth(self) -> int:
        """See `Formula.depth`."""
        return 1 + max(part.depth for part in self.parts)

    def leaves(self) -> Iterator[Leaf]:
        """See `Formula.leaves`."""
        for part in self.parts:
            yield from part.leaves()

    def truth(self, of_leaf: Callable[[Leaf], Truth]) -> Truth:
        """See `Formula.truth`."""
        return self._combine(*[part.truth(of_leaf) for part in self.parts])

    @abstractmethod
    def _combine(self, *parts: Truth) -> Truth:
        """Return the truth of the whole."""

    def __str__(self) -> str:
        return f" {self.sign} ".join(self._inside(i) for i in range(len(self.parts)))

    def _inside(self, i: int) -> str:
        part = self.parts[i]
        bare = part.level > self.level or (part.level == self.level and self.nests == i)
        return str(part) if bare else f"({part})"


@final
@dataclass(frozen=True)
class And(_Compound):
    """All parts are true."""

    level, sign, nests = 4, "&", None

    def _combine(self, *parts: Truth) -> Truth:
        result = parts[0]
        for part in parts[1:]:
            result = result & part
        return result


@final
@dataclass(frozen=True)
class Xor(_Compound):
    """One of two parts is true, and the other is not."""

    level, sign, nests = 3, "xor", 0

    def _combine(self, *parts: Truth) -> Truth:
        return parts[0] ^ parts[1]


@final
@dataclass(frozen=True)
class Or(_Compound):
    """At least one part is true."""

    level, sign, nests = 2, "|", None

    def _combine(self, *parts: Truth) -> Truth:
        result = parts[0]
        for part in parts[1:]:
            result = result | part
        return result


@final
@dataclass(frozen=True)
class Implies(_Compound):
    """The second part is true wherever the first is."""

    level, sign, nests = 1, "->", 1

    def _combine(self, *parts: Truth) -> Truth:
        return ~parts[0] | parts[1]


@final
@dataclass(frozen=True)
class Iff(_Compound):
    """Both parts are true, or none."""

    level, sign, nests = 0, "<->", 0

    def _combine(self, *parts: Truth) -> Truth:
        return ~(parts[0] ^ parts[1])


@final
@dataclass(frozen=True)
class Not(_Compound):
    """The part is false."""

    level, sign, nests = 5, "!", 0

    def _combine(self, *parts: Truth) -> Truth:
        return ~parts[0]

    def __str__(self) -> str:
        (part,) = self.parts
        if isinstance(part, Is):
            return f"{quoted(part.variable)} != {_value(part.category)}"
        return f"!{self._inside(0)}"


@dataclass(frozen=True)
class Leaf(Formula):
    """A statement about one class variable."""

    level = 6

    def leaves(self) -> Iterator[Leaf]:
        """See `Formula.leaves`."""
        yield self

    def truth(self, of_leaf: Callable[[Leaf], Truth]) -> Truth:
        """See `Formula.truth`."""
        return of_leaf(self)


@final
@dataclass(frozen=True)
class Is(Leaf):
    """A class variable has a category.

    Parameters
    ----------
    variable : str
    category : label
        Text, number or boolean; other labels go by their text.
    position : int
        Where it stands in the text of a rule; no part of its value.
    """

    variable: str
    category: Any
    position: int = field(default=-1, compare=False, repr=False)

    def __post_init__(self) -> None:
        plain = self.category.item() if isinstance(self.category, np.generic) else self.category
        object.__setattr__(self, "category", plain if isinstance(plain, bool | int | float) else str(plain))
        object.__setattr__(self, "variable", str(self.variable))

    def __str__(self) -> str:
        return f"{quoted(self.variable)} == {_value(self.category)}"


@final
@dataclass(frozen=True)
class Label(Leaf):
    """A category that only one class variable has, or the name of a yes/no variable that is to be yes."""

    name: str
    position: int = field(default=-1, compare=False, repr=False)

    def __str__(self) -> str:
        return quoted(self.name)


def require_shallow(depth: int) -> None:
    """Refuse formulas of too many levels."""
    if depth > DEEPEST:
        raise InputError(
            f"Rule: a formula may have at most {DEEPEST} levels of parentheses, negations or implications,"
            " one in the other; split it into several rules."
        )


def quoted(name: str) -> str:
    """Return a name as it stands in the text of a rule, in quotes if a reader could take it apart."""
    plain = PLAIN.fullmatch(name) and name.lower() not in WORDS and name not in ("True", "False")
    if plain and not NUMBER.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _value(category: Any) -> str:
    return quoted(category) if isinstance(category, str) else repr(category)
