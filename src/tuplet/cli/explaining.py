"""`tuplet explain`: what a model believes of one row, and why."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from tuplet.cli.predicting import Ask, predicted
from tuplet.cli.tables import Columns
from tuplet.cli.terminal import out, show
from tuplet.exceptions import InputError, IntractableError, LabelError
from tuplet.prediction import JointPrediction
from tuplet.prediction.dependence import mean_information
from tuplet.space.words import chance_text, combination_texts, is_yes_no

_BAR = 20
_LABELS = 4
"""Labels of a variable that are shown, the most probable ones."""

_POSITIVE = 15
"""Variables of yes and no that are shown, the likely ones."""

_LITTLE = 0.0005

_PAIRS, _MANY = 8, 60
"""Dependences that are shown, and variables beyond which pairs are not looked at."""


def explain_row(model: Any, ask: Ask, row: int) -> None:
    """Print combinations, labels, dependences and reasons of the row at this position."""
    columns = Columns(model)
    frame = _row_of(columns, ask, row)
    prediction = predicted(model, columns, frame, ask)
    console = out()
    _combinations(console, prediction, ask.top_k)
    _labels(console, prediction)
    _dependences(console, prediction)
    if columns.has_labels(frame):
        _truth(console, prediction, columns.labels_of(frame, ask.data))
    if hasattr(model, "explain") and not ask.known:
        console.print("\n[bold]Reasons[/bold]")
        console.print(str(model.explain(columns.features_of(frame, ask.data), 0)), markup=False)
    if getattr(model, "weights_", None):
        rows = [(name, f"{weight:.3f}") for name, weight in model.weights_.items() if weight > 0]
        console.print()
        show("Models of the mixture", ["model", "weight"], rows)


def _row_of(columns: Columns, ask: Ask, row: int) -> pd.DataFrame:
    seen = 0
    for chunk in columns.chunks(ask.data, format=ask.format, rows=100_000):
        if seen <= row < seen + len(chunk.frame):
            return chunk.frame.iloc[[row - seen]]
        seen += len(chunk.frame)
    raise InputError(f"--row: {ask.data!r} has the rows 0 to {seen - 1}; found {row}.")


def _combinations(console: Any, prediction: JointPrediction, k: int) -> None:
    ranking = prediction.distribution.top_k(max(1, k))
    ranks = np.flatnonzero(np.isfinite(ranking.log_prob[0]))
    texts = combination_texts(prediction.space, ranking.codes[0, ranks], max(24, console.width - 40))
    chances = np.exp(ranking.log_prob[0, ranks])
    rows = [(text, _bar(p), chance_text(float(p))) for text, p in zip(texts, chances, strict=True)]
    show("Most probable combinations", ["labels", "", "probability"], rows, left=2)


def _labels(console: Any, prediction: JointPrediction) -> None:
    tables = [table[0] for table in prediction._marginals("explain")]
    console.print()
    if is_yes_no(prediction.space):
        _show_positive(prediction.space.names, [float(table[1]) for table in tables])
        return
    rows = []
    for j, chances in enumerate(tables):
        order = np.argsort(-chances, kind="stable")[:_LABELS]
        texts = [str(label) for label in prediction.space.decode_column(j, order)]
        for i, (text, c) in enumerate(zip(texts, order, strict=True)):
            p = float(chances[c])
            rows.append(("" if i else prediction.space.names[j], text, _bar(p), chance_text(p)))
    show("Each class variable by itself", ["variable", "label", "", "probability"], rows, left=3)


def _show_positive(names: Sequence[str], chances: list[float]) -> None:
    """Print variables of yes and no, the likely ones first."""
    order = sorted(range(len(names)), key=lambda j: -chances[j])
    rows = [(names[j], _bar(chances[j]), chance_text(chances[j])) for j in order[:_POSITIVE]]
    show("Each class variable by itself: probability of the second label", ["variable", "", ""], rows, left=2)
    rest = order[_POSITIVE:]
    if rest:
        out().print(f"... {len(rest)} more, each {chance_text(chances[rest[0]])} at most")


def _dependences(console: Any, prediction: JointPrediction) -> None:
    names = prediction.space.names
    if not 2 <= len(names) <= _MANY:
        return
    try:
        nats = mean_information(prediction.distribution)
    except IntractableError:
        return
    best = sorted(combinations(range(len(names)), 2), key=lambda pair: -nats[pair])[:_PAIRS]
    rows = [(names[a], names[b], f"{nats[a, b]:.3f}") for a, b in best if nats[a, b] >= _LITTLE]
    console.print()
    if rows:
        title = "What labels tell about each other in this row (nats)"
        show(title, ["", "", "information"], rows, left=2)
    else:
        console.print("In this row, no label tells anything about another.")


def _truth(console: Any, prediction: JointPrediction, Y: pd.DataFrame) -> None:
    known = Y.loc[:, Y.notna().iloc[0]]
    if not known.shape[1]:
        return
    said = ", ".join(f"{name}={value}" for name, value in known.iloc[0].head(8).items())
    more = f" and {known.shape[1] - 8} more" if known.shape[1] > 8 else ""
    try:
        chance = f"probability {chance_text(float(prediction.prob(Y)[0]))}"
    except LabelError:
        chance = "the model does not know all of these labels"
    console.print(f"\nThe file says {said}{more}: {chance}.", markup=False)


def _bar(p: float) -> str:
    return "━" * round(_BAR * float(p))
