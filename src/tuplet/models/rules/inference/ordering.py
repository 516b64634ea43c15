"""Cheap elimination orders: several greedy ones with broken ties, of which the cheapest counts."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tuplet.joint.inference.plan import Plan, Scope, bits, make_plan, neighbourhoods, plan_along

_CHEAP = 2**14
"""Cells of a plan that is not worth improving: finding a better one would take longer than using it."""

_TRIES = 24


@lru_cache(maxsize=256)
def cheapest_plan(cards: tuple[int, ...], scopes: tuple[Scope, ...], limit: int = _CHEAP) -> Plan:
    """Plan the elimination of all variables with few cells in all.

    The min-fill order is one candidate; if it has more than `limit` cells, randomised greedy orders by the
    size of the next table (odd tries) and by the edges that it adds (even tries) are the others. The choice
    repeats, since the randomness is seeded.
    """
    best = make_plan(cards, scopes)
    cells = sum(best.sizes)
    rng = np.random.default_rng(0)
    for trial in range(_TRIES):
        if cells <= limit:
            break
        order, found = _greedy(cards, scopes, rng, by_fill=trial % 2 == 0, most=cells)
        if order is not None and found < cells:
            best, cells = plan_along(cards, scopes, order), found
    return best


def _greedy(
    cards: tuple[int, ...], scopes: tuple[Scope, ...], rng: np.random.Generator, *, by_fill: bool, most: int
) -> tuple[list[int] | None, int]:
    """Return an order and its cells, or None as soon as these exceed `most`."""
    neighbours = neighbourhoods(len(cards), scopes)
    logs = [math.log(card) for card in cards]
    noise = 0.3 * rng.random(len(cards))
    costs = {v: _cost(v, neighbours, logs, by_fill) for v in range(len(cards))}
    order, total = [], 0
    while costs:
        v = min(costs, key=lambda u: costs[u] + noise[u])
        del costs[v]
        around = bits(neighbours[v])
        total += cards[v] * math.prod([cards[u] for u in around])
        if total > most:
            return None, total
        order.append(v)
        touched = _connect(neighbours, v, around)
        for u in touched:
            costs[u] = _cost(u, neighbours, logs, by_fill)
    return order, total


def _cost(v: int, neighbours: list[int], logs: list[float], by_fill: bool) -> float:
    around = neighbours[v]
    near = bits(around)
    if by_fill:
        return sum([(around & ~neighbours[u]).bit_count() - 1 for u in near])
    return logs[v] + sum([logs[u] for u in near])


def _connect(neighbours: list[int], v: int, around: list[int]) -> set[int]:
    """Eliminate v; return the variables whose costs may have changed."""
    mask = neighbours[v]
    touched = set(around)
    for u in around:
        grown = (neighbours[u] | mask) & ~(1 << u) & ~(1 << v)
        if grown & ~neighbours[u]:
            touched.update(bits(grown))
        neighbours[u] = grown
    return touched
