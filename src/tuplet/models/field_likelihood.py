"""Log-likelihoods of pairwise fields, and their gradients: of outcomes, and of one label given the others.

Each object is called with the scores of the training rows and returns the weighted log-likelihood and its
gradient with respect to them. Labels that are not known are summed out where that is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuplet.inference import Exact, Problem, evidence_factors
from tuplet.local.onehot import OneHot
from tuplet.models.pairwise_field import PairwiseField, Scores
from tuplet.typing import UNKNOWN, Codes, Floats

Likelihood: TypeAlias = Callable[[Scores], tuple[float, Scores]]


@dataclass(frozen=True, eq=False)
class TrainingRows:
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

    @cached_property
    def observed_products(self) -> Floats:
        """Products (n, e) of the indicators of each pair."""
        return self.field.products(self.observed)

    def known_scores(self, scores: Scores) -> Floats:
        """Log-weights (n,) of the complete rows."""
        single = (scores.single * self.observed).sum(axis=1)
        return single + (scores.pair * self.observed_products).sum(axis=1)


class EliminationLikelihood(TrainingRows):
    """The exact log-likelihood by variable elimination, for fields of small width."""

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


class PseudoLikelihood(TrainingRows):
    """The sum over variables of log p(y_j | x, the other labels), which needs no sum over outcomes.

    A variable whose label is missing adds nothing; as a neighbour it has the training frequencies for its
    indicators.
    """

    @cached_property
    def _neighbors(self) -> Floats:
        """Indicators (n, w) with training frequencies where a label is missing."""
        return OneHot.fit(self.codes, self.field.cards, self.weights).columns(self.codes)

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
        value, residual = 0.0, self._neighbors.copy()
        for j, table in enumerate(self.field.single_tables(logits)):
            if len(table) < 2:
                continue
            rows = np.flatnonzero(self.known[:, j])
            peak = table.max(axis=0)
            proba = np.exp(table - peak)
            total = proba.sum(axis=0)
            log_total = np.log(total) + peak
            value += self.weights[rows] @ (table[self.codes[rows, j], rows] - log_total[rows])
            columns = slice(self.field.starts[j], self.field.starts[j + 1])
            residual[:, columns] -= (proba / total)[-self.field.widths[j] :].T
            residual[:, columns] *= (self.weights * self.known[:, j])[:, None]
        return float(value), residual
