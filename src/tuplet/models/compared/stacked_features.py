"""Two layers of classifiers: the second uses the predictions of the first for the other variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from scipy import sparse

from tuplet.core.parallel import run_many
from tuplet.core.parameters import declare
from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.calibration import SmoothedClassifier
from tuplet.local.cross_fitting import Positions, cross_fit, inner_folds
from tuplet.local.logistic import default_estimator
from tuplet.models.base import JointClassifier
from tuplet.models.independent import IndependentClassifier
from tuplet.space.features.admit import admit_columns
from tuplet.space.features.encoding import ColumnChoices
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
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    n_jobs : int, optional
        Fits that run side by side, by joblib.

    Attributes
    ----------
    first_ : IndependentClassifier
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
    >>> X = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]] * 2
    >>> y = ([["dry", "hat"]] * 4 + [["wet", "umbrella"]] * 3 + [["wet", "hat"]]) * 2
    >>> StackedFeaturesClassifier(n_folds=2).fit(X, y).predict([[0.05], [1.05]])
    array([['dry', 'hat'],
           ['wet', 'umbrella']], dtype='<U8')
    """

    _parameters = declare("columns estimator n_folds n_jobs")

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_folds: int = 5,
        columns: ColumnChoices = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_folds = n_folds
        self.columns = columns
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        self.first_ = self._first(X, codes, sample_weight, self._groups)
        rows, weights, outputs = self._held_out(X, codes, sample_weight)
        groups = None if self._groups is None else self._groups[rows]
        self.second_ = self._fit_second(take_rows(X, rows), outputs, codes[rows], weights, groups)

    def _held_out(
        self, X: Features, codes: Codes, sample_weight: Floats | None
    ) -> tuple[Positions, Floats | None, list[Floats]]:
        """Return rows (r,), their weights, and the first layer's probabilities of each variable for them."""
        groups = self._groups
        held = cross_fit(
            inner_folds(X, codes, sample_weight, self.n_folds, self.space_, groups=groups),
            lambda rows, weights: self._first(
                take_rows(X, rows), codes[rows], weights, None if groups is None else groups[rows]
            ),
            lambda layer, rows: _outputs(layer, take_rows(X, rows)),
        )
        if not held.predictions:  # of a single row nothing can be held out
            return np.arange(len(codes)), sample_weight, _outputs(self.first_, X)
        outputs = [np.vstack(parts) for parts in zip(*held.predictions, strict=True)]
        return held.rows, held.weights, outputs

    def _first(
        self, X: Features, codes: Codes, weights: Floats | None, groups: Codes | None
    ) -> IndependentClassifier:
        model = IndependentClassifier(self.estimator, n_jobs=self.n_jobs)
        return model._fit_codes(X, self.space_, codes, weights, groups)

    def _fit_second(
        self,
        X: Features,
        outputs: list[Floats],
        codes: Codes,
        weights: Floats | None,
        groups: Codes | None,
    ) -> list[SmoothedClassifier]:
        """Fit one classifier for each variable to X and the first layer's probabilities of the others."""
        estimators = self._estimators(self.space_.names)
        tasks = [
            (estimator, X, *beside, codes[:, j], card, weights, groups)
            for j, (estimator, beside, card) in enumerate(
                zip(estimators, self._beside(outputs), self.space_.cards, strict=True)
            )
        ]
        return run_many(_fit_wide, tasks, self.n_jobs)

    def _beside(self, outputs: Sequence[Floats]) -> list[tuple[list[Floats], list[str]]]:
        """Return, for each variable, the columns of the others' probabilities, and their names."""
        space = self.space_
        names = [
            [f"{name}={label}" for label in labels][len(labels) - table.shape[1] :]
            for name, labels, table in zip(space.names, space.categories, outputs, strict=True)
        ]
        others = [[i for i in range(space.n_variables) if i != j] for j in range(space.n_variables)]
        return [([outputs[i] for i in rest], [name for i in rest for name in names[i]]) for rest in others]

    def _predict_joint(self, X: Features) -> JointDistribution:
        beside = self._beside(_outputs(self.first_, X))
        return FactorGraph.independent(
            [model.log_proba(_wide(X, *each)) for model, each in zip(self.second_, beside, strict=True)]
        )


def _outputs(layer: IndependentClassifier, X: Features) -> list[Floats]:
    """Return the first layer's probabilities (n, k_j) of each variable, (n, 1) of a binary one."""
    tables = layer._joint_of(X).marginals()
    return [table if table.shape[1] > 2 else table[:, 1:].copy() for table in tables]  # as in `OneHot`


def _wide(X: Features, tables: Sequence[Floats], names: Sequence[str]) -> Features:
    """Return the inputs of a classifier of the second layer: X with columns beside it."""
    return put_beside(X, np.hstack([np.zeros((n_rows(X), 0)), *tables]), names)


def _fit_wide(
    estimator: Any,
    X: Features,
    tables: Sequence[Floats],
    names: Sequence[str],
    child: Codes,
    card: int,
    weights: Floats | None,
    groups: Codes | None,
) -> SmoothedClassifier:
    """Fit a classifier of the second layer. Its inputs are made here: those of one variable at a time."""
    inputs = _wide(X, tables, names)
    if estimator is None:
        estimator = default_estimator(sparse=sparse.issparse(X))
    estimator = admit_columns(estimator, X, inputs.shape[1] - X.shape[1])
    return SmoothedClassifier.fit(estimator, inputs, child, card, weights, groups)
