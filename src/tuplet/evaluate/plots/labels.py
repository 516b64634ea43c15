"""Names beside points, placed so that they can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplet.plots.canvas import lay_out
from tuplet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DIRECTIONS = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]
_NEAR, _FAR = 6, 17
"""Distances of a name from its point, in typographic points; the far ones have a line to their point."""


def name_points(ax: Axes, points: Floats, texts: Sequence[str], others: Floats) -> None:
    """Write a text beside each point, where it covers the least.

    Parameters
    ----------
    ax : matplotlib Axes
    points : array, shape (n, 2)
    texts : sequence of n texts
    others : array, shape (n_others, 2)
        Points that should stay visible too.
    """
    lay_out(ax)
    drawn = ax.transData.transform(np.concatenate([points, others]))
    taken = [text.get_window_extent() for text in ax.texts]
    for point, text in zip(points, texts, strict=True):
        candidates = [
            _place(ax, point, text, direction, far) for far in (False, True) for direction in _DIRECTIONS
        ]
        boxes = [label.get_window_extent() for label in candidates]
        costs = [_cost(box, drawn, taken, ax.bbox) for box in boxes]
        best = int(np.argmin(costs))
        taken.append(boxes[best].padded(1))
        for i, label in enumerate(candidates):
            if i != best:
                label.remove()


def _place(ax: Axes, point: Floats, text: str, direction: tuple[int, int], far: bool) -> Any:
    across, up = direction
    distance = (_FAR if far else _NEAR) * (0.75 if across and up else 1.0)
    return ax.annotate(
        text,
        (point[0], point[1]),
        (across * distance, up * distance),
        textcoords="offset points",
        ha={1: "left", 0: "center", -1: "right"}[across],
        va={1: "bottom", 0: "center", -1: "top"}[up],
        fontsize="small",
        parse_math=False,
        arrowprops={"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3} if far else None,
    )


def _cost(box: Any, drawn: Floats, taken: list[Any], inside: Any) -> float:
    """Return how much a text would hide; texts over texts are the worst, then those that leave the axes."""
    covered = (drawn > [box.x0 - 2, box.y0 - 2]) & (drawn < [box.x1 + 2, box.y1 + 2])
    outside = not (
        inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
    )
    return 100 * sum(box.overlaps(other) for other in taken) + 10 * outside + float(covered.all(axis=1).sum())
