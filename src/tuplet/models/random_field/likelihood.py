"""Log-likelihoods of pairwise fields, and their gradients: of outcomes, and of one label given the others.

Each object is called with the scores of the training rows and returns the weighted log-likelihood and its
gradient with respect to them. Missing labels are summed out where that is exact: by elimination in fields of
small width, by matrix products over two halves of the variables where all rows share the pair scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit, log_expit

from tuplet.core.limits import PASS_CELLS, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import all_outcomes
from tuplet.joint.inference.engine import Exact
from tuplet.joint.inference.factor import Problem, evidence_factors
from tuplet.local.onehot import OneHot
from tuplet.models.random_field.field import PairwiseField, Scores


class Likelihood(Protocol):
    """A log-likelihood of scores."""

    def __call__(self, scores: Scores) -> tuple[float, Scores]:
        """Return the log-likelihood and its gradient."""

    def blocks(self) -> Iterator[tuple[slice, Likelihood]]:
        """Return the same for blocks of rows, whose values add up."""


_SMALLEST = 1e-250
"""A sum of weights, the largest factor of each being 1, below which digits may have been lost."""


@dataclass(frozen=True, eq=False)
class _TrainingRows:
    """A field and the training rows: codes (n, m), `UNKNOWN` where a label is missing, and weights (n,)."""

    field: PairwiseField
    codes: Codes
    weights: Floats

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which labels are known, (n, m)."""
        return self.codes != UNKNOWN

    @cached_property
    def incomplete(self) -> npt.NDArray[np.intp]:
        """Rows in which a label is missing."""
        return np.flatnonzero(~self.known.all(axis=1))

    @cached_property
    def observed(self) -> Floats:
        """Indicators (n, w) of what is known; all zero in incomplete rows, which are dealt with apart."""
        indicators = self.field.indicators(self.codes)
        indicators[self.incomplete] = 0.0
        return indicators

    def blocks(self) -> Iterator[tuple[slice, Self]]:
        """Cut the rows so that the arrays of one evaluation stay near the processor."""
        for rows in row_blocks(len(self.codes), self._cells, PASS_CELLS):
            yield rows, replace(self, codes=self.codes[rows], weights=self.weights[rows])

    @property
    def _cells(self) -> int:
        """Cells of the arrays of one row, roughly."""
        return 8 * int(self.field.starts[-1])


class EliminationLikelihood(_TrainingRows):
    """The exact log-likelihood by variable elimination, for fields of small width."""

    @cached_property
    def observed_products(self) -> Floats:
        """Products (n, e) of the indicators of each pair."""
        return self.field.products(self.observed)

    def known_scores(self, scores: Scores) -> Floats:
        """Log-weights (n,) of the complete rows."""
        single = (scores.single * self.observed).sum(axis=1)
        return single + (scores.pair * self.observed_products).sum(axis=1)

    @property
    def _cells(self) -> int:
        return sum(self.field.cards) + 4 * int(self.field.edge_starts[-1])

    def __call__(self, scores: Scores) -> tuple[float, Scores]:
        """Return the log-likelihood and its gradient."""
        field, weights = self.field, self.weights
        n, m = self.codes.shape
        problem = Problem(field.cards, tuple(field.factors(scores)), n, m)
        score, single, pair = self.known_scores(scores), self.observed, self.observed_products
        if len(self.incomplete):
            rows = self.incomplete
            part = problem.rows(rows).plus(evidence_factors(field.cards, self.codes[rows]))
            score[rows], mean = self._sums(part)
            single, pair = single.copy(), pair.copy()
            single[rows], pair[rows] = mean
        log_partition, mean = self._sums(problem)
        value = float(weights @ (score - log_partition))
        single = weights[:, None] * (single - mean.single)
        pair = weights[:, None] * (pair - mean.pair)
        return value, Scores(single, pair if len(scores.pair) != 1 else pair.sum(axis=0, keepdims=True))

    def _sums(self, problem: Problem) -> tuple[Floats, Scores]:
        engine = Exact()
        n_factors = len(self.field.cards) + len(self.field.edges)
        marginals = engine.factor_marginals(problem)[:n_factors]
        return engine.log_partition(problem), self.field.expectations(marginals)


class HalvesLikelihood(_TrainingRows):
    """The exact log-likelihood of a field of any width whose pair scores are the same for all rows.

    The variables are split into two halves. Given the outcomes of both, the weight of a row is a product of
    what its single scores give to each half, A (n, q) and B (n, r), and of one table W (q, r) that all rows
    share. So the sum over all q * r outcomes is the sum of (A W) * B over r: matrix products, without a
    single exponential of the size of the outcomes. Evidence only puts zeros into A and B.
    """

    def __call__(self, scores: Scores) -> tuple[float, Scores]:
        """Return the log-likelihood and its gradient."""
        log_table = self._log_table(scores.pair[0])
        parts = [
            scores.single[:, columns] @ half.T
            for columns, half in zip(self._split, self._halves, strict=True)
        ]
        free = self._sums(parts, log_table, self.weights)
        if free is None:
            return self._slow(scores)
        log_partition, mean, total = free
        value = float(self.weights @ ((scores.single * self.observed).sum(axis=1) - log_partition))
        value += float(scores.pair[0] @ self._observed_pairs)
        single = self.observed - mean
        pair = self._observed_pairs - total
        if len(rows := self.incomplete):
            masked = [
                np.where(mask, part[rows], -np.inf) for mask, part in zip(self._masks, parts, strict=True)
            ]
            clamped = self._sums(masked, log_table, self.weights[rows])
            if clamped is None:
                return self._slow(scores)
            score, mean, total = clamped
            value += float(self.weights[rows] @ score)
            single[rows] += mean
            pair = pair + total
        return value, Scores(self.weights[:, None] * single, pair[None])

    @cached_property
    def _observed_pairs(self) -> Floats:
        """Weighted totals (e,) of the products of the indicators of each pair, of the complete rows."""
        return self.weights @ self.field.products(self.observed)

    @property
    def _cells(self) -> int:
        _, q, r = half_outcomes(self.field.cards)
        return 4 * (q + r) + 8 * int(self.field.starts[-1])

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
        """Which outcomes of each half, (i, q) and (i, r), agree with the known labels of incomplete rows."""
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


