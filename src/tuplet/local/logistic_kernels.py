"""Many penalised softmax regressions by preconditioned L-BFGS.

For one block of rows with weights w_i that sum to 1, a matrix A (n, D) whose columns have weighted mean 0,
and c rows of parameters theta = (W, b), the objective is

    F(theta) = sum_i w_i nll_i(o_i + A W' + b) + ridge / 2 ||W||^2.

The offsets o_i are zero, or logits that are given. Two classes have one logit (the first class is a
*reference* whose logit is 0), more classes have one each. The logits of all rows are kept, as (c, n): along a
search direction they are linear, so a trial step costs n c exponentials and only an accepted step costs
products with A.

The inverse Hessian of L-BFGS starts from the diagonal 1 / (sum_i w_i p_ik (1 - p_ik) A_ij^2 + ridge). The
caller's columns are the principal components of all rows, in which a diagonal says most; it follows p at
iterations 0, 1, 2, 4, 8 ... for the price of half an iteration each time. Rejected: a Cholesky factor of each
block's weighted Gram matrix (a third fewer iterations, about as many as it costs) and products by BLAS (the
matrices are too thin: down to half the speed of these loops, and its threads would have to be held back).
"""

from __future__ import annotations

import numpy as np

from tuplet.core.compiled import IN_ORDER, REORDERED, entry, inner
from tuplet.core.typing import Codes, Floats

MEMORY = 20
SUFFICIENT, CURVATURE = 1e-4, 0.5
ROUNDING = 1e-13
"""Share of the objective below which differences of it say nothing."""
MAX_TRIALS = 30

_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which stands in the low bits
_LOG2E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10


@inner(fastmath=IN_ORDER)
def _exp(x: Floats, scratch: Floats) -> None:
    """Replace x (n,) <= 0 by exp(x), in loops that become vector instructions, which calls of libm do not."""
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
    """Replace x (n,) >= 1 by log(x)."""
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


@inner(fastmath=REORDERED)
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@inner(fastmath=REORDERED)
def _try(
    t: float, T: Floats, dT: Floats, y: Codes, w: Floats, trial: Floats, residual: Floats, work: Floats
) -> tuple[float, float]:
    """Evaluate the logits T + t dT (c, n), which fill `trial`; return the mean nll and its slope in t.

    `residual` (max(c, 2), n) is filled with w_i (p_ik - [y_i = k]), where c = 1 with the reference in row 1.
    `work` (3, n) is scratch.
    """
    c, n = T.shape
    top, total, scratch = work[0], work[1], work[2]
    for i in range(n):
        top[i] = 0.0 if c == 1 else -np.inf
        total[i] = 0.0
    for k in range(c):
        for i in range(n):
            trial[k, i] = T[k, i] + t * dT[k, i]
            top[i] = max(top[i], trial[k, i])
    for k in range(max(c, 2)):
        row = residual[k]
        for i in range(n):
            row[i] = (trial[k, i] if k < c else 0.0) - top[i]
        _exp(row, scratch)
        for i in range(n):
            total[i] += row[i]
    value, slope = 0.0, 0.0
    for i in range(n):
        scratch[i] = w[i] / total[i]
    for k in range(c):
        for i in range(n):
            residual[k, i] *= scratch[i]
    for i in range(n):
        residual[y[i], i] -= w[i]
        value += w[i] * (top[i] - (trial[y[i], i] if y[i] < c else 0.0))
    for k in range(c):
        slope += _dot(residual[k], dT[k])
    _log(total, scratch)
    return value + _dot(w, total), slope


@inner(fastmath=REORDERED)
def _clear(out: Floats) -> None:
    for k in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[k, j] = 0.0


@inner(fastmath=REORDERED)
def _forward(A: Floats, theta: Floats, out: Floats) -> None:
    """Fill out (c, n) with the logits of theta (c, D + 1)."""
    n, D = A.shape
    for i in range(n):
        for k in range(len(theta)):
            total = theta[k, D]
            for j in range(D):
                total += A[i, j] * theta[k, j]
            out[k, i] = total


