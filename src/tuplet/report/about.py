"""The model itself: what it learned from, its settings, and what it is made of."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pandas as pd

from tuplet.pages import PlainTable, Section
from tuplet.report.pieces import attempt, facts
from tuplet.space.words import clip

_VALUE = 90
"""Letters of a setting that are shown."""


def model_section(model: Any) -> Section:
    """Return the section that all models have."""
    return Section("Model", _doc(model), tables=[_overview(model), settings_table(model)])


def own_sections(model: Any) -> list[Section]:
    """Return what a model shows of itself."""
    sections: list[Section] = []

    def make() -> None:
        sections.extend(model._report_sections())

    failure = attempt("What it is made of", make)
    return [*sections, *failure]


def _doc(model: Any) -> str:
    """Return the first line of what the model says of itself."""
    return (type(model).__doc__ or "").strip().partition("\n")[0]


def _overview(model: Any) -> PlainTable:
    lines: dict[str, Any] = {"kind": type(model).__name__}
    rows = getattr(model, "n_samples_fit_", None)
    if rows is not None:
        lines["rows that it learned from"] = int(rows)
    lines["features"] = int(model.n_features_in_)
    lines["class variables"] = model.space_.n_variables
    return facts(lines, "Overview")


def settings_table(model: Any) -> PlainTable:
    """Return all parameters, with their defaults where these were changed."""
    defaults = {name: each.default for name, each in signature(type(model).__init__).parameters.items()}
    lines = []
    for name, value in model.get_params(deep=False).items():
        text, usual = _text(value), _text(defaults.get(name))
        lines.append((name, text, usual if text != usual and name in defaults else ""))
    frame = pd.DataFrame(lines, columns=["parameter", "value", "changed from"]).set_index("parameter")
    return PlainTable(frame, "Settings")


def _text(value: Any) -> str:
    if value is signature(_text).empty:
        return "(none)"
    return clip(repr(value), _VALUE)
