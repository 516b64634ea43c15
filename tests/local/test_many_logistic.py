"""Batched logistic regression: scikit-learn's answers, and the corners where a solver may stumble."""

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from draws import examples
from tuplet.core.compiled import dispatchers
from tuplet.core.exceptions import ConvergenceWarning, InputError
from tuplet.core.typing import UNKNOWN
from tuplet.local.many_logistic import LogisticBatch, ManyLogistic

TIGHT = {"tol": 1e-10, "max_iter": 20_000}


def fit_many(
    X, y, blocks=None, *, n_classes, n_blocks=None, sample_weight=None, extra=None, n_jobs=1, **settings
):
    """Fit one regression to each block, one block of all rows unless given."""
    blocks = np.zeros(len(X), dtype=np.intp) if blocks is None else blocks
    n_blocks = int(blocks.max()) + 1 if n_blocks is None else n_blocks
    batch = LogisticBatch(X, **settings)
    return batch.fit(y, blocks, n_blocks, n_classes, sample_weight, extra=extra, n_jobs=n_jobs)


def problem(seed: int, n: int, d: int, k: int, q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features whose scales and means differ, classes that depend on them, blocks of unequal size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 2, size=d) + rng.normal(size=d)
    X[:, 1:] += 0.5 * X[:, :1]
    logits = X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))
    blocks = rng.choice(q, size=n, p=rng.dirichlet(np.ones(q)))
    return X, logits.argmax(axis=1), blocks


def rival(X: np.ndarray, y: np.ndarray, C: float, weight: np.ndarray) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its line search ends where rounding begins
        return LogisticRegression(C=C, tol=1e-10, max_iter=100_000).fit(X, y, sample_weight=weight)


def gradient_norm(X: np.ndarray, y: np.ndarray, weight: np.ndarray, C: float, fits: ManyLogistic) -> float:
    """Return the largest entry of the gradient of the only block's objective over C sum w, written anew."""
    classes = np.flatnonzero(fits.present[0])
    centred, W = X - X.mean(axis=0), fits.coef[0, classes]
    residual = np.exp(fits.log_proba(X)[:, classes]) - (y[:, None] == classes)
    residual *= weight[:, None] / weight.sum()
    rows = slice(1, None) if len(classes) == 2 else slice(None)
    of_coef = residual.T @ centred + W / (C * weight.sum())
    return max(np.abs(of_coef[rows]).max(initial=0), np.abs(residual.sum(axis=0)).max())


