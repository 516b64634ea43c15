"""Estimators whose parameters name labels are fitted to labels; all others to codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, get_tags

from tuplet.core.typing import Codes, Floats
from tuplet.space.features.inputs import Features

_TREAT_LABELS_ALIKE = ("sklearn", "tuplet", "xgboost", "lightgbm", "catboost", "skorch")
"""Packages whose estimators do the same with any labels, unless their parameters name some. Some of them take
nothing but codes without gaps."""

_NAME_LABELS = frozenset(
    {"class_weight", "class_prior", "classes", "labels", "pos_label", "priors", "sampling_strategy"}
)
"""Parameters that name labels, or list something for each label in the order of these."""


@final
class LabelledClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of codes with an estimator that is fitted to the labels which the codes stand for.

    Parameters
    ----------
    estimator : classifier
    labels : array, shape (k,)
        Of the codes 0 to k - 1.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to labels.
    classes_ : int array, shape (c,)
        Codes in the training rows, one for each column of `predict_proba`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> weighted = LogisticRegression(class_weight={"rare": 9, "usual": 1})
    >>> model = LabelledClassifier(weighted, np.array(["usual", "rare"]))
    >>> model = model.fit([[0.0], [0.1], [1.0]], [0, 0, 1])
    >>> model.estimator_.predict([[0.9]]), model.predict([[0.9]])
    (array(['rare'], dtype='<U5'), array([1]))
    """

    def __init__(self, estimator: Any, labels: npt.NDArray[Any]) -> None:
        self.estimator = estimator
        self.labels = labels

    def fit(self, X: Features, y: Codes, **arguments: Any) -> Self:
        """Fit a clone of the estimator to the labels of codes y (n,)."""
        self.classes_ = np.unique(y)
        self.estimator_ = clone(self.estimator).fit(X, self.labels[np.asarray(y)], **arguments)
        columns = {label: j for j, label in enumerate(np.asarray(self.estimator_.classes_).tolist())}
        self._columns = np.array([columns[label] for label in self.labels[self.classes_].tolist()])
        return self

    def predict_proba(self, X: Features) -> Floats:
        """Probabilities (n, c) of the classes."""
        return np.asarray(self.estimator_.predict_proba(X), dtype=float)[:, self._columns]

    def predict(self, X: Features) -> Codes:
        """Most probable code (n,) of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def among(self, classes: Codes) -> LabelledClassifier:
        """Return the same for labels of which some are left, renumbered without gaps."""
        return LabelledClassifier(self.estimator, self.labels[classes])

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.estimator)


def fitted_to_labels(estimator: Any, labels: npt.NDArray[Any]) -> Any:
    """Return an estimator of codes that means by its parameters what they mean for labels (k,)."""
    if estimator is None or not is_about_labels(estimator, labels.tolist()):
        return estimator
    return LabelledClassifier(estimator, labels)


def is_about_labels(estimator: Any, labels: Iterable[Any]) -> bool:
    """Return whether codes in the place of labels might change what an estimator learns."""
    if not hasattr(estimator, "get_params"):
        return True
    parts = [estimator, *(value for value in estimator.get_params().values() if hasattr(value, "fit"))]
    return any(_package(part) not in _TREAT_LABELS_ALIKE for part in parts) or bool(
        labels_named(estimator, labels)
    )


def labels_named(estimator: Any, labels: Iterable[Any]) -> str:
    """Return the first parameter of an estimator, or of its parts, that names labels; "" if there is none."""
    if not hasattr(estimator, "get_params"):
        return ""
    known, settings = set(labels), estimator.get_params()
    short = ((name.rpartition("__")[2], value) for name, value in settings.items())
    return next((name for name, value in short if _names_labels(name, value, known)), "")


def _package(estimator: Any) -> str:
    return type(estimator).__module__.partition(".")[0]


def _names_labels(name: str, value: Any, labels: set[Any]) -> bool:
    if isinstance(value, Mapping) and labels & set(value):
        return True
    return name in _NAME_LABELS and value is not None and (name == "pos_label" or not isinstance(value, str))


def among(estimator: Any, classes: Codes) -> Any:
    """Return an estimator for codes of which some are left, renumbered without gaps."""
    return estimator.among(classes) if isinstance(estimator, LabelledClassifier) else estimator


def without_labels(estimator: Any) -> Any:
    """Return the estimator inside of a `LabelledClassifier`, or the estimator itself."""
    return estimator.estimator if isinstance(estimator, LabelledClassifier) else estimator
