"""`tuplet predict` and `tuplet explain`: predictions of all rows of a file, or of one row in detail."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError, IntractableError, LabelError
from tuplet.core.progress import Progress
from tuplet.core.typing import UNKNOWN, Codes
from tuplet.io.tables.chunks import Chunk
from tuplet.io.tables.table import as_label
from tuplet.losses.base import Loss
from tuplet.prediction.dependence import mean_information
from tuplet.prediction.joint import JointPrediction
from tuplet.prediction.truth import read_truth
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.words import chance_text, combination_texts, is_yes_no
from tuplet.surface.cli.output import Piece, open_sink, output_format
from tuplet.surface.cli.tables import FileOptions, ModelColumns
from tuplet.surface.cli.terminal import print_hint, print_table, result_console

_ROWS = 10_000
"""Rows of a piece; predictions of models with draws may need a hundred times the memory of a row."""

_SHOWN = 20

_BAR = 20
_LABELS = 4
"""Labels of a variable that are shown, the most probable ones."""

_POSITIVE = 15
"""Binary variables that are shown, the most probable ones."""

_LITTLE = 0.0005

_PAIRS, _MANY = 8, 60
"""Number of dependences to show, and of variables above which none are computed."""


@dataclass(frozen=True)
class PredictRequest:
    """A request for predictions of a file.

    Parameters
    ----------
    data : str
        The file, "-" for standard input.
    options : FileOptions
        How it is read.
    loss : str or Loss
    top_k : int
    known : dict
        Labels that are known for all rows.
    use_labels : bool
        Whether labels in the file count as known.
    keep : sequence of str
        Columns to copy to the output.
    all_labels : bool
        Whether to give the probabilities of all labels.
    """

    data: str
    options: FileOptions
    loss: str | Loss
    top_k: int
    known: dict[str, Any]
    use_labels: bool = False
    keep: Sequence[str] = ()
    all_labels: bool = False


def known_labels(model: Any, given: list[str]) -> dict[str, Any]:
    """Return the labels of "name=label" texts, with the types of the model's labels."""
    known = {}
    for text in given:
        name, equals, label = (part.strip() for part in text.partition("="))
        if not equals or name not in model.space_.names:
            raise InputError(
                f"--known: expected name=label with a class variable of the model"
                f" ({listing(list(model.space_.names), 12)}), found {text!r}."
            )
        if name in known:
            raise InputError(f"--known: {name!r} is given twice; remove one of them.")
        known[name] = _label(name, label, model.space_.categories[model.space_.position(name)].tolist())
    return known


def _label(name: str, text: str, values: list[Any]) -> Any:
    """Return the label with this text, or the same number, or the same truth value."""
    for same in (_is_printed, _is_number, _is_truth):
        found = [value for value in values if same(value, text)]
        if found:
            return found[0]
    raise LabelError(f"--known: {name!r} has the labels {', '.join(map(str, values))}; found {text!r}.")


def _is_printed(value: Any, text: str) -> bool:
    return str(value) == text


def _is_number(value: Any, text: str) -> bool:
    try:
        return not isinstance(value, bool | str) and float(text) == value
    except ValueError:
        return False


def _is_truth(value: Any, text: str) -> bool:
    return isinstance(value, bool) and str(value).lower() == text.lower()


def predict_file(model: Any, request: PredictRequest, target: str, format: str | None) -> None:
    """Predict a file piece by piece, into another file or the terminal."""
    needs_columns = request.keep or request.all_labels or request.loss not in ("hamming", "subset")
    if target == "-" and format is None and sys.stdout.isatty() and not needs_columns:
        _show(model, request)
        return
    kind = output_format(target, format)
    if kind == "parquet" and target == "-" and sys.stdout.isatty():
        raise InputError("Parquet is a binary format and cannot be printed; give --out.")
    n = 0
    with open_sink(target, kind) as sink, Progress("Predicting, percent", 100) as progress:
        for chunk, piece in _pieces(model, request):
            sink.write(piece)
            n += len(piece.labels)
            if chunk.share is not None:
                progress.advance(f"{n:,} rows", steps=round(100 * chunk.share) - progress.done)
        # The length of a stream is unknown until its end.
        progress.advance(f"{n:,} rows", steps=100 - progress.done)
    print_hint(f"{n:,} rows predicted" + ("." if target == "-" else f", written to {target}."))


