"""Many softmax regressions that shift given logits, by preconditioned conjugate gradients; compiled.

For one block of rows with weights w_i, logits o_i that are given, and columns Z, the objective is

    F(W, b) = sum_i w_i nll_i(o_i + W z_i + b) + ridge / 2 ||W||^2.

A shift is small where the given logits are good: from W = 0 a few steps suffice. Nonlinear conjugate
gradients (Polak and Ribiere, never negative) take one product with Z and one with its transpose for each of
them, and need no memory of earlier steps. The columns are centred within the block, so that the intercept
does not disturb a diagonal preconditioner. Along a direction logits are linear: a trial step costs n
exponentials, and the first guess is Newton's, since slope and curvature are known.

Like all compiled functions here, everything stands in one file: numba's cache notices no changes elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from tuplet.typing import Codes, Floats

__all__ = ["fit_shifts"]

ENOUGH = 0.2
"""Share of the slope at which a step along a direction is taken."""
MAX_TRIALS = 25
FARTHEST = 20.0
"""Nats that the first trial of a direction moves a logit at most: where probabilities are saturated there is
next to no curvature, and Newton's step would leave the range of numbers."""
REFRESH = 12
"""Iterations after which the preconditioner is made anew and the directions start afresh."""

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(**options: bool) -> Callable[[F], F]:
    # Sums may be reordered, so that they run in vector registers; infinities and NaN keep their meaning.
    fast = {"reassoc", "contract", "nsz", "arcp"}
    return cast(
        "Callable[[F], F]", cast("Any", njit)(nogil=True, error_model="numpy", fastmath=fast, **options)
    )


def _loop(function: F) -> F:
    return _compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


@_loop
def _residuals(T: Floats, y: Codes, w: Floats, R: Floats) -> None:
    """Fill R (c, n) with w_i (p_ik - [y_i = k]) for logits T (c, n); one logit is that of class 1."""
    c, n = T.shape
    if c == 1:
        for i in range(n):
            R[0, i] = w[i] * (1.0 / (1.0 + np.exp(-T[0, i])) - y[i])
        return
    for i in range(n):
        top, total = T[0, i], 0.0
        for k in range(1, c):
            top = max(top, T[k, i])
        for k in range(c):
            R[k, i] = np.exp(T[k, i] - top)
            total += R[k, i]
        for k in range(c):
            R[k, i] *= w[i] / total
        R[y[i], i] -= w[i]


@_loop
def _curvature(R: Floats, y: Codes, w: Floats, dT: Floats) -> float:
    """Second derivative of the sum of w_i nll_i along dT (c, n), from the residuals (c, n) alone."""
    c, n = R.shape
    answer = 0.0
    for i in range(n):
        if c == 1:
            r = abs(R[0, i])
            answer += r * (1.0 - r / w[i]) * dT[0, i] * dT[0, i]
        else:
            mean, square = 0.0, 0.0
            for k in range(c):
                p = R[k, i] + (w[i] if y[i] == k else 0.0)
                mean += p * dT[k, i]
                square += p * dT[k, i] * dT[k, i]
            answer += square - mean * mean / w[i]
    return answer


@_loop
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@_loop
def _forward(A: Floats, theta: Floats, out: Floats) -> None:
    """Fill out (c, n) with the products of theta (c, d + 1) and (A, 1)."""
    n, d = A.shape
    for i in range(n):
        for k in range(len(theta)):
            total = theta[k, d]
            for j in range(d):
                total += A[i, j] * theta[k, j]
            out[k, i] = total


@_loop
def _backward(A: Floats, R: Floats, ridge: float, theta: Floats, out: Floats) -> None:
    """Fill out (c, d + 1) with the gradient R (A, 1) + ridge (W, 0)."""
    n, d = A.shape
    for k in range(len(out)):
        for j in range(d):
            out[k, j] = ridge * theta[k, j]
        out[k, d] = 0.0
    even = n - n % 4
    for i in range(0, even, 4):
        for k in range(len(out)):
            r0, r1, r2, r3 = R[k, i], R[k, i + 1], R[k, i + 2], R[k, i + 3]
            for j in range(d):
                out[k, j] += r0 * A[i, j] + r1 * A[i + 1, j] + r2 * A[i + 2, j] + r3 * A[i + 3, j]
            out[k, d] += r0 + r1 + r2 + r3
    for i in range(even, n):
        for k in range(len(out)):
            for j in range(d):
                out[k, j] += R[k, i] * A[i, j]
            out[k, d] += R[k, i]


