"""Elimination plans: everything about a structure that does not depend on numbers, made once and reused."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

Scope = tuple[int, ...]

_CHEAP = 2**14
"""Cells of a plan that is not worth improving: finding a better one would take longer than using it."""

_TRIES = 24
"""Randomised orders that are tried for a cheaper plan."""

_MANY_EDGES = 2**10
"""Edges from which on fewer orders are tried: the time of one grows faster than their number."""

_RESCALE_EVERY = 16
"""Factors that may be multiplied before a message is rescaled; underflow is caught in any case."""


@dataclass(frozen=True)
class Step:
    """Elimination of one variable.

    The axes of every table follow the elimination order, so the variable to eliminate is the first axis,
    and a message fits into the table that receives it by inserting axes of length one: nothing is
    ever transposed.
    """

    variable: int
    scope: Scope  # the clique: `variable`, then its separator
    inputs: tuple[tuple[int, tuple[int, ...]], ...]  # (slot, shape in the clique, without the batch axis)
    children: tuple[int, ...]  # steps whose message arrives here
    parent: int  # step that gets the message, or -1
    parent_drop: tuple[int, ...]  # axes of the parent's table that are not in the separator
    shape: tuple[int, ...]  # of the clique's table, without the batch axis
    rescale: bool  # so many factors went into the message that its range must be brought back to one

    @property
    def separator(self) -> Scope:
        """Variables that are left when the step is done: the scope of its message."""
        return self.scope[1:]


@dataclass(frozen=True)
class Plan:
    """Steps in elimination order. Slots 0.. are the factors, then one slot for the message of every step."""

    cards: tuple[int, ...]
    steps: tuple[Step, ...]
    transposes: tuple[tuple[int, ...], ...]  # axes of each factor, in elimination order
    constants: tuple[int, ...]  # factors with an empty scope
    step_of: tuple[int, ...]  # the step that eliminates each variable
    factor_step: tuple[int, ...]  # the step that takes up each factor; -1 for constants
    last_use: tuple[int, ...]  # first step with the variable in its separator: the last one read backwards

    @cached_property
    def sizes(self) -> list[int]:
        """Cells of every table, for one row."""
        return [math.prod(step.shape) for step in self.steps]

    @property
    def width(self) -> int:
        """Variables in the largest separator: the induced width of the order."""
        return max((len(step.separator) for step in self.steps), default=0)


@lru_cache(maxsize=512)
def make_plan(cards: tuple[int, ...], scopes: tuple[Scope, ...], first: frozenset[int] = frozenset()) -> Plan:
    """Plan the elimination of all variables; those in `first` go before the others.

    The order is min-fill, or the plain numbering where that has the smaller largest table: on regular
    graphs (chains of blocks, grids) greedy choices can lose by factors.
    """
    order = min_fill_order(cards, scopes, first)
    plain = sorted(range(len(cards)), key=lambda v: (v not in first, v))
    greedy_size = _largest_table(cards, scopes, order, math.inf)
    if _largest_table(cards, scopes, plain, greedy_size) < greedy_size:
        order = plain
    return plan_along(cards, scopes, order)


@lru_cache(maxsize=256)
def cheapest_plan(cards: tuple[int, ...], scopes: tuple[Scope, ...]) -> Plan:
    """Plan the elimination of all variables with few cells in all.

    The order of `make_plan` is one candidate; unless it is cheap, randomised greedy orders by the size of the
    next table (odd tries) and by the edges that it adds (even tries) are the others. The choice repeats,
    since the randomness is seeded.
    """
    best = make_plan(cards, scopes, frozenset())
    cells = sum(best.sizes)
    rng = np.random.default_rng(0)
    n_edges = sum(around.bit_count() for around in neighbourhoods(len(cards), scopes)) // 2
    for trial in range(_TRIES * _MANY_EDGES // max(n_edges, _MANY_EDGES)):
        if cells <= _CHEAP:
            break
        noise = (0.3 * rng.random(len(cards))).tolist()
        order, found = _randomised_order(cards, scopes, noise, by_fill=trial % 2 == 0, most=cells)
        if found < cells:
            best, cells = plan_along(cards, scopes, order), found
    return best


def plan_along(cards: tuple[int, ...], scopes: tuple[Scope, ...], order: list[int]) -> Plan:
    """Plan the elimination of all variables in a given order."""
    place = {v: i for i, v in enumerate(order)}
    ordered = [tuple(sorted(scope, key=place.__getitem__)) for scope in scopes]
    transposes = tuple(
        (*(scope.index(v) for v in inner), len(scope)) for scope, inner in zip(scopes, ordered, strict=True)
    )
    waiting: list[list[tuple[int, Scope]]] = [[] for _ in order]  # (slot, scope) by first variable
    for slot, scope in enumerate(ordered):
        if scope:
            waiting[place[scope[0]]].append((slot, scope))
    cliques: list[Scope] = []
    for i, v in enumerate(order):
        members = set().union({v}, *(scope for _, scope in waiting[i]))
        clique = tuple(sorted(members, key=place.__getitem__))
        cliques.append(clique)
        if len(clique) > 1:
            waiting[place[clique[1]]].append((len(scopes) + i, clique[1:]))
    rescale = _rescaling(waiting, len(scopes))
    steps = tuple(
        _step(cliques, i, waiting[i], place, cards, len(scopes), rescale[i]) for i in range(len(order))
    )
    return Plan(
        cards,
        steps,
        transposes,
        tuple(slot for slot, scope in enumerate(scopes) if not scope),
        tuple(place[v] for v in range(len(cards))),
        tuple(place[scope[0]] if scope else -1 for scope in ordered),
        _last_use(cliques),
    )


def _last_use(cliques: list[Scope]) -> tuple[int, ...]:
    uses = [len(cliques)] * len(cliques)
    for i in reversed(range(len(cliques))):
        for v in cliques[i][1:]:
            uses[v] = i
    return tuple(uses)


def _rescaling(waiting: list[list[tuple[int, Scope]]], n_factors: int) -> list[bool]:
    """Which messages to rescale: those into which `_RESCALE_EVERY` factors went since the last time."""
    since: list[int] = []
    for arriving in waiting:
        since.append(sum(1 if slot < n_factors else since[slot - n_factors] for slot, _ in arriving))
        if since[-1] >= _RESCALE_EVERY:
            since[-1] = 0
    return [count == 0 for count in since]


def _step(
    cliques: list[Scope],
    i: int,
    arriving: list[tuple[int, Scope]],
    place: dict[int, int],
    cards: tuple[int, ...],
    n_factors: int,
    rescale: bool,
) -> Step:
    clique = cliques[i]
    parent = place[clique[1]] if len(clique) > 1 else -1
    above = cliques[parent] if parent >= 0 else ()
    return Step(
        variable=clique[0],
        scope=clique,
        inputs=tuple(
            (slot, tuple(cards[v] if v in scope else 1 for v in clique))
            for slot, scope in sorted(arriving, key=lambda item: len(item[1]))
        ),
        children=tuple(slot - n_factors for slot, _ in arriving if slot >= n_factors),
        parent=parent,
        parent_drop=tuple(axis for axis, v in enumerate(above) if v not in clique),
        shape=tuple(cards[v] for v in clique),
        rescale=rescale,
    )


def min_fill_order(
    cards: tuple[int, ...], scopes: Iterable[Scope], first: frozenset[int] = frozenset()
) -> list[int]:
    """Greedy elimination order: fewest new edges, then the smallest table, then the lowest index.

    Neighbourhoods are bit sets in Python integers, which count and intersect in one machine-code call.
    """
    neighbours = neighbourhoods(len(cards), scopes)
    log_cards = [math.log(card) for card in cards]

    def cost(v: int) -> tuple[bool, int, float, int]:
        around = neighbours[v]
        near = bits(around)
        missing = sum((around & ~neighbours[u]).bit_count() - 1 for u in near)
        return v not in first, missing, log_cards[v] + sum(log_cards[u] for u in near), v

    costs = {v: cost(v) for v in range(len(cards))}
    queue = sorted(costs.values())
    order = []
    while queue:
        entry = heapq.heappop(queue)
        v = entry[-1]
        if costs.get(v) != entry:
            continue  # eliminated, or a cost that has changed since
        order.append(v)
        del costs[v]
        around = touched = neighbours[v]
        _connect(neighbours, v)
        if entry[1]:  # without new edges, nothing changes beyond the neighbours themselves
            for u in bits(around):
                touched |= neighbours[u]
        for u in bits(touched):
            costs[u] = cost(u)
            heapq.heappush(queue, costs[u])
    return order


def _randomised_order(
    cards: tuple[int, ...], scopes: tuple[Scope, ...], noise: Sequence[float], *, by_fill: bool, most: int
) -> tuple[list[int], int]:
    """Return a greedy order and the cells of all its tables; it is cut short where these exceed `most`."""
    neighbours = neighbourhoods(len(cards), scopes)
    log_cards = [math.log(card) for card in cards]

    def cost(v: int) -> float:
        around = neighbours[v]
        near = bits(around)
        if by_fill:
            return sum([(around & ~neighbours[u]).bit_count() - 1 for u in near])
        return log_cards[v] + sum([log_cards[u] for u in near])

    costs = {v: cost(v) for v in range(len(cards))}
    order: list[int] = []
    total = 0
    while costs and total <= most:
        v = min(costs, key=lambda u: costs[u] + noise[u])
        del costs[v]
        order.append(v)
        touched = neighbours[v]
        around = bits(touched)
        total += cards[v] * math.prod([cards[u] for u in around])
        before = [neighbours[u] for u in around]
        _connect(neighbours, v)
        for u, old in zip(around, before, strict=True):
            if neighbours[u] & ~old:
                touched |= neighbours[u]
        for u in bits(touched):
            costs[u] = cost(u)
    return order, total


def cliques_along(scopes: Iterable[Scope], order: list[int]) -> Iterator[Scope]:
    """Yield the clique of every step of an elimination order: the variable, then its neighbours."""
    neighbours = neighbourhoods(len(order), scopes)
    for v in order:
        yield (v, *bits(neighbours[v]))
        _connect(neighbours, v)


def neighbourhoods(n_variables: int, scopes: Iterable[Scope]) -> list[int]:
    """Return the neighbours of every variable, those that share a scope with it, as bits of a number."""
    neighbours = [0] * n_variables
    for scope in scopes:
        mask = sum(1 << v for v in scope)
        for v in scope:
            neighbours[v] |= mask & ~(1 << v)
    return neighbours


def bits(mask: int) -> list[int]:
    """Return the members of a set of variables that is given as the bits of a number."""
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


def _connect(neighbours: list[int], v: int) -> None:
    """Eliminate v: its neighbours become neighbours of each other."""
    around = neighbours[v]
    for u in bits(around):
        neighbours[u] = (neighbours[u] | around) & ~(1 << u) & ~(1 << v)


def _largest_table(
    cards: tuple[int, ...], scopes: tuple[Scope, ...], order: list[int], limit: float
) -> float:
    """Cells of the largest table of an elimination order; infinity as soon as it reaches the limit."""
    largest = 0
    for clique in cliques_along(scopes, order):
        largest = max(largest, math.prod(cards[v] for v in clique))
        if largest >= limit:
            return math.inf
    return largest
