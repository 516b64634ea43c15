"""Discrete features as parents, as inputs, or both."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from draws import examples
from tuplet import BayesNetClassifier, IndependentClassifier, default_estimator
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN
from tuplet.local import FamilyScorer, MixedNaiveBayes
from tuplet.local.split import STRENGTH
from tuplet.models.bayesnet.mixed_families import MixedFamilyScorer, all_subsets, n_subsets, one_at_a_time
from tuplet.space.features.discrete import DiscreteColumns, declared_columns
from tuplet.structure import Family, is_acyclic
from tuplet.testing import enumerate_joint

N = 400
PAPER = {"discrete_as": "parents", "parametrisation": "split", "criterion": "bic"}


def draw(seed=0, n=N):
    """Three discrete features and one number; a depends on place, b on a and sex, c on nothing."""
    rng = np.random.default_rng(seed)
    place, sex, spare = rng.integers(3, size=n), rng.integers(2, size=n), rng.integers(2, size=n)
    size = rng.normal(size=n)
    a = (rng.random(n) < np.array([0.1, 0.5, 0.9])[place]).astype(int)
    b = np.where(rng.random(n) < 0.85, a ^ sex, 1 - (a ^ sex))
    c = rng.integers(2, size=n)
    X = pd.DataFrame(
        {
            "size": size,
            "place": pd.Categorical.from_codes(place, ["coast", "hill", "town"]),
            "sex": np.where(sex, "m", "f"),
            "spare": spare.astype(bool),
        }
    )
    return X, pd.DataFrame({"a": a, "b": b, "c": c})


X, Y = draw()
DISCRETE = X.drop(columns="size")


def smoothed_frequencies(labels, by, strength=STRENGTH):
    """p(label | by) by counting: pseudo-rows of the Laplace marginal, then the back-off of a split."""
    counts = labels.value_counts().sort_index()
    n, k = counts.sum(), len(counts)
    base = (counts + (counts + 1) / (n + k)) / (n + 1)
    if not by:
        return lambda key: base.to_numpy()
    keys = pd.concat(by, axis=1).apply(tuple, axis=1)

    def ask(key):
        own = labels[keys == key].value_counts().reindex(counts.index, fill_value=0).to_numpy(dtype=float)
        total = own.sum()
        own = own * n / (n + 1) + total * ((counts + 1) / (n + k) / (n + 1)).to_numpy()
        return (own + strength * base.to_numpy()) / (total + strength)

    return ask


# -- only discrete features --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted():
    return BayesNetClassifier(**PAPER).fit(DISCRETE, Y)


def test_without_numbers_the_joint_is_made_of_smoothed_counts(counted):
    rows = DISCRETE[:40].reset_index(drop=True)
    joint = enumerate_joint(counted.predict_joint(rows).distribution)
    frame = pd.concat([DISCRETE.astype(str), Y], axis=1)
    names = counted.space_.names
    expected = np.ones((40, 8))
    for child, label in enumerate(names):
        class_parents = [names[p] for p in counted.parents_[child]]
        features = list(counted.feature_parents_[child])
        by = [frame[name] for name in class_parents + features]
        ask = smoothed_frequencies(Y[label], by)
        for place, outcome in enumerate(itertools.product(range(2), repeat=3)):
            given_ = [outcome[names.index(name)] for name in class_parents]
            for i in range(40):
                key = (*given_, *(str(rows.loc[i, f]) for f in features))
                expected[i, place] *= ask(key)[outcome[child]]
    np.testing.assert_allclose(joint.reshape(40, 8), expected, atol=1e-12)


def test_the_right_features_become_parents(counted):
    assert counted.discrete_as_ == ("parents",) * 3
    assert counted.feature_parents_[2] == ()
    every = {(f, child) for child, some in enumerate(counted.feature_parents_) for f in some}
    assert {("place", 0), ("sex", 1)} <= every or {("place", 0), ("sex", 0)} <= every
    assert not any(f == "spare" for f, _ in every)
    assert counted.proven_


@pytest.mark.parametrize("discrete_as", ["auto", "inputs", "parents", "both"])
@pytest.mark.parametrize("estimator", [None, MixedNaiveBayes()])
def test_data_without_numbers_have_models_in_every_role(discrete_as, estimator):
    model = BayesNetClassifier(
        estimator, discrete_as=discrete_as, max_parents=1, max_feature_parents=1, random_state=0
    )
    found = model.fit(DISCRETE, Y).predict_joint(DISCRETE).log_prob(Y).mean()
    alone = IndependentClassifier(estimator).fit(DISCRETE, Y).predict_joint(DISCRETE).log_prob(Y).mean()
    assert found > alone + 0.05


# -- which features: against brute force -------------------------------------------------------------------


def brute_force(scorer, m, features, largest_classes, largest_features):
    """The best network over everything: all class parents with all features."""
    best = {}
    for child in range(m):
        others = [v for v in range(m) if v != child]
        for size in range(largest_classes + 1):
            for parents in itertools.combinations(others, size):
                families = [
                    Family(child, (*parents, *some), -np.inf)
                    for count in range(largest_features + 1)
                    for some in itertools.combinations(features, count)
                ]
                best[child, parents] = max(scorer.score(families))
    options = [[parents for c, parents in best if c == child] for child in range(m)]
    graphs = (graph for graph in itertools.product(*options) if is_acyclic(graph))
    return max(sum(best[child, parents] for child, parents in enumerate(graph)) for graph in graphs)


@examples(4)
@given(seed=st.integers(0, 10_000), discrete_as=st.sampled_from(["parents", "both"]))
def test_pruning_with_features_does_not_change_the_best_network(seed, discrete_as):
    features, labels = draw(seed, n=90)
    model = BayesNetClassifier(**PAPER | {"discrete_as": discrete_as}, max_feature_parents=2)
    model.fit(features, labels)
    discrete = DiscreteColumns.learn_values(features, list(features.columns), (1, 2, 3))
    inputs = features[["size"]].to_numpy()
    if discrete_as == "both":
        inputs = model.encoder_.apply(features)
    codes = np.hstack([model.space_.encode(labels), discrete.codes(features)])
    cards, settings = (2, 2, 2, *discrete.cards), {"parametrisation": "split", "score": "bic"}
    scorer = FamilyScorer(inputs, codes, cards, estimators=[None] * 3, **settings)
    assert model.found_.score == pytest.approx(brute_force(scorer, 3, range(3, 6), 2, 2), abs=1e-6)
    assert model.proven_


@examples(25)
@given(seed=st.integers(0, 10_000), floor=st.sampled_from([-np.inf, -4.0, 0.0]))
def test_the_best_subset_is_found_by_looking_at_as_little_as_possible(seed, floor):
    rng = np.random.default_rng(seed)
    gains = {s: rng.random() * 3 for r in range(4) for s in itertools.combinations(range(2, 7), r)}
    asked = []

    def score(families):
        for family in families:
            asked.append(family.parents)
            yield -len(family.parents) * 2 - gains[tuple(p for p in family.parents if p > 1)]

    def bound(child, parents):
        return -2.0 * len(parents)

    value, features = all_subsets(Family(0, (1,), floor), range(2, 7), 3, score, bound)
    best = max(gains, key=lambda s: -2 * (len(s) + 1) - gains[s])
    expected = -2 * (len(best) + 1) - gains[best]
    assert len(asked) <= len(gains) == n_subsets(5, 3)
    if expected > floor:
        assert (value, features) == (expected, best)
    else:
        assert value == -np.inf


def test_features_are_added_and_dropped_one_at_a_time():
    worth = {(): 0.0, (2,): 3.0, (3,): 2.0, (4,): 1.0, (2, 3): 3.5, (3, 4): 6.0, (2, 4): 3.2, (2, 3, 4): 5.0}
    score = lambda families: [worth[f.parents] for f in families]  # noqa: E731
    assert one_at_a_time(Family(0, (), -np.inf), range(2, 5), 3, score) == (6.0, (3, 4))
    assert one_at_a_time(Family(0, (), -np.inf), range(2, 5), 1, score) == (3.0, (2,))
    assert one_at_a_time(Family(0, (), 4.0), range(2, 5), 3, score, (2, 3)) == (-np.inf, (2, 3))


def test_the_penalty_counts_features_too():
    codes = np.random.default_rng(0).integers(2, size=(50, 4))
    scorer = FamilyScorer(np.zeros((50, 0)), codes, (2, 2, 2, 2), parametrisation="split", score="bic")
    mixed = MixedFamilyScorer({"parents": scorer}, codes[:, :2], 2, 2)
    assert mixed.bound(0, (1,)) == pytest.approx(-0.5 * np.log(50) * 2)
    assert scorer.bound(0, (1, 2, 3)) == pytest.approx(-0.5 * np.log(50) * 8)
    (value,) = mixed.score([Family(0, (1,), -np.inf)])
    subsets = [(), (2,), (3,), (2, 3)]
    assert value == max(scorer.score([Family(0, (1, *some), -np.inf) for some in subsets]))


# -- prediction --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("discrete_as", ["parents", "both"])
@pytest.mark.parametrize("estimator", [None, GaussianNB()])
@pytest.mark.parametrize("parametrisation", ["split", "inputs"])
def test_tables_are_those_of_the_models_with_features_observed(discrete_as, estimator, parametrisation):
    model = BayesNetClassifier(
        estimator,
        discrete_as=discrete_as,
        parametrisation=parametrisation,
        criterion=lambda n_free, n: 0.01 * n_free,
        max_parents=1,
        max_feature_parents=1,
        random_state=0,
    ).fit(X, Y)
    # What is an input already adds nothing as a further input.
    assert any(model.feature_parents_) or (discrete_as, parametrisation) == ("both", "inputs")
    rows, joint = X[:20], model.predict_joint(X[:20]).distribution
    inputs = rows[["size"]].to_numpy() if discrete_as == "parents" else model.encoder_.apply(rows)
    discrete = DiscreteColumns.learn_values(X, list(X.columns), (1, 2, 3))
    codes, everything = discrete.codes(rows), enumerate_joint(joint).reshape(20, 2, 2, 2)
    expected = np.zeros((20, 2, 2, 2))
    for outcome in itertools.product(range(2), repeat=3):
        for child, local in enumerate(model.models_):
            features = [discrete.names.index(f) for f in model.feature_parents_[child]]
            class_codes = np.tile([outcome[p] for p in model.parents_[child]], (20, 1)).astype(int)
            given_ = np.hstack([class_codes.reshape(20, -1), codes[:, features]])
            expected[:, *outcome] += local.log_proba(inputs, given_)[:, outcome[child]]
    np.testing.assert_allclose(everything, np.exp(expected), atol=1e-10)


def test_missing_and_new_values_back_off_to_the_class_parents():
    model = BayesNetClassifier(**PAPER, required=[("a", "b")]).fit(X, Y)
    assert "sex" in model.feature_parents_[1]
    strange = X[:6].copy()
    strange["sex"] = ["f", None, "x", "m", None, "f"]
    strange["place"] = pd.Categorical(["coast", None, "moon", "hill", "town", "moon"])
    joint = model.predict_joint(strange)
    assert np.isfinite(joint.log_prob(Y[:6])).all()
    np.testing.assert_allclose(enumerate_joint(joint.distribution).sum(axis=1), 1)
    table = model.explain(strange, 1).tables()["b"].to_numpy()
    plain = BayesNetClassifier(
        discrete_as="parents", max_feature_parents=0, parametrisation="split", required=[("a", "b")],
        forbidden=[("c", "b")],
    ).fit(X, Y)  # fmt: skip
    np.testing.assert_allclose(table, plain.explain(strange, 1).tables()["b"].to_numpy(), atol=1e-10)


def test_values_that_training_lacks_are_a_category():
    holes = X.copy()
    holes.loc[Y["a"] == 1, "sex"] = None  # it is missing for a reason
    model = BayesNetClassifier(**PAPER).fit(holes, Y)
    told = model.predict_joint(holes[:50]).marginals()["a"]
    assert any("sex" in some for some in model.feature_parents_)
    assert (np.asarray(told)[:, 1][Y["a"][:50] == 1] > 0.9).all()


def test_numbers_of_a_feature_that_is_both_stay_missing_or_are_filled_in():
    holes, labels = X.mask(np.random.default_rng(1).random(X.shape) < 0.1), Y[["a", "b"]]
    boosting = HistGradientBoostingClassifier(max_iter=2)
    for estimator, discrete_as in [
        *itertools.product((None, MixedNaiveBayes()), ("auto", "inputs", "parents", "both")),
        (boosting, "auto"),
        (boosting, "parents"),
    ]:
        model = BayesNetClassifier(
            estimator, discrete_as=discrete_as, max_parents=1, max_feature_parents=1, random_state=0
        )
        prediction = model.fit(holes[:40], labels[:40]).predict_joint(holes[60:])
        assert np.isfinite(prediction.log_prob(labels[60:])).all()


# -- choosing ----------------------------------------------------------------------------------------------


def test_auto_takes_parents_where_they_turn_the_effect_of_a_number():
    rng = np.random.default_rng(3)
    size, sign = rng.normal(size=600), rng.integers(2, size=600)
    plain = (2 * size + 2 * sign - 1 + rng.logistic(size=600) > 0).astype(int)
    turned = (3 * size * np.where(sign, 1, -1) + rng.logistic(size=600) > 0).astype(int)
    features = pd.DataFrame({"size": size, "sign": np.where(sign, "+", "-")})
    model = BayesNetClassifier(random_state=0).fit(features, pd.DataFrame({"p": plain, "t": turned}))
    assert model.discrete_as_[0] == "inputs"
    assert model.discrete_as_[1] in ("parents", "both")
    assert model.feature_parents_ == ((), ("sign",))


def test_auto_has_nothing_to_choose_without_discrete_features():
    model = BayesNetClassifier().fit(X[["size"]], Y)
    assert model.discrete_as_ == ("inputs",) * 3
    assert model.feature_parents_ == ((), (), ())


def test_inputs_are_what_they_are_for_other_models():
    model = BayesNetClassifier(default_estimator(), discrete_as="inputs", max_parents=0).fit(X, Y)
    other = IndependentClassifier().fit(X, Y)
    np.testing.assert_allclose(model.encoder_.apply(X), other.encoder_.apply(X))
    np.testing.assert_allclose(
        model.predict_joint(X).log_prob(Y), other.predict_joint(X).log_prob(Y), atol=2e-3
    )


# -- which columns -----------------------------------------------------------------------------------------


def test_columns_that_are_discrete():
    frame = X.assign(flag=pd.array([True, None] * (N // 2), dtype="boolean"), day=pd.Timestamp("2020-01-01"))
    assert declared_columns(frame) == (1, 2, 3, 4)
    assert declared_columns(pl.DataFrame({"n": [1, 2], "t": ["a", "b"], "f": [True, None]})) == (1, 2)
    assert declared_columns(np.eye(3)) == ()


def test_numbers_are_discrete_if_the_user_says_so():
    codes = np.column_stack([X["size"], X["place"].cat.codes, X["sex"] == "m", X["spare"]]).astype(float)
    by_name = BayesNetClassifier(**PAPER).fit(X, Y)
    by_position = BayesNetClassifier(**PAPER, discrete_features=[1, 2, 3]).fit(codes, Y)
    assert by_position.parents_ == by_name.parents_
    assert by_position.feature_parents_ == tuple(
        tuple(f"x{list(X.columns).index(f)}" for f in some) for some in by_name.feature_parents_
    )
    np.testing.assert_allclose(
        by_position.predict_joint(codes).log_prob(Y), by_name.predict_joint(X).log_prob(Y), atol=1e-12
    )
    assert BayesNetClassifier(**PAPER).fit(codes, Y).feature_parents_ == ((), (), ())
    frame = pd.DataFrame(codes, columns=["size", "place", "sex", "spare"])
    named = BayesNetClassifier(discrete_as="inputs", discrete_features=["place"]).fit(frame, Y)
    assert list(named.encoder_.get_feature_names_out()) == [
        "size", "place=0.0", "place=1.0", "place=2.0", "sex", "spare"
    ]  # fmt: skip
    assert np.isfinite(named.predict_joint(frame.replace({"place": {2.0: 9.0}})).log_prob(Y)).all()


def test_polars_frames_are_the_same():
    frame = pl.DataFrame({name: X[name].tolist() for name in X.columns})
    model = BayesNetClassifier(**PAPER).fit(frame, Y)
    expected = BayesNetClassifier(**PAPER).fit(X, Y)
    assert model.feature_parents_ == expected.feature_parents_
    np.testing.assert_allclose(model.predict_joint(frame).log_prob(Y), expected.predict_joint(X).log_prob(Y))


def test_columns_that_name_rows_or_say_nothing_are_no_parents():
    frame = pd.DataFrame({"id": [f"n{i}" for i in range(20)], "same": "x", "kind": ["a", "b"] * 10})
    features = DiscreteColumns.learn_values(frame, ["id", "same", "kind"], (0, 1, 2))
    assert features.names == ("kind",)
    assert features.state(0, 1) == "b"
    assert features.state(0, UNKNOWN) == "?"


def test_estimators_that_treat_columns_need_all_of_them():
    own = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["place", "sex"]), remainder="drop"),
        LogisticRegression(),
    )
    with pytest.raises(InputError, match="treats the columns of X by itself"):
        BayesNetClassifier(own, discrete_as="parents").fit(X, Y)
    for discrete_as in ("auto", "both"):
        model = BayesNetClassifier(own, discrete_as=discrete_as, max_parents=1, max_feature_parents=1)
        assert np.isfinite(model.fit(X[:100], Y[:100]).predict_joint(X).log_prob(Y)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"discrete_features": ["age"]}, "'age', which is no column"),
        ({"discrete_features": [7]}, "numbered from 0 to 3"),
    ],
)
def test_bad_settings_are_said(settings, message):
    with pytest.raises(InputError, match=message):
        BayesNetClassifier(**settings).fit(X, Y)


def test_sparse_matrices_have_no_discrete_columns():
    with pytest.raises(InputError, match="toarray"):
        BayesNetClassifier(discrete_features=[0]).fit(sparse.csr_array(np.eye(N)), Y)


# -- reading -----------------------------------------------------------------------------------------------


def test_edges_and_pictures_show_features(counted):
    edges = counted.edges()
    features = edges[edges["kind"] == "feature"]
    assert {(p, c) for p, c in features[["parent", "child"]].to_numpy()} == {
        (f, counted.space_.names[child]) for child, some in enumerate(counted.feature_parents_) for f in some
    }
    assert (features["strength"] > 0).all()
    ax = counted.plot()
    assert {text.get_text() for text in ax.texts} >= {"a", "b", "c", "place", "sex"}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["class", "feature"]
    plt.close(ax.figure)


def test_a_row_is_explained_with_its_own_features(counted):
    network = counted.explain(DISCRETE, 5)
    one = counted.predict_joint(DISCRETE)[5].distribution
    np.testing.assert_allclose(enumerate_joint(network.joint[5]), enumerate_joint(one), atol=1e-12)
    words = [f"place={DISCRETE['place'][5]}", f"sex={DISCRETE['sex'][5]}"]
    assert {word for some in network.observed for word in some} == set(words)
    assert all(word in repr(network) for word in words)
