"""Local models: p(y_j | x, y_parents) from any scikit-learn classifier.

`LocalModel` is the contract, `StackedModel` the form with parents as inputs, `SplitModel` the one with a
classifier for each configuration of the parents, `ShiftModel` the one in which parents shift the logits of
logistic regressions. `SmoothedClassifier` is the one place where probabilities
are completed, calibrated and kept away from zero, `default_estimator` what `estimator=None` means everywhere,
`RidgeLogistic` its classifier, whose penalty is chosen by held-out rows (`penalties`), `MixedNaiveBayes` a
classifier for numbers and categories, `OrdinalClassifier` one for ordered classes. `FamilyScorer` scores sets
of parents.

Many models of a search are fitted to the same `PreparedFeatures`, which choose between fits at once, for
logistic regressions and naive Bayes classifiers of many blocks of rows (`many_logistic`, `many_bayes`), and
fits one by one.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.local.base import Bound, LocalModel
    from tuplet.local.bayes import MixedNaiveBayes
    from tuplet.local.calibration import SmoothedClassifier
    from tuplet.local.families import FamilyScorer
    from tuplet.local.logistic import default_estimator
    from tuplet.local.ordinal import OrdinalClassifier, ordinal_estimator
    from tuplet.local.ridge import RidgeLogistic
    from tuplet.local.split import SplitModel
    from tuplet.local.stacked import StackedModel
    from tuplet.local.temperature import TemperatureScaled
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.local.base": "Bound LocalModel",
            "tuplet.local.bayes": "MixedNaiveBayes",
            "tuplet.local.calibration": "SmoothedClassifier",
            "tuplet.local.families": "FamilyScorer",
            "tuplet.local.logistic": "default_estimator",
            "tuplet.local.ordinal": "OrdinalClassifier ordinal_estimator",
            "tuplet.local.ridge": "RidgeLogistic",
            "tuplet.local.split": "SplitModel",
            "tuplet.local.stacked": "StackedModel",
            "tuplet.local.temperature": "TemperatureScaled",
        },
    )

__all__ = [
    "Bound",
    "FamilyScorer",
    "LocalModel",
    "MixedNaiveBayes",
    "OrdinalClassifier",
    "RidgeLogistic",
    "SmoothedClassifier",
    "SplitModel",
    "StackedModel",
    "TemperatureScaled",
    "default_estimator",
    "ordinal_estimator",
]
