"""The peers of a comparison by default, and averaged chains, which scikit-learn does not have."""

from __future__ import annotations

from typing import Any, Self, cast, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tuplet.core.parameters import Whole, check_parameters, declare
from tuplet.core.typing import Floats
from tuplet.evaluate.peers.classifier import PeerClassifier
from tuplet.local.multi_output import chain_probabilities, output_labels
from tuplet.space.features.estimators import accepts


def default_peers(
    *, n_jobs: int | None = None, random_state: int = 0, optional: bool = True
) -> dict[str, PeerClassifier]:
    """What users would pick, with the settings that they would leave alone.

    Parameters
    ----------
    n_jobs : int, optional
        Threads or processes of the peers that can use several.
    random_state : int
        For all of them.
    optional : bool
        Whether to add those of scikit-multilearn-ng, CatBoost and XGBoost, as far as these are installed.

    Returns
    -------
    dict of str to PeerClassifier
        Not fitted. "MLP" and those of scikit-multilearn take binary class variables only.

    Examples
    --------
    >>> for name in default_peers(optional=False):
    ...     print(name)
    MultiOutput(logistic)
    ClassifierChain(logistic)
    10 averaged chains
    ClassifierChain(forest)
    RandomForest
    ExtraTrees
    kNN
    MLP
    """
    forest = RandomForestClassifier(random_state=random_state, n_jobs=n_jobs)
    peers = {
        "MultiOutput(logistic)": PeerClassifier(MultiOutputClassifier(_logistic(), n_jobs=n_jobs)),
        "ClassifierChain(logistic)": PeerClassifier(_scaled(ClassifierChain(_plain_logistic()))),
        "10 averaged chains": PeerClassifier(
            _scaled(AveragedChains(estimator=_plain_logistic(), random_state=random_state))
        ),
        "ClassifierChain(forest)": PeerClassifier(ClassifierChain(forest)),
        "RandomForest": PeerClassifier(forest),
        "ExtraTrees": PeerClassifier(ExtraTreesClassifier(random_state=random_state, n_jobs=n_jobs)),
        "kNN": PeerClassifier(_scaled(KNeighborsClassifier(n_jobs=n_jobs))),
        "MLP": PeerClassifier(
            _scaled(MLPClassifier(random_state=random_state)),
            multiclass=None,
        ),
    }
    if optional:
        peers |= _multilearn(n_jobs, random_state) | _catboost(n_jobs, random_state)
        peers |= _xgboost(n_jobs, random_state)
    return peers


def _scaled(classifier: Any) -> Any:
    return make_pipeline(StandardScaler(), classifier)


def _plain_logistic() -> Any:
    return LogisticRegression(max_iter=1000)


def _logistic() -> Any:
    return _scaled(_plain_logistic())


def _multilearn(n_jobs: int | None, random_state: int) -> dict[str, PeerClassifier]:
    """Return what works of scikit-multilearn with probabilities.

    Left out: RAkELo and BRkNN have no working `predict_proba`, the probabilistic chain gives those of its own
    answers instead of those of the labels, and binary relevance and chains are scikit-learn's over again.
    """
    try:
        from skmultilearn.adapt import MLkNN
        from skmultilearn.ensemble import RakelD
        from skmultilearn.problem_transform import LabelPowerset
    except ImportError:
        return {}
    forest = RandomForestClassifier(random_state=random_state, n_jobs=n_jobs)
    return {
        "MLkNN": PeerClassifier(_scaled(MLkNN(n_jobs=n_jobs)), multiclass=None),
        "LabelPowerset(logistic)": PeerClassifier(LabelPowerset(_logistic()), multiclass=None),
        "LabelPowerset(forest)": PeerClassifier(LabelPowerset(forest), multiclass=None),
        # It draws the sets of labels from Python's own generator and has no parameter for a seed.
        "RAkELd(logistic)": PeerClassifier(RakelD(_logistic()), multiclass=None, random_state=random_state),
    }


def _catboost(n_jobs: int | None, random_state: int) -> dict[str, PeerClassifier]:
    try:
        from catboost import CatBoostClassifier
    except ImportError:
        return {}
    settings: dict[str, Any] = {
        "random_seed": random_state,
        "thread_count": n_jobs or 1,
        "verbose": False,
        "allow_writing_files": False,
    }
    return {
        "CatBoost": PeerClassifier(
            CatBoostClassifier(loss_function="MultiLogloss", **settings),
            multiclass=MultiOutputClassifier(CatBoostClassifier(**settings)),
        )
    }


def _xgboost(n_jobs: int | None, random_state: int) -> dict[str, PeerClassifier]:
    try:
        from xgboost import XGBClassifier
    except ImportError:
        return {}
    booster = XGBClassifier(random_state=random_state, n_jobs=n_jobs or 1)
    return {"XGBoost": PeerClassifier(booster, multiclass=MultiOutputClassifier(booster))}


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

    _parameters = declare("n_chains estimator", random_state=Whole(at_least=0))

    def __init__(self, n_chains: int = 10, estimator: Any = None, random_state: int = 0) -> None:
        self.n_chains = n_chains
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Fit the chains to X (n, d) and integer labels Y (n, m)."""
        check_parameters(self)
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
