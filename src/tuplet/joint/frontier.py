"""Live prefixes of an autoregressive distribution and the walk that extends them, variable by variable.

A *query* is one row with some known values. Its prefixes start with the empty one; each step calls the
conditional once for all live prefixes of all queries, and a `Policy` determines which children are followed:
all of them, as many as sampled points fall into, or the best. Every answer of an `Autoregressive` is a sum
over such prefixes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.limits import block_cells
from tuplet.core.typing import UNKNOWN, Codes, Floats


class Conditional(Protocol):
    """p(y_variable | x, earlier variables) of an autoregressive distribution."""

    def __call__(self, variable: int, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """Return log-probabilities (r, k_variable) that sum to one over the values.

        `rows` (r,) are positions in the batch that the conditional was made for and may repeat; of `codes`
        (r, m) only the variables earlier in the order may be read, the others are `UNKNOWN`.
        """


@dataclass(frozen=True)
class Frontier:
    """Prefixes of one depth, sorted by query; all live prefixes of a query are together.

    Attributes
    ----------
    depth : int
        Number of variables fixed.
    query : array, shape (r,)
    codes : array, shape (r, m)
    log_prob : array, shape (r,)
        Log-probability of the prefix.
    log_mass : array, shape (r,)
        What the prefix stands for: its log-probability where all prefixes are followed; where they are
        sampled, its share of the points times the probability of the known values met on the way (likelihood
        weighting). Either way the masses of a query add up to the probability of its known values.
    count : array, shape (r,)
        Sampled points in the prefix; 0 where nothing is sampled.
    key : array, shape (r,), or None
        Equal for equal prefixes of the same row, so that queries of one row share evaluations.
    """

    depth: int
    query: npt.NDArray[np.intp]
    codes: Codes
    log_prob: Floats
    log_mass: Floats
    count: npt.NDArray[np.intp]
    key: npt.NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.query)

    def take(self, chosen: npt.NDArray[np.generic] | slice) -> Frontier:
        """Return some of the prefixes."""
        return Frontier(
            self.depth,
            self.query[chosen],
            self.codes[chosen],
            self.log_prob[chosen],
            self.log_mass[chosen],
            self.count[chosen],
            None if self.key is None else self.key[chosen],
        )

    @cached_property
    def starts(self) -> npt.NDArray[np.intp]:
        """Position of the first prefix of every query present."""
        return np.flatnonzero(np.diff(self.query, prepend=-1))

    def weights(self) -> tuple[Floats, Floats]:
        """Return masses normalised within their query (r,), and the log of every query's total mass."""
        starts, number = self.starts, self.number
        peak = np.maximum.reduceat(self.log_mass, starts)
        weights = np.exp(self.log_mass - peak[number])
        total = np.add.reduceat(weights, starts)
        return weights / total[number], peak + np.log(total)

    @cached_property
    def number(self) -> npt.NDArray[np.intp]:
        """Position (r,) of each prefix's query among the queries present."""
        return np.cumsum(np.diff(self.query, prepend=-1) != 0) - 1

    def rank(self) -> npt.NDArray[np.intp]:
        """Return the position (r,) of each prefix within its query."""
        return np.arange(len(self)) - self.starts[self.number]


_Children: TypeAlias = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats, npt.NDArray[np.intp]]
"""Parent, value, log-share of the parent's mass, and count of each child, sorted by parent."""


