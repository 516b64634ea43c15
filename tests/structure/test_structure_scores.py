import itertools
import time

import networkx
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
    others,
    random_scores,
    restrict,
    subsets,
)
from tuplet.core.exceptions import InputError
from tuplet.joint.inference.plan import cliques_along, min_fill_order
from tuplet.structure import (
    EdgeRules,
    LocalScores,
    best_network,
    candidate_parent_sets,
    edges,
    find_cycle,
    is_acyclic,
    moral_width,
    score_of,
    topological_order,
)
from tuplet.structure.parents import connected_parts

few = examples(25)


@given(st.integers(0, 2**12 - 1))
@few
def test_cycles_orders_and_parts_agree_with_networkx(code):
    m = 4
    parents = network_of([code >> 3 * v & 7 for v in range(m)])  # three bits each
    parents = tuple(tuple(others(m, child)[p] for p in members) for child, members in enumerate(parents))
    graph = networkx.DiGraph(edges(parents))
    graph.add_nodes_from(range(m))
    parts = [sorted(part) for part in networkx.weakly_connected_components(graph)]
    assert connected_parts(m, edges(parents)) == sorted(parts)
    acyclic = networkx.is_directed_acyclic_graph(graph)
    assert is_acyclic(parents) == acyclic
    if acyclic:
        order = topological_order(parents)
        assert list(order) == list(networkx.lexicographical_topological_sort(graph))
        assert find_cycle(parents) == ()
    else:
        cycle = find_cycle(parents)
        assert len(set(cycle)) == len(cycle) >= 2
        assert all(graph.has_edge(a, b) for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True))
        with pytest.raises(InputError, match="cycle: variable"):
            topological_order(parents)


def treewidth(parents):
    """Least width of all elimination orders of the moral graph."""
    graph = networkx.moral_graph(networkx.DiGraph(edges(parents)))
    graph.add_nodes_from(range(len(parents)))
    widths = []
    for order in itertools.permutations(graph):
        left, width = graph.copy(), 0
        for v in order:
            around = list(left[v])
            width = max(width, len(around))
            left.add_edges_from(itertools.combinations(around, 2))
            left.remove_node(v)
        widths.append(width)
    return min(widths)


def test_moral_width_is_the_treewidth_of_small_networks():
    for masks in all_networks(4)[::9]:
        parents = network_of(masks)
        assert moral_width(parents) == treewidth(parents)


def test_moral_width_of_known_graphs():
    assert moral_width(((),) * 5) == 0
    assert moral_width(tuple((v - 1,) if v else () for v in range(30))) == 1
    assert moral_width((*((),) * 5, (0, 1, 2, 3, 4))) == 5
    grid = [[] for _ in range(16)]
    for v in range(16):
        grid[v] = [u for u, there in ((v - 4, v >= 4), (v - 1, v % 4)) if there]
    assert moral_width(tuple(tuple(members) for members in grid)) >= 4  # a 4 x 4 grid has treewidth 4


def test_candidates_come_best_first_and_small_sets_first_among_equals():
    scores = LocalScores.of(
        [{(1, 2): 1.0, (2,): 1.0, (1,): 1.0, (): -1.0, (3,): -np.inf}, {(): 0}, {(): 0}, {(): 0}]
    )
    assert [members for members, _ in scores.candidates(0)] == [(1,), (2,), (1, 2), ()]
    assert (scores.value(0, (2, 1)), scores.value(0, (3,)), scores.value(0, (1, 2, 3))) == (
        1,
        -np.inf,
        -np.inf,
    )
    assert score_of(((1,), (), (), ()), scores) == 1.0
    assert len(scores) == 7


def test_masks_have_as_many_words_as_the_variables_need():
    m = 130
    scores = LocalScores.of([{(): 0.0, tuple(others(m, child)[-3:]): 1.0} for child in range(m)])
    assert scores.masks.shape == (2 * m, 3)
    for family in range(len(scores)):
        bits = sum(int(word) << 64 * w for w, word in enumerate(scores.masks[family]))
        assert bits == sum(1 << v for v in scores.members(family))


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([{(): 0.0}, {(1,): 0.0}], "parents of variable 1 must be distinct other variables"),
        ([{(2,): 0.0}, {(): 0.0}], "parents of variable 0 must be distinct other variables among the 2"),
        ([{(1, 1): 0.0}, {(): 0.0}], "distinct"),
        ([{(1, 2): 0.0, (2, 1): 1.0}, {(): 0.0}, {(): 0.0}], "variable 0 has a set of parents twice"),
        ([{(): np.nan}], "score of variable 0 with parents \\(\\) is nan"),
        ([{(): np.inf}], "is inf"),
        ([{(): 0.0}, {(0,): -np.inf}], "variable 1 has no set of parents left"),
        ([{(): 0.0}, {}], "variable 1 has no set of parents left"),
    ],
)
def test_what_is_no_list_of_scores_is_refused(tables, message):
    with pytest.raises(InputError, match=message):
        LocalScores.of(tables)


