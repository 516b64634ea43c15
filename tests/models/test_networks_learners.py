"""Structure learners of generative classifiers, against slow and obvious versions of each."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from draws import examples
from slow_scores import slow_raw, slow_score
from tuplet.core.exceptions import InputError
from tuplet.joint.inference.plan import min_fill_order
from tuplet.models.generative.networks import (
    ClassComponent,
    CountScorer,
    LearnerOptions,
    ThreePartGraph,
    greedy_network,
    learn_polytree_polytree,
    learn_small_width,
    learn_structure,
    learn_tree_tree,
    search_network,
)
from tuplet.models.generative.networks.kernels import (
    Rules,
    SearchTask,
    score_order,
    search_insertions,
    search_swaps,
    start_state,
    walk,
)
from tuplet.structure import is_acyclic

STEP = 1e-6


def rounded(gain):
    return math.floor(gain / STEP + 0.5) * STEP


class Slow:
    """Scores and gains by looking at one row after the other."""

    def __init__(self, codes, cards, d, criterion="bic"):
        self.codes, self.cards, self.d, self.criterion = codes, cards, d, criterion
        self.ones = np.ones(len(codes))

    def score(self, child, parents):
        return slow_score(self.codes, self.cards, child, sorted(parents), self.ones, self.criterion)

    def gain(self, child, parents, j):
        return rounded(self.score(child, [*parents, j]) - self.score(child, parents))

    def information(self, child, parents, j):
        def raw(members):
            return slow_raw(self.codes, self.cards, child, sorted(members), self.ones, "likelihood", 1)

        return rounded(raw([*parents, j]) - raw(parents))

    def total(self, parents):
        return sum(self.score(child, members) for child, members in enumerate(parents))


def problem(seed, n=80, d=4, m=4, many=False):
    """Rows of d classes and m features that depend on each other; some columns are equal or constant."""
    rng = np.random.default_rng(seed)
    cards = tuple(rng.integers(1, 5, size=d + m).tolist()) if many else (2,) * (d + m)
    codes = rng.integers(cards, size=(n, d + m))
    for j in range(1, d + m):
        above = rng.choice(j, size=min(j, 2), replace=False)
        copied = rng.random(n) < rng.choice([0.0, 0.5, 0.9, 1.0])
        codes[copied, j] = codes[copied][:, above].sum(axis=1) % cards[j]
    return codes, cards, d


def pruned(parents, d):
    """The pruned graph as definition 3 has it: moralise, then drop the features."""
    moral = nx.Graph()
    moral.add_nodes_from(range(len(parents)))
    for child, members in enumerate(parents):
        moral.add_edges_from((p, child) for p in members)
        moral.add_edges_from(itertools.combinations(members, 2))
    moral.remove_nodes_from(range(d, len(parents)))
    return moral


def slow_width(graph, d):
    near = {v: set(graph[v]) for v in range(d)}
    width = 0
    for v in min_fill_order((2,) * d, list(graph.edges)):
        width = max(width, len(near[v]))
        for u in near[v]:
            near[u] = (near[u] | near[v]) - {u, v}
    return width


def largest_component(parents, d):
    """Most classes in a part of the class and bridge subgraphs, definition 2."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(parents)))
    graph.add_edges_from((p, child) for child, members in enumerate(parents) for p in members if p < d)
    return max(sum(v < d for v in part) for part in nx.connected_components(graph))


def slow_greedy(slow, order, k=None, width=None, most=99):
    """Algorithm 1 as it stands, with bounds asked of the whole graph each time."""
    parents = [[] for _ in order]
    for place, v in enumerate(order):
        while len(parents[v]) < most:
            best, chosen = 0.0, None
            for j in sorted(order[:place]):
                if j in parents[v]:
                    continue
                trial = [list(members) for members in parents]
                trial[v] = sorted([*trial[v], j])
                # Two features never join components, and so are always allowed.
                if j < slow.d:
                    if k is not None and largest_component(trial, slow.d) > k:
                        continue
                    if width is not None and slow_width(pruned(trial, slow.d), slow.d) > width:
                        continue
                gain = slow.gain(v, parents[v], j)
                if gain > best + STEP / 2:
                    best, chosen = gain, j
            if chosen is None:
                break
            parents[v] = sorted([*parents[v], chosen])
    return tuple(map(tuple, parents))


