"""Edges as arrows: width and darkness by strength, their curves, and free places for labels on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplet.core.typing import Floats
from tuplet.structure.parents import Edge
from tuplet.surface.plots.canvas import INK
from tuplet.surface.plots.layout import GraphLayout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS = np.linspace(0.0, 1.0, 25)[:, None]
"""Places along a curve that are looked at for labels."""


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


def arrow_looks(arrows: Sequence[Edge], strengths: Mapping[Edge, float] | None) -> dict[Edge, Look]:
    """Return how each edge is drawn: dashed without a finite strength, all alike if none is given."""
    if strengths is None:
        return dict.fromkeys(arrows, Look())
    values = np.array([strengths.get(edge, np.nan) for edge in arrows], dtype=float)
    values[~np.isfinite(values)] = np.nan
    strongest = np.nanmax(np.append(values, np.finfo(float).tiny))
    return {edge: Look.of_share(value / strongest) for edge, value in zip(arrows, values, strict=True)}


def draw_arrows(ax: Axes, layout: GraphLayout, looks: Mapping[Edge, Look], scale: float) -> None:
    """Draw all edges, the widest last."""
    for edge in sorted(layout.routes, key=lambda edge: looks[edge].width):
        _draw_arrow(ax, layout.routes[edge], layout.down, looks[edge], scale)


def shaft(route: Floats, down: bool, look: Look) -> Floats:
    """Return an arrow without its head as Bezier curves (pieces, 4, 2)."""
    shorter = route.copy()
    shorter[-1, 1 if down else 0] -= look.head[0]
    return control_points(shorter, down)


def _draw_arrow(ax: Axes, route: Floats, down: bool, look: Look, scale: float) -> None:
    """Draw a curve and its head, which points straight along the layers."""
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    pieces = shaft(route, down, look)
    corners = np.vstack([pieces[0, :1], pieces[:, 1:].reshape(-1, 2)])
    line = Path(corners, [Path.MOVETO] + [Path.CURVE4] * (len(corners) - 1))
    ax.add_patch(PathPatch(line, facecolor="none", edgecolor=INK, capstyle="butt", **look.style(scale)))
    base, across = corners[-1], look.head[1] * np.array([1.0, 0.0] if down else [0.0, 1.0])
    head = [route[-1], base + across, base - across]
    ax.add_patch(Polygon(head, closed=True, facecolor=INK, edgecolor="none", alpha=look.alpha))


# -- numbers -----------------------------------------------------------------------------------------------


def strength_text(value: float) -> str:
    """Return a strength with two digits, or to the unit where it has more."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"


def strength_key(looks: Mapping[Edge, Look], strengths: Mapping[Edge, float]) -> list[Any]:
    """Return lines for a key, with labels: the weakest, the median and the strongest of the edges."""
    from matplotlib.lines import Line2D

    known = sorted((edge for edge in looks if not looks[edge].dashed), key=lambda edge: strengths[edge])
    shown = {strength_text(strengths[known[i]]): known[i] for i in (0, len(known) // 2, -1) if known}
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
    """Tell which rectangles (a, 4) and (b, 4) overlap, as (a, b); a point is a rectangle too."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    return np.asarray((low <= high).all(axis=-1))
