"""Metrics as scorers for `cross_validate` and `GridSearchCV`: greater is better."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.losses.base import Loss
from tuplet.losses.general import Jaccard
from tuplet.losses.registry import LOSSES, get_loss
from tuplet.metrics import decisions, probabilities
from tuplet.space.classes import ClassSpace
from tuplet.space.features.estimators import unwrap

_KNOWN_AS = {"accuracy": "exact_match", "subset_accuracy": "exact_match", "hamming_loss": "neg_hamming_loss"}
"""Other common names of scores."""


@final
@dataclass(frozen=True)
class DecisionScorer:
    """Score decisions, made for the loss that belongs to the measure.

    Estimators whose `predict` takes no loss (those of scikit-learn, and a `DecisionClassifier`, which has
    its own) are taken as they are. Pipelines and fitted searches are looked into.

    Parameters
    ----------
    measure : callable
        `measure(Y_true, Y_pred, sample_weight=..., space=...)`, such as `tuplet.metrics.macro_f1`.
    loss : Loss or str
        What the estimator decides for.
    sign : {1, -1}
        -1 if the measure is a loss.
    stand_in : bool, default False
        Whether another loss may decide where `loss` cannot: Hamming where a loss for binary variables
        meets more categories, or labels of which none is known as positive; F1 where there are too many
        outcomes for Jaccard. It suits measures that are defined for these too.

    Examples
    --------
    >>> DecisionScorer(decisions.macro_f1, loss="subset")
    DecisionScorer(macro_f1, loss='subset')
    """

    measure: Callable[..., float]
    loss: Loss | str
    sign: int = 1
    stand_in: bool = False

    def __call__(self, estimator: Any, X: Any, Y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Score a fitted estimator on the labels Y of X."""
        model, X = unwrap(estimator, X)
        space = getattr(model, "space_", None)
        takes_loss = "loss" in inspect.signature(model.predict).parameters
        loss = _feasible(self.loss, space) if self.stand_in else self.loss
        Y_pred = model.predict(X, loss=loss) if takes_loss else model.predict(X)
        return self.sign * self.measure(Y, Y_pred, sample_weight=sample_weight, space=space)

    def __repr__(self) -> str:
        return f"DecisionScorer({_shown(self.measure, self.sign)}, loss={self.loss!r})"


def _feasible(loss: Loss | str, space: ClassSpace | None) -> Loss | str:
    """Return the loss if it can decide in this space, or what comes closest.

    Where every variable has more than two categories, true and predicted sets have m pairs each, and the
    decision for Hamming is the one for F1. It also stands in where no label is declared positive.
    """
    wanted = get_loss(loss)
    if space is None or not wanted.binary:
        return loss
    if max(space.cards) > 2 or not all(map(space.knows_positive, range(space.n_variables))):
        return "hamming"
    limit = wanted.limit if isinstance(wanted, Jaccard) and wanted.candidates == "all" else math.inf
    return "f1" if math.prod(space.cards) > limit else loss


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
        model, X = unwrap(estimator, X)
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
    "instance_f1": DecisionScorer(decisions.instance_f1, "f1", stand_in=True),
    "jaccard_score": DecisionScorer(decisions.jaccard_score, "jaccard", stand_in=True),
    # No decision for a single row maximises these over a data set; single labels come closest.
    "micro_f1": DecisionScorer(decisions.micro_f1, "hamming"),
    "macro_f1": DecisionScorer(decisions.macro_f1, "hamming"),
    "macro_precision": DecisionScorer(decisions.macro_precision, "hamming"),
    "macro_recall": DecisionScorer(decisions.macro_recall, "hamming"),
    "joint_log_likelihood": ProbabilityScorer(probabilities.joint_log_loss, -1),
    "marginal_log_likelihood": ProbabilityScorer(probabilities.marginal_log_loss, -1),
    "neg_brier_score": ProbabilityScorer(probabilities.brier_score, -1),
}
"""Scorers by name, ready for `cross_validate(..., scoring=SCORERS)`; one more line is one more name.

They work for any number of categories. The scorers of losses that `get_scorer` makes by name, "neg_f2_loss",
are not among them: they need binary variables, or are a score minus 1.
"""


ORDERED_SCORERS: dict[str, Scorer] = {
    "neg_ranked_probability_score": ProbabilityScorer(probabilities.ranked_probability_score, -1),
}
"""Further scorers by name, for class spaces with ordered variables."""


def get_scorer(name: str) -> Scorer:
    """Return the scorer of this name.

    Parameters
    ----------
    name : str
        One of `SCORERS`; "neg_<loss>_loss" for minus the mean of a loss that goes by a name, decided for
        that loss; "top_<k>_accuracy"; or, for ordered variables, "neg_ranked_probability_score".

    Examples
    --------
    >>> get_scorer("exact_match")
    DecisionScorer(exact_match, loss='subset')
    >>> get_scorer("neg_f2_loss")
    DecisionScorer(-mean_loss, loss='f2')
    >>> get_scorer("top_3_accuracy")
    ProbabilityScorer(top_k_accuracy(k=3))
    """
    named = SCORERS | ORDERED_SCORERS
    if name in named:
        return named[name]
    losses = {f"neg_{loss}_loss": loss for loss in LOSSES}
    if name in losses:
        return loss_scorer(losses[name])
    top = re.fullmatch(r"top_(\d+)_accuracy", str(name))
    if top:
        return top_k_scorer(int(top[1]))
    names = (*named, "top_3_accuracy", *losses)
    close = _KNOWN_AS.get(str(name)) or next(iter(get_close_matches(str(name), names, 1)), "")
    hint = f" (did you mean {close!r}?)" if close else ""
    raise InputError(f"A scorer must be one of {', '.join(map(repr, names))}; found {name!r}{hint}.")


def loss_scorer(loss: Loss | str) -> DecisionScorer:
    """Scorer that decides for a loss and gives minus its mean.

    Examples
    --------
    >>> from tuplet.losses import Abstain
    >>> loss_scorer(Abstain("hamming", 0.2)).sign
    -1
    """
    return DecisionScorer(partial(decisions.mean_loss, loss=get_loss(loss)), loss, -1)


def top_k_scorer(k: int) -> ProbabilityScorer:
    """Scorer of `top_k_accuracy`: whether the labels are among the k most probable combinations.

    Examples
    --------
    >>> top_k_scorer(5)
    ProbabilityScorer(top_k_accuracy(k=5))
    """
    if not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"top_k_scorer: k must be a whole number of at least 1, found {k!r}.")
    return ProbabilityScorer(partial(probabilities.top_k_accuracy, k=k))


def _shown(measure: Callable[..., float], sign: int) -> str:
    minus = "-" if sign < 0 else ""
    if not isinstance(measure, partial):
        return minus + getattr(measure, "__name__", repr(measure))
    settings = ", ".join(f"{key}={value}" for key, value in measure.keywords.items() if key != "loss")
    return minus + measure.func.__name__ + (f"({settings})" if settings else "")
