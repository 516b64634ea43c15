"""Tables of scores as they come in: rows without gaps, names of models, ties."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.containers import listing

_NOISE = 1e-13
"""Difference, relative to the scores, that rounding errors can make; smaller ones are ties."""


class Complete(NamedTuple):
    """Rows of a table of scores in which every model has one."""

    values: Floats  # (n, k)
    models: pd.Index
    n_left_out: int


def complete_rows(
    query: str, scores: Any, models: Sequence[Any] | None = None, *, finite: bool = False
) -> Complete:
    """Return the rows without gaps.

    Parameters
    ----------
    query : str
        Name of the calling function, for messages.
    scores : DataFrame, rows are data sets, columns are models
    models : sequence, optional
        The columns to use; gaps in others do not matter.
    finite : bool
        Whether infinite scores are an error, because differences are taken; ranks can live with them.
    """
    if not isinstance(scores, pd.DataFrame):
        raise InputError(
            f"{query}: scores must be a pandas DataFrame, a row for each data set and a column for each"
            f" model; found {type(scores).__name__}."
        )
    _check_names(query, scores.columns, models)
    chosen = scores if models is None else scores[list(models)]
    values = _numbers(query, chosen)
    whole = ~np.isnan(values).any(axis=1)
    if whole.sum() < 2:
        raise InputError(
            f"{query}: at least two rows must have a score of every model ({listing(chosen.columns)}); found"
            f" {whole.sum()} of {len(values)}. Leave out models with gaps."
        )
    if finite and np.isinf(values[whole]).any():
        where = np.flatnonzero(np.isinf(values[whole]).any(axis=0))
        raise InputError(
            f"{query}: the scores of {listing(chosen.columns[where])} are infinite in places; differences"
            " need finite scores."
        )
    return Complete(values[whole], chosen.columns, int(len(values) - whole.sum()))


def _check_names(query: str, columns: pd.Index, models: Sequence[Any] | None) -> None:
    if not columns.is_unique:
        raise InputError(
            f"{query}: several columns have the same name, {listing(columns[columns.duplicated()])}."
        )
    for model in () if models is None else models:
        if model not in columns:
            close = difflib.get_close_matches(str(model), [str(name) for name in columns], n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InputError(f"{query}: there is no model {model!r} in {listing(columns)}.{hint}")
    chosen = list(columns if models is None else dict.fromkeys(models))
    if len(chosen) < 2:
        raise InputError(f"{query}: two different models are needed, found {listing(chosen) or 'none'}.")


def _numbers(query: str, scores: pd.DataFrame) -> Floats:
    try:
        return scores.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"{query}: scores must be numbers ({error}); set data sets as the index.") from None


def differences(values: Floats) -> Floats:
    """Differences (n,) of two columns, exactly zero where only rounding makes a difference."""
    difference = values[:, 0] - values[:, 1]
    difference[np.abs(difference) <= _NOISE * np.abs(values).max(axis=1)] = 0.0
    return difference


def tie_classes(values: Floats, scale: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """Classes 0, 1, ... of values in ascending order along the last axis; values that tie share one.

    Parameters
    ----------
    values : array, shape (..., n)
    scale : array, shape (...)
        Largest absolute value of the scores from which the values were calculated.
    """
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    with np.errstate(invalid="ignore"):  # inf - inf: a tie
        steps = np.diff(ordered, axis=-1) > _NOISE * np.asarray(scale)[..., None]
    classes = np.zeros(values.shape, dtype=np.intp)
    np.put_along_axis(classes, order[..., 1:], np.cumsum(steps, axis=-1), axis=-1)
    return classes


def check_alpha(query: str, alpha: float) -> None:
    """Refuse a level of significance that is none."""
    if not 0 < alpha < 1:
        raise InputError(f"{query}: alpha must be between 0 and 1, found {alpha!r}.")


def check_choice(query: str, name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a word that is not among the choices."""
    if value not in choices:
        raise InputError(f"{query}: {name} must be one of {', '.join(map(repr, choices))}; found {value!r}.")


def p_text(p: float) -> str:
    """Return a p value for a sentence."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def rows_text(n_rows: int, n_left_out: int) -> str:
    """Return how many rows were used and how many were not."""
    return f"{n_rows} rows" + (f", {n_left_out} with gaps left out" if n_left_out else "")
