import itertools
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from structure_oracle import (
    all_networks,
    best_score,
    local_scores,
    network_of,
    network_scores,
    random_scores,
    restrict,
)
from tuplet.core.exceptions import InputError, IntractableError, MissingDependencyError
from tuplet.core.typing import UNKNOWN
from tuplet.structure import (
    LocalScores,
    best_forest,
    best_network,
    find_dag,
    is_acyclic,
    moral_width,
    score_of,
    search,
    search_bounded,
    search_orders,
    solve_integer,
)
from tuplet.structure.integer import LEAST_EXCESS, cluster_cut, violated_clusters
from tuplet.structure.kernels import climb
from tuplet.structure.search import drop_hopeless, group_bound, lift_parents, project, strong_components
from tuplet.structure.trees import listed_forest

few = examples(25)


@pytest.fixture(scope="module")
def some_scores():
    """Problems of 10 variables whose best networks are known."""
    problems = [
        random_scores(np.random.default_rng(seed), 10, 2, keep=keep) for seed in (1, 2) for keep in (0.2, 1)
    ]
    return [(scores, score_of(best_network(scores), scores)) for scores in problems]


def weights_of(scores, parents):
    """The choice of families that makes up a network, as 0 and 1."""
    chosen = [scores.members(f) == parents[scores.children[f]] for f in range(len(scores))]
    return np.array(chosen, dtype=float)


# The exact search


@given(local_scores())
@few
def test_no_network_of_four_variables_is_better(scores):
    found = best_network(scores)
    assert is_acyclic(found)
    assert score_of(found, scores) == pytest.approx(best_score(scores), abs=1e-12)


def test_no_network_of_five_variables_is_better():
    assert len(all_networks(5)) == 29281  # Robinson (1977), OEIS A003024
    for seed in range(50):
        scores = random_scores(np.random.default_rng(seed), 5, keep=1.0 if seed % 2 else 0.3)
        assert score_of(best_network(scores), scores) == pytest.approx(best_score(scores), abs=1e-12)


@pytest.mark.parametrize("n_low", [0, 1, 3, 7])
def test_cutting_the_sets_into_high_and_low_parts_changes_nothing(monkeypatch, some_scores, n_low):
    monkeypatch.setattr("tuplet.structure.search._LOW", n_low)
    for scores, best in some_scores:
        assert score_of(best_network(scores), scores) == pytest.approx(best)


def test_exact_search_knows_its_limits(some_scores):
    scores, _ = some_scores[0]
    with pytest.raises(IntractableError, match="10 variables needs a table of 1,024 sets"):
        best_network(scores, max_variables=9)
    assert best_network(scores, deadline=time.monotonic() - 1) is None
    with pytest.raises(InputError, match="variable 0, variable 1 need each other"):
        best_network(LocalScores.of([{(1,): 0.0}, {(0,): 0.0}]))


# Orders


@given(local_scores(always_empty=False), st.integers(0, 100))
@few
def test_order_search_finds_the_best_of_few(scores, seed):
    best = best_score(scores)
    if best > -np.inf:
        parents, score = search_orders(scores, random_state=seed)
        assert is_acyclic(parents)
        assert score == pytest.approx(score_of(parents, scores), abs=1e-12)
        assert score == pytest.approx(best, abs=1e-9)


def order_score(scores, order):
    total = 0.0
    for place, child in enumerate(order):
        before = set(order[:place])
        total += max(value for members, value in scores.candidates(child) if set(members) <= before)
    return total


def test_a_climb_ends_where_no_insertion_helps(some_scores):
    for scores, _ in some_scores:
        order, families = np.arange(10), np.empty(10, dtype=np.int64)
        before = order_score(scores, order.tolist())
        assert climb(order, scores.starts, scores.masks, scores.values, families, 1e-9)
        reached = order_score(scores, order.tolist())
        assert before < reached == pytest.approx(scores.values[families].sum())
        for p, q in itertools.product(range(10), repeat=2):
            moved = np.insert(np.delete(order, p), q, order[p])
            assert order_score(scores, moved.tolist()) <= reached + 1e-9


