"""References to packages above models and predictions: files, plots and pages, imported on first use.

Methods such as `save`, `report` and `plot` delegate through this table. The modules that worker processes
load before they start are listed here for the same reason.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DELEGATES = {
    "comparison_page": "tuplet.surface.comparisons.page:comparison_page",
    "latex_table": "tuplet.surface.comparisons.tables:latex_table",
    "markdown_table": "tuplet.surface.comparisons.tables:markdown_table",
    "text_table": "tuplet.surface.comparisons.tables:text_table",
    "save_model": "tuplet.io.saved_models:save_model",
    "write_report": "tuplet.surface.report:write_report",
    "plot_calibration": "tuplet.surface.plots.calibration:plot_calibration",
    "plot_centred_boxes": "tuplet.surface.comparisons.boxes:plot_centred_boxes",
    "plot_class_feature_graph": "tuplet.surface.plots.graph:plot_class_feature_graph",
    "plot_correlations": "tuplet.surface.plots:plot_correlations",
    "plot_critical_differences": "tuplet.surface.comparisons.rank_plot:plot_critical_differences",
    "plot_differences": "tuplet.surface.comparisons.pairs:plot_differences",
    "plot_graph": "tuplet.surface.plots:plot_graph",
    "plot_learning_path": "tuplet.surface.report.sections:plot_learning_path",
    "plot_pairs": "tuplet.surface.comparisons.pairs:plot_pairs",
    "plot_prediction_combinations": "tuplet.surface.plots.predictions:plot_prediction_combinations",
    "plot_prediction_coverage": "tuplet.surface.plots.predictions:plot_prediction_coverage",
    "plot_prediction_dependence": "tuplet.surface.plots.predictions:plot_prediction_dependence",
    "plot_prediction_marginals": "tuplet.surface.plots.predictions:plot_prediction_marginals",
    "plot_prediction_reliability": "tuplet.surface.plots.predictions:plot_prediction_reliability",
    "plot_prediction_table": "tuplet.surface.plots.predictions:plot_prediction_table",
    "plot_rule_effects": "tuplet.surface.plots:plot_rule_effects",
    "plot_trace": "tuplet.surface.plots:plot_trace",
}
"""Name of a delegate -> "module:function"."""

PRELOADED = (
    "tuplet.models.chain",
    "tuplet.evaluate.work",
    "tuplet.models.stacking.clock",
    "sklearn.ensemble",
)
"""Modules that the server of worker processes imports before it forks."""


@overload
def delegate(name: Literal["save_model", "write_report"], *args: Any, **options: Any) -> None: ...


@overload
def delegate(
    name: Literal["comparison_page", "latex_table", "markdown_table", "text_table"],
    *args: Any,
    **options: Any,
) -> str: ...


@overload
def delegate(name: str, *args: Any, **options: Any) -> Axes: ...


def delegate(name: str, *args: Any, **options: Any) -> Any:
    """Call a function of a higher package by its name in `DELEGATES`.

    Parameters
    ----------
    name : str
    *args, **options
        Arguments of the function.

    Examples
    --------
    >>> ax = delegate("plot_graph", ((), (0,)), ["rain", "wet"])
    >>> [text.get_text() for text in ax.texts]
    ['rain', 'wet']
    """
    module, _, function = DELEGATES[name].partition(":")
    return getattr(import_module(module), function)(*args, **options)
