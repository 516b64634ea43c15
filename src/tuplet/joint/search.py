"""Best-first branch and bound: the most probable outcomes of every row, with a certificate.

One search serves every form that can bound the completions of a partial assignment. In each round every
unfinished row opens its best nodes, and the bounds of all their children are found at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.joint.base import Ranking
from tuplet.typing import UNKNOWN, Codes, Floats

__all__ = ["Expand", "Search", "best_first"]

_WIDTH = 16
"""Nodes that a row opens per round. Nodes whose bound exceeds the final answer are opened in any order of
search, so a round that takes several wastes only those between the incumbent and the answer. The number is
fixed, never a share of the batch, so that a row's answer does not depend on the other rows."""

_BEAM = 8
"""Nodes per depth of the last dive of a row whose budget has ended."""

_SLACK = 1e-12
"""Bounds and outcomes reach the same number by different roundings, each of relative size m * 1e-16. Without
slack every prefix of a tied incumbent would be opened for a gain in the last digit; with it an answer is
optimal up to a factor of 1 + 1e-12 * (1 + |log p|) in probability, far below what any caller compares."""

_BYTES = 2**27
"""Size of the open nodes that are held at once; rows are searched in groups that cannot exceed it."""

_CELLS = 2**22
"""Bounds of children that are held at once."""


@final
@dataclass(frozen=True)
class Search:
    """Budget of a search for the most probable outcomes.

    Parameters
    ----------
    max_nodes : int
        Partial assignments that may be opened per row. A row that would need more gets the best outcomes
        found so far and `proven` False.

    Examples
    --------
    >>> Search(max_nodes=100)
    Search(max_nodes=100)
    """

    max_nodes: int = 2048

    def __post_init__(self) -> None:
        if self.max_nodes < 0:
            raise InputError(f"Search: max_nodes must not be negative, found {self.max_nodes}.")


class Expand(Protocol):
    """What a form tells the search: the bounds of the children of some open nodes."""

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


