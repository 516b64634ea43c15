"""Two models on several data sets: points against the diagonal, or bars of the differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.words import clip, shorten
from tuplet.surface.plots.canvas import BLUE, GREY, INK, ORANGE, apply_layout, caption, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {1: (BLUE, "o"), -1: (ORANGE, "s"), 0: (GREY, "D")}
"""Colour and mark of a win of the first model, of the second, and of a tie."""

_N_NAMES, _OUTLYING = 6, 0.15
"""At most so many names, and only of data sets that differ by this share of the largest difference."""

_NAME_WIDTH = 32

_DIRECTIONS = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]
_NEAR, _FAR = 6, 17
"""Distances of a name from its point, in typographic points; the far ones have a line to their point."""

_DWARFED = 4
"""Factor by which a few bars may be longer than all others without being cut."""


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
    pair = _Pair.of("plot_pairs", scores, a, b, greater_is_better)
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
    pair = _Pair.of("plot_differences", scores, a, b, greater_is_better)
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


@dataclass(frozen=True)
class _Pair:
    """Scores of two models on the data sets where both have one.

    Attributes
    ----------
    models : tuple
        The two columns.
    index : Index
        Names of the n data sets.
    scores : array, shape (n, 2)
    outcome : array of int, shape (n,)
        1 where the first model is better, -1 where the second is, 0 where they are equal.
    n_missing : int
        Data sets that are left out.
    """

    models: tuple[Any, Any]
    index: pd.Index
    scores: Floats
    outcome: npt.NDArray[np.int_]
    n_missing: int

    @classmethod
    def of(cls, caller: str, scores: pd.DataFrame, a: Any, b: Any, greater_is_better: bool) -> _Pair:
        """Take two columns of a table of scores; error messages begin with the `caller`."""
        for model in (a, b):
            if model not in scores.columns:
                raise InputError(f"{caller}: no scores of '{model}', only of {list(scores.columns)}.")
        both = scores[a].astype(float).notna() & scores[b].astype(float).notna()
        values = np.column_stack([scores.loc[both, model].to_numpy(dtype=float) for model in (a, b)])
        if not len(values):
            raise InputError(f"{caller}: '{a}' and '{b}' have no data set on which both have a score.")
        higher = (values[:, 0] > values[:, 1]).astype(int) - (values[:, 0] < values[:, 1])
        outcome = higher if greater_is_better else -higher
        return cls((a, b), scores.index[both], values, outcome, len(scores) - len(values))

    @property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """Whether both scores are finite, shape (n,)."""
        return np.asarray(np.isfinite(self.scores).all(axis=1))

    @property
    def names(self) -> list[str]:
        """The data sets."""
        return [str(name) for name in self.index]

    def errors(self, errors: pd.DataFrame | None) -> Floats:
        """Return the errors of the two models (n, 2), NaN for unknown."""
        if errors is None:
            return np.full(self.scores.shape, np.nan)
        return errors.reindex(index=self.index, columns=list(self.models)).to_numpy(dtype=float)

    def tally(self, side: int, width: int) -> str:
        """Return the model of a side (1 or -1), its name no longer than `width`, and its wins."""
        model = self.models[0 if side == 1 else 1]
        return f"{clip(str(model), width)} better: {np.count_nonzero(self.outcome == side)}"

    def remark(self) -> str:
        """Return counts of the data sets that the marks do not show; empty if there are none."""
        counts = {
            "equal": np.count_nonzero(self.outcome == 0),
            "infinite, not drawn": np.count_nonzero(~self.drawn),
            "without a result": self.n_missing,
        }
        return ",  ".join(f"{text}: {count}" for text, count in counts.items() if count)


# -- points ------------------------------------------------------------------------------------------------


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


def _shade(ax: Axes, pair: _Pair, limits: tuple[float, float], greater_is_better: bool) -> None:
    far = limits[1] if greater_is_better else limits[0]
    ax.fill_between(limits, limits, [far, far], color=BLUE, alpha=0.1, linewidth=0)
    ax.plot(limits, limits, color=GREY, linewidth=1, zorder=1)
    upper, lower = (1, -1) if greater_is_better else (-1, 1)
    look = {"transform": ax.transAxes, "parse_math": False, "zorder": 4}
    for side, corner, across, up in ((upper, 0.02, "left", "top"), (lower, 0.98, "right", "bottom")):
        text = pair.tally(side, _NAME_WIDTH)
        ax.text(corner, 1 - corner, text, ha=across, va=up, color=_LOOKS[side][0], **look)  # type: ignore[arg-type]


def _draw_points(ax: Axes, pair: _Pair, errors: Floats) -> None:
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
    for side, (color, marker) in _LOOKS.items():
        first, second = pair.scores[pair.drawn & (pair.outcome == side)].T
        ax.plot(second, first, marker, color=color, markersize=6, alpha=0.85, zorder=3)


def _name_outlying(ax: Axes, pair: _Pair) -> None:
    distance = np.abs(np.subtract(*np.where(pair.drawn[:, None], pair.scores, 0.0).T))
    enough = max(_OUTLYING * distance.max(), np.finfo(float).tiny)
    named = [i for i in np.argsort(-distance, kind="stable")[:_N_NAMES] if distance[i] >= enough]
    rest = np.setdiff1d(np.flatnonzero(pair.drawn), named)
    texts, points = shorten(pair.names, 20), pair.scores[:, ::-1]
    _name_points(ax, points[named], [texts[i] for i in named], points[rest])


def _name_points(ax: Axes, points: Floats, texts: Sequence[str], others: Floats) -> None:
    """Write a text beside each point, where it covers the least.

    Parameters
    ----------
    ax : matplotlib Axes
    points : array, shape (n, 2)
    texts : sequence of n texts
    others : array, shape (n_others, 2)
        Points that should stay visible too.
    """
    apply_layout(ax)
    drawn = ax.transData.transform(np.concatenate([points, others]))
    taken = [text.get_window_extent() for text in ax.texts]
    for point, text in zip(points, texts, strict=True):
        candidates = [
            _place(ax, point, text, direction, far) for far in (False, True) for direction in _DIRECTIONS
        ]
        boxes = [label.get_window_extent() for label in candidates]
        costs = [_cost(box, drawn, taken, ax.bbox) for box in boxes]
        best = int(np.argmin(costs))
        taken.append(boxes[best].padded(1))
        for i, label in enumerate(candidates):
            if i != best:
                label.remove()


def _place(ax: Axes, point: Floats, text: str, direction: tuple[int, int], far: bool) -> Any:
    across, up = direction
    distance = (_FAR if far else _NEAR) * (0.75 if across and up else 1.0)
    return ax.annotate(
        text,
        (point[0], point[1]),
        (across * distance, up * distance),
        textcoords="offset points",
        ha={1: "left", 0: "center", -1: "right"}[across],
        va={1: "bottom", 0: "center", -1: "top"}[up],
        fontsize="small",
        parse_math=False,
        arrowprops={"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3} if far else None,
    )


def _cost(box: Any, drawn: Floats, taken: list[Any], inside: Any) -> float:
    """Return how much a text would hide; texts over texts are the worst, then those that leave the axes."""
    covered = (drawn > [box.x0 - 2, box.y0 - 2]) & (drawn < [box.x1 + 2, box.y1 + 2])
    outside = not (
        inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
    )
    return 100 * sum(box.overlaps(other) for other in taken) + 10 * outside + float(covered.all(axis=1).sum())


# -- bars --------------------------------------------------------------------------------------------------


def _error_lengths(pair: _Pair, errors: pd.DataFrame | pd.Series | None) -> Floats:
    """Return the error of each difference (n,), NaN for unknown."""
    if isinstance(errors, pd.Series):
        return errors.reindex(pair.index).to_numpy(dtype=float)
    return np.hypot(*pair.errors(errors).T)


def _draw_bars(ax: Axes, difference: Floats, outcome: np.ndarray, errors: Floats) -> None:
    """Draw bars of these lengths (n,), the first on top, with errors (n,) where these are not NaN."""
    rows, limit = np.arange(len(difference)), cut_length(np.abs(difference))
    drawn = np.clip(difference, -limit, limit)
    cut = drawn != difference
    colors = [_LOOKS[side][0] for side in outcome]
    # A cut bar is drawn in two pieces; the gap between them shows that it is longer.
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


def _write_tallies(ax: Axes, pair: _Pair, greater_is_better: bool) -> None:
    """Write above the bars which way is better for whom, and how often."""
    right, left = (1, -1) if greater_is_better else (-1, 1)
    look = {"transform": ax.transAxes, "va": "bottom", "fontsize": "small", "parse_math": False}
    texts = {
        "left": (0, f"← {pair.tally(left, 18)}", left),
        "right": (1, f"{pair.tally(right, 18)} →", right),
    }
    for align, (place, text, side) in texts.items():
        ax.text(place, 1.0, text, ha=align, color=_LOOKS[side][0], **look)  # type: ignore[arg-type]


def cut_length(lengths: Floats) -> float:
    """Return the length at which bars are cut, infinity for not at all.

    Bars are cut where at most an eighth of them (or one) are so long that the others could not be seen.

    Parameters
    ----------
    lengths : array, shape (n,)
        Not negative.
    """
    descending = np.sort(lengths)[::-1]
    for n_long in range(1, max(1, len(lengths) // 8) + 1):
        if n_long < len(lengths) and descending[n_long - 1] > _DWARFED * descending[n_long] > 0:
            return float(1.4 * descending[n_long])
    return float("inf")
