"""Tables of scores, data sets x models, as text for terminals, Markdown and LaTeX."""

from __future__ import annotations

import re
import shutil
import textwrap
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.space.words import shorten
from tuplet.surface.pages.grid import Cell, Grid, ScoreTable, score_grid

T = TypeVar("T")

_MARKDOWN_EMPHASIS = {"bold": "**", "italic": "*", "none": ""}

# An underscore between letters is no markup, and names full of backslashes are hard to read in the source.
_MARKDOWN_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")

_STARS = {"star": "*", "none": ""}
_LONGEST_DATASET, _LONGEST_MODEL = 28, 20
_GAP = "  "

_LATEX_EMPHASIS = {"bold": (r"\mathbf{", "}"), "italic": (r"\mathit{", "}"), "none": ("", "")}

# Braces keep a bracket or a star at the start of a line from being taken for an argument of \\ or \midrule.
_LATEX_SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        '"': "''",
        "[": "{[}",
        "]": "{]}",
        "*": "{*}",
        "±": r"$\pm$",
        "·": r"$\cdot$",
        "•": r"$\bullet$",
        "◦": r"$\circ$",
        "∞": r"$\infty$",
        "…": r"\dots{}",
    }
)

_DASHES = re.compile("-(?=-)")
"""Hyphens in a row, which LaTeX would print as one dash."""


def markdown_table(
    mean: pd.DataFrame,
    std: pd.DataFrame | None = None,
    *,
    best: Literal["bold", "italic", "none"] = "bold",
    **parts: Any,
) -> str:
    """Return scores as a Markdown table, the best of each line marked, failures with footnotes.

    Parameters
    ----------
    mean : DataFrame, data sets x models
        NaN where there is no score.
    std : DataFrame, data sets x models, optional
        Shown behind the means.
    best : {"bold", "italic", "none"}
        How the best of a line are marked: all that round to the same digits.
    **parts
        `ranks`, `missing`, `marks`, `digits`, `greater_is_better`, `corner`; see `ScoreTable`.

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
    look = _look("markdown_table", best, _MARKDOWN_EMPHASIS)
    grid = score_grid(ScoreTable(mean, std, **parts))
    rows = _rows(grid, _escape_markdown, partial(_markdown_cell, emphasis=look))
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    aligned = [[_align_left(row[0], widths[0]), *map(_align_right, row[1:], widths[1:])] for row in rows]
    rule = "|".join([":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])])
    lines = [f"| {' | '.join(row)} |" for row in aligned]
    notes = [f"- <sup>{letter}</sup> {_escape_markdown(reason)}" for letter, reason in grid.notes.items()]
    return "\n".join([lines[0], f"|{rule}|", *lines[1:], *([""] if notes else []), *notes])


def text_table(
    mean: pd.DataFrame,
    std: pd.DataFrame | None = None,
    *,
    best: Literal["star", "none"] = "star",
    width: int | None = None,
    **parts: Any,
) -> str:
    """Return scores as aligned text; columns that do not fit continue below and are never broken.

    Parameters
    ----------
    mean, std, **parts
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
    look = _look("text_table", best, _STARS)
    grid = score_grid(ScoreTable(mean, std, **parts))
    available = shutil.get_terminal_size().columns if width is None else width
    names = _name_column(grid)
    columns = [_column(grid, j, text, look) for j, text in enumerate(shorten(grid.models, _LONGEST_MODEL))]
    blocks = [_block(names, part, bool(grid.ranks)) for part in _parts(names, columns, available)]
    return "\n".join(["\n\n".join(blocks), *_legend(grid, look, available)])


def latex_table(
    mean: pd.DataFrame,
    std: pd.DataFrame | None = None,
    *,
    best: Literal["bold", "italic", "none"] = "bold",
    caption: str = "",
    label: str = "",
    **parts: Any,
) -> str:
    r"""Return scores as a LaTeX table; with a caption or a label it is a float, otherwise a bare tabular.

    Names are escaped. Letters beyond Latin ones need an engine that has them, such as LuaLaTeX.

    Parameters
    ----------
    mean, std, best, **parts
        See `markdown_table`.
    caption : str
        Above the table, as text: it is escaped.
    label : str
        For `\ref`.

    Returns
    -------
    str

    Examples
    --------
    >>> mean = pd.DataFrame({"chain": [0.31, 0.7], "prior_1": [0.12, 0.7]}, index=["emotions", "scene"])
    >>> print(latex_table(mean))
    \begin{tabular}{lrr}
    \toprule
    data set & chain & prior\_1 \\
    \midrule
    emotions & $\mathbf{0.310}$ & $0.120$ \\
    scene & $\mathbf{0.700}$ & $\mathbf{0.700}$ \\
    \bottomrule
    \end{tabular}
    """
    look = _look("latex_table", best, _LATEX_EMPHASIS)
    grid = score_grid(ScoreTable(mean, std, **parts))
    lines = [*_latex_tabular(grid, look), *_latex_notes(grid)]
    if caption or label:
        lines = [*_latex_float_head(caption, label), *lines, r"\end{table}"]
    return "\n".join(lines)