class Policy(Protocol):
    """Which children of the live prefixes are followed."""

    def enter(self, live: Frontier) -> Frontier:
        """Prepare the prefixes that a walk begins with."""

    def divide(self, live: Frontier, log_p: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
        """Return log-shares (r, k) of the parents' mass, minus infinity for no child, and counts (r, k)."""

    def prune(self, live: Frontier) -> Frontier:
        """Drop prefixes after a step, or refuse to go on."""


@dataclass(frozen=True)
class Walk:
    """How prefixes are extended.

    Parameters
    ----------
    cards, order : tuple of int
    conditional : Conditional
    rows : array, shape (q,)
        Row of every query, in ascending order; queries with equal rows share evaluations.
    origin : array
        Position of each row in the batch of the conditional.
    known : array, shape (q, m)
        Values that the prefixes of a query must take; `UNKNOWN` = free.
    last : array, shape (q,)
        The depth whose variable is the last that matters to a query: what follows sums to one.
    policy : Policy
    observe : callable, optional
        Called with the live prefixes and their conditional (r, k) before every step.
    """

    cards: tuple[int, ...]
    order: tuple[int, ...]
    conditional: Conditional
    rows: npt.NDArray[np.intp]
    origin: npt.NDArray[np.intp]
    known: Codes
    last: npt.NDArray[np.intp]
    policy: Policy
    observe: Callable[[Frontier, Floats], None] | None = None

    def root(self, queries: npt.NDArray[np.intp]) -> Frontier:
        """Return the empty prefixes of some queries."""
        r, m = len(queries), len(self.cards)
        rows = self.rows[queries]
        key = rows if (rows[1:] == rows[:-1]).any() else None
        codes = np.full((r, m), UNKNOWN, dtype=np.intp)
        return Frontier(0, queries, codes, np.zeros(r), np.zeros(r), np.zeros(r, dtype=np.intp), key)

    def run(self, start: Frontier) -> Iterator[Frontier]:
        """Extend prefixes; yield those of a query, complete with all their siblings, when it is done.

        Too many prefixes to hold at once are walked in parts, each to its end before the next. With an
        observer nothing is built beyond what it sees.
        """
        waiting = [self.policy.enter(start)] if len(start) else []
        while waiting:
            live = waiting.pop()
            while len(live):
                done = self.last[live.query] < live.depth
                if done.any():
                    yield live.take(done)
                    live = live.take(~done)
                elif (middle := self._middle(live)) is not None:
                    waiting.append(live.take(slice(middle, None)))
                    live = live.take(slice(middle))
                else:
                    live = self._step(live)

    def _middle(self, live: Frontier) -> int | None:
        """Return where to cut prefixes that are too many, between two rows; None if need not or cannot be."""
        if len(live) * (len(self.cards) + self.cards[self.order[live.depth]]) <= block_cells():
            return None
        rows = self.rows[live.query]
        middle = rows[len(rows) // 2]
        cuts = [int(np.searchsorted(rows, middle, side=side)) for side in ("left", "right")]
        return next((cut for cut in cuts if 0 < cut < len(rows)), None)

    def _step(self, live: Frontier) -> Frontier:
        log_p, key = self._evaluate(live)
        if self.observe is not None:
            self.observe(live, log_p)
            if live.depth == len(self.order) - 1:
                return live.take(slice(0))
        return self.policy.prune(self._extend(replace(live, key=key), log_p))

    def _evaluate(self, live: Frontier) -> tuple[Floats, npt.NDArray[np.intp] | None]:
        """Return the conditional (r, k) of every prefix, and its key, renumbered without gaps."""
        variable = self.order[live.depth]
        origin = self.origin[self.rows[live.query]]
        if live.key is None:
            return self._ask(variable, origin, live.codes), None
        first, key = _distinct(live.key)
        return self._ask(variable, origin[first], live.codes[first])[key], key

    def _ask(self, variable: int, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        log_p = np.asarray(self.conditional(variable, rows, codes), dtype=float)
        if log_p.shape != (len(rows), self.cards[variable]):
            raise InputError(
                f"Autoregressive: the conditional of variable {variable} must return log-probabilities of"
                f" shape {(len(rows), self.cards[variable])}, found {log_p.shape}."
            )
        return log_p

    def _extend(self, live: Frontier, log_p: Floats) -> Frontier:
        """Replace every prefix by its children that live on."""
        wanted = self.known[live.query, self.order[live.depth]]
        free, clamped = np.flatnonzero(wanted == UNKNOWN), np.flatnonzero(wanted != UNKNOWN)
        if not len(clamped):
            return self._spawn(live, log_p, *self._divided(live, log_p))
        gain = log_p[clamped, wanted[clamped]]
        possible = gain > -np.inf
        parent = clamped[possible]
        children: _Children = (parent, wanted[parent], gain[possible], live.count[parent])
        if len(free):
            from_free, value, log_share, count = self._divided(live.take(free), log_p[free])
            children = _merge(children, (free[from_free], value, log_share, count))
        return self._spawn(live, log_p, *children)

    def _divided(self, live: Frontier, log_p: Floats) -> _Children:
        log_share, count = self.policy.divide(live, log_p)
        parent, value = np.nonzero(log_share > -np.inf)
        return parent, value, log_share[parent, value], count[parent, value]

    def _spawn(
        self,
        live: Frontier,
        log_p: Floats,
        parent: npt.NDArray[np.intp],
        value: npt.NDArray[np.intp],
        log_share: Floats,
        count: npt.NDArray[np.intp],
    ) -> Frontier:
        variable = self.order[live.depth]
        codes = live.codes[parent]
        codes[:, variable] = value
        return Frontier(
            live.depth + 1,
            live.query[parent],
            codes,
            live.log_prob[parent] + log_p[parent, value],
            live.log_mass[parent] + log_share,
            count,
            None if live.key is None else live.key[parent] * self.cards[variable] + value,
        )


def _merge(one: _Children, other: _Children) -> _Children:
    """Join children of different parents; those of a parent stay together and in their order."""
    order = np.argsort(np.concatenate([one[0], other[0]]), kind="stable")
    parent, value, log_share, count = (np.concatenate(pair)[order] for pair in zip(one, other, strict=True))
    return parent, value, log_share, count


def _distinct(key: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return one position of every distinct key, and the keys renumbered to point into these."""
    span = int(key.max()) + 1
    if span > 16 * len(key):
        _, first, renumbered = np.unique(key, return_index=True, return_inverse=True)
        return first, renumbered
    where = np.full(span, -1, dtype=np.intp)  # keys have few gaps: a table is faster than sorting
    where[key] = np.arange(len(key))
    first = where[where >= 0]
    where[key[first]] = np.arange(len(first))
    return first, where[key]
