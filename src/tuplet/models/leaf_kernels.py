"""Sums over the leaves that rows fall into; compiled."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tuplet.core.compiled import entry
from tuplet.core.typing import Codes, Floats

Ints = npt.NDArray[Any]

TILE = 2048
"""Rows that are finished before the next: they, and the part of the table of one tree, fit into a cache."""


@entry("i2 i1 s1 s1 f1 f2")
def add_leaves(leaves: Codes, rows: Codes, starts: Ints, columns: Ints, values: Floats, out: Floats) -> None:
    """Add the entries of a sparse table (leaves, w) to out (n, w).

    Parameters
    ----------
    leaves : array, shape (t, r)
        Rows of the table: a leaf of each of t trees for each of r rows.
    rows : array, shape (r,)
        Which rows of `out` these are.
    starts, columns, values : arrays
        The table in compressed rows.
    """
    for first in range(0, len(rows), TILE):
        last = min(first + TILE, len(rows))
        for t in range(len(leaves)):
            for i in range(first, last):
                leaf, row = leaves[t, i], rows[i]
                for e in range(starts[leaf], starts[leaf + 1]):
                    out[row, columns[e]] += values[e]
