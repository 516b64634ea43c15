"""Pictures of data, of joint predictions and of models; they need matplotlib, `pip install tuplet[plots]`.

Each function draws into the axes it is given, or into a new figure, and returns the axes. They take numbers;
predictions and models have methods of the same names, which put these together.
"""

from tuplet.surface.plots.calibration import plot_calibration, plot_coverage
from tuplet.surface.plots.combinations import plot_combinations
from tuplet.surface.plots.graph import plot_graph
from tuplet.surface.plots.heatmap import (
    plot_correlations,
    plot_dependence,
    plot_label_dependence,
    plot_pair_table,
)
from tuplet.surface.plots.marginals import plot_marginals
from tuplet.surface.plots.path import LearningPath, plot_path, plot_trace
from tuplet.surface.plots.rules import plot_rule_effects

__all__ = [
    "LearningPath",
    "plot_calibration",
    "plot_combinations",
    "plot_correlations",
    "plot_coverage",
    "plot_dependence",
    "plot_graph",
    "plot_label_dependence",
    "plot_marginals",
    "plot_pair_table",
    "plot_path",
    "plot_rule_effects",
    "plot_trace",
]
