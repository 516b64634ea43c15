"""Log-likelihoods of a class variable with any parents: of the training rows, or cross-validated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.criteria import Parametrisation
from tuplet.local.experts import Prepared, fit_steps
from tuplet.local.logistic import default_estimator, is_logistic_pipeline
from tuplet.local.many_logistic import LogisticBatch
from tuplet.local.onehot import OneHot
from tuplet.local.smoothed import SmoothedClassifier
from tuplet.local.split import Base, configurations, mix
from tuplet.local.stacked import StackedModel
from tuplet.space.features.estimators import is_column_wise, seeded
from tuplet.space.features.inputs import Features, take_rows

_PORTIONS = 4
"""Parts in which the configurations of a family are fitted, the largest first, to stop early."""


@dataclass(frozen=True)
class Children:
    """One `Child` for each variable, created on first access; they share prepared features.

    Parameters
    ----------
    X : features, n rows
    codes : int array, shape (n, v)
    cards : tuple of int
    estimators : sequence of classifiers
        One for each variable that may be a child; see `seeded_estimators`.
    weight : array, shape (n,), or None
    strength : float
        See `SplitModel`.
    fold_of : int array, shape (n,), or None
        The fold in which each row is held out; None for training likelihoods.
    prepared : dict
        Prepared features by estimator and rows; may be shared with another object.
    """

    X: Features
    codes: Codes
    cards: tuple[int, ...]
    estimators: Sequence[Any]
    weight: Floats | None
    strength: float
    fold_of: Codes | None
    prepared: dict[tuple[int, bytes], Prepared] = field(default_factory=dict)
    made: dict[int, Child] = field(default_factory=dict)

    def __getitem__(self, child: int) -> Child:
        if child not in self.made:
            self.made[child] = Child(
                self.estimators[child],
                self.X,
                self.codes[:, child],
                self.cards[child],
                self.weight,
                self.strength,
                self._folds(child),
            )
        return self.made[child]

    def _folds(self, child: int) -> tuple[ChildFold, ...]:
        y = self.codes[:, child]
        known = np.flatnonzero(y != UNKNOWN)
        if self.fold_of is None:
            return (ChildFold(self._prepare(child, y), y, known),)
        folds = []
        for fold in range(int(self.fold_of.max()) + 1):
            held = self.fold_of == fold
            learnt = np.where(held, UNKNOWN, y)
            folds.append(ChildFold(self._prepare(child, learnt), learnt, known[held[known]]))
        return tuple(folds)

    def _prepare(self, child: int, y: Codes) -> Prepared:
        """Features for the rows with a label in y (n,), shared by children that are prepared in the same way.

        Steps that do not use labels are fitted to held-out rows as well, so that all folds share one matrix.
        """
        estimator = self.estimators[child]
        if not is_column_wise(estimator):
            return Prepared.make(estimator, self.X, y, self.weight)
        blind = np.where(self.codes[:, child] == UNKNOWN, UNKNOWN, 0)
        key = (id(estimator), blind.tobytes())
        if key not in self.prepared:
            self.prepared[key] = Prepared.make(estimator, self.X, blind, self.weight)
        return self.prepared[key]


@dataclass(frozen=True)
class ChildFold:
    """Rows to learn from and rows to evaluate.

    Parameters
    ----------
    prepared : Prepared
        Features, prepared with the rows to learn from.
    y : int array, shape (n,)
        Codes of the child; `UNKNOWN` for rows that are not to learn from.
    rows : int array, shape (r,)
        The rows to evaluate.
    """

    prepared: Prepared
    y: Codes
    rows: Codes


@dataclass(frozen=True)
class Child:
    """A class variable, and how well it is predicted with any parents.

    All likelihoods are sums over the rows whose child is known, whatever the parents, so that those of
    different parents are comparable. If configurations are split, a row with an unknown parent is evaluated
    by the model without parents, which favours no set of parents. If parents are inputs, it is evaluated as
    it would be predicted.

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
    folds : tuple of ChildFold
        One with all rows in both roles for the training likelihood, several for cross-validation. Every row
        whose child is known is evaluated once.
    """

    estimator: Any
    X: Features
    y: Codes
    card: int
    weight: Floats | None
    strength: float
    folds: tuple[ChildFold, ...]

    @cached_property
    def total(self) -> float:
        """Weight of all rows whose child is known."""
        return float(self._weights.sum())

    @cached_property
    def alone_table(self) -> Floats:
        """Probabilities (n, k) of all categories without parents; 1 in rows whose child is unknown."""
        answer = np.ones((len(self.y), self.card))
        for fold in self.folds:
            base = Base.fit(fold.prepared, fold.y, self.card, self.weight)
            answer[fold.rows] = base.proba(take_rows(fold.prepared.Z, fold.rows))
        return answer

    @cached_property
    def alone(self) -> Floats:
        """Probability (n,) of the category of every row without parents; 1 where it is unknown."""
        return _at(self.alone_table, np.maximum(self.y, 0))

    @property
    def is_warm(self) -> bool:
        """Whether `alone_table` is there already."""
        return "alone_table" in self.__dict__

    def warm_up(self, alone_table: Floats) -> None:
        """Take `alone_table` from a copy that has computed it in another process."""
        self.__dict__["alone_table"] = alone_table

    def log_likelihood(
        self, kind: Parametrisation, parents: Codes, parent_cards: Sequence[int], floor: float = -np.inf
    ) -> float:
        """Log-likelihood with parents (n, p); minus infinity if it is not above `floor`.

        That is often clear early: no log-probability is positive, so the sum over some rows is a bound on the
        sum over all.
        """
        return (self._split if kind == "split" else self._inputs)(parents, parent_cards, floor)

    def _split(self, parents: Codes, parent_cards: Sequence[int], floor: float) -> float:
        """Log-likelihood with one classifier for each configuration of the parents."""
        blocks = configurations(parents, parent_cards)
        aside = blocks == UNKNOWN if len(parent_cards) else np.ones(len(blocks), dtype=bool)
        log_likelihood = float(self._weights[aside] @ np.log(self.alone[aside]))
        for fold in self.folds if len(parent_cards) else ():
            for portion, q in self._portions(blocks):
                if log_likelihood <= floor:
                    return -np.inf
                log_likelihood += self._evaluate(fold, portion, q)
        return log_likelihood if log_likelihood > floor else -np.inf

    def _inputs(self, parents: Codes, parent_cards: Sequence[int], floor: float) -> float:
        """Log-likelihood with one classifier that has the parents as one-hot inputs."""
        log_likelihood = 0.0
        for fold in self.folds:
            # Other steps than column-wise ones cannot be fitted to the parents' columns alone.
            batch = fold.prepared.batch
            if isinstance(batch, LogisticBatch) and is_column_wise(self.estimator):
                own = self._linear(batch, fold, parents, parent_cards)
            else:
                own = self._stacked(fold, parents, parent_cards)
            log_likelihood += float(self._weights[fold.rows] @ own)
            if log_likelihood <= floor:
                return -np.inf
        return log_likelihood

    @cached_property
    def _weights(self) -> Floats:
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return np.where(self.y == UNKNOWN, 0.0, weight)

    def _portions(self, blocks: Codes) -> Iterator[tuple[Codes, int]]:
        """Yield blocks (n,) to fit and evaluate at once, renumbered, and how many these are.

        Blocks without rows are left out. Cross-validation comes in portions anyway, its folds.
        """
        size = np.bincount(blocks[(blocks != UNKNOWN) & (self._weights > 0)], minlength=1)
        order = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
        n_portions = _PORTIONS if len(self.folds) == 1 else 1
        cuts = np.searchsorted(np.cumsum(size[order]), size.sum() * np.arange(1, n_portions) / n_portions)
        for start, stop in pairwise([0, *sorted(set((cuts + 1).tolist())), len(order)]):
            part = order[start:stop]
            if len(part):
                place = np.full(max(len(size), int(blocks.max()) + 1) + 1, UNKNOWN)  # the last is for UNKNOWN
                place[part] = np.arange(len(part))
                yield place[blocks], len(part)

    def _evaluate(self, fold: ChildFold, blocks: Codes, q: int) -> float:
        """Log-likelihood of a fold's rows in these blocks."""
        experts = fold.prepared.fit(fold.y, blocks, q, self.card, self.weight)
        rows = fold.rows[blocks[fold.rows] != UNKNOWN]
        proba = experts.proba(take_rows(fold.prepared.Z, rows), blocks[rows])
        own = mix(_at(proba, self.y[rows]), experts.totals[blocks[rows]], self.alone[rows], self.strength)
        return float(self._weights[rows] @ np.log(own))

    def _linear(
        self, batch: LogisticBatch, fold: ChildFold, parents: Codes, parent_cards: Sequence[int]
    ) -> Floats:
        """Log-probabilities of the categories of a fold's rows (r,); those of `_stacked`, compiled."""
        weight = np.where(fold.y == UNKNOWN, 0.0, self._weights)
        columns = OneHot.fit(parents, parent_cards, weight).columns(parents)
        if fold.prepared.steps is not None and columns.shape[1] and weight.any():
            columns = fit_steps(self.estimator, columns, fold.y, self.weight).transform(columns)
        one_block = np.zeros(len(fold.y), dtype=np.intp)
        many = batch.fit(fold.y, one_block, 1, self.card, self.weight, extra=columns)
        proba = np.exp(many.log_proba(np.hstack([fold.prepared.Z, columns])[fold.rows]))
        counts = np.bincount(np.maximum(fold.y, 0), weight, minlength=self.card)
        smoothing = SmoothedClassifier(None, np.arange(self.card), counts.astype(float))
        return np.log(_at(smoothing.smooth(proba), self.y[fold.rows]))

    def _stacked(self, fold: ChildFold, parents: Codes, parent_cards: Sequence[int]) -> Floats:
        """Log-probabilities of the categories of a fold's rows (r,)."""
        model = StackedModel(self.estimator).fit(
            self.X,
            parents,
            fold.y,
            parent_cards=parent_cards,
            child_card=self.card,
            sample_weight=self.weight,
        )
        log_proba = model.log_proba(take_rows(self.X, fold.rows), parents[fold.rows])
        return _at(log_proba, self.y[fold.rows])


def random_folds(n: int, n_folds: int, rng: np.random.Generator) -> Codes:
    """Return the fold (n,) in which each row is held out; no more folds than rows."""
    if n_folds < 2:
        raise InputError(f"FamilyScorer: n_folds must be a whole number from 2, found {n_folds!r}.")
    return rng.permutation(n) % min(n_folds, n)


def seeded_estimators(
    estimators: Sequence[Any] | None, X: Features, m: int, rng: np.random.Generator
) -> list[Any]:
    """Return an estimator for each of m variables whose fits to the same rows are the same.

    None becomes the default, which is one object for all, so that its features are prepared once.
    """
    default = default_estimator(sparse=sparse.issparse(X))
    given = [None] * m if estimators is None else list(estimators)
    seeds = rng.integers(2**31 - 1, size=len(given)).tolist()
    return [
        default if each is None else each if is_logistic_pipeline(each) else seeded(each, seed)
        for each, seed in zip(given, seeds, strict=True)
    ]


def _at(table: Floats, codes: Codes) -> Floats:
    """Return the entry of each row (n,) of a table (n, k) at its own code (n,)."""
    return table[np.arange(len(codes)), codes]
