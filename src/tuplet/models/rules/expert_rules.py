"""Rules of experts: those with a fixed probability, those whose probability is learned, and others beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from tuplet.core.exceptions import InputError
from tuplet.core.limits import FEW_OUTCOMES
from tuplet.core.typing import Codes, Floats
from tuplet.joint.inference.factor import RuleFactor
from tuplet.models.rules.language.compile import compile_rules
from tuplet.models.rules.language.rule import NoisyOr, Rule
from tuplet.models.rules.language.ruleset import RuleSet
from tuplet.models.rules.learning.evidence import Evidence, Term
from tuplet.models.rules.learning.learner import Learned, as_rule, learn_rules
from tuplet.models.rules.learning.search import SearchSettings
from tuplet.space.classes import ClassSpace


@dataclass(frozen=True, eq=False)
class ExpertRules:
    """Rules of experts, compiled.

    Parameters
    ----------
    rules : RuleSet
    factors : tuple of RuleFactor
    places : tuple of int
        Positions of the rules whose p is learned.
    """

    rules: RuleSet
    factors: tuple[RuleFactor, ...]
    places: tuple[int, ...]

    @property
    def fixed_factors(self) -> tuple[RuleFactor, ...]:
        """Factors of the rules that stay as they are."""
        return tuple(factor for k, factor in enumerate(self.factors) if k not in self.places)

    @property
    def learnable(self) -> list[Term]:
        """The rules whose p is learned, as terms."""
        terms = []
        for k in self.places:
            factor = self.factors[k]
            start = float(logit(np.clip(factor.p, 0.001, 0.999)))
            terms.append(Term(factor.scope, start, breach=factor.breach_table()))
        return terms

    def with_strengths(self, strengths: Sequence[float]) -> list[Rule | NoisyOr]:
        """Return the rules, those of `places` with these logits of the probabilities of their factors."""
        rules = list(self.rules)
        for k, strength in zip(self.places, strengths, strict=True):
            p = float(expit(strength))
            rules[k] = rules[k].with_p(1.0 - p if self.factors[k].flipped else p)
        return rules


def learn_beside(
    experts: ExpertRules,
    space: ClassSpace,
    log_beliefs: Sequence[Floats],
    codes: Codes,
    weights: Floats | None,
    *,
    groups: Codes | None = None,
    max_scope: int,
    **settings: Any,
) -> tuple[RuleSet, Learned]:
    """Learn rules, and probabilities of experts' rules, from beliefs (n, k_j) and codes (n, m) of labels.

    Rows of one of the `groups` (n,) are held out together.

    Returns
    -------
    rules : RuleSet
        Those of the experts, then the learned ones.
    learned : Learned
        The result of `learn_rules`, which gets the other settings.
    """
    row_weights = np.ones(len(codes)) if weights is None else weights
    evidence = Evidence(tuple(log_beliefs), codes, row_weights, experts.fixed_factors, groups)
    learned = learn_rules(
        evidence, experts.learnable, settings=SearchSettings(max_scope=max_scope), **settings
    )
    found = [as_rule(term, space) for term in learned.terms]
    return RuleSet([*experts.with_strengths(learned.strengths), *found]), learned


def compile_expert_rules(rules: RuleSet, space: ClassSpace) -> ExpertRules:
    """Compile rules and find those whose probability is to be learned."""
    factors = compile_rules(rules, space)
    places = tuple(k for k, rule in enumerate(rules) if isinstance(rule, Rule) and rule.learned)
    for k in places:
        if factors[k].n_cells > FEW_OUTCOMES:
            raise InputError(
                f"The probability of {rules[k].title!r} cannot be learned: the rule has"
                f" {factors[k].n_cells:,} combinations of labels (limit {FEW_OUTCOMES:,}). Give it a fixed p."
            )
    return ExpertRules(rules, factors, places)
