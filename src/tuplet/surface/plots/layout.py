"""Places of the boxes and edges of a graph, in points (1/72 inch); no edge passes through a box.

Graphs are drawn in layers by the method of Sugiyama, Tagawa and Toda (1981): layers by longest paths, a bend
wherever an edge passes a layer, and an order of each layer by the barycentres of its neighbours, improved by
swaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_array

from tuplet.core.typing import Floats
from tuplet.structure.parents import Edge, ParentSets, connected_parts, edges, topological_order

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

_SWEEPS = 24
_PATIENCE = 6
"""Sweeps over all layers, and how many of them may bring nothing."""

Layers = list[list[int]]


class GraphLayout(NamedTuple):
    """A drawing of a graph; x to the right, y downwards, from (0, 0)."""

    boxes: Floats  # (n, 4): left, top, width, height
    routes: dict[Edge, Floats]  # (2 + 2 * bends, 2): a curve, then a line through each layer and a curve
    width: float
    height: float
    down: bool  # edges lead downwards, otherwise to the right

    def moved(self, x: float, y: float) -> GraphLayout:
        """Return the same drawing somewhere else."""
        routes = {edge: route + np.array([x, y]) for edge, route in self.routes.items()}
        return self._replace(boxes=self.boxes + np.array([x, y, 0.0, 0.0]), routes=routes)

    def turned(self) -> GraphLayout:
        """Return the drawing with its axes exchanged."""
        routes = {edge: route[:, ::-1] for edge, route in self.routes.items()}
        return GraphLayout(self.boxes[:, [1, 0, 3, 2]], routes, self.height, self.width, not self.down)


def fitting_scale(width: float, height: float, page: tuple[float, float]) -> float:
    """Return the scale, at most 1, at which something fits a page."""
    return min(1.0, page[0] / max(width, 1.0), page[1] / max(height, 1.0))


def lay_out_graph(
    parents: ParentSets, sizes: Floats, *, page: tuple[float, float], layer_gap: float = 26.0
) -> GraphLayout:
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
    groups = sorted(connected_parts(len(parents), edges(parents)), key=len, reverse=True)
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
    return max(choices, key=lambda layout: fitting_scale(layout.width, layout.height, page))


# -- several components ------------------------------------------------------------------------------------


def _widths(parts: list[GraphLayout], page: tuple[float, float]) -> list[float]:
    """Return widths at which the parts might be broken into rows: that of the page, and wider."""
    widest = max((part.width for part in parts), default=0.0)
    return [max(widest, factor * page[0]) for factor in ((1.0, 1.4, 2.0) if len(parts) != 1 else (1.0,))]


def _together(
    groups: list[list[int]], parts: list[GraphLayout], alone: list[int], sizes: Floats, width: float
) -> GraphLayout:
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
    return GraphLayout(boxes, routes, max(extent[0], below[0]), bottom, all(part.down for part in parts))


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


def _one_component(graph: _Layers, sizes: Floats, down: bool, layer_gap: float) -> GraphLayout:
    """Lay out connected nodes, downwards or to the right."""
    if down:
        return _downwards(graph, sizes, layer_gap)
    return _downwards(graph, sizes[:, ::-1], layer_gap).turned()


def _downwards(graph: _Layers, sizes: Floats, layer_gap: float) -> GraphLayout:
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
    return GraphLayout(boxes, routes, float((x + breadths / 2).max()), float(bottom[-1]), down=True)


def _across(graph: _Layers, breadths: Floats, n: int) -> Floats:
    """Return the middles of all points across the layers, in their order and apart from each other.

    They minimise the sum of squared steps to the side over all links, weighted so that long edges are
    straight. Given its neighbours, a layer is an isotonic regression: the target of a point is the
    weighted mean of its neighbours, and after subtraction of the space that those before it need, only the
    order is a constraint. The whole is convex, so that layer after layer leads to the optimum.
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


def _layer_gaps(graph: _Layers, x: Floats, layer_of: np.ndarray, least: float) -> Floats:
    """Return the space below each layer but the last: more where edges go far to the side."""
    upper, lower = graph.links.T
    farthest = np.zeros(max(0, len(graph.layers) - 1))
    np.maximum.at(farthest, layer_of[upper], np.abs(x[upper] - x[lower]))
    return np.clip(_SLOPE * farthest, least, max(least, _LONGEST_GAP))


def _routes(graph: _Layers, x: Floats, breadths: Floats, top: Floats, bottom: Floats) -> dict[Edge, Floats]:
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


# -- layers ------------------------------------------------------------------------------------------------


