"""Calibrators of beliefs, against what they must do and against scikit-learn."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from tuplet.core.typing import UNKNOWN
from tuplet.models.rules.calibration import CLIP, learn_calibrator

KINDS = ["identity", "platt", "isotonic", "temperature", "dirichlet"]


def beliefs(k=2, n=3000, power=3.0, seed=0):
    """Beliefs that are surer than they should be: p^power instead of p."""
    rng = np.random.default_rng(seed)
    right = rng.dirichlet(np.ones(k), n)
    codes = (right.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    sure = right**power
    return right, sure / sure.sum(axis=1, keepdims=True), codes


def log_likelihood(proba, codes):
    return np.log(proba[np.arange(len(codes)), codes]).mean()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_probabilities_and_none_is_zero(kind, k):
    _, sure, codes = beliefs(k)
    sure[:5] = np.eye(k)[0]
    answer = learn_calibrator(kind, sure, codes).apply(sure[5:])
    np.testing.assert_allclose(answer.sum(axis=1), 1)
    assert answer.min() > 0


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", KINDS[1:])
def test_overconfident_beliefs_come_near_to_the_right_ones_on_new_rows(kind, k):
    _, sure, codes = beliefs(k)
    right, new, labels = beliefs(k, seed=1)
    answer = learn_calibrator(kind, sure, codes).apply(new)
    gap = log_likelihood(right, labels) - log_likelihood(new, labels)
    left = log_likelihood(right, labels) - log_likelihood(answer, labels)
    assert left < 0.25 * gap


def test_the_temperature_is_the_power_that_spoilt_the_beliefs():
    _, sure, codes = beliefs(3, n=20_000)
    assert learn_calibrator("temperature", sure, codes).temperature == pytest.approx(3, abs=0.15)


def test_isotonic_is_that_of_scikit_learn_but_for_a_pseudo_row():
    _, sure, codes = beliefs()
    answer = learn_calibrator("isotonic", sure, codes).apply(sure)[:, 1]
    expected = IsotonicRegression(out_of_bounds="clip").fit(sure[:, 1], codes).predict(sure[:, 1])
    np.testing.assert_allclose(answer, expected, atol=1 / len(codes))


def test_dirichlet_is_a_ridge_regression_on_clipped_logarithms():
    _, sure, codes = beliefs(3)
    sure[0] = [1.0, 0.0, 0.0]
    answer = learn_calibrator("dirichlet", sure, codes).apply(sure)
    logs = np.log(np.clip(sure, 1e-5, None))
    expected = LogisticRegression(max_iter=1000).fit(logs, codes).predict_proba(logs)
    np.testing.assert_allclose(answer, expected, atol=10 * CLIP)


def test_platts_targets_keep_separable_beliefs_finite():
    sure = np.repeat([[1.0, 0.0], [0.0, 1.0]], 8, axis=0)
    answer = learn_calibrator("platt", sure, np.repeat([0, 1], 8)).apply(sure)
    np.testing.assert_allclose(answer[0, 0], 9 / 10, atol=0.03)  # (n + 1) / (n + 2), and a pseudo-row


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repeated_rows_and_missing_labels_do_not_count(kind):
    _, sure, codes = beliefs(n=60)
    weights = np.tile([1.0, 2.0, 3.0], 20)
    again = np.repeat(np.arange(60), weights.astype(int))
    one = learn_calibrator(kind, sure, codes, weights).apply(sure)
    other = learn_calibrator(kind, sure[again], codes[again]).apply(sure)
    np.testing.assert_allclose(one, other, atol=1e-3)
    gaps = np.concatenate([codes, np.full(60, UNKNOWN)])
    same = learn_calibrator(kind, np.vstack([sure, sure[::-1]]), gaps, np.tile(weights, 2)).apply(sure)
    np.testing.assert_allclose(one, same)


@pytest.mark.parametrize("kind", KINDS)
def test_where_there_is_nothing_to_learn_beliefs_stay(kind):
    _, sure, _ = beliefs(n=10)
    np.testing.assert_array_equal(learn_calibrator(kind, sure, np.zeros(10, dtype=int)).apply(sure), sure)


def test_a_category_that_no_row_had_keeps_a_little():
    _, sure, codes = beliefs(3)
    codes[codes == 2] = 0
    for kind in KINDS[1:]:
        answer = learn_calibrator(kind, sure, codes).apply(sure)
        assert answer[:, 2].min() > 0
