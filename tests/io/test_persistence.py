"""Saved models: round trips of everything, and files that are damaged, forged or from elsewhere."""

import datetime
import decimal
import io
import json
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from all_models import MODELS, data, fitted, table
from tuplet import MixedNaiveBayes, RuleSet, TemperatureScaled
from tuplet.core.exceptions import ModelFileError
from tuplet.evaluate import StratifiedFolds
from tuplet.io.saved_models import load_model, read_header, save_model
from tuplet.io.saved_models.recipes import rewrite
from tuplet.io.saved_models.registry import NAMES, schema_nodes
from tuplet.joint import Enumerate, MonteCarlo
from tuplet.joint.base import all_outcomes
from tuplet.joint.inference import BeliefPropagation
from tuplet.losses import Abstain, CostMatrix, FBeta, Hamming, Jaccard, SubsetZeroOne
from tuplet.models import (
    BayesNetClassifier,
    ChainClassifier,
    DecisionClassifier,
    IndependentClassifier,
    JointStackingClassifier,
    NeighborClassifier,
    PowersetClassifier,
    PriorClassifier,
    ProbitClassifier,
    RuleStackingClassifier,
)

skops = pytest.importorskip("skops.io")


def mixed(n=36):
    """Features of several kinds."""
    X, Y = data(n)
    X["place"] = pd.Categorical(np.where(X["a"] > 0, "shore", "hill"), ["hill", "shore", "moon"])
    X["word"] = np.where(X["b"] > 0, "p", "q")
    X["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), "D")
    X.iloc[3, 0] = np.nan
    return X, Y


def through_a_file(model, tmp_path, **settings):
    path = tmp_path / "model.tuplet"
    save_model(model, path, **settings)
    return load_model(path, **settings)


def types_in(data):
    """Return "module:class" of every node of what skops wrote."""
    schema = json.loads(zipfile.ZipFile(io.BytesIO(data)).read("schema.json"))
    return {f"{node['__module__']}:{node['__class__']}" for node, _ in schema_nodes(schema)}


def assert_registered(model):
    """Every class of tuplet in a model has a name, and no file has a module of tuplet."""
    ours = {path for path in types_in(skops.dumps(rewrite(model))) if path.startswith("tuplet.")}
    missing = sorted(path for path in ours if path not in NAMES)
    assert not missing, f"tuplet.io.saved_models.registry lacks {', '.join(missing)}"


def assert_no_modules(path):
    types = types_in(zipfile.ZipFile(path).read("model.skops"))
    assert not [name for name in types if name.startswith("tuplet.")]
    assert f"tuplet:{read_header(path).model}" in types


def assert_same_predictions(one, other, X):
    first, second = one.predict_joint(X), other.predict_joint(X)
    outcomes = np.repeat(all_outcomes(first.space.cards)[:, None], len(X), axis=1)
    np.testing.assert_array_equal(
        second.distribution.log_prob(outcomes), first.distribution.log_prob(outcomes)
    )
    for a, b in zip(first.distribution.top_k(3), second.distribution.top_k(3), strict=True):
        np.testing.assert_array_equal(a, b)
    pd.testing.assert_frame_equal(second.top_k(3), first.top_k(3))
    pd.testing.assert_frame_equal(other.predict(X), one.predict(X))


# -- round trips -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::tuplet.core.exceptions.ApproximationWarning")  # of probit models
@pytest.mark.parametrize("name", MODELS)
def test_every_model_predicts_the_same_after_a_round_trip(name, tmp_path):
    X, _ = table(name)
    model = fitted(name)
    assert_registered(model)
    loaded = through_a_file(model, tmp_path)
    assert_no_modules(tmp_path / "model.tuplet")
    assert type(loaded) is type(model)
    assert_same_predictions(model, loaded, X[:36])
    assert repr(loaded) == repr(model)
    clone(loaded)


LOSSES = [Hamming(), SubsetZeroOne(), FBeta(2.0), Jaccard(), Abstain(Hamming(), 0.2)]
FORMULAS = "rain=dry & late -> wind=calm\nrain=dry xor late\nnot (rain=dry <-> late | wind=calm)"
RULES = {"n_rules": 0, "n_folds": 2, "progress": False}
VARIANTS = {
    **{repr(loss): DecisionClassifier(PriorClassifier(), loss) for loss in LOSSES},
    "costs": DecisionClassifier(PriorClassifier(), CostMatrix([1 - np.eye(k) for k in (2, 3, 2)])),
    "enumerated chains": ChainClassifier(engine=Enumerate()),
    "sampled chains": ChainClassifier(engine=MonteCarlo()),
    "temperature": IndependentClassifier(TemperatureScaled(GaussianNB())),
    "naive Bayes": IndependentClassifier(MixedNaiveBayes()),
    "network of naive Bayes": BayesNetClassifier(MixedNaiveBayes(), engine=BeliefPropagation()),
    "network of others": BayesNetClassifier(GaussianNB(), max_parents=1),
    "parents": BayesNetClassifier(discrete_as="parents", max_parents=1, parametrisation="split"),
    "gate": JointStackingClassifier([PriorClassifier(), PowersetClassifier()], cv=2, gate=True),
    "folds": JointStackingClassifier([PriorClassifier(), IndependentClassifier()], cv=StratifiedFolds(2)),
    "several outputs": RuleStackingClassifier(RandomForestClassifier(3), multi_output=True, **RULES),
    "formulas": RuleStackingClassifier(rules=list(RuleSet.from_text(FORMULAS)), **RULES),
    **{
        kind: RuleStackingClassifier(calibration=kind, **RULES)
        for kind in ("platt", "isotonic", "temperature", "dirichlet")
    },
}
"""Models that hold parts which those of `MODELS` do not."""


@pytest.mark.filterwarnings("ignore::tuplet.core.exceptions.ApproximationWarning")
@pytest.mark.parametrize("name", VARIANTS)
def test_parts_of_all_kinds_are_registered_and_round_trip(name, tmp_path):
    X, Y = mixed(60)
    X = X[["b", "c", "d"]] if name not in ("naive Bayes", "network of naive Bayes", "parents") else X
    Y = table("probit")[1] if name.startswith(("FBeta", "Jaccard")) else Y
    model = clone(VARIANTS[name]).fit(X.drop(columns="day", errors="ignore"), Y)
    assert_registered(model)
    assert_same_predictions(model, through_a_file(model, tmp_path), X[list(model.feature_names_in_)])
    assert_no_modules(tmp_path / "model.tuplet")


@pytest.mark.filterwarnings("ignore::tuplet.core.exceptions.ApproximationWarning")
@pytest.mark.parametrize("correlation", ["metropolis", "factors", "identity"])
def test_probit_models_of_all_correlations_round_trip(correlation, tmp_path):
    X, Y = table("probit")
    draws = {"n_burn": 5, "n_draws": 10, "thin": 1, "n_chains": 2, "random_state": 0, "progress": False}
    model = ProbitClassifier(correlation=correlation, **draws).fit(X, Y)
    assert_registered(model)
    assert_same_predictions(model, through_a_file(model, tmp_path), X[:5])


ESTIMATORS = [
    RandomForestClassifier(n_estimators=3, random_state=0),
    ExtraTreesClassifier(n_estimators=3, random_state=0),
    GradientBoostingClassifier(n_estimators=3),
    HistGradientBoostingClassifier(max_iter=3),
    DecisionTreeClassifier(max_depth=3),
    KNeighborsClassifier(metric="minkowski", p=3),
    KNeighborsClassifier(algorithm="ball_tree", metric="manhattan"),
    CalibratedClassifierCV(GaussianNB(), cv=2),
    GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, cv=2),
    LogisticRegression(class_weight={0: 1.0, 1: 2.0, 2: 1.0}),
    make_pipeline(FunctionTransformer(np.tanh), StandardScaler(), GaussianNB()),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_estimators_of_scikit_learn_round_trip(estimator, tmp_path):
    X, Y = data(60)
    Y = Y[["rain", "late"]] if isinstance(estimator, LogisticRegression) else Y
    if isinstance(estimator, LogisticRegression):
        estimator = clone(estimator).set_params(class_weight={"dry": 1.0, "wet": 2.0, False: 1.0, True: 1.5})
    fitted = IndependentClassifier(estimator).fit(X, Y)
    assert_same_predictions(fitted, through_a_file(fitted, tmp_path), X)


def test_support_vector_machines_round_trip(tmp_path):
    X, Y = data(60)
    fitted = IndependentClassifier(CalibratedClassifierCV(SVC(), cv=2)).fit(X, Y)
    assert_same_predictions(fitted, through_a_file(fitted, tmp_path), X)


@pytest.mark.parametrize(
    "model",
    [
        IndependentClassifier(),
        NeighborClassifier(),
        ChainClassifier(),
        ChainClassifier(HistGradientBoostingClassifier(max_iter=3)),
    ],
    ids=repr,
)
def test_frames_of_any_columns_round_trip(model, tmp_path):
    X, Y = mixed()
    fitted = clone(model).fit(X, Y)
    assert_same_predictions(fitted, through_a_file(fitted, tmp_path), X)


def test_a_column_transformer_round_trips(tmp_path):
    X, Y = mixed()
    X = X.astype({"word": "string"})
    columns = ColumnTransformer(
        [
            ("words", OneHotEncoder(), make_column_selector(dtype_include=["category", "string"])),
            ("places", OrdinalEncoder(dtype=int), ["place"]),
            ("dates", "drop", ["day"]),
        ],
        remainder="passthrough",
    )
    fitted = IndependentClassifier(make_pipeline(columns, HistGradientBoostingClassifier(max_iter=2))).fit(
        X, Y
    )
    assert_same_predictions(fitted, through_a_file(fitted, tmp_path), X)


def test_sparse_features_round_trip(tmp_path):
    X, Y = data(36)
    fitted = NeighborClassifier().fit(sparse.csr_array(X.to_numpy()), Y)
    a, b = (
        m.predict_joint(sparse.csr_array(X.to_numpy())).log_prob(Y)
        for m in (fitted, through_a_file(fitted, tmp_path))
    )
    np.testing.assert_array_equal(a, b)


TIMES = pd.to_datetime(["2024-03-01", "2025-01-01", "2024-03-01", "2025-01-01"])
DATES = [datetime.date(2024, 1, 1), datetime.date(2025, 1, 1)] * 2
AB = ["a", "b", "a", "b"]
LABELS = {
    "list of text": [["a", "x"], ["b", "y"]] * 2,
    "one column of text": np.array(AB),
    "objects with gaps": np.array([["a", 1], [None, 2], ["b", None], ["a", 1]], dtype=object),
    "variable text": np.array(AB, dtype=np.dtypes.StringDType()),
    "integers": np.array([[5, 6], [7, 8]] * 2, dtype=np.int16),
    "booleans": np.array([[True, False]] * 4),
    "dates": np.array([["2024-01-01"], ["2025-01-01"]] * 2, dtype="datetime64[D]"),
    "decimals": np.array([[decimal.Decimal("1.5")], [decimal.Decimal("2.5")]] * 2, dtype=object),
    "days": np.array([[day] for day in DATES], dtype=object),
    "sparse": sparse.csr_array(np.array([[0, 1], [1, 1]] * 2)),
    "sparse matrix": sparse.csr_matrix(np.array([[0, 1], [1, 1]] * 2)),
    "series": pd.Series(AB, name="letter", index=list("wxyz")),
    "pandas": pd.DataFrame(
        {
            "text": AB,
            "object": np.array(AB, dtype=object),
            "old text": pd.array(AB, dtype="string"),
            "python text": pd.array(AB, dtype=pd.StringDtype("python")),
            "ordered": pd.Categorical(AB, ["b", "a", "never"], ordered=True),
            "numbers": pd.Categorical([3, 1, 3, 1]),
            "integer": pd.array([1, None, 2, 1], dtype="Int8"),
            "maybe": pd.array([True, None, False, True], dtype="boolean"),
            "float": [1.0, 2.0, np.nan, 1.0],
            "time": TIMES,
            "zone": TIMES.tz_localize("Europe/Berlin"),
            "times": pd.Categorical(TIMES.tz_localize("UTC")),
            "bins": pd.cut(np.array([1.0, 2.0, 3.0, 4.0]), 2),
            "month": TIMES.to_period("M"),
            "wait": TIMES - TIMES[0],
            7: [1, 0, 1, 0],
        },
        index=[4, 3, 2, 1],
    ),
    "polars": pl.DataFrame(
        {
            "text": AB,
            "enum": pl.Series(AB, dtype=pl.Enum(["b", "a", "never"])),
            "categorical": pl.Series(AB, dtype=pl.Categorical),
            "small": pl.Series([1, 2, None, 1], dtype=pl.Int8),
            "bool": [True, None, False, True],
            "time": pl.Series(TIMES.to_numpy()).cast(pl.Datetime("ms", "UTC")),
            "day": DATES,
        }
    ),
    "polars series": pl.Series("letter", AB),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("gaps", [False, True])
def test_labels_of_all_types_come_back_in_their_container(name, gaps, tmp_path):
    Y = LABELS[name]
    fitted = PriorClassifier("marginals").fit(np.zeros((4, 1)), Y)
    loaded = through_a_file(fitted, tmp_path)
    codes = np.zeros((3, fitted.space_.n_variables), dtype=int)
    codes[1] = -1 if gaps else 0
    before, after = fitted.space_.decode(codes), loaded.space_.decode(codes)
    assert type(after) is type(before)
    if isinstance(before, pd.DataFrame):
        pd.testing.assert_frame_equal(after, before)
        assert list(after.columns) == list(before.columns)
    elif isinstance(before, pd.Series):
        pd.testing.assert_series_equal(after, before)
    elif isinstance(before, pl.DataFrame):
        assert after.schema == before.schema
        assert after.equals(before)
    elif isinstance(before, pl.Series):
        assert after.name == before.name
        assert after.equals(before)
    elif sparse.issparse(before):
        assert after.dtype == before.dtype
        assert (after != before).nnz == 0
    else:
        assert after.dtype == before.dtype
        np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(loaded.space_.encode(Y), fitted.space_.encode(Y))
    assert repr(loaded.space_) == repr(fitted.space_)


THINGS = {
    "dict of booleans": {True: 1, False: 2},
    "dict of tuples": {(0, 1): np.arange(2), None: {1: "a", "1": "b"}},
    "table of objects": np.array([[(1, 2), None], ["a", 2.5]], dtype=object),
    "empty table": np.empty((0, 3), dtype=object),
    "one object": np.array(None, dtype=object),
    "frozen set": frozenset({1, 2}),
    "set": {1, 2},
    "range": range(3, 9, 2),
    "bytes": b"\x00\xff",
    "slice": slice(1, None, 2),
    "not a number": [float("nan"), float("inf"), -0.0],
    "masked": np.ma.MaskedArray([1.0, 2.0], mask=[True, False]),
    "structured": np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "scalar": np.float32(1.5),
    "truth": np.True_,
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None]),
    "frame": pd.DataFrame({"n": [1, 2], "t": ["a", None], "c": pd.Categorical(["u", "v"])}, index=["i", "j"]),
    "series": pd.Series([1.5, np.nan], name="s"),
    "categorical": pd.Categorical(["u", None, "v"]),
    "missing": [pd.NA, pd.NaT, None],
    "time": pd.Timestamp("2024-07-01 12:34:56.123456789", tz="Asia/Tokyo"),
    "period": pd.Period("2024-07", "M"),
    "wait": pd.Timedelta("1 days 00:00:01"),
    "sparse": sparse.csc_matrix(np.eye(3)),
    "random": np.random.default_rng(3),
}


