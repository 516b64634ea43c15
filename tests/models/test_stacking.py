"""Mixtures across families: weights with a certificate, gates, temperatures, and the classifier of them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

from draws import examples
from tuplet import (
    ChainClassifier,
    IndependentClassifier,
    JointClassifier,
    JointStackingClassifier,
    PowersetClassifier,
    PriorClassifier,
    load_penguins,
)
from tuplet.core.exceptions import InputError
from tuplet.joint import Atoms, Mixture
from tuplet.joint.base import all_outcomes
from tuplet.local.cross_fitting import inner_folds
from tuplet.models.mixture_weights import mixture_weights
from tuplet.models.stacking.blend import _fit, fit_gate
from tuplet.models.stacking.held_out import Rows, enough_folds, folds_of, judge
from tuplet.models.stacking.tempering import find_power, temper
from tuplet.space import ClassSpace
from tuplet.testing import check_joint

# -- weights -----------------------------------------------------------------------------------------------


@st.composite
def held_out(draw):
    """Log-probabilities of rows by random members, some of them equal, some far off, and weights of rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, members = draw(st.integers(1, 60)), draw(st.integers(1, 7))
    log_prob = rng.normal(size=(n, members)) * draw(st.sampled_from([0.01, 1.0, 10.0, 300.0])) - 2
    if draw(st.booleans()):
        log_prob[:, -1] = log_prob[:, 0]
    if draw(st.booleans()):
        log_prob[rng.random(n) < 0.3, -1] = -np.inf
        log_prob[:, 0] = np.maximum(log_prob[:, 0], -50)
    return log_prob, rng.random(n) + 0.01


@given(held_out())
@examples(50)
def test_the_mixture_is_never_worse_than_its_best_member(case):
    log_prob, weight = case
    found = mixture_weights(log_prob, weight)
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    if not np.isfinite(log_prob).all(axis=0).any():
        return
    with np.errstate(invalid="ignore"):
        alone = (weight[:, None] * log_prob).sum(axis=0) / weight.sum()
    assert found.log_likelihood >= alone.max() - 1e-12 * max(1, abs(alone.max()))


