"""How much of each model goes into a mixture, and how the mixture is put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from tuplet.core.typing import Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution, all_outcomes
from tuplet.joint.mixture import Mixture
from tuplet.metrics.calibration import mode_calibration
from tuplet.models.stacking.gate import Gate, fit_gate
from tuplet.models.stacking.held_out import Fold, HeldOut, Rows
from tuplet.models.stacking.tempering import Tempering, find_power, temper
from tuplet.models.stacking.weights import mixture_weights
from tuplet.prediction.joint import JointPrediction
from tuplet.space.features.inputs import Features, n_rows, take_rows


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
    gap: float
    n_rows: int
    gate: Gate | None = None
    tempering: Tempering = field(default_factory=Tempering)
    reliability: pd.DataFrame | None = None

    @property
    def names(self) -> list[str]:
        """Models with a weight."""
        return [name for name, weight in self.weights.items() if weight > 0]

    def joint(self, X: Features, models: Mapping[str, Any]) -> JointDistribution:
        """Joint distribution of rows X, by fitted models."""
        parts = tuple(models[name]._joint_of(X) for name in self.names)
        if len(parts) == 1:
            return temper(parts[0], self.tempering.power)
        mixture = Mixture(self._log_weights(X), parts)
        return temper(mixture, self.tempering.power)

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
        return Blend(equal, dict.fromkeys(names, np.nan), np.nan, np.inf, 0)
    log_prob = np.stack([np.concatenate([part.log_prob for part in judged[name]]) for name in names], axis=1)
    weight = np.concatenate([fold.test_weight for fold in folds])
    found = mixture_weights(log_prob, weight)
    kept = found.weights > 0
    best = None
    if gate and kept.sum() > 1:
        best = _gate(rows.X, folds, log_prob[:, kept], weight, found.weights[kept])
    tables = _tables(rows, folds, judged, found.weights, best)
    power, reliability = Tempering(), None
    if tables is not None:
        power = find_power(*tables, rows.space.cards) if temperature else power
        reliability = _reliability(tables, power.power, rows)
    alone = (weight @ log_prob) / weight.sum()
    return Blend(
        dict(zip(names, found.weights.tolist(), strict=True)),
        dict(zip(names, alone.tolist(), strict=True)),
        found.log_likelihood,
        found.gap,
        len(weight),
        best,
        power,
        reliability,
    )


def _gate(
    X: Features, folds: Sequence[Fold], log_prob: Floats, weight: Floats, weights: Floats
) -> Gate | None:
    number = np.repeat(np.arange(len(folds)), [len(fold.test) for fold in folds])
    tested = np.concatenate([fold.test for fold in folds])
    return fit_gate(take_rows(X, tested), log_prob, weight, number, weights)


class _Tables(NamedTuple):
    """Held-out log-probabilities (n, outcomes) of the mixture, what was found, (n, m), and weights (n,)."""

    log_prob: Floats
    codes: Codes
    weights: Floats


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
    return _Tables(np.concatenate(tables), rows.codes[np.concatenate(tested)], np.concatenate(counts))


def _reliability(tables: _Tables, power: float, rows: Rows) -> pd.DataFrame:
    """Return how often the most probable combination was right, by its probability."""
    cards = rows.space.cards
    joint = Atoms(cards, all_outcomes(cards)[None], power * tables.log_prob)
    truth = rows.space.decode(tables.codes)
    return mode_calibration(truth, JointPrediction(joint, rows.space), sample_weight=tables.weights)


def _mixed(log_weights: Floats, tables: Sequence[Any]) -> Floats:
    stacked = [log_weights[:, c, None] + table for c, table in enumerate(tables)]
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(stacked, axis=0))
