"""Orthant probabilities of normal vectors by sequential conditioning (Geweke, Hajivassiliou, Keane).

Of a vector z ~ N(m, R) with R = L L', the signs are asked for. Write z = m + L e with independent standard
normals e. Given e_0 .. e_{k-1}, variable k is positive with probability Phi(a_k), where

    a_k = (m_k + sum_{j<k} L_kj e_j) / L_kk,

and e_k given that sign comes from a uniform number u_k: e_k = -s Phi^-1(u_k Phi(s a_k)), s = 1 or -1. The
product of the probabilities along a vector of signs, averaged over points u, estimates the probability of the
signs.

Each of N points has means and factors of its own, because it belongs to some draw of a posterior. A point is
used for all vectors of signs alike. So, at every point, a prefix divides its weight among its two children
without rest: the estimates are a probability distribution, and the weight of a prefix is the sum of the
weights of what follows from it.

The same integrand serves the sampler of probit models (`draw_sweep` to `follow_points`), where each row has
one point, variables may be visited in a different order in each group of rows, and derivatives are needed.

Arrays have the points as their last axis, and loops run along it, because such loops become vector
instructions. `factors` (v, v, D) holds L_kj / L_kk below the diagonal and 1 / L_kk on it; `scaled` (r, v, D)
holds m_k / L_kk of r rows; v variables in the order in which they are visited. The N points are N / D times
one point of each of the D draws, so point i belongs to draw i modulo D.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx, ndtri_exp

from tuplet.core.compiled import IN_ORDER, REORDERED, entry, inner
from tuplet.core.typing import Codes, Floats

# -- polynomials, found once at import --------------------------------------------------------------------

_MIDDLE = 3.75
_FAR, _TURN = 38.0, 4.0
_NEAR = np.sqrt(2 * np.log(2))


def _interpolate(function: Callable[[Floats], Floats], degree: int) -> tuple[float, ...]:
    """Return the coefficients of a polynomial that is close to a function on [-1, 1]."""
    at = chebyshev.chebpts1(degree + 1)
    return tuple(chebyshev.cheb2poly(chebyshev.chebfit(at, function(at), degree)))


def _tail_polynomial() -> tuple[float, ...]:
    """Return (1 + 2 x) erfcx(x) as a polynomial of t = (x - c) / (x + c); relative error 2e-12."""

    def function(t: Floats) -> Floats:
        x = _MIDDLE * (1 + t) / np.maximum(1 - t, 1e-15)
        return (1 + 2 * x) * erfcx(x)

    return _interpolate(function, 16)


def _quantile_polynomial() -> tuple[float, ...]:
    """Return r + Phi^-1(exp(-r^2 / 2)) as a polynomial on [-1, 1], to which (r - c) / (r + c) is stretched.

    Its error of 2e-10 moves the points of integration by as much, which changes nothing that can be seen.
    """
    low, high = ((x - _TURN) / (x + _TURN) for x in (_NEAR, _FAR))

    def function(unit: Floats) -> Floats:
        t = low + (high - low) * (unit + 1) / 2
        r = _TURN * (1 + t) / (1 - t)
        return r + ndtri_exp(-r * r / 2)

    return _interpolate(function, 20)


_T = _tail_polynomial()
_Q = _quantile_polynomial()
_SLOPE = float(2 / ((_FAR - _TURN) / (_FAR + _TURN) - (_NEAR - _TURN) / (_NEAR + _TURN)))
_SHIFT = float(-1 - _SLOPE * (_NEAR - _TURN) / (_NEAR + _TURN))
_HALF = float(np.sqrt(0.5))
_LEAST = 1e-300
_UNLIKELY = 1e-150
"""Weight below which paths are followed in logarithms."""
_DENSITY = float(1 / np.sqrt(2 * np.pi))
_LOG_ROOT = float(0.5 * np.log(2 * np.pi))
_WIDTH = 256  # rows of the sampler that are worked on at once

FAR = 20.0
"""Standard deviations beyond which a variable of known sign is drawn by Newton's method."""
TINY = float(np.finfo(float).tiny)

_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which stands in the low bits
_LOG2E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
_LN2 = float(np.log(2))


# -- functions of vectors: loops that become vector instructions, which calls of libm do not --------------


