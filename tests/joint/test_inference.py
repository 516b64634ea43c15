"""Exact elimination, belief propagation and plans, against enumeration, finite differences and pyAgrum."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from draws import examples
from tuplet.core.exceptions import ConvergenceWarning, ImpossibleEvidenceError, InputError, IntractableError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import FactorGraph
from tuplet.joint.base import all_outcomes
from tuplet.joint.inference import BeliefPropagation, Exact, Factor, Problem, RuleFactor, make_plan
from tuplet.joint.inference.plan import min_fill_order
from tuplet.testing import enumerate_joint
from tuplet.testing.strategies import factor_graphs, rule_graphs


def chain(m: int, n: int, scale: float, seed: int = 0) -> FactorGraph:
    """A chain of binary variables with normal log-factors of this scale."""
    rng = np.random.default_rng(seed)
    factors = [Factor((j, j + 1), scale * rng.normal(size=(2, 2, n))) for j in range(m - 1)]
    factors += [Factor((j,), scale * rng.normal(size=(2, n))) for j in range(m)]
    return FactorGraph((2,) * m, factors, n)


def grid(side: int, n: int, strength: float, engine=None, seed: int = 0) -> FactorGraph:
    rng = np.random.default_rng(seed)
    edges = [(i, i + 1) for i in range(side * side) if (i + 1) % side]
    edges += [(i, i + side) for i in range(side * (side - 1))]
    factors = [Factor(edge, strength * rng.normal(size=(2, 2, n))) for edge in edges]
    factors += [Factor((i,), rng.normal(size=(2, n))) for i in range(side * side)]
    return FactorGraph((2,) * (side * side), factors, n, engine=engine or Exact())


@examples(25)
@given(factor_graphs())
def test_factor_marginals_equal_enumeration(joint):
    problem, engine = joint._problem, Exact()
    every = all_outcomes(problem.cards)
    log_weight = problem.log_weight(np.broadcast_to(every[:, None], (len(every), problem.n, every.shape[1])))
    weight = np.exp(log_weight - log_weight.max(axis=0))
    posterior = (weight / weight.sum(axis=0)).T
    for factor, table in zip(problem.factors, engine.factor_marginals(problem), strict=True):
        expected = np.zeros_like(table)
        for outcome, column in zip(every, posterior.T, strict=True):
            expected[tuple(outcome[list(factor.scope)])] += column
        np.testing.assert_allclose(table, expected, atol=1e-10)


def test_factor_marginals_are_the_gradient_of_the_log_partition():
    joint = grid(2, n=2, strength=1.0)
    problem, engine, step = joint._problem, Exact(), 1e-5
    for position, gradient in enumerate(engine.factor_marginals(problem)):
        factor = problem.factors[position]
        for cell in itertools.product(*map(range, factor.log_table.shape[:-1])):
            values = []
            for sign in (1, -1):
                table = factor.log_table.copy()
                table[cell] += sign * step
                factors = list(problem.factors)
                factors[position] = Factor(factor.scope, table)
                values.append(engine.log_partition(Problem(problem.cards, tuple(factors), 2, 4)))
            np.testing.assert_allclose((values[0] - values[1]) / (2 * step), gradient[cell], atol=1e-8)


@examples(25)
@given(factor_graphs(), st.integers(1, 3))
def test_summing_out_hidden_variables_leaves_the_same_weights(joint, chunk_rows):
    problem = joint._problem
    left = Exact(chunk_cells=chunk_rows).sum_hidden(problem)
    assert all(v < problem.n_visible for factor in left for v in factor.scope)
    visible = Problem(joint.cards, tuple(left), problem.n, problem.n_visible)
    visible.validate()
    outcomes = all_outcomes(joint.cards)
    codes = np.broadcast_to(outcomes[:, None], (len(outcomes), problem.n, outcomes.shape[1]))
    every = all_outcomes(problem.cards)
    log_weight = problem.log_weight(np.broadcast_to(every[:, None], (len(every), problem.n, every.shape[1])))
    expected = logsumexp(log_weight.reshape(len(outcomes), -1, problem.n), axis=1)
    np.testing.assert_allclose(visible.log_weight(codes), expected, rtol=1e-12, atol=1e-9)
    ordered = Problem(joint.cards, tuple(f.ordered() for f in left), problem.n, problem.n_visible)
    np.testing.assert_array_equal(ordered.log_weight(codes), visible.log_weight(codes))


@examples(25)
@given(factor_graphs(), st.integers(1, 3))
def test_chunks_of_rows_change_nothing(joint, chunk_rows):
    plan = make_plan(joint._problem.cards, joint._problem.scopes)
    small = Exact(chunk_cells=chunk_rows * sum(plan.sizes))
    whole = Exact()
    # Not bit for bit: numpy's exp rounds differently at the end of an array than inside it.
    np.testing.assert_allclose(
        small.marginals(joint._problem)[0], whole.marginals(joint._problem)[0], atol=1e-14
    )
    np.testing.assert_array_equal(small.top_k(joint._problem, 1)[0], whole.top_k(joint._problem, 1)[0])


def test_range_500_variables_with_log_factors_down_to_minus_ten_thousand():
    joint = chain(500, n=3, scale=3000.0)
    assert min(factor.log_table.min() for factor in joint.factors) < -9000
    mode = joint.mode()
    assert np.isfinite(joint._log_normalizer).all()
    assert np.isfinite(mode.log_prob).all()
    assert (mode.log_prob <= 1e-9).all()
    for marginal in joint.marginals():
        np.testing.assert_allclose(marginal.sum(axis=1), 1.0, atol=1e-9)
    assert np.isfinite(joint.log_prob(joint.sample(4, 0))).all()
    assert np.isfinite(joint.entropy()).all()
    assert np.isfinite(joint.count_marginals()).all()


def test_range_opposed_factors_that_vanish_in_linear_space():
    factors = [Factor((0,), np.array([[0.0], [-5000.0]])), Factor((0,), np.array([[-5000.0], [np.log(3.0)]]))]
    joint = FactorGraph((2,), factors, 1)
    np.testing.assert_allclose(joint.marginals()[0], [[0.25, 0.75]], atol=1e-12)


def test_log_space_and_linear_space_agree():
    mild = chain(12, n=4, scale=1.0)
    # One more variable with an extreme but harmless factor sends the same numbers through log space.
    extreme = Factor((12,), np.array([[0.0], [-2000.0]]))
    joint = FactorGraph((2,) * 13, [*mild.factors, extreme], 4)
    for a, b in zip(mild.marginals(), joint.marginals(), strict=False):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_contradictory_factors_are_a_clear_error():
    factors = [
        Factor((0,), np.array([[0.0, 0.0], [-np.inf, 0.0]])),
        Factor((0,), np.array([[-np.inf, 0.0], [0.0, 0.0]])),
    ]
    joint = FactorGraph((2,), factors, 2)
    for query in (joint.marginals, joint.mode, joint.entropy, lambda: joint.sample(1, 0)):
        with pytest.raises(ImpossibleEvidenceError, match="row 0 contradict"):
            query()


def test_impossible_evidence_is_a_clear_error():
    joint = FactorGraph((2, 2), [Factor((0, 1), np.array([[0.0, -np.inf], [0.0, 0.0]])[..., None])], 1)
    with pytest.raises(ImpossibleEvidenceError, match="probability zero"):
        joint.condition([0, 1])


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (Factor((0, 5), np.zeros((2, 2, 1))), "must have a table"),
        (Factor((0,), np.zeros((3, 1))), "must have a table"),
        (Factor((0,), np.zeros((2, 7))), "must have a table"),
        (Factor((0, 0), np.zeros((2, 2, 1))), "must not repeat"),
    ],
)
def test_bad_factors_are_refused(factor, message):
    with pytest.raises(InputError, match=message):
        FactorGraph((2, 2), [factor], 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_tables_that_are_not_numbers_are_refused(value):
    joint = FactorGraph((2, 2), [Factor((0, 1), np.array([[0.0, value], [0.0, 1.0]])[..., None])], 1)
    for query in (
        joint.marginals,
        joint.mode,
        lambda: joint.log_prob([0, 0]),
        lambda: joint.condition([0, -1]),
    ):
        with pytest.raises(InputError, match="nan or"):
            query()


def test_too_large_a_table_names_the_variable_the_size_and_the_way_out():
    joint = FactorGraph(
        (50, 50, 50), [Factor((0, 1, 2), np.zeros((50, 50, 50, 1)))], 1, engine=Exact(max_table=1000)
    )
    with pytest.raises(IntractableError, match=r"eliminating variable \d needs a table of 125,000 cells"):
        joint.marginals()


def test_plans_are_made_once_per_structure():
    first, second = grid(3, 2, 1.0, seed=0), grid(3, 5, 1.0, seed=1)
    assert Exact().plan(first._problem, "") is Exact().plan(second._problem, "")


def test_min_fill_finds_the_width_of_known_graphs():
    tree = tuple((j, (j - 1) // 2) for j in range(1, 31))
    assert make_plan((2,) * 31, tree).width == 1
    cycle = tuple((j, (j + 1) % 9) for j in range(9))
    assert make_plan((2,) * 9, cycle).width == 2
    assert sorted(min_fill_order((2,) * 9, cycle)) == list(range(9))
    complete = tuple(itertools.combinations(range(6), 2))
    assert make_plan((2,) * 6, complete).width == 5


@examples(25)
@given(rule_graphs())
def test_noisy_or_tables_give_the_formula(joint):
    """A rule by itself: p (1 - Q) + (1 - p) Q with Q the product of the inhibitions."""
    rng = np.random.default_rng(0)
    cards = joint.cards
    q = [rng.random(card) for card in cards]
    tables = RuleFactor(tuple(range(len(cards))), 0.9, q=tuple(q)).along_hidden(len(cards))
    rule = FactorGraph(cards, tables, 1, (2,) * len(cards))
    outcomes = all_outcomes(cards)
    product = np.prod([q[j][outcomes[:, j]] for j in range(len(cards))], axis=0)
    weight = 0.9 * (1 - product) + 0.1 * product
    np.testing.assert_allclose(enumerate_joint(rule)[0], weight / weight.sum(), atol=1e-12)
    np.testing.assert_allclose(
        np.exp(rule.log_prob(outcomes[:, None]))[:, 0], weight / weight.sum(), atol=1e-12
    )


def test_belief_propagation_is_exact_on_trees():
    exact = chain(8, n=5, scale=1.0)
    loopy = FactorGraph(exact.cards, exact.factors, 5, engine=BeliefPropagation(tol=1e-12))
    np.testing.assert_allclose(np.hstack(loopy.marginals()), np.hstack(exact.marginals()), atol=1e-9)
    np.testing.assert_array_equal(loopy.mode().codes, exact.mode().codes)
    np.testing.assert_allclose(loopy.log_prob([0] * 8), exact.log_prob([0] * 8), atol=1e-8)
    assert not loopy.mode().proven.any()
    assert loopy.tolerance == np.inf


def test_belief_propagation_comes_close_on_a_weak_grid():
    exact = grid(4, n=6, strength=0.3)
    loopy = grid(4, n=6, strength=0.3, engine=BeliefPropagation())
    assert np.abs(np.hstack(loopy.marginals()) - np.hstack(exact.marginals())).max() < 0.02
    np.testing.assert_array_equal(loopy.top_k(3).codes[:, 0], exact.mode().codes)
    frequencies = loopy.sample(300, 0).mean(axis=0)
    truth = np.stack([marginal[:, 1] for marginal in exact.marginals()], axis=1)
    assert np.abs(frequencies - truth).max() < 0.15


def test_belief_propagation_says_which_rows_did_not_converge():
    joint = grid(5, n=8, strength=4.0, engine=BeliefPropagation(max_iter=6, damping=0.0))
    info = joint.engine.convergence(joint._problem)
    assert info.converged.shape == (8,)
    assert 0 < info.converged.sum() < 8
    assert (info.residual[~info.converged] > joint.engine.tol).all()
    with pytest.warns(ConvergenceWarning, match=rf"for {(~info.converged).sum()} of 8 rows"):
        joint.marginals()


def test_belief_propagation_keeps_structural_zeros_and_hidden_variables():
    rule = RuleFactor((0, 1, 2), 0.95, q=(np.array([1.0, 0.2]),) * 3).along_hidden(3)
    factors = [Factor((j,), np.log([[p], [1 - p]])) for j, p in enumerate((0.6, 0.7, 0.65))]
    factors.append(Factor((0, 1), np.array([[0.0, 0.0], [0.0, -np.inf]])[..., None]))
    exact = FactorGraph((2, 2, 2), [*factors, *rule], 1, (2, 2, 2))
    loopy = FactorGraph((2, 2, 2), [*factors, *rule], 1, (2, 2, 2), engine=BeliefPropagation())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.abs(np.hstack(loopy.marginals()) - np.hstack(exact.marginals())).max() < 0.1
        # Single flips may end in another good outcome, never in the forbidden one.
        assert exact.log_prob(loopy.mode().codes)[0] > exact.mode().log_prob[0] - 0.5
        assert loopy.log_prob([1, 1, UNKNOWN])[0] < -100


def test_pyagrum_agrees_on_marginals():
    gum = pytest.importorskip("pyagrum")
    rng = np.random.default_rng(3)
    cards = tuple(int(card) for card in rng.integers(2, 5, size=12))
    network = gum.BayesNet()
    for v, card in enumerate(cards):
        network.add(gum.LabelizedVariable(f"v{v}", "", card))
    factors = []
    for v in range(12):
        parents = sorted(int(p) for p in rng.permutation(v)[:3])
        for parent in parents:
            network.addArc(f"v{parent}", f"v{v}")
        table = rng.dirichlet(np.ones(cards[v]), size=tuple(cards[p] for p in parents))
        for values in itertools.product(*(range(cards[p]) for p in parents)):
            network.cpt(f"v{v}")[{f"v{p}": x for p, x in zip(parents, values, strict=True)}] = table[
                values
            ].tolist()
        factors.append(Factor((*parents, v), np.log(table)[..., None]))
    likelihoods = [rng.random((card, 5)) + 0.05 for card in cards]
    factors += [Factor((v,), np.log(table)) for v, table in enumerate(likelihoods)]
    ours = FactorGraph(cards, factors, 5).marginals()
    engine = gum.ShaferShenoyInference(network)
    for row in range(5):
        engine.setEvidence(
            {f"v{v}": (t[:, row] / t[:, row].max()).tolist() for v, t in enumerate(likelihoods)}
        )
        engine.makeInference()
        for v in range(12):
            np.testing.assert_allclose(ours[v][row], engine.posterior(f"v{v}").toarray(), atol=1e-10)


def test_marginal_map_by_search_equals_the_constrained_elimination():
    """Hidden variables tie all labels together: summing is cheap, maximising is not."""
    rng = np.random.default_rng(0)
    factors = [Factor((j,), rng.normal(size=(3, 4))) for j in range(7)]
    factors += RuleFactor(tuple(range(7)), 0.95, q=tuple(rng.random((7, 3)))).along_hidden(7)
    factors += RuleFactor((0, 3, 5), 0.9, q=tuple(rng.random((3, 3)))).along_hidden(14)
    exact = FactorGraph((3,) * 7, factors, 4, (2,) * 10)
    searched = FactorGraph((3,) * 7, factors, 4, (2,) * 10, engine=Exact(max_table=300))
    with pytest.raises(IntractableError):
        searched.engine.top_k(searched._problem, 3)
    ranking, truth = searched.top_k(3), exact.top_k(3)
    assert ranking.proven.all()
    np.testing.assert_array_equal(ranking.codes, truth.codes)
    np.testing.assert_allclose(ranking.log_prob, truth.log_prob, atol=1e-9)


def test_overflow_is_caught_as_underflow_is():
    """A thousand uniform leaves multiply to 2^1100 before anything is rescaled."""
    star = FactorGraph((2,) * 1101, [Factor((0, j), np.zeros((2, 2, 1))) for j in range(1, 1101)], 1)
    np.testing.assert_allclose(np.hstack(star.marginals()), 0.5)
    np.testing.assert_allclose(star.entropy(), 1101 * np.log(2))
    known = FactorGraph(star.cards, star.factors, 1, log_normalizer=1101 * np.log(2))
    assert 0.4 < known.sample(500, 0)[:, 0, 0].mean() < 0.6


def test_underflow_of_a_product_of_moderate_factors():
    """No factor is extreme by itself, so only the processor's flag tells."""
    tables = ([0.0, -400.0], [0.0, -400.0], [-400.0, 0.0], [-400.0, np.log(3.0)])
    joint = FactorGraph((2,), [Factor((0,), np.array(table)[:, None]) for table in tables], 1)
    np.testing.assert_allclose(joint.marginals()[0], [[0.25, 0.75]], atol=1e-12)


