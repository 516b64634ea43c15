"""The fitted network: local models that become factors once x is known, and its graph as tables and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tuplet.core.delegates import delegate
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.inference.factor import Factor
from tuplet.local.base import LocalModel
from tuplet.models.bayesnet.features import FeatureViews, MixedFamilyScorer, Role
from tuplet.space.features.inputs import Features, n_rows, take_rows
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.parents import Edge, ParentSets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    def fit(cls, views: FeatureViews, parents: ParentSets, scorer: MixedFamilyScorer) -> FittedNetwork:
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
        inputs = {role: self.views.inputs(X, role) for role in set(self.roles)}
        return [
            Factor(
                (*given, child), self._log_table(child, inputs[role], codes[:, list(self.features[child])])
            )
            for child, (given, role) in enumerate(zip(self.parents, self.roles, strict=True))
        ]

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
