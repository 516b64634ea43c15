"""Models whose penalty is chosen inside of the training rows, by the same rule for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
from sklearn.base import clone

from tuplet import JointClassifier, TreeClassifier, default_estimator

__all__ = ["Tuned"]

MEMORY = joblib.Memory(Path(__file__).parent / "cache" / "penalties", verbose=0)


class Tuned(JointClassifier):
    """A model of logistic regressions with the C that predicts held-out training rows best.

    C is chosen as `TreeClassifier` chooses it, for single labels without parents: from .001, .003, ..., 100
    by three folds of the training rows. It is kept on disk for each set of rows, since all models share it.

    Parameters
    ----------
    model : JointClassifier
        With a parameter `estimator` for a logistic regression, or `C`.
    """

    def __init__(self, model: Any, random_state: Any = None) -> None:
        self.model = model
        self.random_state = random_state

    def _fit(self, X: Any, codes: Any, sample_weight: Any) -> None:
        C = MEMORY.cache(choose)(X, codes)
        model = clone(self.model)
        known = model.get_params(deep=False)
        if "estimator" in known:
            model.set_params(estimator=default_estimator().set_params(ridgelogistic__C=C))
        else:
            model.set_params(C=C)
        if "random_state" in known:
            model.set_params(random_state=self.random_state)
        self.model_ = model.fit(X, codes)
        self.space_ = self.model_.space_

    def _predict_joint(self, X: Any) -> Any:
        return self.model_.predict_joint(X).distribution


def choose(X: Any, codes: Any) -> float:
    """Return the best C of independent logistic regressions."""
    return TreeClassifier(structure=()).fit(X, codes).C_
