"""Trees and neighbours as local models: how much they are believed, and which parents they are tried with."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from draws import examples
from tuplet import BayesNetClassifier, ChainClassifier
from tuplet.core.typing import UNKNOWN
from tuplet.local import FamilyScorer, SmoothedClassifier
from tuplet.local.calibration import Calibration, is_made_of_trees, needs_calibration
from tuplet.models.bayesnet.learning import Shortlist, tilted_gain
from tuplet.structure import Family, candidate_parent_sets

SHARP = [
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(15, random_state=0),
    ExtraTreesClassifier(10, random_state=0),
    HistGradientBoostingClassifier(max_iter=50, learning_rate=0.2, random_state=0),
    KNeighborsClassifier(3),
]


def draw(seed=0, n=240):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (1.5 * X[:, 0] + rng.logistic(size=n) > 0).astype(int)


def held_out(estimator, seed, calibration=True):
    X, y = draw(seed)
    model = SmoothedClassifier.fit(estimator, X[:160], y[:160], 2)
    if not calibration:
        model = SmoothedClassifier(model.estimator, model.classes, model.counts)
    return model.log_proba(X[160:])[np.arange(80), y[160:]]


# -- calibration -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", SHARP, ids=lambda e: type(e).__name__)
def test_rows_that_were_not_seen_are_more_likely_with_calibration(estimator):
    # How much is gained depends on the classifier, and has no bound; so it is the sign, over several draws.
    raw = np.array([held_out(estimator, seed, calibration=False) for seed in range(4)])
    calibrated = np.array([held_out(estimator, seed) for seed in range(4)])
    assert calibrated.mean() > raw.mean()
    assert (calibrated.min(axis=1) > raw.min(axis=1)).all()


@pytest.mark.parametrize("estimator", SHARP, ids=lambda e: type(e).__name__)
def test_it_is_the_classifier_of_all_rows_that_is_calibrated(estimator):
    X, y = draw()
    model = SmoothedClassifier.fit(estimator, X, y, 2)
    raw = type(estimator)(**estimator.get_params()).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.proba(X), model.calibration.apply(raw), atol=1e-12)
    order = np.argsort(raw[:, 1])
    assert (np.diff(model.proba(X)[order, 1]) >= -1e-12).all()  # no decision of two classes turns against it


@examples(5)
@given(seed=st.integers(0, 10_000), power=st.sampled_from([0.4, 0.7, 1.0]), n_classes=st.sampled_from([2, 4]))
def test_the_two_numbers_are_the_best(seed, power, n_classes):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.7), size=600)
    true = proba**power / (proba**power).sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1).clip(max=n_classes - 1)
    weight, frequencies = rng.random(600), np.full(n_classes, 1 / n_classes)

    def loss(numbers):
        b, s = np.exp(numbers[0]), 1 / (1 + np.exp(-numbers[1]))
        found = Calibration(b, s, frequencies).apply(proba)
        return -(weight @ np.log(found[np.arange(600), y])) + 2 * np.log(b) ** 2

    starts = itertools.product(np.log([0.3, 0.7, 1.0]), [-5.0, -2.0])
    best = min(minimize(loss, start, method="Nelder-Mead").fun for start in starts)
    learned = Calibration.learn(proba, y, weight, frequencies)
    # The grid of shares misses the best of all by little.
    assert loss([np.log(learned.power), np.log(learned.share / (1 - learned.share))]) < best + 0.5
    np.testing.assert_allclose(learned.apply(proba).sum(axis=1), 1)


def test_weights_are_as_good_as_rows():
    X, y = draw(n=60)
    proba, frequencies = np.column_stack([1 - X[:, 1] % 1, X[:, 1] % 1]), np.array([0.5, 0.5])
    often = np.random.default_rng(0).integers(0, 4, size=60)
    rows = np.repeat(np.arange(60), often)
    weighted = Calibration.learn(proba, y, often.astype(float), frequencies)
    repeated = Calibration.learn(proba[rows], y[rows], None, frequencies)
    assert weighted.power == pytest.approx(repeated.power, rel=1e-8)
    assert weighted.share == repeated.share


def test_what_is_calibrated():
    for sharp in (*SHARP, GradientBoostingClassifier(), make_pipeline(StandardScaler(), SHARP[1])):
        assert needs_calibration(sharp)
    for modest in (
        LogisticRegression(),
        CalibratedClassifierCV(SHARP[0]),
        make_pipeline(LogisticRegression()),
    ):
        assert not needs_calibration(modest)
    assert is_made_of_trees(SHARP[3])
    assert not is_made_of_trees(SHARP[4])


def test_few_rows_are_left_as_they_are():
    X, y = draw(n=20)
    assert SmoothedClassifier.fit(SHARP[1], X, y, 2).calibration is None


def test_rare_classes_and_weights_are_no_obstacle():
    X, y = draw(n=60)
    y[:1] = 3  # one row of a third class, and none of a fourth
    for estimator in SHARP[:4]:
        model = SmoothedClassifier.fit(estimator, X, y, 5, np.linspace(0.5, 2, 60))
        assert np.isfinite(model.log_proba(X)).all()
        np.testing.assert_allclose(np.exp(model.log_proba(X)).sum(axis=1), 1)


def test_a_seed_gives_the_same_model_again():
    X, y = draw()
    for estimator in SHARP:
        first, second = (SmoothedClassifier.fit(estimator, X, y, 2).log_proba(X) for _ in range(2))
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("form", [BayesNetClassifier, ChainClassifier])
@pytest.mark.parametrize("estimator", SHARP[1:4], ids=lambda e: type(e).__name__)
def test_forests_and_boosting_are_never_absurdly_sure(form, estimator):
    X, first = draw()
    second = np.where(np.random.default_rng(1).random(240) < 0.8, first, 1 - first)
    Y = pd.DataFrame({"a": first, "b": second})
    model = form(estimator, random_state=0).fit(X[:160], Y[:160])
    found = model.predict_joint(X[160:]).log_prob(Y[160:])
    prior = Y[:160].value_counts(normalize=True)
    assert found.min() > -7
    assert found.mean() > np.mean([np.log(prior[tuple(row)]) for row in Y[160:].to_numpy()])


# -- which parents are tried -------------------------------------------------------------------------------


def chain_of_labels(m=6, n=300):
    rng = np.random.default_rng(2)
    X, codes = rng.normal(size=(n, 2)), rng.integers(2, size=(n, m))
    for j in range(1, m):
        codes[:, j] = np.where(rng.random(n) < 0.85, codes[:, j - 1], codes[:, j])
    return X, codes


@examples(15)
@given(seed=st.integers(0, 10_000), missing=st.booleans())
def test_a_promise_is_the_gain_of_a_regression_on_the_parents_alone(seed, missing):
    """Iterative scaling finds what a numerical optimiser finds, for the same pseudo-row."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(3, 2.0), size=80)
    blocks, y, weight = rng.integers(2, size=80), rng.integers(3, size=80), rng.random(80) + 0.5
    y[:5], blocks[5:9] = (UNKNOWN, UNKNOWN) if missing else (0, 0)
    gain, n = tilted_gain(table, y, blocks, weight)
    assert n == pytest.approx(weight[y != UNKNOWN].sum())
    best = 0.0
    for block in range(2):
        rows = (blocks == block) & (y != UNKNOWN)
        base, own, w = table[rows], y[rows], weight[rows]

        def loss(logits, base=base, own=own, w=w):
            tilted = base * np.exp([0.0, *logits])
            tilted /= tilted.sum(axis=1, keepdims=True)
            return -(w @ np.log(tilted[np.arange(len(own)), own] / base[np.arange(len(own)), own]))

        best -= minimize(loss, [0.0, 0.0]).fun
    assert gain <= best + 1e-6
    assert gain > best - 0.1 * abs(best) - 0.3  # ten rounds, and a pseudo-row in each block


