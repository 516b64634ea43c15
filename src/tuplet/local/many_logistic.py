"""Many penalised logistic regressions on parts of the same rows: scikit-learn's results, compiled.

A child with a set of parents needs one regression for each of their configurations, and a search over parent
sets needs thousands of them on the same features. `LogisticBatch` prepares the features once; each `fit` is
then one sort of the rows and one call of compiled code, which releases the GIL and so runs in threads.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from tuplet.core.exceptions import ConvergenceWarning, InputError
from tuplet.core.limits import BLOCK_CELLS
from tuplet.core.parallel import n_workers, run_many
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.base import sort_into_blocks
from tuplet.local.logistic_kernels import fit_blocks
from tuplet.space.features.inputs import require_size

_SMALL = 256
"""Columns up to which all axes are kept, whatever the rows: repeating rows then changes nothing."""


@dataclass(frozen=True)
class ManyLogistic:
    """One softmax regression over k classes for each of q blocks of rows; see `BlockClassifiers`.

    Parameters
    ----------
    coef : array, shape (q, k, d)
        Coefficients. A block with two classes has scikit-learn's single logit in the row of the second, and
        zeros in that of the first. Absent classes have zeros.
    intercept : array, shape (q, k)
        Intercepts, minus infinity for classes that a block lacks. Zeros for a block without rows.
    totals : array, shape (q,)
        Training weight of every block.
    present : array of bool, shape (q, k)
        Which classes have weight in which block.
    train_log_likelihood : array, shape (q,)
        sum_i w_i log p(y_i | x_i) over the training rows of each block, without the penalty.
    gradient_norm : array, shape (q,)
        Largest entry of the gradient, in the units of `tol`; 0 for blocks with fewer than two classes.
    converged : array of bool, shape (q,)
        Whether `gradient_norm` came down to `tol`.
    n_iter : array of int, shape (q,)
        Iterations of L-BFGS.
    """

    coef: Floats
    intercept: Floats
    totals: Floats
    present: npt.NDArray[np.bool_]
    train_log_likelihood: Floats
    gradient_norm: Floats
    converged: npt.NDArray[np.bool_]
    n_iter: Codes

    @classmethod
    def from_frequencies(cls, counts: Floats) -> ManyLogistic:
        """Return regressions without columns, whose intercepts are the logarithms of frequencies (q, k)."""
        present = counts > 0
        log = np.log(counts, where=present, out=np.full(counts.shape, -np.inf))
        log[~present.any(axis=1)] = 0.0
        q, zeros = len(counts), np.zeros(len(counts))
        coef, converged, n_iter = np.zeros((*counts.shape, 0)), np.ones(q, dtype=bool), np.zeros(q, np.intp)
        return cls(coef, log, counts.sum(axis=1), present, zeros, zeros, converged, n_iter)

    def proba(self, Z: Floats, blocks: Codes) -> Floats:
        """See `BlockClassifiers.proba`."""
        known = blocks != UNKNOWN
        if known.all():
            return np.exp(self.log_proba(Z, blocks))
        answer = np.zeros((len(blocks), self.coef.shape[1]))
        answer[known] = np.exp(self.log_proba(Z[known], blocks[known]))
        return answer

    def table(self, Z: Floats) -> Floats:
        """See `BlockClassifiers.table`: one matrix product."""
        # The result lies in memory as (q, k, n), so that later passes are contiguous.
        log_proba = np.moveaxis(self.log_proba_all(Z), 2, 1)
        return np.exp(log_proba, out=log_proba)

    def log_proba(self, X: Floats, blocks: Codes | None = None) -> Floats:
        """Log-probabilities (n, k) of rows X (n, d), each by the regression of its own block (n,).

        Classes that a block lacks have minus infinity; a block without rows gives all the same probability.
        `blocks` may be omitted if there is one block only. Columns that were `extra` in training stand to
        the right of the others.
        """
        q, k, _ = self.coef.shape
        block = np.zeros(len(X), dtype=np.intp) if blocks is None else blocks
        order, starts = sort_into_blocks(block, q)
        logits = np.empty((len(X), k))
        for g in np.flatnonzero(np.diff(starts)):
            rows = order[starts[g] : starts[g + 1]]
            logits[rows] = X[rows] @ self.coef[g].T + self.intercept[g]
        return np.asarray(log_softmax(logits, axis=1))

    def log_proba_all(self, X: Floats) -> Floats:
        """Log-probabilities (q, n, k) of all rows X (n, d) by the regressions of all blocks."""
        q, k, d = self.coef.shape
        require_size(f"Log-probabilities by {q:,} regressions", q * len(X), k)
        logits = (self.coef.reshape(q * k, d) @ X.T).reshape(q, k, len(X))
        logits += self.intercept[:, :, None]
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return np.moveaxis(logits, 1, 2)


class LogisticBatch:
    """Features, prepared once for any number of logistic regressions on parts of their rows.

    The columns are turned to their principal axes, which changes neither the penalty nor the result but makes
    a diagonal a good preconditioner for every block; where there are fewer rows than columns, it also leaves
    fewer columns to fit, since the coefficients are combinations of the rows.

    The objective of a block is scikit-learn's, C sum_i w_i nll_i + ||W||^2 / 2: one logit for two classes,
    one for each of several classes, no penalty on the intercepts. Classes that a block lacks are left out.

    Parameters
    ----------
    X : array, shape (n, d)
        Finite numbers. Standardise them: the penalty treats all columns alike.
    sample_weight : array, shape (n,), optional
        Weights that the axes are computed with; those of the regressions are given to `fit`. A row of weight
        2 then equals two rows in every step, and a row of weight 0 is ignored.
    C : float
        Inverse strength of the penalty.
    tol : float or array, shape (q,)
        A block is done when no entry of the gradient of its objective over C sum_i w_i, for centred columns,
        is above this: scikit-learn's criterion for its solver "lbfgs".
    max_iter : int
        Limit of iterations for each block.

    Attributes
    ----------
    rows : array, shape (n, d)
        X, as the regressions take rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-1.0], [0.5], [1.0], [-0.5], [0.2], [0.9]])
    >>> batch = LogisticBatch(X)
    >>> fits = batch.fit(np.array([0, 1, 1, 1, 0, 2]), np.array([0, 0, 0, 1, 1, 1]), 2, 3)
    >>> fits.present
    array([[ True,  True, False],
           [ True,  True,  True]])
    >>> np.exp(fits.log_proba(X[:2], np.array([0, 1]))).round(2)
    array([[0.54, 0.46, 0.  ],
           [0.34, 0.28, 0.38]])
    """

    def __init__(
        self,
        X: Floats,
        sample_weight: Floats | None = None,
        *,
        C: float = 1.0,
        tol: float | Floats = 1e-4,
        max_iter: int = 1000,
    ) -> None:
        self.C, self.tol, self.max_iter = C, tol, max_iter
        self.rows = X
        X = np.ascontiguousarray(X, dtype=np.float64)
        if not len(X) or not np.isfinite(X).all():
            raise InputError("Logistic regression: X must have rows, all of finite numbers.")
        weight = _weights(sample_weight, len(X))
        self._mean = weight @ X / (weight.sum() or 1.0)
        centred = X - self._mean
        self._basis = principal_axes(np.sqrt(weight)[:, None] * centred, _SMALL)
        self._Z = np.ascontiguousarray(centred @ self._basis)

    @property
    def turned_rows(self) -> Floats:
        """Centred rows (n + 1, r) on their principal axes, the mean last; see `Baseline.fit`."""
        return np.vstack([self._Z, np.zeros((1, self._Z.shape[1]))])

    def takes(self, n_classes: int) -> bool:
        """Return whether several arrays of rows times classes, which a fit needs, are small."""
        return n_classes <= 2 or len(self._Z) * n_classes <= BLOCK_CELLS

    def with_strength(self, C: float) -> LogisticBatch:
        """Return the same rows for regressions with another penalty."""
        other = copy(self)
        other.C = C
        return other

    def fit(
        self,
        y: Codes,
        blocks: Codes,
        n_blocks: int,
        n_classes: int,
        weight: Floats | None = None,
        *,
        extra: Floats | None = None,
        n_jobs: int | None = 1,
    ) -> ManyLogistic:
        """Fit one regression to the rows of each block.

        Parameters
        ----------
        y : int array, shape (n,)
            Codes of the classes; rows with `UNKNOWN` are left out.
        blocks : int array, shape (n,)
            The block of each row, `UNKNOWN` for rows to leave out.
        n_blocks, n_classes : int
            Numbers of blocks q and classes k.
        weight : array, shape (n,), optional
            Weights w_i; rows of weight 0 are left out.
        extra : array, shape (n, p), optional
            Further columns for this fit alone, such as one-hot parents.
        n_jobs : int, optional
            Number of threads, as joblib counts them.

        Returns
        -------
        ManyLogistic
            Warns where a block has not converged.
        """
        n, weight = len(self._Z), _weights(weight, len(self._Z))
        columns = np.zeros((n, 0)) if extra is None else np.ascontiguousarray(extra, dtype=np.float64)
        tol = np.ascontiguousarray(np.broadcast_to(np.asarray(self.tol, dtype=np.float64), (n_blocks,)))
        used = np.flatnonzero((blocks != UNKNOWN) & (y != UNKNOWN) & (weight > 0))
        plan = Blocks.make(blocks, y, weight, used, n_blocks, n_classes)
        total = plan.class_weight.sum(axis=1)
        ridge = 1 / (self.C * np.where(total > 0, total, 1.0))
        theta = plan.start(self._Z.shape[1] + columns.shape[1])
        nll, norm, n_iter = np.zeros(n_blocks), np.zeros(n_blocks), np.zeros(n_blocks, dtype=np.intp)
        given = (self._Z, columns, self._basis, ridge, tol, int(self.max_iter))
        _run(plan, given, (theta, nll, norm, n_iter), n_jobs)
        converged = norm <= tol
        if not converged.all():
            _warn(converged, norm, self.max_iter)
        coef, intercept = self._parameters(plan, theta)
        return ManyLogistic(coef, intercept, total, plan.present, -nll * total, norm, converged, n_iter)

    def _parameters(self, plan: Blocks, theta: Floats) -> tuple[Floats, Floats]:
        """Coefficients (q, k, d + p) and intercepts (q, k) for the columns as they were given."""
        theta, r = plan.by_class(theta), self._Z.shape[1]
        coef = np.concatenate([theta[:, :, :r] @ self._basis.T, theta[:, :, r:-1]], axis=2)
        intercept = theta[:, :, -1] - coef[:, :, : len(self._mean)] @ self._mean
        absent = ~plan.present & plan.present.any(axis=1, keepdims=True)
        return coef, np.where(absent, -np.inf, intercept)


# -- what the compiled code is given ----------------------------------------------------------------------


@dataclass(frozen=True)
class Blocks:
    """Training rows of q blocks and the logits that each block needs.

    Parameters
    ----------
    rows, starts : int array (s,), (q + 1,)
        Block g has the rows `rows[starts[g] : starts[g + 1]]`.
    slots : int array (s,)
        The logit of each row's class; with one logit for two classes, that is 0 for the second of them and 1
        for the first, which has none.
    weight : float array (s,)
        Weights of the rows, which sum to 1 in each block.
    class_weight : float array (q, k)
        Total weight of every class.
    block_at, label_at, slot_at : int array (l,)
        The logits of all blocks: that of class `label_at` in `block_at` is number `slot_at`.
    """

    rows: Codes
    starts: Codes
    slots: Codes
    weight: Floats
    class_weight: Floats
    block_at: Codes
    label_at: Codes
    slot_at: Codes

    @classmethod
    def make(cls, block: Codes, labels: Codes, weight: Floats, rows: Codes, q: int, k: int) -> Blocks:
        """Sort `rows`, whose blocks, labels and weights (> 0) are found in arrays over all rows."""
        order, starts = sort_into_blocks(block[rows], q)
        rows = rows[order]
        g, label, w = block[rows], labels[rows], weight[rows]
        class_weight = np.bincount(g * k + label, w, minlength=q * k).reshape(q, k).astype(float)
        slot = _slots(class_weight > 0)
        n_logits = slot.max(axis=1, keepdims=True, initial=-1) + 1
        n_logits[n_logits == 2] = 1
        block_at, label_at = np.nonzero((slot >= 0) & (slot < n_logits))
        share = w / class_weight.sum(axis=1)[g]
        slot_at = slot[block_at, label_at]
        return cls(rows, starts, slot[g, label], share, class_weight, block_at, label_at, slot_at)

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which classes have weight in which block (q, k)."""
        return self.class_weight > 0

    def start(self, width: int) -> Floats:
        """Parameters (q, k, width + 1) by logit: zeros, and intercepts that give the classes' frequencies."""
        q, k = self.class_weight.shape
        present = self.present
        log = np.log(self.class_weight, where=present, out=np.zeros((q, k)))
        n_present = present.sum(axis=1)
        middle = log.sum(axis=1) / np.maximum(n_present, 1)
        first = log[np.arange(q), present.argmax(axis=1)]
        base = np.where(n_present == 2, first, middle)
        theta = np.zeros((q, k, width + 1))
        theta[self.block_at, self.slot_at, -1] = log[self.block_at, self.label_at] - base[self.block_at]
        return theta

    def by_class(self, theta: Floats) -> Floats:
        """Reorder parameters (q, k, ...) by logit to parameters by class, with zeros for classes without."""
        out = np.zeros_like(theta)
        out[self.block_at, self.label_at] = theta[self.block_at, self.slot_at]
        return out