@inner(fastmath=IN_ORDER)
def _exp(x: Floats, scratch: Floats) -> None:
    """Replace x (N,) <= 0 by exp(x), but never by less than exp(-700)."""
    for i in range(len(x)):
        v = max(x[i], -700.0)
        shifted = v * _LOG2E + _MAGIC
        r = v - (shifted - _MAGIC) * _LN2_HIGH - (shifted - _MAGIC) * _LN2_LOW
        scratch[i] = shifted
        p = 1 / 39916800.0 + r / 479001600.0
        p = 1 / 40320.0 + r * (1 / 362880.0 + r * (1 / 3628800.0 + r * p))
        p = 1 / 24.0 + r * (1 / 120.0 + r * (1 / 720.0 + r * (1 / 5040.0 + r * p)))
        x[i] = 1.0 + r * (1.0 + r * (0.5 + r * (1 / 6.0 + r * p)))
    bits, power = x.view(np.int64), scratch.view(np.int64)
    for i in range(len(x)):
        bits[i] += power[i] << 52


@inner(fastmath=IN_ORDER)
def _log(x: Floats, scratch: Floats) -> None:
    """Replace x (N,) > 0 by log(x)."""
    bits, power = x.view(np.uint64), scratch.view(np.uint64)
    for i in range(len(x)):
        power[i] = (bits[i] >> np.uint64(52)) | np.uint64(0x4330000000000000)
        bits[i] = (bits[i] & np.uint64(0xFFFFFFFFFFFFF)) | np.uint64(0x3FF0000000000000)
    for i in range(len(x)):
        big = x[i] > 1.4142135623730951
        m = 0.5 * x[i] if big else x[i]
        e = scratch[i] - 4503599627371519.0 + (1.0 if big else 0.0)
        f = (m - 1.0) / (m + 1.0)
        s = f * f
        p = 1 / 15.0 + s * (1 / 17.0 + s * (1 / 19.0 + s / 21.0))
        p = 1 / 7.0 + s * (1 / 9.0 + s * (1 / 11.0 + s * (1 / 13.0 + s * p)))
        x[i] = e * _LN2_HIGH + (e * _LN2_LOW + 2.0 * f * (1.0 + s * (1 / 3.0 + s * (0.2 + s * p))))


@inner(fastmath=IN_ORDER)
def _mills(a: Floats, out: Floats) -> None:
    """Fill `out` (N,) with Phi(-|a|) exp(a^2 / 2)."""
    for i in range(len(a)):
        x = abs(a[i]) * _HALF
        t = (x - _MIDDLE) / (x + _MIDDLE)
        p = _T[13] + t * (_T[14] + t * (_T[15] + t * _T[16]))
        p = _T[9] + t * (_T[10] + t * (_T[11] + t * (_T[12] + t * p)))
        p = _T[5] + t * (_T[6] + t * (_T[7] + t * (_T[8] + t * p)))
        p = _T[1] + t * (_T[2] + t * (_T[3] + t * (_T[4] + t * p)))
        out[i] = 0.5 * (_T[0] + t * p) / (1 + 2 * x)


@inner(fastmath=IN_ORDER)
def _quantile(x: Floats) -> None:
    """Replace log p (N,), p <= 1/2, by Phi^-1(p)."""
    for i in range(len(x)):
        r = np.sqrt(-2 * x[i])
        s = min(_SLOPE * ((r - _TURN) / (r + _TURN)) + _SHIFT, 1.0)
        p = _Q[17] + s * (_Q[18] + s * (_Q[19] + s * _Q[20]))
        p = _Q[13] + s * (_Q[14] + s * (_Q[15] + s * (_Q[16] + s * p)))
        p = _Q[9] + s * (_Q[10] + s * (_Q[11] + s * (_Q[12] + s * p)))
        p = _Q[5] + s * (_Q[6] + s * (_Q[7] + s * (_Q[8] + s * p)))
        p = _Q[1] + s * (_Q[2] + s * (_Q[3] + s * (_Q[4] + s * p)))
        x[i] = (_Q[0] + s * p) - r


# -- one variable -----------------------------------------------------------------------------------------


@inner(fastmath=IN_ORDER)
def _locate(k: int, scaled: Floats, factors: Floats, e: Floats, a: Floats) -> None:
    """Fill a (N,) with a_k, given the e (v, N) of the variables before k."""
    n_draws = scaled.shape[1]
    for first in range(0, len(a), n_draws):
        some, mean = a[first : first + n_draws], scaled[k]
        for i in range(n_draws):
            some[i] = mean[i]
        for j in range(k):
            weight, before = factors[k, j], e[j, first : first + n_draws]
            for i in range(n_draws):
                some[i] += weight[i] * before[i]


