"""The graph of a generative classifier in three parts: classes above, features below, bridges between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tuplet.exceptions import InputError
from tuplet.plots.canvas import BLUE, GREY, INK, ORANGE, PAPER, caption, new_axes, pyplot, text_width
from tuplet.space.words import shorten
from tuplet.structure.parents import Edge, ParentSets, edges
from tuplet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTER, _TALL, _APART, _BLOCKS_APART = 9.0, 24.0, 10.0, 22.0
"""Sizes in points: letters, height of a node, space between nodes and between components."""

_GAP = (110.0, 260.0)
"""Space between the rows of classes and features, from few nodes to many."""

_BOW = (16.0, 0.28, 120.0)
"""Height of an arc: least, growth with the distance that it spans, most."""

_MARGIN, _KEY, _LEAST, _WIDEST = 12.0, 22.0, 330.0, 2880.0
"""Points around the graph and for the key; widths from and up to which a new figure grows."""


class _Row(NamedTuple):
    """Nodes of one row: names as written, middles, widths, and the height of the row."""

    names: list[str]
    x: Floats
    widths: Floats
    y: float


def plot_three_part(
    class_parents: ParentSets,
    bridge_parents: ParentSets,
    feature_parents: ParentSets,
    class_names: Sequence[str],
    feature_names: Sequence[str],
    *,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a graph of classes and features.

    Classes stand in the upper row and features in the lower one. Edges between classes are arcs above them,
    edges between features arcs below them, and bridges run from row to row. Components, which class edges
    and bridges hold together, stand side by side in frames of their own; features without class parents
    come last, in none.

    Parameters
    ----------
    class_parents : tuple of tuples of int, length d
        Class parents of each class.
    bridge_parents : tuple of tuples of int, length m
        Class parents of each feature.
    feature_parents : tuple of tuples of int, length m
        Feature parents of each feature, as positions of features.
    class_names, feature_names : sequence of str
        Long ones are shortened.
    title : str
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure as wide as the graph needs.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_three_part(((), (0,)), ((0,), (0, 1)), ((), (0,)), ["C1", "C2"], ["F1", "F2"])
    >>> [text.get_text() for text in ax.texts]
    ['C1', 'C2', 'F1', 'F2']
    """
    pyplot()  # if it is not there, say so before any work
    if len(class_parents) != len(class_names) or not (
        len(bridge_parents) == len(feature_parents) == len(feature_names)
    ):
        raise InputError("plot_three_part: there must be one name for each class and for each feature.")
    names = [shorten(class_names), shorten(feature_names) if len(feature_names) else []]
    widths = [np.array([max(_TALL, text_width(n, _LETTER) + 14) for n in row]) for row in names]
    x, grounds = _places(class_parents, bridge_parents, widths)
    right = max(end for _, end in grounds)
    grounds = grounds[: len(grounds) - any(not members for members in bridge_parents)]
    gap = float(np.clip(0.12 * right, *_GAP))
    rows = [_Row(names[0], x[0], widths[0], 0.0), _Row(names[1], x[1], widths[1], -gap)]
    top = _highest(edges(class_parents), rows[0])
    bottom = _highest(edges(feature_parents), rows[1])
    side = max(0.0, _LEAST - right) / 2  # room for the key below a small graph
    extent = (right + 2 * (side + _MARGIN), gap + top + bottom + 2 * _MARGIN + _TALL + _KEY)
    if ax is None:
        scale = min(1.0, _WIDEST / extent[0])
        width = max(scale * extent[0], text_width(title, 11.0)) / 72
        ax = new_axes(width + 0.15, scale * extent[1] / 72 + (0.45 if title else 0.15))
    caption(ax, title)
    ax.set_axis_off()
    ax.set_xlim(-_MARGIN - side, right + _MARGIN + side)
    ax.set_ylim(-gap - bottom - _TALL / 2 - _MARGIN - _KEY, top + _TALL / 2 + _MARGIN)
    ax.set_aspect("equal")
    scale = _scale(ax)
    _draw_grounds(ax, grounds, (-gap - bottom - _TALL / 2, top + _TALL / 2))
    _draw_bridges(ax, bridge_parents, rows, scale)
    _draw_arcs(ax, edges(class_parents), rows[0], 1.0, BLUE, scale)
    _draw_arcs(ax, edges(feature_parents), rows[1], -1.0, ORANGE, scale)
    for row, color in zip(rows, (BLUE, ORANGE), strict=True):
        _draw_nodes(ax, row, color, scale)
    _draw_key(ax, scale)
    return ax


# -- where nodes stand -------------------------------------------------------------------------------------


def _blocks(class_parents: ParentSets, bridge_parents: ParentSets) -> list[tuple[list[int], list[int]]]:
    """Return classes and features of each component; features without class parents form the last one."""
    label = list(range(len(class_parents)))
    for members in (*((*p, c) for c, p in enumerate(class_parents)), *bridge_parents):
        low = min((label[c] for c in members), default=0)
        joined = {label[c] for c in members}
        label = [low if each in joined else each for each in label]
    blocks = []
    for part in sorted(set(label)):
        classes = [c for c, each in enumerate(label) if each == part]
        features = [f for f, members in enumerate(bridge_parents) if members and label[members[0]] == part]
        blocks.append(_uncrossed(classes, features, bridge_parents))
    loose = [f for f, members in enumerate(bridge_parents) if not members]
    return [*blocks, ([], loose)] if loose else blocks


