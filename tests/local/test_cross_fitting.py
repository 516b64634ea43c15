"""Folds of rows and predictions for rows that models have not seen."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.local.cross_fitting import (
    cross_fit,
    fold_weights,
    folds_of_groups,
    held_out_only,
    inner_folds,
    mean_and_error,
    numbered_folds,
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
    folds = inner_folds(None, np.zeros((7, 1), dtype=np.intp), None, 3, rng=np.random.default_rng(0))
    assert sorted(len(fold.test) for fold in folds) == [2, 2, 3]
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(7))
    few = inner_folds(None, np.zeros((2, 1), dtype=np.intp), None, 5, rng=np.random.default_rng(0))
    assert len(few) == 2


def test_folds_without_features_have_the_classes_in_proportion():
    y = np.repeat([0, 1, 2], [40, 20, 8])
    folds = inner_folds(None, y, None, 4)
    assert [np.bincount(y[fold.test]).tolist() for fold in folds] == [[10, 5, 2]] * 4


# -- groups ------------------------------------------------------------------------------------------------


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=40), st.integers(2, 6))
def test_groups_are_never_divided(rows, n_folds):
    groups, weights = np.array(rows).T
    weights = weights.astype(float)
    codes = np.zeros((len(rows), 1), dtype=np.intp)
    if len(np.unique(groups)) < 2:
        return
    folds = inner_folds(np.zeros((len(rows), 1)), codes, weights, n_folds, groups=groups)
    for fold in folds:
        assert not set(groups[fold.train]) & set(groups[fold.test])
        np.testing.assert_array_equal(fold.test_weight, weights[fold.test])
    weighty = np.unique(groups[weights > 0])
    assert len(folds) == (min(n_folds, len(weighty)) if len(weighty) > 1 else 0)
    if folds:
        assert sorted(np.concatenate([fold.test for fold in folds])) == np.flatnonzero(weights).tolist()
        # The bound of list scheduling: no fold exceeds the mean by more than the heaviest group.
        size = np.bincount(groups, weights)
        largest = max(fold.test_weight.sum() for fold in folds)
        assert largest <= weights.sum() / n_folds + size.max()


def test_folds_of_groups_depend_on_nothing_but_groups_and_weights():
    rng = np.random.default_rng(0)
    groups, codes = rng.integers(0, 9, size=80), rng.integers(0, 2, size=(80, 2))
    folds = inner_folds(rng.normal(size=(80, 1)), codes, None, 4, groups=groups)
    order = rng.permutation(80)
    again = inner_folds(None, codes[order], np.ones(80), 4, groups=groups[order], rng=rng)
    assert [set(groups[fold.test]) for fold in folds] == [set(groups[order][fold.test]) for fold in again]


def test_equal_groups_are_not_dealt_in_their_order():
    # Patients and controls in turn must not become the two folds.
    first, _ = inner_folds(None, np.zeros(40, dtype=np.intp), None, 2, groups=np.arange(40))
    assert 0 < (first.test % 2).sum() < 20


def test_a_single_group_is_divided_as_if_there_were_none():
    X, codes = np.arange(12.0)[:, None], np.zeros((12, 1), dtype=np.intp)
    ours = inner_folds(X, codes, None, 3, groups=np.full(12, 7))
    for fold, other in zip(ours, inner_folds(X, codes, None, 3), strict=True):
        np.testing.assert_array_equal(fold.test, other.test)


@pytest.mark.parametrize(
    ("cv", "n_folds", "all_rows"),
    [
        (GroupKFold(3), 3, True),
        (StratifiedGroupKFold(3), 3, True),
        (LeaveOneGroupOut(), 6, True),
        (GroupShuffleSplit(2, random_state=0), 2, False),
        (StratifiedKFold(3), 3, True),
        (RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0), 4, False),
        (TimeSeriesSplit(4), 4, False),
        ([(np.arange(30), np.arange(30, 60))], 1, False),
    ],
)
def test_splitters_of_scikit_learn(cv, n_folds, all_rows):
    rng = np.random.default_rng(0)
    codes, groups = rng.integers(0, 2, size=(60, 3)), np.arange(60) // 10
    given = groups if "Group" in type(cv).__name__ else None  # others warn that they ignore groups
    folds = inner_folds(np.zeros((60, 1)), codes, None, cv, groups=given)
    assert len(folds) == n_folds
    tested = np.sort(np.concatenate([fold.test for fold in folds]))
    assert (tested.tolist() == list(range(60))) == all_rows
    if given is not None:
        assert not any(set(groups[fold.train]) & set(groups[fold.test]) for fold in folds)


def test_a_splitter_that_needs_groups_asks_for_them():
    with pytest.raises(InputError, match=r"pass them as fit\(..., groups=...\)"):
        inner_folds(np.zeros((6, 1)), np.zeros((6, 1), dtype=np.intp), None, GroupKFold(2))


@pytest.mark.parametrize("cv", [3, None, GroupKFold(3)])
def test_a_search_inside_divides_groups(cv):
    rng = np.random.default_rng(0)
    groups, y = np.arange(60) // 6, rng.integers(0, 2, size=60)
    model = make_pipeline(StandardScaler(), GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=cv))
    with folds_of_groups(model, y, groups):
        pairs = model[-1].cv
        assert len(pairs) == (cv if isinstance(cv, int) else 5 if cv is None else 3)
        assert not any(set(groups[train]) & set(groups[test]) for train, test in pairs)
        model.fit(rng.normal(size=(60, 2)), y)
    assert model[-1].cv is cv
    with folds_of_groups(model, y, None):
        assert model[-1].cv is cv


WITHOUT_GROUPS = [
    LogisticRegression(),
    GridSearchCV(LogisticRegression(), {}, cv=KFold(2)),
    ClassifierChain(LogisticRegression()),  # which makes no folds if cv is None
]


@pytest.mark.parametrize("model", WITHOUT_GROUPS)
def test_what_takes_no_groups_is_left_alone(model):
    before = model.get_params()
    with folds_of_groups(model, np.zeros(4, dtype=np.intp), np.arange(4)):
        assert model.get_params() == before


def test_standard_errors_count_groups():
    rng = np.random.default_rng(0)
    groups, effect = np.arange(4000) // 20, rng.normal(size=200)
    values, weights = effect[groups] + 0.1 * rng.normal(size=4000), rng.integers(1, 3, size=4000) * 1.0
    error = mean_and_error(values, weights, groups)[1]
    alone = [mean_and_error(np.delete(values, g), np.delete(weights, g))[0] for g in _members(groups)]
    assert error == pytest.approx(
        np.sqrt(199 / 200 * ((np.array(alone) - np.mean(alone)) ** 2).sum()), rel=0.02
    )
    assert error > 3 * mean_and_error(values, weights)[1]


def _members(groups):
    return [np.flatnonzero(groups == g) for g in np.unique(groups)]


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
