"""Probabilities of single labels, of a row or of a few rows beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.space.classes import ClassSpace
from tuplet.space.words import chance_text, shorten
from tuplet.surface.plots.canvas import (
    BLUE,
    GREY,
    INK,
    PALETTE,
    PAPER,
    caption,
    new_axes,
    pyplot,
    write_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = 80
"""Labels up to which all of them are drawn; beyond, only the most probable one of each variable."""

_FAINT, _MANY = 0.02, 24
"""Probability below which a yes is left out, and number of lines from which on."""

_ROWS = len(PALETTE)


class _Line(NamedTuple):
    """A line of the picture: one label of variable j; `first` is the first one of its variable."""

    j: int
    code: int
    first: bool


def plot_marginals(
    tables: Sequence[npt.ArrayLike],
    space: ClassSpace,
    *,
    rows: Sequence[Any] = (),
    limits: Sequence[npt.ArrayLike] | None = None,
    truth: Codes | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the probability of each label by itself: bars for one row, marks for several.

    Of a yes/no variable only the yes is drawn; of more than 24 lines, those of a yes that has a probability
    below 0.02 in all rows, and holds in none, are left out. Where there are still more than 80 labels, only
    the most probable one of each other variable is drawn, by the mean of the rows.

    Parameters
    ----------
    tables : sequence of m arrays, shape (r, k_j)
        Marginals of r rows, at most 7.
    space : ClassSpace
        Names and labels.
    rows : sequence of r names, optional
        Names of the rows, for the key.
    limits : sequence of m arrays, shape (r, k_j, 2), optional
        Credible intervals, drawn as lines.
    truth : array of int, shape (r, m), optional
        Codes of the true labels, `UNKNOWN` where missing. Labels that hold are filled, others pale.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure whose height follows from the number of labels.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> space = ClassSpace(("rain", "wind"), (np.array([False, True]), np.array(["low", "mid", "high"])))
    >>> ax = plot_marginals([[[0.3, 0.7]], [[0.5, 0.3, 0.2]]], space)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['rain', 'wind: low', 'mid', 'high']
    """
    pyplot()  # a missing matplotlib is an error before any work
    values = [np.asarray(table, dtype=float) for table in tables]
    n = len(values[0]) if values else 0
    if len(values) != space.n_variables or not 0 < n <= _ROWS:
        raise InputError(
            f"plot_marginals: from 1 to {_ROWS} rows of {space.n_variables} variables can be drawn, found {n}"
            f" of {len(values)}."
        )
    lines, n_faint = _lines(space, values, truth)
    heights, texts = np.arange(len(lines), dtype=float), _texts(lines, space)
    if ax is None:
        width = 4.2 + 0.085 * max(map(len, texts))
        ax = new_axes(max(6.4, width), 0.75 + 0.23 * max(len(lines), 2) + 0.3 * (n > 1))
    chances = np.array([values[line.j][:, line.code] for line in lines])
    ends = None if limits is None else np.array([np.asarray(limits[x.j])[:, x.code] for x in lines])
    holds = _holds(lines, truth)
    if n == 1:
        _draw_bars(ax, heights, chances[:, 0], holds[:, 0])
    else:
        _draw_marks(ax, heights, chances, holds, [str(row) for row in rows] or [str(i) for i in range(n)])
    if ends is not None:
        _draw_limits(ax, heights, ends)
    _finish(ax, lines, texts)
    remarks = ["probability (filled: the label holds)" if truth is not None else "probability"]
    remarks += [f"{n_faint} labels below {_FAINT} are left out"] * bool(n_faint)
    ax.set_xlabel("\n".join(remarks))
    caption(ax, title)
    return ax


