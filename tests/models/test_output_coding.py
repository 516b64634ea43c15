"""Output codes: their regression, their metric and their decoder, each against a plain computation."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import Ridge

from draws import examples
from tuplet import IndependentClassifier
from tuplet.core.exceptions import ConvergenceWarning, InputError, IntractableError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import FactorGraph, Mixture
from tuplet.joint.inference import BeliefPropagation, Exact
from tuplet.metrics import exact_match
from tuplet.models.compared import output_coding
from tuplet.models.compared.output_coding import OutputCodingClassifier, fit_labels, fit_metric, impostors


def data(n=150, m=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    common = X[:, :1] + rng.normal(size=(n, 1))
    return X, (common + X[:, 1:2] * np.arange(m) / m + 0.7 * rng.normal(size=(n, m)) > 0.3).astype(int)


# -- regression --------------------------------------------------------------------------------------------


def test_answers_about_unseen_rows_are_those_of_refitting_without_them():
    X, Y = data(30)
    weights = np.random.default_rng(1).integers(1, 4, 30).astype(float)
    ours = fit_labels(X, Y, weights, [3.0])
    whole = Ridge(3.0).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef, whole.coef_.T, atol=1e-8)
    np.testing.assert_allclose(ours.predict(X), whole.predict(X), atol=1e-8)
    for i in range(30):
        less = weights.copy()
        less[i] -= 1  # one unit of the weight: one of the repeated rows
        expected = Ridge(3.0).fit(X, Y, sample_weight=less).predict(X[i : i + 1])[0]
        np.testing.assert_allclose(ours.unseen[i], expected, atol=1e-7)


def test_labels_are_regressed_on_the_rows_that_have_them_with_the_best_penalty():
    X, Y = data(40)
    holes = Y.copy()
    holes[::3, 1] = UNKNOWN
    ours = fit_labels(X, holes, np.ones(40))
    known = holes[:, 1] != UNKNOWN
    alone = fit_labels(X[known], Y[known, 1:2], np.ones(known.sum()))
    np.testing.assert_allclose(ours.coef[:, 1], alone.coef[:, 0])
    np.testing.assert_allclose(ours.unseen[known, 1], alone.unseen[:, 0])
    np.testing.assert_allclose(ours.unseen[~known, 1], ours.predict(X)[~known, 1])

    def error(penalty):
        unseen = fit_labels(X[known], Y[known, 1:2], np.ones(known.sum()), [penalty]).unseen
        return ((unseen[:, 0] - Y[known, 1]) ** 2).sum()

    assert error(alone.penalty[0]) == pytest.approx(min(error(p) for p in 10.0 ** np.arange(-2, 6)))


# -- metric ------------------------------------------------------------------------------------------------


def violation(Q, y, truth, predicted):
    """hamming(truth, y) + |truth - f|_Q^2 - |y - f|_Q^2, for corners y of the cube also by its definition."""
    near, far = truth - predicted, y - predicted
    return np.abs(truth - y).sum(axis=-1) + (near @ Q * near).sum(axis=-1) - (far @ Q * far).sum(axis=-1)


def random_metric(rng, m, rank):
    half = rng.normal(size=(m, rank))
    return half @ half.T


@examples(25)
@given(st.integers(1, 4), st.integers(0, 4), st.integers(0, 10_000))
def test_impostors_are_the_most_violating_points_of_the_cube(m, rank, seed):
    rng = np.random.default_rng(seed)
    Q = random_metric(rng, m, rank)
    truth, predicted = rng.integers(0, 2, (5, m)).astype(float), rng.normal(0.5, 0.4, (5, m))
    found = impostors(Q, truth, predicted, np.ones((5, m), bool), truth)
    assert ((found >= 0) & (found <= 1)).all()
    ours = violation(Q, found, truth, predicted)
    for i in range(5):
        loss = lambda y, i=i: -violation(Q, y, truth[i], predicted[i])  # noqa: E731
        best = -minimize(loss, np.full(m, 0.5), bounds=[(0, 1)] * m, method="L-BFGS-B").fun
        assert ours[i] > best - 1e-4
        assert all(
            ours[i] > violation(Q, np.array(y), truth[i], predicted[i]) - 1e-4
            for y in product([0, 1], repeat=m)
        )


@pytest.mark.parametrize("C", [0.3, 3.0, 30.0])
def test_the_metric_is_the_optimum_of_its_problem(C):
    """For two labels: against a general search over Q = L L', the inner maximum taken over a fine grid."""
    X, Y = data(15, 2)
    predicted = fit_labels(X, Y, np.ones(15)).unseen
    ours = fit_metric(
        Y.astype(float), predicted, np.ones(Y.shape, bool), np.ones(15), C=C, tol=1e-5, max_cuts=300
    )
    grid = np.array(list(product(np.linspace(0, 1, 41), repeat=2)))[:, None]

    def objective(Q):
        return 0.5 * (Q**2).sum() + C * np.maximum(violation(Q, grid, Y, predicted).max(axis=0), 0).mean()

    def at(flat):
        lower = np.array([[flat[0], 0], flat[1:]])
        return objective(lower @ lower.T)

    found = minimize(at, [1.0, 0.0, 1.0], method="Nelder-Mead", options={"maxiter": 600})
    assert ours.gap <= 1e-5 * ours.objective
    np.testing.assert_allclose(objective(ours.metric), ours.objective, rtol=2e-3)  # the grid misses a little
    np.testing.assert_allclose(ours.objective, found.fun, rtol=2e-3)
    assert np.linalg.eigvalsh(ours.metric).min() > -1e-12


