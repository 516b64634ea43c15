"""What every edge of a tree is worth: held-out log-likelihoods of a class variable with and without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tuplet.core.parallel import run_many
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.penalties import ROUGHLY
from tuplet.local.shifts import Shifts, log_proba

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class EdgeScores:
    """Held-out log-likelihoods of m class variables, summed over all rows.

    Parameters
    ----------
    alone : array, shape (m,)
        Without a parent.
    given : array, shape (m, m)
        `given[j, i]` is that of variable i with parent j; minus infinity where that was not fitted.
    """

    alone: Floats
    given: Floats

    @property
    def gains(self) -> Floats:
        """What child i gains from parent j, (m, m); minus infinity where that was not fitted."""
        return self.given - self.alone


@dataclass(frozen=True)
class ScoringFold:
    """Rows to learn from, rows to score with, and models without parents that were learnt from the first.

    Parameters
    ----------
    kept, held : array, shape (n,)
        Shares of every row that are learnt from and held out; they sum to 1.
    alone, shared : list of arrays (c_i, n + 1)
        Logits of the models for variables without a parent, and of those that parents shift.
    """

    kept: Floats
    held: Floats
    alone: list[Floats]
    shared: list[Floats]


def blocks_of(codes: Codes, cards: Sequence[int], parent: int | None) -> tuple[Codes, int]:
    """Value (n,) of a parent and number of its values; one block of all rows if there is none."""
    if parent is None:
        return np.zeros(len(codes), dtype=np.intp), 1
    return np.ascontiguousarray(codes[:, parent]), cards[parent]


def columns_of(Z: Floats, parent: int | None) -> Floats:
    """Columns whose coefficients a parent shifts; without a parent none.

    The model without parents was fitted to these very columns: fitting them once more would undo a part of
    its penalty. The intercept is free, for rows that are weighted differently.
    """
    return np.zeros((len(Z), 0)) if parent is None else Z


@dataclass(frozen=True)
class Edges:
    """The data of a child's edges in one fold; what `score_edges` hands to its threads."""

    Z: Floats
    codes: Codes
    cards: tuple[int, ...]
    weight: Floats
    fold: ScoringFold
    C: float

    def score(self, child: int, parents: Sequence[int]) -> tuple[float, list[float]]:
        """Held-out log-likelihoods of the child without a parent and with each of some parents.

        A row whose parent is unknown is scored without it, so it counts neither for nor against the parent.
        """
        card, fold = self.cards[child], self.fold
        y = np.ascontiguousarray(self.codes[:, child])
        judged = np.flatnonzero((y != UNKNOWN) & (self.weight * fold.held > 0))
        masses, learnt = (self.weight * fold.held)[judged], self.weight * fold.kept

        def shifted(parent: int | None, given: Floats) -> Floats:
            blocks, q = blocks_of(self.codes, self.cards, parent)
            columns = columns_of(self.Z, parent)
            shifts = Shifts.fit(columns, given, y, blocks, q, card, learnt, C=self.C, tol=ROUGHLY)
            return shifts.own_log_proba(columns, given, y, blocks, card, judged)

        alone, answer = shifted(None, fold.alone[child]), []
        for parent in parents:
            unknown = self.codes[judged, parent] == UNKNOWN
            own = shifted(parent, fold.shared[child])
            answer.append(float(masses @ np.where(unknown, alone, own)))
        return float(masses @ alone), answer


def score_edges(
    Z: Floats,
    codes: Codes,
    cards: Sequence[int],
    weight: Floats,
    folds: Sequence[ScoringFold],
    candidates: Mask,
    *,
    C: float,
    n_jobs: int | None = None,
) -> EdgeScores:
    """Score all edges j -> i with `candidates[j, i]`, and all variables without parents.

    Parameters
    ----------
    Z : array, shape (n + 1, r)
        Columns whose coefficients parents shift; the mean last.
    codes : int array, shape (n, m)
    cards : sequence of int
    weight : array, shape (n,)
        Of rows in training and in scoring.
    folds : sequence of ScoringFold
    candidates : bool array, shape (m, m)
    C : float
        Inverse strength of the penalty on shifts.
    n_jobs : int, optional
        Threads, or tasks of a cluster.
    """
    m = len(cards)
    alone, given = np.zeros(m), np.where(candidates, 0.0, -np.inf)
    parents = [np.flatnonzero(candidates[:, i]).tolist() for i in range(m)]
    tasks = [
        (Edges(Z, codes, tuple(cards), weight, fold, C), i, parents[i]) for fold in folds for i in range(m)
    ]
    scores = run_many(Edges.score, tasks, n_jobs, prefer="threads")
    for (_, i, members), (without, each) in zip(tasks, scores, strict=True):
        alone[i] += without
        given[members, i] += each
    return EdgeScores(alone, given)


def residual_scores(
    codes: Codes, cards: Sequence[int], weight: Floats, folds: Sequence[ScoringFold]
) -> Floats:
    """How far two variables are from independence given x, in standard errors, (m, m).

    The residuals of the models without parents, [y_i = a] - p_0(a | x) of held-out rows, are uncorrelated
    if y_i and y_j are independent given x; the largest |z| over all pairs of values is returned.
    """
    blocks = [_residuals(codes, cards, folds, i) for i in range(len(cards))]
    starts = np.cumsum([0, *[len(block) for block in blocks[:-1]]])
    rows = np.concatenate(blocks)  # (sum of columns, n)
    products = (rows * weight) @ rows.T
    spread = (rows**2 * weight**2) @ (rows**2).T
    z = np.abs(products) / np.sqrt(np.maximum(spread, np.finfo(float).tiny))
    answer = np.maximum.reduceat(np.maximum.reduceat(z, starts, axis=0), starts, axis=1)
    np.fill_diagonal(answer, 0.0)
    return answer


def _residuals(codes: Codes, cards: Sequence[int], folds: Sequence[ScoringFold], i: int) -> Floats:
    """Held-out residuals of one variable, (1, n) if it is binary, otherwise (k, n); 0 where it is unknown."""
    parts = [fold.held * np.exp(log_proba(fold.alone[i][:, :-1], cards[i])) for fold in folds]
    proba = np.sum(parts, axis=0) if parts else 0.0  # a single row is in no fold
    truth = codes[:, i] == np.arange(cards[i])[:, None]
    residuals = np.where(codes[:, i] != UNKNOWN, truth - proba, 0.0)
    return residuals[1:] if cards[i] == 2 else residuals
