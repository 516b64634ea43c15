"""Rows as examples: their most probable combinations, their marginals, and rows that surprised the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tuplet.pages import PlainTable, Section
from tuplet.plots import plot_combinations, plot_marginals
from tuplet.plots.predictions import marginal_limits
from tuplet.prediction import JointPrediction
from tuplet.prediction.truth import Truth
from tuplet.report.pieces import combinations, picture
from tuplet.space.words import clip
from tuplet.typing import Codes

_BEST = 6
"""Combinations of an example."""

_BESIDE = 7
"""Rows whose marginals fit into one picture."""


def example_section(prediction: JointPrediction, truth: Truth | None, n: int) -> Section | None:
    """Return the section of n evenly spaced rows."""
    if not n or not len(prediction):
        return None
    rows = np.unique(np.linspace(0, len(prediction) - 1, n).astype(int))
    names = _names(prediction, rows)
    figures = []
    for row, name in zip(rows, names, strict=True):
        codes = None if truth is None else truth.codes[row]
        figures.append(_combinations(prediction, int(row), name, codes))
    for start in range(0, len(rows), _BESIDE):
        part = slice(start, start + _BESIDE)
        known = None if truth is None else truth.codes[rows[part]]
        figures.append(_marginals(prediction, rows[part], names[part], known))
    ticks = " ✓ marks the true one." if truth is not None else ""
    text = f"Some rows, at equal distances. Bars are the most probable combinations of labels.{ticks}"
    return Section("Examples", text, figures=figures)


def _names(prediction: JointPrediction, rows: Any) -> list[str]:
    index = prediction.index
    return [clip(str(row if index is None else index.to_flat_index()[row]), 24) for row in rows]


def _combinations(prediction: JointPrediction, row: int, name: str, truth: Codes | None) -> Any:
    joint = prediction.distribution[[row]]
    return picture(
        lambda: plot_combinations(joint, prediction.space, k=_BEST, truth=truth),
        f"Row {name}",
    )


def _marginals(prediction: JointPrediction, rows: Any, names: list[str], truth: Codes | None) -> Any:
    joint = prediction.distribution[rows]
    limits = marginal_limits(joint, 0.95)
    draws = ", with 95 % credible intervals" if limits is not None else ""
    return picture(
        lambda: plot_marginals(joint.marginals(), prediction.space, rows=names, limits=limits, truth=truth),
        f"Probabilities of single labels of these rows{draws}",
    )


def surprise_section(prediction: JointPrediction, truth: Truth, n: int) -> Section | None:
    """Return the section of the n rows whose true labels the model found least probable."""
    known = truth.known.any(axis=1) & ~truth.unseen.any(axis=1)
    if not n or not known.any():
        return None
    log_prob = np.where(known, prediction.distribution.log_prob(truth.codes), np.inf)
    rows = np.argsort(log_prob, kind="stable")[: min(n, int(known.sum()))]
    mode = prediction.distribution[rows].mode()
    frame = pd.DataFrame(
        {
            "true labels": combinations(prediction.space, truth.codes[rows]),
            "their probability": np.exp(log_prob[rows]),
            "most probable labels": combinations(prediction.space, mode.codes),
            "their chance": np.exp(mode.log_prob),
        },
        index=pd.Index(_names(prediction, rows), name="row"),
    )
    text = "Rows whose true labels the model found least probable: mistakes in the labels, or in the model."
    return Section("Most surprising rows", text, tables=[PlainTable(frame)])
