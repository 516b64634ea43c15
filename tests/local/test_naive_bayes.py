import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN
from tuplet.local import prepared as prepared_module
from tuplet.local.bayes import MixedNaiveBayes
from tuplet.local.many_bayes import BayesBatch, BayesLayout, ManyBayes
from tuplet.local.prepared import is_plain_bayes, make_batch
from tuplet.local.split import SplitModel


def draw(seed, n=60, d=3, k=3):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, d)), rng.integers(k, size=n)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([MixedNaiveBayes(), MixedNaiveBayes(categorical=[0])])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_alone_are_gaussian_naive_bayes(weighted):
    rng, X, y = draw(0)
    X += y[:, None] * [1.0, 0.0, -2.0]
    weight = rng.random(len(y)) if weighted else None
    ours, theirs = MixedNaiveBayes().fit(X, y, weight), GaussianNB(var_smoothing=0).fit(X, y, weight)
    np.testing.assert_allclose(ours.mean_, theirs.theta_, rtol=1e-12)
    np.testing.assert_allclose(ours.variance_, theirs.var_, rtol=1e-10)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_zeros_and_ones_alone_are_bernoulli_naive_bayes(alpha, weighted):
    rng, _, y = draw(1)
    X = (rng.random((60, 4)) < [0.5, 0.1, 0.0, 1.0]).astype(float)  # the last two are constant
    weight = rng.random(len(y)) if weighted else None
    ours, theirs = MixedNaiveBayes(alpha=alpha).fit(X, y, weight), BernoulliNB(alpha=alpha).fit(X, y, weight)
    assert ours.categorical_.all()
    new = np.array([[0.0, 1, 1, 0], [1, 0, 0, 1]])
    np.testing.assert_allclose(ours.predict_log_proba(new), theirs.predict_log_proba(new), rtol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_categories_alone_are_categorical_naive_bayes(weighted):
    rng, _, y = draw(2)
    X = rng.integers([3, 5, 4], size=(60, 3)).astype(float)
    weight = rng.random(len(y)) if weighted else None
    ours = MixedNaiveBayes(categorical=[True, True, True]).fit(X, y, weight)
    theirs = CategoricalNB().fit(X, y, weight)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-10)


def test_both_kinds_are_the_product_of_both():
    rng, X, y = draw(3)
    Z = np.column_stack([X, rng.integers(4, size=60) * 10.0])
    joint = MixedNaiveBayes(categorical=[-1]).fit(Z, y).predict_joint_log_proba(Z)
    numbers = MixedNaiveBayes().fit(X, y)
    categories = MixedNaiveBayes(categorical=[0]).fit(Z[:, 3:], y).predict_joint_log_proba(Z[:, 3:])
    expected = numbers.predict_joint_log_proba(X) + categories - numbers.class_log_prior_
    np.testing.assert_allclose(joint, expected, rtol=1e-12)


@examples(25)
@given(seed=st.integers(0, 10_000))
def test_what_is_missing_is_left_out(seed):
    """The oracle takes every value that is there by itself."""
    rng, X, y = draw(seed, n=30)
    X = np.column_stack([X, rng.integers(3, size=30)])
    X[rng.random(X.shape) < 0.3] = np.nan
    weight = rng.random(30)
    model = MixedNaiveBayes(categorical=[3], variance_floor=1e-12).fit(X, y, weight)
    classes = np.unique(y)
    for row, found in zip(X[:8], model.predict_joint_log_proba(X[:8]), strict=True):
        for c, value in zip(classes, found, strict=True):
            expected = np.log(weight[y == c].sum() / weight.sum())
            for j in np.flatnonzero(~np.isnan(row)):
                use = (y == c) & ~np.isnan(X[:, j])
                if j == 3:
                    n_values = len(np.unique(X[~np.isnan(X[:, 3]), 3]))
                    hits = weight[use & (X[:, 3] == row[3])].sum()
                    expected += np.log((hits + 1) / (weight[use].sum() + n_values))
                elif use.any():
                    mean = np.average(X[use, j], weights=weight[use])
                    spread = np.sqrt(np.average((X[use, j] - mean) ** 2, weights=weight[use]))
                    if use.sum() > 1:
                        expected += norm.logpdf(row[j], mean, spread)
                    else:
                        return  # a single value has no variance: see the floor
                else:
                    return
            np.testing.assert_allclose(value, expected, rtol=1e-9)


