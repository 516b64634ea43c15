"""Hamiltonian trajectories over correlation matrices; compiled.

With C = E'E the cross-product of N residuals and R their correlation matrix, the log-density of R is

    log p(R) - N / 2 log |R| - 1 / 2 tr(R^-1 C),

so nothing here depends on N but through C. Two ways to write R by free numbers:

*Partial correlations.* R = L L', and row i of L comes from partial correlations tanh(t_ij), j < i. The prior
|R|^(eta - 1) is a product over them, and t, Fisher's transformation, makes the density nearly round.

*Factors.* R_ij = b_i'b_j for i != j with b_i = l_i / sqrt(1 + |l_i|^2): what is left when loadings l_i and a
unit diagonal are normalised. The l_i are standard normal.

A prior of the inverse-Wishart kind adds -dof / 2 sum_i log (R^-1)_ii to the first.
"""

from __future__ import annotations

import numpy as np

from tuplet.core.compiled import entry, inner
from tuplet.core.typing import Floats

FARTHEST = 12.0
"""Fisher's transformation of the largest partial correlation that is worked with, 1 - 8e-11."""


@inner()
def _fill_cholesky(theta: Floats, L: Floats) -> None:
    """Fill L (q, q) from Fisher's transforms (q (q - 1) / 2,) of partial correlations, row by row."""
    at = 0
    for i in range(len(L)):
        left = 1.0
        for j in range(i):
            L[i, j] = np.tanh(theta[at]) * left
            left /= np.cosh(theta[at])
            at += 1
        L[i, i] = left


@inner()
def _invert_lower(L: Floats, inverse: Floats) -> None:
    q = len(L)
    for j in range(q):
        inverse[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, q):
            total = 0.0
            for k in range(j, i):
                total += L[i, k] * inverse[k, j]
            inverse[i, j] = -total / L[i, i]


