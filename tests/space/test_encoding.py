"""Frames of any columns: as numbers, or as they are for estimators that treat them."""

import datetime as dt
import statistics
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from draws import examples
from tuplet import (
    ChainClassifier,
    IndependentClassifier,
    JointClassifier,
    PowersetClassifier,
    PriorClassifier,
)
from tuplet.core.exceptions import InputError, IntractableError, TupletWarning
from tuplet.joint import FactorGraph
from tuplet.space.features import inputs
from tuplet.space.features.admit import admit_columns
from tuplet.space.features.encoding import FeatureEncoder
from tuplet.space.features.estimators import category_limit, chooses_columns, takes_frames

# -- the encoder against a slow and obvious one ------------------------------------------------------------

WORDS = ["ash", "birch", "cedar", "elm"]


@st.composite
def frames(draw):
    """A training and a test frame with a column of each kind; the test rows may hold what is new."""
    n, t = draw(st.integers(1, 8)), draw(st.integers(1, 5))

    def column(values, size):
        return draw(st.lists(st.none() | values, min_size=size, max_size=size))

    number, word, new = st.integers(-5, 5).map(float), st.sampled_from(WORDS[:3]), st.sampled_from(WORDS)
    binary, order = st.sampled_from(WORDS[:2]), WORDS[::-1]
    train, test = (
        pd.DataFrame(
            {
                "number": pd.Series(column(number, size), dtype=float),
                "text": pd.Series(column(values, size), dtype=object),
                "both": pd.Series(column(pair, size), dtype=object),
                "ranked": pd.Categorical(column(values, size), categories=order, ordered=True),
                "yes": pd.Categorical(column(pair, size), categories=WORDS[:2]),
            }
        )
        for size, values, pair in ((n, word, binary), (t, new, binary))
    )
    if draw(st.booleans()):  # nothing missing in training
        train = train.fillna({"number": 0.0, "text": "ash", "both": "birch", "ranked": "elm", "yes": "ash"})
    return train, test


def obvious(train, test):
    """Names and values of the encoded test rows, value by value."""
    answer = {}
    for name in train:
        known, missing = train[name].dropna().tolist(), train[name].isna().any()
        constant = len(train) > 1 and len(set(known)) == 1 and not missing and name != "yes"
        if not known or constant:
            continue
        if name == "number":
            middle = statistics.median(known)
            answer[name] = [middle if pd.isna(v) else v for v in test[name]]
            continue
        order = list(train[name].cat.categories) if name in ("ranked", "yes") else sorted(set(known))
        values = [v for v in order if v in known]
        if name == "yes" and not missing:
            values = order
        if len(values) == 2 and not missing:
            values = values[1:]
        for value in values:
            answer[f"{name}={value}"] = [float(v == value) for v in test[name]]
    return pd.DataFrame(answer)


@examples(25)
@given(frames())
def test_columns_become_the_numbers_that_they_should(pair):
    train, test = pair
    expected = obvious(train, test)
    if expected.empty:
        with pytest.warns(TupletWarning, match="No column of X is of use"):
            assert not FeatureEncoder().fit_transform(train).any()
        return
    encoder = FeatureEncoder().fit(train)
    assert encoder.get_feature_names_out().tolist() == list(expected.columns)
    np.testing.assert_allclose(encoder.transform(test), expected.to_numpy())


@parametrize_with_checks([FeatureEncoder(), FeatureEncoder(impute=False), FeatureEncoder(keep_categories=9)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


# -- kinds of columns --------------------------------------------------------------------------------------


def test_numbers_of_every_type():
    frame = pd.DataFrame(
        {
            "flag": [True, False, True],
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "object": pd.Series([Decimal(1), None, Decimal("2.5")], dtype=object),
            "nothing": pd.Series([None] * 3, dtype=object),
            "same": [7, 7, 7],
            "word": ["a", "b", "c"],
        }
    )
    answer = FeatureEncoder(impute=False).fit(frame).transform(frame)
    nan = np.nan
    np.testing.assert_array_equal(answer[:, :4], [[1, 1, 1, 1], [0, nan, nan, nan], [1, 0, 3, 2.5]])
    filled = FeatureEncoder().fit(frame)
    assert filled.medians_.tolist() == [1, 0.5, 2, 1.75]
    assert filled.summary()["kind"].tolist() == ["number"] * 4 + ["drop"] * 2 + ["category"]
    assert np.isfinite(filled.transform(frame)).all()


def test_dates_are_days():
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["1970-01-02 00:00", None, "1970-01-04 12:00"]),
            "zoned": pd.to_datetime(["1970-01-02 02:00"] * 3).tz_localize("Etc/GMT-2"),
            "month": pd.PeriodIndex(["1970-01", "1970-02", "1970-03"], freq="M"),
            "took": pd.to_timedelta(["36h", None, "12h"]),
            "date": [dt.date(1970, 1, 2), None, dt.date(1970, 1, 3)],
        }
    )
    answer = FeatureEncoder(impute=False).fit_transform(frame)
    nan = np.nan
    np.testing.assert_array_equal(answer, [[1, 1, 0, 1.5, 1], [nan, 1, 31, nan, nan], [3.5, 1, 59, 0.5, 2]])
    same = pl.DataFrame({"day": frame["day"].tolist()[::2], "date": frame["date"].tolist()[::2]})
    assert FeatureEncoder().fit_transform(same).tolist() == [[1, 1], [3.5, 2]]
    with pytest.raises(InputError, match="must hold dates in the column 'date', as in fit"):
        FeatureEncoder().fit(frame).transform(frame.assign(date=1.0))


