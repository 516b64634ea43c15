"""Two models as points against the diagonal, one for each data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tuplet.evaluate.plots.labels import name_points
from tuplet.evaluate.plots.pairing import LOOKS, Pair
from tuplet.plots.canvas import BLUE, GREY, caption, new_axes
from tuplet.space.words import clip, shorten
from tuplet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_NAMES, _OUTLYING = 6, 0.15
"""At most so many names, and only of data sets that differ by this share of the largest difference."""

_NAME_WIDTH = 32


def plot_pairs(
    scores: pd.DataFrame,
    a: Any,
    b: Any,
    *,
    errors: pd.DataFrame | None = None,
    greater_is_better: bool = True,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the scores of model `a` against those of model `b`, a point for each data set.

    On the shaded side of the diagonal `a` is better. The data sets on which the two differ most are named.

    Parameters
    ----------
    scores : DataFrame, data sets x models
        Data sets on which one of the two has no score are left out, and counted below.
    a, b : str
        Columns: `a` goes up, `b` goes to the right.
    errors : DataFrame, data sets x models, optional
        Half lengths of the error bars, such as standard deviations over folds.
    greater_is_better : bool
        False for losses.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> scores = pd.DataFrame({"chain": [0.3, 0.7], "prior": [0.1, 0.2]}, index=["emotions", "scene"])
    >>> ax = plot_pairs(scores, "chain", "prior")
    >>> ax.get_ylabel(), ax.get_xlabel()
    ('chain', 'prior')
    """
    pair = Pair.of("plot_pairs", scores, a, b, greater_is_better)
    if ax is None:
        ax = new_axes(5.2, 5.2)
    lengths = np.where(pair.drawn[:, None], pair.errors(errors), np.nan)
    limits = _square(ax, pair.scores[pair.drawn], np.nan_to_num(lengths[pair.drawn]))
    _shade(ax, pair, limits, greater_is_better)
    _draw_points(ax, pair, lengths)
    remark = pair.remark()
    ax.set_xlabel(clip(str(b), _NAME_WIDTH) + (f"\n{remark}" if remark else ""), parse_math=False)
    ax.set_ylabel(clip(str(a), _NAME_WIDTH), parse_math=False)
    caption(ax, title)
    _name_outlying(ax, pair)
    return ax


def _square(ax: Axes, scores: Floats, errors: Floats) -> tuple[float, float]:
    """Give both axes the same limits and length, so that the diagonal is the diagonal."""
    low = float((scores - errors).min(initial=np.inf)) if len(scores) else 0.0
    high = float((scores + errors).max(initial=-np.inf)) if len(scores) else 1.0
    # Points near a corner would lie under the words there, and two points are always in corners.
    space = (0.12 if len(scores) > 2 else 0.8) * (high - low) or 0.1 * abs(high) or 0.1
    limits = low - space, high + space
    ax.set_xlim(*limits)
    ax.set_ylim(*limits)
    ax.set_box_aspect(1)
    ax.locator_params(nbins=5)
    ax.spines[["top", "right"]].set_visible(False)
    return limits


def _shade(ax: Axes, pair: Pair, limits: tuple[float, float], greater_is_better: bool) -> None:
    far = limits[1] if greater_is_better else limits[0]
    ax.fill_between(limits, limits, [far, far], color=BLUE, alpha=0.1, linewidth=0)
    ax.plot(limits, limits, color=GREY, linewidth=1, zorder=1)
    upper, lower = (1, -1) if greater_is_better else (-1, 1)
    look = {"transform": ax.transAxes, "parse_math": False, "zorder": 4}
    for side, corner, across, up in ((upper, 0.02, "left", "top"), (lower, 0.98, "right", "bottom")):
        text = pair.tally(side, _NAME_WIDTH)
        ax.text(corner, 1 - corner, text, ha=across, va=up, color=LOOKS[side][0], **look)  # type: ignore[arg-type]


def _draw_points(ax: Axes, pair: Pair, errors: Floats) -> None:
    """Draw bars of the errors (n, 2), NaN for none, and the points over them."""
    ax.errorbar(
        pair.scores[pair.drawn, 1],
        pair.scores[pair.drawn, 0],
        yerr=errors[pair.drawn, 0],
        xerr=errors[pair.drawn, 1],
        fmt="none",
        ecolor=GREY,
        elinewidth=0.8,
        zorder=2,
    )
    for side, (color, marker) in LOOKS.items():
        first, second = pair.scores[pair.drawn & (pair.outcome == side)].T
        ax.plot(second, first, marker, color=color, markersize=6, alpha=0.85, zorder=3)


def _name_outlying(ax: Axes, pair: Pair) -> None:
    distance = np.abs(np.subtract(*np.where(pair.drawn[:, None], pair.scores, 0.0).T))
    enough = max(_OUTLYING * distance.max(), np.finfo(float).tiny)
    named = [i for i in np.argsort(-distance, kind="stable")[:_N_NAMES] if distance[i] >= enough]
    rest = np.setdiff1d(np.flatnonzero(pair.drawn), named)
    texts, points = shorten(pair.names, 20), pair.scores[:, ::-1]
    name_points(ax, points[named], [texts[i] for i in named], points[rest])