def test_order_search_is_reproducible_and_heeds_the_clock(some_scores):
    for scores, best in some_scores:
        first = search_orders(scores, random_state=3)
        assert first == search_orders(scores, random_state=3)
        assert first[1] == pytest.approx(best)
        hurried = search_orders(scores, random_state=3, deadline=time.monotonic() - 1)
        assert hurried == search_orders(scores, random_state=3, n_starts=1)


@given(local_scores(always_empty=False), st.integers(0, 3))
@examples(25)
def test_searches_score_no_less_than_the_best_forest(scores, width):
    forest = listed_forest(scores)
    networks = [network_of(masks) for masks in all_networks(scores.n_variables)]
    narrow = [score_of(network, scores) for network in networks if max(map(len, network)) <= 1]
    if forest is None:
        assert any(scores.value(child, ()) == -np.inf for child in range(scores.n_variables))
        return
    reached = score_of(forest, scores)
    assert reached == pytest.approx(max(narrow))
    assert search_orders(scores, n_starts=1, start=forest)[1] >= reached - 1e-9
    if moral_width(forest) <= width:
        assert search_bounded(scores, width, n_rounds=1, start=forest)[1] >= reached - 1e-9
    assert find_dag(scores, method="order", time_limit=1e-9).score >= reached - 1e-9


def test_more_than_64_variables():
    rng = np.random.default_rng(0)
    m = 100
    tables = []
    for child in range(m):
        near = [v for v in range(child - 3, child + 4) if 0 <= v < m and v != child]
        tables.append({(): 0.0, **{pair: rng.normal() for pair in itertools.combinations(near, 2)}})
    scores = LocalScores.of(tables)
    parents, score = search_orders(scores, n_starts=20, random_state=0)
    assert is_acyclic(parents)
    assert 0 < score == pytest.approx(score_of(parents, scores))
    narrow, _ = search_bounded(scores, 3, n_rounds=20, start=parents, random_state=0)
    assert is_acyclic(narrow)
    assert moral_width(narrow) <= 3
    found = find_dag(scores, method="order", random_state=0)
    assert found.score <= found.upper_bound <= scores.bound


# Integer programming


@given(local_scores(always_empty=False))
@examples(25)
def test_integer_programming_finds_the_best(scores):
    best = best_score(scores)
    if best > -np.inf:
        start, _ = search_orders(scores, n_starts=1)
        answer = solve_integer(scores, start)
        assert answer.proven
        assert score_of(answer.parents, scores) == pytest.approx(best, abs=1e-6)  # the solver's tolerance
        assert answer.upper_bound == score_of(answer.parents, scores)


def test_integer_programming_equals_dynamic_programming(some_scores):
    for scores, best in some_scores:
        empty = ((),) * scores.n_variables
        answer = solve_integer(scores, empty)
        assert answer.proven
        assert is_acyclic(answer.parents)
        assert score_of(answer.parents, scores) == pytest.approx(best, abs=1e-6)


def test_integer_programming_gives_a_bound_when_time_is_up():
    scores = random_scores(np.random.default_rng(0), 16, 3)
    start, reached = search_orders(scores, random_state=0)
    answer = solve_integer(scores, start, deadline=time.monotonic())
    assert not answer.proven
    assert reached <= score_of(answer.parents, scores) <= answer.upper_bound <= scores.bound


def test_without_scip_the_integer_program_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyscipopt", None)
    scores = LocalScores.of([{(): 0.0}])
    with pytest.raises(MissingDependencyError, match=r"pip install tuplet\[scip\]"):
        solve_integer(scores, ((),))
    assert not search.has_scip()


