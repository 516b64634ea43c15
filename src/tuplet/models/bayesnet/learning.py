"""Learning the graph of a Bayesian network: scores of sets of parents and search, within a time budget."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Any, final, get_args

import numpy as np

from tuplet.core.clock import TimeBudget
from tuplet.core.exceptions import TupletWarning
from tuplet.core.progress import Progress, Show, duration_text
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.base import configurations
from tuplet.local.families import FamilyScorer, resolve_criterion
from tuplet.local.logistic import is_logistic_pipeline
from tuplet.models.bayesnet.mixed_families import MixedFamilyScorer, Role
from tuplet.models.bayesnet.network import FeatureViews
from tuplet.models.bayesnet.screening import SCREEN_FROM, Mask, Scorer, ScreenedScorer, linked_pairs
from tuplet.models.bayesnet.shift_families import ShiftScorer
from tuplet.space.features.inputs import Features
from tuplet.structure.candidates import Candidates, Family, candidate_parent_sets
from tuplet.structure.parents import Edge
from tuplet.structure.search import Found, Method, find_dag

_FOLDS, _FEW_FOLDS = 5, 3
"""Parts of the rows that are held out in turn, for the criterion "cv" and for choices; fewer if slow."""

_LISTED = 5
"""Sets of parents for each class variable that slow classifiers are scored with."""

_JUDGES = 12
"""Largest number of class variables that a choice for all of them is made by."""

_LAST = 1.0
"""Seconds that the search has in any case, however late it is, or after an interrupt."""


_PROMISING = 8
"""Class variables that sets are made of: those with the largest estimated gains by themselves."""

_ROUNDS = 10
"""Rounds of scaling, after which the estimate is close enough."""

_PSEUDO = 1.0
"""Rows, spread as the model without parents has it, that each configuration is given beforehand."""


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


def prefers_feature_parents(mixed: MixedFamilyScorer, shifts: ShiftScorer) -> bool:
    """Return whether held-out rows are predicted better with discrete features as parents than by shifts.

    Judged by a dozen class variables without class parents.
    """
    m = mixed.codes.shape[1]
    chosen = np.unique(np.linspace(0, m - 1, min(m, _JUDGES)).round().astype(int)).tolist()
    if all(mixed.role_of(child) == "inputs" for child in chosen):
        return False
    return sum(mixed.held_out(child) for child in chosen) > shifts.edges.alone[chosen].sum()


def offered_sets(
    scorer: MixedFamilyScorer | ShiftScorer,
    shortlist: Any,
    is_slow: bool,
    cards: Sequence[int],
    *,
    max_parents: int,
    weight: Floats | None,
    required: list[Edge],
    forbidden: list[Edge],
) -> Scorer:
    """Return a scorer of the sets that are worth it: by a list if scores are slow, or screened if many."""
    if shortlist == "auto" and not is_slow:
        if len(cards) < SCREEN_FROM:
            return scorer
        return ScreenedScorer(scorer, _allowed(scorer, weight), required)
    if shortlist is None:
        return scorer
    size = _LISTED if shortlist == "auto" else int(shortlist)
    codes = scorer.codes
    if isinstance(scorer, ShiftScorer):
        codes, weight = codes[scorer.rows], None if weight is None else weight[scorer.rows]
    return Shortlist(scorer, codes, cards, size, max_parents, weight, required, forbidden)


def _allowed(scorer: MixedFamilyScorer | ShiftScorer, weight: Floats | None) -> Mask:
    """Return which single parents are scored where there are many class variables, (m, m)."""
    if isinstance(scorer, ShiftScorer):
        return np.isfinite(scorer.edges.given)
    m = scorer.codes.shape[1]
    return linked_pairs([scorer.without_parents(child) for child in range(m)], scorer.codes, weight)


def find_candidates(
    scorer: Scorer,
    n_variables: int,
    max_parents: int,
    *,
    required: list[Edge],
    forbidden: list[Edge],
    budget: TimeBudget,
    certain: int,
    show: Show,
) -> Candidates:
    """Score all sets of parents that can matter, or as many as half of the time allows.

    Sets of up to `certain` parents are scored in any case.
    """
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
            certain=certain,
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


def is_slow(criterion: Any, estimators: Sequence[Any]) -> bool:
    """Return whether scores are cross-validated fits of something else than compiled regressions."""
    compiled = all(each is None or is_logistic_pipeline(each) for each in estimators)
    return not compiled and resolve_criterion(criterion, estimators) == "cv"


# -- a list of promising sets of parents, where scores are slow ---------------------------------------------


@final
@dataclass
class Shortlist:
    """Scores of a few families of each child: those with the largest estimated gains, and all their subsets.

    A set is in the list only if its estimated gain is above that of each of its subsets.

    The estimate is the gain in log-likelihood from scaling the held-out probabilities of the model without
    parents by a factor for each category and configuration, less the penalty of the BIC. It needs no further
    fits. Information that x has already is no gain; information that parents have only in interaction with x
    is missed.

    Parameters
    ----------
    scorer : MixedFamilyScorer, or FamilyScorer
    codes : int array, shape (n, m)
        Codes of the class variables.
    cards : sequence of int
    size : int
        Number of sets in the list of each child.
    max_parents : int
    weight : array, shape (n,), or None
    required, forbidden : iterable of (parent, child)
    """

    scorer: FamilyScorer | MixedFamilyScorer | ShiftScorer
    codes: Codes
    cards: Sequence[int]
    size: int
    max_parents: int
    weight: Floats | None = None
    required: Iterable[tuple[int, int]] = ()
    forbidden: Iterable[tuple[int, int]] = ()
    _lists: dict[int, list[frozenset[int]]] = field(default_factory=dict)

    def score(self, families: Sequence[Family]) -> Iterator[float]:
        """See `FamilyScorer.score`."""
        return self.scorer.score(families)

    def bound(self, child: int, parents: tuple[int, ...]) -> float:
        """Bound of the scorer; minus infinity where neither a set nor a superset of it is in the list."""
        own = np.inf if self.scorer.bound is None else self.scorer.bound(child, parents)
        given = frozenset(parents) - self._required(child)
        if not given:
            return own
        if child not in self._lists:
            self._lists[child] = self._list(child)
        return own if any(given <= listed for listed in self._lists[child]) else -np.inf

    def _required(self, child: int) -> frozenset[int]:
        return frozenset(parent for parent, other in self.required if other == child)

    def _list(self, child: int) -> list[frozenset[int]]:
        """Return the sets of free parents with the largest estimated gains."""
        table, required = self.scorer.without_parents(child), self._required(child)
        banned = {parent for parent, other in self.forbidden if other == child} | required | {child}
        room = self.max_parents - len(required)

        def gain_of(some: tuple[int, ...]) -> float:
            parents = sorted((*some, *required))
            cards = [self.cards[p] for p in parents]
            blocks = configurations(self.codes[:, parents], cards)
            gain, n = tilted_gain(table, self.codes[:, child], blocks, self.weight)
            return gain - 0.5 * math.log(max(n, 1.0)) * (math.prod(cards) - 1) * (self.cards[child] - 1)

        single = {(v,): gain_of((v,)) for v in range(self.codes.shape[1]) if v not in banned}
        best = sorted(v for (v,) in sorted(single, key=lambda some: -single[some])[:_PROMISING])
        sizes = range(2, min(room, len(best)) + 1)
        more = chain.from_iterable(combinations(best, size) for size in sizes)
        values = single | {some: gain_of(some) for some in more} if room else {}
        return _maximal(values, gain_of(()))[: self.size]


def tilted_gain(table: Floats, y: Codes, blocks: Codes, weight: Floats | None = None) -> tuple[float, float]:
    """Return the gain in log-likelihood from a factor for each category in each block, and the rows' weight.

    Parameters
    ----------
    table : array, shape (n, k)
        Probabilities of the categories.
    y : int array, shape (n,)
    blocks : int array, shape (n,)
        Rows in which this or y is `UNKNOWN` gain nothing.
    weight : array, shape (n,), optional

    Notes
    -----
    The factors are multiplied by seen over expected counts, round by round, which never lowers the likelihood
    (iterative scaling).

    Examples
    --------
    >>> y = np.array([0, 0, 1, 1] * 10)
    >>> gain, n = tilted_gain(np.full((40, 2), 0.5), y, y)
    >>> bool(0.99 * 40 * np.log(2) < gain < 40 * np.log(2)), n
    (True, 40.0)
    >>> tilted_gain(np.full((40, 2), 0.5), y, np.arange(40) % 2)[0]
    0.0
    """
    weights = np.ones(len(y)) if weight is None else weight
    n = float(weights[y != UNKNOWN].sum())
    used = (y != UNKNOWN) & (blocks != UNKNOWN)
    table, y, weights = table[used], y[used], weights[used]
    present, block = np.unique(blocks[used], return_inverse=True)
    q, k = len(present), table.shape[1]
    seen = np.bincount(block * k + y, weights, minlength=q * k).reshape(q, k)
    prior = _sums(table * weights[:, None], block, q)
    prior *= _PSEUDO / np.maximum(prior.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    factors, tilted = np.ones((q, k)), table
    for _ in range(_ROUNDS):
        factors *= (seen + prior) / (_sums(tilted * weights[:, None], block, q) + prior)
        tilted = table * factors[block]
        tilted /= tilted.sum(axis=1, keepdims=True)
    at = np.arange(len(y)), y
    return float(weights @ np.log(tilted[at] / table[at])), n


def _maximal(values: dict[tuple[int, ...], float], nothing: float) -> list[frozenset[int]]:
    """Sets of higher value than all their subsets, the highest first; at least one, if there is any."""
    order = [frozenset(some) for some in sorted(values, key=lambda some: -values[some])]
    value = {frozenset(some): gain for some, gain in values.items()} | {frozenset(): nothing}
    better = [
        some
        for some in order
        if all(value[some] > value.get(frozenset(part), -np.inf)
               for size in range(len(some)) for part in combinations(some, size))
    ]  # fmt: skip
    return better or order[:1]


def _sums(values: Floats, block: Codes, q: int) -> Floats:
    """Sums (q, k) of the rows of values (n, k) over blocks (n,)."""
    return np.column_stack([np.bincount(block, column, minlength=q) for column in values.T])
