"""Models: X in, a joint distribution of the class variables out.

`JointClassifier` is the contract; each model is one file, or one folder with its relatives. `compared` has
methods that the papers compare theirs with. `DecisionClassifier` ties a model to a loss, `JointPipeline` to
steps before it.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.models.base import JointClassifier
    from tuplet.models.bayesnet import BayesNetClassifier
    from tuplet.models.chain import ChainClassifier
    from tuplet.models.compared import (
        InstanceLogisticClassifier,
        OutputCodingClassifier,
        StackedFeaturesClassifier,
        WeightedStackingClassifier,
    )
    from tuplet.models.decision import DecisionClassifier
    from tuplet.models.explanation import LocalNetwork
    from tuplet.models.generative import GenerativeBayesNetClassifier, InformationGainFilter
    from tuplet.models.independent import IndependentClassifier
    from tuplet.models.mixtures import MixtureClassifier
    from tuplet.models.neighbors import NeighborClassifier
    from tuplet.models.pipeline import JointPipeline, joint_of, make_joint_pipeline
    from tuplet.models.powerset import PowersetClassifier
    from tuplet.models.prior import PriorClassifier
    from tuplet.models.probit import ProbitClassifier, ProbitForestClassifier
    from tuplet.models.random_field import RandomFieldClassifier
    from tuplet.models.rules import RuleModel, RuleStackingClassifier
    from tuplet.models.shared_forest import SharedForestClassifier
    from tuplet.models.stacking import AutoJointClassifier, JointStackingClassifier
    from tuplet.models.trees import TreeClassifier, TreeEnsembleClassifier, TreeMixtureClassifier
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.models.base": "JointClassifier",
            "tuplet.models.bayesnet": "BayesNetClassifier",
            "tuplet.models.chain": "ChainClassifier",
            "tuplet.models.compared": (
                "InstanceLogisticClassifier OutputCodingClassifier StackedFeaturesClassifier"
                " WeightedStackingClassifier"
            ),
            "tuplet.models.decision": "DecisionClassifier",
            "tuplet.models.explanation": "LocalNetwork",
            "tuplet.models.generative": "GenerativeBayesNetClassifier InformationGainFilter",
            "tuplet.models.independent": "IndependentClassifier",
            "tuplet.models.mixtures": "MixtureClassifier",
            "tuplet.models.neighbors": "NeighborClassifier",
            "tuplet.models.pipeline": "JointPipeline joint_of make_joint_pipeline",
            "tuplet.models.powerset": "PowersetClassifier",
            "tuplet.models.prior": "PriorClassifier",
            "tuplet.models.probit": "ProbitClassifier ProbitForestClassifier",
            "tuplet.models.random_field": "RandomFieldClassifier",
            "tuplet.models.rules": "RuleModel RuleStackingClassifier",
            "tuplet.models.shared_forest": "SharedForestClassifier",
            "tuplet.models.stacking": "AutoJointClassifier JointStackingClassifier",
            "tuplet.models.trees": "TreeClassifier TreeEnsembleClassifier TreeMixtureClassifier",
        },
    )

__all__ = [
    "AutoJointClassifier",
    "BayesNetClassifier",
    "ChainClassifier",
    "DecisionClassifier",
    "GenerativeBayesNetClassifier",
    "IndependentClassifier",
    "InformationGainFilter",
    "InstanceLogisticClassifier",
    "JointClassifier",
    "JointPipeline",
    "JointStackingClassifier",
    "LocalNetwork",
    "MixtureClassifier",
    "NeighborClassifier",
    "OutputCodingClassifier",
    "PowersetClassifier",
    "PriorClassifier",
    "ProbitClassifier",
    "ProbitForestClassifier",
    "RandomFieldClassifier",
    "RuleModel",
    "RuleStackingClassifier",
    "SharedForestClassifier",
    "StackedFeaturesClassifier",
    "TreeClassifier",
    "TreeEnsembleClassifier",
    "TreeMixtureClassifier",
    "WeightedStackingClassifier",
    "joint_of",
    "make_joint_pipeline",
]
