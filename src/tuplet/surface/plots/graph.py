"""A directed graph in layers: nodes, arrows, and the strengths of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.words import clip, shorten
from tuplet.structure.parents import Edge, ParentSets, edges, find_cycle
from tuplet.surface.plots.canvas import (
    INK,
    PALETTE,
    PAPER,
    caption,
    new_axes,
    points_of,
    pyplot,
    text_width,
    write_legend,
)
from tuplet.surface.plots.layout import GraphLayout, fitting_scale, lay_out_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTERS, _NUMBER = (9.0, 8.0), 7.5
"""Sizes of letters in points: of names and of notes below them; of strengths."""

_LINE = 1.35
"""Height of a line of text in letters."""

_PADDING = (8.0, 4.0)
_MARGIN = 6.0

_KEY_HEIGHT, _KEY_SPACES = 24.0, (2.4, 0.8, 1.6)
"""Of a key below the graph: height in points; in letters, a sample, the space to its text and to the next."""

_PAGE, _SMALLEST = (800.0, 540.0), 0.7
"""A new figure is as large as a page, or larger if letters would be smaller than this fraction of theirs."""

_FEW = 14
"""Edges up to which every strength is written on its edge; beyond, a key explains the widths."""

_STEPS = np.linspace(0.0, 1.0, 25)[:, None]
"""Places along a curve that are tried for labels."""


def plot_graph(
    parents: ParentSets,
    names: Sequence[str],
    *,
    strengths: Mapping[Edge, float] | None = None,
    groups: Sequence[str] | None = None,
    notes: Sequence[str] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a directed acyclic graph: boxes with names, arrows from parents to children.

    Layers follow each other downwards or to the right, whichever fits better. Edges never pass through a
    box. Parts that no edge connects stand side by side, and variables without any edge in rows at the bottom.

    Parameters
    ----------
    parents : tuple of tuples of int
        Parents of each of the n variables.
    names : sequence of str, length n
        Long ones are shortened.
    strengths : mapping of (parent, child) to float, optional
        The stronger an edge, the wider and the darker it is: widths go with the square root. Few strengths
        are written on their edges; of many, a key shows the weakest, the median and the strongest. An
        edge without a finite strength is dashed.
    groups : sequence of str, length n, optional
        Kind of each variable, such as "class" and "feature"; each kind has a colour.
    notes : sequence of str, length n, optional
        A second line in each box.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw, as small as it must be to fit; by default a new figure of a fitting size.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> strengths = {(0, 2): 0.4, (1, 2): 0.1}
    >>> ax = plot_graph(((), (), (0, 1)), ["rain", "sprinkler", "wet"], strengths=strengths)
    >>> [text.get_text() for text in ax.texts]
    ['rain', 'sprinkler', 'wet', '0.4', '0.1']
    """
    pyplot()  # a missing matplotlib is an error before any work
    _check(parents, names, strengths, groups, notes)
    lines = [shorten(names)] if notes is None else [shorten(names), [clip(note, 24) for note in notes]]
    looks = _arrow_looks(edges(parents), strengths)
    few = strengths is not None and len(looks) <= _FEW
    page = _PAGE if ax is None else points_of(ax)
    layout = lay_out_graph(parents, _sizes(lines), page=page, layer_gap=42.0 if few else 26.0)
    numbers = _numbers(layout, looks, strengths or {}) if few else []
    key = [] if strengths is None or numbers else _strength_key(looks, strengths)
    key += _swatches(groups)
    if ax is None:
        ax = new_axes(*_figure_size(_extent(layout, key), title))
    caption(ax, title)
    scale = _frame(ax, layout, _extent(layout, key))
    _draw_arrows(ax, layout, looks, scale)
    _draw_boxes(ax, layout, lines, _colors(groups, len(names)), scale)
    _write_numbers(ax, numbers, scale)
    _draw_key(ax, key, scale)
    return ax


