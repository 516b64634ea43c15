"""What a `Probit` is made of, checked; and rows divided by what is known of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.joint.probit_points import LazyMeans
from tuplet.typing import UNKNOWN, Codes, Floats

_SIZE = 4096
"""Points that all draws have together, at least, unless told otherwise."""


def patterns(kinds: npt.NDArray[np.generic]) -> Iterator[tuple[npt.NDArray[np.generic], Codes]]:
    """Yield the distinct rows of a matrix (r, q) of small integers, with the positions of each."""
    if not len(kinds) or (kinds == kinds[0]).all():
        if len(kinds):
            yield kinds[0], np.arange(len(kinds))
        return
    distinct, number = np.unique(kinds, axis=0, return_inverse=True)
    order = np.argsort(number, kind="stable")
    starts = np.cumsum(np.bincount(number))
    yield from zip(distinct, np.split(order, starts[:-1]), strict=True)


def check_points(n_points: int | None, n_draws: int) -> int:
    """Return the points of each draw; by default the power of two that makes enough of all draws."""
    if n_points is None:
        return 2 ** max(0, math.ceil(math.log2(_SIZE / n_draws)))
    if n_points < 1:
        raise InputError(f"Probit: n_points must be at least 1, found {n_points}.")
    return int(n_points)


def check_evidence(evidence: npt.ArrayLike | None, shape: tuple[int, int]) -> Codes:
    """Return known values of rows and latent variables; all `UNKNOWN` if there are none."""
    array = np.full(shape, UNKNOWN) if evidence is None else np.asarray(evidence)
    if array.shape != shape or not np.isin(array, (UNKNOWN, 0, 1)).all():
        raise InputError(
            f"Probit: evidence must hold 0, 1 or {UNKNOWN} in the shape {shape}, found an array of shape"
            f" {array.shape}."
        )
    return array.astype(np.intp, copy=False)


def check_correlations(correlations: npt.ArrayLike) -> Floats:
    """Return correlation matrices (D, q, q), or raise where they are none."""
    array = np.asarray(correlations, dtype=float)
    if array.ndim != 3 or array.shape[1] != array.shape[2] or 0 in array.shape:
        raise InputError(f"Probit: correlations must be of shape (D, q, q), found {array.shape}.")
    unit = np.isclose(np.diagonal(array, axis1=1, axis2=2), 1.0, atol=1e-6).all()
    if not unit or not (np.abs(array) <= 1 + 1e-6).all() or not np.allclose(array, array.transpose(0, 2, 1)):
        raise InputError(
            "Probit: correlations must be symmetric matrices of numbers between -1 and 1 with a unit"
            " diagonal; divide a covariance matrix, and the means, by the standard deviations."
        )
    return array


def check_means(means: npt.NDArray | LazyMeans, correlations: Floats) -> None:
    """Raise unless means (D, n, q) fit the correlations (D, q, q)."""
    shape = tuple(means.shape)
    if len(shape) != 3 or (shape[0], shape[2]) != correlations.shape[:2]:
        raise InputError(
            f"Probit: means of shape {shape} do not fit {len(correlations)} correlation matrices of"
            f" {correlations.shape[1]} variables; they must be of shape (D, n, q)."
        )
    if isinstance(means, np.ndarray) and not np.isfinite(means).all():
        raise InputError("Probit: means must be finite numbers.")
