"""How much class variables tell of each other: in the labels of a data set, and once x is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.plots.canvas import BLUE, pyplot
from tuplet.plots.heatmap import arranged, draw_square, shades
from tuplet.prediction.dependence import label_dependence
from tuplet.space import ClassSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KEY = "dependence (0 to 1)"

# -- pictures ----------------------------------------------------------------------------------------------


def plot_dependence(
    strengths: npt.ArrayLike,
    names: Sequence[Any],
    *,
    arrange: bool = True,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw how strongly pairs of variables depend on each other as a heat map, white for not at all.

    Parameters
    ----------
    strengths : array, shape (q, q)
        Between 0 and 1; NaN for cells that say nothing, such as the diagonal. The two halves may differ.
    names : sequence of q names
    arrange : bool
        Whether variables that depend on the same others are put side by side.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure whose size follows from the number of variables.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_dependence([[np.nan, 0.4], [0.4, np.nan]], ["rain", "umbrella"])
    >>> [text.get_text() for text in ax.texts]
    ['.40', '.40']
    """
    pyplot()  # if it is not there, say so before any work
    matrix, q = np.array(strengths, dtype=float), len(names)
    if matrix.shape != (q, q):
        raise InputError(f"plot_dependence: a matrix of shape {matrix.shape} does not fit {q} names.")
    np.fill_diagonal(matrix, np.nan)
    if arrange and q > 2:
        both = np.nan_to_num(np.fmax(matrix, matrix.T))
        np.fill_diagonal(both, 1.0)
        order = arranged(both)
        matrix, names = matrix[np.ix_(order, order)], [names[i] for i in order]
    strongest = float(np.nanmax(matrix)) if np.isfinite(matrix).any() else 1.0
    highest = max(0.2, np.ceil(10 * strongest) / 10)  # so that faint ones can be told apart
    return draw_square(
        matrix, names, colors=shades(BLUE), limits=(0.0, highest), key=_KEY, title=title, ax=ax
    )


def plot_label_dependence(Y: Any, *, arrange: bool = True, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw how strongly the labels of a data set depend on each other; see `plot_dependence`.

    Parameters
    ----------
    Y : labels, shape (n, m)
        In any container. A pair is judged by the rows in which both labels are known.
    arrange : bool
        Whether variables that depend on the same others are put side by side.
    title : str
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_label_dependence([["wet", "umbrella"]] * 50 + [["dry", "hat"]] * 50)
    >>> [text.get_text() for text in ax.texts]
    ['.86', '.86']
    """
    pyplot()
    space = ClassSpace.from_labels(Y)
    return plot_dependence(
        label_dependence(space.encode(Y)), space.names, arrange=arrange, title=title, ax=ax
    )