def test_labels_that_are_not_known_do_not_count():
    X, Y = data(40, 3)
    predicted = fit_labels(X, Y, np.ones(40)).unseen
    known = np.ones(Y.shape, bool)
    known[:, 2] = False
    ours = fit_metric(Y.astype(float), predicted, known, np.ones(40), C=1, tol=1e-5, max_cuts=100).metric
    alone = fit_metric(
        Y[:, :2].astype(float), predicted[:, :2], known[:, :2], np.ones(40), C=1, tol=1e-5, max_cuts=100
    )
    np.testing.assert_allclose(ours[:2, :2], alone.metric, atol=1e-3)
    np.testing.assert_allclose(ours[2], 0, atol=1e-12)


def test_too_few_cuts_warn():
    X, Y = data(40)
    with pytest.warns(ConvergenceWarning, match="not converged with 2 cuts"):
        OutputCodingClassifier(max_cuts=2, C=10).fit(X, Y)


# -- decoder -----------------------------------------------------------------------------------------------


def decoder(model, X):
    """Return the graph of a prediction, without the pseudo-row that bold rows have."""
    joint = model.predict_joint(X).distribution
    joint = joint.components[0] if isinstance(joint, Mixture) else joint
    assert isinstance(joint, FactorGraph)
    return joint


