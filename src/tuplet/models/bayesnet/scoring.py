"""The scorer of a Bayesian network: roles of discrete features, and how many sets of parents are scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from tuplet.local.criteria import resolve_criterion
from tuplet.local.families import FamilyScorer
from tuplet.local.inputs import Features
from tuplet.local.logistic import is_logistic_pipeline
from tuplet.local.mixed_families import MixedFamilyScorer, Role
from tuplet.local.screening import Shortlist
from tuplet.models.bayesnet.learning import Scorer
from tuplet.models.bayesnet.views import FeatureViews
from tuplet.typing import Codes

_FOLDS, _FEW_FOLDS = 5, 3
"""Parts of the rows that are held out in turn, for the criterion "cv" and for choices; fewer if slow."""

_LISTED = 5
"""Sets of parents for each class variable that slow classifiers are scored with."""


def possible_roles(
    views: FeatureViews, discrete_as: Any, estimators: Sequence[Any], criterion: Any, max_features: int
) -> tuple[Role, ...]:
    """Return the roles that discrete features may have; one of them unless there is something to choose."""
    if discrete_as != "auto":
        if discrete_as == "parents":
            views.require_parted(estimators)
        return (discrete_as,)
    nothing = not views.discrete.columns or not max_features or not views.can_part(estimators)
    return ("inputs",) if nothing or resolve_criterion(criterion, estimators) == "cv" else get_args(Role)


def make_scorer(
    views: FeatureViews,
    roles: Sequence[Role],
    X: Features,
    codes: Codes,
    cards: Sequence[int],
    *,
    max_features: int,
    deadline: float | None,
    rng: np.random.Generator,
    **settings: Any,
) -> MixedFamilyScorer:
    """Return a scorer with one `FamilyScorer` for each role, all with the same folds and seeds."""
    features, seed, scorers = views.codes(X), int(rng.integers(2**31 - 1)), {}
    n_folds = _FEW_FOLDS if is_slow(settings["score"], settings["estimators"]) else _FOLDS
    for role in roles:
        plain = role == "inputs"
        scorers[role] = FamilyScorer(
            views.inputs(X, role),
            codes if plain else np.hstack([codes, features]),
            cards if plain else (*cards, *views.discrete.cards),
            n_folds=max(2, min(n_folds, len(codes))),
            deadline=deadline,
            random_state=seed,
            **settings,
        )
    return MixedFamilyScorer(scorers, codes, features.shape[1], max_features, deadline)


def is_slow(criterion: Any, estimators: Sequence[Any]) -> bool:
    """Return whether scores are cross-validated fits of something else than compiled regressions."""
    compiled = all(each is None or is_logistic_pipeline(each) for each in estimators)
    return not compiled and resolve_criterion(criterion, estimators) == "cv"


def shorten(scorer: MixedFamilyScorer, size: int | None, cards: Sequence[int], **settings: Any) -> Scorer:
    """Return a scorer of so many sets for each child, of all if that is None."""
    return scorer if size is None else Shortlist(scorer, scorer.codes, cards, size, **settings)


def list_size(shortlist: Any, criterion: Any, estimators: Sequence[Any]) -> int | None:
    """Return the size of a shortlist, None if there is none; "auto" has one where scores are slow."""
    if shortlist == "auto":
        return _LISTED if is_slow(criterion, estimators) else None
    return None if shortlist is None else int(shortlist)
