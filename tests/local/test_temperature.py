"""Temperature scaling: the best temperature, and classifiers that have one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuplet import BayesNetClassifier, ChainClassifier, IndependentClassifier, PowersetClassifier
from tuplet.core.exceptions import InputError
from tuplet.local.calibration import POWERS, best_power
from tuplet.local.temperature import TemperatureScaled


def log_likelihood(logits, codes, temperature, weight=None):
    weight = np.ones(len(codes)) if weight is None else weight
    return weight @ log_softmax(logits / temperature, axis=1)[np.arange(len(codes)), codes]


@st.composite
def judged_rows(draw):
    n, c = draw(st.integers(1, 12)), draw(st.integers(2, 4))
    logits = draw(arrays(float, (n, c), elements=st.floats(-20, 20)))
    codes = draw(arrays(np.intp, n, elements=st.integers(0, c - 1)))
    weight = draw(arrays(float, n, elements=st.floats(0, 3)))
    return logits, codes, weight


# -- the temperature -----------------------------------------------------------------------------------------


@given(judged_rows(), st.sampled_from([POWERS, (0.25, 2.5)]))
def test_no_power_on_a_grid_is_better(rows, bounds):
    logits, codes, weight = rows
    best = best_power(logits, codes, weight, bounds=bounds)
    assert bounds[0] <= best <= bounds[1]

    def value(power):
        return log_likelihood(logits, codes, 1 / power, weight)

    assert value(best) >= max(value(power) for power in np.geomspace(*bounds, 301)) - 1e-7


@pytest.mark.parametrize("true", [0.5, 1.0, 3.0])
def test_a_known_temperature_is_found(true):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(40_000, 3)) * 2
    proba = softmax(logits / true, axis=1)
    codes = (rng.random((len(proba), 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(max=2)
    # The standard error of log T is below 0.011 for all three (Fisher information); these are four of them.
    assert abs(np.log(best_power(logits, codes) * true)) < 0.045


def test_scikit_learn_finds_the_same_temperature():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 5)), rng.integers(3, size=400)
    X[:, 0] += y
    # Not surer than 1e-9: scikit-learn adds 2e-16 to probabilities.
    naive, rest = GaussianNB().fit(X[:200], y[:200]), X[200:]
    assert naive.predict_proba(rest).min() > 1e-9
    theirs = CalibratedClassifierCV(FrozenEstimator(naive), method="temperature").fit(rest, y[200:])
    ours = best_power(naive.predict_log_proba(rest), y[200:])
    beta = theirs.calibrated_classifiers_[0].calibrators[0].beta_
    assert ours == pytest.approx(float(beta), rel=1e-5)
    assert abs(ours - 1) > 0.05


def test_rows_that_are_all_right_or_all_wrong_end_at_the_limits():
    logits = np.array([[2.0, 0.0], [0.0, 1.0]])
    assert best_power(logits, np.array([0, 1])) == POWERS[1]
    assert best_power(logits, np.array([1, 0])) == POWERS[0]
    assert best_power(np.zeros((3, 2)), np.array([0, 1, 1])) == 1.0


def test_weights_are_repetitions():
    logits = np.random.default_rng(2).normal(size=(30, 3))
    codes, weight = np.arange(30) % 3, np.arange(30) % 4
    again = np.repeat(np.arange(30), weight)
    expected = best_power(logits[again], codes[again])
    assert best_power(logits, codes, weight.astype(float)) == pytest.approx(expected, rel=1e-8)


def test_a_prior_draws_towards_one():
    logits, codes = np.log([[0.9, 0.1]] * 4), np.array([0, 0, 0, 1])
    free, drawn = best_power(logits, codes), best_power(logits, codes, prior=2.0)
    powers = np.geomspace(0.25, 2.5, 20001)
    value = [log_likelihood(logits, codes, 1 / b) - 2 * np.log(b) ** 2 for b in powers]
    assert drawn == pytest.approx(powers[int(np.argmax(value))], rel=1e-3)
    assert free < drawn < 1
    assert best_power(np.zeros((3, 2)), np.array([0, 1, 1]), prior=2.0) == pytest.approx(1.0)


def test_a_probability_of_zero_stays_out_of_the_way():
    with np.errstate(divide="ignore"):
        logits = np.log([[0.9, 0.1, 0.0]] * 4)
    assert best_power(logits, np.array([0, 0, 0, 1])) == pytest.approx(0.5)


# -- the classifier ------------------------------------------------------------------------------------------


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=300)
    return np.eye(3)[y] + rng.normal(size=(300, 3)), np.array(["a", "b", "c"])[y]


@parametrize_with_checks([TemperatureScaled(LogisticRegression(), random_state=0)])
def test_scikit_learns_conventions(estimator, check):
    check(estimator)


@given(arrays(float, (7, 3), elements=st.floats(0, 1)), st.sampled_from([0.05, 0.7, 3.0, 20.0]))
def test_the_most_probable_label_stays(table, temperature):
    table[table.sum(axis=1) == 0] = 1.0
    model = TemperatureScaled(_Table(table))
    model.estimator_, model.classes_, model.temperature_ = _Table(table), np.arange(3), temperature
    proba, first = model.predict_proba(np.arange(7)), table.argmax(axis=1)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(proba[np.arange(7), first], proba.max(axis=1))
    # Of labels that differ in the last digit either may come first.
    chosen = table[np.arange(7), model.predict(np.arange(7))]
    np.testing.assert_allclose(chosen, table.max(axis=1), rtol=1e-12)


class _Table(BaseEstimator):
    def __init__(self, table):
        self.table = table

    def predict_proba(self, X):
        return self.table[X] / self.table[X].sum(axis=1, keepdims=True)


def test_probabilities_are_the_classifiers_to_a_power(rows):
    model = TemperatureScaled(GaussianNB(), random_state=0).fit(*rows)
    power = model.estimator_.predict_proba(rows[0]) ** (1 / model.temperature_)
    np.testing.assert_allclose(model.predict_proba(rows[0]), power / power.sum(axis=1, keepdims=True))
    assert model.n_held_out_ == 60


def test_too_sure_a_classifier_becomes_a_better_one(rows):
    X, y = np.repeat(rows[0], 6, axis=1), rows[1]
    sure, modest = GaussianNB(), TemperatureScaled(GaussianNB(), random_state=0)
    codes = np.searchsorted(["a", "b", "c"], y[200:])

    def score(model):
        return np.log(model.fit(X[:200], y[:200]).predict_proba(X[200:])[np.arange(100), codes]).mean()

    assert score(modest) > score(sure) + 0.1
    assert modest.temperature_ > 2


def test_refit_learns_from_all_rows(rows):
    part, whole = (
        TemperatureScaled(GaussianNB(), refit=refit, random_state=0).fit(*rows) for refit in (False, True)
    )
    assert part.temperature_ == whole.temperature_
    assert part.estimator_.class_count_.sum() == 240
    assert whole.estimator_.class_count_.sum() == 300


def test_every_class_keeps_a_row_to_learn_from():
    X, y = np.arange(18.0)[:, None], np.repeat([0, 1, 2], [1, 2, 15])
    model = TemperatureScaled(GaussianNB(), held_out=0.95, random_state=0).fit(X, y)
    assert model.estimator_.class_count_.tolist() == [1, 1, 1]
    assert model.n_held_out_ == 15


def test_too_few_rows_are_not_asked_for_a_temperature():
    X, y = np.arange(48.0)[:, None], np.repeat([0, 1], 24)
    few = TemperatureScaled(GaussianNB(), random_state=0).fit(X[4:-4], y[4:-4])
    assert (few.temperature_, few.n_held_out_) == (1.0, 0)
    assert few.estimator_.class_count_.sum() == 40
    assert TemperatureScaled(GaussianNB(), random_state=0).fit(X, y).n_held_out_ == 10


def test_zeros_of_a_forest_do_no_harm(rows):
    forest = RandomForestClassifier(3, random_state=0)
    proba = TemperatureScaled(forest, random_state=0).fit(*rows).predict_proba(rows[0])
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_weights_reach_the_classifier_inside_of_a_pipeline(rows):
    X, y = rows
    weight = np.where(y == "a", 1.0, 1e-6)
    scaled = TemperatureScaled(make_pipeline(StandardScaler(), GaussianNB()), random_state=0)
    assert (scaled.fit(X, y, sample_weight=weight).predict(X) == "a").mean() > 0.95


def test_clear_errors(rows):
    with pytest.raises(InputError, match="LinearRegression has no predict_proba"):
        TemperatureScaled(LinearRegression()).fit(*rows)


def test_scores_of_a_classifier_without_probabilities_are_logits(rows):
    X, y = rows
    scaled = TemperatureScaled(LinearSVC(), refit=True, random_state=0).fit(X, y)
    scores = LinearSVC().fit(X, y).decision_function(X) / scaled.temperature_
    if scores.ndim == 1:
        scores = np.column_stack([0 * scores, scores])
    np.testing.assert_allclose(scaled.predict_proba(X), softmax(scores, axis=1), atol=1e-6)
    np.testing.assert_array_equal(scaled.predict(X), LinearSVC().fit(X, y).predict(X))


# -- as a local model ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        IndependentClassifier(),
        PowersetClassifier(),
        ChainClassifier(random_state=0),
        BayesNetClassifier(max_parents=1, parametrisation="split", random_state=0),
        BayesNetClassifier(max_parents=1, parametrisation="inputs", random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_takes_it(model, rows):
    X, first = rows
    Y = np.column_stack([first, np.where(first == "a", "yes", "no")])
    fitted = clone(model).set_params(estimator=TemperatureScaled(GaussianNB(), random_state=0)).fit(X, Y)
    log_prob = fitted.predict_joint(X).log_prob(Y)
    assert np.isfinite(log_prob).all()
    assert log_prob.mean() > -1.6


def test_a_column_transformer_inside_gets_the_frame_and_the_parents():
    rng = np.random.default_rng(4)
    place = rng.choice(["coast", "hill"], size=120)
    Y = pd.DataFrame({"sky": np.where(rng.random(120) < 0.8, place == "hill", place != "hill")})
    Y["hat"] = np.where(rng.random(120) < 0.9, Y["sky"], ~Y["sky"])
    columns = ColumnTransformer([("place", OneHotEncoder(), ["place"])])
    local = TemperatureScaled(make_pipeline(columns, LogisticRegression()), random_state=0)
    model = ChainClassifier(local).fit(pd.DataFrame({"place": place}), Y)
    joint = model.predict_joint(pd.DataFrame({"place": ["hill"]}))
    assert joint.given(sky=True).marginals()["hat"].iloc[0][True] > 0.7
