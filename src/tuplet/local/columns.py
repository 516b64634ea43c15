"""A `ColumnTransformer` that lets the parents pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from tuplet.local.inputs import Features

__all__ = ["admit_columns"]


def admit_columns(estimator: Any, X: Features, width: int) -> Any:
    """Return the estimator, changed so that a `ColumnTransformer` in front passes `width` further columns.

    A ColumnTransformer is written for the columns of X. The columns that a local model appends for the
    parents would be dropped by its default remainder, and the chain would silently lose its links.
    """
    if width == 0:
        return estimator
    if isinstance(estimator, Pipeline) and estimator.steps:
        name, first = estimator.steps[0]
        admitted = admit_columns(first, X, width)
        return estimator if admitted is first else clone(estimator).set_params(**{name: admitted})
    if isinstance(estimator, ColumnTransformer):
        d = X.shape[1]
        chosen = [(name, step, _resolve(columns, X)) for name, step, columns in estimator.transformers]
        parents = ("class_parents", "passthrough", list(range(d, d + width)))
        return clone(estimator).set_params(transformers=[*chosen, parents])
    inner = getattr(estimator, "estimator", None)
    if isinstance(inner, Pipeline):  # a search over the parameters of a pipeline
        admitted = admit_columns(inner, X, width)
        return estimator if admitted is inner else clone(estimator).set_params(estimator=admitted)
    return estimator


def _resolve(columns: Any, X: Features) -> Any:
    """Return a choice of columns that still means the same when more columns stand on the right."""
    if callable(columns):
        return _resolve(columns(X), X)
    by_name = isinstance(columns, slice) and any(
        isinstance(end, str) for end in (columns.start, columns.stop)
    )
    if isinstance(columns, str) or by_name:
        return columns
    if not isinstance(columns, slice) and any(isinstance(c, str) for c in np.atleast_1d(columns)):
        return columns
    return np.arange(X.shape[1])[columns]
