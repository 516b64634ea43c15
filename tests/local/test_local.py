"""Local models: completed and smoothed probabilities, parents as columns, both ways of evaluating them."""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from draws import examples
from tuplet.core.exceptions import InputError, IntractableError
from tuplet.core.parallel import run_many
from tuplet.core.typing import UNKNOWN
from tuplet.joint.base import all_outcomes
from tuplet.local import SmoothedClassifier, StackedModel, default_estimator
from tuplet.local.base import LinearBound
from tuplet.local.calibration import predict_proba
from tuplet.local.logistic import probabilities
from tuplet.local.onehot import OneHot
from tuplet.local.penalties import PARENTS_C, parents_factor
from tuplet.local.ridge import RidgeLogistic, fit_in_blocks
from tuplet.space.features.admit import admit_columns
from tuplet.space.features.estimators import accepts, seeded, weight_arguments
from tuplet.space.features.inputs import put_beside
from tuplet.testing.strategies import SoftmaxConditional


def data(n=120, d=4, parent_cards=(2, 3), child_card=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    parents = np.column_stack([rng.integers(card, size=n) for card in parent_cards]).reshape(n, -1)
    score = X[:, :1] + parents.sum(axis=1, keepdims=True) + rng.normal(size=(n, child_card))
    return X, parents, score.argmax(axis=1), rng


def fitted(estimator=None, X=None, **options):
    features, parents, child, _ = data(**options)
    X = features if X is None else X
    cards = options.get("parent_cards", (2, 3))
    model = StackedModel(estimator)
    return (
        model.fit(X, parents, child, parent_cards=cards, child_card=options.get("child_card", 3)),
        X,
        parents,
        child,
    )


# -- smoothing ---------------------------------------------------------------------------------------------


def test_smoothing_adds_one_row_of_the_laplace_marginal():
    X, _, child, _ = data()
    forest = RandomForestClassifier(n_estimators=5, random_state=0)
    model = SmoothedClassifier.fit(forest, X, child, card=5)
    counts = np.bincount(child, minlength=5)
    raw = np.zeros((len(X), 5))
    raw[:, :3] = model.proba(X)
    expected = (len(X) * raw + (counts + 1) / (len(X) + 5)) / (len(X) + 1)
    np.testing.assert_allclose(np.exp(model.log_proba(X)), expected, atol=1e-14)
    assert np.isfinite(model.log_proba(X)).all()


@pytest.mark.parametrize(
    ("child", "weight", "expected"),
    [
        ([1, 1, 1, UNKNOWN], None, (3 * np.array([0, 1, 0]) + np.array([1, 4, 1]) / 6) / 4),
        ([UNKNOWN] * 4, None, np.full(3, 1 / 3)),
        ([0, 2, 2, 2], [4.0, 0, 0, 0], (4 * np.array([1, 0, 0]) + np.array([5, 1, 1]) / 7) / 5),
    ],
)
def test_one_class_or_none_gives_a_constant(child, weight, expected):
    weight = None if weight is None else np.array(weight)
    model = SmoothedClassifier.fit(GaussianNB(), np.eye(4), np.array(child), card=3, sample_weight=weight)
    assert model.estimator is None
    np.testing.assert_allclose(np.exp(model.log_proba(np.eye(4))), np.tile(expected, (4, 1)), atol=1e-14)


def test_classes_are_renumbered_without_gaps():
    class Consecutive(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            assert sorted(set(y)) == list(range(len(set(y))))
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.tile([0.2, 0.8], (len(X), 1)).astype(np.float32)

    model = SmoothedClassifier.fit(Consecutive(), np.eye(4), np.array([1, 5, 5, 1]), card=7)
    probability = np.exp(model.log_proba(np.eye(4)))
    np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-12)
    assert probability.argmax(axis=1).tolist() == [5] * 4
    assert (probability[:, 5] > 0.6).all()


def test_weights_equal_repeated_rows():
    X, parents, child, rng = data(n=60)
    X[rng.random(X.shape) < 0.05] = np.nan
    child[:5] = UNKNOWN
    times = rng.integers(1, 4, size=60)
    shape = {"parent_cards": (2, 3), "child_card": 3}
    X = np.nan_to_num(X)  # the imputed mean of a column is a plain one
    weighted = StackedModel().fit(X, parents, child, sample_weight=times.astype(float), **shape)
    repeated = StackedModel().fit(X.repeat(times, 0), parents.repeat(times, 0), child.repeat(times), **shape)
    np.testing.assert_allclose(weighted.log_proba(X, parents), repeated.log_proba(X, parents), atol=1e-6)


def test_probabilities_that_are_not_finite_are_an_error():
    class Broken(GaussianNB):
        def predict_proba(self, X):
            return np.full((len(X), 2), np.nan)

    model = SmoothedClassifier.fit(Broken(), np.eye(2), np.array([0, 1]), card=2)
    with pytest.raises(InputError, match="Broken"):
        model.log_proba(np.eye(2))


@pytest.mark.parametrize(
    "estimator", [LinearSVC(), RidgeClassifier(), make_pipeline(StandardScaler(), LinearSVC())]
)
def test_an_estimator_without_probabilities_is_sent_to_calibration(estimator):
    with pytest.raises(InputError, match="CalibratedClassifierCV"):
        SmoothedClassifier.fit(estimator, np.eye(2), np.array([0, 1]), card=2)


@pytest.mark.parametrize("estimator", [GaussianNB, "logistic", StandardScaler()])
def test_what_is_no_classifier_is_an_error(estimator):
    with pytest.raises(InputError):
        SmoothedClassifier.fit(estimator, np.eye(2), np.array([0, 1]), card=2)


def test_sizes_beyond_reason_are_named():
    X, parents, child, _ = data(n=2000)
    with pytest.raises(IntractableError, match="2,000 x 100,003 cells"):
        StackedModel().fit(X, parents, child, parent_cards=(100_000, 3), child_card=3)
    model = SmoothedClassifier.fit(GaussianNB(), X, child, card=100_000)
    with pytest.raises(IntractableError, match="100,000 categories"):
        model.log_proba(X)
    assert model.log_proba(X[:10]).shape == (10, 100_000)


# -- what estimators can do --------------------------------------------------------------------------------


def test_weights_reach_every_step_that_takes_them():
    weights = np.ones(3)
    nested = Pipeline([("first", default_estimator()[:2]), ("last", LogisticRegression())])
    assert set(weight_arguments(default_estimator(), weights)) == {
        "limitedscaler__sample_weight",
        "ridgelogistic__sample_weight",
    }
    assert set(weight_arguments(nested, weights)) == {
        "first__limitedscaler__sample_weight",
        "last__sample_weight",
    }
    assert set(weight_arguments(GridSearchCV(nested, {}), weights)) == set(weight_arguments(nested, weights))
    assert set(weight_arguments(GaussianNB(), weights)) == {"sample_weight"}
    assert weight_arguments(KNeighborsClassifier(), None) == {}


@pytest.mark.parametrize(
    "estimator", [KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())]
)
def test_weights_that_cannot_be_taken_are_an_error(estimator):
    with pytest.raises(InputError, match="KNeighborsClassifier cannot take sample_weight"):
        weight_arguments(estimator, np.ones(3))


