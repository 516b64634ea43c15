"""Models: X in, a joint distribution of the class variables out.

`JointClassifier` is the contract; each model is one file. `DecisionClassifier` ties a model to a loss.
"""

from tuplet.models.base import JointClassifier
from tuplet.models.chain import ChainClassifier
from tuplet.models.decision import DecisionClassifier
from tuplet.models.independent import IndependentClassifier
from tuplet.models.powerset import PowersetClassifier
from tuplet.models.prior import PriorClassifier

__all__ = [
    "ChainClassifier",
    "DecisionClassifier",
    "IndependentClassifier",
    "JointClassifier",
    "PowersetClassifier",
    "PriorClassifier",
]