@given(held_out())
@examples(30)
def test_the_gap_bounds_what_other_weights_gain(case):
    log_prob, weight = case
    found = mixture_weights(log_prob, weight)
    assert found.gap < 1e-7
    rng = np.random.default_rng(0)
    for other in rng.dirichlet(np.full(log_prob.shape[1], 0.5), size=50):
        with np.errstate(divide="ignore"):
            mixed = logsumexp(log_prob + np.log(other), axis=1)
        assert weight @ mixed / weight.sum() <= found.log_likelihood + found.gap + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_weights_equal_those_of_a_generic_solver(seed):
    rng = np.random.default_rng(seed)
    log_prob = rng.normal(size=(300, 5)) - 2
    weight = rng.random(300)
    prob, share = np.exp(log_prob), weight / weight.sum()

    def loss(weights):
        return -share @ np.log(prob @ weights), -(share / (prob @ weights)) @ prob

    generic = minimize(
        loss,
        np.full(5, 0.2),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    np.testing.assert_allclose(mixture_weights(log_prob, weight).weights, generic.x, atol=1e-6)


def test_weights_are_found_where_members_differ_by_dozens_of_nats():
    rng = np.random.default_rng(1)
    for _ in range(150):
        n, members = rng.integers(5, 60), rng.integers(2, 7)
        log_prob = rng.normal(size=(n, members)) * rng.uniform(40, 100)
        assert mixture_weights(log_prob, rng.random(n) + 0.01).gap < 1e-6


def test_a_row_that_nobody_explains_is_an_error():
    with pytest.raises(InputError, match="row 1 a positive probability"):
        mixture_weights(np.array([[0.0, -1], [-np.inf, -np.inf]]))


# -- gates -------------------------------------------------------------------------------------------------


def two_experts(n=400, seed=0):
    """Two members of which each is right on one side of the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    right = X[:, 0] > 0
    log_prob = np.log(np.where(right[:, None] == np.array([True, False]), 0.9, 0.1))
    return X, log_prob


def test_a_gate_finds_where_each_member_is_right():
    X, log_prob = two_experts()
    gate = fit_gate(X, log_prob, np.ones(400), np.arange(400) % 4, np.array([0.5, 0.5]))
    assert gate is not None
    log_weights = gate.log_weights(X)
    np.testing.assert_allclose(logsumexp(log_weights, axis=1), 0, atol=1e-12)
    assert gate.gain > 0.1
    assert (log_weights.argmax(axis=1) == (X[:, 0] <= 0)).mean() > 0.9


def test_a_gate_that_gains_nothing_is_left_out():
    X, log_prob = two_experts()
    shuffled = log_prob[np.random.default_rng(1).permutation(400)]
    assert fit_gate(X, shuffled, np.ones(400), np.arange(400) % 4, np.array([0.5, 0.5])) is None


def test_a_gate_needs_rows_that_it_has_not_seen():
    X, log_prob = two_experts()
    assert fit_gate(X, log_prob, np.ones(400), np.zeros(400, int), np.array([0.5, 0.5])) is None


def test_a_gate_starts_from_constant_weights_and_only_climbs():
    X, log_prob = two_experts(seed=3)
    intercept, slopes = _fit(X, log_prob, np.ones(400), np.log([0.3, 0.7]), 1e6)
    np.testing.assert_allclose(slopes, 0, atol=1e-4)  # a huge penalty leaves constant weights, the best ones
    best = mixture_weights(log_prob).weights
    np.testing.assert_allclose(np.exp(intercept) / np.exp(intercept).sum(), best, atol=1e-3)


# -- temperatures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_power_of_a_distribution_is_found_again(power):
    rng = np.random.default_rng(0)
    cards = (2, 3)
    truth = np.log(rng.dirichlet(np.ones(6), size=4000))
    drawn = [rng.choice(6, p=np.exp(row)) for row in truth]
    codes = all_outcomes(cards)[drawn]
    stated = truth / power
    stated -= logsumexp(stated, axis=1, keepdims=True)
    found = find_power(stated, codes, np.ones(4000), cards)
    assert found.power == pytest.approx(power, rel=0.1)
    assert (found.power == 1.0) == (power == 1.0)  # where nothing is to be gained, nothing is changed


def test_a_power_of_a_joint_is_that_of_its_table():
    rng = np.random.default_rng(0)
    joint = Atoms((2, 3), all_outcomes((2, 3))[None], np.log(rng.dirichlet(np.ones(6), size=5)))
    table = 0.7 * joint._log_table()
    counts = [np.full(2, 1e15), np.full(3, 1e15)]  # the share of the pseudo-row is lost in rounding
    flatter = temper(joint, 0.7, counts)
    np.testing.assert_allclose(
        flatter._log_table(), table - logsumexp(table, axis=1, keepdims=True), atol=1e-12
    )
    assert temper(joint, 1.0, counts) is joint
    sure = Atoms((2, 2), all_outcomes((2, 2))[None], np.log([[1 - 3e-8, 1e-8, 1e-8, 1e-8]]))
    bounded = temper(sure, 4.0, [np.array([6.0, 0.0]), np.array([3.0, 3.0])])
    assert bounded.marginals()[0][0, 1] == pytest.approx(1 / 8 / 7)


# -- folds -------------------------------------------------------------------------------------------------


def penguins():
    X, y = load_penguins(return_X_y=True)
    return X, y


def rows_of(X, y, weights=None):
    space = ClassSpace.from_labels(y)
    return Rows(X, space.encode(y), weights, space)


def test_every_row_is_held_out_once():
    X, y = penguins()
    folds = folds_of(rows_of(X, y), 4)
    tested = np.concatenate([fold.test for fold in folds])
    assert sorted(tested) == list(range(len(X)))
    assert all(not np.intersect1d(fold.train, fold.test).size for fold in folds)


def test_rows_without_weight_change_no_fold():
    X, y = penguins()
    weights = np.random.default_rng(0).integers(0, 3, size=len(X)).astype(float)
    used = np.flatnonzero(weights)
    folds = folds_of(rows_of(X, y, weights), 4)
    alone = folds_of(rows_of(X.iloc[used], y.iloc[used], weights[used]), 4)
    assert len(folds) == 4
    for fold, same in zip(folds, alone, strict=True):
        np.testing.assert_array_equal(fold.train, used[same.train])
        np.testing.assert_array_equal(fold.test, used[same.test])
        np.testing.assert_array_equal(fold.test_weight, same.test_weight)


def test_a_model_is_judged_by_rows_that_it_has_not_seen():
    X, y = penguins()
    rows = rows_of(X, y)
    fold = folds_of(rows, 3)[0]
    found = judge(IndependentClassifier(), rows, fold, n_tables=2)
    by_hand = IndependentClassifier().fit(X.iloc[fold.train], y.iloc[fold.train])
    np.testing.assert_allclose(
        found.log_prob, by_hand.predict_joint(X.iloc[fold.test]).log_prob(y.iloc[fold.test])
    )
    assert found.table.shape == (2, np.prod(rows.space.cards))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([], "gives no folds"),
        ([(1,)], "fold 1 is no pair"),
        ([([0, 1], [2, 10**6])], "fold 1 holds positions beyond"),
        ([([0, 1], [1, 2])], "1 of its rows in training and in test"),
        (KFold(1000), "KFold.* cannot split"),
        (StratifiedKFold(1000), "StratifiedKFold.* cannot split"),
    ],
)
def test_folds_that_cannot_be_made_are_an_error(cv, message):
    X, y = penguins()
    with pytest.raises(InputError, match=message):
        JointStackingClassifier([PriorClassifier()], cv=cv).fit(X, y)


# -- the classifier ----------------------------------------------------------------------------------------


def members():
    return [IndependentClassifier(), PowersetClassifier(), PriorClassifier()]


def test_a_stack_is_a_mixture_of_refitted_members():
    X, y = penguins()
    model = JointStackingClassifier(members(), cv=3, temperature=False).fit(X[::2], y[::2])
    joint = model.predict_joint(X[1::2]).distribution
    assert isinstance(joint, Mixture)
    check_joint(joint[:5])
    expected = sum(
        model.weights_[name] * np.exp(part.predict_joint(X[1::2]).log_prob(y[1::2]))
        for name, part in model.models_.items()
    )
    np.testing.assert_allclose(np.exp(model.predict_joint(X[1::2]).log_prob(y[1::2])), expected, rtol=1e-9)
    assert model.log_likelihood_ >= max(model.log_likelihoods_.values())
    assert model.gap_ < 1e-9


def test_reliability_is_that_of_the_held_out_rows():
    X, y = penguins()
    whole = y.notna().all(axis=1)
    X, y = X[whole], y[whole]
    model = JointStackingClassifier(members(), cv=3, temperature=False).fit(X, y)
    rows = rows_of(X, y)
    predicted, right = [], []
    for fold in folds_of(rows, 3):
        parts = [
            m._fit_codes(X.iloc[fold.train], rows.space, rows.codes[fold.train], None) for m in members()
        ]
        joints = tuple(part.predict_joint(X.iloc[fold.test]).distribution for part in parts)
        weights = np.log(np.maximum(list(model.weights_.values()), 1e-300))
        mode = Mixture(np.repeat(weights[None], len(fold.test), axis=0), joints).mode()
        predicted.append(np.exp(mode.log_prob))
        right.append((mode.codes == rows.codes[fold.test]).all(axis=1))
    found, predicted, right = model.reliability_, np.concatenate(predicted), np.concatenate(right)
    assert found["count"].sum() == len(X)
    assert found["count"] @ found["mean_predicted"] == pytest.approx(predicted.sum(), rel=1e-5)
    assert found["count"] @ found["observed"] == pytest.approx(right.sum())


def test_members_without_weight_are_dropped():
    X, y = penguins()
    model = JointStackingClassifier({"good": ChainClassifier(), "blind": PriorClassifier()}, cv=3).fit(X, y)
    assert set(model.weights_) == {"good", "blind"}
    assert set(model.models_) == {name for name, weight in model.weights_.items() if weight > 0}


def test_names_come_from_mappings_pairs_and_classes():
    X, y = penguins()
    models = [("mine", IndependentClassifier()), ChainClassifier(), ChainClassifier(order=[1, 0, 2])]
    fitted = JointStackingClassifier(models, cv=3).fit(X, y)
    assert list(fitted.weights_) == ["mine", "chain-1", "chain-2"]


def test_a_splitter_of_scikit_learn_decides_the_folds():
    X, y = penguins()
    splitter = KFold(3, shuffle=True, random_state=0)
    by_splitter = JointStackingClassifier(members(), cv=splitter).fit(X, y)
    by_pairs = JointStackingClassifier(members(), cv=list(splitter.split(X))).fit(X, y)
    assert by_splitter.weights_ == by_pairs.weights_


def test_the_order_of_rows_does_not_matter():
    X, y = penguins()
    order = np.random.default_rng(0).permutation(len(X))
    one = JointStackingClassifier([IndependentClassifier(), PriorClassifier()], cv=3).fit(X, y)
    other = JointStackingClassifier([IndependentClassifier(), PriorClassifier()], cv=3).fit(
        X.iloc[order], y.iloc[order]
    )
    np.testing.assert_allclose(list(one.weights_.values()), list(other.weights_.values()), atol=1e-4)


def test_a_stack_survives_pickling_and_cloning():
    X, y = penguins()
    model = JointStackingClassifier(members(), cv=3, gate=True).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.predict(X), model.predict(X))
    assert clone(model).get_params()["gate"] is True


def test_missing_labels_are_summed_out():
    X, y = penguins()
    y = y.astype(object).mask(np.random.default_rng(0).random(y.shape) < 0.15)
    model = JointStackingClassifier([IndependentClassifier(), ChainClassifier()], cv=3).fit(X, y)
    assert np.isfinite(model.log_likelihood_)


def test_one_row_is_not_held_out():
    model = JointStackingClassifier([PriorClassifier(), PriorClassifier("marginals")])
    fitted = model.fit([[1.0]], [["a", "b"]])
    assert list(fitted.weights_.values()) == [0.5, 0.5]


def test_an_interrupt_keeps_the_members_that_are_judged():
    X, y = penguins()

    class Interrupted(JointClassifier):
        def _fit(self, X, codes, sample_weight):
            raise KeyboardInterrupt

        def _predict_joint(self, X):
            raise AssertionError

    model = JointStackingClassifier({"first": IndependentClassifier(), "second": Interrupted()}, cv=3)
    assert model.fit(X, y).weights_ == {"first": 1.0, "second": 0.0}
    with pytest.raises(KeyboardInterrupt):
        JointStackingClassifier([Interrupted()], cv=3).fit(X, y)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "models is empty"),
        ([LogisticRegression()], "must be models of Tuplet"),
        (ChainClassifier(), "must be a list or a mapping"),
        ([("a", ChainClassifier()), ("a", PriorClassifier())], "comes more than once"),
    ],
)
def test_what_is_no_list_of_models_is_an_error(models, message):
    X, y = penguins()
    with pytest.raises(InputError, match=message):
        JointStackingClassifier(models).fit(X, y)


def test_of_many_rows_some_folds_are_enough(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    Y = (X[:, :2] + rng.normal(size=(400, 2)) > 0).astype(int)
    rows = Rows(X, Y, None, ClassSpace.from_labels(Y))
    whole = JointStackingClassifier([IndependentClassifier(), ChainClassifier()], progress=False).fit(X, Y)
    for size, n_folds in ((400, 5), (399, 5), (200, 3), (50, 1)):
        monkeypatch.setattr("tuplet.models.stacking.held_out.SAMPLE_SIZE", size)
        model = clone(whole).fit(X, Y)
        assert len(enough_folds(inner_folds(X, Y, None, 5), rows)) == n_folds
        if n_folds == 5:
            assert model.weights_ == whole.weights_
        assert abs(model.log_likelihood_ - whole.log_likelihood_) < 0.3
    assert len(enough_folds(inner_folds(X, Y, None, 5), rows, at_least=2)) == 2
    first, second = np.split(np.arange(400), 2)
    halves = clone(whole).set_params(cv=[(first, second), (second, first)])
    assert halves.fit(X, Y)._blend.n_rows == 400  # folds that are given are all used


def test_only_two_folds_are_fitted_where_there_are_many_cells(monkeypatch):
    monkeypatch.setattr("tuplet.models.stacking.held_out._MANY_CELLS", 1)
    fitted = []
    judged = judge
    monkeypatch.setattr(
        "tuplet.models.stacking.classifier.judge", lambda *task: fitted.append(task) or judged(*task)
    )
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), rng.integers(2, size=(60, 2))
    model = JointStackingClassifier([IndependentClassifier()], cv=5).fit(X, Y)
    assert len(fitted) == 2
    assert np.isfinite(model.log_likelihood_)
