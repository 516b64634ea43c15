"""Where the components of a mixture come from: any model that fits weighted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, final

import numpy as np
from sklearn.base import clone

from tuplet.joint import JointDistribution
from tuplet.local.estimators import seeded
from tuplet.local.inputs import Features
from tuplet.space import ClassSpace
from tuplet.typing import Codes, Floats


class Source(Protocol):
    """Proposes structures and fits components to weighted rows."""

    def propose(self, weight: Floats, seen: Sequence[Any]) -> Any:
        """Return a structure for rows of these weights (n,), not one of those seen; None if none is left."""

    def fit(self, structure: Any, weight: Floats, start: Any = None) -> Any:
        """Fit a component of this structure; from a `start` its penalised log-likelihood never falls."""


@final
@dataclass(frozen=True)
class ModelComponent:
    """A fitted model as a component; see `Component` and `ModelSource`."""

    structure: Any
    model: Any
    own: Floats | None

    @property
    def penalty(self) -> float:
        """Nothing is known of it."""
        return 0.0

    @property
    def log_likelihood(self) -> Floats:
        """Log-probability (n,) of the labels of each training row."""
        assert self.own is not None
        return self.own

    def without_rows(self) -> ModelComponent:
        """Return what prediction needs."""
        return replace(self, own=None)

    def joint(self, X: Features) -> JointDistribution:
        """Joint distribution of rows X."""
        joint: JointDistribution = self.model._joint_of(X)
        return joint


@final
class ModelSource:
    """Any `JointClassifier` with different seeds; see `Source`. A structure is an unfitted model.

    What a model draws by its `random_state`, such as the order of a chain, is its structure: it stays the
    same whenever the same seed is fitted again. What it learns, it learns anew.

    Parameters
    ----------
    model : JointClassifier
        Unfitted.
    X : features, n rows
    codes : int array, shape (n, m)
    space : ClassSpace
    rng : Generator
    """

    def __init__(
        self, model: Any, X: Features, codes: Codes, space: ClassSpace, rng: np.random.Generator
    ) -> None:
        self.model, self.X, self.codes, self.space, self.rng = model, X, codes, space, rng

    def propose(self, weight: Floats, seen: Sequence[Any]) -> Any:
        """See `Source.propose`: models of which nothing is random differ by the weights alone."""
        model = clone(self.model)
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=None)
        return seeded(model, int(self.rng.integers(2**31 - 1)))

    def fit(self, structure: Any, weight: Floats, start: ModelComponent | None = None) -> ModelComponent:
        """See `Source.fit`: a fit that is no better than the start is dropped."""
        model = clone(structure)._fit_codes(self.X, self.space, self.codes, weight)
        own = model._joint_of(self.X).log_prob(self.codes)
        if start is not None and weight @ own < weight @ start.log_likelihood:
            return start
        return ModelComponent(structure, model, own)
