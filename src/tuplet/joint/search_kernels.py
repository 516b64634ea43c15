"""Depth-first branch and bound for the best outcomes of a product of factors, one row after the other.

Before a row is searched, its variables are eliminated by maxima. A bucket whose table would be too large is
split: its parts are maximised apart, which can only overestimate (mini-buckets); shifting the parts towards
each other's maxima, value by value, keeps their sum and tightens the bound. With the variables fixed in
the reverse order, the tables then tell at every node by how much each value lowers the bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tuplet.core.compiled import entry, inner
from tuplet.core.typing import Codes, Floats

_SLACK = 1e-12
"""Relative gain for which no branch is opened; see the search of joint distributions."""


@inner()
def _most(p: float, low: float, high: float) -> float:
    """Log of the largest weight of a rule that is broken by something between low and high."""
    breach = low if p >= 0.5 else high
    weight = p * (1.0 - breach) + (1.0 - p) * breach
    return np.log(weight) if weight > 0.0 else -np.inf


@inner()
def _bounds(
    unary: Floats, starts: Codes, cards: Codes, order: Codes, bucket_first: Codes, part_start: Codes,
    part_message: Codes, static: Floats, arrival_first: Codes, arrival_from: Codes, arrival_map: Codes,
    maps: Any, free_first: Codes, tables: Floats, messages: Floats, peaks: Floats,
) -> float:  # fmt: skip
    """Eliminate all variables of a row by maxima; return a bound on every outcome."""
    root = 0.0
    tables[:] = static
    for t in range(len(order)):
        v = order[t]
        card = cards[v]
        first, last = bucket_first[t], bucket_first[t + 1]
        for part in range(first, last):
            start = part_start[part]
            size = part_start[part + 1] - start
            for a in range(arrival_first[part], arrival_first[part + 1]):
                source, mapping = arrival_from[a], arrival_map[a]
                for c in range(size):
                    tables[start + c] += messages[source + maps[mapping + c]]
            width = size // card
            if part == first:
                for value in range(card):
                    for c in range(start + value * width, start + (value + 1) * width):
                        tables[c] += unary[starts[v] + value]
        if last - first > 1:
            _match(first, last, card, part_start, tables, peaks)
        for part in range(first, last):
            start = part_start[part]
            width = (part_start[part + 1] - start) // card
            target = part_message[part]
            for c in range(width):
                best = tables[start + c]
                for value in range(1, card):
                    best = max(best, tables[start + value * width + c])
                messages[target + c] = best
            if free_first[part] == free_first[part + 1]:
                root += messages[target]  # no bucket takes it up
    return root


@inner()
def _match(first: int, last: int, card: int, part_start: Codes, tables: Floats, peaks: Floats) -> None:
    """Shift the parts of a bucket so that all have the same maximum for each value of its variable."""
    for part in range(first, last):
        start = part_start[part]
        width = (part_start[part + 1] - start) // card
        for value in range(card):
            best = -np.inf
            for c in range(start + value * width, start + (value + 1) * width):
                best = max(best, tables[c])
            peaks[part - first, value] = best
    for value in range(card):
        mean = 0.0
        for part in range(first, last):
            mean += peaks[part - first, value] / (last - first)
        for part in range(first, last):
            # One part that forbids the value forbids it in all of them.
            shift = mean - peaks[part - first, value] if mean > -np.inf else -np.inf
            start = part_start[part]
            width = (part_start[part + 1] - start) // card
            for c in range(start + value * width, start + (value + 1) * width):
                tables[c] += shift


@inner()
def _branch(
    t: int, card: int, bucket_first: Codes, part_start: Codes, part_message: Codes, free_first: Codes,
    free_variable: Codes, free_stride: Codes, tables: Floats, messages: Floats, values: Codes, long_p: Floats,
    long_first: Codes, long_rule: Codes, long_start: Codes, long_q: Floats, long_low: Floats,
    long_high: Floats, broken: Floats, gain: Floats, rank: Codes,
) -> None:  # fmt: skip
    """How each value changes the bound of a node, and the values from the best to the worst."""
    gain[:card] = 0.0
    for part in range(bucket_first[t], bucket_first[t + 1]):
        place = 0
        for f in range(free_first[part], free_first[part + 1]):
            place += free_stride[f] * values[free_variable[f]]
        start = part_start[part]
        width = (part_start[part + 1] - start) // card
        known = messages[part_message[part] + place]
        for value in range(card):
            gain[value] += tables[start + value * width + place] - known
    for e in range(long_first[t], long_first[t + 1]):
        r = long_rule[e]
        now = broken[t + 1, r]
        before = _most(long_p[r], now * long_low[t + 1, r], now * long_high[t + 1, r])
        for value in range(card):
            then = now * long_q[long_start[e] + value]
            gain[value] += _most(long_p[r], then * long_low[t, r], then * long_high[t, r]) - before
    for value in range(card):
        place = value
        while place > 0 and gain[rank[place - 1]] < gain[value]:
            rank[place] = rank[place - 1]
            place -= 1
        rank[place] = value


@inner()
def _offer(codes: Codes, log_weight: Floats, values: Codes, weight: float) -> None:
    """Put an outcome among the best ones of a row, unless it is there."""
    k, m = codes.shape
    for i in range(k):
        if abs(log_weight[i] - weight) <= 1e-6 * (1.0 + abs(weight)):
            same = True
            for j in range(m):
                if codes[i, j] != values[j]:
                    same = False
                    break
            if same:
                return
    place = k - 1
    while place > 0 and log_weight[place - 1] < weight:
        log_weight[place] = log_weight[place - 1]
        codes[place] = codes[place - 1]
        place -= 1
    log_weight[place] = weight
    codes[place] = values


@entry("f2 f2 i1 i1 i1 i1 i1 i1 i1 i1 i1 s1 i1 i1 i1 f1 i1 i1 i1 f1 f2 f2 i i i3 f2 i1")
def search_rows(
    unary: Floats,  # (n, sum of cards) log-weights of single variables
    static: Floats,  # (1 or n, cells) log-weights of the factors inside each part
    starts: Codes,  # (m,) where each variable starts in the unary weights
    cards: Codes,  # (m,)
    order: Codes,  # (m,) elimination order
    bucket_first: Codes,  # (m + 1,) parts of each bucket
    part_start: Codes,  # (parts + 1,) cells of each part
    part_message: Codes,  # (parts + 1,) cells of its message
    arrival_first: Codes,  # (parts + 1,) messages that each part takes up
    arrival_from: Codes,  # (arrivals,) where each message starts
    arrival_map: Codes,  # (arrivals,) where its map starts
    maps: Any,  # cells of a part -> cells of a message
    free_first: Codes,  # (parts + 1,) variables of each message
    free_variable: Codes,
    free_stride: Codes,
    long_p: Floats,  # (longs,) rules that are too long for a table: probability
    long_first: Codes,  # (m + 1,) by position in the order: entries of long rules
    long_rule: Codes,
    long_start: Codes,  # where the inhibitions of the entry's variable start
    long_q: Floats,
    long_low: Floats,  # (m + 1, longs) product of the smallest inhibitions of the variables before a position
    long_high: Floats,
    k: int,
    max_nodes: int,
    codes: Codes,  # (n, k, m) written; best outcomes, already known ones first
    log_weight: Floats,  # (n, k) written; minus infinity where there are none
    nodes: Codes,  # (n,) written: values tried; minus one minus that where the search ended on its budget
) -> None:
    """Search the k best outcomes of every row."""
    m = len(cards)
    widest = 0
    for j in range(m):
        widest = max(widest, cards[j])
    tables = np.empty(static.shape[1])
    messages = np.empty(part_message[-1])
    peaks = np.empty((part_start.shape[0], widest))
    values = np.empty(m, np.int64)
    rank = np.empty((m, widest), np.int64)
    gain = np.empty((m, widest))
    tried = np.empty(m, np.int64)
    bound = np.empty(m + 1)
    broken = np.ones((m + 1, max(1, len(long_p))))
    for row in range(unary.shape[0]):
        own = static[row if static.shape[0] > 1 else 0]
        root = _bounds(
            unary[row], starts, cards, order, bucket_first, part_start, part_message, own, arrival_first,
            arrival_from, arrival_map, maps, free_first, tables, messages, peaks,
        )  # fmt: skip
        for r in range(len(long_p)):
            root += _most(long_p[r], long_low[m, r], long_high[m, r])
        nodes[row] = 0
        if root == -np.inf:
            continue
        bound[m] = root
        t = m - 1
        tried[t] = -1
        while t < m:
            v = order[t]
            if tried[t] < 0:
                _branch(
                    t, cards[v], bucket_first, part_start, part_message, free_first, free_variable,
                    free_stride, tables, messages, values, long_p, long_first, long_rule, long_start, long_q,
                    long_low, long_high, broken, gain[t], rank[t],
                )  # fmt: skip
                tried[t] = 0
            cut = log_weight[row, k - 1]
            if cut > -np.inf:
                cut += _SLACK * (1.0 + abs(cut))
            if tried[t] == cards[v]:
                t += 1
                continue
            value = rank[t, tried[t]]
            tried[t] += 1
            reach = bound[t + 1] + gain[t, value]
            if not reach > cut:
                t += 1  # the other values are no better
                continue
            if nodes[row] >= max_nodes:
                nodes[row] = -1 - nodes[row]
                break
            nodes[row] += 1
            values[v] = value
            bound[t] = reach
            if t == 0:
                _offer(codes[row], log_weight[row], values, reach)
                continue
            for r in range(len(long_p)):
                broken[t, r] = broken[t + 1, r]
            for e in range(long_first[t], long_first[t + 1]):
                broken[t, long_rule[e]] *= long_q[long_start[e] + value]
            t -= 1
            tried[t] = -1
