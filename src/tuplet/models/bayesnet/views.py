"""The features of a Bayesian network: as inputs of classifiers, and as codes of parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes
from tuplet.local.mixed_families import Role
from tuplet.space.features.columns import takes_frames
from tuplet.space.features.discrete import DiscreteColumns, as_categories, declared_columns, named_columns
from tuplet.space.features.encoding import FeatureEncoder, encoder_for
from tuplet.space.features.estimators import name_of
from tuplet.space.features.inputs import Features, n_rows


@dataclass(frozen=True)
class ColumnKinds:
    """Names of the columns of X, and which of them are discrete features.

    Parameters
    ----------
    names : tuple of str
        Of all columns.
    discrete : tuple of int
        Positions of discrete features.
    numbers : tuple of int
        Those among them that hold numbers and that the user declared discrete: as inputs they become
        categories.
    """

    names: tuple[str, ...]
    discrete: tuple[int, ...]
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, X: Any, d: int, names: Any, named: Sequence[int | str]) -> ColumnKinds:
        """Classify the d columns of X, with `names` or None; `named` are those that the user declares."""
        known = names is not None
        every = tuple(str(name) for name in names) if known else tuple(f"x{j}" for j in range(d))
        declared, chosen = set(declared_columns(X)), set(named_columns(named, every, known))
        return cls(every, tuple(sorted(declared | chosen)), tuple(sorted(chosen - declared)))

    def declared(self, X: Features) -> Features:
        """Return X with the columns that the user declared discrete as categories."""
        return as_categories(X, self.numbers, self.names)


@dataclass(frozen=True)
class FeatureViews:
    """Two sets of inputs, with discrete features and without, and the codes of discrete features.

    Parameters
    ----------
    columns : ColumnKinds
    discrete : DiscreteColumns
        Those that may be parents.
    others : tuple of int
        Positions of the columns that are not discrete.
    whole : FeatureEncoder or None
        Learned from all columns; None if the estimators take them as they are.
    rest : FeatureEncoder or None
        Learned from the other columns; None if there are none, or estimators take them as they are.
    """

    columns: ColumnKinds
    discrete: DiscreteColumns
    others: tuple[int, ...]
    whole: FeatureEncoder | None
    rest: FeatureEncoder | None

    @classmethod
    def learn(
        cls, X: Features, columns: ColumnKinds, whole: FeatureEncoder | None, estimators: Sequence[Any]
    ) -> FeatureViews:
        """Learn from the training rows."""
        discrete = DiscreteColumns.learn_values(X, columns.names, columns.discrete)
        others = tuple(j for j in range(X.shape[1]) if j not in set(columns.discrete))
        rest = None
        if columns.discrete and others:
            rest = encoder_for(_part(X, others), estimators)
            rest = None if rest is None else rest.learn(_part(X, others))
        return cls(columns, discrete, others, whole, rest)

    def inputs(self, X: Features, role: Role) -> Features:
        """Return what classifiers see of X where discrete features have a role."""
        if role != "parents" or not self.columns.discrete:
            X = self.columns.declared(X)
            return X if self.whole is None else self.whole.apply(X)
        if not self.others:
            return np.zeros((n_rows(X), 0))
        part = _part(X, self.others)
        return part if self.rest is None else self.rest.apply(part)

    def can_part(self, estimators: Sequence[Any]) -> bool:
        """Whether discrete features can be kept from the estimators: none treats columns by itself."""
        return not self.columns.discrete or not any(e is not None and takes_frames(e) for e in estimators)

    def require_parted(self, estimators: Sequence[Any]) -> None:
        """Raise `InputError` where discrete features cannot be kept from an estimator."""
        if not self.can_part(estimators):
            own = [e for e in estimators if e is not None and takes_frames(e)]
            raise InputError(
                f"BayesNetClassifier: the pipeline of {name_of(own[0])} treats the columns of X by itself, so"
                ' none can be kept from it; choose discrete_as="both" or "inputs".'
            )

    def codes(self, X: Features) -> Codes:
        """Return the codes (n, f) of the discrete features that may be parents."""
        return self.discrete.codes(X) if self.discrete.columns else np.zeros((n_rows(X), 0), dtype=np.intp)


def _part(X: Features, columns: Sequence[int]) -> Features:
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, list(columns)]
    return X[:, list(columns)] if not sparse.issparse(X) else X
