"""Compiled loops of scores from counts and of the search over orders.

Variables are numbered with the d classes first. A family is a child with a set of parents; its score is a sum
over the cells and configurations of its table of counts. A search needs, again and again, the list of parents
that would improve a family, best first: it is made once per family (`_expand`), found again by the hash of
the set (a random word per variable, combined by exclusive or), and kept in a pool that is emptied when full.

There are three ways to count: cells as bit sets over the rows, intersected with those of a further parent,
where tables are small; one table that is filled row by row where it has no more cells than there are rows;
otherwise rows sorted by configuration, one small table after the other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.compiled import entry, inner
from tuplet.core.typing import Floats

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

FEW_CELLS = 512
"""Cells of a child and its parents up to which they are kept as bit sets."""

CHEAP = 320
"""Cells times values of a further parent up to which bit sets are counted faster than rows."""

STEP = 1e-6
"""Scores are compared in steps of this size: sums of the same numbers in another order are then ties."""

LOOKS = 4
"""Places of a variable that are evaluated, where a guess of what they gain is not exact."""

FOLLOWED = 4096
"""Cells that are counted in the time in which known families give one variable its parents."""

LIKELIHOOD = 0
"""Kind of score in which a count x is x log x; in others it is log-gamma functions with a prior."""


# -- records -----------------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Rows to be counted, as the compiled functions take them; see `CountScorer`."""

    columns: npt.NDArray[np.int32]  # (variables, n), -1 where missing
    cards: Ints  # (variables,)
    missing: Bools  # (variables,) whether a value is missing
    weights: Floats  # (n,), or empty if all are one
    bits: Words  # (values, words): the rows that have a value, for variables with few values
    starts: Ints  # (variables,) where the values of a variable start in `bits`
    x_log_x: Floats  # (n + 1,)
    alone: Floats  # (variables,) unpenalised score of each variable without parents
    kind: int
    penalty: float  # for each free parameter
    prior: float  # pseudo-rows: per cell if `spread` is 0, otherwise per table
    spread: int
    n_classes: int
    max_parents: int


class Pool(NamedTuple):
    """What is known of families; see `_find`."""

    keys: Words  # (slots,) hash of each family, 0 if the slot is free
    slots: Ints  # (slots,) its number
    words: Words  # (variables,) random
    first: Ints  # (families,) where its list starts
    length: Ints  # (families,)
    value: Floats  # (families,) its score
    member: npt.NDArray[np.int32]  # (entries,) parents that improve it, best first
    used: Ints  # families and entries in use, and the work that was done, in cells that were counted


class Rules(NamedTuple):
    """What bounds a network: classes in a component, width of the pruned graph; -1 for no bound."""

    max_component: int
    max_width: int


class SearchTask(NamedTuple):
    """Rows, what is known of their families, and what bounds a network."""

    data: Data
    pool: Pool
    rules: Rules


class OrderState(NamedTuple):
    """An order with its families, and what components look like before each place."""

    order: Ints  # (variables,) classes, then features
    rank: Floats  # (variables,) place of each variable
    value: Floats  # (variables,) score of its family
    labels: Ints  # (places + 1, classes) components before each place
    graphs: Bools  # (places + 1, classes, classes) pruned graphs; empty if width is free


RECORDS = {
    "Data": (Data, "s2 i1 b1 f1 w2 i1 f1 f1 i f f i i i"),
    "Pool": (Pool, "w1 i1 w1 i1 i1 f1 s1 i1"),
    "Rules": (Rules, "i i"),
    "SearchTask": (SearchTask, "Data Pool Rules"),
    "OrderState": (OrderState, "i1 f1 f1 i2 b3"),
}
"""How compiled functions see these tuples; see `tuplet.core.compiled`."""