def _pieces(model: Any, request: PredictRequest) -> Iterator[tuple[Chunk, Piece]]:
    columns = ModelColumns(model)
    for chunk in columns.chunks(request.data, request.options, rows=_ROWS, also_text=request.keep):
        for start in range(0, len(chunk.frame), _ROWS):
            frame = chunk.frame.iloc[start : start + _ROWS]
            prediction = _predict(model, columns, frame, request)
            kept = _kept(frame, request, columns.variables)
            yield chunk, _make_piece(prediction, kept, request)


def _predict(
    model: Any, columns: ModelColumns, frame: pd.DataFrame, request: PredictRequest
) -> JointPrediction:
    """Return the joint prediction of some rows, given their known labels."""
    prediction: JointPrediction = model.predict_joint(columns.features_of(frame, request.data))
    if request.use_labels:
        there = [name for name in columns.variables if name in frame]
        prediction = prediction.given({name: as_label(frame[name]) for name in there})
    return prediction.given(request.known) if request.known else prediction


def _kept(frame: pd.DataFrame, request: PredictRequest, variables: Sequence[str]) -> pd.DataFrame:
    """Return the copied columns; class variables are renamed, since the output has columns of their names."""
    lacking = [name for name in request.keep if name not in frame]
    if lacking:
        raise InputError(
            f"--keep: {request.data!r} has no column {lacking[0]!r}; it has"
            f" {listing(list(frame.columns), 12)}."
        )
    return frame[list(request.keep)].rename(columns={name: f"true.{name}" for name in variables})


def label_frame(space: ClassSpace, codes: Codes, index: pd.Index | None = None) -> pd.DataFrame:
    """Return labels of codes (n, m) as a pandas frame, also for a model that was fitted to polars."""
    frame = space.decode_frame(codes, index)
    return frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame.to_dict(as_series=False), index)


def _make_piece(prediction: JointPrediction, kept: pd.DataFrame, request: PredictRequest) -> Piece:
    """Decide for some rows, with probabilities."""
    space, index = prediction.space, kept.index
    codes = prediction._decide(request.loss, "predict")
    marginals = prediction._marginals("predict")
    if request.all_labels:
        chances = {
            f"P({name}={label})": marginals[j][:, c]
            for j, name in enumerate(space.names)
            for c, label in enumerate(space.categories[j].tolist())
        }
    else:
        rows = np.arange(len(codes))
        chances = {
            f"P({name})": np.where(codes[:, j] == UNKNOWN, np.nan, marginals[j][rows, codes[:, j]])
            for j, name in enumerate(space.names)
        }
    ranked = []
    if request.top_k:
        ranking = prediction.distribution.top_k(request.top_k)
        for rank in range(ranking.codes.shape[1]):
            chance = np.exp(ranking.log_prob[:, rank])
            ranked.append((label_frame(space, ranking.codes[:, rank], index), chance))
    return Piece(kept, label_frame(space, codes, index), pd.DataFrame(chances, index=index), ranked)


# -- terminal ----------------------------------------------------------------------------------------------


def _show(model: Any, request: PredictRequest) -> None:
    """Print combinations of the first rows, in one column, since one per variable may not fit."""
    columns = ModelColumns(model)
    chunk = next(columns.chunks(request.data, request.options, rows=_ROWS))
    prediction = _predict(model, columns, chunk.frame.iloc[:_SHOWN], request)
    ranked = _ranked(prediction, max(1, request.top_k), max(24, result_console().width - 24))
    lines = [
        (name if rank == 0 else "", text, chance_text(p))
        for name, row in zip(chunk.frame.index[:_SHOWN], ranked, strict=True)
        for rank, (text, p) in enumerate(row)
    ]
    title = "labels" if is_yes_no(prediction.space) else " · ".join(columns.variables[:6])
    print_table("", ["row", title, "probability"], lines, left=2)
    if len(chunk.frame) > _SHOWN:
        print_hint(f"First {_SHOWN} rows; --out FILE writes all of them.")


def _ranked(prediction: JointPrediction, k: int, width: int) -> list[list[tuple[str, float]]]:
    """Return the k most probable combinations of each row as texts, with their probabilities."""
    ranking = prediction.distribution.top_k(k)
    rows = []
    for codes, log_prob in zip(ranking.codes, ranking.log_prob, strict=True):
        possible = np.isfinite(log_prob)
        texts = combination_texts(prediction.space, codes[possible], width)
        rows.append(list(zip(texts, np.exp(log_prob[possible]).tolist(), strict=True)))
    return rows


