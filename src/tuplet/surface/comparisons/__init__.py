"""Plots and tables of comparisons: Markdown, LaTeX, text for terminals, and one page of HTML.

All take scores as frames, data sets x models, so that results from elsewhere can be shown, too. Plots need
matplotlib, `pip install tuplet[plots]`, and return the axes on which they are drawn. Tables mark the best of
each line: every score that rounds to the same digits. A missing score is a short sign with its reason in a
footnote.
"""

from tuplet.surface.comparisons.boxes import plot_centred_boxes
from tuplet.surface.comparisons.pairs import plot_differences, plot_pairs
from tuplet.surface.comparisons.rank_plot import groups_from_difference, plot_critical_differences
from tuplet.surface.comparisons.tables import latex_table, markdown_table, text_table
from tuplet.surface.plots.calibration import plot_calibration

__all__ = [
    "groups_from_difference",
    "latex_table",
    "markdown_table",
    "plot_calibration",
    "plot_centred_boxes",
    "plot_critical_differences",
    "plot_differences",
    "plot_pairs",
    "text_table",
]