FAR = dt.datetime(9999, 12, 31)  # the usual stand-in for "never"


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([FAR.date(), None, dt.date(1970, 1, 2)]),
        pd.Series([FAR, None, dt.datetime(1970, 1, 2)]),
        pd.Series([FAR, None, dt.datetime(1970, 1, 2)], dtype=object),
        pd.Series([FAR, None, dt.datetime(1970, 1, 2)], dtype="datetime64[s]"),
        pd.Series(
            [
                FAR.replace(tzinfo=dt.UTC),
                None,
                dt.datetime(1970, 1, 2, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            ]
        ),
        pl.Series([FAR.date(), None, dt.date(1970, 1, 2)]),
        pl.Series([FAR, None, dt.datetime(1970, 1, 2)]),
    ],
)
def test_dates_may_be_far_away(column):
    frame = (
        pl.DataFrame({"until": column}) if isinstance(column, pl.Series) else pd.DataFrame({"until": column})
    )
    days = (FAR - dt.datetime(1970, 1, 1)).days
    answer = FeatureEncoder(impute=False).fit_transform(frame)
    np.testing.assert_array_equal(answer[:, 0], [days, np.nan, 1])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pl.String, "x"),
        (pl.Date, dt.date(2020, 1, 1)),
        (pl.Datetime, dt.datetime(2020, 1, 1)),
        (pl.Duration, dt.timedelta(2)),
    ],
)
def test_a_polars_column_without_values_keeps_its_kind(kind, value):
    Y = [[0, 1], [1, 0]] * 4
    empty = pl.DataFrame({"a": pl.Series([None] * 8, dtype=kind), "b": range(8)})
    model = ChainClassifier().fit(empty, Y)
    assert len(model.predict(pl.DataFrame({"a": pl.Series([value], dtype=kind), "b": [1]}))) == 1


def test_numbers_of_any_kind_may_have_gaps():
    rng = np.random.default_rng(0)
    numbers = pd.Series([1, 2, 3, 4] * 5, dtype=object)
    numbers[3] = pd.NA
    decimals = pd.Series([Decimal("1.5"), None] * 10, dtype=pd.ArrowDtype(pa.decimal128(5, 2)))
    X = pd.DataFrame({"numbers": numbers, "decimals": decimals, "plain": rng.normal(size=20)})
    Y = rng.integers(2, size=(20, 2))
    plain = pd.DataFrame(
        {
            "numbers": [*[1.0, 2, 3, np.nan], *[1.0, 2, 3, 4] * 4],
            "decimals": [1.5, np.nan] * 10,
            "plain": X["plain"],
        }
    )
    for extra in ({}, {"word": list("ab") * 10}):
        ours = ChainClassifier().fit(X.assign(**extra), Y).predict_proba(X.assign(**extra))
        theirs = ChainClassifier().fit(plain.assign(**extra), Y).predict_proba(plain.assign(**extra))
        np.testing.assert_allclose(ours, theirs)
    fitted = ChainClassifier().fit(plain, Y)
    record = pd.DataFrame([{"numbers": pd.NA, "decimals": 1.5, "plain": 0.0}])
    assert fitted.predict(record).shape == (1, 2)