# -- one row -----------------------------------------------------------------------------------------------


def explain_row(model: Any, request: PredictRequest, row: int) -> None:
    """Print combinations, labels, dependences and reasons of the row at this position."""
    columns = ModelColumns(model)
    frame = _row_of(columns, request, row)
    prediction = _predict(model, columns, frame, request)
    console = result_console()
    _combinations(console, prediction, request.top_k)
    _labels(console, prediction)
    _dependences(console, prediction)
    if columns.has_labels(frame):
        _truth(console, prediction, columns.labels_of(frame, request.data))
    if hasattr(model, "explain") and not request.known:
        console.print("\n[bold]Reasons[/bold]")
        console.print(str(model.explain(columns.features_of(frame, request.data), 0)), markup=False)
    if getattr(model, "weights_", None):
        rows = [(name, f"{weight:.3f}") for name, weight in model.weights_.items() if weight > 0]
        console.print()
        print_table("Models of the mixture", ["model", "weight"], rows)


def _row_of(columns: ModelColumns, request: PredictRequest, row: int) -> pd.DataFrame:
    seen = 0
    for chunk in columns.chunks(request.data, request.options, rows=100_000):
        if seen <= row < seen + len(chunk.frame):
            return chunk.frame.iloc[[row - seen]]
        seen += len(chunk.frame)
    raise InputError(f"--row: {request.data!r} has the rows 0 to {seen - 1}; found {row}.")


def _combinations(console: Any, prediction: JointPrediction, k: int) -> None:
    [ranked] = _ranked(prediction, k, max(24, console.width - 40))
    rows = [(text, _bar(p), chance_text(p)) for text, p in ranked]
    print_table("Most probable combinations", ["labels", "", "probability"], rows, left=2)


def _labels(console: Any, prediction: JointPrediction) -> None:
    tables = [table[0] for table in prediction._marginals("explain")]
    console.print()
    if is_yes_no(prediction.space):
        _show_positive(prediction.space.names, [float(table[1]) for table in tables])
        return
    rows = []
    for j, chances in enumerate(tables):
        order = np.argsort(-chances, kind="stable")[:_LABELS]
        order = np.sort(order) if prediction.space.ordered[j] else order
        texts = [str(label) for label in prediction.space.decode_column(j, order)]
        for i, (text, c) in enumerate(zip(texts, order, strict=True)):
            p = float(chances[c])
            rows.append(("" if i else prediction.space.names[j], text, _bar(p), chance_text(p)))
    print_table("Single class variables", ["variable", "label", "", "probability"], rows, left=3)


def _show_positive(names: Sequence[str], chances: list[float]) -> None:
    """Print binary variables, the most probable ones first."""
    order = sorted(range(len(names)), key=lambda j: -chances[j])
    rows = [(names[j], _bar(chances[j]), chance_text(chances[j])) for j in order[:_POSITIVE]]
    print_table("Single class variables: probability of the second label", ["variable", "", ""], rows, left=2)
    rest = order[_POSITIVE:]
    if rest:
        result_console().print(f"... {len(rest)} more, each at most {chance_text(chances[rest[0]])}")


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
        title = "Mutual information of labels in this row (nats)"
        print_table(title, ["", "", "information"], rows, left=2)
    else:
        console.print("In this row, the labels are independent of each other.")


def _truth(console: Any, prediction: JointPrediction, Y: pd.DataFrame) -> None:
    known = Y.loc[:, Y.notna().iloc[0]]
    if not known.shape[1]:
        return
    labels = ", ".join(f"{name}={value}" for name, value in known.iloc[0].head(8).items())
    more = f" and {known.shape[1] - 8} more" if known.shape[1] > 8 else ""
    if read_truth(Y, prediction.space, 1, prediction.index).unseen.any():
        chance = "some of these labels are unknown to the model"
    else:
        chance = f"probability {chance_text(float(prediction.prob(Y)[0]))}"
    console.print(f"\nLabels in the file: {labels}{more}; {chance}.", markup=False)


def _bar(p: float) -> str:
    return "━" * round(_BAR * float(p))
