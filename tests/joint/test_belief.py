"""Belief propagation: exact on forests, honest on cycles."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from tuplet.core.exceptions import ConvergenceWarning, ImpossibleEvidenceError, InputError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import FactorGraph
from tuplet.joint.inference import BeliefPropagation, Exact, Factor, Problem
from tuplet.joint.inference.belief import _all_flips, _flip_weights
from tuplet.joint.inference.messages import MAX, SUM, Messages
from tuplet.joint.inference.pairs import PairGraph
from tuplet.testing.strategies import factor_graphs

INF = np.inf
EQUAL = np.array([[0.0, -INF], [-INF, 0.0]])[..., None]
DIFFERENT = np.array([[-INF, 0.0], [0.0, -INF]])[..., None]


def unary(*tables: list[float], engine=None) -> FactorGraph:
    """One variable with several factors over it."""
    factors = [Factor((0,), np.array(table)[:, None]) for table in tables]
    return FactorGraph((len(tables[0]),), factors, 1, engine=engine or BeliefPropagation())


def repulsive(m: int, strength: float) -> Problem:
    """Every two of m binary variables prefer to differ, which cannot please all of them."""
    table = strength * np.array([[-1.0, 1.0], [1.0, -1.0]])[..., None]
    factors = [Factor(pair, table) for pair in itertools.combinations(range(m), 2)]
    factors += [Factor((v,), np.array([[0.1], [0.0]])) for v in range(m)]
    return Problem((2,) * m, tuple(factors), 1, m)


def with_engine(joint: FactorGraph, engine: BeliefPropagation) -> FactorGraph:
    return FactorGraph(joint.cards, joint.factors, joint.n, joint.hidden_cards, engine)


@st.composite
def forests(draw: st.DrawFn) -> FactorGraph:
    """Factors that form a forest, with others inside their scopes, zeros and hidden variables."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_hidden = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    cards = tuple(int(card) for card in rng.integers(1, 4, size=draw(st.integers(1, 5)) + n_hidden))
    place = rng.permutation(len(cards))
    scopes, reached = [], 1
    while reached < len(cards):
        fresh = place[reached : reached + int(rng.integers(1, 3))]
        if rng.random() < 0.8:  # otherwise a new tree begins
            scopes.append((place[rng.integers(reached)], *fresh))
        reached += len(fresh)
    for scope in list(scopes):
        scopes += [tuple(rng.permutation(scope)[: rng.integers(0, 4)]) for _ in range(rng.integers(0, 3))]
    scopes += [(v,) for v in range(len(cards)) if rng.random() < 0.5]
    factors = []
    for scope in scopes:
        shape = (*(cards[v] for v in scope), n if rng.random() < 0.6 else 1)
        forbidden = (rng.random(shape) < 0.2) & (np.indices(shape)[:-1].sum(axis=0) > 0) if scope else False
        table = rng.choice([2.0, 1000.0]) * rng.normal(size=shape)
        factors.append(Factor(tuple(int(v) for v in scope), np.where(forbidden, -INF, table)))
    m = len(cards) - n_hidden
    return FactorGraph(cards[:m], factors, n, cards[m:])


@examples(40)
@given(forests())
def test_exact_on_forests(exact):
    loopy = with_engine(exact, BeliefPropagation(tol=1e-10))
    scale = 1 + np.abs(exact._log_normalizer).max()
    np.testing.assert_allclose(np.hstack(loopy.marginals()), np.hstack(exact.marginals()), atol=1e-6)
    np.testing.assert_allclose(loopy._log_normalizer, exact._log_normalizer, atol=1e-10 * scale)
    info = loopy.engine.convergence(loopy._problem)
    assert info.iterations == 1
    assert info.converged.all()
    best = loopy.mode()
    np.testing.assert_allclose(exact.log_prob(best.codes), best.log_prob, atol=1e-6)
    if not exact.hidden_cards:
        np.testing.assert_allclose(best.log_prob, exact.mode().log_prob, atol=1e-6)
    assert np.isfinite(exact.log_prob(loopy.sample(3, 0))).all()


