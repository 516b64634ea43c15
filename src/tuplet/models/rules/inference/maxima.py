"""The most probable outcomes of beliefs times rules, with a proof: mini-buckets and branch and bound.

What does not depend on the rows is laid out once: which tables meet in which bucket, how a bucket that would
be too large is split, and where every cell of a table finds its message. A compiled search does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.models.rules.inference.factor import RuleFactor
from tuplet.models.rules.inference.ordering import cheapest_plan
from tuplet.models.rules.inference.search_kernels import search_rows

Scope = tuple[int, ...]

_STAGES = ((2**11, 2**11), (2**14, 2**14), (2**17, 2**62))
"""Cells of a bucket's part, and nodes of a row before the next stage. Wide parts bound better and cost more;
most rows need no more than the first stage."""


class Part(NamedTuple):
    """Part of a bucket: some of its tables, which are maximised together."""

    scope: Scope  # the bucket's variable, then the others in the order of elimination
    rules: list[int]
    messages: list[int]  # parts whose messages arrive


@dataclass(frozen=True, eq=False)
class Maxima:
    """Layout of a search for the best outcomes.

    Parameters
    ----------
    cards : tuple of int
    factors : tuple of RuleFactor
    width : int
        Cells of a part of a bucket; a single rule may have more.
    """

    cards: tuple[int, ...]
    factors: tuple[RuleFactor, ...]
    width: int

    @cached_property
    def _short(self) -> list[int]:
        """Rules that are tables; the others are products, bounded by their smallest inhibitions."""
        limit = min(self.width, _STAGES[0][0])
        return [k for k, f in enumerate(self.factors) if not f.is_product or f.n_cells <= limit]

    @cached_property
    def order(self) -> list[int]:
        """Elimination order; the search fixes variables in the reverse one."""
        scopes = (*((j,) for j in range(len(self.cards))), *(self.factors[k].scope for k in self._short))
        return [step.variable for step in cheapest_plan(self.cards, scopes).steps]

    @cached_property
    def _buckets(self) -> tuple[list[Part], list[int]]:
        """All parts, and the first part of every bucket (m + 1,)."""
        place = {v: t for t, v in enumerate(self.order)}
        waiting: list[list[tuple[Scope, int, int]]] = [[] for _ in self.order]  # (scope, rule, message)
        for k in self._short:
            scope = tuple(sorted(self.factors[k].scope, key=place.__getitem__))
            waiting[place[scope[0]]].append((scope, k, -1))
        parts: list[Part] = []
        first = [0]
        for t, v in enumerate(self.order):
            for members, rules, messages in _split(v, waiting[t], self.cards, self.width):
                ordered = tuple(sorted(members, key=place.__getitem__))
                if len(ordered) > 1:
                    waiting[place[ordered[1]]].append((ordered[1:], -1, len(parts)))
                parts.append(Part(ordered, rules, messages))
            first.append(len(parts))
        return parts, first

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        """All arguments of the compiled search between the beliefs and the number of outcomes."""
        parts, first = self._buckets
        sizes = [math.prod(self.cards[v] for v in part.scope) for part in parts]
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
            np.concatenate([self._static(part) for part in parts]),
            _ints(np.concatenate([[0], np.cumsum([len(part.messages) for part in parts])])),
            _ints([message_start[child] for child in arrivals]),
            _ints(np.concatenate([[0], np.cumsum([len(one) for one in maps])])),
            np.concatenate([np.zeros(0, np.int32), *maps]).astype(np.int32),
            _ints(np.concatenate([[0], np.cumsum([len(part.scope) - 1 for part in parts])])),
            _ints([v for v, _ in free]),
            _ints([stride for _, stride in free]),
            *self._long(),
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

    def _static(self, part: Part) -> Floats:
        """Log-weight of the rules of a part, over its scope."""
        table = np.zeros([self.cards[v] for v in part.scope])
        for k in part.rules:
            factor = self.factors[k]
            inner = [v for v in part.scope if v in factor.scope]
            axes = [factor.scope.index(v) for v in inner]
            shape = [self.cards[v] if v in factor.scope else 1 for v in part.scope]
            table += factor.log_table().transpose(axes).reshape(shape)
        return table.ravel()

    def _long(self) -> tuple[npt.NDArray, ...]:
        """Probabilities and entries of the rules without a table, and products of their inhibitions."""
        rules = [factor for k, factor in enumerate(self.factors) if k not in set(self._short)]
        m = len(self.cards)
        low, high = np.ones((m + 1, len(rules))), np.ones((m + 1, len(rules)))
        first, entries, inhibitions = [0], [], [np.zeros(0)]
        for t, v in enumerate(self.order):
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

    def search(
        self, log_beliefs: Floats, k: int, max_nodes: int, codes: Codes, log_weight: Floats
    ) -> npt.NDArray[np.intp]:
        """Improve k outcomes (n, k, m) with log-weights (n, k) in place; return the nodes (n,) of each row.

        A negative number -1 - nodes means that the search ended on its budget.
        """
        nodes = np.zeros(len(log_beliefs), dtype=np.intp)
        run: Any = search_rows  # the arrays are in the order of its arguments
        run(log_beliefs, *self._arrays, k, max_nodes, codes, log_weight, nodes)
        return nodes


def _ints(values: npt.ArrayLike) -> Codes:
    return np.asarray(values, dtype=np.intp).reshape(-1)


def _split(
    variable: int, waiting: Sequence[tuple[Scope, int, int]], cards: tuple[int, ...], width: int
) -> list[tuple[set[int], list[int], list[int]]]:
    """Distribute the tables of a bucket over parts of at most `width` cells, the largest tables first."""
    parts: list[tuple[set[int], list[int], list[int]]] = []
    for scope, rule, message in sorted(waiting, key=lambda item: -math.prod(cards[v] for v in item[0])):
        fitting = [p for p in parts if math.prod(cards[v] for v in p[0] | set(scope)) <= width]
        if fitting:
            home = max(fitting, key=lambda part: len(part[0] & set(scope)))
        else:
            home = ({variable}, [], [])
            parts.append(home)
        home[0].update(scope)
        if rule >= 0:
            home[1].append(rule)
        else:
            home[2].append(message)
    return parts or [({variable}, [], [])]


def best_outcomes(
    cards: tuple[int, ...],
    factors: tuple[RuleFactor, ...],
    log_beliefs: Sequence[Floats],
    k: int,
    max_nodes: int,
) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
    """K best outcomes of every row.

    Parameters
    ----------
    log_beliefs : sequence of arrays (n, k_j)
    k : int
    max_nodes : int
        Values that may be tried per row.

    Returns
    -------
    codes (n, k, m), log-weights (n, k) and whether they are proven (n,)
        Best first; `UNKNOWN` and minus infinity where a row has fewer outcomes of positive weight.
    """
    flat = np.ascontiguousarray(np.concatenate(log_beliefs, axis=1))
    n = len(flat)
    codes = np.full((n, k, len(cards)), UNKNOWN, dtype=np.intp)
    log_weight = np.full((n, k), -np.inf)
    proven = np.zeros(n, bool)
    open_rows = np.arange(n)
    left = max_nodes
    for width, budget in _STAGES:
        if not len(open_rows) or left <= 0:
            break
        found, weights = codes[open_rows], log_weight[open_rows]
        nodes = Maxima(cards, factors, width).search(flat[open_rows], k, min(budget, left), found, weights)
        codes[open_rows], log_weight[open_rows] = found, weights
        proven[open_rows] = nodes >= 0
        open_rows = open_rows[nodes < 0]
        left -= budget
    return codes, log_weight, proven
