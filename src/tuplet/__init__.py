"""Probabilistic multi-dimensional classification: several categorical variables, predicted together.

A model maps X to a joint distribution. A loss maps a joint distribution to a decision. Nothing else connects
them.

>>> import tuplet
>>> X, Y = tuplet.load_penguins(return_X_y=True)
>>> model = tuplet.ChainClassifier().fit(X[:300], Y[:300])
>>> prediction = model.predict_joint(X[300:])
>>> prediction.given(sex="female").mode().shape
(44, 3)
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

from tuplet import datasets, joint, losses, metrics
from tuplet.datasets import (
    list_datasets,
    load_dataset,
    load_penguins,
    read_chunks,
    read_svmlight,
    read_table,
    sample_mdc_problem,
    write_arff,
    write_parquet,
)
from tuplet.exceptions import TupletError, TupletWarning
from tuplet.local import MixedNaiveBayes, TemperatureScaled, default_estimator
from tuplet.models import (
    AutoJointClassifier,
    BayesNetClassifier,
    ChainClassifier,
    DecisionClassifier,
    GenerativeBayesNetClassifier,
    IndependentClassifier,
    InformationGainFilter,
    InstanceLogisticClassifier,
    JointClassifier,
    JointStackingClassifier,
    MixtureClassifier,
    NeighborClassifier,
    OutputCodingClassifier,
    PowersetClassifier,
    PriorClassifier,
    ProbitClassifier,
    ProbitForestClassifier,
    RandomFieldClassifier,
    RuleModel,
    RuleStackingClassifier,
    SharedForestClassifier,
    StackedFeaturesClassifier,
    TreeClassifier,
    TreeEnsembleClassifier,
    TreeMixtureClassifier,
    WeightedStackingClassifier,
)
from tuplet.persistence import load_model, read_header, save_model
from tuplet.prediction import JointPrediction
from tuplet.rules import NoisyOr, Rule, RuleSet
from tuplet.space import ClassSpace
from tuplet.typing import UNKNOWN

__version__ = version("tuplet")

__all__ = [
    "UNKNOWN",
    "AutoJointClassifier",
    "BayesNetClassifier",
    "ChainClassifier",
    "ClassSpace",
    "DecisionClassifier",
    "GenerativeBayesNetClassifier",
    "IndependentClassifier",
    "InformationGainFilter",
    "InstanceLogisticClassifier",
    "JointClassifier",
    "JointPrediction",
    "JointStackingClassifier",
    "MixedNaiveBayes",
    "MixtureClassifier",
    "NeighborClassifier",
    "NoisyOr",
    "OutputCodingClassifier",
    "PowersetClassifier",
    "PriorClassifier",
    "ProbitClassifier",
    "ProbitForestClassifier",
    "RandomFieldClassifier",
    "Rule",
    "RuleModel",
    "RuleSet",
    "RuleStackingClassifier",
    "SharedForestClassifier",
    "StackedFeaturesClassifier",
    "TemperatureScaled",
    "TreeClassifier",
    "TreeEnsembleClassifier",
    "TreeMixtureClassifier",
    "TupletError",
    "TupletWarning",
    "WeightedStackingClassifier",
    "datasets",
    "deep",
    "default_estimator",
    "evaluate",
    "joint",
    "list_datasets",
    "load_dataset",
    "load_model",
    "load_penguins",
    "losses",
    "metrics",
    "read_chunks",
    "read_header",
    "read_svmlight",
    "read_table",
    "sample_mdc_problem",
    "save_model",
    "write_arff",
    "write_parquet",
]


def __getattr__(name: str) -> Any:
    # Comparisons bring statistics, peers and pages along, networks torch: who only predicts need not wait.
    if name in ("evaluate", "deep"):
        return import_module(f"tuplet.{name}")
    raise AttributeError(f"module 'tuplet' has no attribute {name!r}")
