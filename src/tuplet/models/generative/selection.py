"""Selection of the features with the largest information gain for some class variable."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tuplet.core.exceptions import InputError
from tuplet.core.parameters import Whole, check_parameters, declare
from tuplet.models.generative.networks.scores import CountScorer
from tuplet.models.generative.tables import beside
from tuplet.space.classes import ClassSpace
from tuplet.space.features.discrete import DiscreteColumns
from tuplet.space.features.encoding import validated_columns


@final
class InformationGainFilter(TransformerMixin, BaseEstimator):
    """Keep the features with the largest information gain for each class variable.

    What is kept is the union over the class variables of their best features. In a pipeline before a model
    it is fitted to the training rows alone.

    Parameters
    ----------
    n_per_class : int
        Features that each class variable chooses. Of equally good ones the first is taken; one without
        any gain is never chosen, unless there is nothing else.
    n_bins : int
        Numbers are cut into so many bins at most, as `GenerativeBayesNetClassifier` does.

    Attributes
    ----------
    support_ : array of bool, shape (d,)
        Which features are kept.
    gains_ : array, shape (m, d)
        Information gain of each feature for each class variable, in nats; rows in which either is missing
        do not count.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a frame.

    References
    ----------
    Learning tractable multidimensional Bayesian network classifiers; section 4.

    Examples
    --------
    >>> X = pd.DataFrame({"noise": [0, 1, 0, 1], "signal": ["a", "a", "b", "b"]})
    >>> InformationGainFilter(1).fit_transform(X, ["no", "no", "yes", "yes"]).columns.tolist()
    ['signal']
    """

    _parameters = declare("n_bins", n_per_class=Whole(at_least=1))

    def __init__(self, n_per_class: int = 2, *, n_bins: int = 5) -> None:
        self.n_per_class = n_per_class
        self.n_bins = n_bins

    def fit(self, X: Any, y: Any) -> Self:
        """Learn which features to keep from X (n, d) and labels y (n, m)."""
        check_parameters(self)
        if y is None:
            raise InputError("InformationGainFilter requires y to be passed, but the target y is None.")
        X = validated_columns(self, X, reset=True)
        space = ClassSpace.from_labels(y)
        labels = space.encode(y)
        if len(labels) != len(X):
            raise InputError(f"X has {len(X)} rows, but y has {len(labels)}; they must be the same rows.")
        columns = DiscreteColumns.learn(X, [str(j) for j in range(X.shape[1])], self.n_bins)
        codes = beside(labels, columns.codes(X))
        m, d = space.n_variables, X.shape[1]
        scorer = CountScorer(codes, (*space.cards, *columns.cards), m, criterion="likelihood")
        features = range(m, m + d)
        self.gains_ = np.array([scorer.gains(c, (), features)[m:] for c in range(m)]) / len(codes)
        self.support_ = np.zeros(d, dtype=bool)
        for gains in self.gains_:
            best = np.argsort(-gains, kind="stable")[: self.n_per_class]
            self.support_[best[gains[best] > 0]] = True
        if not self.support_.any():
            self.support_[0] = True  # a model needs a feature
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of X that are kept, in the same container."""
        check_is_fitted(self)
        X = validated_columns(self, X, reset=False)
        return X.iloc[:, self.support_] if isinstance(X, pd.DataFrame) else X[:, self.support_]

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the columns that are kept."""
        check_is_fitted(self)
        names = input_features
        if names is None:
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return np.asarray(names, dtype=object)[self.support_]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