def test_a_shortlist_has_the_right_parents_and_needs_few_fits():
    X, codes = chain_of_labels()
    scorer = FamilyScorer(X, codes, (2,) * 6, score="cv", estimators=[SHARP[0]] * 6, random_state=0)
    short = Shortlist(scorer, codes, (2,) * 6, 2, 3)
    found = candidate_parent_sets(6, 3, short.score, bound=short.bound)
    assert found.n_scored < 6 * 8
    for child in range(6):
        assert short.bound(child, ()) == np.inf
        neighbours = {v for v in (child - 1, child + 1) if 0 <= v < 6}
        assert all(short.bound(child, (v,)) == np.inf for v in neighbours)


def test_a_shortlist_keeps_the_bound_and_the_rules_of_the_user():
    X, codes = chain_of_labels()
    scorer = FamilyScorer(X, codes, (2,) * 6, score="bic", parametrisation="split")
    short = Shortlist(scorer, codes, (2,) * 6, 9, 2, required=[(4, 1)], forbidden=[(0, 1)])
    assert short.bound(1, (4,)) == scorer.bound(1, (4,))
    assert short.bound(1, (2, 4)) == scorer.bound(1, (2, 4))
    assert short.bound(1, (0, 4)) == -np.inf
    assert list(short.score([Family(1, (2,), -np.inf)])) == list(scorer.score([Family(1, (2,), -np.inf)]))


def test_a_model_with_a_shortlist_says_that_it_is_no_proof():
    X, codes = chain_of_labels(n=150)
    model = BayesNetClassifier(SHARP[4], random_state=0).fit(X, codes)
    assert not model.proven_
    assert model.gap_ == np.inf
    linked = {frozenset(edge) for edge in model.edges()[["parent", "child"]].to_numpy()}
    assert len(linked & {frozenset((f"y{j}", f"y{j + 1}")) for j in range(5)}) >= 4
    every = BayesNetClassifier(SHARP[0], shortlist=None, max_parents=1, random_state=0).fit(X, codes[:, :3])
    assert every.proven_
    assert every.candidates_.n_scored == 3 + 3 * 2
