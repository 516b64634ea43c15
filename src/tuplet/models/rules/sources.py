"""Where beliefs about class variables come from: classifiers of single variables, models of all, fitted ones.

A `BeliefSource` is a model with the class variables and columns of X that it serves; `held_out_beliefs` are
the beliefs of sources about rows that they were not fitted to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tuplet.core.exceptions import InputError, LabelError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.cross_fitting import cross_fit, held_out_only, inner_folds
from tuplet.local.multi_output import Output, output_labels, read_outputs
from tuplet.local.row_samples import sample_rows
from tuplet.models.base import JointClassifier
from tuplet.models.independent import IndependentClassifier
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.features.estimators import chooses_columns, name_of, weight_arguments
from tuplet.space.features.inputs import Features, n_rows, take_rows

_FLOOR = 1e-6
"""Belief that is spread over all categories of a fitted classifier: no label is impossible."""


@dataclass(frozen=True, eq=False)
class BeliefSource:
    """A model of some class variables, fitted to some columns of X.

    Parameters
    ----------
    names : tuple of str
        The class variables.
    model : JointClassifier, or a fitted classifier
    columns : list, name, position or slice, optional
        Names or positions of its columns of X; all of them if None.
    prefit : bool
        Whether the model was fitted elsewhere.
    outputs : tuple of str
        All variables that the model predicts, in its order; `names` are those that are used.
    """

    names: tuple[str, ...]
    model: Any
    columns: Any = None
    prefit: bool = False
    outputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _as_columns(self.columns, self.names))
        if not self.outputs:
            object.__setattr__(self, "outputs", self.names)

    def view(self, X: Features) -> Features:
        """Return the columns of the model."""
        if self.columns is None:
            return X
        columns, framed = self.columns, isinstance(X, pd.DataFrame)
        expects = f"The classifier of {listing(self.names)} expects the columns {_listed(columns)}"
        by_position = isinstance(columns, slice)
        if not framed and not by_position and any(isinstance(column, str) for column in columns):
            raise InputError(f"{expects}, but X has no names; pass a frame, or positions.")
        try:
            if not framed:
                return X[:, columns]
            by_name = not by_position and all(column in X.columns for column in columns)
            return X[columns] if by_name else X.iloc[:, columns]
        except (IndexError, ValueError, KeyError, TypeError):
            has = listing(X.columns) if framed else f"{X.shape[1]} columns"
            raise InputError(f"{expects}; X has {has}.") from None

    def check_columns(self, names: Any, n_columns: int) -> None:
        """Refuse columns that X, with these names if it has any, does not have."""
        nothing = np.empty((0, n_columns))
        part = self.view(nothing if names is None else pd.DataFrame(nothing, columns=names))
        _check_width(self.model, part, self.names)

    def check_labels(self, space: ClassSpace) -> None:
        """Refuse a fitted model with labels that the space does not have."""
        for name, labels in zip(self.outputs, _labels(self.model, len(self.outputs)), strict=True):
            if name in self.names and labels is not None:
                _codes_of(space, name, labels)

    def without(self, name: str) -> BeliefSource | None:
        """Return the source without a class variable, None if no other is left."""
        if name not in self.names:
            return self
        left = tuple(each for each in self.names if each != name)
        return replace(self, names=left) if left else None

    def fitted(
        self, X: Features, space: ClassSpace, codes: Codes, weights: Any, groups: Codes | None = None
    ) -> BeliefSource:
        """Return the source with its model fitted to codes (n, m) of all variables, if it is not."""
        if self.prefit:
            return self
        places = [space.position(name) for name in self.names]
        model = clone(self.model)._fit_codes(
            self.view(X), space.select(self.names), codes[:, places], weights, groups
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
        outputs = _outputs(self.model, part, len(self.outputs))
        return {
            name: _aligned(space, name, *output)
            for name, output in zip(self.outputs, outputs, strict=True)
            if name in self.names
        }


def _as_columns(columns: Any, names: Sequence[str]) -> Any:
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


def _listed(columns: Any) -> str:
    return repr(columns) if isinstance(columns, slice) else listing(columns)


def _check_width(model: Any, X: Features, names: Sequence[str]) -> None:
    wanted = getattr(model, "n_features_in_", X.shape[1])
    if wanted != X.shape[1] and not chooses_columns(model):
        raise InputError(
            f"The fitted classifier of {listing(names)} was fitted to {wanted} columns, but gets"
            f" {X.shape[1]}; pass the columns of X that it uses."
        )


def _outputs(model: Any, X: Features, n_variables: int) -> list[Output]:
    """Return the probabilities of each variable of a fitted model."""
    if not isinstance(model, JointClassifier):
        return read_outputs(model, X, n_variables)
    tables = model._joint_of(X).marginals()
    return [Output(*pair) for pair in zip(tables, model.space_.categories, strict=True)]


def _labels(model: Any, n_variables: int) -> list[Any]:
    """Return the labels of each variable of a fitted model, None where it does not list them."""
    if isinstance(model, JointClassifier):
        return list(model.space_.categories)
    return output_labels(model, n_variables)


def _codes_of(space: ClassSpace, name: str, labels: Any) -> Any:
    """Return the codes of the labels of a fitted classifier."""
    try:
        return space.codes_of(name, list(labels))
    except LabelError as error:
        raise LabelError(
            f"The fitted classifier of {name!r} has labels that the model does not have. {error} If the data"
            " lack some, declare them: pandas.Categorical(y, categories=[...])."
        ) from None


def _aligned(space: ClassSpace, name: str, table: Floats, labels: Any) -> Floats:
    """Return probabilities in the order of the space's categories, floored."""
    card = space.cards[space.position(name)]
    columns = np.arange(card) if labels is None else _codes_of(space, name, labels)
    if table.shape[1] != len(columns):
        raise InputError(
            f"The fitted classifier of {name!r} returned probabilities of shape {table.shape}, not"
            f" ({len(table)}, {len(columns)})."
        )
    answer = np.zeros((len(table), card))
    answer[:, columns] = table
    return (1 - _FLOOR) * answer + _FLOOR / card


