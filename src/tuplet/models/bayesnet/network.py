"""The fitted network: views of the features, local models that become factors once x is known, and the graph.

Classifiers see the features with or without the discrete ones, which may also be parents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.inference.factor import Factor
from tuplet.local.base import LocalModel
from tuplet.models.bayesnet.mixed_families import Role
from tuplet.space.features.discrete import DiscreteColumns, as_categories, declared_columns, named_columns
from tuplet.space.features.encoding import matrix_for
from tuplet.space.features.estimators import name_of, takes_frames
from tuplet.space.features.inputs import Features, holds_numbers, n_rows, take_rows
from tuplet.space.features.matrix import NumberMatrix
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.parents import Edge, ParentSets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        return as_categories(X, self.numbers, self.names) if self.numbers else X

    def after_reading(self, X: Features, read: Features) -> ColumnKinds:
        """Return the same of the columns that those of X have become: discrete ones may be numbers now."""
        if not isinstance(read, pd.DataFrame):
            return self
        new = {str(name): j for j, name in enumerate(read.columns)}
        discrete = tuple(
            new[self.names[j]]
            for j in self.discrete
            if self.names[j] in new and (holds_numbers(X.iloc[:, j]) or not _is_number(read, self.names[j]))
        )
        return ColumnKinds(tuple(new), discrete, ())


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
    whole : NumberMatrix or None
        Learned from all columns; None if the estimators take them as they are.
    rest : NumberMatrix or None
        Learned from the other columns; None if there are none, or estimators take them as they are.
    """

    columns: ColumnKinds
    discrete: DiscreteColumns
    others: tuple[int, ...]
    whole: NumberMatrix | None
    rest: NumberMatrix | None

    @classmethod
    def learn(
        cls, X: Features, columns: ColumnKinds, whole: NumberMatrix | None, estimators: Sequence[Any]
    ) -> FeatureViews:
        """Learn from the training rows, whose columns are numbers and categories."""
        discrete = DiscreteColumns.learn_values(X, columns.names, columns.discrete)
        others = tuple(j for j in range(X.shape[1]) if j not in set(columns.discrete))
        rest = None
        if columns.discrete and others:
            rest = matrix_for(_part(X, others), estimators)
            rest = None if rest is None else rest.learn(_part(X, others))
        return cls(columns, discrete, others, whole, rest)

    def inputs(self, X: Features, role: Role) -> Features:
        """Return what classifiers see of X where discrete features have a role."""
        if role != "parents" or not self.columns.discrete:
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


def _is_number(frame: pd.DataFrame, name: str) -> bool:
    return holds_numbers(frame[name])


def _part(X: Features, columns: Sequence[int]) -> Features:
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, list(columns)]
    return X[:, list(columns)] if not sparse.issparse(X) else X


# -- the network -------------------------------------------------------------------------------------------


class NetworkScorer(Protocol):
    """What a network is made of, once its graph is known; see `MixedFamilyScorer`."""

    def model(self, child: int, parents: Sequence[int], *, features: bool = True) -> LocalModel:
        """Return the model of a child, fitted to all rows."""

    def role_of(self, child: int) -> Role:
        """Return how discrete features enter for a child."""

    def strengths(self, child: int, parents: Sequence[int]) -> dict[int, float]:
        """Return the discrete features that are parents of a child, with their strengths."""


