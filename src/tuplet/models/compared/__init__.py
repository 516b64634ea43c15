"""Methods that the papers compare theirs with.

- `instance_logistic`: `InstanceLogisticClassifier` (IBLR), neighbours' labels as features.
- `output_coding`: `OutputCodingClassifier` (MMOC), codes of label vectors with a learned metric.
- `stacked_features`: `StackedFeaturesClassifier` (CHF), two layers of classifiers.
- `weighted_stacking`: `WeightedStackingClassifier` (MLWSE), sparse linear stacking.
"""

from tuplet.models.compared.instance_logistic import InstanceLogisticClassifier
from tuplet.models.compared.output_coding import OutputCodingClassifier
from tuplet.models.compared.stacked_features import StackedFeaturesClassifier
from tuplet.models.compared.weighted_stacking import WeightedStackingClassifier

__all__ = [
    "InstanceLogisticClassifier",
    "OutputCodingClassifier",
    "StackedFeaturesClassifier",
    "WeightedStackingClassifier",
]
