"""Sum-product and max-product on products of pairs, in linear space, for some rows at a time.

A message is the ratio of its values to the first of them; the product of all messages and the bias at a
variable is its total, and what arrives at a factor is the total over the factor's own message. The caller
makes sure that tables have no zeros and that no product over- or underflows: then nothing is lost by the
division. Rows lie along the last axis, so that every loop over them is contiguous.
"""

from __future__ import annotations

import numpy as np

from tuplet.core.compiled import REORDERED, entry, inner
from tuplet.core.typing import Codes, Floats

ROWS = 32
"""Rows that run together: their messages stay near the processor, and loops over them fill its registers."""


@inner(fastmath=REORDERED)
def _arrive(total: Floats, message: Floats, out: Floats) -> None:
    """Fill out (k, r) with a total (k, r) over a message (k - 1, r)."""
    for r in range(total.shape[1]):
        out[0, r] = total[0, r]
    for a in range(1, len(total)):
        for r in range(total.shape[1]):
            out[a, r] = total[a, r] / message[a - 1, r]


@inner(fastmath=REORDERED)
def _reduce(table: Floats, turned: bool, arriving: Floats, maximum: bool, out: Floats) -> None:
    """Fill out (k, r) with sums, or maxima, of a table times what arrives at its other variable, (l, r).

    The table is (k, l) in memory, or (l, k) if it is `turned`, for all rows or, on a last axis, for each.
    """
    card, others, n, own = len(out), len(arriving), out.shape[1], table.shape[1] > 1
    for a in range(card):
        for r in range(n):
            out[a, r] = 0.0
        for b in range(others):
            row = table[b * card + a] if turned else table[a * others + b]
            if maximum:
                for r in range(n):
                    out[a, r] = max(out[a, r], row[r if own else 0] * arriving[b, r])
            elif own:
                for r in range(n):
                    out[a, r] += row[r] * arriving[b, r]
            else:
                weight = row[0]
                for r in range(n):
                    out[a, r] += weight * arriving[b, r]


@inner(fastmath=REORDERED)
def _send(sums: Floats, arriving: Floats, damping: float, message: Floats, total: Floats) -> None:
    """Make sums (k, r) a message, and its product with what arrived the total."""
    for a in range(1, len(sums)):
        for r in range(sums.shape[1]):
            ratio = sums[a, r] / sums[0, r]
            if damping > 0.0:
                ratio += damping * (message[a - 1, r] - ratio)
            message[a - 1, r] = ratio
            total[a, r] = arriving[a, r] * ratio


@inner(fastmath=REORDERED)
def _send_binary(
    t: Floats, one: Floats, other: Floats, damping: float, to_one: Floats, to_other: Floats
) -> None:
    """Do the same for both messages of a table of two binary variables that all rows share, at once."""
    t00, t01, t10, t11 = t[0, 0], t[1, 0], t[2, 0], t[3, 0]
    for r in range(one.shape[1]):
        a0, a1 = one[0, r], one[1, r] / to_one[0, r]
        b0, b1 = other[0, r], other[1, r] / to_other[0, r]
        first = (t10 * b0 + t11 * b1) / (t00 * b0 + t01 * b1)
        second = (t01 * a0 + t11 * a1) / (t00 * a0 + t10 * a1)
        first += damping * (to_one[0, r] - first)
        second += damping * (to_other[0, r] - second)
        to_one[0, r], to_other[0, r] = first, second
        one[1, r], other[1, r] = a1 * first, b1 * second


@inner(fastmath=REORDERED)
def _gather(pairs: Codes, places: Codes, starts: Codes, bias: Floats, sent: Floats, totals: Floats) -> None:
    """Fill totals with the products of all messages and the bias."""
    n = totals.shape[1]
    for s in range(len(totals)):
        for r in range(n):
            totals[s, r] = bias[s, r]
    for f in range(len(pairs)):
        for side in range(2):
            begin, first = places[2 * f + side], starts[pairs[f, side]] + 1
            for s in range(places[2 * f + side + 1] - begin):
                for r in range(n):
                    totals[first + s, r] *= sent[begin + s, r]


