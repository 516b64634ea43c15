"""Probabilistic rules: their language, their factors, their inference and their learning.

- `Rule`, `NoisyOr`, `RuleSet`: rules as people write them; `Is`, `Label` and operators make formulas.
- `compile_rules` turns names into numbers: `RuleFactor`.
- `RuleJoint`: beliefs about single class variables times rules, a joint distribution.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.rules.compile import compile_rules
    from tuplet.rules.factor import RuleFactor
    from tuplet.rules.formula import Formula, Is, Label
    from tuplet.rules.joint import RuleJoint
    from tuplet.rules.rule import NoisyOr, Rule
    from tuplet.rules.ruleset import RuleSet
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.rules.compile": "compile_rules",
            "tuplet.rules.factor": "RuleFactor",
            "tuplet.rules.formula": "Formula Is Label",
            "tuplet.rules.joint": "RuleJoint",
            "tuplet.rules.rule": "NoisyOr Rule",
            "tuplet.rules.ruleset": "RuleSet",
        },
    )

__all__ = ["Formula", "Is", "Label", "NoisyOr", "Rule", "RuleFactor", "RuleJoint", "RuleSet", "compile_rules"]
