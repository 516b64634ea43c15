"""Pictures of a posterior distribution: correlations and traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.plots.canvas import BLUE, INK, ORANGE, PALETTE, caption, new_axes, pyplot
from tuplet.plots.heatmap import arranged, draw_square, shades

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_correlations(
    correlations: npt.ArrayLike,
    names: Sequence[Any],
    *,
    arrange: bool = False,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a correlation matrix as a heat map, from blue (-1) over white to orange (1).

    Parameters
    ----------
    correlations : array, shape (q, q)
        Such as `correlation_` of a probit model.
    names : sequence of q names
    arrange : bool
        Whether labels with similar correlations are put side by side.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure whose size follows from the number of labels.

    Returns
    -------
    matplotlib Axes
    """
    pyplot()  # if it is not there, say so before any work
    matrix = np.array(correlations, dtype=float)
    q = len(names)
    if matrix.shape != (q, q):
        raise InputError(f"plot_correlations: a matrix of shape {matrix.shape} does not fit {q} names.")
    order = arranged(matrix) if arrange else np.arange(q)
    matrix = matrix[np.ix_(order, order)]
    np.fill_diagonal(matrix, np.nan)  # which says nothing
    colors = shades(BLUE, ORANGE)
    return draw_square(
        matrix, [names[i] for i in order], colors=colors, limits=(-1.0, 1.0), title=title, ax=ax
    )


def plot_trace(traces: npt.ArrayLike, name: str = "", *, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw the draws of one number, a line for each chain.

    Parameters
    ----------
    traces : array, shape (chains, draws)
    name : str
        Beside the axis.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    array = np.asarray(traces, dtype=float)
    if array.ndim != 2:
        raise InputError(f"plot_trace: traces must be of shape (chains, draws), found {array.shape}.")
    ax = new_axes(7, 2.6) if ax is None else ax
    for chain, values in enumerate(array):
        ax.plot(values, color=PALETTE[chain % len(PALETTE)], linewidth=0.7, alpha=0.8, label=f"{chain + 1}")
    ax.axhline(float(array.mean()), color=INK, linewidth=0.8, linestyle=":")
    ax.set_xlabel("draw")
    ax.set_ylabel(name, parse_math=False)
    ax.margins(x=0)
    ax.spines[["top", "right"]].set_visible(False)
    if len(array) > 1:
        ax.legend(
            title="chain", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small"
        )
    caption(ax, title)
    return ax
