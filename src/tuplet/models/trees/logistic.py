"""Trees of logistic regressions: shifts of models that all trees on the same rows share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np

from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.factor import Factor
from tuplet.local.cross_fitting import Fold, inner_folds
from tuplet.local.families import Parametrisation
from tuplet.local.shifts import PrincipalColumns, Shared, Shifts, log_proba, own_log_proba
from tuplet.models.trees.edge_scores import (
    ROUGHLY,
    EdgeScores,
    Mask,
    ScoringFold,
    best_on_grid,
    blocks_of,
    columns_of,
    residual_scores,
    score_edges,
)
from tuplet.space.features.inputs import Features
from tuplet.structure.parents import ParentSets

GRID = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Where C of the shared models and that of the shifts are looked for."""

N_CHOSEN = 12
"""Largest number of class variables by which they are chosen."""

N_LEADING = 64
"""Principal axes whose coefficients a parent can shift. Along the others rows hardly differ, and the penalty
leaves little of a shift. On scene, image, enron and rcv1 50 to 100 axes predict better than all 294 to 1,001,
in a third of the time."""

SCREEN_FROM, N_CANDIDATES, THRESHOLD = 25, 8, 2.0
"""With more class variables than this, "auto" fits to each child only its strongest candidates for a parent,
as far as their residuals are correlated by more than so many standard errors."""


@dataclass(frozen=True)
class TreeSettings:
    """How trees are learnt; see `TreeClassifier`. C_shared is that of the models that parents shift."""

    parametrisation: Parametrisation
    C: float | Literal["auto"]
    C_shared: float | Literal["auto"]
    C_shift: float | Literal["auto"]
    n_folds: int
    screening: float | Literal["auto"] | None
    n_jobs: int | None


@final
@dataclass(frozen=True)
class LogisticTree:
    """A fitted tree.

    Parameters
    ----------
    parents : ParentSets
    columns : PrincipalColumns
    alone, shared : Shared
        Models of variables without a parent, and those that parents shift; the same objects for all trees on
        the same rows.
    shifts : tuple of Shifts
        What the values of each variable's parent add; one block where there is none.
    own : array, shape (m, n), optional
        Log-probabilities of the training rows' labels.
    """

    parents: ParentSets
    columns: PrincipalColumns
    alone: Shared
    shared: Shared
    shifts: tuple[Shifts, ...]
    own: Floats | None = None

    @property
    def structure(self) -> ParentSets:
        """See `Component.structure`."""
        return self.parents

    @property
    def penalty(self) -> float:
        """What the shifts cost."""
        return sum(shift.penalty for shift in self.shifts)

    @property
    def log_likelihood(self) -> Floats:
        """Log-probability (n,) of the labels of each training row."""
        assert self.own is not None
        return np.asarray(self.own.sum(axis=0))

    def without_rows(self) -> LogisticTree:
        """Return what prediction needs."""
        return replace(self, own=None)

    def joint(self, X: Features) -> FactorGraph:
        """Joint distribution of rows X."""
        Z = self.columns.apply(X)
        return self.joint_of(Z, self.alone.logits(Z), self.shared.logits(Z))

    def joint_of(self, Z: Floats, alone: Sequence[Floats], shared: Sequence[Floats]) -> FactorGraph:
        """Joint distribution of rows Z (n, r), for which the models without parents have these logits."""
        cards, factors = self.shared.cards, []
        for i, (members, shift) in enumerate(zip(self.parents, self.shifts, strict=True)):
            table = log_proba(shift.logits(Z, (shared if members else alone)[i]), cards[i])
            factors.append(Factor((*members, i), table if members else table[0]))
        return FactorGraph(cards, factors, n=len(Z), log_normalizer=0.0)


