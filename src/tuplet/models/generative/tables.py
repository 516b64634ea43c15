"""Conditional tables from counts, and the tables over classes that they leave when features are observed.

Missing features are summed out. One without observed features below it has no effect. The others form
groups, joined by common families. All rows with the same group are treated at once: what is observed is put
into their families, and the exact engine sums out the hidden features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError, IntractableError
from tuplet.core.limits import HELD_CELLS, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.inference.engine import Exact
from tuplet.joint.inference.factor import Factor, Problem, absorb
from tuplet.local.base import configurations
from tuplet.models.generative.networks.three_part import ThreePartGraph
from tuplet.structure.parents import ParentSets, topological_order

_ENGINE = Exact()
"""What sums out missing features."""


def beside(classes: Codes, features: Codes) -> Codes:
    """Return codes (n, d + m) of classes and features, in which each column is one piece of memory."""
    rows = np.empty((classes.shape[1] + features.shape[1], len(classes)), dtype=np.int32).T
    rows[:, : classes.shape[1]] = classes
    rows[:, classes.shape[1] :] = features
    return rows


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
        if (size := math.prod(shape)) > HELD_CELLS:
            raise InputError(
                f"The table of {names[v]!r} given its {len(members)} parents would have {size:,} cells; lower"
                " max_parents."
            )
        cells = configurations(codes.T[[*members, v]].T, shape)
        known = cells != UNKNOWN
        weights = None if sample_weight is None else sample_weight[known]
        counts = np.bincount(cells[known], weights, minlength=size).reshape(shape) + float(smoothing)
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
        family = Factor((*members, c), log_tables[c][..., None]).ordered()
        factors[family.scope] += family.log_table
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


class _HiddenGroup(NamedTuple):
    """Hidden features that hang together, and the features whose families hold them so."""

    hidden: tuple[int, ...]
    families: tuple[int, ...]


def touched_families(graph: ThreePartGraph, missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return in which rows (n, m) the family of a feature lacks the feature or one of its feature parents."""
    touched = missing.copy()
    for f, above in enumerate(graph.feature_parents):
        for u in above:
            touched[:, f] |= missing[:, u]
    return touched


def gap_factors(
    graph: ThreePartGraph,
    log_tables: Sequence[Floats],
    cards: Sequence[int],
    codes: Codes,
    names: Sequence[str],
) -> dict[tuple[int, ...], Floats]:
    """Return log-tables over classes, by scope, each (*cards, n): families with missing values, summed out.

    Parameters
    ----------
    codes : array of int, shape (n, m)
        Of the features; `UNKNOWN` where one is missing.
    names : sequence of str
        Of the features.
    """
    factors: dict[tuple[int, ...], Floats] = {}
    for group, rows in _rows_of_groups(graph, codes == UNKNOWN).items():
        for part in _blocks(graph, cards, group, rows):
            for factor in _summed(graph, log_tables, cards, codes[part], group, names):
                shape = tuple(cards[c] for c in factor.scope)
                table = factors.setdefault(factor.scope, np.zeros((*shape, len(codes))))
                table[..., part] += factor.log_table
    return factors


# -- which features hide together --------------------------------------------------------------------------


def _rows_of_groups(
    graph: ThreePartGraph, missing: npt.NDArray[np.bool_]
) -> dict[_HiddenGroup, npt.NDArray[np.intp]]:
    gappy = np.flatnonzero(missing.any(axis=1))
    patterns, inverse = np.unique(missing[gappy], axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(inverse.ravel(), minlength=len(patterns)))[:-1]
    found: dict[_HiddenGroup, list[npt.NDArray[np.intp]]] = {}
    below = _children(graph)
    backwards = topological_order(graph.feature_parents)[::-1]
    for pattern, rows in zip(patterns, np.split(gappy[order], ends), strict=True):
        for group in _groups(graph, below, backwards, pattern):
            found.setdefault(group, []).append(rows)
    return {group: np.concatenate(parts) for group, parts in found.items()}


def _children(graph: ThreePartGraph) -> list[list[int]]:
    below: list[list[int]] = [[] for _ in range(graph.n_features)]
    for f, above in enumerate(graph.feature_parents):
        for u in above:
            below[u].append(f)
    return below


def _groups(
    graph: ThreePartGraph, below: list[list[int]], backwards: Sequence[int], missing: npt.NDArray[np.bool_]
) -> list[_HiddenGroup]:
    """Return the groups of one pattern of missing features (m,) that depend on classes."""
    matters = ~missing  # seen, or above something that is seen
    for f in backwards:
        matters[f] = matters[f] or any(matters[g] for g in below[f])
    hidden = set(np.flatnonzero(missing & matters).tolist())
    groups = []
    while hidden:
        members, families, reach = set(), set(), [min(hidden)]
        while reach:
            f = reach.pop()
            if f not in hidden:
                continue
            hidden.discard(f)
            members.add(f)
            for g in (f, *(g for g in below[f] if matters[g])):
                families.add(g)
                reach += [u for u in (g, *graph.feature_parents[g]) if u in hidden]
        if any(graph.bridge_parents[g] for g in families):
            groups.append(_HiddenGroup(tuple(sorted(members)), tuple(sorted(families))))
    return groups


# -- summing out -------------------------------------------------------------------------------------------


def _blocks(
    graph: ThreePartGraph, cards: Sequence[int], group: _HiddenGroup, rows: npt.NDArray[np.intp]
) -> list[npt.NDArray[np.intp]]:
    """Return the rows in parts, so that the tables of the families of a part stay small."""
    d = graph.n_classes
    free = {*range(d), *(d + f for f in group.hidden)}
    families = [(*graph.parents[d + g], d + g) for g in group.families]
    cells = sum(math.prod(cards[v] for v in family if v in free) for family in families)
    return [rows[block] for block in row_blocks(len(rows), cells)]


def _summed(
    graph: ThreePartGraph,
    log_tables: Sequence[Floats],
    cards: Sequence[int],
    codes: Codes,
    group: _HiddenGroup,
    names: Sequence[str],
) -> list[Factor]:
    """Return the product of the families of a group, its hidden features summed out, as tables of classes."""
    d = graph.n_classes
    features = sorted({u for g in group.families for u in (g, *graph.feature_parents[g])})
    number = {**{c: c for c in range(d)}, **{d + f: d + i for i, f in enumerate(features)}}
    families = tuple(
        Factor(tuple(number[v] for v in (*graph.parents[d + g], d + g)), log_tables[d + g][..., None])
        for g in group.families
    )
    problem = Problem((*cards[:d], *(cards[d + f] for f in features)), families, len(codes), d)
    known = np.hstack([np.full((len(codes), d), UNKNOWN), codes[:, features]])
    try:
        left = _ENGINE.sum_hidden(absorb(problem, known))
    except IntractableError as error:
        name = names[features[(error.variable or d) - d]]
        raise IntractableError(
            f"Summing out the missing feature {name!r} needs a table of more than {_ENGINE.max_table:,}"
            " cells. Fill in some of the missing values of X."
        ) from None
    return [factor.ordered() for factor in left if factor.scope]  # the others weight all outcomes alike
