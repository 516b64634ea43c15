"""Outcomes of rows in which the same variables of a `Probit` are known: tables, the best ones, draws.

All functions take a `Visit` of d known and then f free variables, the scaled means (r, d + f, N) of r rows,
and the known codes (r, d); their answers speak of the free variables alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.joint.atoms import Atoms
from tuplet.joint.base import all_outcomes
from tuplet.joint.probit_points import Visit
from tuplet.kernels.ghk import best_outcomes, draw_outcomes, fill_tables, log_paths
from tuplet.typing import UNKNOWN, Codes, Floats

FEW = 10
"""Free variables up to which all outcomes of a row are evaluated rather than searched."""

_CANDIDATES, _DRAWS = 16, 256
"""A search begins with the most frequent of some draws."""

_TINY = np.finfo(float).tiny
"""No outcome of a normal vector is impossible, however small its probability."""


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


def _drawn(visit: Visit, scaled: Floats, known: Codes, picks: Floats, normals: Floats) -> Codes:
    codes = np.empty((*picks.shape, scaled.shape[1]), dtype=np.intp)
    draw_outcomes(known, scaled, visit.factors, visit.log_u, picks, normals, codes)
    return codes[..., known.shape[1] :]


def best_free(
    visit: Visit, scaled: Floats, known: Codes, k: int, max_nodes: int, seed: int
) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
    """K most probable outcomes (r, k, f), their probabilities (r, k), and which rows are proven (r,)."""
    n_free = scaled.shape[1] - known.shape[1]
    if n_free <= FEW:
        tables = tabulate(visit, scaled, known)
        order = np.argsort(-tables, axis=1, kind="stable")[:, :k]
        codes = all_outcomes((2,) * n_free)[order] if n_free else np.empty((len(scaled), 1, 0), dtype=np.intp)
        return codes, np.take_along_axis(tables, order, axis=1), np.ones(len(scaled), bool)
    codes, best = _candidates(visit, scaled, known, k, seed)
    proven = np.empty(len(scaled), dtype=np.intp)
    best_outcomes(known, scaled, visit.factors, visit.u, visit.log_u, max_nodes, codes, best, proven)
    order = np.argsort(-best, axis=1, kind="stable")
    codes = np.take_along_axis(codes, order[..., None], axis=1)[..., known.shape[1] :]
    return codes, np.take_along_axis(best, order, axis=1), proven == 1


def _candidates(visit: Visit, scaled: Floats, known: Codes, k: int, seed: int) -> tuple[Codes, Floats]:
    """Return k outcomes (r, k, d + f) that a search may begin with, and their probabilities, 0 for none.

    The search goes deep before it goes wide. So a good start is what it lives on should its budget end.
    """
    (r, v), d = scaled.shape[:2], known.shape[1]
    draws = draw_alike(visit, scaled, known, _DRAWS, seed)
    atoms = Atoms.from_draws((2,) * (v - d), draws.transpose(1, 0, 2))
    free = atoms.top_k(max(k, _CANDIDATES)).codes
    codes = np.concatenate([np.repeat(known[:, None], free.shape[1], axis=1), free], axis=2)
    row, rank = np.nonzero((free != UNKNOWN).all(axis=2))
    logs, log_known = np.empty((len(row), 1)), np.zeros((r, 1))
    log_paths(row, codes[row, rank], scaled, visit.factors, visit.log_u, logs)
    if d:
        log_paths(np.arange(r), known, scaled, visit.factors, visit.log_u, log_known)
    best = np.zeros(codes.shape[:2])
    best[row, rank] = np.exp(logs[:, 0] - log_known[row, 0])
    order = np.argsort(-best, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(codes, order[..., None], axis=1), np.take_along_axis(best, order, axis=1)
