"""Where beliefs about class variables come from: classifiers of their own, models of all, fitted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from tuplet.exceptions import InputError
from tuplet.local.estimators import name_of
from tuplet.local.inputs import Features, n_rows
from tuplet.models.base import JointClassifier
from tuplet.models.independent import IndependentClassifier
from tuplet.models.rules.multi_output import MultiOutputModel
from tuplet.space import ClassSpace
from tuplet.space.containers import listing
from tuplet.typing import Codes, Floats

__all__ = ["Source", "make_sources"]

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
    columns : list, optional
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
        if not self.spoken:
            object.__setattr__(self, "spoken", self.names)

    def view(self, X: Features) -> Features:
        """Return the columns that the model sees."""
        if self.columns is None:
            return X
        columns = list(self.columns)
        if not isinstance(X, pd.DataFrame):
            if any(isinstance(column, str) for column in columns):
                raise InputError(
                    f"The classifier of {listing(self.names)} wants the columns {listing(columns)}, but X has"
                    " no names; pass a frame, or positions."
                )
            return X[:, columns]
        try:
            by_name = all(column in X.columns for column in columns)
            return X[columns] if by_name else X.iloc[:, columns]
        except (IndexError, ValueError, KeyError, TypeError):
            raise InputError(
                f"The classifier of {listing(self.names)} wants the columns {listing(columns)}; X has"
                f" {listing(X.columns)}."
            ) from None

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
        tables, classes = _ask(self.model, part, len(self.spoken))
        return {
            name: _aligned(space, name, table, labels, n_rows(part))
            for name, table, labels in zip(self.spoken, tables, classes, strict=True)
            if name in self.names
        }


def _ask(model: Any, X: Features, n_variables: int) -> tuple[list[Any], list[Any]]:
    """Return probabilities and labels of each variable of a fitted model."""
    if isinstance(model, JointClassifier):
        return model._joint_of(X).marginals(), list(model.space_.categories)
    if not hasattr(model, "predict_proba"):
        raise InputError(f"{name_of(model)} has no predict_proba; base classifiers must tell probabilities.")
    proba, labels = model.predict_proba(X), getattr(model, "classes_", None)
    if isinstance(proba, list):
        return proba, list(labels) if labels is not None else [None] * len(proba)
    if n_variables == 1:
        return [proba], [labels]
    # Of a multi-label network: one column for each label, the probability that it is 1.
    return [np.column_stack([1 - column, column]) for column in np.asarray(proba).T], [[0, 1]] * n_variables


def _aligned(space: ClassSpace, name: str, table: Any, labels: Any, n: int) -> Floats:
    """Return probabilities in the order of the space's categories, floored."""
    j = space.position(name)
    table = np.asarray(table, dtype=float)
    columns = np.arange(space.cards[j]) if labels is None else space.codes_of(name, list(labels))
    if table.shape != (n, len(columns)):
        raise InputError(
            f"The fitted classifier of {name!r} gave probabilities of shape {table.shape}, not"
            f" ({n}, {len(columns)})."
        )
    answer = np.zeros((n, space.cards[j]))
    answer[:, columns] = table
    answer /= answer.sum(axis=1, keepdims=True)
    return (1 - _FLOOR) * answer + _FLOOR / space.cards[j]


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
        return [Source(names, estimators, prefit=True)]
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
    estimator, columns = given if isinstance(given, tuple) else (given, None)
    if isinstance(columns, (str, int)):
        columns = [columns]
    if prefit or isinstance(estimator, JointClassifier):
        return Source((str(name),), estimator, columns, prefit)
    default = isinstance(estimator, str) and estimator == "default"
    return Source((str(name),), IndependentClassifier(None if default else estimator, n_jobs=n_jobs), columns)
