"""Scores of families: how well a class variable is predicted with a set of parents, less a penalty.

`FamilyScorer` chooses parametrisations and penalties; a `Child` has the rows that the local models are fitted
to, and those that they are evaluated with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar, final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

from tuplet.core import clock
from tuplet.core.exceptions import InputError
from tuplet.core.parallel import run_in_batches
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.local.base import LocalModel, configurations
from tuplet.local.bayes import MixedNaiveBayes
from tuplet.local.calibration import is_made_of_trees
from tuplet.local.cross_fitting import inner_folds
from tuplet.local.logistic import default_estimator, is_logistic_pipeline
from tuplet.local.prepared import Base, PreparedFeatures, with_chosen_penalty
from tuplet.local.ridge import RidgeLogistic
from tuplet.local.smoothing import label_counts, pseudo_row
from tuplet.local.split import SplitModel
from tuplet.local.stacked import StackedModel
from tuplet.space.features.estimators import is_column_wise, last_step, name_of, seeded
from tuplet.space.features.inputs import Features
from tuplet.structure.candidates import Family

T = TypeVar("T")

Score: TypeAlias = Literal["auto", "bic", "bic-true", "aic", "aic-true", "cv"]

Parametrisation: TypeAlias = Literal["split", "inputs"]

PARAMETRISATIONS: dict[Parametrisation, type[LocalModel]] = {"split": SplitModel, "inputs": StackedModel}
"""The local model of each parametrisation."""

Penalty: TypeAlias = Callable[[float, float], float]
"""(number of free parameters, number of rows) -> penalty >= 0, which must grow with the parameters."""

_MODEST = (
    RidgeLogistic,
    LogisticRegression,  # also with a strength chosen by cross-validation, which is a subclass
    GaussianNB,
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    MultinomialNB,
    MixedNaiveBayes,
)
"""Classifiers that do not memorise training rows, so that their training likelihood can be penalised."""

_LEAST_C = 0.1
"""Least C of default classifiers. C is chosen by models without parents, which leave no slopes where features
predict a variable only together with its parents."""

_PORTIONS = 4
"""Parts in which the configurations of a family are fitted, the largest first, to stop early.

