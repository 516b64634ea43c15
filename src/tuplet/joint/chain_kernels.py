"""Queries of chains whose conditionals are softmax models of sums, one row after the other.

A prefix is a vector of columns: 0 or 1 for a variable of two values, one-hot for one of more, nothing for a
constant. The logits of a variable are what x adds and a product of slopes with the columns of the variables
before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tuplet.core.compiled import REORDERED, entry, inner
from tuplet.core.typing import Codes, Floats

State: TypeAlias = Any
"""Columns of one or several prefixes, of small integers."""

_SLACK = 1e-12
"""Relative gain for which no branch is opened; see the search of joint distributions."""

_TINY = 1e-300

_LANES = 16
"""Logits are filled up to a multiple of what compiled loops take at a time."""

_PRODUCT = 512
"""Numbers between 1 and 2 whose product does not overflow."""


class ChainArrays(NamedTuple):
    """A chain of m variables, in its order, apart from what x adds to the logits."""

    cards: Codes  # (m,)
    logits: Codes  # (m + 1,) where the logits of each variable start
    columns: Codes  # (m + 1,) where its columns start
    values: Codes  # (m + 1,) where its values start
    first_class: Codes  # (m + 1,) where its classes start
    classes: Codes  # the value of each class: one for each logit, or two for a single logit
    scale: Floats  # (m,) what the probabilities of classes are multiplied by
    share: Floats  # (values,) what is then added
    slopes: Floats  # (logits, columns)


RECORDS = {"Chain": (ChainArrays, "i1 i1 i1 i1 i1 i1 f1 f1 f2")}


@inner(fastmath=REORDERED, inlined=True)
def _logit(slopes: Floats, i: int, states: State, at: int, stop: int) -> float:
    """Return what the first columns of a prefix add to a logit."""
    # Whole matrices with positions in them: views of rows would take longer than the products.
    total = 0.0
    for j in range(stop):
        total += slopes[i, j] * states[at, j]
    return total


@inner(inlined=True)
def _to_probabilities(chain: ChainArrays, t: int, logits: Floats, p: Floats) -> None:
    """Write the probabilities of the values of a variable, from its logits, which are overwritten."""
    card, first = chain.cards[t], chain.values[t]
    c, classes = chain.logits[t + 1] - chain.logits[t], chain.first_class[t]
    for value in range(card):
        p[value] = chain.share[first + value]
    if c == 1:
        second = 1.0 / (1.0 + np.exp(-logits[0]))
        p[chain.classes[classes]] += chain.scale[t] * (1.0 - second)
        p[chain.classes[classes + 1]] += chain.scale[t] * second
        return
    peak, total = -np.inf, 0.0
    for i in range(c):
        peak = max(peak, logits[i])
    for i in range(c):
        logits[i] = np.exp(logits[i] - peak)
        total += logits[i]
    for i in range(c):
        p[chain.classes[classes + i]] += chain.scale[t] * (logits[i] / total)


@inner(inlined=True)
def _evaluate(
    chain: ChainArrays, t: int, base: Floats, row: int, states: State, at: int, logits: Floats, p: Floats
) -> None:
    """Write the probabilities of the values of variable t behind prefix `at`; logits is scratch memory."""
    first, stop = chain.logits[t], chain.columns[t]
    for i in range(first, chain.logits[t + 1]):
        logits[i - first] = base[row, i] + _logit(chain.slopes, i, states, at, stop)
    _to_probabilities(chain, t, logits, p)


@inner(inlined=True)
def _fix(chain: ChainArrays, t: int, value: int, states: State, at: int) -> None:
    """Write the columns of a value of variable t into prefix `at`."""
    first, last = chain.columns[t], chain.columns[t + 1]
    if last - first == 1:
        states[at, first] = value
    else:
        for j in range(first, last):
            states[at, j] = 1 if j - first == value else 0


@inner(inlined=True)
def _value(chain: ChainArrays, t: int, states: State, at: int) -> int:
    """Read the value of variable t from the columns of prefix `at`."""
    first, last = chain.columns[t], chain.columns[t + 1]
    if last - first == 1:
        return int(states[at, first])
    value = 0
    for j in range(first, last):
        if states[at, j]:
            value = j - first
    return value


@inner(inlined=True)
def _copy(states: State, at: int, stop: int, target: State, place: int) -> None:
    """Copy the first columns of a prefix."""
    for j in range(stop):
        target[place, j] = states[at, j]


@inner()
def _widest(chain: ChainArrays) -> int:
    widest = 1
    for t in range(len(chain.cards)):
        widest = max(widest, chain.cards[t])
    return widest


# -- probabilities -----------------------------------------------------------------------------------------


@entry("Chain f2 i1 i2 f1", records=RECORDS)
def score_prefixes(
    chain: ChainArrays,
    base: Floats,  # (n, logits)
    rows: Codes,  # (q,)
    codes: Codes,  # (q, m) in the order of the chain; of each query the values before the first unknown count
    log_prob: Floats,  # (q,) written
) -> None:
    """Log-probabilities of prefixes, each of its own row."""
    state = np.zeros((1, chain.slopes.shape[1]), np.int8)
    logits, p = np.empty(_widest(chain)), np.empty(_widest(chain))
    for i in range(len(rows)):
        total = 0.0
        for t in range(len(chain.cards)):
            value = codes[i, t]
            if value < 0:
                break
            _evaluate(chain, t, base, rows[i], state, 0, logits, p)
            total += np.log(p[value])
            _fix(chain, t, value, state, 0)
        log_prob[i] = total


@entry("Chain f2 i1 i1 f1 f2", records=RECORDS)
def tabulate_chains(
    chain: ChainArrays,
    base: Floats,  # (n, logits)
    rows: Codes,  # (q,)
    starts: Codes,  # (m,) where the effects of each variable start
    effects: Floats,  # what every prefix adds to the logits of the variable behind it
    tables: Floats,  # (q, outcomes) written
) -> None:
    """Probabilities of all outcomes, the last variable of the chain running fastest."""
    logits, p = np.empty(_widest(chain)), np.empty(_widest(chain))
    for i in range(len(rows)):
        tables[i, 0] = 1.0
        size = 1
        for t in range(len(chain.cards)):
            card, first = chain.cards[t], chain.logits[t]
            c = chain.logits[t + 1] - first
            for prefix in range(size - 1, -1, -1):  # the children of a prefix never overwrite one before it
                for a in range(c):
                    logits[a] = base[rows[i], first + a] + effects[starts[t] + prefix * c + a]
                _to_probabilities(chain, t, logits, p)
                parent = tables[i, prefix]
                for value in range(card):
                    tables[i, prefix * card + value] = parent * p[value]
            size *= card


# -- sampled points ----------------------------------------------------------------------------------------


@inner(inlined=True)
def _n_below(count: int, upper: float, first: int, points: Floats, t: int) -> int:
    """Count the points below a position when one falls into each of `count` strata."""
    position = count * upper
    stratum = int(np.floor(position))
    inside = points[t, min(first + stratum, points.shape[1] - 1)] < position - stratum
    return stratum + (1 if inside else 0)


@entry("Chain f2 i1 i1 i i2 f1 i1 f2 f2 f1", records=RECORDS)
def follow_chains(
    chain: ChainArrays,
    base: Floats,  # (n, logits)
    rows: Codes,  # (q,) the row of each query
    starts: Codes,  # (q + 1,) where the prefixes of each query start
    depth: int,  # variables that the prefixes have fixed
    codes: Codes,  # (r, m) the prefixes, in the order of the chain
    weights: Floats,  # (r,) their shares of the mass of a query
    counts: Codes,  # (r,) and of its points
    points: Floats,  # (m, size) where in its stratum each point falls, by depth
    marginals: Floats,  # (q, values) added to, from `depth` on
    entropy: Floats,  # (q,) added to
) -> None:
    """Follow points behind prefixes; average the conditionals and their entropies."""
    size = points.shape[1]
    state, after = np.zeros((2, size, chain.slopes.shape[1]), np.int8)
    weight, weight_after = np.empty((2, size))
    count, count_after = np.empty((2, size), np.int64)
    logits, p = np.empty(_widest(chain)), np.empty(_widest(chain))
    for q in range(len(rows)):
        live = starts[q + 1] - starts[q]
        for i in range(live):
            weight[i], count[i] = weights[starts[q] + i], counts[starts[q] + i]
            for t in range(depth):
                _fix(chain, t, codes[starts[q] + i, t], state, i)
        for t in range(depth, len(chain.cards)):
            card, first = chain.cards[t], chain.values[t]
            place, spent = 0, 0
            for i in range(live):
                _evaluate(chain, t, base, rows[q], state, i, logits, p)
                total = 0.0
                for value in range(card):
                    marginals[q, first + value] += weight[i] * p[value]
                    if p[value] > 0.0:
                        entropy[q] -= weight[i] * p[value] * np.log(p[value])
                    total += p[value]
                below, cumulative = 0, 0.0
                for value in range(card):
                    cumulative += p[value]
                    upper = 1.0 if value == card - 1 else cumulative / total
                    until = _n_below(count[i], upper, spent, points, t)
                    if until > below:
                        _copy(state, i, chain.columns[t], after, place)
                        _fix(chain, t, value, after, place)
                        count_after[place] = until - below
                        weight_after[place] = weight[i] * ((until - below) / count[i])
                        place += 1
                    below = until
                spent += count[i]
            live = place
            state, after = after, state
            weight, weight_after = weight_after, weight
            count, count_after = count_after, count


# -- the best outcomes -------------------------------------------------------------------------------------


@inner(inlined=True)
def _cut(log_prob: Floats) -> float:
    """Bound up to which nothing can improve the best outcomes of a row."""
    worst = log_prob[-1]
    return worst + _SLACK * (1.0 + abs(worst)) if worst > -np.inf else worst


@inner()
def _offer(chain: ChainArrays, states: State, at: int, value: float, codes: Codes, log_prob: Floats) -> None:
    """Put an outcome among the best of a row; of equal ones the first found stays in front."""
    place = len(log_prob) - 1
    while place > 0 and log_prob[place - 1] < value:
        log_prob[place] = log_prob[place - 1]
        codes[place] = codes[place - 1]
        place -= 1
    log_prob[place] = value
    for t in range(len(chain.cards)):
        codes[place, t] = _value(chain, t, states, at)


class _Nodes(NamedTuple):
    """Open nodes of a search: in a heap, or in a linked list per depth while it dives from depth to depth."""

    state: State  # (room, columns)
    logits: Floats  # (room, logits) of the variables that are not fixed
    log_prob: Floats  # (room,) of the prefix
    bound: Floats  # (room,) on the log-probability of complete outcomes
    depth: Codes  # (room,) variables fixed
    following: Codes  # (room,) next node of the same depth; -1 at the end
    heap: Codes  # (room,) nodes
    keys: Floats  # (room,) bounds of the nodes in the heap, at the same places
    vacant: Codes  # (room,) places of nodes that were opened
    heads: Codes  # (m,) first node of each depth
    sizes: Codes  # (3,) places used so far, vacant places, nodes in the heap
    lost: Floats  # (1,) best bound of what was dropped unopened


@inner()
def _with_room(nodes: _Nodes, extra: int) -> _Nodes:
    """Return the nodes with room for more."""
    if nodes.sizes[0] + extra <= len(nodes.bound):
        return nodes
    room = 2 * (nodes.sizes[0] + extra)
    return _Nodes(
        _longer(nodes.state, (room, nodes.state.shape[1])),
        _longer(nodes.logits, (room, nodes.logits.shape[1])), _longer(nodes.log_prob, room),
        _longer(nodes.bound, room), _longer(nodes.depth, room), _longer(nodes.following, room),
        _longer(nodes.heap, room), _longer(nodes.keys, room), _longer(nodes.vacant, room),
        nodes.heads, nodes.sizes, nodes.lost,
    )  # fmt: skip


@inner()
def _longer(array: Any, shape: Any) -> Any:
    longer = np.empty(shape, array.dtype)
    longer[: len(array)] = array
    return longer


@inner()
def _start(nodes: _Nodes, limits: _Limits, base: Floats, row: int) -> None:
    """Let the empty prefix be the only open node, in its list."""
    nodes.sizes[:] = 0
    nodes.sizes[0] = 1
    nodes.logits[0] = limits.middle
    nodes.logits[0, : base.shape[1]] += base[row]
    nodes.log_prob[0], nodes.bound[0], nodes.depth[0] = 0.0, 0.0, 0
    nodes.heads[:] = -1
    nodes.heads[0], nodes.following[0] = 0, -1
    nodes.lost[0] = -np.inf


@inner(inlined=True)
def _push(heap: Codes, keys: Floats, size: int, node: int, key: float) -> None:
    """Put a node into a heap of this size."""
    at = size
    while at > 0 and keys[(at - 1) >> 1] < key:
        heap[at], keys[at] = heap[(at - 1) >> 1], keys[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at], keys[at] = node, key


@inner(inlined=True)
def _replace_first(heap: Codes, keys: Floats, size: int, node: int, key: float) -> None:
    """Put a node into a heap in place of the first one."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        heap[at], keys[at] = heap[child], keys[child]
        at = child
    heap[at], keys[at] = node, key


