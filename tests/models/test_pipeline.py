"""Steps before a model, and models inside of scikit-learn's pipelines and searches."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tuplet import (
    ChainClassifier,
    IndependentClassifier,
    JointPipeline,
    joint_of,
    load_model,
    load_penguins,
    make_joint_pipeline,
    save_model,
)
from tuplet.core.exceptions import InputError, ModelFileError


@pytest.fixture(scope="module")
def penguins():
    X, Y = load_penguins(return_X_y=True)
    rows = X.iloc[:, -4:].notna().all(axis=1)
    return X[rows].iloc[::2], Y[rows].iloc[::2]


def numbers(frame):
    return frame.select_dtypes("number")


def numeric(X):
    return X.select_dtypes("number")


def test_a_pipeline_predicts_what_its_parts_do(penguins):
    X, Y = numeric(penguins[0]), penguins[1]
    model = make_joint_pipeline(StandardScaler(), PCA(2), ChainClassifier()).fit(X, Y)
    front = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    by_hand = ChainClassifier().fit(front.transform(X), Y).predict_joint(front.transform(X))
    prediction = model.predict_joint(X)
    np.testing.assert_allclose(prediction.log_prob(Y), by_hand.log_prob(Y), atol=1e-9)
    assert prediction.mode().index.equals(X.index)
    assert model.predict(X, loss="subset").equals(prediction.mode())
    assert model.space_.names == tuple(Y.columns)
    assert model.n_samples_fit_ == len(X)


def test_weights_and_groups_reach_the_steps(penguins):
    X, Y = numeric(penguins[0]), penguins[1]
    weight = np.where(Y["species"] == "Adelie", 5.0, 1.0)
    model = make_joint_pipeline(StandardScaler(), ChainClassifier()).fit(X, Y, weight, np.arange(len(X)) // 3)
    np.testing.assert_allclose(model[0].mean_, np.average(X, axis=0, weights=weight))
    assert model.label_counts_[0].sum() == pytest.approx(weight.sum())


def test_pipelines_and_searches_around_a_model_give_its_joint(penguins):
    X, Y = numeric(penguins[0]), penguins[1]
    pipeline = make_pipeline(StandardScaler(), ChainClassifier())
    expected = make_joint_pipeline(StandardScaler(), ChainClassifier()).fit(X, Y).predict_joint(X).log_prob(Y)
    grid = {"chainclassifier__order": [[0, 1, 2]]}
    search = GridSearchCV(pipeline, grid, cv=KFold(2)).fit(X, Y)
    for fitted in (pipeline.fit(X, Y), search, FrozenEstimator(pipeline)):
        answer = joint_of(fitted, X)
        assert answer.mode().index.equals(X.index)
        np.testing.assert_allclose(answer.log_prob(Y), expected, atol=1e-9)


def test_it_is_a_pipeline_of_scikit_learn(penguins):
    X, Y = numeric(penguins[0]), penguins[1]
    model = make_joint_pipeline(StandardScaler(), ChainClassifier())
    assert clone(model).set_params(chainclassifier__n_chains=2).get_params()["chainclassifier__n_chains"] == 2
    assert cross_val_score(model, X, Y, cv=KFold(2)).shape == (2,)
    search = GridSearchCV(model, {"chainclassifier__n_chains": [1, 2]}, cv=KFold(2)).fit(X, Y)
    assert isinstance(search.best_estimator_, JointPipeline)


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: GridSearchCV(model, {}, cv=KFold(2))])
@pytest.mark.parametrize("make", [make_pipeline, make_joint_pipeline])
def test_it_can_be_saved(make, wrap, penguins, tmp_path):
    X, Y = numeric(penguins[0]), penguins[1]
    model = wrap(make(StandardScaler(), IndependentClassifier())).fit(X, Y)
    save_model(model, tmp_path / "model.tuplet")
    again = load_model(tmp_path / "model.tuplet")
    assert isinstance(again, JointPipeline)
    np.testing.assert_array_equal(again.predict_joint(X).log_prob(Y), joint_of(model, X).log_prob(Y))


def test_it_has_a_report(penguins, tmp_path):
    X, Y = penguins
    model = make_joint_pipeline(FunctionTransformer(numbers), StandardScaler(), ChainClassifier()).fit(X, Y)
    model.report(tmp_path / "page.html", X, Y)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Inside: ChainClassifier" in page
    assert "could not be" not in page
    assert set(model.text_features_) == {name for name in X if not pd.api.types.is_numeric_dtype(X[name])}


def test_what_is_no_model_is_refused(penguins, tmp_path):
    X, Y = numeric(penguins[0]), penguins[1]
    with pytest.raises(InputError, match="last step of a JointPipeline must be a model with predict_joint"):
        make_joint_pipeline(StandardScaler(), LogisticRegression())
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y["species"])
    with pytest.raises(InputError, match="LogisticRegression gives no joint distribution"):
        joint_of(plain, X)
    with pytest.raises(ModelFileError, match="Only models of tuplet can be saved"):
        save_model(plain, tmp_path / "model.tuplet")