On yeast with two parents, one part takes 1.2 times as long with naive Bayes, but 0.85 times as long with
compiled regressions, which are therefore fitted at once.
"""


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
    n_folds : int
        For cross-validation, at most one for each row or group. All families have the same folds.
    sample_weight : array, shape (n,), optional
    groups : int array, shape (n,), optional
        Rows of one group are held out together.
    n_jobs : int, optional
        Families that are scored side by side: by threads where all classifiers of a family are fitted at once
        (see `SplitModel`), otherwise by processes.
    deadline : float, optional
        Value of `clock.now()` from which on parametrisations are not compared any more: children that
        have none by then get "inputs".
    random_state : int, Generator or None
        Of the folds, and of estimators whose own `random_state` was left at None.

    Notes
    -----
    Every score uses all rows whose child is known, so that those of different parents are comparable. If
    configurations are split, a row with an unknown parent is evaluated by the model without parents, which
    favours no set of parents. If parents are inputs, it is evaluated as it would be predicted. N is the
    weight of all these rows.

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
        n_folds: int = 5,
        sample_weight: Floats | None = None,
        groups: Codes | None = None,
        n_jobs: int | None = None,
        deadline: float | None = None,
        random_state: Seed = None,
    ) -> None:
        rng = np.random.default_rng(random_state)
        score = resolve_criterion(score, estimators)
        self.X, self.codes, self.cards, self.weight = X, np.asarray(codes), tuple(cards), sample_weight
        self.parametrisation, self.n_jobs, self.deadline = parametrisation, n_jobs, deadline
        self.groups = groups
        self._penalty: Penalty | None
        self._penalty, self._counts_features = (
            (score, False) if callable(score) else _PENALTIES.get(score, (None, False))
        )
        if len(codes) < 2 and score != "cv":  # there is nothing to hold out, and nothing to choose by
            self.parametrisation = "split"
        self._held_rows = [
            fold.test for fold in inner_folds(None, codes, None, n_folds, groups=groups, rng=rng)
        ]
        self._estimators = self._with_penalties(_seeded_estimators(estimators, X, len(self.cards), rng))
        if self._counts_features:
            _require_countable(self._estimators)
        self._prepared: dict[tuple[int, bytes], PreparedFeatures] = {}
        self._held_out: dict[int, Child] = {}
        self._scored: dict[int, Child] = self._held_out if score == "cv" else {}
        self._chosen: dict[tuple[int, tuple[int, ...]], Parametrisation] = {}
        self._chosen_for: dict[int, Parametrisation] = {}

    def _with_penalties(self, estimators: Sequence[Any]) -> list[Any]:
        """Choose open penalties, one for all class variables that have the same estimator."""
        done = {}
        for estimator in estimators:
            if id(estimator) not in done:
                own = [i for i, each in enumerate(estimators) if each is estimator]
                cards = [self.cards[i] for i in own]
                done[id(estimator)] = with_chosen_penalty(
                    estimator, self.X, self.codes[:, own], cards, self.weight, self.groups, least=_LEAST_C
                )
        return [done[id(estimator)] for estimator in estimators]

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
        codes, cards = self._parents(parents)
        local = PARAMETRISATIONS[self.parametrisation_of(child, parents)]
        return local(self._estimators[child], n_jobs=self.n_jobs).fit(
            self.X,
            codes,
            self.codes[:, child],
            parent_cards=cards,
            child_card=self.cards[child],
            sample_weight=self.weight,
            groups=self.groups,
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
        return self._child(child, self._held_out).log_likelihood(kind, *self._parents(parents))

    def without_parents(self, child: int) -> Floats:
        """Probabilities (n, k) of the categories of a child by its model without parents; 1 if unknown.

        Of held-out rows where scores are cross-validated.
        """
        return self._child(child).alone

    def _bound(self, child: int, parents: tuple[int, ...]) -> float:
        return -self._penalty_of(self._kinds(child, parents)[0], child, parents)

    def _kinds(self, child: int, parents: tuple[int, ...]) -> tuple[Parametrisation, ...]:
        """Parametrisations to be tried; several only where scores are cross-validated and cheap."""
        if not parents:
            return ("split",)
        if self.parametrisation != "auto":
            return (self.parametrisation,)
        if self._penalty is None and all(fold.features.is_compiled for fold in self._child(child).folds):
            return ("inputs", "split")
        if is_made_of_trees(self._estimators[child]):
            return ("inputs",)
        if child not in self._chosen_for:
            self._choose({child, *self._scored})  # all at once, side by side
        return (self._chosen_for[child],)

    def _penalty_of(self, kind: Parametrisation, child: int, parents: tuple[int, ...]) -> float:
        """Penalty of a family."""
        if self._penalty is None:
            return 0.0
        of = self._child(child)
        width = of.folds[0].features.Z.shape[1] if self._counts_features else 0
        n_free = PARAMETRISATIONS[kind].n_parameters(of.card, [self.cards[p] for p in parents], width)
        return self._penalty(n_free, of.total)

    def _task(self, family: Family) -> tuple[Any, ...]:
        child, parents = family.child, tuple(family.parents)
        options = [(kind, self._penalty_of(kind, child, parents)) for kind in self._kinds(child, parents)]
        return self._child(child), *self._parents(parents), options, family.floor

    def _parents(self, parents: Sequence[int]) -> tuple[Codes, list[int]]:
        return self.codes[:, list(parents)], [self.cards[p] for p in parents]

    # -- once for each child --------------------------------------------------------------------------------

    def _child(self, child: int, among: dict[int, Child] | None = None) -> Child:
        """Return a child with the folds of scores, or of held-out rows; created on first access."""
        children = self._scored if among is None else among
        if child not in children:
            held_out = children is self._held_out
            children[child] = Child(
                self._estimators[child],
                self.codes[:, child],
                self.cards[child],
                self.weight,
                self.groups,
                tuple(self._folds(child) if held_out else [self._fold(child, None)]),
            )
        return children[child]

    def _folds(self, child: int) -> Iterator[ChildFold]:
        for rows in self._held_rows:
            held = np.zeros(len(self.codes), dtype=bool)
            held[rows] = True
            yield self._fold(child, held)

    def _fold(self, child: int, held: npt.NDArray[np.bool_] | None) -> ChildFold:
        """Hold out some rows (n,); if None, all are learnt from and evaluated."""
        y = self.codes[:, child]
        known = y != UNKNOWN
        if held is None:
            return ChildFold(self._prepare(child, y), y, np.flatnonzero(known))
        learnt = np.where(held, UNKNOWN, y)
        return ChildFold(self._prepare(child, learnt), learnt, np.flatnonzero(known & held))

    def _prepare(self, child: int, y: Codes) -> PreparedFeatures:
        """Features for the rows with a label in y (n,), shared by children that are prepared in the same way.

        Steps that do not use labels are fitted to held-out rows as well, so that all folds share one matrix.
        """
        estimator = self._estimators[child]
        if not is_column_wise(estimator):
            return PreparedFeatures.make(estimator, self.X, y, self.weight, self.groups)
        blind = np.where(self.codes[:, child] == UNKNOWN, UNKNOWN, 0)
        key = (id(estimator), blind.tobytes())
        if key not in self._prepared:
            self._prepared[key] = PreparedFeatures.make(estimator, self.X, blind, self.weight, self.groups)
        return self._prepared[key]

    def _fit_alone(self, children: Iterable[int]) -> None:
        """Fit the models without parents, which all families of a child need."""
        missing = [c for c in children if not self._child(c).knows_alone]
        done = self._run(_alone, ((self._child(c),) for c in missing), missing)
        for c, alone in zip(missing, done, strict=True):
            self._child(c).alone = alone

    def _choose(self, children: Iterable[int]) -> None:
        """Choose a parametrisation for each child that has none."""
        left = [c for c in children if c not in self._chosen_for]
        tasks = ((self._child(c, self._held_out), *self._trial(c)) for c in left)
        kinds = self._run(_better_parametrisation, tasks, left)
        for c in left:
            self._chosen_for[c] = "inputs" if self._is_late() else next(kinds)

    def _is_late(self) -> bool:
        return clock.is_over(self.deadline)

    def _trial(self, child: int) -> tuple[Codes, list[int]]:
        """Parents by which to choose a parametrisation: the two with the most information about the child."""
        codes = self.codes
        others = [v for v in range(codes.shape[1]) if v != child]
        others.sort(key=lambda v: -mutual_information(codes[:, child], codes[:, v]))
        return self._parents(others[:2])

    def _run(
        self, function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], children: Iterable[int]
    ) -> Iterator[T]:
        """Yield the results of tasks about some children; compiled code and numpy run in threads."""
        folds = (fold for c in children for fold in self._child(c).folds)
        batched = all(fold.features.is_batched for fold in folds)
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
    return child.alone


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


# -- criteria ----------------------------------------------------------------------------------------------


def resolve_criterion(score: Score | Penalty, estimators: Sequence[Any] | None) -> Score | Penalty:
    """Return the criterion that "auto" stands for with these classifiers; any other as it is."""
    if callable(score) or score != "auto":
        return score
    modest = (e is None or isinstance(last_step(e), _MODEST) for e in estimators or ())
    return "bic" if all(modest) else "cv"


def _require_countable(estimators: Sequence[Any]) -> None:
    """Raise `InputError` unless the parameters of all classifiers can be counted."""
    for each in estimators:
        if not is_logistic_pipeline(each):
            raise InputError(
                f"FamilyScorer: the parameters of {name_of(each)} cannot be counted, as bic-true and aic-true"
                ' do; choose another score, such as "cv".'
            )


def _bic(n_free: float, n: float) -> float:
    return 0.5 * n_free * math.log(max(n, 1.0))


def _aic(n_free: float, n: float) -> float:
    return n_free


_PENALTIES: dict[str, tuple[Penalty, bool]] = {
    "bic": (_bic, False),
    "bic-true": (_bic, True),
    "aic": (_aic, False),
    "aic-true": (_aic, True),
}
"""Penalties by name, and whether they count the coefficients of the features too."""


# -- a child, and its likelihood with any parents ----------------------------------------------------------


@dataclass(frozen=True)
class ChildFold:
    """Rows of a child to learn from, and rows to evaluate.

    Parameters
    ----------
    features : PreparedFeatures
        Prepared with the rows to learn from.
    y : int array, shape (n,)
        Codes of the child; `UNKNOWN` for rows that are not to learn from.
    rows : int array, shape (r,)
        The rows to evaluate.
    """

    features: PreparedFeatures
    y: Codes
    rows: Codes


@dataclass
class Child:
    """A class variable, and how well it is predicted with any parents.

    Parameters
    ----------
    estimator : classifier
    y : int array, shape (n,)
        Codes of the child.
    card : int
        Number of categories k.
    weight : array, shape (n,), or None
    groups : int array, shape (n,), or None
    folds : tuple of ChildFold
        One with all rows in both roles for the training likelihood, several for cross-validation. Every row
        whose child is known is evaluated once.
    """

    estimator: Any
    y: Codes
    card: int
    weight: Floats | None
    groups: Codes | None
    folds: tuple[ChildFold, ...]

    @cached_property
    def total(self) -> float:
        """Weight of all rows whose child is known."""
        return float(self._weights.sum())

    @cached_property
    def alone(self) -> Floats:
        """Probabilities (n, k) of all categories without parents; 1 in rows whose child is unknown."""
        answer = np.ones((len(self.y), self.card))
        for fold in self.folds:
            base = Base.fit(fold.features, fold.y, self.card, self.weight, groups=self.groups)
            answer[fold.rows] = base.proba(fold.features.take(fold.rows).Z)
        return answer

    @property
    def knows_alone(self) -> bool:
        """Whether `alone` has been computed, or set to what a copy in another process has computed."""
        return "alone" in vars(self)

    @cached_property
    def _weights(self) -> Floats:
        return np.where(self.y == UNKNOWN, 0.0, 1.0 if self.weight is None else self.weight)

    def log_likelihood(
        self, kind: Parametrisation, parents: Codes, parent_cards: Sequence[int], floor: float = -np.inf
    ) -> float:
        """Log-likelihood with parents (n, p); minus infinity if it is not above `floor`.

        That is often clear early: no log-probability is positive, so the sum over some rows is a bound on the
        sum over all.
        """
        if not len(parent_cards):
            total = float(self._weights @ np.log(_at(self.alone, np.maximum(self.y, 0))))
            return total if total > floor else -np.inf
        total, local = 0.0, PARAMETRISATIONS[kind]
        for fold in self._portions(configurations(parents, parent_cards), local.is_split):
            total += self._evaluate(local(self.estimator), fold, parents, parent_cards)
            if total <= floor:
                return -np.inf
        return total

    def _evaluate(
        self, model: LocalModel, fold: ChildFold, parents: Codes, parent_cards: Sequence[int]
    ) -> float:
        """Log-likelihood of a fold's rows by a model that is fitted to the others."""
        model.fit(
            fold.features,
            parents,
            fold.y,
            parent_cards=parent_cards,
            child_card=self.card,
            sample_weight=self.weight,
            groups=self.groups,
        )
        log_proba = model.log_proba(fold.features.take(fold.rows), parents[fold.rows])
        return float(self._weights[fold.rows] @ _at(log_proba, self.y[fold.rows]))

    def _portions(self, blocks: Codes, is_split: bool) -> Iterator[ChildFold]:
        """Yield the folds; if there is one, and stopping early pays, parts of its configurations (n,)."""
        for fold in self.folds:
            share = pseudo_row(label_counts(fold.y, self.card, self.weight))
            features = replace(fold.features, alone=self.alone, share=share)
            if len(self.folds) > 1 or not is_split or features.is_compiled:
                yield ChildFold(features, fold.y, fold.rows)
                continue
            portion = _portion_of(blocks, self._weights)
            for part in np.unique(portion):
                here = portion == part
                yield ChildFold(features, np.where(here, fold.y, UNKNOWN), fold.rows[here[fold.rows]])


def _portion_of(blocks: Codes, weights: Floats) -> Codes:
    """Return the portion (n,) that each row belongs to: whole blocks, the largest first, in equal parts.

    Rows that belong to no block go with the first.
    """
    size = np.bincount(blocks[(blocks != UNKNOWN) & (weights > 0)], minlength=int(blocks.max()) + 1)
    order = np.argsort(-size, kind="stable")
    before = np.cumsum(size[order]) - size[order]
    portion = np.zeros(len(size) + 1, dtype=np.intp)  # the last is for `UNKNOWN`
    portion[order] = np.minimum(before * _PORTIONS // max(size.sum(), 1), _PORTIONS - 1)
    return portion[blocks]


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
