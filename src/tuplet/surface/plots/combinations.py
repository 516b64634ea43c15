"""The most probable combinations of a row, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, warn_unproven
from tuplet.space.classes import ClassSpace
from tuplet.space.words import chance_text, contrast_texts
from tuplet.surface.plots.canvas import BLUE, GREY, caption, new_axes, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TINY = 1e-3
"""Probability below which ticks have exponents; one beside the axis would lie upon the words below it."""

_DWARFED = 4
"""How many times the longest bar the rest of the probability may be and still be drawn as a bar."""


def plot_combinations(
    joint: JointDistribution,
    space: ClassSpace,
    *,
    k: int = 8,
    truth: Codes | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the k most probable combinations of one row as horizontal bars, the best on top.

    Combinations of many labels are shown by the labels in which they differ; those that they have in common
    are below the axis.

    Parameters
    ----------
    joint : JointDistribution
        Of a single row.
    space : ClassSpace
        Names and labels.
    k : int
        Number of combinations. What they leave of the probability is a last, grey bar, or a remark below
        where that bar would dwarf the others.
    truth : array of int, shape (m,), optional
        Codes of the true labels, `UNKNOWN` where missing. Combinations that agree with them have a tick; if
        none does, the probability of the true labels is written below.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    pyplot()  # a missing matplotlib is an error before any work
    if len(joint) != 1:
        raise InputError(f"plot: one row can be drawn at a time, found {len(joint)}.")
    ranking = joint.top_k(k)
    warn_unproven("plot", ranking.proven)
    possible = np.isfinite(ranking.log_prob[0])
    probability = np.exp(ranking.log_prob[0][possible])
    texts, remarks = contrast_texts(space, ranking.codes[0][possible])
    below = ["probability", *remarks]
    if truth is not None:
        texts, remark = _ticked(texts, ranking.codes[0][possible], np.asarray(truth), joint)
        below += remark
    rest = 1.0 - float(probability.sum())
    if rest > 5e-4 and len(texts) < joint.n_outcomes:
        if rest > _DWARFED * probability.max():
            below.append(f"all other combinations together: {min(rest, 0.999):.3f}{'+' * (rest > 0.9995)}")
        else:
            texts, probability = [*texts, "all others"], np.append(probability, rest)
    if ax is None:
        height = 0.6 + 0.36 * len(texts) + 0.2 * len(below)
        ax = new_axes(7, height)
    _bars(ax, texts, probability, n_blue=int(possible.sum()))
    # From the right, because the labels of the bars may leave the axes only half of the width.
    ax.set_xlabel("\n".join(below), loc="right", parse_math=False)
    caption(ax, title)
    return ax


def _ticked(
    texts: list[str], codes: Codes, truth: Codes, joint: JointDistribution
) -> tuple[list[str], list[str]]:
    """Return the texts with a tick at those that are true, and a remark if none is."""
    known = truth != UNKNOWN
    if not known.any():
        return texts, []
    true = (codes[:, known] == truth[known]).all(axis=1)
    if true.any():
        return [f"{text}  ✓" if hit else text for text, hit in zip(texts, true, strict=True)], []
    chance = float(np.exp(joint.log_prob(truth)[0]))
    return texts, [f"none of them is true; the true labels have {chance_text(chance)}"]


def _bars(ax: Axes, texts: list[str], probability: Floats, n_blue: int) -> None:
    heights = np.arange(len(texts))
    colors = [BLUE if i < n_blue else GREY for i in heights]
    bars = ax.barh(heights, probability, color=colors, height=0.7)
    ax.bar_label(bars, labels=[chance_text(p) for p in probability], padding=4)
    ax.set_yticks(heights, texts, parse_math=False)  # a dollar sign in a label is a dollar sign
    ax.invert_yaxis()
    ax.set_xlim(0, 1.15 * float(probability.max()))
    ax.locator_params(axis="x", nbins=4)
    if probability.max() < _TINY:
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:.1g}")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