@inner()
def _popcount(word: Any) -> int:
    """Count the bits of a 64-bit word; compilers turn this form into one instruction."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


# -- counting ----------------------------------------------------------------------------------------------


@inner()
def _term(x: float, data: Data, prior: float) -> float:
    """What a count adds to a score; nothing if it is zero."""
    if data.kind == LIKELIHOOD:
        return x * math.log(x) if x > 0.0 else 0.0
    return math.lgamma(x + prior) - math.lgamma(prior) if x > 0.0 else 0.0


@inner()
def _whole_term(x: int, data: Data, prior: float) -> float:
    """See `_term`; for whole counts."""
    return data.x_log_x[x] if data.kind == LIKELIHOOD else _term(float(x), data, prior)


@inner()
def _cell_prior(data: Data, q: float, r: int) -> float:
    """Pseudo-rows of a cell, if a table has q configurations of r values."""
    return data.prior / (q * r) if data.spread else data.prior


@inner()
def _split_cells(data: Data, child: int, parents: Ints) -> tuple[Words, Ints, Ints]:
    """Return the cells of a family as bit sets (cells, words), their configurations and their counts.

    Empty cells are left out; those of a configuration lie together.
    """
    n_words = data.bits.shape[1]
    configurations = np.zeros((1, n_words), np.uint64)
    for value in range(data.cards[child]):
        for w in range(n_words):
            configurations[0, w] |= data.bits[data.starts[child] + value, w]
    for p in parents:
        r = data.cards[p]
        split = np.empty((len(configurations) * r, n_words), np.uint64)
        n = 0
        for c in range(len(configurations)):
            for value in range(r):
                some = np.uint64(0)
                for w in range(n_words):
                    split[n, w] = configurations[c, w] & data.bits[data.starts[p] + value, w]
                    some |= split[n, w]
                n += some != 0
        configurations = split[:n]
    r = data.cards[child]
    cells = np.empty((len(configurations) * r, n_words), np.uint64)
    owner = np.empty(len(cells), np.int64)
    count = np.empty(len(cells), np.int64)
    n = 0
    for c in range(len(configurations)):
        for value in range(r):
            total = 0
            for w in range(n_words):
                cells[n, w] = configurations[c, w] & data.bits[data.starts[child] + value, w]
                total += _popcount(cells[n, w])
            if total:
                owner[n], count[n] = c, total
                n += 1
    return cells[:n], owner[:n], count[:n]


@inner()
def _score_bits(
    data: Data,
    child: int,
    j: int,
    cells: Words,
    owner: Ints,
    count: Ints,
    prior: float,
    above: float,
    left: Ints,
) -> float:
    """Score of cells that are split by the values of j (the child for none), without penalty."""
    r = 1 if j == child else data.cards[j]
    derived = j == child or not data.missing[j]  # the last value has what the others leave
    total, begin = 0.0, 0
    while begin < len(cells):
        end = begin
        while end < len(cells) and owner[end] == owner[begin]:
            left[end] = count[end]
            end += 1
        for value in range(r):
            row = data.bits[data.starts[j] + value]
            together = 0
            for i in range(begin, end):
                x = 0
                if derived and value == r - 1:
                    x = left[i]
                else:
                    for w in range(len(row)):
                        x += _popcount(cells[i, w] & row[w])
                    left[i] -= x
                total += _whole_term(x, data, prior)
                together += x
            total -= _whole_term(together, data, above)
        begin = end
    return total


@inner()
def _cells_of_rows(data: Data, child: int, parents: Ints) -> npt.NDArray[np.int32]:
    """Return the cell of each row in the table (*parents, child) of a family, -1 where a value is missing."""
    n = data.columns.shape[1]
    cells = np.zeros(n, np.int32)
    for k in range(len(parents) + 1):
        v = parents[k] if k < len(parents) else child
        r = np.int32(data.cards[v])
        for i in range(n):
            value = data.columns[v, i]
            cells[i] = cells[i] * r + value if cells[i] >= 0 and value >= 0 else np.int32(-1)
    return cells


@inner()
def _score_table(
    data: Data, child: int, j: int, cells: npt.NDArray[np.int32], table: Floats, prior: float, above: float
) -> float:
    """Score of a family with one more parent j (itself for none), by one table, which is zero afterwards."""
    r, width = data.cards[child], 1 if j == child else data.cards[j]
    weighted = len(data.weights) > 0
    for i in range(len(cells)):
        value = 0 if j == child else data.columns[j, i]
        if cells[i] >= 0 and value >= 0:
            table[cells[i] * width + value] += data.weights[i] if weighted else 1.0
    total = 0.0
    for configuration in range(0, len(table), r * width):
        for value in range(width):
            together = 0.0
            for c in range(configuration + value, configuration + r * width, width):
                together += table[c]
            total -= _term(together, data, above)
    return total + _drain(table, data, prior)


@inner()
def _sort_rows(data: Data, child: int, parents: Ints) -> tuple[Ints, Ints]:
    """Return the complete rows of a family, sorted by configuration, and where each configuration starts."""
    n = data.columns.shape[1]
    rows = np.empty(n, np.int64)
    m = 0
    for i in range(n):
        complete = data.columns[child, i] >= 0
        for p in parents:
            complete = complete and data.columns[p, i] >= 0
        if complete:
            rows[m] = i
            m += 1
    rows = rows[:m]
    for p in parents:  # stable counting sorts, the last one decides first
        place = np.zeros(data.cards[p] + 1, np.int64)
        for row in rows:
            place[data.columns[p, row] + 1] += 1
        for value in range(data.cards[p]):
            place[value + 1] += place[value]
        moved = np.empty(m, np.int64)
        for row in rows:
            moved[place[data.columns[p, row]]] = row
            place[data.columns[p, row]] += 1
        rows = moved
    starts = np.empty(m + 1, np.int64)
    n_groups = 0
    for k in range(m):
        new = k == 0
        for p in parents:
            new = new or data.columns[p, rows[k]] != data.columns[p, rows[k - 1]]
        if new:
            starts[n_groups] = k
            n_groups += 1
    starts[n_groups] = m
    return rows, starts[: n_groups + 1]


@inner()
def _drain(table: Floats, data: Data, prior: float) -> float:
    """Return the terms of all counts of a table, which is zero afterwards."""
    total = 0.0
    for c in range(len(table)):
        if table[c] > 0.0:
            total += _term(table[c], data, prior)
            table[c] = 0.0
    return total


@inner()
def _score_rows(
    data: Data,
    child: int,
    j: int,
    rows: Ints,
    starts: Ints,
    prior: float,
    above: float,
    cells: Floats,
    sums: Floats,
) -> float:
    """Score of a family with one more parent j (itself for none), by sorted rows; scratch tables are zero."""
    total, r = 0.0, data.cards[child]
    plain = j == child
    weighted = len(data.weights) > 0
    n_values = 1 if plain else data.cards[j]
    for g in range(len(starts) - 1):
        begin, end = starts[g], starts[g + 1]
        for k in range(begin, end):
            i = rows[k]
            value = 0 if plain else data.columns[j, i]
            if value >= 0:
                weight = data.weights[i] if weighted else 1.0
                cells[value * r + data.columns[child, i]] += weight
                sums[value] += weight
        if end - begin > r * n_values:
            total += _drain(cells[: r * n_values], data, prior) - _drain(sums[:n_values], data, above)
        else:  # a small group in a large table: only what was touched
            for k in range(begin, end):
                i = rows[k]
                value = 0 if plain else data.columns[j, i]
                if value >= 0:
                    c = value * r + data.columns[child, i]
                    total += _term(cells[c], data, prior) - _term(sums[value], data, above)
                    cells[c] = sums[value] = 0.0
    return total


@inner()
def _alone_on(data: Data, child: int, j: int, rows: Ints) -> float:
    """Score of a child without parents, on those of the rows that have a value of j; without penalty."""
    counts = np.zeros(data.cards[child])
    total = 0.0
    for i in rows:
        if data.columns[j, i] >= 0:
            weight = data.weights[i] if len(data.weights) else 1.0
            counts[data.columns[child, i]] += weight
            total += weight
    r = data.cards[child]
    return _drain(counts, data, _cell_prior(data, 1.0, r)) - _term(total, data, r * _cell_prior(data, 1.0, r))


@entry("Data i i1 b1 b f1", records=RECORDS)
def candidate_scores(
    data: Data, child: int, parents: Ints, wanted: Bools, skip: bool, scores: Floats
) -> float:
    """Return the score of a family; write those with one more parent each, minus infinity where not wanted.

    With missing values a family is scored on its complete rows, by what it gains there over no parents at
    all; the score without parents on all rows comes on top. So scores are comparable, and a parent that is
    seldom known gains little. With `skip`, scores that cannot exceed that of the family stay minus infinity.
    """
    r = data.cards[child]
    q = 1.0
    gaps = data.missing[child]
    for p in parents:
        q *= data.cards[p]
        gaps = gaps or data.missing[p]
    few = q * r <= FEW_CELLS and len(data.weights) == 0
    cells, owner, count = np.empty((0, 0), np.uint64), np.empty(0, np.int64), np.empty(0, np.int64)
    if few:
        cells, owner, count = _split_cells(data, child, parents)
    n = data.columns.shape[1]
    largest, fill, sort = 1, q * r <= n and not few, gaps or q * r > n
    for j in range(len(wanted)):
        if wanted[j]:
            dense, counted = q * r * data.cards[j] <= n, few and len(cells) * (data.cards[j] - 1) <= CHEAP
            largest = max(largest, data.cards[j])
            fill = fill or (dense and not counted)
            sort = sort or data.missing[j] or not (dense or counted)
    rows, starts, where = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
    if sort:
        rows, starts = _sort_rows(data, child, parents)
    if fill:
        where = _cells_of_rows(data, child, parents)
    table, sums, left = np.zeros(r * largest), np.zeros(largest), np.empty(len(cells), np.int64)
    whole = np.zeros(int(q) * r * largest if fill else 0)
    fine = data.penalty * (r - 1)
    raw = own = 0.0
    for t in range(-1, len(wanted)):  # first the family as it is
        plain = t < 0
        j = child if plain else t
        wider = q if plain else q * data.cards[j]
        known = not gaps and (plain or not data.missing[j])
        if not plain:
            scores[j] = -np.inf
            # No likelihood is positive: where the fine alone costs what is left, nothing can be gained.
            hopeless = skip and known and data.kind == LIKELIHOOD and -raw <= fine * (wider - q)
            if not wanted[j] or hopeless:
                continue
        prior = _cell_prior(data, wider, r)
        if few and (plain or len(cells) * (data.cards[j] - 1) <= CHEAP):
            score = _score_bits(data, child, j, cells, owner, count, prior, r * prior, left)
        elif wider * r <= n:
            score = _score_table(data, child, j, where, whole[: int(wider) * r], prior, r * prior)
        else:
            score = _score_rows(data, child, j, rows, starts, prior, r * prior, table, sums)
        if plain:
            raw = score
        if not known:
            score += data.alone[child] - _alone_on(data, child, j, rows)
        if plain:
            own = score - fine * wider
        else:
            scores[j] = score - fine * wider
    return own


# -- families that are known already -------------------------------------------------------------------------


@inner()
def _expand(data: Data, pool: Pool, child: int, parents: Ints) -> int:
    """Score a family and list the parents that improve it, the best first; ties go to the lowest."""
    n = len(data.cards)
    if pool.used[0] + 1 >= len(pool.first) or pool.used[1] + n >= len(pool.member):
        pool.used[0] = pool.used[1] = 0
        for slot in range(len(pool.keys)):
            pool.keys[slot] = 0
    wanted = np.zeros(n, np.bool_)
    if len(parents) < data.max_parents:
        for j in range(data.n_classes if child < data.n_classes else n):
            wanted[j] = j != child
        for p in parents:
            wanted[p] = False
    scores = np.empty(n)
    own = candidate_scores(data, child, parents, wanted, True, scores)
    pool.used[2] += n * data.columns.shape[1]
    family, start = pool.used[0], pool.used[1]
    gains = np.empty(n)
    m = 0
    for j in range(n):
        gain = math.floor((scores[j] - own) / STEP + 0.5) if scores[j] > own else 0.0
        if gain > 0.0:
            k = m
            while k > 0 and gains[k - 1] < gain:
                gains[k] = gains[k - 1]
                pool.member[start + k] = pool.member[start + k - 1]
                k -= 1
            gains[k] = gain
            pool.member[start + k] = j
            m += 1
    pool.first[family], pool.length[family], pool.value[family] = start, m, own
    pool.used[0] += 1
    pool.used[1] += m
    return family


@inner()
def _find(data: Data, pool: Pool, child: int, key: np.uint64, parents: Ints) -> int:
    """Return the number of a family, which is scored if it is not known yet."""
    mask = np.uint64(len(pool.keys) - 1)
    at = key & mask
    while pool.keys[at] != 0:
        if pool.keys[at] == key:
            return pool.slots[at]
        at = (at + np.uint64(1)) & mask
    family = _expand(data, pool, child, parents)
    at = key & mask  # the pool may have been emptied
    while pool.keys[at] != 0:
        at = (at + np.uint64(1)) & mask
    pool.keys[at], pool.slots[at] = key, family
    return family


# -- one order -----------------------------------------------------------------------------------------------


@inner()
def _fill_cost(near: Bools, v: int, around: Ints) -> int:
    """See `tuplet.structure.kernels`: edges that eliminating v adds, and its neighbours, as one number."""
    degree = missing = 0
    for a in range(len(near)):
        if near[v, a]:
            for k in range(degree):
                missing += not near[a, around[k]]
            around[degree] = a
            degree += 1
    return missing * len(near) + degree


@inner()
def _width_of(graph: Bools, limit: int) -> int:
    """See `tuplet.structure.kernels.width_of`; once more, since kernels call only what their own file has."""
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


@inner()
def _fits_width(rules: Rules, label: Ints, graph: Bools, clique: Ints, n: int, j: int, size: int) -> bool:
    """Tell whether class j may join the first n classes of a clique; `size` is the joint component's."""
    if size <= rules.max_width + 1:
        return True
    new = False
    for a in range(n):
        new = new or not graph[clique[a], j]
    if not new:
        return True
    if n > rules.max_width:
        return False
    member = np.empty(len(label), np.int64)
    s = 0
    for c in range(len(label)):
        inside = label[c] == label[j]
        for a in range(n):
            inside = inside or label[c] == label[clique[a]]
        if inside:
            member[s] = c
            s += 1
    part = np.empty((s, s), np.bool_)
    for a in range(s):
        for b in range(s):
            part[a, b] = graph[member[a], member[b]]
            for c in range(n):
                joined = (member[a] == j and member[b] == clique[c]) or (
                    member[b] == j and member[a] == clique[c]
                )
                part[a, b] = part[a, b] or joined
    return _width_of(part, rules.max_width) <= rules.max_width


