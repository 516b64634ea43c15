"""The page as a whole."""

from __future__ import annotations

import math
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tuplet.exceptions import InputError
from tuplet.losses import Loss
from tuplet.pages import Section, html_page
from tuplet.plots.canvas import pyplot
from tuplet.prediction import JointPrediction
from tuplet.prediction.arguments import check_count, check_loss
from tuplet.prediction.truth import Truth, read_truth
from tuplet.report.about import model_section, own_sections
from tuplet.report.data import data_sections, space_section
from tuplet.report.dependence import dependence_section
from tuplet.report.examples import example_section, surprise_section
from tuplet.report.pieces import attempt, plural
from tuplet.report.scores import reliability_section, score_section
from tuplet.space.words import first_words


def model_page(
    model: Any,
    X: Any = None,
    Y: Any = None,
    *,
    title: str | None = None,
    n_examples: int = 5,
    loss: str | Loss = "hamming",
) -> str:
    """Return a page of HTML about a fitted model; see `JointClassifier.report`."""
    check_is_fitted(model, "space_")
    pyplot()  # if it is not there, say so before any work
    check_count("report", "n_examples", n_examples, 0)
    check_loss(loss, model.space_)
    if Y is not None and X is None:
        raise InputError("report: labels Y come with features X; pass both, X alone, or neither.")
    sections = [*own_sections(model), model_section(model), space_section(model.space_, None)]
    if X is not None:
        prediction = model.predict_joint(X)
        truth = None if Y is None else read_truth(Y, model.space_, len(prediction), prediction.index)
        sections = _with_rows(model, prediction, X, Y, truth, n_examples, loss)
    return html_page(title or _title(model), sections, text=_summary(model))


def _with_rows(
    model: Any,
    prediction: JointPrediction,
    X: Any,
    Y: Any,
    truth: Truth | None,
    n_examples: int,
    loss: str | Loss,
) -> list[Section]:
    """Return all sections, what most readers look for first."""
    space, codes = model.space_, None if truth is None else truth.codes
    facts, features = data_sections(X, space, codes, _feature_names(model))
    sections = [facts]
    if truth is not None:
        n_fit = getattr(model, "n_samples_fit_", None)
        sections += attempt("Scores", lambda: score_section(prediction, Y, truth, loss, n_fit))
        sections += attempt("Reliability", lambda: reliability_section(prediction, Y, truth))
    sections += own_sections(model)
    sections += attempt("Dependence", lambda: dependence_section(prediction, codes))
    sections += attempt("Examples", lambda: example_section(prediction, truth, n_examples))
    if truth is not None:
        sections += attempt("Most surprising rows", lambda: surprise_section(prediction, truth, n_examples))
    return [*sections, space_section(space, codes), *features, model_section(model)]


def _feature_names(model: Any) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def _title(model: Any) -> str:
    return f"{type(model).__name__}: {first_words(list(model.space_.names), ', ', 40)}"


def _summary(model: Any) -> str:
    space = model.space_
    n_outcomes = math.prod(space.cards)
    digits = math.log10(n_outcomes)
    several = plural(n_outcomes, "combination") if digits < 6 else f"about 10^{digits:.0f} combinations"
    rows = getattr(model, "n_samples_fit_", None)
    learned = f", learned from {plural(int(rows), 'row')}" if rows is not None else ""
    return (
        f"A model of {plural(space.n_variables, 'class variable')} together ({several} of labels){learned}"
        f" with {plural(int(model.n_features_in_), 'feature')}."
    )
