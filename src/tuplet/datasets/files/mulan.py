"""Mulan's XML lists of labels."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from tuplet.datasets.files.source import Source

_SPACE = "http://mulan.sourceforge.net/labels"
_PART = re.compile(r"[-_](train|test)$")


def beside(path: Path | None) -> Path | None:
    """Return the label list beside x.arff: x.xml, or that of x-train or x-test; None if there is none."""
    if path is None:
        return None
    stem = Path(path.name.removesuffix(".gz")).stem
    names = [f"{stem}.xml", f"{_PART.sub('', stem)}.xml"]
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def read_labels(source: Source, columns: list[str]) -> list[str]:
    """Return the labels of a list, in its order, parents before their children.

    Parameters
    ----------
    source : Source
        The list.
    columns : list of str
        The columns of the data, which must have all labels.
    """
    names = _names(source)
    known = set(columns)
    # Some lists escape quotes as ARFF does, though XML needs it not.
    names = [name if name in known else re.sub(r"\\(.)", r"\1", name) for name in names]
    lacking = [name for name in names if name not in known]
    if lacking:
        source.fail(
            f"the data have no column {lacking[0]!r} ({len(lacking)} in all); give the list of this set."
        )
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        source.fail(f"the label {twice!r} is listed twice; remove one.")
    return names


def _names(source: Source) -> list[str]:
    # Entities can make a small file grow without bounds, and no list of labels needs any of its own.
    if b"<!" in re.sub(rb"<!--.*?-->", b"", source.content, flags=re.DOTALL):
        source.fail("a list of labels has no document type and no entities; remove them.")
    try:
        root = ElementTree.fromstring(source.content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        line = getattr(error, "position", (None,))[0]
        source.fail(f"this is no well-formed XML ({error}); copy it again.", line)
    names = [each.get("name") for each in root.iter() if each.tag.rpartition("}")[2] == "label"]
    if not names or None in names:
        source.fail('expected <label name="..."/> elements, each with a name; give targets= instead.')
    return [str(name) for name in names]


def label_list(names: list[str]) -> str:
    """Return Mulan's list of these labels."""
    lines = [f"  <label name={quoteattr(name)}></label>\n" for name in names]
    return f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="{_SPACE}">\n{"".join(lines)}</labels>\n'
