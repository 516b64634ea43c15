"""Local models: p(y_j | x, y_parents) from any scikit-learn classifier.

`LocalModel` is the contract, `StackedModel` the form with parents as inputs, `SmoothedClassifier` the one
place where a classifier's probabilities are completed and kept away from zero, `default_estimator` what
`estimator=None` means everywhere.
"""

from tuplet.local.base import Bound, LocalModel
from tuplet.local.logistic import default_estimator
from tuplet.local.smoothed import SmoothedClassifier
from tuplet.local.stacked import StackedModel

__all__ = ["Bound", "LocalModel", "SmoothedClassifier", "StackedModel", "default_estimator"]
