"""Answers read off weighted outcomes, as an `Autoregressive` yields them part by part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from tuplet.joint.atoms import Atoms, indicator
from tuplet.joint.collect import tally
from tuplet.joint.frontier import Frontier
from tuplet.typing import Codes, Floats


class Summary:
    """Marginals, entropy and effective number of points of n rows, filled in while prefixes are walked.

    Attributes
    ----------
    marginals : array, shape (n, sum of cards)
    entropy : array, shape (n,)
    n_effective : array, shape (n,)
        Points left after weighting by the evidence; infinite where nothing is weighted.
    """

    def __init__(self, cards: tuple[int, ...], order: tuple[int, ...], n: int) -> None:
        self.cards, self.order = cards, order
        self.offsets = np.concatenate([[0], np.cumsum(cards)])
        self.marginals = np.zeros((n, self.offsets[-1]))
        self.entropy = np.zeros(n)
        self.n_effective = np.full(n, np.inf)

    def _set(self, rows: npt.NDArray[np.intp], variable: int, probabilities: Floats) -> None:
        self.marginals[rows, self.offsets[variable] : self.offsets[variable + 1]] = probabilities.clip(0, 1)

    def reach(self, part: Frontier) -> None:
        """Take in prefixes that end at the last known value of their row."""
        weights, log_evidence = part.weights()
        rows = part.query[part.starts]
        self.entropy[rows] = log_evidence - np.add.reduceat(weights * part.log_prob, part.starts)
        if part.count.any():
            self.n_effective[rows] = 1 / np.add.reduceat(weights**2 / part.count, part.starts)
        for variable in self.order[: part.depth]:
            table = tally(part.codes[:, variable], self.cards[variable], weights, part.number)
            self._set(rows, variable, table)

    def take_in(self, rows: npt.NDArray[np.intp], table: Floats, outcomes: Codes) -> None:
        """Take in the probabilities (r, L) of all outcomes (L, m) of some rows, up to a factor."""
        table /= table.sum(axis=1, keepdims=True)
        self.marginals[rows] = (table @ indicator(outcomes, self.cards)).clip(0, 1)
        self.entropy[rows] = entr(table).sum(axis=1)

    def observe(self, live: Frontier, log_p: Floats) -> None:
        """Take in prefixes behind the last known value and their conditional (r, k).

        Conditionals are those of the posterior there: they are averaged, which beats counting children.
        """
        weights, _ = live.weights()
        rows, p = live.query[live.starts], np.exp(log_p)
        self._set(rows, self.order[live.depth], np.add.reduceat(weights[:, None] * p, live.starts))
        self.entropy[rows] += np.add.reduceat(weights * entr(p).sum(axis=1), live.starts)


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
            table = tally(columns[i] * sizes[j] + columns[j], sizes[i] * sizes[j], weights, part.number)
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
            table = tally(n_positive, m + 1, weights * positive[j], part.number)
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
    """Return the outcomes of n rows as atoms; what prefixes leave open is 0 and to be summed out."""
    codes, log_mass = pad(parts, len(cards), n)
    codes = np.maximum(codes, 0)
    shared = not np.isneginf(log_mass).any() and bool((codes == codes[:1]).all())
    return Atoms(cards, codes[:1] if shared else codes, log_mass)
