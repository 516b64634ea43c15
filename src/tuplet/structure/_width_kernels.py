"""Compiled loops of the search with bounded width: a tree of cliques is grown along an order."""

from __future__ import annotations

import numpy as np

from tuplet.structure._kernels import Ints, Words, compiled
from tuplet.typing import Floats

__all__ = ["grow", "wander"]


@compiled
def has(words: Words, i: int, v: int) -> bool:
    """Tell whether v is in set i."""
    return words[i, v >> 6] >> np.uint64(v & 63) & np.uint64(1) != 0


@compiled
def flip(sets: Words, i: int, v: int) -> None:
    """Put v into set i, or take it out."""
    sets[i, v >> 6] ^= np.uint64(1) << np.uint64(v & 63)


@compiled
def inside(small: Words, i: int, big: Words, j: int) -> bool:
    """Tell whether set i of one list lies in set j of another."""
    beyond = np.uint64(0)
    for w in range(small.shape[1]):
        beyond |= small[i, w] & ~big[j, w]
    return beyond == 0


@compiled
def add(total: Floats, rows: Floats, i: int, sign: float) -> None:
    """Add row i, or take it away."""
    for u in range(len(total)):
        total[u] += sign * rows[i, u]


@compiled
def best_home(masks: Words, f: int, bags: Words, begin: int, end: int, need: Floats) -> int:
    """Return the bag that has the parents of a family and else what is needed most; -1 if none has."""
    best, top = -1, -1.0
    for b in range(begin, end):
        if inside(masks, f, bags, b):
            total = 0.0
            for u in range(len(need)):
                if has(bags, b, u):
                    total += need[u]
            if total > top:
                best, top = b, total
    return best


@compiled
def drop_least(bags: Words, b: int, masks: Words, f: int, need: Floats) -> None:
    """Take the member that is needed least out of bag b, the parents of family f excepted."""
    least, low = -1, np.inf
    for u in range(len(need)):
        if has(bags, b, u) and not has(masks, f, u) and need[u] < low:
            least, low = u, need[u]
    flip(bags, b, least)


@compiled
def grow(
    begin: int, order: Ints, width: int, starts: Ints, masks: Words, worth: Floats, bags: Words, chosen: Ints
) -> bool:
    """Choose families along an order, from place `begin` on, so that the moral graph has at most a width.

    Bag p has at most width + 1 variables: the one at place p and those that it may be joined to. The first
    width + 1 variables share one bag that grows. Every later one takes its best family with all parents in
    some earlier bag, and its own bag is a copy of that one in which it replaces the member that is needed
    least. The bags are the cliques of a tree of that width (a k-tree), and every family lies in one of them:
    hence the moral graph is part of the tree.

    `worth` (child, parent) says what a child loses without a parent; needed is what later children lose.
    Returns False where some variable has no family that fits.
    """
    before = np.zeros((1, masks.shape[1]), np.uint64)
    need = np.zeros(len(order))
    for p in range(len(order)):
        if p < begin:
            flip(before, 0, order[p])
        else:
            add(need, worth, order[p], 1.0)
    for p in range(begin, len(order)):
        v = order[p]
        add(need, worth, v, -1.0)
        home, f = -1, starts[v] - 1
        while home < 0:
            f += 1
            if f == starts[v + 1]:
                return False
            if inside(masks, f, before, 0):
                home = max(0, p - 1) if p <= width else best_home(masks, f, bags, width, p, need)
        chosen[v] = f
        for w in range(masks.shape[1]):
            bags[p, w] = bags[home, w] if p else np.uint64(0)
        if p > width:
            drop_least(bags, p, masks, f, need)
        flip(bags, p, v)
        flip(before, 0, v)
    return True


@compiled
def wander(
    moves: Ints,
    slack: Floats,
    width: int,
    starts: Ints,
    masks: Words,
    values: Floats,
    worth: Floats,
    order: Ints,
    bags: Words,
    chosen: Ints,
    best: Ints,
) -> None:
    """Try moves (from, to) of one variable each in turn; keep those that lose no more than their slack.

    Order, bags and choices are changed in place; `best` gets the choices of the highest score.
    """
    score, top = total_of(values, chosen), total_of(values, best)
    trial, trial_bags, trial_chosen = order.copy(), bags.copy(), chosen.copy()
    for k in range(len(moves)):
        p, q = moves[k, 0], moves[k, 1]
        take_over(order, bags, chosen, trial, trial_bags, trial_chosen)
        step = 1 if q > p else -1
        for r in range(p, q, step):
            trial[r] = order[r + step]
        trial[q] = order[p]
        if not grow(min(p, q), trial, width, starts, masks, worth, trial_bags, trial_chosen):
            continue
        reached = total_of(values, trial_chosen)
        if reached >= score - slack[k]:
            score = reached
            take_over(trial, trial_bags, trial_chosen, order, bags, chosen)
            if score > top:
                top = score
                for v in range(len(best)):
                    best[v] = chosen[v]


@compiled
def total_of(values: Floats, chosen: Ints) -> float:
    """Score of one family per child."""
    total = 0.0
    for f in chosen:
        total += values[f]
    return total


@compiled
def take_over(
    order: Ints, bags: Words, chosen: Ints, to_order: Ints, to_bags: Words, to_chosen: Ints
) -> None:
    """Copy one state into another. Written out, since array assignments take seconds to compile."""
    for p in range(len(order)):
        to_order[p] = order[p]
        to_chosen[p] = chosen[p]
        for w in range(bags.shape[1]):
            to_bags[p, w] = bags[p, w]
