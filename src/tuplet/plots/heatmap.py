"""Square tables of coloured cells, one line and one column for each variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tuplet.plots.canvas import INK, PAPER, caption, new_axes, pyplot
from tuplet.space.words import shorten
from tuplet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

NUMBERS = 12
"""Variables up to which the cells of a heat map have room for numbers."""

_EMPTY = (0.5, 0.5, 0.5, 0.15)
"""Colour of a cell that says nothing; half transparent, so that it suits light and dark pages."""


def shades(*colors: str) -> Colormap:
    """Return colours from nothing to a colour, or from a colour over nothing to another.

    Nothing is transparent rather than white, so that pictures can stand on pages of any colour.
    """
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    ends = [to_rgba(color) for color in colors]
    faint = [(*end[:3], 0.0) for end in ends]
    stops = [faint[0], ends[0]]
    if len(ends) == 2:  # two points in the middle, or one colour would shine through the other
        stops = [ends[0], faint[0], faint[1], ends[1]]
    places = np.array([0.0, 1.0]) if len(stops) == 2 else np.array([0.0, 0.5, 0.5, 1.0])
    named = LinearSegmentedColormap.from_list("shades", list(zip(places, stops, strict=True)))
    return named.with_extremes(bad=_EMPTY)


def draw_square(
    matrix: Floats,
    names: Sequence[Any],
    *,
    colors: Colormap,
    limits: tuple[float, float],
    key: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a matrix (q, q) with the same names on both sides, NaN for cells that say nothing.

    Parameters
    ----------
    matrix : array, shape (q, q)
    names : sequence of q names
        Long ones are shortened.
    colors : Colormap
    limits : tuple of float
        Values of the first and the last colour.
    key : str
        Beside the bar of colours.
    title : str
    ax : matplotlib Axes, optional
        By default a new figure whose size follows from the number of variables.
    """
    plt, q = pyplot(), len(names)
    side = min(11.0, max(3.2, 1.4 + 0.42 * q if q <= NUMBERS else 2.4 + 0.17 * q))
    ax = new_axes(side + 0.9, side) if ax is None else ax
    image = ax.imshow(matrix, cmap=colors, vmin=limits[0], vmax=limits[1], interpolation="nearest")
    size = "medium" if q <= NUMBERS else max(4.0, min(9.0, 320 / q))
    texts = shorten([str(name) for name in names], 24)
    ax.set_xticks(range(q), texts, rotation=90, fontsize=size, parse_math=False)
    ax.set_yticks(range(q), texts, fontsize=size, parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if q <= NUMBERS:
        write_cells(ax, matrix, np.abs(matrix) / max(np.abs(limits)))
    bar = plt.colorbar(image, ax=ax, shrink=0.8, aspect=30)
    bar.outline.set_visible(False)
    bar.set_label(key, fontsize="small")
    caption(ax, title)
    return ax


def write_cells(ax: Axes, matrix: Floats, darkness: Floats) -> None:
    """Write the numbers of a matrix into its cells, in the colour of paper where these are dark."""
    for i, j in zip(*np.nonzero(np.isfinite(matrix)), strict=True):
        text = f"{matrix[i, j]:.2f}".replace("0.", ".").replace("-", "−")
        color = PAPER if darkness[i, j] > 0.75 else INK
        ax.text(j, i, text, ha="center", va="center", fontsize=8, color=color)


def arranged(matrix: Floats) -> npt.NDArray[np.intp]:
    """Return an order (q,) in which similar rows of a matrix are neighbours."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(matrix) < 3:
        return np.arange(len(matrix))
    return np.asarray(leaves_list(linkage(matrix, "average", optimal_ordering=True)), dtype=np.intp)