@_loop
def _precondition(A: Floats, R: Floats, w: Floats, ridge: float, out: Floats) -> None:
    """Fill out (c, d + 1) with the inverse diagonal of the Hessian."""
    n, d = A.shape
    c = len(out)
    for k in range(c):
        for j in range(d):
            out[k, j] = ridge
        out[k, d] = 0.0
    for i in range(n):
        for k in range(c):
            p = abs(R[k, i]) / w[i]
            h = w[i] * p * (1.0 - p)
            for j in range(d):
                out[k, j] += h * A[i, j] * A[i, j]
            out[k, d] += h
    largest = 1e-6 * np.sum(w)  # saturated rows have no curvature, but the inverse must be finite
    for k in range(c):
        for j in range(d + 1):
            largest = max(largest, out[k, j])
    for k in range(c):
        for j in range(d + 1):
            out[k, j] = 1.0 / max(out[k, j], 1e-10 * largest)


@_loop
def _step(
    T: Floats, dT: Floats, y: Codes, w: Floats, slope: float, linear: float, square: float,
    trial: Floats, R: Floats,
) -> float:  # fmt: skip
    """Return a step along dT that leaves little slope; fill `trial` and R with logits and residuals there.

    `linear` + t `square` is what the ridge adds to the slope. The objective is convex: its slope rises.
    """
    low, high, slope_low, slope_high = 0.0, np.inf, slope, 0.0
    t = min(-slope / (_curvature(R, y, w, dT) + square), FARTHEST / _largest(dT))
    tried = t
    for _ in range(MAX_TRIALS):
        tried = t  # what `trial` and R belong to when there are no trials left
        for k in range(len(T)):
            for i in range(T.shape[1]):
                trial[k, i] = T[k, i] + t * dT[k, i]
        _residuals(trial, y, w, R)
        now = linear + t * square
        for k in range(len(T)):
            now += _dot(R[k], dT[k])
        if abs(now) <= -ENOUGH * slope:
            break
        if now > 0.0:
            high, slope_high = t, now
        else:
            low, slope_low = t, now
        if high == np.inf:
            t = min(-now / (_curvature(R, y, w, dT) + square), 4.0 * t) + t
        else:  # where a line through both slopes is zero, kept away from both ends
            aim = low - slope_low * (high - low) / (slope_high - slope_low)
            t = min(max(aim, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return tried


@_loop
def _largest(a: Floats) -> float:
    answer = 0.0
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            answer = max(answer, abs(a[k, j]))
    return answer


@_loop
def _turn(g: Floats, last: Floats, inverse: Floats, before: float, direction: Floats) -> tuple[float, float]:
    """Turn the direction (c, d + 1) to the next conjugate one; return the slope along it and g' inverse g.

    `last` is the gradient before and `before` its length in the same sense; 0 starts afresh.
    """
    c, width = g.shape
    length, mixed = 0.0, 0.0
    for k in range(c):
        for j in range(width):
            length += inverse[k, j] * g[k, j] * g[k, j]
            if before > 0.0:
                mixed += inverse[k, j] * g[k, j] * last[k, j]
    beta = max(0.0, (length - mixed) / before) if before > 0.0 else 0.0
    slope = 0.0
    for k in range(c):
        for j in range(width):
            direction[k, j] = beta * direction[k, j] - inverse[k, j] * g[k, j]
            slope += direction[k, j] * g[k, j]
    if slope >= 0.0:
        slope = -length
        for k in range(c):
            for j in range(width):
                direction[k, j] = -inverse[k, j] * g[k, j]
    return slope, length


@_loop
def _solve(
    A: Floats, T: Floats, y: Codes, w: Floats, ridge: float, goal: float, max_iter: int, theta: Floats
) -> tuple[float, int]:
    """Improve theta (c, d + 1), whose logits are T (c, n), until no entry of the gradient is above the goal.

    Returns the largest entry and the number of iterations.
    """
    (c, n), width = T.shape, theta.shape[1]
    R, trial, dT = np.empty((c, n)), np.empty((c, n)), np.empty((c, n))
    g, last, inverse = np.empty((c, width)), np.empty((c, width)), np.empty((c, width))
    direction = np.zeros((c, width))
    iteration, before = 0 * n, 0.0  # a literal would be a type of its own
    _residuals(T, y, w, R)
    while True:
        _backward(A, R, ridge, theta, g)
        norm = _largest(g)
        if norm <= goal or iteration >= max_iter:
            return norm, iteration
        if iteration % REFRESH == 0:
            _precondition(A, R, w, ridge, inverse)
            before = 0.0
        slope, length = _turn(g, last, inverse, before, direction)
        linear, square = 0.0, 0.0
        for k in range(c):
            linear += ridge * _dot(theta[k, :-1], direction[k, :-1])
            square += ridge * _dot(direction[k, :-1], direction[k, :-1])
        _forward(A, direction, dT)
        t = _step(T, dT, y, w, slope, linear, square, trial, R)
        for k in range(c):
            for j in range(width):
                theta[k, j] += t * direction[k, j]
        T, trial, g, last, before = trial, T, last, g, length
        iteration += 1


@_loop
def _gather(Z: Floats, rows: Codes, weight: Floats) -> tuple[Floats, Floats]:
    """Rows of Z less their weighted mean (d,), and that mean."""
    n, d = len(rows), Z.shape[1]
    A, mean, total = np.empty((n, d)), np.zeros(d), 0.0
    for i in range(n):
        total += weight[i]
        for j in range(d):
            A[i, j] = Z[rows[i], j]
            mean[j] += weight[i] * A[i, j]
    for j in range(d):
        mean[j] /= total
    for i in range(n):
        for j in range(d):
            A[i, j] -= mean[j]
    return A, mean


@_compiled(cache=True)
def fit_shifts(
    Z: Floats, offset: Floats, rows: Codes, starts: Codes, labels: Codes, weight: Floats,
    ridge: float, tol: float, max_iter: int, theta: Floats, norm: Floats, n_iter: Codes,
) -> None:  # fmt: skip
    """Fit one regression with given logits to each block of rows.

    Parameters
    ----------
    Z : float array (n, d)
    offset : float array (c, n)
        The given logits: of class 1 where there are two classes, of every class otherwise.
    rows, labels, weight : arrays (s,)
        Positions, classes and weights > 0 of the rows of all blocks, one block after the other. A row may
        occur several times.
    starts : int array (q + 1,)
        Where each block starts; none is empty.
    ridge : float
    tol : float
        A block is done when no entry of the gradient is above `tol` times its weight.
    max_iter : int
    theta : float array (q, c, d + 1)
        On entry a start, the intercept last; on return the optimum.
    norm, n_iter : array (q,)
        Filled with the largest entry of the gradient over the weight of the block, and the iterations.
    """
    c, d = len(offset), Z.shape[1]
    for g in range(len(starts) - 1):
        here = slice(starts[g], starts[g + 1])
        at, y, w, own = rows[here], labels[here], weight[here], theta[g]
        A, mean = _gather(Z, at, w)
        for k in range(c):
            own[k, d] += _dot(own[k, :d], mean)
        T, total = np.zeros((c, len(at))), 0.0
        if np.any(own != 0.0):
            _forward(A, own, T)
        for i in range(len(at)):
            total += w[i]
            for k in range(c):
                T[k, i] += offset[k, at[i]]
        norm[g], n_iter[g] = _solve(A, T, y, w, ridge, tol * total, max_iter, own)
        norm[g] /= total
        for k in range(c):
            own[k, d] -= _dot(own[k, :d], mean)