@examples(25)
@given(factor_graphs(), st.integers(1, 3))
def test_shapes_and_ranges_on_any_graph(joint, k):
    loopy = with_engine(joint, BeliefPropagation(max_iter=30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        marginals, ranking, draws = loopy.marginals(), loopy.top_k(k), loopy.sample(2, 0)
        assert np.isfinite(loopy._log_normalizer).all()  # all zeros is always possible here
    for marginal, card in zip(marginals, joint.cards, strict=True):
        assert marginal.shape == (joint.n, card)
        assert (marginal >= 0).all()
        np.testing.assert_allclose(marginal.sum(axis=1), 1.0, atol=1e-9)
    for codes in (ranking.codes, draws):
        assert ((codes >= UNKNOWN) & (codes < np.array(joint.cards))).all()
    assert ranking.codes.shape == (joint.n, min(k, joint.n_outcomes), len(joint.cards))
    assert (ranking.log_prob[:, :-1] >= ranking.log_prob[:, 1:]).all()
    assert not ranking.proven.any()
    assert draws.shape == (2, joint.n, len(joint.cards))


def test_impossible_outweighs_any_finite_preference():
    joint = unary([0.0, -INF], [-800.0, 0.0], [-800.0, 0.0])
    np.testing.assert_array_equal(joint.marginals()[0], [[1.0, 0.0]])
    np.testing.assert_array_equal(joint.mode().codes, [[0]])


def test_opposed_preferences_cancel_exactly():
    joint = unary([0.0, -5000.0], [-5000.0, np.log(3.0)])
    np.testing.assert_allclose(joint.marginals()[0], [[0.25, 0.75]], atol=1e-12)


def test_opposed_preferences_cancel_exactly_across_a_chain():
    far = np.array([[0.0], [-1e7]])
    factors = [Factor((j, j + 1), EQUAL) for j in range(3)]
    factors += [Factor((0,), far), Factor((3,), far[::-1] + np.log([[1.0], [3.0]]))]
    joint = FactorGraph((2,) * 4, factors, 1, engine=BeliefPropagation())
    for marginal in joint.marginals():
        np.testing.assert_allclose(marginal, [[0.25, 0.75]], atol=1e-8)


def test_factors_over_the_same_or_nested_scopes_are_no_cycle():
    rng = np.random.default_rng(0)
    factors = [
        Factor((0, 1), 2 * rng.normal(size=(2, 3, 1))),
        Factor((1, 0), 2 * rng.normal(size=(3, 2, 4))),
        Factor((2, 1, 0), 2 * rng.normal(size=(2, 3, 2, 1))),
        Factor((0, 2), 2 * rng.normal(size=(2, 2, 4))),
        Factor((), rng.normal(size=4)),
    ]
    exact = FactorGraph((2, 3, 2), factors, 4)
    loopy = with_engine(exact, BeliefPropagation())
    np.testing.assert_allclose(np.hstack(loopy.marginals()), np.hstack(exact.marginals()), atol=1e-12)
    np.testing.assert_allclose(loopy._log_normalizer, exact._log_normalizer, atol=1e-12)


def test_variables_with_one_value_close_no_cycle():
    rng = np.random.default_rng(0)
    factors = [
        Factor((0, 1, 2), rng.normal(size=(2, 2, 1, 3))),
        Factor((2, 1, 3), rng.normal(size=(1, 2, 2, 3))),
    ]
    exact = FactorGraph((2, 2, 1, 2), factors, 3)
    loopy = with_engine(exact, BeliefPropagation())
    np.testing.assert_allclose(np.hstack(loopy.marginals()), np.hstack(exact.marginals()), atol=1e-12)


@pytest.mark.parametrize("extra", [[], [Factor((1, 3), DIFFERENT)]], ids=["forest", "cycle"])
def test_the_mode_is_possible_where_values_must_go_together(extra):
    factors = [Factor((0, 1), EQUAL), Factor((2, 3), EQUAL), Factor((0, 2), DIFFERENT), *extra]
    joint = FactorGraph((2,) * 4, factors, 1, engine=BeliefPropagation())
    codes = joint.mode().codes[0]
    assert codes.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    hidden = FactorGraph((2,) * 4, [*factors, Factor((3, 4), np.zeros((2, 2, 1)))], 1, (2,), joint.engine)
    assert hidden.mode().codes[0].tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])


