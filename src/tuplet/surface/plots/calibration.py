"""Observed against predicted: reliability diagrams, and coverage by the most probable combinations."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.words import shorten
from tuplet.surface.plots.canvas import GREY, PALETTE, apply_layout, caption, new_axes, pyplot, write_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = ["lower", "upper", "mean_predicted", "observed", "count"]
_CURVE = ["k", "observed", "expected", "count"]
"""Columns of bins, and of a curve of coverage."""

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
    if not 0 < confidence < 1:
        raise InputError(f"plot_calibration: confidence must be between 0 and 1, found {confidence}.")
    _check(frames, _BINS, "plot_calibration", "what marginal_calibration or mode_calibration return")
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
        apply_layout(ax)  # the space for axes within axes is right from the second time on
    return ax


def _check(frames: dict[Any, pd.DataFrame], columns: list[str], query: str, source: str) -> None:
    """Require frames that have these columns and lines."""
    if not frames:
        raise InputError(f"{query}: there is no model to draw.")
    for name, frame in frames.items():
        lacking = [column for column in columns if column not in frame.columns]
        if lacking or frame.empty:
            problem = f"lacks the columns {lacking}" if lacking else "is empty"
            raise InputError(f"{query}: the table{f' of {name!r}' * (name != '')} {problem}; pass {source}.")


def _wilson(observed: Floats, count: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval of a frequency."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    shrink = 1 + z**2 / count
    centre = (observed + z**2 / (2 * count)) / shrink
    half = z / shrink * np.sqrt(observed * (1 - observed) / count + z**2 / (4 * count**2))
    return centre - half, centre + half


def _look_of(i: int) -> dict[str, Any]:
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
    low, high = _wilson(observed, count, confidence)
    color = _look_of(i)["color"]
    if n_models <= _BANDS and len(frame) > 1:
        ax.fill_between(predicted, low, high, color=color, alpha=0.16, linewidth=0)
    elif n_models <= _INTERVALS:
        ax.vlines(predicted, low, high, color=color, linewidth=1, alpha=0.5)
    sizes = (5.0, 1.4) if n_models <= _INTERVALS else (3.5, 0.9)
    ax.plot(predicted, observed, **_look_of(i), markersize=sizes[0], linewidth=sizes[1], zorder=3)


def _draw_counts(below: Axes, frame: pd.DataFrame, i: int, alone: bool) -> None:
    """Draw counts as steps, with gaps where bins are empty."""
    look = _look_of(i)
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
    handles = [Line2D([], [], **_look_of(i), markersize=5) for i in range(len(frames))]
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    place = beside if len(frames) > _WITHIN else {"loc": "upper left"}
    labels = shorten([str(name) for name in frames], 28)
    write_legend(ax, handles=handles, labels=labels, fontsize="small", **place)


# -- coverage ----------------------------------------------------------------------------------------------


def plot_coverage(
    curves: pd.DataFrame | Mapping[Any, pd.DataFrame],
    *,
    confidence: float = 0.95,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of rows whose true combination is among the k most probable ones, against k.

    The dashed line is what the model itself expects: the mean probability of these combinations together. A
    model whose line is below its expectation is too sure of itself.

    Parameters
    ----------
    curves : DataFrame, or dict of name -> DataFrame
        From `JointPrediction.coverage`: columns `k`, `observed`, `expected` and `count`.
    confidence : float
        Of the intervals around the observed shares (Wilson's).
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> curve = pd.DataFrame({"k": [1, 2], "observed": [0.5, 0.8], "expected": [0.6, 0.9], "count": [50, 50]})
    >>> ax = plot_coverage(curve)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['observed', 'expected by the model']
    """
    pyplot()  # a missing matplotlib is an error before any work
    frames = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    _check(frames, _CURVE, "plot_coverage", "what JointPrediction.coverage returns")
    if ax is None:
        ax = new_axes(5.6, 3.9)
    highest = max(_draw_curve(ax, frame, i, confidence) for i, frame in enumerate(frames.values()))
    longest = max(int(frame["k"].max()) for frame in frames.values())
    ax.set_xlim(1 - 0.03 * longest, 1.03 * longest)
    ax.set_ylim(0, min(1.02, 1.15 * highest))
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("most probable combinations looked at (k)")
    ax.set_ylabel("share of rows")
    ax.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    _write_curve_legend(ax, frames)
    caption(ax, title)
    return ax


def _draw_curve(ax: Axes, frame: pd.DataFrame, i: int, confidence: float) -> float:
    """Draw a curve; return how high it reaches."""
    k, observed, expected, count = (frame[column].to_numpy(dtype=float) for column in _CURVE)
    color = _look_of(i)["color"]
    low, high = _wilson(observed, count, confidence)
    ax.fill_between(k, low, high, color=color, alpha=0.16, linewidth=0)
    mark = "o" if len(k) <= 30 else ""
    ax.plot(k, observed, color=color, marker=mark, markersize=4, linewidth=1.5)
    ax.plot(k, expected, color=color, linestyle=(0, (4, 2)), linewidth=1.2)
    if len(k) == 1:
        ax.plot(k, expected, "_", color=color, markersize=14)
    return float(max(high.max(), expected.max()))


def _write_curve_legend(ax: Axes, frames: dict[Any, pd.DataFrame]) -> None:
    from matplotlib.lines import Line2D

    names = [] if list(frames) == [""] else shorten([str(name) for name in frames], 28)
    color = GREY if names else _look_of(0)["color"]
    handles = [Line2D([], [], color=_look_of(i)["color"], label=name) for i, name in enumerate(names)]
    handles.append(Line2D([], [], color=color, label="observed"))
    handles.append(Line2D([], [], color=color, linestyle=(0, (4, 2)), label="expected by the model"))
    write_legend(ax, handles=handles, fontsize="small", loc="lower right")