@inner(fastmath=REORDERED)
def _sweep(
    pairs: Codes, forward: bool, places: Codes, starts: Codes, cells: Codes, tables: Floats,
    maximum: bool, damping: float, sent: Floats, totals: Floats, work: Floats,
) -> None:  # fmt: skip
    """Send all messages once, in order or against it; work (3, k, r) is scratch."""
    n_pairs, binary = len(pairs), tables.shape[1] == 1 and not maximum
    for step in range(n_pairs):
        f = step if forward else n_pairs - 1 - step
        one, other = pairs[f, 0], pairs[f, 1]
        at_one, at_other = totals[starts[one] : starts[one + 1]], totals[starts[other] : starts[other + 1]]
        to_one, to_other = (
            sent[places[2 * f] : places[2 * f + 1]],
            sent[places[2 * f + 1] : places[2 * f + 2]],
        )
        table = tables[cells[f] : cells[f + 1]]
        if binary and len(at_one) == 2 and len(at_other) == 2:
            _send_binary(table, at_one, at_other, damping, to_one, to_other)
            continue
        from_one, from_other = work[0, : len(at_one)], work[1, : len(at_other)]
        _arrive(at_one, to_one, from_one)
        _arrive(at_other, to_other, from_other)
        _reduce(table, False, from_other, maximum, work[2, : len(at_one)])
        _send(work[2, : len(at_one)], from_one, damping, to_one, at_one)
        _reduce(table, True, from_one, maximum, work[2, : len(at_other)])
        _send(work[2, : len(at_other)], from_other, damping, to_other, at_other)


@inner(fastmath=REORDERED)
def _normalise(totals: Floats, starts: Codes, out: Floats, sums: Floats) -> None:
    """Fill out with the totals over their sums, which are scratch (r,)."""
    n = totals.shape[1]
    for v in range(len(starts) - 1):
        for r in range(n):
            sums[r] = 0.0
        for s in range(starts[v], starts[v + 1]):
            for r in range(n):
                sums[r] += totals[s, r]
        for s in range(starts[v], starts[v + 1]):
            for r in range(n):
                out[s, r] = totals[s, r] / sums[r]


@inner(fastmath=REORDERED)
def _log_partition(
    pairs: Codes, places: Codes, starts: Codes, cells: Codes, tables: Floats, bias: Floats,
    sent: Floats, totals: Floats, work: Floats, out: Floats,
) -> None:  # fmt: skip
    """Fill out (r,) with the Bethe estimate of the log of the sum of all weights; see `Messages`."""
    n, degree, sums = len(out), np.zeros(len(starts), np.int64), np.empty(len(out))
    _gather(pairs, places, starts, bias, sent, totals)
    for r in range(n):
        out[r] = 0.0
    for f in range(len(pairs)):
        one, other = pairs[f, 0], pairs[f, 1]
        k, width = starts[one + 1] - starts[one], starts[other + 1] - starts[other]
        _arrive(totals[starts[one] : starts[one + 1]], sent[places[2 * f] : places[2 * f + 1]], work[0, :k])
        _arrive(
            totals[starts[other] : starts[other + 1]],
            sent[places[2 * f + 1] : places[2 * f + 2]],
            work[1, :width],
        )
        _reduce(tables[cells[f] : cells[f + 1]], False, work[1, :width], False, work[2, :k])
        for r in range(n):
            sums[r] = 0.0
        for a in range(k):
            for r in range(n):
                sums[r] += work[0, a, r] * work[2, a, r]
        for r in range(n):
            out[r] += np.log(sums[r])
        degree[one] += 1
        degree[other] += 1
    for v in range(len(starts) - 1):
        for r in range(n):
            total = 0.0
            for s in range(starts[v], starts[v + 1]):
                total += totals[s, r]
            out[r] += (1 - degree[v]) * np.log(total)


