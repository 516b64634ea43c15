"""The strength of ridge penalties, chosen by how well rows are predicted that were held out.

All logistic regressions whose penalty is open use this choice: `RidgeLogistic`, which is the default of every
model with an `estimator`, and the models without parents of trees and networks (`Baseline`). The regressions
of a choice are fitted roughly, by compiled code, and one C is chosen for all class variables together: their
sum has far less noise than each of them. Cross-validated inside of training rows of ten benchmark sets, a C
for each variable by itself loses 0.006 nats a row, and one that is shrunk to the common C up to 0.005.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar, final

import numpy as np
from scipy import sparse

from tuplet.core.limits import BLOCK_CELLS, LISTED_CELLS
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.columns import StandardisedRows, as_table
from tuplet.local.cross_fitting import Fold, inner_folds
from tuplet.local.many_logistic import LogisticBatch
from tuplet.local.row_samples import SAMPLE_SIZE, sample_rows
from tuplet.local.shifts import Baseline, log_proba
from tuplet.space.features.inputs import Features, n_rows, take_rows

T = TypeVar("T")

GRID = (1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Where C is searched for. The first leaves nothing of the slopes: the model is that of the frequencies."""

_PER_COLUMN = 3.0
"""The climb starts at this over the number of columns: the more columns, the smaller their coefficients."""

_USUAL, _DECADES = 0.3, 0.5
"""Centre and scale, in decades, of the prior of C: a Student distribution of log C, three degrees of freedom.
It decides where there are few rows, whose held-out likelihood is mostly noise, and hardly matters where there
are many. With 5 to 20 rows of a generated table, C = 0.1 to 0.3 predicts new rows best."""

N_JUDGED = 12
"""Largest number of class variables by which a C for all of them is chosen."""

ROUGHLY = 1e-3
"""Tolerance of fits that are only compared: it changes held-out likelihoods by about 1e-4 for a row."""

PARENTS_C = 0.3
"""Least C of the columns of parents. Parents are few beside the features, and their effects are not small
where those of hundreds of features are: with the C of the features, chains lose 0.05 to 0.2 nats a row on
scene, yeast, emotions, image and rcv1. Of 1, 0.3 and 0.1, on seven sets, 0.3 is the best or within 0.02 of
it."""

ROWS_PER_COLUMN = 300
"""Rows for each column from which on C = 1 is taken without a choice: the penalty hardly matters then. On
Adult, with 245, chains with C = 1 still lose 0.02 nats a row to those with C = 0.1."""

_ENOUGH = 5_000
"""Held-out labels, over all class variables, after which no further fold is needed."""

_FEW_FOLDS, _MANY_FOLDS = 3, 5
"""Folds of many and of few labels. With 120 to 600 rows of generated tables, the C of three folds predicts
new rows 0.0052 nats worse than the best C, that of five folds 0.0046 and that of ten 0.0044."""

_MANY_CLASSES = 32
"""Classes beyond which one fold has to do."""

_WORK = 1e10
"""Operations for principal axes, n d min(n, d), up to which these are computed: a second or a few."""


class Target(NamedTuple):
    """A class variable to be predicted.

    Parameters
    ----------
    y : int array, shape (n,)
        Codes, `UNKNOWN` where missing.
    card : int
    columns : array, shape (n, p), optional
        Columns of its parents, with about the scale of the features.
    """

    y: Codes
    card: int
    columns: Floats | None = None


class Shares(NamedTuple):
    """Shares (n,) of the rows' weights that a fold learns from and holds out."""

    kept: Floats
    held: Floats


def fold_shares(folds: Sequence[Fold], weight: Floats) -> list[Shares]:
    """Return the shares of each of some folds of rows with weights (n,)."""
    answer = []
    for fold in folds:
        kept, held = np.zeros(len(weight)), np.zeros(len(weight))
        assert fold.train_weight is not None
        kept[fold.train] = fold.train_weight / weight[fold.train]
        held[fold.test] = fold.test_weight / weight[fold.test]
        answer.append(Shares(kept, held))
    return answer


