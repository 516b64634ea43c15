"""A joint prediction as text and as HTML: the most probable combination of the first rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

import numpy as np

from tuplet.core.exceptions import IntractableError, TupletWarning
from tuplet.core.typing import Floats
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import JointDistribution, Mode
from tuplet.joint.linear_chain import LinearConditional
from tuplet.joint.search import Search
from tuplet.prediction.queries import estimate_text, is_estimated, parts
from tuplet.space.classes import ClassSpace
from tuplet.space.words import chance_text, clip, combination_texts, is_yes_no, label_texts, shorten

ROWS = 6
"""Rows that are shown."""

_LABELS_WIDTH = 64
"""Characters of the labels in a line of text."""

_HTML_COLUMNS = 10
"""Class variables that are shown in HTML."""

_NODES = 64
"""Budget of the search for the combinations that are shown, which must not take seconds. Where each node is
a call of a classifier, there is none, and the last dive of the search finds a good combination."""

_PATHS = 256
"""Outcomes of a row up to which any chain is cheap."""

_UNPROVEN = "* a more probable combination may exist: the search for this view is short, mode() takes longer"
_ESTIMATED = "* a more probable combination may exist: these probabilities are estimates"

_CELL = (
    "padding:4px 12px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid rgba(128,128,128,.25)"
)
_BAR = "height:4px;border-radius:2px"
FAINT = "opacity:.65;font-size:85%"
"""Styles. Greys are half transparent and the text takes the page's colour: they suit light and dark pages."""


class Column(NamedTuple):
    """A column of a small table, as texts."""

    title: str
    texts: list[str]
    chances: Floats | None = None  # of the labels shown, for bars


# -- text --------------------------------------------------------------------------------------------------


def as_text(joint: JointDistribution, space: ClassSpace, rows: Sequence[Any], note: str = "") -> str:
    """Return an aligned table of the most probable combinations of the first rows, under a `note`."""
    mode, _, problem = _summarise(joint[:ROWS], bars=False)
    lines = [_headline(joint, space, note)]
    if mode is not None:
        every = _columns(space, mode, None, space.n_variables)
        widths = np.cumsum([2 + max(map(len, [column.title, *column.texts])) for column in every])
        shown = max(1, int((widths <= _LABELS_WIDTH).sum()))
        names = Column("", [clip(str(row)) for row in rows])
        lines += aligned([names, *_columns(space, mode, None, shown), _together(mode)])
    return "\n".join(lines + _footer(joint, mode, problem))


def aligned(columns: list[Column]) -> list[str]:
    """Return the lines of a table in plain text, columns padded to one width."""
    cells = [[column.title, *column.texts] for column in columns]
    widths = [max(map(len, column)) for column in cells]
    cells[0] = [cell.rjust(widths[0]) for cell in cells[0]]
    cells[-1] = [cell.rjust(widths[-1]) for cell in cells[-1]]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*cells, strict=True)
    ]


# -- html --------------------------------------------------------------------------------------------------


def as_html(joint: JointDistribution, space: ClassSpace, rows: Sequence[Any], note: str = "") -> str:
    """Return a small table of the most probable combinations of the first rows, with bars and a `note`."""
    mode, marginals, problem = _summarise(joint[:ROWS], bars=True)
    lines = [_headline(joint, space, note)]
    table = ""
    if mode is not None:
        bars = "its probability" if marginals is None else "each label by itself and all together"
        lines.append(f"The most probable combination; bars show {bars}.")
        columns = _columns(space, mode, marginals, min(space.n_variables, _HTML_COLUMNS))
        table = html_table([Column("", [clip(str(row)) for row in rows]), *columns, _together(mode)])
    above = "".join(f"<div style='{FAINT}'>{escape(line)}</div>" for line in lines)
    below = "".join(f"<div style='{FAINT}'>{escape(line)}</div>" for line in _footer(joint, mode, problem))
    return f"<div style='font-family:system-ui,sans-serif;font-size:13px'>{above}{table}{below}</div>"


