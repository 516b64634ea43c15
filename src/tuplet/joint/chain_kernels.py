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
def _offer(chain: ChainArrays, states: State, value: float, codes: Codes, log_prob: Floats) -> None:
    """Put an outcome among the best of a row; of equal ones the first found stays in front."""
    place = len(log_prob) - 1
    while place > 0 and log_prob[place - 1] < value:
        log_prob[place] = log_prob[place - 1]
        codes[place] = codes[place - 1]
        place -= 1
    log_prob[place] = value
    for t in range(len(chain.cards)):
        codes[place, t] = _value(chain, t, states, 0)


class _Nodes(NamedTuple):
    """Open nodes of a search: in a heap, or in a linked list per depth while it dives from depth to depth."""

    state: State  # (room, columns)
    bound: Floats  # (room,)
    depth: Codes  # (room,) variables fixed
    following: Codes  # (room,) next node of the same depth; -1 at the end
    heap: Codes  # (room,) nodes
    vacant: Codes  # (room,) places of nodes that were opened
    heads: Codes  # (m,) first node of each depth
    sizes: Codes  # (3,) places used so far, vacant places, nodes in the heap
    lost: Floats  # (1,) best bound of what was dropped unopened


@inner()
def _with_room(nodes: _Nodes, extra: int) -> _Nodes:
    """Return the nodes with room for more."""
    room = len(nodes.bound)
    if nodes.sizes[0] + extra <= room:
        return nodes
    room = 2 * (nodes.sizes[0] + extra)
    return _Nodes(
        _longer(nodes.state, (room, nodes.state.shape[1])), _longer(nodes.bound, room),
        _longer(nodes.depth, room), _longer(nodes.following, room), _longer(nodes.heap, room),
        _longer(nodes.vacant, room), nodes.heads, nodes.sizes, nodes.lost,
    )  # fmt: skip


@inner()
def _longer(array: Any, shape: Any) -> Any:
    longer = np.empty(shape, array.dtype)
    longer[: len(array)] = array
    return longer


@inner()
def _start(nodes: _Nodes) -> None:
    """Let the empty prefix be the only open node, in its list."""
    nodes.sizes[:] = 0
    nodes.sizes[0] = 1
    nodes.bound[0], nodes.depth[0] = 0.0, 0
    nodes.heads[:] = -1
    nodes.heads[0], nodes.following[0] = 0, -1
    nodes.lost[0] = -np.inf


