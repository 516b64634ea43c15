"""Trees whose local models are any scikit-learn classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, Self, final

import numpy as np

from tuplet.inference import Factor
from tuplet.joint import FactorGraph
from tuplet.local.base import LocalModel
from tuplet.local.criteria import Parametrisation
from tuplet.local.families import FamilyScorer
from tuplet.local.inputs import Features, n_rows
from tuplet.models.trees.gains import EdgeScores
from tuplet.structure import ParentSets
from tuplet.typing import UNKNOWN, Codes, Floats


class Tree(Protocol):
    """A fitted tree, whatever its local models are."""

    @property
    def parents(self) -> ParentSets:
        """At most one parent for each class variable."""

    @property
    def penalty(self) -> float:
        """What its parameters cost beside the log-likelihood that they were fitted to."""

    @property
    def log_likelihood(self) -> Floats:
        """Log-probability (n,) of the labels of each training row."""

    def without_rows(self) -> Self:
        """Return what prediction needs."""

    def joint(self, X: Features) -> FactorGraph:
        """Joint distribution of rows X."""


class Trees(Protocol):
    """Learns trees from one set of rows with different weights."""

    @property
    def strengths(self) -> tuple[Any, Any, Any]:
        """`C_`, `C_shared_` and `C_shift_` of `TreeClassifier`; None where they do not apply."""

    def edges(self, weight: Floats | None) -> EdgeScores:
        """Score the candidate edges with rows weighted by `weight` (n,)."""

    def fit(self, parents: ParentSets, weight: Floats | None, start: Any = None) -> Any:
        """Fit the tree with these parents; from a `start` its penalised log-likelihood never falls."""


@final
@dataclass(frozen=True)
class AnyTree:
    """A fitted tree; see `Tree`.

    Parameters
    ----------
    parents : ParentSets
    cards : tuple of int
    models : tuple of LocalModel
    own : array, shape (m, n), optional
        Log-probabilities of the training rows' labels.
    """

    parents: ParentSets
    cards: tuple[int, ...]
    models: tuple[LocalModel, ...]
    own: Floats | None = None

    @property
    def structure(self) -> ParentSets:
        """See `Component.structure`."""
        return self.parents

    @property
    def penalty(self) -> float:
        """See `Tree.penalty`: nothing is known of it."""
        return 0.0

    @property
    def log_likelihood(self) -> Floats:
        """See `Tree.log_likelihood`."""
        assert self.own is not None
        return np.asarray(self.own.sum(axis=0))

    def without_rows(self) -> AnyTree:
        """See `Tree.without_rows`."""
        return replace(self, own=None)

    def joint(self, X: Features) -> FactorGraph:
        """See `Tree.joint`."""
        factors = [
            Factor((*members, i), model.log_table(X))
            for i, (members, model) in enumerate(zip(self.parents, self.models, strict=True))
        ]
        return FactorGraph(self.cards, factors, n=n_rows(X), log_normalizer=0.0)


class _Edge(NamedTuple):
    child: int
    parents: tuple[int, ...]
    floor: float = -np.inf


@final
@dataclass(frozen=True)
class AnyTrees:
    """Learns trees with any classifiers; see `Trees`.

    Parameters
    ----------
    X : features, n rows
    codes : int array, shape (n, m)
    cards : tuple of int
    estimators : sequence of classifiers or None
        One for each class variable.
    parametrisation : {"split", "inputs"}
    n_folds : int
    seed : int
    n_jobs : int, optional
    """

    X: Features
    codes: Codes
    cards: tuple[int, ...]
    estimators: Sequence[Any]
    parametrisation: Parametrisation
    n_folds: int
    seed: int
    n_jobs: int | None

    @property
    def strengths(self) -> tuple[None, None, None]:
        """See `Trees.strengths`."""
        return None, None, None

    def edges(self, weight: Floats | None) -> EdgeScores:
        """See `Trees.edges`; a single row cannot be held out, so it says nothing."""
        m = len(self.cards)
        if len(self.codes) < 2:
            return EdgeScores(np.zeros(m), np.full((m, m), -np.inf))
        pairs = [(j, i) for i in range(m) for j in range(m) if i != j]
        families = [_Edge(i, ()) for i in range(m)] + [_Edge(i, (j,)) for j, i in pairs]
        scores = np.array(list(self._scorer(weight, "cv").score(families)))
        given = np.full((m, m), -np.inf)
        given[tuple(np.array(pairs, dtype=np.intp).reshape(-1, 2).T)] = scores[m:]
        return EdgeScores(scores[:m], given)

    def fit(self, parents: ParentSets, weight: Floats | None, start: AnyTree | None = None) -> AnyTree:
        """See `Trees.fit`."""
        scorer, models, own = self._scorer(weight, "aic"), [], np.empty((len(self.cards), len(self.codes)))
        for i, members in enumerate(parents):
            model, y = scorer.model(i, members), self.codes[:, i]
            known = y != UNKNOWN
            table = model.log_proba(self.X, self.codes[:, list(members)])
            own[i] = np.where(known, table[np.arange(len(y)), np.where(known, y, 0)], 0.0)
            if start is not None and start.own is not None and _falls(start.own[i], own[i], weight):
                model, own[i] = start.models[i], start.own[i]
            models.append(model)
        return AnyTree(parents, self.cards, tuple(models), own)

    def _scorer(self, weight: Floats | None, score: Literal["cv", "aic"]) -> FamilyScorer:
        return FamilyScorer(
            self.X,
            self.codes,
            self.cards,
            estimators=self.estimators,
            parametrisation=self.parametrisation,
            score=score,
            n_folds=max(2, min(self.n_folds, len(self.codes))),
            sample_weight=weight,
            n_jobs=self.n_jobs,
            random_state=self.seed,
        )


def _falls(before: Floats, after: Floats, weight: Floats | None) -> bool:
    """Return whether a weighted sum of log-probabilities (n,) is lower after than before."""
    return float(np.sum(after - before) if weight is None else weight @ (after - before)) < 0.0
