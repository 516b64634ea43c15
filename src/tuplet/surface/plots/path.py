"""Lines along steps: a held-out score along the steps of learning, and draws along chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.words import shorten
from tuplet.surface.plots.canvas import BLUE, GREY, INK, ORANGE, PALETTE, caption, new_axes, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMED = 6
"""Points that may have names."""


@final
@dataclass(frozen=True, eq=False)
class LearningPath:
    """A score after each step of learning.

    Parameters
    ----------
    steps : array, shape (s,)
        What was learned so far, in numbers: rules, components, seconds.
    scores : array, shape (s,)
        Of rows held out; greater is better.
    step_name, score_name : str
        What the numbers are.
    errors : array, shape (s,), optional
        Standard errors of the scores.
    chosen : float, optional
        The step at which the model that was kept stood.
    level : float, optional
        A score to compare with, such as that of a mixture of all.
    level_name : str
        What that is.
    names : tuple of str, optional
        Of the steps, where each of them is a try of its own: then they are points, and a line shows the best
        so far.

    Examples
    --------
    >>> LearningPath(np.arange(1, 4), np.array([-2.1, -1.9, -2.0]), "trees", "log-likelihood").chosen
    """

    steps: npt.ArrayLike
    scores: npt.ArrayLike
    step_name: str
    score_name: str
    errors: npt.ArrayLike | None = None
    chosen: float | None = None
    level: float | None = None
    level_name: str = ""
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(np.asarray(self.steps))


def plot_path(path: LearningPath, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw a score of rows held out along the steps of learning, and mark the step that was kept.

    Parameters
    ----------
    path : LearningPath
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> path = LearningPath([1, 2, 3], [-2.1, -1.9, -2.0], "number of trees", "log-likelihood", chosen=2)
    >>> ax = plot_path(path)
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('number of trees', ['kept: 2'])
    """
    pyplot()  # a missing matplotlib is an error before any work
    steps, scores = np.asarray(path.steps, dtype=float), np.asarray(path.scores, dtype=float)
    if steps.shape != scores.shape or steps.ndim != 1 or not len(steps):
        raise InputError(
            f"plot_path: steps and scores must be as many, found {steps.shape} and {scores.shape}."
        )
    ax = new_axes(6.4, 3.4) if ax is None else ax
    (_draw_tries if path.names else _draw_line)(ax, path, steps, scores)
    if path.level is not None:
        ax.axhline(path.level, color=GREY, linewidth=1.2, linestyle=(0, (4, 2)), label=path.level_name)
    if np.array_equal(steps, np.round(steps)):
        ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(path.step_name, parse_math=False)
    ax.set_ylabel(path.score_name, parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize="small", loc="lower right")
    caption(ax, title)
    return ax


def _draw_line(ax: Axes, path: LearningPath, steps: Floats, scores: Floats) -> None:
    if path.errors is not None:
        errors = np.asarray(path.errors, dtype=float)
        ax.fill_between(steps, scores - errors, scores + errors, color=BLUE, alpha=0.16, linewidth=0)
    ax.plot(steps, scores, color=BLUE, marker="o" if len(steps) <= 60 else "", markersize=4)
    at = np.flatnonzero(steps == path.chosen)  # none where no step was chosen
    if len(at):
        ax.plot(steps[at], scores[at], "D", color=ORANGE, markersize=8, label=f"kept: {path.chosen:g}")


def _draw_tries(ax: Axes, path: LearningPath, steps: Floats, scores: Floats) -> None:
    """Draw points, the best so far as a line, and the names of those that were best when they came."""
    order = np.argsort(steps, kind="stable")
    steps, scores, names = steps[order], scores[order], [path.names[i] for i in order]
    best = np.maximum.accumulate(scores)
    ax.plot(steps, scores, "o", color=BLUE, markersize=4.5, alpha=0.75)
    ax.step(steps, best, where="post", color=BLUE, linewidth=1.2, label="best so far")
    _keep_in_view(ax, scores, path.level)
    leaders = _apart(steps, np.flatnonzero(np.diff(best, prepend=-np.inf) > 0))
    for i, name in zip(leaders, shorten([names[i] for i in leaders], 28), strict=True):
        left = steps[i] > (steps[0] + steps[-1]) / 2
        ax.annotate(
            name,
            (steps[i], scores[i]),
            (-5 if left else 5, 4),
            textcoords="offset points",
            ha="right" if left else "left",
            fontsize=7.5,
            color=INK,
            parse_math=False,
        )


def _apart(steps: Floats, leaders: npt.NDArray[np.intp]) -> list[int]:
    """Return the last leaders, without those whose names would lie upon the next one's."""
    room, kept = 0.12 * np.ptp(steps), list[int]()
    for i in leaders[::-1].tolist():
        if len(kept) < _NAMED and (not kept or steps[kept[-1]] - steps[i] > room):
            kept.append(i)
    return kept[::-1]


def _keep_in_view(ax: Axes, scores: Floats, level: float | None) -> None:
    """Cut the axis where a few bad tries would press all others together."""
    top = max(float(scores.max()), level if level is not None else -np.inf)
    low = float(np.quantile(scores, 0.25))
    if top - float(scores.min()) > 4 * (top - low) > 0:
        ax.set_ylim(top - 2.5 * (top - low), top + 0.25 * (top - low))


# -- draws -------------------------------------------------------------------------------------------------


def plot_trace(traces: npt.ArrayLike, name: str = "", *, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw the draws of one number, a line for each chain.

    Parameters
    ----------
    traces : array, shape (chains, draws)
    name : str
        Beside the axis.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    array = np.asarray(traces, dtype=float)
    if array.ndim != 2:
        raise InputError(f"plot_trace: traces must be of shape (chains, draws), found {array.shape}.")
    ax = new_axes(7, 2.6) if ax is None else ax
    for chain, values in enumerate(array):
        ax.plot(values, color=PALETTE[chain % len(PALETTE)], linewidth=0.7, alpha=0.8, label=f"{chain + 1}")
    ax.axhline(float(array.mean()), color=INK, linewidth=0.8, linestyle=":")
    ax.set_xlabel("draw")
    ax.set_ylabel(name, parse_math=False)
    ax.margins(x=0)
    ax.spines[["top", "right"]].set_visible(False)
    if len(array) > 1:
        ax.legend(
            title="chain", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small"
        )
    caption(ax, title)
    return ax
