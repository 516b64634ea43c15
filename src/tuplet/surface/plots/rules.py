"""What rules did to a row, as a table of coloured numbers."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.models.rules.explain import Explanation
from tuplet.surface.plots.canvas import BLUE, GREY, INK, ORANGE, PAPER, caption, new_axes, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WRAP = 38
"""Letters of a rule's text in one line."""


def plot_rule_effects(
    explanation: Explanation,
    *,
    max_labels: int = 8,
    max_rules: int = 12,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the log-odds that each rule added to each label of a row.

    Columns are labels with their probability before and after the rules; blue numbers are in favour of the
    label, orange ones against it. The last line is what all rules together did, which single effects
    need not add up to.

    Parameters
    ----------
    explanation : Explanation
    max_labels, max_rules : int
        The most moved labels and the rules of the largest effects that are shown.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    pyplot()  # a missing matplotlib is an error before any work
    if not explanation.rules:
        raise InputError("plot: there are no rules to draw.")
    cells, rules = _chosen(explanation, max_labels, max_rules)
    values = np.vstack([explanation.shifts[np.ix_(rules, cells)], explanation.total[cells]])
    texts = [textwrap.fill(explanation.rules[k], _WRAP, break_on_hyphens=False) for k in rules]
    texts.append("all rules together")
    heights = [1 + 0.55 * text.count("\n") for text in texts]
    if ax is None:
        ax = new_axes(3.4 + 0.85 * len(cells), 1.1 + 0.36 * sum(heights))
    edges = np.concatenate([[0.0], np.cumsum(heights)])
    _paint(ax, values, edges)
    middles = (edges[:-1] + edges[1:]) / 2
    ax.set_yticks(middles, texts, parse_math=False)
    ax.set_xticks(np.arange(len(cells)), [_head(explanation, c) for c in cells], parse_math=False)
    ax.xaxis.tick_top()
    ax.tick_params(length=0, labelsize="small")
    ax.set_xlim(-0.5, len(cells) - 0.5)
    ax.set_ylim(edges[-1], 0.0)
    ax.axhline(edges[-2], color=GREY, linewidth=1.0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel("change of log-odds", loc="right", fontsize="small")
    caption(ax, title)
    return ax


def _chosen(
    explanation: Explanation, max_labels: int, max_rules: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Cells and rules that are drawn: of yes/no variables only the yes, and the most moved first."""
    size = np.maximum(np.abs(explanation.total), np.abs(explanation.shifts).max(axis=0))
    first = np.cumsum([0, *explanation.space.cards])
    for j, card in enumerate(explanation.space.cards):
        if card == 2 and explanation.space.yes_no(j):
            size[first[j]] = -1.0  # the same numbers with the other sign
    cells = np.argsort(-size, kind="stable")[:max_labels]
    cells = np.sort(cells[size[cells] >= 0.0])
    largest = np.abs(explanation.shifts[:, cells]).max(axis=1)
    return cells, np.argsort(-largest, kind="stable")[:max_rules]


def _head(explanation: Explanation, cell: int) -> str:
    leaf = str(explanation.leaves()[cell])
    before, after = explanation.beliefs[cell], explanation.probabilities[cell]
    return f"{textwrap.fill(leaf, 12)}\n{before:.2f} → {after:.2f}"


def _paint(ax: Axes, values: Floats, edges: Floats) -> None:
    finite = np.abs(values[np.isfinite(values)])
    scale = max(float(finite.max(initial=0.0)), 1e-9)
    for i, line in enumerate(values):
        for c, value in enumerate(line):
            color = BLUE if value > 0 else ORANGE
            # The square root lets small effects be seen beside large ones.
            strength = 1.0 if not np.isfinite(value) else float(np.sqrt(abs(value) / scale))
            height = edges[i + 1] - edges[i]
            ax.add_patch(
                pyplot().Rectangle(
                    (c - 0.48, edges[i] + 0.03), 0.96, height - 0.06, color=color, alpha=strength
                )
            )
            ax.text(
                c,
                (edges[i] + edges[i + 1]) / 2,
                _number(value),
                ha="center",
                va="center",
                fontsize="small",
                color=PAPER if strength > 0.75 else INK if abs(value) >= 5e-3 else GREY,
            )


def _number(value: float) -> str:
    if np.isinf(value):
        return "+∞" if value > 0 else "−∞"
    return f"{value:+.2f}".replace("-", "−") if abs(value) >= 5e-3 else "0"