@inner(fastmath=REORDERED)
def _backward(A: Floats, residual: Floats, out: Floats) -> None:
    """Fill out (c, D + 1) with residual' (A, 1)."""
    n, D = A.shape
    _clear(out)
    even = n - n % 4
    for i in range(0, even, 4):
        for k in range(len(out)):
            r0, r1, r2, r3 = residual[k, i], residual[k, i + 1], residual[k, i + 2], residual[k, i + 3]
            for j in range(D):
                out[k, j] += r0 * A[i, j] + r1 * A[i + 1, j] + r2 * A[i + 2, j] + r3 * A[i + 3, j]
            out[k, D] += r0 + r1 + r2 + r3
    for i in range(even, n):
        for k in range(len(out)):
            for j in range(D):
                out[k, j] += residual[k, i] * A[i, j]
            out[k, D] += residual[k, i]


@inner(fastmath=REORDERED)
def _precondition(A: Floats, residual: Floats, w: Floats, ridge: float, out: Floats) -> None:
    """Fill out (c, D + 1) with the inverse diagonal of the Hessian; w p (1 - p) = |r| (1 - |r| / w)."""
    n, D = A.shape
    _clear(out)
    for i in range(n):
        for k in range(len(out)):
            r = abs(residual[k, i])
            h = r * (1.0 - r / w[i])
            for j in range(D):
                out[k, j] += h * A[i, j] * A[i, j]
            out[k, D] += h
    largest = 0.0
    for k in range(len(out)):
        for j in range(D):
            out[k, j] += ridge
        for j in range(D + 1):
            largest = max(largest, out[k, j])
    for k in range(len(out)):
        for j in range(D + 1):
            out[k, j] = 1.0 / max(out[k, j], 1e-10 * largest)


@inner(fastmath=REORDERED)
def _direction(
    g: Floats, S: Floats, Y: Floats, rho: Floats, n_pairs: int, inverse: Floats, out: Floats
) -> float:
    """Fill out (c, D + 1) with minus the inverse Hessian times g (two-loop recursion); return the slope."""
    c, width = g.shape
    q, H, alpha = out.reshape(-1), inverse.reshape(-1), np.empty(MEMORY)
    flat = g.reshape(-1)
    for j in range(len(q)):
        q[j] = -flat[j]
    oldest = max(0, n_pairs - MEMORY)
    for pair in range(n_pairs - 1, oldest - 1, -1):
        at = pair % MEMORY
        alpha[at] = _dot(S[at], q) * rho[at]
        for j in range(len(q)):
            q[j] -= alpha[at] * Y[at, j]
    scale = 1.0
    if n_pairs > 0:
        last, curved = Y[(n_pairs - 1) % MEMORY], 0.0
        for j in range(len(q)):
            curved += last[j] * H[j] * last[j]
        scale = 1.0 / (rho[(n_pairs - 1) % MEMORY] * curved)
    for j in range(len(q)):
        q[j] *= scale * H[j]
    if c > 1:  # parameters that sum to 0 over the classes: so are the gradients, and so is the optimum
        for j in range(width):
            mean = 0.0
            for k in range(c):
                mean += out[k, j] / c
            for k in range(c):
                out[k, j] -= mean
    for pair in range(oldest, n_pairs):
        at = pair % MEMORY
        beta = alpha[at] - _dot(Y[at], q) * rho[at]
        for j in range(len(q)):
            q[j] += beta * S[at, j]
    return _dot(flat, q)


@inner(fastmath=REORDERED)
def _remember(
    t: float, direction: Floats, g: Floats, last: Floats, S: Floats, Y: Floats, rho: Floats, n_pairs: int
) -> int:
    """Keep a step and the change of the gradient, if that shows curvature; return how many were kept."""
    at, step, new, old = n_pairs % MEMORY, direction.reshape(-1), g.reshape(-1), last.reshape(-1)
    for j in range(len(step)):
        S[at, j] = t * step[j]
        Y[at, j] = new[j] - old[j]
    curved = _dot(S[at], Y[at])
    if curved <= 0.0:
        return n_pairs
    rho[at] = 1.0 / curved
    return n_pairs + 1


@inner(fastmath=REORDERED)
def _zero(a: float, slope_a: float, b: float, slope_b: float) -> float:
    """Where a slope would be 0 if it were linear through two points a < b; infinity if it does not rise."""
    return a - slope_a * (b - a) / (slope_b - slope_a) if slope_b > slope_a else np.inf


