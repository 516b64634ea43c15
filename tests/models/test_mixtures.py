"""Learnt mixtures: EM, growth, structures in order, annealing, and any model as component."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from draws import examples
from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    IndependentClassifier,
    MixtureClassifier,
    PowersetClassifier,
    PriorClassifier,
    TreeClassifier,
    TreeMixtureClassifier,
)
from tuplet.core.exceptions import ApproximationWarning, InputError, TupletWarning
from tuplet.joint import Mixture
from tuplet.joint.base import all_outcomes
from tuplet.local.cross_fitting import fold_weights
from tuplet.models.mixtures import base, growth
from tuplet.models.mixtures.base import Annealed, TrainingRows
from tuplet.models.mixtures.em import EMSettings, MixtureState, run_em
from tuplet.models.mixtures.mixture import ModelSource
from tuplet.models.trees.mixture import TreeSource, new_forest
from tuplet.structure import best_forest, edges, is_acyclic
from tuplet.testing import check_joint


def data(n=200, seed=0, m=4):
    """Which labels go together depends on a switch that nobody sees."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    switch, a = rng.random(n) < 0.5, X[:, 0] + rng.normal(size=n) > 0
    columns = [a]
    for _ in range(m - 1):
        columns.append(np.where(switch, columns[-1], rng.random(n) < 0.5))
    return X, np.column_stack(columns).astype(int)


def never_falls(path):
    return bool((np.diff(path) >= -1e-7 * np.abs(path[:-1])).all())


@examples(8)
@given(st.integers(0, 1000), st.sampled_from([0.05, 1.0]), st.sampled_from(["split", "inputs"]))
def test_em_never_lowers_its_objective(seed, C, parametrisation):
    X, Y = data(n=60, seed=seed)
    weight = np.random.default_rng(seed).uniform(0.2, 3, 60)
    model = TreeMixtureClassifier(n_trees=3, C=C, C_shift=C, parametrisation=parametrisation, tol=1e-8)
    model.fit(X, Y, sample_weight=weight)
    assert all(never_falls(path) for path in model.growth_paths_)
    assert never_falls(model.log_likelihood_path_)


@pytest.mark.parametrize("component", [ChainClassifier(order="random"), GaussianNB()], ids=["chain", "bayes"])
def test_em_never_lowers_the_likelihood_of_any_components(component):
    X, Y = data(n=80)
    model = (
        TreeMixtureClassifier(component, n_trees=2, random_state=0)
        if isinstance(component, GaussianNB)
        else MixtureClassifier(component, n_components=2, random_state=0)
    ).fit(X, Y)
    assert all(never_falls(path) for path in model.growth_paths_)


def test_the_objective_is_the_penalised_likelihood_of_the_model():
    X, Y = data(n=100)
    model = TreeMixtureClassifier(n_trees=3).fit(X, Y)
    # EM is about the trees without the pseudo-rows of predictions.
    model.components_ = tuple(
        replace(tree, baselines=tuple(replace(base, share=0 * base.share) for base in tree.baselines))
        for tree in model.components_
    )
    penalty = sum(tree.penalty for tree in model.components_)
    own = model.predict_joint(X).log_prob(Y)
    assert model.log_likelihood_path_[-1] == pytest.approx(own.sum() - penalty, abs=1e-6)
    np.testing.assert_allclose(model.responsibilities_.sum(axis=1), 1)
    assert model.weights_.sum() == pytest.approx(1)
    parts = np.array([tree.joint(X).log_prob(Y) for tree in model.components_]).T + np.log(model.weights_)
    np.testing.assert_allclose(model.responsibilities_, np.exp(parts - own[:, None]), atol=1e-9)


def test_a_mixture_of_equal_components_is_the_component():
    X, Y = data(n=100)
    tree = TreeClassifier(C=1.0, C_shift=0.3).fit(X, Y)
    one = TreeMixtureClassifier(n_trees=1, C=1.0, C_shift=0.3).fit(X, Y)
    np.testing.assert_allclose(one.predict_joint(X).log_prob(Y), tree.predict_joint(X).log_prob(Y), atol=1e-4)
    twice = MixtureClassifier(PriorClassifier(), n_components=2).fit(X, Y)
    alone = PriorClassifier().fit(X, Y)
    component = tree.predict_joint(X).distribution
    doubled = Mixture(np.zeros((100, 2)), (component, component))
    np.testing.assert_allclose(doubled.log_prob(Y), component.log_prob(Y), atol=1e-12)
    assert twice.score(X, Y) == pytest.approx(alone.score(X, Y))


def test_em_keeps_a_mixture_that_is_at_its_best():
    X, Y = data(n=60)
    rows, space = TrainingRows(X, Y, None, None), PriorClassifier().fit(X, Y).space_
    source = ModelSource(PriorClassifier(), rows, space, np.random.default_rng(0))
    component = source.fit(PriorClassifier(), np.ones(60))
    state = MixtureState.of([component, component], np.ones(2))
    after, info = run_em(state, lambda c, w: source.fit(c.structure, w, c), np.ones(60), EMSettings())
    np.testing.assert_allclose(after.log_likelihood(), component.log_likelihood, atol=1e-9)
    assert info.converged


