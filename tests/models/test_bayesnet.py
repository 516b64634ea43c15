"""Bayesian networks over the class variables: the best graph, and the joint that it means."""

import itertools
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

from tuplet import BayesNetClassifier, IndependentClassifier, TreeClassifier, default_estimator
from tuplet.core.exceptions import InputError, TupletWarning
from tuplet.core.typing import UNKNOWN
from tuplet.local import FamilyScorer, MixedNaiveBayes
from tuplet.metrics import joint_log_loss
from tuplet.models.bayesnet import learning, shift_families
from tuplet.models.bayesnet.classifier import _width_limit
from tuplet.models.bayesnet.screening import ScreenedScorer, linked_pairs
from tuplet.models.bayesnet.shift_families import ShiftScorer
from tuplet.models.trees import logistic
from tuplet.structure import Family, is_acyclic, score_of
from tuplet.testing import enumerate_log_joint

rng = np.random.default_rng(0)
N = 300
X = rng.normal(size=(N, 3))
A = (X[:, 0] + rng.normal(size=N) > 0).astype(int)
B = (A + rng.integers(0, 2, size=N)) % 3
C = np.where(rng.random(N) < 0.9, (A + B) % 2, 1 - (A + B) % 2)
D = rng.integers(0, 2, size=N)
Y = pd.DataFrame({"a": A, "b": B, "c": C, "d": D})


@pytest.fixture(scope="module")
def model():
    return BayesNetClassifier(random_state=0).fit(X, Y)


def test_the_graph_is_the_best_of_all(model):
    assert model.proven_
    assert is_acyclic(model.parents_)
    scores = model.candidates_.scores
    options = [[parents for parents, _ in scores.candidates(child)] for child in range(4)]
    graphs = (graph for graph in itertools.product(*options) if is_acyclic(graph))
    assert model.found_.score == pytest.approx(max(score_of(graph, scores) for graph in graphs))


def test_the_graph_finds_what_depends_on_what(model):
    linked = {frozenset(edge) for edge in model.edges()[["parent", "child"]].to_numpy()}
    assert {frozenset("ab"), frozenset("bc")} <= linked
    assert not any("d" in edge for edge in linked)
    assert (model.edges()["strength"] > 0).all()
    assert model.edges()["strength"].is_monotonic_decreasing


def test_the_joint_is_the_product_of_the_local_models(model):
    joint = model.predict_joint(X[:5]).distribution
    codes = np.array(list(itertools.product(*map(range, joint.cards))))
    expected = sum(
        local.log_proba(np.repeat(X[:5], len(codes), axis=0), np.tile(codes[:, parents], (5, 1)))[
            np.arange(5 * len(codes)), np.tile(codes[:, child], 5)
        ]
        for child, (parents, local) in enumerate(zip(model.parents_, model.models_, strict=True))
    ).reshape(5, -1)
    np.testing.assert_allclose(joint.log_prob(codes[:, None]).T, expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(expected).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(enumerate_log_joint(joint)), np.exp(expected), atol=1e-12)


def test_dependence_is_worth_something(model):
    alone = IndependentClassifier().fit(X[:200], Y[:200])
    together = BayesNetClassifier(random_state=0).fit(X[:200], Y[:200])
    loss = [joint_log_loss(Y[200:], each.predict_joint(X[200:])) for each in (together, alone)]
    assert loss[0] < loss[1] - 0.2


def test_without_parents_it_is_a_set_of_independent_models():
    model = BayesNetClassifier(default_estimator(), max_parents=0).fit(X, Y)
    expected = IndependentClassifier().fit(X, Y).predict_joint(X)
    found = model.predict_joint(X)
    assert model.parents_ == ((), (), (), ())
    # The compiled regressions stop at scikit-learn's tolerance, but not at scikit-learn's last step.
    np.testing.assert_allclose(found.log_prob(Y), expected.log_prob(Y), atol=2e-3)


def test_the_graph_can_be_drawn_and_a_row_explained(model):
    ax = model.plot(title="labels")
    assert {text.get_text() for text in ax.texts} >= {"a", "b", "c", "d"}
    plt.close(ax.figure)
    network = model.explain(X, row=3)
    prediction = model.predict_joint(X)[3]
    for child, parents in enumerate(model.parents_):
        table = network.tables()[model.space_.names[child]]
        assert table.to_numpy(dtype=float)[:, -model.space_.cards[child] :].sum(axis=1) == pytest.approx(1)
        if not parents:
            expected = prediction.distribution.marginals()[child][0]
            assert table.to_numpy(dtype=float)[0, -len(expected) :] == pytest.approx(expected)