@pytest.mark.parametrize(
    ("estimator", "nan", "sparse_input"),
    [
        (default_estimator(), True, True),
        (LogisticRegression(), False, True),
        (make_pipeline(StandardScaler(), LogisticRegression()), False, False),
        (make_pipeline("passthrough", SimpleImputer(), GaussianNB()), True, True),
        (HistGradientBoostingClassifier(), True, False),
        (GridSearchCV(HistGradientBoostingClassifier(), {}), True, False),
        (CalibratedClassifierCV(GaussianNB()), False, False),
        (make_pipeline(ColumnTransformer([]), GaussianNB()), False, True),
    ],
)
def test_kinds_of_input_are_read_from_tags(estimator, nan, sparse_input):
    columns_decide = isinstance(getattr(estimator, "steps", [(0, 0)])[0][1], ColumnTransformer)
    assert accepts(estimator, "allow_nan") == (nan or columns_decide)
    assert accepts(estimator, "sparse") == sparse_input


# -- parents as columns ------------------------------------------------------------------------------------


def test_one_hot_columns():
    codes = np.array([[0, 0, 1], [0, 1, 2], [0, UNKNOWN, UNKNOWN]])
    one_hot = OneHot.fit(codes, (1, 2, 3), np.array([1.0, 3.0, 1.0]))
    np.testing.assert_allclose(one_hot.columns(codes), [[0, 0, 1, 0], [1, 0, 0, 1], [0.75, 0, 0.25, 0.75]])
    assert one_hot.names([["a=x"], ["b=x", "b=y"], ["c=x", "c=y", "c=z"]]) == ["b=y", "c=x", "c=y", "c=z"]
    assert one_hot.names(None)[0] == "parent1=1"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 10**6))
