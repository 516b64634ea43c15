"""Best-first branch and bound: the most probable outcomes of every row, with a certificate.

One search serves every form that can bound the completions of a partial assignment. In each round every
unfinished row opens its best nodes, and the bounds of all their children are found at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.joint.base import Ranking
from tuplet.joint.nodes import Incumbents, Nodes, OpenNodes
from tuplet.typing import Codes, Floats

_WIDTH = 32
"""Nodes that a row opens per round. Nodes whose bound exceeds the final answer are opened in any order of
search, so a round that takes several wastes only those between the incumbent and the answer. The number is
fixed, never a share of the batch, so that a row's answer does not depend on the other rows (exact ties of
bounds apart)."""

_BEAM = 16
"""Nodes per depth of the last dive of a row whose budget has ended."""

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
    n_open = max(1, settings.max_nodes + max(_BEAM, k) * len(cards))  # what `OpenNodes` holds before it drops
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
        self.width = max(_BEAM, k)
        # Of the open nodes of today no more can be opened than the budget and one dive allow.
        self.open = OpenNodes(len(rows), len(cards), max_nodes + self.width * len(cards), store)
        self.incumbents = Incumbents(len(rows), len(cards), k, store)

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
            step = max(1, _CELLS // int(width))
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