@pytest.mark.parametrize("name", THINGS)
def test_attributes_of_many_kinds_round_trip(name, tmp_path):
    model = PriorClassifier().fit(np.zeros((2, 1)), [[0], [1]])
    thing = model.thing_ = THINGS[name]
    model.same_ = [thing]
    loaded = through_a_file(model, tmp_path)
    back = loaded.thing_
    assert loaded.same_[0] is back or name.startswith(("dict", "scalar", "truth", "missing", "not a"))
    assert type(back) is type(thing)
    if isinstance(thing, pd.DataFrame):
        pd.testing.assert_frame_equal(back, thing)
    elif isinstance(thing, np.random.Generator):
        assert back.random() == np.random.default_rng(3).random()
    elif sparse.issparse(thing):
        assert (back != thing).nnz == 0
    elif isinstance(thing, pd.Series | pd.Index):
        assert back.equals(thing)
        assert back.name == thing.name
    elif isinstance(thing, np.ndarray):
        assert (back.dtype, back.shape, back.flags.f_contiguous) == (
            thing.dtype,
            thing.shape,
            thing.flags.f_contiguous,
        )
        assert repr(back) == repr(thing)
    else:
        assert repr(back) == repr(thing)


def test_a_model_of_nothing_but_zeros_is_not_taken_for_a_bomb(tmp_path):
    model = PriorClassifier().fit(np.zeros((2, 1)), [[0], [1]])
    model.zeros_ = np.zeros(2**20)
    assert not through_a_file(model, tmp_path).zeros_.any()


