"""Compiled loops over families. Sets of variables are bit sets in rows of 64-bit words.

Families (a child with one of its candidate sets of parents) lie child by child, the best first; those of
child i are `starts[i]` to `starts[i + 1] - 1`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.core.compiled import entry, inner
from tuplet.core.typing import Floats

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

_ONE = np.uint64(1)


@entry("w2 i i")
def flip(sets: Words, i: int, v: int) -> None:
    """Put v into set i, or take it out."""
    sets[i, v >> 6] ^= _ONE << np.uint64(v & 63)


@inner()
def _first_within(begin: int, end: int, masks: Words, allowed: Words, i: int) -> int:
    """Return the first of the sets begin..end-1 that lies in set i of another list; `end` if none does."""
    for f in range(begin, end):
        fits = True
        for w in range(masks.shape[1]):
            if masks[f, w] & ~allowed[i, w]:
                fits = False
        if fits:
            return f
    return end


@entry("i w2 i1 w2")
def best_within(child: int, allowed: Words, starts: Ints, masks: Words) -> int:
    """Return the best family of a child with all parents in a set (1, words), or -1."""
    f = _first_within(starts[child], starts[child + 1], masks, allowed, 0)
    return f if f < starts[child + 1] else -1


@entry("i1 w2")
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
            if _first_within(0, n, marked, masks, f) == n:
                keep[f] = True
                for w in range(masks.shape[1]):
                    marked[n, w] = masks[f, w]
                n += 1
    return keep


@inner()
def _choose(order: Ints, starts: Ints, masks: Words, chosen: Ints) -> bool:
    """Write the best family of every child for an order; tell whether all children have one."""
    before = np.zeros((1, masks.shape[1]), np.uint64)
    for v in order:
        chosen[v] = best_within(v, before, starts, masks)
        if chosen[v] < 0:
            return False
        flip(before, 0, v)
    return True


@inner()
def _predecessors(order: Ints, p: int, n_words: int) -> Words:
    """Return the variables before place p as one bit set, shape (1, n_words)."""
    before = np.zeros((1, n_words), np.uint64)
    for q in range(p):
        flip(before, 0, order[q])
    return before


@inner()
def _best_to_left(
    order: Ints, p: int, starts: Ints, masks: Words, values: Floats, chosen: Ints
) -> tuple[int, float]:
    """Return the best place to the left for the variable at place p, and what the move gains (0 if nothing).

    It passes one variable after the other: it loses that one as a possible parent, which gains it. The walk
    ends where it has no family left, for it will not have one farther on either.
    """
    v = order[p]
    before = _predecessors(order, p, masks.shape[1])
    place, best, others, f = p, 0.0, 0.0, chosen[v]
    for q in range(p - 1, -1, -1):
        u = order[q]
        flip(before, 0, u)
        f = _first_within(f, starts[v + 1], masks, before, 0)
        if f == starts[v + 1]:
            break
        flip(before, 0, v)
        others += values[_first_within(starts[u], chosen[u], masks, before, 0)] - values[chosen[u]]
        flip(before, 0, v)
        gain = others + values[f] - values[chosen[v]]
        if gain > best:
            place, best = q, gain
    return place, best


@inner()
def _best_to_right(
    order: Ints, p: int, starts: Ints, masks: Words, values: Floats, chosen: Ints
) -> tuple[int, float]:
    """Return the best place to the right for the variable at place p, and what the move gains (0 if nothing).

    The mirror image of `_best_to_left`: the variables that are passed lose a possible parent.
    """
    v = order[p]
    before = _predecessors(order, p, masks.shape[1])
    place, best, others, f = p, 0.0, 0.0, chosen[v]
    for q in range(p + 1, len(order)):
        u = order[q]
        g = _first_within(chosen[u], starts[u + 1], masks, before, 0)
        if g == starts[u + 1]:
            break
        others += values[g] - values[chosen[u]]
        flip(before, 0, u)
        f = _first_within(starts[v], f, masks, before, 0)
        gain = others + values[f] - values[chosen[v]]
        if gain > best:
            place, best = q, gain
    return place, best


@inner()
def _move(order: Ints, p: int, q: int) -> None:
    """Move the variable at place p to place q."""
    v = order[p]
    step = 1 if q > p else -1
    for r in range(p, q, step):
        order[r] = order[r + step]
    order[q] = v


@entry("i1 i1 w2 f1 i1 f")
def climb(order: Ints, starts: Ints, masks: Words, values: Floats, chosen: Ints, least: float) -> bool:
    """Improve an order in place by moving one variable at a time to its best place, until no move helps.

    Moves that gain no more than `least` are rounding, not progress. Returns False, with nothing done, where
    some child has no family for the order.
    """
    if not _choose(order, starts, masks, chosen):
        return False
    still = v = 0  # `still`: variables in a row that are best where they are
    while still < len(order):
        p = 0
        while order[p] != v:
            p += 1
        left, left_gain = _best_to_left(order, p, starts, masks, values, chosen)
        right, right_gain = _best_to_right(order, p, starts, masks, values, chosen)
        still += 1
        if max(left_gain, right_gain) > least:
            _move(order, p, left if left_gain > right_gain else right)
            _choose(order, starts, masks, chosen)
            still = 0
        v = (v + 1) % len(order)
    return True


# -- the best network of all, by sets of variables --------------------------------------------------------


@entry("i i f1 f2 i1 w2 f1")
def extend_table(
    high: int, n_low: int, best: Floats, within: Floats, starts: Ints, masks: Words, values: Floats
) -> None:
    """Fill the scores of the best networks over all sets whose high part is `high`.

    `best` has an entry for every set of variables; the parts of all subsets of `high` are filled already.
    `within` (m, 2**n_low) is scratch: for every child, the best family inside high plus a low part.
    """
    size = 1 << n_low
    out = best[high << n_low : (high + 1) << n_low]
    out[:] = -np.inf
    if high == 0:
        out[0] = 0.0
    for v in range(len(starts) - 1):
        if v < n_low or (high >> (v - n_low)) & 1:
            _best_inside(v, high, n_low, within[v], starts, masks, values)
    for v in range(n_low, len(starts) - 1):
        if (high >> (v - n_low)) & 1:
            rest = high ^ (1 << (v - n_low))
            previous = best[rest << n_low : (rest + 1) << n_low]
            for low in range(size):
                out[low] = max(out[low], previous[low] + within[v, low])
    for low in range(1, size):
        top = out[low]
        for v in range(n_low):
            if (low >> v) & 1:
                top = max(top, out[low ^ (1 << v)] + within[v, low ^ (1 << v)])
        out[low] = top


@inner()
def _best_inside(
    v: int, high: int, n_low: int, table: Floats, starts: Ints, masks: Words, values: Floats
) -> None:
    """Fill for every low part the best score of v with parents in that part and `high`."""
    table[:] = -np.inf
    low_part = (np.uint64(1) << np.uint64(n_low)) - np.uint64(1)
    for f in range(starts[v], starts[v + 1]):
        mask = masks[f, 0]
        if (mask >> np.uint64(n_low)) & ~np.uint64(high) == 0:
            low = np.int64(mask & low_part)
            table[low] = max(table[low], values[f])
    for u in range(n_low):  # what is best for a set without u may be best for the set with u
        if u == v:
            continue  # sets with v itself are never asked for
        step = 1 << u
        for a in range(0, len(table), 2 * step):
            without = table[a : a + step]
            with_u = table[a + step : a + 2 * step]
            for k in range(step):
                with_u[k] = max(with_u[k], without[k])


# -- bounded width: a tree of cliques is grown along an order ---------------------------------------------


@inner()
def _has(words: Words, i: int, v: int) -> bool:
    """Tell whether v is in set i."""
    return words[i, v >> 6] >> np.uint64(v & 63) & np.uint64(1) != 0


@inner()
def _inside(small: Words, i: int, big: Words, j: int) -> bool:
    """Tell whether set i of one list lies in set j of another."""
    beyond = np.uint64(0)
    for w in range(small.shape[1]):
        beyond |= small[i, w] & ~big[j, w]
    return beyond == 0


@inner()
def _add(total: Floats, rows: Floats, i: int, sign: float) -> None:
    """Add row i, or take it away."""
    for u in range(len(total)):
        total[u] += sign * rows[i, u]


@inner()
def _best_home(masks: Words, f: int, bags: Words, begin: int, end: int, need: Floats) -> int:
    """Return the bag that has the parents of a family and else what is needed most; -1 if none has."""
    best, top = -1, -1.0
    for b in range(begin, end):
        if _inside(masks, f, bags, b):
            total = 0.0
            for u in range(len(need)):
                if _has(bags, b, u):
                    total += need[u]
            if total > top:
                best, top = b, total
    return best


@inner()
def _drop_least(bags: Words, b: int, masks: Words, f: int, need: Floats) -> None:
    """Take the member that is needed least out of bag b, the parents of family f excepted."""
    least, low = -1, np.inf
    for u in range(len(need)):
        if _has(bags, b, u) and not _has(masks, f, u) and need[u] < low:
            least, low = u, need[u]
    flip(bags, b, least)


@entry("i i1 i i1 w2 f2 w2 i1")
def grow_bags(
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
            _add(need, worth, order[p], 1.0)
    for p in range(begin, len(order)):
        v = order[p]
        _add(need, worth, v, -1.0)
        home, f = -1, starts[v] - 1
        while home < 0:
            f += 1
            if f == starts[v + 1]:
                return False
            if _inside(masks, f, before, 0):
                home = max(0, p - 1) if p <= width else _best_home(masks, f, bags, width, p, need)
        chosen[v] = f
        for w in range(masks.shape[1]):
            bags[p, w] = bags[home, w] if p else np.uint64(0)
        if p > width:
            _drop_least(bags, p, masks, f, need)
        flip(bags, p, v)
        flip(before, 0, v)
    return True


@entry("i2 f1 i i1 w2 f1 f2 i1 w2 i1 i1")
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
    score, top = _total_of(values, chosen), _total_of(values, best)
    trial, trial_bags, trial_chosen = order.copy(), bags.copy(), chosen.copy()
    for k in range(len(moves)):
        p, q = moves[k, 0], moves[k, 1]
        _take_over(order, bags, chosen, trial, trial_bags, trial_chosen)
        step = 1 if q > p else -1
        for r in range(p, q, step):
            trial[r] = order[r + step]
        trial[q] = order[p]
        if not grow_bags(min(p, q), trial, width, starts, masks, worth, trial_bags, trial_chosen):
            continue
        reached = _total_of(values, trial_chosen)
        if reached >= score - slack[k]:
            score = reached
            _take_over(trial, trial_bags, trial_chosen, order, bags, chosen)
            if score > top:
                top = score
                for v in range(len(best)):
                    best[v] = chosen[v]


@inner()
def _total_of(values: Floats, chosen: Ints) -> float:
    """Score of one family per child."""
    total = 0.0
    for f in chosen:
        total += values[f]
    return total


@inner()
def _take_over(
    order: Ints, bags: Words, chosen: Ints, to_order: Ints, to_bags: Words, to_chosen: Ints
) -> None:
    """Copy one state into another. Written out, since array assignments take seconds to compile."""
    for p in range(len(order)):
        to_order[p] = order[p]
        to_chosen[p] = chosen[p]
        for w in range(bags.shape[1]):
            to_bags[p, w] = bags[p, w]


# -- width of a graph ---------------------------------------------------------------------------------------


@inner()
def _fill_cost(near: Bools, v: int, around: Ints) -> int:
    """Return the edges that eliminating v adds, and its neighbours, as one number to be compared.

    `around` (s,) is filled with the neighbours: most graphs have few edges, so pairs of all s take longer.
    """
    degree = missing = 0
    for a in range(len(near)):
        if near[v, a]:
            for k in range(degree):
                missing += not near[a, around[k]]
            around[degree] = a
            degree += 1
    return missing * len(near) + degree


@entry("b2 i")
def width_of(graph: Bools, limit: int) -> int:
    """Min-fill width of an undirected graph (s, s): fewest new edges, fewest neighbours, lowest index.

    The answer is some number above the limit as soon as it is known to be above it.
    """
    s = len(graph)
    near = np.empty((s, s), np.bool_)
    for a in range(s):
        for b in range(s):
            near[a, b] = graph[a, b]
    cost, touched, around = np.empty(s, np.int64), np.empty(s, np.bool_), np.empty(s, np.int64)
    for v in range(s):
        cost[v] = _fill_cost(near, v, around)
    width = 0
    for _ in range(s):
        v = 0
        for u in range(s):
            touched[u] = False
            if cost[u] < cost[v]:
                v = u
        width = max(width, cost[v] % s)
        if width > limit:
            break
        added = cost[v] >= s
        for a in range(s):
            if near[v, a]:
                touched[a] = True
                near[a, v] = False
                for b in range(s):
                    if near[v, b] and b != a:
                        near[a, b] = True
                    # Beyond the neighbours themselves, costs change where new edges lie.
                    touched[b] = touched[b] or (added and near[a, b])
        cost[v] = 1 << 60
        for u in range(s):
            if touched[u] and cost[u] < 1 << 60:
                cost[u] = _fill_cost(near, u, around)
    return width


# -- sets of variables in which a fractional choice of families has a cycle -------------------------------


@entry("i i1 i2 f1 f")
def find_clusters(
    m: int, children: Ints, parents: Ints, weights: Floats, least: float
) -> tuple[Bools, Floats]:
    """Look for sets of variables in which a fractional choice of families has a cycle.

    A network has in every set C a child with no parent in C. So the weight of the families with a parent in
    C, over the children in C, is at most |C| - 1. From every variable a set grows by the variable that adds
    most of that weight, up to the whole, and the most violated set on the way is kept.

    Returns
    -------
    clusters : array of bool, shape (m, m)
        One set per start, empty where nothing is violated by more than `least`.
    excess : array, shape (m,)
        How much each is violated; `least` for the empty ones.
    """
    clusters = np.zeros((m, m), np.bool_)
    excess = np.full(m, least)
    entered = np.empty(m, np.int64)  # the size with which a variable came in; m + 1 for those outside
    gains = np.empty(m)
    for seed in range(m):
        for u in range(m):
            entered[u] = m + 1
        v, total, best_size = seed, 0.0, 0
        for size in range(1, m + 1):
            entered[v] = size
            _cluster_gains(entered, children, parents, weights, gains)
            if total - (size - 1) > excess[seed]:
                excess[seed], best_size = total - (size - 1), size
            v = 0
            for u in range(1, m):
                if gains[u] > gains[v]:
                    v = u
            total += gains[v]
        for u in range(m):
            clusters[seed, u] = entered[u] <= best_size
    return clusters, excess


@inner()
def _cluster_gains(entered: Ints, children: Ints, parents: Ints, weights: Floats, gains: Floats) -> None:
    """Fill what each variable would add to the weight inside; -1 for those that are in already."""
    m = len(entered)
    for u in range(m):
        gains[u] = 0.0 if entered[u] > m else -1.0
    for f in range(len(children)):
        hit = False
        for k in range(parents.shape[1]):
            hit |= parents[f, k] >= 0 and entered[parents[f, k]] <= m
        if hit and entered[children[f]] > m:
            gains[children[f]] += weights[f]
        elif not hit and entered[children[f]] <= m:
            for k in range(parents.shape[1]):
                if parents[f, k] >= 0:
                    gains[parents[f, k]] += weights[f]
