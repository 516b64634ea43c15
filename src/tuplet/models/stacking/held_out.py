"""Probabilities of rows that models have not seen: folds, fits, and whether a gain is clear."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype
from sklearn.base import clone

from tuplet.core import clock
from tuplet.core.typing import Codes, Floats
from tuplet.local.cross_fitting import Fold, Positions, inner_folds, mean_and_error
from tuplet.local.row_samples import SAMPLE_SIZE
from tuplet.space.classes import ClassSpace
from tuplet.space.features.inputs import Features, take_rows

_ERRORS = 2.0
"""Standard errors that a gain must have to be clear."""

_MANY_CELLS = 2**27
"""Cells (`Rows.n_cells`) up to which all folds of a number are fitted. With twice as many (5,000 rows and 160
labels) five folds of three models took 62 CPU seconds, two take 24, at the same likelihood of new rows."""


@final
@dataclass(frozen=True)
class Rows:
    """What a model learns from: features of n rows, codes (n, m) of their labels, weights and groups (n,)."""

    X: Features
    codes: Codes
    weights: Floats | None
    space: ClassSpace
    groups: Codes | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def n_inputs(self) -> int:
        """Columns that a classifier of numbers gets: 0/1 columns for features that are none."""
        return _n_inputs(self.X)

    @cached_property
    def n_combinations(self) -> int:
        """Distinct combinations of labels."""
        return len(np.unique(self.codes, axis=0))

    @property
    def n_cells(self) -> int:
        """Numbers that a chain looks at: rows times features, and labels before, times labels."""
        labels = sum(self.space.cards)
        return max(1, len(self) * (self.n_inputs + labels // 2) * labels)

    def take(self, rows: Positions, weights: Floats | None) -> Rows:
        """Return some rows, with weights of their own."""
        return Rows(take_rows(self.X, rows), self.codes[rows], weights, self.space, self.groups_of(rows))

    def groups_of(self, rows: Positions) -> Codes | None:
        """Return the groups of some rows, None if there are none."""
        return None if self.groups is None else self.groups[rows]


def _n_inputs(X: Any) -> int:
    """Columns that a classifier of numbers gets."""
    if not isinstance(X, pd.DataFrame):
        return int(X.shape[1])
    columns = [X.iloc[:, j] for j in range(X.shape[1])]
    words = [isinstance(each.dtype, pd.CategoricalDtype) or is_string_dtype(each) for each in columns]
    return sum(each.nunique() if word else 1 for each, word in zip(columns, words, strict=True))


@final
@dataclass(frozen=True)
class HeldOut:
    """What one model says of the judging rows of one fold.

    Attributes
    ----------
    log_prob : array, shape (rows,)
        Log-probabilities of their labels; missing labels are summed out.
    table : array, shape (some rows, outcomes), or None
        Log-probabilities of all outcomes of the first rows.
    fit_seconds, predict_seconds : float
    log_likelihood : float
        Mean of `log_prob`, by the weights of the rows.
    weight : float
        Sum of these weights.
    """

    log_prob: Floats
    table: Floats | None
    fit_seconds: float
    predict_seconds: float
    log_likelihood: float
    weight: float


class Gain(NamedTuple):
    """Mean gain of held-out rows, and its standard error."""

    mean: float
    error: float

    @property
    def is_clear(self) -> bool:
        """Whether it exceeds chance, and also rounding errors, which on few rows look like a gain."""
        return self.mean > max(_ERRORS * self.error, 1e-9)


def gain_of(each: Floats, weights: Floats, groups: Codes | None) -> Gain:
    """Return the mean of the gains (n,) of rows with these weights (n,) and groups (n,)."""
    return Gain(*mean_and_error(each, weights, groups))


def folds_of(rows: Rows, cv: Any) -> list[Fold]:
    """Return the folds of rows; see `inner_folds`. Those by a number do not depend on rows of weight 0."""
    if rows.weights is None or rows.weights.all() or not isinstance(cv, (int, np.integer)):
        return inner_folds(rows.X, rows.codes, rows.weights, cv, rows.space, groups=rows.groups)
    used = np.flatnonzero(rows.weights)
    folds = folds_of(rows.take(used, rows.weights[used]), cv)
    return [replace(fold, train=used[fold.train], test=used[fold.test]) for fold in folds]


def enough_folds(folds: list[Fold], rows: Rows, at_least: int = 1) -> list[Fold]:
    """Return the first folds, as many as it takes: a few weights need no more than `SAMPLE_SIZE` rows."""
    number = len(folds)
    if len(rows) > SAMPLE_SIZE:
        number = 1 + int(np.searchsorted(np.cumsum([len(fold.test) for fold in folds]), SAMPLE_SIZE))
    if rows.n_cells > _MANY_CELLS:
        number = min(number, max(2, len(folds) * _MANY_CELLS // rows.n_cells))
    return folds[: max(at_least, number)]


def fit_on(model: Any, rows: Rows) -> Any:
    """Return a fresh copy of a model, fitted to the rows."""
    return clone(model)._fit_codes(rows.X, rows.space, rows.codes, rows.weights, rows.groups)


def judge(model: Any, rows: Rows, fold: Fold, n_tables: int = 0) -> HeldOut:
    """Fit a model to the teaching rows of a fold, and ask it about the others.

    `n_tables` is the number of rows for which all outcomes are asked.
    """
    start = clock.now()
    fitted = fit_on(model, rows.take(fold.train, fold.train_weight))
    middle = clock.now()
    log_prob, tables = _ask(fitted, rows.X, rows.codes, fold.test, n_tables)
    seconds = middle - start, clock.now() - middle
    weight = float(fold.test_weight.sum())
    return HeldOut(log_prob, tables, *seconds, float(fold.test_weight @ log_prob / weight), weight)


_CHUNK = 4096
"""Rows that are asked about at once: distributions of many combinations are large."""


def _ask(
    fitted: Any, X: Features, codes: Codes, test: Positions, n_tables: int
) -> tuple[Floats, Floats | None]:
    log_prob, tables = np.empty(len(test)), []
    for start in range(0, len(test), _CHUNK):
        part = test[start : start + _CHUNK]
        joint = fitted._joint_of(take_rows(X, part))
        log_prob[start : start + len(part)] = joint.log_prob(codes[part])
        wanted = min(n_tables - start, len(part))
        if wanted > 0:
            tables.append(joint[:wanted]._log_table().astype(np.float32))
    return log_prob, np.concatenate(tables) if tables else None