def _lines(space: ClassSpace, tables: list[Floats], truth: Codes | None) -> tuple[list[_Line], int]:
    """Return the lines to draw, and the number of labels left out as too improbable."""
    shown = [[1] if space.yes_no(j) else list(range(card)) for j, card in enumerate(space.cards)]
    faint: set[int] = set()
    if sum(map(len, shown)) > _MANY:
        holds = [truth is not None and bool((truth[:, j] == 1).any()) for j in range(len(shown))]
        faint = {
            j
            for j in range(len(shown))
            if space.yes_no(j) and not holds[j] and tables[j][:, 1].max() < _FAINT
        }
        faint = faint if len(faint) < len(shown) else set()
    if sum(len(codes) for j, codes in enumerate(shown) if j not in faint) > _LINES:
        shown = [c if len(c) == 1 else [int(tables[j].mean(axis=0).argmax())] for j, c in enumerate(shown)]
    every = [(j, i, code) for j, codes in enumerate(shown) if j not in faint for i, code in enumerate(codes)]
    return [_Line(j, code, i == 0) for j, i, code in every], len(faint)


def _holds(lines: list[_Line], truth: Codes | None) -> Floats:
    """Return 1 where a label holds, 0 where another one does, NaN where nothing is known, (lines, r)."""
    if truth is None:
        return np.ones((len(lines), _ROWS))
    codes = np.asarray(truth)
    known = [codes[:, line.j] != UNKNOWN for line in lines]
    right = [codes[:, line.j] == line.code for line in lines]
    return np.where(known, np.array(right, dtype=float), np.nan)


def _draw_bars(ax: Axes, heights: Floats, chances: Floats, holds: Floats) -> None:
    colors = [BLUE if hold == 1 else GREY for hold in holds]
    bars = ax.barh(heights, chances, height=0.66, color=colors)
    for bar, hold in zip(bars, holds, strict=True):
        bar.set_alpha(1.0 if hold == 1 else 0.45)
    place: dict[str, Any] = {"textcoords": "offset points", "va": "center_baseline", "fontsize": "small"}
    for y, chance in zip(heights, chances, strict=True):
        # Beside the axes rather than the bar, where an interval would be in the way.
        ax.annotate(
            chance_text(chance), (1.0, y), (4, 0), xycoords=ax.get_yaxis_transform(), color=INK, **place
        )


def _draw_marks(ax: Axes, heights: Floats, chances: Floats, holds: Floats, rows: list[str]) -> None:
    n = chances.shape[1]
    ax.hlines(heights, 0, 1, color=GREY, linewidth=0.5, alpha=0.35, zorder=0)
    look: dict[str, Any] = {"markersize": 5.5, "zorder": 3, "clip_on": False}
    for r, name in enumerate(shorten(rows, 20)):
        y, color = heights + _shift(r, n), PALETTE[r]
        ax.plot([], [], "o", color=color, label=name)
        full = holds[:, r] == 1
        ax.plot(chances[full, r], y[full], "o", color=color, **look)
        ax.plot(chances[~full, r], y[~full], "o", color=color, markerfacecolor=PAPER, **look)
    write_legend(ax, title="row", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=n, fontsize="small")


def _shift(r: int, n: int) -> float:
    """Return how far from the middle of a line the mark of the r-th of n rows is."""
    return 0.5 * ((r + 0.5) / n - 0.5)


def _draw_limits(ax: Axes, heights: Floats, ends: Floats) -> None:
    """Draw intervals (lines, r, 2)."""
    n = ends.shape[1]
    for r in range(n):
        color = INK if n == 1 else PALETTE[r]
        ax.hlines(heights + _shift(r, n), ends[:, r, 0], ends[:, r, 1], color=color, linewidth=1.6, zorder=4)


def _texts(lines: list[_Line], space: ClassSpace) -> list[str]:
    """Return the labels, with their variable where it begins or has one line only."""
    names, alone = shorten(space.names, 28), len({line.j for line in lines}) == len(lines)
    texts = []
    for line in lines:
        label = shorten([str(each) for each in space.categories[line.j]], 20)[line.code]
        full = f"{names[line.j]}: {label}" if line.first or alone else label
        texts.append(names[line.j] if space.yes_no(line.j) else full)
    return texts


def _finish(ax: Axes, lines: list[_Line], texts: list[str]) -> None:
    ax.set_yticks(
        range(len(texts)), texts, parse_math=False, fontsize="medium" if len(lines) < 25 else "small"
    )
    grouped = len({line.j for line in lines}) < len(lines)
    for y, line in enumerate(lines):
        if grouped and line.first and y:
            ax.axhline(y - 0.5, color=GREY, linewidth=0.5, alpha=0.5)
    ax.set_xlim(0, 1)
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