def some_order(seed, d, m):
    rng = np.random.default_rng(seed)
    return (*rng.permutation(d).tolist(), *(d + rng.permutation(m)).tolist())


# -- orders ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("k", "width", "most"), [(None, None, 99), (2, None, 99), (3, None, 2), (None, 1, 99), (3, 1, 3)]
)
def test_greedy_parents_of_an_order_are_those_of_algorithm_1(seed, k, width, most):
    codes, cards, d = problem(seed, many=seed % 2 == 1)
    order = some_order(seed, d, len(cards) - d)
    scorer = CountScorer(codes, cards, d, max_parents=None if most == 99 else most)
    found = greedy_network(scorer, order, max_component=k, max_width=width)
    slow = Slow(codes, cards, d)
    assert found.parents == slow_greedy(slow, order, k, width, most)
    assert found.score == pytest.approx(slow.total(found.parents), abs=1e-8)


@pytest.mark.parametrize("moves", ["insertions", "swaps"])
@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_the_best_of_all_orders(seed, k, moves):
    codes, cards, d = problem(seed, d=3, m=3)
    scorer = CountScorer(codes, cards, d)
    best = max(
        greedy_network(scorer, (*classes, *features), max_component=k).score
        for classes in itertools.permutations(range(3))
        for features in itertools.permutations(range(3, 6))
    )
    found = search_network(scorer, max_component=k, moves=moves, n_starts=6, random_state=seed)
    assert found.score == pytest.approx(best, abs=1e-8)
    assert greedy_network(scorer, found.order, max_component=k) == found


@given(st.integers(0, 2**20), st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, 1, 2]), st.booleans())
@examples(25)
def test_a_move_gains_what_full_evaluation_says(seed, k, width, gaps):
    codes, cards, d = problem(seed, n=60, d=5, m=5, many=seed % 2 == 1)
    rng = np.random.default_rng(seed)
    if gaps:
        codes[rng.random(codes.shape) < 0.1] = -1
    scorer = CountScorer(codes, cards, d)
    rules = Rules(-1 if k is None else k, -1 if width is None else width)
    order = np.array(some_order(seed, d, 5))
    task = SearchTask(scorer.data, scorer.pool(0), rules)
    state = start_state(task, order)
    before = score_order(task, state)
    for _ in range(5):
        p, q = sorted(rng.choice(5, size=2, replace=False)) if rng.random() < 0.5 else (4, 0)
        part = d * int(rng.integers(2))
        moved = state.order.tolist()
        moved.insert(part + q, moved.pop(part + p))
        full = greedy_network(scorer, tuple(moved), max_component=k, max_width=width).score
        tried = walk(task, state, part + p, part + q, False)
        assert before + tried == pytest.approx(full, abs=1e-8)
        gained = walk(task, state, part + p, part + q, True)
        assert gained == pytest.approx(tried, abs=1e-8)
        assert state.order.tolist() == moved
        assert state.value.sum() == pytest.approx(full, abs=1e-8)
        before = full


def test_a_pool_that_is_full_starts_again():
    codes, cards, d = problem(3, n=200, d=6, m=6)
    scorer = CountScorer(codes, cards, d)
    small = scorer.pool(0)
    small = small._replace(first=small.first[:20], member=small.member[:60])
    order = np.array(some_order(0, d, 6))
    task = SearchTask(scorer.data, small, Rules(3, -1))
    assert score_order(task, start_state(task, order)) == pytest.approx(
        greedy_network(scorer, tuple(order.tolist()), max_component=3).score, abs=1e-8
    )


