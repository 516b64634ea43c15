"""Pictures of comparisons; they need matplotlib, `pip install tuplet[plots]`.

All take numbers and frames that are computed elsewhere, and return the axes on which they have drawn.
"""

from tuplet.evaluate.plots.boxes import plot_centred_boxes
from tuplet.evaluate.plots.pairs import plot_differences, plot_pairs
from tuplet.evaluate.plots.ranks import groups_from_difference, plot_critical_differences
from tuplet.plots.calibration import plot_calibration

__all__ = [
    "groups_from_difference",
    "plot_calibration",
    "plot_centred_boxes",
    "plot_critical_differences",
    "plot_differences",
    "plot_pairs",
]