@inner()
def _shrink(nodes: _Nodes, capacity: int) -> None:
    """Keep the best nodes of the heap only."""
    size = nodes.sizes[2]
    order = nodes.heap[:size][np.argsort(-nodes.keys[:size])]
    nodes.lost[0] = max(nodes.lost[0], nodes.bound[order[capacity]])
    nodes.heap[:capacity] = order[:capacity]  # sorted, hence a heap
    nodes.keys[:capacity] = nodes.bound[order[:capacity]]
    nodes.vacant[nodes.sizes[1] : nodes.sizes[1] + size - capacity] = order[capacity:]
    nodes.sizes[1] += size - capacity
    nodes.sizes[2] = capacity


@inner()
def _to_heap(nodes: _Nodes) -> None:
    """Move all nodes from the lists to the heap."""
    for t in range(len(nodes.heads)):
        node = nodes.heads[t]
        nodes.heads[t] = -1
        while node >= 0:
            _push(nodes.heap, nodes.keys, nodes.sizes[2], node, nodes.bound[node])
            nodes.sizes[2] += 1
            node = nodes.following[node]


@inner()
def _to_lists(nodes: _Nodes) -> None:
    """Move all nodes from the heap to the lists."""
    for i in range(nodes.sizes[2]):
        _list(nodes, nodes.heap[i])
    nodes.sizes[2] = 0


