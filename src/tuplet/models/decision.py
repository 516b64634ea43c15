"""A model and a loss as one estimator."""

from __future__ import annotations

from typing import Any, Self, final

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from tuplet.core.parameters import Having, check_parameters, declare
from tuplet.losses.base import Loss
from tuplet.losses.registry import get_loss
from tuplet.metrics.decisions import exact_match
from tuplet.models.files_and_pages import SavedAndReported
from tuplet.prediction.joint import JointPrediction

_SHARED = (
    "space_",
    "classes_",
    "n_features_in_",
    "feature_names_in_",
    "n_samples_fit_",
    "label_counts_",
)
"""Attributes of the fitted model that are attributes of the classifier, too."""


@final
class DecisionClassifier(SavedAndReported, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A model whose `predict` decides under a loss of your choice, for pipelines and searches.

    Parameters
    ----------
    estimator : JointClassifier
        Cloned, then fitted.
    loss : str or Loss
        "hamming", "subset", "f1", ... or a `Loss`; what `predict` minimises the expectation of.

    Attributes
    ----------
    estimator_ : JointClassifier
        The fitted model; its `space_`, `classes_`, `n_features_in_` and `feature_names_in_` are also here.

    Examples
    --------
    >>> from tuplet.models import ChainClassifier
    >>> X, y = [[0], [1], [2], [3]] * 5, [[0, 1], [0, 1], [1, 0], [1, 1]] * 5
    >>> DecisionClassifier(ChainClassifier(), loss="subset").fit(X, y).predict([[3]])
    array([[1, 1]])
    """

    _parameters = declare(
        estimator=Having("a model with predict_joint, such as IndependentClassifier(...)", "predict_joint"),
        loss=object,
    )

    def __init__(self, estimator: Any, loss: str | Loss = "hamming") -> None:
        self.estimator = estimator
        self.loss = loss

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the model. See `JointClassifier.fit`."""
        check_parameters(self)
        get_loss(self.loss)
        given = {} if groups is None else {"groups": groups}  # other models may have no parameter groups
        self.estimator_ = clone(self.estimator).fit(X, y, sample_weight, **given)
        for name in _SHARED:
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict_joint(self, X: Any) -> JointPrediction:
        """See `JointClassifier.predict_joint`."""
        check_is_fitted(self)
        return self.estimator_.predict_joint(X)

    def predict(self, X: Any) -> Any:
        """Labels with the least expected loss."""
        prediction = self.predict_joint(X)
        return prediction.space.decode(prediction._decide(self.loss, "predict"), prediction.index)

    def predict_proba(self, X: Any) -> Any:
        """See `JointClassifier.predict_proba`."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def predict_log_proba(self, X: Any) -> Any:
        """See `JointClassifier.predict_log_proba`."""
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows in which the decision has every label right. See `JointClassifier.score`."""
        answer = self.predict(X)
        return exact_match(y, answer, sample_weight=sample_weight, space=self.space_)

    def report(
        self,
        path: Any,
        X: Any = None,
        Y: Any = None,
        *,
        title: str | None = None,
        n_examples: int = 5,
        loss: str | Loss | None = None,
    ) -> None:
        """Write one page of HTML about the fitted model; by default for its own loss.

        See `JointClassifier.report`.
        """
        chosen = self.loss if loss is None else loss
        super().report(path, X, Y, title=title, n_examples=n_examples, loss=chosen)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self.estimator)
            tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
            tags.classifier_tags = inner.classifier_tags or tags.classifier_tags
        return tags
