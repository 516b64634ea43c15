"""Changes of a rule model after it was made: more or fewer rules and class variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.models.rules.language.rule import NoisyOr, Rule
from tuplet.models.rules.language.ruleset import RuleSet, read_rules
from tuplet.models.rules.reading import add_to_space, read_priors
from tuplet.space.classes import ClassSpace


class KnowledgeBase(NamedTuple):
    """Class variables, rules about them, and priors (k_j,) of variables by name."""

    space: ClassSpace
    rules: RuleSet
    priors: dict[str, Floats]


class ChangeableRules(ABC):
    """What can be changed in a rule model. All methods return a changed copy; the model stays as it is."""

    @property
    @abstractmethod
    def _knowledge(self) -> KnowledgeBase: ...

    @abstractmethod
    def _with_knowledge(self, knowledge: KnowledgeBase) -> Self:
        """Return a copy with other knowledge, or raise if its rules do not fit its class variables."""

    def add_rules(self, *rules: str | Rule | NoisyOr) -> Self:
        """Return a copy with further rules."""
        known = self._knowledge
        return self._with_knowledge(known._replace(rules=known.rules + read_rules(rules, known.space)))

    def remove_rules(self, *which: int | str | Rule | NoisyOr) -> Self:
        """Return a copy without some rules, given by position (from 0), name, text or themselves."""
        known = self._knowledge
        return self._with_knowledge(known._replace(rules=known.rules.without(which, known.space)))

    def add_variable(self, name: str, categories: Sequence[Any] | None = None, *, prior: Any = None) -> Self:
        """Return a copy with a further class variable, which rules may then name.

        Its predictions come as pandas frames.

        Parameters
        ----------
        name : str
        categories : sequence of labels, optional
            At least two; 0 and 1 if None.
        prior : probabilities, optional
            Beliefs about the variable where there are no others; uniform if None.
        """
        known = self._knowledge
        space = add_to_space(known.space, name, categories, "add_variable")
        card = space.cards[-1]
        if card < 2:
            raise InputError(f"add_variable: {name!r} needs at least two categories, found {categories!r}.")
        start = np.full(card, 1.0 / card) if prior is None else prior
        priors = known.priors | read_priors(space, {space.names[-1]: start})
        return self._with_knowledge(KnowledgeBase(space, known.rules, priors))

    def remove_variable(self, name: str) -> Self:
        """Return a copy without a class variable, its classifier (if any) and the rules that name it."""
        space, rules, priors = self._knowledge
        gone = space.position(name)
        if space.n_variables == 1:
            raise InputError(f"remove_variable: {name!r} is the only class variable.")
        left = [other for j, other in enumerate(space.names) if j != gone]
        kept = {other: priors[other] for other in left}
        return self._with_knowledge(
            KnowledgeBase(space.select(left), rules.without_variable(gone, space), kept)
        )
