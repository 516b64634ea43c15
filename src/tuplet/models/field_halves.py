"""The exact likelihood of a pairwise field by matrix products over two halves of its variables."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuplet.joint.base import all_outcomes
from tuplet.models.field_likelihood import EliminationLikelihood, TrainingRows
from tuplet.models.pairwise_field import Scores
from tuplet.typing import UNKNOWN, Codes, Floats

_SMALLEST = 1e-250
"""A sum of weights, the largest factor of each being 1, below which digits may have been lost."""


class HalvesLikelihood(TrainingRows):
    """The exact log-likelihood of a field of any width whose pair scores are the same for all rows.

    The variables are split into two halves. Given the outcomes of both, the weight of a row is a product of
    what its single scores give to each half, A (n, q) and B (n, r), and of one table W (q, r) that all rows
    share. So the sum over all q * r outcomes is the sum of (A W) * B over r: matrix products, without a
    single exponential of the size of the outcomes. Evidence only puts zeros into A and B.
    """

    def __call__(self, scores: Scores) -> tuple[float, Scores]:
        """Return the log-likelihood and its gradient."""
        score = self.known_scores(scores)
        log_table = self._log_table(scores.pair[0])
        parts = [
            scores.single[:, columns] @ half.T
            for columns, half in zip(self._split, self._halves, strict=True)
        ]
        free = self._sums(parts, log_table, self.weights)
        if free is None:
            return self._slow(scores)
        log_partition, mean, total = free
        single = self.observed - mean
        pair = self.weights @ self.observed_products - total
        if len(rows := self.incomplete):
            masked = [
                np.where(mask, part[rows], -np.inf) for mask, part in zip(self._masks, parts, strict=True)
            ]
            clamped = self._sums(masked, log_table, self.weights[rows])
            if clamped is None:
                return self._slow(scores)
            score[rows], mean, total = clamped
            single[rows] += mean
            pair = pair + total
        value = float(self.weights @ (score - log_partition))
        return value, Scores(self.weights[:, None] * single, pair[None])

    @cached_property
    def _slow(self) -> EliminationLikelihood:
        return EliminationLikelihood(self.field, self.codes, self.weights)

    # -- outcomes of the halves ---------------------------------------------------------------------------

    @cached_property
    def _cut(self) -> int:
        """The first variable of the second half."""
        return half_outcomes(self.field.cards)[0]

    @cached_property
    def _split(self) -> tuple[slice, slice]:
        """The indicators of each half."""
        middle = int(self.field.starts[self._cut])
        return slice(0, middle), slice(middle, int(self.field.starts[-1]))

    @cached_property
    def _outcomes(self) -> tuple[Codes, Codes]:
        cards, cut = self.field.cards, self._cut
        return _outcomes(cards[:cut]), _outcomes(cards[cut:])

    @cached_property
    def _halves(self) -> tuple[Floats, Floats]:
        """Indicators (q, w1) and (r, w2) of the outcomes of each half."""
        m, cut = len(self.field.cards), self._cut
        answer = []
        for outcomes, variables, columns in zip(
            self._outcomes, (slice(0, cut), slice(cut, m)), self._split, strict=True
        ):
            codes = np.zeros((len(outcomes), m), dtype=np.intp)
            codes[:, variables] = outcomes
            answer.append(self.field.indicators(codes)[:, columns])
        return answer[0], answer[1]

    @cached_property
    def _masks(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which outcomes of each half, (i, q) and (i, r), agree with what the incomplete rows know."""
        codes = self.codes[self.incomplete]
        first, second = self._outcomes
        return _agree(codes[:, : self._cut], first), _agree(codes[:, self._cut :], second)

    # -- sums ---------------------------------------------------------------------------------------------

    def _pair_matrix(self, pair: Floats) -> Floats:
        """Pair scores (e,) as a matrix (w, w), each in the triangle above the diagonal."""
        first, second = self.field.members
        matrix = np.zeros((self.field.starts[-1],) * 2)
        np.add.at(matrix, (np.minimum(first, second), np.maximum(first, second)), pair)
        return matrix

    def _log_table(self, pair: Floats) -> Floats:
        """What the pairs add to the outcomes of both halves, (q, r)."""
        matrix, (left, right) = self._pair_matrix(pair), self._split
        first, second = self._halves
        within = [
            ((half @ matrix[part, part]) * half).sum(axis=1)
            for half, part in zip(self._halves, self._split, strict=True)
        ]
        return within[0][:, None] + within[1] + first @ matrix[left, right] @ second.T

    def _sums(
        self, parts: list[Floats], log_table: Floats, weights: Floats
    ) -> tuple[Floats, Floats, Floats] | None:
        """Log-sums (n,), means (n, w) of the indicators, weighted total (e,) of the pairs; None if lossy."""
        peaks = [part.max(axis=1, keepdims=True) for part in parts]
        a, b = (np.exp(part - peak) for part, peak in zip(parts, peaks, strict=True))
        table = np.exp(log_table - log_table.max())
        right = a @ table
        total = (right * b).sum(axis=1)
        if not (total > _SMALLEST).all():
            return None
        b_share = b / total[:, None]
        first, second = self._halves
        mean = np.hstack([(a * (b_share @ table.T)) @ first, (right * b_share) @ second])
        both = table * ((a * weights[:, None]).T @ b_share)  # (q, r): expected weight of each outcome
        log_sum = np.log(total) + (peaks[0] + peaks[1]).ravel() + log_table.max()
        return log_sum, mean, self._pair_totals(both)

    def _pair_totals(self, both: Floats) -> Floats:
        first, second = self._halves
        matrix = np.block(
            [
                [(first.T * both.sum(axis=1)) @ first, first.T @ both @ second],
                [np.zeros((second.shape[1], first.shape[1])), (second.T * both.sum(axis=0)) @ second],
            ]
        )
        one, other = self.field.members
        return matrix[np.minimum(one, other), np.maximum(one, other)]


def half_outcomes(cards: tuple[int, ...]) -> tuple[int, int, int]:
    """Where to cut a list of variables so that the larger half has few outcomes; outcomes of both halves."""
    cuts = [(max(math.prod(cards[:c]), math.prod(cards[c:])), c) for c in range(len(cards) + 1)]
    cut = min(cuts)[1]
    return cut, math.prod(cards[:cut]), math.prod(cards[cut:])


def _outcomes(cards: tuple[int, ...]) -> Codes:
    return all_outcomes(cards) if cards else np.zeros((1, 0), dtype=np.intp)


def _agree(codes: Codes, outcomes: Codes) -> npt.NDArray[np.bool_]:
    """Which outcomes (q, v) agree with what is known in codes (i, v), as (i, q)."""
    codes = codes[:, None]
    return ((codes == outcomes) | (codes == UNKNOWN)).all(axis=2)
