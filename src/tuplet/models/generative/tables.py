"""Conditional tables from counts, and what they say of the classes when features are seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.networks import ThreePartGraph
from tuplet.structure import ParentSets
from tuplet.typing import UNKNOWN, Codes, Floats

_LARGEST = 2**26
"""Cells of the largest table of a family that is stored."""


def count_tables(
    parents: ParentSets,
    codes: Codes,
    cards: Sequence[int],
    names: Sequence[str],
    smoothing: float,
    sample_weight: Floats | None = None,
) -> list[Floats]:
    """Return p(variable | parents) of every family, each (*cards of the parents, card of the variable).

    (N_jk + a) / (N_j + a r), counted in the rows in which the whole family is known.

    Parameters
    ----------
    codes : array of int, shape (n, v)
        `UNKNOWN` where a value is missing.
    smoothing : float
        a, pseudo-rows per cell. With 0, a configuration that no row shows gets equal probabilities.
    """
    tables = []
    for v, members in enumerate(parents):
        shape = [cards[u] for u in (*members, v)]
        if (size := math.prod(shape)) > _LARGEST:
            raise InputError(
                f"The table of {names[v]!r} given its {len(members)} parents would have {size:,} cells; lower"
                " max_parents."
            )
        family = codes[:, (*members, v)]
        known = (family != UNKNOWN).all(axis=1)
        cells = np.ravel_multi_index(tuple(family[known].T), shape)
        weights = None if sample_weight is None else sample_weight[known]
        counts = np.bincount(cells, weights, minlength=size).reshape(shape) + float(smoothing)
        totals = counts.sum(axis=-1, keepdims=True)
        tables.append(np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), 1.0 / shape[-1]))
    return tables


def known_factors(
    graph: ThreePartGraph,
    log_tables: Sequence[Floats],
    cards: Sequence[int],
    codes: Codes,
    touched: npt.NDArray[np.bool_] | None = None,
) -> dict[tuple[int, ...], Floats]:
    """Return log-tables over classes, by scope, each (*cards of the scope, n): all families with classes.

    Families of the same classes are one table, so that less is left to multiply for every row. The scopes are
    those of the graph, whatever the rows: what is planned for them once serves always.

    Parameters
    ----------
    codes : array of int, shape (n, m)
        Of the features.
    touched : array of bool, shape (n, m), optional
        Families of features that are left out in a row because a value is missing.
    """
    d, n = graph.n_classes, len(codes)
    factors = {scope: np.zeros((*[cards[c] for c in scope], n)) for scope in graph.scopes}
    for c, members in enumerate(graph.class_parents):
        scope = (*members, c)
        order = np.argsort(scope)
        factors[tuple(sorted(scope))] += log_tables[c].transpose(order)[..., None]
    for f, (scope, above) in enumerate(zip(graph.bridge_parents, graph.feature_parents, strict=True)):
        if not scope:
            continue
        index = np.zeros(n, dtype=np.intp)
        for u in (*above, f):
            index = index * cards[d + u] + np.maximum(codes[:, u], 0)
        shape = tuple(cards[c] for c in scope)
        seen = log_tables[d + f].reshape(math.prod(shape), -1).take(index, axis=1)
        if touched is not None:
            seen[:, touched[:, f]] = 0.0
        factors[scope] += seen.reshape(*shape, n)
    return factors
