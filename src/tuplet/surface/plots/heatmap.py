"""Heat maps: dependence and correlations of all pairs of variables, and the joint table of two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.prediction.dependence import label_dependence
from tuplet.space.classes import ClassSpace
from tuplet.space.words import chance_text, clip, shorten
from tuplet.surface.plots.canvas import BLUE, GREY, INK, ORANGE, PAPER, caption, new_axes, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

_NUMBERS = 12
"""Variables up to which the cells of a heat map have room for numbers."""

_PAIR_NUMBERS = 14
"""Labels up to which the cells of the table of two variables have room for numbers."""

_KEY = "dependence (0 to 1)"

_EMPTY = (0.5, 0.5, 0.5, 0.15)
"""Colour of a cell without a value; half transparent, so that it suits light and dark pages."""


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
        Between 0 and 1; NaN for cells without a value, such as the diagonal. The two halves may differ.
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
    pyplot()  # a missing matplotlib is an error before any work
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
    highest = max(0.2, np.ceil(10 * strongest) / 10)  # so that faint ones can be distinguished
    return _draw_square(
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
    pyplot()  # a missing matplotlib is an error before any work
    matrix = np.array(correlations, dtype=float)
    q = len(names)
    if matrix.shape != (q, q):
        raise InputError(f"plot_correlations: a matrix of shape {matrix.shape} does not fit {q} names.")
    order = arranged(matrix) if arrange else np.arange(q)
    matrix = matrix[np.ix_(order, order)]
    np.fill_diagonal(matrix, np.nan)  # one for every variable
    colors = shades(BLUE, ORANGE)
    return _draw_square(
        matrix, [names[i] for i in order], colors=colors, limits=(-1.0, 1.0), title=title, ax=ax
    )


# -- cells and their order ---------------------------------------------------------------------------------


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
    if max(cells.shape) <= _PAIR_NUMBERS:
        _write_chances(ax, cells, highest)
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


def _draw_square(
    matrix: Floats,
    names: Sequence[Any],
    *,
    colors: Colormap,
    limits: tuple[float, float],
    key: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a matrix (q, q) with the same names on both sides, NaN for cells without a value.

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
    side = min(11.0, max(3.2, 1.4 + 0.42 * q if q <= _NUMBERS else 2.4 + 0.17 * q))
    ax = new_axes(side + 0.9, side) if ax is None else ax
    image = ax.imshow(matrix, cmap=colors, vmin=limits[0], vmax=limits[1], interpolation="nearest")
    size = "medium" if q <= _NUMBERS else max(4.0, min(9.0, 320 / q))
    texts = shorten([str(name) for name in names], 24)
    ax.set_xticks(range(q), texts, rotation=90, fontsize=size, parse_math=False)
    ax.set_yticks(range(q), texts, fontsize=size, parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if q <= _NUMBERS:
        _write_cells(ax, matrix, np.abs(matrix) / max(np.abs(limits)))
    bar = plt.colorbar(image, ax=ax, shrink=0.8, aspect=30)
    bar.outline.set_visible(False)
    bar.set_label(key, fontsize="small")
    caption(ax, title)
    return ax


def _write_cells(ax: Axes, matrix: Floats, darkness: Floats) -> None:
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


def _write_chances(ax: Axes, cells: Floats, highest: float) -> None:
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9}
    for (i, j), chance in np.ndenumerate(cells):
        ax.text(j, i, chance_text(chance), color=PAPER if chance > 0.75 * highest else INK, **middle)


def _write_sums(ax: Axes, cells: Floats) -> None:
    """Write the sums beyond thin lines, on the right and below; smaller ones of tables without room."""
    n_a, n_b = cells.shape
    look: dict[str, Any] = {"ha": "center", "va": "center", "color": INK}
    for i, chance in enumerate(cells.sum(axis=1)):
        ax.text(n_b, i, chance_text(chance), fontsize=9, **look)
    tight = n_b > _PAIR_NUMBERS
    for j, chance in enumerate(cells.sum(axis=0)):
        ax.text(j, n_a, chance_text(chance), fontsize=7 if tight else 9, rotation=90 if tight else 0, **look)
    ax.plot([n_b - 0.5, n_b - 0.5], [-0.5, n_a - 0.5], color=GREY, linewidth=0.8)
    ax.plot([-0.5, n_b - 0.5], [n_a - 0.5, n_a - 0.5], color=GREY, linewidth=0.8)


def _frame(ax: Axes, cell: tuple[int, int]) -> None:
    from matplotlib.patches import Rectangle

    corner = (cell[1] - 0.47, cell[0] - 0.45)
    ax.add_patch(Rectangle(corner, 0.94, 0.9, fill=False, edgecolor=INK, linewidth=1.6, zorder=3))
