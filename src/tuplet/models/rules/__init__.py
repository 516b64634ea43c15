"""Probabilistic rules over beliefs: given beliefs (`RuleModel`) or classifiers (`RuleStackingClassifier`).

- language/: rules as people write them, `Rule`, `NoisyOr`, `RuleSet`; `Is`, `Label` and operators make
  formulas; `compile_rules` turns names into numbers, `RuleFactor`.
- `rule_graph`: beliefs about single class variables times rules, a joint distribution.
- learning/: rules from data.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.joint.inference.factor import RuleFactor
    from tuplet.models.rules.graph import rule_graph
    from tuplet.models.rules.language.compile import compile_rules
    from tuplet.models.rules.language.formula import Formula, Is, Label
    from tuplet.models.rules.language.rule import NoisyOr, Rule
    from tuplet.models.rules.language.ruleset import RuleSet
    from tuplet.models.rules.model import RuleModel
    from tuplet.models.rules.stacking import RuleStackingClassifier
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.joint.inference.factor": "RuleFactor",
            "tuplet.models.rules.graph": "rule_graph",
            "tuplet.models.rules.language.compile": "compile_rules",
            "tuplet.models.rules.language.formula": "Formula Is Label",
            "tuplet.models.rules.language.rule": "NoisyOr Rule",
            "tuplet.models.rules.language.ruleset": "RuleSet",
            "tuplet.models.rules.model": "RuleModel",
            "tuplet.models.rules.stacking": "RuleStackingClassifier",
        },
    )

__all__ = [
    "Formula",
    "Is",
    "Label",
    "NoisyOr",
    "Rule",
    "RuleFactor",
    "RuleModel",
    "RuleSet",
    "RuleStackingClassifier",
    "compile_rules",
    "rule_graph",
]
