"""Rules as people write them: a formula or a noisy-or, and how far it is to be believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, final

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.models.rules.language.formula import Formula, Is
from tuplet.models.rules.language.parser import parse

LEARN_FROM = 0.9
"""Where a probability that is to be learned starts."""


@final
@dataclass(frozen=True)
class Rule:
    """A propositional rule that holds with a probability.

    An outcome that satisfies the formula is weighted by p, another one by 1 - p; so p = 1 forbids what breaks
    the rule, p = 0.5 has no effect, and less than 0.5 is evidence for the contrary.

    Parameters
    ----------
    formula : str or Formula
        `variable == category`, `variable != category`, a category that only one class variable has, or the
        name of a yes/no variable; combined by `!`, `&`, `xor`, `|`, `->`, `<-`, `<->` (from the tightest
        to the loosest), by the words `not`, `and`, `xor`, `or`, `implies`, `iff`, and by parentheses.
        Names with spaces or signs go in quotes.
    p : float or "learn"
        Between 0 and 1; "learn" starts at 0.9 and leaves it to a model that learns from data.
    name : str, optional
        How tables and messages call the rule, instead of its text.
    learned : bool
        Whether a model may change p.
    pending : bool
        Whether it has still to be learned.

    Examples
    --------
    >>> Rule("(high & standing) -> overhead", 0.8)
    Rule('(high & standing) -> overhead', 0.8)
    >>> Rule(Is("shoes", "gait").iff(Is("camera", "walking")))
    Rule('shoes == gait <-> camera == walking', 1.0)
    """

    formula: Formula
    p: float = 1.0
    name: str | None = None
    learned: bool = False
    source: str | None = field(default=None, compare=False)
    pending: bool = field(default=False, compare=False)

    def __init__(
        self,
        formula: str | Formula,
        p: float | Literal["learn"] = 1.0,
        name: str | None = None,
        learned: bool = False,
        source: str | None = None,
        pending: bool = False,
    ) -> None:
        if not isinstance(formula, str | Formula):
            raise InputError(f"Rule: the formula must be text or a Formula, found {formula!r}.")
        text = formula if isinstance(formula, str) else source or str(formula)
        learns = isinstance(p, str) and p == "learn"
        # Formulas made of objects are read again, so that messages can point at a place in the text.
        object.__setattr__(self, "formula", parse(text))
        object.__setattr__(self, "p", LEARN_FROM if learns else _probability(p, text))
        object.__setattr__(self, "name", _name(name))
        object.__setattr__(self, "learned", learned or learns)
        object.__setattr__(self, "source", text)
        object.__setattr__(self, "pending", pending or learns)

    @property
    def text(self) -> str:
        """The formula as it was written."""
        return str(self.source)

    @property
    def title(self) -> str:
        """What tables and messages call the rule: its name, or its text."""
        return self.name or self.text

    def with_p(self, p: float) -> Self:
        """Return the same rule with another probability."""
        return replace(self, p=p, pending=False)

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        if self.pending:
            return f"Rule({self.text!r}, 'learn'{name})"
        return f"Rule({self.text!r}, {self.p}{name}{', learned=True' if self.learned else ''})"

    def __str__(self) -> str:
        words = f"{self.name}: {self.text}" if self.name else self.text
        if self.pending:
            return f"{words}  (p is to be learned)"
        return f"{words}  (p = {self.p:.4g}{', learned' if self.learned else ''})"


@final
@dataclass(frozen=True)
class NoisyOr:
    """At least one of several things should be so; each of them satisfies the rule with a strength.

    An outcome breaks the rule by Q, the product over the variables of the inhibition q of its category (1
    where none is given), and is weighted by p (1 - Q) + (1 - p) Q. Inhibitions of 0 and 1 make it an "or".

    Parameters
    ----------
    inhibitions : mapping of variable to mapping of category to q
        Between 0 (this category alone satisfies the rule) and 1 (it does not help).
    p : float
        Between 0 and 1; slightly below 1 keeps outcomes that nothing supports possible.
    name : str, optional
        How tables and messages call the rule, instead of its text.
    learned : bool
        Whether the rule was learned from data.

    Examples
    --------
    >>> rule = NoisyOr.from_strengths({"sky": {"clear": 0.9}, "rain": {1: 0.6}})
    >>> rule.inhibitions
    {'sky': {'clear': 0.1}, 'rain': {1: 0.4}}
    >>> print(rule)
    sky == clear (0.9) or rain == 1 (0.6)
    """

    pending: ClassVar[bool] = False  # unlike that of a `Rule`, its probability is always given

    inhibitions: dict[str, dict[Any, float]]
    p: float = 1.0
    name: str | None = None
    learned: bool = False

    def __init__(
        self,
        inhibitions: Mapping[str, Mapping[Any, float]],
        p: float = 1.0,
        name: str | None = None,
        learned: bool = False,
    ) -> None:
        kept: dict[str, dict[Any, float]] = {}
        for variable, given in _nested(inhibitions, "inhibition"):
            categories = [Is(variable, category).category for category in given]
            values = [_probability(q, f"the inhibition of {variable}") for q in given.values()]
            if categories:
                kept[str(variable)] = dict(zip(categories, values, strict=True))
        if not kept:
            raise InputError("NoisyOr: needs an inhibition of at least one category, found none.")
        object.__setattr__(self, "inhibitions", kept)
        object.__setattr__(self, "p", _probability(p, "a noisy-or rule"))
        object.__setattr__(self, "name", _name(name))
        object.__setattr__(self, "learned", learned)

    @classmethod
    def from_strengths(
        cls, strengths: Mapping[str, Mapping[Any, float]], p: float = 1.0, name: str | None = None
    ) -> NoisyOr:
        """Make a rule of strengths, 1 - q: the probability with which a category satisfies it alone."""
        # Rounded, since 1 - 0.9 would print as 0.09999999999999998.
        given = {
            v: {c: round(1.0 - _probability(s, f"the strength of {v}"), 15) for c, s in inner.items()}
            for v, inner in _nested(strengths, "strength")
        }
        return cls(given, p, name)

    def __hash__(self) -> int:
        given = frozenset((variable, frozenset(q.items())) for variable, q in self.inhibitions.items())
        return hash((given, self.p, self.name, self.learned))

    @property
    def text(self) -> str:
        """The rule as text that a `RuleSet` reads again."""
        items = [
            f"{Is(variable, category)}: {q!r}"
            for variable, given in self.inhibitions.items()
            for category, q in given.items()
        ]
        return f"noisy_or({', '.join(items)})"

    @property
    def title(self) -> str:
        """What tables and messages call the rule: its name, or a short sentence."""
        return self.name or self.sentence()

    def sentence(self, digits: int = 2) -> str:
        """Return the things that satisfy the rule with their strengths, the strongest first.

        A rule with p below 1/2 is evidence for the contrary, and is worded so.
        """
        items = [
            (q, str(Is(variable, category)))
            for variable, given in self.inhibitions.items()
            for category, q in given.items()
            if q < 1
        ]
        words = [
            f"{leaf} ({round(1.0 - q, digits):.{digits}g})" for q, leaf in sorted(items, key=lambda i: i[0])
        ]
        text = " or ".join(words) or "nothing (no category has a strength)"
        return text if self.p >= 0.5 else f"not ({text})"

    def with_p(self, p: float) -> Self:
        """Return the same rule with another probability."""
        return replace(self, p=p)

    def __repr__(self) -> str:
        extra = (f", name={self.name!r}" if self.name else "") + (", learned=True" if self.learned else "")
        return f"NoisyOr({self.inhibitions!r}, {self.p}{extra})"

    def __str__(self) -> str:
        words = f"{self.name}: {self.sentence()}" if self.name else self.sentence()
        p = max(self.p, 1.0 - self.p)
        return words + (f"  (p = {p:.4g})" if p < 1 else "")


def _name(name: Any) -> str | None:
    if name is not None and not isinstance(name, str):
        raise InputError(f"Rule: a name must be text, found {name!r}.")
    return name or None


def _nested(given: Any, what: str) -> list[tuple[Any, Mapping[Any, Any]]]:
    """Return the variables of a mapping of mappings, and the values of their categories."""
    if not isinstance(given, Mapping):
        raise InputError(
            f"NoisyOr: needs a mapping of variables, as in {{'rain': {{'yes': 0.1}}}}, found {given!r}."
        )
    for variable, inner in given.items():
        if not isinstance(inner, Mapping):
            raise InputError(
                f"NoisyOr: each {what} belongs to a category of {variable!r}, as in {{'yes': 0.1}}, found"
                f" {inner!r}."
            )
    return list(given.items())


def _probability(value: Any, what: str) -> float:
    try:
        number = float(value) if np.ndim(value) == 0 else -1.0
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise InputError(f"The probability of {what!r} must be between 0 and 1, found {value!r}.")
    return number
