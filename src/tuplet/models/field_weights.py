"""Weights of a random field, linear in x, and the search for the best ones."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from tuplet.exceptions import ConvergenceWarning
from tuplet.local.inputs import Features
from tuplet.models.field_likelihood import Likelihood
from tuplet.models.pairwise_field import PairwiseField, Scores
from tuplet.typing import Floats


class FieldWeights(NamedTuple):
    """Weights of x, and of 1 in the last row, in the scores of a field."""

    single: Floats  # (d + 1, w)
    pair: Floats  # (1 or d + 1, e)

    @classmethod
    def zeros(cls, d: int, field: PairwiseField, linear: bool) -> FieldWeights:
        """Weights of d features, all 0; those of pairs for every feature if `linear`."""
        w, e = int(field.starts[-1]), int(field.edge_starts[-1])
        return cls(np.zeros((d + 1, w)), np.zeros((d + 1 if linear else 1, e)))

    @property
    def flat(self) -> Floats:
        """The weights as a vector."""
        return np.concatenate([self.single.ravel(), self.pair.ravel()])

    def like(self, flat: Floats) -> FieldWeights:
        """Weights of this shape from a vector."""
        cut = self.single.size
        return FieldWeights(flat[:cut].reshape(self.single.shape), flat[cut:].reshape(self.pair.shape))

    def penalised(self) -> Floats:
        """The weights as a vector, with 0 for those that are free: the intercepts."""
        flat = self.flat
        w = self.single.shape[1]
        flat[self.single.size - w : self.single.size] = 0.0
        return flat

    def scores(self, X: Features) -> Scores:
        """Scores of the rows of X (n, d)."""
        pair = self.pair if len(self.pair) == 1 else X @ self.pair[:-1] + self.pair[-1]
        return Scores(X @ self.single[:-1] + self.single[-1], pair)

    def pull_back(self, X: Features, slope: Scores) -> Floats:
        """Gradient by the weights, as a vector, from the gradient by the scores."""
        single = np.vstack([X.T @ slope.single, slope.single.sum(axis=0)])
        pair = slope.pair if len(self.pair) == 1 else np.vstack([X.T @ slope.pair, slope.pair.sum(axis=0)])
        return np.concatenate([single.ravel(), pair.ravel()])


def maximise(
    X: Features,
    likelihood: Likelihood,
    start: FieldWeights,
    total: float,
    *,
    C: float,
    tol: float,
    max_iter: int,
) -> tuple[FieldWeights, int]:
    """Weights of the largest penalised likelihood, by L-BFGS, and the number of iterations.

    The objective is scikit-learn's: the negative log-likelihood over the total weight of the rows, and
    |weights|^2 / (2 C total) with free intercepts.
    """
    ridge = 1.0 / (C * total)

    def objective(flat: Floats) -> tuple[float, Floats]:
        now = start.like(flat)
        value, slope = likelihood(now.scores(X))
        free = now.penalised()
        loss = -value / total + 0.5 * ridge * float(free @ free)
        return loss, ridge * free - now.pull_back(X, slope) / total

    options: Any = {"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxls": 50}
    found = minimize(objective, start.flat, jac=True, method="L-BFGS-B", options=options)
    if found.status and np.abs(found.jac).max(initial=0.0) > tol:
        warnings.warn(
            f"RandomFieldClassifier: L-BFGS has not converged in {found.nit:,} iterations; raise max_iter or"
            " tol, or lower C.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return start.like(found.x), max(1, int(found.nit))
