"""One HTML file: sections with tables that can be sorted, and pictures as SVG in the colours of the page."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from numbers import Integral, Real
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from tuplet.core.exceptions import InputError, MissingDependencyError
from tuplet.surface.pages.grid import DASH, Cell, Grid, ScoreTable, name_text, score_grid

_TALL = 26
"""Lines from which on a table scrolls by itself, below its headings."""

_LONG = 56
"""Letters of a text from which on it may be broken into lines."""

_COLORS = {"#000000": "currentColor", "#ffffff": "var(--paper)"}
_BLACK_OR_WHITE = re.compile("#000000|#ffffff")
_REFERENCE = re.compile(r"url\(#")


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


@dataclass(frozen=True)
class Picture:
    """A picture and what it shows.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
        It is not closed.
    caption : str
        Above the picture, and read to those who do not see it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from matplotlib import pyplot
    >>> Picture(pyplot.figure(), caption="average ranks").caption
    'average ranks'
    """

    figure: Any
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Parameters
    ----------
    heading : str
    text : str
        Plain text; empty lines separate paragraphs.
    tables : sequence of ScoreTable, PlainTable or DataFrame
    figures : sequence of Picture, or of matplotlib Figures or Axes

    Examples
    --------
    >>> Section("Exact match", tables=[pd.DataFrame({"chain": [0.3]}, index=["emotions"])]).heading
    'Exact match'
    """

    heading: str
    text: str = ""
    tables: Sequence[ScoreTable | PlainTable | pd.DataFrame] = ()
    figures: Sequence[Any] = ()


def html_page(title: str, sections: Sequence[Section], *, text: str = "") -> str:
    """Return a page that needs nothing else: styles, the script that sorts, and pictures are inside.

    Tables are sorted by a click on a heading. Wide ones scroll by themselves, their first column in place.
    The page follows the reader's choice of light or dark.

    Parameters
    ----------
    title : str
    sections : sequence of Section
    text : str
        Below the title; plain text, empty lines separate paragraphs.

    Returns
    -------
    str

    Examples
    --------
    >>> mean = pd.DataFrame({"chain": [0.31], "prior": [0.12]}, index=["emotions"])
    >>> page = html_page("Comparison", [Section("Exact match", tables=[ScoreTable(mean)])])
    >>> page.startswith("<!doctype html>"), '<td class="best" data-value="0.31">0.310</td>' in page
    (True, True)
    """
    body = "\n".join(_section(section, f"s{i}") for i, section in enumerate(sections, start=1))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_asset('page.css')}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{_paragraphs(text)}\n{_contents(sections)}\n{body}\n</main>\n"
        f"<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return files("tuplet.surface.pages").joinpath(name).read_text(encoding="utf-8")


def _contents(sections: Sequence[Section]) -> str:
    if len(sections) < 2:
        return ""
    entries = "".join(
        f'<li><a href="#s{i}">{escape(section.heading)}</a></li>'
        for i, section in enumerate(sections, start=1)
    )
    return f'<nav aria-label="Sections"><ul>{entries}</ul></nav>'


def _section(section: Section, name: str) -> str:
    tables = "\n".join(_html_table(table, f"{name}-t{i}-") for i, table in enumerate(section.tables, start=1))
    pictures = "\n".join(
        _picture(figure, f"{name}-f{i}-") for i, figure in enumerate(section.figures, start=1)
    )
    parts = [
        f"<h2>{escape(section.heading)}</h2>",
        _paragraphs(section.text),
        f'<div class="tables">{tables}</div>' if tables else "",
        f'<div class="pictures">{pictures}</div>' if pictures else "",
    ]
    return "\n".join([f'<section id="{name}">', *filter(None, parts), "</section>"])


def _paragraphs(text: str) -> str:
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return "\n".join(f"<p>{escape(part)}</p>" for part in parts if part)


def _picture(figure: Any, prefix: str) -> str:
    picture = figure if isinstance(figure, Picture) else Picture(figure)
    svg = inline_svg(picture.figure, prefix, picture.caption or "picture")
    above = f"<figcaption>{escape(picture.caption)}</figcaption>" if picture.caption else ""
    return f'<figure>{above}<div class="scroll" tabindex="0">{svg}</div></figure>'


# -- tables ------------------------------------------------------------------------------------------------


def _html_table(table: ScoreTable | PlainTable | pd.DataFrame, prefix: str) -> str:
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


# -- tables of scores --------------------------------------------------------------------------------------


def _score_table(table: ScoreTable, prefix: str) -> str:
    grid = score_grid(table)
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


# -- other tables ------------------------------------------------------------------------------------------


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


# -- parts of all tables -----------------------------------------------------------------------------------


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


# -- pictures as SVG ---------------------------------------------------------------------------------------


def inline_svg(figure: Any, prefix: str, label: str) -> str:
    """Return a figure as an SVG element.

    Black becomes the colour of the page's text and white that of its paper, so that it suits light and dark
    pages; the background is left out.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
    prefix : str
        Before all its ids, which must be unique in a page.
    label : str
        Description for readers who do not see the picture.
    """
    root = ElementTree.fromstring(_save(figure))
    width = root.get("width", "")
    _clean(root, prefix)
    for attribute in ("version", "height"):
        root.attrib.pop(attribute, None)
    root.set("class", "picture")
    root.set("width", width)
    root.set("style", f"--natural: {width}")
    root.set("fill", "currentColor")
    root.set("role", "img")
    root.set("aria-label", label)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _save(figure: Any) -> str:
    try:
        from matplotlib import rc_context
    except ImportError:
        raise MissingDependencyError("Pictures need matplotlib; run `pip install tuplet[plots]`.") from None
    whole: Any = figure if hasattr(figure, "savefig") else getattr(figure, "figure", None)
    if not hasattr(whole, "savefig"):
        raise InputError(
            f"html_page: a picture must be a matplotlib Figure or Axes, found {type(figure).__name__}."
        )
    buffer = io.StringIO()
    # Letters as paths need no font; a fixed salt and no date make the same page of the same results.
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "tuplet"}):
        whole.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()


def _clean(element: ElementTree.Element, prefix: str) -> None:
    """Drop namespaces, metadata and styles that would reach the whole page; prefix ids; adopt colours."""
    element.tag = _local(element.tag)
    for child in list(element):
        if _local(child.tag) in ("metadata", "style"):
            element.remove(child)
        else:
            _clean(child, prefix)
    for name, value in list(element.attrib.items()):
        del element.attrib[name]
        element.set(_local(name), _attribute(_local(name), value, prefix))


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _attribute(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return prefix + value
    if name == "href" and value.startswith("#"):
        return f"#{prefix}{value[1:]}"
    value = _REFERENCE.sub(f"url(#{prefix}", value)
    return _BLACK_OR_WHITE.sub(lambda found: _COLORS[found.group()], value)
