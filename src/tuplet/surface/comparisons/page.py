"""A comparison as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from tuplet.evaluate.accessors import in_words
from tuplet.evaluate.comparison import Comparison
from tuplet.surface.pages.grid import ScoreTable
from tuplet.surface.pages.page import Picture, PlainTable, Section, html_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEWEST = 3
"""Least number of models, and of data sets, for which a test of all ranks is meaningful."""


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
    return Section(in_words(score).capitalize(), text, tables=[ScoreTable(**printed)], figures=figures)


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
    named = lines.rename(columns=in_words)
    return PlainTable(named.set_index(named.columns[0]))


def _closed(ax: Axes) -> Axes:
    """Return the picture, no longer counted among pyplot's open figures."""
    import matplotlib.pyplot as plt

    plt.close(ax.figure)  # type: ignore[arg-type]
    return ax