@pytest.mark.parametrize("estimator", [MixedNaiveBayes(), RandomForestClassifier(10, random_state=0)])
@pytest.mark.parametrize("parametrisation", ["split", "inputs"])
def test_any_classifier_can_be_the_local_model(estimator, parametrisation):
    model = BayesNetClassifier(
        estimator, parametrisation=parametrisation, max_parents=1, criterion="cv", random_state=0
    )
    prediction = model.fit(X[:150], Y[:150]).predict_joint(X[150:])
    assert np.isfinite(prediction.log_prob(Y[150:])).all()


def test_edges_of_the_user_are_kept():
    model = BayesNetClassifier(required=[("d", "a")], forbidden=[("a", "c"), (2, 0)]).fit(X, Y)
    edges = set(map(tuple, model.edges()[["parent", "child"]].to_numpy()))
    assert ("d", "a") in edges
    assert not edges & {("a", "c"), ("c", "a")}
    assert model.edges().set_index(["parent", "child"])["strength"].isna()["d", "a"]


@pytest.mark.parametrize(
    "criterion", ["bic", "bic-true", "aic", "cv", lambda n_parameters, n: 2.0 * n_parameters]
)
def test_every_criterion_gives_a_model(criterion):
    model = BayesNetClassifier(criterion=criterion, max_parents=2, random_state=0).fit(X[:100], Y[:100])
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()


def test_missing_labels_and_features_and_mixed_frames():
    frame = pd.DataFrame(X, columns=["p", "q", "r"]).assign(text=np.where(X[:, 0] > 0, "yes", "no"))
    frame.iloc[::7, 1] = np.nan
    labels = Y.astype("Int64").mask(rng.random(Y.shape) < 0.1)
    prediction = BayesNetClassifier().fit(frame, labels).predict_joint(frame)
    assert np.isfinite(prediction.log_prob(Y.astype("Int64"))).all()


def test_a_time_budget_ends_in_a_valid_model(monkeypatch):
    clock = itertools.count(step=0.5)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with pytest.warns(TupletWarning, match=r"out of its half of 10 s after \d+ sets of parents"):
        model = BayesNetClassifier(time_budget=10).fit(X, Y)
    assert not model.proven_
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()


@pytest.mark.parametrize(("kind", "estimator"), [(FamilyScorer, default_estimator()), (ShiftScorer, None)])
def test_an_interrupt_ends_in_a_valid_model(monkeypatch, kind, estimator):
    scored = []
    original = kind.score

    def interrupted(self, families):
        for family, value in zip(families, original(self, families), strict=True):
            if len(scored) == 6:
                raise KeyboardInterrupt
            scored.append(family)
            yield value

    monkeypatch.setattr(kind, "score", interrupted)
    with pytest.warns(TupletWarning, match="interrupted after 6 sets of parents"):
        model = BayesNetClassifier(estimator).fit(X, Y)
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()


def test_many_class_variables_stay_narrow_enough():
    labels = (rng.random((120, 25)) < 0.5).astype(int)
    for j in range(1, 25):
        labels[:, j] ^= labels[:, j - 1] & (rng.random(120) < 0.8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesNetClassifier(max_parents=1, max_width=1, time_budget=30).fit(X[:120], labels)
    assert np.isfinite(model.predict_joint(X[:9]).log_prob(labels[:9])).all()


def test_an_interrupted_search_ends_in_a_valid_model(monkeypatch):
    original, calls = learning.find_dag, []

    def interrupted(scores, **settings):
        calls.append(settings["method"])
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(scores, **settings)

    monkeypatch.setattr(learning, "find_dag", interrupted)
    with pytest.warns(TupletWarning, match="the search was interrupted"):
        model = BayesNetClassifier(random_state=0).fit(X, Y)
    assert calls == ["auto", "order"]
    assert is_acyclic(model.parents_)
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()


def test_sixty_class_variables_in_a_time_budget(monkeypatch):
    """A graph with a stated gap, in the stated time; what is fitted in any case comes on top."""
    monkeypatch.setattr(time, "monotonic", time.process_time)  # whatever else the machine does
    budget, m = 2.0, 60
    labels = (rng.random((150, m)) < 0.5).astype(int)
    for j in range(2, m):
        labels[:, j] ^= labels[:, j - 1] & labels[:, j - 2] & (rng.random(150) < 0.8)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TupletWarning)
        model = BayesNetClassifier(time_budget=budget, random_state=0).fit(X[:150], labels)
    assert time.process_time() - begun < 4 * budget
    assert sum(model.seconds_.values()) < 4 * budget
    assert len(model.parents_) == m
    assert is_acyclic(model.parents_)
    assert 0 <= model.found_.gap < np.inf
    assert model.gap_ == np.inf  # sets were screened
    assert not model.proven_
    assert np.isfinite(model.predict_joint(X[:9]).log_prob(labels[:9])).all()


