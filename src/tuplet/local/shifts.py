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
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax

from tuplet.core.exceptions import ConvergenceWarning
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.base import sort_into_blocks
from tuplet.local.columns import StandardisedRows
from tuplet.local.logistic_kernels import fit_shifts, shifted_log_proba
from tuplet.local.smoothing import label_counts, pseudo_row, smoothed_frequencies

STRENGTH = 1.0
"""Number s of pseudo-rows."""

_NEGLIGIBLE = 1e-8
"""Weight of a row, relative to a pseudo-row's, up to which it is left out."""

TOL, MAX_ITER = 1e-4, 1000
"""Largest entry of the gradient, in units of a row's, and limit of iterations; scikit-learn's tolerance."""


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

    def own_log_proba(
        self, Z: Floats, offset: Floats, y: Codes, blocks: Codes, card: int, rows: Codes | None = None
    ) -> Floats:
        """Log-probabilities of the classes y of some rows, all by default, whose parent has values `blocks`.

        Rows whose parent is `UNKNOWN` are not shifted; those whose class is `UNKNOWN` have 0. See `fit`.
        """
        rows = np.arange(len(y)) if rows is None else rows
        answer = np.empty(len(rows))
        shifted_log_proba(Z, offset, y, blocks, rows, self.theta, card, answer)
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
class Baseline:
    """The model of one class variable without parents: p_0(y | x).

    Parameters
    ----------
    card : int
    frequencies : array (c,)
        Logits of the smoothed training frequencies.
    shift : Shifts
        Of one block.
    share : array (k,)
        Of the pseudo-row; see `tuplet.local.smoothing`. Likelihoods that are maximised do without it.
    """

    card: int
    frequencies: Floats
    shift: Shifts
    share: Floats

    @classmethod
    def fit(
        cls,
        Z: Floats | StandardisedRows,
        y: Codes,
        card: int,
        weight: Floats,
        *,
        C: float,
        tol: float = TOL,
        start: Baseline | None = None,
    ) -> Baseline:
        """Fit to rows Z (n + 1, r), the mean last, and classes y (n,)."""
        counts = label_counts(y, card, weight)
        frequencies, share = _frequency_logits(counts), pseudo_row(counts)
        begin = None if start is None else start.shift
        if isinstance(Z, StandardisedRows):
            shift = _fit_sparse(Z, frequencies, y, card, weight, C, tol, begin)
            return cls(card, frequencies, shift, share)
        offset = np.repeat(frequencies[:, None], len(Z), axis=1)
        one_block = np.zeros(len(y), dtype=np.intp)
        shift = Shifts.fit(Z, offset, y, one_block, 1, card, weight, C=C, tol=tol, start=begin)
        return cls(card, frequencies, shift, share)

    def logits(self, Z: Floats | StandardisedRows) -> Floats:
        """Logits (c, n) of rows Z (n, r)."""
        theta = self.shift.theta[0]
        logits = theta[:, :-1] @ Z.T if isinstance(Z, np.ndarray) else (Z @ theta[:, :-1].T).T
        logits += (self.frequencies + theta[:, -1])[:, None]
        return np.ascontiguousarray(logits)


def log_proba(logits: Floats, card: int) -> Floats:
    """Log-probabilities (..., k, n) of logits (..., c, n); without n alike."""
    axis = -1 if logits.ndim == 1 else -2
    if card == 2:
        return np.concatenate([log_expit(-logits), log_expit(logits)], axis=axis)
    return np.asarray(log_softmax(logits, axis=axis))


def bounded_log_proba(logits: Floats, share: Floats) -> Floats:
    """Log-probabilities (..., k, n) of logits (..., c, n), with the share (k,) of the pseudo-row."""
    scale = 1.0 - share.sum()
    if len(share) == 2:
        proba = np.empty((*logits.shape[:-2], 2, logits.shape[-1]))
        expit(logits[..., 0, :], out=proba[..., 1, :])
        np.subtract(1.0, proba[..., 1, :], out=proba[..., 0, :])
    else:
        proba = logits - logits.max(axis=-2, keepdims=True)
        np.exp(proba, out=proba)
        scale = scale / proba.sum(axis=-2, keepdims=True)
    proba *= scale
    proba += share[:, None]
    return np.log(proba, out=proba)


def _fit_sparse(
    Z: StandardisedRows,
    frequencies: Floats,
    y: Codes,
    card: int,
    weight: Floats,
    C: float,
    tol: float,
    start: Shifts | None,
) -> Shifts:
    """Fit what `Shifts.fit` fits with one block and equal offsets, by products with sparse rows."""
    c, width = len(frequencies), Z.shape[1] + 1
    log_prior = log_proba(frequencies, card)
    used = (y != UNKNOWN) & (weight > _NEGLIGIBLE)
    rows, w = Z.take(np.flatnonzero(used)), np.append(weight[used], STRENGTH)
    # The last row is the mean, where the pseudo-rows are.
    truth = np.concatenate([y[used][:, None] == np.arange(card), np.exp(log_prior)[None]]).T
    total = w.sum()

    def objective(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(c, width)
        logits = (rows @ theta[:, :-1].T).T + (frequencies + theta[:, -1])[:, None]
        log_p = log_proba(logits, card)
        residual = ((np.exp(log_p) - truth) * w / total)[-c:]
        slope = np.empty((c, width))
        slope[:, :-1] = rows.pull_back(residual[:, :-1]) + theta[:, :-1] / (C * total)
        slope[:, -1] = residual.sum(axis=1)
        value = (theta[:, :-1] ** 2).sum() / (2 * C) - w @ (truth * log_p).sum(axis=0)
        return float(value / total), slope.ravel()

    begin = np.zeros(c * width) if start is None else start.theta.ravel()
    options: Any = {"maxiter": MAX_ITER, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options=options)
    if (norm := np.abs(found.jac).max(initial=0.0)) > tol:
        _warn(np.array([norm]), len(y))
    theta = found.x.reshape(1, c, width)
    return Shifts(theta, _penalty(theta, frequencies, log_prior, C))


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


def _frequency_logits(counts: Floats) -> Floats:
    log = np.log(smoothed_frequencies(counts))
    return log[1:] - log[:1] if len(counts) == 2 else log
