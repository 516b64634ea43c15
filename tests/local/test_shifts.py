"""Shifted logistic regressions: optima by scipy and scikit-learn, and the columns they are fitted to."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from draws import examples
from tuplet.core.exceptions import ConvergenceWarning
from tuplet.core.typing import UNKNOWN
from tuplet.local import columns, shifts
from tuplet.local.columns import N_LEADING, PrincipalColumns, SparseColumns, prepare_columns
from tuplet.local.shifts import STRENGTH, Baseline, Shifts, log_proba


def problem(seed, card, q, n=40, r=3):
    """Columns with their mean, given logits, classes and blocks with gaps, weights."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, r))
    Z = np.concatenate([Z, Z.mean(axis=0, keepdims=True)])
    offset = rng.normal(size=(1 if card == 2 else card, n + 1))
    y, blocks = rng.integers(card, size=n), rng.integers(q, size=n)
    y[rng.random(n) < 0.1], blocks[rng.random(n) < 0.1] = UNKNOWN, UNKNOWN
    return Z, offset, y, blocks, rng.uniform(0.1, 2, n)


def slow_objective(theta, Z, offset, y, blocks, weight, C, card):
    """The formula of the module, row by row."""

    def log_p(row, block):
        logits = offset[:, row] + theta[block, :, :-1] @ Z[row] + theta[block, :, -1]
        return log_softmax(np.concatenate([[0.0], logits]) if card == 2 else logits)

    middle = offset[:, -1]
    log_prior = log_softmax(np.concatenate([[0.0], middle]) if card == 2 else middle)
    value = -(theta[:, :, :-1] ** 2).sum() / (2 * C)
    for i in range(len(y)):
        if y[i] != UNKNOWN and blocks[i] != UNKNOWN:
            value += weight[i] * log_p(i, blocks[i])[y[i]]
    for block in range(len(theta)):
        moved = theta[block, :, -1] + theta[block, :, :-1] @ Z[-1]
        shifted = log_softmax(np.concatenate([[0.0], middle + moved]) if card == 2 else middle + moved)
        value -= STRENGTH * np.exp(log_prior) @ (log_prior - shifted)
    return value


@examples(15)
@given(st.integers(0, 1000), st.integers(2, 4), st.integers(1, 3), st.sampled_from([0.05, 1.0, 20.0]))
def test_no_shift_is_better_than_the_fitted_one(seed, card, q, C):
    given_data = problem(seed, card, q)
    Z, offset, y, blocks, weight = given_data
    # The module's pseudo-rows are at the mean of the columns, which `PrincipalColumns` puts at zero.
    Z = Z - Z[-1]
    fitted = Shifts.fit(Z, offset, y, blocks, q, card, weight, C=C, tol=1e-9)

    def loss(flat):
        return -slow_objective(flat.reshape(fitted.theta.shape), Z, offset, y, blocks, weight, C, card)

    best = minimize(loss, np.zeros(fitted.theta.size), method="L-BFGS-B", options={"maxiter": 2000})
    assert loss(fitted.theta.ravel()) <= best.fun + 1e-6
    own = fitted.own_log_proba(Z, offset, y, blocks, card)
    used = blocks != UNKNOWN
    assert weight[used] @ own[used] - fitted.penalty == pytest.approx(-loss(fitted.theta.ravel()), abs=1e-8)


def test_the_shared_model_is_scikit_learns_with_a_pseudo_row():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4)) @ rng.normal(size=(4, 4)) + 5
    y = np.digitize(X[:, 0] + rng.normal(size=120), np.quantile(X[:, 0], [0.3, 0.7]))
    weight = rng.uniform(0.5, 2, 120)
    learned = PrincipalColumns.learn(X, weight)
    Z = np.concatenate([learned.apply(X), np.zeros((1, 4))])
    shared = Baseline.fit(Z, y, 3, weight, C=0.3, tol=1e-10)
    standard = learned.scaling.transform(X)
    counts = np.bincount(y, weight) + 1
    frequencies = counts / counts.sum()
    rows = np.concatenate([standard, np.zeros((3, 4))])
    # C = 0.3 on a softmax of as many logits as classes, as scikit-learn has it.
    reference = LogisticRegression(C=0.3, tol=1e-10, max_iter=10_000).fit(
        rows, np.append(y, [0, 1, 2]), np.append(weight, STRENGTH * frequencies)
    )
    found = log_proba(shared.logits(Z[:-1]), 3).T
    np.testing.assert_allclose(found, reference.predict_log_proba(standard), atol=1e-6)


def test_columns_are_a_rotation_of_standardised_features():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(3, 10, 50), rng.normal(size=50), np.full(50, 7.0), rng.normal(size=50)])
    X[::7, 1] = np.nan
    learned = PrincipalColumns.learn(X, np.ones(50))
    np.testing.assert_allclose(learned.basis.T @ learned.basis, np.eye(4), atol=1e-12)
    standard = (X - np.nanmean(X, axis=0)) / np.where(np.nanstd(X, axis=0) > 0, np.nanstd(X, axis=0), 1)
    standard = np.nan_to_num(standard)
    Z = learned.apply(X)
    np.testing.assert_allclose(Z @ Z.T, standard @ standard.T, atol=1e-9)
    assert (np.diff(Z.var(axis=0)) < 1e-12).all()  # those along which rows differ most come first


def test_there_are_no_more_columns_than_rows():
    X = np.random.default_rng(0).normal(size=(6, 30))
    learned = PrincipalColumns.learn(X, np.ones(6))
    Z, standard = learned.apply(X), (X - X.mean(axis=0)) / X.std(axis=0)
    assert Z.shape == (6, 5)
    np.testing.assert_allclose(Z @ Z.T, standard @ standard.T, atol=1e-9)