@inner(fastmath=IN_ORDER)
def _divide(a: Floats, high: Floats, low: Floats, scratch: Floats) -> None:
    """Fill `high` and `low` (N,) with Phi(a) and Phi(-a)."""
    for i in range(len(a)):
        low[i] = -0.5 * a[i] * a[i]
    _exp(low, scratch)
    _mills(a, high)
    for i in range(len(a)):
        tail = high[i] * low[i]
        high[i] = 1.0 - tail if a[i] > 0 else tail
        low[i] = tail if a[i] > 0 else 1.0 - tail


@inner(fastmath=IN_ORDER)
def _move(sign: float, p: Floats, u: Floats, e: Floats, scratch: Floats) -> None:
    """Fill e (N,) with -sign Phi^-1(u p)."""
    for i in range(len(p)):
        q = u[i] * p[i]
        e[i] = max(min(q, 1.0 - q), _LEAST)
    _log(e, scratch)
    _quantile(e)
    for i in range(len(p)):
        e[i] = sign * (e[i] if u[i] * p[i] > 0.5 else -e[i])


@inner(fastmath=IN_ORDER)
def _move_log(sign: float, log_p: Floats, log_u: Floats, e: Floats, work: Floats, scratch: Floats) -> None:
    """See `_move`; in logarithms, so that nothing is too improbable to be followed."""
    for i in range(len(e)):
        work[i] = log_u[i] + log_p[i]
        e[i] = min(work[i], -1e-15)
    _exp(e, scratch)
    for i in range(len(e)):
        e[i] = 1.0 - e[i] if work[i] > -_LN2 else 1.0
    _log(e, scratch)
    for i in range(len(e)):
        e[i] = e[i] if work[i] > -_LN2 else work[i]
    _quantile(e)
    for i in range(len(e)):
        e[i] = sign * (e[i] if work[i] > -_LN2 else -e[i])


@inner(fastmath=IN_ORDER)
def _log_divide(sign: float, a: Floats, log_p: Floats, work: Floats, scratch: Floats) -> None:
    """Fill `log_p` (N,) with log Phi(sign a)."""
    for i in range(len(a)):
        work[i] = -0.5 * a[i] * a[i]
    _exp(work, scratch)
    _mills(a, log_p)
    for i in range(len(a)):
        log_p[i] = log_p[i] if sign * a[i] < 0 else 1.0 - log_p[i] * work[i]
    _log(log_p, scratch)
    for i in range(len(a)):
        log_p[i] += -0.5 * a[i] * a[i] if sign * a[i] < 0 else 0.0


@inner(fastmath=REORDERED)
def _weigh(w: Floats, p: Floats) -> float:
    total = 0.0
    for i in range(len(w)):
        total += w[i] * p[i]
    return total


@inner(fastmath=IN_ORDER)
def _follow(
    codes: Codes, scaled: Floats, factors: Floats, log_u: Floats, e: Floats, log_w: Floats, work: Floats
) -> None:
    """Walk along codes (d,): fill e (d, N) and the log-weights (N,). `work` (4, N) is scratch."""
    log_w[:] = 0.0
    a, log_p = work[0], work[1]
    for k in range(len(codes)):
        sign = 1.0 if codes[k] == 1 else -1.0
        _locate(k, scaled, factors, e, a)
        _log_divide(sign, a, log_p, work[2], work[3])
        for i in range(len(log_w)):
            log_w[i] += log_p[i]
        if k < len(log_u):
            _move_log(sign, log_p, log_u[k], e[k], work[2], work[3])


@inner(fastmath=IN_ORDER)
def _follow_likely(
    codes: Codes, scaled: Floats, factors: Floats, u: Floats, e: Floats, w: Floats, work: Floats
) -> bool:
    """See `_follow`; fill the weights themselves, at half the cost, or return False if one is too small."""
    w[:] = 1.0
    a, high, low, scratch = work[0], work[1], work[2], work[3]
    for k in range(len(codes)):
        _locate(k, scaled, factors, e, a)
        _divide(a, high, low, scratch)
        p = high if codes[k] == 1 else low
        least = 1.0
        for i in range(len(w)):
            w[i] *= p[i]
            least = min(least, w[i])
        if least < _UNLIKELY:
            return False
        if k < len(u):
            _move(1.0 if codes[k] == 1 else -1.0, p, u[k], e[k], scratch)
    return True


# -- entry points -----------------------------------------------------------------------------------------


