"""Answers read off weighted outcomes, as an `Autoregressive` yields them part by part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tuplet.joint.atoms import Atoms
from tuplet.joint.frontier import Frontier
from tuplet.typing import Codes, Floats

__all__ = ["count_marginals", "pad", "pairwise", "stack", "tally"]


def tally(part: Frontier, values: npt.NDArray[np.intp], card: int, weights: Floats) -> Floats:
    """Add up weights (r,) by query and by value in 0..card - 1, shape (queries present, card)."""
    n_queries = len(part.starts)
    flat = np.bincount(part.number * card + values, weights, minlength=n_queries * card)
    return flat.reshape(n_queries, card).astype(float, copy=False)


def pairwise(
    parts: Iterable[Frontier], cards: Sequence[int], variables: Sequence[int], n: int
) -> dict[tuple[int, int], Floats]:
    """Return the joint probabilities of all pairs of some variables; see `JointDistribution.pairwise`."""
    sizes = [cards[v] for v in variables]
    places = [(i, j) for i in range(len(sizes)) for j in range(i + 1, len(sizes))]
    pairs = {(i, j): np.zeros((n, sizes[i], sizes[j])) for i, j in places}
    for part in parts:
        weights, _ = part.weights()
        rows = part.query[part.starts]
        columns = part.codes.T[list(variables)]  # contiguous, each is read many times
        for i, j in places:
            table = tally(part, columns[i] * sizes[j] + columns[j], sizes[i] * sizes[j], weights)
            pairs[i, j][rows] = table.reshape(-1, sizes[i], sizes[j])
    return pairs


def count_marginals(parts: Iterable[Frontier], variables: Sequence[int], n: int) -> Floats:
    """Return P(Y_j = 1 and s of some variables are 1), shape (n, m, m + 1)."""
    m = len(variables)
    answer = np.zeros((n, m, m + 1))
    for part in parts:
        weights, _ = part.weights()
        positive = part.codes.T[list(variables)] == 1
        n_positive = positive.sum(axis=0)
        for j in range(m):
            table = tally(part, n_positive, m + 1, weights * positive[j])
            answer[part.query[part.starts], j] = table
    return answer


def pad(parts: Iterable[Frontier], m: int, n: int) -> tuple[Codes, Floats]:
    """Return the outcomes of n rows, (n, a, m), and their log-masses, (n, a), padded to the longest row."""
    held = [(part.query, part.rank(), part.codes, part.log_mass) for part in parts]
    longest = 1 + max((int(rank.max()) for _, rank, _, _ in held), default=0)
    codes = np.zeros((n, longest, m), dtype=np.intp)
    log_mass = np.full((n, longest), -np.inf)
    for query, rank, outcomes, masses in held:
        codes[query, rank], log_mass[query, rank] = outcomes, masses
    return codes, log_mass


def stack(parts: Iterable[Frontier], cards: tuple[int, ...], n: int) -> Atoms:
    """Return the outcomes of n rows as atoms."""
    codes, log_mass = pad(parts, len(cards), n)
    shared = not np.isneginf(log_mass).any() and bool((codes == codes[:1]).all())
    return Atoms(cards, codes[:1] if shared else codes, log_mass)
