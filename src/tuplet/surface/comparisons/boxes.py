"""Box plots of scores from which the level of each data set is taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.words import shorten
from tuplet.surface.plots.canvas import BLUE, GREY, INK, ORANGE, caption, new_axes, pyplot

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
    boxes = _statistics(known["model"], values)
    sign = -1 if greater_is_better else 1
    names = sorted(boxes, key=lambda name: (sign * boxes[name]["med"], sign * boxes[name]["mean"]))
    if ax is None:
        ax = new_axes(7, 1.0 + 0.32 * max(len(names), 2))
    _draw_boxes(ax, [boxes[name] for name in names])
    texts = shorten([str(name) for name in names], 32)
    sizes = known["model"].value_counts()[names].tolist()
    if len(set(sizes)) > 1:
        texts = [f"{text} (n = {size})" for text, size in zip(texts, sizes, strict=True)]
    ax.set_yticks(np.arange(len(names)), texts, parse_math=False)
    ax.set_xlabel(_describe(folds, known, block), parse_math=False)
    caption(ax, title)
    return ax


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


def _statistics(models: pd.Series, values: pd.Series) -> dict[Any, dict[str, Any]]:
    pyplot()  # the error if there is no matplotlib
    from matplotlib.cbook import boxplot_stats

    return {model: boxplot_stats(part.to_numpy())[0] for model, part in values.groupby(models, sort=False)}


def _draw_boxes(ax: Axes, boxes: list[dict[str, Any]]) -> None:
    fliers = np.concatenate([box["fliers"] for box in boxes])
    limit = _limit(fliers, max(abs(box[end]) for box in boxes for end in ("whislo", "whishi")))
    ax.axvline(0, color=GREY, linewidth=1)
    ax.bxp(
        [_within(box, limit) for box in boxes],
        positions=range(len(boxes)),
        widths=0.56,
        orientation="horizontal",
        manage_ticks=False,
        patch_artist=True,
        showcaps=False,
        showmeans=True,
        boxprops={"facecolor": (BLUE, 0.35), "edgecolor": BLUE},
        whiskerprops={"color": BLUE, "linewidth": 1.2, "solid_capstyle": "butt"},
        medianprops={"color": INK, "linewidth": 1.6},
        meanprops={"marker": "D", "mfc": ORANGE, "mec": ORANGE, "markersize": 4.5},
        flierprops={"marker": "o", "mfc": BLUE, "mec": BLUE, "markersize": 3, "alpha": 0.6},
    )
    for row, box in enumerate(boxes):
        _note_far_values(ax, box, row, limit)
    ax.set_ylim(len(boxes) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=6)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _within(box: dict[str, Any], limit: float) -> dict[str, Any]:
    """Return the statistics without a mean and values beyond the limit."""
    near = box["fliers"][np.abs(box["fliers"]) <= limit]
    return box | {"fliers": near, "mean": box["mean"] if abs(box["mean"]) <= limit else np.nan}


def _limit(outlying: Floats, longest: float) -> float:
    """Return how far from the centre values are drawn, where the farthest whisker ends at `longest`."""
    near = np.abs(outlying) <= _FAR * longest
    if near.all() or longest == 0:
        return float("inf")
    return 1.15 * max(longest, float(np.abs(outlying[near]).max(initial=0.0)))


def _note_far_values(ax: Axes, box: dict[str, Any], row: int, limit: float) -> None:
    """Write how many values are beyond the limit, with an arrow, and the mean if it is."""
    n_below, n_above = (np.count_nonzero(sign * box["fliers"] > limit) for sign in (-1, 1))
    ends = ((n_below, -limit, "<", "below"), (n_above, limit, ">", "above"))
    for end in (end for end in ends if end[0]):
        ax.plot(end[1], row, end[2], color=BLUE, markersize=6)
    texts = [f"{n} far {word}" for n, _, _, word in ends if n]
    if abs(box["mean"]) > limit:
        texts.append(f"mean {box['mean']:.2g}")
    place = {"xytext": (4, 0), "textcoords": "offset points", "va": "center_baseline"}
    ax.annotate(", ".join(texts), (1, row), xycoords=ax.get_yaxis_transform(), fontsize="small", **place)  # type: ignore[arg-type]


def _describe(folds: pd.DataFrame, known: pd.DataFrame, block: str) -> str:
    n_sets, n_lost = known["dataset"].nunique(), len(folds) - len(known)
    where = "data set" if block == "dataset" else "fold"
    size = f"{n_sets} data set{'s' * (n_sets != 1)}, {len(known)} values"
    lost = f", {n_lost} without a finite value" if n_lost else ""
    return f"score minus the mean of its {where} over models\n{size}{lost}"