def plot_class_feature_graph(
    parents: ParentSets,
    names: Sequence[str],
    n_classes: int,
    *,
    shown: Sequence[int] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a graph over classes and features, or a part of it.

    Parameters
    ----------
    parents : tuple of tuples of int
        Parents of each of the n variables, the classes first.
    names : sequence of str, length n
    n_classes : int
    shown : sequence of int, optional
        Variables to draw; edges to others are left out.
    title : str
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_class_feature_graph(((), (0,), (0,)), ["ill", "fever", "cough"], 1, shown=[0, 2])
    >>> [text.get_text() for text in ax.texts]
    ['ill', 'cough']
    """
    shown = range(len(parents)) if shown is None else shown
    place = {v: i for i, v in enumerate(shown)}
    return plot_graph(
        tuple(tuple(place[p] for p in parents[v] if p in place) for v in shown),
        [names[v] for v in shown],
        groups=["class" if v < n_classes else "feature" for v in shown],
        title=title,
        ax=ax,
    )


# -- checks and texts --------------------------------------------------------------------------------------


def _check(
    parents: ParentSets,
    names: Sequence[str],
    strengths: Mapping[Edge, float] | None,
    groups: Sequence[str] | None,
    notes: Sequence[str] | None,
) -> None:
    n = len(parents)
    if n == 0:
        raise InputError("plot_graph: there is nothing to draw; pass the parents of at least one variable.")
    for what, given in (("names", names), ("groups", groups), ("notes", notes)):
        if given is not None and len(given) != n:
            raise InputError(f"plot_graph: {what} must be as many as the {n} variables, found {len(given)}.")
    strange = [parent for members in parents for parent in members if not 0 <= parent < n]
    if strange:
        raise InputError(f"plot_graph: parents must be positions from 0 to {n - 1}, found {strange[0]}.")
    if cycle := find_cycle(parents):
        text = " -> ".join(repr(names[v]) for v in (*cycle, cycle[0]))
        raise InputError(f"plot_graph: the graph has a cycle, {text}; drop one of its edges.")
    unknown = set(strengths or ()) - set(edges(parents))
    if unknown:
        raise InputError(
            f"plot_graph: strengths name {min(unknown)}, which is no edge (parent, child) of the graph."
        )


def _sizes(lines: list[list[str]]) -> Floats:
    """Return widths and heights (n, 2) of boxes around lines of text."""
    sizes = _LETTERS[: len(lines)]
    widths = [
        [text_width(text, size, weight) for text in line]
        for line, size, weight in zip(lines, sizes, _weights(lines), strict=True)
    ]
    width = np.maximum(np.max(widths, axis=0), 14.0) + 2 * _PADDING[0]
    return np.column_stack([width, np.full(len(width), _LINE * sum(sizes) + 2 * _PADDING[1])])


def _weights(lines: list[list[str]]) -> list[str]:
    """Return how bold each line is: names are, where something else stands below them."""
    return ["normal"] if len(lines) == 1 else ["bold", "normal"]


def _numbers(
    layout: GraphLayout, looks: Mapping[Edge, Look], strengths: Mapping[Edge, float]
) -> list[tuple[str, Floats]]:
    """Return the strengths as texts with their places; none if there is no room for all."""
    shown = [edge for edge in layout.routes if not looks[edge].dashed]
    texts = [_strength_text(strengths[edge]) for edge in shown]
    lines = [sampled(_shaft(layout.routes[edge], layout.down, looks[edge])) for edge in shown]
    sizes = np.array([(text_width(text, _NUMBER) + 4, _LINE * _NUMBER) for text in texts]).reshape(-1, 2)
    places = label_places(lines, sizes, layout.boxes)
    return [] if places is None else list(zip(texts, places, strict=True))


def _colors(groups: Sequence[str] | None, n: int) -> list[str]:
    if groups is None:
        return [PALETTE[0]] * n
    kinds = list(dict.fromkeys(groups))
    return [PALETTE[kinds.index(kind) % len(PALETTE)] for kind in groups]


# -- drawing ----------------------------------------------------------------------------------------------


def _extent(layout: GraphLayout, key: list[Any]) -> tuple[float, float]:
    """Return the width and height of all that is drawn, at its full size: a layout, and a key below it."""
    letter = _LETTERS[1]
    key_width = sum(text_width(handle.get_label(), letter) + sum(_KEY_SPACES) * letter for handle in key)
    return max(layout.width, key_width) + 2 * _MARGIN, layout.height + _KEY_HEIGHT * bool(key) + 2 * _MARGIN


def _figure_size(extent: tuple[float, float], title: str) -> tuple[float, float]:
    """Return the size of a new figure in inches."""
    scale = max(_SMALLEST, fitting_scale(*extent, _PAGE))
    width = max(scale * extent[0], text_width(title, 11.0), 180.0)
    return width / 72 + 0.15, scale * extent[1] / 72 + (0.45 if title else 0.15)


def _frame(ax: Axes, layout: GraphLayout, extent: tuple[float, float]) -> float:
    """Let the axes show everything, as large as meant or smaller; return its scale."""
    ax.set_axis_off()
    page = points_of(ax)
    scale = fitting_scale(*extent, page)
    width, height = page[0] / scale, page[1] / scale
    left = (layout.width - width) / 2
    top = -_MARGIN - (height - extent[1]) / 2
    ax.set_xlim(left, left + width)
    ax.set_ylim(top + height, top)
    ax.set_aspect("equal")  # as it is already; a figure whose size is changed keeps it
    return scale


def _draw_boxes(
    ax: Axes, layout: GraphLayout, lines: list[list[str]], colors: list[str], scale: float
) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    for v, (x, y, width, height) in enumerate(layout.boxes):
        box = FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=4",
            linewidth=scale,
            facecolor=to_rgba(colors[v], 0.13),
            edgecolor=colors[v],
        )
        ax.add_patch(box)
        top = y + _PADDING[1]
        for line, size, weight in zip(lines, _LETTERS, _weights(lines), strict=False):
            _write(ax, x + width / 2, top + _LINE * size / 2, line[v], size * scale, weight=weight)
            top += _LINE * size


def _write(ax: Axes, x: float, y: float, text: str, size: float, **more: Any) -> None:
    ax.text(x, y, text, size=size, ha="center", va="center", color=INK, parse_math=False, **more)


def _write_numbers(ax: Axes, numbers: list[tuple[str, Floats]], scale: float) -> None:
    paper = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.5 * scale}
    for text, (x, y) in numbers:
        _write(ax, x, y, text, _NUMBER * scale, bbox=paper)


def _swatches(groups: Sequence[str] | None) -> list[Any]:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    kinds = list(dict.fromkeys([] if groups is None else groups))
    colors = _colors(kinds, len(kinds))
    return [
        Patch(facecolor=to_rgba(color, 0.13), edgecolor=color, label=str(kind))
        for kind, color in zip(kinds, colors, strict=True)
    ]


def _draw_key(ax: Axes, key: list[Any], scale: float) -> None:
    if not key:
        return
    for handle in key:
        handle.set_linewidth(scale * handle.get_linewidth())
    length, pad, apart = _KEY_SPACES
    write_legend(
        ax,
        handles=key,
        loc="lower center",
        ncols=len(key),
        borderaxespad=0.2,
        fontsize=_LETTERS[1] * scale,
        handlelength=length,
        handletextpad=pad,
        columnspacing=apart,
    )


# -- arrows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """How an arrow is drawn: width in points, how dark it is, and whether it is dashed."""

    width: float = 1.1
    alpha: float = 0.6
    dashed: bool = False

    @classmethod
    def of_share(cls, share: float) -> Look:
        """Look of an edge with this share of the largest strength; nan for an unknown one."""
        root = float(np.sqrt(np.clip(np.nan_to_num(share), 0.0, 1.0)))
        return cls(0.7 + 3.1 * root, 0.35 + 0.6 * root, bool(np.isnan(share)))

    @property
    def head(self) -> tuple[float, float]:
        """Length of the arrow's head and half of its breadth, in points."""
        return 5.0 + 1.3 * self.width, 2.2 + 0.85 * self.width

    def style(self, scale: float) -> dict[str, Any]:
        """Arguments of matplotlib's lines and patches."""
        line = (0, (3.0, 2.2)) if self.dashed else "-"
        return {"linewidth": self.width * scale, "linestyle": line, "alpha": self.alpha}


def _arrow_looks(arrows: Sequence[Edge], strengths: Mapping[Edge, float] | None) -> dict[Edge, Look]:
    """Return how each edge is drawn: dashed without a finite strength, all alike if none is given."""
    if strengths is None:
        return dict.fromkeys(arrows, Look())
    values = np.array([strengths.get(edge, np.nan) for edge in arrows], dtype=float)
    values[~np.isfinite(values)] = np.nan
    strongest = np.nanmax(np.append(values, np.finfo(float).tiny))
    return {edge: Look.of_share(value / strongest) for edge, value in zip(arrows, values, strict=True)}


def _draw_arrows(ax: Axes, layout: GraphLayout, looks: Mapping[Edge, Look], scale: float) -> None:
    """Draw all edges, the widest last."""
    for edge in sorted(layout.routes, key=lambda edge: looks[edge].width):
        _draw_arrow(ax, layout.routes[edge], layout.down, looks[edge], scale)


def _shaft(route: Floats, down: bool, look: Look) -> Floats:
    """Return an arrow without its head as Bezier curves (pieces, 4, 2)."""
    shorter = route.copy()
    shorter[-1, 1 if down else 0] -= look.head[0]
    return control_points(shorter, down)


def _draw_arrow(ax: Axes, route: Floats, down: bool, look: Look, scale: float) -> None:
    """Draw a curve and its head, which points straight along the layers."""
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    pieces = _shaft(route, down, look)
    corners = np.vstack([pieces[0, :1], pieces[:, 1:].reshape(-1, 2)])
    line = Path(corners, [Path.MOVETO] + [Path.CURVE4] * (len(corners) - 1))
    ax.add_patch(PathPatch(line, facecolor="none", edgecolor=INK, capstyle="butt", **look.style(scale)))
    base, across = corners[-1], look.head[1] * np.array([1.0, 0.0] if down else [0.0, 1.0])
    head = [route[-1], base + across, base - across]
    ax.add_patch(Polygon(head, closed=True, facecolor=INK, edgecolor="none", alpha=look.alpha))


# -- strengths ---------------------------------------------------------------------------------------------


def _strength_text(value: float) -> str:
    """Return a strength with two digits, or to the unit where it has more."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"


def _strength_key(looks: Mapping[Edge, Look], strengths: Mapping[Edge, float]) -> list[Any]:
    """Return lines for a key, with labels: the weakest, the median and the strongest of the edges."""
    from matplotlib.lines import Line2D

    known = sorted((edge for edge in looks if not looks[edge].dashed), key=lambda edge: strengths[edge])
    shown = {_strength_text(strengths[known[i]]): known[i] for i in (0, len(known) // 2, -1) if known}
    texts = {text: looks[edge] for text, edge in shown.items()}
    if len(known) < len(looks):
        texts["unknown"] = Look.of_share(np.nan)
    labels = [f"strength {text}" if i == 0 else text for i, text in enumerate(texts)]
    return [
        Line2D([], [], color=INK, label=label, **look.style(1.0))
        for label, look in zip(labels, texts.values(), strict=True)
    ]


# -- curves and places on them -----------------------------------------------------------------------------


def control_points(route: Floats, down: bool) -> Floats:
    """Return a route as cubic Bezier curves (pieces, 4, 2): it leaves and meets layers at right angles.

    Parameters
    ----------
    route : array, shape (2 + 2 * bends, 2)
        Curves alternate with straight lines through the layers that are passed.
    down : bool
        Whether layers follow each other downwards; otherwise to the right.
    """
    along = 1 if down else 0
    pieces = []
    for start, end in pairwise(route):
        piece = np.array([start, start, end, end])
        piece[1:3, along] = (start[along] + end[along]) / 2
        pieces.append(piece)
    return np.array(pieces)


def sampled(pieces: Floats) -> Floats:
    """Return points (s, 2) along Bezier curves (pieces, 4, 2)."""
    a, b, c, d = (pieces[:, None, i] for i in range(4))
    t, s = _STEPS, 1 - _STEPS
    return (s**3 * a + 3 * s**2 * t * b + 3 * s * t**2 * c + t**3 * d).reshape(-1, 2)


def label_places(lines: Sequence[Floats], sizes: Floats, boxes: Floats) -> Floats | None:
    """Return the middles (edges, 2) of labels on their edges, or None if they cannot all be placed.

    A label lies on no box and no other label, and over as few other edges as possible.

    Parameters
    ----------
    lines : sequence of arrays, each (s, 2)
        Points along every edge.
    sizes : array, shape (edges, 2)
        Widths and heights of the labels.
    boxes : array, shape (n, 4)
        Left, top, width and height of what must stay free.
    """
    taken = np.column_stack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
    places = np.empty((len(lines), 2))
    for i, (line, size) in enumerate(zip(lines, sizes, strict=True)):
        corners = np.column_stack([line - size / 2, line + size / 2])  # left, top, right, bottom
        free = ~_overlap(corners, taken).any(axis=1)
        if not free.any():
            return None
        others = np.concatenate([np.empty((0, 2)), *(other for j, other in enumerate(lines) if j != i)])
        covered = _overlap(corners, np.column_stack([others, others])).sum(axis=1)
        off_centre = np.abs(np.linspace(-1, 1, len(line)))
        best = np.argmin(np.where(free, covered + off_centre, np.inf))
        places[i] = line[best]
        taken = np.vstack([taken, corners[best]])
    return places


def _overlap(one: Floats, other: Floats) -> np.ndarray:
    """Return which rectangles (a, 4) and (b, 4) overlap, as (a, b); a point is a rectangle too."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    return np.asarray((low <= high).all(axis=-1))