@entry("i1 i2 f3 f3 f2 f2 f2", fastmath=IN_ORDER)
def log_paths(
    rows: Codes, codes: Codes, scaled: Floats, factors: Floats, u: Floats, log_u: Floats, answer: Floats
) -> None:
    """Log-probabilities of some outcomes.

    Parameters
    ----------
    rows : int array (Q,)
        Row of each outcome.
    codes : int array (Q, v)
        0 and 1, in the order of visit.
    scaled, factors, u, log_u : float arrays (r, v, D), (v, v, D), (v - 1, N), (v - 1, N)
        `log_u` are logarithms of the points.
    answer : float array (Q, G)
        Filled with the log of the mean probability of the points i for each i modulo G.
    """
    n_groups, n = answer.shape[1], max(u.shape[1], scaled.shape[2])
    e, work, w = np.empty((codes.shape[1], n)), np.empty((4, n)), np.empty(n)
    top, total = np.empty(n_groups), np.empty(n_groups)
    for q in range(len(rows)):
        top[:], total[:] = 0.0, 0.0
        if not _follow_likely(codes[q], scaled[rows[q]], factors, u, e, w, work):
            _follow(codes[q], scaled[rows[q]], factors, log_u, e, w, work)
            top[:] = -np.inf
            for i in range(n):
                top[i % n_groups] = max(top[i % n_groups], w[i])
            for i in range(n):
                w[i] -= top[i % n_groups]
            _exp(w, work[0])
        for first in range(0, n, n_groups):
            for g in range(n_groups):
                total[g] += w[first + g]
        for g in range(n_groups):
            answer[q, g] = top[g] + np.log(total[g] * n_groups / n)


@inner(fastmath=IN_ORDER)
def _descend(
    codes: Codes, scaled: Floats, factors: Floats, log_u: Floats, e: Floats, w: Floats, work: Floats
) -> float:
    """Walk along known codes; fill w (N,) with weights whose largest is one and return their sum."""
    _follow(codes, scaled, factors, log_u, e, w, work)
    w -= w.max()
    _exp(w, work[0])
    return w.sum()


@entry("i2 f3 f3 f2 f2 f2", fastmath=IN_ORDER)
def fill_tables(
    known: Codes, scaled: Floats, factors: Floats, u: Floats, log_u: Floats, tables: Floats
) -> None:
    """Probabilities of all outcomes that begin with the known values.

    Parameters
    ----------
    known : int array (r, d)
        Values of the first d of v variables.
    scaled, factors : float arrays (r, v, D), (v, v, D)
    u, log_u : float arrays (v - 1, N)
        The points and their logarithms.
    tables : float array (r, 2 ** (v - d))
        Filled with the probabilities given the known values; the last variable runs fastest.
    """
    v, d, n = scaled.shape[1], known.shape[1], max(u.shape[1], scaled.shape[2])
    e, high, low, w = np.empty((v, n)), np.empty((v, n)), np.empty((v, n)), np.empty((v + 1, n))
    work, value = np.empty((4, n)), np.zeros(v, np.intp)
    for row in range(len(scaled)):
        total = _descend(known[row], scaled[row], factors, log_u, e, w[d], work)
        if d == v:
            tables[row, 0] = 1.0
            continue
        k, cell = d, 0
        value[d] = -1
        while k >= d:
            if value[k] == -1:  # just arrived
                _locate(k, scaled[row], factors, e, work[0])
                _divide(work[0], high[k], low[k], work[1])
            if k == v - 1:
                tables[row, cell] = _weigh(w[k], low[k]) / total
                tables[row, cell + 1] = _weigh(w[k], high[k]) / total
                cell += 2
                k -= 1
                continue
            value[k] += 1
            if value[k] == 2:
                k -= 1
                continue
            _enter(value[k], high[k], low[k], w[k], u[k], w[k + 1], e[k], work[1])
            k += 1
            value[k] = -1


@inner(fastmath=IN_ORDER)
def _enter(
    value: Any, high: Floats, low: Floats, w: Floats, u: Floats, child: Floats, e: Floats, scratch: Floats
) -> None:
    """Give a variable a value: fill the weights of the child and the e of the variable, all (N,)."""
    p = high if value == 1 else low
    for i in range(len(w)):
        child[i] = w[i] * p[i]
    _move(1.0 if value == 1 else -1.0, p, u, e, scratch)


