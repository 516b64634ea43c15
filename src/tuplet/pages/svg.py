"""Pictures as SVG that can stand in a page, in its colours."""

from __future__ import annotations

import io
import re
from typing import Any
from xml.etree import ElementTree

from tuplet.exceptions import InputError, MissingDependencyError

_COLORS = {"#000000": "currentColor", "#ffffff": "var(--paper)"}
_BLACK_OR_WHITE = re.compile("#000000|#ffffff")
_REFERENCE = re.compile(r"url\(#")


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
        What is seen, for those who do not see it.
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
