"""From scores of families to a graph, within a time budget."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tuplet.exceptions import TupletWarning
from tuplet.progress import Progress, Show, duration_text
from tuplet.structure import Candidates, Edge, Family, Found, Method, candidate_parent_sets, find_dag

_LAST = 1.0
"""Seconds that the search has in any case, however late it is, or after an interrupt."""


class Scorer(Protocol):
    """Scores of families; see `FamilyScorer`."""

    def score(self, families: Sequence[Family]) -> Iterator[float]:
        """Yield the score of each family in turn."""

    @property
    def bound(self) -> Callable[[int, tuple[int, ...]], float] | None:
        """(child, parents) -> bound on the score of these parents and all their supersets, or None."""


@dataclass(frozen=True)
class Clock:
    """Time that is left of a budget in seconds, None for any amount of it; half of it is for scores."""

    budget: float | None
    begun: float

    @classmethod
    def start(cls, budget: float | None) -> Clock:
        """Return a clock that starts now."""
        return cls(budget, time.monotonic())

    @property
    def deadline(self) -> float | None:
        """Value of `time.monotonic()` at which scoring ends."""
        return None if self.budget is None else self.begun + self.budget / 2

    @property
    def left(self) -> float | None:
        """Seconds for the search."""
        if self.budget is None:
            return None
        return max(_LAST, self.budget - (time.monotonic() - self.begun))


def find_candidates(
    scorer: Scorer,
    n_variables: int,
    max_parents: int,
    *,
    required: list[Edge],
    forbidden: list[Edge],
    clock: Clock,
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
            deadline=clock.deadline,
        )
    if candidates.stopped:
        budget = duration_text(clock.budget or 0)
        why = "interrupted" if candidates.stopped == "interrupt" else f"out of its half of {budget}"
        _warn(
            f"scoring was {why} after {candidates.n_scored} sets of parents; the graph is the best of these,"
            " not of all"
        )
    return candidates


def find_graph(candidates: Candidates, *, method: Method, clock: Clock, **settings: Any) -> Found:
    """Search the best graph; after an interrupt, the best that a short search over orders finds."""
    try:
        return find_dag(candidates.scores, method=method, time_limit=clock.left, **settings)
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