def test_the_gap_counts_what_was_left_out(monkeypatch):
    """No graph with all sets scored is better than the one of a few, plus its gap."""
    whole = BayesNetClassifier(parametrisation="split", random_state=0).fit(X, Y)
    assert whole.gap_ == 0
    stop = iter([False] * 7 + [True] * 100)
    original = learning.candidate_parent_sets

    def early(n_variables, max_parents, score, **settings):
        def stopping(families):
            for value in score(families):
                if next(stop):
                    raise KeyboardInterrupt
                yield value

        return original(n_variables, max_parents, stopping, **settings)

    monkeypatch.setattr(learning, "candidate_parent_sets", early)
    with pytest.warns(TupletWarning, match="interrupted"):
        part = BayesNetClassifier(parametrisation="split", random_state=0).fit(X, Y)
    assert not part.proven_
    assert part.found_.score <= whole.found_.score <= part.found_.score + part.gap_


def test_auto_is_bic_for_modest_classifiers_and_cv_for_others():
    cases = (
        (None, "cv"),
        (default_estimator(), "bic"),
        (MixedNaiveBayes(), "bic"),
        (KNeighborsClassifier(), "cv"),
    )
    for estimator, name in cases:
        chosen, named = (
            BayesNetClassifier(estimator, criterion=criterion, max_parents=1, random_state=0)
            .fit(X[:80], Y[:80])
            .found_.score
            for criterion in ("auto", name)
        )
        assert chosen == named


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"required": ["ab"]}, "pairs"),
        ({"required": [("a", "e")]}, "'e'"),
        ({"forbidden": [(0, 9)]}, "numbered"),
        ({"required": [("a", "b"), ("b", "a")]}, "cycle"),
        ({"parametrisation": "shift", "estimator": MixedNaiveBayes()}, "estimator must be None"),
        ({"parametrisation": "shift", "criterion": "bic"}, 'criterion must be "auto" or "cv"'),
        ({"parametrisation": "shift", "discrete_as": "parents"}, "discrete_as"),
    ],
)
def test_bad_settings_are_said(settings, message):
    with pytest.raises(InputError, match=message):
        BayesNetClassifier(**settings).fit(X, Y)


# -- shifts --------------------------------------------------------------------------------------------------


def shift_scorer(codes, cards, weight=None, X=X):
    return ShiftScorer(X[: len(codes)], codes, cards, weight, screening="auto", n_jobs=None)


CODES, CARDS = Y.to_numpy(), (2, 3, 2, 2)


def test_scores_of_trees_are_those_of_the_tree_classifier():
    tree, scorer = TreeClassifier().fit(X, Y), shift_scorer(CODES, CARDS)
    alone = list(scorer.score([Family(child, (), -np.inf) for child in range(4)]))
    np.testing.assert_allclose(alone, tree.scores_)
    pairs = [(parent, child) for parent in range(4) for child in range(4) if parent != child]
    values = list(scorer.score([Family(child, (parent,), -np.inf) for parent, child in pairs]))
    for (parent, child), value in zip(pairs, values, strict=True):
        expected = tree.scores_[child] + tree.gains_[parent, child] - np.log(4)
        # Where the slopes are common the better of both kinds counts.
        assert value >= expected - 1e-9 if scorer._additive[child] else value == pytest.approx(expected)


def test_a_network_with_the_graph_of_a_tree_is_that_tree():
    tree = TreeClassifier().fit(X, Y)
    scorer = shift_scorer(CODES, CARDS)
    scorer._additive.update(dict.fromkeys(range(4), False))
    models = [scorer.model(child, parents) for child, parents in enumerate(tree.parents_)]
    factors = tree.predict_joint(X).distribution.factors
    for model, factor in zip(models, factors, strict=True):
        np.testing.assert_allclose(model.log_table(X), factor.log_table, atol=1e-10)