def choose_strength(
    Z: Floats | StandardisedRows, targets: Sequence[Target], weight: Floats, shares: Sequence[Shares]
) -> float:
    """Return the C of `GRID` with which models without parents predict held-out rows best.

    Parameters
    ----------
    Z : array, shape (n + 1, r), or StandardisedRows
        Centred columns, the mean last; see `Baseline.fit`.
    targets : sequence of Target
        Of more than `N_JUDGED` some are used.
    weight : array, shape (n,)
    shares : sequence of Shares
        The folds.
    """
    judged = some([target for target in targets if varies(target.y)])
    trials = [_Trial(Z, each, weight * kept, weight * held) for kept, held in shares for each in judged]

    @cache
    def held_out(C: float) -> float:
        return sum(trial.score(C) for trial in trials)

    start = nearest_on_grid(_PER_COLUMN / max(1, Z.shape[1]))
    best = best_on_grid(lambda C: held_out(C) + log_prior(C), GRID, start)
    return max((best, GRID[0]), key=held_out)  # the climb may end on a hill that is below the frequencies


def log_prior(C: float, usual: float = _USUAL) -> float:
    """Return the log-density of C, up to a constant, around a usual value.

    Without it, five rows choose any C: their held-out likelihood is mostly noise.
    """
    return -2.0 * float(np.log1p((np.log10(C / usual) / _DECADES) ** 2 / 3))


def some(things: Sequence[T]) -> list[T]:
    """Return at most `N_JUDGED` of some things, evenly spread."""
    n = len(things)
    return [things[i] for i in np.unique(np.linspace(0, n - 1, min(n, N_JUDGED)).round().astype(int))]


def varies(y: Codes) -> bool:
    """Return whether codes (n,) have more than one value, missing ones apart."""
    known = y[y != UNKNOWN]
    return bool(len(known)) and bool((known != known[0]).any())


def best_on_grid(score: Callable[[float], float], grid: Sequence[float], start: int) -> float:
    """Climb along a grid from one of its positions while the score rises; return where it is highest."""
    values = {start: score(grid[start])}
    for step in (1, -1):
        at = start
        while 0 <= at + step < len(grid):
            values[at + step] = score(grid[at + step])
            if values[at + step] <= values[at]:
                break
            at += step
        if at != start:
            break
    return grid[max(values, key=lambda at: values[at])]


def nearest_on_grid(C: float) -> int:
    """Return the position of a value, or of the nearest to it, in `GRID`."""
    return int(np.abs(np.log(GRID) - np.log(C)).argmin())


def least_of_parents(width: int) -> float:
    """Return the least C of so many columns of parents.

    Beyond ten columns it falls with their number, as the start of the climb does: 59 labels that have nothing
    to do with each other would cost a chain 8 nats a row, with 150 rows and C = 0.3.
    """
    return min(PARENTS_C, _PER_COLUMN / max(1, width))


def parents_factor(C: float, width: int) -> float:
    """Return what so many columns of parents are multiplied by, so that their C is not below the least."""
    return float(np.sqrt(max(C, least_of_parents(width)) / C))


@final
@dataclass
class _Trial:
    """A class variable in one fold.

    Parameters
    ----------
    Z : array, shape (n + 1, r), or StandardisedRows
    target : Target
    learnt, held : array, shape (n,)
        Weights of the rows to learn from and of those held out.
    """

    Z: Floats | StandardisedRows
    target: Target
    learnt: Floats
    held: Floats
    _last: Baseline | None = field(default=None, init=False)

    @cached_property
    def _judged(self) -> Codes:
        """The held-out rows whose class was learnt; others, as combinations of labels, measure nothing."""
        y, learnt = self.target.y, self.learnt > 0
        seen = np.isin(y, np.unique(y[learnt & (y != UNKNOWN)]))
        return np.flatnonzero(seen & (self.held > 0))

    def score(self, C: float) -> float:
        """Return the log-likelihood of the held-out rows."""
        y, card, columns = self.target
        Z = self.Z
        if columns is not None:
            Z = _beside(Z, columns * parents_factor(C, columns.shape[1]), self.learnt)
        y = np.ascontiguousarray(y)
        base = Baseline.fit(Z, y, card, self.learnt, C=C, tol=ROUGHLY, start=self._last)
        if columns is None:  # otherwise the scale of some columns differs from that of the last fit
            self._last = base
        judged = self._judged
        rows = Z[judged] if isinstance(Z, np.ndarray) else Z.take(judged)
        own = log_proba(base.logits(rows), card)[y[judged], np.arange(len(judged))]
        return float(self.held[judged] @ own)


def _beside(Z: Floats | StandardisedRows, columns: Floats, weight: Floats) -> Any:
    """Return rows with further columns (n, p) on the right; the last row has their mean."""
    mean = weight @ columns / max(weight.sum(), np.finfo(float).tiny)
    if isinstance(Z, np.ndarray):
        return np.hstack([Z, np.vstack([columns, mean])])
    scaled = sparse.csr_array(sparse.hstack([Z.scaled, sparse.csr_array(columns)]))
    return replace(Z, scaled=scaled, middle=np.concatenate([Z.middle, mean]))