@given(local_scores())
@few
def test_pruning_keeps_the_optimum_and_only_sets_better_than_all_their_subsets(scores):
    pruned = scores.prune()
    assert best_score(pruned) == best_score(scores)
    for child in range(scores.n_variables):
        kept = dict(pruned.candidates(child))
        for members, value in scores.candidates(child):
            beaten = any(
                set(other) < set(members) and score >= value for other, score in scores.candidates(child)
            )
            assert (members in kept) == (not beaten)


edge_lists = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2)).filter(lambda edge: edge[0] != edge[1]), max_size=3
)


@given(st.integers(0, 10**6), edge_lists, edge_lists)
@few
def test_required_and_forbidden_edges_restrict_the_networks(seed, required, forbidden):
    scores = random_scores(np.random.default_rng(seed), 3)

    def listed(families):
        return [scores.value(family.child, family.parents) for family in families]

    have = [set(edges(network_of(masks))) for masks in all_networks(3)]
    allowed = [set(required) <= there and not set(forbidden) & there for there in have]
    if not any(allowed):
        with pytest.raises(InputError):
            candidate_parent_sets(3, 2, listed, required=required, forbidden=forbidden)
    else:
        found = candidate_parent_sets(3, 2, listed, required=required, forbidden=forbidden)
        assert best_score(found.scores) == network_scores(scores)[allowed].max()


def test_impossible_wishes_are_named():
    scores = LocalScores.of([{(): 0.0, (1,): 1.0}, {(): 0.0}, {(): 0.0, (0,): 1.0}])
    with pytest.raises(InputError, match="cycle, variable 0 -> variable 1 -> variable 0"):
        EdgeRules.of(3, required=[(0, 1), (1, 0)])
    with pytest.raises(InputError, match="variable 1 -> variable 0 is both required and forbidden"):
        EdgeRules.of(3, required=[(1, 0)], forbidden=[(1, 0)])
    with pytest.raises(InputError, match="joins two variables among the 3, found 0 -> 3"):
        EdgeRules.of(3, forbidden=[(0, 3)])
    with pytest.raises(InputError, match="variable 1 has no set of parents left") as error:
        scores.take(scores.children != 1)
    assert error.value.variable == 1


@given(local_scores(always_empty=False), st.integers(0, 100))
@few
def test_an_order_is_found_where_there_is_a_network(scores, seed):
    if best_score(scores) == -np.inf:
        with pytest.raises(InputError, match="need each other"):
            scores.feasible_order()
    else:
        for order in (scores.feasible_order(), scores.feasible_order(np.random.default_rng(seed))):
            for place, child in enumerate(order.tolist()):
                before = set(order[:place].tolist())
                assert any(set(members) <= before for members, _ in scores.candidates(child))


class Penalised:
    """Scores as of a training likelihood: at most zero, minus a penalty that grows with the set."""

    def __init__(self, seed, m, max_parents, weight):
        rng = np.random.default_rng(seed)
        self.m, self.max_parents = m, max_parents
        self.cards, self.weight = rng.integers(2, 4, size=m), weight
        self.fit = {
            (child, members): -10 * rng.random()
            for child in range(m)
            for members in subsets(others(m, child), max_parents)
        }
        self.calls = []

    def penalty(self, child, members):
        return self.weight * float(np.prod(self.cards[list(members)]))

    def value(self, child, members):
        return self.fit[child, members] - self.penalty(child, members)

    def score(self, families):
        self.calls.append(list(families))
        return [self.value(child, members) for child, members, _ in families]

    def bound(self, child, members):
        return -self.penalty(child, members)

    def full(self):
        return LocalScores.of(
            [
                {
                    members: self.value(child, members)
                    for members in subsets(others(self.m, child), self.max_parents)
                }
                for child in range(self.m)
            ]
        )


def same_candidates(one, other):
    assert one.n_variables == other.n_variables
    for child in range(one.n_variables):
        assert one.candidates(child) == other.candidates(child)


problems = st.builds(
    Penalised, st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 4), st.floats(0.0, 2.0)
)


@given(problems)
@few
def test_bounds_skip_only_what_pruning_would_drop(problem):
    found = candidate_parent_sets(problem.m, problem.max_parents, problem.score, bound=problem.bound)
    full = problem.full()
    same_candidates(found.scores, full.prune())
    assert found.complete
    assert np.isneginf(found.ceilings).all()
    assert found.n_scored + found.n_skipped <= len(full)
    everything = candidate_parent_sets(problem.m, problem.max_parents, problem.score)
    same_candidates(everything.scores, found.scores)
    assert (everything.n_scored, everything.n_skipped) == (len(full), 0)


@given(problems)
@few
def test_a_scorer_may_give_up_below_the_floor(problem):
    def hasty(families):
        for child, members, floor in families:
            value = problem.value(child, members)
            yield value if value > floor else -np.inf

    found = candidate_parent_sets(problem.m, problem.max_parents, hasty, bound=problem.bound)
    patient = candidate_parent_sets(problem.m, problem.max_parents, problem.score, bound=problem.bound)
    same_candidates(found.scores, patient.scores)
    assert (found.n_scored, found.n_skipped) == (patient.n_scored, patient.n_skipped)