def test_a_hidden_switch_is_worth_a_mixture():
    X, Y = data(n=600)
    new_X, new_Y = data(n=600, seed=1)
    tree, mixture = TreeClassifier().fit(X, Y), TreeMixtureClassifier().fit(X, Y)
    gain = mixture.predict_joint(new_X).log_prob(new_Y) - tree.predict_joint(new_X).log_prob(new_Y)
    assert gain.mean() > 2 * gain.std() / np.sqrt(600)


def test_growth_stops_by_validation_and_keeps_the_best():
    X, Y = data(n=150)
    model = TreeMixtureClassifier(max_trees=8).fit(X, Y)
    path = model.validation_path_
    assert len(model.weights_) == np.argmax(path) + 1
    if len(path) < 8:
        assert max(path[-2:]) <= max(path[:-2])
    assert len(model.growth_paths_) == len(path)
    assert TreeMixtureClassifier(n_trees=3).fit(X, Y).validation_path_ == ()


def test_no_two_trees_are_the_same_and_edges_of_the_user_are_kept():
    X, Y = data(n=100)
    model = TreeMixtureClassifier(n_trees=6, required=[(3, 0)], forbidden=[(0, 1)]).fit(X, Y)
    assert len(set(model.parents_)) == len(model.parents_)
    for parents in model.parents_:
        assert (3, 0) in edges(parents)
        assert (0, 1) not in edges(parents)


@given(st.lists(st.integers(-4, 12), min_size=9, max_size=9))
def test_forests_come_in_descending_order(values):
    gains = np.array(values).reshape(3, 3) / 4  # sums are exact, so that only equal forests tie
    choices = [[(), *((v,) for v in range(3) if v != child)] for child in range(3)]
    allowed = [
        p for p in itertools.product(*choices) if is_acyclic(p) and all(gains[e] > 0 for e in edges(p))
    ]
    seen, worths = [], []
    while (forest := new_forest(gains, seen)) is not None:
        seen.append(forest)
        worths.append(sum(gains[edge] for edge in edges(forest)))
    assert sorted(seen) == sorted(allowed)
    assert (np.diff(worths) <= 1e-12).all()


def test_the_first_proposal_is_the_best_forest():
    class Trees:
        def edges(self, weight):
            return type("Scores", (), {"gains": np.array([[0.0, 1.0], [2.0, 0.0]])})

    assert TreeSource(Trees()).propose(np.ones(3), []) == best_forest([[0.0, 1.0], [2.0, 0.0]])


@pytest.mark.parametrize(
    "component",
    [
        IndependentClassifier(),
        PowersetClassifier(),
        BayesNetClassifier(progress=False),
        ChainClassifier(order="random"),
        TreeClassifier(structure="random"),
        PriorClassifier("marginals"),
    ],
    ids=repr,
)
def test_any_model_can_be_a_component(component):
    X, Y = data(n=80)
    frame = pd.DataFrame(X, columns=list("uvw")).assign(kind=np.where(X[:, 0] > 0, "warm", "cold"))
    model = MixtureClassifier(component, n_components=2, random_state=0).fit(frame, Y)
    own = model.predict_joint(frame).log_prob(Y)
    assert np.isfinite(own).all()
    again = MixtureClassifier(component, n_components=2, random_state=0).fit(frame, Y)
    np.testing.assert_array_equal(again.predict_joint(frame).log_prob(Y), own)


def test_chains_of_a_mixture_have_orders_of_their_own():
    X, Y = data(n=80, m=5)
    model = MixtureClassifier(n_components=3, random_state=0).fit(X, Y)
    assert len({tuple(each.model.orders_[0]) for each in model.components_}) > 1


def test_annealing_finds_nothing_better_than_the_exact_mode():
    X, Y = data(n=200, m=6)
    exact = TreeMixtureClassifier(n_trees=3, random_state=0).fit(X, Y)
    annealed = TreeMixtureClassifier(n_trees=3, map_inference="annealing", random_state=0).fit(X, Y)
    best, found = exact.predict_joint(X).distribution, annealed.predict_joint(X).distribution
    assert isinstance(found, Annealed)
    top, mode = best.top_k(1), found.top_k(1)
    assert top.proven.all()
    assert not mode.proven.any()
    assert (mode.log_prob <= top.log_prob + 1e-9).all()
    assert (mode.log_prob > top.log_prob - 1e-9).mean() > 0.9
    np.testing.assert_allclose(mode.log_prob[:, 0], best.log_prob(mode.codes[:, 0]), atol=1e-9)
    with pytest.warns(ApproximationWarning, match="gave no proof"):
        decided = annealed.predict(X, loss="subset")
    assert (decided == mode.codes[:, 0]).all()