@inner()
def _follow(
    task: SearchTask, v: int, rank: Floats, label: Ints, size: Ints, graph: Bools, parents: Ints
) -> tuple[int, float]:
    """Choose parents of v greedily among the variables before it (algorithm 1 of the paper, lines 4 to 12).

    Components (`label`, `size`) and the pruned graph are changed in place; `parents` gets the parents.

    Returns
    -------
    n_parents, score
    """
    data, pool, rules = task.data, task.pool, task.rules
    d = data.n_classes
    bounded = rules.max_component >= 0
    narrow = rules.max_width >= 0
    key = pool.words[len(data.cards) + v]
    n = n_clique = 0
    clique = np.empty(data.max_parents + 1, np.int64)
    own = -1
    if v < d and (bounded or narrow):
        clique[0], n_clique, own = v, 1, label[v]
    pool.used[2] += FOLLOWED
    while True:
        family = _find(data, pool, v, key, parents[:n])
        chosen = -1
        first = pool.first[family]
        for e in range(first, first + pool.length[family]):
            j = pool.member[e]
            if rank[j] >= rank[v]:
                continue
            if j < d and (bounded or narrow):
                together = size[label[j]]
                if own >= 0 and own != label[j]:
                    together += size[own]
                if bounded and together > rules.max_component:
                    continue
                if narrow and not _fits_width(rules, label, graph, clique, n_clique, j, together):
                    continue
            chosen = j
            break
        if chosen < 0:
            return n, pool.value[family]
        place = n  # parents are sorted, so that a set has one name
        while place > 0 and parents[place - 1] > chosen:
            parents[place] = parents[place - 1]
            place -= 1
        parents[place] = chosen
        n += 1
        if chosen < d and (bounded or narrow):
            if narrow:
                for a in range(n_clique):
                    graph[clique[a], chosen] = graph[chosen, clique[a]] = True
            clique[n_clique] = chosen
            n_clique += 1
            own = _join(label, size, own, label[chosen])
        key ^= pool.words[chosen]


