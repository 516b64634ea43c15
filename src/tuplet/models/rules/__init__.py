"""Rules over beliefs: given ones (`RuleModel`), or those of classifiers (`RuleStackingClassifier`)."""

from tuplet.models.rules.model import RuleModel
from tuplet.models.rules.stacking import RuleStackingClassifier

__all__ = ["RuleModel", "RuleStackingClassifier"]