# -- what the header says ----------------------------------------------------------------------------------


def test_the_header_tells_about_the_model_without_loading_it(tmp_path):
    X, Y = mixed()
    path = tmp_path / "model.tuplet"
    save_model(DecisionClassifier(ChainClassifier(GaussianNB()), "subset").fit(X, Y), path)
    header = read_header(path)
    assert header.model == "DecisionClassifier"
    assert [(v.name, v.labels, v.type) for v in header.variables] == [
        ("rain", ("dry", "wet"), str(Y["rain"].dtype)),  # "str" since pandas 3, "object" before
        ("wind", ("calm", "breeze", "storm"), "category"),
        ("late", (False, True), "boolean"),
    ]
    assert (header.n_rows, header.n_features, header.container) == (36, 7, "pandas")
    assert header.features == ("a", "b", "c", "d", "place", "word", "day")
    assert header.parameters == {"estimator": "ChainClassifier(estimator=GaussianNB())", "loss": "subset"}
    assert header.versions["numpy"] == np.__version__
    assert datetime.datetime.fromisoformat(header.saved).utcoffset() == datetime.timedelta(0)


# -- what cannot be saved ----------------------------------------------------------------------------------


class Mine(ClassifierMixin, BaseEstimator):
    """A classifier that is not scikit-learn's."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))

    def predict(self, X):
        return np.repeat(self.classes_[self.shares_.argmax()], len(X))


def double(X):
    return 2 * X


def test_a_part_that_is_no_data_is_named(tmp_path):
    X, Y = data(36)
    path = tmp_path / "model.tuplet"
    steps = {
        r"the function .*<lambda>.*: replace it\.$": FunctionTransformer(lambda X: 2 * X),
        r"the function .*double.*trusted=\['.*double'\]": FunctionTransformer(double),
    }
    for message, step in steps.items():
        model = PowersetClassifier(make_pipeline(step, GaussianNB())).fit(X, Y)
        with pytest.raises(ModelFileError, match=rf"part 'estimator\.steps\[0\]\[1\]\.func' is {message}"):
            save_model(model, path)
    with pytest.raises(ModelFileError, match=r"'estimator' is an object of type .*Mine"):
        save_model(PowersetClassifier(Mine()).fit(X, Y), path)
    assert not list(tmp_path.iterdir())


def test_own_types_are_saved_and_loaded_where_both_sides_allow_them(tmp_path):
    X, Y = data(36)
    model = IndependentClassifier(Mine()).fit(X, Y)
    path = tmp_path / "model.tuplet"
    save_model(model, path, trusted=[Mine])
    with pytest.raises(ModelFileError, match=r"pass trusted=\['.*Mine'\]"):
        load_model(path)
    assert_same_predictions(model, load_model(path, trusted=[f"{Mine.__module__}.Mine"]), X)


def test_circles_and_foreign_objects_cannot_be_saved(tmp_path):
    model = PriorClassifier().fit(np.zeros((2, 1)), [[0], [1]])
    model.me_ = [model]
    with pytest.raises(ModelFileError, match="cannot be saved"):
        save_model(model, tmp_path / "model.tuplet")
    model.me_ = {"deep": [io.StringIO()]}
    with pytest.raises(
        ModelFileError, match=r"part \"me_\['deep'\]\[0\]\" is an object of type _io.StringIO"
    ):
        save_model(model, tmp_path / "model.tuplet")


def test_only_fitted_models_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(PriorClassifier(), tmp_path / "model.tuplet")
    with pytest.raises(ModelFileError, match="found GaussianNB"):
        save_model(GaussianNB(), tmp_path / "model.tuplet")
