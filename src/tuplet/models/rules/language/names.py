"""What the names in a rule mean for given class variables."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.models.rules.language.formula import Formula, Is, Label, Leaf, Truth, quoted
from tuplet.models.rules.language.parser import point_at
from tuplet.space.classes import ClassSpace

_YES = ("yes", "true", "1", "1.0")
_NO = ("no", "false", "0", "0.0")
_SHOWN = 12


@dataclass(frozen=True)
class Names:
    """Class variables and categories, as rules name them.

    A bare name is a category that only one class variable has, or a yes/no variable (0/1, booleans, or
    "no" and "yes") that is to be yes.

    Parameters
    ----------
    space : ClassSpace
    """

    space: ClassSpace

    def literal(self, leaf: Leaf, text: str) -> tuple[int, Truth]:
        """Return the variable of a leaf, and for which of its values (k,) it is true."""
        if isinstance(leaf, Is):
            variable = self._variable(leaf, text)
            code = self.code(variable, leaf.category)
            if code is None:
                self._fail(
                    f"{leaf.variable!r} has no category {leaf.category!r}; it has"
                    f" {_listing(self.space.categories[variable])}",
                    leaf.position,
                    text,
                    str(leaf.category),
                    [str(category) for category in self.space.categories[variable]],
                )
        else:
            assert isinstance(leaf, Label)
            variable, code = self._reading(leaf, text)
        return variable, np.arange(self.space.cards[variable]) == code

    def code(self, variable: int, category: Any) -> int | None:
        """Return the code of a category, by its value or else by its text; None if there is none."""
        labels = self.space.categories[variable].tolist()
        is_text = isinstance(category, str)
        same = [
            i for i, label in enumerate(labels) if isinstance(label, str) == is_text and label == category
        ]
        alike = [i for i, label in enumerate(labels) if str(label) == str(category)]
        found = same or alike
        return found[0] if found else None

    def leaf(self, variable: int, code: int) -> Formula:
        """Return the shortest statement that a variable has a value."""
        label = self.space.categories[variable][code]
        name = self.space.names[variable]
        yes = self.yes(variable)
        if yes is not None and len(self._readings.get(name, [])) == 1:
            return Label(name) if yes == code else ~Label(name)
        if len(self._readings.get(str(label), [])) == 1:
            return Label(str(label))
        return Is(name, label)

    @cached_property
    def _readings(self) -> dict[str, list[tuple[int, int]]]:
        """Return what each bare name may mean: variables and codes."""
        readings: dict[str, list[tuple[int, int]]] = {}
        for j, name in enumerate(self.space.names):
            yes = self.yes(j)
            if yes is not None:
                readings.setdefault(name, []).append((j, yes))
                continue  # "yes" or "1" alone does not name one variable of several
            for code, label in enumerate(self.space.categories[j].tolist()):
                readings.setdefault(str(label), []).append((j, code))
        return readings

    def yes(self, variable: int) -> int | None:
        """Return the code of "yes" of a yes/no variable."""
        texts = [str(label).lower() for label in self.space.categories[variable].tolist()]
        if len(texts) != 2 or not (set(texts) & set(_YES) and set(texts) & set(_NO)):
            return None
        return 0 if texts[0] in _YES else 1

    def _variable(self, leaf: Is, text: str) -> int:
        names = self.space.names
        if leaf.variable not in names:
            self._fail(
                f"there is no class variable {leaf.variable!r}",
                leaf.position,
                text,
                leaf.variable,
                list(names),
            )
        return names.index(leaf.variable)

    def _reading(self, leaf: Label, text: str) -> tuple[int, int]:
        found = self._readings.get(leaf.name, [])
        if len(found) == 1:
            return found[0]
        if found:
            ways = " or ".join(
                str(Is(self.space.names[j], self.space.categories[j][c])) for j, c in found[:6]
            )
            self._fail(f"{leaf.name!r} may mean several things; write {ways}", leaf.position, text)
        if leaf.name in self.space.names:
            j = self.space.names.index(leaf.name)
            example = Is(leaf.name, self.space.categories[j][0])
            self._fail(
                f"{leaf.name!r} is a class variable with the categories"
                f" {_listing(self.space.categories[j])}; say which one is meant, as in {example}",
                leaf.position,
                text,
            )
        return self._fail(
            f"{leaf.name!r} is neither a category nor a yes/no variable",
            leaf.position,
            text,
            leaf.name,
            [*self._readings, *self.space.names],
        )

    def __str__(self) -> str:
        shown = [
            f"{quoted(name)} ({_listing(self.space.categories[j])})"
            for j, name in enumerate(self.space.names[:_SHOWN])
        ]
        more = self.space.n_variables - _SHOWN
        return "Known are " + ", ".join(shown) + (f" and {more} more." if more > 0 else ".")

    def _fail(
        self, problem: str, position: int, text: str, wrong: str = "", right: list[str] | None = None
    ) -> NoReturn:
        close = difflib.get_close_matches(wrong, right or [], n=1) or difflib.get_close_matches(
            wrong.lower(), [name.lower() for name in right or []], n=1
        )
        hint = f" Did you mean {close[0]!r}?" if close else ""
        place = point_at(text, position) if position >= 0 else f"\n  {text}"
        raise InputError(f"Rule: {problem}.{hint}{place}\n{self}")


def _listing(categories: Any) -> str:
    shown = [quoted(str(category)) for category in list(categories)[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(categories) > _SHOWN else "")