@inner()
def _join(label: Ints, size: Ints, a: int, b: int) -> int:
    """Join two components under the lower label; -1 is the empty one."""
    if a < 0 or a == b:
        return b
    low, high = min(a, b), max(a, b)
    for c in range(len(label)):
        if label[c] == high:
            label[c] = low
    size[low] += size[high]
    size[high] = 0
    return low


@entry("SearchTask i1", records=RECORDS)
def start_state(task: SearchTask, order: Ints) -> OrderState:
    """Return an order with room for what `walk` finds out."""
    data, rules = task.data, task.rules
    n, d = len(order), data.n_classes
    kept, rank = np.empty(n, np.int64), np.empty(n)
    for p in range(n):
        kept[p] = order[p]
        rank[order[p]] = p
    labels = np.empty((n + 1, d), np.int64)
    for c in range(d):
        labels[0, c] = c
    side = d if rules.max_width >= 0 else 0
    graphs = np.zeros((n + 1 if side else 1, side, side), np.bool_)
    return OrderState(kept, rank, np.zeros(n), labels, graphs)


@inner()
def _same(state: OrderState, place: int, label: Ints, graph: Bools) -> bool:
    """Tell whether components and graph are what they were before a place."""
    for c in range(len(label)):
        if state.labels[place, c] != label[c]:
            return False
    for a in range(len(graph)):
        for b in range(len(graph)):
            if state.graphs[place, a, b] != graph[a, b]:
                return False
    return True


