"""Rules in factor graphs: as tables, along hidden variables, and by sums whose weights may be negative."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from draws import examples
from rule_study import study
from tuplet.core.exceptions import ConvergenceWarning
from tuplet.joint import FactorGraph
from tuplet.joint.base import all_outcomes
from tuplet.joint.inference import (
    BeliefPropagation,
    Exact,
    Factor,
    Problem,
    RuleFactor,
    SignedElimination,
    choose_engine,
)
from tuplet.testing import check_joint
from tuplet.testing.strategies import rule_graphs


def problem_of(log_beliefs, rules):
    cards = tuple(belief.shape[1] for belief in log_beliefs)
    beliefs = tuple(Factor((j,), belief.T) for j, belief in enumerate(log_beliefs))
    return Problem(cards, (*beliefs, *rules), len(log_beliefs[0]), len(cards))


def assert_sums_agree(found, expected, **tolerance):
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], **tolerance or {"rtol": 0, "atol": 1e-10})


# -- rules as factors ---------------------------------------------------------------------------------------


@given(rule_graphs())
@examples(10)
def test_rules_that_run_along_hidden_variables_are_the_same_rules(joint):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuplet.joint.inference.factor._LONG", 1)
        along = replace(joint, factors=list(joint.factors))
        products = [rule for rule in along._problem.rules if rule.q is not None and rule.n_cells > 1]
        assert bool(along._problem.tabulated.hidden) == bool(products)
        check_joint(along)


def test_values_of_a_rule():
    q = (np.array([1.0, 0.2]), np.array([0.5, 1.0, 0.0]))
    rule = RuleFactor((2, 0), 0.9, q=q)
    breach = np.outer(*q)
    np.testing.assert_allclose(rule.breach_table(), breach)
    np.testing.assert_allclose(rule.table(), 0.9 - 0.8 * breach)
    codes = all_outcomes((3, 1, 2))
    np.testing.assert_allclose(np.exp(rule.at(codes)), rule.table()[codes[:, 2], codes[:, 0]])
    hard = RuleFactor((0, 1), 1.0, violated=np.eye(2))
    assert np.isneginf(hard.log_table[..., 0]).tolist() == [[True, False], [False, True]]


# -- signed sums --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_exact_engines_agree_on_the_medium_study(seed):
    problem = problem_of(*study(10, 10, 20, seed))
    assert_sums_agree(SignedElimination().marginals(problem), Exact().marginals(problem))


def test_factors_of_single_rows_and_hidden_variables_are_summed_too():
    rng = np.random.default_rng(0)
    beliefs, rules = study(6, 5, 7, 2)
    cards = tuple(belief.shape[1] for belief in beliefs)
    pairs = [Factor((j, j + 1), 100 + rng.normal(size=(cards[j], cards[j + 1], 7))) for j in (0, 3)]
    shared = Factor((4, 2), rng.normal(size=(cards[4], cards[2], 1)))
    constant = Factor((), rng.normal(size=7))
    problem = problem_of(beliefs, rules).plus([*pairs, shared, constant])
    problem = Problem(problem.cards, problem.factors, 7, 4)
    assert_sums_agree(SignedElimination().marginals(problem), Exact().marginals(problem))
    few = SignedElimination(chunk_cells=1)
    assert_sums_agree(few.marginals(problem), Exact().marginals(problem))


def test_the_large_study_is_exact():
    problem = problem_of(*study(30, 30, 3, 5))
    engine = choose_engine(problem)
    assert isinstance(engine, SignedElimination)
    assert_sums_agree(engine.marginals(problem), engine.exact.marginals(problem))


def test_lost_digits_are_noticed_and_recovered():
    # Beliefs that break all rules almost surely: 1 - Q is a difference of numbers that agree in 11 digits.
    yes, no = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    rules = [RuleFactor(scope, 1.0, q=(yes,) * 3) for scope in [(0, 1, 2), (1, 2, 3), (2, 3, 4)]]
    rules.append(RuleFactor((0, 2, 4), 1.0, q=(yes, no, yes)))
    tiny = np.array([1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
    problem = problem_of([np.log(np.stack([1 - tiny, tiny], axis=1))] * 5, rules)
    joint = FactorGraph(problem.cards, problem.factors, 5)
    table = joint._log_table() + joint._log_normalizer[:, None]
    peak = table.max(axis=1)
    expected = peak + np.log(np.exp(table - peak[:, None]).sum(axis=1))
    for engine in (Exact(), SignedElimination()):
        marginals, log_z = engine.marginals(problem)
        np.testing.assert_allclose(marginals, np.hstack(joint.to_atoms().marginals()), rtol=0, atol=1e-10)
        np.testing.assert_allclose(log_z, expected, rtol=1e-10)


def test_digits_that_both_passes_lose_are_noticed_too():
    # f is about 1e-8 everywhere, a difference of numbers near 1; shares add up to one all the same.
    rng = np.random.default_rng(3)
    cards = (2, 2, 2, 3)
    rule = RuleFactor((0, 1, 2, 3), 1 - 1e-8, q=tuple(1 - 1e-8 * rng.random(card) for card in cards))
    problem = problem_of([np.log(rng.dirichlet(np.ones(card), 5)) for card in cards], [rule])
    marginals, _, error = SignedElimination().attempt(problem, np.float64)
    expected = Exact().marginals(problem)
    actual = np.abs(marginals - expected[0]).max(axis=1)
    assert actual.max() > 1e-11
    assert (error > np.maximum(actual, 1e-10)).all()
    assert_sums_agree(SignedElimination().marginals(problem), expected)


@pytest.mark.parametrize("seed", range(3))
def test_the_estimated_error_bounds_the_error(seed):
    problem = problem_of(*study(10, 10, 30, seed))
    marginals, _, error = SignedElimination().attempt(problem, np.float64)
    actual = np.abs(marginals - Exact().marginals(problem)[0]).max(axis=1)
    assert (actual <= error + 1e-15).all()


# -- which engine -------------------------------------------------------------------------------------------


def test_sums_that_do_not_fit_are_estimated():
    problem = problem_of(*study(10, 10, 2, 0))
    engine = choose_engine(problem, max_cells=10)
    assert isinstance(engine, BeliefPropagation)
    joint, exact = (FactorGraph(problem.cards, problem.factors, 2, engine=e) for e in (engine, Exact()))
    assert joint.tolerance == np.inf
    flat, expected = np.hstack(joint.marginals()), np.hstack(exact.marginals())
    assert np.corrcoef(flat.ravel(), expected.ravel())[0, 1] > 0.98
    # The most probable outcome is exact all the same, though its probability is an estimate.
    np.testing.assert_array_equal(joint.mode().codes, exact.mode().codes)
    assert joint.mode().proven.all()


def test_the_cheapest_engine_is_chosen():
    q = np.array([1.0, 0.5])
    short = [RuleFactor((j, j + 1), 0.9, q=(q, q)) for j in range(9)]
    assert isinstance(choose_engine(Problem((2,) * 10, tuple(short), 1, 10)), Exact)
    long = [RuleFactor(tuple(range(11)), p, q=(q,) * 11) for p in (0.6, 0.7, 0.8)]
    assert isinstance(choose_engine(Problem((2,) * 11, tuple(long), 1, 11)), SignedElimination)


def test_rows_on_which_belief_propagation_settles_are_told():
    problem = problem_of(*study(8, 8, 4, 1))
    assert FactorGraph(problem.cards, problem.factors, 4, engine=SignedElimination()).converged.all()
    hasty = BeliefPropagation(max_iter=1, tol=1e-9)
    joint = FactorGraph(problem.cards, problem.factors, 4, engine=hasty)
    with pytest.warns(ConvergenceWarning, match="of 4 rows"):
        joint.marginals()
    assert not joint.converged.any()
    assert joint[[0, 2]].converged.shape == (2,)


# -- draws --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [Exact(max_table=2**23), Exact(max_table=8)])
def test_draws_of_a_large_model_follow_its_marginals(exact):
    problem = problem_of(*study(20, 20, 1, 6))
    joint = FactorGraph(problem.cards, problem.factors, 1, engine=SignedElimination(exact))
    drawn = joint.sample(400, rng=0)
    for j, marginal in enumerate(joint.marginals()):
        share = np.bincount(drawn[:, 0, j], minlength=joint.cards[j]) / 400
        assert np.abs(share - marginal[0]).max() < 0.1  # four standard errors


# -- thousands of variables ---------------------------------------------------------------------------------


def many(scopes, n_variables, p):
    """Yes/no variables of which nothing is known, and rules that one of some variables is yes."""
    yes = np.array([1.0, 0.0])
    rules = [RuleFactor(tuple(scope), p, q=(yes,) * len(scope)) for scope in scopes]
    return problem_of(np.log(np.full((n_variables, 1, 2), 0.5)), rules)


@pytest.mark.parametrize("engine", [Exact(), SignedElimination()])
def test_sums_over_a_thousand_variables_do_not_overflow(engine):
    problem = many([range(8 * k, 8 * k + 8) for k in range(10)], 1300, 0.9)
    broken = 0.5**8
    holds = 0.9 * (1 - broken) + 0.1 * broken
    flat, log_z = engine.marginals(problem)
    np.testing.assert_allclose(log_z, 10 * np.log(holds), rtol=1e-10)
    # A label of a rule: yes in half of all outcomes, and then the rule holds.
    np.testing.assert_allclose(flat[0, 1:160:2], 0.45 / holds, rtol=1e-10)
    np.testing.assert_allclose(flat[0, 160:], 0.5)


@pytest.mark.parametrize("engine", [Exact(), SignedElimination()])
def test_a_rule_over_a_thousand_variables_does_not_overflow(engine):
    flat, log_z = engine.marginals(many([range(1100)], 1100, 0.7))
    np.testing.assert_allclose(log_z, np.log(0.7))
    np.testing.assert_allclose(flat, 0.5)


def test_beliefs_need_not_be_normalised():
    beliefs, rules = study(12, 6, 3, 0)
    for engine in (Exact(), SignedElimination()):
        plain = engine.log_partition(problem_of(beliefs, rules))
        scaled = engine.log_partition(problem_of([belief + 3.0 for belief in beliefs], rules))
        np.testing.assert_allclose(scaled, plain + 36.0)