@final
class LogisticTreeLearner:
    """Learns trees from one set of rows with different weights; features and shared models are prepared once.

    Parameters
    ----------
    X : features, n rows
        Numbers, dense or sparse.
    codes : int array, shape (n, m)
    cards : sequence of int
    weight : array, shape (n,), or None
        Positive; how many rows each row counts for.
    settings : TreeSettings
    learnt : array, shape (n,), optional
        Shares of the rows' weights from which the shared models, C and the candidates are learnt; all of it
        by default.
    """

    def __init__(
        self,
        X: Features,
        codes: Codes,
        cards: Sequence[int],
        weight: Floats | None,
        settings: TreeSettings,
        learnt: Floats | None = None,
    ) -> None:
        self.codes, self.cards, self.settings = np.ascontiguousarray(codes), tuple(cards), settings
        whole = np.ones(len(codes)) if weight is None else weight
        self.weight = whole if learnt is None else whole * learnt
        self.columns = PrincipalColumns.learn(X, self.weight)
        Z = self.columns.apply(X)
        self.Z = np.concatenate([Z, np.zeros((1, Z.shape[1]))])  # the mean, for pseudo-rows
        self.leading = np.ascontiguousarray(self.Z[:, : N_LEADING if self._is_split else 0])
        self.shares = _shares(inner_folds(X, codes, self.weight, settings.n_folds), self.weight)
        self._logits: dict[float, list[list[Floats]]] = {}
        self._candidates: Mask | None = None
        self.C, self.C_shared, self.C_shift = self._choose_strengths()
        self._logits = {C: self._held_logits(C) for C in (self.C, self.C_shared)}
        self.alone, self.shared = self._fit_alone(self.C), self._fit_alone(self.C_shared)
        self.logits = (self.alone.logits(self.Z), self.shared.logits(self.Z))

    def _fit_alone(self, C: float) -> Shared:
        return Shared.fit(self.Z, self.codes, self.cards, self.weight, C=C)

    @property
    def strengths(self) -> tuple[float, float, float]:
        """See `TreeLearner.strengths`."""
        return self.C, self.C_shared, self.C_shift

    # -- what is chosen once ------------------------------------------------------------------------------

    @property
    def _is_split(self) -> bool:
        return self.settings.parametrisation == "split"

    def folds(self, C: float, C_shared: float) -> list[ScoringFold]:
        """Every fold with its models without parents."""
        models = zip(self.shares, self._held_logits(C), self._held_logits(C_shared), strict=True)
        return [ScoringFold(*shares, alone, shared) for shares, alone, shared in models]

    def _held_logits(self, C: float) -> list[list[Floats]]:
        """Logits of all variables for each fold, by models without parents that have not seen it."""
        if C not in self._logits:
            fits = [
                Shared.fit(self.Z, self.codes, self.cards, self.weight * kept, C=C) for kept, _ in self.shares
            ]
            self._logits[C] = [shared.logits(self.Z) for shared in fits]
        return self._logits[C]

    def _choose_strengths(self) -> tuple[float, float, float]:
        """Return C of the models without parents, of those that parents shift and of the shifts.

        They are given by the user, or those that predict held-out rows best. Models that are shifted often
        need a stronger penalty than the others: shifts are fitted to the rows that they were fitted to.
        """
        C, shared, shift = self.settings.C, self.settings.C_shared, self.settings.C_shift
        alone = self._best_alone() if C == "auto" else float(C)
        base = alone if shared == "auto" else float(shared)
        if len(self.cards) < 2 or not self._is_split:
            return alone, base, base if shift == "auto" else float(shift)
        edges = self._likely_edges(alone) if "auto" in (shared, shift) else None

        def score(C_shared: float, C_shift: float) -> float:
            return float(self._score(self.weight, edges, alone, C_shared, C_shift).given[edges].sum())

        def best_shift(start: float) -> float:
            if shift != "auto":
                return float(shift)
            return best_on_grid(lambda value: score(base, value), GRID, _nearest(start))

        best = best_shift(GRID[max(_nearest(base) - 1, 0)])
        if shared == "auto":
            before, base = base, best_on_grid(lambda value: score(value, best), GRID, _nearest(base))
            best = best if base == before else best_shift(best)
        return alone, base, best

    def _best_alone(self) -> float:
        """Return the C with which the models without parents predict held-out rows best."""
        m = len(self.cards)
        chosen = np.unique(np.linspace(0, m - 1, min(m, N_CHOSEN)).round().astype(int))
        codes, cards = self.codes[:, chosen], [self.cards[i] for i in chosen]
        last: list[Shared | None] = [None] * len(self.shares)  # a neighbour's answer is a good start

        def score(C: float) -> float:
            total = 0.0
            for f, (kept, held) in enumerate(self.shares):
                weight = self.weight * kept
                last[f] = shared = Shared.fit(self.Z, codes, cards, weight, C=C, tol=ROUGHLY, start=last[f])
                for i, logits in enumerate(shared.logits(self.Z[:-1])):
                    total += float((self.weight * held) @ own_log_proba(logits, codes[:, i], cards[i]))
            return total

        return best_on_grid(score, GRID, GRID.index(0.03))

    def _likely_edges(self, C: float) -> Mask:
        """Return the edge that promises most for each of the children that promise most, (m, m)."""
        z = residual_scores(self.codes, self.cards, self.weight, self.folds(C, C))
        chosen = np.argsort(-z.max(axis=0), kind="stable")[:N_CHOSEN]
        likely = np.zeros(z.shape, dtype=bool)
        likely[z.argmax(axis=0)[chosen], chosen] = True
        return likely

    @property
    def candidates(self) -> Mask:
        """Which edges j -> i are worth fitting, (m, m)."""
        if self._candidates is None:
            m, screening = len(self.cards), self.settings.screening
            self._candidates = ~np.eye(m, dtype=bool)
            if screening is not None and (screening != "auto" or m > SCREEN_FROM):
                z = residual_scores(self.codes, self.cards, self.weight, self.folds(self.C, self.C))
                self._candidates &= z > (THRESHOLD if screening == "auto" else float(screening))
                if screening == "auto":
                    self._candidates &= z >= -np.sort(-z, axis=0)[N_CANDIDATES - 1]
        return self._candidates

    # -- learning -----------------------------------------------------------------------------------------

    def edges(self, weight: Floats | None) -> EdgeScores:
        """Score the candidate edges with rows weighted by `weight` (n,)."""
        weight = self.weight if weight is None else weight
        return self._score(weight, self.candidates, *self.strengths)

    def _score(
        self, weight: Floats, candidates: Any, C: float, C_shared: float, C_shift: float
    ) -> EdgeScores:
        given = (self.leading, self.codes, self.cards, weight, self.folds(C, C_shared), candidates)
        return score_edges(*given, C=C_shift, n_jobs=self.settings.n_jobs)

    def fit(
        self, parents: ParentSets, weight: Floats | None, start: LogisticTree | None = None
    ) -> LogisticTree:
        """Fit the tree with these parents to rows weighted by `weight` (n,).

        From a `start` with the same parents the penalised log-likelihood never falls: a variable whose new
        shifts are no better keeps those it has.
        """
        weight = self.weight if weight is None else weight
        shifts, own = [], np.empty((len(self.cards), len(self.codes)))
        for i, members in enumerate(parents):
            parent = members[0] if members else None
            blocks, q = blocks_of(self.codes, self.cards, parent)
            y, begin = np.ascontiguousarray(self.codes[:, i]), None if start is None else start.shifts[i]
            columns, card = columns_of(self.leading, parent), self.cards[i]
            given = self.logits[parent is not None][i]
            fitted = Shifts.fit(columns, given, y, blocks, q, card, weight, C=self.C_shift, start=begin)
            own[i] = own_log_proba(fitted.own_logits(columns[:-1], given[:, :-1], blocks), y, card)
            if start is not None and start.own is not None and begin is not None:
                before = weight @ start.own[i] - begin.penalty
                if weight @ own[i] - fitted.penalty < before:
                    fitted, own[i] = begin, start.own[i]
            shifts.append(fitted)
        return LogisticTree(parents, self.columns, self.alone, self.shared, tuple(shifts), own)


def _shares(folds: Sequence[Fold], weight: Floats) -> list[tuple[Floats, Floats]]:
    """Return the shares (n,) of the rows' weights from which each fold learns, and those held out."""
    answer = []
    for fold in folds:
        kept, held = np.zeros(len(weight)), np.zeros(len(weight))
        assert fold.train_weight is not None
        kept[fold.train] = fold.train_weight / weight[fold.train]
        held[fold.test] = fold.test_weight / weight[fold.test]
        answer.append((kept, held))
    return answer


def _nearest(C: float) -> int:
    """Return the place of a value, or of the nearest to it, in the grid."""
    return int(np.abs(np.log(GRID) - np.log(C)).argmin())


def joints_of(trees: Sequence[Any], X: Features) -> Sequence[JointDistribution]:
    """Joint distributions of rows X under some fitted trees; what logistic ones share is computed once."""
    first = trees[0]
    if not isinstance(first, LogisticTree):
        return [tree.joint(X) for tree in trees]
    Z = first.columns.apply(X)
    alone, shared = first.alone.logits(Z), first.shared.logits(Z)
    return [tree.joint_of(Z, alone, shared) for tree in trees]
