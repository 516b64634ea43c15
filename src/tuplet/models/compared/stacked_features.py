"""Two layers of classifiers: the second uses the predictions of the first for the other variables."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from scipy import sparse

from tuplet.core.parallel import run_many
from tuplet.core.parameters import declare
from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.calibration import SmoothedClassifier
from tuplet.local.cross_fitting import OutOfFold, cross_fit, inner_folds
from tuplet.local.logistic import default_estimator
from tuplet.models.base import JointClassifier
from tuplet.space.features.estimators import admit_columns
from tuplet.space.features.inputs import Features, n_rows, put_beside, take_rows


@final
class StackedFeaturesClassifier(JointClassifier):
    """Classifiers whose inputs are x and the probabilities of the other variables given x: CHF.

    The first layer is one classifier for each class variable; the second is another one for each, whose
    inputs are the features and the predictions of the first layer for the other variables. The paper's name
    is classification with heterogeneous features; stacked binary relevance is another.

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        Any scikit-learn classifier with `predict_proba`, for both layers; `default_estimator()`, imputed and
        standardised logistic regression, if None. In a mapping, variables that are not named get the default.
    n_folds : int
        The probabilities that the second layer learns from are those of classifiers that have not seen the
        row, fitted to all but one of so many folds.
    n_jobs : int, optional
        Fits that run side by side, by joblib.

    Attributes
    ----------
    first_ : list of SmoothedClassifier
        The first layer, fitted to all rows.
    second_ : list of SmoothedClassifier

    Notes
    -----
    p(y | x) is the product of the second layer's p(y_j | x, first layer). Both layers are functions of x
    alone: the second can repair the first, but no label of a row ever depends on another, so this is no
    model of dependence among labels given x.

    References
    ----------
    S. Godbole, S. Sarawagi, Discriminative methods for multi-labeled classification, PAKDD 2004.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]]
    >>> y = [["dry", "hat"]] * 4 + [["wet", "umbrella"]] * 3 + [["wet", "hat"]]
    >>> StackedFeaturesClassifier(n_folds=2).fit(X, y).predict([[0.05], [1.05]])
    array([['dry', 'hat'],
           ['wet', 'umbrella']], dtype='<U8')
    """

    _parameters = declare("estimator n_folds n_jobs")

    def __init__(self, estimator: Any = None, *, n_folds: int = 5, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_folds = n_folds
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        m = len(codes.T)
        self.first_ = self._fit_layer([X] * m, codes, sample_weight)
        held = cross_fit(
            inner_folds(X, codes, sample_weight, self.n_folds, self.space_),
            lambda rows, weights: self._fit_layer([take_rows(X, rows)] * m, codes[rows], weights),
            lambda layer, rows: self._probabilities(layer, [take_rows(X, rows)] * m),
        )
        if not held.predictions:  # of a single row nothing can be held out
            held = OutOfFold(
                np.arange(len(codes)), sample_weight, [self._probabilities(self.first_, [X] * m)]
            )
        outputs = [np.vstack(parts) for parts in zip(*held.predictions, strict=True)]
        inputs = self._inputs(take_rows(X, held.rows), outputs)
        self.second_ = self._fit_layer(inputs, codes[held.rows], held.weights, X)

    def _fit_layer(
        self, inputs: list[Features], codes: Codes, weights: Floats | None, X: Features | None = None
    ) -> list[SmoothedClassifier]:
        """Fit one classifier for each variable; X is what its inputs begin with, where they are wider."""
        tasks = []
        for j, estimator in enumerate(self._estimators(self.space_.names)):
            if estimator is None:
                estimator = default_estimator(sparse=sparse.issparse(inputs[j]))
            if X is not None:
                estimator = admit_columns(estimator, X, inputs[j].shape[1] - X.shape[1])
            tasks.append((estimator, inputs[j], codes[:, j], self.space_.cards[j], weights))
        return run_many(SmoothedClassifier.fit, tasks, self.n_jobs)

    def _probabilities(self, layer: list[SmoothedClassifier], inputs: list[Features]) -> list[Floats]:
        return [np.exp(model.log_proba(each)) for model, each in zip(layer, inputs, strict=True)]

    def _inputs(self, X: Features, outputs: list[Floats]) -> list[Features]:
        """Return the inputs of the second layer: X and the first layer's probabilities of all others."""
        space = self.space_
        columns = [table if table.shape[1] > 2 else table[:, 1:] for table in outputs]  # as in `OneHot`
        names = [
            [f"{name}={label}" for label in labels][len(labels) - table.shape[1] :]
            for name, labels, table in zip(space.names, space.categories, columns, strict=True)
        ]
        answer = []
        for j in range(space.n_variables):
            others = [i for i in range(space.n_variables) if i != j]
            beside = np.hstack([np.zeros((n_rows(X), 0)), *(columns[i] for i in others)])
            answer.append(put_beside(X, beside, [name for i in others for name in names[i]]))
        return answer

    def _predict_joint(self, X: Features) -> JointDistribution:
        inputs = self._inputs(X, self._probabilities(self.first_, [X] * len(self.first_)))
        tables = [model.log_proba(each) for model, each in zip(self.second_, inputs, strict=True)]
        return FactorGraph.independent(tables)
