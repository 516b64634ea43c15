"""Which sets of parents are worth scoring: level by level, with bounds that skip what cannot matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Literal, NamedTuple, TypeAlias, final

import numpy as np

from tuplet.core import clock
from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.parents import Edge, EdgeRules


class Family(NamedTuple):
    """A set of parents to be scored.

    Only a score above `floor`, that of the best subset, matters. A scorer may stop once it is clear that this
    is not reached, and return anything up to `floor`, such as minus infinity.
    """

    child: int
    parents: tuple[int, ...]
    floor: float


Score: TypeAlias = Callable[[Sequence[Family]], Iterable[float]]
Bound: TypeAlias = Callable[[int, tuple[int, ...]], float]
_Sets: TypeAlias = dict[tuple[int, ...], float]
_Level: TypeAlias = list[tuple[int, tuple[int, ...], float]]  # (child, free parents, floor)


@final
@dataclass(frozen=True, eq=False)
class Candidates:
    """Local scores of all sets that can matter, and how they came about.

    Attributes
    ----------
    scores : LocalScores
        Sets that score strictly more than each of their subsets.
    n_scored, n_skipped : int
        Sets that were scored, and sets that a bound ruled out before (their supersets, never looked at, do
        not count).
    stopped : {"", "deadline", "interrupt"}
        Why some sets were not looked at; empty if none was left.
    ceilings : array, shape (m,)
        What a set that was not looked at can score at most; minus infinity where there is none, infinity
        where nothing is known.
    """

    scores: LocalScores
    n_scored: int
    n_skipped: int
    stopped: Literal["", "deadline", "interrupt"]
    ceilings: Floats

    @property
    def complete(self) -> bool:
        """Whether every set that can matter has a score: then the best listed network is the best of all."""
        return not self.stopped


def candidate_parent_sets(
    n_variables: int,
    max_parents: int,
    score: Score,
    *,
    bound: Bound | None = None,
    required: Iterable[Edge] = (),
    forbidden: Iterable[Edge] = (),
    progress: Callable[[int, int], None] | None = None,
    deadline: float | None = None,
    certain: int = 0,
) -> Candidates:
    """Score all sets of up to `max_parents` parents that can be part of a best network.

    Parameters
    ----------
    n_variables : int
    max_parents : int
        Required parents count.
    score : callable
        Sequence of `Family` -> iterable of scores, in the same order. It gets a whole level (sets of equal
        size of all children) at once, so that it can share work and run in parallel. A generator that
        yields as it goes lets progress, deadline and interrupts work within a level.
    bound : callable, optional
        (child, parents) -> upper bound on the score of that set *and of all its supersets*. For a penalised
        training likelihood minus the penalty is one, since no log-likelihood of classes is positive and the
        penalty grows with the set. Cross-validated scores have no such bound: every set is scored.
    required, forbidden : iterable of (parent, child)
        Edges that must or must not be there.
    progress : callable, optional
        Called with the number of sets scored and the number planned so far (all levels up to the present
        one).
    deadline : float, optional
        Value of `tuplet.core.clock.now()` after which no more sets are scored. The smallest set of every
        child is scored in any case, so that there is always a network.
    certain : int
        Sets with up to so many parents more than the smallest are scored whatever the deadline.

    Returns
    -------
    Candidates

    Notes
    -----
    An interrupt (Ctrl-C) ends the scoring as a deadline does, once every child has its smallest set; before
    that, `KeyboardInterrupt` is raised again. Within a level, parents that did well so far come first.

    Examples
    --------
    >>> def score(families):
    ...     for child, parents, floor in families:
    ...         yield (0.0 if child == 1 and 0 in parents else -3.0) - len(parents)
    >>> found = candidate_parent_sets(3, 2, score, bound=lambda child, parents: -len(parents))
    >>> [found.scores.candidates(child) for child in range(3)]
    [[((), -3.0)], [((0,), -1.0), ((), -3.0)], [((), -3.0)]]
    >>> found.n_scored, found.n_skipped  # for child 1, no set of two can beat (0,)
    (11, 1)
    """
    rules = EdgeRules.of(n_variables, required, forbidden)
    for child, members in enumerate(rules.required):
        if len(members) > max_parents:
            raise InputError(
                f"Candidate parents: variable {child} has {len(members)} required parents, but"
                f" max_parents={max_parents}.",
                variable=child,
            )
    levels = _Levels(rules, max_parents, bound, certain)
    stopped = levels.run(score, progress, deadline)
    return Candidates(
        LocalScores.of(levels.kept),
        levels.n_scored,
        levels.n_skipped,
        stopped,
        levels.ceilings() if stopped else np.full(n_variables, -np.inf),
    )


class _Levels:
    """The sets of every child, from its required parents upwards. Keys are the free parents only."""

    def __init__(self, rules: EdgeRules, max_parents: int, bound: Bound | None, certain: int) -> None:
        m = len(rules.required)
        self.rules, self.max_parents, self.bound, self.certain = rules, max_parents, bound, certain
        self.free = [rules.free(child) for child in range(m)]
        self.kept: list[_Sets] = [{} for _ in range(m)]
        # Of the present level: the best score among a set and its subsets, and the bounds of planned sets.
        self.best: list[_Sets] = [{} for _ in range(m)]
        self.bounds: list[_Sets] = [{} for _ in range(m)]
        self.n_scored = self.n_skipped = 0

    def run(
        self, score: Score, progress: Callable[[int, int], None] | None, deadline: float | None
    ) -> Literal["", "deadline", "interrupt"]:
        level = self._first()
        try:
            while level:
                n_planned = self.n_scored + len(level)
                families = [Family(child, self._whole(child, free), floor) for child, free, floor in level]
                for (child, free, floor), value in zip(level, score(families), strict=True):
                    self._note(child, free, floor, float(value))
                    if progress is not None:
                        progress(self.n_scored, n_planned)
                    late = len(free) > self.certain and clock.is_over(deadline)
                    if late and all(self.kept) and self.n_scored < n_planned:
                        return "deadline"
                planned = self._next(level, deadline)
                if planned is None:
                    return "deadline"
                level = planned
        except KeyboardInterrupt:
            if not all(self.kept):
                raise
            return "interrupt"
        return ""

    def ceilings(self) -> Floats:
        """Bound what was not looked at: the rest of this level, and supersets of any set of it."""
        if self.bound is None:
            return np.full(len(self.bounds), np.inf)
        return np.array([max(bounds.values(), default=-np.inf) for bounds in self.bounds])

    def _whole(self, child: int, free: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted((*free, *self.rules.required[child])))

    def _note(self, child: int, free: tuple[int, ...], floor: float, value: float) -> None:
        """Keep a set only if it is strictly better than all its subsets (see `LocalScores.prune`).

        What is not above the floor leaves no trace: the best of the set and its subsets is then the floor,
        for whatever value. So a scorer may stop early, and no superset is treated differently.
        """
        if np.isnan(value) or value == np.inf:
            raise InputError(
                f"Candidate parents: variable {child} with parents {self._whole(child, free)} got the score"
                f" {value}; scores are finite, or minus infinity for a set that is not allowed.",
                variable=child,
            )
        if value > floor or free == ():
            self.kept[child][self._whole(child, free)] = value
        self.best[child][free] = max(value, floor)
        self.n_scored += 1

    def _first(self) -> _Level:
        """The smallest set of every child; no bound applies, for it has no subset to do the work instead."""
        self.bounds = [{(): self._limit(child, ())} for child in range(len(self.free))]
        return [(child, (), -np.inf) for child in range(len(self.free))]

    def _next(self, level: _Level, deadline: float | None) -> _Level | None:
        """Plan the sets with one more parent; None if there is no time left for them.

        A set S is skipped, with all its supersets, if its bound is no better than the score of some subset
        T of it. Proof: every S' with S in S' has score(S') <= bound(S) <= score(T), and T is in S'; a
        network that uses S' does no worse, and stays acyclic, with T in its place. Hence a set is only
        planned if all its subsets with one parent less were planned; those of one size smaller carry the
        best of all below them.
        """
        size = len(level[0][1]) + 1
        deadline = None if size <= self.certain else deadline
        planned: _Level = []
        bounds: list[_Sets] = [{} for _ in self.best]
        for child, best in enumerate(self.best):
            if planned and clock.is_over(deadline):
                return None  # of hundreds of variables, planning alone takes minutes
            if size + len(self.rules.required[child]) <= self.max_parents:
                for free, floor in _extensions(best, self.free[child]):
                    limit = self._limit(child, free)
                    if limit > floor:
                        bounds[child][free] = limit
                        planned.append((child, free, floor))
                    else:
                        self.n_skipped += 1
        if planned and clock.is_over(deadline):
            return None
        self._sort(planned)
        self.best, self.bounds = [{} for _ in self.best], bounds  # at the end: an interrupt finds one level
        return planned

    def _limit(self, child: int, free: tuple[int, ...]) -> float:
        return np.inf if self.bound is None else self.bound(child, self._whole(child, free))

    def _sort(self, planned: _Level) -> None:
        """Put sets first that gained most so far, over all children, so that an early end costs least.

        The children of a set stay together: a scorer can then prepare the set once for all of them.
        """
        gains: _Sets = {}
        for child, free, floor in planned:
            alone = self.kept[child][self._whole(child, ())]
            gains[free] = gains.get(free, 0.0) + (floor - alone if alone > -np.inf else 0.0)
        planned.sort(key=lambda item: (-gains[item[1]], item[1], item[0]))


def _extensions(best: _Sets, free: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Sets with one more parent all of whose subsets with one less are in `best`, and the best of these."""
    for smaller in best:
        for v in free[free.index(smaller[-1]) + 1 if smaller else 0 :]:
            below = [(*part, v) for part in combinations(smaller, len(smaller) - 1)] if smaller else []
            if all(part in best for part in below):
                yield (*smaller, v), max(best[part] for part in chain([smaller], below))