def test_effects_are_columns_times_slopes(cards, seed):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(card, size=9) for card in cards])
    one_hot = OneHot.fit(codes, cards, rng.random(9))
    slopes = rng.normal(size=(one_hot.starts[-1], 3))
    total = sum((e[codes[:, i]] for i, e in enumerate(one_hot.effects(slopes))), np.zeros((9, 3)))
    np.testing.assert_allclose(total, one_hot.columns(codes) @ slopes, atol=1e-12)


def test_frames_get_named_columns_that_are_new():
    frame = pd.DataFrame({"a": ["x", "y"], "sex=f": [1, 2]}, index=[7, 9])
    wide = put_beside(frame, np.eye(2), ["sex=f", "sex=m"])
    assert list(wide.columns) == ["a", "sex=f", "sex=f'", "sex=m"]
    assert list(wide.index) == [7, 9]


MODELS = [
    default_estimator().set_params(ridgelogistic=LogisticRegression()),
    LogisticRegression(),
    GaussianNB(),
    DecisionTreeClassifier(max_depth=3, random_state=0),
    KNeighborsClassifier(),
    HistGradientBoostingClassifier(max_iter=5),
]


@pytest.mark.parametrize("estimator", MODELS)
@pytest.mark.parametrize("child_card", [2, 3])
def test_bound_model_equals_predict_proba_of_the_assembled_columns(estimator, child_card):
    model, X, known, child = fitted(estimator, child_card=child_card)
    rng = np.random.default_rng(1)
    rows = rng.integers(len(X), size=300)
    parents = np.column_stack([rng.integers(card, size=300) for card in (2, 3)])
    by_hand, one_hot = clone(estimator), model.columns_.one_hot
    by_hand.fit(np.concatenate([X, one_hot.columns(known)], axis=1), child)
    columns = np.concatenate([X[rows], one_hot.columns(parents)], axis=1)
    proba, calibration = by_hand.predict_proba(columns), model.classifier_.calibration
    expected = np.log(model.classifier_.smooth(calibration.apply(proba) if calibration else proba))
    answer = model.bind(X)(rows, parents)
    np.testing.assert_allclose(answer, expected, atol=1e-10)
    np.testing.assert_allclose(model.log_proba(X[rows], parents), expected, atol=1e-10)
    codes = np.full((300, 5), UNKNOWN)
    codes[:, [3, 1]] = parents
    np.testing.assert_allclose(model.bind(X, [3, 1])(rows, codes), expected, atol=1e-10)
    np.testing.assert_allclose(np.exp(answer).sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("child_card", [2, 3])
def test_parents_of_the_default_have_a_weaker_penalty(child_card):
    C = 0.01
    model, X, known, child = fitted(RidgeLogistic(C, tol=1e-9), child_card=child_card)
    one_hot, factor = model.columns_.one_hot, parents_factor(C, model.columns_.width)
    assert factor**2 * C == pytest.approx(PARENTS_C)
    inputs = np.concatenate([X, factor * one_hot.columns(known)], axis=1)
    by_hand = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(inputs, child)
    expected = np.log(model.classifier_.smooth(by_hand.predict_proba(inputs)))
    np.testing.assert_allclose(model.bind(X)(np.arange(len(X)), known), expected, atol=1e-6)
    np.testing.assert_allclose(model.log_proba(X, known), expected, atol=1e-6)


@given(st.integers(0, 2**31), st.integers(3, 6), st.booleans())
@examples(10)
def test_regressions_in_blocks_are_those_of_scikit_learn(seed, k, weighted):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(200, 4)), np.concatenate([np.arange(k), rng.integers(k, size=200 - k)])
    weight = rng.random(200) + 0.1 if weighted else None
    plain = LogisticRegression(C=10 ** rng.uniform(-2, 1), tol=1e-7)
    whole = clone(plain).fit(X, y, weight)
    with config_context(working_memory=1 / 64):  # blocks of a few rows
        blocks = fit_in_blocks(plain, X, y, weight)
    np.testing.assert_allclose(blocks.predict_proba(X), whole.predict_proba(X), atol=1e-5)


