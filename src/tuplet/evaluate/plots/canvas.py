"""What the pictures of comparisons share: colours, new axes, and what can be said about long values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tuplet.exceptions import MissingDependencyError
from tuplet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLUE",
    "GREY",
    "INK",
    "ORANGE",
    "PALETTE",
    "caption",
    "cut_length",
    "lay_out",
    "new_axes",
    "pyplot",
]

BLUE, ORANGE, GREY, INK = "#3b82c4", "#c8640a", "#8c8c8c", "#000000"
"""Blue and orange are told apart with every common kind of colour blindness, and by their lightness."""

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a7a7a")
"""Colours for several models (Okabe and Ito, 2008, without black and yellow, which a page may hide)."""

_DWARFED = 4
"""How many times longer than all others a few values may be and still be drawn to scale."""


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say what to install."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependencyError("Plots need matplotlib; run `pip install tuplet[plots]`.") from None
    return pyplot


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of this size in inches, with margins as wide as its texts."""
    axes: Axes = pyplot().subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def lay_out(ax: Axes) -> None:
    """Let the layout of the figure decide where everything is; drawing does so again, from there."""
    figure: Any = ax.figure.canvas.figure
    figure.draw_without_rendering()


def caption(ax: Axes, title: str) -> None:
    """Write the title as it is: a dollar sign in a name is a dollar sign."""
    ax.set_title(title, loc="left", fontsize="medium", parse_math=False)


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
