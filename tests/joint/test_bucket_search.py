"""The compiled search for the best outcomes of factor graphs, against enumeration and elimination."""

from dataclasses import replace

import numpy as np
import pytest

from rule_study import study
from tuplet.joint import FactorGraph, Search
from tuplet.joint import graph as graph_module
from tuplet.joint.bucket_search import Best, BucketSearch, _unary_weights, best_outcomes
from tuplet.joint.inference import Exact, Factor, Problem, RuleFactor


def graph_of(log_beliefs, rules, **settings):
    cards = tuple(belief.shape[1] for belief in log_beliefs)
    beliefs = [Factor((j,), belief.T) for j, belief in enumerate(log_beliefs)]
    return FactorGraph(cards, [*beliefs, *rules], len(log_beliefs[0]), **settings)


def log_weights(joint):
    """Log-weights of all outcomes, best first, (n, outcomes)."""
    return -np.sort(-(joint._log_table() + joint._log_normalizer[:, None]), axis=1)


@pytest.mark.parametrize("width", [4, 64, 2**14])
def test_the_search_finds_the_best_outcomes_however_narrow_its_tables(width):
    for seed in range(4):
        beliefs, rules = study(7, 8, 15, seed)
        rules = tuple(replace(rule, p=(1.0, 0.9, 0.2)[k % 3]) for k, rule in enumerate(rules))
        joint = graph_of(beliefs, rules)
        best = Best(np.full((15, 5, 7), -1), np.full((15, 5), -np.inf), np.zeros(15, bool))
        several = tuple(rule for rule in rules if len(rule.scope) > 1)
        unary = _unary_weights(joint._problem)
        nodes = BucketSearch(joint.cards, several, width).improve(unary, np.arange(15), 5, 10**6, best)
        assert (nodes >= 0).all()
        np.testing.assert_allclose(best.log_weight, log_weights(joint)[:, :5], atol=1e-9)


def test_factors_of_single_rows_are_searched_too(monkeypatch):
    monkeypatch.setattr("tuplet.joint.bucket_search.LISTED_CELLS", 100)
    rng = np.random.default_rng(0)
    cards = (2, 3, 2, 4, 2)
    scopes = [(0, 1), (1, 2, 3), (4, 3), (2, 0), (1,), ()]
    factors = []
    for place, scope in enumerate(scopes):
        table = rng.normal(size=(*(cards[v] for v in scope), 1 if place == 1 else 9))
        factors.append(Factor(scope, np.where(rng.random(table.shape) < 0.2, -np.inf, table)))
    joint = FactorGraph(cards, [*factors[:-1], Factor((), rng.normal(size=9))], 9)
    best = best_outcomes(joint._problem, 4, 10**6)
    assert best.proven.all()
    np.testing.assert_allclose(best.log_weight, log_weights(joint)[:, :4], atol=1e-9)
    np.testing.assert_allclose(joint._problem.log_weight(best.codes[:, 0][None])[0], best.log_weight[:, 0])


def test_graphs_search_beyond_a_table_size(monkeypatch):
    beliefs, rules = study(9, 9, 6, 1)
    eliminated = graph_of(beliefs, rules)
    assert not eliminated._searches
    expected = eliminated.top_k(3)
    monkeypatch.setattr(graph_module, "_ELIMINATED", 10)
    searched = graph_of(beliefs, rules)
    assert searched._searches
    found = searched.top_k(3)
    assert found.proven.all()
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_allclose(found.log_prob, expected.log_prob, atol=1e-9)
    # Where the budget ends, elimination gives the proof as long as its tables fit.
    hasty = graph_of(beliefs, rules, search=Search(max_nodes=2)).top_k(3)
    assert hasty.proven.all()
    np.testing.assert_array_equal(hasty.codes, expected.codes)


def test_modes_of_a_large_model_are_proven():
    beliefs, rules = study(30, 30, 3, 5)
    joint = graph_of(beliefs, rules, engine=Exact(max_table=2**23), search=Search(max_nodes=2**18))
    assert joint._searches
    found = best_outcomes(joint._problem, 4, 2**18)
    assert found.proven.all()
    codes, log_weight, _ = joint.engine.top_k(joint._problem, 4)
    np.testing.assert_array_equal(found.codes, codes)
    np.testing.assert_allclose(found.log_weight, log_weight, atol=1e-9)


def test_long_rules_are_bounded_without_tables():
    rng = np.random.default_rng(0)
    every = tuple(range(13))
    yes, no = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    odd = np.indices((2, 2, 2)).sum(axis=0) % 2
    rules = [
        RuleFactor(every, 0.9, q=tuple(np.array([1.0, rng.random()]) for _ in every)),
        RuleFactor(every, 0.3, q=tuple(np.array([rng.random(), 1.0]) for _ in every)),
        RuleFactor(every, 1.0, q=(no,) * 13),
        RuleFactor((0, 1, 2), 0.2, q=(yes,) * 3),
        RuleFactor((3, 7, 11), 0.8, violated=1.0 - odd),
    ]
    joint = graph_of([np.log(rng.dirichlet([1, 1], 10)) for _ in every], rules)
    assert joint._searches
    best = joint.top_k(3)
    assert best.proven.all()
    expected = -np.sort(-joint._log_table(), axis=1)[:, :3]
    np.testing.assert_allclose(best.log_prob, expected, atol=1e-9)
    atoms = joint.to_atoms()
    np.testing.assert_allclose(np.hstack(joint.marginals()), np.hstack(atoms.marginals()), atol=1e-10)


def test_a_search_without_budget_says_so(monkeypatch):
    monkeypatch.setattr(graph_module, "_ELIMINATED", 10)
    beliefs, rules = study(10, 10, 5, 3)
    log_z = graph_of(beliefs, rules)._log_normalizer
    narrow = {"engine": Exact(max_table=10), "log_normalizer": log_z}
    joint = graph_of(beliefs, rules, search=Search(max_nodes=12), **narrow)
    found = joint.top_k(3)
    assert not found.proven.any()
    np.testing.assert_allclose(joint.log_prob(found.codes[:, 0]), found.log_prob[:, 0], atol=1e-9)
    unsearched = graph_of(beliefs, rules, search=Search(max_nodes=0), **narrow).mode()
    assert not unsearched.proven.any()
    assert np.isfinite(unsearched.log_prob).all()


def test_later_stages_start_from_what_earlier_ones_found(monkeypatch):
    problem = graph_of(*study(8, 10, 10, 4))._problem
    expected = best_outcomes(problem, 3, 10**6)
    monkeypatch.setattr("tuplet.joint.bucket_search._STAGES", ((4, 10), (16, 20), (64, 10**6)))
    found = best_outcomes(problem, 3, 10**6)
    assert found.proven.all()
    np.testing.assert_array_equal(found.codes, expected.codes)


def test_contradictions_are_proven():
    yes, no = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    rules = (
        RuleFactor((0, 1), 1.0, q=(yes, yes)),
        RuleFactor((0,), 1.0, q=(no,)),
        RuleFactor((1,), 1.0, q=(no,)),
    )
    best = best_outcomes(Problem((2, 2), rules, 2, 2), 1, 100)
    assert best.proven.all()
    assert np.isneginf(best.log_weight).all()
    assert (best.codes == -1).all()