@inner(inlined=True)
def _list(nodes: _Nodes, node: int) -> None:
    """Put a node into the list of its depth."""
    nodes.following[node] = nodes.heads[nodes.depth[node]]
    nodes.heads[nodes.depth[node]] = node


@inner()
def _take_best(nodes: _Nodes, depth: int, cut: float, width: int) -> Codes:
    """Take the best nodes, as far as they exceed the cut, out of the list of a depth."""
    size, node = 0, nodes.heads[depth]
    while node >= 0:
        size += 1
        node = nodes.following[node]
    bounds, chosen = np.empty(size), np.empty(min(width, size), np.int64)
    node = nodes.heads[depth]
    for i in range(size):
        bounds[i] = nodes.bound[node]
        node = nodes.following[node]
    last = -np.inf if size <= width else np.partition(bounds, size - width)[size - width]
    ties = width - np.sum(bounds > last)
    wanted, node = 0, nodes.heads[depth]
    nodes.heads[depth] = -1
    for i in range(size):
        following = nodes.following[node]
        if bounds[i] > cut and (bounds[i] > last or (bounds[i] == last and ties > 0)):
            ties -= 1 if bounds[i] == last else 0
            chosen[wanted] = node
            wanted += 1
        else:
            _list(nodes, node)
        node = following
    return chosen[:wanted]