def test_a_class_that_shows_no_value_of_a_column_gets_the_column_as_a_whole():
    X = np.array([[1.0], [2.0], [4.0], [np.nan], [np.nan]])
    model = MixedNaiveBayes().fit(X, [0, 0, 0, 1, 1])
    assert model.mean_[1, 0] == pytest.approx(7 / 3)
    assert model.variance_[1, 0] == pytest.approx(np.var([1, 2, 4]))
    np.testing.assert_allclose(model.predict_proba([[3.0]]), [[0.6, 0.4]])


def test_weights_are_repetitions_and_zero_is_absence():
    rng, X, y = draw(4)
    X = np.column_stack([X, rng.integers(2, size=60)])
    counts = rng.integers(4, size=60)
    weighted = MixedNaiveBayes().fit(X, y, counts)
    repeated = MixedNaiveBayes().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-10)


def test_auto_takes_zeros_and_ones_only():
    X = np.array([[0.0, 0.5, 0, 2, np.nan, 1], [1, 1, np.nan, 1, np.nan, 1], [1, 0, 1, 0, np.nan, 1]])
    model = MixedNaiveBayes().fit(X, [0, 1, 1])
    assert model.categorical_.tolist() == [True, False, True, False, False, True]
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_rows_without_weight_have_no_say_in_what_a_column_is():
    X = np.array([[0.0], [1.0], [7.0], [1.0]])
    assert MixedNaiveBayes().fit(X, [0, 1, 0, 1], [1, 1, 0, 1]).categorical_.all()


def test_categories_that_training_lacks_say_nothing():
    X, y = np.array([[10.0], [20.0], [20.0]]), np.array([0, 1, 1])
    model = MixedNaiveBayes(categorical=[0]).fit(X, y)
    for unseen in (15.0, -1.0, 99.0, np.nan):
        np.testing.assert_allclose(model.predict_proba([[unseen]]), [[1 / 3, 2 / 3]])


def test_columns_far_from_zero_lose_no_digits():
    _, X, y = draw(5)
    near = MixedNaiveBayes().fit(X, y).predict_log_proba(X)
    far = MixedNaiveBayes().fit(X + 2**20, y).predict_log_proba(X + 2**20)
    np.testing.assert_allclose(far, near, atol=1e-7)


def test_classes_whose_rows_agree_are_not_certain():
    rng = np.random.default_rng(6)
    X = np.vstack([np.zeros((3, 2)), rng.normal(size=(40, 2))])
    y = np.repeat([0, 1], [3, 40])
    model = MixedNaiveBayes().fit(X, y)
    np.testing.assert_allclose(model.variance_[0], 1e-3 * X.var(axis=0))
    assert model.predict_proba([[0.0, 0.0]])[0, 0] > 0.9
    assert np.isfinite(model.predict_log_proba([[1e6, -1e6]])).all()


def test_constant_numbers_say_nothing():
    _, X, y = draw(7)
    with_constant = np.column_stack([X, np.full(60, 4.2)])
    expected = MixedNaiveBayes().fit(X, y).predict_log_proba(X)
    model = MixedNaiveBayes().fit(with_constant, y)
    with_constant[:30, 3] = -1.0
    np.testing.assert_allclose(model.predict_log_proba(with_constant), expected, rtol=1e-10)