@inner()
def _factorise(R: Floats, L: Floats) -> bool:
    """Fill L with the Cholesky factor of R; False where R is not positive definite."""
    for j in range(len(R)):
        rest = R[j, j]
        for k in range(j):
            rest -= L[j, k] ** 2
        if not rest > 0:
            return False
        L[j, j] = np.sqrt(rest)
        for i in range(j + 1, len(R)):
            total = R[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
    return True


@inner()
def _partial_density(theta: Floats, C: Floats, n: float, eta: float, dof: float, grad: Floats) -> float:
    """Return the log-density of Fisher's transforms and fill its gradient."""
    q = len(C)
    L, M = np.zeros((q, q)), np.zeros((q, q))
    _fill_cholesky(theta, L)
    _invert_lower(L, M)
    weights = C.copy()
    value = 0.0
    for i in range(q if dof > 0 else 0):
        precision = 0.0
        for k in range(i, q):
            precision += M[k, i] ** 2
        value -= 0.5 * dof * np.log(precision)
        # Its gradient is that of a trace with these weights, which themselves add a constant to the value.
        weights[i, i] += dof / precision
    A = M @ weights @ M.T
    for i in range(q):
        value -= 0.5 * A[i, i]
    slope = M.T @ A
    at = 0
    for i in range(q):
        value += _backwards(theta, L, slope, i, at, q, n, eta, grad)
        at += i
    return value


@inner()
def _backwards(
    theta: Floats, L: Floats, slope: Floats, i: int, at: int, q: int, n: float, eta: float, grad: Floats
) -> float:
    """Carry the gradient of row i of L to its transforms; return their prior and determinant terms."""
    value, back = 0.0, slope[i, i]
    left = L[i, i]
    for j in range(i - 1, -1, -1):
        t = theta[at + j]
        z, c = np.tanh(t), 1.0 / np.cosh(t)
        left /= c
        power = eta + 0.5 * (q - 2 - j) - 0.5 * n
        value += 2.0 * power * np.log(c)
        grad[at + j] = left * c * (slope[i, j] * c - back * z) - 2.0 * power * z
        back = slope[i, j] * z + back * c
    return value


@inner()
def _fill_factors(theta: Floats, B: Floats, root: Floats) -> None:
    q, f = B.shape
    for i in range(q):
        total = 1.0
        for k in range(f):
            total += theta[i * f + k] ** 2
        root[i] = np.sqrt(total)
        for k in range(f):
            B[i, k] = theta[i * f + k] / root[i]


@inner()
def _factor_density(theta: Floats, C: Floats, n: float, grad: Floats) -> float:
    """Return the log-density of loadings (q f,) and fill its gradient."""
    q = len(C)
    B, root = np.empty((q, len(theta) // q)), np.empty(q)
    _fill_factors(theta, B, root)
    R = B @ B.T
    for i in range(q):
        R[i, i] = 1.0
    L, M = np.zeros((q, q)), np.zeros((q, q))
    if not _factorise(R, L):
        return -np.inf  # loadings so large that nothing is left of the unit diagonal
    _invert_lower(L, M)
    P = M.T @ M
    PCP = P @ C @ P
    value = -0.5 * np.sum(theta**2)
    for i in range(q):
        value -= n * np.log(L[i, i])
        for j in range(q):
            value -= 0.5 * P[i, j] * C[i, j]
    _carry_factors(PCP - n * P, B, root, grad)
    grad -= theta
    return value


@inner()
def _carry_factors(slope: Floats, B: Floats, root: Floats, grad: Floats) -> None:
    """Carry twice the slope (q, q) of R to the loadings; the diagonal of R is constant."""
    q, f = B.shape
    for i in range(q):
        slope[i, i] = 0.0
    carried = slope @ B
    for i in range(q):
        along = 0.0
        for k in range(f):
            along += carried[i, k] * B[i, k]
        for k in range(f):
            grad[i * f + k] = (carried[i, k] - along * B[i, k]) / root[i]


@inner()
def _density(
    theta: Floats, C: Floats, n: float, eta: float, dof: float, factors: bool, grad: Floats
) -> float:
    if factors:
        return _factor_density(theta, C, n, grad)
    for t in theta:
        if not abs(t) < FARTHEST:
            return -np.inf
    return _partial_density(theta, C, n, eta, dof, grad)


@entry("f1 f2 f f f b")
def density_of(
    theta: Floats, C: Floats, n: float, eta: float, dof: float, factors: bool
) -> tuple[float, Floats]:
    """Return the log-density, but for a constant, and its gradient at free numbers `theta`."""
    grad = np.zeros_like(theta)
    return _density(theta, C, n, eta, dof, factors, grad), grad


@entry("f1 i b")
def correlation_of(theta: Floats, q: int, factors: bool) -> Floats:
    """Return the correlation matrix (q, q) of free numbers `theta`."""
    if factors:
        B, root = np.empty((q, len(theta) // q)), np.empty(q)
        _fill_factors(theta, B, root)
        R = B @ B.T
    else:
        L = np.zeros((q, q))
        _fill_cholesky(theta, L)
        R = L @ L.T
    for i in range(q):
        R[i, i] = 1.0
    return R


@entry("f1 f2 b")
def carry_slope(theta: Floats, slope: Floats, factors: bool) -> Floats:
    """Return the derivatives by free numbers `theta` of what has the symmetric slope (q, q) by R."""
    q, grad = len(slope), np.zeros_like(theta)
    if factors:
        B, root = np.empty((q, len(theta) // q)), np.empty(q)
        _fill_factors(theta, B, root)
        _carry_factors(2.0 * slope, B, root, grad)
        return grad
    L, at = np.zeros((q, q)), 0
    _fill_cholesky(theta, L)
    lower = 2.0 * (slope @ L)
    for i in range(q):
        _backwards(theta, L, lower, i, at, q, 0.0, 0.0, grad)
        for j in range(i):  # without the terms of a determinant, here |R|^-1
            grad[at + j] += (q - 2 - j) * np.tanh(theta[at + j])
        at += i
    return grad


@entry("f1 f1 f2 f f f b f i")
def trajectory(
    theta: Floats,
    momentum: Floats,
    C: Floats,
    n: float,
    eta: float,
    dof: float,
    factors: bool,
    size: float,
    n_steps: int,
) -> tuple[Floats, float]:
    """Follow the Hamiltonian flow by leapfrog steps.

    Returns
    -------
    theta : float array
        Where the trajectory ends.
    log_ratio : float
        Logarithm of the Metropolis ratio; minus infinity where the trajectory left the range of numbers.
    """
    grad = np.zeros_like(theta)
    start = _density(theta, C, n, eta, dof, factors, grad) - 0.5 * np.sum(momentum**2)
    theta, p = theta.copy(), momentum.copy()
    value: float = start
    for _ in range(n_steps):
        p += 0.5 * size * grad
        theta += size * p
        value = _density(theta, C, n, eta, dof, factors, grad)
        if not np.isfinite(value):
            return theta, -np.inf
        p += 0.5 * size * grad
    ratio = value - 0.5 * np.sum(p**2) - start
    return theta, ratio if np.isfinite(ratio) else -np.inf
