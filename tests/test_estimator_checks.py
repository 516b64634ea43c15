"""scikit-learn's own checks, whole, for every model."""

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuplet.models import (
    AutoJointClassifier,
    BayesNetClassifier,
    ChainClassifier,
    DecisionClassifier,
    GenerativeBayesNetClassifier,
    IndependentClassifier,
    InstanceLogisticClassifier,
    JointStackingClassifier,
    MixtureClassifier,
    NeighborClassifier,
    OutputCodingClassifier,
    PowersetClassifier,
    PriorClassifier,
    ProbitClassifier,
    ProbitForestClassifier,
    RandomFieldClassifier,
    RuleStackingClassifier,
    SharedForestClassifier,
    StackedFeaturesClassifier,
    TreeClassifier,
    TreeEnsembleClassifier,
    TreeMixtureClassifier,
    WeightedStackingClassifier,
)

MODELS = [
    PriorClassifier(),
    PriorClassifier("marginals"),
    IndependentClassifier(),
    PowersetClassifier(),
    ChainClassifier(),
    ChainClassifier(n_chains=2, inference="greedy"),
    BayesNetClassifier(),
    GenerativeBayesNetClassifier(random_state=0),
    GenerativeBayesNetClassifier("small-tw", feature_forest=True),
    NeighborClassifier(),
    InstanceLogisticClassifier(),
    InstanceLogisticClassifier(use_features=True),
    SharedForestClassifier(RandomForestClassifier(10), random_state=0),
    StackedFeaturesClassifier(n_folds=2),
    RandomFieldClassifier(),
    RandomFieldClassifier("tree", pairwise="linear", likelihood="pseudo"),
    OutputCodingClassifier(),
    TreeClassifier(),
    TreeClassifier(LogisticRegression()),
    TreeEnsembleClassifier(n_trees=3, random_state=0),
    TreeMixtureClassifier(random_state=0),
    MixtureClassifier(IndependentClassifier(), n_components=2, max_iter=3, random_state=0),
    JointStackingClassifier([IndependentClassifier(), PowersetClassifier()], cv=2),
    RuleStackingClassifier(max_rules=1, n_folds=2, random_state=0, progress=False),
    WeightedStackingClassifier(n_folds=2),
    AutoJointClassifier(time_budget=0.5),
    ProbitClassifier(n_burn=40, n_draws=30, thin=1, n_chains=1, random_state=0),
    ProbitForestClassifier(5, n_burn=40, n_draws=30, thin=1, n_chains=1, random_state=0),
    DecisionClassifier(IndependentClassifier()),
]


def expected_failures(estimator):
    """Bags draw rows, not weights: a row of weight two is no two rows, as in scikit-learn's own forests."""
    if not isinstance(estimator, SharedForestClassifier):
        return {}
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": "rows are drawn at random"
        for kind in ("dense", "sparse")
    }


@pytest.mark.filterwarnings("ignore:Probit.*the training rows show one label only")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(MODELS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
