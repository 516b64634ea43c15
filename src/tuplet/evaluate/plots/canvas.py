"""What the pictures of comparisons share: the looks of all pictures, and where long values are cut."""

from __future__ import annotations

import numpy as np

from tuplet.typing import Floats

_DWARFED = 4
"""How many times longer than all others a few values may be and still be drawn to scale."""


def cut_length(lengths: Floats) -> float:
    """Return the length at which bars are cut, infinity for not at all.

    Bars are cut where at most an eighth of them (or one) are so long that the others could not be seen.

    Parameters
    ----------
    lengths : array, shape (n,)
        Not negative.
    """
    descending = np.sort(lengths)[::-1]
    for n_long in range(1, max(1, len(lengths) // 8) + 1):
        if n_long < len(lengths) and descending[n_long - 1] > _DWARFED * descending[n_long] > 0:
            return float(1.4 * descending[n_long])
    return float("inf")
