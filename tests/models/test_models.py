"""The first models end to end: against oracles, other containers, scikit-learn's tools, and bad input."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from all_models import ANY, data, fitted, table
from tuplet.core.exceptions import (
    ApproximationWarning,
    InputError,
    IntractableError,
    LabelError,
    TupletWarning,
)
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Enumerate, MonteCarlo
from tuplet.joint.base import all_outcomes
from tuplet.local import StackedModel, default_estimator
from tuplet.losses import get_loss
from tuplet.models import (
    BayesNetClassifier,
    ChainClassifier,
    DecisionClassifier,
    IndependentClassifier,
    JointClassifier,
    PowersetClassifier,
    PriorClassifier,
    StackedFeaturesClassifier,
    TreeClassifier,
)
from tuplet.models.prior import seen_combinations, unseen_mass

SOME = [
    PriorClassifier(),
    PowersetClassifier(),
    ChainClassifier(n_chains=2, random_state=0),
    DecisionClassifier(ChainClassifier(), "subset"),
]
models = pytest.mark.parametrize("model", ANY.values(), ids=ANY)
names = pytest.mark.parametrize("name", ANY)
some_models = pytest.mark.parametrize("model", SOME, ids=repr)
WITH_ESTIMATOR = [
    IndependentClassifier,
    PowersetClassifier,
    ChainClassifier,
    BayesNetClassifier,
    StackedFeaturesClassifier,
    TreeClassifier,
]


# -- joints ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", [name for name in ANY if name != "greedy chains"])
@pytest.mark.filterwarnings("ignore:PowersetClassifier. the classifier learned from")
def test_every_outcome_has_a_positive_probability_and_they_sum_to_one(name, missing):
    X, Y = data(60, missing=missing)
    model = clone(ANY[name]).fit(X, Y) if missing else fitted(name)
    joint = model.predict_joint(X[:20]).distribution
    log_prob = joint.log_prob(np.repeat(all_outcomes((2, 3, 2))[:, None], 20, axis=1))
    assert np.isfinite(log_prob).all()
    np.testing.assert_allclose(np.exp(log_prob).sum(axis=0), 1, atol=1e-9)


@names
def test_predict_gives_back_what_came_in(name):
    X, Y = table(name)
    answer = fitted(name).predict(X)
    assert list(answer.columns) == list(Y.columns)
    assert answer.index.equals(X.index)
    pd.testing.assert_series_equal(answer.dtypes, Y.dtypes)


@names
def test_predict_proba_is_the_list_of_marginals(name):
    X, _ = table(name)
    model = fitted(name)
    proba = model.predict_proba(X)
    assert [p.shape for p in proba] == [(60, 2), (60, 3), (60, 2)]
    for p, expected in zip(proba, model.predict_joint(X).distribution.marginals(), strict=True):
        np.testing.assert_allclose(p, expected)
        np.testing.assert_allclose(p.sum(axis=1), 1)
    assert [list(c) for c in model.classes_] == [["dry", "wet"], ["calm", "breeze", "storm"], [False, True]]


@pytest.mark.parametrize("loss", ["hamming", "subset"])
def test_predict_decides_under_the_loss(loss):
    X, Y = data()
    model = ChainClassifier().fit(X, Y)
    codes = get_loss(loss).decide(model.predict_joint(X).distribution)
    assert model.predict(X, loss=loss).equals(model.space_.decode(codes, X.index))
    assert (
        DecisionClassifier(ChainClassifier(), loss).fit(X, Y).predict(X).equals(model.predict(X, loss=loss))
    )


def test_independent_is_one_model_for_each_variable():
    X, Y = data()
    model = IndependentClassifier(GaussianNB()).fit(X, Y)
    codes = model.space_.encode(Y)
    for j, card in enumerate((2, 3, 2)):
        alone = StackedModel(GaussianNB()).fit(
            X.to_numpy(), codes[:, :0], codes[:, j], parent_cards=(), child_card=card
        )
        expected = np.exp(alone.log_proba(X.to_numpy(), codes[:, :0]))
        np.testing.assert_allclose(model.predict_proba(X)[j], expected)


def test_estimators_by_name():
    X, Y = data()
    model = IndependentClassifier({"wind": DecisionTreeClassifier(max_depth=1)}).fit(X, Y)
    kinds = [type(m.classifier_.estimator).__name__ for m in model.models_]
    assert kinds == ["RidgeLogistic", "DecisionTreeClassifier", "RidgeLogistic"]
    assert clone(model).fit(X, Y).score(X, Y) == model.score(X, Y)
    with pytest.raises(InputError, match="'snow'"):
        ChainClassifier({"snow": GaussianNB()}).fit(X, Y)
    with pytest.raises(InputError, match="must be a scikit-learn classifier"):
        PowersetClassifier({"wind": GaussianNB()}).fit(X, Y)


# -- combinations ------------------------------------------------------------------------------------------


def test_prior_joint_is_frequencies_with_unseen_mass():
    y = [["a", "x"]] * 6 + [["b", "y"]] * 3 + [["a", "y"]]
    model = PriorClassifier().fit(np.zeros((10, 1)), y)
    assert model.unseen_mass_ == pytest.approx(1 / 10)  # one row of ten is alone with its combination
    expected = 0.9 * 0.6 + 0.1 * (8 / 12) * (7 / 12)
    assert model.predict_joint([[5.0]]).prob([["a", "x"]]) == pytest.approx(expected)
    assert model.predict_joint([[5.0]]).prob([["b", "x"]]) == pytest.approx(0.1 * (4 / 12) * (7 / 12))


def test_prior_marginals_is_a_product():
    X, Y = data(missing=0.2)
    joint = PriorClassifier("marginals").fit(X, Y).predict_joint(X[:1])
    counts = Y["wind"].value_counts()
    assert joint.marginals()["wind"]["storm"].iloc[0] == pytest.approx(
        (counts["storm"] + 1) / (counts.sum() + 3)
    )
    np.testing.assert_allclose(
        joint.prob({"rain": "wet", "wind": "calm"}),
        joint.prob({"rain": "wet"}) * joint.prob({"wind": "calm"}),
    )


def test_unseen_mass_follows_good_and_turing():
    def mass(rows, weights=None, cards=(2, 2)):
        return unseen_mass(seen_combinations(np.array(rows), weights), cards)

    twice = [[0, 0]] * 2 + [[1, 1]] * 2
    assert mass(twice) == pytest.approx(1 / 5)  # nothing alone: the floor
    assert mass([*twice, [0, 1]]) == pytest.approx(1 / 5)
    assert mass([[0, 0], [1, 1]]) == 0.5  # everything alone: the ceiling
    assert mass([*twice, [0, 1], [1, 0]]) == 0.0  # nothing is left to be unseen
    weights = np.array([2.0, 0.5, 1.5])
    assert mass([[0, 0], [1, 1], [0, 1]], weights) == pytest.approx(1 / 5)


def test_powerset_mixes_the_classifier_with_the_marginals():
    X, Y = data()
    model = PowersetClassifier(GaussianNB(), smoothing=0.25).fit(X, Y)
    pure = PowersetClassifier(GaussianNB(), smoothing=0).fit(X, Y)
    prior = PriorClassifier("marginals").fit(X, Y)
    for j in range(3):
        expected = 0.75 * pure.predict_proba(X)[j] + 0.25 * prior.predict_proba(X)[j]
        np.testing.assert_allclose(model.predict_proba(X)[j], expected)
    assert len(pure.combinations_) == len(Y.drop_duplicates())


def test_powerset_learns_combinations_from_complete_rows_only():
    X, Y = data(missing=0.2)
    complete = Y.notna().all(axis=1)
    with pytest.warns(TupletWarning, match=rf"learned from {complete.sum()} of 150 rows") as caught:
        model = PowersetClassifier().fit(X, Y)
    assert caught[0].filename == __file__
    _, few = data()
    few.loc[few.index[::10], "rain"] = None
    PowersetClassifier().fit(X, few)  # a tenth is no reason to speak
    whole = PowersetClassifier().fit(X[complete], Y[complete])
    assert model.combinations_.tolist() == whole.combinations_.tolist()
    np.testing.assert_allclose(model.model_.classifier_.counts, whole.model_.classifier_.counts)
    with pytest.raises(InputError, match="in which no label is missing"):
        PowersetClassifier().fit(X[:2], [["a", None], [None, "b"]])


# -- chains ------------------------------------------------------------------------------------------------


FIXED = default_estimator().set_params(ridgelogistic__C=0.1)


@pytest.mark.parametrize(
    "estimator", [FIXED, GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)]
)
def test_exact_chain_is_the_product_of_its_conditionals(estimator):
    X, Y = data()
    model = ChainClassifier(estimator, order=["wind", "late", "rain"]).fit(X, Y)
    codes, x = model.space_.encode(Y), X.to_numpy()
    assert model.orders_.tolist() == [[1, 2, 0]]
    expected = np.zeros(len(X))
    for j, parents in ((1, []), (2, [1]), (0, [1, 2])):
        cards = [model.space_.cards[p] for p in parents]
        link = StackedModel(estimator).fit(
            x, codes[:, parents], codes[:, j], parent_cards=cards, child_card=model.space_.cards[j]
        )
        expected += link.log_proba(x, codes[:, parents])[np.arange(len(X)), codes[:, j]]
    np.testing.assert_allclose(model.predict_joint(X).log_prob(Y), expected, atol=1e-9)


def test_exact_chain_agrees_with_its_enumeration():
    X, Y = data()
    joint = ChainClassifier().fit(X, Y).predict_joint(X).distribution
    atoms = joint.to_atoms()
    for fast, slow in zip(joint.marginals(), atoms.marginals(), strict=True):
        np.testing.assert_allclose(fast, slow, atol=1e-10)
    np.testing.assert_array_equal(joint.mode().codes, atoms.mode().codes)


def test_greedy_chain_equals_scikit_learn_on_binary_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    Y = (X[:, :4] + rng.normal(size=(200, 4)) > 0.3).astype(int)
    Y[:, 3] |= Y[:, 0]
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        ours = ChainClassifier(tree, order=order, inference="greedy").fit(X, Y).predict(X)
        # Where a leaf is a tie, smoothing prefers the more frequent label; scikit-learn the first one.
        assert (ours == ClassifierChain(tree, order=order).fit(X, Y).predict(X)).mean() > 0.99


def test_greedy_chain_is_a_point_mass_and_an_ensemble_a_vote():
    X, Y = data()
    fixed = default_estimator().set_params(ridgelogistic__C=1.0)  # else one C is chosen for all chains
    single = ChainClassifier(inference="greedy").fit(X, Y).predict_joint(X).distribution
    assert set(np.unique(np.concatenate(single.components[0].marginals(), axis=1))) == {0.0, 1.0}
    assert np.exp(single.log_weights[0, 1]) == pytest.approx(1 / (len(X) + 1))  # of the pseudo-row
    assert single.mode().proven.all()
    votes = ChainClassifier(fixed, n_chains=4, inference="greedy", random_state=1).fit(X, Y)
    chains = [
        ChainClassifier(fixed, order=order.tolist(), inference="greedy")
        .fit(X, Y)
        .predict_joint(X)
        .distribution
        for order in votes.orders_
    ]
    shares = [np.mean(parts, axis=0) for parts in zip(*(c.marginals() for c in chains), strict=True)]
    for ours, expected in zip(votes.predict_proba(X), shares, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_an_ensemble_of_exact_chains_is_their_mixture():
    X, Y = data()
    fixed = default_estimator().set_params(ridgelogistic__C=1.0)  # else one C is chosen for all chains
    ensemble = ChainClassifier(fixed, n_chains=3, random_state=2).fit(X, Y)
    parts = [
        ChainClassifier(fixed, order=order.tolist()).fit(X, Y).predict_joint(X).log_prob(Y)
        for order in ensemble.orders_
    ]
    expected = np.log(np.mean(np.exp(parts), axis=0))
    np.testing.assert_allclose(ensemble.predict_joint(X).log_prob(Y), expected, atol=1e-9)


def test_random_orders_are_distinct_seeded_and_no_more_than_there_are():
    X, Y = data(n=40)
    fit = lambda **options: ChainClassifier(GaussianNB(), **options).fit(X, Y).orders_  # noqa: E731
    every = fit(n_chains=20, random_state=0)
    assert len(every) == 6
    assert len({tuple(order) for order in every}) == 6
    assert fit(n_chains=4, random_state=3).tolist() == fit(n_chains=4, random_state=3).tolist()
    assert sorted(fit(order="random", random_state=0)[0]) == [0, 1, 2]
    assert fit().tolist() == [[0, 1, 2]]
    assert fit(order=np.array([2, 0, 1])).tolist() == [[2, 0, 1]]


def test_chains_share_models_with_the_same_parents():
    X, Y = data(n=40)
    model = ChainClassifier(GaussianNB(), n_chains=6, random_state=0).fit(X, Y)
    assert len(model.models_) == 3 * 2**2  # a child and any set of the two others
    assert model.links_.shape == (6, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"order": ["rain", "wind"]},
        {"order": ["rain", "wind", "snow"]},
        {"order": [0, 1, 1]},
        {"order": [0, 1, None]},
        {"order": ["rain", "wind", "late"], "n_chains": 2},
    ],
)
def test_bad_chains_are_errors_of_fit(options):
    X, Y = data(n=20)
    with pytest.raises(InputError):
        ChainClassifier(**options).fit(X, Y)


def many_labels(n=60, m=13):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, :1] + rng.normal(size=(n, m)) > 0.5).astype(int)


def test_estimates_are_announced_once_and_exact_engines_are_silent():
    X, Y = many_labels()
    model = ChainClassifier(engine=MonteCarlo(400)).fit(X, Y)
    message = r"estimated within 0\.1 \(four standard errors\); ChainClassifier\(engine=MonteCarlo\(size"
    for query in (model.predict, model.predict_proba):
        with pytest.warns(ApproximationWarning, match=f"{query.__name__}: .*{message}") as caught:
            query(X)
        assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(ApproximationWarning, match="predict: ") as caught:
        DecisionClassifier(ChainClassifier(engine=MonteCarlo(400)), "f1").fit(X, Y).predict(X)
    assert len(caught) == 1
    assert model.predict(X, loss="subset").shape == Y.shape
    assert ChainClassifier(engine=Enumerate(2**13)).fit(X, Y).predict(X).shape == Y.shape


def test_greedy_chains_say_that_they_vote():
    X, Y = data(n=40)
    prediction = ChainClassifier(inference="greedy").fit(X, Y).predict_joint(X)
    for shown in (prediction, prediction[:3], prediction.marginal("rain")):
        assert "votes of greedy chains, not probabilities" in repr(shown)
        assert "votes of greedy chains, not probabilities" in shown._repr_html_()
    assert "votes" not in repr(ChainClassifier().fit(X, Y).predict_joint(X))


@pytest.mark.parametrize(
    "inner", [lambda forest: forest, lambda forest: make_pipeline(StandardScaler(), forest)]
)
def test_random_state_seeds_estimators_that_have_no_seed(inner):
    X, Y = data(n=60)
    fit = lambda seed, **options: (  # noqa: E731
        ChainClassifier(inner(RandomForestClassifier(3, **options)), random_state=seed).fit(X, Y)
    )
    one, again, other = (fit(seed).predict_joint(X).log_prob(Y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    parallel = clone(fit(0)).set_params(n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(parallel.predict_joint(X).log_prob(Y), one)
    np.testing.assert_array_equal(
        *(fit(seed, random_state=5).predict_joint(X).log_prob(Y) for seed in (0, 1))
    )
    forests = [model.classifier_.estimator for model in fit(0).models_]
    seeds = {f.get_params()[k] for f in forests for k in f.get_params() if k.endswith("random_state")}
    assert len(seeds) == 3
    assert None not in seeds


def test_columns_with_integers_as_names():
    X, _ = data(n=40)
    Y = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (40, 3)), index=X.index)
    model = ChainClassifier({2: GaussianNB()}, order=[2, 0, 1]).fit(X, Y)
    assert type(model.models_[2].classifier_.estimator) is GaussianNB
    assert list(model.predict(X).columns) == [0, 1, 2]
    assert list(model.predict_joint(X).marginals()) == [0, 1, 2]


def test_a_label_that_never_changes_is_still_a_yes_or_no():
    X, _ = data(n=40)
    Y = np.column_stack([np.arange(40) % 2, np.ones(40, int)])
    for model in (IndependentClassifier(), ChainClassifier(), PowersetClassifier(), PriorClassifier()):
        fitted = model.fit(X, Y)
        assert (fitted.predict(X, loss="f1")[:, 1] == 1).all()
        assert np.isfinite(fitted.predict_joint(X).log_prob(1 - Y)).all()


@pytest.mark.parametrize("model", [PriorClassifier(), PriorClassifier("marginals"), ChainClassifier()])
def test_losses_of_sets_name_the_variable_that_does_not_fit(model):
    X, Y = data(n=40)
    with pytest.raises(InputError, match="'wind' has 3 values"):
        model.fit(X, Y).predict(X, loss="f1")
    message = "f1 needs to know which label is positive, but 'rain' has 'dry' and 'wet'; code them as 0/1"
    with pytest.raises(InputError, match=message):
        model.fit(X, Y[["late", "rain"]]).predict(X, loss="f1")
    Y["rain"] = pd.Categorical(Y["rain"], ["dry", "wet"])
    assert model.fit(X, Y[["late", "rain"]]).predict(X, loss="f1").shape == (40, 2)


# -- any estimator -----------------------------------------------------------------------------------------

ESTIMATORS = [
    LogisticRegression(),
    GaussianNB(),
    KNeighborsClassifier(3),
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(5, random_state=0),
    HistGradientBoostingClassifier(max_iter=3),
    CalibratedClassifierCV(LinearSVC(), cv=2),
]


@pytest.mark.parametrize("form", WITH_ESTIMATOR)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_any_classifier_will_do(form, estimator):
    X, Y = data(n=100)
    Y["constant"] = "same"
    model = form(estimator).fit(X, Y)
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()
    assert model.score(X, Y) > PriorClassifier().fit(X, Y).score(X, Y) - 0.05
    assert (model.predict(X)["constant"] == "same").all()


@pytest.mark.parametrize("form", WITH_ESTIMATOR)
def test_no_probabilities_or_no_weights_are_clear_errors(form):
    X, Y = data(n=20)
    for estimator in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())):
        with pytest.raises(InputError, match="CalibratedClassifierCV"):
            form(estimator).fit(X, Y)
    with pytest.raises(InputError, match="KNeighborsClassifier cannot take sample_weight"):
        form(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(20))


def test_an_error_inside_an_estimator_names_the_variable():
    X, Y = data(n=20)
    with pytest.raises(ValueError, match="max_depth") as caught:
        IndependentClassifier(DecisionTreeClassifier(max_depth=-3)).fit(X, Y)
    assert "'rain'" in caught.value.__notes__[0]


# -- containers --------------------------------------------------------------------------------------------


@some_models
def test_containers_of_features_agree(model):
    X, Y = data(n=80)
    labels = Y.astype(str).to_numpy()
    expected = clone(model).fit(X.to_numpy(), labels).predict_proba(X.to_numpy())
    frames = [X, pl.DataFrame({c: X[c].to_numpy() for c in X}), X.astype(object), X.astype("Float64")]
    for frame in frames:
        proba = clone(model).fit(frame, labels).predict_proba(frame)
        for ours, theirs in zip(proba, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)


@models
def test_sparse_features_and_sparse_labels(model):
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 6), density=0.4, format="csc", rng=rng)
    Y = sparse.csr_array((rng.random((80, 3)) < 0.4).astype(int))
    answer = clone(model).fit(X, Y).predict(X)
    assert sparse.issparse(answer)
    assert answer.shape == (80, 3)


def test_a_decision_forgets_the_columns_of_an_earlier_fit():
    X, Y = data(n=60)
    model = DecisionClassifier(ChainClassifier()).fit(X, Y).fit(X.to_numpy(), Y)
    assert not hasattr(model, "feature_names_in_")


def test_probabilities_are_the_callers_own():
    X, Y = data(n=60)
    model = ChainClassifier().fit(X, Y)
    before = model.predict_proba(X)[0].copy()
    model.predict_proba(X)[0][:] = 0.0
    np.testing.assert_array_equal(model.predict_proba(X)[0], before)


def test_a_model_of_ours_may_be_a_local_model():
    X, Y = data(n=60)
    outer = IndependentClassifier(ChainClassifier(FIXED)).fit(X, Y).predict_proba(X)
    inner = IndependentClassifier(FIXED).fit(X, Y).predict_proba(X)
    for ours, theirs in zip(outer, inner, strict=True):
        assert np.abs(ours - theirs).max() < 0.05


def test_very_many_constant_variables():
    X, Y = data(n=60)
    wide = Y[["late"]].assign(**dict.fromkeys([f"c{j}" for j in range(80)], "same"))
    joint = ChainClassifier(FIXED).fit(X, wide).predict_joint(X)
    alone = ChainClassifier(FIXED).fit(X, Y[["late"]]).predict_joint(X)
    np.testing.assert_allclose(joint.marginals()["late"], alone.marginals()["late"], atol=1e-9)
    assert len(joint.top_k(2)) == 120


def test_polars_in_polars_out():
    X, Y = data()
    frame = pl.DataFrame({"rain": Y["rain"].to_list(), "late": [bool(v) for v in Y["late"]]})
    features = pl.DataFrame(
        {"a": X["a"].to_list(), "b": [None, *X["b"].to_list()[1:]], "c": Y["rain"] == "wet"}
    )
    answer = ChainClassifier().fit(features, frame).predict(features)
    assert isinstance(answer, pl.DataFrame)
    assert answer.schema == frame.schema
    assert (answer["rain"] == frame["rain"]).mean() > 0.9
    with pytest.raises(InputError, match="collect"):
        ChainClassifier().fit(features.lazy(), frame)


def test_one_dimensional_labels_are_one_variable():
    X, Y = data()
    model = ChainClassifier().fit(X, Y["wind"])
    assert model.predict_proba(X).shape == (150, 3)
    assert list(model.classes_) == ["calm", "breeze", "storm"]
    assert isinstance(model.predict(X), pd.Series)
    assert model.predict(X).dtype == Y["wind"].dtype


# -- frames with columns that are no numbers ---------------------------------------------------------------


def mixed(n=150):
    X, Y = data(n)
    rng = np.random.default_rng(5)
    X["place"] = np.where(Y["rain"] == "wet", "coast", rng.choice(["coast", "inland"], size=n))
    X["day"] = pd.Timestamp("2024-05-01") + pd.to_timedelta(np.arange(n), unit="D")
    return X, Y


def column_pipeline(last=None):
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), make_column_selector(dtype_include=float)),
            ("text", OneHotEncoder(handle_unknown="ignore"), ["place"]),
        ]
    )
    return make_pipeline(columns, LogisticRegression() if last is None else last)


@pytest.mark.parametrize("form", WITH_ESTIMATOR)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_mixed_frames_go_to_an_estimator_that_can_treat_them(form, library):
    X, Y = mixed()
    if library == "polars":
        X = pl.DataFrame({c: X[c].to_list() for c in X})
    model = form(column_pipeline()).fit(X, Y)
    assert model.mixed_features_
    assert list(model.feature_names_in_) == ["a", "b", "c", "d", "place", "day"]
    assert (model.predict(X)["rain"].to_numpy() == Y["rain"].to_numpy()).mean() > 0.7
    assert np.isfinite(model.predict_joint(X[:7]).log_prob(Y[:7])).all()


@pytest.mark.parametrize("last", [None, DecisionTreeClassifier(max_depth=4, random_state=0)])
def test_a_chain_hands_its_labels_through_a_column_transformer(last):
    X, Y = mixed()
    Y["again"] = Y["wind"]
    model = ChainClassifier(column_pipeline(last)).fit(X, Y)
    assert (model.predict(X, loss="subset")["again"] == model.predict(X, loss="subset")["wind"]).all()


def test_mixed_frames_keep_their_columns():
    X, Y = mixed()
    with pytest.raises(InputError, match=r"LogisticRegression treats the columns of X by itself.*FeatureEnc"):
        ChainClassifier({"rain": column_pipeline()}).fit(X, Y)
    model = IndependentClassifier(column_pipeline()).fit(X, Y)
    with pytest.raises(InputError, match="place"):
        model.predict(X.drop(columns="place"))
    with pytest.raises(InputError, match="order"):
        model.predict(X[X.columns[::-1]])
    with pytest.raises(InputError, match="must be a frame with the 6 columns"):
        model.predict(X.to_numpy())
    with pytest.raises(InputError, match="infinity, in the column 'a'"):
        model.predict(X.assign(a=np.inf))
    with pytest.raises(InputError, match="no rows"):
        model.predict(X[:0])
    assert PriorClassifier().fit(X, Y).predict(X).shape == (150, 3)


# -- bad input ---------------------------------------------------------------------------------------------


@some_models
def test_features_that_cannot_be_used_are_named(model):
    X, Y = data(n=30)
    fitted = clone(model).fit(X, Y)
    for wrong, word in [
        (X.drop(columns=["b"]), "b"),
        (X.rename(columns={"c": "see"}), "see"),
        (X.assign(a=np.inf), "infinity"),
        (X[:0], "0 sample"),
    ]:
        with pytest.raises(InputError, match=word):
            fitted.predict(wrong)
    with pytest.raises(InputError, match="2 features"):
        clone(model).fit(X.to_numpy(), Y).predict(X.to_numpy()[:, :2])
    with pytest.raises(InputError, match=r"2-dimensional|2D"):
        clone(model).fit(X["a"], Y)
    with pytest.raises(InputError, match="the column 'a' does not, unlike in fit"):
        fitted.predict(X.assign(a="text"))
    with pytest.raises(InputError, match="same name: 'a'"):
        clone(model).fit(X.set_axis(list("aabc"), axis=1), Y)
    with pytest.raises(InputError, match="strings"):
        clone(model).fit(X.set_axis(["a", "b", "c", 4], axis=1), Y)
    with pytest.raises(InputError, match="must hold numbers"):
        clone(model).fit(np.full((30, 2), "text"), Y)
    with pytest.raises(InputError, match="30 rows, but y has 29"):
        clone(model).fit(X, Y[:-1])
    for nothing, word in [
        (None, "X is None"),
        ([{"a": 1}] * 30, r"dicts; pass pandas.DataFrame\(X\)"),
        (X[[]], "no columns"),
        (np.empty((30, 0)), "0 feature"),
        (np.array([[{1, 2}]] * 30), "must hold numbers"),
    ]:
        with pytest.raises(InputError, match=word):
            clone(model).fit(nothing, Y)


@some_models
def test_the_same_rows_in_another_order_are_an_error(model):
    X, Y = data(n=30)
    mixed_up = Y.sample(frac=1, random_state=0)
    with pytest.raises(InputError, match="fit: X and y hold the same rows in another order"):
        clone(model).fit(X, mixed_up)
    with pytest.raises(InputError, match="fit: X and y hold"):
        clone(model).fit(X, mixed_up["rain"])
    clone(model).fit(X, mixed_up.reset_index(drop=True))
    clone(model).fit(X, mixed_up.to_numpy())


def test_weights_of_rows_in_another_order_are_an_error():
    X, Y = data(n=30)
    with pytest.raises(InputError, match="X and sample_weight hold the same rows"):
        PriorClassifier().fit(X, Y, sample_weight=pd.Series(1.0, index=X.index[::-1]))


@some_models
def test_labels_that_cannot_be_used_are_named(model):
    X, Y = data(n=30)
    with pytest.raises(InputError, match="'late'"):
        clone(model).fit(X, Y.assign(late=None))
    with pytest.raises(InputError, match="continuous"):
        clone(model).fit(X, np.random.default_rng(0).random((30, 2)))
    with pytest.raises(InputError, match="requires y"):
        clone(model).fit(X, None)
    with pytest.raises(InputError, match="at least one row"):
        clone(model).fit(X, np.empty((0, 2)))
    prediction = clone(model).fit(X, Y).predict_joint(X)
    with pytest.raises(LabelError, match="'hail'"):
        prediction.log_prob({"rain": "hail"})
    usual, some = prediction.log_prob(Y), np.arange(30) % 3 == 0
    for labels in (Y.assign(rain=np.where(some, "hail", Y["rain"])), {"rain": np.where(some, "hail", "wet")}):
        with pytest.warns(TupletWarning, match="log_prob: 10 of 30 rows have labels that were not there"):
            found = prediction.log_prob(labels)
        assert np.isneginf(found[some]).all()
        assert np.isfinite(found[~some]).all()
    with pytest.warns(TupletWarning, match="10 of 30"):
        found = prediction.log_prob(Y.assign(rain=np.where(some, "hail", Y["rain"])))
    np.testing.assert_allclose(found[~some], usual[~some])


@pytest.mark.parametrize(
    ("weight", "word"),
    [
        (np.zeros(30), "zero"),
        (np.full(30, -1.0), "negative"),
        (np.full(30, np.nan), "finite"),
        (np.ones(29), "30"),
        (["a"] * 30, "number"),
    ],
)
def test_weights_that_cannot_be_used_are_errors(weight, word):
    X, Y = data(n=30)
    with pytest.raises(InputError, match=word):
        PriorClassifier().fit(X, Y, sample_weight=weight)


def test_missing_values_are_a_matter_of_the_estimator():
    X, Y = data()
    X.iloc[::5, 0] = np.nan
    for good, features in ((None, X.assign(empty=np.nan)), (HistGradientBoostingClassifier(max_iter=3), X)):
        model = ChainClassifier(good).fit(features, Y)
        assert np.isfinite(model.predict_joint(features).log_prob(Y)).all()
        assert model.encoder_ is None
    gaps = sparse.csr_array(np.where(np.eye(30) > 0, np.nan, 0.0))
    with pytest.raises(InputError, match="LogisticRegression does not take missing values"):
        ChainClassifier(LogisticRegression()).fit(gaps, Y[:30])
    with pytest.raises(InputError, match="sparse"):
        ChainClassifier(GaussianNB()).fit(sparse.csr_array(np.eye(30)), Y[:30])


@models
def test_one_row_and_constant_labels(model):
    fitted = clone(model).fit([[1.0, 2.0]], [["a", 3]])
    assert fitted.predict([[5.0, 5.0]]).tolist() == [["a", 3]]
    assert [p.tolist() for p in fitted.predict_proba([[0.0, 0.0]])] == [[[1.0]], [[1.0]]]


@some_models
def test_zero_weights_are_as_good_as_no_rows(model):
    X, Y = data()
    weight = np.r_[np.ones(100), np.zeros(50)]
    ours = clone(model).fit(X, Y, sample_weight=weight)
    fewer = clone(model).fit(X[:100], Y[:100])
    for a, b in zip(ours.predict_proba(X), fewer.predict_proba(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


# -- many categories ---------------------------------------------------------------------------------------


def test_a_hundred_thousand_categories():
    n = 100_000
    X, y = np.zeros((n, 1)), np.arange(n)
    y[-1] = 7
    with pytest.warns(TupletWarning, match="'y' has 99,999 different whole numbers in 100,000 rows"):
        model = PriorClassifier().fit(X, y)
    assert (model.predict(X) == 7).all()
    assert model.predict_joint(X[:3]).prob(np.full(3, 7)) == pytest.approx(np.full(3, 3 / (2 * n - 1)))
    both = PriorClassifier().fit(X, np.column_stack([y, y % 2]).astype(str))
    assert np.isfinite(both.predict_joint(X[:2]).log_prob([["7", "0"], ["8", "1"]])).all()
    for wide in (IndependentClassifier(), PowersetClassifier(), ChainClassifier()):
        with pytest.raises(IntractableError, match=r"cells|combinations"):
            wide.fit(X, np.column_stack([y, y % 2]).astype(str))


# -- scikit-learn's tools ----------------------------------------------------------------------------------


@names
def test_score_is_exact_match(name):
    X, Y = data(60, missing=0.05)
    model = fitted(name)
    truth, answer = model.space_.encode(Y), model.space_.encode(model.predict(X))
    right = ((truth == answer) | (truth == UNKNOWN)).all(axis=1)[(truth != UNKNOWN).any(axis=1)]
    assert model.score(X, Y) == pytest.approx(right.mean())
    weight = np.arange(60.0)
    assert model.score(X, Y, sample_weight=weight) <= 1.0


def test_labels_unseen_in_training_are_wrong_in_score_not_an_error():
    X, Y = data()
    model = IndependentClassifier().fit(X, Y)
    strange = Y.copy()
    strange.loc[strange.index[:50], "rain"] = "hail"
    rest = (model.predict(X) == Y).all(axis=1).to_numpy()
    rest[:50] = False
    assert model.score(X, strange) == pytest.approx(rest.mean())
    nothing = pd.DataFrame({"rain": [None] * 2, "wind": [None] * 2, "late": [None] * 2})
    assert np.isnan(model.score(X[:2], nothing))


@some_models
def test_cross_validation_with_classes_that_a_fold_lacks(model):
    X, Y = data(n=60)
    Y["rare"] = [*("common",) * 58, "odd", "strange"]
    result = cross_validate(clone(model), X, Y, cv=KFold(4), error_score="raise")
    assert np.isfinite(result["test_score"]).all()


def test_grid_search_and_pipelines():
    X, Y = data()
    search = GridSearchCV(
        DecisionClassifier(ChainClassifier(LogisticRegression())),
        {"estimator__estimator__C": [0.01, 1.0], "loss": ["hamming", "subset"]},
        cv=KFold(2),
        error_score="raise",
    ).fit(X, Y)
    assert search.best_estimator_.loss in ("hamming", "subset")
    pipeline = make_pipeline(StandardScaler(), PowersetClassifier(GaussianNB())).fit(X, Y)
    assert pipeline.predict(X, loss="subset").shape == (150, 3)
    assert pipeline.score(X, Y) > 0.2


@names
def test_clones_and_pickles(name):
    X, Y = table(name)
    model = fitted(name)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).equals(model.predict(X))
    assert not hasattr(clone(model), "space_")
    joint = pickle.loads(pickle.dumps(model.predict_joint(X)))
    np.testing.assert_allclose(joint.log_prob(Y), model.predict_joint(X).log_prob(Y))


@pytest.mark.parametrize("form", [IndependentClassifier, ChainClassifier])
def test_two_jobs_give_what_one_gives(form):
    X, Y = data(n=60)
    one, two = form().fit(X, Y), form(n_jobs=2).fit(X, Y)
    for a, b in zip(one.predict_proba(X), two.predict_proba(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("setting", [{"transform_output": "pandas"}, {"enable_metadata_routing": True}])
def test_settings_of_scikit_learn_change_nothing(setting):
    X, Y = data()
    weight = np.random.default_rng(0).random(150)
    expected = ChainClassifier().fit(X, Y, weight).predict_joint(X).log_prob(Y)
    with config_context(**setting):
        np.testing.assert_allclose(ChainClassifier().fit(X, Y, weight).predict_joint(X).log_prob(Y), expected)


def test_a_new_model_writes_two_methods():
    class Uniform(JointClassifier):
        def _fit(self, X, codes, sample_weight):
            self.n_ = len(codes)

        def _predict_joint(self, X):
            from tuplet.joint import FactorGraph

            return FactorGraph.independent([np.log(np.full((len(X), k), 1 / k)) for k in self.space_.cards])

    X, Y = data()
    assert Uniform().fit(X, Y).predict(X).shape == (150, 3)


def test_a_decision_needs_a_loss():
    X, Y = data(n=20)
    with pytest.raises(InputError, match="loss"):
        DecisionClassifier(PriorClassifier(), "logistic").fit(X, Y)


def test_a_failed_fit_leaves_no_fitted_model():
    X, Y = data(n=30)
    model = TreeClassifier(required=["ab"])
    for _ in range(2):
        with pytest.raises(InputError, match="required must hold pairs"):
            model.fit(X, Y)
        with pytest.raises(NotFittedError):
            model.predict(X)
        model.set_params(required=()).fit(X, Y).predict(X)
        model.set_params(required=["ab"])