def test_the_default_is_evaluated_by_adding_effects_and_a_tree_is_not():
    assert fitted()[0].effects_ is not None
    assert fitted(LogisticRegression())[0].effects_ is not None
    assert fitted(LogisticRegression(solver="liblinear"), child_card=2)[0].effects_ is not None
    assert fitted(DecisionTreeClassifier())[0].effects_ is None
    assert fitted(CalibratedClassifierCV(LogisticRegression(), cv=2))[0].effects_ is None


def test_effects_stay_exact_with_large_offsets_and_missing_values():
    X, *_ = data()
    X = 1e3 * X + 1e5
    X[::7, 1], X[:, 3] = np.nan, np.nan
    for features in (X, np.nan_to_num(X)):
        model, *_ = fitted(X=features)
        rows, parents = np.arange(len(X)), np.tile([1, 2], (len(X), 1))
        np.testing.assert_allclose(
            model.bind(features)(rows, parents), model.log_proba(features, parents), atol=1e-10
        )


@pytest.mark.parametrize("child_card", [1, 2, 3, 5])
def test_terms_of_a_linear_model_give_its_probabilities(child_card):
    X, parents, child, _ = data()
    child = np.minimum(child, child_card - 1)
    model = StackedModel().fit(X, parents, child, parent_cards=(2, 3), child_card=child_card)
    bound, rows, values = model.bind(X), np.array([5, 0, 7]), all_outcomes((2, 3))
    assert isinstance(bound, LinearBound)
    child_alone = SoftmaxConditional((0, 1, 2), (None, None, bound.terms()))
    for value in values:
        expected = model.log_proba(X[rows], np.tile(value, (3, 1)))
        np.testing.assert_allclose(child_alone(2, rows, np.tile(value, (3, 1))), expected, atol=1e-10)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_probabilities_of_forests_are_those_of_scikit_learn(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), rng.integers(3, size=80)
    forest = kind(7, random_state=0).fit(X, y)
    for inputs in (X, X.astype(np.float32), np.where(X > 2, np.nan, X), sparse.csr_array(X)):
        np.testing.assert_allclose(predict_proba(forest, inputs), forest.predict_proba(inputs), atol=1e-12)
    with pytest.raises(ValueError, match="features"):
        predict_proba(forest, X[:, :3])
    with pytest.raises(ValueError, match="infinity"):
        predict_proba(forest, np.where(X > 2, np.inf, X))


def test_many_columns_of_parents_are_probed_in_blocks():
    rng = np.random.default_rng(0)
    parents, child = rng.integers(1100, size=(300, 1)), rng.integers(2, size=300)
    X = rng.normal(size=(300, 2))
    model = StackedModel().fit(X, parents, child, parent_cards=(1100,), child_card=2)
    bound = model.bind(X)(np.arange(300), parents)
    np.testing.assert_allclose(bound, model.log_proba(X, parents), atol=1e-10)


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_log_table_holds_every_value_of_the_parents(estimator):
    model, X, _, _ = fitted(estimator)
    table = model.log_table(X)
    assert table.shape == (2, 3, 3, len(X))
    for values in all_outcomes((2, 3)):
        expected = model.log_proba(X, np.tile(values, (len(X), 1)))
        np.testing.assert_allclose(table[tuple(values)].T, expected, atol=1e-12)


