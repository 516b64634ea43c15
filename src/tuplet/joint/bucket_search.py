"""The most probable outcomes of a product of factors, with a proof: mini-buckets and branch and bound.

What does not depend on the rows is laid out once: which tables meet in which bucket, how a bucket that would
be too large is split, and where every cell of a table finds its message. A compiled search does the rest.

Sum-product bounds, which `best_first` gets from forms that cannot maximise, are far weaker, and its nodes a
hundred times as expensive; but the compiled search needs tables, which only a product of factors has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.limits import LISTED_CELLS, rows_per_block
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.inference.factor import AnyFactor, Problem, RuleFactor
from tuplet.joint.inference.plan import Scope, cheapest_plan
from tuplet.joint.search_kernels import search_rows

_STAGES = ((2**11, 2**11), (2**14, 2**14), (2**17, 2**62))
"""Cells of a bucket's part, and nodes of a row before the next stage. Wide parts bound better and cost more;
most rows need no more than the first stage."""


class Part(NamedTuple):
    """Part of a bucket: some of its tables, which are maximised together."""

    scope: Scope  # the bucket's variable, then the others in the order of elimination
    tables: list[int]
    messages: list[int]  # parts whose messages arrive


@dataclass(frozen=True, eq=False)
class Buckets:
    """Layout of a search for the best outcomes: all that does not depend on numbers.

    Parameters
    ----------
    cards : tuple of int
    scopes : tuple of tuples of int
        Of the tables over two or more variables.
    width : int
        Cells of a part of a bucket; a single table may have more.
    """

    cards: tuple[int, ...]
    scopes: tuple[Scope, ...]
    width: int

    @cached_property
    def order(self) -> list[int]:
        """Elimination order; the search fixes variables in the reverse one."""
        scopes = (*((j,) for j in range(len(self.cards))), *self.scopes)
        return [step.variable for step in cheapest_plan(self.cards, scopes).steps]

    @cached_property
    def _buckets(self) -> tuple[list[Part], list[int]]:
        """All parts, and the first part of every bucket (m + 1,)."""
        place = {v: t for t, v in enumerate(self.order)}
        waiting: list[list[tuple[Scope, int, int]]] = [[] for _ in self.order]  # (scope, table, message)
        for k, given in enumerate(self.scopes):
            scope = tuple(sorted(given, key=place.__getitem__))
            waiting[place[scope[0]]].append((scope, k, -1))
        parts: list[Part] = []
        first = [0]
        for t, v in enumerate(self.order):
            for members, tables, messages in _split(v, waiting[t], self.cards, self.width):
                ordered = tuple(sorted(members, key=place.__getitem__))
                if len(ordered) > 1:
                    waiting[place[ordered[1]]].append((ordered[1:], -1, len(parts)))
                parts.append(Part(ordered, tables, messages))
            first.append(len(parts))
        return parts, first

    @property
    def parts(self) -> list[Part]:
        """Parts of all buckets."""
        return self._buckets[0]

    @cached_property
    def sizes(self) -> list[int]:
        """Cells of each part."""
        return [math.prod(self.cards[v] for v in part.scope) for part in self.parts]

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """All arguments of the compiled search between the weights and the long rules."""
        parts, first = self._buckets
        sizes = self.sizes
        widths = [size // self.cards[part.scope[0]] for size, part in zip(sizes, parts, strict=True)]
        message_start = np.concatenate([[0], np.cumsum(widths)])
        arrivals = [child for part in parts for child in part.messages]
        maps = [self._map(parts[child].scope[1:], part.scope) for part in parts for child in part.messages]
        free = [(v, stride) for part in parts for v, stride in self._strides(part.scope)]
        return (
            _ints(np.concatenate([[0], np.cumsum(self.cards)])[:-1]),
            _ints(self.cards),
            _ints(self.order),
            _ints(first),
            _ints(np.concatenate([[0], np.cumsum(sizes)])),
            _ints(message_start),
            _ints(np.concatenate([[0], np.cumsum([len(part.messages) for part in parts])])),
            _ints([message_start[child] for child in arrivals]),
            _ints(np.concatenate([[0], np.cumsum([len(one) for one in maps])])),
            np.concatenate([np.zeros(0, np.int32), *maps]),
            _ints(np.concatenate([[0], np.cumsum([len(part.scope) - 1 for part in parts])])),
            _ints([v for v, _ in free]),
            _ints([stride for _, stride in free]),
        )

    def _strides(self, scope: Scope) -> list[tuple[int, int]]:
        """Variables of a part's message and how far apart their values lie in it."""
        strides, step = [], 1
        for v in reversed(scope[1:]):
            strides.append((v, step))
            step *= self.cards[v]
        return strides

    def _map(self, inner: Scope, outer: Scope) -> npt.NDArray[np.int32]:
        """Of each cell of a table over `outer`, the cell of a table over some of its variables."""
        cells = np.arange(math.prod(self.cards[v] for v in inner), dtype=np.int32)
        table = cells.reshape([self.cards[v] if v in inner else 1 for v in outer])
        return np.broadcast_to(table, [self.cards[v] for v in outer]).ravel()


