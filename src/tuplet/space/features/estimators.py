"""Properties of scikit-learn estimators: probabilities, weights, accepted inputs, kinds of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes, Floats
from tuplet.space.features.labelled import LabelledClassifier, without_labels
from tuplet.space.features.scaling import LimitedScaler

COLUMN_WISE = (SimpleImputer, StandardScaler, LimitedScaler, MaxAbsScaler, RobustScaler)
"""Transformers that treat each column by itself, without the labels."""

_NO_STEP = (None, "passthrough", "drop")

_WRAPPERS = (GridSearchCV, RandomizedSearchCV, LabelledClassifier)
"""Classifiers whose `estimator` gets X as it is."""

_MANY = 255
"""Categories of one column for a boosting library with native categories that sets no limit of its own."""


def is_one_of(estimator: Any, classes: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether an estimator is an instance of classes of scikit-learn, without importing them.

    Importing forests and neighbours takes a fifth of a second, which models without them do not pay.

    Parameters
    ----------
    estimator : object
    classes : mapping of str to tuple of str
        Names of packages, and of classes in each.
    """
    return any(
        kind.__name__ in names and kind.__module__.startswith(f"{package}.")
        for kind in type(estimator).__mro__
        for package, names in classes.items()
    )


def require_probabilities(estimator: Any) -> None:
    """Raise `InputError` unless the estimator is a classifier with `predict_proba`."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise InputError(f"estimator must be a scikit-learn classifier, found {estimator!r}.")
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"{name_of(estimator)} has no predict_proba, so it gives no probabilities; wrap it as"
            f" CalibratedClassifierCV({name_of(estimator)}(...)) or choose another estimator."
        )


def weight_arguments(estimator: Any, sample_weight: Floats | None) -> dict[str, Floats]:
    """Return the keyword arguments that carry weights (n,) into `estimator.fit`.

    In a pipeline every step that can take weights gets them: scikit-learn alone would give them to none.
    """
    if sample_weight is None:
        return {}
    keys = list(weight_keys(estimator))
    if not keys:
        raise InputError(
            f"{name_of(estimator)} cannot take sample_weight; fit without weights or choose an estimator"
            " whose fit takes them."
        )
    return dict.fromkeys(keys, sample_weight)


def weight_keys(estimator: Any) -> Iterator[str]:
    """Yield the names under which an estimator's fit takes weights; none if its last step takes none."""
    if isinstance(estimator, Pipeline):
        if any(weight_keys(estimator.steps[-1][1])):
            for name, step in estimator.steps:
                yield from (f"{name}__{key}" for key in weight_keys(step))
    elif has_fit_parameter(estimator, "sample_weight"):
        yield "sample_weight"
    elif hasattr(estimator, "estimator"):  # a search over parameters hands its fit arguments down
        yield from weight_keys(estimator.estimator)


def group_arguments(estimator: Any, groups: Codes | None) -> dict[str, Codes]:
    """Return the keyword arguments that carry groups (n,) into `estimator.fit`; none if it takes none."""
    return {} if groups is None else dict.fromkeys(_group_keys(estimator), groups)


def _group_keys(estimator: Any) -> Iterator[str]:
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            yield from (f"{name}__{key}" for key in _group_keys(step))
    elif has_fit_parameter(estimator, "groups"):
        yield "groups"
    elif isinstance(estimator, LabelledClassifier):
        yield from _group_keys(estimator.estimator)


def accepts(estimator: Any, kind: Literal["allow_nan", "sparse"]) -> bool:
    """Return whether an estimator takes missing values or sparse input, by its tags.

    The tags of a pipeline do not include those of its steps, which are combined here. A missing value passes
    from step to step until one imputes it; sparse input depends on the first step alone.
    """
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
        if kind == "sparse":
            return bool(steps) and accepts(steps[0], kind)
        return _pass_missing(steps)
    if isinstance(estimator, (ColumnTransformer, FeatureUnion)):
        return True  # decided per column, by the steps inside
    inner = getattr(estimator, "estimator", None)
    if inner is not None and hasattr(inner, "fit"):
        return accepts(inner, kind)
    return bool(getattr(get_tags(estimator).input_tags, kind))


def _pass_missing(steps: list[Any]) -> bool:
    for step in steps:
        if not accepts(step, "allow_nan"):
            return False
        if _fills_missing(step):
            return True
    return bool(steps)


