"""Where beliefs about class variables come from: classifiers of their own, models of all, fitted ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tuplet.exceptions import InputError, LabelError
from tuplet.local.columns import chooses_columns
from tuplet.local.estimators import name_of
from tuplet.local.inputs import Features, n_rows
from tuplet.models.base import JointClassifier
from tuplet.models.independent import IndependentClassifier
from tuplet.models.rules.multi_output import MultiOutputModel
from tuplet.space import ClassSpace
from tuplet.space.containers import listing
from tuplet.typing import Codes, Floats

_FLOOR = 1e-6
"""Belief that is spread over all categories when a fitted classifier speaks: no label is impossible."""


@dataclass(frozen=True, eq=False)
class Source:
    """A model of some class variables that sees some columns of X.

    Parameters
    ----------
    names : tuple of str
        The class variables.
    model : JointClassifier, or a fitted classifier
    columns : list, name, position or slice, optional
        Names or positions of the columns of X that it sees; all of them if None.
    prefit : bool
        Whether the model was fitted elsewhere.
    spoken : tuple of str
        All variables that the model speaks of, in its order; `names` are those that are listened to.
    """

    names: tuple[str, ...]
    model: Any
    columns: Any = None
    prefit: bool = False
    spoken: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", as_columns(self.columns, self.names))
        if not self.spoken:
            object.__setattr__(self, "spoken", self.names)

    def view(self, X: Features) -> Features:
        """Return the columns that the model sees."""
        if self.columns is None:
            return X
        columns, framed = self.columns, isinstance(X, pd.DataFrame)
        wants = f"The classifier of {listing(self.names)} wants the columns {_said(columns)}"
        by_position = isinstance(columns, slice)
        if not framed and not by_position and any(isinstance(column, str) for column in columns):
            raise InputError(f"{wants}, but X has no names; pass a frame, or positions.")
        try:
            if not framed:
                return X[:, columns]
            by_name = not by_position and all(column in X.columns for column in columns)
            return X[columns] if by_name else X.iloc[:, columns]
        except (IndexError, ValueError, KeyError, TypeError):
            has = listing(X.columns) if framed else f"{X.shape[1]} columns"
            raise InputError(f"{wants}; X has {has}.") from None

    def check_columns(self, names: Any, n_columns: int) -> None:
        """Refuse columns that X, with these names if it has any, does not have."""
        nothing = np.empty((0, n_columns))
        part = self.view(nothing if names is None else pd.DataFrame(nothing, columns=names))
        _check_width(self.model, part, self.names)

    def check_labels(self, space: ClassSpace) -> None:
        """Refuse a fitted model that knows labels which the space does not."""
        for name, labels in zip(self.spoken, _labels_of(self.model, len(self.spoken)), strict=True):
            if name in self.names and labels is not None:
                _codes_of(space, name, labels)

    def without(self, name: str) -> Source | None:
        """Return the source without a class variable, None if no other is left."""
        if name not in self.names:
            return self
        left = tuple(each for each in self.names if each != name)
        return replace(self, names=left) if left else None

    def fitted(self, X: Features, space: ClassSpace, codes: Codes, weights: Any) -> Source:
        """Return the source with its model fitted to codes (n, m) of all variables, if it is not."""
        if self.prefit:
            return self
        places = [space.position(name) for name in self.names]
        model = clone(self.model)._fit_codes(
            self.view(X), space.select(self.names), codes[:, places], weights
        )
        return replace(self, model=model)

    def beliefs(self, X: Features, space: ClassSpace) -> dict[str, Floats]:
        """Return the probabilities (n, k_j) of the categories of each variable."""
        part = self.view(X)
        if not self.prefit:
            tables = self.model._joint_of(part).marginals()
            named = zip(self.model.space_.names, tables, strict=True)
            return {name: table for name, table in named if name in self.names}
        _check_width(self.model, part, self.names)
        tables, classes = _ask(self.model, part, len(self.spoken))
        if len(tables) != len(self.spoken):
            raise InputError(
                f"The fitted classifier of {listing(self.names)} tells probabilities of {len(tables)} class"
                f" variables, not of {len(self.spoken)}."
            )
        return {
            name: _aligned(space, name, table, labels, n_rows(part))
            for name, table, labels in zip(self.spoken, tables, classes, strict=True)
            if name in self.names
        }


def as_columns(columns: Any, names: Sequence[str]) -> Any:
    """Return columns, however given, as a list of names or positions, a slice of positions, or None."""
    if isinstance(columns, slice):
        ends = (columns.start, columns.stop, columns.step)
        if all(end is None or isinstance(end, Integral) for end in ends) and columns.step != 0:
            return columns
    elif columns is None:
        return None
    elif isinstance(columns, str | Integral):
        return [columns]
    elif isinstance(columns, Iterable) and not isinstance(columns, Mapping | Set):
        return list(columns)
    raise InputError(
        f"The columns of the classifier of {listing(names)} must be a name, a position, a list of them or a"
        f" slice of positions, found {columns!r}."
    )


def _said(columns: Any) -> str:
    return repr(columns) if isinstance(columns, slice) else listing(columns)


def _check_width(model: Any, X: Features, names: Sequence[str]) -> None:
    wanted = getattr(model, "n_features_in_", X.shape[1])
    if wanted != X.shape[1] and not chooses_columns(model):
        raise InputError(
            f"The fitted classifier of {listing(names)} was fitted to {wanted} columns, but sees"
            f" {X.shape[1]}; say which columns of X are its own."
        )


def _ask(model: Any, X: Features, n_variables: int) -> tuple[list[Any], list[Any]]:
    """Return probabilities and labels of each variable of a fitted model."""
    if isinstance(model, JointClassifier):
        return model._joint_of(X).marginals(), list(model.space_.categories)
    proba, labels = model.predict_proba(X), getattr(model, "classes_", None)
    if isinstance(proba, list):
        return proba, list(labels) if labels is not None else [None] * len(proba)
    if n_variables == 1:
        return [proba], [labels]
    # Of a multi-label network: one column for each label, the probability that it is 1.
    return [np.column_stack([1 - column, column]) for column in np.asarray(proba).T], [[0, 1]] * n_variables


def _labels_of(model: Any, n_variables: int) -> list[Any]:
    """Return the labels of each variable that a fitted model knows, None where it does not tell."""
    if isinstance(model, JointClassifier):
        return list(model.space_.categories)
    classes: Any = getattr(model, "classes_", None)
    several = isinstance(classes, list) and all(isinstance(each, np.ndarray) for each in classes)
    if several and len(classes) == n_variables:
        return classes
    return [classes] if n_variables == 1 and not several else [None] * n_variables


def _codes_of(space: ClassSpace, name: str, labels: Any) -> Any:
    """Return the codes of the labels that a fitted classifier knows."""
    try:
        return space.codes_of(name, list(labels))
    except LabelError as error:
        raise LabelError(
            f"The fitted classifier of {name!r} knows labels that the model does not. {error} If the data"
            " lack some, declare them: pandas.Categorical(y, categories=[...])."
        ) from None


def _aligned(space: ClassSpace, name: str, table: Any, labels: Any, n: int) -> Floats:
    """Return probabilities in the order of the space's categories, floored."""
    j = space.position(name)
    table = np.asarray(table, dtype=float)
    columns = np.arange(space.cards[j]) if labels is None else _codes_of(space, name, labels)
    if table.shape != (n, len(columns)):
        raise InputError(
            f"The fitted classifier of {name!r} gave probabilities of shape {table.shape}, not"
            f" ({n}, {len(columns)})."
        )
    answer = np.zeros((n, space.cards[j]))
    answer[:, columns] = table
    answer /= answer.sum(axis=1, keepdims=True)
    return (1 - _FLOOR) * answer + _FLOOR / space.cards[j]


