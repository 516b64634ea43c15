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

from typing import TYPE_CHECKING, Any

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet import evaluate, io, joint, losses, metrics
    from tuplet.core.exceptions import TupletError, TupletWarning
    from tuplet.core.typing import UNKNOWN
    from tuplet.io import (
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
    from tuplet.io.saved_models import load_model, read_header, save_model
    from tuplet.local import (
        MixedNaiveBayes,
        OrdinalClassifier,
        RidgeLogistic,
        TemperatureScaled,
        default_estimator,
        ordinal_estimator,
    )
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
        JointPipeline,
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
        joint_of,
        make_joint_pipeline,
    )
    from tuplet.models.rules import NoisyOr, Rule, RuleSet
    from tuplet.prediction import JointPrediction
    from tuplet.space import ClassSpace, declare_order
    from tuplet.space.features.encoding import FeatureEncoder

    __version__: str
else:
    _get, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.io": (
                "list_datasets load_dataset load_penguins read_chunks read_svmlight read_table "
                "sample_mdc_problem write_arff write_parquet"
            ),
            "tuplet.core.exceptions": "TupletError TupletWarning",
            "tuplet.local": (
                "MixedNaiveBayes OrdinalClassifier RidgeLogistic TemperatureScaled default_estimator "
                "ordinal_estimator"
            ),
            "tuplet.models": (
                "AutoJointClassifier BayesNetClassifier ChainClassifier DecisionClassifier "
                "GenerativeBayesNetClassifier IndependentClassifier InformationGainFilter "
                "InstanceLogisticClassifier JointClassifier JointPipeline JointStackingClassifier "
                "MixtureClassifier "
                "NeighborClassifier OutputCodingClassifier PowersetClassifier PriorClassifier "
                "ProbitClassifier ProbitForestClassifier RandomFieldClassifier RuleModel "
                "RuleStackingClassifier SharedForestClassifier StackedFeaturesClassifier TreeClassifier "
                "TreeEnsembleClassifier TreeMixtureClassifier WeightedStackingClassifier joint_of "
                "make_joint_pipeline"
            ),
            "tuplet.io.saved_models": "load_model read_header save_model",
            "tuplet.prediction": "JointPrediction",
            "tuplet.models.rules": "NoisyOr Rule RuleSet",
            "tuplet.space": "ClassSpace declare_order",
            "tuplet.space.features.encoding": "FeatureEncoder",
            "tuplet.core.typing": "UNKNOWN",
        },
        modules=(
            "core",
            "evaluate",
            "io",
            "joint",
            "local",
            "losses",
            "metrics",
            "models",
            "structure",
            "surface",
            "testing",
        ),
    )

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("tuplet")
        return _get(name)


__all__ = [
    "UNKNOWN",
    "AutoJointClassifier",
    "BayesNetClassifier",
    "ChainClassifier",
    "ClassSpace",
    "DecisionClassifier",
    "FeatureEncoder",
    "GenerativeBayesNetClassifier",
    "IndependentClassifier",
    "InformationGainFilter",
    "InstanceLogisticClassifier",
    "JointClassifier",
    "JointPipeline",
    "JointPrediction",
    "JointStackingClassifier",
    "MixedNaiveBayes",
    "MixtureClassifier",
    "NeighborClassifier",
    "NoisyOr",
    "OrdinalClassifier",
    "OutputCodingClassifier",
    "PowersetClassifier",
    "PriorClassifier",
    "ProbitClassifier",
    "ProbitForestClassifier",
    "RandomFieldClassifier",
    "RidgeLogistic",
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
    "declare_order",
    "default_estimator",
    "evaluate",
    "io",
    "joint",
    "joint_of",
    "list_datasets",
    "load_dataset",
    "load_model",
    "load_penguins",
    "losses",
    "make_joint_pipeline",
    "metrics",
    "ordinal_estimator",
    "read_chunks",
    "read_header",
    "read_svmlight",
    "read_table",
    "sample_mdc_problem",
    "save_model",
    "write_arff",
    "write_parquet",
]