def test_a_value_that_never_occurs_shifts_nothing():
    Z, offset, y, _, weight = problem(0, 3, 1)
    fitted = Shifts.fit(Z - Z[-1], offset, y, np.zeros(40, dtype=np.intp), 2, 3, weight, C=1.0)
    np.testing.assert_allclose(fitted.theta[1], 0.0, atol=1e-12)


def test_a_fit_that_has_not_converged_says_so(monkeypatch):
    monkeypatch.setattr(shifts, "MAX_ITER", 1)
    Z, offset, y, blocks, weight = problem(0, 2, 2)
    with pytest.warns(ConvergenceWarning, match="have not converged in 1 iterations"):
        Shifts.fit(Z - Z[-1], offset, y, blocks, 2, 2, weight, C=100.0, tol=1e-9)


@examples(15)
@given(st.integers(0, 1000), st.sampled_from([2, 3]), st.sampled_from([5.0, 40.0, 300.0]))
def test_given_logits_that_are_sure_and_wrong(seed, card, size):
    rng = np.random.default_rng(seed)
    Z, offset, y, blocks, weight = problem(seed, card, 2)
    Z, offset = Z - Z[-1], size * rng.normal(size=offset.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said where it is so; never silent, never NaN
        fitted = Shifts.fit(Z, offset, y, blocks, 2, card, weight, C=1.0)
    assert np.isfinite(fitted.theta).all()
    arguments = (Z, offset, y, blocks, weight, 1.0, card)
    zero = np.zeros_like(fitted.theta)
    assert slow_objective(fitted.theta, *arguments) >= slow_objective(zero, *arguments) - 1e-9


def sparse_problem(n=60, d=12, seed=0):
    """Sparse features with gaps, classes and weights."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.3, rng.normal(2, 3, size=(n, d)), 0.0)
    X[:, 4], X[3, 2], X[5, 2] = 0.0, np.nan, np.nan
    return X, rng.integers(3, size=n), rng.uniform(0.2, 2, n)


def test_sparse_columns_are_those_of_dense_ones():
    X, _, weight = sparse_problem()
    dense, thin = PrincipalColumns.learn(X, weight), SparseColumns.learn(sparse.csr_array(X), weight)
    np.testing.assert_allclose(thin.mean, dense.scaling.mean, atol=1e-12)
    np.testing.assert_allclose(thin.scale, dense.scaling.scale, atol=1e-12)
    Z = dense.apply(X)
    rows, leading = thin.prepare(sparse.csr_array(X), with_mean=True)
    np.testing.assert_allclose(
        rows @ np.eye(12), np.vstack([dense.scaling.transform(X), np.zeros(12)]), atol=1e-9
    )
    # All axes fit, so that the randomised decomposition is exact; axes without variance are left out.
    np.testing.assert_allclose(leading[:-1] @ leading[:-1].T, Z @ Z.T, atol=1e-8)
    back = np.random.default_rng(0).normal(size=(2, 60))
    np.testing.assert_allclose(rows.pull_back(back), back @ dense.scaling.transform(X), atol=1e-9)


def test_leading_axes_of_sparse_rows_are_principal_axes():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 100)) < 0.2, 1.0, 0.0)
    X[:, :40] *= rng.random((300, 1)) < 0.5  # one axis stands out
    X[:, 60:] *= rng.random((300, 1)) < 0.5
    weight = rng.uniform(0.5, 2, 300)
    thin, dense = SparseColumns.learn(sparse.csr_array(X), weight), PrincipalColumns.learn(X, weight)
    assert thin.basis.shape == (100, N_LEADING)
    np.testing.assert_allclose(np.abs(thin.basis[:, :2].T @ dense.basis[:, :2]), np.eye(2), atol=1e-3)


@pytest.mark.parametrize("card", [2, 3])
def test_sparse_baselines_are_those_of_dense_ones(card):
    X, y, weight = sparse_problem()
    y = np.where(np.arange(60) % 7, y % card, UNKNOWN)
    dense, thin = (
        learn(X, weight).prepare(X, with_mean=True).Z for learn in (PrincipalColumns.learn, learn_sparse)
    )
    one, other = (Baseline.fit(Z, y, card, weight, C=0.5, tol=1e-8) for Z in (dense, thin))
    np.testing.assert_allclose(other.logits(thin), one.logits(dense), atol=1e-5)
    assert other.shift.penalty == pytest.approx(one.shift.penalty, abs=1e-5)
    again = Baseline.fit(thin, y, card, weight, C=0.5, tol=1e-8, start=other)
    np.testing.assert_allclose(again.logits(thin), other.logits(thin), atol=1e-5)


def learn_sparse(X, weight):
    """Learn sparse columns of a dense table."""
    return SparseColumns.learn(sparse.csr_array(X), weight)


def test_sparse_rows_of_large_tables_are_not_made_dense():
    X = sparse.random_array((2**13, 2**12), density=1e-3, format="csr", rng=np.random.default_rng(0))
    assert isinstance(prepare_columns(X, np.ones(2**13)), SparseColumns)


def test_blocks_of_rows_change_nothing():
    X = np.random.default_rng(0).normal(3, 2, size=(50, 4))
    X[::5, 1] = np.nan
    weight = np.random.default_rng(1).uniform(0.5, 2, 50)
    whole = PrincipalColumns.learn(X, weight)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "PASS_CELLS", 12)
        parts = PrincipalColumns.learn(X, weight)
        Z = parts.apply(X)
    np.testing.assert_allclose(parts.scaling.scale, whole.scaling.scale, atol=1e-12)
    np.testing.assert_allclose(Z @ Z.T, whole.apply(X) @ whole.apply(X).T, atol=1e-9)