def fitted_source(names: tuple[str, ...], model: Any, columns: Any = None) -> Source:
    """Return the source of a model that was fitted elsewhere.

    A model of Tuplet goes by names where it knows them, and may speak of further variables; by order if not.
    """
    if not hasattr(model, "predict_proba"):
        raise InputError(f"{name_of(model)} has no predict_proba; base classifiers must tell probabilities.")
    if not _is_fitted(model):
        raise InputError(
            f"The classifier of {listing(names)}, {name_of(model)}, is not fitted; fit it first."
        )
    if not isinstance(model, JointClassifier):
        return Source(names, model, columns, prefit=True)
    spoken = model.space_.names
    if not set(names) <= set(spoken):
        if len(spoken) != len(names):
            raise InputError(
                f"The fitted model of {listing(names)} has the class variables {listing(spoken)}; the names"
                " must be the same."
            )
        spoken = names
    return Source(names, model, columns, prefit=True, spoken=spoken)


def _is_fitted(model: Any) -> bool:
    """Return whether a model is fitted; those that are no estimators of scikit-learn count as such."""
    if not isinstance(model, BaseEstimator):
        return True
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def make_sources(
    estimators: Any, names: Sequence[str], *, prefit: bool, multi_output: bool, n_jobs: int | None
) -> list[Source]:
    """Return the sources that the setting `estimators` of a `RuleStackingClassifier` means."""
    names = tuple(names)
    if isinstance(estimators, Mapping):
        return [
            _source_of(name, each, names, prefit, n_jobs)
            for name, each in estimators.items()
            if each is not None
        ]
    if prefit:
        if not hasattr(estimators, "predict_proba"):
            raise InputError(
                "RuleStackingClassifier: with prefit=True, estimators must be a fitted model of all class"
                f" variables or a mapping of names to fitted classifiers, found {estimators!r}."
            )
        return [fitted_source(names, estimators)]
    if isinstance(estimators, JointClassifier):
        return [Source(names, estimators)]
    model = MultiOutputModel(estimators) if multi_output else IndependentClassifier(estimators, n_jobs=n_jobs)
    return [Source(names, model)]


def _source_of(name: Any, given: Any, names: tuple[str, ...], prefit: bool, n_jobs: int | None) -> Source:
    if str(name) not in names:
        raise InputError(
            f"The mapping of estimators names {name!r}, which is no class variable; these are"
            f" {listing(names)}."
        )
    if isinstance(given, tuple) and len(given) != 2:
        raise InputError(
            f"The estimator of {name!r} must be a classifier or (classifier, columns), found {given!r}."
        )
    estimator, columns = given if isinstance(given, tuple) else (given, None)
    if prefit:
        return fitted_source((str(name),), estimator, columns)
    if isinstance(estimator, JointClassifier):
        return Source((str(name),), estimator, columns)
    default = isinstance(estimator, str) and estimator == "default"
    return Source((str(name),), IndependentClassifier(None if default else estimator, n_jobs=n_jobs), columns)
