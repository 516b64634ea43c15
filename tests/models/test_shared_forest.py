"""One forest for all class variables: what leaves say, against a slow look at every leaf."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from draws import examples
from tuplet import IndependentClassifier, SharedForestClassifier, load_penguins
from tuplet.core.exceptions import InputError
from tuplet.metrics import joint_log_loss
from tuplet.testing import check_joint


def rows(seed, n=60, m=3, gaps=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = (X[:, :1] + rng.normal(size=(n, m)) > 0).astype(float)
    Y[rng.random(Y.shape) < gaps] = np.nan
    return X, pd.DataFrame(Y, columns=[f"y{j}" for j in range(m)]).astype("Int8")


def slow_combinations(model, X, Y, X_new):
    """Return the mean over trees of how often each training combination is in the leaf, as {labels: p}."""
    forest, n = model.forest_, len(X)
    answer = []
    for x in X_new:
        shares = {}
        for tree, bag in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            same = tree.apply(X.astype(np.float32)) == tree.apply(x[None].astype(np.float32))
            counts = np.bincount(bag, minlength=n) * same
            for i in np.flatnonzero(counts):
                key = tuple(Y.iloc[i].astype(int))
                shares[key] = shares.get(key, 0.0) + counts[i] / counts.sum() / len(forest.estimators_)
        answer.append(shares)
    return answer


@pytest.mark.parametrize("forest", [RandomForestClassifier, ExtraTreesClassifier])
def test_probabilities_are_those_of_the_leaves(forest):
    X, Y = rows(0)
    model = SharedForestClassifier(forest(7, bootstrap=True, min_samples_leaf=3), random_state=0).fit(X, Y)
    share, drawn = model.combination_share_, model.prior_share_
    X_new = np.random.default_rng(1).normal(size=(5, 4))
    joint = model.predict_joint(X_new)
    prior = (Y.sum().to_numpy(float) + 1) / (len(Y) + 2)
    for i, shares in enumerate(slow_combinations(model, X, Y, X_new)):
        one = sum(p * np.array(labels) for labels, p in shares.items())
        one = (1 - drawn) * one + drawn * prior
        for labels in np.ndindex(2, 2, 2):
            alone = np.prod(np.where(labels, one, 1 - one))
            expected = share * shares.get(labels, 0.0) + (1 - share) * alone
            found = joint[i].prob(pd.DataFrame([labels], columns=Y.columns))[0]
            assert found == pytest.approx(expected, rel=1e-9)


def test_weights_count_once():
    """With weights of 9 and 1, half of the rows each, nine tenths of the weight lie on the heavy ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))  # which says nothing
    Y = pd.DataFrame({"a": np.arange(2000) % 2, "b": np.arange(2000) // 2 % 2})
    forest = ExtraTreesClassifier(30, bootstrap=True, min_samples_leaf=200)
    model = SharedForestClassifier(forest, random_state=0).fit(X, Y, np.where(Y["a"] == 1, 9.0, 1.0))
    assert model.predict_joint(X[:50]).marginals()["a"][1].mean() == pytest.approx(0.9, abs=0.02)


def test_shares_are_learned_from_some_of_many_rows(monkeypatch):
    X, Y = rows(0)
    forest = ExtraTreesClassifier(20, bootstrap=True)
    whole = SharedForestClassifier(forest, random_state=0).fit(X, Y)
    monkeypatch.setattr("tuplet.models.shared_forest.LISTED_CELLS", len(X) * 4)
    some = SharedForestClassifier(forest, random_state=0).fit(X, Y)
    assert some.combination_share_ != whole.combination_share_
    assert some.combination_share_ == pytest.approx(whole.combination_share_, abs=0.4)


@given(st.integers(0, 100), st.sampled_from([0.0, 0.3]))
@examples(10)
def test_the_joint_is_sound(seed, gaps):
    X, Y = rows(seed, gaps=gaps)
    forest = ExtraTreesClassifier(5, bootstrap=True)
    model = SharedForestClassifier(forest, random_state=0).fit(X, Y)
    check_joint(model.predict_joint(X[:4]).distribution, random_state=seed)


def test_it_knows_what_labels_say_of_each_other():
    X, Y = load_penguins(return_X_y=True)
    train, test = np.arange(0, 344, 2), np.arange(1, 344, 2)
    forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
    loss = {
        type(model).__name__: joint_log_loss(
            Y.iloc[test], model.fit(X.iloc[train], Y.iloc[train]).predict_joint(X.iloc[test])
        )
        for model in (SharedForestClassifier(forest), IndependentClassifier(forest))
    }
    assert loss["SharedForestClassifier"] < loss["IndependentClassifier"] - 0.05


def test_the_users_forest_stays_as_it_is():
    forest = RandomForestClassifier(3, random_state=0)
    SharedForestClassifier(forest).fit(*rows(0))
    assert not hasattr(forest, "estimators_")


def test_forests_without_bags_are_refused():
    for estimator in (ExtraTreesClassifier(), IndependentClassifier()):
        with pytest.raises(InputError, match="ExtraTreesClassifier with bootstrap=True, found"):
            SharedForestClassifier(estimator).fit(*rows(0))


def test_trees_keep_no_counts_of_labels():
    X, Y = rows(0, m=12)
    model = SharedForestClassifier(ExtraTreesClassifier(5, bootstrap=True), random_state=0).fit(X, Y)
    assert all(each.tree_.value.size == each.tree_.node_count for each in model.forest_.estimators_)
    assert model.forest_.feature_importances_.sum() == pytest.approx(1)


def test_binary_variables_have_the_splits_of_classification_trees():
    X, Y = rows(0, n=300)
    forest = ExtraTreesClassifier(100, bootstrap=True, max_features=0.5, min_samples_leaf=2)
    model, slow = (SharedForestClassifier(each, random_state=0).fit(X, Y) for each in (None, forest))
    pairs = zip(model.forest_.estimators_, slow.forest_.estimators_, strict=True)
    same = [np.array_equal(a.tree_.threshold, b.tree_.threshold) for a, b in pairs]
    assert sum(same) > 50  # two splits that are equally good are told apart by rounding
    X_new, Y_new = rows(1, n=300)
    loss, expected = (joint_log_loss(Y_new, each.predict_joint(X_new)) for each in (model, slow))
    assert loss == pytest.approx(expected, abs=0.01)


def test_groups_of_rows_with_binary_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    Y = (X[:, :2] + rng.normal(size=(90, 2)) > 0).astype(int)
    model = SharedForestClassifier(random_state=0).fit(X, Y, groups=np.arange(90) // 3)
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()
