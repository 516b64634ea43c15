"""Scores of families: how well a class variable is predicted with a set of parents, less a penalty.

`FamilyScorer` chooses parametrisations and penalties; a `Child` computes the likelihoods.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeVar, final

import numpy as np
from scipy import sparse

from tuplet.core.exceptions import InputError
from tuplet.core.parallel import run_in_batches
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.local.base import LocalModel
from tuplet.local.calibration import is_made_of_trees
from tuplet.local.criteria import (
    PENALTIES,
    Parametrisation,
    Penalty,
    Score,
    check_family_settings,
    n_parameters,
    require_countable,
    resolve_criterion,
)
from tuplet.local.experts import Prepared, fit_steps
from tuplet.local.logistic import default_estimator, is_logistic_pipeline
from tuplet.local.many_logistic import LogisticBatch
from tuplet.local.onehot import OneHot
from tuplet.local.smoothed import SmoothedClassifier
from tuplet.local.split import STRENGTH, Base, SplitModel, configurations, mix
from tuplet.local.stacked import StackedModel
from tuplet.space.features.estimators import is_column_wise, seeded
from tuplet.space.features.inputs import Features, take_rows
from tuplet.structure.candidates import Family

T = TypeVar("T")

_PORTIONS = 4
"""Parts in which the configurations of a family are fitted, the largest first, to stop early."""


@final
class FamilyScorer:
    """Scores of families, a class variable with a set of parents, and the models that they are scores of.

    The score is the log-likelihood of the child under the very model that `model` returns, less a penalty
    for its parameters; or, for "cv", the log-likelihood of rows that were held out.

    Parameters
    ----------
    X : features, n rows
    codes : int array, shape (n, v)
        Codes of all variables, `UNKNOWN` where missing; discrete features that may be parents go behind
        the class variables.
    cards : sequence of int
        Number of categories of each variable.
    estimators : sequence of classifiers or None, optional
        One for each class variable; None stands for `default_estimator()`.
    parametrisation : {"auto", "split", "inputs"}
        "split" is one classifier for each configuration of the parents (`SplitModel`), "inputs" one with the
        parents as inputs (`StackedModel`). "auto" takes what predicts rows better that were held out: for
        each family where compiled regressions are cross-validated, otherwise for each child, by one pair of
        parents. Trees and their ensembles get "inputs", since they split by parents themselves.
    score : {"auto", "bic", "bic-true", "aic", "aic-true", "cv"} or callable
        "bic" is (ln N)/2 for each parameter, where the coefficients of the features do not count: those of a
        configuration are (k - 1). "bic-true" counts them too, which needs logistic regressions; "aic" costs
        1 for each parameter. A callable gets the number of parameters, counted as for "bic", and N, and
        returns a penalty >= 0 that grows with the former. "auto" is "bic" for logistic regressions and
        naive Bayes, and "cv" if there is another classifier: forests memorise their training rows.
    strength : float
        See `SplitModel`.
    n_folds : int
        For cross-validation, at most one for each row. All families have the same folds.
    sample_weight : array, shape (n,), optional
    n_jobs : int, optional
        Families that are scored side by side: by threads where all classifiers of a family are fitted at once
        (see `SplitModel`), otherwise by processes.
    deadline : float, optional
        Value of `time.monotonic()` from which on parametrisations are not compared any more: children that
        have none by then get "inputs".
    random_state : int, Generator or None
        Of the folds, and of estimators whose own `random_state` was left at None.

    Notes
    -----
    Every score uses all rows whose child is known, so that those of different parents are comparable; see
    `Child` for rows in which a parent is unknown. N is the weight of all these rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.structure import candidate_parent_sets, find_dag
    >>> rng = np.random.default_rng(0)
    >>> X, first = rng.normal(size=(200, 2)), rng.integers(2, size=200)
    >>> codes = np.column_stack([first, first ^ (rng.random(200) < 0.1), rng.integers(2, size=200)])
    >>> scorer = FamilyScorer(X, codes, (2, 2, 2))
    >>> found = candidate_parent_sets(3, 2, scorer.score, bound=scorer.bound, forbidden=[(1, 0)])
    >>> network = find_dag(found.scores).parents
    >>> network
    ((), (0,), ())
    >>> scorer.model(1, network[1]).log_table(X).shape
    (2, 2, 200)
    """

    def __init__(
        self,
        X: Features,
        codes: Codes,
        cards: Sequence[int],
        *,
        estimators: Sequence[Any] | None = None,
        parametrisation: Literal["auto", "split", "inputs"] = "auto",
        score: Score | Penalty = "auto",
        strength: float = STRENGTH,
        n_folds: int = 5,
        sample_weight: Floats | None = None,
        n_jobs: int | None = None,
        deadline: float | None = None,
        random_state: Seed = None,
    ) -> None:
        check_family_settings(parametrisation, score, strength)
        rng = np.random.default_rng(random_state)
        score = resolve_criterion(score, estimators)
        self.cards, self.n_jobs, self.parametrisation = tuple(cards), n_jobs, parametrisation
        self.deadline = deadline
        self._penalty: Penalty | None
        self._penalty, self._counts_features = (
            (score, False) if callable(score) else PENALTIES.get(score, (None, False))
        )
        if len(codes) < 2 and score != "cv":  # there is nothing to hold out, and nothing to choose by
            self.parametrisation = parametrisation = "split"
        folds = _random_folds(len(codes), n_folds, rng)
        estimators = _seeded_estimators(estimators, X, len(self.cards), rng)
        if self._counts_features:
            require_countable(estimators)
        given = (X, np.asarray(codes), self.cards, estimators, sample_weight, strength)
        self._held_out = _Children(*given, folds)
        self._children = self._held_out if score == "cv" else _Children(*given, None, self._held_out.prepared)
        self._chosen: dict[tuple[int, tuple[int, ...]], Parametrisation] = {}
        self._chosen_for: dict[int, Parametrisation] = {}

    def score(self, families: Sequence[Family]) -> Iterator[float]:
        """Yield the score of each family in order; some value up to its floor if it is not above that."""
        self._fit_alone({family.child for family in families})
        values = self._run(_best_score, (self._task(f) for f in families), {f.child for f in families})
        for family, (value, kind) in zip(families, values, strict=True):
            if value > family.floor:
                self._chosen[family.child, tuple(family.parents)] = kind
            yield value

    @property
    def bound(self) -> Callable[[int, tuple[int, ...]], float] | None:
        """(child, parents) -> bound on the score of these parents and all their supersets; None for "cv".

        Proof: a log-likelihood is a sum of weighted log-probabilities, none of them positive, so a score is
        at most minus its penalty; and penalties grow with the parameters, whose number no further parent
        lowers: it is multiplied by a number of categories >= 1, or one less than that is added.
        """
        return None if self._penalty is None else self._bound

    def model(self, child: int, parents: Sequence[int]) -> LocalModel:
        """Return the model of a family, fitted to all rows."""
        parents = tuple(parents)
        given, estimator = self._children, self._children.estimators[child]
        split = self.parametrisation_of(child, parents) == "split"
        local: LocalModel = (
            SplitModel(estimator, strength=given.strength, n_jobs=self.n_jobs)
            if split
            else StackedModel(estimator)
        )
        return local.fit(
            given.X,
            given.codes[:, list(parents)],
            given.codes[:, child],
            parent_cards=[self.cards[p] for p in parents],
            child_card=self.cards[child],
            sample_weight=given.weight,
        )

    def parametrisation_of(self, child: int, parents: Sequence[int]) -> Parametrisation:
        """Return the parametrisation of a family's model; without parents the two are the same: "split"."""
        parents = tuple(parents)
        kinds = self._kinds(child, parents)
        if len(kinds) == 1:
            return kinds[0]
        if (child, parents) not in self._chosen:
            self._chosen[child, parents] = _best_score(*self._task(Family(child, parents, -np.inf)))[1]
        return self._chosen[child, parents]

    def held_out(self, child: int, parents: Sequence[int]) -> float:
        """Log-likelihood of a family in rows that were held out; its score, if that is cross-validated."""
        kind = self.parametrisation_of(child, parents)
        return self._held_out[child].log_likelihood(kind, *self._parents(parents))

    def without_parents(self, child: int) -> Floats:
        """Probabilities (n, k) of the categories of a child by its model without parents; 1 if unknown.

        Of held-out rows where scores are cross-validated.
        """
        return self._children[child].alone_table

    def is_compiled(self, child: int) -> bool:
        """Whether all fits of a child are compiled regressions, or frequencies."""
        return all(each.prepared.is_compiled for each in self._children[child].folds)

    def _bound(self, child: int, parents: tuple[int, ...]) -> float:
        return -self._penalty_of(self._kinds(child, parents)[0], child, parents)

    def _kinds(self, child: int, parents: tuple[int, ...]) -> tuple[Parametrisation, ...]:
        """Parametrisations to be tried; several only where scores are cross-validated and cheap."""
        if not parents:
            return ("split",)
        if self.parametrisation != "auto":
            return (self.parametrisation,)
        if self._penalty is None and self.is_compiled(child):
            return ("inputs", "split")
        if is_made_of_trees(self._children.estimators[child]):
            return ("inputs",)
        if child not in self._chosen_for:
            self._choose({child, *self._children.made})  # all at once, side by side
        return (self._chosen_for[child],)

    def _penalty_of(self, kind: Parametrisation, child: int, parents: tuple[int, ...]) -> float:
        """Penalty of a family."""
        if self._penalty is None:
            return 0.0
        of = self._children[child]
        width = of.folds[0].prepared.Z.shape[1] if self._counts_features else 0
        cards = [self.cards[p] for p in parents]
        return self._penalty(n_parameters(kind, of.card, cards, width), of.total)

    def _task(self, family: Family) -> tuple[Any, ...]:
        child, parents = family.child, tuple(family.parents)
        options = [(kind, self._penalty_of(kind, child, parents)) for kind in self._kinds(child, parents)]
        return self._children[child], *self._parents(parents), options, family.floor

    def _parents(self, parents: Sequence[int]) -> tuple[Codes, list[int]]:
        return self._children.codes[:, list(parents)], [self.cards[p] for p in parents]

    # -- once for each child --------------------------------------------------------------------------------

    def _fit_alone(self, children: Iterable[int]) -> None:
        """Fit the models without parents, which all families of a child need."""
        missing = [c for c in children if not self._children[c].has_alone_table]
        done = self._run(_alone, ((self._children[c],) for c in missing), missing)
        for c, alone in zip(missing, done, strict=True):
            self._children[c].set_alone_table(alone)

    def _choose(self, children: Iterable[int]) -> None:
        """Choose a parametrisation for each child that has none."""
        left = [c for c in children if c not in self._chosen_for]
        kinds = self._run(_better_parametrisation, ((self._held_out[c], *self._trial(c)) for c in left), left)
        for c in left:
            self._chosen_for[c] = "inputs" if self._is_late() else next(kinds)

    def _is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _trial(self, child: int) -> tuple[Codes, list[int]]:
        """Parents by which to choose a parametrisation: the two with the most information about the child."""
        codes = self._children.codes
        others = [v for v in range(codes.shape[1]) if v != child]
        others.sort(key=lambda v: -mutual_information(codes[:, child], codes[:, v]))
        return self._parents(others[:2])

    def _run(
        self, function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], children: Iterable[int]
    ) -> Iterator[T]:
        """Yield the results of tasks about some children; compiled code and numpy run in threads."""
        folds = (each for c in children for each in self._children[c].folds)
        batched = all(each.prepared.is_batched for each in folds)
        return run_in_batches(function, tasks, self.n_jobs, prefer="threads" if batched else "processes")