class _Row(NamedTuple):
    """What is searched, and what was found."""

    known: Codes  # (m,)
    codes: Codes  # (k, m)
    log_prob: Floats  # (k,)


class _Scratch(NamedTuple):
    all_logits: Floats  # (logits,)
    logits: Floats  # (largest cardinality,)
    p: Floats  # (largest cardinality,)


class _Limits(NamedTuple):
    """What the variables behind a prefix can add to the logits, whatever their values.

    Nodes hold the logits in the middle between the extremes that are possible. The value of a variable moves
    them by its `moves` and narrows them to `halves` of the next depth.
    """

    moves: Floats  # (values, logits)
    halves: Floats  # (m + 1, logits) half of what the variables from each depth on can change
    singles: Floats  # (m + 1, logits) the same for single logits, infinite for others
    shares: Floats  # (m + 1,) what shares add to the bounds of the variables from each depth on
    middle: Floats  # (logits,) what x adds is moved by this at first
    several: Codes  # variables with more logits than one


@inner()
def _limits(chain: ChainArrays) -> _Limits:
    m, n_logits = len(chain.cards), len(chain.slopes)
    padded = n_logits + -n_logits % _LANES
    moves, middle = np.zeros((chain.values[m], padded)), np.zeros(padded)
    halves, shares, n_several = np.zeros((m + 1, padded)), np.zeros(m + 1), 0
    several = np.empty(m, np.int64)
    for t in range(m - 1, -1, -1):
        halves[t] = halves[t + 1]
        first, own, card = chain.columns[t], chain.values[t], chain.cards[t]
        for i in range(chain.logits[t + 1], n_logits):
            if card == 2:
                moves[own + 1, i] = chain.slopes[i, first]
            elif card > 2:
                moves[own : own + card, i] = chain.slopes[i, first : first + card]
            least, most = np.min(moves[own : own + card, i]), np.max(moves[own : own + card, i])
            moves[own : own + card, i] -= (least + most) / 2.0
            middle[i] += (least + most) / 2.0
            halves[t, i] += (most - least) / 2.0
        # scale q + share <= q (scale + 2 share), since the bound q of a class is at least one half
        largest = np.max(chain.share[own : own + card])
        if chain.logits[t + 1] > chain.logits[t]:
            largest = chain.scale[t] + 2.0 * largest
        shares[t] = shares[t + 1] + np.log(max(largest, _TINY))
    singles = halves.copy()
    singles[:, n_logits:] = np.inf
    for t in range(m):
        singles[t + 1, : chain.logits[t + 1]] = np.inf
        if chain.logits[t + 1] - chain.logits[t] > 1:
            singles[:, chain.logits[t] : chain.logits[t + 1]] = np.inf
            several[n_several] = t
            n_several += 1
    return _Limits(moves, halves, singles, shares, middle, several[:n_several])