def test_frames_of_sparse_columns_are_frames():
    X = pd.get_dummies(pd.Series(list("abc") * 10), sparse=True)
    Y = np.array([[0, 1], [1, 0], [1, 1]] * 10)
    assert (ChainClassifier().fit(X, Y).predict(X) == Y).mean() > 0.9


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("width", [1, 3])
def test_the_data_stay_as_they_are(order, width):
    X = np.asarray(np.random.default_rng(0).normal(size=(20, width)), order=order)
    before = X.copy()
    X.flags.writeable = False
    assert FeatureEncoder().fit(X).transform(X) is X
    np.testing.assert_array_equal(X, before)
    FeatureEncoder().fit(np.where(X > 1, np.nan, X)).transform(X)


def test_columns_stay_in_order():
    frame = pd.DataFrame({"day": pd.to_datetime(["1970-01-03", "1970-01-05"]), "size": [7.0, 8.0]})
    encoder = FeatureEncoder().fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["day", "size"]
    assert encoder.transform(frame).tolist() == [[2, 7], [4, 8]]


def test_names_are_unique_and_mixed_types_sort():
    frame = pd.DataFrame({"a": ["x", 1, "y"], "a=x": [1.0, 2.0, 3.0]})
    encoder = FeatureEncoder().fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["a=1", "a=x'", "a=y", "a=x"]
    assert encoder.categories_ == {"a": (1, "x", "y")}
    with pytest.raises(InputError, match="input_features"):
        encoder.get_feature_names_out(["b", "c"])


def test_what_cannot_be_encoded_is_named(monkeypatch):
    frame = pd.DataFrame({"word": ["a", "b", "c"], "size": [1.0, 2.0, 3.0]})
    encoder = FeatureEncoder().fit(frame)
    for wrong, message in [
        (frame.assign(word=[1, 2, 3]), "numbers in the column 'word', but text in fit"),
        (frame.assign(size="large"), "must hold numbers in the column 'size', as in fit"),
        (frame.assign(size=np.inf), "infinity, in the column 'size'"),
        (frame.assign(word=[["a"]] * 3), "containers in the column 'word'"),
        (frame[:0], "no rows"),
    ]:
        with pytest.raises(InputError, match=message):
            encoder.transform(wrong)
    with (
        pytest.raises(InputError, match="a frame with the 2 columns"),
        pytest.warns(UserWarning, match="names"),
    ):
        encoder.transform(np.ones((3, 2)))
    encoder.transform(frame.assign(word=np.nan))  # nothing known is no contradiction
    with pytest.warns(TupletWarning, match="No column of X is of use"):
        FeatureEncoder().fit(pd.DataFrame({"word": pd.Categorical([None, None], categories=["a"])}))
    monkeypatch.setattr(inputs, "largest_array", lambda: 10)
    with pytest.raises(IntractableError, match="a column for each value of its text"):
        FeatureEncoder().fit(frame)


def test_categories_can_be_kept():
    frame = pd.DataFrame(
        {
            "place": ["a", "b", "c", None],
            "sex": ["f", "m", "f", "m"],
            "size": [1.0, 2, 3, None],
            "id": list("wxyz"),
        }
    )
    encoder = FeatureEncoder(impute=False, keep_categories=3).fit(frame)
    answer = encoder.transform(frame.assign(place=["b", "new", None, "c"]))
    expected = ["sex=m", "size", "id=w", "id=x", "id=y", "id=z", "place"]
    assert list(answer.columns) == encoder.get_feature_names_out().tolist() == expected
    assert answer["place"].cat.codes.tolist() == [1, -1, -1, 2]
    assert answer["place"].cat.categories.tolist() == [0, 1, 2]


# -- what estimators take ----------------------------------------------------------------------------------

COLUMNS = ColumnTransformer([("text", OneHotEncoder(), ["place"])], remainder="passthrough")


@pytest.mark.parametrize(
    ("estimator", "frames", "chooses"),
    [
        (LogisticRegression(), False, False),
        (make_pipeline(StandardScaler(), LogisticRegression()), False, False),
        (make_pipeline(COLUMNS, LogisticRegression()), True, True),
        (make_pipeline("passthrough", COLUMNS, LogisticRegression()), True, True),
        (GridSearchCV(make_pipeline(COLUMNS, GaussianNB()), {}), True, True),
        (CalibratedClassifierCV(make_pipeline(COLUMNS, GaussianNB())), True, True),
        (make_pipeline(OneHotEncoder(), LogisticRegression()), True, False),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder(), GaussianNB()), True, False),
        (make_pipeline(SimpleImputer(strategy="constant"), GaussianNB()), False, False),
        (make_pipeline(SimpleImputer(), OneHotEncoder(), GaussianNB()), False, False),
        (make_pipeline(FunctionTransformer(), GaussianNB()), True, True),
        (make_pipeline(FunctionTransformer(validate=True), GaussianNB()), False, False),
        (make_pipeline(FeatureUnion([("a", COLUMNS), ("b", OneHotEncoder())]), GaussianNB()), True, True),
        (make_pipeline(FeatureUnion([("a", COLUMNS), ("b", StandardScaler())]), GaussianNB()), True, True),
        (make_pipeline(FeatureEncoder(), GaussianNB()), True, False),
        (CategoricalNB(), False, False),
        (HistGradientBoostingClassifier(), False, False),
    ],
)
def test_estimators_that_treat_frames_are_known(estimator, frames, chooses):
    assert takes_frames(estimator) == frames
    assert chooses_columns(estimator) == chooses