_kept_buckets = lru_cache(maxsize=8)(Buckets)
"""Narrow layouts are made once; wide ones are seldom needed and take memory."""


@dataclass(frozen=True, eq=False)
class BucketSearch:
    """A search for the best outcomes of a product of factors.

    Parameters
    ----------
    cards : tuple of int
    factors : tuple of Factor or RuleFactor
        Over two or more variables each. Those that are tables are laid out in buckets; the others are
        products, bounded by their smallest inhibitions.
    width : int
        See `Buckets`.
    """

    cards: tuple[int, ...]
    factors: tuple[AnyFactor, ...]
    width: int

    @property
    def _limit(self) -> int:
        return min(self.width, _STAGES[0][0])

    @cached_property
    def _tables(self) -> list[AnyFactor]:
        return [factor for factor in self.factors if not is_long(factor, self._limit)]

    @cached_property
    def _buckets(self) -> Buckets:
        make = _kept_buckets if self.width <= _STAGES[1][0] else Buckets
        return make(self.cards, tuple(factor.scope for factor in self._tables), self.width)

    @cached_property
    def _shared(self) -> bool:
        """Whether all rows have the same tables."""
        return all(factor.log_table.shape[-1] == 1 for factor in self._tables)

    def _weights(self, rows: npt.NDArray[np.intp]) -> Floats:
        """Log-weights of the tables of all parts, (1 or r, cells), of some rows (r,)."""
        tables = [self._weights_of(part, rows) for part in self._buckets.parts]
        return np.ascontiguousarray(np.concatenate(tables, axis=1))

    def _weights_of(self, part: Part, rows: npt.NDArray[np.intp]) -> Floats:
        table = np.zeros([*(self.cards[v] for v in part.scope), 1 if self._shared else len(rows)])
        for k in part.tables:
            factor = self._tables[k].rows(rows)
            axes = [factor.scope.index(v) for v in part.scope if v in factor.scope]
            shape = [self.cards[v] if v in factor.scope else 1 for v in part.scope]
            table += factor.log_table.transpose(*axes, -1).reshape(*shape, -1)
        return table.reshape(-1, table.shape[-1]).T

    def _long(self) -> tuple[npt.NDArray, ...]:
        """Probabilities and entries of the rules without a table, and products of their inhibitions."""
        rules = [
            factor
            for factor in self.factors
            if isinstance(factor, RuleFactor) and is_long(factor, self._limit)
        ]
        m = len(self.cards)
        low, high = np.ones((m + 1, len(rules))), np.ones((m + 1, len(rules)))
        first, entries, inhibitions = [0], [], [np.zeros(0)]
        for t, v in enumerate(self._buckets.order):
            low[t + 1], high[t + 1] = low[t], high[t]
            for r, factor in enumerate(rules):
                if v in factor.scope:
                    assert factor.q is not None
                    q = factor.q[factor.scope.index(v)]
                    entries.append((r, sum(map(len, inhibitions))))
                    inhibitions.append(q)
                    low[t + 1, r] *= q.min()
                    high[t + 1, r] *= q.max()
            first.append(len(entries))
        return (
            np.array([factor.p for factor in rules], dtype=float),
            _ints(first),
            _ints([r for r, _ in entries]),
            _ints([start for _, start in entries]),
            np.concatenate(inhibitions),
            low,
            high,
        )

    def improve(
        self, unary: Floats, rows: npt.NDArray[np.intp], k: int, max_nodes: int, best: Best
    ) -> npt.NDArray[np.intp]:
        """Improve the best outcomes of some rows in place; return the values (r,) that were tried for each.

        A negative number, minus one minus that, means that the search ended on its budget.
        """
        step = len(rows) if self._shared else rows_per_block(sum(self._buckets.sizes), LISTED_CELLS)
        nodes = np.zeros(len(rows), dtype=np.intp)
        run: Any = search_rows  # the arguments are in its order
        arrays = (*self._buckets.arrays, *self._long())
        for start in range(0, len(rows), max(1, step)):
            block = slice(start, start + step)
            some = rows[block]
            codes, log_weight = best.codes[some], best.log_weight[some]
            weights = self._weights(some)
            run(unary[some], weights, *arrays, k, max_nodes, codes, log_weight, nodes[block])
            best.codes[some], best.log_weight[some] = codes, log_weight
        return nodes