@given(problems, edge_lists, edge_lists)
@few
def test_the_users_edges_hold_during_scoring(problem, required, forbidden):
    full = problem.full()
    if problem.m < 3:
        return
    try:
        EdgeRules.of(problem.m, required, forbidden)
        expected = restrict(full, required, forbidden).prune()
    except InputError:
        with pytest.raises(InputError):
            candidate_parent_sets(
                problem.m, problem.max_parents, problem.score, required=required, forbidden=forbidden
            )
        return
    found = candidate_parent_sets(
        problem.m,
        problem.max_parents,
        problem.score,
        bound=problem.bound,
        required=required,
        forbidden=forbidden,
    )
    same_candidates(found.scores, expected)


def test_levels_are_scored_as_a_whole_and_sets_stay_together():
    problem = Penalised(0, 5, 3, 0.01)
    seen = []
    found = candidate_parent_sets(
        5, 3, problem.score, bound=problem.bound, progress=lambda done, total: seen.append((done, total))
    )
    assert [{len(family.parents) for family in call} for call in problem.calls] == [{0}, {1}, {2}, {3}]
    for call in problem.calls:
        runs = [members for members, _ in itertools.groupby(family.parents for family in call)]
        assert len(runs) == len(set(runs))
    assert [done for done, _ in seen] == list(range(1, found.n_scored + 1))
    assert seen[-1] == (found.n_scored, found.n_scored)
    assert all(done <= total for done, total in seen)


def check_stopped(problem, found, n_seen):
    """What was seen and matters is listed; what was not seen is bounded by a subset or by the ceiling."""
    assert not found.complete
    assert found.n_scored == n_seen
    assert best_network(found.scores) is not None
    full = problem.full()
    for child in range(problem.m):
        listed = dict(found.scores.candidates(child))
        for members, value in full.candidates(child):
            dominated = any(set(other) <= set(members) and score >= value for other, score in listed.items())
            assert listed.get(members) == value or dominated or value <= found.ceilings[child]


@given(st.integers(0, 1000), st.integers(0, 40))
@few
def test_an_interrupt_leaves_what_was_scored(seed, patience):
    problem = Penalised(seed, 4, 3, 0.1)

    def interrupted(families):
        for child, members, _ in families:
            if problem.calls_left == 0:
                raise KeyboardInterrupt
            problem.calls_left -= 1
            yield problem.value(child, members)

    problem.calls_left = patience
    if patience < 4:
        with pytest.raises(KeyboardInterrupt):
            candidate_parent_sets(4, 3, interrupted, bound=problem.bound)
    else:
        found = candidate_parent_sets(4, 3, interrupted, bound=problem.bound)
        if problem.calls_left == 0 and found.stopped:
            assert found.stopped == "interrupt"
            check_stopped(problem, found, patience)
        problem.calls_left = patience
        unbounded = candidate_parent_sets(4, 3, interrupted)
        if unbounded.stopped:
            assert np.isposinf(unbounded.ceilings).all()


def test_a_deadline_leaves_at_least_the_smallest_sets():
    problem = Penalised(1, 4, 3, 0.1)
    found = candidate_parent_sets(4, 3, problem.score, bound=problem.bound, deadline=time.monotonic() - 1)
    assert found.stopped == "deadline"
    check_stopped(problem, found, 4)
    assert [found.scores.candidates(child)[0][0] for child in range(4)] == [()] * 4


def test_certain_sets_are_scored_whatever_the_deadline():
    problem = Penalised(1, 4, 3, 0.0)
    late = {"bound": problem.bound, "deadline": time.monotonic() - 1}
    found = candidate_parent_sets(4, 3, problem.score, certain=1, **late)
    single = candidate_parent_sets(4, 1, problem.score, bound=problem.bound)
    assert found.stopped == "deadline"
    assert found.n_scored == single.n_scored
    for child in range(4):
        assert found.scores.candidates(child) == single.scores.candidates(child)
    assert not candidate_parent_sets(4, 3, problem.score, certain=3, **late).stopped


def test_scores_that_are_no_numbers_and_too_many_required_parents_are_named():
    with pytest.raises(InputError, match="variable 0 with parents \\(\\) got the score nan"):
        candidate_parent_sets(2, 1, lambda families: [np.nan for _ in families])
    with pytest.raises(InputError, match="variable 2 has 2 required parents, but max_parents=1"):
        candidate_parent_sets(3, 1, lambda families: [], required=[(0, 2), (1, 2)])


def test_moral_width_is_that_of_the_order_of_elimination_plans():
    rng = np.random.default_rng(0)
    for m in (2, 5, 12, 40):
        sets = [rng.choice(child, size=min(child, int(rng.integers(4))), replace=False) for child in range(m)]
        parents = tuple(tuple(sorted(int(v) for v in members)) for members in sets)
        families = [(*members, child) for child, members in enumerate(parents)]
        order = min_fill_order((2,) * m, families)
        width = max(len(clique) for clique in cliques_along(families, order)) - 1
        assert moral_width(parents) == width
        assert moral_width(parents, width) == width
        assert width == 0 or moral_width(parents, width - 1) > width - 1
