"""Learners of trees: their interface, the one for any scikit-learn classifiers, and the choice of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, final, get_args

import numpy as np

from tuplet.core.parameters import Number, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.factor import Factor
from tuplet.local.base import LocalModel
from tuplet.local.families import FamilyScorer, Parametrisation
from tuplet.models.trees.edge_scores import EdgeScores
from tuplet.models.trees.logistic import LogisticTreeLearner, TreeSettings
from tuplet.space.features.inputs import Features, n_rows
from tuplet.structure.candidates import Family
from tuplet.structure.parents import ParentSets

TREE_PARAMETERS = declare(
    "columns estimator n_folds random_state n_jobs",
    parametrisation=get_args(Parametrisation),
    C=("auto", Number(above=0)),
    C_shift=("auto", Number(above=0)),
)
"""Parameters of all models of trees."""

EDGE_PARAMETERS = declare("required forbidden", screening=("auto", None, Number(above=0)))
"""Parameters of those that learn edges."""


class Tree(Protocol):
    """A fitted tree with any local models."""

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


class TreeLearner(Protocol):
    """Learns trees from one set of rows with different weights."""

    @property
    def strengths(self) -> tuple[Any, Any, Any]:
        """`C_`, `C_shared_` and `C_shift_` of `TreeClassifier`; None where they do not apply."""

    def edges(self, weight: Floats | None) -> EdgeScores:
        """Score the candidate edges with rows weighted by `weight` (n,)."""

    def fit(self, parents: ParentSets, weight: Floats | None, start: Any = None) -> Any:
        """Fit the tree with these parents; from a `start` its penalised log-likelihood never falls."""


def make_trees(
    model: Any,
    X: Features,
    codes: Codes,
    sample_weight: Floats | None,
    rng: np.random.Generator,
    learnt: Floats | None = None,
    like: TreeLearner | None = None,
    groups: Codes | None = None,
) -> TreeLearner:
    """Return the learner of trees for the settings of a model.

    Parameters
    ----------
    model : TreeClassifier, or a model with its settings
    X, codes, sample_weight
        As `_fit` gets them.
    rng : Generator
    learnt : array, shape (n,), optional
        Shares of the rows to learn from; see `LogisticTreeLearner`.
    like : TreeLearner, optional
        An earlier learner, whose choices are kept.
    groups : int array, shape (n,), optional
        Rows of one group are held out together.
    """
    cards, n_folds = model.space_.cards, int(model.n_folds)
    if isinstance(like, _ClassifierTreeLearner):
        return replace(like, X=X, codes=codes, groups=groups)
    if model.estimator is None:
        # One C for all models without parents, unless held-out rows decide.
        strengths = (model.C, model.C, model.C_shift) if like is None else like.strengths
        screening = getattr(model, "screening", None)
        settings = TreeSettings(model.parametrisation, *strengths, n_folds, screening, model.n_jobs)
        return LogisticTreeLearner(X, codes, cards, sample_weight, settings, learnt, groups)
    estimators = model._estimators(model.space_.names)
    seed = int(rng.integers(2**31 - 1))
    return _ClassifierTreeLearner(
        X, codes, cards, estimators, model.parametrisation, n_folds, seed, model.n_jobs, groups
    )


def random_tree(m: int, rng: np.random.Generator) -> ParentSets:
    """Draw a tree: in a random order of the variables, each gets one of those before it as its parent."""
    order = rng.permutation(m).tolist()
    parents: list[tuple[int, ...]] = [()] * m
    for place, child in enumerate(order[1:], 1):
        parents[child] = (order[int(rng.integers(place))],)
    return tuple(parents)


@final
@dataclass(frozen=True)
class ClassifierTree:
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
        """See `Tree.penalty`: that of any classifier is unknown."""
        return 0.0

    @property
    def log_likelihood(self) -> Floats:
        """See `Tree.log_likelihood`."""
        assert self.own is not None
        return np.asarray(self.own.sum(axis=0))

    def without_rows(self) -> ClassifierTree:
        """See `Tree.without_rows`."""
        return replace(self, own=None)

    def joint(self, X: Features) -> FactorGraph:
        """See `Tree.joint`."""
        factors = [
            Factor((*members, i), model.log_table(X))
            for i, (members, model) in enumerate(zip(self.parents, self.models, strict=True))
        ]
        return FactorGraph(self.cards, factors, n=n_rows(X), log_normalizer=0.0)


@final
@dataclass(frozen=True)
class _ClassifierTreeLearner:
    """Learns trees with any classifiers; see `TreeLearner`.

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
    groups : int array, shape (n,), or None
    """

    X: Features
    codes: Codes
    cards: tuple[int, ...]
    estimators: Sequence[Any]
    parametrisation: Parametrisation
    n_folds: int
    seed: int
    n_jobs: int | None
    groups: Codes | None

    @property
    def strengths(self) -> tuple[None, None, None]:
        """See `TreeLearner.strengths`."""
        return None, None, None

    def edges(self, weight: Floats | None) -> EdgeScores:
        """See `TreeLearner.edges`; a single row cannot be held out, so its edges have no score."""
        m = len(self.cards)
        if len(self.codes) < 2:
            return EdgeScores(np.zeros(m), np.full((m, m), -np.inf))
        pairs = [(j, i) for i in range(m) for j in range(m) if i != j]
        families = [Family(i, (), -np.inf) for i in range(m)] + [Family(i, (j,), -np.inf) for j, i in pairs]
        scores = np.array(list(self._scorer(weight, "cv").score(families)))
        given = np.full((m, m), -np.inf)
        given[tuple(np.array(pairs, dtype=np.intp).reshape(-1, 2).T)] = scores[m:]
        return EdgeScores(scores[:m], given)

    def fit(
        self, parents: ParentSets, weight: Floats | None, start: ClassifierTree | None = None
    ) -> ClassifierTree:
        """See `TreeLearner.fit`."""
        scorer, models, own = self._scorer(weight, "aic"), [], np.empty((len(self.cards), len(self.codes)))
        for i, members in enumerate(parents):
            model, y = scorer.model(i, members), self.codes[:, i]
            known = y != UNKNOWN
            table = model.log_proba(self.X, self.codes[:, list(members)])
            own[i] = np.where(known, table[np.arange(len(y)), np.where(known, y, 0)], 0.0)
            if start is not None and start.own is not None and _falls(start.own[i], own[i], weight):
                model, own[i] = start.models[i], start.own[i]
            models.append(model)
        return ClassifierTree(parents, self.cards, tuple(models), own)

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
            groups=self.groups,
            n_jobs=self.n_jobs,
            random_state=self.seed,
        )


def _falls(before: Floats, after: Floats, weight: Floats | None) -> bool:
    """Return whether a weighted sum of log-probabilities (n,) is lower after than before."""
    return float(np.sum(after - before) if weight is None else weight @ (after - before)) < 0.0
