"""Normal variables that are known to be positive or negative, all rows at once."""

from __future__ import annotations

import numpy as np

from tuplet.kernels.latents import draw_signed
from tuplet.typing import Codes, Floats


def uniforms(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw uniform numbers that are neither 0 nor 1: all their quantiles are finite."""
    return np.maximum(rng.random(shape), 2.0**-54)


def draw_signed_normal(mean: Floats, scale: float, sign: Codes, rng: np.random.Generator) -> Floats:
    """Draw from N(mean_i, scale^2) restricted to the side of zero that `sign_i` names.

    Parameters
    ----------
    mean : float array (n,)
    scale : float
        Standard deviation, above zero.
    sign : int array (n,)
        1 for positive values, -1 for negative ones, 0 for no restriction.
    rng : Generator

    Returns
    -------
    float array (n,)

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draw = draw_signed_normal(np.array([-50.0, 3.0, 0.5]), 1.0, np.array([1, 1, -1]), rng)
    >>> np.sign(draw).tolist()
    [1.0, 1.0, -1.0]
    """
    mean = np.ascontiguousarray(mean, dtype=float)
    out = np.empty_like(mean)
    draw_signed(mean, float(scale), np.ascontiguousarray(sign, dtype=np.intp), uniforms(mean.shape, rng), out)
    return out
