"""Weights of a mixture that depend on the features: a small softmax model, held back by a penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tuplet.core.typing import Codes, Floats
from tuplet.models.stacking.held_out import gain_of
from tuplet.space.features.encoding import encoder_for
from tuplet.space.features.inputs import Features

_AXES = 8
"""Directions of the features that the weights may depend on."""

_PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Penalties on squared slopes, per row, from which held-out rows choose."""


class _Axes:
    """The leading directions of the features, of unit variance."""

    def __init__(self, X: Features) -> None:
        self.encoder = encoder_for(X, [LogisticRegression()])
        if self.encoder is not None:
            self.encoder.learn(X)
        numbers = self._numbers(X)
        n_axes = min(_AXES, *numbers.shape)
        self.steps = make_pipeline(
            StandardScaler(with_mean=not sparse.issparse(numbers)),
            TruncatedSVD(
                n_axes, algorithm="arpack" if n_axes < min(numbers.shape) else "randomized", random_state=0
            ),
            StandardScaler(),
        ).fit(numbers)

    def _numbers(self, X: Features) -> Any:
        return X if self.encoder is None else self.encoder.apply(X)

    def __call__(self, X: Features) -> Floats:
        return np.asarray(self.steps.transform(self._numbers(X)))


@final
@dataclass(frozen=True)
class Gate:
    """Weights of members by a softmax of a few directions of the features.

    Attributes
    ----------
    intercept : array, shape (C,)
    slopes : array, shape (axes, C)
    penalty : float
        Chosen by held-out rows.
    gain, error : float
        Nats per held-out row that it gains over constant weights, and the standard error of that.
    """

    axes: Any
    intercept: Floats
    slopes: Floats
    penalty: float
    gain: float
    error: float

    def log_weights(self, X: Features) -> Floats:
        """Log-weights (n, C) of the members in each row."""
        return np.asarray(log_softmax(self.axes(X) @ self.slopes + self.intercept, axis=1))


def fit_gate(
    X: Features, log_prob: Floats, sample_weight: Floats, fold: Codes, weights: Floats
) -> Gate | None:
    """Return a gate over members with these constant weights, or None where held-out rows see no gain.

    Parameters
    ----------
    X : features, n rows
    log_prob : array, shape (n, C)
        Held-out log-probabilities of the members; only those with a positive weight.
    sample_weight : array, shape (n,)
    fold : int array, shape (n,)
        The fold that held a row out; gates are judged by the same folds.
    weights : array, shape (C,)
        The best constant weights, all positive.
    """
    if len(np.unique(fold)) < 2:
        return None  # nothing would be held out from a gate
    axes = _Axes(X)
    inputs, start = axes(X), np.log(weights)
    constant = logsumexp(log_prob + start, axis=1)
    trials = [_held_out(inputs, log_prob, sample_weight, fold, start, penalty) for penalty in _PENALTIES]
    best = int(np.argmax([sample_weight @ trial for trial in trials]))
    gain = gain_of(trials[best] - constant, sample_weight)
    if not gain.is_clear:
        return None
    intercept, slopes = _fit(inputs, log_prob, sample_weight, start, _PENALTIES[best])
    return Gate(axes, intercept, slopes, _PENALTIES[best], *gain)


def _held_out(
    inputs: Floats, log_prob: Floats, sample_weight: Floats, fold: Codes, start: Floats, penalty: float
) -> Floats:
    """Log-likelihoods (n,) of rows by gates that were fitted to the other folds."""
    value = np.empty(len(inputs))
    for number in np.unique(fold):
        out = fold == number
        intercept, slopes = _fit(inputs[~out], log_prob[~out], sample_weight[~out], start, penalty)
        value[out] = logsumexp(log_softmax(inputs[out] @ slopes + intercept, axis=1) + log_prob[out], axis=1)
    return value


def _fit(
    inputs: Floats, log_prob: Floats, sample_weight: Floats, start: Floats, penalty: float
) -> tuple[Floats, Floats]:
    """Climb from constant weights: intercept (C,) and slopes (axes, C)."""
    shape = (inputs.shape[1] + 1, log_prob.shape[1])
    design = np.column_stack([np.ones(len(inputs)), inputs])
    share = sample_weight / sample_weight.sum()

    def loss(flat: Floats) -> tuple[float, Floats]:
        slopes = flat.reshape(shape)
        log_gate = log_softmax(design @ slopes, axis=1)
        total = logsumexp(log_gate + log_prob, axis=1)
        taken = np.exp(log_gate + log_prob - total[:, None])  # whose rows these are
        gradient = design.T @ ((taken - np.exp(log_gate)) * share[:, None])
        gradient[1:] -= 2 * penalty * slopes[1:]
        return -float(share @ total - penalty * (slopes[1:] ** 2).sum()), -gradient.ravel()

    first = np.zeros(shape)
    first[0] = start
    answer = minimize(loss, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    best = answer.x.reshape(shape)
    return best[0], best[1:]
