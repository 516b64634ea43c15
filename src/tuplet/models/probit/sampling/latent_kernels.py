"""Normal variables that are known to be positive or negative; compiled.

A draw X > -t of a standard normal variable is found by inversion from the tail: X = -quantile(U Phi(t)),
which keeps all digits where Phi(t) is small. Where Phi(t) leaves the range of numbers, log Phi is inverted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tuplet.core.compiled import entry, inner
from tuplet.core.typing import Codes, Floats

FAR = 30.0
"""Standard deviations beyond which logarithms of tails are used."""
TINY = float(np.finfo(float).tiny)
HALF, LOG_ROOT = math.sqrt(0.5), 0.5 * math.log(2 * math.pi)

# Rational approximations of Wichura (1988), algorithm AS 241, numerators and denominators from the top power.
_A = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4),
    (1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4),
    (5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)
_C = (
    (
        7.74545014278341407640e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258e0,
    ),
    (3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
    ),
    (6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)
_E = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
    ),
    (2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
    ),
    (1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)


@inner()
def _ratio(x: float, parts: Any) -> float:
    """Quotient of two polynomials of degree 7."""
    a, b, c, d = parts
    top = ((a[0] * x + a[1]) * x + a[2]) * x + a[3]
    top = (((top * x + b[0]) * x + b[1]) * x + b[2]) * x + b[3]
    low = ((c[0] * x + c[1]) * x + c[2]) * x + c[3]
    low = (((low * x + d[0]) * x + d[1]) * x + d[2]) * x + d[3]
    return top / low


@inner()
def _quantile(p: float) -> float:
    """Quantile of the standard normal distribution; p above 0 and below 1."""
    centred = p - 0.5
    if abs(centred) <= 0.425:
        return centred * _ratio(0.180625 - centred * centred, _A)
    r = math.sqrt(-math.log(p if centred < 0 else 1.0 - p))
    value = _ratio(r - 1.6, _C) if r <= 5.0 else _ratio(r - 5.0, _E)
    return -value if centred < 0 else value


@inner()
def _log_tail(x: float) -> float:
    """Logarithm of the upper tail beyond a large x."""
    s = 1.0 / (x * x)
    return -0.5 * x * x - math.log(x) - LOG_ROOT + math.log1p(-s * (1.0 - s * (3.0 - s * (15.0 - s * 105.0))))


@inner()
def _beyond(t: float, u: float) -> float:
    """Distance X - |t| of a draw X from beyond |t| = -t, which is large."""
    goal = math.log(u) + _log_tail(-t)
    x = math.sqrt(t * t - 2.0 * math.log(u))
    for _ in range(4):  # Newton; the slope of the log-tail is nearly -x
        x += (_log_tail(x) - goal) / (x + 1.0 / x)
    return x + t


@inner()
def _draw(t: float, sign: int, u: float) -> float:
    """Distance from zero, in units of the scale, towards the side of `sign`; t is the mean on that scale."""
    if sign == 0:
        return t - _quantile(u)
    if t < -FAR:
        return max(_beyond(t, u), TINY)
    p = u * 0.5 * math.erfc(-t * HALF)
    if p >= 1.0:
        return TINY
    return max(t - _quantile(p), TINY)  # rounding must not take it to the other side


@entry("f1 f i1 f1 f1")
def draw_signed(mean: Floats, scale: float, sign: Codes, uniform: Floats, out: Floats) -> None:
    """Fill `out` (n,) with draws of N(mean, scale^2) on the side of zero that `sign` names.

    Parameters
    ----------
    mean, uniform : float array (n,)
        Uniform numbers are above 0 and below 1.
    scale : float
    sign : int array (n,)
        1, -1, or 0 for both sides.
    """
    for i in range(len(mean)):
        side = -1.0 if sign[i] < 0 else 1.0
        out[i] = side * scale * _draw(side * mean[i] / scale, sign[i], uniform[i])


@entry("f2 i2 f2 f2 f2 f2")
def draw_sweep(
    means: Floats, signs: Codes, precision: Floats, uniforms: Floats, residuals: Floats, latent: Floats
) -> None:
    """Draw all latent variables label by label, each given the others.

    Parameters
    ----------
    means, uniforms : float array (q, n)
    signs : int array (q, n)
    precision : float array (q, q)
        Inverse of the correlation matrix of the residuals.
    residuals, latent : float array (q, n)
        Latent variables less their means, and these themselves; both are replaced.
    """
    q, n = means.shape
    given = np.empty(n)
    for k in range(q):
        variance = 1.0 / precision[k, k]
        given[:] = means[k]
        for j in range(q):
            if j != k:
                weight = -variance * precision[k, j]
                for i in range(n):
                    given[i] += weight * residuals[j, i]
        scale = math.sqrt(variance)
        for i in range(n):
            side = -1.0 if signs[k, i] < 0 else 1.0
            z = side * scale * _draw(side * given[i] / scale, signs[k, i], uniforms[k, i])
            latent[k, i] = z
            residuals[k, i] = z - means[k, i]
