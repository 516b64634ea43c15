r"""Scores as a table in LaTeX; it needs `\usepackage{booktabs}` and nothing else."""

from __future__ import annotations

import re
from typing import Literal

import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.surface.pages.grid import Cell, Grid, ScoreTable, lay_out

_EMPHASIS = {"bold": (r"\mathbf{", "}"), "italic": (r"\mathit{", "}"), "none": ("", "")}

# Braces keep a bracket or a star at the start of a line from being taken for an argument of \\ or \midrule.
_SPECIAL = str.maketrans(
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
"""Hyphens in a row, of which LaTeX would make one dash."""


def latex_table(
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
    caption: str = "",
    label: str = "",
) -> str:
    r"""Return scores as a LaTeX table; with a caption or a label it is a float, otherwise a bare tabular.

    Names are escaped. Letters beyond Latin ones need an engine that has them, such as LuaLaTeX.

    Parameters
    ----------
    mean, std, ranks, best, digits, greater_is_better, missing, marks, corner
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
    if best not in _EMPHASIS:
        raise InputError(f"latex_table: best must be one of {list(_EMPHASIS)}, found {best!r}.")
    grid = lay_out(
        ScoreTable(
            mean, std, ranks, missing, marks, digits, greater_is_better=greater_is_better, corner=corner
        )
    )
    lines = [*_tabular(grid, _EMPHASIS[best]), *_notes(grid)]
    if caption or label:
        lines = [*_float_head(caption, label), *lines, r"\end{table}"]
    return "\n".join(lines)


def escape_latex(text: str) -> str:
    r"""Return a text that LaTeX prints as it is.

    Examples
    --------
    >>> print(escape_latex("50% of a_b & c"))
    50\% of a\_b \& c
    """
    return _DASHES.sub("-{}", text.translate(_SPECIAL))


def _tabular(grid: Grid, emphasis: tuple[str, str]) -> list[str]:
    head = [escape_latex(text) for text in [grid.corner, *grid.models]]
    body = [
        [escape_latex(name), *(_cell(cell, emphasis) for cell in line)]
        for name, line in zip(grid.datasets, grid.lines, strict=True)
    ]
    ranks = [grid.rank_heading, *(_cell(cell, emphasis) for cell in grid.ranks)]
    return [
        rf"\begin{{tabular}}{{l{'r' * len(grid.models)}}}",
        r"\toprule",
        _row(head),
        r"\midrule",
        *map(_row, body),
        *([r"\midrule", _row(ranks)] if grid.ranks else []),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell, emphasis: tuple[str, str]) -> str:
    note = rf"\textsuperscript{{{cell.note}}}" if cell.note else ""
    if not cell.is_number:
        return escape_latex(cell.text) + note
    before, after = emphasis if cell.best else ("", "")
    number = f"{before}{_math(cell.text)}{after}"
    spread = rf" \pm {_math(cell.spread)}" if cell.spread else ""
    mark = f" {escape_latex(cell.mark)}" if cell.mark else ""
    return f"${number}{spread}${mark}{note}"


def _math(text: str) -> str:
    return text.replace("∞", r"\infty")


def _notes(grid: Grid) -> list[str]:
    """Return the footnotes as paragraphs below, because lines in a tabular would not be broken."""
    if not grid.notes:
        return []
    lines = [
        rf"\textsuperscript{{{letter}}} {escape_latex(reason)}\par" for letter, reason in grid.notes.items()
    ]
    return [r"\par\smallskip", r"{\raggedright\footnotesize", *lines, "}"]


def _float_head(caption: str, label: str) -> list[str]:
    lines = [r"\begin{table}[tbp]", r"\centering"]
    lines += [rf"\caption{{{escape_latex(caption)}}}"] if caption else []
    return lines + ([rf"\label{{{label}}}"] if label else [])
