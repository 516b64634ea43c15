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

from tuplet import BayesNetClassifier, IndependentClassifier
from tuplet.core.exceptions import InputError, TupletWarning
from tuplet.local import FamilyScorer, MixedNaiveBayes
from tuplet.metrics import joint_log_loss
from tuplet.models.bayesnet import learning
from tuplet.structure import is_acyclic, score_of
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
    model = BayesNetClassifier(max_parents=0).fit(X, Y)
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


def test_an_interrupt_ends_in_a_valid_model(monkeypatch):
    scored = []
    original = FamilyScorer.score

    def interrupted(self, families):
        for family, value in zip(families, original(self, families), strict=True):
            if len(scored) == 6:
                raise KeyboardInterrupt
            scored.append(family)
            yield value

    monkeypatch.setattr(FamilyScorer, "score", interrupted)
    with pytest.warns(TupletWarning, match="interrupted after 6 sets of parents"):
        model = BayesNetClassifier().fit(X, Y)
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
    assert model.found_.gap <= model.gap_ < np.inf
    assert model.proven_ == (model.gap_ == 0)
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
    for estimator, penalised in ((None, True), (MixedNaiveBayes(), True), (KNeighborsClassifier(), False)):
        chosen, named = (
            BayesNetClassifier(estimator, criterion=criterion, max_parents=1, random_state=0)
            .fit(X[:80], Y[:80])
            .found_.score
            for criterion in ("auto", "bic" if penalised else "cv")
        )
        assert chosen == named


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"required": ["ab"]}, "pairs"),
        ({"required": [("a", "e")]}, "'e'"),
        ({"forbidden": [(0, 9)]}, "numbered"),
        ({"required": [("a", "b"), ("b", "a")]}, "cycle"),
    ],
)
def test_bad_settings_are_said(settings, message):
    with pytest.raises(InputError, match=message):
        BayesNetClassifier(**settings).fit(X, Y)
