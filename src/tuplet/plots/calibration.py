"""Reliability diagrams: what happened against what was predicted."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.plots.canvas import GREY, PALETTE, caption, lay_out, new_axes
from tuplet.space.words import shorten
from tuplet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = ["lower", "upper", "mean_predicted", "observed", "count"]
_MARKERS, _STYLES = "osD^vP", ("-", "--", ":")
_BANDS, _WITHIN, _INTERVALS = 3, 5, 8
"""With more models than this, intervals are lines, as bands would cover each other; the legend is outside;
and intervals are left out."""

_UNEVEN = 50
"""Ratio of the largest to the smallest count from which counts are drawn on a log scale."""


def plot_calibration(
    bins: pd.DataFrame | Mapping[Any, pd.DataFrame],
    *,
    confidence: float = 0.95,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw observed frequencies against predicted probabilities, and below how many predictions there are.

    Parameters
    ----------
    bins : DataFrame, or dict of name -> DataFrame
        From `tuplet.metrics.marginal_calibration` or `mode_calibration`.
    confidence : float
        Of the intervals around the observed frequencies (Wilson's). They take predictions for independent,
        which those for one row are not: the true uncertainty of marginals is larger. They are left out in
        pictures of more than eight models.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. The counts are in axes of their own below,
        `ax.child_axes[0]`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> bins = pd.DataFrame(
    ...     {"lower": [0.0, 0.5], "upper": [0.5, 1.0], "mean_predicted": [0.2, 0.9], "observed": [0.3, 0.85],
    ...      "count": [50, 40]}
    ... )
    >>> ax = plot_calibration({"chain": bins})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['chain']
    """
    frames = dict(bins) if isinstance(bins, Mapping) else {"": bins}
    _check(frames, confidence)
    own = ax is None
    if ax is None:
        ax = new_axes(5.2 if len(frames) <= _WITHIN else 6.8, 5.6)
    below = ax.inset_axes((0.0, -0.29, 1.0, 0.22), sharex=ax)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, zorder=1)
    for i, frame in enumerate(frames.values()):
        _draw_model(ax, frame, i, confidence, n_models=len(frames))
        _draw_counts(below, frame, i, alone=len(frames) == 1)
    _finish(ax, below, [frame["count"] for frame in frames.values()])
    _write_legend(ax, frames)
    caption(ax, title)
    if own:
        lay_out(ax)  # the room for axes within axes is right from the second time on
    return ax


def _check(frames: dict[Any, pd.DataFrame], confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InputError(f"plot_calibration: confidence must be between 0 and 1, found {confidence}.")
    if not frames:
        raise InputError("plot_calibration: there is no model to draw.")
    for name, frame in frames.items():
        lacking = [column for column in _COLUMNS if column not in frame.columns]
        if lacking or frame.empty:
            problem = f"lack the columns {lacking}" if lacking else "are empty"
            raise InputError(
                f"plot_calibration: the bins{f' of {name!r}' * (name != '')} {problem}; pass what "
                "marginal_calibration or mode_calibration return."
            )


def wilson(observed: Floats, count: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval of a frequency."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    shrink = 1 + z**2 / count
    centre = (observed + z**2 / (2 * count)) / shrink
    half = z / shrink * np.sqrt(observed * (1 - observed) / count + z**2 / (4 * count**2))
    return centre - half, centre + half


def look_of(i: int) -> dict[str, Any]:
    """Return the colour, line and mark of the i-th model; they repeat after 126."""
    n = len(PALETTE)
    return {
        "color": PALETTE[i % n],
        "linestyle": _STYLES[i // n % len(_STYLES)],
        "marker": _MARKERS[i % len(_MARKERS)],
    }


def _draw_model(ax: Axes, frame: pd.DataFrame, i: int, confidence: float, n_models: int) -> None:
    predicted, observed, count = (
        frame[column].to_numpy(dtype=float) for column in ("mean_predicted", "observed", "count")
    )
    low, high = wilson(observed, count, confidence)
    color = look_of(i)["color"]
    if n_models <= _BANDS and len(frame) > 1:
        ax.fill_between(predicted, low, high, color=color, alpha=0.16, linewidth=0)
    elif n_models <= _INTERVALS:
        ax.vlines(predicted, low, high, color=color, linewidth=1, alpha=0.5)
    sizes = (5.0, 1.4) if n_models <= _INTERVALS else (3.5, 0.9)
    ax.plot(predicted, observed, **look_of(i), markersize=sizes[0], linewidth=sizes[1], zorder=3)


def _draw_counts(below: Axes, frame: pd.DataFrame, i: int, alone: bool) -> None:
    """Draw counts as steps, with gaps where bins are empty."""
    look = look_of(i)
    for lower, upper, count in zip(frame["lower"], frame["upper"], frame["count"], strict=True):
        if alone:
            below.bar(lower, count, width=upper - lower, align="edge", color=look["color"], alpha=0.5)
        else:
            below.plot([lower, upper], [count, count], color=look["color"], linestyle=look["linestyle"])


def _finish(ax: Axes, below: Axes, counts: list[pd.Series]) -> None:
    every = np.concatenate([count.to_numpy(dtype=float) for count in counts])
    if every.max() > _UNEVEN * every.min():
        below.set_yscale("log")
    else:
        below.set_ylim(0, 1.1 * every.max())
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_box_aspect(1)
    ax.set_ylabel("observed frequency")
    ax.tick_params(labelbottom=False)
    below.set_xlabel("predicted probability")
    below.set_ylabel("count")
    for axes in (ax, below):
        axes.spines[["top", "right"]].set_visible(False)


def _write_legend(ax: Axes, frames: dict[Any, pd.DataFrame]) -> None:
    from matplotlib.lines import Line2D

    if list(frames) == [""]:
        return
    handles = [Line2D([], [], **look_of(i), markersize=5) for i in range(len(frames))]
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    place = beside if len(frames) > _WITHIN else {"loc": "upper left"}
    labels = shorten([str(name) for name in frames], 28)
    legend = ax.legend(handles, labels, frameon=False, fontsize="small", **place)
    for text in legend.get_texts():
        text.set_parse_math(False)