def _escape_markdown(text: str) -> str:
    r"""Return a text that Markdown shows as it is.

    Examples
    --------
    >>> _escape_markdown("a|b *c* d_e _f_")
    'a\\|b \\*c\\* d_e \\_f\\_'
    """
    return _MARKDOWN_SPECIAL.sub(lambda found: "\\" + found.group(), text)


def escape_latex(text: str) -> str:
    r"""Return a text that LaTeX prints as it is.

    Examples
    --------
    >>> print(escape_latex("50% of a_b & c"))
    50\% of a\_b \& c
    """
    return _DASHES.sub("-{}", text.translate(_LATEX_SPECIAL))


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


def _look(function: str, best: str, looks: dict[str, T]) -> T:
    if best not in looks:
        raise InputError(f"{function}: best must be one of {list(looks)}, found {best!r}.")
    return looks[best]


def _rows(grid: Grid, escape: Callable[[str], str], write: Callable[[Cell], str]) -> list[list[str]]:
    """Return the texts of all lines: the headings, the data sets, the ranks if there are any."""
    named = list(zip(grid.datasets, grid.lines, strict=True))
    if grid.ranks:
        named.append((grid.rank_heading, grid.ranks))
    lines = [[escape(name), *map(write, cells)] for name, cells in named]
    return [[escape(text) for text in (grid.corner, *grid.models)], *lines]


# -- Markdown ----------------------------------------------------------------------------------------------


def _markdown_cell(cell: Cell, emphasis: str) -> str:
    around = emphasis if cell.best else ""
    text = f"{around}{cell.text}{around}"
    text += f" ± {cell.spread}" if cell.spread else ""
    text += f" {_escape_markdown(cell.mark)}" if cell.mark else ""
    return text + (f" <sup>{cell.note}</sup>" if cell.note else "")


# -- text --------------------------------------------------------------------------------------------------


def _align_left(text: str, width: int) -> str:
    """Return a text with spaces behind it."""
    return text + " " * (width - display_width(text))


def _align_right(text: str, width: int) -> str:
    """Return a text with spaces before it."""
    return " " * (width - display_width(text)) + text


def _name_column(grid: Grid) -> list[str]:
    names = [grid.corner, *shorten(grid.datasets, _LONGEST_DATASET)] + [grid.rank_heading] * bool(grid.ranks)
    widest = max(map(display_width, names))
    return [_align_left(name, widest) for name in names]


def _column(grid: Grid, j: int, name: str, star: str) -> list[str]:
    """Return the texts of a column, all of one width: numbers, deviations and signs each below each other."""
    cells = [line[j] for line in grid.lines] + grid.ranks[j : j + 1]
    tails = [_tail(cell, star) for cell in cells]
    bodies = _bodies(cells)
    total = max(map(display_width, bodies), default=0) + max(map(display_width, tails), default=0)
    texts = [_align_left(body + tail, total) for body, tail in zip(bodies, tails, strict=True)]
    widest = max(map(display_width, [name, *texts]))
    return [_align_right(text, widest) for text in [name, *texts]]


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
        _align_right(cell.text, before)
        + (f" ± {_align_right(cell.spread, spread_width)}" if cell.spread else "")
        if cell.is_number
        else _align_right(cell.text, before + behind)
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


# -- LaTeX -------------------------------------------------------------------------------------------------


def _latex_tabular(grid: Grid, emphasis: tuple[str, str]) -> list[str]:
    head, *body = map(_latex_row, _rows(grid, escape_latex, partial(_latex_cell, emphasis=emphasis)))
    n = len(grid.lines)
    return [
        rf"\begin{{tabular}}{{l{'r' * len(grid.models)}}}",
        r"\toprule",
        head,
        r"\midrule",
        *body[:n],
        *([r"\midrule", *body[n:]] if grid.ranks else []),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: Cell, emphasis: tuple[str, str]) -> str:
    note = rf"\textsuperscript{{{cell.note}}}" if cell.note else ""
    if not cell.is_number:
        return escape_latex(cell.text) + note
    before, after = emphasis if cell.best else ("", "")
    number = f"{before}{_latex_math(cell.text)}{after}"
    spread = rf" \pm {_latex_math(cell.spread)}" if cell.spread else ""
    mark = f" {escape_latex(cell.mark)}" if cell.mark else ""
    return f"${number}{spread}${mark}{note}"


def _latex_math(text: str) -> str:
    return text.replace("∞", r"\infty")


def _latex_notes(grid: Grid) -> list[str]:
    """Return the footnotes as paragraphs below, because lines in a tabular would not be broken."""
    if not grid.notes:
        return []
    lines = [
        rf"\textsuperscript{{{letter}}} {escape_latex(reason)}\par" for letter, reason in grid.notes.items()
    ]
    return [r"\par\smallskip", r"{\raggedright\footnotesize", *lines, "}"]


def _latex_float_head(caption: str, label: str) -> list[str]:
    lines = [r"\begin{table}[tbp]", r"\centering"]
    lines += [rf"\caption{{{escape_latex(caption)}}}"] if caption else []
    return lines + ([rf"\label{{{label}}}"] if label else [])
