"""Losses by name."""

from __future__ import annotations

from tuplet.core.exceptions import InputError
from tuplet.losses.base import Loss
from tuplet.losses.decomposable import Hamming
from tuplet.losses.fmeasure import FBeta
from tuplet.losses.general import Jaccard
from tuplet.losses.ordinal import Absolute, Quantile
from tuplet.losses.subset import SubsetZeroOne

LOSSES: dict[str, Loss] = {
    "hamming": Hamming(),
    "subset": SubsetZeroOne(),
    "zero_one": SubsetZeroOne(),
    "f0.5": FBeta(0.5),
    "f1": FBeta(1.0),
    "f2": FBeta(2.0),
    "jaccard": Jaccard(),
    "absolute": Absolute(),
    "quantile": Quantile(),
    "quantile0.1": Quantile(0.1),
    "quantile0.9": Quantile(0.9),
}
"""The losses that go by a name; one more line is one more name."""


def get_loss(loss: Loss | str) -> Loss:
    """Return the loss of this name; a loss is returned as it is.

    Examples
    --------
    >>> get_loss("f2")
    FBeta(beta=2.0)
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    known = ", ".join(repr(name) for name in LOSSES)
    hint = " Wrap a function in CallableLoss." if callable(loss) else ""
    raise InputError(f"A loss must be one of {known}, or a Loss object; found {loss!r}.{hint}")
