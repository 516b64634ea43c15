"""Every network over a few variables: what the searches are compared with."""

from functools import cache
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from tuplet.structure import LocalScores


def subsets(members, largest=None):
    members = tuple(members)
    top = len(members) if largest is None else min(largest, len(members))
    return [chosen for size in range(top + 1) for chosen in combinations(members, size)]


def others(m, child):
    return tuple(v for v in range(m) if v != child)


def mask_of(members):
    return sum(1 << v for v in members)


@cache
def all_networks(m):
    """Parents of every acyclic graph as bit masks, shape (n, m)."""
    choices = [[mask_of(members) for members in subsets(others(m, child))] for child in range(m)]
    graphs = np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(-1, m)
    rest = np.full(len(graphs), (1 << m) - 1)
    for _ in range(m):
        for v in range(m):
            rest = np.where(graphs[:, v] & rest == 0, rest & ~(1 << v), rest)
    return graphs[rest == 0]


def network_of(masks):
    return tuple(tuple(v for v in range(len(masks)) if int(mask) >> v & 1) for mask in masks)


def network_scores(scores):
    """Score of every acyclic graph, minus infinity where it has a set that is not listed."""
    m = scores.n_variables
    tables = np.full((m, 1 << m), -np.inf)
    for child in range(m):
        for members, value in scores.candidates(child):
            tables[child, mask_of(members)] = value
    return tables[np.arange(m), all_networks(m)].sum(axis=1)


def best_score(scores):
    return float(network_scores(scores).max())


def random_scores(rng, m, max_parents=None, scale=3.0, keep=1.0):
    """Scores that tend to grow with the set, so that cycles must be broken."""
    tables = []
    for child in range(m):
        table = {(): float(-scale * rng.random())}
        for members in subsets(others(m, child), max_parents)[1:]:
            if rng.random() < keep:
                table[members] = float(scale * rng.normal() + len(members))
        tables.append(table)
    return LocalScores.of(tables)


def restrict(scores, required=(), forbidden=()):
    """Keep the sets that have all required edges (parent, child) and none of the forbidden ones."""
    families = [{(p, child) for p in scores.members(f)} for f, child in enumerate(scores.children)]
    wanted = [{edge for edge in required if edge[1] == child} for child in scores.children]
    keep = [need <= has and not has & set(forbidden) for has, need in zip(families, wanted, strict=True)]
    return scores.take(np.array(keep))


@st.composite
def local_scores(draw, max_variables=4, always_empty=True):
    """Few variables, any lists of sets; whole numbers make ties."""
    m = draw(st.integers(1, max_variables))
    value = st.one_of(st.integers(-3, 3).map(float), st.floats(-10, 10))
    tables = []
    for child in range(m):
        table = draw(st.dictionaries(st.sampled_from(subsets(others(m, child))), value, min_size=1))
        tables.append({(): draw(value), **table} if always_empty else table)
    return LocalScores.of(tables)
