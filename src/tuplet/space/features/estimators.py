"""Properties of scikit-learn estimators: probabilities, weights, accepted inputs, kinds of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats

COLUMN_WISE = (SimpleImputer, StandardScaler, MaxAbsScaler, RobustScaler)
"""Transformers that treat each column by itself, without the labels."""


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
    keys = list(_weight_keys(estimator))
    if not keys:
        raise InputError(
            f"{name_of(estimator)} cannot take sample_weight; fit without weights or choose an estimator"
            " whose fit takes them."
        )
    return dict.fromkeys(keys, sample_weight)


def _weight_keys(estimator: Any) -> Iterator[str]:
    """Yield the names under which an estimator's fit takes weights; none if its last step takes none."""
    if isinstance(estimator, Pipeline):
        if any(_weight_keys(estimator.steps[-1][1])):
            for name, step in estimator.steps:
                yield from (f"{name}__{key}" for key in _weight_keys(step))
    elif has_fit_parameter(estimator, "sample_weight"):
        yield "sample_weight"
    elif hasattr(estimator, "estimator"):  # a search over parameters hands its fit arguments down
        yield from _weight_keys(estimator.estimator)


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
    last = last_step(estimator)
    return type(last).__name__ if last is estimator else name_of(last)


def is_column_wise(estimator: Any) -> bool:
    """Return whether all steps before the classifier, if there are any, treat each column by itself.

    These steps do not use the labels, so they are the same for all class variables.
    """
    if not isinstance(estimator, Pipeline):
        return True
    return all(step in (None, "passthrough") or type(step) in COLUMN_WISE for _, step in estimator.steps[:-1])


def unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the model inside of pipelines and fitted searches, and its input for X."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            if len(estimator) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        else:
            return estimator, X
