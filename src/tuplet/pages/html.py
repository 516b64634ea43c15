"""Tables of a page in HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from numbers import Integral, Real
from typing import Any

import pandas as pd

from tuplet.pages.grid import DASH, Cell, Grid, ScoreTable, lay_out, name_text

_TALL = 26
"""Lines from which on a table scrolls by itself, below its headings."""

_LONG = 56
"""Letters of a text from which on it may be broken into lines."""


@dataclass(frozen=True)
class PlainTable:
    """Any frame, shown as it is: p values, times, descriptions of data sets.

    Parameters
    ----------
    frame : DataFrame
        Its index is the first column.
    caption : str
        What it shows.
    digits : int
        Decimals of numbers that are not whole; smaller ones get an exponent.

    Examples
    --------
    >>> PlainTable(pd.DataFrame({"rows": [593]}, index=["emotions"]), caption="data sets").digits
    3
    """

    frame: pd.DataFrame
    caption: str = ""
    digits: int = 3


def html_table(table: ScoreTable | PlainTable | pd.DataFrame, prefix: str) -> str:
    """Return a table as an HTML figure with its caption and footnotes.

    Parameters
    ----------
    table : ScoreTable, PlainTable or DataFrame
    prefix : str
        Before ids, which must be unique in a page.
    """
    if isinstance(table, ScoreTable):
        return _score_table(table, prefix)
    return _plain_table(PlainTable(table) if isinstance(table, pd.DataFrame) else table)


# -- scores ------------------------------------------------------------------------------------------------


def _score_table(table: ScoreTable, prefix: str) -> str:
    grid = lay_out(table)
    first = "descending" if table.greater_is_better else "ascending"
    head = [_heading(grid.corner, "ascending"), *(_heading(name, first) for name in grid.models)]
    body = [
        _row(name, [_score_cell(cell, prefix) for cell in line])
        for name, line in zip(grid.datasets, grid.lines, strict=True)
    ]
    foot = _row(grid.rank_heading, [_score_cell(cell, prefix) for cell in grid.ranks]) if grid.ranks else ""
    better = "higher" if table.greater_is_better else "lower"
    hint = f"{better} is better; the best of each line is bold"
    return _figure(table.caption, hint, _table(head, body, foot), _notes(grid, prefix))


def _score_cell(cell: Cell, prefix: str) -> str:
    note = ""
    if cell.note:
        title = escape(cell.reason)
        note = f'<sup><a href="#{prefix}{cell.note}" title="{title}">{cell.note}</a></sup>'
    if not cell.is_number:
        return f'<td class="sign">{escape(cell.text)}{note}</td>'
    spread = f" <small>± {escape(cell.spread)}</small>" if cell.spread else ""
    mark = f" {escape(cell.mark)}" if cell.mark else ""
    best = ' class="best"' if cell.best else ""
    return f'<td{best} data-value="{_sort_key(cell.value)}">{escape(cell.text)}{spread}{mark}{note}</td>'


def _notes(grid: Grid, prefix: str) -> str:
    return "".join(
        f'<p class="note" id="{prefix}{letter}"><sup>{letter}</sup> {escape(reason)}</p>'
        for letter, reason in grid.notes.items()
    )


# -- other frames ------------------------------------------------------------------------------------------


def _plain_table(table: PlainTable) -> str:
    corner = "" if table.frame.index.name is None else name_text(table.frame.index.name)
    columns = [table.frame.iloc[:, j].tolist() for j in range(table.frame.shape[1])]
    head = [_heading(corner, "ascending")] + [
        _heading(name_text(name), "ascending", words=any(map(_is_word, column)))
        for name, column in zip(table.frame.columns, columns, strict=True)
    ]
    body = [
        _row(name_text(name), [_plain_cell(column[i], table.digits) for column in columns])
        for i, name in enumerate(table.frame.index)
    ]
    return _figure(table.caption, "", _table(head, body, ""), "")


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value != value


def _is_word(value: Any) -> bool:
    return not _is_missing(value) and (isinstance(value, bool) or not isinstance(value, Real))


def _plain_cell(value: Any, digits: int) -> str:
    if _is_missing(value):
        return f'<td class="sign">{DASH}</td>'
    if _is_word(value):
        text = name_text(value)
        kind = "word long" if len(text) > _LONG else "word"
        return f'<td class="{kind}">{escape(text)}</td>'
    return f'<td data-value="{_sort_key(float(value))}">{_plain_number(value, digits)}</td>'


def _plain_number(value: Real, digits: int) -> str:
    number = float(value)
    if isinstance(value, Integral):
        return f"{int(value)}"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return f"{number:.1e}" if 0 < abs(number) < 0.5 * 10**-digits else f"{number:.{digits}f}"


# -- what both have ----------------------------------------------------------------------------------------


def _sort_key(value: float) -> str:
    """Return a number as JavaScript reads it."""
    return repr(value) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _heading(name: str, first: str, words: bool = False) -> str:
    kind = ' class="word"' if words else ""
    return f'<th scope="col"{kind} data-first="{first}"><span>{escape(name)}</span></th>'


def _row(name: str, cells: list[str]) -> str:
    return f'<tr><th scope="row"><span>{escape(name)}</span></th>{"".join(cells)}</tr>'


def _table(head: list[str], body: list[str], foot: str) -> str:
    end = f"<tfoot>{foot}</tfoot>" if foot else ""
    lines = "\n".join(body)
    return f"<table><thead><tr>{''.join(head)}</tr></thead>\n<tbody>{lines}</tbody>{end}</table>"


def _figure(caption: str, hint: str, table: str, notes: str) -> str:
    small = f" <small>{escape(hint)}</small>" if hint else ""
    above = f"<figcaption>{escape(caption)}{small}</figcaption>" if caption or hint else ""
    kind = "scroll tall" if table.count("<tr>") > _TALL else "scroll"
    # What scrolls can be reached and moved by keyboard.
    frame = f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(caption or "table")}">'
    return f"<figure>{above}{frame}{table}</div>{notes}</figure>"
