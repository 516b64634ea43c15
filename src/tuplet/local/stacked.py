"""A local model in which the parents are further inputs of one classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from tuplet.core.limits import row_blocks
from tuplet.core.parallel import run_many
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.collect import distinct_outcomes
from tuplet.joint.linear_chain import LinearTerms
from tuplet.local.base import Bound, LocalModel, class_weights
from tuplet.local.calibration import SmoothedClassifier
from tuplet.local.logistic import LINEAR, default_estimator, is_additive, linear_predictor, probabilities
from tuplet.local.many_logistic import LogisticBatch
from tuplet.local.onehot import OneHot
from tuplet.local.penalties import Target, parents_factor, some, varies
from tuplet.local.prepared import PreparedFeatures, apply_steps, fit_steps, used_rows
from tuplet.local.ridge import RidgeLogistic
from tuplet.space.classes import ClassSpace
from tuplet.space.features.admit import admit_columns
from tuplet.space.features.estimators import seeded
from tuplet.space.features.inputs import Features, n_rows, put_beside, require_size, take_rows

_PROBES = 512
"""Columns of the parents whose effect is read off at once."""


@final
class StackedModel(LocalModel):
    """One classifier for all values of the parents, which enter as one-hot columns beside x.

    A binary parent is one 0/1 column. An unknown parent puts its training frequencies into its columns, the
    neutral value.

    Parameters
    ----------
    estimator : classifier, optional
        Anything with `predict_proba`; `default_estimator()` if None. Cloned, never fitted itself.
    parent_labels : sequence of sequences of str, optional
        Column names for the values of each parent, for estimators that get a frame ("species=Adelie").

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> parents, child = np.array([[0], [1], [0], [1]]), np.array([0, 1, 0, 1])
    >>> model = StackedModel().fit(X, parents, child, parent_cards=(2,), child_card=2)
    >>> model.log_table(X).shape
    (2, 2, 4)
    >>> np.exp(model.log_proba(X[:1], parents[:1])).round(2)
    array([[0.74, 0.26]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        parent_labels: Sequence[Sequence[str]] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.parent_labels = parent_labels
        self.n_jobs = n_jobs

    @staticmethod
    def n_parameters(child_card: int, parent_cards: Sequence[int], n_features: int = 0) -> int:
        """See `LocalModel.n_parameters`; each parent shifts the logits by itself.

        Examples
        --------
        >>> StackedModel.n_parameters(3, (2, 4)), StackedModel.n_parameters(3, (2, 4), 10)
        (10, 30)
        """
        return (child_card - 1) * (n_features + 1 + sum(card - 1 for card in parent_cards))

    def fit(
        self,
        X: Features,
        parents: Codes,
        child: Codes,
        *,
        parent_cards: Sequence[int],
        child_card: int,
        sample_weight: Floats | None = None,
        groups: Codes | None = None,
    ) -> Self:
        """See `LocalModel.fit`."""
        self.parent_cards_, self.child_card_ = tuple(parent_cards), int(child_card)
        prepared = self._prepare(X, sample_weight)
        self.columns_ = ParentColumns.fit(prepared, parents, self.parent_cards_, child, sample_weight)
        if prepared.is_tunable:
            target = self.columns_.target(parents, child, self.child_card_)
            prepared = prepared.tuned(child[:, None], [target], sample_weight, groups)
        self.columns_ = self.columns_.for_classifier(prepared.classifier)
        self.prepared_ = prepared.without_rows()
        columns = self.columns_.of(parents)
        self.classifier_ = self._fit_classifier(prepared, columns, child, sample_weight, groups)
        self.effects_ = self.columns_.one_hot.effects(self._slopes(prepared.Z)) if self._is_additive else None
        return self

    def _fit_classifier(
        self,
        prepared: PreparedFeatures,
        columns: Floats,
        child: Codes,
        weight: Floats | None,
        groups: Codes | None,
    ) -> SmoothedClassifier:
        """Fit to prepared features and the columns (n, w) of the parents."""
        card, one_block = self.child_card_, np.zeros(len(child), dtype=np.intp)
        counts = class_weights(child, one_block, 1, card, weight)[0]
        classes = np.flatnonzero(counts)
        if not isinstance(prepared.batch, LogisticBatch) or not prepared.batch.takes(len(classes)):
            classifier = admit_columns(prepared.classifier, prepared.Z, columns.shape[1])
            inputs = self._beside(prepared.Z, columns)
            return SmoothedClassifier.fit(classifier, inputs, child, card, weight, groups)
        if len(classes) < 2:
            return SmoothedClassifier(None, classes, counts)
        fits = prepared.batch.fit(child, one_block, 1, card, weight, extra=columns)
        return SmoothedClassifier(RidgeLogistic.from_fits(fits, prepared.batch.C), classes, counts)

    def log_proba(self, X: Features, parents: Codes) -> Floats:
        """See `LocalModel.log_proba`; parents may be `UNKNOWN`."""
        return self.classifier_.log_proba(self.inputs(X, parents))

    def proba_blocks(self, X: Features, added: Floats | float = 0.0) -> Callable[[slice], Floats]:
        """Probabilities (r, k) of blocks, without parents; see `SmoothedClassifier.smoothed_blocks`."""
        return self.classifier_.smoothed_blocks(self.prepared_.ready(X), added)

    def bind(self, X: Features, positions: Sequence[int] | None = None) -> Bound:
        """See `LocalModel.bind`.

        Where the classifier is linear in the parents only their small effects are added to what x gives;
        otherwise the classifier is evaluated once for each distinct pair of a row and values of its parents.
        """
        places = list(range(len(self.parent_cards_))) if positions is None else list(positions)
        prepared = self.prepared_.further(_takes_columns(X))
        if self.columns_.width == 0 or self.classifier_.estimator is None:
            return _Fixed(self.classifier_.log_proba(self._without_parents(prepared.Z)))
        if self.effects_ is not None:
            return _Additive(self._logits_of_x(prepared.Z), places, self.effects_, self.classifier_)
        return _Pairs(self, prepared, places)

    # -- parents as columns -------------------------------------------------------------------------------

    def inputs(self, X: Features, parents: Codes) -> Features:
        """Return the inputs of the classifier: prepared X and the columns of codes of the parents (n, p)."""
        return self._beside(self.prepared_.ready(_takes_columns(X)), self.columns_.of(parents))

    def _prepare(self, X: Features, weight: Floats | None) -> PreparedFeatures:
        X = _takes_columns(X)
        if isinstance(X, PreparedFeatures):
            return X
        estimator = default_estimator(sparse=sparse.issparse(X)) if self.estimator is None else self.estimator
        return PreparedFeatures.make_unbatched(estimator, X, weight)

    def _without_parents(self, Z: Features) -> Features:
        return self._beside(Z, np.repeat(self._no_parents, n_rows(Z), axis=0))

    @property
    def _no_parents(self) -> Floats:
        return self.columns_.scaled(np.zeros((1, self.columns_.width)))

    def _beside(self, Z: Features, columns: Floats) -> Features:
        names = self.columns_.one_hot.names(self.parent_labels) if isinstance(Z, pd.DataFrame) else ()
        return put_beside(Z, columns, names)

    # -- classifiers that are linear in the parents ---------------------------------------------------------

    @property
    def _is_additive(self) -> bool:
        estimator = self.classifier_.estimator
        return estimator is not None and self.columns_.width > 0 and is_additive(estimator)

    def _logits_of_x(self, Z: Features) -> Floats:
        """Return the logits (n, c) with zeros in the columns of the parents."""
        estimator = self.classifier_.estimator
        if type(estimator) not in LINEAR or isinstance(Z, pd.DataFrame):
            return linear_predictor(estimator, self._without_parents(Z))
        of_x, of_columns = np.split(estimator.coef_, [Z.shape[1]], axis=1)
        return np.asarray(Z @ of_x.T) + (self._no_parents @ of_columns.T + estimator.intercept_)

    def _slopes(self, Z: Features) -> Floats:
        """Return what one unit of each of the parents' columns adds to the logits, (w, c).

        Read off the fitted classifier with one row and one column at a time, so that whatever scaling stands
        before it is accounted for.
        """
        slopes, width = [], self.columns_.width
        for start in range(0, width, _PROBES):
            probes = np.eye(min(_PROBES, width - start) + 1, width, start - 1)
            probes[0] = 0.0
            row = take_rows(Z, np.zeros(len(probes), dtype=np.intp))
            inputs = self._beside(row, self.columns_.scaled(probes))
            logits = linear_predictor(self.classifier_.estimator, inputs)
            slopes.append(logits[1:] - logits[0])
        return np.vstack(slopes)


def _takes_columns(X: Features) -> Features:
    """Return features as they were given, unless columns can stand beside what was prepared of them."""
    return X.given if isinstance(X, PreparedFeatures) and not X.takes_columns else X


@dataclass(frozen=True)
class _Fixed:
    """Nothing depends on the parents."""

    log_proba: Floats  # (n, k)

    def __call__(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        return self.log_proba[rows]

    def terms(self) -> LinearTerms:
        """See `LinearBound.terms`."""
        k = self.log_proba.shape[1]
        if k == 1:  # a single logit would be that of the second of two classes
            return LinearTerms(self.log_proba[:, :0], {}, np.arange(0), 1.0, np.ones(1))
        return LinearTerms(self.log_proba, {}, np.arange(k), 1.0, np.zeros(k))


@dataclass(frozen=True)
class _Additive:
    """The parents' effects are added to the logits that x gives."""

    base: Floats  # (n, c)
    places: list[int]
    effects: list[Floats]  # (k_i, c) for each parent
    classifier: SmoothedClassifier

    def __call__(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        logits = self.base[rows]
        self._add_effects(logits, codes)
        return np.log(self.classifier.smooth(probabilities(logits)))

    def terms(self) -> LinearTerms:
        """See `LinearBound.terms`."""
        effects = dict(zip(self.places, self.effects, strict=True))
        return LinearTerms(self.base, effects, self.classifier.classes, *self.classifier.smoothing)

    def _add_effects(self, logits: Floats, codes: Codes) -> None:
        """Add to logits (r, c) what the parents in codes (r, v) add."""
        start, slopes = self._binary
        if len(slopes):
            logits += codes[:, start : start + len(slopes)] @ slopes
        for place, effect in zip(self.places, self.effects, strict=True):
            if len(effect) > 2:
                logits += effect[codes[:, place]]

    @cached_property
    def _binary(self) -> tuple[int, Floats]:
        """Return the effects of all binary parents as one small matrix, and the column where it starts.

        Its rows run over all columns of the codes between the first and the last of these parents, with
        zeros for the others: a product with a slice is several times faster than picking columns.
        """
        chosen = {
            place: effect[1]
            for place, effect in zip(self.places, self.effects, strict=True)
            if len(effect) == 2
        }
        start = min(chosen, default=0)
        slopes = np.zeros((max(chosen, default=-1) + 1 - start, self.base.shape[1]))
        for place, effect in chosen.items():
            slopes[place - start] = effect
        return start, slopes


@dataclass(frozen=True)
class _Pairs:
    """The classifier is evaluated for each distinct pair of a row and values of its parents."""

    model: StackedModel
    prepared: PreparedFeatures
    places: list[int]

    def __call__(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        model, Z = self.model, self.prepared.Z
        pairs = np.column_stack([rows, codes[:, self.places]])
        first, inverse = distinct_outcomes(pairs, (n_rows(Z), *model.parent_cards_))
        pairs = pairs[first]
        answer = np.empty((len(pairs), model.child_card_))
        for block in row_blocks(len(pairs), Z.shape[1] + model.columns_.width):
            part = pairs[block]
            inputs = model._beside(take_rows(Z, part[:, 0]), model.columns_.of(part[:, 1:]))
            answer[block] = model.classifier_.log_proba(inputs)
        return answer[inverse]


@final
@dataclass(frozen=True)
class ParentColumns:
    """Parents as columns of numbers beside prepared features.

    Parameters
    ----------
    one_hot : OneHot
    steps : fitted Pipeline or None
        The steps before the classifier, fitted to these columns.
    factor : float
        What the columns are multiplied by, so that their penalty is weaker than that of the features.
    """

    one_hot: OneHot
    steps: Any
    factor: float = 1.0

    @classmethod
    def fit(
        cls,
        prepared: PreparedFeatures,
        parents: Codes,
        cards: Sequence[int],
        child: Codes,
        weight: Floats | None,
    ) -> ParentColumns:
        """Learn from codes of the parents (n, p) in rows whose child (n,) is known.

        Imputers are left out, because no value of these columns is missing.
        """
        require_size("Parents as one-hot columns", len(child), sum(cards))
        weights = np.where(child == UNKNOWN, 0.0, 1.0 if weight is None else weight)
        one_hot = OneHot.fit(parents, cards, weights)
        steps = [] if prepared.steps is None else prepared.steps.steps
        steps = [(name, step) for name, step in steps if not isinstance(step, SimpleImputer)]
        if not steps or not one_hot.starts[-1] or not used_rows(child, weight).any():
            return cls(one_hot, None)
        return cls(one_hot, fit_steps(Pipeline(steps), one_hot.columns(parents), child, weight))

    def for_classifier(self, classifier: Any) -> ParentColumns:
        """Return the columns as a classifier takes them: see `parents_factor`."""
        if type(classifier) is not RidgeLogistic or classifier.C == "auto":
            return self
        return replace(self, factor=parents_factor(float(classifier.C), self.width))

    @property
    def width(self) -> int:
        """Number of columns w."""
        return int(self.one_hot.starts[-1])

    def of(self, parents: Codes) -> Floats:
        """Return the columns (n, w) of codes (n, p)."""
        return self.scaled(self.one_hot.columns(parents))

    def target(self, parents: Codes, child: Codes, card: int) -> Target:
        """Return the child with these parents, for the choice of a penalty."""
        return Target(child, card, self.of(parents) if self.width else None)

    def scaled(self, columns: Floats) -> Floats:
        """Return one-hot columns (n, w) as the classifier gets them."""
        stepped = columns if self.steps is None else np.asarray(apply_steps(self.steps, columns))
        return stepped if self.factor == 1.0 else stepped * self.factor


# -- models of several class variables ---------------------------------------------------------------------


class Link(NamedTuple):
    """A class variable and those that it depends on, by position."""

    child: int
    parents: tuple[int, ...]


def fit_links(
    links: Sequence[Link],
    X: Features,
    codes: Codes,
    sample_weight: Floats | None,
    *,
    space: ClassSpace,
    estimators: Sequence[Any],
    n_jobs: int | None,
    groups: Codes | None = None,
    seeds: Sequence[int] | None = None,
) -> list[StackedModel]:
    """Return a fitted model for each link, fitted side by side by `n_jobs` workers.

    Parameters
    ----------
    estimators : sequence of classifiers or None
        One for each class variable.
    groups : int array, shape (n,), optional
        Groups of rows; see `LocalModel.fit`.
    seeds : sequence of int, optional
        One for each link, for estimators whose `random_state` was left open.
    """
    prepared = prepare_each([estimators[link.child] for link in links], X, sample_weight)
    prepared = _tune_each(prepared, links, codes, space.cards, sample_weight, groups)
    if seeds is not None:
        prepared = [
            replace(each, classifier=seeded(each.classifier, seed))
            for each, seed in zip(prepared, seeds, strict=True)
        ]
    rows = codes, sample_weight, groups
    tasks = [(each, link, space, *rows) for each, link in zip(prepared, links, strict=True)]
    models = run_many(_fit_link, tasks, n_jobs)
    for model, each in zip(models, prepared, strict=True):
        model.prepared_ = replace(
            model.prepared_, steps=each.steps
        )  # one object again, after worker processes
    return models


def prepare_each(estimators: Sequence[Any], X: Features, weight: Floats | None) -> list[PreparedFeatures]:
    """Prepare X for each of some estimators, None for the default, once for those that are one object."""
    made: dict[int, PreparedFeatures] = {}
    for estimator in estimators:
        if id(estimator) not in made:
            chosen = default_estimator(sparse=sparse.issparse(X)) if estimator is None else estimator
            made[id(estimator)] = PreparedFeatures.make_unbatched(chosen, X, weight)
    return [made[id(estimator)] for estimator in estimators]


def _tune_each(
    prepared: Sequence[PreparedFeatures],
    links: Sequence[Link],
    codes: Codes,
    cards: Sequence[int],
    weight: Floats | None,
    groups: Codes | None,
) -> list[PreparedFeatures]:
    """Choose the penalty of default classifiers, one for all links whose features are one object."""
    tuned: dict[int, PreparedFeatures] = {}
    for features in prepared:
        if id(features) not in tuned:
            own = [link for link, each in zip(links, prepared, strict=True) if each is features]
            varied = [link for link in own if varies(codes[:, link.child])]
            judged = some(varied) if features.is_tunable else []
            targets = [_target(features, link, codes, cards, weight) for link in judged]
            tuned[id(features)] = features.tuned(codes, targets, weight, groups)
    return [tuned[id(features)] for features in prepared]


def _target(
    prepared: PreparedFeatures, link: Link, codes: Codes, cards: Sequence[int], weight: Floats | None
) -> Target:
    child, parents = codes[:, link.child], codes[:, list(link.parents)]
    columns = ParentColumns.fit(prepared, parents, [cards[p] for p in link.parents], child, weight)
    return columns.target(parents, child, cards[link.child])


def prepare_further(models: Sequence[StackedModel], X: Features) -> list[PreparedFeatures]:
    """Prepare further rows for each of some models, once for those that share their steps."""
    made: dict[int, PreparedFeatures] = {}
    for model in models:
        if id(model.prepared_.steps) not in made:
            made[id(model.prepared_.steps)] = model.prepared_.further(X)
    return [made[id(model.prepared_.steps)] for model in models]


def log_proba_alone(models: Sequence[StackedModel], X: Features) -> list[Floats]:
    """Return the log-probabilities (n, k_j) by each of some models without parents."""
    none = np.zeros((n_rows(X), 0), dtype=np.intp)
    rows = prepare_further(models, X)
    return [model.log_proba(Z, none) for model, Z in zip(models, rows, strict=True)]


def _fit_link(
    X: PreparedFeatures,
    link: Link,
    space: ClassSpace,
    codes: Codes,
    sample_weight: Floats | None,
    groups: Codes | None,
) -> StackedModel:
    labels = [[f"{space.names[p]}={label}" for label in space.categories[p]] for p in link.parents]
    try:
        return StackedModel(X.classifier, parent_labels=labels).fit(
            X,
            codes[:, list(link.parents)],
            codes[:, link.child],
            parent_cards=[space.cards[p] for p in link.parents],
            child_card=space.cards[link.child],
            sample_weight=sample_weight,
            groups=groups,
        )
    except Exception as error:
        error.add_note(f"This happened while fitting the classifier of {space.names[link.child]!r}.")
        raise
