"""Scores of families in which discrete features may be inputs, parents, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, groupby
from math import comb
from typing import Literal, TypeAlias, cast, final

import numpy as np

from tuplet.core import clock
from tuplet.core.typing import Codes, Floats
from tuplet.local.base import LocalModel
from tuplet.local.families import FamilyScorer, mutual_information
from tuplet.structure.candidates import Family

Role: TypeAlias = Literal["inputs", "parents", "both"]

_Scores: TypeAlias = Callable[[Sequence[Family]], Iterable[float]]
_Bound: TypeAlias = Callable[[int, tuple[int, ...]], float]
_Set: TypeAlias = tuple[int, ...]

_FEW_SUBSETS = 300
"""Number of subsets of features up to which all are scored: those of 12 features, 3 at a time."""


@final
@dataclass
class MixedFamilyScorer:
    """Scores of class variables with class parents, each with the best discrete features as further parents.

    Parameters
    ----------
    scorers : mapping of role to FamilyScorer
        "inputs" has all features as inputs and the class variables alone as variables; "parents" has the
        features that are no discrete ones as inputs, and the discrete features as variables behind the class
        variables; "both" has all features as inputs and the same variables. One role, or all three: then a
        child gets the one that suits it best.
    codes : int array, shape (n, m)
        Codes of the class variables.
    n_features : int
        Number f of discrete features, which have the numbers m to m + f - 1.
    max_features : int
        Largest number of features among the parents of a child.
    deadline : float, optional
        Value of `clock.now()` from which on roles are not compared any more.

    Notes
    -----
    For each set of class parents the best subset of features is chosen, by the same score: of all subsets,
    where these are no more than 300, scores are penalised and configurations split; otherwise one at a time,
    beginning with those of the best smaller set.

    Of several roles a child gets the one under which held-out rows are most likely, for the family that
    scores best with none, one or two of the class variables with the most information about it. Features as
    parents must be better by ln N, as splitting must be. They are always inputs if configurations are not
    split, since they would be inputs in any case, and if scores are cross-validated: the search would need
    many fits, and forests, for which that is the default, split by features themselves.
    """

    scorers: Mapping[Role, FamilyScorer]
    codes: Codes
    n_features: int
    max_features: int
    deadline: float | None = None
    _roles: dict[int, Role] = field(default_factory=dict)
    _features: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = field(default_factory=dict)
    _values: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)

    def score(self, families: Sequence[Family]) -> Iterator[float]:
        """See `FamilyScorer.score`."""
        for plain, some in groupby(families, key=lambda family: self.role_of(family.child) == "inputs"):
            if plain:
                yield from self.scorers["inputs"].score(list(some))
            else:
                yield from map(self._with_features, some)

    @property
    def bound(self) -> Callable[[int, tuple[int, ...]], float] | None:
        """See `FamilyScorer.bound`: it holds whatever features are added, since these are more parents."""
        return None if self._any.bound is None else self._bound

    def role_of(self, child: int) -> Role:
        """Return the role of discrete features for a child."""
        if child not in self._roles:
            self._roles[child] = self._choose(child)
        return self._roles[child]

    def without_parents(self, child: int) -> Floats:
        """See `FamilyScorer.without_parents`."""
        return self.scorers[self.role_of(child)].without_parents(child)

    def held_out(self, child: int) -> float:
        """Log-likelihood of a child without class parents, with its features, in rows that were held out."""
        return self.scorers[self.role_of(child)].held_out(child, self._numbers(child, ()))

    def features_of(self, child: int, parents: Sequence[int]) -> tuple[int, ...]:
        """Return the discrete features (numbered from 0) among the parents of a child with class parents."""
        m = self.codes.shape[1]
        return tuple(f - m for f in self._numbers(child, tuple(parents)))

    def model(self, child: int, parents: Sequence[int], *, features: bool = True) -> LocalModel:
        """Return the model of a child, fitted to all rows: class parents, and behind them its features."""
        some = self._numbers(child, tuple(parents)) if features else ()
        return self.scorers[self.role_of(child)].model(child, (*parents, *some))

    def strengths(self, child: int, parents: Sequence[int]) -> dict[int, float]:
        """Return what the score of a child loses without each of its features (numbered from 0)."""
        parents = tuple(parents)
        scorer, features = self.scorers[self.role_of(child)], self._numbers(child, parents)
        if not features:
            return {}
        fewer = [tuple(g for g in features if g != f) for f in features]
        queries = [Family(child, (*parents, *some), -np.inf) for some in [features, *fewer]]
        own, *without = scorer.score(queries)
        m = self.codes.shape[1]
        return {f - m: own - value for f, value in zip(features, without, strict=True)}

    # -- which features -----------------------------------------------------------------------------------

    @cached_property
    def _any(self) -> FamilyScorer:
        return next(iter(self.scorers.values()))

    @property
    def _all(self) -> range:
        m = self.codes.shape[1]
        return range(m, m + self.n_features)

    def _bound(self, child: int, parents: tuple[int, ...]) -> float:
        bound = self.scorers[self.role_of(child)].bound
        assert bound is not None
        return bound(child, parents)

    def _numbers(self, child: int, parents: tuple[int, ...]) -> tuple[int, ...]:
        """Features of a family; searched now if it was never scored because of its bound."""
        if self.role_of(child) == "inputs":
            return ()
        if (child, parents) not in self._features:
            self._with_features(Family(child, parents, -np.inf))
        return self._features[child, parents]

    def _with_features(self, family: Family) -> float:
        """Score a family with its best features, and keep these."""
        value, features = self._search(family, self.scorers[self.role_of(family.child)], self._start(family))
        self._features[family[:2]], self._values[family[:2]] = features, value
        return value

    def _start(self, family: Family) -> tuple[int, ...]:
        """Features of the best family with one class parent less."""
        smaller = [
            (family.child, tuple(p for p in family.parents if p != parent)) for parent in family.parents
        ]
        known = [key for key in smaller if key in self._features]
        return self._features[max(known, key=self._values.__getitem__)] if known else ()

    def _search(
        self, family: Family, scorer: FamilyScorer, start: tuple[int, ...]
    ) -> tuple[float, tuple[int, ...]]:
        largest = min(self.max_features, self.n_features)
        few = scorer.bound is not None and n_subsets(self.n_features, largest) <= _FEW_SUBSETS
        if few and (not self._all or scorer.parametrisation_of(family.child, self._all[:1]) == "split"):
            assert scorer.bound is not None
            return all_subsets(family, self._all, largest, scorer.score, scorer.bound)
        return one_at_a_time(family, self._all, largest, scorer.score, start)

    # -- which role ---------------------------------------------------------------------------------------

    def _choose(self, child: int) -> Role:
        if len(self.scorers) == 1:
            return next(iter(self.scorers))
        late = clock.is_over(self.deadline)
        if late or self._any.bound is None or not self._splits("parents", child):
            return "inputs"
        trials, plain = self._trials(child), self.scorers["inputs"]
        parents, features = self._best_trial(child, trials)
        if not features:
            return "inputs"
        values = plain.score([Family(child, some, -np.inf) for some in trials])
        _, simplest = max(zip(values, trials, strict=True))
        goal = plain.held_out(child, simplest) + np.log(max(1, len(self.codes)))
        chosen: Role = "inputs"
        others: tuple[Role, ...] = ("parents", "both")
        for role in others:
            if self._splits(role, child):
                value = self.scorers[role].held_out(child, (*parents, *features))
                goal, chosen = (value, role) if value > goal else (goal, chosen)
        return chosen

    def _splits(self, role: Role, child: int) -> bool:
        """Whether a child has a classifier for each configuration; features are merely inputs otherwise."""
        return self.scorers[role].parametrisation_of(child, (self._all[0],)) == "split"

    def _trials(self, child: int) -> list[tuple[int, ...]]:
        """Sets of none, one and two of the class variables with the most information about a child."""
        others = [v for v in range(self.codes.shape[1]) if v != child]
        others.sort(key=lambda v: -mutual_information(self.codes[:, child], self.codes[:, v]))
        return [tuple(sorted(others[:size])) for size in range(min(2, len(others)) + 1)]

    def _best_trial(
        self, child: int, trials: list[tuple[int, ...]]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Class parents and features that score best where discrete features are parents alone."""
        best, features = -np.inf, cast("tuple[int, ...]", ())
        answer = trials[0], features
        for parents in trials:
            value, some = self._search(Family(child, parents, best), self.scorers["parents"], features)
            if value > best:
                best, answer, features = value, (parents, some), some
        return answer


