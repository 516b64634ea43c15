"""Criteria that families are scored by: penalties on parameters, and the default for each classifier."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

from tuplet.core.exceptions import InputError
from tuplet.local.bayes import MixedNaiveBayes
from tuplet.local.logistic import is_logistic_pipeline
from tuplet.space.features.estimators import last_step, name_of

Score: TypeAlias = Literal["auto", "bic", "bic-true", "aic", "aic-true", "cv"]

Parametrisation: TypeAlias = Literal["split", "inputs"]

Penalty: TypeAlias = Callable[[float, float], float]
"""(number of free parameters, number of rows) -> penalty >= 0, which must grow with the parameters."""

_MODEST = (
    LogisticRegression,  # also with a strength chosen by cross-validation, which is a subclass
    GaussianNB,
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    MultinomialNB,
    MixedNaiveBayes,
)
"""Classifiers that do not memorise training rows, so that their training likelihood can be penalised."""


def check_family_settings(parametrisation: str, score: Any, strength: float) -> None:
    """Raise `InputError` for invalid settings of a `FamilyScorer`."""
    if parametrisation not in ("auto", *get_args(Parametrisation)):
        raise InputError(
            f"FamilyScorer: parametrisation must be split, inputs or auto; found {parametrisation!r}."
        )
    if not callable(score) and score not in get_args(Score):
        raise InputError(
            f"FamilyScorer: score must be one of {', '.join(get_args(Score))}, or a callable; found"
            f" {score!r}."
        )
    if not 0 < strength < np.inf:
        raise InputError(f"FamilyScorer: strength must be a number > 0, found {strength!r}.")


def resolve_criterion(score: Score | Penalty, estimators: Sequence[Any] | None) -> Score | Penalty:
    """Return the criterion that "auto" stands for with these classifiers; any other as it is."""
    if callable(score) or score != "auto":
        return score
    modest = (e is None or isinstance(last_step(e), _MODEST) for e in estimators or ())
    return "bic" if all(modest) else "cv"


def require_countable(estimators: Sequence[Any]) -> None:
    """Raise `InputError` unless the parameters of all classifiers can be counted."""
    for each in estimators:
        if not is_logistic_pipeline(each):
            raise InputError(
                f"FamilyScorer: the parameters of {name_of(each)} cannot be counted, as bic-true and aic-true"
                ' do; choose another score, such as "cv".'
            )


def _bic(n_free: float, n: float) -> float:
    return 0.5 * n_free * math.log(max(n, 1.0))


def _aic(n_free: float, n: float) -> float:
    return n_free


PENALTIES: dict[str, tuple[Penalty, bool]] = {
    "bic": (_bic, False),
    "bic-true": (_bic, True),
    "aic": (_aic, False),
    "aic-true": (_aic, True),
}
"""Penalties by name, and whether they count the coefficients of the features too."""


def n_parameters(
    parametrisation: Parametrisation, child_card: int, parent_cards: Sequence[int], n_features: int = 0
) -> int:
    """Return the number of free parameters of a family with softmax regressions on `n_features` columns.

    With 0 features it is the count of the paper's BIC for "split", a free distribution per configuration, and
    the corresponding count for "inputs", where each parent shifts the logits by itself.

    Examples
    --------
    >>> n_parameters("split", 3, (2, 4)), n_parameters("inputs", 3, (2, 4))
    (16, 10)
    >>> n_parameters("split", 3, (2, 4), 10), n_parameters("inputs", 3, (2, 4), 10)
    (176, 30)
    """
    if parametrisation == "split":
        return (child_card - 1) * math.prod(parent_cards) * (n_features + 1)
    return (child_card - 1) * (n_features + 1 + sum(card - 1 for card in parent_cards))