def _fills_missing(step: Any) -> bool:
    if isinstance(step, (ColumnTransformer, FeatureUnion)):
        return True
    return type(step).__module__.startswith("sklearn.impute") and type(step).__name__ != "MissingIndicator"


def seeded(estimator: Any, seed: int) -> Any:
    """Return the estimator with every `random_state` that was left at None, also of its parts, set by a seed.

    What has a seed of its own keeps it.
    """
    if not hasattr(estimator, "get_params"):
        return estimator
    params = estimator.get_params(deep=True)
    free = [k for k in sorted(params) if k.rpartition("__")[2] == "random_state" and params[k] is None]
    mappings = [k for k in sorted(params) if isinstance(params[k], Mapping)]  # of names to classifiers
    if not free and not mappings:
        return estimator
    numbers = np.random.default_rng(seed).integers(2**31 - 1, size=len(free) + len(mappings)).tolist()
    settings = dict(zip(free, numbers[: len(free)], strict=True))
    for name, number in zip(mappings, numbers[len(free) :], strict=True):
        settings[name] = {key: seeded(each, number + i) for i, (key, each) in enumerate(params[name].items())}
    return clone(estimator).set_params(**settings)


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def name_of(estimator: Any) -> str:
    """Return the class name of an estimator, of its last step if it is a pipeline."""
    last = last_step(without_labels(estimator))
    return type(last).__name__ if last is estimator else name_of(last)


def is_column_wise(estimator: Any) -> bool:
    """Return whether all steps before the classifier, if there are any, treat each column by itself.

    These steps do not use the labels, so they are the same for all class variables.
    """
    if not isinstance(estimator, Pipeline):
        return True
    return all(step in (None, "passthrough") or type(step) in COLUMN_WISE for _, step in estimator.steps[:-1])


def unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the model inside of pipelines, fitted searches and frozen estimators, and its input for X."""
    while True:
        if is_one_of(estimator, {"sklearn": ("FrozenEstimator",)}):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            if len(estimator) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        else:
            return estimator, X


# -- estimators that treat the columns of a frame themselves -----------------------------------------------


def chooses_columns(estimator: Any) -> bool:
    """Return whether an estimator begins with a step that may select columns by name."""
    front = _front(estimator)
    if isinstance(front, FeatureUnion):
        return any(chooses_columns(step) for _, step in front.transformer_list if step not in _NO_STEP)
    return isinstance(front, ColumnTransformer) or is_foreign_step(front)


def is_foreign_step(step: Any) -> bool:
    """Return whether a step is a transformer of which nothing is known, so that it gets a frame as it is.

    These are transformers that are neither of scikit-learn nor of this package, and any function.
    """
    if is_one_of(step, {"sklearn.preprocessing": ("FunctionTransformer",)}):
        return not step.validate
    known = type(step).__module__.partition(".")[0] in ("sklearn", "tuplet")
    is_transformer = hasattr(step, "transform") and not hasattr(step, "predict_proba")
    return is_transformer and not known and not isinstance(step, Pipeline)


def takes_frames(estimator: Any) -> bool:
    """Return whether an estimator can be given a frame with columns that are no numbers.

    True if what it begins with is a ColumnTransformer, a step of which nothing is known, or a transformer
    whose tags state that it takes text or categories, as OneHotEncoder's do; or if it is a classifier that
    takes text by its tags, or whose categorical columns are set (`cat_features`).
    """
    front = _front(estimator)
    if chooses_columns(front):
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
        first = first_step(estimator)
        return None if first is None else _front(first[1])
    inner = getattr(estimator, "estimator", None)
    if isinstance(inner, Pipeline) or isinstance(estimator, _WRAPPERS):
        return _front(inner)
    return estimator


def first_step(pipeline: Pipeline) -> tuple[str, Any] | None:
    """Return the first step that does not hand every column on as it is, with its name."""
    steps = ((name, step) for name, step in pipeline.steps if step not in _NO_STEP)
    return next((pair for pair in steps if not _passes_text(pair[1])), None)


def _passes_text(step: Any) -> bool:
    return isinstance(step, SimpleImputer) and step.strategy in ("most_frequent", "constant")


def _setting(estimator: Any, name: str) -> Any:
    return estimator.get_params(deep=False).get(name) if hasattr(estimator, "get_params") else None


def _is(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word
