"""Sections about what the model predicts for the rows: dependence, examples, and surprising rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.typing import Codes, Floats
from tuplet.prediction.dependence import as_strength, label_dependence, mean_information
from tuplet.prediction.joint import JointPrediction
from tuplet.prediction.truth import Truth
from tuplet.space.words import clip, shorten
from tuplet.surface.pages.page import Picture, PlainTable, Section
from tuplet.surface.plots.combinations import plot_combinations
from tuplet.surface.plots.heatmap import arranged, plot_dependence
from tuplet.surface.plots.marginals import plot_marginals
from tuplet.surface.plots.predictions import marginal_limits
from tuplet.surface.report.pieces import combinations, in_time, picture

_ROWS, _PAIRS, _VARIABLES = 200, 15, 64
"""Rows that the dependence given x is averaged over, pairs of the table, variables that fit into a map."""

_SCALE = "Dependence of two class variables, from 0 (independent) to 1, about the size of a correlation."

_BEST = 6
"""Combinations of an example."""

_BESIDE = 7
"""Rows whose marginals fit into one picture."""
# -- dependence --------------------------------------------------------------------------------------------


def dependence_section(prediction: JointPrediction, codes: Codes | None) -> Section | None:
    """Return the section of the dependence; of the prediction alone if there are no labels."""
    names = prediction.space.names
    if len(names) < 2 or not len(prediction):
        return None
    of_labels = None if codes is None else label_dependence(codes)
    if len(names) > _VARIABLES:
        return None if of_labels is None else _strongest_section(of_labels, names)
    n_rows, given = _given(prediction)
    order = _order(given if of_labels is None else of_labels)
    shown, caption = given[np.ix_(order, order)], "Given x, by the model"
    if of_labels is not None:
        shown = np.where(np.tri(len(order), dtype=bool), of_labels[np.ix_(order, order)], shown)
        caption = "Below the diagonal: in the labels of these rows; above: what is left given x, by the model"
    text = (
        f"{_SCALE} Given x it is the mean over {n_rows:,} rows; independent models of the class variables"
        " would miss it."
    )
    return Section(
        "Dependence", text, [_table(given, of_labels, names)], [_map(shown, order, names, caption)]
    )


def _strongest_section(of_labels: Floats, names: tuple[str, ...]) -> Section:
    """Return the section of very many variables: labels only, and those that depend most on others."""
    strongest = np.argsort(-np.nanmax(of_labels, axis=1), kind="stable")[:_VARIABLES]
    part = of_labels[np.ix_(strongest, strongest)]
    order = _order(part)
    caption = f"In the labels of these rows: {_VARIABLES} of {len(names)} class variables, the most dependent"
    figure = _map(part[np.ix_(order, order)], strongest[order], names, caption)
    table = _table(of_labels, None, names, "in the labels")
    return Section("Dependence", _SCALE, [table], [figure])


def _given(prediction: JointPrediction) -> tuple[int, Floats]:
    """Return the dependence given x, and the number of rows that there was time for."""
    rows = np.unique(np.linspace(0, len(prediction) - 1, _ROWS).astype(int))
    done = in_time(rows, lambda part: mean_information(prediction.distribution[part]))
    n = sum(size for size, _ in done)
    return n, as_strength(np.sum([size / n * nats for size, nats in done], axis=0))


def _map(shown: Floats, order: npt.NDArray[np.intp], names: tuple[str, ...], caption: str) -> Picture:
    return picture(lambda: plot_dependence(shown, [names[i] for i in order], arrange=False), caption)


def _order(strengths: Floats) -> npt.NDArray[np.intp]:
    """Return an order in which variables that depend on the same others are neighbours."""
    filled = np.nan_to_num(strengths)
    np.fill_diagonal(filled, 1.0)
    return arranged(filled)


def _table(
    strengths: Floats, others: Floats | None, names: tuple[str, ...], what: str = "given x"
) -> PlainTable:
    """Return the strongest pairs; `others` are their strengths in the labels."""
    i, j = np.triu_indices(len(names), k=1)
    best = np.argsort(-strengths[i, j], kind="stable")[:_PAIRS]
    texts = shorten(names, 40)
    columns: dict[str, object] = {
        "and": [texts[j[p]] for p in best],
        what: strengths[i, j][best],
    }
    if others is not None:
        columns["in the labels"] = others[i, j][best]
    index = pd.Index([texts[i[p]] for p in best], name="variable")
    caption = "Pairs" if len(i) <= _PAIRS else f"The {_PAIRS} strongest pairs {what}"
    return PlainTable(pd.DataFrame(columns, index=index), caption)


# -- rows --------------------------------------------------------------------------------------------------


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
    text = f"Evenly spaced rows. Bars are the most probable combinations of labels.{ticks}"
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
    """Return the section of the n rows whose true labels are least probable by the model."""
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
    text = "Rows whose true labels are least probable by the model: wrong labels, or errors of the model."
    return Section("Most surprising rows", text, tables=[PlainTable(frame)])