@pytest.mark.parametrize(
    "factors",
    [
        [Factor((0,), np.array([[0.0], [-INF]])), Factor((0,), np.array([[-INF], [0.0]]))],
        [Factor((0, 1), EQUAL), Factor((1, 0), DIFFERENT)],
        [
            Factor((0,), np.array([[0.0], [-INF]])),
            Factor((0, 1), EQUAL),
            Factor((1,), np.array([[-INF], [0.0]])),
        ],
        [Factor((), np.array([-INF]))],
        [
            *(Factor((v, (v + 1) % 3), EQUAL) for v in range(3)),
            Factor((0,), np.array([[0.0], [-INF]])),
            Factor((2,), np.array([[-INF], [0.0]])),
        ],
    ],
    ids=["unary", "nested", "chain", "constant", "cycle"],
)
def test_contradictions_are_a_clear_error(factors):
    joint = FactorGraph((2, 2, 2), factors, 1, engine=BeliefPropagation())
    np.testing.assert_array_equal(joint.engine.log_partition(joint._problem), [-INF])
    for query in (joint.marginals, joint.mode, lambda: joint.sample(1, 0)):
        with pytest.raises(ImpossibleEvidenceError, match="row 0 contradict"):
            query()


def test_a_contradiction_in_one_row_leaves_the_others_alone():
    ring = [Factor((v, (v + 1) % 3), EQUAL) for v in range(3)]
    table = np.array([[0.0, np.log(3.0)], [-INF, 0.0]])
    factors = (*ring, Factor((0,), table), Factor((2,), np.array([[-INF, 0.0], [0.0, 0.0]])))
    flat, log_partition = BeliefPropagation().marginals(Problem((2, 2, 2), factors, 2, 3))
    assert log_partition[0] == -INF
    assert np.isfinite(log_partition[1])
    np.testing.assert_allclose(flat[1].reshape(3, 2).sum(axis=1), 1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("scopes", [[(0, 1)], [(0, 1), (1, 2), (2, 0)]], ids=["forest", "cycle"])
@pytest.mark.filterwarnings("ignore::tuplet.core.exceptions.ConvergenceWarning")
def test_tables_that_are_not_numbers_are_refused(value, scopes):
    factors = [Factor(scope, np.array([[0.0, value], [0.0, 1.0]])[..., None]) for scope in scopes]
    with pytest.raises(InputError, match="nan or"):
        FactorGraph((2, 2, 2), factors, 1, engine=BeliefPropagation()).marginals()


def test_no_rows_give_empty_answers():
    factors = [Factor((0, 1), np.zeros((2, 3, 1))), Factor((0,), np.zeros((2, 0)))]
    joint = FactorGraph((2, 3), factors, 0, (), BeliefPropagation())
    assert [marginal.shape for marginal in joint.marginals()] == [(0, 2), (0, 3)]
    assert joint.sample(4, 0).shape == (4, 0, 2)
    assert joint.mode().codes.shape == (0, 2)
    codes, log_weight, proven = joint.engine.top_k(joint._problem, 2)
    assert (codes.shape, log_weight.shape, proven.shape) == ((0, 2, 2), (0, 2), (0,))
    assert joint.engine.convergence(joint._problem).converged.shape == (0,)


def test_a_long_chain_needs_one_iteration():
    rng = np.random.default_rng(0)
    factors = [Factor((j, j + 1), rng.normal(size=(2, 2, 2))) for j in range(299)]
    factors += [Factor((j,), rng.normal(size=(2, 2))) for j in range(300)]
    exact = FactorGraph((2,) * 300, factors, 2)
    loopy = with_engine(exact, BeliefPropagation(max_iter=1))
    np.testing.assert_allclose(np.hstack(loopy.marginals()), np.hstack(exact.marginals()), atol=1e-10)
    np.testing.assert_array_equal(loopy.mode().codes, exact.mode().codes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"damping": 1.0},
        {"damping": -0.1},
        {"damping": np.nan},
        {"max_iter": 0},
        {"tol": 0.0},
        {"tol": -1.0},
        {"chunk_cells": 0},
    ],
    ids=str,
)
def test_settings_are_checked(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=f"{name} must be"):
        BeliefPropagation(**wrong)


