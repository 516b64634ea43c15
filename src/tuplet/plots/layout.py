"""Where the boxes and edges of a graph go, in points (1/72 inch): none on a box that is not theirs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_array

from tuplet.plots.layers import Layered, components, layered
from tuplet.structure.parents import Edge, ParentSets
from tuplet.typing import Floats

_APART, _BEND_APART = 14.0, 9.0
"""Space between boxes of a layer, and on both sides of an edge that passes between them."""

_PORT_APART = 9.0
"""Space between the edges that end at one side of a box, if it is wide enough."""

_SLOPE, _LONGEST_GAP = 0.22, 110.0
"""How much farther apart layers are where edges go far to the side, up to a largest distance."""

_GROUPS_APART = 30.0
"""Space between parts of the graph that no edge connects."""

_SETTLED, _ROUNDS = 0.2, 120
"""Points are placed once they move less than this, or after this many rounds."""


class Layout(NamedTuple):
    """A drawing of a graph; x to the right, y downwards, from (0, 0)."""

    boxes: Floats  # (n, 4): left, top, width, height
    routes: dict[Edge, Floats]  # (2 + 2 * bends, 2): a curve, then a line through each layer and a curve
    width: float
    height: float
    down: bool  # edges lead downwards, otherwise to the right

    def moved(self, x: float, y: float) -> Layout:
        """Return the same drawing somewhere else."""
        routes = {edge: route + np.array([x, y]) for edge, route in self.routes.items()}
        return self._replace(boxes=self.boxes + np.array([x, y, 0.0, 0.0]), routes=routes)

    def turned(self) -> Layout:
        """Return the drawing with its axes exchanged."""
        routes = {edge: route[:, ::-1] for edge, route in self.routes.items()}
        return Layout(self.boxes[:, [1, 0, 3, 2]], routes, self.height, self.width, not self.down)


def fit(width: float, height: float, page: tuple[float, float]) -> float:
    """Return the scale, at most 1, at which something fits a page."""
    return min(1.0, page[0] / max(width, 1.0), page[1] / max(height, 1.0))


def lay_out_graph(
    parents: ParentSets, sizes: Floats, *, page: tuple[float, float], layer_gap: float = 26.0
) -> Layout:
    """Lay out a graph, downwards or to the right, whichever fits the page better.

    Parameters
    ----------
    parents : tuple of tuples of int
        Parents of each of the n nodes; no cycles.
    sizes : array, shape (n, 2)
        Widths and heights of the boxes. Boxes of a layer become equally long in the direction of the edges.
    page : (width, height)
        The shape that is aimed at; the layout may be larger.
    layer_gap : float
        Least space between layers.

    Examples
    --------
    >>> layout = lay_out_graph(((), (0,)), np.array([[40.0, 20.0], [60.0, 20.0]]), page=(500, 500))
    >>> layout.boxes
    array([[10.,  0., 40., 20.],
           [ 0., 46., 60., 20.]])
    >>> layout.routes
    {(0, 1): array([[30., 20.],
           [30., 46.]])}
    """
    groups = components(parents)
    linked = [group for group in groups if len(group) > 1]
    alone = [group[0] for group in groups if len(group) == 1]
    graphs = [layered(_renumbered(parents, group)) for group in linked]
    choices = []
    for down in (True, False):
        parts = [
            _one_component(graph, sizes[group], down, layer_gap)
            for graph, group in zip(graphs, linked, strict=True)
        ]
        choices += [_together(linked, parts, alone, sizes, width) for width in _widths(parts, page)]
    return max(choices, key=lambda layout: fit(layout.width, layout.height, page))


# -- several components ------------------------------------------------------------------------------------


def _widths(parts: list[Layout], page: tuple[float, float]) -> list[float]:
    """Return widths at which the parts might be broken into rows: that of the page, and wider."""
    widest = max((part.width for part in parts), default=0.0)
    return [max(widest, factor * page[0]) for factor in ((1.0, 1.4, 2.0) if len(parts) != 1 else (1.0,))]


def _together(
    groups: list[list[int]], parts: list[Layout], alone: list[int], sizes: Floats, width: float
) -> Layout:
    """Put parts side by side, in rows of at most this width, and nodes without edges into rows below."""
    boxes = np.zeros((len(sizes), 4))
    routes: dict[Edge, Floats] = {}
    spots, extent = _rows([(part.width, part.height) for part in parts], width, _GROUPS_APART, 0.0)
    for group, part, spot in zip(groups, parts, spots, strict=True):
        moved = part.moved(*spot)
        boxes[group] = moved.boxes
        routes |= {(group[a], group[b]): route for (a, b), route in moved.routes.items()}
    top = extent[1] + _GROUPS_APART if parts else 0.0
    spots, below = _rows([tuple(size) for size in sizes[alone]], max(width, extent[0]), _APART, top)
    boxes[alone] = np.hstack([np.reshape(spots, (-1, 2)), sizes[alone]])
    bottom = below[1] if alone else extent[1]
    return Layout(boxes, routes, max(extent[0], below[0]), bottom, all(part.down for part in parts))


def _rows(
    sizes: Iterable[tuple[float, ...]], width: float, apart: float, top: float
) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Write boxes like words, in lines of at most this width; return their corners and how far they reach."""
    spots, x, y, tallest, right = [], 0.0, top, 0.0, 0.0
    for w, h in sizes:
        if x > 0 and x + w > width + 1e-9:
            x, y, tallest = 0.0, y + tallest + apart, 0.0
        spots.append((x, y))
        right, tallest, x = max(right, x + w), max(tallest, h), x + w + apart
    return spots, (right, y + tallest)


