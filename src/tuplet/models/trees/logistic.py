"""Trees of logistic regressions: shifts of models that all trees on the same rows share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, final

import numpy as np

from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.factor import Factor
from tuplet.local.columns import Prepared, PrincipalColumns, SparseColumns, StandardisedRows, prepare_columns
from tuplet.local.cross_fitting import inner_folds
from tuplet.local.families import Parametrisation
from tuplet.local.penalties import (
    GRID,
    N_JUDGED,
    ROUGHLY,
    Shares,
    Target,
    best_on_grid,
    choose_strength,
    fold_shares,
    log_prior,
    nearest_on_grid,
)
from tuplet.local.row_samples import SAMPLE_SIZE, sample_rows
from tuplet.local.shifts import Baseline, Shifts, bounded_log_proba
from tuplet.models.trees.edge_scores import (
    EdgeScores,
    Mask,
    ScoringFold,
    blocks_of,
    columns_of,
    residual_scores,
    score_edges,
)
from tuplet.space.features.inputs import Features, take_rows
from tuplet.structure.parents import ParentSets

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

    @property
    def is_split(self) -> bool:
        """Whether parents shift coefficients, not intercepts alone."""
        return self.parametrisation == "split"

    @property
    def given_strengths(self) -> tuple[float, float, float] | None:
        """All three C, unless one of them is to be chosen."""
        if "auto" in (self.C, self.C_shared, self.C_shift):
            return None
        return float(self.C), float(self.C_shared), float(self.C_shift)


@final
@dataclass(frozen=True)
class LogisticTree:
    """A fitted tree.

    Parameters
    ----------
    parents : ParentSets
    columns : PrincipalColumns or SparseColumns
    baselines : tuple of Baseline
        The model of each variable without parents, or the one that its parent shifts; the same objects in all
        trees on the same rows.
    shifts : tuple of Shifts
        What the values of each variable's parent add; one block where there is none.
    own : array, shape (n,), optional
        Log-probabilities of the training rows' labels.
    """

    parents: ParentSets
    columns: PrincipalColumns | SparseColumns
    baselines: tuple[Baseline, ...]
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
        return self.own

    def without_rows(self) -> LogisticTree:
        """Return what prediction needs."""
        return replace(self, own=None)

    def joint(self, X: Features) -> FactorGraph:
        """Joint distribution of rows X."""
        return self.joint_of(self.columns.prepare(X), {})

    def joint_of(self, rows: Prepared, known: dict[int, Floats]) -> FactorGraph:
        """Joint distribution of some rows; `known` keeps the logits of baselines for other trees."""
        factors = []
        for i, (members, base, shift) in enumerate(
            zip(self.parents, self.baselines, self.shifts, strict=True)
        ):
            if id(base) not in known:
                known[id(base)] = base.logits(rows.Z)
            table = bounded_log_proba(shift.logits(rows.leading, known[id(base)]), base.share)
            factors.append(Factor((*members, i), table if members else table[0]))
        cards = tuple(base.card for base in self.baselines)
        return FactorGraph(cards, factors, n=len(rows.leading), log_normalizer=0.0)


@final
@dataclass(frozen=True)
class TreeRows:
    """Rows with their features prepared.

    Parameters
    ----------
    X : features, n rows
    Z, leading
        See `Prepared`; the mean is last: there are the pseudo-rows.
    codes : int array, shape (n, m)
    cards : tuple of int
    weight : array, shape (n,)
    groups : int array, shape (n,), or None
    """

    X: Features
    Z: Floats | StandardisedRows
    leading: Floats
    codes: Codes
    cards: tuple[int, ...]
    weight: Floats
    groups: Codes | None

    def take(self, rows: Codes, weight: Floats) -> TreeRows:
        """Return some rows (s,) with other weights (s,)."""
        with_mean = np.append(rows, len(self.leading) - 1)
        Z = self.Z.take(rows) if isinstance(self.Z, StandardisedRows) else self.Z[with_mean]
        leading, groups = self.leading[with_mean], None if self.groups is None else self.groups[rows]
        return TreeRows(take_rows(self.X, rows), Z, leading, self.codes[rows], self.cards, weight, groups)

    def fit_baseline(self, i: int, weight: Floats, C: float, **how: Any) -> Baseline:
        """Fit the model of a variable without parents; see `Baseline.fit`."""
        y = np.ascontiguousarray(self.codes[:, i])
        return Baseline.fit(self.Z, y, self.cards[i], weight, C=C, **how)


@final
class EdgeLearner:
    """Chooses penalties and scores edges by held-out rows.

    Parameters
    ----------
    rows : TreeRows
    settings : TreeSettings
    """

    def __init__(self, rows: TreeRows, settings: TreeSettings) -> None:
        self.rows, self.settings = rows, settings
        self._logits: dict[float, list[list[Floats]]] = {}

    @cached_property
    def shares(self) -> list[Shares]:
        """What each fold learns from and holds out."""
        rows = self.rows
        folds = inner_folds(rows.X, rows.codes, rows.weight, self.settings.n_folds, groups=rows.groups)
        return fold_shares(folds, rows.weight)

    def folds(self, C: float, C_shared: float) -> list[ScoringFold]:
        """Every fold with its models without parents."""
        models = zip(self.shares, self._held_logits(C), self._held_logits(C_shared), strict=True)
        return [ScoringFold(*shares, alone, shared) for shares, alone, shared in models]

    def _held_logits(self, C: float) -> list[list[Floats]]:
        """Logits of all variables for each fold, by models without parents that have not seen it."""
        if C not in self._logits:
            rows = self.rows
            self._logits[C] = [
                [rows.fit_baseline(i, rows.weight * kept, C).logits(rows.Z) for i in range(len(rows.cards))]
                for kept, _ in self.shares
            ]
        return self._logits[C]

    @cached_property
    def strengths(self) -> tuple[float, float, float]:
        """C of the models without parents, of those that parents shift and of the shifts.

        They are given by the user, or those that predict held-out rows best. Models that are shifted often
        need a stronger penalty than the others: shifts are fitted to the rows that they were fitted to.
        """
        C, shared, shift = self.settings.C, self.settings.C_shared, self.settings.C_shift
        alone = self._best_alone() if C == "auto" else float(C)
        base = alone if shared == "auto" else float(shared)
        if len(self.rows.cards) < 2 or not self.settings.is_split:
            return alone, base, base if shift == "auto" else float(shift)
        edges = self._likely_edges(alone) if "auto" in (shared, shift) else None

        def score(C_shared: float, C_shift: float) -> float:
            return float(self._score(self.rows.weight, edges, alone, C_shared, C_shift).given[edges].sum())

        usual = GRID[max(nearest_on_grid(base) - 1, 0)]

        def best_shift(start: float) -> float:
            if shift != "auto":
                return float(shift)
            return best_on_grid(
                lambda value: score(base, value) + log_prior(value, usual), GRID, nearest_on_grid(start)
            )

        def best_shared(start: float) -> float:
            return best_on_grid(
                lambda value: score(value, best) + log_prior(value, alone), GRID, nearest_on_grid(start)
            )

        best = best_shift(usual)
        if shared == "auto":
            before, base = base, best_shared(base)
            best = best if base == before else best_shift(best)
        self._logits = {C: self._held_logits(C) for C in (alone, base)}
        return alone, base, best

    def _best_alone(self) -> float:
        """Return the C with which the models without parents predict held-out rows best."""
        rows = self.rows
        targets = [Target(y, card) for y, card in zip(rows.codes.T, rows.cards, strict=True)]
        return choose_strength(rows.Z, targets, rows.weight, self.shares)

    def _likely_edges(self, C: float) -> Mask:
        """Return the edge that promises most for each of the children that promise most, (m, m)."""
        z = self._residual_scores(C)
        chosen = np.argsort(-z.max(axis=0), kind="stable")[:N_JUDGED]
        likely = np.zeros(z.shape, dtype=bool)
        likely[z.argmax(axis=0)[chosen], chosen] = True
        return likely

    def _residual_scores(self, C: float) -> Floats:
        return residual_scores(self.rows.codes, self.rows.cards, self.rows.weight, self.folds(C, C))

    @cached_property
    def candidates(self) -> Mask:
        """Which edges j -> i are worth fitting, (m, m)."""
        m, screening = len(self.rows.cards), self.settings.screening
        answer = ~np.eye(m, dtype=bool)
        if screening is not None and (screening != "auto" or m > SCREEN_FROM):
            z = self._residual_scores(self.strengths[0])
            answer &= z > (THRESHOLD if screening == "auto" else float(screening))
            if screening == "auto":
                answer &= z >= -np.sort(-z, axis=0)[N_CANDIDATES - 1]
        return answer

    def edges(self, weight: Floats) -> EdgeScores:
        """Score the candidate edges with rows weighted by `weight` (n,)."""
        return self._score(weight, self.candidates, *self.strengths)

    def _score(
        self, weight: Floats, candidates: Any, C: float, C_shared: float, C_shift: float
    ) -> EdgeScores:
        rows = self.rows
        given = (rows.leading, rows.codes, rows.cards, weight, self.folds(C, C_shared), candidates)
        return score_edges(*given, C=C_shift, n_jobs=self.settings.n_jobs)


@final
class LogisticTreeLearner:
    """Learns trees from one set of rows with different weights; features and baselines are prepared once.

    Of more than `SAMPLE_SIZE` rows a sample chooses the penalties and scores the edges; trees are fitted to
    all rows.

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
        Shares of the rows' weights from which baselines, C and the candidates are learnt; all of it by
        default.
    groups : int array, shape (n,), optional
        Rows of one group are held out together.
    """

    def __init__(
        self,
        X: Features,
        codes: Codes,
        cards: Sequence[int],
        weight: Floats | None,
        settings: TreeSettings,
        learnt: Floats | None = None,
        groups: Codes | None = None,
    ) -> None:
        self.settings = settings
        whole = np.ones(len(codes)) if weight is None else weight
        whole = whole if learnt is None else whole * learnt
        self.columns = prepare_columns(X, whole)
        Z, leading = self.columns.prepare(X, with_mean=True)
        leading = leading if settings.is_split else np.zeros((len(leading), 0))
        self.rows = TreeRows(X, Z, leading, np.ascontiguousarray(codes), tuple(cards), whole, groups)
        self._baselines: dict[tuple[int, bool], tuple[Baseline, Floats]] = {}
        self._shifts: dict[tuple[int, int | None], Shifts] = {}  # those of the rows' own weights

    @cached_property
    def sample(self) -> tuple[Codes, Floats]:
        """Positions of the rows that choose, and which shares of their weights do."""
        rows = self.rows
        sample = sample_rows(rows.X, rows.codes, rows.weight, SAMPLE_SIZE)
        return sample.rows, sample.shares(rows.weight)

    @cached_property
    def chooser(self) -> EdgeLearner:
        """What chooses penalties and scores edges."""
        if len(self.rows.codes) <= SAMPLE_SIZE:
            return EdgeLearner(self.rows, self.settings)
        chosen, share = self.sample
        return EdgeLearner(self.rows.take(chosen, self.rows.weight[chosen] * share), self.settings)

    @cached_property
    def strengths(self) -> tuple[float, float, float]:
        """See `TreeLearner.strengths`."""
        return self.settings.given_strengths or self.chooser.strengths

    def edges(self, weight: Floats | None) -> EdgeScores:
        """See `TreeLearner.edges`; the scores of a sample are scaled to all rows."""
        weight = self.rows.weight if weight is None else weight
        if len(weight) <= SAMPLE_SIZE:
            return self.chooser.edges(weight)
        chosen, share = self.sample
        scores, scale = self.chooser.edges(weight[chosen] * share), weight.sum() / (weight[chosen] @ share)
        return EdgeScores(scores.alone * scale, scores.given * scale)

    def fit(
        self, parents: ParentSets, weight: Floats | None, start: LogisticTree | None = None
    ) -> LogisticTree:
        """Fit the tree with these parents to rows weighted by `weight` (n,).

        From a `start` with the same parents the penalised log-likelihood never falls: a variable whose new
        shifts are no better keeps those it has.
        """
        weight = self.rows.weight if weight is None else weight
        shifts, own = [], np.zeros(len(self.rows.codes))
        for i, members in enumerate(parents):
            begin = None if start is None else start.shifts[i]
            shift, each = self._fit_shifts(i, members[0] if members else None, weight, begin)
            shifts.append(shift)
            own += each
        bases = tuple(self._baseline(i, bool(members))[0] for i, members in enumerate(parents))
        return LogisticTree(parents, self.columns, bases, tuple(shifts), own)

    def _fit_shifts(
        self, i: int, parent: int | None, weight: Floats, start: Shifts | None
    ) -> tuple[Shifts, Floats]:
        """Shifts of a variable by its parent, and log-probabilities (n,) of its labels."""
        rows, (_, given) = self.rows, self._baseline(i, parent is not None)
        blocks, q = blocks_of(rows.codes, rows.cards, parent)
        y, columns, card = (
            np.ascontiguousarray(rows.codes[:, i]),
            columns_of(rows.leading, parent),
            rows.cards[i],
        )
        fitted = None if start or weight is not rows.weight else self._shifts.get((i, parent))
        if fitted is None:
            # A step of EM need not reach the maximum, and the next one goes on from where it ends.
            how: Any = {"C": self.strengths[2]} if start is None else {"C": self.strengths[2], "tol": ROUGHLY}
            fitted = Shifts.fit(columns, given, y, blocks, q, card, weight, start=start, **how)
        if weight is rows.weight:
            self._shifts[i, parent] = fitted
        own = fitted.own_log_proba(columns, given, y, blocks, card)
        if start is not None:
            before = start.own_log_proba(columns, given, y, blocks, card)
            if weight @ own - fitted.penalty < weight @ before - start.penalty:
                return start, before
        return fitted, own

    def _baseline(self, i: int, shifted: bool) -> tuple[Baseline, Floats]:
        """Return the model of a variable that has no parent, or is `shifted` by one, and its logits."""
        if (i, shifted) not in self._baselines:
            base = self.rows.fit_baseline(i, self.rows.weight, self.strengths[shifted])
            self._baselines[i, shifted] = base, base.logits(self.rows.Z)
        return self._baselines[i, shifted]


def joints_of(trees: Sequence[Any], X: Features) -> Sequence[JointDistribution]:
    """Joint distributions of rows X under some fitted trees; what logistic ones share is computed once."""
    first, known = trees[0], dict[int, Floats]()
    if not isinstance(first, LogisticTree):
        return [tree.joint(X) for tree in trees]
    rows = first.columns.prepare(X)
    return [tree.joint_of(rows, known) for tree in trees]