@pytest.mark.parametrize("m", [4, 5])
def test_damping_calms_what_oscillates_without_it(m):
    problem = repulsive(m, 1.0)
    wild = BeliefPropagation(damping=0.0).convergence(problem)
    calm = BeliefPropagation(damping=0.5).convergence(problem)
    assert not wild.converged.any()
    assert wild.residual[0] > 0.01
    assert calm.converged.all()
    with pytest.warns(ConvergenceWarning, match="for 1 of 1 rows"):
        BeliefPropagation(damping=0.0).marginals(problem)


def test_blocks_of_rows_change_nothing():
    rng = np.random.default_rng(0)
    factors = [Factor((v, (v + 1) % 4), rng.normal(size=(2, 2, 7))) for v in range(4)]
    whole = FactorGraph((2,) * 4, factors, 7, engine=BeliefPropagation())
    blocks = with_engine(whole, BeliefPropagation(chunk_cells=50))
    np.testing.assert_allclose(np.hstack(blocks.marginals()), np.hstack(whole.marginals()), atol=1e-12)
    np.testing.assert_array_equal(blocks.top_k(3).codes, whole.top_k(3).codes)
    np.testing.assert_array_equal(blocks.engine.convergence(blocks._problem).converged, True)


def test_draws_are_taken_in_blocks_and_have_the_right_frequencies(monkeypatch):
    rng = np.random.default_rng(0)
    factors = [Factor((0, 1), rng.normal(size=(2, 2, 3))), Factor((1, 2), rng.normal(size=(2, 2, 3)))]
    exact = FactorGraph((2, 2, 2), factors, 3)
    sizes, start = [], Messages.start

    def spy(problem: Problem) -> Messages:
        sizes.append(problem.n)
        return start(problem)

    monkeypatch.setattr(Messages, "start", spy)
    draws = BeliefPropagation(chunk_cells=14 * 100).sample(exact._problem, 1000, rng)
    assert max(sizes) == 100
    for j, marginal in enumerate(exact.marginals()):
        np.testing.assert_allclose((draws[..., j] == 1).mean(axis=0), marginal[:, 1], atol=0.06)
    agree = (draws[..., 0] == draws[..., 2]).mean(axis=0)
    outcomes = np.array(list(itertools.product((0, 1), repeat=3)))
    weight = np.exp(exact.log_prob(outcomes[:, None]))
    np.testing.assert_allclose(agree, weight[outcomes[:, 0] == outcomes[:, 2]].sum(axis=0), atol=0.06)


def test_belief_propagation_finds_what_exact_tables_cannot_hold():
    """A complete graph of 24 variables: exact elimination would need 2**24 cells."""
    rng = np.random.default_rng(0)
    factors = [
        Factor(pair, 0.1 * rng.normal(size=(2, 2, 1))) for pair in itertools.combinations(range(24), 2)
    ]
    joint = FactorGraph((2,) * 24, factors, 1, engine=BeliefPropagation())
    small = FactorGraph((2,) * 12, [f for f in factors if max(f.scope) < 12], 1, engine=BeliefPropagation())
    assert np.isfinite(joint.mode().log_prob).all()
    truth = FactorGraph(small.cards, small.factors, 1, engine=Exact())
    np.testing.assert_allclose(np.hstack(small.marginals()), np.hstack(truth.marginals()), atol=0.01)


