"""Parts of all pictures: matplotlib, colours, new axes, titles, legends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuplet.core.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREY = "#3b82c4", "#c8640a", "#8c8c8c"
"""Blue and orange can be distinguished with every common kind of colour blindness, and by their lightness."""

INK, PAPER = "#000000", "#ffffff"
"""Pages that embed a picture put their own colours of text and background in the place of these."""

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a7a7a")
"""Colours for several models (Okabe and Ito, 2008, without black and yellow, which a page may hide)."""


def pyplot() -> Any:
    """Return matplotlib's pyplot; an error with what to install if it is missing."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependencyError("Plots need matplotlib; run `pip install tuplet[plots]`.") from None
    return pyplot


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of this size in inches, with margins as wide as its texts."""
    axes: Axes = pyplot().subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def apply_layout(ax: Axes) -> None:
    """Apply the layout of the figure, so that the positions of its parts are known."""
    figure: Any = ax.figure.canvas.figure
    figure.draw_without_rendering()


def caption(ax: Axes, title: str) -> None:
    """Write the title as it is: a dollar sign in a name is a dollar sign."""
    ax.set_title(title, loc="left", fontsize="medium", parse_math=False)


def write_legend(ax: Axes, **options: Any) -> None:
    """Add a legend whose texts are as they are, without a frame; options are those of `Axes.legend`."""
    legend = ax.legend(frameon=False, **options)
    for text in legend.get_texts():
        text.set_parse_math(False)


def points_of(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes in points (1/72 inch), once the layout of the figure is known."""
    apply_layout(ax)
    box = ax.get_window_extent()
    dpi = ax.figure.canvas.figure.dpi
    return 72 * box.width / dpi, 72 * box.height / dpi


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return how wide a text is in points, in letters of this size and the font of the figures."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])
