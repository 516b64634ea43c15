"""Estimators that treat the columns of a frame themselves: which they are, and how they take more columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from tuplet.space.features.estimators import is_one_of
from tuplet.space.features.inputs import Features

_NO_STEP = (None, "passthrough", "drop")

_MANY = 255
"""Categories of one column for a boosting library with native categories that sets no limit of its own."""


# -- what an estimator takes -------------------------------------------------------------------------------


def chooses_columns(estimator: Any) -> bool:
    """Return whether an estimator begins with a `ColumnTransformer`, which may select columns by name."""
    return isinstance(_front(estimator), ColumnTransformer)


def takes_frames(estimator: Any) -> bool:
    """Return whether an estimator can be given a frame with columns that are no numbers.

    True if what it begins with is a ColumnTransformer, a transformer whose tags state that it takes text or
    categories, as OneHotEncoder's do, or that it looks at nothing, as FunctionTransformer's do; or if it is a
    classifier that takes text by its tags, or whose categorical columns are set (`cat_features`).
    """
    front = _front(estimator)
    if isinstance(front, ColumnTransformer):
        return True
    if isinstance(front, FeatureUnion):
        return all(takes_frames(step) for _, step in front.transformer_list if step not in _NO_STEP)
    if front is None:
        return False
    tags = get_tags(front)
    if tags.estimator_type == "classifier":
        # The tag `categorical` of a classifier means codes, not the values themselves.
        return bool(tags.input_tags.string or _setting(front, "cat_features"))
    return bool(tags.input_tags.string or tags.input_tags.categorical or tags.no_validation)


def category_limit(estimator: Any) -> int:
    """Return how many values a column of pandas categories may have, 0 if an estimator takes numbers only."""
    front = _front(estimator)
    if is_one_of(front, {"sklearn.ensemble": ("HistGradientBoostingClassifier",)}):
        return int(front.max_bins) if _is(front.categorical_features, "from_dtype") else 0
    return _MANY if _setting(front, "enable_categorical") is True else 0


def _front(estimator: Any) -> Any:
    """Return what is fitted to X first: the first step of a pipeline, also inside of a search; or itself."""
    if isinstance(estimator, Pipeline):
        first = _first_step(estimator)
        return None if first is None else _front(first[1])
    inner = getattr(estimator, "estimator", None)
    if isinstance(inner, Pipeline) or isinstance(estimator, (GridSearchCV, RandomizedSearchCV)):
        return _front(inner)
    return estimator


def _first_step(pipeline: Pipeline) -> tuple[str, Any] | None:
    """Return the first step that does not hand every column on as it is, with its name."""
    steps = ((name, step) for name, step in pipeline.steps if step not in _NO_STEP)
    return next((pair for pair in steps if not _passes_text(pair[1])), None)


def _passes_text(step: Any) -> bool:
    return isinstance(step, SimpleImputer) and step.strategy in ("most_frequent", "constant")


def _setting(estimator: Any, name: str) -> Any:
    return estimator.get_params(deep=False).get(name) if hasattr(estimator, "get_params") else None


def _is(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word


# -- letting parents pass ----------------------------------------------------------------------------------


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
        parts = [_first_step(estimator)]
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
