"""Ridge regression of labels on features, with the answers that it would give about rows it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tuplet.typing import UNKNOWN, Codes, Floats

_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
"""Penalties that are tried."""


class LabelRegression(NamedTuple):
    """Linear regression of m labels, and what it said about the training rows while it did not know them."""

    coef: Floats  # (d, m)
    intercept: Floats  # (m,)
    unseen: Floats  # (n, m)
    penalty: Floats  # (m,) the penalty that was chosen for each label

    def predict(self, X: Floats) -> Floats:
        """Expected labels (n, m), not confined to [0, 1]."""
        return X @ self.coef + self.intercept


def fit_labels(
    X: Floats, codes: Codes, weights: Floats, penalties: Sequence[float] = _PENALTIES
) -> LabelRegression:
    """Regress 0/1 labels on X, each on the rows that have it, with the penalty of the least error.

    The error is that of leaving out one row, or one unit of the weight of a row, at a time; it needs no
    further fits, since a row's residual r then becomes r / (1 - leverage).

    Parameters
    ----------
    X : array, shape (n, d)
    codes : array of int, shape (n, m)
        0, 1, or `UNKNOWN`.
    weights : array, shape (n,)
    penalties : sequence of float
        To choose from, for all labels that are known in the same rows together.
    """
    (n, m), d = codes.shape, X.shape[1]
    coef, intercept, unseen, penalty = np.zeros((d, m)), np.zeros(m), np.zeros((n, m)), np.zeros(m)
    known = codes != UNKNOWN
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for p, rows in enumerate(patterns.T):
        labels = np.flatnonzero(which.ravel() == p)
        Y = codes[np.ix_(rows, labels)].astype(float)
        B, c, r, best = _ridge(X[rows], Y, weights[rows], np.asarray(penalties, dtype=float))
        coef[:, labels], intercept[labels], penalty[labels] = B, c, best
        unseen[:, labels] = X @ B + c
        unseen[np.ix_(rows, labels)] = Y - r
    return LabelRegression(coef, intercept, unseen, penalty)


def _ridge(X: Floats, Y: Floats, weights: Floats, penalties: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Coefficients (d, m), intercepts (m,), left-out residuals (n, m) and the best of the penalties."""
    total = weights.sum()
    x_mean, y_mean = weights @ X / total, weights @ Y / total
    root = np.sqrt(weights)[:, None]
    U, s, Vt = np.linalg.svd(root * (X - x_mean), full_matrices=False)
    target = U.T @ (root * (Y - y_mean))
    removed = np.minimum(weights, 1.0)[:, None]

    def left_out(penalty: float) -> Floats:
        shrink = s**2 / (s**2 + penalty)
        residual = (Y - y_mean) - U @ (shrink[:, None] * target) / root
        leverage = (U**2 @ shrink)[:, None] / weights[:, None] + 1.0 / total
        return residual / np.maximum(1.0 - removed * leverage, 1e-8)

    errors = [(weights @ left_out(penalty) ** 2).sum() for penalty in penalties]
    best = float(penalties[int(np.argmin(errors))])
    coef = Vt.T @ ((s / (s**2 + best))[:, None] * target)
    return coef, y_mean - x_mean @ coef, left_out(best), best
