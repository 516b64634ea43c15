"""Scores as a table for terminals."""

from __future__ import annotations

import shutil
import textwrap
import unicodedata
from typing import Literal

import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.space.words import shorten
from tuplet.surface.pages.grid import Cell, Grid, ScoreTable, lay_out

_STARS = {"star": "*", "none": ""}
_LONGEST_DATASET, _LONGEST_MODEL = 28, 20
_GAP = "  "


def text_table(
    mean: pd.DataFrame,
    std: pd.DataFrame | None = None,
    *,
    ranks: pd.Series | None = None,
    best: Literal["star", "none"] = "star",
    digits: int = 3,
    greater_is_better: bool = True,
    missing: pd.DataFrame | None = None,
    marks: pd.DataFrame | None = None,
    corner: str = "data set",
    width: int | None = None,
) -> str:
    """Return scores as aligned text; what is too wide goes on below, in columns that are never broken.

    Parameters
    ----------
    mean, std, ranks, digits, greater_is_better, missing, marks, corner
        See `markdown_table`.
    best : {"star", "none"}
        How the best of a line are marked.
    width : int, optional
        Of a line, in characters; by default that of the terminal.

    Returns
    -------
    str

    Examples
    --------
    >>> sets = ["emotions", "scene"]
    >>> mean = pd.DataFrame({"chain": [0.31, 0.7], "prior": [0.12, float("nan")]}, index=sets)
    >>> missing = pd.DataFrame({"prior": ["", "over time: more than 60 s"]}, index=sets)
    >>> print(text_table(mean, missing=missing, ranks=pd.Series({"chain": 1.0, "prior": 2.0})))
    data set       chain          prior
    ───────────────────────────────────
    emotions      0.310*      0.120
    scene         0.700*  over time [a]
    ───────────────────────────────────
    average rank   1.00*       2.00
    <BLANKLINE>
    * best of its line
    [a] over time: more than 60 s
    """
    if best not in _STARS:
        raise InputError(f"text_table: best must be one of {list(_STARS)}, found {best!r}.")
    grid = lay_out(
        ScoreTable(
            mean, std, ranks, missing, marks, digits, greater_is_better=greater_is_better, corner=corner
        )
    )
    available = shutil.get_terminal_size().columns if width is None else width
    names = _name_column(grid)
    columns = [
        _column(grid, j, text, _STARS[best]) for j, text in enumerate(shorten(grid.models, _LONGEST_MODEL))
    ]
    blocks = [_block(names, part, bool(grid.ranks)) for part in _parts(names, columns, available)]
    return "\n".join(["\n\n".join(blocks), *_legend(grid, _STARS[best], available)])


def display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes: wide characters two, combining ones none.

    Examples
    --------
    >>> display_width("naïve"), display_width("数据")
    (5, 4)
    """
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def align_left(text: str, width: int) -> str:
    """Return a text with spaces behind it."""
    return text + " " * (width - display_width(text))


def align_right(text: str, width: int) -> str:
    """Return a text with spaces before it."""
    return " " * (width - display_width(text)) + text


def _name_column(grid: Grid) -> list[str]:
    names = [grid.corner, *shorten(grid.datasets, _LONGEST_DATASET)] + [grid.rank_heading] * bool(grid.ranks)
    widest = max(map(display_width, names))
    return [align_left(name, widest) for name in names]


def _column(grid: Grid, j: int, name: str, star: str) -> list[str]:
    """Return the texts of a column, all of one width: numbers, deviations and signs each below each other."""
    cells = [line[j] for line in grid.lines] + grid.ranks[j : j + 1]
    tails = [_tail(cell, star) for cell in cells]
    bodies = _bodies(cells)
    total = max(map(display_width, bodies), default=0) + max(map(display_width, tails), default=0)
    texts = [align_left(body + tail, total) for body, tail in zip(bodies, tails, strict=True)]
    widest = max(map(display_width, [name, *texts]))
    return [align_right(text, widest) for text in [name, *texts]]


def _bodies(cells: list[Cell]) -> list[str]:
    """Return numbers with their deviations, and signs that end where these do."""
    numbers = [cell for cell in cells if cell.is_number]
    spread_width = max((display_width(cell.spread) for cell in numbers), default=0)
    behind = 3 + spread_width if spread_width else 0
    # The place where the number itself ends; a rank below deviations ends there too, and has nothing behind.
    before = max(
        [display_width(cell.text) for cell in numbers]
        + [display_width(cell.text) - behind for cell in cells if not cell.is_number],
        default=0,
    )
    return [
        align_right(cell.text, before)
        + (f" ± {align_right(cell.spread, spread_width)}" if cell.spread else "")
        if cell.is_number
        else align_right(cell.text, before + behind)
        for cell in cells
    ]


def _tail(cell: Cell, star: str) -> str:
    note = f" [{cell.note}]" if cell.note else ""
    return (star if cell.best else "") + (f" {cell.mark}" if cell.mark else "") + note


def _parts(names: list[str], columns: list[list[str]], available: int) -> list[list[list[str]]]:
    """Return as many columns for each block as fit beside the names, at least one."""
    start = display_width(names[0])
    parts: list[list[list[str]]] = [[]]
    used = start
    for column in columns:
        needed = len(_GAP) + display_width(column[0])
        if parts[-1] and used + needed > available:
            parts.append([])
            used = start
        parts[-1].append(column)
        used += needed
    return parts


def _block(names: list[str], columns: list[list[str]], has_ranks: bool) -> str:
    lines = [_GAP.join(line).rstrip() for line in zip(names, *columns, strict=True)]
    rule = "─" * max(map(display_width, lines))
    body = [*lines[1:-1], rule, lines[-1]] if has_ranks else lines[1:]
    return "\n".join([lines[0], rule, *body])


def _legend(grid: Grid, star: str, available: int) -> list[str]:
    lines = []
    if star and any(cell.best for line in [*grid.lines, grid.ranks] for cell in line):
        lines.append(f"{star} best of its line")
    for letter, reason in grid.notes.items():
        mark = f"[{letter}] "
        lines += textwrap.wrap(
            mark + reason, max(available, 40), subsequent_indent=" " * len(mark), break_on_hyphens=False
        )
    return ["", *lines] if lines else []