def test_the_mode_is_the_first_of_the_ranking_on_ties():
    joint = FactorGraph((2, 2), [Factor((0, 1), np.array([[0.0, 1.0], [1.0, 0.0]])[..., None])], 1)
    np.testing.assert_array_equal(joint.mode().codes, joint.top_k(4).codes[:, 0])


def test_tables_of_other_types_are_computed_with_in_full_precision():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2, 3, 1)).astype(np.float32)
    single = FactorGraph((2, 3), [Factor(np.array([0, 1]), table)], 1)
    double = FactorGraph((2, 3), [Factor((0, 1), table.astype(float))], 1)
    np.testing.assert_array_equal(single.marginals()[0], double.marginals()[0])
    whole = FactorGraph((2, 2), [Factor([0, 1], np.array([[1, 0], [0, 1]])[..., None])], 1)
    assert whole.mode().log_prob.dtype == float


def test_rows_with_many_patterns_of_missing_labels_agree_with_one_by_one():
    joint = chain(9, n=40, scale=1.0)
    rng = np.random.default_rng(0)
    codes = np.where(rng.random((40, 9)) < 0.5, UNKNOWN, rng.integers(0, 2, (40, 9)))
    expected = [joint[i].log_prob(codes[i])[0] for i in range(40)]
    np.testing.assert_allclose(joint.log_prob(codes), expected, atol=1e-12)


def test_the_plain_order_is_taken_where_it_is_better():
    side = 16
    edges = [(i, i + 1) for i in range(side * side) if (i + 1) % side]
    edges += [(i, i + side) for i in range(side * (side - 1))]
    assert max(make_plan((2,) * side**2, tuple(edges)).sizes) <= 2 ** (side + 1)


def test_memory_of_all_kept_tables_is_bounded():
    band = [Factor((j, j + 1, j + 2), np.zeros((8, 8, 8, 1))) for j in range(60)]
    joint = FactorGraph((8,) * 62, band, 1, engine=Exact(max_table=600))
    assert np.isfinite(joint.engine.log_partition(joint._problem)).all()
    with pytest.raises(IntractableError, match="in all"):
        joint.marginals()


@pytest.mark.parametrize("arguments", [{"max_table": 0}, {"chunk_cells": -1}])
def test_engines_refuse_nonsense(arguments):
    with pytest.raises(InputError, match="must be positive"):
        Exact(**arguments)