def fitted_source(names: tuple[str, ...], model: Any, columns: Any = None) -> BeliefSource:
    """Return the source of a model that was fitted elsewhere.

    A model of Tuplet is matched by the names of its variables, of which it may have more, or by their order.
    """
    if not hasattr(model, "predict_proba"):
        raise InputError(f"{name_of(model)} has no predict_proba; base classifiers must give probabilities.")
    if not _is_fitted(model):
        raise InputError(
            f"The classifier of {listing(names)}, {name_of(model)}, is not fitted; fit it first."
        )
    if not isinstance(model, JointClassifier):
        return BeliefSource(names, model, columns, prefit=True)
    outputs = model.space_.names
    if not set(names) <= set(outputs):
        if len(outputs) != len(names):
            raise InputError(
                f"The fitted model of {listing(names)} has the class variables {listing(outputs)}; the names"
                " must be the same."
            )
        outputs = names
    return BeliefSource(names, model, columns, prefit=True, outputs=outputs)


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
) -> list[BeliefSource]:
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
        return [BeliefSource(names, estimators)]
    model = MultiOutputModel(estimators) if multi_output else IndependentClassifier(estimators, n_jobs=n_jobs)
    return [BeliefSource(names, model)]


def _source_of(
    name: Any, given: Any, names: tuple[str, ...], prefit: bool, n_jobs: int | None
) -> BeliefSource:
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
        return BeliefSource((str(name),), estimator, columns)
    default = isinstance(estimator, str) and estimator == "default"
    return BeliefSource(
        (str(name),), IndependentClassifier(None if default else estimator, n_jobs=n_jobs), columns
    )


