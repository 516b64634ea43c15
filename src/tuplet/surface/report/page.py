"""The page about a model as a whole, and the file that it is written to."""

from __future__ import annotations

import math
from typing import IO, Any

from sklearn.utils.validation import check_is_fitted

from tuplet.core.atomic_files import write_bytes
from tuplet.core.exceptions import InputError
from tuplet.losses.base import Loss
from tuplet.models.prior import training_frequencies
from tuplet.prediction.joint import JointPrediction
from tuplet.prediction.queries import check_count, read_loss
from tuplet.prediction.truth import Truth, read_truth
from tuplet.space.words import first_words
from tuplet.surface.pages.page import PlainTable, Section, html_page
from tuplet.surface.plots.canvas import pyplot
from tuplet.surface.report.data import data_sections, space_section
from tuplet.surface.report.pieces import attempt, facts, plural
from tuplet.surface.report.predictions import dependence_section, example_section, surprise_section
from tuplet.surface.report.scores import reliability_section, score_section
from tuplet.surface.report.sections import report_sections, settings_table


def write_report(model: Any, path: Any, X: Any, Y: Any, **options: Any) -> None:
    """Write a page about a model in full or not at all; see `JointClassifier.report`."""
    page = model_page(model, X, Y, **options).encode()

    def write(file: IO[Any]) -> None:
        file.write(page)

    write_bytes(path, write, "report")


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
    pyplot()  # a missing matplotlib is an error before any work
    check_count("report", "n_examples", n_examples, 0)
    read_loss(loss, model.space_)
    if Y is not None and X is None:
        raise InputError("report: labels Y come with features X; pass both, X alone, or neither.")
    sections = [*_own_sections(model), _model_section(model), space_section(model.space_, None)]
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
    about_rows, features = data_sections(X, space, codes, _feature_names(model))
    sections = [about_rows]
    if truth is not None:
        n_fit = getattr(model, "n_samples_fit_", None)
        frequencies = training_frequencies(model)
        baseline = None if frequencies is None else frequencies.predict_joint(X)
        sections += attempt("Scores", lambda: score_section(prediction, baseline, Y, truth, loss, n_fit))
        sections += attempt("Reliability", lambda: reliability_section(prediction, Y, truth))
    sections += _own_sections(model)
    sections += attempt("Dependence", lambda: dependence_section(prediction, codes))
    sections += attempt("Examples", lambda: example_section(prediction, truth, n_examples))
    if truth is not None:
        sections += attempt("Most surprising rows", lambda: surprise_section(prediction, truth, n_examples))
    return [*sections, space_section(space, codes), *features, _model_section(model)]


def _own_sections(model: Any) -> list[Section]:
    """Return the sections about the parts of the model."""
    sections: list[Section] = []

    def make() -> None:
        sections.extend(report_sections(model))

    failure = attempt("What it is made of", make)
    return [*sections, *failure]


def _model_section(model: Any) -> Section:
    """Return the section that all models have: the first line of the docstring, size and settings."""
    first_line = (type(model).__doc__ or "").strip().partition("\n")[0]
    return Section("Model", first_line, tables=[_overview(model), settings_table(model)])


def _overview(model: Any) -> PlainTable:
    lines: dict[str, Any] = {"kind": type(model).__name__}
    rows = getattr(model, "n_samples_fit_", None)
    if rows is not None:
        lines["training rows"] = int(rows)
    lines["features"] = int(model.n_features_in_)
    lines["class variables"] = model.space_.n_variables
    return facts(lines, "Overview")


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
    learned = f", trained on {plural(int(rows), 'row')}" if rows is not None else ""
    return (
        f"A model of {plural(space.n_variables, 'class variable')} together ({several} of labels){learned}"
        f" with {plural(int(model.n_features_in_), 'feature')}."
    )