class _Nodes(NamedTuple):
    """Some partial assignments."""

    owner: npt.NDArray[np.intp]  # (r,) position of the row among those searched together
    codes: npt.NDArray[np.signedinteger]  # (r, m), in a type as small as the cardinalities allow
    depth: npt.NDArray[np.intp]  # (r,) number of variables fixed
    bound: Floats  # (r,)

    def take(self, chosen: npt.NDArray[np.generic] | slice) -> _Nodes:
        return _Nodes(self.owner[chosen], self.codes[chosen], self.depth[chosen], self.bound[chosen])

    def ranked(self) -> tuple[_Nodes, npt.NDArray[np.intp]]:
        """Sort by owner and then best first, ties as they came; also return the ranks within an owner."""
        nodes = self.take(np.lexsort([-self.bound, self.owner]))
        first = np.searchsorted(nodes.owner, nodes.owner)
        return nodes, np.arange(len(first)) - first


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
        Outcomes to begin with and their exact log-probabilities; incomplete ones are ignored.
    dive : int
        Before the search, follow this many of the best nodes from depth to depth down to complete outcomes.
        Its cost is fixed, `dive` nodes per depth, and not charged to the budget.

    Returns
    -------
    Ranking
        `proven` where no open node can hold anything better than the k-th outcome.
    """
    store = np.dtype(np.min_scalar_type(-max(cards)))
    size = max(1, _BYTES // (len(cards) * store.itemsize * 2 * max(1, settings.max_nodes)))
    parts = []
    for rows in [np.arange(a, min(a + size, n)) for a in range(0, max(n, 1), size)]:
        search = _BestFirst(cards, order, expand, k, settings.max_nodes, rows, store)
        if start is not None:
            search.offer_start(start[0][rows], start[1][rows])
        parts.append(search.run(dive))
    return Ranking(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class _BestFirst:
    """Open nodes and incumbents of the b rows that are searched together.

    Open nodes live in columns, (b, columns) bounds and (b, columns, m) codes; a bound of minus infinity is a
    vacant place. Columns are appended until there are twice as many as a row could ever open, then the best
    are kept.
    """

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
        self.m, self.k, self.capacity = len(cards), k, max(max_nodes, k, _BEAM)
        b = len(rows)
        self.budget = np.full(b, max_nodes)
        self.best = np.full((b, k), -np.inf)
        self.best_codes = np.full((b, k, self.m), UNKNOWN, store)
        self.cut = np.full(b, -np.inf)  # a bound up to here cannot improve the k best
        self.lost = np.full(b, -np.inf)  # the best bound among nodes dropped for want of room
        self.used = 1  # columns of open nodes: at first the empty assignment alone
        self.bound = np.zeros((b, 1))
        self.depth = np.zeros((b, 1), dtype=np.intp)
        self.codes = np.full((b, 1, self.m), UNKNOWN, store)

    def run(self, dive: int) -> Ranking:
        everyone = np.arange(len(self.rows))
        if dive:
            self._dive(everyone, dive)
        active = everyone
        while len(active):
            wave = self._pop(active, _WIDTH, self.budget)
            active = np.unique(wave.owner)
            self.budget -= np.bincount(wave.owner, minlength=len(self.rows))
            self._push(*self._branch(wave).ranked())
        self._dive(np.flatnonzero(~self._proven()), max(_BEAM, self.k))
        return Ranking(self.best_codes.astype(np.intp), self.best, self._proven())

    def _proven(self) -> npt.NDArray[np.bool_]:
        return np.maximum(self.bound.max(axis=1, initial=-np.inf), self.lost) <= self.cut

    def _dive(self, chosen: npt.NDArray[np.intp], width: int) -> None:
        """Follow the best open nodes down to complete outcomes, depth by depth; the others stay open."""
        wave = self._pop(chosen, width)
        while len(wave.owner):
            children, rank = self._branch(wave).ranked()
            aside = rank >= width
            self._push(children.take(aside), rank[aside] - width)
            wave = children.take(~aside)

    # -- open nodes ---------------------------------------------------------------------------------------

    def _pop(
        self, active: npt.NDArray[np.intp], width: int, budget: npt.NDArray[np.intp] | None = None
    ) -> _Nodes:
        """Take out the best open nodes of some rows, as far as they can still improve an answer."""
        bound = self.bound[active, : self.used]
        width = min(width, self.used)
        column = np.argpartition(-bound, width - 1, axis=1)[:, :width]
        bound = np.take_along_axis(bound, column, axis=1)
        order = np.argsort(-bound, axis=1, kind="stable")
        column, bound = np.take_along_axis(column, order, axis=1), np.take_along_axis(bound, order, axis=1)
        wanted = bound > self.cut[active, None]
        if budget is not None:
            wanted &= np.arange(width) < budget[active, None]
        owner, place = active[np.nonzero(wanted)[0]], column[wanted]
        nodes = _Nodes(owner, self.codes[owner, place], self.depth[owner, place], bound[wanted])
        self.bound[owner, place] = -np.inf
        return nodes

    def _push(self, nodes: _Nodes, rank: npt.NDArray[np.intp]) -> None:
        """Append open nodes, each in the column of its rank within its row."""
        room = rank < self.capacity
        self._lose(nodes.owner[~room], nodes.bound[~room])
        nodes, rank = nodes.take(room), rank[room]
        if len(rank):
            extra = int(rank.max()) + 1
            self._make_room(extra)
            place = (nodes.owner, self.used + rank)
            self.bound[place], self.depth[place], self.codes[place] = nodes.bound, nodes.depth, nodes.codes
            self.used += extra

    def _make_room(self, extra: int) -> None:
        if self.used + extra > 2 * self.capacity and self.used > self.capacity:
            # A row opens no more nodes than its budget, and those are among its best of today.
            order = np.argpartition(-self.bound[:, : self.used], self.capacity - 1, axis=1)
            keep, drop = order[:, : self.capacity], order[:, self.capacity :]
            self._lose(np.arange(len(self.rows)), np.take_along_axis(self.bound, drop, axis=1).max(axis=1))
            self.bound = np.take_along_axis(self.bound, keep, axis=1)
            self.depth = np.take_along_axis(self.depth, keep, axis=1)
            self.codes = np.take_along_axis(self.codes, keep[..., None], axis=1)
            self.used = self.capacity
        if self.used + extra > self.bound.shape[1]:
            pad = [(0, 0), (0, self.used + extra)]
            self.bound = np.pad(self.bound, pad, constant_values=-np.inf)
            self.depth = np.pad(self.depth, pad)
            self.codes = np.pad(self.codes, [*pad, (0, 0)])

    def _lose(self, owner: npt.NDArray[np.intp], bound: Floats) -> None:
        np.maximum.at(self.lost, owner, bound)

    # -- children and incumbents --------------------------------------------------------------------------

    def _branch(self, wave: _Nodes) -> _Nodes:
        """Open nodes: return the children that may lead on, and offer the complete ones as answers."""
        card = self.cards[self.order[wave.depth]]
        parts = [
            self._children(wave.take(part))
            for width in np.unique(card)
            for part in _chunks(np.flatnonzero(card == width), max(1, _CELLS // int(width)))
        ]
        children = _Nodes(
            *(np.concatenate(arrays) for arrays in zip(wave.take(slice(0)), *parts, strict=True))
        )
        complete = children.depth == self.m
        self._offer(children.take(complete))
        return children.take(~complete)

    def _children(self, nodes: _Nodes) -> _Nodes:
        """Return the children of nodes that branch on equally many values."""
        variables = self.order[nodes.depth]
        values = self.expand(self.rows[nodes.owner], nodes.codes.astype(np.intp), variables, nodes.bound)
        values = np.minimum(values, nodes.bound[:, None])  # a bound never grows from parent to child
        if values.shape[1] > self.capacity:
            drop = np.argsort(-values, axis=1, kind="stable")[:, self.capacity :]
            self._lose(nodes.owner, np.take_along_axis(values, drop, axis=1).max(axis=1))
            np.put_along_axis(values, drop, -np.inf, axis=1)
        parent, value = np.nonzero(values > self.cut[nodes.owner, None])
        codes = nodes.codes[parent]
        codes[np.arange(len(parent)), variables[parent]] = value
        return _Nodes(nodes.owner[parent], codes, nodes.depth[parent] + 1, values[parent, value])

    def offer_start(self, codes: Codes, log_prob: Floats) -> None:
        """Take the complete ones of the outcomes (b, c, m) as first answers."""
        usable = (codes != UNKNOWN).all(axis=2) & (log_prob > -np.inf)
        owner, place = np.nonzero(usable)
        outcomes = codes[owner, place]
        _, first = np.unique(np.column_stack([owner, outcomes]), axis=0, return_index=True)
        first.sort()
        owner, outcomes = owner[first], outcomes[first].astype(self.codes.dtype)
        self._offer(_Nodes(owner, outcomes, np.full(len(first), self.m), log_prob[usable][first]))

    def _offer(self, outcomes: _Nodes) -> None:
        """Merge complete outcomes into the k best of their rows; of equal ones the first found stays."""
        better = outcomes.take(outcomes.bound > self.cut[outcomes.owner])
        outcomes, rank = better.take(~self._held(better)).ranked()
        if not len(rank):
            return
        rows, place = np.unique(outcomes.owner, return_inverse=True)
        values = np.full((len(rows), int(rank.max()) + 1), -np.inf)
        codes = np.full((*values.shape, self.m), UNKNOWN, self.codes.dtype)
        values[place, rank], codes[place, rank] = outcomes.bound, outcomes.codes
        values = np.concatenate([self.best[rows], values], axis=1)
        codes = np.concatenate([self.best_codes[rows], codes], axis=1)
        order = np.argsort(-values, axis=1, kind="stable")[:, : self.k]
        self.best[rows] = np.take_along_axis(values, order, axis=1)
        self.best_codes[rows] = np.take_along_axis(codes, order[..., None], axis=1)
        worst = self.best[rows, -1]
        finite = np.where(worst > -np.inf, worst, 0.0)
        self.cut[rows] = np.where(worst > -np.inf, finite + _SLACK * (1 + np.abs(finite)), -np.inf)

    def _held(self, outcomes: _Nodes) -> npt.NDArray[np.bool_]:
        """Return which outcomes are among the answers already, as start or proposal of another one."""
        gap = np.abs(self.best[outcomes.owner] - outcomes.bound[:, None])
        which, place = np.nonzero(gap <= _SLACK * (1 + np.abs(outcomes.bound[:, None])))
        equal = (self.best_codes[outcomes.owner[which], place] == outcomes.codes[which]).all(axis=1)
        held = np.zeros(len(gap), bool)
        held[which[equal]] = True
        return held


def _chunks(positions: npt.NDArray[np.intp], size: int) -> list[npt.NDArray[np.intp]]:
    return [positions[start : start + size] for start in range(0, len(positions), size)]
