"""A scikit-learn classifier of several outputs as a model of all class variables."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from sklearn.base import clone

from tuplet.exceptions import InputError
from tuplet.joint import FactorGraph, JointDistribution
from tuplet.local.estimators import name_of, weight_arguments
from tuplet.local.inputs import Features, take_rows
from tuplet.models.base import JointClassifier
from tuplet.typing import UNKNOWN, Codes, Floats


@final
class MultiOutputModel(JointClassifier):
    """One classifier that predicts all class variables at once: a forest, neighbours, a multi-label network.

    It learns from rows whose labels are all known, and its outputs are independent given x. One pseudo-row of
    the training marginal keeps probabilities away from zero, as in `SmoothedClassifier`.

    Parameters
    ----------
    estimator : classifier
        Its `fit` takes codes (n, m), its `predict_proba` returns a list of tables, or a table (n, m) of the
        probabilities that 0/1 labels are 1.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [["a", 0], ["a", 0], ["b", 1], ["b", 1]]
    >>> MultiOutputModel(DecisionTreeClassifier()).fit(X, y).predict([[0.5], [2.5]])
    array([['a', 0],
           ['b', 1]], dtype=object)
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        full = np.flatnonzero((codes != UNKNOWN).all(axis=1))
        if not len(full):
            raise InputError(
                f"{name_of(self.estimator)} predicts all class variables at once and needs rows whose labels"
                " are all known; there is none. Pass one classifier for each class variable."
            )
        some = None if sample_weight is None else sample_weight[full]
        self.model_ = clone(self.estimator)
        target = codes[full] if codes.shape[1] > 1 else codes[full, 0]
        self.model_.fit(take_rows(X, full), target, **weight_arguments(self.model_, some))
        self.counts_ = [
            np.bincount(codes[full, j], some, minlength=card) for j, card in enumerate(self.space_.cards)
        ]

    def _predict_joint(self, X: Features) -> JointDistribution:
        answer = self.model_.predict_proba(X)
        classes = self.model_.classes_
        if not isinstance(answer, list):
            if len(self.counts_) == 1:
                answer, classes = [answer], [classes]
            else:
                answer = [np.column_stack([1 - column, column]) for column in np.asarray(answer).T]
                classes = [np.arange(2)] * len(answer)
        tables = []
        for proba, labels, counts in zip(answer, classes, self.counts_, strict=True):
            total = counts.sum()
            table = np.tile((counts + 1) / (total + len(counts)), (len(proba), 1))
            table[:, np.asarray(labels, dtype=np.intp)] += total * np.asarray(proba)
            tables.append(np.log(table / table.sum(axis=1, keepdims=True)))
        return FactorGraph.independent(tables)
