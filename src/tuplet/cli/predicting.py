"""`tuplet predict`: labels, probabilities and combinations of every row of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tuplet.cli.pieces import Piece, make_piece
from tuplet.cli.sinks import open_sink, output_format
from tuplet.cli.tables import Columns
from tuplet.cli.terminal import note, out, show
from tuplet.datasets.files.chunks import Chunk
from tuplet.datasets.files.table import as_label
from tuplet.exceptions import InputError, LabelError
from tuplet.losses import Loss
from tuplet.prediction import JointPrediction
from tuplet.progress import Progress
from tuplet.space.containers import listing
from tuplet.space.words import chance_text, combination_texts, is_yes_no

_ROWS = 10_000
"""Rows of a piece: what models with draws hold of one row may be a hundred times its size."""

_SHOWN = 20


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
