"""Scores of families whose parents shift the logits of the model without parents.

They are those of trees (`TreeClassifier`) with any number of parents: the same regressions, penalties and
folds. So the best network scores no less than any tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, final

import numpy as np
import numpy.typing as npt

from tuplet.core.parallel import run_in_batches
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.penalties import ROUGHLY
from tuplet.local.shift_model import PreparedRows, ShiftFamily, ShiftModel
from tuplet.local.shifts import log_proba
from tuplet.models.bayesnet.mixed_families import Role
from tuplet.models.trees.edge_scores import EdgeScores, ScoringFold
from tuplet.models.trees.logistic import LogisticTreeLearner, TreeSettings
from tuplet.space.features.inputs import Features
from tuplet.structure.candidates import Family

_FOLDS = 3
"""As in `TreeClassifier`."""


class _Kind(NamedTuple):
    """How parents shift: each configuration by itself, or with the same slopes and effects that add up."""

    is_additive: bool
    C: float


@final
@dataclass(frozen=True)
class _HeldOut:
    """The rows of a fold, and what does not depend on the family.

    Parameters
    ----------
    fold : ScoringFold
    learnt : array, shape (n,)
        Weights of the rows to learn from.
    rows : int array, shape (h,)
        The rows that are held out.
    masses : array, shape (h,)
        Their weights.
    """

    fold: ScoringFold
    learnt: Floats
    rows: Codes
    masses: Floats

    @classmethod
    def make(cls, fold: ScoringFold, weight: Floats) -> _HeldOut:
        """Collect what is needed of rows with weights (n,)."""
        rows = np.flatnonzero(fold.held > 0)
        return cls(fold, weight * fold.kept, rows, (weight * fold.held)[rows])

    def log_likelihood(self, Z: Floats, child: int, family: ShiftFamily, kind: _Kind) -> float:
        """Log-likelihood of the held-out rows under a model that is fitted to the others.

        A row with an unknown parent has that of the model without parents.
        """
        shared, y = self.fold.shared[child], np.ascontiguousarray(family.child)
        shifts = family.fit(Z, shared, self.learnt, C=kind.C, tol=ROUGHLY)
        own = shifts.own_log_proba(Z, shared, y, family.blocks, family.card, self.rows)
        unknown = np.flatnonzero((family.blocks[self.rows] == UNKNOWN) & (y[self.rows] != UNKNOWN))
        if len(unknown):
            rows = self.rows[unknown]
            own[unknown] = log_proba(self.fold.alone[child][:, rows], family.card)[
                y[rows], np.arange(len(rows))
            ]
        return float(self.masses @ own)


@final
@dataclass(frozen=True)
class _FoldScores:
    """Held-out log-likelihoods of families; what threads are given.

    Parameters
    ----------
    Z : array, shape (n + 1, r)
        Columns whose coefficients are shifted, the mean last.
    codes : int array, shape (n, m)
    cards : tuple of int
    folds : list of _HeldOut
    """

    Z: Floats
    codes: Codes
    cards: tuple[int, ...]
    folds: list[_HeldOut]

    def score(self, child: int, parents: tuple[int, ...], kinds: Sequence[_Kind]) -> float:
        """Return the log-likelihood of held-out rows under the kind that gives the largest."""
        return max(self._total(child, parents, kind) for kind in kinds)

    def _total(self, child: int, parents: tuple[int, ...], kind: _Kind) -> float:
        cards = tuple(self.cards[p] for p in parents)
        given = self.codes[:, list(parents)]
        family = ShiftFamily(self.codes[:, child], self.cards[child], given, cards, kind.is_additive)
        return sum(fold.log_likelihood(self.Z, child, family, kind) for fold in self.folds)


@final
@dataclass
class ShiftScorer:
    """Scores of families of logistic regressions that parents shift (`ShiftModel`), and their models.

    The score is the log-likelihood of held-out rows less the logarithm of the number of sets of up to that
    size, because the best one of many sets looks good by chance: without it, networks on birds (19 labels,
    433 rows) are 0.11 nats a row worse. Each child has the kind of shifts that predicts held-out rows better
    with the two parents that gain most by themselves; a single parent of a child with common slopes has the
    better kind of its own. Sets for which the child has more intercepts than there are rows are left out.

    Parameters
    ----------
    X : features, n rows
    codes : int array, shape (n, m)
    cards : tuple of int
    weight : array, shape (n,), or None
    screening : "auto" or None
        Whether single parents are screened; see `TreeClassifier`.
    n_jobs : int or None
    groups : int array, shape (n,), optional
        Rows of one group are held out together.
    """

    X: Features
    codes: Codes
    cards: tuple[int, ...]
    weight: Floats | None
    screening: Literal["auto"] | None
    n_jobs: int | None
    groups: Codes | None = None
    _additive: dict[int, bool] = field(default_factory=dict)

    def score(self, families: Sequence[Family]) -> Iterator[float]:
        """See `FamilyScorer.score`."""
        self._choose({family.child for family in families if len(family.parents) > 0})
        new = [family for family in families if self._known(family) is None]
        values = self._run([(f.child, tuple(f.parents), self._kinds(f.child, len(f.parents))) for f in new])
        for family in families:
            known = self._known(family)
            yield (next(values) if known is None else known) - self._surprise(len(family.parents))

    def bound(self, child: int, parents: tuple[int, ...]) -> float:
        """See `FamilyScorer.bound`: minus infinity with more intercepts than rows, otherwise no bound."""
        return np.inf if self._n_intercepts(child, parents) <= len(self._scores.codes) else -np.inf

    def model(self, child: int, parents: Sequence[int], *, features: bool = True) -> ShiftModel:
        """Return the model of a family, fitted to all rows."""
        kind, parents = self._best_kind(child, tuple(parents)), list(parents)
        C, C_shared, _ = self._trees.strengths
        model = ShiftModel(
            self._trees.columns,
            C_base=C_shared if parents else C,
            C_shift=kind.C,
            is_additive=kind.is_additive,
        )
        return model.fit(
            PreparedRows(self._trees.rows.Z, self._trees.rows.leading),
            self.codes[:, parents],
            self.codes[:, child],
            parent_cards=[self.cards[p] for p in parents],
            child_card=self.cards[child],
            sample_weight=self.weight,
        )

    def role_of(self, child: int) -> Role:
        """See `MixedFamilyScorer.role_of`: discrete features are inputs."""
        return "inputs"

    def strengths(self, child: int, parents: Sequence[int]) -> dict[int, float]:
        """See `MixedFamilyScorer.strengths`: no feature is a parent."""
        return {}

    def without_parents(self, child: int) -> Floats:
        """See `FamilyScorer.without_parents`; of held-out rows."""
        answer = np.ones((len(self._scores.codes), self.cards[child]))
        for held in self._scores.folds:
            logits = held.fold.alone[child][:, held.rows]
            answer[held.rows] = np.exp(log_proba(logits, self.cards[child])).T
        return answer

    # -- what is learnt once ------------------------------------------------------------------------------

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """The rows that are scored, in increasing order: all, or a sample."""
        return self._trees.sample[0]

    @cached_property
    def edges(self) -> EdgeScores:
        """Scores of all variables without parents and with each of those that pass the screening."""
        return self._trees.chooser.edges(self._trees.chooser.rows.weight)

    @cached_property
    def _trees(self) -> LogisticTreeLearner:
        settings = TreeSettings("split", "auto", "auto", "auto", _FOLDS, self.screening, self.n_jobs)
        return LogisticTreeLearner(self.X, self.codes, self.cards, self.weight, settings, groups=self.groups)

    @cached_property
    def _scores(self) -> _FoldScores:
        chooser, (C, C_shared, _) = self._trees.chooser, self._trees.strengths
        rows = chooser.rows
        folds = [_HeldOut.make(fold, rows.weight) for fold in chooser.folds(C, C_shared)]
        return _FoldScores(rows.leading, rows.codes, self.cards, folds)

    # -- single families ----------------------------------------------------------------------------------

    def _known(self, family: Family) -> float | None:
        """Return the likelihood of held-out rows where trees have it."""
        child, parents = family.child, tuple(family.parents)
        if not parents:
            return float(self.edges.alone[child])
        single = float(self.edges.given[parents[0], child])
        return None if len(parents) > 1 or single == -np.inf or self._additive[child] else single

    def _n_intercepts(self, child: int, parents: tuple[int, ...]) -> int:
        return (self.cards[child] - 1) * math.prod(self.cards[p] for p in parents)

    def _surprise(self, n_parents: int) -> float:
        """Logarithm of the number of sets of up to so many parents."""
        return math.log(sum(math.comb(len(self.cards) - 1, size) for size in range(n_parents + 1)))

    def _run(self, tasks: Sequence[tuple[int, tuple[int, ...], Sequence[_Kind]]]) -> Iterator[float]:
        given = ((self._scores, *task) for task in tasks)
        return run_in_batches(_FoldScores.score, given, self.n_jobs, prefer="threads")

    @property
    def _both_kinds(self) -> list[_Kind]:
        C, _, C_shift = self._trees.strengths
        return [_Kind(False, C_shift), _Kind(True, C)]

    def _kinds(self, child: int, n_parents: int) -> list[_Kind]:
        both = self._both_kinds
        if n_parents == 1:
            return both if self._additive[child] else both[:1]
        return both[int(self._additive[child]) :][:1]

    def _best_kind(self, child: int, parents: tuple[int, ...]) -> _Kind:
        if not parents:
            return self._both_kinds[0]
        self._choose({child})
        kinds = self._kinds(child, len(parents))
        return (
            kinds[0]
            if len(kinds) == 1
            else max(kinds, key=lambda kind: self._scores.score(child, parents, [kind]))
        )

    def _choose(self, children: set[int]) -> None:
        """Choose the kind of shifts of each child that has none."""
        left = sorted(children - set(self._additive))
        tasks = [(child, self._trial(child), [kind]) for child in left for kind in self._both_kinds]
        values = list(self._run(tasks))
        for place, child in enumerate(left):
            self._additive[child] = values[2 * place + 1] > values[2 * place]

    def _trial(self, child: int) -> tuple[int, ...]:
        """Parents by which to choose: the two that gain most by themselves."""
        given = np.delete(self.edges.given[:, child], child)
        others = np.delete(np.arange(len(self.cards)), child)
        best = others[np.argsort(-given, kind="stable")[:2]].tolist()
        pair = tuple(sorted(best))
        return pair if self.bound(child, pair) > 0 else tuple(best[:1])