def test_log_table_without_parents():
    X, _, child, _ = data()
    model = StackedModel().fit(X, np.zeros((len(X), 0), int), child, parent_cards=(), child_card=3)
    np.testing.assert_allclose(model.log_table(X).T, model.log_proba(X, np.zeros((len(X), 0), int)))


@pytest.mark.parametrize(
    "estimator", [None, LogisticRegression(max_iter=500), DecisionTreeClassifier(random_state=0)]
)
def test_sparse_and_dense_agree(estimator):
    X, *_ = data()
    X[np.abs(X) < 0.5] = 0
    dense, _, parents, _ = fitted(estimator, X=X)
    thin, *_ = fitted(estimator, X=sparse.csr_array(X))
    tolerance = 2e-2 if estimator is None else 1e-6  # only the default treats them differently: no centring
    np.testing.assert_allclose(
        thin.log_proba(sparse.csr_array(X), parents), dense.log_proba(X, parents), atol=tolerance
    )


def test_unknown_parents_in_training_are_neutral():
    X, parents, child, rng = data(n=200)
    parents[rng.random(parents.shape) < 0.3] = UNKNOWN
    model = StackedModel().fit(X, parents, child, parent_cards=(2, 3), child_card=3)
    never = np.full_like(parents, UNKNOWN)
    silent = StackedModel().fit(X, never, child, parent_cards=(2, 3), child_card=3)
    alone = StackedModel().fit(X, parents[:, :0], child, parent_cards=(), child_card=3)
    np.testing.assert_allclose(silent.log_proba(X, parents), alone.log_proba(X, parents[:, :0]), atol=1e-3)
    assert np.isfinite(model.log_proba(X, never)).all()


@examples(25)
@given(st.integers(0, 10**6))
def test_any_missing_labels_leave_a_proper_distribution(seed):
    X, parents, child, rng = data(n=30, seed=seed)
    parents[rng.random(parents.shape) < rng.random()] = UNKNOWN
    child[rng.random(30) < rng.random()] = UNKNOWN
    weight = rng.integers(0, 3, size=30) * rng.random(30)
    model = StackedModel(GaussianNB()).fit(
        X, parents, child, parent_cards=(2, 3), child_card=4, sample_weight=weight
    )
    table = model.log_table(X)
    assert np.isfinite(table).all()
    np.testing.assert_allclose(np.exp(table).sum(axis=2), 1, atol=1e-9)


# -- frames and column transformers ------------------------------------------------------------------------


def mixed(n=120):
    X, *_, rng = data(n=n)
    return pd.DataFrame(
        {"size": X[:, 0], "place": rng.choice(["north", "south"], size=n), "id": np.arange(n)}
    )


def encoder(**selected):
    columns = selected or {"number": ["size"], "text": ["place"]}
    steps = {"number": StandardScaler(), "text": OneHotEncoder(handle_unknown="ignore")}
    return ColumnTransformer([(name, steps[name], chosen) for name, chosen in columns.items()])


@pytest.mark.parametrize(
    "columns",
    [
        {"number": ["size"], "text": ["place"]},
        {"number": make_column_selector(dtype_include=np.number), "text": make_column_selector("place")},
        {"number": [0], "text": slice(1, 2)},
        {"number": "size", "text": np.array([False, True, False])},
        {"number": slice("size", "size"), "text": [-2]},
    ],
)
@pytest.mark.parametrize("last", [LogisticRegression(), DecisionTreeClassifier(random_state=0)])
def test_a_column_transformer_lets_parents_pass(columns, last):
    if columns["number"] == "size":
        columns = columns | {"number": ["size"]}
    frame = mixed()
    _, parents, _, _ = data()
    child = parents[:, 1]  # nothing but the parents can tell
    model = StackedModel(Pipeline([("columns", encoder(**columns)), ("last", last)]))
    model.fit(frame, parents, child, parent_cards=(2, 3), child_card=3)
    answer = model.log_proba(frame, parents)
    assert (answer.argmax(axis=1) == child).all()
    rows = np.arange(0, 120, 7)
    np.testing.assert_allclose(model.bind(frame)(rows, parents[rows]), answer[rows], atol=1e-10)