def html_table(columns: list[Column]) -> str:
    """Return columns as an HTML table."""
    head = "".join(f"<th style='{_CELL};font-weight:600'>{escape(column.title)}</th>" for column in columns)
    body = "".join(
        f"<tr style='background:transparent'>{''.join(_html_cell(column, i) for column in columns)}</tr>"
        for i in range(len(columns[0].texts))
    )
    return (
        "<table style='border-collapse:collapse;border:0;color:inherit;font-size:inherit;margin:4px 0'>"
        f"<thead><tr style='background:transparent'>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _html_cell(column: Column, i: int) -> str:
    """Return a cell with a bar as long as its probability; hovering shows the number."""
    label = escape(column.texts[i])
    if column.chances is None:
        return f"<td style='{_CELL}'>{label}</td>"
    chance = float(column.chances[i])
    return (
        f"<td style='{_CELL}' title='{chance:.4f}'>{label}"
        f"<div style='{_BAR};width:80px;margin-top:3px;background:rgba(128,128,128,.25)'>"
        f"<div style='{_BAR};width:{100 * min(1.0, chance):.1f}%;background:#3b82c4'></div></div></td>"
    )


# -- what both show ----------------------------------------------------------------------------------------


def _summarise(head: JointDistribution, bars: bool) -> tuple[Mode | None, list[Floats] | None, str]:
    """Return the mode, and marginals for bars, as far as they are quickly had; and in words why not."""
    # A repr gives no warnings: the lines around the table state the same.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TupletWarning)
        if not len(head):
            return None, None, ""
        try:
            mode = _hurried(head).mode()
        except IntractableError as error:
            return None, None, str(error)
        try:
            return mode, head.marginals() if bars and _has_quick_marginals(head) else None, ""
        except IntractableError:
            return mode, None, ""


def _hurried(joint: JointDistribution) -> JointDistribution:
    """Return the same distribution with a small budget for searches."""
    search, budget = getattr(joint, "search", None), 0 if _calls_classifiers(joint) else _NODES
    if not isinstance(search, Search) or search.max_nodes <= budget:
        return joint
    return replace(joint, search=Search(budget))  # type: ignore[type-var]  # every form is a dataclass


def _has_quick_marginals(joint: JointDistribution) -> bool:
    """Whether marginals are exact and do not take many evaluations of a classifier."""
    return not _calls_classifiers(joint) and not is_estimated(joint)


def _calls_classifiers(joint: JointDistribution) -> bool:
    """Whether every step into the distribution is a call of some classifier, and there are many steps."""
    return joint.n_outcomes > _PATHS and any(
        isinstance(part, Autoregressive) and not isinstance(part.conditional, LinearConditional)
        for part in parts(joint)
    )


def _columns(space: ClassSpace, mode: Mode, marginals: list[Floats] | None, shown: int) -> list[Column]:
    """Return a column for each variable; if only some can be shown, the labels that hold or the first few."""
    if shown < space.n_variables and is_yes_no(space):
        return [Column("labels that hold", combination_texts(space, mode.codes))]
    rows, names = np.arange(len(mode.codes)), shorten(space.names)
    columns = [
        Column(
            names[j],
            shorten(label_texts(space, j, mode.codes)),
            None if marginals is None else marginals[j][rows, mode.codes[:, j]],
        )
        for j in range(shown)
    ]
    if shown < space.n_variables:
        columns.append(Column(f"... {space.n_variables - shown} more", ["..."] * len(rows)))
    return columns


def _headline(joint: JointDistribution, space: ClassSpace, note: str) -> str:
    n, m = len(joint), space.n_variables
    estimate = "probabilities are estimates"
    if joint.scores_exactly:
        estimate = estimate_text(joint, "marginals").replace(" are ", " ")
    remarks = [estimate, note]
    size = f"{n} row{'s' * (n != 1)}, {m} class variable{'s' * (m != 1)}"
    return "JointPrediction: " + ", ".join([size, *filter(None, remarks)])


def _footer(joint: JointDistribution, mode: Mode | None, problem: str) -> list[str]:
    lines = [problem] if problem else []
    more = len(joint) - ROWS
    if mode is not None and more > 0:
        lines.append(f"... {more} more row{'s' * (more != 1)}")
    if mode is not None and not mode.proven.all():
        lines.append(_UNPROVEN if joint.scores_exactly else _ESTIMATED)
    return lines


def _together(mode: Mode) -> Column:
    probability = np.exp(mode.log_prob)
    marks = ["" if proven else "*" for proven in mode.proven]
    texts = [f"{chance_text(p)}{mark}" for p, mark in zip(probability, marks, strict=True)]
    return Column("probability", texts, probability)