@inner(inlined=True)
def _push(nodes: _Nodes, node: int) -> None:
    """Put a node into the heap."""
    heap, bound = nodes.heap, nodes.bound
    at = nodes.sizes[2]
    nodes.sizes[2] += 1
    while at > 0 and bound[heap[(at - 1) // 2]] < bound[node]:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = node


@inner(inlined=True)
def _pop(nodes: _Nodes) -> int:
    """Take the best node out of the heap."""
    heap, bound = nodes.heap, nodes.bound
    nodes.sizes[2] -= 1
    size, best = nodes.sizes[2], heap[0]
    node, at = heap[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and bound[heap[child + 1]] > bound[heap[child]]:
            child += 1
        if bound[heap[child]] <= bound[node]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = node
    return int(best)


@inner()
def _shrink(nodes: _Nodes, capacity: int) -> None:
    """Keep the best nodes of the heap only."""
    size = nodes.sizes[2]
    order = nodes.heap[:size][np.argsort(-nodes.bound[nodes.heap[:size]])]
    nodes.lost[0] = max(nodes.lost[0], nodes.bound[order[capacity]])
    nodes.heap[:capacity] = order[:capacity]  # sorted, hence a heap
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
            _push(nodes, node)
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
    chosen, keys = np.empty(size, np.int64), np.empty(size)
    node = nodes.heads[depth]
    for i in range(size):
        chosen[i], keys[i] = node, -nodes.bound[node]
        node = nodes.following[node]
    chosen = chosen[np.argsort(keys)]
    wanted = 0
    while wanted < min(width, size) and nodes.bound[chosen[wanted]] > cut:
        wanted += 1
    nodes.heads[depth] = -1
    for i in range(size - 1, wanted - 1, -1):
        _list(nodes, chosen[i])
    return chosen[:wanted]


class _Row(NamedTuple):
    """What is searched, and what was found."""

    base: Floats  # (n, logits)
    row: int
    known: Codes  # (m,)
    codes: Codes  # (k, m)
    log_prob: Floats  # (k,)


class _Scratch(NamedTuple):
    logits: Floats  # (largest cardinality,)
    p: Floats  # (largest cardinality,)
    state: State  # (1, columns)


@inner(inlined=True)
def _open(chain: ChainArrays, row: _Row, nodes: _Nodes, node: int, scratch: _Scratch, heap: bool) -> None:
    """Replace a node by its children that may lead on, and offer the complete ones as answers."""
    t, p, state = nodes.depth[node], scratch.p, scratch.state
    stop, bound, wanted = chain.columns[t], nodes.bound[node], row.known[t]
    _copy(nodes.state, node, stop, state, 0)
    _evaluate(chain, t, row.base, row.row, state, 0, scratch.logits, p)
    nodes.vacant[nodes.sizes[1]] = node
    nodes.sizes[1] += 1
    cut = _cut(row.log_prob)
    for value in range(chain.cards[t]):
        child = min(bound, bound + np.log(p[value]))  # a bound never grows from parent to child
        if (wanted >= 0 and wanted != value) or not child > cut:
            continue
        if t + 1 == len(chain.cards):
            _fix(chain, t, value, state, 0)
            _offer(chain, state, child, row.codes, row.log_prob)
            cut = _cut(row.log_prob)
            continue
        if nodes.sizes[1]:
            nodes.sizes[1] -= 1
            place = nodes.vacant[nodes.sizes[1]]
        else:
            place = nodes.sizes[0]
            nodes.sizes[0] += 1
        nodes.bound[place], nodes.depth[place] = child, t + 1
        _copy(state, 0, stop, nodes.state, place)
        _fix(chain, t, value, nodes.state, place)
        if heap:
            _push(nodes, place)
        else:
            _list(nodes, place)


@inner()
def _dive(chain: ChainArrays, row: _Row, nodes: _Nodes, scratch: _Scratch, width: int) -> _Nodes:
    """Open the best listed nodes of every depth in turn, down to complete outcomes."""
    for t in range(len(chain.cards)):
        for node in _take_best(nodes, t, _cut(row.log_prob), width):
            nodes = _with_room(nodes, chain.cards[t])
            _open(chain, row, nodes, node, scratch, False)
    return nodes


@inner()
def _best_first(
    chain: ChainArrays, row: _Row, nodes: _Nodes, scratch: _Scratch, max_nodes: int, capacity: int
) -> _Nodes:
    """Open the best nodes of the heap, until none can hold anything better or the budget has ended."""
    for _ in range(max_nodes):
        if nodes.sizes[2] == 0 or nodes.bound[nodes.heap[0]] <= _cut(row.log_prob):
            break
        node = _pop(nodes)
        nodes = _with_room(nodes, chain.cards[nodes.depth[node]])
        _open(chain, row, nodes, node, scratch, True)
        if nodes.sizes[2] >= 2 * capacity:
            _shrink(nodes, capacity)
    return nodes


@inner()
def _is_proven(nodes: _Nodes, log_prob: Floats) -> bool:
    """Tell whether no node of the heap, and none that was dropped, can hold anything better."""
    best = nodes.lost[0]
    if nodes.sizes[2]:
        best = max(best, nodes.bound[nodes.heap[0]])
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
    """Search the k best outcomes of every query, best nodes first; a node's bound is its probability."""
    width, m = chain.slopes.shape[1], len(chain.cards)
    scratch = _Scratch(np.empty(_widest(chain)), np.empty(_widest(chain)), np.zeros((1, width), np.int8))
    places = np.empty((4, 1024), np.int64)
    nodes = _Nodes(
        np.zeros((1024, width), np.int8), np.empty(1024), places[0], places[1], places[2], places[3],
        np.empty(m, np.int64), np.empty(3, np.int64), np.empty(1),
    )  # fmt: skip
    for q in range(len(rows)):
        row = _Row(base, rows[q], known[q], codes[q], log_prob[q])
        _start(nodes)
        nodes = _dive(chain, row, nodes, scratch, dive)
        _to_heap(nodes)
        nodes = _best_first(chain, row, nodes, scratch, max_nodes, capacity)
        if not _is_proven(nodes, row.log_prob):
            _to_lists(nodes)
            nodes = _dive(chain, row, nodes, scratch, beam)
            _to_heap(nodes)
        proven[q] = _is_proven(nodes, row.log_prob)