class _Layers(NamedTuple):
    """A graph of n nodes in layers; points from n on are bends of edges that pass a layer."""

    layers: Layers  # points of each layer, in their order
    chains: dict[Edge, list[int]]  # parent, bends, child of each edge
    n_points: int

    @property
    def links(self) -> npt.NDArray[np.intp]:
        """Pairs of neighbours (links, 2), the upper first."""
        pairs = [pair for chain in self.chains.values() for pair in pairwise(chain)]
        return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def layered(parents: ParentSets) -> _Layers:
    """Put a graph into layers, ordered so that few edges cross.

    Examples
    --------
    >>> layered(((), (0,), (0, 1)))
    _Layers(layers=[[0], [1, 3], [2]], chains={(0, 1): [0, 1], (0, 2): [0, 3, 2], (1, 2): [1, 2]}, n_points=4)
    """
    depth = _depths(parents)
    layers: Layers = [[] for _ in range(max(depth, default=-1) + 1)]
    for v in topological_order(parents):
        layers[depth[v]].append(v)
    chains, n_points = {}, len(parents)
    for parent, child in edges(parents):
        bends = list(range(n_points, n_points + depth[child] - depth[parent] - 1))
        n_points += len(bends)
        for layer, bend in enumerate(bends, start=depth[parent] + 1):
            layers[layer].append(bend)
        chains[parent, child] = [parent, *bends, child]
    graph = _Layers(layers, chains, n_points)
    return graph._replace(layers=_ordered(graph))


def _depths(parents: ParentSets) -> list[int]:
    """Return the layer of each node: below all of its parents, and not far from its children."""
    order = topological_order(parents)
    depth = [0] * len(parents)
    for v in order:
        depth[v] = max((depth[parent] + 1 for parent in parents[v]), default=0)
    children: list[list[int]] = [[] for _ in parents]
    for parent, child in edges(parents):
        children[parent].append(child)
    for v in reversed(order):
        # A step down shortens the edges to the children and makes those from the parents longer.
        if len(children[v]) > len(parents[v]):
            depth[v] = min(depth[child] for child in children[v]) - 1
    return depth


# -- the order within layers -------------------------------------------------------------------------------


def _ordered(graph: _Layers) -> Layers:
    """Sweep down and up again; keep the order with the fewest crossings."""
    above, below = _neighbours(graph)
    layers = _first_order(graph, below)
    best, fewest, idle = layers, count_crossings(layers, below), 0
    for sweep in range(_SWEEPS):
        if fewest == 0 or idle == _PATIENCE:
            break
        down = sweep % 2 == 0
        # Ties turn round in every other pair of sweeps: what is equal from above may not be from below.
        layers = _sweep(layers, above if down else below, down, turn=sweep % 4 > 1)
        layers = _swapped(layers, above, below)
        crossings = count_crossings(layers, below)
        idle = 0 if crossings < fewest else idle + 1
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _neighbours(graph: _Layers) -> tuple[list[list[int]], list[list[int]]]:
    """Return the neighbours of each point in the layer above and in the one below."""
    above: list[list[int]] = [[] for _ in range(graph.n_points)]
    below: list[list[int]] = [[] for _ in range(graph.n_points)]
    for upper, lower in graph.links.tolist():
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _first_order(graph: _Layers, below: list[list[int]]) -> Layers:
    """Order every layer as a depth-first walk meets its points, so that trees have no crossings."""
    met: dict[int, int] = {}
    stack = [v for layer in reversed(graph.layers) for v in reversed(layer)]
    while stack:
        v = stack.pop()
        if v not in met:
            met[v] = len(met)
            stack.extend(reversed(below[v]))
    return [sorted(layer, key=lambda v: met[v]) for layer in graph.layers]


def _sweep(layers: Layers, neighbours: list[list[int]], down: bool, turn: bool) -> Layers:
    """Order each layer by the mean positions of its points' neighbours in the layer before."""
    answer = [layer[::-1] if turn else list(layer) for layer in layers]
    walk = answer if down else answer[::-1]
    for before, layer in pairwise(walk):
        place = {v: i for i, v in enumerate(before)}
        own = {v: i * len(before) / len(layer) for i, v in enumerate(layer)}
        middle = {
            v: sum(place[u] for u in neighbours[v]) / len(neighbours[v]) if neighbours[v] else own[v]
            for v in layer
        }
        layer.sort(key=lambda v, middle=middle: middle[v])  # type: ignore[misc]
    return answer


def _swapped(layers: Layers, above: list[list[int]], below: list[list[int]]) -> Layers:
    """Swap neighbours within their layers as long as crossings go away."""
    place = {v: i for layer in layers for i, v in enumerate(layer)}

    def crossings(left: int, right: int) -> int:
        return sum(
            place[a] > place[b]
            for neighbours in (above, below)
            for a in neighbours[left]
            for b in neighbours[right]
        )

    improved = True
    while improved:
        improved = False
        for layer in layers:
            for i in range(len(layer) - 1):
                left, right = layer[i], layer[i + 1]
                if crossings(left, right) > crossings(right, left):
                    layer[i], layer[i + 1] = right, left
                    place[left], place[right] = i + 1, i
                    improved = True
    return layers


def count_crossings(layers: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> int:
    """Count the pairs of links between neighbouring layers that cross.

    Examples
    --------
    >>> count_crossings([[0, 1], [2, 3]], [[3], [2], [], []])
    1
    """
    total = 0
    for upper, lower in pairwise(layers):
        place = {v: i for i, v in enumerate(lower)}
        ends = np.array([(i, place[w]) for i, v in enumerate(upper) for w in below[v]]).reshape(-1, 2)
        start, end = ends[:, 0], ends[:, 1]
        total += int(((start[:, None] < start) & (end[:, None] > end)).sum())
    return total
