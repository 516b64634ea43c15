"""Best-first branch and bound: the most probable outcomes of every row, with a certificate.

One search serves every form that can bound the completions of a partial assignment. In each round every
unfinished row opens its best nodes, and the bounds of all their children are found at once. `OpenNodes` and
`_Incumbents` are the state: what may still be opened, and the best outcomes found so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.limits import LISTED_CELLS, rows_per_block
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import Ranking

_WIDTH = 32
"""Nodes that a row opens per round. Nodes whose bound exceeds the final answer are opened in any order of
search, so a round that takes several wastes only those between the incumbent and the answer. The number is
fixed, never a share of the batch, so that a row's answer does not depend on the other rows (exact ties of
bounds apart)."""

_BEAM = 16
"""Nodes per depth of the last dive of a row whose budget has ended."""

_BYTES = 8 * LISTED_CELLS
"""Size of the open nodes that are held at once; rows are searched in groups that cannot exceed it."""

_SLACK = 1e-12
"""Bounds and outcomes reach the same number by different roundings, each of relative size m * 1e-16. Without
slack every prefix of a tied incumbent would be opened for a gain in the last digit; with it an answer is
optimal up to a factor of 1 + 1e-12 * (1 + |log p|) in probability, far below what any caller compares."""


@final
@dataclass(frozen=True)
class Search:
    """Budget of a search for the most probable outcomes.

    Parameters
    ----------
    max_nodes : int
        Partial assignments that may be opened per row. A row that would need more gets the best outcomes
        found so far and `proven` False; a last dive along its best open nodes comes on top.

    Examples
    --------
    >>> Search(max_nodes=100)
    Search(max_nodes=100)
    """

    max_nodes: int = 2048

    def __post_init__(self) -> None:
        if self.max_nodes < 0:
            raise InputError(f"Search: max_nodes must not be negative, found {self.max_nodes}.")


def dive_width(k: int) -> int:
    """Return how many nodes per depth the last dive of a search for k outcomes opens."""
    return max(_BEAM, k)


class Expand(Protocol):
    """What a form provides for the search: the bounds of the children of some open nodes."""

    def __call__(
        self, rows: npt.NDArray[np.intp], codes: Codes, variables: npt.NDArray[np.intp], bounds: Floats
    ) -> Floats:
        """Return the bounds (r, k) of the children of r nodes.

        Parameters
        ----------
        rows : array, shape (r,)
            The row of the batch that each node belongs to.
        codes : array, shape (r, m)
            Partial assignments, `UNKNOWN` where still open.
        variables : array, shape (r,)
            The variable that each node branches on; all of them have k values.
        bounds : array, shape (r,)
            The nodes' own bounds, as returned for them by an earlier call (0 for the empty assignment).

        Returns
        -------
        array, shape (r, k)
            Upper bounds on the log-probability of every completion of a child; a child that is complete
            gets its exact log-probability.
        """


def best_first(
    n: int,
    cards: Sequence[int],
    order: Sequence[int],
    expand: Expand,
    k: int,
    settings: Search,
    start: tuple[Codes, Floats] | None = None,
    dive: int = 0,
) -> Ranking:
    """Search the k most probable outcomes of n rows.

    Parameters
    ----------
    n : int
    cards : sequence of int
        Cardinalities of the m variables.
    order : sequence of int
        The order in which variables are fixed.
    expand : Expand
    k : int
    settings : Search
    start : pair of arrays of shapes (n, c, m) and (n, c), optional
        Distinct outcomes to begin with and their exact log-probabilities; minus infinity for padding.
    dive : int
        Before the search, open this many of the best nodes of every depth, down to complete outcomes. Its
        cost is fixed and not charged to the budget.

    Returns
    -------
    Ranking
        `proven` where no open node can hold anything better than the k-th outcome.
    """
    store = np.dtype(np.min_scalar_type(-max(cards)))
    n_open = max(1, settings.max_nodes + dive_width(k) * len(cards))  # what `OpenNodes` holds before it drops
    size = max(1, _BYTES // (len(cards) * store.itemsize * 2 * n_open))
    parts = []
    for rows in [np.arange(a, min(a + size, n)) for a in range(0, max(n, 1), size)]:
        search = _BestFirst(cards, order, expand, k, settings.max_nodes, rows, store)
        if start is not None:
            search.incumbents.offer_start(start[0][rows], start[1][rows])
        parts.append(search.run(dive))
    return Ranking(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class _BestFirst:
    """The search of b rows at once."""

    def __init__(
        self,
        cards: Sequence[int],
        order: Sequence[int],
        expand: Expand,
        k: int,
        max_nodes: int,
        rows: npt.NDArray[np.intp],
        store: np.dtype[np.signedinteger],
    ) -> None:
        self.cards, self.order, self.expand, self.rows = np.asarray(cards), np.asarray(order), expand, rows
        self.budget = np.full(len(rows), max_nodes)
        self.width = dive_width(k)
        # Of the present open nodes no more can be opened than the budget and one dive allow.
        self.open = OpenNodes(len(rows), len(cards), max_nodes + self.width * len(cards), store)
        self.incumbents = _Incumbents(len(rows), len(cards), k, store)

    def run(self, dive: int) -> Ranking:
        active = np.arange(len(self.rows))
        if dive:
            self._dive(active, dive)
        while len(active):
            wave = self.open.pop(active, self.incumbents.cut, _WIDTH, self.budget)
            active = np.unique(wave.owner)
            self.budget -= np.bincount(wave.owner, minlength=len(self.rows))
            self.open.push(self._branch(wave))
        self._dive(np.flatnonzero(~self._proven()), self.width)
        return Ranking(self.incumbents.codes.astype(np.intp), self.incumbents.log_prob, self._proven())

    def _proven(self) -> npt.NDArray[np.bool_]:
        return self.open.best() <= self.incumbents.cut

    def _dive(self, chosen: npt.NDArray[np.intp], width: int) -> None:
        """Open the best nodes of every depth in turn, down to complete outcomes."""
        for depth in range(len(self.cards)):
            wave = self.open.pop(chosen, self.incumbents.cut, width, depth=depth)
            self.open.push(self._branch(wave))

    def _branch(self, wave: Nodes) -> Nodes:
        """Open nodes: return the children that may lead on, and offer the complete ones as answers."""
        card = self.cards[self.order[wave.depth]]
        parts = [wave.take(slice(0))]
        for width in np.unique(card):
            same = np.flatnonzero(card == width)
            step = rows_per_block(int(width))
            parts += [self._children(wave.take(same[a : a + step])) for a in range(0, len(same), step)]
        children = Nodes(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        complete = children.depth == len(self.cards)
        self.incumbents.offer(children.take(complete))
        return children.take(~complete)

    def _children(self, nodes: Nodes) -> Nodes:
        """Return the children of nodes that branch on equally many values."""
        variables, capacity = self.order[nodes.depth], self.open.capacity
        values = self.expand(self.rows[nodes.owner], nodes.codes.astype(np.intp), variables, nodes.bound)
        values = np.minimum(values, nodes.bound[:, None])  # a bound never grows from parent to child
        if values.shape[1] > capacity:
            drop = np.argpartition(-values, capacity - 1, axis=1)[:, capacity:]
            self.open.lose(nodes.owner, np.take_along_axis(values, drop, axis=1).max(axis=1))
            np.put_along_axis(values, drop, -np.inf, axis=1)
        parent, value = np.nonzero(values > self.incumbents.cut[nodes.owner, None])
        codes = nodes.codes[parent]
        codes[np.arange(len(parent)), variables[parent]] = value
        return Nodes(nodes.owner[parent], codes, nodes.depth[parent] + 1, values[parent, value])


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
        Largest number of open nodes of a row that can still be opened.
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


class _Incumbents:
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
        # Their values may differ by the rounding of large log-weights, so the codes decide; the gap only
        # selects the codes to compare.
        gap = np.abs(self.log_prob[outcomes.owner] - outcomes.bound[:, None])
        which, place = np.nonzero(gap <= 1e-6 * (1 + np.abs(outcomes.bound[:, None])))
        equal = (self.codes[outcomes.owner[which], place] == outcomes.codes[which]).all(axis=1)
        held = np.zeros(len(gap), bool)
        held[which[equal]] = True
        return held
