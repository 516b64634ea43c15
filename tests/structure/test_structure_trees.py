import itertools

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuplet.core.exceptions import InputError
from tuplet.structure import best_forest, edges, is_acyclic


def all_forests(m):
    choices = [[(), *((v,) for v in range(m) if v != child)] for child in range(m)]
    return [parents for parents in itertools.product(*choices) if is_acyclic(parents)]


FORESTS = {m: all_forests(m) for m in range(1, 6)}


def total(parents, gains):
    return sum(gains[j, i] for j, i in edges(parents))


def test_there_are_as_many_forests_as_cayley_counted():
    # Rooted labelled forests: (m + 1)^(m - 1).
    assert [len(FORESTS[m]) for m in range(1, 6)] == [(m + 1) ** (m - 1) for m in range(1, 6)]


@st.composite
def gain_tables(draw):
    m = draw(st.integers(1, 5))
    value = st.one_of(st.integers(-2, 4).map(float), st.floats(-5, 5), st.just(-np.inf))
    return np.array(draw(st.lists(value, min_size=m * m, max_size=m * m))).reshape(m, m)


@given(gain_tables())
def test_no_forest_is_better(gains):
    found = best_forest(gains)
    assert found in FORESTS[len(gains)]
    assert all(gains[edge] > 0 for edge in edges(found))
    best = max(total(parents, gains) for parents in FORESTS[len(gains)])
    assert total(found, gains) == pytest.approx(best, abs=1e-12)


edge_lists = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda edge: edge[0] != edge[1]), max_size=3
)


@given(st.integers(0, 10**6), edge_lists, edge_lists)
def test_no_forest_with_the_users_edges_is_better(seed, required, forbidden):
    gains = np.random.default_rng(seed).normal(1.0, 2.0, size=(4, 4))
    allowed = [
        parents
        for parents in FORESTS[4]
        if set(required) <= set(edges(parents)) and not set(forbidden) & set(edges(parents))
    ]
    if not allowed:
        with pytest.raises(InputError):
            best_forest(gains, required=required, forbidden=forbidden)
        return
    found = best_forest(gains, required=required, forbidden=forbidden)
    assert found in allowed
    assert total(found, gains) == pytest.approx(max(total(parents, gains) for parents in allowed))


@pytest.mark.parametrize("kind", ["random", "symmetric", "nested"])
def test_larger_forests_weigh_as_much_as_those_of_networkx(kind):
    rng = np.random.default_rng(5)
    m = 40
    gains = rng.normal(0.5, 1.0, size=(m, m))
    if kind == "symmetric":  # two-cycles everywhere
        gains = np.abs(gains + gains.T)
    if kind == "nested":  # cycles inside cycles inside cycles
        places = rng.permutation(m)
        gains = 1.0 / (1.0 + np.abs(places[:, None] - places)) + 1e-3 * rng.random((m, m))
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(m))
    graph.add_weighted_edges_from((j, i, gains[j, i]) for j in range(m) for i in range(m) if i != j)
    peer = networkx.maximum_branching(graph)
    found = best_forest(gains)
    assert is_acyclic(found)
    assert total(found, gains) == pytest.approx(peer.size(weight="weight"))


def test_hundreds_of_variables_are_no_trouble():
    gains = np.random.default_rng(0).random((300, 300))
    found = best_forest(gains)
    assert is_acyclic(found)
    assert sum(len(members) for members in found) == 299  # all gains are positive: one tree
    best = gains.copy()
    np.fill_diagonal(best, 0)
    assert total(found, gains) <= best.max(axis=0).sum()


def test_bad_gains_are_refused():
    with pytest.raises(InputError, match="square table, found shape \\(2, 3\\)"):
        best_forest(np.zeros((2, 3)))
    with pytest.raises(InputError, match="finite"):
        best_forest([[0.0, np.nan], [0.0, 0.0]])
    with pytest.raises(InputError, match="variable 2 has 2 required parents"):
        best_forest(np.zeros((3, 3)), required=[(0, 2), (1, 2)])
    assert best_forest([[np.nan]]) == ((),)
