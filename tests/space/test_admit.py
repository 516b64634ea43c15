"""Frames reach the steps that select columns by name, and columns of parents pass them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    IndependentClassifier,
    OutputCodingClassifier,
    PowersetClassifier,
    StackedFeaturesClassifier,
    TreeClassifier,
)
from tuplet.core.exceptions import InputError
from tuplet.space.features.admit import ParentsBeside, admit_columns


class Selected(TransformerMixin, BaseEstimator):
    """A transformer of a user: it takes nothing but a frame."""

    def fit(self, X, y=None):
        self.columns_ = list(X.columns)
        return self

    def transform(self, X):
        assert list(X.columns) == self.columns_
        return X[["a", "b"]]


def two_columns(frame):
    return frame[["a", "b"]]


STEPS = {
    "function": lambda: FunctionTransformer(two_columns),
    "own": Selected,
    "union": lambda: FeatureUnion([("one", Selected()), ("two", FunctionTransformer(two_columns))]),
}


def made(n=200, text=False):
    """Two labels that a and b do not explain, but that are alike."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    common = rng.normal(size=n)
    Y = pd.DataFrame({"u": X["a"] + 3 * common > 0, "v": np.where(X["b"] + 3 * common > 0, "p", "q")})
    return X.assign(word=np.where(X["c"] > 0, "s", "t")) if text else X, Y


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "kind",
    [
        IndependentClassifier,
        ChainClassifier,
        TreeClassifier,
        BayesNetClassifier,
        PowersetClassifier,
        StackedFeaturesClassifier,
    ],
)
def test_steps_of_users_get_the_frame(kind, step, text):
    X, Y = made(text=text)
    model = kind(make_pipeline(STEPS[step](), LogisticRegression())).fit(X, Y)
    right = model.predict_joint(X).log_prob(Y).mean()
    alone = kind is IndependentClassifier or kind is StackedFeaturesClassifier
    # The labels agree in most rows: 2 log 2 without, well above it with the link between them.
    assert right > -1.35 if alone else right > -1.1


@pytest.mark.parametrize("search", [False, True])
def test_links_of_a_chain_pass_several_steps(search):
    X, Y = made()
    steps = FunctionTransformer(two_columns), Selected(), StandardScaler(), LogisticRegression()
    estimator = make_pipeline(*steps)
    if search:
        estimator = GridSearchCV(estimator, {"logisticregression__C": [0.1, 1.0]}, cv=2)
    chain = ChainClassifier(estimator).fit(X, Y)
    plain = ChainClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X[["a", "b"]], Y)
    of_chain = chain.predict_joint(X).log_prob(Y).mean()
    of_plain = plain.predict_joint(X[["a", "b"]]).log_prob(Y).mean()
    assert of_chain == pytest.approx(of_plain, abs=0.05)  # the penalty of the one is chosen


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_columns_of_parents_stand_beside(container):
    X = np.arange(12.0).reshape(3, 4)
    beside = ParentsBeside(StandardScaler(with_mean=False), 2)
    both = beside.fit_transform(container(X)), beside.transform(container(X))
    for answer in both:
        values = answer.toarray() if sparse.issparse(answer) else np.asarray(answer)
        np.testing.assert_array_equal(values[:, 2:], X[:, 2:])
        np.testing.assert_allclose(values[:, :2], StandardScaler(with_mean=False).fit_transform(X[:, :2]))


def test_estimators_without_such_steps_are_left_as_they_are():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert admit_columns(pipeline, np.eye(2), 3) is pipeline


def test_one_pipeline_for_frames_needs_all_to_be():
    X, Y = made()
    model = IndependentClassifier({"u": make_pipeline(Selected(), LogisticRegression())})
    with pytest.raises(InputError, match="treats the columns of X by itself, but the estimators of other"):
        model.fit(X, Y)


def test_codes_of_labels_need_numbers():
    pipeline = make_pipeline(Selected(), LogisticRegression())
    X, Y = made(text=True)
    with pytest.raises(InputError, match="Codes of labels need numbers"):
        OutputCodingClassifier(pipeline).fit(X, Y)
    OutputCodingClassifier(pipeline).fit(*made())
