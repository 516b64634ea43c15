"""Log-likelihoods of one child with any parents: of the training rows, or cross-validated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from tuplet.local.estimators import is_column_wise
from tuplet.local.experts import Prepared, fit_steps
from tuplet.local.inputs import Features, take_rows
from tuplet.local.many_logistic import LogisticBatch
from tuplet.local.onehot import OneHot
from tuplet.local.smoothed import SmoothedClassifier
from tuplet.local.split import Base, configurations, mix
from tuplet.local.stacked import StackedModel
from tuplet.typing import UNKNOWN, Codes, Floats

_PORTIONS = 4
"""Parts in which the configurations of a family are fitted, the largest first, to see if it is worth it."""


@dataclass(frozen=True)
class Round:
    """Rows to learn from and rows to be judged by.

    Parameters
    ----------
    prepared : Prepared
        Made ready for the rows to learn from.
    y : int array, shape (n,)
        Codes of the child; `UNKNOWN` for rows that are not to learn from.
    rows : int array, shape (r,)
        The rows to be judged by.
    """

    prepared: Prepared
    y: Codes
    rows: Codes


@dataclass(frozen=True)
class Child:
    """A class variable, and how well it is predicted with any parents.

    All likelihoods are sums over the rows whose child is known, whatever the parents: otherwise those of
    different parents would not compare. A row with an unknown parent is judged by the model without
    parents where configurations are split, which is what p(y | x) is without them: it speaks neither for
    nor against the parents. Where parents are inputs, it is judged as it would be predicted.

    Parameters
    ----------
    estimator : classifier
    X : features, n rows
    y : int array, shape (n,)
        Codes of the child.
    card : int
        Number of categories k.
    weight : array, shape (n,), or None
    strength : float
        See `SplitModel`.
    rounds : tuple of Round
        One with all rows in both roles for the training likelihood, one for each fold otherwise. Every row
        whose child is known is judged once.
    """

    estimator: Any
    X: Features
    y: Codes
    card: int
    weight: Floats | None
    strength: float
    rounds: tuple[Round, ...]

    @cached_property
    def total(self) -> float:
        """Weight of all rows whose child is known."""
        return float(self._weights.sum())

    @cached_property
    def alone_table(self) -> Floats:
        """What the model without parents gives to all categories (n, k); 1 in rows whose child is unknown."""
        answer = np.ones((len(self.y), self.card))
        for each in self.rounds:
            base = Base.fit(each.prepared, each.y, self.card, self.weight)
            answer[each.rows] = base.proba(take_rows(each.prepared.Z, each.rows))
        return answer

    @cached_property
    def alone(self) -> Floats:
        """What the model without parents gives to the category of every row (n,); 1 where it is unknown."""
        return _at(self.alone_table, np.maximum(self.y, 0))

    @property
    def is_warm(self) -> bool:
        """Whether `alone_table` is there already."""
        return "alone_table" in self.__dict__

    def warm_up(self, alone_table: Floats) -> None:
        """Take `alone_table` from a copy that has computed it in another process."""
        self.__dict__["alone_table"] = alone_table

    def split(self, parents: Codes, parent_cards: Sequence[int], floor: float = -np.inf) -> float:
        """Log-likelihood with one classifier for each configuration of the parents (n, p).

        Minus infinity if it is not above `floor`, which is often seen early: no log-probability is positive,
        so what some rows have got is a bound for all of them.
        """
        blocks = configurations(parents, parent_cards)
        aside = blocks == UNKNOWN if len(parent_cards) else np.ones(len(blocks), dtype=bool)
        log_likelihood = float(self._weights[aside] @ np.log(self.alone[aside]))
        for each in self.rounds if len(parent_cards) else ():
            for portion, q in self._portions(blocks):
                if log_likelihood <= floor:
                    return -np.inf
                log_likelihood += self._judge(each, portion, q)
        return log_likelihood if log_likelihood > floor else -np.inf

    def inputs(self, parents: Codes, parent_cards: Sequence[int], floor: float = -np.inf) -> float:
        """Log-likelihood with one classifier that has the parents (n, p) as one-hot inputs."""
        log_likelihood = 0.0
        for each in self.rounds:
            # Other steps than column-wise ones cannot be fitted to the parents' columns alone.
            batch = each.prepared.batch
            if isinstance(batch, LogisticBatch) and is_column_wise(self.estimator):
                own = self._linear(batch, each, parents, parent_cards)
            else:
                own = self._stacked(each, parents, parent_cards)
            log_likelihood += float(self._weights[each.rows] @ own)
            if log_likelihood <= floor:
                return -np.inf
        return log_likelihood

    @cached_property
    def _weights(self) -> Floats:
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return np.where(self.y == UNKNOWN, 0.0, weight)

    def _portions(self, blocks: Codes) -> Iterator[tuple[Codes, int]]:
        """Yield blocks (n,) to be fitted and judged at once, numbered anew, and how many these are.

        Blocks without rows are left out. Cross-validation comes in portions anyway, its folds.
        """
        size = np.bincount(blocks[(blocks != UNKNOWN) & (self._weights > 0)], minlength=1)
        order = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
        n_portions = _PORTIONS if len(self.rounds) == 1 else 1
        cuts = np.searchsorted(np.cumsum(size[order]), size.sum() * np.arange(1, n_portions) / n_portions)
        for start, stop in pairwise([0, *sorted(set((cuts + 1).tolist())), len(order)]):
            part = order[start:stop]
            if len(part):
                place = np.full(max(len(size), int(blocks.max()) + 1) + 1, UNKNOWN)  # the last is for UNKNOWN
                place[part] = np.arange(len(part))
                yield place[blocks], len(part)

    def _judge(self, each: Round, blocks: Codes, q: int) -> float:
        """Log-likelihood of a round's rows in these blocks."""
        experts = each.prepared.fit(each.y, blocks, q, self.card, self.weight)
        rows = each.rows[blocks[each.rows] != UNKNOWN]
        proba = experts.proba(take_rows(each.prepared.Z, rows), blocks[rows])
        own = mix(_at(proba, self.y[rows]), experts.totals[blocks[rows]], self.alone[rows], self.strength)
        return float(self._weights[rows] @ np.log(own))

    def _linear(
        self, batch: LogisticBatch, each: Round, parents: Codes, parent_cards: Sequence[int]
    ) -> Floats:
        """Log-probabilities of the categories of a round's rows (r,); those of `_stacked`, compiled."""
        weight = np.where(each.y == UNKNOWN, 0.0, self._weights)
        columns = OneHot.fit(parents, parent_cards, weight).columns(parents)
        if each.prepared.steps is not None and columns.shape[1] and weight.any():
            columns = fit_steps(self.estimator, columns, each.y, self.weight).transform(columns)
        one_block = np.zeros(len(each.y), dtype=np.intp)
        many = batch.fit(each.y, one_block, 1, self.card, self.weight, extra=columns)
        proba = np.exp(many.log_proba(np.hstack([each.prepared.Z, columns])[each.rows]))
        counts = np.bincount(np.maximum(each.y, 0), weight, minlength=self.card)
        smoothing = SmoothedClassifier(None, np.arange(self.card), counts.astype(float))
        return np.log(_at(smoothing.smooth(proba), self.y[each.rows]))

    def _stacked(self, each: Round, parents: Codes, parent_cards: Sequence[int]) -> Floats:
        """Log-probabilities of the categories of a round's rows (r,)."""
        model = StackedModel(self.estimator).fit(
            self.X,
            parents,
            each.y,
            parent_cards=parent_cards,
            child_card=self.card,
            sample_weight=self.weight,
        )
        log_proba = model.log_proba(take_rows(self.X, each.rows), parents[each.rows])
        return _at(log_proba, self.y[each.rows])


def _at(table: Floats, codes: Codes) -> Floats:
    """Return the entry of each row (n,) of a table (n, k) at its own code (n,)."""
    return table[np.arange(len(codes)), codes]
