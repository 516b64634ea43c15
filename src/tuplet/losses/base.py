"""The contract of a loss: value, conditional risk and Bayes decision in one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.losses.expectation import expected_value
from tuplet.space.classes import ClassSpace


class Loss(ABC):
    """What a wrong answer costs, and the answer that costs least under a joint distribution.

    A new loss writes `name`, `value` and `decide`; `risk` follows, and `tuplet.testing.check_loss` tests
    whether the three belong together. Losses are immutable and take codes, never labels.

    One rule for missing truth: positions where `y_true` is `UNKNOWN` are left out of the loss, and a row
    in which nothing is known is nan. One rule for ties: the lowest code wins.
    """

    abstains: Literal["never", "positions", "rows"] = "never"
    """What `decide` may leave `UNKNOWN`."""

    binary: bool = False
    """Whether the loss is defined for binary variables only: code 0 negative, code 1 positive."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in tables and messages."""

    @abstractmethod
    def value(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
        """Loss (...) of each row of codes (..., m); both sides broadcast."""

    @abstractmethod
    def decide(self, joint: JointDistribution) -> Codes:
        """Codes (n, m) of least risk in every row."""

    def for_space(self, space: ClassSpace) -> Loss:
        """Return the loss for the variables of a class space; most losses do not depend on it."""
        return self

    def risk(self, joint: JointDistribution, y_pred: npt.ArrayLike) -> Floats:
        """Expected loss (n,) of answering y_pred (n, m), or (s, n) of s answers (s, n, m)."""
        return expected_value(self.value, joint.to_atoms(), y_pred)


def align(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> tuple[Codes, Codes, npt.NDArray[np.bool_]]:
    """Return both sides as codes of one shape (..., m), and where the truth is known."""
    true, pred = np.asarray(y_true), np.asarray(y_pred)
    if any(array.size and array.dtype.kind not in "iu" for array in (true, pred)):
        raise InputError(
            f"A loss compares integer codes, found {true.dtype} and {pred.dtype}; encode labels."
        )
    try:
        true, pred = np.broadcast_arrays(true.astype(np.intp, copy=False), pred.astype(np.intp, copy=False))
    except ValueError:
        raise InputError(f"y_true {true.shape} and y_pred {pred.shape} do not fit together.") from None
    return true, pred, true != UNKNOWN


def is_number(value: Any) -> bool:
    """Whether a setting is a finite real number, of any type."""
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


def nan_if_unknown(values: npt.ArrayLike, known: npt.NDArray[np.bool_]) -> Floats:
    """Return the values (...), nan where nothing of the row is known (..., m)."""
    return np.where(known.any(axis=-1), values, np.nan)
