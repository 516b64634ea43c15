"""Logistic regression on the labels of the neighbours."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tuplet import IndependentClassifier
from tuplet.core.exceptions import InputError
from tuplet.metrics import joint_log_loss
from tuplet.models.compared.instance_logistic import InstanceLogisticClassifier


def data(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    first = X[:, 0] + rng.normal(size=n) > 0
    second = np.digitize(X[:, 1] + first + rng.normal(size=n), [0, 1])
    return X, np.column_stack([first, second])


def shares(X, Y, rows, k, leave_out):
    """Share of y0 = 1 and of each value of y1 among the k nearest of X, by sorting."""
    answer = []
    for i, x in enumerate(rows):
        near = [r for r in np.argsort(((X - x) ** 2).sum(axis=1)) if not (leave_out and r == i)][:k]
        answer.append([Y[near, 0].mean(), *((Y[near, 1] == v).mean() for v in range(3))])
    return np.array(answer)


@pytest.mark.parametrize("use_features", [False, True])
def test_it_is_a_classifier_on_shares_that_leave_the_row_out(use_features):
    X, Y = data()
    train, test = slice(0, 120), slice(120, None)
    plain = LogisticRegression(C=2.0)
    model = InstanceLogisticClassifier(
        plain, n_neighbors=7, use_features=use_features, standardize=False
    ).fit(X[train], Y[train])
    inputs = shares(X[train], Y[train], X[train], 7, leave_out=True)
    asked = shares(X[train], Y[train], X[test], 7, leave_out=False)
    if use_features:
        inputs, asked = np.hstack([X[train], inputs]), np.hstack([X[test], asked])
    expected = IndependentClassifier(plain).fit(inputs, Y[train]).predict_proba(asked)
    for ours, theirs in zip(model.predict_proba(X[test]), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_neighbours_labels_of_other_variables_matter():
    """A label that is the parity of two regions: linear in x it is nothing, by neighbours nearly all."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    one = X[:, 0] * X[:, 1] > 0
    Y = np.column_stack([one, ~one ^ (rng.random(400) < 0.1)])
    near = InstanceLogisticClassifier().fit(X[:300], Y[:300]).predict_joint(X[300:])
    linear = IndependentClassifier().fit(X[:300], Y[:300]).predict_joint(X[300:])
    assert joint_log_loss(Y[300:], near) < joint_log_loss(Y[300:], linear) - 0.5


def test_missing_labels_any_estimator_and_constants():
    X, Y = data()
    labels = np.column_stack([Y.astype(object), np.full(len(Y), "same")])
    labels[::4, 1] = None
    model = InstanceLogisticClassifier(KNeighborsClassifier(15)).fit(X, labels)
    proba = model.predict_proba(X)
    assert [p.shape[1] for p in proba] == [2, 3, 1]
    assert np.isfinite(model.predict_joint(X).log_prob(labels)).all()
    assert InstanceLogisticClassifier().fit(X, labels[:, 2]).predict(X[:2]).tolist() == ["same"] * 2


def test_frames_that_stay_frames_are_errors():
    X, Y = data(30)
    columns = make_column_transformer((StandardScaler(), [0, 1]))
    with pytest.raises(InputError, match="Distances need numbers"):
        InstanceLogisticClassifier(make_pipeline(columns, LogisticRegression())).fit(pd.DataFrame(X), Y)
