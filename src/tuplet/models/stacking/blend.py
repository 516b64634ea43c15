"""The weights of the models in a mixture, the same for all rows or by a gate, and the mixture itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tuplet.core.typing import Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution, all_outcomes
from tuplet.joint.mixture import Mixture
from tuplet.local.cross_fitting import Fold, Positions, cross_fit, mean_and_error, numbered_folds
from tuplet.metrics.calibration import mode_calibration
from tuplet.models.mixture_weights import mixture_weights
from tuplet.models.stacking.held_out import HeldOut, Rows, gain_of
from tuplet.models.stacking.tempering import Tempering, find_power, temper
from tuplet.prediction.joint import JointPrediction
from tuplet.space.features.encoding import encoder_for
from tuplet.space.features.inputs import Features, n_rows, take_rows
from tuplet.space.features.scaling import LimitedScaler


@final
@dataclass(frozen=True)
class Blend:
    """A recipe for a mixture.

    Attributes
    ----------
    weights : dict of str to float
        Of all models that were judged; those without weight are not needed.
    alone : dict of str to float
        Held-out log-likelihood per row of each model.
    log_likelihood : float
        Held-out log-likelihood per row of the mixture with constant weights.
    error : float
        Its standard error, by groups where rows have groups.
    gap : float
        By how much other constant weights can be better at most.
    n_rows : int
        Held-out rows that it rests on.
    gate : Gate or None
        Weights that depend on x, of the models with a weight.
    tempering : Tempering
    reliability : DataFrame or None
        How often the most probable combination of held-out rows was right, by its probability; None where
        there are too many combinations.
    """

    weights: dict[str, float]
    alone: dict[str, float]
    log_likelihood: float
    error: float
    gap: float
    n_rows: int
    gate: Gate | None = None
    tempering: Tempering = field(default_factory=Tempering)
    reliability: pd.DataFrame | None = None

    @property
    def names(self) -> list[str]:
        """Models with a weight."""
        return [name for name, weight in self.weights.items() if weight > 0]

    def joint(self, X: Features, models: Mapping[str, Any], counts: Sequence[Floats]) -> JointDistribution:
        """Joint distribution of rows X, by fitted models; `counts` (k_j,) are those of training labels."""
        parts = tuple(models[name]._joint_of(X) for name in self.names)
        joint = parts[0] if len(parts) == 1 else Mixture(self._log_weights(X), parts)
        return temper(joint, self.tempering.power, counts)

    def _log_weights(self, X: Features) -> Floats:
        if self.gate is not None:
            return self.gate.log_weights(X)
        weights = [self.weights[name] for name in self.names]
        return np.repeat(np.log([weights]), n_rows(X), axis=0)


def find_blend(
    rows: Rows,
    folds: Sequence[Fold],
    judged: Mapping[str, Sequence[HeldOut]],
    *,
    gate: bool = False,
    temperature: bool = True,
) -> Blend:
    """Weights, and what else the held-out rows ask for, of models that were judged in all folds."""
    names = list(judged)
    if not folds:  # of a single row nothing can be held out
        equal = dict.fromkeys(names, 1 / len(names))
        return Blend(equal, dict.fromkeys(names, np.nan), np.nan, np.nan, np.inf, 0)
    log_prob = np.stack([np.concatenate([part.log_prob for part in judged[name]]) for name in names], axis=1)
    weight = np.concatenate([fold.test_weight for fold in folds])
    found = mixture_weights(log_prob, weight)
    kept = found.weights > 0
    best = None
    if gate and kept.sum() > 1:
        best = _gate(rows, folds, log_prob[:, kept], weight, found.weights[kept])
    tables = _tables(rows, folds, judged, found.weights, best)
    power, reliability = Tempering(), None
    if tables is not None:
        given = tables.log_prob, tables.codes, tables.weights, rows.space.cards, tables.groups
        power = find_power(*given) if temperature else power
        reliability = _reliability(tables, power.power, rows)
    alone = (weight @ log_prob) / weight.sum()
    groups = rows.groups_of(np.concatenate([fold.test for fold in folds]))
    mixed = logsumexp(log_prob[:, kept] + np.log(found.weights[kept]), axis=1)
    return Blend(
        dict(zip(names, found.weights.tolist(), strict=True)),
        dict(zip(names, alone.tolist(), strict=True)),
        found.log_likelihood,
        mean_and_error(mixed, weight, groups)[1],
        found.gap,
        len(weight),
        best,
        power,
        reliability,
    )


def _gate(
    rows: Rows, folds: Sequence[Fold], log_prob: Floats, weight: Floats, weights: Floats
) -> Gate | None:
    number = np.repeat(np.arange(len(folds)), [len(fold.test) for fold in folds])
    tested = np.concatenate([fold.test for fold in folds])
    groups = rows.groups_of(tested)
    return fit_gate(take_rows(rows.X, tested), log_prob, weight, number, weights, groups)


class _Tables(NamedTuple):
    """Held-out log-probabilities (n, outcomes) of the mixture, what was found, (n, m), weights and groups."""

    log_prob: Floats
    codes: Codes
    weights: Floats
    groups: Codes | None


def _tables(
    rows: Rows,
    folds: Sequence[Fold],
    judged: Mapping[str, Sequence[HeldOut]],
    weights: Floats,
    gate: Gate | None,
) -> _Tables | None:
    """Return what the mixture says of the rows whose outcomes were all asked for; None if there are none."""
    members = [(weight, judged[name]) for name, weight in zip(judged, weights, strict=True) if weight > 0]
    tables, tested, counts = [], [], []
    for f, fold in enumerate(folds):
        parts = [table for _, held in members if (table := held[f].table) is not None]
        if len(parts) < len(members):
            return None
        asked = fold.test[: len(parts[0])]
        constant = np.repeat(np.log([[weight for weight, _ in members]]), len(asked), axis=0)
        log_weights = constant if gate is None else gate.log_weights(take_rows(rows.X, asked))
        tables.append(_mixed(log_weights, parts))
        tested.append(asked)
        counts.append(fold.test_weight[: len(asked)])
    asked = np.concatenate(tested)
    return _Tables(np.concatenate(tables), rows.codes[asked], np.concatenate(counts), rows.groups_of(asked))


def _reliability(tables: _Tables, power: float, rows: Rows) -> pd.DataFrame:
    """Return how often the most probable combination was right, by its probability."""
    cards = rows.space.cards
    joint = Atoms(cards, all_outcomes(cards)[None], power * tables.log_prob)
    truth = rows.space.decode(tables.codes)
    return mode_calibration(truth, JointPrediction(joint, rows.space), sample_weight=tables.weights)


def _mixed(log_weights: Floats, tables: Sequence[Any]) -> Floats:
    """Average log-probabilities (n, outcomes), one member at a time."""
    total = log_weights[:, :1] + tables[0]
    for c, table in enumerate(tables[1:], start=1):
        np.logaddexp(total, log_weights[:, c, None] + table, out=total)
    return total


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
            LimitedScaler(with_mean=not sparse.issparse(numbers)),
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
    X: Features,
    log_prob: Floats,
    sample_weight: Floats,
    fold: Codes,
    weights: Floats,
    groups: Codes | None = None,
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
    groups : int array, shape (n,), optional
        For the standard error of the gain.
    """
    if len(np.unique(fold)) < 2:
        return None  # nothing would be held out from a gate
    axes = _Axes(X)
    inputs, start = axes(X), np.log(weights)
    constant = logsumexp(log_prob + start, axis=1)
    trials = [_held_out(inputs, log_prob, sample_weight, fold, start, penalty) for penalty in _PENALTIES]
    best = int(np.argmax([sample_weight @ trial for trial in trials]))
    gain = gain_of(trials[best] - constant, sample_weight, groups)
    if not gain.is_clear:
        return None
    intercept, slopes = _fit(inputs, log_prob, sample_weight, start, _PENALTIES[best])
    return Gate(axes, intercept, slopes, _PENALTIES[best], *gain)


def _held_out(
    inputs: Floats, log_prob: Floats, sample_weight: Floats, fold: Codes, start: Floats, penalty: float
) -> Floats:
    """Log-likelihoods (n,) of rows by gates that were fitted to the other folds."""

    def log_likelihoods(fitted: tuple[Floats, Floats], rows: Positions) -> Floats:
        intercept, slopes = fitted
        log_weights = log_softmax(inputs[rows] @ slopes + intercept, axis=1)
        return np.asarray(logsumexp(log_weights + log_prob[rows], axis=1))

    held = cross_fit(
        numbered_folds(fold, sample_weight),
        lambda rows, _: _fit(inputs[rows], log_prob[rows], sample_weight[rows], start, penalty),
        log_likelihoods,
    )
    value = np.empty(len(inputs))
    value[held.rows] = np.concatenate(held.predictions)
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
