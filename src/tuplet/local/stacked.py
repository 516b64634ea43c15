"""A local model in which the parents are further inputs of one classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from tuplet.core.limits import row_blocks
from tuplet.core.parallel import run_many
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.collect import distinct_outcomes
from tuplet.joint.linear_chain import LinearTerms
from tuplet.local.base import Bound, LocalModel
from tuplet.local.calibration import SmoothedClassifier
from tuplet.local.logistic import default_estimator, is_additive, linear_predictor, probabilities
from tuplet.local.onehot import OneHot
from tuplet.local.prepared import Base, PreparedFeatures, fit_steps, used_rows
from tuplet.space.classes import ClassSpace
from tuplet.space.features.estimators import admit_columns, seeded
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
    ) -> Self:
        """See `LocalModel.fit`."""
        self.parent_cards_, self.child_card_ = tuple(parent_cards), int(child_card)
        require_size("Parents as one-hot columns", n_rows(X), sum(self.parent_cards_))
        weights = np.where(child == UNKNOWN, 0.0, 1.0 if sample_weight is None else sample_weight)
        self.one_hot_ = OneHot.fit(parents, self.parent_cards_, weights)
        self._width = int(self.one_hot_.starts[-1])
        if isinstance(X, PreparedFeatures):
            if X.takes_columns:
                return self._fit_columns(X, parents, child, sample_weight)
            X = X.given
        estimator = default_estimator(sparse=sparse.issparse(X)) if self.estimator is None else self.estimator
        self.classifier_ = SmoothedClassifier.fit(
            admit_columns(estimator, X, self._width),
            self.inputs(X, parents),
            child,
            self.child_card_,
            sample_weight,
        )
        self.effects_ = self.one_hot_.effects(self._slopes(X)) if self._additive else None
        return self

    def log_proba(self, X: Features, parents: Codes) -> Floats:
        """See `LocalModel.log_proba`; parents may be `UNKNOWN`."""
        if isinstance(X, PreparedFeatures):
            if X.takes_columns:
                return np.log(self.regression_.proba(np.hstack([X.Z, self._prepared_columns(parents)])))
            X = X.given
        return self.classifier_.log_proba(self.inputs(X, parents))

    def bind(self, X: Features, positions: Sequence[int] | None = None) -> Bound:
        """See `LocalModel.bind`.

        Where the classifier is linear in the parents only their small effects are added to what x gives;
        otherwise the classifier is evaluated once for each distinct pair of a row and values of its parents.
        """
        places = list(range(len(self.parent_cards_))) if positions is None else list(positions)
        if self._width == 0 or self.classifier_.estimator is None:
            return _Fixed(self.classifier_.log_proba(self._without_parents(X)))
        if self.effects_ is not None:
            base = linear_predictor(self.classifier_.estimator, self._without_parents(X))
            return _Additive(base, places, self.effects_, self.classifier_)
        return _Pairs(self, X, places)

    # -- columns beside prepared features -----------------------------------------------------------------

    def _fit_columns(
        self, prepared: PreparedFeatures, parents: Codes, child: Codes, weight: Floats | None
    ) -> Self:
        """Fit a compiled regression: the same model, for the features' own rows alone."""
        self.steps_ = None
        if prepared.steps is not None and self._width and used_rows(child, weight).any():
            self.steps_ = fit_steps(self.estimator, self.one_hot_.columns(parents), child, weight)
        columns = self._prepared_columns(parents)
        self.regression_ = Base.fit(prepared, child, self.child_card_, weight, extra=columns)
        return self

    def _prepared_columns(self, parents: Codes) -> Floats:
        columns = self.one_hot_.columns(parents)
        return columns if self.steps_ is None else np.asarray(self.steps_.transform(columns))

    # -- parents as columns -------------------------------------------------------------------------------

    def inputs(self, X: Features, parents: Codes) -> Features:
        """Return the inputs of the classifier: X and the columns of codes of the parents (n, p)."""
        return self._beside(X, self.one_hot_.columns(parents))

    def _without_parents(self, X: Features) -> Features:
        return self._beside(X, np.zeros((n_rows(X), self._width)))

    def _beside(self, X: Features, columns: Floats) -> Features:
        names = self.one_hot_.names(self.parent_labels) if isinstance(X, pd.DataFrame) else ()
        return put_beside(X, columns, names)

    @property
    def _additive(self) -> bool:
        estimator = self.classifier_.estimator
        return estimator is not None and self._width > 0 and is_additive(estimator)

    def _slopes(self, X: Features) -> Floats:
        """Return what one unit of each of the parents' columns adds to the logits, (w, c).

        Read off the fitted classifier with one row of X and one column at a time, so that whatever scaling
        stands before it is accounted for.
        """
        slopes = []
        for start in range(0, self._width, _PROBES):
            probes = np.eye(min(_PROBES, self._width - start) + 1, self._width, start - 1)
            probes[0] = 0.0
            row = take_rows(X, np.zeros(len(probes), dtype=np.intp))
            logits = linear_predictor(self.classifier_.estimator, self._beside(row, probes))
            slopes.append(logits[1:] - logits[0])
        return np.vstack(slopes)


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
    X: Features
    places: list[int]

    def __call__(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        model, X = self.model, self.X
        pairs, inverse = _distinct(
            np.column_stack([rows, codes[:, self.places]]), (n_rows(X), *model.parent_cards_)
        )
        answer = np.empty((len(pairs), model.child_card_))
        for block in row_blocks(len(pairs), X.shape[1] + model._width):
            part = pairs[block]
            inputs = model.inputs(take_rows(X, part[:, 0]), part[:, 1:])
            answer[block] = model.classifier_.log_proba(inputs)
        return answer[inverse]


def _distinct(codes: Codes, cards: tuple[int, ...]) -> tuple[Codes, npt.NDArray[np.intp]]:
    """Return the distinct rows of codes (r, v), and for each row which of them it is."""
    first, inverse = distinct_outcomes(codes, cards)
    return codes[first], inverse


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
    seeds: Sequence[int] | None = None,
) -> list[StackedModel]:
    """Return a fitted model for each link, fitted side by side by `n_jobs` workers.

    Parameters
    ----------
    estimators : sequence of classifiers or None
        One for each class variable.
    seeds : sequence of int, optional
        One for each link, for estimators whose `random_state` was left open.
    """
    chosen = [estimators[link.child] for link in links]
    if seeds is not None:
        chosen = [seeded(estimator, seed) for estimator, seed in zip(chosen, seeds, strict=True)]
    tasks = [
        (estimator, link, space, X, codes, sample_weight)
        for estimator, link in zip(chosen, links, strict=True)
    ]
    return run_many(_fit_link, tasks, n_jobs)


def _fit_link(
    estimator: Any, link: Link, space: ClassSpace, X: Features, codes: Codes, sample_weight: Floats | None
) -> StackedModel:
    labels = [[f"{space.names[p]}={label}" for label in space.categories[p]] for p in link.parents]
    try:
        return StackedModel(estimator, parent_labels=labels).fit(
            X,
            codes[:, list(link.parents)],
            codes[:, link.child],
            parent_cards=[space.cards[p] for p in link.parents],
            child_card=space.cards[link.child],
            sample_weight=sample_weight,
        )
    except Exception as error:
        error.add_note(f"This happened while fitting the classifier of {space.names[link.child]!r}.")
        raise
