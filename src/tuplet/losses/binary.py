"""Sets of positives of binary variables, for the losses that compare sets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes


def positives(
    loss: str, true: Codes, pred: Codes, known: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return where truth and answer are positive (..., m), among the positions whose truth is known."""
    if max(true.max(initial=0), pred.max(initial=0)) > 1:
        codes = np.maximum(true, pred).reshape(-1, true.shape[-1]).max(axis=0)
        j = int(np.argmax(codes > 1))
        raise InputError(
            f"{loss}: needs binary variables (code 0 negative, 1 positive), but variable {j} has code"
            f" {codes[j]}.",
            variable=j,
        )
    return true == 1, (pred == 1) & known