@inner(fastmath=REORDERED)
def _penalty(a: Floats, b: Floats) -> float:
    """Inner product of two sets of parameters (c, D + 1) without the intercepts."""
    total = 0.0
    for k in range(len(a)):
        total += _dot(a[k, :-1], b[k, :-1])
    return total


@inner(fastmath=REORDERED)
def _line_search(
    theta: Floats, direction: Floats, nll: float, slope: float, ridge: float,
    T: Floats, dT: Floats, y: Codes, w: Floats, trial: Floats, residual: Floats, work: Floats,
) -> tuple[float, float]:  # fmt: skip
    """Return a step that meets the strong Wolfe conditions and the mean nll there; step 0 if none is found.

    The objective is convex: where its slope is not positive it has decreased, however little.
    """
    inner, square = ridge * _penalty(theta, direction), ridge * _penalty(direction, direction)
    noise = ROUNDING * (nll + ridge * _penalty(theta, theta))
    low, slope_low, high, slope_high, t = 0.0, slope, np.inf, 0.0, 1.0
    for n_trials in range(MAX_TRIALS + 1):
        value, now = _try(t, T, dT, y, w, trial, residual, work)
        now += inner + t * square
        change = value - nll + t * (inner + 0.5 * t * square)
        enough = change <= SUFFICIENT * t * slope + noise
        if abs(now) <= -CURVATURE * slope and (now <= 0.0 or enough):
            return t, value
        if t == 0.0:
            break
        if now > 0.0:
            high, slope_high = t, now
            aim = _zero(low, slope_low, high, slope_high)
        else:
            aim = _zero(low, slope_low, t, now) if high == np.inf else _zero(t, now, high, slope_high)
            low, slope_low = t, now
        if high == np.inf:
            t = min(max(aim, 1.5 * low), 10.0 * low)
        else:
            t = min(max(aim, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        if n_trials == MAX_TRIALS - 1:
            t = 0.0  # what `trial` and `residual` hold is then true of the present point
    return 0.0, nll


@inner(fastmath=REORDERED)
def _gradient_norm(g: Floats, mean: Floats, basis: Floats, enough: float) -> float:
    """Largest entry of the gradient for the caller's own columns, or a lower bound of it above `enough`.

    The first r columns are the caller's d turned by an orthonormal basis (d, r): the largest of d entries is
    at least the Euclidean norm, which no turn changes, over the root of d. The others are as given.
    """
    d, r = basis.shape
    row, largest, shortest = np.empty(len(mean)), 0.0, 0.0
    for k in range(len(g)):
        largest = max(largest, abs(g[k, -1]))
        for j in range(len(mean)):
            row[j] = g[k, j] + mean[j] * g[k, -1]
        for j in range(r, len(mean)):
            largest = max(largest, abs(row[j]))
        shortest = max(shortest, np.sqrt(_dot(row[:r], row[:r]) / max(d, 1)))
        if max(largest, shortest) > enough:
            return max(largest, shortest)
        for j in range(d):
            largest = max(largest, abs(_dot(basis[j], row[:r])))
    return largest


@inner(fastmath=REORDERED)
def _solve(
    A: Floats, T: Floats, y: Codes, w: Floats, mean: Floats, basis: Floats,
    ridge: float, tol: float, max_iter: int, theta: Floats,
) -> tuple[float, float, int]:  # fmt: skip
    """Improve theta (c, D + 1), whose logits are T (c, n), until no entry of the gradient is above tol.

    Returns the mean nll, the gradient's norm and the number of iterations.
    """
    n, (c, width) = len(A), theta.shape
    dT, trial = np.empty((c, n)), np.empty((c, n))
    residual, work = np.empty((max(c, 2), n)), np.empty((3, n))
    g, last = np.empty((c, width)), np.empty((c, width))
    direction, inverse = np.empty((c, width)), np.empty((c, width))
    S, Y, rho = np.empty((MEMORY, c * width)), np.empty((MEMORY, c * width)), np.empty(MEMORY)
    n_pairs, refresh, iteration, t = 0 * n, 0 * n, 0 * n, 0.0  # literals would be types of their own
    nll, _ = _try(0.0, T, T, y, w, trial, residual, work)
    while True:
        _backward(A, residual, g)
        for k in range(c):
            for j in range(width - 1):
                g[k, j] += ridge * theta[k, j]
        if t > 0.0:
            n_pairs = _remember(t, direction, g, last, S, Y, rho, n_pairs)
        norm = _gradient_norm(g, mean, basis, np.inf if iteration >= max_iter else tol)
        if norm <= tol or iteration >= max_iter:
            return nll, norm, iteration
        if iteration == refresh:
            _precondition(A, residual, w, ridge, inverse)
            refresh = max(1, 2 * refresh)
        slope = _direction(g, S, Y, rho, n_pairs, inverse, direction)
        _forward(A, direction, dT)
        t, nll = _line_search(theta, direction, nll, slope, ridge, T, dT, y, w, trial, residual, work)
        iteration += 1
        if t == 0.0:  # start afresh from here; where that has not helped either, rounding is all that is left
            max_iter = max_iter if n_pairs > 0 else iteration
            n_pairs, refresh = 0 * n, iteration
        T, trial, g, last = trial, T, last, g
        for k in range(c):
            for j in range(width):
                theta[k, j] += t * direction[k, j]


@inner(fastmath=REORDERED)
def _gather(Z: Floats, extra: Floats, rows: Codes, w: Floats) -> tuple[Floats, Floats]:
    """Rows of (Z, extra) less their weighted mean (D,), and that mean."""
    r, D = Z.shape[1], Z.shape[1] + extra.shape[1]
    A, mean = np.empty((len(rows), D)), np.zeros(D)
    for i in range(len(rows)):
        for j in range(r):
            A[i, j] = Z[rows[i], j]
        for j in range(r, D):
            A[i, j] = extra[rows[i], j - r]
        for j in range(D):
            mean[j] += w[i] * A[i, j]
    for i in range(len(rows)):
        for j in range(D):
            A[i, j] -= mean[j]
    return A, mean


@entry("i1 i1 i1 i1 f1 f2 f2 f2 f1 f1 i i1 f3 f1 f1 i1", fastmath=REORDERED)
def fit_blocks(
    blocks: Codes, starts: Codes, rows: Codes, slots: Codes, weight: Floats,
    Z: Floats, extra: Floats, basis: Floats, ridge: Floats, tol: Floats, max_iter: int,
    n_logits: Codes, theta: Floats, nll: Floats, norm: Floats, n_iter: Codes,
) -> None:  # fmt: skip
    """Fit one penalised softmax regression to each of some blocks of rows.

    Parameters
    ----------
    blocks : int array (b,)
        Which blocks to fit; the outputs of all others stay as they are.
    starts, rows, slots, weight : arrays (q + 1,), (s,), (s,), (s,)
        The rows in all blocks, see `Blocks`.
    Z, extra : float array (n, r), (n, p)
        Columns of the regression, D = r + p.
    basis : float array (d, r)
        With orthonormal columns; the gradient's norm is that for the columns Z basis'.
    ridge, tol : float array (q,)
        Weight of ||W||^2 / 2 beside the mean negative log-likelihood; largest entry of the gradient at which
        a block is done.
    max_iter : int
    n_logits : int array (q,)
        At least 1 for the blocks to fit.
    theta : float array (q, k, D + 1)
        On entry, coefficients of zero and an intercept, which is the last; on return those of the optimum.
    nll, norm, n_iter : array (q,)
        Filled with the mean negative log-likelihood, the largest entry of the gradient, the iterations.
    """
    for g in blocks:
        here = slice(starts[g], starts[g + 1])
        y, w, own = slots[here], weight[here], theta[g, : n_logits[g]]
        A, mean = _gather(Z, extra, rows[here], w)
        T = np.empty((len(own), len(A)))
        _forward(A, own, T)
        nll[g], norm[g], n_iter[g] = _solve(A, T, y, w, mean, basis, ridge[g], tol[g], max_iter, own)
        for k in range(len(own)):
            own[k, -1] -= _dot(own[k, :-1], mean)


@entry("f2 f2 i1 i1 i1 f1 f f i f3 f1 i1", fastmath=REORDERED)
def fit_shifts(
    Z: Floats, offset: Floats, rows: Codes, starts: Codes, slots: Codes, weight: Floats,
    ridge: float, tol: float, max_iter: int, theta: Floats, norm: Floats, n_iter: Codes,
) -> None:  # fmt: skip
    """Fit one penalised softmax regression with given logits to each block of rows.

    Parameters
    ----------
    Z : float array (n, d)
    offset : float array (c, n)
        The given logits: of the second class where there are two, of every class otherwise.
    rows, slots, weight : arrays (s,)
        Positions, logits of the classes (as in `Blocks`) and weights > 0 of the rows of all blocks, one block
        after the other. A row may occur several times.
    starts : int array (q + 1,)
        Where each block starts; none is empty.
    ridge : float
        Weight of ||W||^2 / 2 beside the total negative log-likelihood.
    tol : float
        A block is done when no entry of the gradient, for centred columns, is above `tol` times its weight.
    max_iter : int
    theta : float array (q, c, d + 1)
        On entry a start, the intercept last; on return the optimum.
    norm, n_iter : array (q,)
        Filled with the largest entry of the gradient over the weight of the block, and the iterations.
    """
    d, nothing = Z.shape[1], np.empty((0, 0))
    for g in range(len(starts) - 1):
        here = slice(starts[g], starts[g + 1])
        at, own, total = rows[here], theta[g], np.sum(weight[here])
        w = weight[here] / total
        A, mean = _gather(Z, nothing, at, w)
        for k in range(len(own)):
            own[k, d] += _dot(own[k, :d], mean)
        T = np.empty((len(own), len(A)))
        _forward(A, own, T)
        for k in range(len(own)):
            for i in range(len(at)):
                T[k, i] += offset[k, at[i]]
        _, norm[g], n_iter[g] = _solve(
            A, T, slots[here], w, np.zeros(d), nothing, ridge / total, tol, max_iter, own
        )
        for k in range(len(own)):
            own[k, d] -= _dot(own[k, :d], mean)


@inner(fastmath=REORDERED)
def _shifted(Z: Floats, offset: float, theta: Floats, i: int) -> float:
    """Return the logit of row i: the given one plus that of theta (r + 1,)."""
    r = len(theta) - 1
    total = offset + theta[r]
    for j in range(r):
        total += Z[i, j] * theta[j]
    return total


@inner(fastmath=REORDERED)
def _log_expit(x: Floats) -> None:
    """Replace x (n,) by log(1 / (1 + exp(-x)))."""
    small, scratch = np.empty(len(x)), np.empty(len(x))
    for i in range(len(x)):
        small[i] = -abs(x[i])
    _exp(small, scratch)
    for i in range(len(x)):
        small[i] += 1.0
    _log(small, scratch)
    for i in range(len(x)):
        x[i] = min(x[i], 0.0) - small[i]


@entry("f2 f2 i1 i1 i1 f3 i f1", fastmath=REORDERED)
def shifted_log_proba(
    Z: Floats, offset: Floats, y: Codes, blocks: Codes, rows: Codes, theta: Floats, card: int, out: Floats
) -> None:
    """Fill out (s,) with the log-probabilities of the classes of some rows under shifted logits.

    Parameters
    ----------
    Z : float array (n, d)
        Of which the first r columns are used.
    offset : float array (c, n)
        Logits as in `fit_shifts`.
    y, blocks : int array (at most n,)
        Class and block of every row; a negative class gives 0, a row of a negative block is not shifted.
    rows : int array (s,)
    theta : float array (q, c, r + 1)
    card : int
        Number of classes.
    """
    logits = np.empty(card)
    for at in range(len(rows)):
        i, g = rows[at], blocks[rows[at]]
        if card == 2:
            logit = _shifted(Z, offset[0, i], theta[g, 0], i) if g >= 0 else offset[0, i]
            out[at] = logit if y[i] > 0 else -logit
            continue
        for k in range(card):
            logits[k] = _shifted(Z, offset[k, i], theta[g, k], i) if g >= 0 else offset[k, i]
        top, total = np.max(logits), 0.0
        for k in range(card):
            total += np.exp(logits[k] - top)
        out[at] = logits[y[i]] - top - np.log(total) if y[i] >= 0 else 0.0
    if card == 2:
        _log_expit(out)
        for at in range(len(rows)):
            out[at] = out[at] if y[rows[at]] >= 0 else 0.0