@entry("i2 f3 f3 f2 f2 i i3 f2 i1", fastmath=IN_ORDER)
def search_outcomes(
    known: Codes,
    scaled: Floats,
    factors: Floats,
    u: Floats,
    log_u: Floats,
    max_nodes: int,
    codes: Codes,
    best: Floats,
    proven: Codes,
) -> None:
    """Search the most probable outcomes that begin with the known values, depth first.

    A prefix weighs as much as all that follows from it, so what weighs less than the k-th best outcome is
    left alone.

    Parameters
    ----------
    known, scaled, factors, u, log_u
        See `fill_tables`.
    max_nodes : int
        Prefixes of a row that may be opened.
    codes, best : int array (r, k, v), float array (r, k)
        Distinct outcomes to begin with and their probabilities given the known values, 0 for none. Replaced
        by the most probable ones found, in no order.
    proven : int array (r,)
        Filled with 0 where the budget ended the search, else with 1.
    """
    v, d, n = scaled.shape[1], known.shape[1], max(u.shape[1], scaled.shape[2])
    e, high, low, w = np.empty((v, n)), np.empty((v, n)), np.empty((v, n)), np.empty((v + 1, n))
    work, value, outcome = np.empty((4, n)), np.zeros(v, np.intp), np.empty(v, np.intp)
    mass = np.empty((v, 2))
    for row in range(len(scaled)):
        total, n_nodes = _descend(known[row], scaled[row], factors, log_u, e, w[d], work), 0
        outcome[:d] = known[row]
        proven[row] = 1
        k = d
        value[d] = -1
        while k >= d:
            if value[k] == -1:
                n_nodes += 1
                _locate(k, scaled[row], factors, e, work[0])
                _divide(work[0], high[k], low[k], work[1])
                mass[k, 0], mass[k, 1] = _weigh(w[k], low[k]) / total, _weigh(w[k], high[k]) / total
            value[k] += 1
            if value[k] == 2:
                k -= 1
                continue
            # The heavier child first: the earlier good outcomes are found, the more is left alone.
            heavier = 1 if mass[k, 1] > mass[k, 0] else 0
            outcome[k] = heavier if value[k] == 0 else 1 - heavier
            if mass[k, outcome[k]] <= best[row].min():
                continue
            if k == v - 1:
                _offer(outcome, mass[k, outcome[k]], codes[row], best[row])
            elif n_nodes >= max_nodes:
                proven[row] = 0
            else:
                _enter(outcome[k], high[k], low[k], w[k], u[k], w[k + 1], e[k], work[1])
                k += 1
                value[k] = -1


@inner(fastmath=IN_ORDER)
def _offer(outcome: Codes, probability: Any, codes: Codes, best: Floats) -> None:
    """Put an outcome (v,) in the place of the least of k, unless it is among them."""
    place = int(np.argmin(best))
    for r in range(len(best)):
        if best[r] > 0 and (codes[r] == outcome).all():
            place = r
    codes[place] = outcome
    best[place] = probability


@entry("i2 f3 f3 f2 f2 f3 i3", fastmath=IN_ORDER)
def draw_outcomes(
    known: Codes, scaled: Floats, factors: Floats, log_u: Floats, picks: Floats, normals: Floats, codes: Codes
) -> None:
    """Draw outcomes that begin with the known values.

    A point is drawn in proportion to its weight, then the rest of e anew.

    Parameters
    ----------
    known, scaled, factors, log_u
        See `fill_tables`.
    picks, normals : float arrays (r, size), (r, size, v - d)
        Uniform and standard normal numbers.
    codes : int array (r, size, v)
        Filled with the draws.
    """
    v, d, n = scaled.shape[1], known.shape[1], max(log_u.shape[1], scaled.shape[2])
    e, work, w, own = np.empty((v, n)), np.empty((4, n)), np.empty(n), np.empty(v)
    n_draws = scaled.shape[2]
    for row in range(len(scaled)):
        _descend(known[row], scaled[row], factors, log_u, e, w, work)
        running = np.cumsum(w)
        for s in range(picks.shape[1]):
            i = min(np.searchsorted(running, picks[row, s] * running[-1], side="right"), n - 1)
            codes[row, s, :d] = known[row]
            for j in range(d):
                own[j] = e[j, i]
            for k in range(d, v):
                own[k] = normals[row, s, k - d]
                a = scaled[row, k, i % n_draws] + own[k]
                for j in range(k):
                    a += factors[k, j, i % n_draws] * own[j]
                codes[row, s, k] = 1 if a > 0 else 0


# -- one point for each row, variables of known sign: the sampler of probit models -------------------------


@inner()
def _log_tail(x: float) -> float:
    """Logarithm of the upper tail beyond a large x."""
    s = 1.0 / (x * x)
    series = -s * (1.0 - s * (3.0 - s * (15.0 - s * (105.0 - s * 945.0))))
    return -0.5 * x * x - math.log(x) - _LOG_ROOT + math.log1p(series)