@pytest.mark.parametrize("label_weight", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("n_codes", [None, 2])
def test_the_joint_is_the_decoder(label_weight, n_codes):
    X, Y = data()
    model = OutputCodingClassifier(label_weight=label_weight, n_codes=n_codes).fit(X, Y)
    joint = decoder(model, X)
    assert joint.tolerance == 0
    single = IndependentClassifier().fit(X, Y).predict_proba(X)
    regression = fit_labels(model.scaler_.transform(X), Y, np.ones(len(X)))
    codes, residual = model.codes_, Y - regression.unseen
    assert len(codes) == (4 if n_codes is None else n_codes)
    np.testing.assert_allclose(model.code_variances_, ((residual @ codes.T) ** 2).mean(axis=0))
    outcomes = np.array(list(product([0, 1], repeat=4)))
    expected = np.zeros((len(X), 16))
    for o, y in enumerate(outcomes):
        expected[:, o] = label_weight * sum(np.log(p[:, v]) for p, v in zip(single, y, strict=True))
        distance = (y - np.clip(regression.predict(model.scaler_.transform(X)), 0, 1)) @ codes.T
        expected[:, o] -= (distance**2 / (2 * model.code_variances_)).sum(axis=1)
    frequencies = (np.array([(Y == 0).sum(axis=0), Y.sum(axis=0)]).T + 1) / (len(Y) + 2)
    prior = np.log(frequencies)[np.arange(4), outcomes].sum(axis=1)
    share = model.decoder_share_
    assert 0 < share <= 1
    expected = log_softmax(share * expected + (1 - share) * prior, axis=1)
    ours = joint.log_prob(np.repeat(outcomes[:, None], len(X), axis=1)).T
    np.testing.assert_allclose(ours, expected, atol=1e-9)
    np.testing.assert_array_equal(joint.mode().codes, outcomes[expected.argmax(axis=1)])


def test_codes_are_the_root_of_the_metric_and_none_leave_the_labels_alone():
    X, Y = data()
    model = OutputCodingClassifier().fit(X, Y)
    np.testing.assert_allclose(model.codes_.T @ model.codes_, model.metric_.metric, atol=1e-6)
    none = OutputCodingClassifier(n_codes=0).fit(X, Y)
    single = IndependentClassifier().fit(X, Y).predict_proba(X)
    for ours, alone in zip(decoder(none, X).marginals(), single, strict=True):
        np.testing.assert_allclose(ours, alone)
    assert "tempered by held-out rows" in repr(model.predict_joint(X))


def test_codes_catch_labels_that_go_together():
    """One label of three holds in every row; independent classifiers often find none or two of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    Y = np.eye(3, dtype=int)[(X + 1.5 * rng.normal(size=(900, 3))).argmax(axis=1)]
    coded = OutputCodingClassifier().fit(X[:600], Y[:600]).predict(X[600:], loss="subset")
    alone = IndependentClassifier().fit(X[:600], Y[:600]).predict(X[600:])
    assert (coded.sum(axis=1) == 1).mean() > 0.99
    assert exact_match(Y[600:], coded) > exact_match(Y[600:], alone) + 0.05


def test_several_values_are_an_error_that_names_the_variable():
    X, Y = data(30)
    frame = pd.DataFrame(Y, columns=list("abcd")).assign(wind=np.arange(30) % 3)
    with pytest.raises(
        InputError, match=r"Only binary classification is supported.*'wind' has more than two"
    ):
        OutputCodingClassifier().fit(X, frame)


def test_missing_and_constant_labels_text_and_one_variable():
    X, Y = data()
    frame = pd.DataFrame(Y, columns=list("abcd")).astype("Int64").assign(same="yes", never=0)
    frame.loc[::4, "a"] = pd.NA
    frame.loc[1::3, "b"] = pd.NA
    model = OutputCodingClassifier().fit(X, frame)
    assert model.coded_.tolist() == [0, 1, 2, 3]
    assert np.isfinite(model.predict_joint(X).log_prob(frame)).all()
    assert exact_match(frame, model.predict(X)) > 0.3
    one = OutputCodingClassifier().fit(X, np.where(Y[:, 0], "wet", "dry"))
    assert one.predict_proba(X).shape == (150, 2)
    constant = OutputCodingClassifier().fit(X, frame[["same", "never"]])
    assert constant.codes_.shape == (0, 0)
    assert (constant.predict(X)["never"] == 0).all()


def test_many_labels_are_decoded_approximately_and_it_shows(monkeypatch):
    X, Y = data(60, 8)
    model = OutputCodingClassifier(tol=0.05).fit(X, Y)
    exact = decoder(model, X[:5])
    assert isinstance(exact.engine, Exact)
    monkeypatch.setattr(output_coding, "_EXACT_LABELS", 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        joint = decoder(model, X[:5])
        assert isinstance(joint.engine, BeliefPropagation)
        approximate = joint.mode()
    assert not approximate.proven.any()
    assert (exact.log_prob(approximate.codes[None])[0] >= exact.mode().log_prob - 0.5).all()


@pytest.mark.parametrize("shape", [(50, 3), (5, 9), (40, 40)])
def test_regression_in_blocks_is_the_one_by_singular_values(shape, monkeypatch):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=shape), rng.uniform(0.5, 3, size=shape[0])
    X[:, -1] = 1.0  # no spread at all
    codes = rng.integers(0, 2, size=(shape[0], 2))
    root = np.sqrt(weights)[:, None]
    U, s, Vt = np.linalg.svd(root * (X - weights @ X / weights.sum()), full_matrices=False)
    centred = codes - weights @ codes / weights.sum()
    coef = Vt.T @ ((s / (s**2 + 0.1))[:, None] * (U.T @ (root * centred)))
    monkeypatch.setattr("tuplet.models.compared.output_coding.BLOCK_CELLS", 64)
    found = fit_labels(X, codes, weights, [0.1])
    np.testing.assert_allclose(found.coef, coef, atol=1e-9)
    leverage = (U**2 @ (s**2 / (s**2 + 0.1)))[:, None] / weights[:, None] + 1 / weights.sum()
    removed = np.maximum(1 - np.minimum(weights, 1)[:, None] * leverage, 1e-8)
    expected = codes - (codes - X @ found.coef - found.intercept) / removed
    np.testing.assert_allclose(found.unseen, expected, atol=1e-9)


def test_more_labels_than_codes_can_be_learned_for():
    rng = np.random.default_rng(0)
    with pytest.raises(IntractableError, match="121 labels"):
        OutputCodingClassifier().fit(rng.normal(size=(30, 2)), rng.integers(0, 2, size=(30, 121)))