def mutual_information(a: Codes, b: Codes) -> float:
    """Mutual information of two variables, in the rows where both are known, less its expected excess."""
    both = (a != UNKNOWN) & (b != UNKNOWN)
    if not both.any():
        return 0.0
    a, b, k = a[both], b[both], int(b.max()) + 1
    counts = np.bincount(a * k + b, minlength=(int(a.max()) + 1) * k).reshape(-1, k)
    shares, seen = counts / len(a), counts > 0
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    excess = (seen.any(axis=1).sum() - 1) * (seen.any(axis=0).sum() - 1) / (2 * len(a))
    return float(shares[seen] @ np.log(shares[seen] / apart[seen]) - excess)


def _alone(child: Child) -> Floats:
    return child.alone_table


def _best_score(
    child: Child,
    parents: Codes,
    parent_cards: Sequence[int],
    options: Sequence[tuple[Parametrisation, float]],
    floor: float,
) -> tuple[float, Parametrisation]:
    """Score of a family, and the parametrisation that has it; minus infinity if it is not above the floor."""
    best, chosen = -np.inf, options[0][0]
    for kind, penalty in options:
        goal = max(best, floor)
        if -penalty <= goal:  # no log-likelihood is positive
            continue
        value = child.log_likelihood(kind, parents, parent_cards, goal + penalty) - penalty
        if value > best:
            best, chosen = value, kind
    return best, chosen