def test_estimators_that_take_categories_are_known():
    boosting = HistGradientBoostingClassifier(max_bins=63)
    assert category_limit(boosting) == category_limit(GridSearchCV(boosting, {})) == 63
    assert category_limit(HistGradientBoostingClassifier(categorical_features=[0])) == 0
    assert category_limit(make_pipeline(StandardScaler(), boosting)) == 0
    assert category_limit(LogisticRegression()) == 0


@pytest.mark.parametrize("step", ["passthrough", SimpleImputer(strategy="most_frequent")])
def test_parents_pass_a_column_transformer_that_is_not_the_first_step(step):
    X, columns = (
        pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        ColumnTransformer([("a", StandardScaler(), [0])]),
    )
    admitted = admit_columns(make_pipeline(step, columns, GaussianNB()), X, 2)
    assert admitted[1].transformers[-1] == ("class_parents", "passthrough", [2, 3])
    union = make_pipeline(FeatureUnion([("one", columns), ("two", columns)]), GaussianNB())
    one, two = (part for _, part in admit_columns(union, X, 2)[0].transformer_list)
    assert (len(one.transformers), len(two.transformers)) == (2, 1)


# -- in models ---------------------------------------------------------------------------------------------


def mixed(n=120, seed=0):
    """Features of every kind with gaps, and labels that the text columns tell."""
    rng = np.random.default_rng(seed)
    place, sex = rng.choice(["coast", "hills", "plain"], size=n), rng.choice(["f", "m"], size=n)
    X = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) + (sex == "m")),
            "place": np.where(rng.random(n) < 0.05, None, place),
            "sex": pd.Categorical(sex),
            "grade": pd.Categorical(
                rng.choice(["low", "high"], size=n), categories=["low", "high"], ordered=True
            ),
            "flag": rng.random(n) < 0.5,
        }
    )
    Y = pd.DataFrame({"weather": np.where(place == "coast", "wet", "dry"), "sex": (sex == "m").astype(int)})
    return X, Y


def in_polars(X):
    enums = {"sex": pl.Enum(["f", "m"]), "grade": pl.Enum(["low", "high"])}
    columns = {c: X[c].astype(object).where(X[c].notna(), None).tolist() for c in X}
    return pl.DataFrame(columns, schema_overrides=enums)


FORMS = [IndependentClassifier, ChainClassifier, PowersetClassifier]
ESTIMATORS = [
    None,
    LogisticRegression(),
    KNeighborsClassifier(),
    ExtraTreesClassifier(20, random_state=0),
    HistGradientBoostingClassifier(max_iter=10, random_state=0),
    GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4]}, cv=2),
    make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), SimpleImputer(), GaussianNB()
    ),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_mixed_frames_go_into_every_model(form, estimator):
    X, Y = mixed()
    model = form(estimator).fit(X[:90], Y[:90])
    assert model.score(X[90:], Y[90:]) > 0.7
    odd = X[90:].assign(place="moon", sex=pd.Categorical([None] * 30, categories=["f", "m"]), size=np.nan)
    assert np.isfinite(model.predict_joint(odd).log_prob(Y[90:])).all()
    same = form(estimator).fit(in_polars(X[:90]), Y[:90]).predict_joint(in_polars(X[90:]))
    np.testing.assert_allclose(same.log_prob(Y[90:]), model.predict_joint(X[90:]).log_prob(Y[90:]), atol=1e-9)


def test_the_encoder_is_learned_from_training_rows_only():
    X, Y = mixed()
    X.loc[100:, "place"] = "moon"
    weight = np.r_[np.ones(100), np.zeros(20)]
    encoder = IndependentClassifier(GaussianNB()).fit(X, Y, weight).encoder_
    assert encoder.categories_["place"] == ("coast", "hills", "plain")
    assert encoder.medians_[0] == np.nanmedian(X["size"][:100])
    assert encoder.get_feature_names_out().tolist() == [
        "size", "place=coast", "place=hills", "place=plain", "sex=m", "grade=high", "flag",
    ]  # fmt: skip


