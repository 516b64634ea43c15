"""Pictures of graphs: layers, places, routes, and what is drawn."""

import sys
from itertools import combinations, pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from scipy.optimize import LinearConstraint, minimize

from draws import examples
from tuplet.core.exceptions import InputError, MissingDependencyError
from tuplet.structure import edges
from tuplet.structure.parents import connected_parts
from tuplet.surface.plots import plot_graph
from tuplet.surface.plots.graph import control_points, label_places, sampled
from tuplet.surface.plots.layout import (
    _across,
    _least_positions,
    count_crossings,
    lay_out_graph,
    layered,
)

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def random_dag(rng, n, max_parents=3):
    order, parents = rng.permutation(n), [()] * n
    for place, v in enumerate(order):
        size = rng.binomial(min(place, max_parents), 0.45)
        parents[v] = tuple(sorted(int(u) for u in rng.choice(order[:place], size, replace=False)))
    return tuple(parents)


def random_forest(rng, n):
    return tuple((int(rng.integers(v)),) if v and rng.random() < 0.85 else () for v in range(n))


@st.composite
def dags(draw, max_nodes=14):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_dag(rng, draw(st.integers(1, max_nodes)))


CHAIN = ((), (0,), (1,), (2,))


# -- layers ------------------------------------------------------------------------------------------------


@examples(25)
@given(dags())
def test_every_edge_goes_from_layer_to_layer(parents):
    graph = layered(parents)
    place = {point: depth for depth, layer in enumerate(graph.layers) for point in layer}
    assert sorted(place) == list(range(graph.n_points)) == sorted(v for layer in graph.layers for v in layer)
    assert set(graph.chains) == set(edges(parents))
    for (parent, child), chain in graph.chains.items():
        assert (chain[0], chain[-1]) == (parent, child)
        assert all(bend >= len(parents) for bend in chain[1:-1])
        assert [place[point] for point in chain] == list(range(place[parent], place[child] + 1))
    longest = nx.dag_longest_path_length(nx.DiGraph(edges(parents))) if edges(parents) else 0
    assert len(graph.layers) == longest + 1  # no more layers than there must be


def crossings_of(graph):
    below = [[lower for upper, lower in graph.links.tolist() if upper == v] for v in range(graph.n_points)]
    return count_crossings(graph.layers, below)


@examples(25)
@given(dags())
def test_crossings_are_counted_pair_by_pair(parents):
    graph = layered(parents)
    place = {point: (depth, i) for depth, layer in enumerate(graph.layers) for i, point in enumerate(layer)}
    expected = 0
    for (a, b), (c, d) in combinations(graph.links.tolist(), 2):
        same = place[a][0] == place[c][0]
        expected += same and (place[a][1] - place[c][1]) * (place[b][1] - place[d][1]) < 0
    assert crossings_of(graph) == expected


@examples(25)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_trees_have_no_crossings(n, seed):
    parents = random_forest(np.random.default_rng(seed), n)
    for group in connected_parts(n, edges(parents)):
        tree = tuple(tuple(group.index(parent) for parent in parents[v]) for v in group)
        assert crossings_of(layered(tree)) == 0


def test_avoidable_crossings_are_avoided():
    # Two roots whose children are numbered crosswise; any order by number crosses.
    assert crossings_of(layered(((), (), (1,), (1,), (0,), (0, 1)))) == 0
    # All four edges between two parents and two children: one crossing must be.
    assert crossings_of(layered(((), (), (0, 1), (0, 1)))) == 1


def test_a_root_stands_above_its_child():
    graph = layered(((), (0,), (1,), (2, 4), ()))
    assert graph.layers[2] in ([2, 4], [4, 2])


# -- places ------------------------------------------------------------------------------------------------


def overlap(one, other):
    gap = np.maximum(one[:2], other[:2]) - np.minimum(one[:2] + one[2:], other[:2] + other[2:])
    return (gap < -1e-6).all()


