"""Conditional trees: gains against a slow version, structures, joints by enumeration, any classifier."""

from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from tuplet import IndependentClassifier, TreeClassifier, TreeEnsembleClassifier
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN
from tuplet.joint.base import all_outcomes
from tuplet.local import columns
from tuplet.local.cross_fitting import fold_weights
from tuplet.local.families import FamilyScorer
from tuplet.local.penalties import best_on_grid
from tuplet.local.row_samples import sample_rows
from tuplet.local.shifts import Baseline, Shifts
from tuplet.metrics import joint_log_loss
from tuplet.models.trees import edge_scores, logistic
from tuplet.models.trees.logistic import LogisticTreeLearner, TreeSettings
from tuplet.structure import Family, best_forest, edges, is_acyclic

matplotlib.use("agg")


def data(n=400, seed=0):
    """a -> b (3 labels) -> c given x, and d by itself."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    a = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    b = np.where(rng.random(n) < 0.8, 2 * a, rng.integers(3, size=n))
    c = np.where(rng.random(n) < 0.8, b // 2, X[:, 1] > 0).astype(int)
    d = (X[:, 2] + rng.normal(size=n) > 0).astype(int)
    return X, pd.DataFrame({"a": a, "b": b, "c": c, "d": d})


@pytest.fixture(scope="module")
def fitted():
    X, Y = data()
    return TreeClassifier().fit(X, Y), X, Y


def test_the_forest_is_the_best_for_the_gains_and_finds_what_depends_on_what(fitted):
    model, _, _ = fitted
    assert model.parents_ == best_forest(model.gains_)
    found = {frozenset(edge) for edge in edges(model.parents_)}
    assert found == {frozenset((0, 1)), frozenset((1, 2))}
    assert model.C_ > 0
    assert model.C_shift_ > 0


def test_the_joint_is_the_product_of_local_models(fitted):
    model, X, _ = fitted
    joint = model.predict_joint(X[:5]).distribution
    outcomes = all_outcomes(joint.cards)
    total = np.zeros((len(outcomes), 5))
    Z = model.tree_.columns.apply(X[:5])
    for i, (parents, shift) in enumerate(zip(model.parents_, model.tree_.shifts, strict=True)):
        base = model.tree_.baselines[i].logits(Z)
        for o, outcome in enumerate(outcomes):
            theta = shift.theta[outcome[parents[0]] if parents else 0]
            logits = base + theta[:, :-1] @ Z[:, : theta.shape[1] - 1].T + theta[:, -1:]
            if joint.cards[i] == 2:
                logits = np.concatenate([np.zeros((1, 5)), logits])
            p = np.exp(logits[outcome[i]] - np.logaddexp.reduce(logits, axis=0))
            counts = model.label_counts_[i]
            n, k = counts.sum(), len(counts)
            total[o] += np.log((n * p + (counts[outcome[i]] + 1) / (n + k)) / (n + 1))
    np.testing.assert_allclose(joint.log_prob(np.repeat(outcomes[:, None], 5, axis=1)), total, atol=1e-10)
    np.testing.assert_allclose(np.exp(total).sum(axis=0), 1, atol=1e-10)


def slow_gain(X, codes, cards, C, C_shift, parent, child):
    """Held-out gain of one edge: models on the rows of two folds, judged by the third."""
    settings = TreeSettings("split", C, C, C_shift, 3, None, None)
    shares, gain = fold_weights(X, codes, None, 3), 0.0
    whole = LogisticTreeLearner(X, codes, cards, None, settings).rows
    y, none = np.ascontiguousarray(codes[:, child]), np.zeros(len(codes), dtype=np.intp)
    for held in shares.T:
        kept = 1 - held
        # The same features for all folds, as the model has them; everything else is fitted anew.
        offset = Baseline.fit(whole.Z, y, cards[child], kept, C=C, tol=1e-8).logits(whole.Z)
        blocks = np.ascontiguousarray(codes[:, parent])
        shifts = Shifts.fit(whole.Z, offset, y, blocks, cards[parent], cards[child], kept, C=C_shift)
        nothing = np.zeros((len(whole.Z), 0))
        alone = Shifts.fit(nothing, offset, y, none, 1, cards[child], kept, C=C_shift)
        gain += held @ slow_own(shifts, whole.Z, offset, y, blocks)
        gain -= held @ slow_own(alone, nothing, offset, y, none)
    return gain


def slow_own(shifts, Z, offset, y, blocks):
    """Log-probabilities of the classes, row by row."""
    answer = []
    for i, (label, block) in enumerate(zip(y, blocks, strict=True)):
        logits = offset[:, i] + shifts.theta[block, :, :-1] @ Z[i] + shifts.theta[block, :, -1]
        answer.append(log_softmax(np.append(0.0, logits) if len(logits) == 1 else logits)[label])
    return np.array(answer)


def test_gains_equal_a_slow_version(monkeypatch):
    monkeypatch.setattr(edge_scores, "ROUGHLY", 1e-8)
    for fit in (Shifts.fit, Baseline.fit):  # 1e-4 by default, which would blur it
        monkeypatch.setitem(fit.__func__.__kwdefaults__, "tol", 1e-8)
    X, Y = data(n=150, seed=3)
    codes, cards = Y.to_numpy(), (2, 3, 2, 2)
    model = TreeClassifier(C=0.3, C_shift=0.1).fit(X, Y)
    for parent, child in ((0, 1), (1, 0), (3, 2)):
        slow = slow_gain(X, codes, cards, 0.3, 0.1, parent, child)
        assert model.gains_[parent, child] == pytest.approx(slow, abs=1e-5)


def test_weights_mean_what_repeated_rows_mean_and_order_means_nothing():
    X, Y = data(n=90, seed=1)
    weight = np.random.default_rng(0).integers(1, 4, 90)
    by_weight = TreeClassifier().fit(X, Y, sample_weight=weight)
    again = np.random.default_rng(1).permutation(np.repeat(np.arange(90), weight))
    by_rows = TreeClassifier().fit(X[again], Y.iloc[again])
    assert by_weight.parents_ == by_rows.parents_
    np.testing.assert_allclose(by_weight.gains_, by_rows.gains_, atol=0.05)
    found, expected = (m.predict_joint(X).log_prob(Y) for m in (by_weight, by_rows))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_dependence_is_worth_something_on_new_rows(fitted):
    model, _, _ = fitted
    X, Y = data(seed=9)
    alone = IndependentClassifier().fit(*data())
    assert joint_log_loss(Y, model.predict_joint(X)) < joint_log_loss(Y, alone.predict_joint(X)) - 0.3


def test_edges_of_the_user_are_kept():
    X, Y = data(n=120)
    model = TreeClassifier(required=[("d", "a")], forbidden=[("a", "b"), (2, 1)]).fit(X, Y)
    found = set(edges(model.parents_))
    assert (3, 0) in found
    assert not found & {(0, 1), (2, 1)}
    fixed = TreeClassifier(structure=[("c", "b"), ("c", "a")]).fit(X, Y)
    assert fixed.parents_ == ((2,), (2,), (), ())
    assert fixed.gains_ is None
    assert fixed.edges()["strength"].isna().all()
    drawn = TreeClassifier(structure="random", random_state=0).fit(X, Y)
    assert len(edges(drawn.parents_)) == 3
    assert is_acyclic(drawn.parents_)


def test_without_edges_it_is_a_set_of_independent_models():
    X, Y = data(n=100)
    model = TreeClassifier(structure=[], C=1.0).fit(X, Y)
    marginals = model.predict_joint(X).distribution.marginals()
    joint = model.predict_joint(X).log_prob(Y)
    product = sum(np.log(marginals[i][np.arange(100), Y.iloc[:, i]]) for i in range(4))
    np.testing.assert_allclose(joint, product, atol=1e-10)


def test_the_tree_can_be_drawn_and_a_row_explained(fitted):
    model, X, _ = fitted
    frame = model.edges()
    assert (frame["strength"] > 0).all()
    assert len(frame) == len(edges(model.parents_))
    assert {text.get_text() for text in model.plot(title="rain").texts} >= {"a", "b", "c", "d"}
    assert model.explain(X, 3) is not None


@pytest.mark.parametrize("parametrisation", ["split", "inputs"])
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), GaussianNB(), {"b": DecisionTreeClassifier(max_depth=2)}]
)
def test_any_classifier_can_be_the_local_model(estimator, parametrisation):
    X, Y = data(n=150)
    model = TreeClassifier(estimator, parametrisation=parametrisation, random_state=0).fit(X, Y)
    assert is_acyclic(model.parents_)
    assert len(edges(model.parents_)) >= 2
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()
    assert model.C_ is None


def test_gains_of_any_classifier_are_the_scores_of_families():
    X, Y = data(n=100)
    model = TreeClassifier(GaussianNB(), random_state=0).fit(X, Y)
    scorer = FamilyScorer(
        X, Y.to_numpy(), (2, 3, 2, 2), estimators=[GaussianNB()] * 4, parametrisation="split", score="cv",
        n_folds=3, random_state=int(np.random.default_rng(0).integers(2**31 - 1)),
    )  # fmt: skip
    alone, given = scorer.score([Family(2, (), -np.inf), Family(2, (1,), -np.inf)])
    assert model.gains_[1, 2] == pytest.approx(given - alone, abs=1e-9)


def test_screening_fits_only_edges_between_dependent_variables():
    X, Y = data(n=600)
    whole, screened = TreeClassifier().fit(X, Y), TreeClassifier(screening=5.0).fit(X, Y)
    strong = [edge for edge in edges(whole.parents_) if whole.gains_[edge] > 10]
    assert list(edges(screened.parents_)) == strong
    fits = np.isfinite(screened.gains_)
    assert 0 < fits.sum() < np.isfinite(whole.gains_).sum()
    assert not fits[3].any()  # d is by itself
    np.testing.assert_allclose(screened.gains_[fits], whole.gains_[fits], atol=1e-9)


def test_many_labels_are_screened_by_themselves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    first = (X[:, :1] + rng.normal(size=(150, 20)) > 0).astype(int)
    Y = np.concatenate([first, np.where(rng.random((150, 20)) < 0.9, first, 1 - first)], axis=1)
    model = TreeClassifier().fit(X, Y)
    assert np.isfinite(model.gains_).sum(axis=0).max() <= 8
    partners = {frozenset((i, i + 20)) for i in range(20)}
    assert len(partners & {frozenset(edge) for edge in edges(model.parents_)}) >= 18


def test_unknown_labels_missing_features_and_sparse_ones():
    X, Y = data(n=150)
    Z = X.copy()
    Z[::5, 0] = np.nan
    gaps = Y.astype(float).mask(np.random.default_rng(0).random(Y.shape) < 0.2)
    model = TreeClassifier().fit(Z, gaps)
    assert np.isfinite(model.predict_joint(Z).log_prob(Y)).all()
    fixed = TreeClassifier(structure=[("a", "b"), ("b", "c")], C=0.1, C_shift=0.1)
    dense, thin = clone(fixed).fit(X, Y), clone(fixed).fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(
        dense.predict_joint(X).log_prob(Y), thin.predict_joint(sparse.csr_array(X)).log_prob(Y), atol=1e-9
    )


def test_a_label_nobody_has_seen_constants_and_one_row():
    X, Y = data(n=60)
    Y["e"] = pd.Categorical(["x"] * 60, categories=["x", "y", "z"])
    Y["f"] = "same"
    model = TreeClassifier().fit(X, Y)
    assert (np.exp(model.predict_joint(X[:2]).log_prob(Y.iloc[:2])) > 0).all()
    assert (model.predict_joint(X).marginals()["f"] == 1).all(axis=None)
    for estimator in (None, GaussianNB()):
        one = TreeClassifier(estimator).fit(X[:1], Y.iloc[:1])
        assert np.isfinite(one.predict_joint(X[:1]).log_prob(Y.iloc[:1])).all()
    single = TreeClassifier().fit(X, Y["a"])
    assert single.parents_ == ((),)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"structure": [("a", "b"), ("c", "b")]},
            "structure has 2 parents of 'b'; .* 1 at most",
        ),
        ({"structure": [("a", "b"), ("b", "a")]}, "structure has a cycle, 'a' -> 'b' -> 'a'"),
        ({"required": [("a", "b"), ("c", "b")]}, "required has 2 parents of 'b'"),
        ({"required": [("a", "b")], "forbidden": [(0, 1)]}, "required and forbidden both have 'a' -> 'b'"),
        ({"required": [("a", "a")]}, "must join two variables"),
        ({"required": ["ab"]}, "required must hold pairs"),
        ({"required": [(0.5, 1)]}, "must name class variables"),
        ({"forbidden": [{0, 1}]}, "forbidden must hold pairs"),
        ({"structure": [("a", "b")], "forbidden": [("a", "b")]}, "are for structure='learn'"),
        ({"forbidden": [(0, 9)]}, "names the class variable 9"),
    ],
)
def test_bad_settings_are_said(settings, message):
    X, Y = data(n=30)
    with pytest.raises(InputError, match=message):
        TreeClassifier(**settings).fit(X, Y)


def test_climbing_a_grid_ends_at_the_top_of_a_hill():
    asked = []

    def score(x):
        asked.append(x)
        return -((x - 5) ** 2)

    assert best_on_grid(score, list(range(10)), 2) == 5
    assert sorted(asked) == [2, 3, 4, 5, 6]
    assert best_on_grid(lambda x: -x, list(range(10)), 2) == 0


def test_random_trees_are_averaged():
    X, Y = data(n=100)
    model = TreeEnsembleClassifier(n_trees=5, C=0.1, C_shift=0.03, random_state=0).fit(X, Y)
    assert len(set(model.parents_)) == 5
    trees = [TreeClassifier(structure=edges(p), C=0.1, C_shift=0.03) for p in model.parents_]
    joints = [tree.fit(X, Y).predict_joint(X).log_prob(Y) for tree in trees]
    expected = np.log(np.mean(np.exp(joints), axis=0))
    np.testing.assert_allclose(model.predict_joint(X).log_prob(Y), expected, atol=1e-9)
    few = TreeEnsembleClassifier(n_trees=50, random_state=0).fit(X, Y[["a", "b"]])
    assert sorted(few.parents_) == [((), (0,)), ((1,), ())]


def test_unknown_is_no_value_of_a_parent():
    X, Y = data(n=80)
    codes = Y.to_numpy().copy()
    codes[::2, 0] = UNKNOWN
    trees = LogisticTreeLearner(
        X, codes, (2, 3, 2, 2), None, TreeSettings("split", 1.0, 1.0, 0.3, 3, None, None)
    )
    weight = np.ones(80)
    assert np.isfinite(trees.fit(((), (0,), (), ()), weight).own).all()
    assert trees._fit_shifts(0, None, weight, None)[1][::2].sum() == 0
    _, offset = trees._baseline(1, True)
    expected = log_softmax(offset[:, :-1], axis=0)[codes[:, 1], np.arange(80)]
    found = trees._fit_shifts(1, 0, weight, None)[1]
    np.testing.assert_allclose(found[::2], expected[::2], atol=1e-12)
    assert np.abs(found - expected)[1::2].max() > 0.01


def test_a_required_edge_that_was_screened_out_has_no_strength():
    X, Y = data(n=120)
    model = TreeClassifier(screening=50.0, required=[("d", "c")]).fit(X, Y)
    assert model.edges().query("parent == 'd'")["strength"].isna().all()


def test_folds_follow_from_numbers_not_from_signs_of_zero():
    X, Y = data(n=60)
    X = X.round()
    flipped = np.where((X == 0) & (np.arange(60) % 2 == 0)[:, None], -0.0, np.where(X == 0, 0.0, X))
    np.testing.assert_array_equal(
        fold_weights(np.where(X == 0, 0.0, X), Y.to_numpy(), None, 3),
        fold_weights(flipped, Y.to_numpy(), None, 3),
    )


def test_columns_of_huge_numbers_count_like_others():
    X, Y = data(n=100)
    fixed = TreeClassifier(structure=[("a", "b")], C=0.3, C_shift=0.1)
    usual = clone(fixed).fit(X, Y).predict_joint(X).log_prob(Y)
    np.testing.assert_allclose(
        clone(fixed).fit(X * 1e200, Y).predict_joint(X * 1e200).log_prob(Y), usual, atol=1e-9
    )


def test_penalties_and_edges_come_from_a_sample_and_parameters_from_all_rows(monkeypatch):
    X, Y = data(n=600)
    monkeypatch.setattr(logistic, "SAMPLE_SIZE", 300)
    model = TreeClassifier().fit(X, Y)
    taken = sample_rows(X, Y.to_numpy(), None, 300).rows
    assert 240 < len(taken) < 360
    few = TreeClassifier().fit(X[taken], Y.iloc[taken])
    # The axes are those of all rows, so that nothing but rounding and 64 of 3 axes could differ.
    np.testing.assert_allclose(model.gains_, few.gains_ * 600 / len(taken), rtol=0.02, atol=2)
    assert model.parents_ == few.parents_
    monkeypatch.setattr(logistic, "SAMPLE_SIZE", 10**6)
    settings = TreeSettings("split", model.C_, model.C_shared_, model.C_shift_, 3, None, None)
    whole = LogisticTreeLearner(X, Y.to_numpy(), (2, 3, 2, 2), None, settings).fit(model.parents_, None)
    found, expected = model.predict_joint(X).distribution, whole.joint(X)
    np.testing.assert_allclose(found.log_prob(Y.to_numpy()), expected.log_prob(Y.to_numpy()), atol=1e-12)
    bare = replace(whole, baselines=tuple(replace(b, share=0 * b.share) for b in whole.baselines))
    np.testing.assert_allclose(whole.own, bare.joint(X).log_prob(Y.to_numpy()), atol=1e-9)


def test_weights_mean_what_repeated_rows_mean_in_a_sample(monkeypatch):
    monkeypatch.setattr(logistic, "SAMPLE_SIZE", 80)
    X, Y = data(n=90, seed=1)
    weight = np.random.default_rng(0).integers(1, 4, 90)
    by_weight = TreeClassifier().fit(X, Y, sample_weight=weight)
    again = np.random.default_rng(1).permutation(np.repeat(np.arange(90), weight))
    by_rows = TreeClassifier().fit(X[again], Y.iloc[again])
    assert by_weight.parents_ == by_rows.parents_
    np.testing.assert_allclose(by_weight.gains_, by_rows.gains_, atol=0.05)


def test_sparse_features_that_stay_sparse(monkeypatch):
    X, Y = data(n=300)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    model = TreeClassifier(C=0.3, C_shift=0.1, structure=[("a", "b"), ("b", "c")])
    dense = clone(model).fit(X, Y)
    monkeypatch.setattr(columns, "LISTED_CELLS", 0)
    thin = clone(model).fit(sparse.csr_array(X), Y)
    assert isinstance(thin.tree_.columns, columns.SparseColumns)
    assert TreeClassifier().fit(sparse.csr_array(X), Y).gains_[0, 1] > 0
    found, expected = (m.predict_joint(X).log_prob(Y) for m in (thin, dense))
    np.testing.assert_allclose(found, expected, atol=5e-3)
