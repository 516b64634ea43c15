"""Logistic regressions in two layers: one shared by all values of a parent, and small shifts of it for each.

The model without parents is p_0(y | x). With the value v of a parent its logits are shifted,

    p(y | x, v) = softmax(log p_0(y | x) + W_v x + b_v),

and the shifts are penalised: the models of all values are shrunk to the shared one, that of a rare value more
than that of a common one. p_0 is itself a shift of the training frequencies. Everything is the maximum of one
penalised likelihood,

    sum_i w_i log p(y_i | x_i, v_i) - ||W||^2 / (2 C) - s KL(p_0(. | mean x) || p(. | mean x, v)),

whose last term, s pseudo-rows at the mean of the features, keeps every probability above zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_expit, log_softmax

from tuplet.core.exceptions import ConvergenceWarning
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.base import sort_into_blocks
from tuplet.local.logistic_kernels import fit_shifts
from tuplet.local.many_logistic import principal_axes
from tuplet.space.features.inputs import Features, require_size

STRENGTH = 1.0
"""Number s of pseudo-rows."""

_NEGLIGIBLE = 1e-8
"""Weight of a row, relative to a pseudo-row's, up to which it is left out."""

TOL, MAX_ITER = 1e-4, 1000
"""Largest entry of the gradient, in units of a row's, and limit of iterations; scikit-learn's tolerance."""


@dataclass(frozen=True)
class PrincipalColumns:
    """Standardised features, rotated to their principal axes; missing numbers become the mean.

    The rotation changes neither penalty nor result, but makes a diagonal a good preconditioner, leaves no
    more columns than there are rows, and puts those first along which rows differ most.

    Parameters
    ----------
    mean, scale : array, shape (d,)
    basis : array, shape (d, r)
        Orthonormal columns.
    """

    mean: Floats
    scale: Floats
    basis: Floats

    @classmethod
    def learn(cls, X: Features, weight: Floats) -> PrincipalColumns:
        """Learn means, scales and axes from rows X with weights (n,)."""
        X = _dense(X)
        known = ~np.isnan(X)
        total = np.maximum(weight @ known, np.finfo(float).tiny)
        mean = weight @ np.where(known, X, 0.0) / total
        centred = np.where(known, X - mean, 0.0)
        size = np.maximum(np.abs(centred).max(axis=0, initial=0.0), np.finfo(float).tiny)
        # Divided by the largest number, since the squares of large numbers overflow.
        scale = size * np.sqrt(weight @ (centred / size) ** 2 / total)
        scale[scale <= 1e-12 * (np.abs(mean) + 1e-300)] = 1.0  # constant up to rounding
        axes = principal_axes(centred / scale * np.sqrt(weight)[:, None])
        return cls(mean, scale, np.ascontiguousarray(axes[:, ::-1]) if len(X) >= X.shape[1] else axes)

    def apply(self, X: Features) -> Floats:
        """Return the columns (n, r) of rows X."""
        standard = (_dense(X) - self.mean) / self.scale
        return np.ascontiguousarray(np.where(np.isnan(standard), 0.0, standard) @ self.basis)


@dataclass(frozen=True)
class Shifts:
    """What q values of a parent add to the logits of a child; c = 1 logit for two classes, otherwise k.

    Parameters
    ----------
    theta : array, shape (q, c, r + 1)
        Coefficients of the columns, the intercept last. r may be 0: then the values shift all rows alike.
    penalty : float
        What they cost, see the module; zero if nothing is shifted.
    """

    theta: Floats
    penalty: float

    def logits(self, Z: Floats, offset: Floats) -> Floats:
        """Logits (q, c, n) of rows Z (n, r) whose unshifted logits are `offset` (c, n)."""
        q, c, width = self.theta.shape
        flat = self.theta.reshape(q * c, width)
        shift = flat[:, :-1] @ Z[:, : width - 1].T + flat[:, -1:]
        return offset + shift.reshape(q, c, len(Z))

    def own_logits(self, Z: Floats, offset: Floats, blocks: Codes) -> Floats:
        """Logits (c, n) of rows whose parent has the values `blocks` (n,), unshifted if it is `UNKNOWN`."""
        answer, r = offset.copy(), self.theta.shape[2] - 1
        for g, theta in enumerate(self.theta):
            rows = np.flatnonzero(blocks == g)
            answer[:, rows] += theta[:, :r] @ Z[rows, :r].T + theta[:, -1:]
        return answer

    @classmethod
    def fit(
        cls,
        Z: Floats,
        offset: Floats,
        y: Codes,
        blocks: Codes,
        n_blocks: int,
        card: int,
        weight: Floats,
        *,
        C: float,
        tol: float = TOL,
        start: Shifts | None = None,
    ) -> Shifts:
        """Fit the shifts of every block.

        Parameters
        ----------
        Z : array, shape (n + 1, r)
            C-contiguous; the last row is the mean of the others, where the pseudo-rows are.
        offset : array, shape (c, n + 1)
            Unshifted logits of all these rows.
        y, blocks : int array, shape (n,)
            Class and block of the rows; those with `UNKNOWN` in either are left out.
        n_blocks, card : int
            Numbers of blocks q and classes k.
        weight : array, shape (n,)
        C : float
            Inverse strength of the penalty.
        tol : float
        start : Shifts, optional
            Where to begin; by default at zero.
        """
        n, c, width = len(y), len(offset), Z.shape[1] + 1
        theta = np.zeros((n_blocks, c, width)) if start is None else start.theta.copy()
        log_prior = log_proba(offset[:, -1], card)
        if card > 1:
            pseudo = STRENGTH * np.exp(log_prior)
            rows, starts, labels, masses = _with_pseudo_rows(y, blocks, n_blocks, weight, pseudo)
            slots = 1 - labels if card == 2 else labels
            norm, n_iter = np.zeros(n_blocks), np.zeros(n_blocks, dtype=np.intp)
            fit_shifts(Z, offset, rows, starts, slots, masses, 1 / C, tol, MAX_ITER, theta, norm, n_iter)
            if not (norm <= tol).all():
                _warn(norm, n)
        return cls(theta, _penalty(theta, offset[:, -1], log_prior, C))


