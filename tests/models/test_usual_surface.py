"""What users of scikit-learn find where they look for it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from tuplet import (
    ChainClassifier,
    DecisionClassifier,
    IndependentClassifier,
    PowersetClassifier,
    PriorClassifier,
    TreeClassifier,
    TupletWarning,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    noise = rng.normal(size=240)
    return X, np.column_stack([X[:, 0] + noise > 0, np.digitize(X[:, 1] + noise, [-1, 1])]).astype(int)


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(),
        Perceptron(),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), LinearSVC()),
        GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, cv=2),
        LinearSVC(class_weight={0: 1, 1: 2, 2: 1}),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("kind", [IndependentClassifier, ChainClassifier, PowersetClassifier, TreeClassifier])
def test_scores_become_probabilities(kind, estimator, data):
    X, Y = data
    if kind is PowersetClassifier and getattr(estimator, "class_weight", None):
        pytest.skip("combinations of labels have no weights")
    model = kind(estimator).fit(X[::2], Y[::2])
    prior = PriorClassifier().fit(X[::2], Y[::2])
    better = [each.predict_joint(X[1::2]).log_prob(Y[1::2]).mean() for each in (model, prior)]
    assert better[0] > better[1] - (0.3 if "Perceptron" in str(estimator) else 0)  # its scores are poor


def test_a_threshold_inside_has_no_effect_but_gives_a_warning(data):
    X, Y = data[0], data[1][:, :1]
    shy = FixedThresholdClassifier(LogisticRegression(), threshold=0.99)
    with pytest.warns(TupletWarning, match="threshold of FixedThresholdClassifier has no effect") as caught:
        model = ChainClassifier(shy).fit(X, Y)
    assert len(caught) == 1
    np.testing.assert_array_equal(
        model.predict(X), ChainClassifier(LogisticRegression()).fit(X, Y).predict(X)
    )


def test_logarithms_of_probabilities(data):
    X, Y = data
    model = ChainClassifier().fit(X, Y)
    pairs = zip(model.predict_log_proba(X), model.predict_proba(X), strict=True)
    for log, proba in pairs:
        np.testing.assert_allclose(np.exp(log), proba)
    single = DecisionClassifier(IndependentClassifier()).fit(X, Y[:, 0])
    np.testing.assert_allclose(np.exp(single.predict_log_proba(X)), single.predict_proba(X))


def test_orders_and_classifiers_of_a_chain(data):
    X, Y = data
    model = ChainClassifier(LogisticRegression(), order=[1, 0]).fit(X, Y)
    assert model.order_.tolist() == [1, 0]
    assert [len(each.classes_) for each in model.estimators_] == [3, 2]
    assert [each.coef_.shape[1] for each in model.estimators_] == [2, 5]
    assert [len(each.classes_) for each in IndependentClassifier().fit(X, Y).estimators_] == [2, 3]
    several = ChainClassifier(n_chains=2, random_state=0).fit(X, Y)
    assert not hasattr(several, "order_")
    with pytest.raises(AttributeError, match="of 2 chains has no estimators_; see models_"):
        several.estimators_  # noqa: B018
    assert not hasattr(ChainClassifier(), "order_")


def test_tables_of_pyarrow_keep_their_names(data):
    pa = pytest.importorskip("pyarrow")
    X, Y = data
    frame = pd.DataFrame({"u": Y[:, 0].astype(bool), "v": Y[:, 1]})
    table = pa.Table.from_pandas(frame)
    model = ChainClassifier().fit(pa.table({"a": X[:, 0], "b": X[:, 1]}), table)
    assert model.space_.names == ("u", "v")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    plain = ChainClassifier().fit(pd.DataFrame(X, columns=["a", "b"]), frame)
    rows = pd.DataFrame(X, columns=["a", "b"])
    np.testing.assert_allclose(
        model.predict_joint(rows).log_prob(table), plain.predict_joint(rows).log_prob(frame)
    )
    assert list(model.predict(rows)) == ["u", "v"]


def test_missing_labels_of_pyarrow_leave_the_others_as_they_are(data):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"u": pa.array([1, 2, None, 1]), "v": pa.array(["a", None, "b", "b"])})
    model = PriorClassifier().fit(data[0][:4], table)
    assert [each.tolist() for each in model.space_.categories] == [[1, 2], ["a", "b"]]


def test_frames_of_dask_keep_their_names(data):
    dask = pytest.importorskip("dask.dataframe")
    X, Y = (pd.DataFrame(each, columns=list("ab")) for each in data)
    lazy = [dask.from_pandas(each, npartitions=2) for each in (X, Y)]
    assert ChainClassifier().fit(*lazy).space_.names == ("a", "b")
