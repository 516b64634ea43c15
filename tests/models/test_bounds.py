"""No label that was seen in training loses all probability, whatever x is."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from all_models import MODELS, data, fitted, table
from draws import examples
from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    GenerativeBayesNetClassifier,
    IndependentClassifier,
    MixtureClassifier,
    PowersetClassifier,
    RandomFieldClassifier,
    RuleStackingClassifier,
    TreeClassifier,
    TreeMixtureClassifier,
    default_estimator,
    load_penguins,
)
from tuplet.joint.base import all_outcomes
from tuplet.local import columns
from tuplet.models.prior import least_mass
from tuplet.space.features.scaling import InputRange, LimitedScaler

ROUNDING = 1 - 1e-9

VALUES = st.one_of(
    st.just(0.0),
    st.builds(
        lambda sign, digits, power: sign * digits * 10.0**power,
        st.sampled_from([-1, 1]),
        st.floats(1, 9.9),
        st.integers(-300, 299),
    ),
)
"""Numbers of any size from 1e-300 to 1e300, and zero."""


def least(model):
    """Smoothed frequencies / (N + 1) of the labels of each variable, and which labels were seen."""
    counts, n = model.label_counts_, model.n_samples_fit_
    return [((c + 1) / (c.sum() + len(c)) / (n + 1), c > 0) for c in counts]


def require_bounds(model, X):
    """Compare marginals, and log-probabilities of all combinations, with the bounds of the guide."""
    joint = model.predict_joint(X).distribution
    for proba, (bound, seen) in zip(joint.marginals(), least(model), strict=True):
        assert (proba[:, seen] >= bound[seen] * ROUNDING).all(), (proba / bound).min()
    outcomes = all_outcomes(joint.cards)
    log_prob = joint.log_prob(np.repeat(outcomes[:, None], len(joint), axis=1))
    assert np.isfinite(log_prob).all()
    if not hasattr(joint, "correlations"):  # normal vectors have another one
        lowest = sum(np.log(bound)[code] for (bound, _), code in zip(least(model), outcomes.T, strict=True))
        assert (log_prob >= lowest[:, None] - 1e-6).all()


@pytest.mark.parametrize("name", MODELS)
def test_every_label_has_its_bound_for_every_x(name):
    model, (X, _) = fitted(name), table(name)

    @examples(8)
    @given(st.lists(st.lists(VALUES, min_size=X.shape[1], max_size=X.shape[1]), min_size=1, max_size=6))
    def check(rows):
        require_bounds(model, pd.DataFrame(rows, columns=X.columns))

    check()


SPARSE = {
    "independent": IndependentClassifier(),
    "chain": ChainClassifier(),
    "powerset": PowersetClassifier(),
    "tree": TreeClassifier(),
    "field": RandomFieldClassifier(),
    "bayesnet": BayesNetClassifier(random_state=0),
}


@pytest.mark.parametrize("listed", [2**26, 10], ids=["small", "large"])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_features_have_the_same_bounds(name, listed, monkeypatch):
    monkeypatch.setattr(columns, "LISTED_CELLS", listed)
    X, Y = data(60)
    X = X.to_numpy() * (np.random.default_rng(0).random(X.shape) < 0.4)
    model = SPARSE[name].fit(sparse.csr_array(X), Y)
    big = 1e300
    extremes = [[0, 0, 0, 0], [big, 0, -big, 0], [1 / big, 1e8, 0, -1e100], [0, -big, big, 1]]
    require_bounds(model, sparse.csr_array(extremes))
    beyond = 1e6 * np.abs(X).max()
    np.testing.assert_allclose(
        model.predict_joint(sparse.csr_array([[beyond, 0, 0, 0]])).log_prob(Y[:1]),
        model.predict_joint(sparse.csr_array([[1e300, 0, 0, 0]])).log_prob(Y[:1]),
    )


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(random_state=0), GaussianNB()])
@pytest.mark.parametrize(
    "make",
    [
        IndependentClassifier,
        PowersetClassifier,
        ChainClassifier,
        TreeClassifier,
        lambda e: TreeClassifier(e, parametrisation="inputs"),
        lambda e: BayesNetClassifier(e, random_state=0),
        lambda e: TreeMixtureClassifier(e, n_trees=2, max_iter=2),
        lambda e: MixtureClassifier(ChainClassifier(e), n_components=2, max_iter=2, random_state=0),
        lambda e: RuleStackingClassifier(e, rules=["0.999: late -> rain == dry"], n_rules=0, n_folds=2),
    ],
)
def test_classifiers_of_users_are_bounded_by_mixing(make, estimator):
    X, Y = data(60)
    model = make(estimator).fit(X, Y.astype({"late": bool}))
    rows = pd.DataFrame([[0.0] * 4, [9.0] * 4, [-50.0, 50.0, -50.0, 50.0]], columns=X.columns)
    with np.errstate(all="ignore"):  # of the classifiers of users
        require_bounds(model, rows)


def test_generative_models_with_many_features_are_bounded():
    rng = np.random.default_rng(0)
    Y = rng.integers(2, size=(80, 2))
    X = Y[:, [0]] + 0.2 * rng.normal(size=(80, 60))  # naive Bayes counts the same evidence sixty times
    model = GenerativeBayesNetClassifier("tree-tree").fit(X, Y)
    require_bounds(model, np.vstack([X, 1e300 * np.ones(60)]))
    assert model.predict_joint(X).mode_proven().all()


def test_the_penguin_with_a_wrong_digit():
    X, Y = load_penguins(return_X_y=True)
    wild = X[:1].assign(body_mass_g=3750000)
    for model in (TreeClassifier(), RandomFieldClassifier(), ChainClassifier()):
        model.fit(X, Y)
        require_bounds(model, wild)


# -- inputs beyond the training range -----------------------------------------------------------------------


def test_the_range_is_that_of_training_without_outliers_widened_by_its_width():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 1] = X[:, 1] > 1.9  # no bulk
    X[:, 2] = 7.0
    limits = InputRange.learn(X)
    low, high = X.min(axis=0), X.max(axis=0)
    np.testing.assert_allclose(limits.low, low - (high - low))
    np.testing.assert_allclose(limits.high, high + (high - low))
    X[5, 0] = 1e9
    rest = np.delete(X[:, 0], 5)
    np.testing.assert_allclose(InputRange.learn(X).high[0], 2 * rest.max() - rest.min())


@given(st.integers(0, 2**32 - 1))
@examples(20)
def test_weights_count_as_repeated_rows_and_missing_values_do_not_count(seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_cauchy(size=(60, 2)), rng.integers(1, 4, 60)
    X[rng.random(60) < 0.2, 1] = np.nan
    ours, theirs = InputRange.learn(X, weights), InputRange.learn(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose([ours.low, ours.high], [theirs.low, theirs.high])
    known = ~np.isnan(X[:, 1])
    alone = InputRange.learn(X[known, 1:])
    both = InputRange.learn(X)
    np.testing.assert_allclose([both.low[1:], both.high[1:]], [alone.low, alone.high])


def test_one_outlier_in_training_does_not_destroy_a_column():
    X, Y = data(300)
    wild = X.copy()
    wild.iloc[0, 0] = 1e12
    for model in (ChainClassifier(), TreeClassifier(), RandomFieldClassifier()):
        clean = model.fit(X, Y).predict_joint(X[1:]).log_prob(Y[1:]).mean()
        spoilt = model.fit(wild, Y).predict_joint(X[1:]).log_prob(Y[1:]).mean()
        assert spoilt > clean - 0.02


def test_the_scaler_takes_what_a_standard_scaler_takes():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 6.0], "b": [0.0, 0.0, 1.0, 1.0]})
    scaler = LimitedScaler().set_output(transform="pandas").fit(X)
    again = scaler.transform(X)
    assert list(again) == ["a", "b"]
    np.testing.assert_allclose(again.mean(), 0, atol=1e-12)
    np.testing.assert_allclose(scaler.transform(X * 1e9).iloc[-1], scaler.transform(X * 1e300).iloc[-1])
    assert isinstance(default_estimator()[1], LimitedScaler)


def test_no_warning_of_overflow_reaches_the_user():
    X, Y = data(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ChainClassifier().fit(X, Y)
        model.predict(X * 1e300)


def test_the_least_mass_is_that_of_the_variable_with_most_labels():
    assert least_mass([np.array([3.0, 1.0]), np.array([9.0, 0.0])]) == pytest.approx(0.1)
