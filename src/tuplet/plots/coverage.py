"""How many of the most probable combinations one must look at to find the true one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from tuplet.exceptions import InputError
from tuplet.plots.calibration import look_of, wilson
from tuplet.plots.canvas import GREY, caption, new_axes, pyplot
from tuplet.space.words import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = ["k", "observed", "expected", "count"]


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
    pyplot()  # if it is not there, say so before any work
    frames = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    _check(frames)
    if ax is None:
        ax = new_axes(5.6, 3.9)
    highest = max(_draw(ax, frame, i, confidence) for i, frame in enumerate(frames.values()))
    longest = max(int(frame["k"].max()) for frame in frames.values())
    ax.set_xlim(1 - 0.03 * longest, 1.03 * longest)
    ax.set_ylim(0, min(1.02, 1.15 * highest))
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("most probable combinations looked at (k)")
    ax.set_ylabel("share of rows")
    ax.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    _write_legend(ax, frames)
    caption(ax, title)
    return ax


def _check(frames: dict[Any, pd.DataFrame]) -> None:
    for name, frame in frames.items():
        lacking = [column for column in _COLUMNS if column not in frame.columns]
        if lacking or frame.empty:
            problem = f"lacks the columns {lacking}" if lacking else "is empty"
            raise InputError(
                f"plot_coverage: the curve{f' of {name!r}' * (name != '')} {problem}; pass what"
                " JointPrediction.coverage returns."
            )


def _draw(ax: Axes, frame: pd.DataFrame, i: int, confidence: float) -> float:
    """Draw a curve; return how high it reaches."""
    k, observed, expected, count = (frame[column].to_numpy(dtype=float) for column in _COLUMNS)
    color = look_of(i)["color"]
    low, high = wilson(observed, count, confidence)
    ax.fill_between(k, low, high, color=color, alpha=0.16, linewidth=0)
    mark = "o" if len(k) <= 30 else ""
    ax.plot(k, observed, color=color, marker=mark, markersize=4, linewidth=1.5)
    ax.plot(k, expected, color=color, linestyle=(0, (4, 2)), linewidth=1.2)
    if len(k) == 1:
        ax.plot(k, expected, "_", color=color, markersize=14)
    return float(max(high.max(), expected.max()))


def _write_legend(ax: Axes, frames: dict[Any, pd.DataFrame]) -> None:
    from matplotlib.lines import Line2D

    names = [] if list(frames) == [""] else shorten([str(name) for name in frames], 28)
    color = GREY if names else look_of(0)["color"]
    handles = [Line2D([], [], color=look_of(i)["color"], label=name) for i, name in enumerate(names)]
    handles.append(Line2D([], [], color=color, label="observed"))
    handles.append(Line2D([], [], color=color, linestyle=(0, (4, 2)), label="expected by the model"))
    legend = ax.legend(handles=handles, frameon=False, fontsize="small", loc="lower right")
    for text in legend.get_texts():
        text.set_parse_math(False)