@examples(25)
@given(dags(), st.integers(0, 2**32 - 1), st.sampled_from([(800.0, 540.0), (200.0, 900.0), (900.0, 100.0)]))
def test_nothing_lies_on_a_box(parents, seed, page):
    rng = np.random.default_rng(seed)
    sizes = np.column_stack([rng.uniform(20, 120, len(parents)), np.full(len(parents), 20.0)])
    layout = lay_out_graph(parents, sizes, page=page)
    boxes = layout.boxes
    assert set(layout.routes) == set(edges(parents))
    assert (boxes[:, :2] >= -1e-9).all()
    assert (boxes[:, 0] + boxes[:, 2] <= layout.width + 1e-9).all()
    assert (boxes[:, 1] + boxes[:, 3] <= layout.height + 1e-9).all()
    assert (boxes[:, 2:] >= sizes - 1e-9).all()
    for one, other in combinations(boxes, 2):
        assert not overlap(one, other)
    for (parent, child), route in layout.routes.items():
        line = sampled(control_points(route, layout.down))
        for v, box in enumerate(boxes):
            inside = ((line > box[:2] + 1e-6) & (line < box[:2] + box[2:] - 1e-6)).all(axis=1)
            assert not inside.any(), (parent, child, v)
        along = 1 if layout.down else 0
        assert line[0, along] == pytest.approx(boxes[parent, along] + boxes[parent, along + 2])
        assert line[-1, along] == pytest.approx(boxes[child, along])
        assert (np.diff(line[:, along]) >= -1e-9).all()


@examples(15)
@given(dags(max_nodes=8).filter(edges))
def test_places_across_layers_are_the_best(parents):
    """The sweeps against a general solver of the same convex problem."""
    group = max(connected_parts(len(parents), edges(parents)), key=len)
    graph = layered(tuple(tuple(group.index(parent) for parent in parents[v]) for v in group))
    n = len(group)
    breadths = np.zeros(graph.n_points)
    breadths[:n] = np.random.default_rng(n).uniform(20, 60, n)
    links = graph.links
    weight = np.array([1.0, 3.0, 8.0])[(links >= n).sum(axis=1)]

    def cost(x):
        return float(weight @ (x[links[:, 0]] - x[links[:, 1]]) ** 2)

    def slope(x):
        step = 2 * weight * (x[links[:, 0]] - x[links[:, 1]])
        return np.bincount(links[:, 0], step, len(x)) - np.bincount(links[:, 1], step, len(x))

    rows, least = [], []
    for layer in graph.layers:
        for (u, v), space in zip(pairwise(layer), np.diff(_least_positions(layer, breadths, n)), strict=True):
            rows.append(np.eye(graph.n_points)[v] - np.eye(graph.n_points)[u])
            least.append(space)
    x = _across(graph, breadths, n)
    if not rows:
        assert cost(x) == pytest.approx(0, abs=1e-6)
        return
    assert (np.array(rows) @ x >= np.array(least) - 1e-6).all()
    best = minimize(cost, x + 1.0, jac=slope, constraints=LinearConstraint(rows, least), method="SLSQP")
    # The sweeps end when points move by less than a fifth of a point, which is seen by nobody.
    assert cost(x) <= best.fun * 1.02 + 2.0


def test_components_stand_apart_and_single_nodes_below():
    parents = ((), (0,), (), (2,), (2,), (), ())
    layout = lay_out_graph(parents, np.full((7, 2), [60.0, 20.0]), page=(800, 500))
    bottom = (layout.boxes[:5, 1] + layout.boxes[:5, 3]).max()
    assert (layout.boxes[5:, 1] > bottom + 20).all()
    first, second = layout.boxes[:2], layout.boxes[2:5]
    right = (second[:, 0] + second[:, 2]).max()  # the larger one comes first
    assert first[:, 0].min() >= right + 20


def test_the_direction_suits_the_page():
    sizes = np.full((4, 2), [60.0, 20.0])
    assert lay_out_graph(CHAIN, sizes, page=(100, 600)).down
    assert not lay_out_graph(CHAIN, sizes, page=(600, 60)).down
    star = ((), *((0,),) * 20)
    layout = lay_out_graph(star, np.full((21, 2), [90.0, 20.0]), page=(800, 540))
    assert not layout.down
    assert layout.width < 800


