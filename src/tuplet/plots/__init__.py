"""Pictures of joint predictions and of graphs; they need matplotlib, `pip install tuplet[plots]`.

Each function draws into the axes it is given, or into a new figure, and returns the axes.
"""

from tuplet.plots.combinations import plot_combinations
from tuplet.plots.graph import plot_graph
from tuplet.plots.probit import plot_correlations, plot_top_probability, plot_trace
from tuplet.plots.rules import plot_rule_effects
from tuplet.plots.three_part import plot_three_part

__all__ = [
    "plot_combinations",
    "plot_correlations",
    "plot_graph",
    "plot_rule_effects",
    "plot_three_part",
    "plot_top_probability",
    "plot_trace",
]
