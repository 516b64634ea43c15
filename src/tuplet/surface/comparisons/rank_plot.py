"""The diagram of critical differences, and the groups of models that it joins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.space.words import shorten
from tuplet.surface.plots.canvas import BLUE, GREY, INK, caption, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Heights are measured in lines of text; the axis of ranks is at height 0, and everything below is negative.
_LINE_INCHES = 0.23
_AXIS_INCHES = 4.2
_BAR_STEP, _FIRST_BAR, _BEFORE_NAMES = 0.5, 0.55, 0.75
_BRACKET = 2.1
_LONGEST_NAME = 36


def plot_critical_differences(
    ranks: pd.Series,
    critical_difference: float | None = None,
    *,
    groups: Sequence[Sequence[str]] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw average ranks on an axis, the best on the left, and join the models that do not differ.

    Parameters
    ----------
    ranks : Series
        Average rank of each model.
    critical_difference : float, optional
        Of the test of Nemenyi, drawn as a bracket above the axis. Models whose ranks differ by less are
        joined.
    groups : list of lists of names, optional
        Models that do not differ, for tests without a critical difference. They replace the groups that the
        critical difference gives.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    References
    ----------
    Demšar (2006), Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7, Figure 1.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> ranks = pd.Series({"chain": 1.4, "powerset": 2.1, "independent": 3.2, "prior": 3.3})
    >>> ax = plot_critical_differences(ranks, 1.2)
    >>> [text.get_text() for text in ax.texts if text.get_text().startswith("CD")]
    ['CD = 1.20']
    """
    ordered = _ordered(ranks)
    joined = _groups(ordered, critical_difference, groups)
    levels = _levels([(ordered[group].min(), ordered[group].max()) for group in joined])
    names_top = -(_FIRST_BAR + _BAR_STEP * (max(levels, default=-1) + 1) + _BEFORE_NAMES)
    n_left = (len(ordered) + 1) // 2
    top = _BRACKET + 1.1 if critical_difference is not None else 1.6
    bottom = names_top - n_left + 0.3
    if ax is None:
        ax = new_axes(_figure_width(ordered), _LINE_INCHES * (top - bottom) + 0.15 + 0.3 * bool(title))
    low, high = _limits(ordered, critical_difference)
    margin = 0.09 * (high - low)
    ax.set_xlim(low - margin, high + margin)
    ax.set_ylim(bottom, top)
    ax.set_axis_off()
    _draw_axis(ax, low, high)
    if critical_difference is not None:
        _draw_bracket(ax, low, high, critical_difference)
    _draw_names(ax, ordered, n_left, names_top, (low - margin, high + margin))
    for group, level in zip(joined, levels, strict=True):
        _draw_group(ax, ordered[group].to_numpy(), -(_FIRST_BAR + _BAR_STEP * level))
    caption(ax, title)
    return ax


# -- what is drawn -----------------------------------------------------------------------------------------


def groups_from_difference(ranks: pd.Series, critical_difference: float) -> list[list[str]]:
    """Return the largest groups of models whose average ranks differ by less than the critical difference.

    Parameters
    ----------
    ranks : Series
        Average rank of each model.
    critical_difference : float
        Ranks that differ by this much or more differ significantly.

    Returns
    -------
    list of lists of names
        Of at least two models, from the best rank to the worst.

    Examples
    --------
    >>> ranks = pd.Series({"chain": 1.4, "powerset": 2.1, "independent": 3.2, "prior": 3.3})
    >>> groups_from_difference(ranks, 1.2)
    [['chain', 'powerset'], ['powerset', 'independent', 'prior']]
    """
    ordered = ranks.sort_values(kind="stable")
    values, names = ordered.to_numpy(dtype=float), list(ordered.index)
    ends = [int(np.count_nonzero(values - value < critical_difference)) for value in values]
    return [
        names[start:end]
        for start, end in enumerate(ends)
        if end - start > 1 and (start == 0 or end > ends[start - 1])
    ]


def _ordered(ranks: pd.Series) -> pd.Series:
    ordered = ranks.astype(float).sort_values(kind="stable")
    if ordered.empty or not np.isfinite(ordered).all() or not ordered.index.is_unique:
        raise InputError(
            "plot_critical_differences: `ranks` must give each model, named once, a finite average rank, "
            f"found {ranks.to_dict()}."
        )
    return ordered


