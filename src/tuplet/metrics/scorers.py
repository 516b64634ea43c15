"""Metrics as scorers for `cross_validate` and `GridSearchCV`: greater is better."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy.typing as npt
from sklearn.pipeline import Pipeline

from tuplet.exceptions import InputError
from tuplet.losses import LOSSES, Loss, get_loss
from tuplet.metrics import decisions, probabilities

__all__ = ["SCORERS", "DecisionScorer", "ProbabilityScorer", "get_scorer", "loss_scorer"]


@final
@dataclass(frozen=True)
class DecisionScorer:
    """Score decisions, made for the loss that the measure asks for.

    Estimators whose `predict` knows no loss (those of scikit-learn, and a `DecisionClassifier`, which has
    its own) are taken as they are. Pipelines and fitted searches are looked into.

    Parameters
    ----------
    measure : callable
        `measure(Y_true, Y_pred, sample_weight=..., space=...)`, such as `tuplet.metrics.macro_f1`.
    loss : Loss or str
        What the estimator decides for.
    sign : {1, -1}
        -1 if the measure is a loss.

    Examples
    --------
    >>> DecisionScorer(decisions.macro_f1, loss="subset")
    DecisionScorer(macro_f1, loss='subset')
    """

    measure: Callable[..., float]
    loss: Loss | str
    sign: int = 1

    def __call__(self, estimator: Any, X: Any, Y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Score a fitted estimator on the labels Y of X."""
        model, X = _unwrap(estimator, X)
        takes_loss = "loss" in inspect.signature(model.predict).parameters
        Y_pred = model.predict(X, loss=self.loss) if takes_loss else model.predict(X)
        space = getattr(model, "space_", None)
        return self.sign * self.measure(Y, Y_pred, sample_weight=sample_weight, space=space)

    def __repr__(self) -> str:
        return f"DecisionScorer({_shown(self.measure, self.sign)}, loss={self.loss!r})"


@final
@dataclass(frozen=True)
class ProbabilityScorer:
    """Score the joint distribution that a model predicts.

    Parameters
    ----------
    measure : callable
        `measure(Y_true, prediction, sample_weight=...)`, such as `tuplet.metrics.joint_log_loss`.
    sign : {1, -1}
        -1 if the measure is a loss.

    Examples
    --------
    >>> ProbabilityScorer(probabilities.joint_log_loss, sign=-1)
    ProbabilityScorer(-joint_log_loss)
    """

    measure: Callable[..., float]
    sign: int = 1

    def __call__(self, estimator: Any, X: Any, Y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Score a fitted estimator on the labels Y of X."""
        model, X = _unwrap(estimator, X)
        if not hasattr(model, "predict_joint"):
            raise InputError(
                f"{self!r} needs a model with predict_joint, found {type(model).__name__}; use a model of"
                " Tuplet or a scorer of decisions."
            )
        return self.sign * self.measure(Y, model.predict_joint(X), sample_weight=sample_weight)

    def __repr__(self) -> str:
        return f"ProbabilityScorer({_shown(self.measure, self.sign)})"


Scorer = DecisionScorer | ProbabilityScorer

SCORERS: dict[str, Scorer] = {
    "exact_match": DecisionScorer(decisions.exact_match, "subset"),
    "hamming_score": DecisionScorer(decisions.hamming_score, "hamming"),
    "instance_f1": DecisionScorer(decisions.instance_f1, "f1"),
    "jaccard_score": DecisionScorer(decisions.jaccard, "jaccard"),
    # No decision for a single row maximises these over a data set; single labels come closest.
    "micro_f1": DecisionScorer(decisions.micro_f1, "hamming"),
    "macro_f1": DecisionScorer(decisions.macro_f1, "hamming"),
    "macro_precision": DecisionScorer(decisions.macro_precision, "hamming"),
    "macro_recall": DecisionScorer(decisions.macro_recall, "hamming"),
    "joint_log_likelihood": ProbabilityScorer(probabilities.joint_log_loss, -1),
    "marginal_log_likelihood": ProbabilityScorer(probabilities.marginal_log_loss, -1),
    "neg_brier_score": ProbabilityScorer(probabilities.brier_score, -1),
}
"""Scorers by name, ready for `cross_validate(..., scoring=SCORERS)`; one more line is one more name."""


def get_scorer(name: str) -> Scorer:
    """Return the scorer of this name; the name of a loss gives `loss_scorer` of it.

    Examples
    --------
    >>> get_scorer("exact_match")
    DecisionScorer(exact_match, loss='subset')
    """
    if name in SCORERS:
        return SCORERS[name]
    if name in LOSSES:
        return loss_scorer(name)
    known = ", ".join(repr(known) for known in (*SCORERS, *LOSSES))
    raise InputError(f"A scorer must be one of {known}; found {name!r}.")


def loss_scorer(loss: Loss | str) -> DecisionScorer:
    """Scorer that decides for a loss and gives minus its mean.

    Examples
    --------
    >>> from tuplet.losses import Abstain
    >>> loss_scorer(Abstain("hamming", 0.2)).sign
    -1
    """
    return DecisionScorer(partial(decisions.mean_loss, loss=get_loss(loss)), loss, -1)


def _unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the model inside of pipelines and fitted searches, and what it is given of X."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            if len(estimator) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        else:
            return estimator, X


def _shown(measure: Callable[..., float], sign: int) -> str:
    name = (
        measure.func.__name__ if isinstance(measure, partial) else getattr(measure, "__name__", repr(measure))
    )
    return f"{'-' if sign < 0 else ''}{name}"
