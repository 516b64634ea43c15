"""Scores as a grid of cells: numbers rounded, the best marked, failures explained below; no markup yet."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, NamedTuple

import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.space.words import clip

DASH = "—"
"""Neither a score nor a reason why not."""

_SIGNS = ("over time", "over memory", "not run", "no score", "crashed", "failed")
_LONGEST_REASON = 300


@dataclass(frozen=True)
class ScoreTable:
    """Scores of models on data sets, and what belongs to them.

    Parameters
    ----------
    mean : DataFrame, data sets x models
        NaN where there is no score.
    std : DataFrame, data sets x models, optional
        Shown behind the means.
    ranks : Series, optional
        Average rank of each model, the last line. Where its `attrs["n_rows"]` is less than the data sets of
        the table, the line shows how many.
    missing : DataFrame, data sets x models, optional
        Reasons (texts) why scores are missing, empty or NaN elsewhere. One that begins with "over time",
        "over memory", "not run", "no score", "crashed" or "failed" is shown by that sign, any other by
        "failed"; the whole text is a footnote. A reason beside a number, such as a fold that failed, is a
        footnote of that number, which is then never called the best.
    marks : DataFrame, data sets x models, optional
        Short signs behind the numbers, such as "•" where a test finds a model worse.
    digits : int
        Decimals.
    greater_is_better : bool
        False for losses.
    corner : str
        Heading of the first column.
    caption : str
        What the scores are.

    Examples
    --------
    >>> mean = pd.DataFrame({"chain": [0.31, 0.7], "prior": [0.12, None]}, index=["emotions", "scene"])
    >>> ScoreTable(mean, caption="exact match").mean.shape
    (2, 2)
    """

    mean: pd.DataFrame
    std: pd.DataFrame | None = None
    ranks: pd.Series | None = None
    missing: pd.DataFrame | None = None
    marks: pd.DataFrame | None = None
    digits: int = 3
    greater_is_better: bool = True
    corner: str = "data set"
    caption: str = ""


class Cell(NamedTuple):
    """One entry: a number, or a sign in its place.

    Attributes
    ----------
    text : str
        The number rounded, or the sign.
    value : float
        The number; NaN for a sign.
    spread : str
        The standard deviation, rounded.
    best : bool
        Whether nothing in its line is better, to the digits shown.
    mark : str
        A sign behind the number.
    note : str
        Letter of a footnote.
    reason : str
        The footnote.
    """

    text: str
    value: float = math.nan
    spread: str = ""
    best: bool = False
    mark: str = ""
    note: str = ""
    reason: str = ""

    @property
    def is_number(self) -> bool:
        """Whether there is a number to show."""
        return not math.isnan(self.value)


class Grid(NamedTuple):
    """A table before its markup.

    Attributes
    ----------
    corner : str
    models, datasets : list of str
        Headings of columns and lines.
    lines : list of lists of Cell
    ranks : list of Cell
        The last line; empty if there are no ranks.
    rank_heading : str
        Its heading, with the number of data sets if not all count.
    notes : dict
        Footnotes by letter.
    """

    corner: str
    models: list[str]
    datasets: list[str]
    lines: list[list[Cell]]
    ranks: list[Cell]
    rank_heading: str
    notes: dict[str, str]


def score_grid(table: ScoreTable) -> Grid:
    """Return the cells of a table, checked."""
    mean = _check_mean(table)
    std, missing, marks = (
        _aligned(frame, mean, name)
        for name, frame in (("std", table.std), ("missing", table.missing), ("marks", table.marks))
    )
    reasons = [[_reason(entry) for entry in line] for line in missing]
    letters = _letters(reason for line in reasons for reason in line if reason)
    entries = [
        [_Entry(*entry) for entry in zip(*line, strict=True)]
        for line in zip(mean.to_numpy(dtype=float).tolist(), std, reasons, marks, strict=True)
    ]
    lines = [_line(line, table, letters) for line in entries]
    return Grid(
        corner=table.corner,
        models=[name_text(name) for name in mean.columns],
        datasets=[name_text(name) for name in mean.index],
        lines=lines,
        ranks=_rank_line(table),
        rank_heading=_rank_heading(table),
        notes={letter: reason for reason, letter in letters.items()},
    )


def name_text(name: Any) -> str:
    """Return a name on one line; the parts of a compound one with points between them."""
    parts = name if isinstance(name, tuple) else (name,)
    return " · ".join(" ".join(str(part).split()) for part in parts)


# -- checks ------------------------------------------------------------------------------------------------


def _check_mean(table: ScoreTable) -> pd.DataFrame:
    mean = table.mean
    for what, names in (("data sets", mean.index), ("models", mean.columns)):
        if not names.is_unique:
            twice = list(names[names.duplicated()].unique())
            raise InputError(f"A table of scores needs different names for its {what}; {twice} occur twice.")
    if table.digits < 0:
        raise InputError(f"A table of scores needs digits >= 0, found {table.digits}.")
    return mean


def _aligned(frame: pd.DataFrame | None, mean: pd.DataFrame, name: str) -> list[list[Any]]:
    """Return the entries of a frame in the order of the means, NaN or None where it has none."""
    if frame is None:
        return [[None] * mean.shape[1] for _ in range(len(mean))]
    unknown = [*frame.index.difference(mean.index), *frame.columns.difference(mean.columns)]
    if unknown:
        raise InputError(f"A table of scores: `{name}` names {unknown}, which `mean` does not have.")
    return frame.astype(object).reindex(index=mean.index, columns=mean.columns).to_numpy().tolist()


def _is_empty(entry: Any) -> bool:
    return entry is None or entry is pd.NA or entry != entry or str(entry).strip() == ""


# -- cells -------------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    value: float
    spread: Any
    reason: str
    mark: Any


def _line(entries: list[_Entry], table: ScoreTable, letters: dict[str, str]) -> list[Cell]:
    rivals = [entry.value for entry in entries if not math.isnan(entry.value) and not entry.reason]
    best = (max if table.greater_is_better else min)(rivals, default=math.nan)
    best_text = _number_text(best, table.digits) if len(entries) > 1 else DASH
    cells = [_cell(entry, table.digits, letters) for entry in entries]
    return [cell._replace(best=not cell.reason and cell.text == best_text != DASH) for cell in cells]


def _cell(entry: _Entry, digits: int, letters: dict[str, str]) -> Cell:
    note = letters.get(entry.reason, "")
    if math.isnan(entry.value):
        return Cell(_sign(entry.reason), note=note, reason=entry.reason)
    has_spread = math.isfinite(entry.value) and not _is_empty(entry.spread)
    return Cell(
        _number_text(entry.value, digits),
        entry.value,
        spread=_number_text(float(entry.spread), digits) if has_spread else "",
        mark="" if _is_empty(entry.mark) else name_text(entry.mark),
        note=note,
        reason=entry.reason,
    )


def _number_text(value: float, digits: int) -> str:
    if math.isnan(value):
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def _reason(entry: Any) -> str:
    return "" if _is_empty(entry) else clip(str(entry), _LONGEST_REASON)


def _sign(reason: str) -> str:
    if not reason:
        return DASH
    return next((sign for sign in _SIGNS if reason.lower().startswith(sign)), "failed")


def _letters(reasons: Iterable[str]) -> dict[str, str]:
    """Return a letter for each reason, in the order in which they occur: a to z, then aa, bb, ..."""
    distinct = dict.fromkeys(reasons)
    return {reason: ascii_lowercase[i % 26] * (1 + i // 26) for i, reason in enumerate(distinct)}


def _rank_heading(table: ScoreTable) -> str:
    total = len(table.mean)
    counted = total if table.ranks is None else int(table.ranks.attrs.get("n_rows", total))
    return "average rank" + (f" ({counted} of {total})" if counted < total else "")


def _rank_line(table: ScoreTable) -> list[Cell]:
    """Return the average ranks with two decimals, the lowest marked."""
    if table.ranks is None:
        return []
    unknown = list(table.ranks.index.difference(table.mean.columns))
    if unknown:
        raise InputError(f"A table of scores: `ranks` names {unknown}, which `mean` does not have.")
    ranks = table.ranks.astype(float).reindex(table.mean.columns).tolist()
    texts = [_number_text(rank, 2) for rank in ranks]
    lowest = min((rank for rank in ranks if not math.isnan(rank)), default=math.nan)
    best = _number_text(lowest, 2) if len(ranks) > 1 else DASH
    return [Cell(text, rank, best=text == best != DASH) for rank, text in zip(ranks, texts, strict=True)]