@inner()
def _beyond(t: float, u: float) -> float:
    """Distance X - |t| of a draw X from beyond |t| = -t, which is large."""
    goal = math.log(u) + _log_tail(-t)
    x = math.sqrt(t * t - 2.0 * math.log(u))
    for _ in range(4):  # Newton; the slope of the log-tail is nearly -x
        x += (_log_tail(x) - goal) / (x + 1.0 / x)
    return x + t


@inner(fastmath=IN_ORDER)
def _log_positive(t: Floats, log_p: Floats, hazard: Floats, work: Floats, scratch: Floats) -> None:
    """Fill `log_p` and `hazard` (N,) with log Phi(t) and its derivative."""
    for i in range(len(t)):
        work[i] = -0.5 * t[i] * t[i]
    _exp(work, scratch)
    _mills(t, log_p)
    for i in range(len(t)):
        mills = log_p[i]
        p = 1.0 - mills * work[i]
        hazard[i] = _DENSITY / mills if t[i] < 0 else _DENSITY * work[i] / p
        log_p[i] = mills if t[i] < 0 else p
    _log(log_p, scratch)
    for i in range(len(t)):
        log_p[i] += -0.5 * t[i] * t[i] if t[i] < 0 else 0.0


@entry("f2 i2 f2 f2 f2 f2", fastmath=IN_ORDER)
def draw_sweep(
    means: Floats, signs: Codes, precision: Floats, uniforms: Floats, residuals: Floats, latent: Floats
) -> None:
    """Draw all latent variables label by label, each given the others and on its side of zero.

    A draw X > -t of a standard normal variable is found by inversion from the tail: X = -quantile(U Phi(t)),
    in logarithms, which keeps all digits where Phi(t) is small.

    Parameters
    ----------
    means, uniforms : float array (q, n)
        Uniform numbers are above 0 and below 1.
    signs : int array (q, n)
        1 and -1 for positive and negative variables, 0 for both sides.
    precision : float array (q, q)
        Inverse of the covariance matrix of the residuals.
    residuals, latent : float array (q, n)
        Latent variables less their means, and these themselves; both are replaced.
    """
    q, n = means.shape
    space = np.empty((7, _WIDTH))
    for first in range(0, n, _WIDTH):
        last = min(first + _WIDTH, n)
        size = last - first
        t, e, log_p, log_u = space[0, :size], space[1, :size], space[2, :size], space[3, :size]
        work, scratch, side = space[4, :size], space[5, :size], space[6, :size]
        for k in range(q):
            variance = 1.0 / precision[k, k]
            scale = math.sqrt(variance)
            mean, residual, sign = means[k, first:last], residuals[k, first:last], signs[k, first:last]
            t[:] = mean
            for j in range(q):
                if j != k:
                    weight, other = -variance * precision[k, j], residuals[j, first:last]
                    for i in range(len(t)):
                        t[i] += weight * other[i]
            for i in range(len(t)):
                t[i] *= (-1.0 if sign[i] < 0 else 1.0) / scale
                log_u[i] = uniforms[k, first + i]
            _log(log_u, scratch)
            _log_positive(t, log_p, side, work, scratch)
            for i in range(len(t)):
                log_p[i] = log_p[i] if sign[i] != 0 else 0.0
            _move_log(1.0, log_p, log_u, e, work, scratch)
            drawn = latent[k, first:last]
            for i in range(len(t)):
                e[i] += t[i]
                # Rounding must not take it to the other side.
                e[i] = e[i] if sign[i] == 0 else max(e[i], TINY)
                side[i] = -scale if sign[i] < 0 else scale
            for i in range(len(t)):
                if t[i] < -FAR and sign[i] != 0:
                    e[i] = max(_beyond(t[i], uniforms[k, first + i]), TINY)
            for i in range(len(t)):
                drawn[i] = side[i] * e[i]
                residual[i] = drawn[i] - mean[i]


@entry("f2 f1 f1", fastmath=IN_ORDER)
def mean_sides(means: Floats, high: Floats, low: Floats) -> None:
    """Fill `high` and `low` (c,) with the means of Phi(m) and Phi(-m) over the draws of m (D, c)."""
    n_draws, n = means.shape
    high[:], low[:] = 0.0, 0.0
    work = np.empty((3, n))
    for draw in range(n_draws):
        _divide(means[draw], work[0], work[1], work[2])
        for i in range(n):
            high[i] += work[0, i]
            low[i] += work[1, i]
    for i in range(n):
        high[i] /= n_draws
        low[i] /= n_draws