@inner()
def _copy_place(labels: Ints, graphs: Bools, t: int, label: Ints, graph: Bools, read: bool) -> None:
    """Read or write what is before place t. Written out: array assignments take seconds to compile."""
    for a in range(len(label)):
        if read:
            label[a] = labels[t, a]
        else:
            labels[t, a] = label[a]
    for a in range(len(graph)):
        for b in range(len(graph)):
            if read:
                graph[a, b] = graphs[t, a, b]
            else:
                graphs[t, a, b] = graph[a, b]


@entry("SearchTask OrderState i i b", records=RECORDS)
def walk(task: SearchTask, state: OrderState, p: int, q: int, keep: bool) -> float:
    """Return what moving the variable at place p to place q gains; with `keep`, move it.

    Only families from the first changed place on are looked at, and only until components (and the pruned
    graph) are what they were: all later families are then the same.
    """
    data, rules = task.data, task.rules
    n, d = len(state.order), data.n_classes
    low, high, moved = min(p, q), max(p, q), state.order[p]
    coupled = rules.max_component >= 0 or rules.max_width >= 0
    label, size = np.empty(d if coupled else 0, np.int64), np.zeros(d, np.int64)
    graph = np.empty(state.graphs.shape[1:], np.bool_)
    _copy_place(state.labels, state.graphs, low, label, graph, True)
    for c in label:
        size[c] += 1
    state.rank[moved] = q - 0.5 if q < p else q + 0.5
    step = 1 if q > p else -1
    if keep:
        for t in range(p, q, step):
            state.order[t] = state.order[t + step]
        state.order[q] = moved
        for t in range(low, high + 1):
            state.rank[state.order[t]] = t
    parents = np.empty(data.max_parents + 1, np.int64)
    gain = 0.0
    for t in range(low, n):
        if t > high and (not coupled or _same(state, t, label, graph)):
            break
        if keep:
            v = state.order[t]
            _copy_place(state.labels, state.graphs, t, label, graph, False)
        elif t > high:
            v = state.order[t]
        elif t == q:
            v = moved
        else:
            v = state.order[t + step] if step > 0 else state.order[t - 1]
        _, value = _follow(task, v, state.rank, label, size, graph, parents)
        gain += value - state.value[v]
        if keep:
            state.value[v] = value
    if not keep:
        state.rank[moved] = p
    return gain


