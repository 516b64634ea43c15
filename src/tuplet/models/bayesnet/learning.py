"""Learning the graph of a Bayesian network: scores of sets of parents and search, within a time budget."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, get_args

import numpy as np

from tuplet.core.clock import TimeBudget
from tuplet.core.exceptions import TupletWarning
from tuplet.core.progress import Progress, Show, duration_text
from tuplet.core.typing import Codes
from tuplet.local.criteria import resolve_criterion
from tuplet.local.families import FamilyScorer
from tuplet.local.logistic import is_logistic_pipeline
from tuplet.local.mixed_families import MixedFamilyScorer, Role
from tuplet.local.screening import Shortlist
from tuplet.models.bayesnet.views import FeatureViews
from tuplet.space.features.inputs import Features
from tuplet.structure.candidates import Candidates, Family, candidate_parent_sets
from tuplet.structure.parents import Edge
from tuplet.structure.search import Found, Method, find_dag

_FOLDS, _FEW_FOLDS = 5, 3
"""Parts of the rows that are held out in turn, for the criterion "cv" and for choices; fewer if slow."""

_LISTED = 5
"""Sets of parents for each class variable that slow classifiers are scored with."""

_LAST = 1.0
"""Seconds that the search has in any case, however late it is, or after an interrupt."""


class Scorer(Protocol):
    """Scores of families; see `FamilyScorer`."""

    def score(self, families: Sequence[Family]) -> Iterator[float]:
        """Yield the score of each family in turn."""

    @property
    def bound(self) -> Callable[[int, tuple[int, ...]], float] | None:
        """(child, parents) -> bound on the score of these parents and all their supersets, or None."""


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
    n_folds = _FEW_FOLDS if _is_slow(settings["score"], settings["estimators"]) else _FOLDS
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


def shortlisted(scorer: MixedFamilyScorer, size: int | None, cards: Sequence[int], **settings: Any) -> Scorer:
    """Return a scorer of so many sets for each child, of all if that is None."""
    return scorer if size is None else Shortlist(scorer, scorer.codes, cards, size, **settings)


def list_size(shortlist: Any, criterion: Any, estimators: Sequence[Any]) -> int | None:
    """Return the size of a shortlist, None if there is none; "auto" has one where scores are slow."""
    if shortlist == "auto":
        return _LISTED if _is_slow(criterion, estimators) else None
    return None if shortlist is None else int(shortlist)


def find_candidates(
    scorer: Scorer,
    n_variables: int,
    max_parents: int,
    *,
    required: list[Edge],
    forbidden: list[Edge],
    budget: TimeBudget,
    show: Show,
) -> Candidates:
    """Score all sets of parents that can matter, or as many as half of the time allows."""
    with Progress("Scoring sets of parents", n_variables, show=show) as bar:

        def advance(done: int, planned: int) -> None:
            bar.total = planned
            bar.advance(steps=done - bar.done)

        candidates = candidate_parent_sets(
            n_variables,
            max_parents,
            scorer.score,
            bound=scorer.bound,
            required=required,
            forbidden=forbidden,
            progress=advance,
            deadline=budget.after(budget.seconds / 2),
        )
    if candidates.stopped:
        late = candidates.stopped == "deadline"
        why = f"out of its half of {duration_text(budget.seconds)}" if late else "interrupted"
        _warn(
            f"scoring was {why} after {candidates.n_scored} sets of parents; the graph is the best of these,"
            " not of all"
        )
    return candidates


def find_graph(candidates: Candidates, *, method: Method, budget: TimeBudget, **settings: Any) -> Found:
    """Search the best graph; after an interrupt, the best that a short search over orders finds."""
    limit = None if budget.left == np.inf else max(_LAST, budget.left)
    try:
        return find_dag(candidates.scores, method=method, time_limit=limit, **settings)
    except KeyboardInterrupt:
        found = find_dag(candidates.scores, method="order", time_limit=_LAST, **settings)
        _warn(f"the search was interrupted; the graph may lack {found.gap:.3g} of the best score")
        return found


def gap_of(found: Found, candidates: Candidates) -> float:
    """Return how much better than the graph that was found any graph can be, also with sets left out.

    Infinite if sets were left out of which nothing is known.
    """
    if candidates.complete:
        return found.gap
    scores = candidates.scores
    listed = [max(value for _, value in scores.candidates(child)) for child in range(scores.n_variables)]
    # Each child by itself, whether or not the graph would have a cycle.
    return max(0.0, float(np.maximum(listed, candidates.ceilings).sum()) - found.score)


def _warn(what: str) -> None:
    warnings.warn(f"BayesNetClassifier: {what}.", TupletWarning, stacklevel=6)


def _is_slow(criterion: Any, estimators: Sequence[Any]) -> bool:
    """Return whether scores are cross-validated fits of something else than compiled regressions."""
    compiled = all(each is None or is_logistic_pipeline(each) for each in estimators)
    return not compiled and resolve_criterion(criterion, estimators) == "cv"