# -- one component -----------------------------------------------------------------------------------------


def _renumbered(parents: ParentSets, group: list[int]) -> ParentSets:
    """Return the graph of some connected nodes, numbered by their places in the group."""
    new = {v: i for i, v in enumerate(group)}
    return tuple(tuple(new[parent] for parent in parents[v]) for v in group)


def _one_component(graph: Layered, sizes: Floats, down: bool, layer_gap: float) -> Layout:
    """Lay out connected nodes, downwards or to the right."""
    if down:
        return _downwards(graph, sizes, layer_gap)
    return _downwards(graph, sizes[:, ::-1], layer_gap).turned()


def _downwards(graph: Layered, sizes: Floats, layer_gap: float) -> Layout:
    """Lay out layers from the top to the bottom."""
    n = len(sizes)
    breadths = np.zeros(graph.n_points)
    breadths[:n] = sizes[:, 0]
    x = _across(graph, breadths, n)
    tall = [max(sizes[v, 1] for v in layer if v < n) for layer in graph.layers]
    layer_of = np.zeros(graph.n_points, dtype=int)
    for depth, layer in enumerate(graph.layers):
        layer_of[layer] = depth
    gaps = _layer_gaps(graph, x, layer_of, layer_gap)
    top = np.concatenate([[0.0], np.cumsum(np.add(tall[:-1], gaps))])
    bottom = top + tall
    ends = layer_of[:n]
    boxes = np.column_stack([x[:n] - breadths[:n] / 2, top[ends], breadths[:n], bottom[ends] - top[ends]])
    routes = _routes(graph, x, breadths, top[layer_of], bottom[layer_of])
    return Layout(boxes, routes, float((x + breadths / 2).max()), float(bottom[-1]), down=True)


def _across(graph: Layered, breadths: Floats, n: int) -> Floats:
    """Return the middles of all points across the layers, in their order and apart from each other.

    They minimise the sum of squared steps to the side over all links, weighted so that long edges are
    straight. Given its neighbours, a layer is an isotonic regression: a point wants to be at the weighted
    mean of its neighbours, and after subtraction of the space that those before it need, order is all that
    is asked for. The whole is convex, so that layer after layer leads to the best of all.
    """
    links = graph.links
    weight = np.array([1.0, 3.0, 8.0])[(links >= n).sum(axis=1)]
    both = np.concatenate([links, links[:, ::-1]])
    pull = csr_array((np.tile(weight, 2), both.T), shape=(graph.n_points, graph.n_points))
    total = pull.sum(axis=1)
    starts = [_least_positions(layer, breadths, n) for layer in graph.layers]
    x = np.zeros(graph.n_points)
    for layer, start in zip(graph.layers, starts, strict=True):
        x[layer] = start - start.mean()
    blocks = [(layer, start, pull[layer]) for layer, start in zip(graph.layers, starts, strict=True)]
    for _ in range(_ROUNDS):
        before = x.copy()
        for layer, start, neighbours in (*blocks, *blocks[-2::-1]):
            wanted = neighbours @ x / total[layer]
            x[layer] = isotonic_regression(wanted - start, weights=total[layer]).x + start
        if np.abs(x - before).max() < _SETTLED:
            break
    return x - (x - breadths / 2).min()


def _least_positions(layer: list[int], breadths: Floats, n: int) -> Floats:
    """Return the middles of the points of a layer that is packed as densely as allowed."""
    steps = [
        (breadths[u] + breadths[v]) / 2 + (_APART if u < n and v < n else _BEND_APART)
        for u, v in pairwise(layer)
    ]
    return np.concatenate([[0.0], np.cumsum(steps)])


def _layer_gaps(graph: Layered, x: Floats, layer_of: np.ndarray, least: float) -> Floats:
    """Return the space below each layer but the last: more where edges go far to the side."""
    upper, lower = graph.links.T
    farthest = np.zeros(max(0, len(graph.layers) - 1))
    np.maximum.at(farthest, layer_of[upper], np.abs(x[upper] - x[lower]))
    return np.clip(_SLOPE * farthest, least, max(least, _LONGEST_GAP))


def _routes(graph: Layered, x: Floats, breadths: Floats, top: Floats, bottom: Floats) -> dict[Edge, Floats]:
    """Return the corners of edges: from its port below the parent, through layers, to that of the child."""
    starts = _ports({edge: (edge[0], x[chain[1]]) for edge, chain in graph.chains.items()}, x, breadths)
    ends = _ports({edge: (edge[1], x[chain[-2]]) for edge, chain in graph.chains.items()}, x, breadths)
    routes = {}
    for edge, chain in graph.chains.items():
        corners = [(starts[edge], bottom[edge[0]])]
        for bend in chain[1:-1]:
            corners += [(x[bend], top[bend]), (x[bend], bottom[bend])]
        routes[edge] = np.array([*corners, (ends[edge], top[edge[1]])])
    return routes


def _ports(ends: dict[Edge, tuple[int, float]], x: Floats, breadths: Floats) -> dict[Edge, float]:
    """Spread the edges at one side of each node, in the order in which they come.

    Parameters
    ----------
    ends : dict of edge to (node, position of the edge's next point)
    """
    at: dict[int, list[Edge]] = {}
    for edge, (v, _) in sorted(ends.items(), key=lambda item: item[1][1]):
        at.setdefault(v, []).append(edge)
    ports = {}
    for v, there in at.items():
        reach = min(0.7 * breadths[v], _PORT_APART * (len(there) - 1)) / 2
        for edge, offset in zip(there, np.linspace(-reach, reach, len(there)), strict=True):
            ports[edge] = float(x[v] + offset)
    return ports
