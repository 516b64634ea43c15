"""scikit-learn's classifier chains: probabilities for any number of categories, and a mean of several."""

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
from sklearn.utils.validation import check_array, check_is_fitted

from tuplet.exceptions import InputError
from tuplet.local.estimators import accepts
from tuplet.local.inputs import n_rows, put_beside
from tuplet.typing import Floats


def chain_probabilities(chain: ClassifierChain, X: Any) -> list[Floats]:
    """Probabilities (n, c_j) that a fitted chain gives to the labels of each variable, along its own answers.

    `ClassifierChain.predict_proba` has one column per variable, the probability of the second label, and so
    fails for variables with more than two. This walks the chain as it does: each link is asked given x and
    the answers (`predict`) of the links before it.

    The tables are therefore p(y_j | x, the chain's own greedy answers before j). Their product is the
    chain's joint probability for the greedy answer alone; for other combinations it is not, and it is no
    product of marginals either. It is what a user gets who multiplies the chain's probabilities.

    Parameters
    ----------
    chain : ClassifierChain
        Fitted, with the default `chain_method`.
    X : array or sparse matrix, shape (n, d)

    Returns
    -------
    list of arrays, shape (n, c_j)
        In the order of the columns of Y.
    """
    X = check_array(X, accept_sparse="csr", ensure_all_finite=False)
    answers = np.empty((n_rows(X), 0))
    tables = {}
    for variable, link in zip(chain.order_, chain.estimators_, strict=True):
        inputs = put_beside(X, answers, ())
        tables[variable] = np.asarray(link.predict_proba(inputs), dtype=float)
        answers = np.column_stack([answers, link.predict(inputs)])
    return [tables[variable] for variable in range(len(tables))]


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
        first = self.chains_[0]
        by_variable = dict(zip(first.order_.tolist(), first.classes_, strict=True))
        self.classes_ = [by_variable[j] for j in range(len(by_variable))]
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
