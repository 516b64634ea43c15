"""Orthants of normal vectors: the points at which they are integrated, and the outcomes of some rows.

The functions on outcomes (tables, the best ones, draws) take rows in which the same variables are known: a
`Visit` of d known and then f free variables, the scaled means (r, d + f, D) of r rows, and the known codes
(r, d). Their answers cover the free variables only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import all_outcomes
from tuplet.joint.ghk_kernels import draw_outcomes, fill_tables, log_paths, search_outcomes

_FLOOR = 1e-8
"""Least variance of a variable given the ones before it. A singular matrix is met as if its variables had
this much noise of their own, which no probability shows and which keeps every number finite."""

_LANES = 256
"""Points along which a loop should run at least."""

_KEPT_VISITS = 4
"""Orders of the variables whose factors are remembered."""

FEW = 10
"""Free variables up to which all outcomes of a row are evaluated rather than searched."""

_MOST_SEARCHED = 1
"""Outcomes for each of few free variables up to which the best are searched rather than tabulated."""

_CANDIDATES, _START_DRAWS = 16, 256
"""A search begins with the most frequent of some draws."""

_TINY = np.finfo(float).tiny
"""No outcome of a normal vector is impossible, however small its probability."""


@runtime_checkable
class LazyMeans(Protocol):
    """Means (D, n, q) that are computed on demand, some rows at a time."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Draws, rows and variables."""

    def rows(self, index: npt.NDArray[np.intp]) -> Floats:
        """Return the means (D, r, q) of some rows (r,)."""


def unit_points(n_draws: int, n_points: int, dimensions: int, seed: int) -> Floats:
    """Quasi-random points in the open unit cube, those of a draw together, (dimensions, n_draws * n_points).

    They are scrambled Sobol points: any 2^k of them that follow one another, from a multiple of 2^k on, are
    well spread, so those of a draw are, and those of all draws too. The points of a single draw need not be a
    power of two in number: their first coordinate is evenly spaced, which then halves the error.

    Examples
    --------
    >>> unit_points(1, 5, 2, seed=0)[0].round(1).tolist()
    [0.1, 0.3, 0.5, 0.7, 0.9]
    """
    n = n_draws * n_points
    even = int(n_draws == 1)
    points = np.empty((dimensions, n))
    points[:even] = (np.arange(n) + 0.5) / n
    if dimensions > even:
        sobol = qmc.Sobol(dimensions - even, rng=np.random.default_rng(seed))
        points[even:] = sobol.random_base2(math.ceil(math.log2(n)))[:n].T
    # What falls on the border of the cube has no finite normal quantile.
    return np.clip(points, 1e-15, 1 - 1e-15)


@dataclass(frozen=True)
class Visit:
    """All points and factors for visiting v variables in some order; see `tuplet.joint.ghk_kernels`.

    Attributes
    ----------
    order : tuple of int
        Latent variables.
    factors : array, shape (v, v, D n_copies)
    u, log_u : arrays, shape (v - 1, N)
        One point of each draw, then the next one of each.
    n_copies : int
        Points of each draw for which the factors are repeated: loops along few draws would be slow.
    """

    order: tuple[int, ...]
    factors: Floats
    u: Floats
    log_u: Floats
    n_copies: int

    @classmethod
    def make(cls, correlations: Floats, order: tuple[int, ...], points: Floats, n_points: int) -> Visit:
        """Factorise the correlations (D, q, q) of some variables.

        `points` (v - 1 or more, D n_points) hold the points of a draw together.
        """
        chosen = list(order)
        factors = _factorise(correlations[:, chosen][:, :, chosen])
        some = points[: max(0, len(order) - 1)]
        turned = some.reshape(len(some), len(correlations), n_points).transpose(0, 2, 1)
        u = np.ascontiguousarray(turned).reshape(some.shape)
        n_copies = math.gcd(n_points, 2 ** max(0, math.ceil(math.log2(_LANES / len(correlations)))))
        return cls(order, _copies(factors, n_copies), u, np.log(u), n_copies)

    def scale(self, means: Floats) -> Floats:
        """Scale the means (D, r, q) of some rows for the kernels, (r, v, D n_copies)."""
        chosen = np.asarray(means, dtype=float)[:, :, list(self.order)].transpose(1, 2, 0)
        scaled = _copies(chosen, self.n_copies)
        scaled *= np.diagonal(self.factors).T
        return scaled


class Points:
    """Draws of correlation matrices with quasi-random points, visited in any order of the variables.

    Parameters
    ----------
    correlations : array, shape (D, q, q)
    n_points : int
        Points of each draw.
    seed : int
        Scrambles the points.
    """

    def __init__(self, correlations: Floats, n_points: int, seed: int) -> None:
        self.correlations, self.n_points, self.seed = correlations, n_points, seed
        self.size = len(correlations) * n_points
        self._points: Floats | None = None
        self._visits: dict[tuple[int, ...], Visit] = {}

    def visit(self, order: tuple[int, ...]) -> Visit:
        """Return what it takes to visit some variables in this order."""
        if order not in self._visits:
            if self._points is None:
                self._points = unit_points(
                    len(self.correlations), self.n_points, self.correlations.shape[1] - 1, self.seed
                )
            if len(self._visits) >= _KEPT_VISITS:
                self._visits.pop(next(iter(self._visits)))
            self._visits[order] = Visit.make(self.correlations, order, self._points, self.n_points)
        return self._visits[order]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_points": None, "_visits": {}}


