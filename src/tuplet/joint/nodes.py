"""What a search keeps of every row: its open nodes and the best outcomes found so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.typing import UNKNOWN, Codes, Floats

_SLACK = 1e-12
"""Bounds and outcomes reach the same number by different roundings, each of relative size m * 1e-16. Without
slack every prefix of a tied incumbent would be opened for a gain in the last digit; with it an answer is
optimal up to a factor of 1 + 1e-12 * (1 + |log p|) in probability, far below what any caller compares."""


class Nodes(NamedTuple):
    """Some partial assignments."""

    owner: npt.NDArray[np.intp]  # (r,) position of the row among those searched together
    codes: npt.NDArray[np.signedinteger]  # (r, m), in a type as small as the cardinalities allow
    depth: npt.NDArray[np.intp]  # (r,) number of variables fixed
    bound: Floats  # (r,)

    def take(self, chosen: npt.NDArray[np.generic] | slice) -> Nodes:
        """Return some of the nodes."""
        return Nodes(self.owner[chosen], self.codes[chosen], self.depth[chosen], self.bound[chosen])

    def ranked(self) -> tuple[Nodes, npt.NDArray[np.intp]]:
        """Sort by owner and then best first, ties as they came; also return the ranks within an owner."""
        nodes = self.take(np.lexsort([-self.bound, self.owner]))
        first = np.searchsorted(nodes.owner, nodes.owner)
        return nodes, np.arange(len(first)) - first


class OpenNodes:
    """Open nodes of b rows, in columns: (b, columns) bounds and depths, (b, columns, m) codes.

    A bound of minus infinity is a vacant place. Columns are appended until there are twice as many as a row
    needs, then the best are kept. What is dropped is remembered by its best bound, for the proof.

    Parameters
    ----------
    b, m : int
        Rows and variables.
    capacity : int
        Open nodes of a row that are worth keeping.
    store : dtype
        Type of the codes.
    """

    def __init__(self, b: int, m: int, capacity: int, store: np.dtype[np.signedinteger]) -> None:
        self.capacity = capacity
        self.lost = np.full(b, -np.inf)
        self.used = 1  # at first the empty assignment alone
        self.bound = np.zeros((b, 1))
        self.depth = np.zeros((b, 1), dtype=np.intp)
        self.codes = np.full((b, 1, m), UNKNOWN, store)

    def best(self) -> Floats:
        """Return the best bound (b,) of everything that was not opened."""
        return np.maximum(self.bound.max(axis=1), self.lost)

    def pop(
        self,
        rows: npt.NDArray[np.intp],
        cut: Floats,
        width: int,
        budget: npt.NDArray[np.intp] | None = None,
        depth: int | None = None,
    ) -> Nodes:
        """Take out the best nodes of some rows, of one depth if given, whose bound exceeds the cut (b,)."""
        bound = self.bound[rows, : self.used]
        if depth is not None:
            bound = np.where(self.depth[rows, : self.used] == depth, bound, -np.inf)
        width = min(width, self.used)
        column = np.argpartition(-bound, width - 1, axis=1)[:, :width]
        bound = np.take_along_axis(bound, column, axis=1)
        order = np.argsort(-bound, axis=1, kind="stable")
        column, bound = np.take_along_axis(column, order, axis=1), np.take_along_axis(bound, order, axis=1)
        wanted = bound > cut[rows, None]
        if budget is not None:
            wanted &= np.arange(width) < budget[rows, None]
        owner, place = rows[np.nonzero(wanted)[0]], column[wanted]
        nodes = Nodes(owner, self.codes[owner, place], self.depth[owner, place], bound[wanted])
        self.bound[owner, place] = -np.inf
        return nodes

    def push(self, nodes: Nodes) -> None:
        """Add open nodes."""
        nodes, rank = nodes.ranked()
        room = rank < self.capacity
        self.lose(nodes.owner[~room], nodes.bound[~room])
        nodes, rank = nodes.take(room), rank[room]
        if len(rank):
            extra = int(rank.max()) + 1
            self._make_room(extra)
            place = (nodes.owner, self.used + rank)
            self.bound[place], self.depth[place], self.codes[place] = nodes.bound, nodes.depth, nodes.codes
            self.used += extra

    def lose(self, owner: npt.NDArray[np.intp], bound: Floats) -> None:
        """Note the bounds of nodes that are dropped unopened."""
        np.maximum.at(self.lost, owner, bound)

    def _make_room(self, extra: int) -> None:
        if self.used > self.capacity and self.used + extra > 2 * self.capacity:
            order = np.argpartition(-self.bound[:, : self.used], self.capacity - 1, axis=1)
            keep, drop = order[:, : self.capacity], order[:, self.capacity :]
            self.lose(np.arange(len(drop)), np.take_along_axis(self.bound, drop, axis=1).max(axis=1))
            self.bound = np.take_along_axis(self.bound, keep, axis=1)
            self.depth = np.take_along_axis(self.depth, keep, axis=1)
            self.codes = np.take_along_axis(self.codes, keep[..., None], axis=1)
            self.used = self.capacity
        if self.used + extra > self.bound.shape[1]:
            pad = [(0, 0), (0, self.used + extra)]
            self.bound = np.pad(self.bound, pad, constant_values=-np.inf)
            self.depth = np.pad(self.depth, pad)
            self.codes = np.pad(self.codes, [*pad, (0, 0)])


class Incumbents:
    """The k best outcomes found so far of b rows, best first; of equal ones the first found stays."""

    def __init__(self, b: int, m: int, k: int, store: np.dtype[np.signedinteger]) -> None:
        self.log_prob = np.full((b, k), -np.inf)
        self.codes = np.full((b, k, m), UNKNOWN, store)
        self.cut = np.full(b, -np.inf)  # a bound up to here cannot improve the k best

    def offer_start(self, codes: Codes, log_prob: Floats) -> None:
        """Take distinct outcomes (b, c, m); those of log-probability minus infinity are padding."""
        owner, place = np.nonzero(log_prob > -np.inf)
        outcomes = codes[owner, place].astype(self.codes.dtype)
        depth = np.full(len(owner), codes.shape[2])
        self.offer(Nodes(owner, outcomes, depth, log_prob[owner, place]))

    def offer(self, outcomes: Nodes) -> None:
        """Merge complete assignments into the k best of their rows."""
        better = outcomes.take(outcomes.bound > self.cut[outcomes.owner])
        outcomes, rank = better.take(~self._held(better)).ranked()
        if not len(rank):
            return
        rows, place = np.unique(outcomes.owner, return_inverse=True)
        k = self.log_prob.shape[1]
        values = np.full((len(rows), int(rank.max()) + 1), -np.inf)
        codes = np.full((*values.shape, self.codes.shape[2]), UNKNOWN, self.codes.dtype)
        values[place, rank], codes[place, rank] = outcomes.bound, outcomes.codes
        values = np.concatenate([self.log_prob[rows], values], axis=1)
        codes = np.concatenate([self.codes[rows], codes], axis=1)
        order = np.argsort(-values, axis=1, kind="stable")[:, :k]
        self.log_prob[rows] = np.take_along_axis(values, order, axis=1)
        self.codes[rows] = np.take_along_axis(codes, order[..., None], axis=1)
        worst = self.log_prob[rows, -1]
        full = worst > -np.inf
        self.cut[rows[full]] = worst[full] + _SLACK * (1 + np.abs(worst[full]))

    def _held(self, outcomes: Nodes) -> npt.NDArray[np.bool_]:
        """Return which outcomes are held already: a search meets those again that it started from."""
        # Their values may differ by the rounding of large log-weights, so the codes decide; the gap only says
        # which codes are worth comparing.
        gap = np.abs(self.log_prob[outcomes.owner] - outcomes.bound[:, None])
        which, place = np.nonzero(gap <= 1e-6 * (1 + np.abs(outcomes.bound[:, None])))
        equal = (self.codes[outcomes.owner[which], place] == outcomes.codes[which]).all(axis=1)
        held = np.zeros(len(gap), bool)
        held[which[equal]] = True
        return held