@pytest.mark.parametrize("as_array", [False, True])
def test_missing_numbers_become_medians(as_array):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.integers(2, size=(60, 2))
    X[rng.random((60, 3)) < 0.2] = np.nan
    X = X if as_array else pd.DataFrame(X, columns=list("abc"))
    by_hand = make_pipeline(SimpleImputer(strategy="median"), GaussianNB())
    expected = ChainClassifier(by_hand).fit(X, Y)
    assert expected.encoder_ is None
    model = ChainClassifier(GaussianNB()).fit(X, Y)
    np.testing.assert_allclose(model.predict_joint(X).log_prob(Y), expected.predict_joint(X).log_prob(Y))
    np.testing.assert_allclose(model.encoder_.medians_, np.nanmedian(X, axis=0))


def test_a_gap_that_no_training_row_has_is_filled_in_too():
    X, Y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40)[:, None] % [2, 3]
    model = IndependentClassifier(GaussianNB()).fit(X, Y)
    gap = model.predict_joint([[np.nan, 0.5]]).marginals()
    filled = model.predict_joint([[np.median(X[:, 0]), 0.5]]).marginals()
    for ours, theirs in zip(gap.values(), filled.values(), strict=True):
        np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize(
    "estimator", [None, ExtraTreesClassifier(5), HistGradientBoostingClassifier(max_iter=2)]
)
def test_numbers_are_left_alone_where_estimators_take_gaps(estimator):
    X, Y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40)[:, None] % [2, 3]
    X[0, 0] = np.nan
    assert IndependentClassifier(estimator).fit(X, Y).encoder_ is None


def test_a_column_transformer_knows_numeric_columns_by_name():
    rng = np.random.default_rng(0)
    X, Y = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"]), rng.integers(2, size=(50, 2))
    columns = ColumnTransformer([("a", StandardScaler(), ["a"])])
    model = ChainClassifier(make_pipeline(columns, LogisticRegression())).fit(X, Y)
    assert model.encoder_ is None
    assert model.models_[0].classifier_.estimator[-1].n_features_in_ == 1
    assert model.models_[1].classifier_.estimator[-1].n_features_in_ == 2  # a and the parent
    assert model.predict(X).shape == (50, 2)


def test_boosting_gets_categories_and_no_more_than_it_takes():
    X, Y = mixed()
    few = IndependentClassifier(HistGradientBoostingClassifier(max_iter=2)).fit(X, Y)
    assert few.models_[0].classifier_.estimator.is_categorical_.sum() == 1  # place
    none = IndependentClassifier(HistGradientBoostingClassifier(max_iter=2, max_bins=2)).fit(X, Y)
    assert none.models_[0].classifier_.estimator.is_categorical_ is None
    both = IndependentClassifier({"sex": HistGradientBoostingClassifier(max_iter=2)}).fit(X, Y)
    assert both.encoder_.keep_categories == 0


def test_boosting_libraries_with_categories_of_their_own():
    xgboost, catboost = pytest.importorskip("xgboost"), pytest.importorskip("catboost")
    X, Y = mixed()
    native = xgboost.XGBClassifier(n_estimators=5, enable_categorical=True, n_jobs=1)
    model = ChainClassifier(native).fit(X, Y)
    assert model.encoder_.keep_categories > 0
    assert model.score(X, Y) > 0.7
    X = X.assign(place=X["place"].fillna("?"))
    told = catboost.CatBoostClassifier(
        iterations=20,
        cat_features=("place", "sex", "grade"),
        verbose=0,
        allow_writing_files=False,
        thread_count=1,
    )
    model = ChainClassifier(told).fit(X, Y)
    assert model.encoder_ is None
    assert model.score(X, Y) > 0.7


def test_a_model_can_ask_for_the_frame_itself():
    class Looks(JointClassifier):
        _feature_form = "raw"

        def _fit(self, X, codes, sample_weight):
            self.seen_ = X

        def _predict_joint(self, X):
            assert list(X.columns) == list(self.seen_.columns)
            return FactorGraph.independent([np.log(np.full((len(X), k), 1 / k)) for k in self.space_.cards])

    X, Y = mixed()
    model = Looks().fit(X, Y)
    assert model.encoder_ is None
    pd.testing.assert_frame_equal(model.seen_, X)
    assert model.predict(X).shape == Y.shape
    assert PriorClassifier().fit(X, Y).encoder_ is None