@examples(30)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 90),
    d=st.integers(1, 12),
    k=st.integers(2, 5),
    q=st.integers(1, 4),
    C=st.sampled_from([0.01, 0.3, 1.0, 10.0]),
    weighted=st.booleans(),
)
def test_every_block_has_the_coefficients_and_likelihood_of_scikit_learn(
    seed: int, n: int, d: int, k: int, q: int, C: float, weighted: bool
) -> None:
    X, y, blocks = problem(seed, n, d, k, q)
    weight = np.random.default_rng(seed).exponential(size=n) if weighted else np.ones(n)
    sample_weight = weight if weighted else None
    fits = fit_many(X, y, blocks, n_classes=k, n_blocks=q, C=C, sample_weight=sample_weight, **TIGHT)
    assert fits.converged.all()
    for g in range(q):
        rows = np.flatnonzero(blocks == g)
        classes = np.unique(y[rows])
        assert np.array_equal(np.flatnonzero(fits.present[g]), classes)
        if len(classes) < 2:
            assert fits.train_log_likelihood[g] == 0
            continue
        other = rival(X[rows], y[rows], C, weight[rows])
        shown = classes if len(classes) > 2 else classes[1:]
        np.testing.assert_allclose(fits.coef[g, shown], other.coef_, atol=1e-4)
        np.testing.assert_allclose(fits.intercept[g, shown], other.intercept_, atol=1e-4)
        log_proba = other.predict_log_proba(X[rows])
        # Coefficients that are off by 1e-4 move logits by 1e-4 (1 + |x|), and a logarithm by two of these.
        atol = 2e-4 * (1 + np.abs(X[rows]).sum(axis=1).max())
        found = fits.log_proba(X[rows], np.full(len(rows), g))[:, classes]
        np.testing.assert_allclose(found, log_proba, atol=atol)
        expected = weight[rows] @ log_proba[np.arange(len(rows)), np.searchsorted(classes, y[rows])]
        assert fits.train_log_likelihood[g] == pytest.approx(expected, abs=1e-6 * len(rows))


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(3, 60),
    d=st.integers(0, 40),
    k=st.integers(2, 4),
    log_C=st.floats(-6, 6),
    kind=st.sampled_from(["noise", "separable", "constant", "copies", "singles"]),
)
def test_the_gradient_vanishes_whatever_the_data(
    seed: int, n: int, d: int, k: int, log_C: float, kind: str
) -> None:
    rng = np.random.default_rng(seed)
    X, y, C = rng.normal(size=(n, d)), rng.integers(0, k, n), 10.0**log_C
    y[:2] = [0, 1]
    if kind == "separable":
        X[:, : min(1, d)] += 50.0 * y[:, None]
    elif kind == "constant":
        X[:, ::2] = 3.0
    elif kind == "copies":
        X[:, d // 2 :] = X[:, : d - d // 2]
    elif kind == "singles":
        y[:] = 0
        y[:k] = np.arange(k)[: len(y[:k])]
    weight = rng.exponential(size=n)
    fits = fit_many(X, y, n_classes=k, C=C, sample_weight=weight, tol=1e-7, max_iter=5000)
    assert fits.converged.all()
    assert gradient_norm(X, y, weight, C, fits) <= 1.1e-7
    assert fits.gradient_norm[0] <= 1e-7
    own = fits.log_proba(X)[np.arange(n), y]
    assert fits.train_log_likelihood[0] == pytest.approx(weight @ own, rel=1e-9, abs=1e-9)


def test_the_reported_gradient_norm_is_that_of_the_columns_as_given() -> None:
    X, y, _ = problem(3, 80, 6, 3, 1)
    with pytest.warns(ConvergenceWarning, match="1 of 1 fits have not converged in 3 iterations"):
        fits = fit_many(X, y, n_classes=3, tol=1e-8, max_iter=3)
    assert not fits.converged[0]
    assert fits.n_iter[0] == 3
    assert fits.gradient_norm[0] == pytest.approx(gradient_norm(X, y, np.ones(80), 1.0, fits), rel=1e-6)


def test_weights_count_rows() -> None:
    X, y, blocks = problem(0, 60, 4, 3, 3)
    times = np.random.default_rng(0).integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), times)
    weighted = fit_many(X, y, blocks, n_classes=3, sample_weight=times, **TIGHT)
    counted = fit_many(X[repeated], y[repeated], blocks[repeated], n_classes=3, **TIGHT)
    np.testing.assert_allclose(weighted.coef, counted.coef, atol=1e-6)
    np.testing.assert_array_equal(weighted.present, counted.present)
    np.testing.assert_allclose(weighted.train_log_likelihood, counted.train_log_likelihood, atol=1e-6)


def test_unknown_labels_and_blocks_leave_rows_out() -> None:
    X, y, blocks = problem(1, 60, 4, 3, 2)
    hidden = np.arange(0, 60, 5)
    batch = LogisticBatch(X, **TIGHT)
    for what in ("labels", "blocks"):
        y_, blocks_ = y.copy(), blocks.copy()
        (y_ if what == "labels" else blocks_)[hidden] = UNKNOWN
        fits = batch.fit(y_, blocks_, 2, 3)
        kept = np.setdiff1d(np.arange(60), hidden)
        expected = fit_many(X[kept], y[kept], blocks[kept], n_classes=3, **TIGHT)
        np.testing.assert_allclose(fits.coef, expected.coef, atol=1e-6)


def test_blocks_with_little_in_them_still_give_distributions() -> None:
    X = np.random.default_rng(0).normal(size=(5, 3))
    y, blocks = np.array([2, 2, 0, 1, 1]), np.array([0, 0, 2, 2, UNKNOWN])
    fits = fit_many(X, y, blocks, n_classes=3, n_blocks=4)
    proba = np.exp(fits.log_proba_all(X))
    assert proba.shape == (4, 5, 3)
    np.testing.assert_allclose(proba.sum(axis=2), 1)
    np.testing.assert_array_equal(proba[0], np.tile([0, 0, 1], (5, 1)))
    np.testing.assert_allclose(proba[[1, 3]], 1 / 3)
    assert (proba[2, :, 2] == 0).all()
    assert fits.converged.all()


def test_no_block_at_all() -> None:
    fits = fit_many(np.ones((2, 1)), np.array([0, 1]), np.full(2, UNKNOWN), n_classes=2)
    assert fits.coef.shape == (0, 2, 1)
    assert fits.log_proba_all(np.ones((2, 1))).shape == (0, 2, 2)