def _slots(present: npt.NDArray[np.bool_]) -> Codes:
    """Number the classes of each block from 0, of two classes the second; -1 for those that are absent."""
    slot = np.where(present, present.cumsum(axis=1) - 1, -1)
    two = present.sum(axis=1, keepdims=True) == 2
    return np.where(two & present, 1 - slot, slot)


def principal_axes(centred: Floats, all_up_to: int = 0) -> Floats:
    """Orthonormal columns (d, r) that span centred rows (n, d), in increasing order of variance if n >= d.

    All d axes are kept if there are no more than `all_up_to` of them or n >= d; otherwise those along which
    the rows differ, in decreasing order of variance.
    """
    n, d = centred.shape
    if n >= d or d <= all_up_to:
        return np.ascontiguousarray(np.linalg.eigh(centred.T @ centred)[1])
    _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    kept = lengths > lengths.max(initial=0.0) * d * np.finfo(float).eps
    return np.ascontiguousarray(axes[kept].T)


def _run(plan: Blocks, given: tuple[Any, ...], results: tuple[Any, ...], n_jobs: int | None) -> None:
    """Let threads fit the blocks that have something to learn."""
    n_logits = np.bincount(plan.block_at, minlength=len(plan.class_weight))
    rows = (plan.starts, plan.rows, plan.slots, plan.weight)
    arguments: tuple[Any, ...] = (*rows, *given, n_logits, *results)
    blocks = np.flatnonzero(plan.present.sum(axis=1) > 1)
    n_threads = min(n_workers(n_jobs), len(blocks))
    if n_threads < 2:
        fit_blocks(blocks, *arguments)
        return
    sizes = np.diff(plan.starts)[blocks]
    # The largest first and a few at a time, so that the threads end together.
    tasks = np.array_split(blocks[np.argsort(-sizes, kind="stable")], min(len(blocks), 16 * n_threads))
    run_many(fit_blocks, [(task, *arguments) for task in tasks], n_jobs, require="sharedmem")


def _warn(converged: Any, norm: Floats, max_iter: int) -> None:
    message = (
        f"Logistic regression: {int((~converged).sum()):,} of {len(converged):,} fits have not converged in"
        f" {max_iter:,} iterations (largest entry of a gradient {norm.max():.1e}); raise max_iter or tol, or"
        " standardise the features."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=3)


def _weights(sample_weight: Floats | None, n: int) -> Floats:
    return np.ones(n) if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