@pytest.mark.parametrize("is_additive", [False, True])
def test_scores_of_larger_sets_agree_with_models_fitted_fold_by_fold(is_additive, monkeypatch):
    monkeypatch.setattr(shift_families, "ROUGHLY", 1e-8)
    codes = CODES.copy()
    codes[::9, 1], codes[::11, 2] = UNKNOWN, UNKNOWN
    weight = np.random.default_rng(1).integers(1, 3, size=N).astype(float)
    scorer = shift_scorer(codes, CARDS, weight)
    scorer._additive.update(dict.fromkeys(range(4), is_additive))
    (found,) = scorer.score([Family(2, (0, 1), -np.inf)])
    chooser, expected = scorer._trees.chooser, 0.0
    leading, (alone, shared, shift) = chooser.rows.leading, chooser.strengths
    for fold in chooser.folds(alone, shared):
        C = alone if is_additive else shift
        family = shift_families.ShiftFamily(codes[:, 2], 2, codes[:, :2], (2, 3), is_additive)
        shifts = family.fit(leading, fold.shared[2], weight * fold.kept, C=C, tol=1e-8)
        for row in np.flatnonzero((fold.held > 0) & (codes[:, 2] != UNKNOWN)):
            logit = fold.alone[2][0, row]
            if (codes[row, :2] != UNKNOWN).all():
                theta = shifts.theta[3 * codes[row, 0] + codes[row, 1], 0]
                logit = fold.shared[2][0, row] + theta[:-1] @ leading[row] + theta[-1]
            expected -= weight[row] * fold.held[row] * np.log1p(np.exp(-logit if codes[row, 2] else logit))
    assert found == pytest.approx(expected - np.log(7), abs=1e-4)


