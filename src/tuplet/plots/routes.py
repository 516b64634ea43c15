"""Edges as curves, and free places for labels on them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tuplet.typing import Floats

_STEPS = np.linspace(0.0, 1.0, 25)[:, None]


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
