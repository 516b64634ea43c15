"""scikit-learn's own checks, whole, for every model."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuplet.models import (
    BayesNetClassifier,
    ChainClassifier,
    DecisionClassifier,
    IndependentClassifier,
    InstanceLogisticClassifier,
    NeighborClassifier,
    OutputCodingClassifier,
    PowersetClassifier,
    PriorClassifier,
    RandomFieldClassifier,
    StackedFeaturesClassifier,
)

MODELS = [
    PriorClassifier(),
    PriorClassifier("marginals"),
    IndependentClassifier(),
    PowersetClassifier(),
    ChainClassifier(),
    ChainClassifier(inference="greedy"),
    ChainClassifier(n_chains=3),
    ChainClassifier(n_chains=3, inference="greedy"),
    BayesNetClassifier(),
    NeighborClassifier(),
    InstanceLogisticClassifier(),
    InstanceLogisticClassifier(use_features=True),
    StackedFeaturesClassifier(),
    RandomFieldClassifier(),
    RandomFieldClassifier("tree", pairwise="linear", likelihood="pseudo"),
    OutputCodingClassifier(),
    DecisionClassifier(IndependentClassifier()),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(MODELS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
