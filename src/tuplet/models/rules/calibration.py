"""Calibration of a classifier's probabilities, learned from rows that it has not seen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from scipy.special import expit, logit, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.calibration import best_power

CalibrationKind = Literal["identity", "platt", "isotonic", "temperature", "dirichlet"]

CLIP = 1e-5
"""Least probability whose logarithm or log-odds a calibrator looks at."""

_ALMOST_FREE = 1e4
"""Inverse penalty of Platt's two numbers: large, but finite where a belief separates the labels."""


class Calibrator(ABC):
    """A map from probabilities (n, k) to probabilities (n, k)."""

    @abstractmethod
    def apply(self, proba: Floats) -> Floats:
        """Return calibrated probabilities; rows add up to one."""


def learn_calibrator(
    kind: CalibrationKind, proba: Floats, codes: Codes, weights: Floats | None = None
) -> Calibrator:
    """Learn how to map the beliefs about one class variable.

    Parameters
    ----------
    kind : str
        "identity", "platt" (a sigmoid of the log-odds of every category, with Platt's targets), "isotonic" (a
        step function of every category), "temperature" (one power), or "dirichlet" (a multinomial ridge
        regression on the log-probabilities).
    proba : array, shape (n, k)
        Beliefs of a classifier that has not seen the rows.
    codes : array, shape (n,)
        The labels; `UNKNOWN` ones teach nothing.
    weights : array, shape (n,), optional

    Returns
    -------
    Calibrator
        The identity also where the known labels are all the same.

    Examples
    --------
    >>> proba = np.repeat([[0.9, 0.1], [0.1, 0.9]], 50, axis=0)
    >>> codes = np.r_[np.repeat([0, 1], [35, 15]), np.repeat([0, 1], [15, 35])]  # 70 % right, not 90 %
    >>> learn_calibrator("temperature", proba, codes).apply(proba[:1]).round(2)
    array([[0.7, 0.3]])
    """
    known = np.flatnonzero(codes != UNKNOWN)
    weight = np.ones(len(known)) if weights is None else weights[known]
    proba, codes = proba[known], codes[known]
    if kind == "identity" or len(np.unique(codes)) < 2:
        return _Identity()
    if kind == "temperature":
        return _Temperature(1 / best_power(_log(proba), codes, weight))
    if kind == "dirichlet":
        return _Dirichlet(LogisticRegression(max_iter=1000).fit(_log(proba), codes, weight))
    counts = np.bincount(codes, weight, minlength=proba.shape[1])
    learn: Any = _sigmoid if kind == "platt" else _steps
    # With two categories, the second determines the first.
    columns = range(proba.shape[1]) if proba.shape[1] > 2 else [1]
    maps = tuple(learn(proba[:, c], codes == c, weight) for c in columns)
    return _ByCategory(maps, (counts + 1) / (counts.sum() + len(counts)), float(counts.sum()))


def _log(proba: Floats) -> Floats:
    logarithms: Floats = np.log(np.clip(proba, CLIP, None))
    return logarithms


def _sigmoid(p: Floats, positive: Any, weight: Floats) -> Any:
    """Return Platt's sigmoid of log-odds; targets are those of his paper, just inside of 0 and 1."""
    n_yes, n_no = float(weight @ positive), float(weight @ ~positive)
    target = np.where(positive, (n_yes + 1) / (n_yes + 2), 1 / (n_no + 2))
    odds = logit(np.clip(p, CLIP, 1 - CLIP))[:, None]
    model = LogisticRegression(C=_ALMOST_FREE, max_iter=1000).fit(
        np.vstack([odds, odds]),
        np.repeat([1, 0], len(p)),
        np.concatenate([weight * target, weight * (1 - target)]),
    )
    return _Sigmoid(float(model.coef_[0, 0]), float(model.intercept_[0]))


def _steps(p: Floats, positive: Any, weight: Floats) -> Any:
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    return _Steps(model.fit(p, positive.astype(float), sample_weight=weight))


@final
@dataclass(frozen=True)
class _Identity(Calibrator):
    def apply(self, proba: Floats) -> Floats:
        return proba


@final
@dataclass(frozen=True)
class _Temperature(Calibrator):
    temperature: float

    def apply(self, proba: Floats) -> Floats:
        answer: Floats = softmax(_log(proba) / self.temperature, axis=1)
        return answer


@final
@dataclass(frozen=True)
class _Dirichlet(Calibrator):
    model: LogisticRegression

    def apply(self, proba: Floats) -> Floats:
        answer = np.full(proba.shape, CLIP)  # categories that no row had keep a little
        answer[:, self.model.classes_] = np.maximum(self.model.predict_proba(_log(proba)), CLIP)
        return answer / answer.sum(axis=1, keepdims=True)


@final
@dataclass(frozen=True)
class _Sigmoid:
    slope: float
    shift: float

    def __call__(self, p: Floats) -> Floats:
        answer: Floats = expit(self.slope * logit(np.clip(p, CLIP, 1 - CLIP)) + self.shift)
        return answer


@final
@dataclass(frozen=True)
class _Steps:
    model: IsotonicRegression

    def __call__(self, p: Floats) -> Floats:
        return np.asarray(self.model.predict(p), dtype=float)


@final
@dataclass(frozen=True)
class _ByCategory(Calibrator):
    """One map for each category, scaled to add up to one; a pseudo-row keeps everything above zero."""

    maps: tuple[Any, ...]
    prior: Floats
    n: float

    def apply(self, proba: Floats) -> Floats:
        if len(self.maps) == 1:
            second = self.maps[0](proba[:, 1])
            answer = np.column_stack([1.0 - second, second])
        else:
            answer = np.column_stack([each(column) for each, column in zip(self.maps, proba.T, strict=True)])
            answer /= np.maximum(answer.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        mixed = self.n * answer + self.prior
        return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))