def test_all_blocks_at_once_and_one_block_per_row_agree() -> None:
    X, y, blocks = problem(2, 200, 5, 4, 6)
    fits = fit_many(X, y, blocks, n_classes=4, n_blocks=6)
    every, rows = fits.log_proba_all(X), np.arange(200)
    np.testing.assert_allclose(fits.log_proba(X, blocks), every[blocks, rows], atol=1e-12)
    likelihood = np.bincount(blocks, fits.log_proba(X, blocks)[rows, y], minlength=6)
    np.testing.assert_allclose(fits.train_log_likelihood, likelihood, atol=1e-10)


def test_extra_columns_are_columns() -> None:
    X, y, blocks = problem(4, 150, 5, 3, 2)
    parents = np.eye(4)[np.random.default_rng(4).integers(0, 4, 150)]
    both = np.hstack([X, parents])
    beside = fit_many(X, y, blocks, n_classes=3, extra=parents, **TIGHT)
    within = fit_many(both, y, blocks, n_classes=3, **TIGHT)
    np.testing.assert_allclose(beside.coef, within.coef, atol=1e-5)
    np.testing.assert_allclose(beside.log_proba(both, blocks), within.log_proba(both, blocks), atol=1e-6)


def test_more_columns_than_rows() -> None:
    X, y, _ = problem(5, 12, 70, 3, 1)
    fits = fit_many(X, y, n_classes=3, **TIGHT)
    other = rival(X, y, 1.0, np.ones(12))
    np.testing.assert_allclose(fits.coef[0], other.coef_, atol=1e-5)


def test_threads_give_the_same_numbers() -> None:
    X, y, blocks = problem(6, 800, 6, 3, 40)
    batch = LogisticBatch(X)
    one, two = (batch.fit(y, blocks, 40, 3, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.n_iter, two.n_iter)


def test_tolerances_may_differ_between_blocks() -> None:
    X, y, _ = problem(7, 200, 6, 3, 1)
    twice = LogisticBatch(np.vstack([X, X]), tol=np.array([1e-2, 1e-9]))
    fits = twice.fit(np.tile(y, 2), np.repeat([0, 1], 200), 2, 3)
    assert fits.n_iter[0] < fits.n_iter[1]
    assert fits.gradient_norm[1] <= 1e-9 < fits.gradient_norm[0] <= 1e-2


def test_features_must_be_finite_numbers() -> None:
    for wrong in (np.array([[1.0], [np.inf]]), np.zeros((0, 2))):
        with pytest.raises(InputError, match="X must have rows, all of finite numbers"):
            LogisticBatch(wrong)


def test_the_vector_exponential_and_logarithm_are_accurate() -> None:
    x = -np.geomspace(1e-12, 699, 5001)
    kernel = dispatchers("tuplet.local.logistic_kernels")
    exp, log = kernel["_exp"], kernel["_log"]

    @njit
    def both(of_exp: np.ndarray, of_log: np.ndarray, scratch: np.ndarray) -> None:
        exp(of_exp, scratch)
        log(of_log, scratch)

    exponential, logarithm = x.copy(), 1 - x
    both(exponential, logarithm, np.empty_like(x))
    np.testing.assert_allclose(exponential, np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(logarithm, np.log(1 - x), rtol=1e-15)


@pytest.mark.data
def test_configurations_of_rf1(
    benchmark_set: Callable[[str], tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]],
) -> None:
    features, targets, _ = benchmark_set("Rf1")
    X = StandardScaler().fit_transform(features)[::4]
    Y = np.column_stack([pd.factorize(targets[name], sort=True)[0] for name in targets])[::4]
    blocks = np.ravel_multi_index((Y[:, 1], Y[:, 2]), (4, 3))
    fits = fit_many(X, Y[:, 0], blocks, n_classes=4, n_blocks=12, n_jobs=2, **TIGHT)
    assert fits.converged.all()
    compared = 0
    for g in np.flatnonzero(fits.present.sum(axis=1) > 1):
        rows, classes = np.flatnonzero(blocks == g), np.flatnonzero(fits.present[g])
        other = rival(X[rows], Y[rows, 0], 1.0, np.ones(len(rows)))
        np.testing.assert_allclose(fits.coef[g, classes[classes.size == 2 :]], other.coef_, atol=1e-4)
        proba = other.predict_proba(X[rows])[np.arange(len(rows)), np.searchsorted(classes, Y[rows, 0])]
        assert fits.train_log_likelihood[g] == pytest.approx(np.log(proba).sum(), abs=1e-6 * len(rows))
        compared += 1
    assert compared >= 5
