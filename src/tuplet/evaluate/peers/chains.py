"""The mean of several classifier chains of scikit-learn."""

from __future__ import annotations

from typing import Any, Self, cast, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.local.multi_output import chain_probabilities, output_labels
from tuplet.space.features.estimators import accepts


@final
class AveragedChains(ClassifierMixin, BaseEstimator):
    """The mean of several randomly ordered `ClassifierChain`s, as scikit-learn's documentation recommends.

    Parameters
    ----------
    n_chains : int
    estimator : classifier, optional
        For the links; standardised logistic regression if None.
    random_state : int
        Chain i is `ClassifierChain(estimator, order="random", random_state=random_state + i)`, as in the
        recipe.

    Attributes
    ----------
    chains_ : list of ClassifierChain
    classes_ : list of arrays
        Labels of each column of Y.

    Examples
    --------
    >>> X, Y = [[0.0], [0.1], [1.0], [1.1]], [[0, 2], [0, 1], [1, 0], [1, 0]]
    >>> chains = AveragedChains(n_chains=3).fit(X, Y)
    >>> chains.predict([[1.0]])
    array([[1, 0]])
    >>> [table.shape for table in chains.predict_proba([[1.0]])]
    [(1, 2), (1, 3)]
    """

    def __init__(self, n_chains: int = 10, estimator: Any = None, random_state: int = 0) -> None:
        self.n_chains = n_chains
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Fit the chains to X (n, d) and integer labels Y (n, m)."""
        if self.n_chains < 1:
            raise InputError(f"AveragedChains: n_chains must be a positive integer, found {self.n_chains}.")
        link = self._link()
        self.chains_ = [
            ClassifierChain(link, order="random", random_state=self.random_state + i).fit(X, Y)
            for i in range(self.n_chains)
        ]
        self.n_features_in_ = self.chains_[0].n_features_in_
        self.classes_ = output_labels(self.chains_[0], len(self.chains_[0].order_))
        return self

    def predict_proba(self, X: Any) -> list[Floats]:
        """Mean over the chains of their probabilities: a list of arrays (n, c_j)."""
        check_is_fitted(self)
        tables = [chain_probabilities(chain, X) for chain in self.chains_]
        return [cast(Floats, np.mean(same, axis=0)) for same in zip(*tables, strict=True)]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Label (n, m) with the largest mean probability, variable by variable."""
        tables = self.predict_proba(X)
        return np.column_stack(
            [labels[table.argmax(axis=1)] for labels, table in zip(self.classes_, tables, strict=True)]
        )

    def _link(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = accepts(self._link(), "sparse")
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.classifier_tags.multi_label = True
        return tags