@final
class MultiOutputModel(JointClassifier):
    """One classifier that predicts all class variables at once: a forest, neighbours, a multi-label network.

    It learns from rows whose labels are all known, and its outputs are independent given x. One pseudo-row of
    the training marginal keeps probabilities away from zero, as in `SmoothedClassifier`.

    Parameters
    ----------
    estimator : classifier
        Its `fit` takes codes (n, m); for its `predict_proba` see `tuplet.local.multi_output`.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [["a", 0], ["a", 0], ["b", 1], ["b", 1]]
    >>> MultiOutputModel(DecisionTreeClassifier()).fit(X, y).predict([[0.5], [2.5]])
    array([['a', 0],
           ['b', 1]], dtype=object)
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        full = np.flatnonzero((codes != UNKNOWN).all(axis=1))
        if not len(full):
            raise InputError(
                f"{name_of(self.estimator)} predicts all class variables at once and needs rows whose labels"
                " are all known; there is none. Pass one classifier for each class variable."
            )
        some = None if sample_weight is None else sample_weight[full]
        self.model_ = clone(self.estimator)
        target = codes[full] if codes.shape[1] > 1 else codes[full, 0]
        self.model_.fit(take_rows(X, full), target, **weight_arguments(self.model_, some))
        self.counts_ = [
            np.bincount(codes[full, j], some, minlength=card) for j, card in enumerate(self.space_.cards)
        ]

    def _predict_joint(self, X: Features) -> JointDistribution:
        tables = []
        for output, counts in zip(read_outputs(self.model_, X, len(self.counts_)), self.counts_, strict=True):
            total = counts.sum()
            codes = range(len(counts)) if output.labels is None else output.labels
            table = np.tile((counts + 1) / (total + len(counts)), (n_rows(X), 1))
            table[:, np.asarray(codes, dtype=np.intp)] += total * output.table
            tables.append(np.log(table / table.sum(axis=1, keepdims=True)))
        return FactorGraph.independent(tables)


# -- rows held out ------------------------------------------------------------------------------------------


class HeldOutBeliefs(NamedTuple):
    """Rows (r,), probabilities (r, k_j) of class variables by name, and weights (r,) or None.

    A row whose weight lies in several folds comes several times, each with its part of the weight.
    """

    rows: npt.NDArray[np.intp]
    beliefs: dict[str, Floats]
    weights: Floats | None


def held_out_beliefs(
    sources: Sequence[BeliefSource],
    space: ClassSpace,
    X: Features,
    codes: Codes,
    sample_weight: Floats | None,
    n_folds: int,
    n_learned: int | None = None,
    groups: Codes | None = None,
) -> HeldOutBeliefs:
    """Return the beliefs of sources about rows when fitted to the other folds, or fitted before.

    With more than `n_learned` rows, those of a sample of about so many. Rows of one of the `groups` (n,) are
    held out together.
    """
    sample = sample_rows(X, codes, sample_weight, n_learned)
    if all(source.prefit for source in sources):
        return HeldOutBeliefs(
            sample.rows, _beliefs(sources, take_rows(X, sample.rows), space), sample.weights
        )

    def fit(rows: npt.NDArray[np.intp], weights: Floats | None) -> list[BeliefSource]:
        together = None if groups is None else groups[rows]
        given = take_rows(X, rows), space, codes[rows], weights, together
        return [source.fitted(*given) for source in sources]

    folds = inner_folds(X, codes, sample_weight, n_folds, space, groups=groups)
    held = cross_fit(
        held_out_only(folds, sample, sample_weight),
        fit,
        lambda fitted, rows: _beliefs(fitted, take_rows(X, rows), space),
    )
    names = held.predictions[0] if held.predictions else {}
    merged = {name: np.vstack([part[name] for part in held.predictions]) for name in names}
    return HeldOutBeliefs(held.rows, merged, held.weights)


def _beliefs(sources: Sequence[BeliefSource], X: Features, space: ClassSpace) -> dict[str, Floats]:
    parts = [source.beliefs(X, space) for source in sources]
    return {name: table for part in parts for name, table in part.items()}
