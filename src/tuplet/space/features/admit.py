"""Columns of parents, which a local model appends to X, pass what an estimator does to the columns of X."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import Tags, get_tags

from tuplet.space.features.estimators import first_step, is_foreign_step
from tuplet.space.features.inputs import Features, put_beside


@final
class ParentsBeside(TransformerMixin, BaseEstimator):
    """A transformer of the columns of X, with the columns of parents beside what it returns.

    Parameters
    ----------
    transformer : transformer
        Gets all columns but the last.
    width : int
        How many of the last columns are those of parents.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> first = FunctionTransformer(lambda X: X[:, :1])
    >>> ParentsBeside(first, 1).fit_transform(np.array([[1.0, 2.0, 3.0]]))
    array([[1., 3.]])
    """

    def __init__(self, transformer: Any, width: int) -> None:
        self.transformer = transformer
        self.width = width

    def fit(self, X: Features, y: Any = None, **arguments: Any) -> Self:
        """Fit a clone of the transformer to the columns of X."""
        self.transformer_ = clone(self.transformer).fit(self._own(X), y, **arguments)
        return self

    def fit_transform(self, X: Features, y: Any = None, **arguments: Any) -> Features:
        """Fit a clone of the transformer and transform the training rows, as it does both at once."""
        self.transformer_ = clone(self.transformer)
        return self._beside(self.transformer_.fit_transform(self._own(X), y, **arguments), X)

    def transform(self, X: Features) -> Features:
        """Return what the transformer makes of the columns of X, and the columns of parents."""
        return self._beside(self.transformer_.transform(self._own(X)), X)

    def _own(self, X: Features) -> Features:
        return X.iloc[:, : -self.width] if isinstance(X, pd.DataFrame) else X[:, : -self.width]

    def _beside(self, made: Features, X: Features) -> Features:
        parents: Any = X.iloc[:, -self.width :] if isinstance(X, pd.DataFrame) else X[:, -self.width :]
        columns = np.asarray(parents.toarray() if hasattr(parents, "toarray") else parents, dtype=float)
        names = parents.columns if isinstance(X, pd.DataFrame) else map(str, range(-self.width, 0))
        return put_beside(made, columns, list(names))

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.transformer)


def admit_columns(estimator: Any, X: Features, width: int) -> Any:
    """Return the estimator, changed so that what selects columns in front passes `width` further columns.

    A ColumnTransformer, or a function, is written for the columns of X. The columns that a local model
    appends for the parents would be dropped, and the chain would silently lose its links.
    """
    if width == 0:
        return estimator
    if isinstance(estimator, ColumnTransformer):
        d = X.shape[1]
        chosen = [(name, step, _resolve(columns, X)) for name, step, columns in estimator.transformers]
        parents = ("class_parents", "passthrough", list(range(d, d + width)))
        return clone(estimator).set_params(transformers=[*chosen, parents])
    if is_foreign_step(estimator):
        return ParentsBeside(estimator, width)
    if isinstance(estimator, Pipeline):
        return _admit_to_steps(estimator, X, width)
    part = _part_that_chooses(estimator)
    if part is None:
        return estimator
    name, inner = part
    return clone(estimator).set_params(**{name: admit_columns(inner, X, width)})


def _admit_to_steps(pipeline: Pipeline, X: Features, width: int) -> Any:
    """Return a pipeline whose first steps, as far as they select columns, pass further ones."""
    first = first_step(pipeline)
    if first is None or not _has_columns(first[1]):
        return pipeline
    changed = {first[0]: admit_columns(first[1], X, width)}
    names = [name for name, _ in pipeline.steps]
    for name, step in pipeline.steps[names.index(first[0]) + 1 : -1]:
        if not is_foreign_step(step):
            break
        changed[name] = ParentsBeside(step, width)
    return clone(pipeline).set_params(**changed)


def _part_that_chooses(estimator: Any) -> tuple[str, Any] | None:
    """Return the part of an estimator that is or begins with what selects columns, with its name."""
    parts: list[tuple[str, Any] | None] = [("estimator", getattr(estimator, "estimator", None))]
    if isinstance(estimator, Pipeline):
        parts = [first_step(estimator)]
    elif isinstance(estimator, FeatureUnion):
        parts = list(estimator.transformer_list)
    return next((part for part in parts if part and part[1] is not None and _has_columns(part[1])), None)


def _has_columns(part: Any) -> bool:
    selects = isinstance(part, ColumnTransformer) or is_foreign_step(part)
    return selects or _part_that_chooses(part) is not None


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