@inner(fastmath=REORDERED, inlined=True)
def _move(
    logits: Floats, moves: Floats, value: int, singles: Floats, t: int, start: int, stop: int,
    target: Floats, place: int,
) -> float:  # fmt: skip
    """Write logits moved by a value; return the product of 1 / q, where q bounds the classes of each one."""
    # exp(-w) >= (1 - w / 64)^64, which needs no call and so runs in vector registers
    product = 1.0
    for i in range(start, stop):
        z = logits[i] + moves[value, i]
        target[place, i] = z
        v = max(1.0 - (abs(z) + singles[t, i]) * (1.0 / 64.0), 0.0)
        v *= v
        v *= v
        v *= v
        v *= v
        v *= v
        v *= v
        product *= 1.0 + v
    return product


@inner(inlined=True)
def _lead(logits: Floats, at: int, halves: Floats, t: int, begin: int, end: int) -> float:
    """Bound the lead of any class over the best other one, where variables from t on are free."""
    best, second, leader, lead = -np.inf, -np.inf, -1, -np.inf
    for i in range(begin, end):  # the two largest of what classes reach at least
        reached = logits[at, i] - halves[t, i]
        if reached > best:
            best, second, leader = reached, best, i
        elif reached > second:
            second = reached
    for i in range(begin, end):
        lead = max(lead, logits[at, i] + halves[t, i] - (second if i == leader else best))
    return lead