def test_the_mode_is_proven_and_every_query_right():
    X, Y = data(n=60)
    model = TreeMixtureClassifier(n_trees=3).fit(X, Y)
    joint = model.predict_joint(X[:6]).distribution
    check_joint(joint)
    values = joint.log_prob(np.repeat(all_outcomes(joint.cards)[:, None], 6, axis=1))
    np.testing.assert_allclose(joint.top_k(1).log_prob[:, 0], values.max(axis=0))


def test_an_interrupt_keeps_what_there_is(monkeypatch):
    X, Y = data(n=60)
    real, calls = TreeSource.propose, []

    def propose(self, weight, seen):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, weight, seen)

    monkeypatch.setattr(TreeSource, "propose", propose)
    with pytest.warns(TupletWarning, match="interrupted after 2 of at most 5 components"):
        model = TreeMixtureClassifier(n_trees=5).fit(X, Y)
    assert len(model.weights_) == 2
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_few_rows_will_do(n):
    X, Y = data(n=n)
    for model in (TreeMixtureClassifier(), MixtureClassifier(max_components=2, random_state=0)):
        assert np.isfinite(model.fit(X, Y).predict_joint(X).log_prob(Y)).all()


def test_components_must_take_weights():
    X, Y = data(n=30)
    with pytest.raises(InputError, match="cannot take sample_weight"):
        MixtureClassifier(ChainClassifier(KNeighborsClassifier())).fit(X, Y)


def test_fractional_weights_of_repeated_rows():
    rng = np.random.default_rng(0)
    X, Y = rng.integers(2, size=(100, 2)), rng.integers(2, size=(100, 2))
    weight = rng.random(100)
    model = TreeMixtureClassifier().fit(X, Y, sample_weight=weight)
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()
    shares = fold_weights(X, Y, weight, 4)
    assert (shares <= weight[:, None]).all()
    np.testing.assert_allclose(shares.sum(axis=1), weight)


def test_components_see_names_and_types_of_columns():
    X, Y = data(n=80)
    frame = pd.DataFrame({"u": X[:, 0], "kind": np.arange(80) % 3})
    component = BayesNetClassifier(discrete_features=["kind"], discrete_as="parents", progress=False)
    model = MixtureClassifier(component, n_components=2, random_state=0).fit(frame, Y)
    assert np.isfinite(model.predict_joint(frame).log_prob(Y)).all()


def test_forests_are_ordered_by_the_edges_that_are_free():
    gains = np.full((4, 4), -np.inf)
    gains[0, 2], gains[1, 3], gains[2, 3], gains[3, 2] = 5, 3, 2.5, 0.1
    second = new_forest(gains, [((), (0,), (0,), (1,))], required=[(0, 1)])
    assert second == ((), (0,), (0,), (2,))


def test_an_interrupt_while_all_rows_are_fitted_keeps_the_mixture(monkeypatch):
    X, Y = data(n=60)

    def stopped(*args):
        raise KeyboardInterrupt

    real = growth.grow

    def grow(*args):
        answer = real(*args)
        monkeypatch.setattr(growth, "run_em", stopped)
        return answer

    monkeypatch.setattr(base, "grow", grow)
    with pytest.warns(TupletWarning, match="while its parameters were fitted"):
        model = TreeMixtureClassifier(max_trees=3).fit(X, Y)
    assert not model.converged_
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()


@pytest.mark.parametrize("settings", [{"n_trees": 2}, {}, {"estimator": GaussianNB(), "n_trees": 1}])
def test_a_mixture_grows_on_a_sample_and_is_fitted_to_all_rows(settings, monkeypatch):
    monkeypatch.setattr(base, "SAMPLE_SIZE", 150)
    X, Y = data(n=400)
    model = TreeMixtureClassifier(**settings).fit(X, Y)
    assert model.responsibilities_.shape == (400, len(model.parents_))
    np.testing.assert_allclose(model.responsibilities_.sum(axis=1), 1)
    never_falls(model.log_likelihood_path_)
    assert abs(model.growth_paths_[-1][-1]) < 0.6 * abs(model.log_likelihood_path_[-1])


def test_any_mixture_grows_on_a_sample(monkeypatch):
    monkeypatch.setattr(base, "SAMPLE_SIZE", 60)
    X, Y = data(n=120)
    model = MixtureClassifier(n_components=2, random_state=0).fit(X, Y)
    assert model.responsibilities_.shape == (120, 2)
    monkeypatch.setattr(growth, "run_em", interrupted_after(2))
    with pytest.warns(TupletWarning, match="interrupted"):
        early = MixtureClassifier(n_components=2, random_state=0).fit(X, Y)
    assert early.responsibilities_.shape == (120, 2)


def interrupted_after(n_runs):
    """EM whose runs after some are interrupted."""
    runs = []

    def run(*arguments):
        runs.append(None)
        if len(runs) > n_runs:
            raise KeyboardInterrupt
        return run_em(*arguments)

    return run