@entry("f2", fastmath=IN_ORDER)
def mean_probabilities(means: Floats) -> Floats:
    """Return the mean of Phi(means) (q,) over the rows of means (q, n)."""
    q, n = means.shape
    answer, work = np.zeros(q), np.empty((3, _WIDTH))
    for k in range(q):
        for first in range(0, n, _WIDTH):
            size = min(_WIDTH, n - first)
            high = work[0, :size]
            _divide(means[k, first : first + size], high, work[1, :size], work[2, :size])
            answer[k] += high.sum()
    return answer / n


@inner(fastmath=IN_ORDER)
def _factorise(R: Floats, order: Codes, L: Floats) -> bool:
    """Fill L with the Cholesky factor of R in the given order; False where R is not positive definite."""
    for j in range(len(R)):
        rest = R[order[j], order[j]]
        for k in range(j):
            rest -= L[j, k] ** 2
        if not rest > 1e-12:
            return False
        L[j, j] = np.sqrt(rest)
        for i in range(j + 1, len(R)):
            total = R[order[i], order[j]]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
    return True


@inner(fastmath=IN_ORDER)
def _unfactorise(L: Floats, slope: Floats) -> None:
    """Replace the slope (lower triangle) of L by that of the matrix L L', of which L is the factor.

    Differentiation of the Cholesky decomposition in reverse; S. P. Smith, Journal of Computational and
    Graphical Statistics 4 (1995).
    """
    for k in range(len(L) - 1, -1, -1):
        for j in range(k + 1, len(L)):
            for i in range(j, len(L)):
                slope[i, k] -= slope[i, j] * L[j, k]
                slope[j, k] -= slope[i, j] * L[i, k]
        for j in range(k + 1, len(L)):
            slope[j, k] /= L[k, k]
            slope[k, k] -= L[j, k] * slope[j, k]
        slope[k, k] *= 0.5 / L[k, k]


@inner(fastmath=IN_ORDER)
def _place(k: int, mean: Floats, L: Floats, e: Floats, a: Floats) -> None:
    """Fill a (n,) with a_k at rows of these means (n,), given the e (q, n) of the variables before k."""
    inverse = 1.0 / L[k, k]
    for i in range(len(a)):
        a[i] = mean[i] * inverse
    for j in range(k):
        weight, before = L[k, j] * inverse, e[j]
        for i in range(len(a)):
            a[i] += weight * before[i]


@entry("i2 i1 f2 f2 f2 f2 f2 f2", fastmath=IN_ORDER)
def slope_orthants(
    orders: Codes,
    starts: Codes,
    R: Floats,
    signs: Floats,
    means: Floats,
    log_u: Floats,
    mean_slopes: Floats,
    R_slope: Floats,
) -> float:
    """Return the sum of the log-weights of all rows, one point each, and fill its derivatives.

    Parameters
    ----------
    orders : int array (G, q)
        Order in which the variables are visited in each group of rows.
    starts : int array (G + 1,)
        Where the rows of each group start.
    R : float array (q, q)
        Correlation matrix; the answer is minus infinity where it is not positive definite.
    signs, means : float array (q, n)
        1, -1, or 0 for a variable that is not known.
    log_u : float array (q, n)
        Logarithms of the points, in the order of visit.
    mean_slopes, R_slope : float arrays (q, n), (q, q)
        Filled; the second is symmetric, and its product with a change of R adds up to the change.
    """
    q = len(R)
    L, D = np.zeros((q, q)), np.zeros((q, q))
    a, e, back = np.empty((q, _WIDTH)), np.empty((q, _WIDTH)), np.empty((q, _WIDTH))
    hazard, ratio, sign = np.empty((q, _WIDTH)), np.empty((q, _WIDTH)), np.empty((q, _WIDTH))
    work = np.empty((4, _WIDTH))
    total = 0.0
    R_slope[:] = 0.0
    for g in range(len(orders)):
        order = orders[g]
        if not _factorise(R, order, L):
            return -np.inf
        D[:] = 0.0
        for first in range(starts[g], starts[g + 1], _WIDTH):
            n = min(_WIDTH, starts[g + 1] - first)
            t, log_p = work[0, :n], work[1, :n]
            for k in range(q):
                _place(k, means[order[k], first : first + n], L, e, a[k, :n])
                for i in range(n):
                    sign[k, i] = signs[order[k], first + i]
                    t[i] = a[k, i] * sign[k, i]
                    back[k, i] = 0.0
                _log_positive(t, log_p, hazard[k, :n], work[2, :n], work[3, :n])
                for i in range(n):
                    log_p[i] = log_p[i] if sign[k, i] != 0 else 0.0
                for i in range(n):
                    total += log_p[i]
                if k == q - 1:
                    continue
                own = log_u[k, first : first + n]
                _move_log(1.0, log_p, own, e[k, :n], work[2, :n], work[3, :n])
                for i in range(n):  # de/da = -u phi(a) / phi(e)
                    ratio[k, i] = min(own[i] + 0.5 * (e[k, i] * e[k, i] - t[i] * t[i]), 0.0)
                _exp(ratio[k, :n], work[3, :n])
                for i in range(n):
                    known = sign[k, i] != 0
                    e[k, i] *= sign[k, i] if known else 1.0
                    ratio[k, i] = ratio[k, i] if known else 0.0
            for k in range(q - 1, -1, -1):
                inverse, slope, at = 1.0 / L[k, k], back[k, :n], a[k, :n]
                for i in range(n):
                    through = ratio[k, i] * slope[i] if k < q - 1 else 0.0
                    slope[i] = (sign[k, i] * hazard[k, i] - through) * inverse
                    mean_slopes[order[k], first + i] = slope[i]
                D[k, k] -= _weigh(slope, at)
                for j in range(k):
                    D[k, j] += _weigh(slope, e[j, :n])
                    before = back[j]
                    for i in range(n):
                        before[i] += slope[i] * L[k, j]
        _unfactorise(L, D)
        for i in range(q):
            for j in range(i + 1):
                R_slope[order[i], order[j]] += 0.5 * D[i, j]
                R_slope[order[j], order[i]] += 0.5 * D[i, j]
    return total


