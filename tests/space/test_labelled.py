"""Parameters of estimators that name labels refer to the labels of the user."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    IndependentClassifier,
    InstanceLogisticClassifier,
    MixtureClassifier,
    PowersetClassifier,
    RuleStackingClassifier,
    SharedForestClassifier,
    StackedFeaturesClassifier,
    TreeClassifier,
    TreeEnsembleClassifier,
    WeightedStackingClassifier,
    load_model,
    save_model,
)
from tuplet.core.exceptions import InputError
from tuplet.local.smoothing import smoothed_frequencies
from tuplet.space.features.labelled import LabelledClassifier, fitted_to_labels

LABELS = {
    "text": ["no", "yes", "perhaps"],
    "integers": [1, 2, 7],
    "booleans": [False, True],
    "floats": [0.0, -1.0, 2.0],
    "ordered": ["low", "middle", "high"],
}


def labelled(kind, codes, labels):
    if kind == "ordered":
        return pd.Categorical.from_codes(codes, labels, ordered=True)
    return np.array(labels)[codes]


@st.composite
def problems(draw):
    kind = draw(st.sampled_from(sorted(LABELS)))
    labels = draw(st.permutations(LABELS[kind])) if kind != "booleans" else LABELS[kind]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    X = rng.normal(size=(80, 2))
    codes = (X[:, [0]] + rng.normal(size=(80, 2)) > 0).astype(int) + (X[:, [1]] > 0.7)
    codes = np.minimum(codes, len(labels) - 1)
    codes[: len(labels)] = np.arange(len(labels))[:, None]
    weights = {label: draw(st.sampled_from([0.1, 1.0, 8.0])) for label in labels}
    Y = pd.DataFrame({name: labelled(kind, codes[:, j], labels) for j, name in enumerate("uv")})
    return X, Y, weights


@settings(max_examples=15, deadline=None)
@given(problems())
def test_class_weights_are_those_of_an_estimator_fitted_by_hand(problem):
    X, Y, weights = problem
    estimator = LogisticRegression(class_weight=weights)
    model = IndependentClassifier(estimator).fit(X, Y)
    marginals = model.predict_joint(X).marginals()
    for name, labels, counts in zip(Y, model.space_.categories, model.label_counts_, strict=True):
        by_hand = estimator.fit(X, np.asarray(Y[name]))
        columns = [list(by_hand.classes_).index(label) for label in labels]
        expected = len(X) * by_hand.predict_proba(X)[:, columns] + smoothed_frequencies(counts)
        np.testing.assert_allclose(marginals[name], expected / (len(X) + 1), atol=1e-6)


WEIGHTS = {"rare": 30, "usual": 1}
ESTIMATORS = {
    "logistic": LogisticRegression(class_weight=WEIGHTS),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression(class_weight=WEIGHTS)),
    "search": GridSearchCV(LogisticRegression(class_weight=WEIGHTS), {"C": [0.1, 1.0]}, cv=2),
    "bayes": GaussianNB(priors=[0.97, 0.03]),
}
MODELS = {
    "independent": IndependentClassifier,
    "chain": ChainClassifier,
    "tree": lambda e: TreeClassifier(e, random_state=0),
    "trees": lambda e: TreeEnsembleClassifier(e, random_state=0),
    "network": lambda e: BayesNetClassifier(e, random_state=0),
    "instances": InstanceLogisticClassifier,
    "stacked": StackedFeaturesClassifier,
    "rules": lambda e: RuleStackingClassifier(e, n_rules=0),
    "mixture": lambda e: MixtureClassifier(ChainClassifier(e), n_components=2, random_state=0),
}


def rare_labels(n=160):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    rare = X[:, [0]] + rng.normal(size=(n, 2)) > 1.4
    return X, np.where(rare, "rare", "usual")


@pytest.mark.parametrize("estimator", ["logistic", "bayes"])
@pytest.mark.parametrize("kind", MODELS)
def test_labels_and_their_codes_with_the_same_weights_are_the_same_to_every_model(kind, estimator):
    X, Y = rare_labels()
    by_code = clone(ESTIMATORS[estimator])
    if estimator == "logistic":
        by_code.set_params(class_weight={0: 30, 1: 1})
    models = MODELS[kind](ESTIMATORS[estimator]).fit(X, Y), MODELS[kind](by_code).fit(X, (Y == "usual") * 1)
    of_labels, of_codes = (list(model.predict_joint(X).marginals().values()) for model in models)
    np.testing.assert_allclose(of_labels, of_codes, atol=1e-6)
    assert (models[0].predict(X) == "rare").mean() > 1.5 * (Y == "rare").mean()


@pytest.mark.parametrize("estimator", ["pipeline", "search"])
def test_estimators_inside_of_others_are_looked_at(estimator, tmp_path):
    X, Y = rare_labels()
    model = ChainClassifier(ESTIMATORS[estimator]).fit(X, Y, np.ones(len(X)))
    assert (model.predict(X) == "rare").mean() > 0.4
    save_model(model, tmp_path / "model.tuplet")
    again = load_model(tmp_path / "model.tuplet")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_class_weights_of_forests_name_labels():
    X, Y = rare_labels()
    weights = [{"rare": 0.01, "usual": 1}] * 2
    forest = RandomForestClassifier(20, class_weight=weights, min_samples_leaf=10, random_state=0)
    shy, plain = (
        SharedForestClassifier(each, random_state=0).fit(X, Y).forest_
        for each in (forest, RandomForestClassifier(20, min_samples_leaf=10, random_state=0))
    )
    shy, plain = (sum(tree.tree_.node_count for tree in each.estimators_) for each in (shy, plain))
    assert shy != plain  # labels that hardly count are split for elsewhere


def test_combinations_of_labels_have_no_weights():
    X, Y = rare_labels()
    with pytest.raises(InputError, match="combinations of labels, but its parameter class_weight is about"):
        PowersetClassifier(ESTIMATORS["pipeline"]).fit(X, Y)
    one = PowersetClassifier(ESTIMATORS["logistic"]).fit(X, Y[:, 0])
    assert (one.predict(X) == "rare").mean() > 0.4
    PowersetClassifier(LogisticRegression(class_weight="balanced")).fit(X, Y)


def test_stacked_scores_are_those_of_weighted_classifiers():
    X, Y = rare_labels()
    layer = WeightedStackingClassifier(ESTIMATORS["logistic"]).fit(X, Y).first_
    assert (layer.predict(X) == "rare").mean() > 0.4


class Literal(GaussianNB):
    """A classifier of a user, with a label written into it."""

    def fit(self, X, y, sample_weight=None):
        assert set(y) <= {"rare", "usual"}
        return super().fit(X, y, sample_weight)


def test_estimators_of_users_see_labels():
    X, Y = rare_labels()
    assert ChainClassifier(Literal()).fit(X, Y).predict(X).shape == Y.shape


def test_others_see_codes():
    labels = np.array(["a", "b"])
    for estimator in (None, LogisticRegression(), LogisticRegression(class_weight="balanced"), GaussianNB()):
        assert fitted_to_labels(estimator, labels) is estimator
    assert isinstance(fitted_to_labels(Literal(), labels), LabelledClassifier)


def test_groups_reach_a_search_for_labels():
    X, Y = rare_labels()
    model = ChainClassifier(ESTIMATORS["search"]).fit(X, Y, groups=np.arange(len(X)) // 4)
    assert (model.predict(X) == "rare").mean() > 0.4


def test_labels_that_are_not_weighted_are_an_error_in_their_own_words():
    X, Y = rare_labels()
    with pytest.raises(ValueError, match="rare"):
        IndependentClassifier(LogisticRegression(class_weight={"often": 2.0})).fit(X, Y)
