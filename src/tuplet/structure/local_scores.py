"""Local scores: for every variable, the sets of parents it may have and what each is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Floats
from tuplet.structure.kernels import best_within, flip, undominated
from tuplet.structure.parents import ParentSets

Ints = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class LocalScores:
    """Candidate sets of parents and their scores, for m variables; larger is better.

    Made by `LocalScores.of`. A network picks one family (a child with one of its sets) per child, without
    directed cycles; its score is the sum.

    Attributes
    ----------
    parents : array, shape (f, p)
        Parents of every family in increasing order, padded on the right with `UNKNOWN`.
    values : array, shape (f,)
        Score of every family.
    starts : array, shape (m + 1,)
        The families of child i are those from `starts[i]` up to `starts[i + 1]`, the best first; of equally
        good ones the smaller set first.

    Examples
    --------
    >>> scores = LocalScores.of([{(): -3.0, (1,): -1.0}, {(): -2.0, (0,): -1.5}])
    >>> scores.candidates(0)
    [((1,), -1.0), ((), -3.0)]
    >>> scores.bound
    -2.5
    """

    parents: Ints
    values: Floats
    starts: Ints

    @classmethod
    def of(cls, tables: Sequence[Mapping[tuple[int, ...], float]]) -> Self:
        """Make local scores from one mapping per child: set of parents -> score.

        Scores of minus infinity mean that the set is not allowed.
        """
        children, members, values = [], [], []
        for child, table in enumerate(tables):
            for parents, value in table.items():
                children.append(child)
                members.append(_checked(parents, child, len(tables)))
                values.append(_number(value, child, parents))
            if len(set(members[len(members) - len(table) :])) < len(table):
                raise InputError(
                    f"Local scores: variable {child} has a set of parents twice.", variable=child
                )
        width = max((len(parents) for parents in members), default=0)
        padded = np.full((len(members), width), UNKNOWN, dtype=np.int64)
        for row, parents in zip(padded, members, strict=True):
            row[: len(parents)] = parents
        return cls._sorted(len(tables), np.array(children, np.int64), padded, np.array(values, float))

    @classmethod
    def _sorted(cls, m: int, children: Ints, parents: Ints, values: Floats) -> Self:
        possible = values > -np.inf
        children, parents, values = children[possible], parents[possible], values[possible]
        sizes = (parents != UNKNOWN).sum(axis=1)
        order = np.lexsort((*parents.T[::-1], sizes, -values, children))
        counts = np.bincount(children, minlength=m)
        if not counts.all():
            child = int(np.argmin(counts))
            raise InputError(
                f"Local scores: variable {child} has no set of parents left; give it a score for at least"
                " one, such as the empty set, or ask for fewer required and forbidden edges.",
                variable=child,
            )
        starts = np.concatenate([[0], np.cumsum(counts)])
        return cls(np.ascontiguousarray(parents[order]), values[order], starts)

    @property
    def n_variables(self) -> int:
        """Number of variables m."""
        return len(self.starts) - 1

    def __len__(self) -> int:
        """Number of families."""
        return len(self.values)

    @cached_property
    def children(self) -> Ints:
        """The child of every family, shape (f,)."""
        return np.repeat(np.arange(self.n_variables), np.diff(self.starts))

    @cached_property
    def masks(self) -> npt.NDArray[np.uint64]:
        """Parents of every family as bit sets, shape (f, number of 64-bit words)."""
        masks = np.zeros((len(self), -(-self.n_variables // 64)), dtype=np.uint64)
        for column in self.parents.T:
            rows = np.flatnonzero(column != UNKNOWN)
            masks[rows, column[rows] >> 6] |= np.uint64(1) << (column[rows] & 63).astype(np.uint64)
        return masks

    @cached_property
    def bound(self) -> float:
        """Score of the best choice for every child, cycles allowed: no network can have more."""
        return float(self.values[self.starts[:-1]].sum())

    def members(self, family: int) -> tuple[int, ...]:
        """Return the parents of a family."""
        return tuple(v for v in self.parents[family].tolist() if v != UNKNOWN)

    def candidates(self, child: int) -> list[tuple[tuple[int, ...], float]]:
        """List the sets of a child with their scores, the best first."""
        return [(self.members(f), float(self.values[f])) for f in range(*self.starts[child : child + 2])]

    def family(self, child: int, parents: tuple[int, ...]) -> int:
        """Return the position of a set of parents, -1 where it is not listed."""
        begin, end = self.starts[child : child + 2]
        missing = self.parents.shape[1] - len(parents)
        if missing < 0:
            return -1
        row = [*sorted(parents), *[UNKNOWN] * missing]
        found = np.flatnonzero((self.parents[begin:end] == row).all(axis=1))
        return int(begin + found[0]) if len(found) else -1

    def value(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the score of a set of parents; minus infinity where it is not listed."""
        f = self.family(child, parents)
        return float(self.values[f]) if f >= 0 else -np.inf

    def network(self, families: Iterable[int]) -> ParentSets:
        """Return the parents that one family per child make up."""
        return tuple(self.members(int(f)) for f in families)

    def take(self, families: npt.NDArray) -> LocalScores:
        """Keep some families, given by position or by mask."""
        return LocalScores._sorted(
            self.n_variables,
            self.children[families],
            self.parents[families],
            self.values[families],
        )

    def prune(self) -> LocalScores:
        """Drop every set that does not score strictly more than each of its listed subsets.

        The best network keeps its score. Put the better subset in the place of a dropped set: fewer edges
        make no cycle, and the score does not fall.

        Examples
        --------
        >>> scores = LocalScores.of([{(): -3.0, (1,): -3.5, (2,): -1.0, (1, 2): -1.0}, {(): 0.0}, {(): 0.0}])
        >>> scores.prune().candidates(0)
        [((2,), -1.0), ((), -3.0)]
        """
        return self.take(undominated(self.starts, self.masks))

    def feasible_order(self, rng: np.random.Generator | None = None) -> Ints:
        """Return an order in which every variable has a set among its predecessors, random if `rng` is given.

        Placing a variable never takes a choice away from the others, so greedy placement fails only where no
        acyclic network exists; that raises `InputError`.
        """
        rest = list(range(self.n_variables))
        if rng is not None:
            rng.shuffle(rest)
        before, order = np.zeros((1, self.masks.shape[1]), dtype=np.uint64), []
        while rest:
            free = (v for v in rest if best_within(v, before, self.starts, self.masks) >= 0)
            if (v := next(free, None)) is None:
                names = ", ".join(f"variable {v}" for v in sorted(rest))
                raise InputError(
                    f"Local scores: the sets of {names} need each other; every choice has a cycle."
                )
            flip(before, 0, v)
            order.append(v)
            rest.remove(v)
        return np.array(order, dtype=np.int64)


def _checked(parents: Sequence[int], child: int, m: int) -> tuple[int, ...]:
    inside = tuple(sorted(int(v) for v in parents))
    repeated = any(a == b for a, b in pairwise(inside))
    if child in inside or repeated or (inside and not 0 <= inside[0] <= inside[-1] < m):
        raise InputError(
            f"Local scores: the parents of variable {child} must be distinct other variables among the {m},"
            f" found {tuple(parents)}.",
            variable=child,
        )
    return inside


def _number(value: float, child: int, parents: Sequence[int]) -> float:
    if np.isnan(value) or value == np.inf:
        raise InputError(
            f"Local scores: the score of variable {child} with parents {tuple(parents)} is {value}; scores"
            " are finite, or minus infinity for a set that is not allowed.",
            variable=child,
        )
    return float(value)