def test_numbers_that_differ_by_rounding_alone_are_constant():
    _, X, y = draw(9)
    filled = np.where(np.arange(60) % 3 > 0, 0.1, np.full(3, 0.1).sum() / 3)
    assert len(np.unique(filled)) == 2
    expected = MixedNaiveBayes().fit(X, y).predict_log_proba(X)
    with_filled = np.column_stack([X, filled])
    found = MixedNaiveBayes().fit(with_filled, y).predict_log_proba(with_filled)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_class_without_weight_is_impossible():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 2])
    assert MixedNaiveBayes().fit(X, y, [1.0, 1.0, 0.0]).predict_proba([[5.0]])[0, 2] == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"categorical": [7]},
        {"categorical": [True]},
        {"categorical": "all"},
        {"categorical": [0.5]},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    _, X, y = draw(8)
    with pytest.raises(InputError, match=next(iter(settings))):
        MixedNaiveBayes(**settings).fit(X, y)


# -- many blocks at once -----------------------------------------------------------------------------------


def draw_blocks(seed, n, q=5, k=3, missing=0.0):
    """Numbers, a constant, counts (0 and 1 alone in some blocks), zeros and ones, and categories."""
    rng = np.random.default_rng(seed)
    y, blocks = rng.integers(-1, k, size=n), rng.integers(-1, q, size=n)
    blocks[blocks == 1] = UNKNOWN  # an empty block
    y[(blocks == 2) & (y != UNKNOWN)] = 1  # a single class
    X = np.column_stack(
        [
            rng.normal(size=n) + y,
            100 + 3 * rng.normal(size=n),
            np.full(n, 0.1),
            np.where(blocks == 3, 0.7, rng.normal(size=n)),  # constant in a block, with rounding
            rng.poisson(0.4 + (blocks > 2), size=n),
            rng.integers(2, size=n),
            np.where(y == 0, 1, rng.integers(2, size=n)),
            np.zeros(n),
            rng.choice([-3.0, 0.0, 1.0, 2.5, 9.0], size=n, p=[0.1, 0.4, 0.3, 0.1, 0.1]),
        ]
    )
    X[rng.random(X.shape) < missing] = np.nan
    if missing:
        X[(blocks == 0) & (y == 0), 0] = np.nan  # a class that shows nothing
        X[blocks == 4, 5] = np.nan
    return rng, X, y, blocks


def one_by_one(model, X, y, blocks, q, k, weight, new):
    """Probabilities (q, k, n') by a classifier for each block, and the weights of the blocks."""
    answer, totals = np.zeros((q, k, len(new))), np.zeros(q)
    for g in range(q):
        rows = (blocks == g) & (y != UNKNOWN) & (weight > 0)
        totals[g] = weight[rows].sum()
        classes = np.unique(y[rows])
        if len(classes) == 1:
            answer[g, classes] = 1.0
        elif len(classes):
            fitted = clone(model).fit(X[rows], y[rows], weight[rows])
            answer[g, classes] = fitted.predict_proba(new).T
    return answer, totals


@examples(25)
@given(
    seed=st.integers(0, 100_000),
    n=st.integers(1, 90),
    categorical=st.sampled_from(["auto", [8], [4, 5, 8], list(range(9)), []]),
    missing=st.sampled_from([0.0, 0.3]),
    weighted=st.booleans(),
    alpha=st.sampled_from([0.3, 1.0]),
    floor=st.sampled_from([1e-3, 1e-6, 0.5]),
)
def test_blocks_are_fitted_as_if_each_were_alone(seed, n, categorical, missing, weighted, alpha, floor):
    rng, X, y, blocks = draw_blocks(seed, n, missing=missing)
    weight = rng.random(n) * (rng.random(n) < 0.9) if weighted else None
    model = MixedNaiveBayes(categorical=categorical, alpha=alpha, variance_floor=floor)
    new = np.vstack([X, draw_blocks(seed + 1, 30, missing=0.3)[1], draw_blocks(seed + 2, 10)[1] + 0.5])
    given_weight = np.ones(n) if weight is None else weight
    expected, totals = one_by_one(model, X, y, blocks, 5, 3, given_weight, new)

    batch = BayesBatch(X, BayesLayout.make(X, categorical, alpha, floor))
    experts = batch.fit(y, blocks, 5, 3, weight)
    np.testing.assert_allclose(experts.totals, totals, rtol=1e-12)
    Z = batch.layout.encode(new)
    np.testing.assert_allclose(experts.table(Z), expected, atol=1e-9)
    asked = rng.integers(-1, 5, size=len(new))
    own = np.where(asked[:, None] == UNKNOWN, 0.0, expected[asked, :, np.arange(len(new))])
    np.testing.assert_allclose(experts.proba(Z, asked), own, atol=1e-9)


