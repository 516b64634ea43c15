"""The joint table of two class variables of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.words import chance_text, clip, shorten
from tuplet.surface.plots.canvas import BLUE, GREY, INK, PAPER, caption, new_axes, pyplot
from tuplet.surface.plots.heatmap import shades

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUMBERS = 14
"""Labels up to which cells have room for numbers."""


def plot_pair_table(
    table: npt.ArrayLike,
    names: tuple[str, str],
    labels: tuple[Sequence[Any], Sequence[Any]],
    *,
    truth: tuple[int, int] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the joint probabilities of two variables as a table of shaded cells, with their sums beside.

    The sums are the probabilities of single labels: where a cell is not the product of its sums, the two
    variables depend on each other.

    Parameters
    ----------
    table : array, shape (k_a, k_b)
    names : tuple of str
        Of the variable that runs down and of the one that runs to the right.
    labels : tuple of two sequences
        Their k_a and k_b labels.
    truth : tuple of int, optional
        The cell that happened; it gets a frame.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure whose size follows from the table.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> table = [[0.5, 0.1], [0.1, 0.3]]
    >>> ax = plot_pair_table(table, ("weather", "umbrella"), (["dry", "wet"], ["no", "yes"]))
    >>> [text.get_text() for text in ax.texts]
    ['0.500', '0.100', '0.100', '0.300', '0.600', '0.400', '0.600', '0.400']
    """
    pyplot()  # a missing matplotlib is an error before any work
    cells = np.asarray(table, dtype=float)
    a, b = (shorten([str(label) for label in each], 16) for each in labels)
    if cells.shape != (len(a), len(b)):
        raise InputError(
            f"plot_pair_table: a table of shape {cells.shape} does not fit {len(a)} and {len(b)} labels."
        )
    if ax is None:
        ax = new_axes(1.9 + 0.72 * min(len(b) + 1, 16), 1.2 + 0.36 * min(len(a) + 1, 30))
    highest = max(float(cells.max()), 1e-12)
    ax.imshow(cells, cmap=shades(BLUE), vmin=0.0, vmax=highest, aspect="auto", interpolation="nearest")
    if max(cells.shape) <= _NUMBERS:
        _write(ax, cells, highest)
    _write_sums(ax, cells)
    if truth is not None:
        _frame(ax, truth)
    ax.set_xticks(range(len(b)), b, parse_math=False, rotation=90 if max(map(len, b)) > 9 else 0)
    ax.set_yticks(range(len(a)), a, parse_math=False)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(clip(names[1], 40), parse_math=False, fontweight="bold")
    ax.set_ylabel(clip(names[0], 40), parse_math=False, fontweight="bold", labelpad=10)
    ax.set_xlim(-0.5, len(b) + 0.5)
    ax.set_ylim(len(a) + 0.5, -0.5)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    caption(ax, title)
    return ax


def _write(ax: Axes, cells: Floats, highest: float) -> None:
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9}
    for (i, j), chance in np.ndenumerate(cells):
        ax.text(j, i, chance_text(chance), color=PAPER if chance > 0.75 * highest else INK, **middle)


def _write_sums(ax: Axes, cells: Floats) -> None:
    """Write the sums beyond thin lines, on the right and below; smaller ones of tables without room."""
    n_a, n_b = cells.shape
    look: dict[str, Any] = {"ha": "center", "va": "center", "color": INK}
    for i, chance in enumerate(cells.sum(axis=1)):
        ax.text(n_b, i, chance_text(chance), fontsize=9, **look)
    tight = n_b > _NUMBERS
    for j, chance in enumerate(cells.sum(axis=0)):
        ax.text(j, n_a, chance_text(chance), fontsize=7 if tight else 9, rotation=90 if tight else 0, **look)
    ax.plot([n_b - 0.5, n_b - 0.5], [-0.5, n_a - 0.5], color=GREY, linewidth=0.8)
    ax.plot([-0.5, n_b - 0.5], [n_a - 0.5, n_a - 0.5], color=GREY, linewidth=0.8)


def _frame(ax: Axes, cell: tuple[int, int]) -> None:
    from matplotlib.patches import Rectangle

    corner = (cell[1] - 0.47, cell[0] - 0.45)
    ax.add_patch(Rectangle(corner, 0.94, 0.9, fill=False, edgecolor=INK, linewidth=1.6, zorder=3))
