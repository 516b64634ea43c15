"""`tuplet fit`: from a table to a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tuplet.cli.catalogue import split_names
from tuplet.cli.terminal import note, out, show
from tuplet.datasets import Dataset, read_table
from tuplet.exceptions import InputError
from tuplet.persistence import save_model

__all__ = ["fit_file", "read_data", "require_folder"]

_MEMBERS = 8


def read_data(path: str, targets: str | None, ignore: str | None, format: str | None) -> Dataset:
    """Read a table, without the columns that are to be ignored."""
    # A name may hold a comma; whole text first, since a list would be cut there.
    data = read_table(path, targets=split_names(targets) or None, format=format)
    left_out = split_names(ignore)
    lacking = [name for name in left_out if name not in data.X]
    if lacking:
        raise InputError(f"--ignore: {path!r} has no feature {lacking[0]!r}; check its name.")
    X = data.X.drop(columns=left_out)
    if not X.shape[1]:
        raise InputError(f"{path!r} has no columns besides the class variables; features are needed.")
    return Dataset(data.name, X, data.Y, data.description, data.train, data.folds)


def require_folder(path: str) -> None:
    """Refuse an output that could not be written before any work is done."""
    folder = Path(path).expanduser().parent
    if not folder.is_dir():
        raise InputError(f"--out: there is no folder {str(folder)!r}; make it first.")
    if Path(path).expanduser().is_dir():
        raise InputError(f"--out: {path!r} is a folder; name a file.")


def fit_file(data: Dataset, model: Any, target: str) -> None:
    """Fit, save, and say what came of it."""
    console = out()
    console.print(f"{data!r}"[len("Dataset(") : -1])
    model.fit(data.X, data.Y)
    save_model(model, target)
    _describe(model)
    size = Path(target).expanduser().stat().st_size
    console.print(f"Saved {type(model).__name__} to {target} ({_size_text(size)}).")
    note(f"Next: tuplet predict {target} NEW.csv --top-k 3 --out predictions.csv")


def _describe(model: Any) -> None:
    console = out()
    if hasattr(model, "leaderboard_"):
        board = model.leaderboard_
        used = board[board["weight"] > 0].sort_values("weight", ascending=False).head(_MEMBERS)
        rows = [
            (name, f"{weight:.3f}", f"{score:.3f}")
            for name, weight, score in zip(used["model"], used["weight"], used["log_likelihood"], strict=True)
        ]
        console.print(model.summary_)
        if len(rows) > 1:
            show("", ["model", "weight", "held-out log-likelihood"], rows)
    likelihood = getattr(model, "log_likelihood_", None)
    if isinstance(likelihood, float):
        console.print(f"Held-out joint log-likelihood: {likelihood:.3f} per row.")
    rules = getattr(model, "rules_", None)
    if rules:
        console.print(f"{len(rules)} rule{'s' * (len(rules) != 1)}:\n{rules.to_text()}", markup=False)


def _size_text(n_bytes: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000 or unit == "MB":
            return f"{n_bytes:,.0f} {unit}"
        n_bytes = round(n_bytes / 1000)
    raise AssertionError("every size has a unit")


def read_data_or_all(path: str, targets: str | None, format: str | None) -> Dataset:
    """Read a table; where nothing says which columns are class variables, none are."""
    if targets is not None:
        return read_data(path, targets, None, format)
    try:
        return read_table(path, format=format)
    except InputError as error:
        if "nothing says which columns" not in str(error):
            raise
    return read_table(path, targets=[], format=format)