def _groups(
    ordered: pd.Series, critical_difference: float | None, groups: Sequence[Sequence[str]] | None
) -> list[list[str]]:
    if groups is None:
        return [] if critical_difference is None else groups_from_difference(ordered, critical_difference)
    unknown = sorted({str(name) for group in groups for name in group if name not in ordered.index})
    if unknown:
        raise InputError(
            f"plot_critical_differences: `groups` name {unknown}, which `ranks` does not; it has "
            f"{list(ordered.index)}."
        )
    return [list(group) for group in groups if len(group) > 1]


def _levels(spans: list[tuple[float, float]]) -> list[int]:
    """Return a level for each bar, so that bars of one level do not touch."""
    ends: list[float] = []
    levels = []
    for start, end in spans:
        free = [level for level, last in enumerate(ends) if last < start - 0.05]
        level = free[0] if free else len(ends)
        ends[level:] = [end, *ends[level + 1 :]]
        levels.append(level)
    return levels


def _limits(ordered: pd.Series, critical_difference: float | None) -> tuple[int, int]:
    """Return whole ranks around those that occur; the whole range where the critical difference needs it."""
    low, high = math.floor(ordered.min()), math.ceil(ordered.max())
    high = max(high, low + 1)
    if critical_difference is not None and critical_difference > high - low:
        low, high = min(low, 1), max(high, len(ordered))
    return low, high


def _figure_width(ordered: pd.Series) -> float:
    lengths = [len(text) for text in shorten([str(name) for name in ordered.index], _LONGEST_NAME)]
    n_left = (len(lengths) + 1) // 2
    longest = max(lengths[:n_left]) + max(lengths[n_left:], default=0)
    return _AXIS_INCHES + 0.06 * len(ordered) + 0.085 * longest


# -- drawing -----------------------------------------------------------------------------------------------


def _draw_axis(ax: Axes, low: int, high: int) -> None:
    ax.plot([low, high], [0, 0], color=INK, linewidth=1)
    ticks = np.arange(low, high + 1)
    ax.vlines(ticks, 0, 0.35, color=INK, linewidth=1)
    halves = ticks[:-1] + 0.5
    ax.vlines(halves, 0, 0.2, color=INK, linewidth=0.7)
    for tick in range(low, high + 1):
        ax.text(tick, 0.5, str(tick), ha="center", va="bottom", fontsize="small")


def _draw_bracket(ax: Axes, low: int, high: int, length: float) -> None:
    text = f"CD = {length:.2f}"
    if length > high - low:
        ax.text(low, _BRACKET, f"{text}, longer than the axis", ha="left", va="center", fontsize="small")
        return
    ax.plot([low, low + length], [_BRACKET, _BRACKET], color=INK, linewidth=1.4)
    ax.vlines([low, low + length], _BRACKET - 0.22, _BRACKET + 0.22, color=INK, linewidth=1.4)
    ax.text(low + length / 2, _BRACKET + 0.2, text, ha="center", va="bottom", fontsize="small")


def _draw_names(ax: Axes, ordered: pd.Series, n_left: int, top: float, margins: tuple[float, float]) -> None:
    """Write the better half on the left, best on top, the rest on the right, worst on top: no lines cross."""
    texts = shorten([str(name) for name in ordered.index], _LONGEST_NAME)
    for position, (rank, text) in enumerate(zip(ordered, texts, strict=True)):
        left = position < n_left
        height = top - (position if left else len(ordered) - 1 - position)
        margin, align, gap = (margins[0], "right", -4) if left else (margins[1], "left", 4)
        ax.plot([rank, rank, margin], [0, height, height], color=INK, linewidth=0.8, solid_joinstyle="miter")
        place = {"xycoords": "data", "textcoords": "offset points"}
        ax.annotate(
            text,
            (margin, height),
            (gap, 0),
            ha=align,
            va="center",
            parse_math=False,
            **place,  # type: ignore[arg-type]
        )
        inner = "left" if left else "right"
        ax.annotate(
            f"{rank:.2f}",
            (margin, height),
            (0, 1),
            ha=inner,
            va="bottom",
            fontsize=7,
            color=GREY,
            **place,  # type: ignore[arg-type]
        )


def _draw_group(ax: Axes, members: np.ndarray, height: float) -> None:
    """Draw a bar with a dot on each member: a line that only passes below the bar has none."""
    ends = [members.min(), members.max()]
    if ends[1] - ends[0] < 1e-9:  # a bar between equal ranks would have no length
        reach = 0.012 * np.ptp(ax.get_xlim())
        ends = [ends[0] - reach, ends[1] + reach]
    ax.plot(ends, [height, height], color=BLUE, linewidth=3.2, solid_capstyle="round", zorder=3)
    ax.plot(members, np.full(len(members), height), "o", color=BLUE, markersize=5.5, zorder=4)
