"""A comparison as plots and as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from tuplet.surface.comparisons.boxes import plot_centred_boxes
from tuplet.surface.comparisons.pairs import plot_differences, plot_pairs
from tuplet.surface.comparisons.rank_plot import plot_critical_differences
from tuplet.surface.pages.grid import ScoreTable
from tuplet.surface.pages.page import Picture, PlainTable, Section, html_page
from tuplet.surface.plots.calibration import plot_calibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tuplet.evaluate.comparison import Comparison

_FEWEST = 3
"""Least number of models, and of data sets, for which a test of all ranks is meaningful."""


class ScorePlots:
    """Pictures of a comparison, each a matplotlib Axes; see `tuplet.surface.comparisons` for each."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def critical_differences(
        self, score: str, *, alpha: float = 0.05, title: str = "", ax: Axes | None = None
    ) -> Axes:
        """Average ranks on an axis; models that do not differ by the test of Nemenyi are joined."""
        found = self._comparison.tests.nemenyi(score, alpha=alpha)
        return plot_critical_differences(
            found.ranks, found.critical_difference, title=title or _in_words(score), ax=ax
        )

    def pairs(self, score: str, a: str, b: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """One model against another, a point for each data set."""
        table, errors = self._comparison.table(score), _errors(self._comparison, score)
        return plot_pairs(table, a, b, errors=errors, **self._options(score, title, ax))

    def differences(self, score: str, a: str, b: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Difference of two models on each data set, as sorted bars."""
        return plot_differences(self._comparison.table(score), a, b, **self._options(score, title, ax))

    def boxes(self, score: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Box plots of the scores of all folds, centred in each data set."""
        folds = self._comparison.tidy(score)
        folds = folds[np.isfinite(folds["value"])]
        return plot_centred_boxes(folds, **self._options(score, title, ax))

    def _options(self, score: str, title: str, ax: Axes | None) -> dict[str, Any]:
        greater = self._comparison.greater_is_better(score)
        return {"greater_is_better": greater, "title": title or _in_words(score), "ax": ax}

    def calibration(
        self,
        kind: Literal["marginals", "mode"] = "marginals",
        *,
        models: list[str] | None = None,
        dataset: str | None = None,
        n_bins: int = 10,
        title: str = "",
        ax: Axes | None = None,
    ) -> Axes:
        """Predicted against observed frequencies: of single labels, or of the most probable combination."""
        comparison = self._comparison
        bins = {
            model: comparison.calibration_table(kind, model=model, dataset=dataset, n_bins=n_bins)
            for model in models or comparison.models
        }
        drawn = {model: table for model, table in bins.items() if len(table)}
        return plot_calibration(drawn, title=title, ax=ax)


def _in_words(score: str) -> str:
    return score.replace("_", " ")


def _errors(comparison: Comparison, score: str) -> pd.DataFrame | None:
    """Return standard errors of the means over folds, None if there is one fold only."""
    n_folds = comparison.runs.groupby("dataset")["fold"].nunique().reindex(comparison.datasets)
    errors = comparison.spread(score).div(n_folds**0.5, axis=0)
    return errors if errors.notna().to_numpy().any() else None


# -- the page ----------------------------------------------------------------------------------------------


def comparison_page(comparison: Comparison, scores: tuple[str, ...], title: str) -> str:
    """Return one HTML page: a section for each score, then calibration, costs and problems."""
    sections = [_score_section(comparison, score) for score in scores]
    sections += _calibration_section(comparison)
    sections.append(Section("Costs", "Means over folds.", tables=[_plain(comparison.costs().reset_index())]))
    for heading, lines in (("Problems", comparison.problems()), ("Warnings", comparison.warnings())):
        if len(lines):
            sections.append(Section(heading, tables=[_plain(lines)]))
    n_models, n_sets = len(comparison.models), len(comparison.datasets)
    about = f"{n_models} models on {n_sets} data sets."
    return html_page(title, sections, text=about)


def _score_section(comparison: Comparison, score: str) -> Section:
    printed = comparison._printed(score)
    text, figures, tests = "", [], comparison.tests
    n_models = len(comparison.models) - len(tests.without(score))
    if tests.possible(score) and len(comparison.datasets) >= _FEWEST and n_models >= _FEWEST:
        gone = tests.without(score)
        remark = f"Ranks and tests are without {', '.join(gone)}, which lack scores.\n\n" if gone else ""
        text = f"{remark}{tests.friedman(score)}\n\n{tests.nemenyi(score)}"
        figures.append(Picture(_closed(comparison.plot.critical_differences(score)), "Average ranks."))
    several = len(comparison.runs["fold"].unique()) > 1 and len(comparison.models) > 1
    if several and np.isfinite(comparison.runs[score]).any():
        figures.append(
            Picture(_closed(comparison.plot.boxes(score)), "Scores of all folds, centred in each data set.")
        )
    return Section(_in_words(score).capitalize(), text, tables=[ScoreTable(**printed)], figures=figures)


def _calibration_section(comparison: Comparison) -> list[Section]:
    if comparison.calibration is None:
        return []
    captions: dict[Literal["marginals", "mode"], str] = {
        "marginals": "Probabilities of single labels.",
        "mode": "Probability of the most probable combination.",
    }
    figures = [
        Picture(_closed(comparison.plot.calibration(kind)), caption)
        for kind, caption in captions.items()
        if (comparison.calibration["kind"] == kind).any()
    ]
    return [Section("Calibration", "All data sets and folds together.", figures=figures)]


def _plain(lines: pd.DataFrame) -> PlainTable:
    """Return lines as a table whose first column names them and whose headings are words."""
    named = lines.rename(columns=_in_words)
    return PlainTable(named.set_index(named.columns[0]))


def _closed(ax: Axes) -> Axes:
    """Return the picture, no longer counted among pyplot's open figures."""
    import matplotlib.pyplot as plt

    plt.close(ax.figure)  # type: ignore[arg-type]
    return ax
