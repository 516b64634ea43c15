import importlib.util

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from draws import examples
from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    DecisionClassifier,
    IndependentClassifier,
    OrdinalClassifier,
    PowersetClassifier,
    TreeClassifier,
    declare_order,
    load_model,
    ordinal_estimator,
    save_model,
)
from tuplet.core.exceptions import ConvergenceWarning, InputError
from tuplet.local.ordinal import class_probabilities, negative_log_likelihood
from tuplet.losses import Quantile


def staged(n=200, d=3, k=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ np.linspace(-1, 1.5, d) + rng.logistic(size=n)
    return X, np.digitize(score, np.quantile(score, np.linspace(0, 1, k + 1)[1:-1]))


# -- the likelihood ----------------------------------------------------------------------------------------


@examples(20)
@given(st.integers(0, 2**20))
def test_gradient_equals_finite_differences(seed):
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    X, y, share = rng.normal(size=(30, d)), rng.integers(k, size=30), rng.dirichlet(np.ones(30))
    y[:k] = np.arange(k)
    params = rng.normal(size=d + k - 1)

    def value(point):
        return negative_log_likelihood(point, X, y, share, 0.3)[0]

    steps = 1e-6 * np.eye(len(params))
    expected = [(value(params + step) - value(params - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(negative_log_likelihood(params, X, y, share, 0.3)[1], expected, atol=1e-7)


def test_fit_maximises_the_likelihood_as_written():
    X, y = staged()
    model = OrdinalClassifier(2.0, C_shift=None, tol=1e-9).fit(X, y)

    def objective(point):
        up_to = expit(np.append(np.cumsum(point[3:]), np.inf) - (X @ point[:3])[:, None])
        own = np.diff(up_to, prepend=0.0, axis=1)[np.arange(len(y)), y]
        return point[:3] @ point[:3] / 4 - np.log(np.maximum(own, 1e-300)).sum()

    found = minimize(objective, [0, 0, 0, -1, 1, 1], method="Nelder-Mead", options={"maxiter": 5000})
    ours = np.concatenate([model.coef_, model.thresholds_[:1], np.diff(model.thresholds_)])
    assert objective(ours) <= found.fun + 1e-6
    np.testing.assert_allclose(ours, found.x, atol=0.02)


@pytest.mark.skipif(importlib.util.find_spec("statsmodels") is None, reason="needs statsmodels")
def test_fit_equals_statsmodels():
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    X, y = staged(400)
    theirs = OrderedModel(y, X, distr="logit").fit(method="bfgs", disp=False, gtol=1e-8)
    ours = OrdinalClassifier(1e9, C_shift=None, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict(X), atol=1e-5)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_two_classes_are_logistic_regression(C):
    X, y = staged(k=2)
    weight = np.random.default_rng(0).random(len(y))
    ours = OrdinalClassifier(C, tol=1e-9).fit(X, y, weight)
    theirs = LogisticRegression(C=C, tol=1e-10).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert ours.shifts_ is None


def test_tails_keep_their_digits():
    proba = class_probabilities(np.array([[-800.0], [0.0], [60.0], [800.0]]), np.array([-1.0, 0.0, 2.0]))
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba[2, 1], np.exp(-60) * (1 - np.exp(-1)), rtol=1e-9)


# -- rows, weights, classes --------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"C": 1.0, "C_shift": 0.1}])
def test_weights_count_as_repeated_rows(settings):
    X, y = staged(60)
    counts = np.random.default_rng(1).integers(0, 3, 60)
    weighted = OrdinalClassifier(**settings, tol=1e-8).fit(X, y, counts.astype(float))
    repeated = OrdinalClassifier(**settings, tol=1e-8).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert (weighted.C_, weighted.C_shift_) == (repeated.C_, repeated.C_shift_)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)


def test_sparse_rows_give_the_same_without_shifts():
    X, y = staged()
    X[np.abs(X) < 0.5] = 0.0
    dense = OrdinalClassifier(1.0, C_shift=None, tol=1e-8).fit(X, y)
    rows = sparse.csr_array(X)
    same = OrdinalClassifier(1.0, tol=1e-8).fit(rows, y)
    assert same.shifts_ is None
    np.testing.assert_allclose(same.predict_proba(rows), dense.predict_proba(X), atol=1e-6)


def test_classes_that_do_not_occur_are_left_out():
    X, y = staged()
    labels = pd.Series(
        pd.Categorical.from_codes(np.where(y == 1, 0, y), ["IV", "III", "II", "I"], ordered=True)
    )
    model = OrdinalClassifier(1.0).fit(X, labels)
    assert model.classes_.tolist() == ["IV", "II", "I"]
    assert (np.diff(model.thresholds_) > 0).all()
    none = OrdinalClassifier(1.0).fit(X, y, (y != 2).astype(float))
    assert none.classes_.tolist() == [0, 1, 3]
    with pytest.raises(InputError, match="at least 2 classes"):
        OrdinalClassifier().fit(X, np.ones(len(y)))


def test_shifts_are_used_where_odds_are_not_proportional():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    # The first feature divides the lowest class from the others, the second one the highest.
    y = np.where(X[:, 0] + 0.3 * rng.logistic(size=600) < 0, 0, 1)
    y = np.where((y == 1) & (X[:, 1] + 0.3 * rng.logistic(size=600) > 0), 2, y)
    model, plain = OrdinalClassifier().fit(X, y), OrdinalClassifier(C_shift=None).fit(X, y)
    assert model.C_shift_ is not None
    own = [np.log(each.predict_proba(X)[np.arange(600), y]).mean() for each in (model, plain)]
    assert own[0] > own[1] + 0.1


def test_groups_are_held_out_together():
    X, y = staged(90)
    groups = np.repeat(np.arange(30), 3)
    together = OrdinalClassifier().fit(X, y, groups=groups)
    assert together.C_ in (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
    few = OrdinalClassifier().fit(X, y, groups=np.arange(90) % 2)
    assert (few.C_, few.C_shift_) == (1.0, None)


def test_a_fit_that_ends_early_is_announced():
    X, y = staged()
    with pytest.warns(ConvergenceWarning, match="has not converged in 1 iterations"):
        OrdinalClassifier(1.0, C_shift=None, max_iter=1).fit(X, y)


@parametrize_with_checks([OrdinalClassifier()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# -- in models ---------------------------------------------------------------------------------------------


def mixed_problem(n=150):
    X, y = staged(n)
    rng = np.random.default_rng(0)
    kind = np.array(["a", "b", "c"])[np.clip(y + rng.integers(-1, 1, n), 0, 2)]
    frame = pd.DataFrame({"stage": np.array(["I", "II", "III", "IV"])[y], "kind": kind, "grade": y // 2})
    return X, declare_order(frame, {"stage": ["I", "II", "III", "IV"], "grade": [0, 1]})


@pytest.mark.parametrize(
    "model",
    [
        ChainClassifier(ordinal_estimator()),
        ChainClassifier({"stage": ordinal_estimator()}),
        IndependentClassifier(OrdinalClassifier(1.0)),
        TreeClassifier(ordinal_estimator(), parametrisation="inputs", random_state=0),
        BayesNetClassifier(ordinal_estimator(), max_parents=1, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_ordered_variables_have_ordinal_models_and_others_the_default(model, tmp_path):
    X, Y = mixed_problem()
    model.fit(X, Y)
    prediction = model.predict_joint(X[:5])
    assert model.space_.ordered == (True, False, True)
    assert [each is None for each in model._estimators(model.space_.names)] == [False, True, True]
    answer = prediction.decide("absolute")
    assert answer["stage"].dtype == Y["stage"].dtype
    save_model(model, tmp_path / "model.tuplet")
    again = load_model(tmp_path / "model.tuplet")
    assert again.space_.ordered == model.space_.ordered
    assert again.predict_joint(X[:5]).decide("absolute").equals(answer)


def test_an_ordinal_model_needs_ordered_labels():
    X, Y = mixed_problem()
    nominal = Y.astype({"stage": str})
    with pytest.raises(InputError, match=r"those of 'stage' are not.*declare_order"):
        ChainClassifier(ordinal_estimator()).fit(X, nominal[["stage", "kind"]])
    with pytest.raises(InputError, match="those of 'kind' are not"):
        ChainClassifier({"kind": ordinal_estimator()}).fit(X, Y)
    with pytest.raises(InputError, match="combinations of labels have no order"):
        PowersetClassifier(ordinal_estimator()).fit(X, Y)
    assert ChainClassifier(ordinal_estimator()).fit(X, nominal[["grade"]]).predict(X[:2]).shape == (2, 1)


def test_decisions_for_ordered_losses_are_saved(tmp_path):
    X, Y = mixed_problem()
    model = DecisionClassifier(IndependentClassifier(), Quantile(0.8)).fit(X, Y)
    save_model(model, tmp_path / "model.tuplet")
    assert load_model(tmp_path / "model.tuplet").predict(X[:9]).equals(model.predict(X[:9]))
