"""What one call may need: sizes of blocks, of arrays and of tables, all in cells of 8 bytes.

Queries of distributions, and what models do between their estimators and these, need at most the working
memory beyond their data and their answers. Predictions of estimators, and the probabilities of all
combinations of a powerset or a shared forest, are arrays of all rows.

The working memory is that of scikit-learn, in MiB: `sklearn.set_config(working_memory=256)`,
`sklearn.config_context(working_memory=256)`, or the environment variable `SKLEARN_WORKING_MEMORY`, which
worker processes read, too. Work on many rows is cut into blocks, of which a call holds a few at a time; less
memory means smaller blocks. More than the default of 1,024 MiB makes no block larger, since larger ones are
not faster, but permits larger arrays of a single piece (`largest_array`). Answers do not depend on the sizes
of blocks; only the draws that a seed gives can.

Other limits are no matter of memory alone: beyond them a query would take too long, or is answered in another
way. They are constants, since the answer may depend on them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

BLOCK_CELLS = 2**22
"""Cells of a block (32 MiB) where rows are cut to bound the memory."""

PASS_CELLS = 2**20
"""Cells of a block (8 MiB) that several passes of arithmetic run over: near the processor."""

CACHE_CELLS = 2**16
"""Cells of a block (512 KiB) that one loop writes and reads at once: in the cache of a core."""

_BLOCKS = 32
"""Blocks that a call may hold at a time."""

_DEFAULT_MIB = 1024
"""The working memory of scikit-learn where nothing sets it."""

_LARGEST_ARRAY = 2**27
"""Cells of an array of a single piece (1 GiB) that is never refused."""

HELD_CELLS = 2**26
"""Cells of an array (512 MiB) that is kept because the other way, which needs no array, is slower."""

LISTED_CELLS = 2**24
"""Cells of an array (128 MiB) that is looked up later, or from which a few numbers are learned."""

TABLE_CELLS = 2**22
"""Cells of the largest table of one row in exact inference."""

ENUMERATION_LIMIT = 2**16
"""Outcomes up to which a distribution is tabulated where nothing else is known about it."""

FEW_OUTCOMES = 2**12
"""Outcomes, or cells of a table, up to which every pair is compared or each costs a call."""


def working_cells() -> int:
    """Return the cells of the working memory."""
    if "sklearn" in sys.modules:
        from sklearn import get_config

        return int(get_config()["working_memory"] * 2**17)
    # Distributions are used without scikit-learn, too, which takes most of a second to import.
    return int(os.environ.get("SKLEARN_WORKING_MEMORY", _DEFAULT_MIB)) * 2**17


def block_cells(cells: int = BLOCK_CELLS) -> int:
    """Return the cells of a block of one of the three kinds; fewer if the working memory is small."""
    return max(1, min(cells, working_cells() // _BLOCKS))


def rows_per_block(cells_per_row: int, cells: int = BLOCK_CELLS) -> int:
    """Return how many rows fit into a block, at least one.

    Examples
    --------
    >>> from sklearn import config_context
    >>> rows_per_block(1024)
    4096
    >>> with config_context(working_memory=1):
    ...     rows_per_block(1024)
    4
    """
    return max(1, block_cells(cells) // max(1, cells_per_row))


def row_blocks(n: int, cells_per_row: int, cells: int = BLOCK_CELLS) -> Iterator[slice]:
    """Cut n rows into blocks of bounded memory.

    Examples
    --------
    >>> list(row_blocks(5, 2, cells=4))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = rows_per_block(cells_per_row, cells)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def largest_array() -> int:
    """Return the cells of an array of a single piece beyond which it is refused."""
    return max(_LARGEST_ARRAY, working_cells())
