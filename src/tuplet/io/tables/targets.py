"""Which columns are the class variables: by name, pattern or position, or by Mulan's list of labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from tuplet.core.exceptions import InputError
from tuplet.io.tables.source import FileContent

Target: TypeAlias = str | int | slice | re.Pattern[str]
Targets: TypeAlias = Target | Sequence[Target]

_REGEX = "re:"
_NUMBER = re.compile(r"-?\d+")
_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?")
_SHOWN = 12
_NAMESPACE = "http://mulan.sourceforge.net/labels"
_PART = re.compile(r"[-_](train|test|sparse)$")


def choose_targets(targets: Targets, columns: Sequence[str], where: str) -> list[str]:
    """Return the names of the columns in `targets`, each once, in the given order.

    Parameters
    ----------
    targets : str, int, slice, re.Pattern, or a sequence of these
        See `read_table`.
    columns : sequence of str
        The columns of the file, in its order.
    where : str
        The file, for messages.
    """
    single = isinstance(targets, (str, int, slice, re.Pattern))
    given: Sequence[Target] = [targets] if single else list(targets)  # type: ignore[list-item, arg-type]
    found: dict[str, None] = {}
    for target in given:
        found.update(dict.fromkeys(_matching(target, columns, where)))
    return list(found)


def _matching(target: Target, columns: Sequence[str], where: str) -> Sequence[str]:
    if isinstance(target, bool) or not isinstance(target, (str, int, slice, re.Pattern)):
        raise InputError(
            f"read_table: targets are names, patterns, positions or slices; found {target!r}"
            f" ({type(target).__name__})."
        )
    if isinstance(target, int):
        return [_at(target, columns, where)]
    found = columns[target] if isinstance(target, slice) else _named(target, columns)
    if not found:
        raise InputError(
            f"read_table: {where!r} has no column that targets={_as_text(target)} stands for; its columns are"
            f" {_listing(columns)}."
        )
    return found


def _at(position: int, columns: Sequence[str], where: str) -> str:
    n = len(columns)
    if not -n <= position < n:
        raise InputError(
            f"read_table: targets={position} is no position in {where!r}, which has {n} columns; use 0 to"
            f" {n - 1}, or -1 for the last."
        )
    return columns[position]


def _named(target: str | re.Pattern[str], columns: Sequence[str]) -> Sequence[str]:
    if isinstance(target, str):
        if target in columns:
            return [target]
        if _NUMBER.fullmatch(target) and -len(columns) <= int(target) < len(columns):
            return [columns[int(target)]]
        if _SLICE.fullmatch(target):
            start, stop = (int(end) if end else None for end in target.split(":"))
            return columns[start:stop]
        if not target.startswith(_REGEX):
            return [name for name in columns if fnmatchcase(name, target)]
        target = _compiled(target.removeprefix(_REGEX))
    return [name for name in columns if target.fullmatch(name)]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(
            f"read_table: targets={_REGEX + pattern!r} is no regular expression: {error}."
        ) from None


def _as_text(target: str | slice | re.Pattern[str]) -> str:
    return repr(target.pattern if isinstance(target, re.Pattern) else target)


def _listing(columns: Sequence[str]) -> str:
    more = len(columns) - _SHOWN
    return ", ".join(columns[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


# -- Mulan's lists of labels -------------------------------------------------------------------------------


def find_label_list(path: Path | None) -> Path | None:
    """Return the label list x.xml beside x.arff, x-train.arff or x-sparse.arff; None if there is none."""
    if path is None:
        return None
    stems = [Path(path.name.removesuffix(".gz")).stem]
    while (shorter := _PART.sub("", stems[-1])) != stems[-1]:
        stems.append(shorter)
    names = [f"{stem}.xml" for stem in stems]
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def read_label_list(source: FileContent, columns: list[str]) -> list[str]:
    """Return the labels of a list, in its order, parents before their children.

    Parameters
    ----------
    source : FileContent
        The list.
    columns : list of str
        The columns of the data, which must have all labels.
    """
    names = _names(source)
    known = set(columns)
    # Some lists escape quotes as ARFF does, although XML does not require it.
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


def format_label_list(names: list[str]) -> str:
    """Return Mulan's list of these labels."""
    lines = [f"  <label name={quoteattr(name)}></label>\n" for name in names]
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="{_NAMESPACE}">\n{"".join(lines)}</labels>\n'
    )


def _names(source: FileContent) -> list[str]:
    # Entities can make a small file grow without bounds, and lists of labels do not need them.
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
