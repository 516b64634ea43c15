"""One HTML file with tables that can be sorted, and pictures as SVG in the colours of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from tuplet.exceptions import InputError, MissingDependencyError
from tuplet.pages.grid import ScoreTable
from tuplet.pages.html import PlainTable, html_table

_COLORS = {"#000000": "currentColor", "#ffffff": "var(--paper)"}
_BLACK_OR_WHITE = re.compile("#000000|#ffffff")
_REFERENCE = re.compile(r"url\(#")


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
    return files("tuplet.pages").joinpath(name).read_text(encoding="utf-8")


def _contents(sections: Sequence[Section]) -> str:
    if len(sections) < 2:
        return ""
    entries = "".join(
        f'<li><a href="#s{i}">{escape(section.heading)}</a></li>'
        for i, section in enumerate(sections, start=1)
    )
    return f'<nav aria-label="Sections"><ul>{entries}</ul></nav>'


def _section(section: Section, name: str) -> str:
    tables = "\n".join(html_table(table, f"{name}-t{i}-") for i, table in enumerate(section.tables, start=1))
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
