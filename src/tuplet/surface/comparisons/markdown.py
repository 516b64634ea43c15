"""Scores as a table in Markdown."""

from __future__ import annotations

import re
from typing import Literal

import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.surface.comparisons.terminal import align_left, align_right, display_width
from tuplet.surface.pages.grid import Cell, Grid, ScoreTable, lay_out

_EMPHASIS = {"bold": "**", "italic": "*", "none": ""}

# An underscore between letters is no markup, and names full of backslashes are hard to read in the source.
_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def markdown_table(
    mean: pd.DataFrame,
    std: pd.DataFrame | None = None,
    *,
    ranks: pd.Series | None = None,
    best: Literal["bold", "italic", "none"] = "bold",
    digits: int = 3,
    greater_is_better: bool = True,
    missing: pd.DataFrame | None = None,
    marks: pd.DataFrame | None = None,
    corner: str = "data set",
) -> str:
    """Return scores as a Markdown table, the best of each line marked, failures with footnotes.

    Parameters
    ----------
    mean : DataFrame, data sets x models
        NaN where there is no score.
    std : DataFrame, data sets x models, optional
        Shown behind the means.
    ranks : Series, optional
        Average rank of each model, the last line.
    best : {"bold", "italic", "none"}
        How the best of a line are marked: all that round to the same digits.
    digits : int
        Decimals.
    greater_is_better : bool
        False for losses.
    missing : DataFrame, data sets x models, optional
        Reasons why scores are missing; see `ScoreTable`.
    marks : DataFrame, data sets x models, optional
        Short signs behind the numbers.
    corner : str
        Heading of the first column.

    Returns
    -------
    str

    Examples
    --------
    >>> sets = ["emotions", "scene"]
    >>> mean = pd.DataFrame({"chain": [0.31, 0.7], "prior": [0.12, float("nan")]}, index=sets)
    >>> missing = pd.DataFrame({"prior": ["", "over time: more than 60 s"]}, index=sets)
    >>> print(markdown_table(mean, missing=missing, ranks=pd.Series({"chain": 1.0, "prior": 2.0})))
    | data set     |     chain |                  prior |
    |:-------------|----------:|-----------------------:|
    | emotions     | **0.310** |                  0.120 |
    | scene        | **0.700** | over time <sup>a</sup> |
    | average rank |  **1.00** |                   2.00 |
    <BLANKLINE>
    - <sup>a</sup> over time: more than 60 s
    """
    if best not in _EMPHASIS:
        raise InputError(f"markdown_table: best must be one of {list(_EMPHASIS)}, found {best!r}.")
    grid = lay_out(
        ScoreTable(
            mean, std, ranks, missing, marks, digits, greater_is_better=greater_is_better, corner=corner
        )
    )
    rows = _rows(grid, _EMPHASIS[best])
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    aligned = [[align_left(row[0], widths[0]), *map(align_right, row[1:], widths[1:])] for row in rows]
    rule = "|".join([":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])])
    lines = [f"| {' | '.join(row)} |" for row in aligned]
    notes = [f"- <sup>{letter}</sup> {escape_markdown(reason)}" for letter, reason in grid.notes.items()]
    return "\n".join([lines[0], f"|{rule}|", *lines[1:], *([""] if notes else []), *notes])


def escape_markdown(text: str) -> str:
    r"""Return a text that Markdown shows as it is.

    Examples
    --------
    >>> escape_markdown("a|b *c* d_e _f_")
    'a\\|b \\*c\\* d_e \\_f\\_'
    """
    return _SPECIAL.sub(lambda found: "\\" + found.group(), text)


def _rows(grid: Grid, emphasis: str) -> list[list[str]]:
    head = [escape_markdown(text) for text in [grid.corner, *grid.models]]
    body = [
        [escape_markdown(name), *(_cell(cell, emphasis) for cell in line)]
        for name, line in zip(grid.datasets, grid.lines, strict=True)
    ]
    foot = [[grid.rank_heading, *(_cell(cell, emphasis) for cell in grid.ranks)]] if grid.ranks else []
    return [head, *body, *foot]


def _cell(cell: Cell, emphasis: str) -> str:
    around = emphasis if cell.best else ""
    text = f"{around}{cell.text}{around}"
    text += f" ± {cell.spread}" if cell.spread else ""
    text += f" {escape_markdown(cell.mark)}" if cell.mark else ""
    return text + (f" <sup>{cell.note}</sup>" if cell.note else "")