@inner()
def _open(
    chain: ChainArrays, limits: _Limits, row: _Row, nodes: _Nodes, scratch: _Scratch, listed: Codes,
    max_nodes: int, capacity: int,
) -> int:  # fmt: skip
    """Replace nodes by their children that may lead on, and offer the complete ones as answers.

    Parameters
    ----------
    listed : array of int
        Nodes of one depth to be opened; their children are listed. If it is empty, the best nodes of the heap
        are opened, until none can hold anything better or there is no more room.

    Returns
    -------
    int
        Nodes that were opened; `max_nodes` if no node of the heap can hold anything better.
    """
    # Arrays by local names: as members of a tuple, or as arguments of a call for each node, numba would count
    # references to them, which takes as long as the arithmetic.
    states, logits, log_probs, bounds, depths = (
        nodes.state, nodes.logits, nodes.log_prob, nodes.bound, nodes.depth
    )  # fmt: skip
    following, heap, keys, vacant, heads, sizes = (
        nodes.following, nodes.heap, nodes.keys, nodes.vacant, nodes.heads, nodes.sizes
    )  # fmt: skip
    cards, first_logit, columns, values = chain.cards, chain.logits, chain.columns, chain.values
    first_class, classes, scale, share = chain.first_class, chain.classes, chain.scale, chain.share
    moves, halves, singles, shares, several = (
        limits.moves, limits.halves, limits.singles, limits.shares, limits.several
    )  # fmt: skip
    known, best_codes, best = row.known, row.codes, row.log_prob
    old, own, p = scratch.all_logits, scratch.logits, scratch.p
    m, n_logits, from_heap = len(cards), logits.shape[1], len(listed) == 0
    for n_opened in range(max_nodes):
        cut = _cut(best)
        if from_heap:
            if sizes[2] == 0 or keys[0] <= cut:
                return max_nodes
            node = heap[0]
            if sizes[0] + cards[depths[node]] >= len(bounds) or sizes[2] >= 2 * capacity:
                return n_opened
        else:
            node = listed[n_opened]
        t = depths[node]
        first, behind, card = first_logit[t], first_logit[t + 1], cards[t]
        for value in range(card):
            p[value] = share[values[t] + value]
        if behind - first == 1:
            second = 1.0 / (1.0 + np.exp(-logits[node, first]))
            p[classes[first_class[t]]] += scale[t] * (1.0 - second)
            p[classes[first_class[t] + 1]] += scale[t] * second
        else:
            peak, total = -np.inf, 0.0
            for i in range(first, behind):
                peak = max(peak, logits[node, i])
            for i in range(first, behind):
                own[i - first] = np.exp(logits[node, i] - peak)
                total += own[i - first]
            for i in range(first, behind):
                p[classes[first_class[t] + i - first]] += scale[t] * (own[i - first] / total)
        for i in range(behind - behind % _LANES, n_logits):
            old[i] = logits[node, i]
        bound, log_prob, wanted, in_heap = bounds[node], log_probs[node], known[t], from_heap
        peak = -np.inf
        for value in range(card):
            p[value] = min(np.log(p[value]), 0.0)
            peak = max(peak, p[value])
        for value in range(card):
            child = log_prob + p[value]
            # The bound has been computed with at least the probability of the best value.
            if (wanted >= 0 and wanted != value) or not bound + (p[value] - peak) > cut or not child > cut:
                continue
            place = vacant[sizes[1] - 1] if sizes[1] else sizes[0]
            if t + 1 < m:
                rest = shares[t + 1]
                for start in range(behind - behind % _LANES, n_logits, _PRODUCT):
                    stop = min(start + _PRODUCT, n_logits)
                    product = _move(old, moves, values[t] + value, singles, t + 1, start, stop, logits, place)
                    rest -= np.log(product)
                for j in range(len(several)):
                    if several[j] > t:
                        begin, end = first_logit[several[j]], first_logit[several[j] + 1]
                        rest -= np.log1p(np.exp(-_lead(logits, place, halves, t + 1, begin, end)))
                upper = min(bound, child + min(rest, 0.0))  # a bound never grows from parent to child
                if not upper > cut:
                    continue
                bounds[place] = upper
            for j in range(columns[t]):
                states[place, j] = states[node, j]
            if columns[t + 1] - columns[t] == 1:
                states[place, columns[t]] = value
            else:
                for j in range(columns[t], columns[t + 1]):
                    states[place, j] = 1 if j - columns[t] == value else 0
            if t + 1 == m:
                _offer(chain, states, place, child, best_codes, best)
                cut = _cut(best)
                continue
            if sizes[1]:
                sizes[1] -= 1
            else:
                sizes[0] += 1
            log_probs[place], depths[place] = child, t + 1
            if in_heap:
                _replace_first(heap, keys, sizes[2], place, upper)
                in_heap = False
            elif from_heap:
                _push(heap, keys, sizes[2], place, upper)
                sizes[2] += 1
            else:
                following[place] = heads[t + 1]
                heads[t + 1] = place
        if in_heap:
            sizes[2] -= 1
            _replace_first(heap, keys, sizes[2], heap[sizes[2]], keys[sizes[2]])
        vacant[sizes[1]] = node
        sizes[1] += 1
    return max_nodes