@entry("SearchTask OrderState", records=RECORDS)
def score_order(task: SearchTask, state: OrderState) -> float:
    """Evaluate an order from its first place on; return its score."""
    data, rules = task.data, task.rules
    coupled = rules.max_component >= 0 or rules.max_width >= 0
    label, size = np.empty(data.n_classes if coupled else 0, np.int64), np.empty(data.n_classes, np.int64)
    for c in range(data.n_classes):
        size[c] = 1
    graph = np.empty(state.graphs.shape[1:], np.bool_)
    _copy_place(state.labels, state.graphs, 0, label, graph, True)
    parents = np.empty(data.max_parents + 1, np.int64)
    total = 0.0
    for t in range(len(state.order)):
        _copy_place(state.labels, state.graphs, t, label, graph, False)
        v = state.order[t]
        _, state.value[v] = _follow(task, v, state.rank, label, size, graph, parents)
        total += state.value[v]
    return total


@entry("SearchTask i1 i2", records=RECORDS)
def families_of(task: SearchTask, order: Ints, members: Ints) -> Ints:
    """Write the parents (variables, max_parents + 1) of an order; return how many each variable has."""
    data = task.data
    state = start_state(task, order)
    d = data.n_classes
    label, size = np.empty(d, np.int64), np.empty(d, np.int64)
    for c in range(d):
        label[c], size[c] = c, 1
    count = np.zeros(len(order), np.int64)
    for v in order:
        count[v], _ = _follow(task, v, state.rank, label, size, state.graphs[0], members[v])
    return count


