"""The settings of a Bayesian network, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tuplet.exceptions import InputError

__all__ = ["require_choice", "require_count", "require_seconds", "widest"]

_WIDEST_TABLE = 2**16
"""Cells of the largest table that prediction needs for a row, unless `max_width` says otherwise."""


def require_count(name: str, value: Any) -> None:
    """Raise `InputError` unless a setting is a whole number from 0."""
    if not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(f"BayesNetClassifier: {name} must be a whole number from 0, found {value!r}.")


def require_seconds(value: Any) -> None:
    """Raise `InputError` unless a time budget is a number of seconds, or None."""
    if value is not None and not value > 0:
        raise InputError(f"BayesNetClassifier: time_budget must be a number of seconds, found {value!r}.")


def require_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise `InputError` unless a setting is one of some words."""
    if value not in choices:
        raise InputError(f"BayesNetClassifier: {name} must be one of {', '.join(choices)}; found {value!r}.")


def widest(max_width: Any, cards: Sequence[int]) -> int | None:
    """Return the largest width; for "auto" the one at which a table of any w + 1 variables stays small."""
    if max_width != "auto":
        return None if max_width is None else int(max_width)
    cells = np.cumprod(sorted(map(float, cards), reverse=True))
    return max(1, int((cells <= _WIDEST_TABLE).sum()) - 1)
