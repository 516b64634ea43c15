"""Columns limited to a range that training rows support, and scaled to unit variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from tuplet.core.typing import Floats
from tuplet.space.features.inputs import Features, n_rows

_BULK = (0.05, 0.95)
"""Quantiles between which most values of a column are."""

_FENCE = 5.0
"""Widths of the bulk, on either side of it, beyond which training values are outliers. For a normal column
that is 18 standard deviations from the mean. No column of the data sets of `tuplet.list_datasets` that has
a continuous distribution reaches it."""

_SAMPLE = 2**12
"""Rows from which quantiles are found, evenly spaced where there are more; extremes come from all rows."""


@final
@dataclass(frozen=True)
class InputRange:
    """The values of each column that models extrapolate to; values outside are moved to its ends.

    It is the range of the training values without outliers, widened by its own width on both sides. A
    column that is constant in training stays constant.

    Parameters
    ----------
    low, high : array, shape (d,)

    Notes
    -----
    The logits of a linear model grow with x without limit, so a single wrong digit in one column would
    outweigh all others; and an outlier among the training rows would take the whole scale of its column. In
    sparse columns, most of which are zero, no value counts as an outlier, and zero is inside the range.

    Examples
    --------
    >>> limits = InputRange.learn(np.array([[1.0], [2.0], [3.0]]))
    >>> limits.clip(np.array([[-1e9], [2.5], [1e9]])).ravel()
    array([-1. ,  2.5,  5. ])
    """

    low: Floats
    high: Floats

    @classmethod
    def learn(cls, X: Features, weight: Floats | None = None) -> InputRange:
        """Learn from rows X (n, d) with weights (n,); missing values are left out."""
        low, high = _extremes(X)
        if not sparse.issparse(X) and n_rows(X):
            below, above = _fences(X, weight)
            # Columns without a bulk, such as rare 0/1 columns, have NaN here and keep their extremes.
            has_outliers = np.flatnonzero((low < below) | (high > above))
            inside = np.asarray(X)[:, has_outliers].astype(float)
            inside[(inside < below[has_outliers]) | (inside > above[has_outliers])] = np.nan
            low[has_outliers], high[has_outliers] = _extremes(inside)
        with np.errstate(over="ignore"):
            width = high - low
            return cls(low - width, high + width)

    def clip(self, X: Any) -> Any:
        """Return a copy of rows X (n, d), an array, a frame or a sparse matrix, inside the range."""
        if sparse.issparse(X):
            inside = _as_any(X).tocsr(copy=True)
            inside.data = np.clip(inside.data, self.low[inside.indices], self.high[inside.indices])
            return inside
        if isinstance(X, pd.DataFrame):
            return X.clip(self.low, self.high, axis=1)
        inside = np.maximum(X, self.low)
        return np.minimum(inside, self.high, out=inside)


@final
class LimitedScaler(StandardScaler):
    """A `StandardScaler` of columns that are limited to their `InputRange` first.

    Attributes
    ----------
    limits_ : InputRange
        Learnt from the training rows.

    Examples
    --------
    >>> scaler = LimitedScaler().fit([[1.0], [2.0], [3.0]])
    >>> scaler.transform([[2.0], [1e300]]).round(2).ravel()
    array([0.  , 3.67])
    """

    limits_: InputRange

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the range of each column, and its mean and variance inside of it."""
        X = X if hasattr(X, "shape") else np.asarray(X, dtype=float)
        self.limits_ = InputRange.learn(X, sample_weight)
        super().fit(self.limits_.clip(X), y, sample_weight)
        return self

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """Return rows X, limited and scaled."""
        X = X if hasattr(X, "shape") else np.asarray(X, dtype=float)
        return super().transform(self.limits_.clip(X), copy)


def _extremes(X: Any) -> tuple[Floats, Floats]:
    """Return the least and the largest value of each column; zero if there is none."""
    if sparse.issparse(X):
        table = _as_any(X)
        low, high = (part.toarray().ravel() for part in (table.nanmin(axis=0), table.nanmax(axis=0)))
        return np.fmin(low, 0.0), np.fmax(high, 0.0)
    table = np.asarray(X)
    if not len(table):
        return np.zeros(table.shape[1]), np.zeros(table.shape[1])
    low, high = (extreme.reduce(table, axis=0).astype(float) for extreme in (np.fmin, np.fmax))
    return np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), 0.0, high)


def _fences(X: Features, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the values (d,) beyond which those of a column are outliers, NaN where it has no bulk."""
    some = slice(None, None, -(-n_rows(X) // _SAMPLE))
    table = np.asarray(X[some], dtype=float)
    weights = np.ones(len(table)) if weight is None else np.asarray(weight)[some]
    order = np.argsort(table, axis=0)  # missing values come last
    table = np.take_along_axis(table, order, axis=0)
    total = np.cumsum(weights[order] * ~np.isnan(table), axis=0)
    below, above = (
        np.take_along_axis(table, (total < share * total[-1]).sum(axis=0)[None], axis=0)[0] for share in _BULK
    )
    with np.errstate(over="ignore"):
        reach = np.where(above > below, _FENCE * (above - below), np.nan)
    return below - reach, above + reach


def _as_any(X: object) -> Any:
    """Return a sparse matrix; its type has not the methods that all of them have."""
    return X
