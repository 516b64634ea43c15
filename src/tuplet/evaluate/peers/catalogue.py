"""The peers that a comparison should not be without."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tuplet.evaluate.peers.chains import AveragedChains
from tuplet.evaluate.peers.classifier import PeerClassifier


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
        Not fitted. "MLP" and those of scikit-multilearn take binary class variables only, and say so.

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
        # It draws the sets of labels from Python's own generator and knows no seed.
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