@entry("i2 i1 i1 i1 f2 f2 b f f i b f2 f1 f1 i1", fastmath=REORDERED)
def settle_pairs(
    pairs: Codes, places: Codes, starts: Codes, cells: Codes, tables: Floats, biases: Floats,
    maximum: bool, damping: float, tol: float, max_iter: int, patient: bool,
    beliefs: Floats, log_partition: Floats, residual: Floats, n_iter: Codes,
) -> None:  # fmt: skip
    """Propagate until rows have converged, or are seen not to.

    Parameters
    ----------
    pairs : int array (f, 2)
        Variables of the factors, in the order of the sweeps.
    places : int array (2 f + 1,)
        Where the message of each factor to each of its variables starts among those of all.
    starts : int array (v + 1,)
        Where the values of each variable start.
    cells : int array (f + 1,)
        Where the table of each factor starts.
    tables : float array (cells, n or 1)
    biases : float array (values, n)
    maximum : bool
        Whether to maximise instead of to sum.
    damping : float
        Share of the old message in the new one.
    tol : float
        Largest change of a belief at which a row has converged.
    max_iter : int
    patient : bool
        Whether to go on where changes do not become smaller.
    beliefs : float array (values, n)
    log_partition : float array (n,)
        Filled with the Bethe estimates, of sums only.
    residual : float array (n,)
        Filled with the largest change of a belief in the last iteration.
    n_iter : int array (n,)
        Filled with the iterations; stays 0 for rows that have not converged.
    """
    n, n_cells, n_values, most = biases.shape[1], places[-1], starts[-1], np.max(starts[1:] - starts[:-1])
    for begin in range(0, n, ROWS):
        width = min(ROWS, n - begin)
        here = slice(begin, begin + width)
        bias = biases[:, here].copy()
        table = tables if tables.shape[1] == 1 else tables[:, here].copy()
        sent, kept, work = np.ones((n_cells, width)), np.ones((n_cells, width)), np.empty((3, most, width))
        totals, old, new = bias.copy(), np.empty((n_values, width)), np.empty((n_values, width))
        change, last = np.empty(width), np.full(width, np.inf)
        _normalise(totals, starts, old, change)
        n_open = width
        for iteration in range(1, max_iter + 1):
            _sweep(pairs, False, places, starts, cells, table, maximum, damping, sent, totals, work)
            _sweep(pairs, True, places, starts, cells, table, maximum, damping, sent, totals, work)
            _gather(pairs, places, starts, bias, sent, totals)  # rounding must not add up
            _normalise(totals, starts, new, change)
            for r in range(width):
                change[r] = 0.0
            for s in range(n_values):
                for r in range(width):
                    change[r] = max(change[r], abs(new[s, r] - old[s, r]))
            old, new = new, old
            n_hopeless = 0
            for r in range(width):
                if n_iter[begin + r] > 0:
                    continue
                residual[begin + r] = change[r]
                if change[r] <= tol and iteration > 1:
                    n_iter[begin + r] = iteration
                    n_open -= 1
                    for s in range(n_cells):
                        kept[s, r] = sent[s, r]
                    for s in range(n_values):
                        beliefs[s, begin + r] = old[s, r]
                elif not patient and iteration > 3 and not change[r] < 0.7 * last[r]:
                    n_hopeless += 1
                last[r] = change[r]
            if n_open <= n_hopeless:
                break
        for r in range(width):
            if n_iter[begin + r] == 0:
                for s in range(n_cells):
                    kept[s, r] = sent[s, r]
                for s in range(n_values):
                    beliefs[s, begin + r] = old[s, r]
        if not maximum:
            _log_partition(pairs, places, starts, cells, table, bias, kept, totals, work, log_partition[here])
