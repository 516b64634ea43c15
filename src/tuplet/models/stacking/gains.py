"""Whether held-out rows gain enough by something for it to earn its place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tuplet.typing import Floats

_ERRORS = 2.0
"""Standard errors that a gain must have."""


class Gain(NamedTuple):
    """Mean gain of rows, and its standard error."""

    mean: float
    error: float

    @property
    def is_clear(self) -> bool:
        """Whether it is more than chance, and more than rounding, which on few rows looks like a gain."""
        return self.mean > max(_ERRORS * self.error, 1e-9)


def gain_of(each: Floats, weights: Floats) -> Gain:
    """Return the mean of the gains (n,) of rows with these weights (n,)."""
    share = weights / weights.sum()
    mean = float(share @ each)
    return Gain(mean, float(np.sqrt(share**2 @ (each - mean) ** 2)))
