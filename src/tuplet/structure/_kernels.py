"""Compiled loops over families. Sets of variables are bit sets in rows of 64-bit words.

Families (a child with one of its candidate sets of parents) lie child by child, the best first; those of
child i are `starts[i]` to `starts[i + 1] - 1`. Everything is compiled on first use and cached on disk.
A compiled function lives in one file with all it calls: the cache notices changes in its own file only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

from tuplet.typing import Floats

__all__ = ["best_within", "climb", "compiled", "flip", "undominated"]

F = TypeVar("F", bound=Callable[..., Any])
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_ONE = np.uint64(1)


def compiled(function: F) -> F:
    """Compile on first use, with a cache on disk."""
    dispatcher: Any = njit(cache=True)(function)
    return dispatcher


@compiled
def flip(sets: Words, i: int, v: int) -> None:
    """Put v into set i, or take it out."""
    sets[i, v >> 6] ^= _ONE << np.uint64(v & 63)


@compiled
def first_within(begin: int, end: int, masks: Words, allowed: Words, i: int) -> int:
    """Return the first of the sets begin..end-1 that lies in set i of another list; `end` if none does."""
    for f in range(begin, end):
        fits = True
        for w in range(masks.shape[1]):
            if masks[f, w] & ~allowed[i, w]:
                fits = False
        if fits:
            return f
    return end


@compiled
def best_within(child: int, allowed: Words, starts: Ints, masks: Words) -> int:
    """Return the best family of a child with all parents in a set (1, words), or -1."""
    f = first_within(starts[child], starts[child + 1], masks, allowed, 0)
    return f if f < starts[child + 1] else -1


@compiled
def undominated(starts: Ints, masks: Words) -> npt.NDArray[np.bool_]:
    """Mark the families that no family of the same child with fewer parents equals or beats.

    Families come best first, with the smaller set first among equals: so only earlier ones can dominate, and
    of those the marked ones suffice, since what dominates a dominator dominates too.
    """
    keep = np.zeros(len(masks), np.bool_)
    marked = np.empty_like(masks)
    for child in range(len(starts) - 1):
        n = 0
        for f in range(starts[child], starts[child + 1]):
            if first_within(0, n, marked, masks, f) == n:
                keep[f] = True
                for w in range(masks.shape[1]):
                    marked[n, w] = masks[f, w]
                n += 1
    return keep


@compiled
def choose(order: Ints, starts: Ints, masks: Words, chosen: Ints) -> bool:
    """Write the best family of every child for an order; tell whether all children have one."""
    before = np.zeros((1, masks.shape[1]), np.uint64)
    for v in order:
        chosen[v] = best_within(v, before, starts, masks)
        if chosen[v] < 0:
            return False
        flip(before, 0, v)
    return True


@compiled
def predecessors(order: Ints, p: int, n_words: int) -> Words:
    """Return the variables before place p as one bit set, shape (1, n_words)."""
    before = np.zeros((1, n_words), np.uint64)
    for q in range(p):
        flip(before, 0, order[q])
    return before


@compiled
def best_to_left(
    order: Ints, p: int, starts: Ints, masks: Words, values: Floats, chosen: Ints
) -> tuple[int, float]:
    """Return the best place to the left for the variable at place p, and what the move gains (0 if nothing).

    It passes one variable after the other: it loses that one as a possible parent, which gains it. The walk
    ends where it has no family left, for it will not have one farther on either.
    """
    v = order[p]
    before = predecessors(order, p, masks.shape[1])
    place, best, others, f = p, 0.0, 0.0, chosen[v]
    for q in range(p - 1, -1, -1):
        u = order[q]
        flip(before, 0, u)
        f = first_within(f, starts[v + 1], masks, before, 0)
        if f == starts[v + 1]:
            break
        flip(before, 0, v)
        others += values[first_within(starts[u], chosen[u], masks, before, 0)] - values[chosen[u]]
        flip(before, 0, v)
        gain = others + values[f] - values[chosen[v]]
        if gain > best:
            place, best = q, gain
    return place, best


@compiled
def best_to_right(
    order: Ints, p: int, starts: Ints, masks: Words, values: Floats, chosen: Ints
) -> tuple[int, float]:
    """Return the best place to the right for the variable at place p, and what the move gains (0 if nothing).

    The mirror image of `best_to_left`: the variables that are passed lose a possible parent.
    """
    v = order[p]
    before = predecessors(order, p, masks.shape[1])
    place, best, others, f = p, 0.0, 0.0, chosen[v]
    for q in range(p + 1, len(order)):
        u = order[q]
        g = first_within(chosen[u], starts[u + 1], masks, before, 0)
        if g == starts[u + 1]:
            break
        others += values[g] - values[chosen[u]]
        flip(before, 0, u)
        f = first_within(starts[v], f, masks, before, 0)
        gain = others + values[f] - values[chosen[v]]
        if gain > best:
            place, best = q, gain
    return place, best


@compiled
def move(order: Ints, p: int, q: int) -> None:
    """Move the variable at place p to place q."""
    v = order[p]
    step = 1 if q > p else -1
    for r in range(p, q, step):
        order[r] = order[r + step]
    order[q] = v


@compiled
def climb(order: Ints, starts: Ints, masks: Words, values: Floats, chosen: Ints, least: float) -> bool:
    """Improve an order in place by moving one variable at a time to its best place, until no move helps.

    Moves that gain no more than `least` are rounding, not progress. Returns False, with nothing done, where
    some child has no family for the order.
    """
    if not choose(order, starts, masks, chosen):
        return False
    still = v = 0  # `still`: variables in a row that are best where they are
    while still < len(order):
        p = 0
        while order[p] != v:
            p += 1
        left, left_gain = best_to_left(order, p, starts, masks, values, chosen)
        right, right_gain = best_to_right(order, p, starts, masks, values, chosen)
        still += 1
        if max(left_gain, right_gain) > least:
            move(order, p, left if left_gain > right_gain else right)
            choose(order, starts, masks, chosen)
            still = 0
        v = (v + 1) % len(order)
    return True
