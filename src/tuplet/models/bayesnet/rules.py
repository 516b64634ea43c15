"""The settings of a Bayesian network, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from tuplet.exceptions import InputError
from tuplet.inference import Engine
from tuplet.local.criteria import Parametrisation, Score
from tuplet.local.mixed_families import Role

_WIDEST_TABLE = 2**16
"""Cells of the largest table that prediction needs for a row, unless `max_width` says otherwise."""


def check_settings(model: Any) -> None:
    """Raise `InputError` for settings of a `BayesNetClassifier` that make no sense."""
    for name in ("max_parents", "max_feature_parents"):
        _require_count(name, getattr(model, name))
    for name in ("shortlist", "max_width"):
        if getattr(model, name) not in ("auto", None):
            _require_count(name, getattr(model, name))
    _require_choice("discrete_as", model.discrete_as, ("auto", *get_args(Role)))
    _require_choice("parametrisation", model.parametrisation, ("auto", *get_args(Parametrisation)))
    if not callable(model.criterion):
        _require_choice("criterion", model.criterion, get_args(Score))
    if model.engine is not None and not isinstance(model.engine, Engine):
        raise InputError(f"BayesNetClassifier: engine must be an Engine or None, found {model.engine!r}.")
    budget = model.time_budget
    if budget is not None and not (isinstance(budget, (int, float, np.number)) and budget > 0):
        raise InputError(f"BayesNetClassifier: time_budget must be a number of seconds, found {budget!r}.")


def _require_count(name: str, value: Any) -> None:
    if not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(f"BayesNetClassifier: {name} must be a whole number from 0, found {value!r}.")


def _require_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"BayesNetClassifier: {name} must be one of {', '.join(choices)}; found {value!r}.")


def widest(max_width: Any, cards: Sequence[int]) -> int | None:
    """Return the largest width; for "auto" the one at which a table of any w + 1 variables stays small."""
    if max_width != "auto":
        return None if max_width is None else int(max_width)
    cells = np.cumprod(sorted(map(float, cards), reverse=True))
    return max(1, int((cells <= _WIDEST_TABLE).sum()) - 1)
