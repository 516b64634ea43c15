"""What families are scored by: which criteria there are, and which suits a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

from tuplet.exceptions import InputError
from tuplet.local.bayes import MixedNaiveBayes
from tuplet.local.estimators import last_step, name_of
from tuplet.local.logistic import is_logistic_pipeline
from tuplet.local.penalties import Parametrisation, Penalty

Score: TypeAlias = Literal["auto", "bic", "bic-true", "aic", "aic-true", "cv"]

_MODEST = (
    LogisticRegression,  # also with a strength chosen by cross-validation, which is a subclass
    GaussianNB,
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    MultinomialNB,
    MixedNaiveBayes,
)
"""Classifiers whose training likelihood means something: they do not remember their training rows."""


def check_settings(parametrisation: str, score: Any, strength: float) -> None:
    """Raise `InputError` for settings of a `FamilyScorer` that make no sense."""
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


def resolve(score: Score | Penalty, estimators: Sequence[Any] | None) -> Score | Penalty:
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
