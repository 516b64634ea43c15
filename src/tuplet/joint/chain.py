"""Sums over the outcomes of a chain of conditionals.

`ConditionalChain` walks from prefix to prefix. `DenseChain` makes tables of all outcomes at once, where the
conditionals are linear. `Summary` and the functions below it compute
answers from weighted prefixes, part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from tuplet.core.limits import PASS_CELLS, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms, indicator
from tuplet.joint.base import all_outcomes, category_offsets
from tuplet.joint.collect import tally
from tuplet.joint.frontier import Conditional, Frontier, Policy, Walk
from tuplet.joint.linear_chain import LinearChain
from tuplet.joint.policies import Enumerate, MonteCarlo


@dataclass(frozen=True)
class ConditionalChain:
    """A product of conditionals and the engine that sums over it; known values come with each query.

    Parameters
    ----------
    cards, order : tuple of int
    conditional : Conditional
    origin : array, shape (n,)
        Positions of the rows in the batch of the conditional.
    engine : Enumerate or MonteCarlo
    """

    cards: tuple[int, ...]
    order: tuple[int, ...]
    conditional: Conditional
    origin: npt.NDArray[np.intp]
    engine: Enumerate | MonteCarlo

    def known_in_order(self, known: Codes) -> npt.NDArray[np.bool_]:
        """Return which positions of codes (q, m) are known, in the order of the chain."""
        return np.asarray(known[:, self.order] != UNKNOWN)

    def last_known(self, known: Codes) -> npt.NDArray[np.intp]:
        """Return the depth of the last known variable of each query; -1 for none."""
        depth = np.arange(1, len(self.order) + 1)
        return (self.known_in_order(known) * depth).max(axis=1, initial=0) - 1

    def leading(self, known: Codes) -> Codes:
        """Keep of codes (q, m) only the known values that have no free variable before them."""
        mask = np.empty(known.shape, bool)
        mask[:, self.order] = np.logical_and.accumulate(self.known_in_order(known), axis=1)
        return np.where(mask, known, UNKNOWN)

    def exact(self, known: Codes) -> npt.NDArray[np.bool_]:
        """Return whether the probability of the known values (q, m) is found without sampling.

        Under Monte Carlo it still is where no more combinations than points have to be followed.
        """
        if isinstance(self.engine, Enumerate):
            return np.ones(len(known), bool)
        before = np.arange(len(self.order)) < self.last_known(known)[:, None]
        cards = np.array(self.cards, dtype=float)[list(self.order)]
        n_paths = np.where(before & ~self.known_in_order(known), cards, 1.0).prod(axis=1)
        return np.asarray(n_paths <= self.engine.size)

    def reach(self, known: Codes, rows: npt.NDArray[np.intp]) -> Iterator[Frontier]:
        """Walk to the last known value of every query; the masses there add up to its probability.

        Parameters
        ----------
        known : array, shape (q, m)
        rows : array, shape (q,)
            Ascending.
        """
        exact, last = self.exact(known), self.last_known(known)
        exhaustive = self.engine if isinstance(self.engine, Enumerate) else Enumerate(self.engine.size)
        for policy, chosen in ((exhaustive, exact), (self.engine, ~exact)):
            walk = self._walk(known, rows, last, policy)
            yield from walk.run(walk.root(np.flatnonzero(chosen)))

    def log_prob(self, known: Codes, rows: npt.NDArray[np.intp]) -> Floats:
        """Return the log-probability (q,) of the known values of some rows."""
        answer = np.full(len(known), -np.inf)
        for reached in self.reach(known, rows):
            answer[reached.query[reached.starts]] = reached.weights()[1]
        return answer

    def follow(
        self,
        reached: Frontier,
        depth: int,
        policy: Policy | None = None,
        observe: Callable[[Frontier, Floats], None] | None = None,
    ) -> Iterator[Frontier]:
        """Walk on behind the last known value, one query per row, until `depth` variables are fixed."""
        n = len(self.origin)
        free = np.broadcast_to(np.intp(UNKNOWN), (n, len(self.cards)))
        last = np.full(n, max(depth, reached.depth) - 1)
        return self._walk(free, np.arange(n), last, policy or self.engine, observe).run(reached)

    def complete(self, known: Codes, policy: Policy) -> Iterator[Frontier]:
        """Walk to complete outcomes that have the known values (n, m), one query per row."""
        n = len(self.origin)
        walk = self._walk(known, np.arange(n), np.full(n, len(self.cards) - 1), policy)
        return walk.run(walk.root(np.arange(n)))

    def _walk(
        self,
        known: Codes,
        rows: npt.NDArray[np.intp],
        last: npt.NDArray[np.intp],
        policy: Policy,
        observe: Callable[[Frontier, Floats], None] | None = None,
    ) -> Walk:
        return Walk(self.cards, self.order, self.conditional, rows, self.origin, known, last, policy, observe)


@dataclass(frozen=True)
class DenseChain:
    """A chain of which tables of all outcomes are made, a block of rows at a time.

    Parameters
    ----------
    cards, order : tuple of int
    linear : LinearChain
    origin : array, shape (n,)
        Positions of the rows in the batch of the conditional.
    """

    cards: tuple[int, ...]
    order: tuple[int, ...]
    linear: LinearChain
    origin: npt.NDArray[np.intp]

    @cached_property
    def outcomes(self) -> Codes:
        """All outcomes (L, m), in the order of the tables' columns."""
        return all_outcomes(self.cards)

    def tables(
        self, known: Codes, rows: npt.NDArray[np.intp]
    ) -> Iterator[tuple[npt.NDArray[np.intp], Floats]]:
        """Yield blocks of queries and their probabilities (b, L) of all outcomes that agree with `known`.

        Parameters
        ----------
        known : array, shape (q, m)
            Outcomes that do not agree get probability zero; nothing is normalised.
        rows : array, shape (q,)
        """
        for part in row_blocks(len(rows), len(self.outcomes), PASS_CELLS):
            block = np.arange(part.start, part.stop)
            table = self._table(self.origin[rows[block]])
            for j in np.flatnonzero((known[block] != UNKNOWN).any(axis=0)):
                wanted = known[block, j, None]
                table *= (self.outcomes[:, j] == wanted) | (wanted == UNKNOWN)
            yield block, table

    def _table(self, origin: npt.NDArray[np.intp]) -> Floats:
        """Return the probabilities (r, L) of all outcomes."""
        table = self.linear.tables(origin)
        # Variables of one value change nothing; without them there are few enough dimensions for numpy.
        order = [v for v in self.order if self.cards[v] > 1]
        in_order = table.reshape(-1, *(self.cards[v] for v in order))
        natural = in_order.transpose(0, *(1 + order.index(v) for v in sorted(order)))
        return natural.reshape(len(origin), -1)


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
        self.offsets = category_offsets(cards)
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

    def follow(self, part: Frontier, marginals: Floats, entropy: Floats) -> None:
        """Take in what follows prefixes: marginals of the later variables in their order, and entropy."""
        rows, start = part.query[part.starts], 0
        for variable in self.order[part.depth :]:
            self._set(rows, variable, marginals[:, start : start + self.cards[variable]])
            start += self.cards[variable]
        self.entropy[rows] += entropy

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


def tally_pairs(
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


def tally_counts(parts: Iterable[Frontier], variables: Sequence[int], n: int) -> Floats:
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


def stack(parts: Iterable[Frontier], cards: tuple[int, ...], n: int) -> Atoms:
    """Return the outcomes of n rows as atoms; what prefixes leave open is 0 and to be summed out."""
    codes, log_mass = _pad(parts, len(cards), n)
    codes = np.maximum(codes, 0)
    shared = not np.isneginf(log_mass).any() and bool((codes == codes[:1]).all())
    return Atoms(cards, codes[:1] if shared else codes, log_mass)


def _pad(parts: Iterable[Frontier], m: int, n: int) -> tuple[Codes, Floats]:
    """Return the outcomes of n rows, (n, a, m), and their log-masses, (n, a), padded to the longest row."""
    held = [(part.query, part.rank(), part.codes, part.log_mass) for part in parts]
    longest = 1 + max((int(rank.max()) for _, rank, _, _ in held), default=0)
    codes = np.zeros((n, longest, m), dtype=np.intp)
    log_mass = np.full((n, longest), -np.inf)
    for query, rank, outcomes, masses in held:
        codes[query, rank], log_mass[query, rank] = outcomes, masses
    return codes, log_mass
