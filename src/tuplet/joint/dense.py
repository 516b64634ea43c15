"""All outcomes of a chain at once, where its conditionals cost next to nothing for rows times prefixes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tuplet.joint.base import all_outcomes
from tuplet.typing import UNKNOWN, Codes, Floats

_CELLS = 2**21
"""Probabilities of outcomes that are held at once."""


@runtime_checkable
class GridConditional(Protocol):
    """A conditional that evaluates every pair of some rows and some prefixes together.

    Linear models can: what x adds and what the earlier variables add are computed apart, and only their sum
    is formed for each pair. That takes tens of nanoseconds; walking from prefix to prefix a microsecond.
    """

    def grid(self, variable: int, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """Return the probabilities (r, q, k) of a variable for rows (r,), each with all of codes (q, m)."""


@dataclass(frozen=True)
class DenseChain:
    """A chain of which tables of all outcomes are made, a block of rows at a time.

    Parameters
    ----------
    cards, order : tuple of int
    conditional : GridConditional
    origin : array, shape (n,)
        Positions of the rows in the batch of the conditional.
    """

    cards: tuple[int, ...]
    order: tuple[int, ...]
    conditional: GridConditional
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
        step = max(1, _CELLS // len(self.outcomes))
        for start in range(0, len(rows), step):
            block = np.arange(start, min(start + step, len(rows)))
            table = self._table(self.origin[rows[block]])
            for j in np.flatnonzero((known[block] != UNKNOWN).any(axis=0)):
                wanted = known[block, j, None]
                table *= (self.outcomes[:, j] == wanted) | (wanted == UNKNOWN)
            yield block, table

    def _table(self, origin: npt.NDArray[np.intp]) -> Floats:
        """Return the probabilities (r, L) of all outcomes."""
        table, prefixes = np.ones((len(origin), 1)), np.full((1, len(self.cards)), UNKNOWN)
        for variable in self.order:
            card = self.cards[variable]
            p = self.conditional.grid(variable, origin, prefixes)
            table = (table[..., None] * p).reshape(len(origin), -1)
            prefixes = np.repeat(prefixes, card, axis=0)
            prefixes[:, variable] = np.tile(np.arange(card), len(prefixes) // card)
        # Variables of one value change nothing; without them there are few enough dimensions for numpy.
        order = [v for v in self.order if self.cards[v] > 1]
        in_order = table.reshape(-1, *(self.cards[v] for v in order))
        natural = in_order.transpose(0, *(1 + order.index(v) for v in sorted(order)))
        return natural.reshape(len(origin), -1)