def test_a_model_of_blocks_survives_pickling_without_its_training_rows():
    rng, X, _, _ = draw_blocks(0, 80, missing=0.2)
    parents, child = rng.integers((2, 3), size=(80, 2)), rng.integers(2, size=80)
    model = SplitModel(MixedNaiveBayes()).fit(X, parents, child, parent_cards=(2, 3), child_card=2)
    assert isinstance(model.experts_, ManyBayes)
    assert model.prepared_.Z is None
    assert model.prepared_.batch is None
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.log_table(X), model.log_table(X))


def test_rows_in_chunks_are_rows_at_once(monkeypatch):
    _, X, y, blocks = draw_blocks(1, 90, missing=0.2)
    batch = BayesBatch(X, BayesLayout.make(X, "auto", 1.0, 1e-3))
    experts = batch.fit(y, blocks, 5, 3)
    whole = experts.table(batch.rows)
    monkeypatch.setattr("tuplet.core.limits.working_cells", lambda: 32 * 7)
    np.testing.assert_array_equal(experts.table(batch.rows), whole)


@pytest.mark.parametrize(
    ("classifier", "plain"),
    [
        (MixedNaiveBayes(), True),
        (MixedNaiveBayes(categorical=[0], alpha=0.1, variance_floor=1e-9), True),
        (MixedNaiveBayes(alpha=0.0), False),
        (MixedNaiveBayes(variance_floor=np.inf), False),
        (GaussianNB(), False),
    ],
)
def test_what_is_fitted_at_once(classifier, plain):
    assert is_plain_bayes(classifier) is plain


def test_features_that_are_left_to_separate_fits(monkeypatch):
    X = np.array([[0.0, 1.5], [1.0, np.nan], [1.0, 2.5]])
    assert make_batch(MixedNaiveBayes(), X, None) is not None
    assert make_batch(MixedNaiveBayes(), np.array([[0, 3], [1, 4]]), None) is not None
    assert make_batch(MixedNaiveBayes(), pd.DataFrame(X), None) is None
    assert make_batch(MixedNaiveBayes(), X.astype(object), None) is None
    assert make_batch(MixedNaiveBayes(), X * 1e200, None) is None
    assert make_batch(MixedNaiveBayes(), np.where(X > 2, np.inf, X), None) is None
    monkeypatch.setattr(prepared_module, "_MAX_CELLS", 11)  # three rows of a number and three values
    assert make_batch(MixedNaiveBayes(categorical=[0]), X, None) is not None
    assert make_batch(MixedNaiveBayes(categorical=[1]), X, None) is None


def test_rows_that_cannot_be_used_are_refused():
    _, X, y, blocks = draw_blocks(3, 60)
    layout = BayesLayout.make(X, "auto", 1.0, 1e-3)
    experts = BayesBatch(X, layout).fit(y, blocks, 5, 3)
    for wrong in (X[:, :3], np.where(X > 100, np.inf, X)):
        with pytest.raises(InputError, match="columns of training and no infinity"):
            layout.encode(wrong)
    far = X.copy()
    far[:, 0] = 1e200
    assert np.isfinite(experts.table(layout.encode(far))).all()
    with pytest.raises(InputError, match="categorical must be"):
        BayesLayout.make(X, [99], 1.0, 1e-3)


@pytest.mark.parametrize("x", [1e99, 1e160, -1e308])
def test_numbers_whose_squares_are_infinite(x):
    rng = np.random.default_rng(0)
    model = MixedNaiveBayes().fit(rng.normal(size=(20, 2)), np.arange(20) % 2)
    proba = model.predict_proba([[x, 0.0]])
    assert np.isfinite(proba).all()
    assert proba.sum() == pytest.approx(1)
