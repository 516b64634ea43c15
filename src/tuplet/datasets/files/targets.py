"""Which columns are the class variables: by name, pattern or position."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from tuplet.exceptions import InputError

Target: TypeAlias = str | int | slice | re.Pattern[str]
Targets: TypeAlias = Target | Sequence[Target]

_REGEX = "re:"
_NUMBER = re.compile(r"-?\d+")
_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?")
_SHOWN = 12


def choose_targets(targets: Targets, columns: Sequence[str], where: str) -> list[str]:
    """Return the names that `targets` stands for, each once, in the order asked for.

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
    asked: Sequence[Target] = [targets] if single else list(targets)  # type: ignore[list-item, arg-type]
    found: dict[str, None] = {}
    for target in asked:
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
            f"read_table: {where!r} has no column that targets={_said(target)} stands for; its columns are"
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


def _said(target: str | slice | re.Pattern[str]) -> str:
    return repr(target.pattern if isinstance(target, re.Pattern) else target)


def _listing(columns: Sequence[str]) -> str:
    more = len(columns) - _SHOWN
    return ", ".join(columns[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
