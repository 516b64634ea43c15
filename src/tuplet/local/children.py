"""The children of a search: each with its classifier, its rows to learn from and rows to be judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from tuplet.exceptions import InputError
from tuplet.local.estimators import is_column_wise, seeded
from tuplet.local.experts import Prepared
from tuplet.local.inputs import Features
from tuplet.local.likelihood import Child, Round
from tuplet.local.logistic import default_estimator, is_logistic_pipeline
from tuplet.typing import UNKNOWN, Codes, Floats


@dataclass(frozen=True)
class Children:
    """One `Child` for each variable, made when it is asked for; they share what they can.

    Parameters
    ----------
    X : features, n rows
    codes : int array, shape (n, v)
    cards : tuple of int
    estimators : sequence of classifiers
        One for each variable that may be a child; see `settle`.
    weight : array, shape (n,), or None
    strength : float
        See `SplitModel`.
    folds : int array, shape (n,), or None
        The fold in which each row is held out; None for training likelihoods.
    prepared : dict
        Features that are ready, by what they are ready for; may be shared with others.
    """

    X: Features
    codes: Codes
    cards: tuple[int, ...]
    estimators: Sequence[Any]
    weight: Floats | None
    strength: float
    folds: Codes | None
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
                self._rounds(child),
            )
        return self.made[child]

    def _rounds(self, child: int) -> tuple[Round, ...]:
        y = self.codes[:, child]
        known = np.flatnonzero(y != UNKNOWN)
        if self.folds is None:
            return (Round(self._prepare(child, y), y, known),)
        rounds = []
        for fold in range(int(self.folds.max()) + 1):
            held = self.folds == fold
            learnt = np.where(held, UNKNOWN, y)
            rounds.append(Round(self._prepare(child, learnt), learnt, known[held[known]]))
        return tuple(rounds)

    def _prepare(self, child: int, y: Codes) -> Prepared:
        """Features for the rows with a label in y (n,), shared by children that are prepared in the same way.

        Steps that are blind to labels see the held-out rows as well: so all folds share one matrix.
        """
        estimator = self.estimators[child]
        if not is_column_wise(estimator):
            return Prepared.make(estimator, self.X, y, self.weight)
        blind = np.where(self.codes[:, child] == UNKNOWN, UNKNOWN, 0)
        key = (id(estimator), blind.tobytes())
        if key not in self.prepared:
            self.prepared[key] = Prepared.make(estimator, self.X, blind, self.weight)
        return self.prepared[key]


def make_folds(n: int, n_folds: int, rng: np.random.Generator) -> Codes:
    """Return the fold (n,) in which each row is held out; no more folds than rows."""
    if n_folds < 2:
        raise InputError(f"FamilyScorer: n_folds must be a whole number from 2, found {n_folds!r}.")
    return rng.permutation(n) % min(n_folds, n)


def settle(estimators: Sequence[Any] | None, X: Features, m: int, rng: np.random.Generator) -> list[Any]:
    """Return an estimator for each variable whose answer is the same whenever it is fitted to the same rows.

    None becomes the default, which is one object for all: so its features are prepared once.
    """
    default = default_estimator(sparse=sparse.issparse(X))
    given = [None] * m if estimators is None else list(estimators)
    seeds = rng.integers(2**31 - 1, size=len(given)).tolist()
    return [
        default if each is None else each if is_logistic_pipeline(each) else seeded(each, seed)
        for each, seed in zip(given, seeds, strict=True)
    ]
