"""Two models as bars of the difference of their scores, one for each data set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tuplet.evaluate.plots.canvas import cut_length
from tuplet.evaluate.plots.pairing import LOOKS, Pair
from tuplet.plots.canvas import GREY, INK, caption, new_axes
from tuplet.space.words import clip, shorten
from tuplet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_differences(
    scores: pd.DataFrame,
    a: Any,
    b: Any,
    *,
    errors: pd.DataFrame | pd.Series | None = None,
    greater_is_better: bool = True,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the difference `a` - `b` on each data set as a bar, the best for `a` on top.

    Bars that would dwarf all others are cut and have a gap; the numbers beside them are whole.

    Parameters
    ----------
    scores : DataFrame, data sets x models
        Data sets on which one of the two has no score are left out, and counted below.
    a, b : str
        Columns.
    errors : Series or DataFrame, optional
        Half lengths of the error bars: of the differences (a Series by data set), or of the scores (data sets
        x models). Those of scores are added as if independent, which is too long for folds that both share.
    greater_is_better, title, ax
        See `plot_pairs`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> scores = pd.DataFrame({"chain": [0.3, 0.7], "prior": [0.1, 0.2]}, index=["emotions", "scene"])
    >>> ax = plot_differences(scores, "chain", "prior")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['scene', 'emotions']
    """
    pair = Pair.of("plot_differences", scores, a, b, greater_is_better)
    shown = np.flatnonzero(pair.drawn)
    difference = np.subtract(*pair.scores[shown].T)
    order = np.argsort(-difference if greater_is_better else difference, kind="stable")
    shown, difference = shown[order], difference[order]
    if ax is None:
        ax = new_axes(7, 1.2 + 0.25 * max(len(shown), 2) + 0.2 * bool(pair.remark()))
    _draw_bars(ax, difference, pair.outcome[shown], _error_lengths(pair, errors)[shown])
    texts = shorten(pair.names, 32)
    ax.set_yticks(np.arange(len(shown)), [texts[i] for i in shown], parse_math=False)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    remark = pair.remark()
    ax.set_xlabel(
        f"{clip(str(a), 24)} - {clip(str(b), 24)}" + (f"\n{remark}" if remark else ""), parse_math=False
    )
    caption(ax, title + "\n" if title else "")  # a line free for the tallies
    _write_tallies(ax, pair, greater_is_better)
    return ax


def _error_lengths(pair: Pair, errors: pd.DataFrame | pd.Series | None) -> Floats:
    """Return the error of each difference (n,), NaN for unknown."""
    if isinstance(errors, pd.Series):
        return errors.reindex(pair.index).to_numpy(dtype=float)
    return np.hypot(*pair.errors(errors).T)


def _draw_bars(ax: Axes, difference: Floats, outcome: np.ndarray, errors: Floats) -> None:
    """Draw bars of these lengths (n,), the first on top, with errors (n,) where these are not NaN."""
    rows, limit = np.arange(len(difference)), cut_length(np.abs(difference))
    drawn = np.clip(difference, -limit, limit)
    cut = drawn != difference
    colors = [LOOKS[side][0] for side in outcome]
    # A cut bar is two pieces: what is between them says that it is longer.
    ax.barh(rows, np.where(cut, 0.8 * drawn, drawn), color=colors, height=0.7)
    ends = np.where(cut, 0.15 * drawn, 0.0)
    ax.barh(rows, ends, left=np.where(cut, 0.85 * drawn, 0.0), color=colors, height=0.7)
    errors = np.where(cut, np.nan, errors)
    ax.errorbar(drawn, rows, xerr=errors, fmt="none", ecolor=INK, elinewidth=0.9, alpha=0.7)
    ax.axvline(0, color=GREY, linewidth=1)
    reach = np.abs(drawn) + np.nan_to_num(errors)
    _write_numbers(ax, difference, np.copysign(reach, drawn), limit)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _write_numbers(ax: Axes, difference: Floats, ends: Floats, limit: float) -> None:
    """Write each difference behind the end of its bar, and leave room for that."""
    longest = float(np.abs(difference[np.abs(difference) <= limit]).max(initial=0.0)) or 1.0
    decimals = min(6, max(0, 2 - math.floor(math.log10(longest))))
    for row, (value, end) in enumerate(zip(difference, ends, strict=True)):
        align, gap = ("left", 4) if end >= 0 else ("right", -4)
        text = f"{value:+.{decimals}f}" if value else "0"
        place = {"xytext": (gap, 0), "textcoords": "offset points", "va": "center_baseline"}
        ax.annotate(text, (end, row), ha=align, fontsize="small", **place)  # type: ignore[arg-type]
    low, high = min(0.0, ends.min(initial=0.0)), max(0.0, ends.max(initial=0.0))
    room = 0.14 * (high - low) or 1.0
    ax.set_xlim(low - room * (low < 0 or not high), high + room * (high > 0 or not low))


def _write_tallies(ax: Axes, pair: Pair, greater_is_better: bool) -> None:
    """Write above the bars which way is better for whom, and how often."""
    right, left = (1, -1) if greater_is_better else (-1, 1)
    look = {"transform": ax.transAxes, "va": "bottom", "fontsize": "small", "parse_math": False}
    texts = {
        "left": (0, f"← {pair.tally(left, 18)}", left),
        "right": (1, f"{pair.tally(right, 18)} →", right),
    }
    for align, (place, text, side) in texts.items():
        ax.text(place, 1.0, text, ha=align, color=LOOKS[side][0], **look)  # type: ignore[arg-type]