@dataclass(frozen=True, eq=False)
class PseudoLikelihood(_TrainingRows):
    """The sum over variables of log p(y_j | x, the other labels), which needs no sum over outcomes.

    A variable whose label is missing adds nothing; as a neighbour it has the training frequencies for its
    indicators.
    """

    one_hot: OneHot | None = None

    def blocks(self) -> Iterator[tuple[slice, Self]]:
        """See `_TrainingRows.blocks`; the training frequencies are those of all rows."""
        for rows, part in super().blocks():
            yield rows, replace(part, one_hot=self._one_hot)

    @cached_property
    def _one_hot(self) -> OneHot:
        return self.one_hot or OneHot.fit(self.codes, self.field.cards, self.weights)

    @cached_property
    def _neighbors(self) -> Floats:
        """Indicators (n, w) with training frequencies where a label is missing."""
        return self._one_hot.columns(self.codes)

    @cached_property
    def _gather(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Matrices (e, w) that add the values of pair scores up by their first, or second, indicator."""
        w, (first, second) = int(self.field.starts[-1]), self.field.members
        e, ones = np.arange(len(first)), np.ones(len(first))
        return (
            sparse.csr_array((ones, (e, first)), shape=(len(e), w)),
            sparse.csr_array((ones, (e, second)), shape=(len(e), w)),
        )

    def __call__(self, scores: Scores) -> tuple[float, Scores]:
        """Return the log-pseudo-likelihood and its gradient."""
        if len(scores.pair) == 1:
            return self._with_constant_pairs(scores)
        near, (first, second) = self._neighbors, self.field.members
        to_first, to_second = self._gather
        logits = scores.single + (near[:, second] * scores.pair) @ to_first
        logits += (near[:, first] * scores.pair) @ to_second
        value, residual = self._conditionals(logits)
        pair = residual[:, first] * near[:, second] + residual[:, second] * near[:, first]
        return value, Scores(residual, pair)

    def _with_constant_pairs(self, scores: Scores) -> tuple[float, Scores]:
        """Return the same where all rows share pair scores (1, e): without arrays of rows times pairs."""
        near, (first, second) = self._neighbors, self.field.members
        between = np.zeros((near.shape[1], near.shape[1]))
        np.add.at(between, (first, second), scores.pair[0])
        np.add.at(between, (second, first), scores.pair[0])
        value, residual = self._conditionals(scores.single + near @ between)
        met = residual.T @ near
        return value, Scores(residual, (met[first, second] + met[second, first])[None])

    def _conditionals(self, logits: Floats) -> tuple[float, Floats]:
        """Weighted log-likelihood of all conditionals, and its gradient by the logits (n, w)."""
        value, residual = self._binary_conditionals(logits)
        for j, table in enumerate(self.field.single_tables(logits)):
            if len(table) < 3:
                continue
            rows = np.flatnonzero(self.known[:, j])
            peak = table.max(axis=0)
            proba = np.exp(table - peak)
            total = proba.sum(axis=0)
            log_total = np.log(total) + peak
            value += self.weights[rows] @ (table[self.codes[rows, j], rows] - log_total[rows])
            columns = slice(self.field.starts[j], self.field.starts[j + 1])
            residual[:, columns] -= (proba / total).T
            residual[:, columns] *= (self.weights * self.known[:, j])[:, None]
        return float(value), residual

    def _binary_conditionals(self, logits: Floats) -> tuple[float, Floats]:
        """The share of the binary variables, all at once; the others have their neighbours for a gradient."""
        binary = np.flatnonzero(np.array(self.field.cards) == 2)
        if len(binary) == logits.shape[1]:
            return self._of_binary(logits, self._neighbors, self.known[:, binary])
        columns = self.field.starts[binary]
        value, part = self._of_binary(logits[:, columns], self._neighbors[:, columns], self.known[:, binary])
        residual = self._neighbors.copy()
        residual[:, columns] = part
        return value, residual

    def _of_binary(self, logits: Floats, truth: Floats, known: npt.NDArray[np.bool_]) -> tuple[float, Floats]:
        """Weighted log-likelihood and gradient of logits (n, b) of the second values of binary variables."""
        weights = self.weights[:, None] * known
        value = float((weights * (truth * logits + log_expit(-logits))).sum())
        return value, weights * (truth - expit(logits))


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
