"""Pictures of joint predictions; they need matplotlib, `pip install tuplet[plots]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tuplet.exceptions import InputError, MissingDependencyError
from tuplet.joint.base import JointDistribution
from tuplet.space import ClassSpace
from tuplet.space.words import chance_text, combination_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_combinations"]


def plot_combinations(
    joint: JointDistribution,
    space: ClassSpace,
    *,
    k: int = 8,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the k most probable combinations of one row as horizontal bars, the best on top.

    Parameters
    ----------
    joint : JointDistribution
        Of a single row.
    space : ClassSpace
        Names and labels.
    k : int
        Number of combinations. What they leave of the probability is a last, grey bar.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    pyplot = _pyplot()
    if len(joint) != 1:
        raise InputError(f"plot: one row can be drawn at a time, found {len(joint)}.")
    ranking = joint.top_k(k)
    possible = np.isfinite(ranking.log_prob[0])
    probability = np.exp(ranking.log_prob[0][possible])
    texts = combination_texts(space, ranking.codes[0][possible])
    rest = 1.0 - float(probability.sum())
    colors = ["#3b82c4"] * len(texts)
    if rest > 5e-4 and len(texts) < joint.n_outcomes:
        texts, colors = [*texts, "all others"], [*colors, "#9a9a9a"]
        probability = np.append(probability, rest)
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 0.6 + 0.36 * len(texts)), layout="constrained")
    _bars(ax, texts, probability, colors)
    ax.set_title(title, loc="left", fontsize="medium", parse_math=False)
    return ax


def _bars(ax: Axes, texts: list[str], probability: np.ndarray, colors: list[str]) -> None:
    heights = np.arange(len(texts))
    bars = ax.barh(heights, probability, color=colors, height=0.7)
    ax.bar_label(bars, labels=[chance_text(p) for p in probability], padding=4)
    ax.set_yticks(heights, texts, parse_math=False)  # a dollar sign in a label is a dollar sign
    ax.invert_yaxis()
    ax.set_xlim(0, 1.12 * float(probability.max()))
    ax.set_xlabel("probability")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependencyError("Plots need matplotlib; run `pip install tuplet[plots]`.") from None
    return pyplot