def test_labels_find_free_places_or_none():
    line = np.column_stack([np.full(50, 30.0), np.linspace(0, 100, 50)])
    box = np.array([[0.0, 40.0, 60.0, 20.0]])  # over the middle of the edge
    (place,) = label_places([line], np.array([[20.0, 10.0]]), box)
    assert place[0] == 30
    assert not 35 <= place[1] <= 65
    assert label_places([line], np.array([[20.0, 10.0]]), np.array([[0.0, -10.0, 60.0, 120.0]])) is None
    places = label_places([line, line + np.array([1, 0])], np.full((2, 2), [20.0, 10.0]), box)
    assert abs(places[0, 1] - places[1, 1]) >= 10


# -- pictures ----------------------------------------------------------------------------------------------


def patches_of(ax, kind):
    return [patch for patch in ax.patches if type(patch) is kind]


def strengths_of(parents, rng):
    return {edge: float(rng.gamma(0.7)) for edge in edges(parents)}


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("n", [1, 3, 8, 20, 60])
def test_pictures_can_be_read(n):
    rng = np.random.default_rng(n)
    parents = random_dag(rng, n, max_parents=2)
    names = [f"a_rather_long_name_of_variable_{v}" for v in range(n)]
    ax = plot_graph(parents, names, strengths=strengths_of(parents, rng), title="a graph of variables")
    ax.figure.draw_without_rendering()
    boxes = patches_of(ax, FancyBboxPatch)
    assert len(boxes) == n
    assert len(patches_of(ax, PathPatch)) == len(patches_of(ax, Polygon)) == len(edges(parents))
    frame = ax.figure.bbox
    names_drawn = ax.texts[:n]
    assert len({text.get_text() for text in names_drawn}) == n
    for box, text in zip(boxes, names_drawn, strict=True):
        outer, inner = box.get_window_extent(), text.get_window_extent()
        assert outer.x0 <= inner.x0
        assert inner.x1 <= outer.x1
        assert outer.y0 <= inner.y0
        assert inner.y1 <= outer.y1
        assert frame.x0 <= outer.x0
        assert outer.x1 <= frame.x1
        assert text.get_size() >= 5.5
    extents = [text.get_window_extent() for text in ax.texts]
    assert not any(one.overlaps(other) for one, other in combinations(extents, 2))
    if ax.get_legend():
        key = ax.get_legend().get_window_extent()
        assert frame.x0 <= key.x0
        assert key.x1 <= frame.x1
        assert not any(key.overlaps(box.get_window_extent()) for box in boxes)


def test_stronger_edges_are_wider_and_darker():
    ax = plot_graph(CHAIN, list("abcd"), strengths={(0, 1): 0.1, (1, 2): 1.6, (2, 3): 0.4})
    widths = [patch.get_linewidth() for patch in patches_of(ax, PathPatch)]
    darkness = [patch.get_alpha() for patch in patches_of(ax, PathPatch)]
    # The least width belongs to no strength at all; what is above goes with the square root.
    bare = plot_graph(CHAIN, list("abcd"), strengths={(0, 1): 0.0, (1, 2): 1.0, (2, 3): 1.0})
    least = patches_of(bare, PathPatch)[0].get_linewidth()
    above = np.array(widths) - least
    np.testing.assert_allclose(above / above[-1], [0.25, 0.5, 1.0])
    assert darkness == sorted(darkness)
    assert len(set(darkness)) == 3
    assert {"0.1", "1.6", "0.4"} <= set(texts_of(ax))
    assert ax.get_legend() is None


def test_edges_of_unknown_strength_are_dashed():
    ax = plot_graph(CHAIN, list("abcd"), strengths={(0, 1): 0.3, (1, 2): np.nan})
    solid = [patch.get_linestyle() in ("-", "solid") for patch in patches_of(ax, PathPatch)]
    assert solid.count(False) == 2  # one is not a number, one is not told
    assert texts_of(ax) == ["a", "b", "c", "d", "0.3"]
    ax = plot_graph(CHAIN, list("abcd"), strengths={})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["strength unknown"]


