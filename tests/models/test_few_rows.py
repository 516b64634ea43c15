"""Models of a few rows beside the training frequencies."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.naive_bayes import GaussianNB

from tuplet import ChainClassifier, IndependentClassifier, PriorClassifier, TreeClassifier
from tuplet.local.smoothing import smoothed_frequencies
from tuplet.models.few_rows import FEW_ROWS, are_few


def data(n, seed=0, strength=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (strength * X[:, :2] + rng.normal(size=(n, 2)) > 0).astype(int)
    Y[:2] = [[0, 1], [1, 0]]  # both labels of both variables
    return X, Y


def left_out(X, Y):
    """Log-probabilities (n, 2) of each row by a model of the others, and by their frequencies."""
    answer = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        model = IndependentClassifier()._fit_codes(X[rest], full.space_, Y[rest], None)
        own = model._joint_of(X[i : i + 1]).log_prob(Y[i : i + 1])[0]
        counts = [np.bincount(column, minlength=2).astype(float) for column in Y[rest].T]
        frequencies = [smoothed_frequencies(each)[v] for each, v in zip(counts, Y[i], strict=True)]
        answer.append([own, np.log(frequencies).sum()])
    return np.array(answer)


full = IndependentClassifier().fit(*data(40))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_share_predicts_left_out_rows_best(seed):
    X, Y = data(8, seed, strength=3.0)
    held = np.exp(left_out(X, Y))

    def loss(share):
        return -np.log((1 - share) * held[:, 0] + share * held[:, 1]).sum() - np.log(share)

    best = minimize_scalar(loss, bounds=(1e-9, 1), method="bounded", options={"xatol": 1e-9}).x
    model = IndependentClassifier().fit(X, Y)
    assert model.frequency_share_ == pytest.approx(best, abs=1e-4)
    alone = IndependentClassifier()._fit_codes(X, model.space_, Y, None)
    assert alone.frequency_share_ == 0
    new, outcomes = data(20, 9)
    p, q = (
        np.exp(each.predict_joint(new).log_prob(outcomes))
        for each in (alone, PriorClassifier("marginals").fit(X, Y))
    )
    mixed = np.exp(model.predict_joint(new).log_prob(outcomes))
    np.testing.assert_allclose(mixed, (1 - best) * p + best * q, rtol=1e-3)


@pytest.mark.parametrize("make", [IndependentClassifier, ChainClassifier, TreeClassifier])
def test_models_of_five_rows_are_no_worse_than_the_frequencies_on_average(make):
    gain = []
    for seed in range(6):
        X, Y = data(200, seed, strength=0.0)  # nothing to learn
        ours = make().fit(X[:5], Y[:5]).predict_joint(X[5:]).log_prob(Y[5:])
        prior = PriorClassifier("marginals").fit(X[:5], Y[:5]).predict_joint(X[5:]).log_prob(Y[5:])
        gain.append((ours - prior).mean())
    assert np.mean(gain) > -0.03


def test_many_rows_heavy_rows_and_chosen_estimators_are_not_judged():
    X, Y = data(FEW_ROWS)
    assert IndependentClassifier().fit(X, Y).frequency_share_ == 0
    few = X[:8], Y[:8]
    assert IndependentClassifier().fit(*few).frequency_share_ > 0
    assert IndependentClassifier(GaussianNB()).fit(*few).frequency_share_ == 0
    assert not are_few(Y[:8], np.full(8, 2.0))
    assert not are_few(Y, np.full(FEW_ROWS, 0.1))
    assert are_few(Y[:8], np.ones(8))
    assert IndependentClassifier().fit(X[:1], Y[:1]).frequency_share_ == 0


def test_whole_weights_are_repeated_rows():
    X, Y = data(5)
    weights = np.array([1, 2, 1, 3, 1])
    times = np.repeat(np.arange(5), weights)
    ours = ChainClassifier().fit(X, Y, sample_weight=weights)
    theirs = ChainClassifier().fit(X[times], Y[times])
    assert ours.frequency_share_ == pytest.approx(theirs.frequency_share_, abs=1e-4)


def test_rows_of_a_group_are_left_out_together():
    X, Y = data(6)
    twice = np.vstack([X, X]), np.vstack([Y, Y])
    groups = np.tile(np.arange(6), 2)
    apart = IndependentClassifier().fit(*twice, groups=groups).frequency_share_
    assert apart > IndependentClassifier().fit(*twice).frequency_share_