@entry("i2 i1 f2 f2 f2 f2 f2", fastmath=IN_ORDER)
def find_points(
    orders: Codes, starts: Codes, R: Floats, signs: Floats, means: Floats, latent: Floats, log_u: Floats
) -> None:
    """Fill `log_u` (q, n) with the points that latent variables (q, n) come from; see `slope_orthants`."""
    q = len(R)
    L, e, all_t = np.zeros((q, q)), np.empty((q, _WIDTH)), np.empty(_WIDTH)
    work = np.empty((6, _WIDTH))
    for g in range(len(orders)):
        order = orders[g]
        _factorise(R, order, L)
        for first in range(starts[g], starts[g + 1], _WIDTH):
            n = min(_WIDTH, starts[g + 1] - first)
            t, below, outside = all_t[:n], work[0, :n], work[1, :n]
            for k in range(q):
                sign, z = signs[order[k], first : first + n], latent[order[k], first : first + n]
                _place(k, means[order[k], first : first + n], L, e, t)
                for i in range(n):
                    e[k, i] = z[i] / L[k, k] - t[i]
                    below[i] = -e[k, i] if sign[i] == 0 else -sign[i] * e[k, i]
                    t[i] *= sign[i]
                _log_positive(t, outside, work[4, :n], work[2, :n], work[3, :n])
                _log_positive(below, work[5, :n], work[4, :n], work[2, :n], work[3, :n])
                for i in range(n):
                    whole = outside[i] if sign[i] != 0 else 0.0
                    log_u[k, first + i] = min(work[5, i] - whole, -1e-15)


@entry("i2 i1 f2 f2 f2 f2 f2", fastmath=IN_ORDER)
def follow_points(
    orders: Codes, starts: Codes, R: Floats, signs: Floats, means: Floats, log_u: Floats, latent: Floats
) -> None:
    """Fill `latent` (q, n) with what points (q, n) lead to: the inverse of `find_points`."""
    q = len(R)
    L, e, all_t = np.zeros((q, q)), np.empty((q, _WIDTH)), np.empty(_WIDTH)
    work = np.empty((4, _WIDTH))
    for g in range(len(orders)):
        order = orders[g]
        _factorise(R, order, L)
        for first in range(starts[g], starts[g + 1], _WIDTH):
            n = min(_WIDTH, starts[g + 1] - first)
            t, log_p = all_t[:n], work[0, :n]
            for k in range(q):
                sign, z = signs[order[k], first : first + n], latent[order[k], first : first + n]
                _place(k, means[order[k], first : first + n], L, e, t)
                for i in range(n):
                    t[i] *= sign[i] if sign[i] != 0 else 1.0
                _log_positive(t, log_p, work[3, :n], work[1, :n], work[2, :n])
                for i in range(n):
                    log_p[i] = log_p[i] if sign[i] != 0 else 0.0
                _move_log(1.0, log_p, log_u[k, first : first + n], e[k, :n], work[1, :n], work[2, :n])
                for i in range(n):
                    distance = t[i] + e[k, i]
                    if sign[i] != 0:
                        distance = sign[i] * max(distance, TINY)
                        e[k, i] *= sign[i]
                    z[i] = distance * L[k, k]