@inner()
def _dive(
    chain: ChainArrays, limits: _Limits, row: _Row, nodes: _Nodes, scratch: _Scratch, width: int
) -> _Nodes:
    """Open the best listed nodes of every depth in turn, down to complete outcomes."""
    for t in range(len(chain.cards)):
        chosen = _take_best(nodes, t, _cut(row.log_prob), width)
        if len(chosen):
            nodes = _with_room(nodes, len(chosen) * chain.cards[t] + 1)
            _open(chain, limits, row, nodes, scratch, chosen, len(chosen), 0)
    return nodes


@inner()
def _is_proven(nodes: _Nodes, log_prob: Floats) -> bool:
    """Tell whether no node of the heap, and none that was dropped, can hold anything better."""
    best = nodes.lost[0]
    if nodes.sizes[2]:
        best = max(best, nodes.keys[0])
    return bool(best <= _cut(log_prob))


@entry("Chain f2 i1 i2 i i i i i3 f2 b1", records=RECORDS)
def search_chains(
    chain: ChainArrays,
    base: Floats,  # (n, logits)
    rows: Codes,  # (q,)
    known: Codes,  # (q, m) values that outcomes must have, in the order of the chain; -1 for any
    max_nodes: int,  # nodes that are opened per query, apart from the dives
    dive: int,  # nodes of every depth that are opened first
    beam: int,  # nodes of every depth that are opened where the budget has ended without a proof
    capacity: int,  # open nodes of a query that can matter
    codes: Codes,  # (q, k, m) written where outcomes are found, in the order of the chain
    log_prob: Floats,  # (q, k) minus infinity; written
    proven: Any,  # (q,) written
) -> None:
    """Search the k best outcomes of every query, best nodes first."""
    width, m, widest = chain.slopes.shape[1], len(chain.cards), _widest(chain)
    limits = _limits(chain)
    scratch = _Scratch(np.empty(len(limits.middle)), np.empty(widest), np.empty(widest))
    places = np.empty((4, 1024), np.int64)
    nodes = _Nodes(
        np.zeros((1024, width), np.int8), np.empty((1024, len(limits.middle))), np.empty(1024),
        np.empty(1024), places[0], places[1], places[2], np.empty(1024), places[3],
        np.empty(m, np.int64), np.empty(3, np.int64), np.empty(1),
    )  # fmt: skip
    for q in range(len(rows)):
        row = _Row(known[q], codes[q], log_prob[q])
        _start(nodes, limits, base, rows[q])
        nodes = _dive(chain, limits, row, nodes, scratch, dive)
        _to_heap(nodes)
        left = max_nodes
        while left > 0:
            if nodes.sizes[2] >= 2 * capacity:
                _shrink(nodes, capacity)
            nodes = _with_room(nodes, widest + 1)
            left -= _open(chain, limits, row, nodes, scratch, nodes.heads[:0], left, capacity)
        if not _is_proven(nodes, row.log_prob):
            _to_lists(nodes)
            nodes = _dive(chain, limits, row, nodes, scratch, beam)
            _to_heap(nodes)
        proven[q] = _is_proven(nodes, row.log_prob)
