"""Sets of positives of binary variables, for the losses that compare sets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.typing import Codes

__all__ = ["positives"]


def positives(
    loss: str, true: Codes, pred: Codes, known: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return where truth and answer are positive (..., m), among the positions whose truth is known."""
    highest = max(true.max(initial=0), pred.max(initial=0))
    if highest > 1:
        raise InputError(
            f"{loss}: needs binary variables (code 0 negative, 1 positive), found code {highest}."
        )
    return true == 1, (pred == 1) & known
