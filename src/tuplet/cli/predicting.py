"""`tuplet predict` and `tuplet explain`: predictions of all rows of a file, or of one row in detail."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from tuplet.cli.output import Piece, open_sink, output_format
from tuplet.cli.tables import Columns
from tuplet.cli.terminal import note, out, show
from tuplet.datasets.files.chunks import Chunk
from tuplet.datasets.files.table import as_label
from tuplet.exceptions import InputError, IntractableError, LabelError
from tuplet.losses import Loss
from tuplet.plots.dependence import mean_information
from tuplet.prediction import JointPrediction
from tuplet.progress import Progress
from tuplet.space import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.words import chance_text, combination_texts, is_yes_no
from tuplet.typing import UNKNOWN, Codes

_ROWS = 10_000
"""Rows of a piece: what models with draws hold of one row may be a hundred times its size."""

_SHOWN = 20

_BAR = 20
_LABELS = 4
"""Labels of a variable that are shown, the most probable ones."""

_POSITIVE = 15
"""Variables of yes and no that are shown, the likely ones."""

_LITTLE = 0.0005

_PAIRS, _MANY = 8, 60
"""Dependences that are shown, and variables beyond which pairs are not looked at."""


@dataclass(frozen=True)
class Ask:
    """What is asked of a file.

    Parameters
    ----------
    data : str
        The file, "-" for standard input.
    format : str or None
        Its format.
    loss : str or Loss
    top_k : int
    known : dict
        Labels that are known for all rows.
    use_labels : bool
        Whether labels in the file count as known.
    keep : list of str
        Columns that come along.
    all_labels : bool
        Whether to give the probabilities of all labels.
    """

    data: str
    format: str | None
    loss: str | Loss
    top_k: int
    known: dict[str, Any]
    use_labels: bool
    keep: list[str]
    all_labels: bool


def known_labels(model: Any, given: list[str]) -> dict[str, Any]:
    """Return the labels of "name=label" texts, of the types that the model knows."""
    known = {}
    for text in given:
        name, equals, label = (part.strip() for part in text.partition("="))
        if not equals or name not in model.space_.names:
            raise InputError(
                f"--known: expected name=label with a class variable of the model"
                f" ({listing(list(model.space_.names), 12)}), found {text!r}."
            )
        if name in known:
            raise InputError(f"--known: {name!r} is given twice; leave one of them out.")
        known[name] = _label(name, label, model.space_.categories[model.space_.position(name)].tolist())
    return known


def _label(name: str, text: str, values: list[Any]) -> Any:
    """Return the label that a text stands for: as it is printed, or the same number, or true and false."""
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


def predict_file(model: Any, ask: Ask, target: str, format: str | None) -> None:
    """Predict a file piece by piece, into another file or the terminal."""
    wants_columns = ask.keep or ask.all_labels or ask.loss not in ("hamming", "subset")
    if target == "-" and format is None and sys.stdout.isatty() and not wants_columns:
        _show(model, ask)
        return
    kind = output_format(target, format)
    if kind == "parquet" and target == "-" and sys.stdout.isatty():
        raise InputError("Parquet is no text for a terminal; give --out.")
    n = 0
    with open_sink(target, kind) as sink, Progress("Predicting, percent", 100) as progress:
        for chunk, piece in _pieces(model, ask):
            sink.write(piece)
            n += len(piece.labels)
            if chunk.share is not None:
                progress.advance(f"{n:,} rows", steps=round(100 * chunk.share) - progress.done)
        # How far a stream is shows at its end only.
        progress.advance(f"{n:,} rows", steps=100 - progress.done)
    note(f"{n:,} rows predicted" + ("." if target == "-" else f" into {target}."))


def _pieces(model: Any, ask: Ask) -> Iterator[tuple[Chunk, Piece]]:
    columns = Columns(model)
    for chunk in columns.chunks(ask.data, format=ask.format, rows=_ROWS, also_text=ask.keep):
        for start in range(0, len(chunk.frame), _ROWS):
            frame = chunk.frame.iloc[start : start + _ROWS]
            prediction = predicted(model, columns, frame, ask)
            kept = _kept(frame, ask, columns.variables)
            yield (
                chunk,
                make_piece(prediction, kept, loss=ask.loss, top_k=ask.top_k, all_labels=ask.all_labels),
            )


def predicted(model: Any, columns: Columns, frame: pd.DataFrame, ask: Ask) -> JointPrediction:
    """Return the joint prediction of some rows, given what is known of them."""
    prediction: JointPrediction = model.predict_joint(columns.features_of(frame, ask.data))
    if ask.use_labels:
        there = [name for name in columns.variables if name in frame]
        prediction = prediction.given({name: as_label(frame[name]) for name in there})
    return prediction.given(ask.known) if ask.known else prediction


def _kept(frame: pd.DataFrame, ask: Ask, variables: Sequence[str]) -> pd.DataFrame:
    """Return columns that come along; class variables by another name, as their own is that of the answer."""
    lacking = [name for name in ask.keep if name not in frame]
    if lacking:
        raise InputError(
            f"--keep: {ask.data!r} has no column {lacking[0]!r}; it has {listing(list(frame.columns), 12)}."
        )
    return frame[ask.keep].rename(columns={name: f"true.{name}" for name in variables})


def label_frame(space: ClassSpace, codes: Codes, index: pd.Index | None = None) -> pd.DataFrame:
    """Return labels of codes (n, m) as a frame of pandas, also of a model that learned from polars."""
    frame = space.decode_frame(codes, index)
    return frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame.to_dict(as_series=False), index)


def make_piece(
    prediction: JointPrediction, kept: pd.DataFrame, *, loss: Any, top_k: int, all_labels: bool
) -> Piece:
    """Decide for some rows, and say how probable that is.

    Parameters
    ----------
    prediction : JointPrediction
    kept : DataFrame
    loss : str or Loss
    top_k : int
        Combinations to list; may be 0.
    all_labels : bool
        Whether to give the probabilities of all labels, not only of those decided for.
    """
    space, index = prediction.space, kept.index
    codes = prediction._decide(loss, "predict")
    marginals = prediction._marginals("predict")
    if all_labels:
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
    combinations = []
    if top_k:
        ranking = prediction.distribution.top_k(top_k)
        for rank in range(ranking.codes.shape[1]):
            chance = np.exp(ranking.log_prob[:, rank])
            combinations.append((label_frame(space, ranking.codes[:, rank], index), chance))
    return Piece(kept, label_frame(space, codes, index), pd.DataFrame(chances, index=index), combinations)


# -- terminal ----------------------------------------------------------------------------------------------


def _show(model: Any, ask: Ask) -> None:
    """Print the first rows: combinations in words, which fit where a column for each variable would not."""
    columns = Columns(model)
    chunk = next(columns.chunks(ask.data, format=ask.format, rows=_ROWS))
    prediction = predicted(model, columns, chunk.frame.iloc[:_SHOWN], ask)
    k = max(1, ask.top_k)
    ranking = prediction.distribution.top_k(k)
    console = out()
    width = max(24, console.width - 24)
    lines: list[tuple[Any, ...]] = []
    for i, name in enumerate(chunk.frame.index[:_SHOWN]):
        ranks = np.flatnonzero(np.isfinite(ranking.log_prob[i]))
        texts = combination_texts(prediction.space, ranking.codes[i, ranks], width)
        for rank, text in zip(ranks.tolist(), texts, strict=True):
            chance = chance_text(float(np.exp(ranking.log_prob[i, rank])))
            lines.append((name if rank == 0 else "", text, chance))
    title = "labels" if is_yes_no(prediction.space) else " · ".join(columns.variables[:6])
    show("", ["row", title, "probability"], lines, left=2)
    if len(chunk.frame) > _SHOWN:
        note(f"The first {_SHOWN} rows; --out FILE writes all of them.")


# -- one row -----------------------------------------------------------------------------------------------


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