@dataclass(frozen=True)
class Shared:
    """The models without parents of some class variables: p_0(y_i | x).

    Parameters
    ----------
    cards : tuple of int
    frequencies : tuple of arrays (c,)
        Logits of the smoothed training frequencies.
    shifts : tuple of Shifts
        Of one block each.
    """

    cards: tuple[int, ...]
    frequencies: tuple[Floats, ...]
    shifts: tuple[Shifts, ...]

    @classmethod
    def fit(
        cls,
        Z: Floats,
        codes: Codes,
        cards: Sequence[int],
        weight: Floats,
        *,
        C: float,
        tol: float = TOL,
        start: Shared | None = None,
    ) -> Shared:
        """Fit to rows Z (n + 1, r), the mean last, and codes (n, m)."""
        frequencies, shifts = [], []
        one_block = np.zeros(len(codes), dtype=np.intp)
        for i, card in enumerate(cards):
            y = np.ascontiguousarray(codes[:, i])
            base = _frequency_logits(y, card, weight)
            offset = np.repeat(base[:, None], len(Z), axis=1)
            begin = None if start is None else start.shifts[i]
            frequencies.append(base)
            shifts.append(Shifts.fit(Z, offset, y, one_block, 1, card, weight, C=C, tol=tol, start=begin))
        return cls(tuple(cards), tuple(frequencies), tuple(shifts))

    def logits(self, Z: Floats) -> list[Floats]:
        """Logits (c_i, n) of every variable for rows Z (n, r)."""
        return [
            np.ascontiguousarray(shift.logits(Z, base[:, None])[0])
            for base, shift in zip(self.frequencies, self.shifts, strict=True)
        ]


def log_proba(logits: Floats, card: int) -> Floats:
    """Log-probabilities (..., k, n) of logits (..., c, n); without n alike."""
    axis = -1 if logits.ndim == 1 else -2
    if card == 2:
        return np.concatenate([log_expit(-logits), log_expit(logits)], axis=axis)
    return np.asarray(log_softmax(logits, axis=axis))


def own_log_proba(logits: Floats, y: Codes, card: int) -> Floats:
    """Log-probabilities (n,) of the classes y (n,) under logits (c, n); 0 where the class is `UNKNOWN`."""
    known = y != UNKNOWN
    if card == 2:
        return np.where(known, log_expit(np.where(y == 1, logits[0], -logits[0])), 0.0)
    table = log_softmax(logits, axis=0)
    return np.where(known, table[np.where(known, y, 0), np.arange(len(y))], 0.0)


def _dense(X: Any) -> Floats:
    if sparse.issparse(X):
        table: Any = X
        require_size("Sparse features as a dense table", *table.shape)
        X = table.toarray()
    return np.asarray(X, dtype=np.float64)


def _with_pseudo_rows(
    y: Codes, blocks: Codes, q: int, weight: Floats, pseudo: Floats
) -> tuple[Codes, Codes, Codes, Floats]:
    """Rows sorted by block, where blocks start, labels and weights; every block has row n once per class.

    Classes whose pseudo-weight has underflowed to zero have no pseudo-row: weights must be positive.
    """
    used = np.flatnonzero((y != UNKNOWN) & (blocks != UNKNOWN) & (weight > _NEGLIGIBLE))
    possible = np.flatnonzero(pseudo > np.finfo(float).tiny)
    k = len(possible)
    rows = np.concatenate([used, np.full(q * k, len(y))])
    labels = np.concatenate([y[used], np.tile(possible, q)])
    masses = np.concatenate([weight[used], np.tile(pseudo[possible], q)])
    order, starts = sort_into_blocks(np.concatenate([blocks[used], np.repeat(np.arange(q), k)]), q)
    return rows[order], starts, labels[order], masses[order]


def _penalty(theta: Floats, middle: Floats, log_prior: Floats, C: float) -> float:
    """Penalty of shifts (q, c, r + 1), where the mean row has the unshifted logits `middle` (c,)."""
    shifted = log_proba((middle + theta[:, :, -1]).T, len(log_prior))  # (k, q)
    divergence = np.exp(log_prior) @ (log_prior[:, None] - shifted)
    return float((theta[:, :, :-1] ** 2).sum() / (2 * C) + STRENGTH * divergence.sum())


def _warn(norm: Floats, n: int) -> None:
    message = (
        f"Logistic regression: {int((norm > TOL).sum())} of {len(norm)} fits on {n:,} rows have not converged"
        f" in {MAX_ITER:,} iterations (gradient {norm.max():.1e}); lower C."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=4)


def _frequency_logits(y: Codes, card: int, weight: Floats) -> Floats:
    known = y != UNKNOWN
    counts: Any = np.bincount(y[known], weight[known], minlength=card) + 1.0
    log = np.log(counts / counts.sum())
    return log[1:] - log[:1] if card == 2 else log
