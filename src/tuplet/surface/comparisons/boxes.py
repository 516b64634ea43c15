"""Box plots of scores from which the level of each data set is taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.words import shorten
from tuplet.surface.plots.canvas import BLUE, GREY, INK, ORANGE, caption, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = ["dataset", "model", "fold", "value"]

_FAR = 4
"""How many times farther than all whiskers a value may be and still be drawn."""


def plot_centred_boxes(
    folds: pd.DataFrame,
    *,
    block: Literal["dataset", "fold"] = "dataset",
    greater_is_better: bool = True,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a box of centred scores for each model, the best median on top.

    A score is centred by the mean of its data set: the mean over models of their means. What remains is how
    much better than the others a model is, and data sets of different difficulty can share a box. Boxes end
    at the quartiles, whiskers at the last value within 1.5 box lengths; the diamond is the mean. Values so
    far away that the boxes could not be seen are counted on the right.

    Parameters
    ----------
    folds : DataFrame
        Tidy: columns `dataset`, `model`, `fold` and `value`. Lines without a finite value are left out.
    block : {"dataset", "fold"}
        What is centred together; "fold" takes away the level of each fold of each data set.
    greater_is_better : bool
        False for losses: the lowest median is on top.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    A model that is missing on a data set does not enter its mean, so the others are centred without it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> folds = pd.DataFrame(
    ...     {"dataset": ["emotions"] * 4, "model": ["prior", "chain"] * 2, "fold": [0, 0, 1, 1],
    ...      "value": [0.1, 0.3, 0.2, 0.4]}
    ... )
    >>> ax = plot_centred_boxes(folds)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['chain', 'prior']
    """
    known, values = _centred(folds, block)
    boxes = {
        model: _Box.of(values[part.index].to_numpy()) for model, part in known.groupby("model", sort=False)
    }
    sign = -1 if greater_is_better else 1
    names = sorted(boxes, key=lambda name: (sign * boxes[name].median, sign * boxes[name].mean))
    if ax is None:
        ax = new_axes(7, 1.0 + 0.32 * max(len(names), 2))
    _draw_boxes(ax, [boxes[name] for name in names])
    texts = shorten([str(name) for name in names], 32)
    sizes = [len(boxes[name].values) for name in names]
    if len(set(sizes)) > 1:
        texts = [f"{text} (n = {size})" for text, size in zip(texts, sizes, strict=True)]
    ax.set_yticks(np.arange(len(names)), texts, parse_math=False)
    ax.set_xlabel(_describe(folds, known, block), parse_math=False)
    caption(ax, title)
    return ax


class _Box(NamedTuple):
    values: Floats
    quartiles: Floats
    whiskers: tuple[float, float]
    mean: float

    @classmethod
    def of(cls, values: Floats) -> _Box:
        quartiles = np.percentile(values, [25, 50, 75])
        reach = 1.5 * (quartiles[2] - quartiles[0])
        within = values[(values >= quartiles[0] - reach) & (values <= quartiles[2] + reach)]
        # Interpolated quartiles can lie beyond the last value within reach.
        ends = min(within.min(), quartiles[0]), max(within.max(), quartiles[2])
        return cls(values, quartiles, (float(ends[0]), float(ends[1])), float(values.mean()))

    @property
    def median(self) -> float:
        return float(self.quartiles[1])

    @property
    def outlying(self) -> Floats:
        return self.values[(self.values < self.whiskers[0]) | (self.values > self.whiskers[1])]


def _centred(folds: pd.DataFrame, block: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return the lines that have a finite value, and these values centred."""
    lacking = [column for column in _COLUMNS if column not in folds.columns]
    if lacking:
        raise InputError(f"plot_centred_boxes: `folds` needs the columns {_COLUMNS}, it lacks {lacking}.")
    if block not in ("dataset", "fold"):
        raise InputError(f"plot_centred_boxes: block must be 'dataset' or 'fold', found {block!r}.")
    known = folds.reset_index(drop=True)
    known = known[np.isfinite(known["value"].astype(float))]
    if known.empty:
        raise InputError("plot_centred_boxes: there is no finite value to draw.")
    keys = ["dataset"] if block == "dataset" else ["dataset", "fold"]
    # The mean of means: a model that failed on some folds counts as much as the others.
    means = known.groupby([*keys, "model"], sort=False)["value"].mean()
    levels = means.groupby(level=keys, sort=False).mean().rename("level")
    return known, known["value"] - known.join(levels, on=keys)["level"]


def _draw_boxes(ax: Axes, boxes: list[_Box]) -> None:
    rows = np.arange(len(boxes))
    q1, median, q3 = np.array([box.quartiles for box in boxes]).T
    low, high = np.array([box.whiskers for box in boxes]).T
    ax.axvline(0, color=GREY, linewidth=1)
    ax.hlines(rows, low, high, color=BLUE, linewidth=1.2)
    ax.barh(rows, q3 - q1, left=q1, height=0.56, facecolor=(*_rgb(BLUE), 0.35), edgecolor=BLUE, zorder=2)
    ax.vlines(median, rows - 0.28, rows + 0.28, color=INK, linewidth=1.6, zorder=3)
    limit = _limit(np.concatenate([box.outlying for box in boxes]), float(np.abs([low, high]).max()))
    for row, box in enumerate(boxes):
        _draw_points(ax, box, row, limit)
    ax.set_ylim(len(boxes) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=6)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _rgb(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _limit(outlying: Floats, longest: float) -> float:
    """Return how far from the centre values are drawn, where the farthest whisker ends at `longest`."""
    near = np.abs(outlying) <= _FAR * longest
    if near.all() or longest == 0:
        return float("inf")
    return 1.15 * max(longest, float(np.abs(outlying[near]).max(initial=0.0)))


def _draw_points(ax: Axes, box: _Box, row: int, limit: float) -> None:
    """Draw the mean and the values beyond the whiskers; those beyond the limit are an arrow and a number."""
    if abs(box.mean) <= limit:
        ax.plot(box.mean, row, "D", color=ORANGE, markersize=4.5, zorder=4)
    near = box.outlying[np.abs(box.outlying) <= limit]
    ax.plot(near, np.full(len(near), row), "o", color=BLUE, markersize=3, alpha=0.6)
    n_below, n_above = (np.count_nonzero(sign * box.outlying > limit) for sign in (-1, 1))
    ends = ((n_below, -limit, "<", "below"), (n_above, limit, ">", "above"))
    for end in (end for end in ends if end[0]):
        ax.plot(end[1], row, end[2], color=BLUE, markersize=6)
    texts = [f"{n} far {word}" for n, _, _, word in ends if n]
    texts += [f"mean {box.mean:.2g}"] * (abs(box.mean) > limit)
    place = {"xytext": (4, 0), "textcoords": "offset points", "va": "center_baseline"}
    ax.annotate(", ".join(texts), (1, row), xycoords=ax.get_yaxis_transform(), fontsize="small", **place)  # type: ignore[arg-type]


def _describe(folds: pd.DataFrame, known: pd.DataFrame, block: str) -> str:
    n_sets, n_lost = known["dataset"].nunique(), len(folds) - len(known)
    where = "data set" if block == "dataset" else "fold"
    size = f"{n_sets} data set{'s' * (n_sets != 1)}, {len(known)} values"
    lost = f", {n_lost} without a finite value" if n_lost else ""
    return f"score minus the mean of its {where} over models\n{size}{lost}"