@given(local_scores(), st.data())
@few
def test_cluster_cuts_hold_for_every_network_and_for_no_cycle(scores, data):
    m = scores.n_variables
    cluster = np.array(data.draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    if not cluster.any():
        return
    families, coefficients, least = cluster_cut(scores, cluster)
    possible = np.flatnonzero(network_scores(scores) > -np.inf)
    for masks in all_networks(m)[possible[:50]]:
        weights = weights_of(scores, network_of(masks))
        assert coefficients @ weights[families] >= least
    chosen = tuple(scores.candidates(child)[0][0] for child in range(m))
    weights = weights_of(scores, chosen)
    inside = set(np.flatnonzero(cluster))
    cyclic = all(inside & set(chosen[child]) for child in inside)
    assert (coefficients @ weights[families] < least) == cyclic


@given(st.integers(0, 10**6))
@few
def test_clusters_that_are_reported_are_violated(seed):
    rng = np.random.default_rng(seed)
    scores = random_scores(rng, 5, 2)
    weights = rng.dirichlet(np.full(len(scores), 0.05))
    for begin, end in itertools.pairwise(scores.starts):  # every child takes one family, in fractions
        weights[begin:end] /= weights[begin:end].sum()
    for cluster in violated_clusters(scores, weights):
        families, coefficients, least = cluster_cut(scores, cluster)
        assert coefficients @ weights[families] < least - LEAST_EXCESS / 2


def test_a_plain_cycle_is_reported():
    scores = LocalScores.of([{(): 0.0, (1,): 1.0}, {(): 0.0, (2,): 1.0}, {(): 0.0, (0,): 1.0}, {(): 0.0}])
    weights = weights_of(scores, ((1,), (2,), (0,), ()))
    assert [cluster.tolist() for cluster in violated_clusters(scores, weights)] == [[True] * 3 + [False]]


# Smaller problems


@given(local_scores(), st.floats(0, 1))
@few
def test_hopeless_families_are_in_no_better_network(scores, luck):
    totals = np.sort(network_scores(scores))
    reached = totals[totals > -np.inf][int(luck * ((totals > -np.inf).sum() - 1))]
    assert best_score(drop_hopeless(scores, reached)) == best_score(scores)


@given(local_scores())
@few
def test_components_are_solved_apart(scores):
    parents = {}
    for group in strong_components(scores):
        part = project(scores, group)
        inside = best_network(part)
        lifted = lift_parents(scores, group, inside)
        assert sum(scores.value(v, members) for v, members in lifted.items()) == pytest.approx(
            score_of(inside, part)
        )
        parents |= lifted
    whole = tuple(parents[v] for v in range(scores.n_variables))
    assert is_acyclic(whole)
    assert score_of(whole, scores) == pytest.approx(best_score(scores), abs=1e-9)


def test_groups_bound_the_optimum_better_than_no_groups(monkeypatch, some_scores):
    for scores, best in some_scores:
        bounds = []
        for size in (1, 3, 5, 10):
            monkeypatch.setattr("tuplet.structure.search._GROUP", size)
            bounds.append(group_bound(scores, search_orders(scores, random_state=0)[0]))
        assert bounds[0] == pytest.approx(scores.bound)
        assert bounds[-1] == pytest.approx(best)
        assert min(bounds) >= best - 1e-9
        assert max(bounds) == bounds[0]


# Bounded width


@given(local_scores(), st.integers(0, 3), st.integers(0, 10))
@examples(25)
def test_bounded_search_keeps_the_width(scores, width, seed):
    parents, score = search_bounded(scores, width, n_rounds=3, random_state=seed)
    assert is_acyclic(parents)
    assert moral_width(parents) <= width
    assert score == score_of(parents, scores)
    assert score <= best_narrow(scores, width) + 1e-9


def best_narrow(scores, width):
    """Best score of all networks with a moral graph of at most that width."""
    totals = network_scores(scores)
    networks = all_networks(scores.n_variables)
    return next(totals[k] for k in np.argsort(-totals) if moral_width(network_of(networks[k])) <= width)


def test_bounded_search_is_mostly_best_for_few_variables():
    n_best = 0
    for seed in range(20):
        scores = random_scores(np.random.default_rng(seed), 4)
        for width in (1, 2):
            _, score = search_bounded(scores, width, n_rounds=3, random_state=0)
            n_best += score == pytest.approx(best_narrow(scores, width))
    assert n_best >= 36  # a search without proof; nine in ten


def test_width_one_is_a_forest_and_nearly_the_best_one():
    rng = np.random.default_rng(2)
    m = 30
    gains = rng.gumbel(size=(m, m))
    scores = LocalScores.of([{(): 0.0, **{(j,): gains[j, i] for j in range(m) if j != i}} for i in range(m)])
    best = score_of(best_forest(gains), scores)
    parents, score = search_bounded(scores, 1, random_state=0)
    assert max(len(members) for members in parents) == 1
    assert 0.9 * best <= score <= best + 1e-9


def test_bounded_search_with_required_edges():
    scores = restrict(random_scores(np.random.default_rng(0), 8, 3), required=[(0, 7), (1, 7), (2, 6)])
    parents, _ = search_bounded(scores, 2, n_rounds=10, random_state=0)
    assert {0, 1} <= set(parents[7])
    assert 2 in parents[6]
    assert moral_width(parents) <= 2
    with pytest.raises(InputError, match="variable 7 has no set of parents left"):
        search_bounded(scores, 1)
    square = LocalScores.of([{(): 0.0}, {(0,): 0.0}, {(0,): 0.0}, {(1, 2): 0.0}])
    assert search_bounded(square, 2)[0] == ((), (0,), (0,), (1, 2))
    with pytest.raises(InputError, match="max_width must not be negative"):
        search_bounded(square, -1)


# The door


@given(local_scores(), st.sampled_from(["auto", "exact", "order", "integer"]))
@examples(25)
def test_find_dag_finds_the_best_and_tells_the_truth(scores, method):
    found = find_dag(scores, method=method, random_state=0)
    best = best_score(scores)
    assert found.score == score_of(found.parents, scores)
    assert found.score == pytest.approx(best, abs=1e-6)
    assert found.upper_bound >= best - 1e-6
    assert found.gap == pytest.approx(found.upper_bound - found.score)
    assert found.proven == (found.gap == 0)
    if method != "order":
        assert found.proven


def test_larger_problems_take_other_ways(monkeypatch, some_scores):
    monkeypatch.setattr(search, "_EASY", 4)
    for scores, best in some_scores:
        found = find_dag(scores, random_state=0)
        assert (found.method, found.proven) == ("integer", True)
        assert found.score == pytest.approx(best, abs=1e-6)
    monkeypatch.setattr(search, "has_scip", lambda: False)
    scores, best = some_scores[-1]
    found = find_dag(scores, random_state=0)
    assert (found.method, found.proven) == ("exact", True)
    monkeypatch.setattr(search, "_POSSIBLE", 4)
    found = find_dag(scores, random_state=0)
    assert found.method == "order"
    assert found.score <= best + 1e-9 <= found.upper_bound + 2e-9
    with pytest.raises(IntractableError):
        find_dag(scores, method="exact")


def test_a_width_is_kept_and_costs_no_proof_where_it_does_not_bind(some_scores):
    scores, best = some_scores[-1]
    wide = find_dag(scores, max_width=9, random_state=0)
    assert wide.proven
    assert wide.score == pytest.approx(best)
    narrow = find_dag(scores, max_width=2, random_state=0)
    assert narrow.method == "bounded"
    assert moral_width(narrow.parents) <= 2
    assert narrow.score < narrow.upper_bound == pytest.approx(best)


def test_sixty_variables_with_little_time(monkeypatch):
    scores = random_scores(np.random.default_rng(0), 60, 2, keep=0.1)
    ticks = itertools.count(step=0.02)
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))  # a limit of 2 s is 100 readings of the clock
    found = find_dag(scores, time_limit=2.0, max_width=4, random_state=0)
    assert is_acyclic(found.parents)
    assert moral_width(found.parents) <= 4
    assert sum(scores.value(v, ()) for v in range(60)) < found.score < found.upper_bound <= scores.bound
    assert (scores.parents != UNKNOWN).sum(axis=1).max() == 2


def test_unknown_methods_are_refused():
    with pytest.raises(InputError, match="one of auto, exact, integer, order; found 'magic'"):
        find_dag(LocalScores.of([{(): 0.0}]), method="magic")


@pytest.mark.parametrize(("m", "count"), [(1, 1), (2, 3), (3, 25), (4, 543)])
def test_there_are_as_many_acyclic_graphs_as_robinson_counted(m, count):
    # Robinson (1977), Counting unlabeled acyclic digraphs: labelled ones, OEIS A003024.
    assert len(all_networks(m)) == count