# -- for rows of any form and number -----------------------------------------------------------------------


def logistic_batch(
    Z: Features, weight: Floats | None, *, C: float = 1.0, tol: float = 1e-4, max_iter: int = 1000
) -> LogisticBatch | None:
    """Prepare columns Z once for many regressions; None where that would take too much memory or time."""
    if Z.shape[1] == 0 or n_rows(Z) > _largest_n(Z.shape[1]) or Z.shape[0] * Z.shape[1] > LISTED_CELLS:
        return None
    return LogisticBatch(as_table(Z), weight, C=C, tol=tol, max_iter=max_iter)


def _largest_n(d: int) -> int:
    """Number of rows up to which the principal axes of d columns are computed in a few seconds."""
    return int(max(_WORK / d**2, min(d, np.sqrt(_WORK / d))))


def choose_for_rows(
    X: Features,
    Z: Features,
    codes: Codes,
    targets: Sequence[Target],
    weight: Floats | None,
    groups: Codes | None = None,
    batch: LogisticBatch | None = None,
) -> float:
    """Return the C for regressions on columns Z, 1 where there are `ROWS_PER_COLUMN` rows for each of them.

    Parameters
    ----------
    X : features, n rows
        The same rows before they were scaled; the folds follow from these.
    Z : array or sparse matrix, shape (n, d)
    codes : int array, shape (n, v)
        Of the class variables.
    targets : sequence of Target
    weight : array, shape (n,), or None
    groups : int array, shape (n,), optional
        Rows of one group are held out together.
    batch : LogisticBatch, optional
        Made from Z.
    """
    n, d = Z.shape
    targets = some([target for target in targets if varies(target.y)])
    if d == 0 or n > ROWS_PER_COLUMN * d or not targets:
        return 1.0
    whole = np.ones(n) if weight is None else weight
    stays_sparse = sparse.issparse(Z) and n * d > LISTED_CELLS
    X = _comparable(X, stays_sparse)
    size = SAMPLE_SIZE if stays_sparse else min(SAMPLE_SIZE, _largest_n(d), LISTED_CELLS // d)
    size = max(1, min(size, BLOCK_CELLS // max(target.card for target in targets)))
    if n > size:
        rows, taken = sample_rows(X, codes, whole, size)
        assert taken is not None
        X, Z, codes, whole, batch = take_rows(X, rows), take_rows(Z, rows), codes[rows], taken, None
        targets = [_take(target, rows) for target in targets]
        groups = None if groups is None else groups[rows]
    n_folds, n_needed = _n_folds(len(codes), targets)
    shares = fold_shares(inner_folds(X, codes, whole, n_folds, groups=groups), whole)
    columns = _sparse_rows(Z, whole) if stays_sparse else _turned_rows(Z, whole, batch)
    return choose_strength(columns, targets, whole, shares[:n_needed]) if shares else 1.0


def _comparable(X: Features, stays_sparse: bool) -> Features:
    """Return features that folds follow from: the same for sparse and dense matrices, without last digits.

    Features that another model computed differ in their last digits where weights stand for rows.
    """
    if sparse.issparse(X) and not stays_sparse:
        X = as_table(X)
    if not isinstance(X, np.ndarray) or X.dtype != np.float64:
        return X
    with np.errstate(over="ignore"):
        return X.astype(np.float32)


def _n_folds(n: int, targets: Sequence[Target]) -> tuple[int, int]:
    """Return the number of folds and how many of them are held out.

    Fits to many classes, such as combinations of labels, take long.
    """
    n_labels = n * len(targets)
    n_folds = _MANY_FOLDS if n_labels <= _ENOUGH else _FEW_FOLDS
    if any(target.card > _MANY_CLASSES for target in targets):
        return _FEW_FOLDS, 1
    return n_folds, min(n_folds, -(-_ENOUGH * n_folds // max(1, n_labels)))


def _take(target: Target, rows: Codes) -> Target:
    columns = None if target.columns is None else target.columns[rows]
    return Target(target.y[rows], target.card, columns)


def _turned_rows(Z: Features, weight: Floats, batch: LogisticBatch | None) -> Floats:
    """Return dense columns as `choose_strength` takes them, on their principal axes."""
    if batch is None:
        batch = LogisticBatch(as_table(Z), weight)
    return batch.turned_rows


def _sparse_rows(Z: Any, weight: Floats) -> StandardisedRows:
    return StandardisedRows(sparse.csr_array(Z), weight @ Z / weight.sum(), with_mean=True)