@st.composite
def pair_graphs(draw: st.DrawFn) -> Problem:
    """Pairs and single variables of two to four values with cycles, shared by rows or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m, strength = draw(st.integers(1, 5)), draw(st.integers(3, 6)), draw(st.sampled_from([0.1, 0.5]))
    cards = tuple(int(card) for card in rng.integers(1, 4, size=m))
    batch = [n if draw(st.booleans()) else 1, n if draw(st.booleans()) else 1]
    factors = [Factor((v,), rng.normal(size=(cards[v], n))) for v in range(m)]
    for pair in itertools.combinations(range(m), 2):
        one, other = pair[:: rng.choice([-1, 1])]
        shape = (cards[one], cards[other], batch[rng.integers(2)])
        factors.append(Factor((one, other), strength * rng.normal(size=shape)))
    factors.append(Factor((), np.full(n, 0.3)))
    if draw(st.booleans()) and cards[0] > 1:  # evidence
        factors.append(Factor((0,), np.where(np.arange(cards[0])[:, None] == 1, 0.0, -INF)))
    return Problem(cards, tuple(factors), n, m)


def swept(engine, problem, reduce):
    """The same propagation in log space, factor by factor, with damping from the start."""
    messages = Messages.start(problem)
    info = engine._settle(messages, reduce, engine.max_iter)
    return messages, info


@examples(60)
@given(pair_graphs(), st.sampled_from([SUM, MAX]), st.sampled_from([1, 32]))
def test_compiled_pairs_end_where_sweeps_in_log_space_end(problem, reduce, rows):
    engine = BeliefPropagation(tol=1e-10, max_iter=2000)
    graph = PairGraph.of(problem)
    if graph is None:
        assert Messages.start(problem).forest
        return
    parts = [graph.rows(np.arange(problem.n)[i : i + rows]) for i in range(0, problem.n, rows)]
    settled = [part.settle(reduce is MAX, engine.damping, engine.tol, engine.max_iter) for part in parts]
    messages, info = swept(engine, problem, reduce)
    ended = np.concatenate([each.n_iter for each in settled]) > 0
    assert (ended | ~info.converged).all()
    both = ended & info.converged
    beliefs = np.concatenate([each.beliefs for each in settled], axis=1)
    np.testing.assert_allclose(beliefs[:, both], np.concatenate(messages.beliefs())[:, both], atol=1e-7)
    if reduce is SUM:
        log_partition = np.concatenate([each.log_partition for each in settled])
        np.testing.assert_allclose(log_partition[both], messages.log_partition()[both], atol=1e-7)


def test_rows_that_need_damping_get_it():
    problem = repulsive(5, 0.7)
    engine = BeliefPropagation(tol=1e-9, max_iter=5000)
    undamped = PairGraph.of(problem)._settle(False, 0.0, 1e-9, 50, False)
    assert undamped.n_iter[0] < 0
    messages, info = swept(engine, problem, SUM)
    assert info.converged.all()
    np.testing.assert_allclose(engine.marginals(problem)[0], np.concatenate(messages.beliefs()).T, atol=1e-6)
    np.testing.assert_allclose(engine.log_partition(problem), messages.log_partition(), atol=1e-6)
    assert engine.convergence(problem).iterations > 4


def test_products_that_could_underflow_stay_in_log_space():
    table = np.array([[0.0, -900.0], [-900.0, 0.0]])[..., None]
    pairs = tuple(itertools.combinations(range(3), 2))
    far = Problem((2, 2, 2), tuple(Factor(pair, table) for pair in pairs), 1, 3)
    near = Problem((2, 2, 2), tuple(Factor(pair, table / 900) for pair in pairs), 1, 3)
    impossible = near.plus([Factor((0,), np.full((2, 1), -INF))])
    zeros = Problem((2, 2, 2), tuple(Factor(pair, EQUAL) for pair in pairs), 1, 3)
    tree = Problem((2, 2, 2), near.factors[:2], 1, 3)
    wide = near.plus([Factor((0, 1, 2), np.zeros((2, 2, 2, 1)))])
    assert PairGraph.of(near) is not None
    for other in (far, impossible, zeros, tree, wide):
        assert PairGraph.of(other) is None


@examples(20)
@given(pair_graphs())
def test_flips_are_weighed_by_what_they_change(problem):
    tables = Problem(problem.cards, problem.factors[: len(problem.factors) - 1], problem.n, problem.n_visible)
    if any(not np.isfinite(factor.log_table).all() for factor in tables.factors):
        return
    codes = np.random.default_rng(0).integers(0, problem.cards, size=(2, problem.n, len(problem.cards)))
    found = _flip_weights(tables, codes, tables.log_weight(codes))
    expected = tables.log_weight(_all_flips(codes, tables.cards))
    np.testing.assert_allclose(found, expected, atol=1e-10)