def test_without_strengths_all_edges_are_alike():
    ax = plot_graph(CHAIN, list("abcd"))
    assert len({patch.get_linewidth() for patch in patches_of(ax, PathPatch)}) == 1
    assert texts_of(ax) == list("abcd")
    assert ax.get_legend() is None


def test_many_strengths_are_told_by_a_key():
    parents = ((), *((0,),) * 21)
    strengths = {(0, v): float(v) for v in range(1, 22)}
    ax = plot_graph(parents, [f"v{v}" for v in range(22)], strengths=strengths)
    assert len(ax.texts) == 22
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["strength 1", "11", "21"]


def test_groups_have_colours_and_a_key():
    ax = plot_graph(CHAIN, list("abcd"), groups=np.array(["class", "feature", "class", "$x$"]))
    colors = [patch.get_edgecolor() for patch in patches_of(ax, FancyBboxPatch)]
    assert colors[0] == colors[2]
    assert len(set(colors)) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["class", "feature", "$x$"]
    swatches = [patch.get_edgecolor() for patch in ax.get_legend().get_patches()]
    assert swatches == [colors[0], colors[1], colors[3]]
    ax.figure.canvas.draw()


def test_notes_are_second_lines():
    ax = plot_graph(((), (0,)), ["$1", "b"], notes=["yes 0.9", "$no$ 0.7"])
    assert texts_of(ax) == ["$1", "yes 0.9", "b", "$no$ 0.7"]
    ax.figure.canvas.draw()
    boxes = [patch.get_window_extent() for patch in patches_of(ax, FancyBboxPatch)]
    for i, text in enumerate(ax.texts):
        inner = text.get_window_extent()
        assert boxes[i // 2].x0 <= inner.x0
        assert inner.x1 <= boxes[i // 2].x1


def test_a_graph_fits_the_axes_it_is_given():
    rng = np.random.default_rng(1)
    parents = random_dag(rng, 30)
    figure, (left, right) = plt.subplots(1, 2, figsize=(6, 3))
    assert plot_graph(parents, [f"variable_{v}" for v in range(30)], ax=left, title="$left$") is left
    plot_graph(CHAIN, list("abcd"), ax=right)
    figure.canvas.draw()
    for ax in (left, right):
        outer = ax.get_window_extent()
        for patch in patches_of(ax, FancyBboxPatch):
            inner = patch.get_window_extent()
            assert outer.x0 - 1 <= inner.x0
            assert inner.x1 <= outer.x1 + 1
            assert outer.y0 - 1 <= inner.y0
            assert inner.y1 <= outer.y1 + 1
    for box, text in zip(patches_of(left, FancyBboxPatch), left.texts, strict=True):
        # Hinting may make letters this small a little wider than their outlines.
        assert text.get_window_extent().width <= box.get_window_extent().width
    assert right.texts[0].get_size() > left.texts[0].get_size()


def test_errors():
    for arguments, message in [
        (((), []), "nothing to draw"),
        ((((),), []), "names must be as many as the 1 variables, found 0"),
        ((((), (2,)), ["a", "b"]), "positions from 0 to 1, found 2"),
        ((((1,), (0,)), ["a", "b"]), "the graph has a cycle, 'a' -> 'b' -> 'a'"),
    ]:
        with pytest.raises(InputError, match=message):
            plot_graph(*arguments)
    with pytest.raises(InputError, match="groups must be as many"):
        plot_graph(CHAIN, list("abcd"), groups=["x"])
    with pytest.raises(InputError, match="notes must be as many"):
        plot_graph(CHAIN, list("abcd"), notes=["x"])
    with pytest.raises(InputError, match=r"strengths name \(1, 0\), which is no edge"):
        plot_graph(CHAIN, list("abcd"), strengths={(1, 0): 1.0})


def test_graphs_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"pip install tuplet\[plots\]"):
        plot_graph(CHAIN, list("abcd"))
