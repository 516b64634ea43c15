"""The F-measure of a row: how well the set of positive variables is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.limits import row_blocks
from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.losses.base import Loss, align, is_number, nan_if_unknown
from tuplet.losses.expectation import first_lowest
from tuplet.losses.labelled import positives

_DIGITS = 12


@final
@dataclass(frozen=True)
class FBeta(Loss):
    r"""One minus the instance-wise F-measure of binary variables (code 0 negative, 1 positive).

    Parameters
    ----------
    beta : float, default 1
        Above 1 recall weighs more, below 1 precision.

    Notes
    -----
    :math:`F = (1 + \beta^2) |y \cap h| / (\beta^2 |y| + |h|)`, and 1 if both sets are empty. For answers h
    with k positives its expectation is a sum over the positives j of

    .. math:: \Delta_{jk} = \sum_{s=1}^m \frac{1 + \beta^2}{\beta^2 s + k} P(Y_j = 1, |Y| = s),

    so the best answer of size k takes the k largest of column k, and the best of all is among m + 1.
    Equal expectations go to fewer positives, then to the lower codes.

    References
    ----------
    Dembczynski, Waegeman, Cheng, Hüllermeier (2011). An exact algorithm for F-measure maximization.
    Advances in Neural Information Processing Systems 24, algorithm 1.

    Examples
    --------
    One of three labels is there, each with about the same probability. Naming all of them is worth more
    than naming one, although each single one is probably wrong:

    >>> import numpy as np
    >>> from tuplet.joint import Atoms
    >>> one_of_three = Atoms((2, 2, 2), np.eye(3, dtype=int)[None], np.log([[0.34, 0.33, 0.33]]))
    >>> FBeta().decide(one_of_three)
    array([[1, 1, 1]])
    """

    beta: float = 1.0
    binary = True

    def __post_init__(self) -> None:
        if not is_number(self.beta) or self.beta <= 0:
            raise InputError(f"FBeta: beta must be a positive number, found {self.beta!r}.")

    @property
    def name(self) -> str:
        """See `Loss.name`."""
        return f"f{self.beta:g}"

    def value(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.value`."""
        true, pred, known = align(y_true, y_pred)
        y, h = positives("FBeta", true, pred, known)
        size = self.beta**2 * y.sum(axis=-1) + h.sum(axis=-1)
        hits = (1 + self.beta**2) * (y & h).sum(axis=-1)
        f = np.divide(hits, size, out=np.ones(size.shape), where=size > 0)
        return nan_if_unknown(1 - f, known)

    def decide(self, joint: JointDistribution) -> Codes:
        """See `Loss.decide`."""
        return np.concatenate([self._maximise(joint[rows]) for rows in self._blocks(joint)])

    def _maximise(self, joint: JointDistribution) -> Codes:
        n, m = len(joint), joint.n_variables
        gains = self._gains(joint)
        largest_first = np.sort(gains, axis=1)[:, ::-1]
        of_size = np.cumsum(largest_first, axis=1).diagonal(axis1=1, axis2=2)  # k largest of column k
        expected = np.column_stack([_empty(joint), of_size])  # (n, m + 1)
        size = first_lowest(-expected)
        chosen = gains[np.arange(n), :, size - 1].round(_DIGITS)  # rounding error must not break ties
        order = np.argsort(chosen, axis=1, kind="stable")
        codes = np.zeros((n, m), dtype=np.intp)
        np.put_along_axis(codes, order, np.arange(m) >= m - size[:, None], axis=1)
        return codes

    def risk(self, joint: JointDistribution, y_pred: npt.ArrayLike) -> Floats:
        """See `Loss.risk`; it needs no more of the distribution than the decision does."""
        h = joint._as_codes(y_pred) == 1
        blocks = self._blocks(joint)
        return np.concatenate([self._risk(joint[rows], h[..., rows, :]) for rows in blocks], axis=-1)

    def _risk(self, joint: JointDistribution, h: npt.NDArray[np.bool_]) -> Floats:
        size = h.sum(axis=-1)
        gains = self._gains(joint)[np.arange(len(joint)), :, size - 1]
        return 1 - np.where(size > 0, (gains * h).sum(axis=-1), _empty(joint))

    def _gains(self, joint: JointDistribution) -> Floats:
        """Return what naming variable j in an answer of k positives adds, (n, m, m), k = 1 first."""
        s = np.arange(1, joint.n_variables + 1)
        weights = (1 + self.beta**2) / (self.beta**2 * s[:, None] + s)
        return joint.count_marginals()[:, :, 1:] @ weights

    def _blocks(self, joint: JointDistribution) -> list[slice]:
        joint._require_binary("FBeta (code 0 negative, 1 positive)")
        return list(row_blocks(max(1, len(joint)), joint.n_variables**2))


def _empty(joint: JointDistribution) -> Floats:
    """Return the probability (n,) that no variable is positive."""
    return np.exp(joint.log_prob(np.zeros(joint.n_variables, dtype=np.intp)))