# -- subsets of features -----------------------------------------------------------------------------------


def n_subsets(n_features: int, largest: int) -> int:
    """Return the number of subsets of features with `largest` members at most."""
    return sum(comb(n_features, size) for size in range(largest + 1))


def all_subsets(
    family: Family, features: Sequence[int], largest: int, score: _Scores, bound: _Bound
) -> tuple[float, _Set]:
    """Return the score of a family with the best of all subsets of features as further parents, and these.

    Minus infinity if it is not above the family's floor.

    Parameters
    ----------
    family : Family
        A child with class parents.
    features : sequence of int
        Numbers of the features, all behind those of the class variables.
    largest : int
        Number of features that may be added.
    score, bound : callable
        See `FamilyScorer`.

    Notes
    -----
    A subset whose bound is no better than the best found so far is skipped with all its supersets. Proof: the
    bound holds for them too, and only the best of all is needed.
    """
    child, parents, best = family
    chosen: _Set = ()
    found = -np.inf
    alive: set[_Set] = {()}
    for size in range(largest + 1):
        level = [
            subset
            for subset in combinations(features, size)
            if all(part in alive for part in combinations(subset, size - 1))
            and bound(child, (*parents, *subset)) > best
        ] if size else [()]  # fmt: skip
        alive = set(level)
        values = score([Family(child, (*parents, *subset), best) for subset in level])
        for subset, value in zip(level, values, strict=True):
            if value > best:
                best, found, chosen = value, value, subset
    return found, chosen


def one_at_a_time(
    family: Family, features: Sequence[int], largest: int, score: _Scores, start: _Set = ()
) -> tuple[float, _Set]:
    """Return the score of a family with features that were added and dropped one at a time, and these.

    Minus infinity if it is not above the family's floor: if that is so with the features to start with, no
    others are tried.

    Parameters
    ----------
    start : tuple of int
        Features to begin with.
    """
    child, parents, floor = family
    (best,) = score([Family(child, (*parents, *start), floor)])
    if not best > floor:
        return -np.inf, start
    chosen, seen = start, {start}
    while level := [subset for subset in _neighbours(chosen, features, largest) if subset not in seen]:
        seen.update(level)
        values = score([Family(child, (*parents, *subset), best) for subset in level])
        value, subset = max(zip(values, level, strict=True))
        if not value > best:
            break
        best, chosen = value, subset
    return best, chosen


def _neighbours(chosen: _Set, features: Sequence[int], largest: int) -> list[_Set]:
    """Subsets with one feature more or less."""
    more = [tuple(sorted((*chosen, f))) for f in features if f not in chosen and len(chosen) < largest]
    return more + [tuple(g for g in chosen if g != f) for f in chosen]
