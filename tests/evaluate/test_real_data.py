"""Models on real benchmark sets: what is easy to get wrong only there."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tuplet import ChainClassifier, IndependentClassifier, PowersetClassifier, PriorClassifier
from tuplet.core.exceptions import ApproximationWarning
from tuplet.joint import MonteCarlo
from tuplet.metrics import exact_match, instance_f1, joint_log_loss

pytestmark = pytest.mark.data


def test_53_labels_are_predicted_and_the_answer_says_how(benchmark_set):
    """enron: 2^53 outcomes; marginals are estimates with a stated error, the mode is searched exactly."""
    X, Y, _ = benchmark_set("enron")
    X, Y = X.iloc[:400, :200].astype(float), Y.iloc[:400]
    # A chain's last link sees 52 labels beside x; a strong penalty keeps the few rows from being separable.
    strong = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    model = ChainClassifier(strong).fit(X[:350], Y[:350])
    prediction = model.predict_joint(X[350:])
    assert prediction.distribution.tolerance == pytest.approx(2 / MonteCarlo().size ** 0.5)
    with pytest.warns(ApproximationWarning, match="estimated within 0.063"):
        answer = model.predict(X[350:])
    assert list(answer.columns) == list(Y.columns)
    assert (answer.dtypes == Y.dtypes).all()
    assert prediction.mode_proven().mean() > 0.9
    assert np.isfinite(prediction.log_prob(answer)).all()
    assert (
        joint_log_loss(Y[350:], prediction) < 15
    )  # a label that is new in the last rows counts by the floor
    with pytest.warns(ApproximationWarning, match="estimated within 0.063"):
        tuned = model.predict(X[350:], loss="f1")
    prior = PriorClassifier().fit(X[:350], Y[:350]).predict(X[350:])
    assert instance_f1(Y[350:], tuned) > instance_f1(Y[350:], prior)


def test_joint_models_know_more_than_independent_ones_on_emotions(benchmark_set):
    """The standard split; the gains are several times what another split changes (about .05 nats)."""
    X, Y, split = benchmark_set("emotions")
    train = split["__train__"].to_numpy(bool)
    losses = {}
    for name, model in {
        "prior": PriorClassifier(),
        "independent": IndependentClassifier(RandomForestClassifier(100, random_state=0)),
        "powerset": PowersetClassifier(RandomForestClassifier(100, random_state=0)),
    }.items():
        prediction = model.fit(X[train], Y[train]).predict_joint(X[~train])
        losses[name] = joint_log_loss(Y[~train], prediction)
        subset, single = (exact_match(Y[~train], prediction.decide(loss)) for loss in ("subset", "hamming"))
        assert subset >= single - 0.03
    assert losses["powerset"] < losses["independent"] < losses["prior"]


def test_nominal_features_and_classes_with_many_values(benchmark_set):
    """Adult: text columns by a ColumnTransformer, parents of up to 14 values one-hot behind it."""
    X, Y, _ = benchmark_set("Adult")
    X, Y = X.iloc[:1500], Y.iloc[:1500]
    nominal = [column for column in X if X[column].dtype.kind not in "biuf"]
    columns = ColumnTransformer(
        [("nominal", OneHotEncoder(handle_unknown="ignore"), nominal)], remainder=StandardScaler()
    )
    model = ChainClassifier(make_pipeline(columns, LogisticRegression(max_iter=2000)))
    prediction = model.fit(X[:1200], Y[:1200]).predict_joint(X[1200:])
    independent = IndependentClassifier(model.estimator).fit(X[:1200], Y[:1200]).predict_joint(X[1200:])
    assert joint_log_loss(Y[1200:], prediction) < joint_log_loss(Y[1200:], independent) - 0.1
    assert (
        prediction.given({Y.columns[0]: Y.iloc[1200:, 0].to_numpy()})
        .mode()
        .iloc[:, 0]
        .equals(Y.iloc[1200:, 0])
    )
