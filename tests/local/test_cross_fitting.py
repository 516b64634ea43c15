"""Folds of rows and predictions for rows that models have not seen."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import KFold, ShuffleSplit

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.local.cross_fitting import (
    cross_fit,
    fold_weights,
    held_out_only,
    inner_folds,
    numbered_folds,
    random_folds,
)
from tuplet.local.row_samples import sample_rows


@examples(25)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=15), st.integers(2, 6))
def test_weights_mean_repeated_rows_in_any_order(rows, n_folds):
    values, weights = np.array(rows).T
    X, codes = values[:, None].astype(float), np.zeros((len(rows), 1), dtype=np.intp)
    ours = fold_weights(X, codes, weights.astype(float), n_folds)
    np.testing.assert_allclose(ours.sum(axis=1), weights)
    times = np.random.default_rng(0).permutation(np.repeat(np.arange(len(rows)), weights))
    repeated = fold_weights(X[times], codes[times], None, n_folds)
    assert set(np.unique(repeated)) <= {0.0, 1.0}
    for value in np.unique(values):
        np.testing.assert_allclose(
            ours[values == value].sum(axis=0), repeated[X[times, 0] == value].sum(axis=0)
        )
        assert np.ptp(repeated[X[times, 0] == value].sum(axis=0)) <= 1  # equal rows are spread


def test_folds_are_balanced_and_do_not_depend_on_the_container():
    X = np.random.default_rng(0).normal(size=(500, 3))
    Y = (X > 0).astype(np.intp)
    X[:, 1:][X[:, 1:] < -1] = 0.0
    folds = fold_weights(X, Y, None, 5)
    assert (folds.sum(axis=1) == 1).all()
    assert (folds.sum(axis=0) == 100).all()
    np.testing.assert_array_equal(fold_weights(np.asfortranarray(X), Y, None, 5), folds)
    kept = fold_weights(sparse.csr_array(X), Y, None, 5)
    np.testing.assert_array_equal(fold_weights(sparse.csc_array(X), Y, None, 5), kept)
    frame = pd.DataFrame(X).assign(text="a")
    assert (fold_weights(frame, Y, None, 5).sum(axis=0) == 100).all()


def test_rows_whose_weights_are_fractions_stay_whole():
    X, Y = np.zeros((5, 1)), np.zeros((5, 1), dtype=np.intp)
    weights = np.array([0.25, 0.5, 1.5, 0.0, 0.1])
    folds = fold_weights(X, Y, weights, 3)
    np.testing.assert_array_equal(folds.max(axis=1), weights)
    assert ((folds > 0).sum(axis=1) == (weights > 0)).all()
    assert sorted((folds > 0).sum(axis=0)) == [1, 1, 2]


@examples(25)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=30), st.integers(2, 5), st.booleans())
def test_every_unit_of_weight_is_predicted_once_by_a_model_that_has_not_seen_it(weights, n_folds, weighted):
    n = len(weights)
    whole = np.array(weights, dtype=float) if weighted else np.ones(n)
    X, codes = np.arange(n)[:, None] // 2 * 1.0, np.zeros((n, 1), dtype=np.intp)
    given_weight = whole if weighted else None

    def fit(rows, some):
        return np.bincount(rows, some, minlength=n)

    held = cross_fit(inner_folds(X, codes, given_weight, n_folds), fit, lambda seen, rows: seen[rows])
    if not held.predictions:  # all the weight is in one fold
        assert fold_weights(X, codes, given_weight, n_folds).any(axis=0).sum() < 2
        return
    parts = np.ones(len(held.rows)) if held.weights is None else held.weights
    np.testing.assert_allclose(np.bincount(held.rows, parts, minlength=n), whole)
    np.testing.assert_allclose(np.concatenate(held.predictions) + parts, whole[held.rows])


def test_splitters_and_positions_give_the_folds_that_they_name():
    X, codes = np.zeros((7, 1)), np.zeros((7, 2), dtype=np.intp)
    weights = np.array([1.0, 2.0, 0.0, 1.0, 1.0, 0.5, 1.0])
    for cv in (KFold(3), list(ShuffleSplit(2, random_state=0).split(X))):
        pairs = cv if isinstance(cv, list) else cv.split(X)
        for fold, (train, test) in zip(inner_folds(X, codes, weights, cv), pairs, strict=True):
            assert fold.train.tolist() == sorted(i for i in train if weights[i])
            assert fold.test.tolist() == sorted(i for i in test if weights[i])
            np.testing.assert_array_equal(fold.test_weight, weights[fold.test])
            np.testing.assert_array_equal(fold.train_weight, weights[fold.train])


def test_numbered_and_random_folds():
    first, second = numbered_folds(np.array([3, 5, 3]))
    assert (first.train.tolist(), first.test.tolist()) == ([1], [0, 2])
    assert (second.train.tolist(), second.test.tolist()) == ([0, 2], [1])
    assert first.train_weight is None
    folds = random_folds(7, 3, np.random.default_rng(0))
    assert sorted(len(fold.test) for fold in folds) == [2, 2, 3]
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(7))
    assert len(random_folds(2, 5, np.random.default_rng(0))) == 2


@pytest.mark.parametrize("cv", [1, 2.5, "five", []])
def test_numbers_of_folds_that_make_no_sense(cv):
    with pytest.raises(InputError, match="cv "):
        inner_folds(np.zeros((4, 1)), np.zeros((4, 1), dtype=np.intp), None, cv)


def test_rows_of_a_sample_are_held_out_by_the_same_folds():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(60, 2)), rng.integers(0, 2, size=(60, 1))
    weight = rng.integers(1, 4, size=60).astype(float)
    whole, sample = inner_folds(X, codes, weight, 5), sample_rows(X, codes, weight, 20)
    some = held_out_only(whole, sample, weight)
    assert np.unique(np.concatenate([fold.test for fold in some])).tolist() == sample.rows.tolist()
    held = np.bincount(
        np.concatenate([fold.test for fold in some]), np.concatenate([fold.test_weight for fold in some]), 60
    )
    np.testing.assert_allclose(held[sample.rows], sample.weights)
    for fold in some:
        assert any(np.array_equal(fold.train, other.train) for other in whole)
    plain = held_out_only(inner_folds(X, codes, None, 5), sample_rows(X, codes, None, 20), None)
    assert all((fold.test_weight == 1).all() for fold in plain)