# -- the other learners --------------------------------------------------------------------------------------


def slow_tree(weights):
    """Kruskal on pairs in falling weight, the first pair first."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(weights)))
    pairs = itertools.combinations(range(len(weights)), 2)
    for a, b in sorted(pairs, key=lambda pair: (-weights[pair[0]][pair[1]], pair)):
        if weights[a][b] > 0 and not nx.has_path(graph, a, b):
            graph.add_edge(a, b)
    return graph


def rooted(graph):
    parents = [()] * len(graph)
    for part in nx.connected_components(graph):
        for a, b in nx.bfs_edges(graph, min(part)):
            parents[b] = (a,)
    return parents


def slow_bridge(slow, f, most):
    members = []
    while len(members) < most:
        gains = [(slow.gain(f, members, c), -c) for c in range(slow.d) if c not in members]
        if not gains or max(gains)[0] <= 0:
            break
        members.append(-max(gains)[1])
    return members


def slow_pairs(slow, variables, given_parents):
    return [
        [0.0 if i == j else slow.information(j, given_parents[j], i) for j in variables] for i in variables
    ]


@pytest.mark.parametrize("seed", range(8))
def test_tree_tree(seed):
    codes, cards, d = problem(seed, many=seed % 2 == 1)
    slow, n = Slow(codes, cards, d), len(cards)
    found = learn_tree_tree(CountScorer(codes, cards, d, max_parents=3))
    nothing = {v: [] for v in range(n)}
    assert list(found[:d]) == rooted(slow_tree(slow_pairs(slow, range(d), nothing)))
    bridge = {f: slow_bridge(slow, f, 2) for f in range(d, n)}
    for f in range(d, n):
        assert sorted(p for p in found[f] if p < d) == sorted(bridge[f])
    # The feature tree is the best of all: compare its weight with networkx's branching.
    gains = slow_pairs(slow, range(n), {**nothing, **bridge})
    graph = nx.DiGraph()
    graph.add_nodes_from(range(d, n))
    graph.add_weighted_edges_from(
        (i, j, gains[i][j]) for i in range(d, n) for j in range(d, n) if i != j and gains[i][j] > 0
    )
    best = nx.maximum_branching(graph).size(weight="weight")
    assert sum(gains[p][f] for f in range(d, n) for p in found[f] if p >= d) == pytest.approx(best, abs=1e-6)
    assert all(sum(p >= d for p in members) <= 1 for members in found)


def slow_polytree(graph, independent, rooms):
    """The three rules of the docstring, on a graph whose edges lose their place among the open ones."""
    open_edges = {frozenset(edge) for edge in graph.edges}
    parents = {v: [] for v in graph}

    def direct(a, b):
        open_edges.discard(frozenset((a, b)))
        if len(parents[b]) < rooms[b]:
            parents[b].append(a)
        elif len(parents[a]) < rooms[a]:
            parents[a].append(b)

    def neighbours(z):
        return sorted(v for edge in open_edges if z in edge for v in edge if v != z)

    def spread():
        waiting = [z for z in graph if parents[z] and neighbours(z)]
        while waiting:
            z = waiting.pop(0)
            for w in neighbours(z):
                if any(independent[w][x] for x in parents[z]) and len(parents[z]) < rooms[z]:
                    direct(w, z)
                else:
                    direct(z, w)
                if parents[w] and neighbours(w):
                    waiting.append(w)

    for z in graph:
        for x, y in itertools.combinations(sorted({*neighbours(z), *parents[z]}), 2):
            new = [v for v in (x, y) if frozenset((v, z)) in open_edges]
            if independent[x][y] and len(parents[z]) + len(new) <= rooms[z]:
                for v in new:
                    direct(v, z)
    spread()
    for a in graph:
        for b in neighbours(a):
            direct(a, b)
        spread()
    return [tuple(sorted(parents[v])) for v in graph]


@pytest.mark.parametrize("seed", range(8))
def test_polytree_polytree(seed):
    codes, cards, d = problem(seed, many=seed % 2 == 1)
    slow, n, most = Slow(codes, cards, d), len(cards), 3
    found = learn_polytree_polytree(CountScorer(codes, cards, d, max_parents=most), significance=0.05)

    def test(i, j, members):
        q = math.prod(cards[c] for c in members)
        freedom = max(1, (cards[i] - 1) * (cards[j] - 1) * q)
        return chi2.sf(2 * slow.information(j, members, i), freedom) > 0.05

    weights = slow_pairs(slow, range(d), {v: [] for v in range(d)})
    free = [[test(i, j, []) and test(j, i, []) for j in range(d)] for i in range(d)]
    assert list(found[:d]) == slow_polytree(slow_tree(weights), free, [most] * d)
    bridge = {f: slow_bridge(slow, f, 2) for f in range(d, n)}
    gains = np.array(slow_pairs(slow, range(d, n), bridge))
    free = [[test(i, j, bridge[j]) and test(j, i, bridge[i]) for j in bridge] for i in bridge]
    rooms = [most - len(members) for members in bridge.values()]
    above = slow_polytree(slow_tree(((gains + gains.T) / 2).tolist()), free, rooms)
    expected = [tuple(sorted([*bridge[f], *(d + p for p in above[f - d])])) for f in bridge]
    assert list(found[d:]) == expected


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("width", [1, 2, 5])
def test_small_width(seed, width):
    codes, cards, d = problem(seed, n=120, d=5, m=5, many=seed % 2 == 1)
    slow, n, most = Slow(codes, cards, d), len(cards), 4
    scorer = CountScorer(codes, cards, d, max_parents=most)
    found = learn_small_width(scorer, max_width=width)
    nothing = {v: [] for v in range(n)}
    parents = rooted(slow_tree(slow_pairs(slow, range(d), nothing))) + [()] * (n - d)
    refused = set()
    while True:
        best, edge = 0.0, None
        for f in range(d, n):
            for c in range(d):
                if c not in parents[f] and (f, c) not in refused and len(parents[f]) < most:
                    gain = slow.gain(f, parents[f], c)
                    if gain > best + STEP / 2:
                        best, edge = gain, (f, c)
        if edge is None:
            break
        trial = list(parents)
        trial[edge[0]] = (*parents[edge[0]], edge[1])
        if slow_width(pruned(trial, d), d) > width:
            refused.add(edge)
        else:
            parents = trial
    assert list(found) == [tuple(sorted(members)) for members in parents]


@pytest.mark.parametrize("seed", range(6))
def test_pure_filter(seed):
    codes, cards, d = problem(seed, many=seed % 2 == 1)
    scorer = CountScorer(codes, cards, d, criterion="k2", max_parents=4)
    expected = slow_greedy(Slow(codes, cards, d, "k2"), tuple(range(len(cards))), most=4)
    assert learn_structure(scorer, "pure-filter").parents == expected


# -- what holds for all --------------------------------------------------------------------------------------


@given(
    st.integers(0, 2**20),
    st.sampled_from(["cb-obs", "tree-tree", "polytree-polytree", "pure-filter", "small-tw"]),
    st.sampled_from(["bic", "aic", "k2", "bdeu"]),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 4),
    st.booleans(),
)
@examples(40)
def test_every_graph_obeys_its_family_and_its_bounds(seed, structure, criterion, k, width, most, gaps):
    codes, cards, d = problem(seed, n=60, d=5, m=6, many=seed % 2 == 1)
    if gaps:
        codes[np.random.default_rng(seed).random(codes.shape) < 0.1] = -1
    scorer = CountScorer(codes, cards, d, criterion=criterion, max_parents=most)
    options = LearnerOptions(max_component=k, max_width=width, n_starts=1, random_state=seed)
    graph = learn_structure(scorer, structure, options)
    assert is_acyclic(graph.parents)
    assert all(p < d for members in graph.class_parents for p in members)
    assert all(len(members) <= most for members in graph.parents)
    if structure == "cb-obs":
        assert largest_component(graph.parents, d) <= k
        assert slow_width(pruned(graph.parents, d), d) <= width
    if structure in ("tree-tree", "small-tw"):
        assert all(len(members) <= 1 for members in graph.class_parents + graph.feature_parents)
    if structure == "small-tw":
        assert graph.width <= width
    if structure == "polytree-polytree":
        for part in (graph.class_parents, graph.feature_parents):
            skeleton = nx.Graph([(p, child) for child, members in enumerate(part) for p in members])
            assert not skeleton or nx.is_forest(skeleton)


def test_the_order_that_a_sample_finds_is_improved_by_all_rows():
    codes, cards, d = problem(3, n=400)
    scorer = CountScorer(codes, cards, d)
    sample = scorer.sample(np.arange(0, 400, 4))
    options = LearnerOptions(max_component=2, random_state=0)
    found = learn_structure(scorer, "cb-obs", options, sample)
    order = search_network(sample, max_component=2, random_state=0).order
    improved = search_network(scorer, max_component=2, random_state=0, start=order)
    assert found.parents == improved.parents
    assert improved.score >= greedy_network(scorer, order, max_component=2).score - STEP


@given(st.integers(0, 2**20))
@examples(25)
def test_a_three_part_graph_knows_its_pruned_graph(seed):
    codes, cards, d = problem(seed, n=60, d=6, m=6)
    graph = ThreePartGraph(greedy_network(CountScorer(codes, cards, d), some_order(seed, 6, 6)).parents, d)
    expected = pruned(graph.parents, d)
    assert set(graph.pruned_edges) == {tuple(sorted(edge)) for edge in expected.edges}
    assert graph.width == slow_width(expected, d)
    assert sorted(part.classes for part in graph.components) == sorted(
        tuple(sorted(part)) for part in nx.connected_components(expected)
    )
    for part in graph.components:
        assert all(set(graph.bridge_parents[f]) <= set(part.classes) for f in part.features)
    assert graph.induced_size((1,) * d) == d
    assert graph.full_width >= graph.width


def test_the_graph_of_figure_1():
    # Classes C1..C5 and features F1..F6 in two components, as figure 2 of the paper shows them.
    classes = ((), (0,), (1,), (), (3,))
    features = ((0,), (0, 1, 5), (1, 2), (2, 3 + 5 - 1), (3, 4), (4, 9))
    graph = ThreePartGraph((*classes, *(tuple(sorted(f)) for f in features)), 5)
    assert graph.components == (ClassComponent((0, 1, 2), (0, 1, 2, 3)), ClassComponent((3, 4), (4, 5)))
    assert graph.width == 1


def test_a_class_with_a_feature_above_it_is_refused():
    with pytest.raises(InputError, match="no features as parents"):
        ThreePartGraph(((1,), ()), 1)
    with pytest.raises(InputError, match="cycle"):
        ThreePartGraph(((1,), (0,)), 2)


@pytest.mark.parametrize("moves", ["insertions", "swaps"])
def test_no_further_search_begins_after_a_long_one(monkeypatch, moves):
    codes = np.random.default_rng(0).integers(2, size=(50, 8))
    scorer = CountScorer(codes, (2,) * 8, n_classes=3)
    searched = []
    search = {"insertions": search_insertions, "swaps": search_swaps}[moves]
    module = "tuplet.models.generative.networks.learners"
    monkeypatch.setattr(f"{module}.search_{moves}", lambda *given: searched.append(1) or search(*given))
    search_network(scorer, moves=moves, n_starts=2, random_state=0)
    assert len(searched) == 12
    searched.clear()
    monkeypatch.setattr(f"{module}._MOST_WORK", 0)
    search_network(scorer, moves=moves, n_starts=2, random_state=0)
    assert len(searched) == 1