def many_labels(n=240, m=24, seed=0):
    """Chains of labels in which each follows from the two before it."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, 3)), (rng.random((n, m)) < 0.5).astype(int)
    for j in range(2, m):
        labels[:, j] ^= labels[:, j - 1] & labels[:, j - 2] & (rng.random(n) < 0.9)
    return X, labels


@pytest.fixture(scope="module")
def wide():
    X, labels = many_labels()
    return BayesNetClassifier(random_state=0, progress=False).fit(X, labels), X, labels


def test_with_many_class_variables_the_score_is_no_less_than_that_of_the_tree(wide):
    model, X, labels = wide
    tree = TreeClassifier().fit(X, labels)
    m, edges = labels.shape[1], sum(map(len, tree.parents_))
    held_out = tree.scores_.sum() + sum(tree.gains_[p[0], i] for i, p in enumerate(tree.parents_) if p)
    assert model.found_.score >= held_out - edges * np.log(m) - 1e-6
    assert not model.proven_
    assert model.gap_ == np.inf
    assert model.candidates_.n_scored < m * (1 + (m - 1) + 35)
    for child in range(m):  # sets are made of parents that gain by themselves
        single = {p[0] for p, _ in model.candidates_.scores.candidates(child) if len(p) == 1}
        assert all(set(p) <= single for p, _ in model.candidates_.scores.candidates(child))


def test_all_sets_are_scored_if_nothing_is_to_be_listed():
    X, labels = many_labels(n=80, m=20)
    model = BayesNetClassifier(max_parents=1, shortlist=None, progress=False).fit(X, labels)
    assert model.candidates_.n_scored == 20 * 20
    assert model.proven_


def test_the_tree_is_there_however_little_time_there_is(monkeypatch):
    X, labels = many_labels()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TupletWarning)
        model = BayesNetClassifier(time_budget=1e-9, random_state=0, progress=False).fit(X, labels)
    tree = BayesNetClassifier(max_parents=1, random_state=0, progress=False).fit(X, labels)
    assert model.candidates_.stopped == "deadline"
    assert model.found_.score >= tree.found_.score - 1e-9
    assert np.isfinite(model.predict_joint(X).log_prob(labels)).all()


def test_other_classifiers_are_screened_by_residuals():
    X, labels = many_labels()
    model = BayesNetClassifier(MixedNaiveBayes(), max_parents=2, random_state=0, progress=False).fit(
        X, labels
    )
    assert model.candidates_.n_scored < 24 * (1 + 8 + 15)
    assert not model.proven_
    assert is_acyclic(model.parents_)
    assert any(model.parents_)


def test_residuals_show_what_is_linked_given_x():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=(500, 12))
    codes[:, 3] = np.where(rng.random(500) < 0.8, codes[:, 7], codes[:, 3])
    codes[::5, 4] = UNKNOWN
    found = linked_pairs([np.full((500, 2), 0.5)] * 12, codes, None)
    assert found[3, 7]
    assert found[7, 3]
    assert not found.diagonal().any()
    assert found.sum() < 12
    weighted = linked_pairs([np.full((500, 2), 0.5)] * 12, codes, np.ones(500))
    assert (weighted == found).all()


def test_a_screen_lists_what_it_says():
    """Against a slow version: all sets of allowed parents, the larger ones of the six best."""
    m, rng = 10, np.random.default_rng(2)
    allowed = rng.random((m, m)) < 0.8
    np.fill_diagonal(allowed, False)
    gains = rng.normal(size=(m, m))

    class Sums:
        bound = None

        def score(self, families):
            return iter([gains[list(f.parents), f.child].sum() for f in families])

    screen = ScreenedScorer(Sums(), allowed, [(1, 0)])
    rules = {"required": [(1, 0)], "forbidden": []}
    found = learning.candidate_parent_sets(m, 4, screen.score, bound=screen.bound, **rules)
    for child in range(m):
        needed = (1,) if child == 0 else ()
        free = [j for j in range(m) if j != child and j not in needed and allowed[j, child]]
        best = sorted((j for j in free if gains[j, child] > 0), key=lambda j: -gains[j, child])[:6]
        larger = [s for size in range(2, 5 - len(needed)) for s in itertools.combinations(best, size)]
        expected = [(), *[(j,) for j in free if gains[j, child] > 0], *larger]
        listed = {parents for parents, _ in found.scores.candidates(child)}
        assert listed == {tuple(sorted((*some, *needed))) for some in expected}


def test_of_many_rows_a_sample_is_scored_and_all_are_fitted(monkeypatch):
    monkeypatch.setattr(logistic, "SAMPLE_SIZE", 200)
    model = BayesNetClassifier(random_state=0).fit(X, Y)
    again = BayesNetClassifier(random_state=1).fit(X, Y)
    assert model.parents_ == again.parents_
    assert sum(map(len, model.parents_)) >= 2
    scorer = shift_scorer(CODES, CARDS)
    assert 150 < len(scorer._scores.codes) < 250  # about as many as asked for
    local = scorer.model(2, (0, 1))
    fitted = local.base_.frequencies  # of all rows
    ones = C.sum()
    assert fitted == pytest.approx([np.log(ones + 1) - np.log(N - ones + 1)])
    listed = BayesNetClassifier(shortlist=2, random_state=0).fit(X, Y)
    assert np.isfinite(listed.predict_joint(X).log_prob(Y)).all()


def test_sets_with_more_intercepts_than_rows_are_left_out():
    codes = np.column_stack([np.arange(60) % 9, np.arange(60) // 7, np.arange(60) % 2])
    scorer = shift_scorer(codes, (9, 9, 2))
    assert scorer.bound(0, (1,)) == -np.inf
    assert scorer.bound(2, (0,)) == np.inf
    model = BayesNetClassifier(required=[(0, 1)]).fit(X[:60], codes)
    assert 0 in model.parents_[1]
    assert np.isfinite(model.predict_joint(X[:60]).log_prob(codes)).all()


def test_weights_count_rows_in_networks_of_shifts():
    counts = np.random.default_rng(3).integers(1, 3, size=N)
    weighted = BayesNetClassifier(random_state=0).fit(X, Y, sample_weight=counts)
    repeated = BayesNetClassifier(random_state=0).fit(
        np.repeat(X, counts, axis=0), Y.loc[Y.index.repeat(counts)]
    )
    assert weighted.parents_ == repeated.parents_
    assert weighted.found_.score == pytest.approx(repeated.found_.score, abs=1.0)


def test_many_class_variables_have_small_tables():
    assert _width_limit("auto", (2,) * 19) == 15
    assert _width_limit("auto", (2,) * 160) == 8
    assert _width_limit("auto", (300,) * 160) == 1
    assert _width_limit(None, (2,) * 160) is None
    assert _width_limit(3, (2,) * 160) == 3
