"""Scores of the model on the rows of the page, beside those of a baseline of label frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.typing import UNKNOWN, Floats
from tuplet.losses.base import Loss
from tuplet.losses.registry import get_loss
from tuplet.metrics.calibration import expected_calibration_error, marginal_calibration, mode_calibration
from tuplet.metrics.decisions import exact_match, hamming_score, mean_loss
from tuplet.metrics.probabilities import joint_log_loss, marginal_log_loss, ranked_probability_score
from tuplet.prediction.joint import JointPrediction
from tuplet.prediction.queries import estimate_text
from tuplet.prediction.reliability import coverage_curve
from tuplet.prediction.truth import Truth
from tuplet.space.classes import ClassSpace
from tuplet.space.words import shorten
from tuplet.surface.pages.page import PlainTable, Section
from tuplet.surface.plots.calibration import plot_calibration, plot_coverage
from tuplet.surface.report.pieces import in_time, picture

_COVERED, _BEST = 500, 20
"""Rows and combinations of the curve of coverage; finding many combinations of many labels takes long."""


def score_section(
    prediction: JointPrediction,
    frequencies: JointPrediction | None,
    Y: Any,
    truth: Truth,
    loss: str | Loss,
    n_fit: int | None,
) -> Section:
    """Return the section of the scores, beside those of the frequencies of the training labels."""
    rows: dict[str, tuple[float, float, str]] = {}
    for name, better, score in _scores(prediction.space, loss):
        baseline = np.nan if frequencies is None else score(Y, frequencies)
        rows[name] = score(Y, prediction), baseline, better
    frame = pd.DataFrame.from_dict(
        rows, orient="index", columns=["this model", "baseline", "better is"]
    ).rename_axis("score")
    if frequencies is None:
        frame = frame.drop(columns="baseline")
    caption = f"Scores of {len(prediction):,} rows"
    tables = [PlainTable(frame, caption), _by_variable(prediction, frequencies, truth)]
    return Section("Scores", _advice(prediction, n_fit, frequencies is not None), tables=tables)


def _advice(prediction: JointPrediction, n_fit: int | None, has_baseline: bool) -> str:
    """Return how to read the scores."""
    first = "Scores on training rows are too high; those on rows that were held out are meaningful."
    if n_fit == len(prediction):
        first = (
            f"The model learned from {n_fit:,} rows, as many as there are here. If they are the same, these"
            " scores are too high: pass rows that were held out."
        )
    estimates = estimate_text(prediction.distribution)
    second = f" Sums over combinations are not exact: {estimates}." if estimates else ""
    baseline = "The baseline predicts the frequencies of the training labels, whatever x is."
    return f"{first}{second}\n\n{baseline}" if has_baseline else f"{first}{second}"


def _scores(space: ClassSpace, loss: str | Loss) -> list[tuple[str, str, Any]]:
    """Return names of scores, what is better, and functions of true labels and a prediction."""

    def match(Y: Any, p: JointPrediction) -> float:
        return exact_match(Y, p.decide("subset"), space=space)

    def labels(Y: Any, p: JointPrediction) -> float:
        return hamming_score(Y, p.decide("hamming"), space=space)

    scores: list[tuple[str, str, Any]] = [
        ("exact match of the most probable combination", "higher", match),
        ("share of labels that are right (Hamming score)", "higher", labels),
        ("joint log-likelihood per row", "higher", lambda Y, p: -joint_log_loss(Y, p)),
        ("log-loss per label", "lower", marginal_log_loss),
        (
            "calibration error of single labels",
            "lower",
            lambda Y, p: expected_calibration_error(marginal_calibration(Y, p)),
        ),
    ]
    if any(space.ordered):
        scores.append(("ranked probability score per label", "lower", ranked_probability_score))
    chosen = get_loss(loss)
    if chosen.name not in ("hamming", "subset"):
        what = f"mean {chosen.name} loss of decisions for it"
        scores.append((what, "lower", lambda Y, p: mean_loss(Y, p.decide(chosen), chosen, space=space)))
    return scores


def _by_variable(
    prediction: JointPrediction, frequencies: JointPrediction | None, truth: Truth
) -> PlainTable:
    columns: dict[str, Floats] = {}
    for name, each in (("", prediction), (" by frequency", frequencies)):
        if each is not None:
            columns[f"right{name}"], columns[f"log-loss{name}"] = _label_scores(each, truth)
    names = shorten(prediction.space.names, 48)
    frame = pd.DataFrame(columns, index=pd.Index(names, name="class variable"))
    order = ["right", "right by frequency", "log-loss", "log-loss by frequency"]
    shown = [name for name in order if name in frame]
    return PlainTable(frame[shown], "Each class variable by itself")


def _label_scores(prediction: JointPrediction, truth: Truth) -> tuple[Floats, Floats]:
    """Return the share of right labels and the log-loss of each variable, (m,), where labels are known."""
    right, loss = [], []
    for j, table in enumerate(prediction.distribution.marginals()):
        known = truth.known[:, j]
        codes = truth.codes[known, j]
        seen = codes != UNKNOWN
        chances = np.where(seen, table[known][np.arange(len(codes)), codes], 0.0)
        right.append(float((table[known].argmax(axis=1) == codes).mean()) if len(codes) else np.nan)
        loss.append(float(-np.log(np.maximum(chances, 1e-4)).mean()) if len(codes) else np.nan)
    return np.array(right), np.array(loss)


# -- reliability -------------------------------------------------------------------------------------------


def reliability_section(prediction: JointPrediction, Y: Any, truth: Truth) -> Section | None:
    """Return the section of observed frequencies against predicted probabilities."""
    if not truth.known.any():
        return None
    bins = {"single labels": marginal_calibration(Y, prediction)}
    if prediction.space.n_variables > 1:
        bins["best combination"] = mode_calibration(Y, prediction)
    caption = "Observed frequency against predicted probability"
    figures = [picture(lambda: plot_calibration(bins), caption)]
    if prediction.space.n_variables > 1:
        curve = _coverage(prediction, truth)
        about = (
            f"Rows whose true combination is among the {len(curve)} most probable ones"
            f" ({curve['count'].iloc[0]:,} rows)"
        )
        figures.append(picture(lambda: plot_coverage(curve), about))
    return Section("Reliability", figures=figures)


def _coverage(prediction: JointPrediction, truth: Truth) -> pd.DataFrame:
    """Return the curve of coverage of evenly spaced rows, as many as there is time for."""
    rows = np.flatnonzero(truth.known.any(axis=1))
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, _COVERED).astype(int))]

    def work(part: npt.NDArray[np.intp]) -> pd.DataFrame:
        some = Truth(truth.codes[part], truth.known[part], truth.unseen[part])
        return coverage_curve(prediction.distribution[part], some, _BEST, "report")

    done = in_time(rows, work)
    n = sum(size for size, _ in done)
    whole = done[0][1].assign(count=n)
    for column in ("observed", "expected"):
        whole[column] = np.sum([size / n * curve[column] for size, curve in done], axis=0)
    return whole