def _better_parametrisation(child: Child, parents: Codes, parent_cards: Sequence[int]) -> Parametrisation:
    """Return the parametrisation with the higher likelihood of held-out rows.

    Penalties cannot decide: (ln N)/2 for each configuration is too little for splitting, since each has its
    own coefficients, and as much for each coefficient is too much, since they are shrunk. Splitting must be
    better by ln N, because with few rows it would often be better by chance.
    """
    if not len(parent_cards):
        return "split"
    goal = child.log_likelihood("inputs", parents, parent_cards) + np.log(max(child.total, 1.0))
    return "split" if child.log_likelihood("split", parents, parent_cards, goal) > goal else "inputs"


# -- the child of a family, and its likelihood with any parents --------------------------------------------


@dataclass(frozen=True)
class _Children:
    """One `Child` for each variable, created on first access; they share prepared features.

    Parameters
    ----------
    X : features, n rows
    codes : int array, shape (n, v)
    cards : tuple of int
    estimators : sequence of classifiers
        One for each variable that may be a child; see `_seeded_estimators`.
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

    def _folds(self, child: int) -> tuple[_ChildFold, ...]:
        y = self.codes[:, child]
        known = np.flatnonzero(y != UNKNOWN)
        if self.fold_of is None:
            return (_ChildFold(self._prepare(child, y), y, known),)
        folds = []
        for fold in range(int(self.fold_of.max()) + 1):
            held = self.fold_of == fold
            learnt = np.where(held, UNKNOWN, y)
            folds.append(_ChildFold(self._prepare(child, learnt), learnt, known[held[known]]))
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
class _ChildFold:
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
    folds : tuple of _ChildFold
        One with all rows in both roles for the training likelihood, several for cross-validation. Every row
        whose child is known is evaluated once.
    """

    estimator: Any
    X: Features
    y: Codes
    card: int
    weight: Floats | None
    strength: float
    folds: tuple[_ChildFold, ...]

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
    def has_alone_table(self) -> bool:
        """Whether `alone_table` has been computed."""
        return "alone_table" in self.__dict__

    def set_alone_table(self, alone_table: Floats) -> None:
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

    def _evaluate(self, fold: _ChildFold, blocks: Codes, q: int) -> float:
        """Log-likelihood of a fold's rows in these blocks."""
        experts = fold.prepared.fit(fold.y, blocks, q, self.card, self.weight)
        rows = fold.rows[blocks[fold.rows] != UNKNOWN]
        proba = experts.proba(take_rows(fold.prepared.Z, rows), blocks[rows])
        own = mix(_at(proba, self.y[rows]), experts.totals[blocks[rows]], self.alone[rows], self.strength)
        return float(self._weights[rows] @ np.log(own))

    def _linear(
        self, batch: LogisticBatch, fold: _ChildFold, parents: Codes, parent_cards: Sequence[int]
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

    def _stacked(self, fold: _ChildFold, parents: Codes, parent_cards: Sequence[int]) -> Floats:
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


def _random_folds(n: int, n_folds: int, rng: np.random.Generator) -> Codes:
    """Return the fold (n,) in which each row is held out; no more folds than rows."""
    if n_folds < 2:
        raise InputError(f"FamilyScorer: n_folds must be a whole number from 2, found {n_folds!r}.")
    return rng.permutation(n) % min(n_folds, n)


def _seeded_estimators(
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
