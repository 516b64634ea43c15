"""Columns of parents, which a local model appends to X, pass what an estimator does to the columns of X."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from tuplet.space.features.estimators import first_step
from tuplet.space.features.inputs import Features


def admit_columns(estimator: Any, X: Features, width: int) -> Any:
    """Return the estimator, changed so that a `ColumnTransformer` in front passes `width` further columns.

    A ColumnTransformer is written for the columns of X. The columns that a local model appends for the
    parents would be dropped by its default remainder, and the chain would silently lose its links.
    """
    if width == 0:
        return estimator
    if isinstance(estimator, ColumnTransformer):
        d = X.shape[1]
        chosen = [(name, step, _resolve(columns, X)) for name, step, columns in estimator.transformers]
        parents = ("class_parents", "passthrough", list(range(d, d + width)))
        return clone(estimator).set_params(transformers=[*chosen, parents])
    part = _part_that_chooses(estimator)
    if part is None:
        return estimator
    name, inner = part
    return clone(estimator).set_params(**{name: admit_columns(inner, X, width)})


def _part_that_chooses(estimator: Any) -> tuple[str, Any] | None:
    """Return the part of an estimator that is or begins with a `ColumnTransformer`, with its name."""
    parts: list[tuple[str, Any] | None] = [("estimator", getattr(estimator, "estimator", None))]
    if isinstance(estimator, Pipeline):
        parts = [first_step(estimator)]
    elif isinstance(estimator, FeatureUnion):
        parts = list(estimator.transformer_list)
    return next((part for part in parts if part and _has_columns(part[1])), None)


def _has_columns(part: Any) -> bool:
    return isinstance(part, ColumnTransformer) or (
        isinstance(part, (Pipeline, FeatureUnion)) and _part_that_chooses(part) is not None
    )


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