def test_a_search_over_a_pipeline_of_columns_lets_parents_pass_too():
    search = GridSearchCV(
        Pipeline([("columns", encoder()), ("last", LogisticRegression())]), {"last__C": [0.1, 1]}, cv=2
    )
    _, parents, _, _ = data()
    model = StackedModel(search).fit(mixed(), parents, parents[:, 1], parent_cards=(2, 3), child_card=3)
    assert (model.log_proba(mixed(), parents).argmax(axis=1) == parents[:, 1]).all()


def test_without_parents_an_estimator_stays_as_it_is():
    pipeline = make_pipeline(encoder(), LogisticRegression())
    assert admit_columns(pipeline, mixed(), 0) is pipeline
    assert admit_columns(default_estimator(), np.eye(2), 3)[-1].max_iter == default_estimator()[-1].max_iter


# -- the default, and running many -------------------------------------------------------------------------


def test_default_estimator_converges_quietly():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60)) * np.logspace(-6, 6, 60) + 1e3
    X[:, 5], X[:, 6], X[::3, 7] = 2.0, np.nan, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        default_estimator().fit(X, rng.integers(4, size=400)).predict_proba(X)
        separable = (X[:, 0] > np.median(X[:, 0])).astype(int)
        default_estimator().fit(X, separable)
        default_estimator(sparse=True).fit(sparse.csr_array(np.eye(60)), rng.integers(2, size=60))


def test_the_default_can_be_tuned():
    tuned, usual = (default_estimator().set_params(ridgelogistic__C=C) for C in (0.01, 1.0))
    weak, strong = (fitted(estimator)[0].effects_ for estimator in (tuned, usual))
    assert all(np.abs(w).max() < np.abs(u).max() for w, u in zip(weak, strong, strict=True))


def test_seeds_fill_in_what_was_left_open():
    forest = RandomForestClassifier()
    assert seeded(forest, 3).random_state == seeded(forest, 3).random_state != seeded(forest, 4).random_state
    assert forest.random_state is None
    both = CalibratedClassifierCV(make_pipeline(StandardScaler(), forest))
    assert isinstance(seeded(both, 0).estimator[-1].random_state, int)
    for settled in (RandomForestClassifier(random_state=0), GaussianNB(), None):
        assert seeded(settled, 1) is settled


def test_run_many_keeps_the_order():
    with joblib.parallel_config("threading"):
        assert run_many(pow, [(2, i) for i in range(20)], n_jobs=2) == [2**i for i in range(20)]


@pytest.mark.parametrize("spread", [1.0, 100.0, 700.0])
def test_probabilities_are_a_softmax_also_where_exponentials_overflow(spread):
    logits = np.random.default_rng(0).normal(size=(50, 5)) * spread
    np.testing.assert_allclose(probabilities(logits.copy()), softmax(logits, axis=1), rtol=1e-12)
    np.testing.assert_allclose(probabilities(logits.copy(), 0.25), softmax(logits, axis=1) / 4, rtol=1e-12)
    np.testing.assert_allclose(probabilities(logits[:, :1].copy(), 0.25)[:, 1], expit(logits[:, 0]) / 4)


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=2)])
def test_blocks_of_probabilities_are_those_of_all_rows(estimator):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), rng.integers(3, size=90)
    model = StackedModel(estimator).fit(X, np.zeros((90, 0), dtype=np.intp), y, parent_cards=(), child_card=4)
    whole = model.classifier_.smoothed_proba(model.prepared_.ready(X))
    np.testing.assert_allclose(whole.sum(axis=1), 1.0)
    blocks = model.proba_blocks(X)
    np.testing.assert_allclose(np.vstack([blocks(slice(0, 40)), blocks(slice(40, 90))]), whole, rtol=1e-12)
    added = np.array([0.01, 0.02, 0.03, 0.04])
    mixed = model.proba_blocks(X, added)(slice(40, 90))
    np.testing.assert_allclose(mixed, 0.9 * whole[40:] + added, rtol=1e-12)
