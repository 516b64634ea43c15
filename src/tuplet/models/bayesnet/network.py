"""The fitted network: models of a graph, which become factors once x is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuplet.joint.inference.factor import Factor
from tuplet.local.mixed_families import MixedFamilyScorer, ObservedModel, Role
from tuplet.models.bayesnet.views import FeatureViews
from tuplet.space.features.inputs import Features, take_rows
from tuplet.structure.parents import ParentSets


@dataclass(frozen=True)
class FittedNetwork:
    """Models of all class variables.

    Parameters
    ----------
    views : FeatureViews
    parents : tuple of tuples of int
        Class variables that are parents of each.
    models : tuple of ObservedModel
    roles : tuple of str
        How discrete features enter.
    features : tuple of dicts of int to float
        Discrete features that are parents of each class variable, with their strengths.
    """

    views: FeatureViews
    parents: ParentSets
    models: tuple[ObservedModel, ...]
    roles: tuple[Role, ...]
    features: tuple[dict[int, float], ...]

    @classmethod
    def fit(cls, views: FeatureViews, parents: ParentSets, scorer: MixedFamilyScorer) -> FittedNetwork:
        """Fit the models of a graph to all rows."""
        families = list(enumerate(parents))
        return cls(
            views,
            parents,
            tuple(scorer.model(child, given) for child, given in families),
            tuple(scorer.role_of(child) for child, _ in families),
            tuple(scorer.strengths(child, given) for child, given in families),
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
        every = zip(self.parents, self.models, self.roles, self.features, strict=True)
        return [
            Factor((*given, child), model.log_table(inputs[role], codes[:, list(features)]))
            for child, (given, model, role, features) in enumerate(every)
        ]

    def observed(self, X: Features, row: int) -> tuple[tuple[str, ...], ...]:
        """Return the values of feature parents in a row, such as "sex=male", for each class variable."""
        discrete = self.views.discrete
        codes = self.views.codes(take_rows(X, np.array([row])))[0]
        return tuple(
            tuple(f"{discrete.names[f]}={discrete.state(f, int(codes[f]))}" for f in some)
            for some in self.features
        )
