"""Two layers of classifiers, and the folds between them."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from draws import examples
from tuplet import IndependentClassifier
from tuplet.metrics import joint_log_loss
from tuplet.models.compared.stacked_features import StackedFeaturesClassifier
from tuplet.models.cross_fitting import fold_weights


def data(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    first = X[:, 0] + rng.normal(size=n) > 0
    second = np.digitize(X[:, 1] + first + rng.normal(size=n), [0, 1])
    return X, np.column_stack([first, second, second + first > 1]).astype(int)


# -- folds -------------------------------------------------------------------------------------------------


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
    X, Y = data(500)
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


# -- layers ------------------------------------------------------------------------------------------------


def test_the_second_layer_sees_what_others_said_about_rows_that_they_had_not_seen():
    X, Y = data()
    plain, folds = GaussianNB(), fold_weights(data()[0], data()[1], None, 3).argmax(axis=1)
    outputs = [np.zeros((150, 1)), np.zeros((150, 3)), np.zeros((150, 1))]
    for fold in range(3):
        held = folds == fold
        proba = IndependentClassifier(plain).fit(X[~held], Y[~held]).predict_proba(X[held])
        for output, table in zip(outputs, proba, strict=True):
            output[held] = table[:, -output.shape[1] :]
    model = StackedFeaturesClassifier(plain, n_folds=3).fit(X, Y)
    first = [
        t if t.shape[1] > 2 else t[:, 1:] for t in IndependentClassifier(plain).fit(X, Y).predict_proba(X)
    ]
    for j, proba in enumerate(model.predict_proba(X)):
        beside, asked = (np.hstack([X, *(p[i] for i in range(3) if i != j)]) for p in (outputs, first))
        expected = IndependentClassifier(plain).fit(beside, Y[:, j]).predict_proba(asked)
        np.testing.assert_allclose(proba, expected, atol=1e-9)


def test_a_second_layer_helps_where_one_label_shows_another():
    """y1 is y0 most of the time, but only y0 can be learned: its few own labels are noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 30))
    first = X[:, :3].sum(axis=1) > 0
    second = np.where(rng.random(600) < 0.9, first, ~first).astype(object)
    second[40:] = None
    truth = np.column_stack([first, first])
    Y = np.column_stack([first.astype(object), second])
    stacked = StackedFeaturesClassifier().fit(X[:500], Y[:500]).predict_joint(X[500:])
    alone = IndependentClassifier().fit(X[:500], Y[:500]).predict_joint(X[500:])
    assert joint_log_loss(truth[500:], stacked) < joint_log_loss(truth[500:], alone)


def test_weights_are_repeated_rows():
    X, Y = data(60)
    weights = np.random.default_rng(1).integers(1, 4, 60)
    times = np.repeat(np.arange(60), weights)
    ours = StackedFeaturesClassifier().fit(X, Y, sample_weight=weights)
    theirs = StackedFeaturesClassifier().fit(X[times], Y[times])
    for a, b in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_estimators_of_all_kinds():
    X, Y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(place=np.where(Y[:, 0], "coast", "inland"))
    columns = make_column_transformer((OneHotEncoder(), ["place"]), (StandardScaler(), ["a", "b"]))
    for estimator in (None, KNeighborsClassifier(5), make_pipeline(columns, LogisticRegression())):
        fed = X if isinstance(estimator, KNeighborsClassifier) else frame
        model = StackedFeaturesClassifier(estimator).fit(fed, Y)
        assert np.isfinite(model.predict_joint(fed).log_prob(Y)).all()
    # A ColumnTransformer lets the first layer's columns through: 2 places, a, b, and those of two others.
    assert model.second_[0].estimator[-1].n_features_in_ == 4 + 3 + 1


def test_few_rows_missing_and_constant_labels():
    model = StackedFeaturesClassifier().fit([[0.0], [1.0], [2.0]], [["a", "x"], ["a", None], ["a", "y"]])
    assert model.predict([[0.0]]).shape == (1, 2)
    assert model.predict_proba([[0.0]])[0].tolist() == [[1.0]]
