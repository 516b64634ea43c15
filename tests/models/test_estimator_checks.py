"""scikit-learn's own checks, whole, for every model."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from all_models import MODELS
from tuplet.models import DecisionClassifier, SharedForestClassifier


def expected_failures(estimator):
    """Return the checks that do not apply.

    Bags draw rows, not weights: a row of weight two is no two rows, as in scikit-learn's own forests. And the
    most probable combination is compared with the most probable labels, which can be others.
    """
    if isinstance(estimator, DecisionClassifier) and estimator.loss == "subset":
        return {"check_classifier_multioutput": "the best combination need not have the best single labels"}
    if not isinstance(estimator, SharedForestClassifier):
        return {}
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": "rows are drawn at random"
        for kind in ("dense", "sparse")
    }


@pytest.mark.filterwarnings("ignore:Probit.*the training rows show one label only")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(list(MODELS.values()), expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