def _uncrossed(classes: list[int], features: list[int], bridge: ParentSets) -> tuple[list[int], list[int]]:
    """Order classes and features of a component so that bridges cross less."""
    for _ in range(4):
        place = {c: i / max(1, len(classes) - 1) for i, c in enumerate(classes)}
        features = sorted(features, key=lambda f: float(np.mean([place[c] for c in bridge[f]])))
        spot = {f: i / max(1, len(features) - 1) for i, f in enumerate(features)}
        ends = {c: [spot[f] for f in features if c in bridge[f]] or [place[c]] for c in classes}
        classes = sorted(classes, key=lambda c: float(np.mean(ends[c])))
    return classes, features


def _places(
    class_parents: ParentSets, bridge_parents: ParentSets, widths: list[Floats]
) -> tuple[list[Floats], list[tuple[float, float]]]:
    """Return the middles of all classes and features, and where each component begins and ends."""
    x = [np.zeros(len(row)) for row in widths]
    grounds, start = [], 0.0
    for block in _blocks(class_parents, bridge_parents):
        needs = [sum(widths[r][v] + _APART for v in block[r]) for r in range(2)]
        breadth = max(needs)
        for r in range(2):
            spare = (breadth - needs[r]) / max(1, len(block[r]))
            at = start
            for v in block[r]:
                wide = widths[r][v] + _APART + spare
                x[r][v] = at + wide / 2
                at += wide
        grounds.append((start, start + breadth))
        start += breadth + _BLOCKS_APART
    return x, grounds


def _bow(row: _Row, edge: Edge) -> float:
    least, growth, most = _BOW
    return min(most, least + growth * abs(row.x[edge[0]] - row.x[edge[1]]))


def _highest(pairs: Sequence[Edge], row: _Row) -> float:
    """Return how far the arcs of a row reach beyond its nodes; a cubic curve reaches 3/4 of its handles."""
    return max((0.75 * 4 / 3 * _bow(row, edge) for edge in pairs), default=0.0)


# -- how they are drawn ------------------------------------------------------------------------------------


def _scale(ax: Axes) -> float:
    """Return how many points of the page a unit of the axes is."""
    figure = ax.figure.canvas.figure
    figure.draw_without_rendering()
    box = ax.get_window_extent()
    low, high = ax.get_xlim()
    return float(72 * box.width / figure.dpi / (high - low))


def _draw_grounds(ax: Axes, grounds: list[tuple[float, float]], reach: tuple[float, float]) -> None:
    from matplotlib.patches import FancyBboxPatch

    if len(grounds) < 2:
        return
    for begin, end in grounds:
        ax.add_patch(
            FancyBboxPatch(
                (begin, reach[0] - 4),
                end - begin,
                reach[1] - reach[0] + 8,
                boxstyle="round,pad=4,rounding_size=8",
                facecolor="none",
                edgecolor=GREY,
                linewidth=0.6,
                linestyle=(0, (4, 3)),
                zorder=0,
            )
        )


def _draw_bridges(ax: Axes, bridge: ParentSets, rows: list[_Row], scale: float) -> None:
    above, below = rows
    for f, members in enumerate(bridge):
        for c in members:
            start = np.array([above.x[c], above.y - _TALL / 2])
            end = np.array([below.x[f], below.y + _TALL / 2])
            # A straight curve: its handles must differ from its ends, or the head has no direction.
            _arrow(ax, np.linspace(start, end, 4), GREY, scale)


def _draw_arcs(ax: Axes, pairs: Sequence[Edge], row: _Row, side: float, color: str, scale: float) -> None:
    for parent, child in pairs:
        toward = np.sign(row.x[child] - row.x[parent])
        start = np.array([row.x[parent] + toward * row.widths[parent] * 0.15, row.y + side * _TALL / 2])
        end = np.array([row.x[child] - toward * row.widths[child] * 0.15, row.y + side * _TALL / 2])
        lift = np.array([0.0, side * 4 / 3 * _bow(row, (parent, child))])
        _arrow(ax, np.array([start, start + lift, end + lift, end]), color, scale)


def _arrow(ax: Axes, points: Floats, color: str, scale: float) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    arrow = FancyArrowPatch(
        path=path,
        arrowstyle=f"-|>,head_length={4.5 * scale},head_width={2.2 * scale}",
        linewidth=1.1 * scale,
        color=color,
        shrinkA=0,
        shrinkB=0,
        mutation_scale=1.0,
        zorder=1,
    )
    ax.add_patch(arrow)


def _draw_nodes(ax: Axes, row: _Row, color: str, scale: float) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Ellipse

    for name, x, width in zip(row.names, row.x, row.widths, strict=True):
        for face in (PAPER, to_rgba(color, 0.15)):  # paper below, so that no line shines through
            ax.add_patch(
                Ellipse((x, row.y), width, _TALL, facecolor=face, edgecolor=color, linewidth=scale, zorder=2)
            )
        middle: dict[str, Any] = {"ha": "center", "va": "center"}
        ax.text(x, row.y, name, size=_LETTER * scale, color=INK, parse_math=False, zorder=3, **middle)


def _draw_key(ax: Axes, scale: float) -> None:
    from matplotlib.lines import Line2D

    parts = (("class subgraph", BLUE), ("bridge subgraph", GREY), ("feature subgraph", ORANGE))
    ax.legend(
        handles=[Line2D([], [], color=color, linewidth=1.4 * scale, label=label) for label, color in parts],
        loc="lower center",
        ncols=3,
        frameon=False,
        borderaxespad=0.1,
        fontsize=8.0 * max(scale, 0.7),
        handlelength=1.6,
        columnspacing=1.4,
    )