def tabulate(visit: Visit, scaled: Floats, known: Codes) -> Floats:
    """Probabilities (r, 2 ** f) of all outcomes, the last variable running fastest."""
    tables = np.empty((len(scaled), 2 ** (scaled.shape[1] - known.shape[1])))
    fill_tables(known, scaled, visit.factors, visit.u, visit.log_u, tables)
    return np.maximum(tables, _TINY)


def draw_free(visit: Visit, scaled: Floats, known: Codes, size: int, rng: np.random.Generator) -> Codes:
    """Independent draws (r, size, f)."""
    (r, v), d = scaled.shape[:2], known.shape[1]
    return _drawn(visit, scaled, known, rng.random((r, size)), rng.standard_normal((r, size, v - d)))


def draw_alike(visit: Visit, scaled: Floats, known: Codes, size: int, seed: int) -> Codes:
    """Draws (r, size, f) by the same random numbers in every row: a row's own do not depend on the others."""
    (r, v), d, rng = scaled.shape[:2], known.shape[1], np.random.default_rng(seed)
    picks, normals = rng.random((1, size)), rng.standard_normal((1, size, v - d))
    return _drawn(visit, scaled, known, np.repeat(picks, r, axis=0), np.repeat(normals, r, axis=0))


def best_free(
    visit: Visit, scaled: Floats, known: Codes, k: int, max_nodes: int, seed: int
) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
    """K most probable outcomes (r, k, f), their probabilities (r, k), and which rows are proven (r,)."""
    n_free = scaled.shape[1] - known.shape[1]
    if n_free <= FEW and k > _MOST_SEARCHED * n_free:
        return _best_of_tables(visit, scaled, known, k)
    if n_free > FEW:
        codes, best = _candidates(visit, scaled, known, k, seed)
    else:  # few enough to find and prove the best ones without a start, whatever it takes
        codes, best = np.zeros((len(scaled), k, scaled.shape[1]), np.intp), np.zeros((len(scaled), k))
        max_nodes = 2 ** (FEW + 1)
    proven = np.empty(len(scaled), dtype=np.intp)
    search_outcomes(known, scaled, visit.factors, visit.u, visit.log_u, max_nodes, codes, best, proven)
    best = np.maximum(best, _TINY)
    order = np.argsort(-best, axis=1, kind="stable")
    codes = np.take_along_axis(codes, order[..., None], axis=1)[..., known.shape[1] :]
    return codes, np.take_along_axis(best, order, axis=1), proven == 1


def _best_of_tables(
    visit: Visit, scaled: Floats, known: Codes, k: int
) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
    tables = tabulate(visit, scaled, known)
    order = np.argsort(-tables, axis=1, kind="stable")[:, :k]
    n_free = scaled.shape[1] - known.shape[1]
    codes = all_outcomes((2,) * n_free)[order] if n_free else np.empty((len(scaled), 1, 0), dtype=np.intp)
    return codes, np.take_along_axis(tables, order, axis=1), np.ones(len(scaled), bool)


def _factorise(correlations: Floats) -> Floats:
    """Return L_kj / L_kk below the diagonal and 1 / L_kk on it, (v, v, D), of matrices L L' (D, v, v)."""
    matrices = np.ascontiguousarray(correlations.transpose(1, 2, 0))
    lower = np.zeros_like(matrices)
    v = len(matrices)
    for k in range(v):
        left = matrices[k:, k] - np.einsum("ijd,jd->id", lower[k:, :k], lower[k, :k])
        lower[k, k] = np.sqrt(np.maximum(left[0], _FLOOR))
        lower[k + 1 :, k] = left[1:] / lower[k, k]
    diagonal = np.arange(v)
    inverse = 1 / lower[diagonal, diagonal]
    factors = lower * inverse[:, None]
    factors[diagonal, diagonal] = inverse
    return factors


def _copies(array: Floats, number: int) -> Floats:
    """Repeat the last axis, one entry per draw, as a whole; C-contiguous, as compiled code takes arrays."""
    return np.concatenate([np.array(array, order="C")] * number, axis=-1)


def _drawn(visit: Visit, scaled: Floats, known: Codes, picks: Floats, normals: Floats) -> Codes:
    codes = np.empty((*picks.shape, scaled.shape[1]), dtype=np.intp)
    draw_outcomes(known, scaled, visit.factors, visit.log_u, picks, normals, codes)
    return codes[..., known.shape[1] :]


def _candidates(visit: Visit, scaled: Floats, known: Codes, k: int, seed: int) -> tuple[Codes, Floats]:
    """Return k outcomes (r, k, d + f) that a search may begin with, and their probabilities, 0 for none.

    The search is depth-first, so a good start matters if its budget runs out.
    """
    (r, v), d = scaled.shape[:2], known.shape[1]
    draws = draw_alike(visit, scaled, known, _START_DRAWS, seed)
    atoms = Atoms.from_draws((2,) * (v - d), draws.transpose(1, 0, 2))
    free = atoms.top_k(max(k, _CANDIDATES)).codes
    codes = np.concatenate([np.repeat(known[:, None], free.shape[1], axis=1), free], axis=2)
    row, rank = np.nonzero((free != UNKNOWN).all(axis=2))
    logs, log_known = np.empty((len(row), 1)), np.zeros((r, 1))
    log_paths(row, codes[row, rank], scaled, visit.factors, visit.u, visit.log_u, logs)
    if d:
        log_paths(np.arange(r), known, scaled, visit.factors, visit.u, visit.log_u, log_known)
    best = np.zeros(codes.shape[:2])
    best[row, rank] = np.exp(logs[:, 0] - log_known[row, 0])
    order = np.argsort(-best, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(codes, order[..., None], axis=1), np.take_along_axis(best, order, axis=1)
