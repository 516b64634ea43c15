"""Sums over the outcomes of a chain of conditionals, by an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuplet.joint.frontier import Conditional, Frontier, Policy, Walk
from tuplet.joint.splitting import Enumerate, MonteCarlo
from tuplet.typing import UNKNOWN, Codes, Floats


@dataclass(frozen=True)
class Chain:
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
