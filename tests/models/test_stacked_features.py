"""Two layers of classifiers, and the folds between them."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tuplet import IndependentClassifier
from tuplet.local.cross_fitting import fold_weights
from tuplet.metrics import joint_log_loss
from tuplet.models.compared.stacked_features import StackedFeaturesClassifier


def data(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    first = X[:, 0] + rng.normal(size=n) > 0
    second = np.digitize(X[:, 1] + first + rng.normal(size=n), [0, 1])
    return X, np.column_stack([first, second, second + first > 1]).astype(int)


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