def is_long(factor: AnyFactor, limit: int = _STAGES[0][0]) -> bool:
    """Whether a factor is a product that is too long for a table of so many cells."""
    return isinstance(factor, RuleFactor) and factor.q is not None and factor.n_cells > limit


def _ints(values: npt.ArrayLike) -> Codes:
    return np.asarray(values, dtype=np.intp).reshape(-1)


def _split(
    variable: int, waiting: Sequence[tuple[Scope, int, int]], cards: tuple[int, ...], width: int
) -> list[tuple[set[int], list[int], list[int]]]:
    """Distribute the tables of a bucket over parts of at most `width` cells, the largest tables first."""
    parts: list[tuple[set[int], list[int], list[int]]] = []
    for scope, table, message in sorted(waiting, key=lambda item: -math.prod(cards[v] for v in item[0])):
        fitting = [p for p in parts if math.prod(cards[v] for v in p[0] | set(scope)) <= width]
        if fitting:
            home = max(fitting, key=lambda part: len(part[0] & set(scope)))
        else:
            home = ({variable}, [], [])
            parts.append(home)
        home[0].update(scope)
        if table >= 0:
            home[1].append(table)
        else:
            home[2].append(message)
    return parts or [({variable}, [], [])]


class Best(NamedTuple):
    """The best outcomes found so far; `UNKNOWN` and minus infinity where there are fewer."""

    codes: Codes  # (n, k, m)
    log_weight: Floats  # (n, k)
    proven: npt.NDArray[np.bool_]  # (n,)

    def put(
        self, rows: npt.NDArray[np.intp], codes: Codes, log_weight: Floats, proven: npt.NDArray[np.bool_]
    ) -> None:
        """Replace the outcomes of some rows."""
        self.codes[rows], self.log_weight[rows], self.proven[rows] = codes, log_weight, proven


def best_outcomes(problem: Problem, k: int, max_nodes: int) -> Best:
    """Search the k best outcomes of every row of a problem without hidden variables.

    Parameters
    ----------
    problem : Problem
    k : int
    max_nodes : int
        Values that may be tried per row.
    """
    n, m = problem.n, len(problem.cards)
    best = Best(np.full((n, k, m), UNKNOWN), np.full((n, k), -np.inf), np.zeros(n, bool))
    unary = _unary_weights(problem)
    factors = tuple(factor for factor in problem.factors if len(factor.scope) > 1)
    open_rows = np.arange(n)
    left = max_nodes
    for width, budget in _STAGES:
        if not len(open_rows) or left <= 0:
            break
        search = BucketSearch(problem.cards, factors, width)
        nodes = search.improve(unary, open_rows, k, min(budget, left), best)
        best.proven[open_rows] = nodes >= 0
        open_rows = open_rows[nodes < 0]
        left -= budget
    return _weighed_again(problem, best)


def _unary_weights(problem: Problem) -> Floats:
    """Log-weights of the values of single variables side by side, (n, sum of cards)."""
    starts = np.concatenate([[0], np.cumsum(problem.cards)])
    flat = np.zeros((starts[-1], problem.n))
    for factor in problem.factors:
        if len(factor.scope) <= 1:
            v = factor.scope[0] if factor.scope else 0  # a constant may be minus infinity
            flat[starts[v] : starts[v + 1]] += factor.log_table
    return np.ascontiguousarray(flat.T)


def _weighed_again(problem: Problem, best: Best) -> Best:
    """Return the outcomes with weights that are added up once more: the search adds up differences."""
    codes = best.codes.transpose(1, 0, 2)
    weight = np.where(codes[..., 0] == UNKNOWN, -np.inf, problem.log_weight(np.maximum(codes, 0)))
    order = np.argsort(-weight, axis=0, kind="stable")
    codes = np.take_along_axis(codes, order[..., None], axis=0).transpose(1, 0, 2)
    return Best(codes, np.take_along_axis(weight, order, axis=0).T, best.proven)