# -- searches over orders ------------------------------------------------------------------------------------


@inner()
def _draw(seed: Words, n: int) -> int:
    """Return a random number below n (xorshift; the seed is changed)."""
    x = seed[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    seed[0] = x
    return int(x >> np.uint64(11)) % n


@inner()
def _guess_places(task: SearchTask, state: OrderState, p: int, begin: int, end: int, gains: Floats) -> None:
    """Write what moving the variable at place p to every other place gains, as if nothing else changed.

    The families of the moved variable and of the variable that it passes last are looked at, with the
    components as they are before that place. Without bounds on components that is exact.
    """
    data, rules = task.data, task.rules
    coupled = rules.max_component >= 0 or rules.max_width >= 0
    v = state.order[p]
    parents = np.empty(data.max_parents + 1, np.int64)
    label = np.empty(data.n_classes if coupled else 0, np.int64)
    size = np.empty(data.n_classes, np.int64)
    graph = np.empty(state.graphs.shape[1:], np.bool_)
    for step in (-1, 1):
        others = 0.0
        q = p + step
        while begin <= q < end:
            if coupled:
                _copy_place(state.labels, state.graphs, q, label, graph, True)
                for c in range(len(size)):
                    size[c] = 0
                for part in label:
                    size[part] += 1
            state.rank[v] = q + 0.5 * step
            u = state.order[q]
            for turn in range(2):
                w = v if (turn == 0) == (step < 0) else u
                _, value = _follow(task, w, state.rank, label, size, graph, parents)
                if w == u:
                    others += value - state.value[u]
                else:
                    own = value - state.value[v]
            gains[q] = others + own
            q += step
    state.rank[v] = p


@inner()
def _best_place(task: SearchTask, state: OrderState, v: int, seed: Words) -> tuple[int, float]:
    """Return the best other place of a variable in its part of the order, and what it gains there.

    Where components are bounded, the places that look best are evaluated.
    """
    data, rules = task.data, task.rules
    d, n = data.n_classes, len(state.order)
    begin, end = (0, d) if v < d else (d, n)
    p = int(state.rank[v])
    gains = np.empty(n)
    _guess_places(task, state, p, begin, end, gains)
    gains[p] = -np.inf
    coupled = rules.max_component >= 0 or rules.max_width >= 0
    place, best = p, -np.inf
    for _ in range(LOOKS if coupled else 1):
        top, ties = p, 1
        for q in range(begin, end):
            if gains[q] > gains[top] + STEP:
                top, ties = q, 1
            elif q != p and gains[q] > gains[top] - STEP:
                ties += 1
                if _draw(seed, ties) == 0:
                    top = q
        if top == p or gains[top] <= best:  # what looks worse than what is known to be good is not looked at
            break
        gain = walk(task, state, p, top, False) if coupled else gains[top]
        gains[top] = -np.inf
        if gain > best + STEP:
            place, best = top, gain
    return place, best


@entry("SearchTask i1 i i w1", records=RECORDS)
def search_insertions(task: SearchTask, order: Ints, patience: int, tenure: int, seed: Words) -> float:
    """Improve an order in place by moving one variable at a time to its best place; return its score.

    Variables are tried in random rounds; what gains is done at once. A round without gain ends with the best
    move that is not tabu, though it loses. A moved variable is tabu for `tenure` moves, unless
    moving it gives a new best. The search ends after `patience` rounds in a row without a new best.
    """
    state = start_state(task, order)
    total = score_order(task, state)
    best = total
    n = len(order)
    until = np.zeros(n, np.int64)
    variables = np.empty(n, np.int64)
    for k in range(n):
        variables[k] = k
    moves = idle = 0
    while idle < patience:
        for k in range(n - 1, 0, -1):
            other = _draw(seed, k + 1)
            variables[k], variables[other] = variables[other], variables[k]
        gained = False
        spare, spare_place, spare_gain, ties = -1, -1, -np.inf, 1
        for k in range(n):
            v = variables[k]
            place, gain = _best_place(task, state, v, seed)
            if place == int(state.rank[v]) or (until[v] > moves and total + gain <= best + STEP):
                continue
            if gain > STEP:
                total += walk(task, state, int(state.rank[v]), place, True)
                moves += 1
                until[v] = moves + tenure
                gained = True
            elif gain > spare_gain + STEP:
                spare, spare_place, spare_gain, ties = v, place, gain, 1
            elif gain > spare_gain - STEP:
                ties += 1
                if _draw(seed, ties) == 0:
                    spare, spare_place = v, place
        idle += 1
        if total > best + STEP:
            best, idle = total, 0
            for p in range(n):
                order[p] = state.order[p]
        if not gained:
            if spare < 0:
                break
            total += walk(task, state, int(state.rank[spare]), spare_place, True)
            moves += 1
            until[spare] = moves + tenure
    return best


@entry("SearchTask i1 i i w1", records=RECORDS)
def search_swaps(task: SearchTask, order: Ints, patience: int, tenure: int, seed: Words) -> float:
    """Improve an order in place by swaps of neighbours; return its score.

    Each step does the best swap that is not tabu, though it may lose; a pair is tabu for `tenure` steps after
    it was swapped, unless that gives a new best. The search ends after `patience` steps without a new best.
    """
    data = task.data
    state = start_state(task, order)
    total = score_order(task, state)
    best = total
    n, d = len(order), data.n_classes
    until = np.zeros((n, n), np.int64)
    moves = idle = 0
    while idle < patience:
        spot, top, ties = -1, -np.inf, 1
        for p in range(n - 1):
            if p == d - 1:
                continue
            a, b = state.order[p], state.order[p + 1]
            gain = walk(task, state, p, p + 1, False)
            if until[min(a, b), max(a, b)] > moves and total + gain <= best + STEP:
                continue
            if gain > top + STEP:
                spot, top, ties = p, gain, 1
            elif gain > top - STEP:
                ties += 1
                if _draw(seed, ties) == 0:
                    spot = p
        if spot < 0:
            break
        a, b = state.order[spot], state.order[spot + 1]
        total += walk(task, state, spot, spot + 1, True)
        moves += 1
        idle += 1
        until[min(a, b), max(a, b)] = moves + tenure
        if total > best + STEP:
            best, idle = total, 0
            for p in range(n):
                order[p] = state.order[p]
    return best