@dataclass(frozen=True)
class FittedNetwork:
    """Models of all class variables.

    Parameters
    ----------
    views : FeatureViews
    parents : tuple of tuples of int
        Class variables that are parents of each.
    models : tuple of LocalModel
        With the class parents first and the features that are parents behind them.
    fallbacks : tuple of LocalModel or None
        The same with the class parents alone, for rows in which a feature is `UNKNOWN`; None where no
        feature is a parent.
    roles : tuple of str
        How discrete features enter.
    features : tuple of dicts of int to float
        Discrete features that are parents of each class variable, with their strengths.
    """

    views: FeatureViews
    parents: ParentSets
    models: tuple[LocalModel, ...]
    fallbacks: tuple[LocalModel | None, ...]
    roles: tuple[Role, ...]
    features: tuple[dict[int, float], ...]

    @classmethod
    def fit(cls, views: FeatureViews, parents: ParentSets, scorer: NetworkScorer) -> FittedNetwork:
        """Fit the models of a graph to all rows."""
        families = list(enumerate(parents))
        features = tuple(scorer.strengths(child, given) for child, given in families)
        return cls(
            views,
            parents,
            tuple(scorer.model(child, given) for child, given in families),
            tuple(
                scorer.model(child, given, features=False) if features[child] else None
                for child, given in families
            ),
            tuple(scorer.role_of(child) for child, _ in families),
            features,
        )

    @property
    def strengths(self) -> list[dict[str, float]]:
        """Names of the features that are parents of each class variable, with their strengths."""
        names = self.views.discrete.names
        return [{names[f]: value for f, value in some.items()} for some in self.features]

    def factors(self, X: Features) -> list[Factor]:
        """Return p(y_j | x, y_parents) of all rows as one factor for each class variable."""
        codes = self.views.codes(X)
        inputs = {role: self._inputs(X, role) for role in set(self.roles)}
        return [
            Factor(
                (*given, child), self._log_table(child, inputs[role], codes[:, list(self.features[child])])
            )
            for child, (given, role) in enumerate(zip(self.parents, self.roles, strict=True))
        ]

    def _inputs(self, X: Features, role: Role) -> Features:
        """What the models of a role take, computed once for all of them."""
        return self.models[self.roles.index(role)].prepare(self.views.inputs(X, role))

    def _log_table(self, child: int, X: Features, observed: Codes) -> Floats:
        """Table of a class variable for rows whose feature parents have these codes (n, f)."""
        model, fallback = self.models[child], self.fallbacks[child]
        if fallback is None:
            return model.log_table(X)
        known = (observed != UNKNOWN).all(axis=1)
        if known.all():
            return model.log_table(X, observed)
        answer = np.empty((*fallback.parent_cards_, fallback.child_card_, n_rows(X)))
        if known.any():
            answer[..., known] = model.log_table(take_rows(X, known), observed[known])
        answer[..., ~known] = fallback.log_table(take_rows(X, ~known))
        return answer

    def observed(self, X: Features, row: int) -> tuple[tuple[str, ...], ...]:
        """Return the values of feature parents in a row, such as "sex=male", for each class variable."""
        discrete = self.views.discrete
        codes = self.views.codes(take_rows(X, np.array([row])))[0]
        return tuple(
            tuple(f"{discrete.names[f]}={discrete.state(f, int(codes[f]))}" for f in some)
            for some in self.features
        )


@dataclass(frozen=True)
class Graph:
    """Class variables, the features that are parents of some of them, and the strengths of all edges.

    Parameters
    ----------
    names : tuple of str
        Of the m class variables.
    features : tuple of str
        Names of features that are parents, numbered from m.
    strengths : mapping of (parent, child) to float
        All edges.
    """

    names: tuple[str, ...]
    features: tuple[str, ...]
    strengths: Mapping[Edge, float]

    @classmethod
    def make(
        cls,
        names: Sequence[str],
        parents: ParentSets,
        scores: LocalScores,
        features: Sequence[Mapping[str, float]],
    ) -> Graph:
        """Put the class parents, with what their scores mean, and features together.

        Parameters
        ----------
        features : sequence of mappings of str to float
            Features that are parents of each class variable, with their strengths.
        """
        used = tuple(dict.fromkeys(name for some in features for name in some))
        strengths: dict[Edge, float] = {}
        for child, given in enumerate(parents):
            strengths |= {(parent, child): _strength(scores, child, given, parent) for parent in given}
            for name, value in features[child].items():
                strengths[len(parents) + used.index(name), child] = value
        return cls(tuple(names), used, strengths)

    def table(self) -> pd.DataFrame:
        """Return a line for each edge, the strongest first."""
        m, every = len(self.names), (*self.names, *self.features)
        lines = [
            (every[parent], every[child], value, "class" if parent < m else "feature")
            for (parent, child), value in self.strengths.items()
        ]
        frame = pd.DataFrame(lines, columns=["parent", "child", "strength", "kind"])
        return frame.sort_values("strength", ascending=False, ignore_index=True, kind="stable")

    def plot(self, title: str, ax: Axes | None) -> Axes:
        """Draw the graph; features have a colour of their own."""
        n = len(self.names) + len(self.features)
        parents = tuple(tuple(sorted(p for p, c in self.strengths if c == child)) for child in range(n))
        groups = ["class"] * len(self.names) + ["feature"] * len(self.features)
        return delegate(
            "plot_graph",
            parents,
            (*self.names, *self.features),
            strengths=self.strengths,
            groups=groups if self.features else None,
            title=title,
            ax=ax,
        )


def _strength(scores: LocalScores, child: int, parents: tuple[int, ...], parent: int) -> float:
    """What the score of a child loses without one of its parents; NaN if that was not allowed."""
    smaller = [each for each in scores.candidates(child) if set(each[0]) < set(parents)]
    without = max((value for given, value in smaller if parent not in given), default=np.nan)
    return scores.value(child, parents) - without
