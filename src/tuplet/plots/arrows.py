"""Arrows whose width and darkness tell how strong an edge is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplet.plots.canvas import INK
from tuplet.plots.layout import Layout
from tuplet.plots.routes import control_points
from tuplet.structure.parents import Edge
from tuplet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def draw_arrows(ax: Axes, layout: Layout, looks: Mapping[Edge, Look], scale: float) -> None:
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
