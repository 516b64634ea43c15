"""`tuplet fit`: from a table to a saved model."""

from __future__ import annotations

import sys
from dataclasses import replace
from io import BytesIO
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_string_dtype

from tuplet.cli.catalogue import split_names
from tuplet.cli.outputs import is_special
from tuplet.cli.terminal import note, remark, say, show
from tuplet.datasets import Dataset, read_table
from tuplet.exceptions import InputError, NoTargetsError
from tuplet.persistence import save_model
from tuplet.persistence.files import require_skops
from tuplet.space.containers import listing
from tuplet.space.words import first_words

_MEMBERS = 8

_NEARLY = 0.9
"""Share of the fields beyond which a column was meant to hold numbers."""

_FEW = 20
"""Rows up to which a text that no two of them share may be chance."""


def read_data(
    path: str, targets: str | None, ignore: str | None, format: str | None, groups: str | None = None
) -> Dataset:
    """Read a table, without the columns that are to be ignored and the one that names groups."""
    data = read_table(path, targets=split_names(targets) or None, format=format)
    left_out = split_names(ignore)
    lacking = [name for name in left_out if name not in data.X]
    if lacking:
        raise InputError(f"--ignore: {path!r} has no feature {lacking[0]!r}; check its name.")
    if groups is not None and groups not in data.X:
        raise InputError(f"--groups: {path!r} has no column {groups!r} besides the class variables.")
    X = data.X.drop(columns=[*left_out, *([] if groups is None or groups in left_out else [groups])])
    if not X.shape[1]:
        raise InputError(f"{path!r} has no columns besides the class variables; features are needed.")
    return replace(data, X=X, groups=None if groups is None else data.X[groups].to_numpy())


def fit_file(data: Dataset, model: Any, target: str) -> None:
    """Fit, save, and say what came of it."""
    n, d = data.X.shape
    names = first_words([str(name) for name in data.Y], ", ", 60)
    say(f"{data.name}: {n:,} rows, {d:,} feature{'s' * (d != 1)}, class variables {names}")
    _warn_of_names(data)
    require_skops()  # better now than after an hour
    model.fit(data.X, data.Y)
    save_model(model, target)
    _describe(model)
    size = Path(target).expanduser().stat().st_size
    say(f"Saved {type(model).__name__} to {target} ({_size_text(size)}).")
    note(f"Next: tuplet predict {target} NEW.csv --top-k 3 --out predictions.csv")


def _warn_of_names(data: Dataset) -> None:
    """Say which columns name rows, which a model would learn by heart, and which are nearly numbers."""
    for name, column in data.X.items():
        odd = _odd_among_numbers(column)
        if odd:
            remark(
                f"the column {str(name)!r} holds numbers, but also {listing(odd, 3)}, so each of its values"
                " is a category; leave such fields empty if they are missing."
            )
        if column.dtype.kind == "O" and len(column) > _FEW and column.dropna().is_unique:
            remark(
                f"the column {str(name)!r} has another text in every row, which tells nothing about new rows;"
                f" --ignore {name} leaves it out."
            )


def _odd_among_numbers(column: pd.Series) -> list[str]:
    """Return the few texts among fields that are nearly all numbers."""
    if not is_string_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
        return []
    known = column.dropna().astype(str)
    strange = known[pd.to_numeric(known, errors="coerce").isna()]
    many = len(known) - len(strange)
    return strange.unique().tolist() if len(strange) and many > _NEARLY * len(known) else []


def _describe(model: Any) -> None:
    if hasattr(model, "leaderboard_"):
        board = model.leaderboard_
        used = board[board["weight"] > 0].sort_values("weight", ascending=False).head(_MEMBERS)
        rows = [
            (name, f"{weight:.3f}", f"{score:.3f}")
            for name, weight, score in zip(used["model"], used["weight"], used["log_likelihood"], strict=True)
        ]
        say(model.summary_)
        if len(rows) > 1:
            show("", ["model", "weight", "held-out log-likelihood"], rows)
    likelihood = getattr(model, "log_likelihood_", None)
    if isinstance(likelihood, float) and not isnan(likelihood):
        say(f"Held-out joint log-likelihood: {likelihood:.3f} per row.")
    rules = getattr(model, "rules_", None)
    if rules:
        say(f"{len(rules)} rule{'s' * (len(rules) != 1)}:\n{rules.to_text()}")


def _size_text(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f} MB" if n_bytes >= 999_500 else f"{n_bytes / 1e3:,.0f} kB"


def read_data_or_all(path: str, targets: str | None, format: str | None) -> Dataset:
    """Read a table; where nothing says which columns are class variables, none are."""
    if targets is not None:
        return read_data(path, targets, None, format)
    once = path == "-" or is_special(path)
    source: Any = _Stream(path) if once else path
    try:
        return read_table(source, format=format)
    except NoTargetsError:
        if once:
            source.seek(0)
        return read_table(source, targets=[], format=format)


class _Stream(BytesIO):
    """What a pipe held, to be read twice."""

    def __init__(self, path: str) -> None:
        super().__init__(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes())
        self.name = "standard input" if path == "-" else path
