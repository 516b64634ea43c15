"""Losses without a closed decision: compare the expected losses of candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError, IntractableError, TupletError
from tuplet.core.limits import FEW_OUTCOMES
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, all_outcomes
from tuplet.losses.base import Loss, align, nan_if_unknown
from tuplet.losses.expectation import best_of, own_atoms
from tuplet.losses.labelled import floats_or_none, positives

Candidates = Literal["all", "atoms"]


class CandidateLoss(Loss):
    """A loss whose decision is found by comparing candidates; a new one writes `value`.

    With `candidates="all"` these are all outcomes, up to `limit` of them, and the decision is exact. With
    "atoms" they are the outcomes to which a row gives positive probability, which suits `Atoms` of many
    variables: a powerset's table, or `joint.draw(1000)`. Nothing is drawn unless the caller does.
    """

    candidates: Candidates
    limit: int
    _instead = ""

    def __post_init__(self) -> None:
        if self.candidates not in ("all", "atoms"):
            raise InputError(
                f"{type(self).__name__}: candidates must be 'all' or 'atoms', found {self.candidates!r}."
            )

    def pairwise(self, y_true: Codes, y_pred: Codes) -> Floats:
        """Loss (u, c) of every pair of truths (u, m) and answers (c, m)."""
        return self.value(y_true[:, None], y_pred)

    def decide(self, joint: JointDistribution) -> Codes:
        """See `Loss.decide`."""
        if self.candidates == "atoms":
            return own_atoms(self.pairwise, joint)
        if joint.n_outcomes > self.limit:
            raise IntractableError(
                f"{type(self).__name__}.decide: {joint.n_variables} variables have {joint.n_outcomes:,}"
                f" outcomes to compare (limit={self.limit:,}). Raise limit, or choose among draws: with"
                f" loss = {type(self).__name__}(..., candidates='atoms'), loss.decide(joint.draw(1000)) for a"
                " distribution, prediction.space.decode(loss.decide(prediction.distribution.draw(1000))) for"
                f" a prediction.{self._instead}"
            )
        return best_of(self.pairwise, joint.to_atoms(self.limit), all_outcomes(joint.cards))


@final
@dataclass(frozen=True)
class Jaccard(CandidateLoss):
    """One minus the instance-wise Jaccard index of binary variables (code 0 negative, 1 positive).

    The index is the size of the intersection over the size of the union, and 1 if both sets are empty.

    Parameters
    ----------
    candidates : {"all", "atoms"}, default "all"
        What the decision is chosen from; see `CandidateLoss`.
    limit : int
        Outcomes that are compared at most.

    Examples
    --------
    >>> Jaccard().value([[1, 1, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0]])
    array([0.5, 0. ])
    """

    candidates: Candidates = "all"
    limit: int = FEW_OUTCOMES
    name = "jaccard"
    binary = True
    _instead = " Or take the loss 'f1', which is close and exact for any number of variables."

    def value(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.value`."""
        true, pred, known = align(y_true, y_pred)
        y, h = positives("Jaccard", true, pred, known)
        return nan_if_unknown(1 - _index((y & h).sum(axis=-1), (y | h).sum(axis=-1)), known)

    def pairwise(self, y_true: Codes, y_pred: Codes) -> Floats:
        """See `CandidateLoss.pairwise`; intersections are one matrix product."""
        y, h = (y_true == 1).astype(float), (y_pred == 1).astype(float)
        common = y @ h.T
        return 1 - _index(common, y.sum(axis=1)[:, None] + h.sum(axis=1) - common)

    def decide(self, joint: JointDistribution) -> Codes:
        """See `Loss.decide`."""
        joint._require_binary("Jaccard (code 0 negative, 1 positive)")
        return super().decide(joint)


def _index(common: npt.NDArray, union: npt.NDArray) -> Floats:
    return np.divide(common, union, out=np.ones(union.shape), where=union > 0)


@final
@dataclass(frozen=True)
class CallableLoss(CandidateLoss):
    """Any function of codes.

    Parameters
    ----------
    function : callable
        `function(y_true, y_pred)` takes codes (n, m) twice and gives n losses. Rows of which nothing is
        known do not reach it; in the others it meets `UNKNOWN` (-1) where a true value is missing, and
        only there it may answer nan.
    name : str, optional
        The function's own name if left out.
    candidates : {"all", "atoms"}, default "all"
        What the decision is chosen from; see `CandidateLoss`.
    limit : int
        Outcomes that are compared at most.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint import Atoms
    >>> def far(y_true, y_pred):
    ...     return np.abs(y_true - y_pred).sum(axis=1)
    >>> joint = Atoms((3,), np.array([[[0], [1], [2]]]), np.log([[0.4, 0.25, 0.35]]))
    >>> CallableLoss(far).decide(joint)
    array([[1]])
    """

    function: Callable[[Codes, Codes], npt.ArrayLike]
    name: str = ""
    candidates: Candidates = "all"
    limit: int = FEW_OUTCOMES

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise InputError(f"CallableLoss: function must be callable, found {self.function!r}.")
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", type(self.function).__name__))

    def value(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.value`."""
        true, pred, known = align(y_true, y_pred)
        some = known.any(axis=-1)
        values = np.full(some.shape, np.nan)
        if some.any():
            values[some] = self._call(true[some], pred[some])
        return values

    def _call(self, true: Codes, pred: Codes) -> Floats:
        """Return the function's losses (n,) of codes (n, m), if that is what they are."""
        try:
            answer = self.function(true, pred)
        except TupletError:
            raise
        except Exception as error:
            raise InputError(
                f"The loss {self.name!r} failed on codes of shape {true.shape} with"
                f" {type(error).__name__}: {error}"
            ) from error
        result = floats_or_none(answer)
        if result is None or result.shape != (len(true),):
            found = type(answer).__name__ if result is None else f"shape {result.shape}"
            raise InputError(
                f"The loss {self.name!r} must return one number per row, found {found} for {len(true)} rows."
            )
        wrong = ~np.isfinite(result) & (true != UNKNOWN).all(axis=1)
        if wrong.any():
            first = int(wrong.argmax())
            raise InputError(
                f"The loss {self.name!r} must return finite numbers, found {result[first]} for the truth"
                f" {true[first].tolist()} and the answer {pred[first].tolist()}."
            )
        return result
