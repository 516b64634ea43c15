"""Temperature scaling: one number that makes a classifier's probabilities as sure as they should be."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, _safe_indexing, assert_all_finite, column_or_1d, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tuplet.core.exceptions import InputError
from tuplet.core.parameters import Number, check_parameters, declare
from tuplet.core.typing import Codes, Floats, Seed
from tuplet.local.calibration import best_power
from tuplet.space.features.estimators import require_probabilities, weight_arguments

_FEWEST = 10
"""Held-out rows below which the temperature stays 1: the coldest fits three right rows best."""

_LEAST = float(np.finfo(np.float32).tiny)
"""Replaces a probability of zero: networks compute in single precision and round to zero there."""


@final
class TemperatureScaled(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with p(y | x)^(1 / T), normalised, in the place of its p(y | x).

    Networks, boosting and naive Bayes are surer than they are right. The temperature T, a single number, is
    the one that makes held-out rows most probable. It never changes which label is the most probable one.

    Parameters
    ----------
    estimator : classifier
        Anything with `predict_proba`, or with a `decision_function`, such as a linear support vector machine:
        its scores are then taken for logits. Cloned, never fitted itself.
    held_out : float
        Share of each class's rows that choose the temperature and do not teach the classifier.
    refit : bool
        Whether the classifier is fitted once more, to all rows, when the temperature is known.
    random_state : int, Generator or None
        For the choice of the rows.

    Attributes
    ----------
    temperature_ : float
        Above 1 where the classifier was too sure.
    estimator_ : classifier
        Fitted.
    classes_ : array, shape (c,)
    n_held_out_ : int
        Number of rows that chose the temperature.

    Notes
    -----
    Local models are fitted to small sets as well, where cross-validation would fail. So at least one row of
    each class is left to learn from; and where fewer than ten rows would be held out, none is, and T is 1.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger, On calibration of modern neural networks, ICML 2017.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=2000)
    >>> X = np.repeat(y[:, None] + rng.normal(size=(2000, 1)), 8, axis=1)  # one column, eight times
    >>> model = TemperatureScaled(GaussianNB(), random_state=0).fit(X, y)
    >>> 6 < model.temperature_ < 10
    True
    """

    _parameters = declare("estimator random_state", held_out=Number(above=0, below=1), refit=bool)

    def __init__(
        self, estimator: Any, *, held_out: float = 0.2, refit: bool = False, random_state: Seed = None
    ) -> None:
        self.estimator = estimator
        self.held_out = held_out
        self.refit = refit
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the classifier to some rows, and the temperature to the others.

        Parameters
        ----------
        X : whatever the classifier takes, n rows
        y : array, shape (n,)
        sample_weight : array, shape (n,), optional
            For the classifier and for the likelihood of the held-out rows.
        groups : array, shape (n,), optional
            Rows of one group are held out together: a share of the groups, if there are several.
        """
        check_parameters(self)
        if not hasattr(self.estimator, "decision_function"):
            require_probabilities(self.estimator)
        if y is None:
            raise InputError("TemperatureScaled requires y to be passed, but the target y is None.")
        X, y = indexable(X, column_or_1d(y, warn=True))
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        rng = np.random.default_rng(self.random_state)
        together = None if groups is None else np.unique(column_or_1d(groups), return_inverse=True)[1]
        held = _held_out(codes, self.held_out, rng, together)
        rows, judges = np.flatnonzero(~held), np.flatnonzero(held)
        self.n_held_out_, self.temperature_ = len(judges), 1.0
        self._learn(X, y, weight, rows)
        if len(judges):
            some = None if weight is None else weight[judges]
            log_proba = self._log_proba(_safe_indexing(X, judges))
            self.temperature_ = 1 / best_power(log_proba, codes[judges], some)
            if self.refit:
                self._learn(X, y, weight, np.arange(len(y)))
        return self

    def _learn(self, X: Any, y: npt.NDArray[Any], weight: Floats | None, rows: npt.NDArray[np.intp]) -> None:
        fitted = clone(self.estimator)
        named = weight_arguments(fitted, None if weight is None else weight[rows])
        part = X if len(rows) == len(y) else _safe_indexing(X, rows)
        with config_context(enable_metadata_routing=False):  # the arguments name their steps already
            self.estimator_ = fitted.fit(part, y[rows], **named)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, c) of `classes_`."""
        check_is_fitted(self)
        proba: Floats = softmax(self._log_proba(X) / self.temperature_, axis=1)
        return proba

    def _log_proba(self, X: Any) -> Floats:
        """Return logits (n, c) by the classifier: logarithms of its probabilities, or its scores."""
        if hasattr(self.estimator_, "predict_proba"):
            return _log_floored(self.estimator_.predict_proba(X))
        scores = np.asarray(self.estimator_.decision_function(X), dtype=float)
        if scores.ndim == 2:
            return scores
        return np.column_stack([np.zeros(len(scores)), scores])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most probable class (n,); the temperature does not matter for it."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self._log_proba(X), axis=1)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def with_probabilities(estimator: Any) -> Any:
    """Return an estimator with probabilities: itself, or `TemperatureScaled` if it gives scores only."""
    scores_only = hasattr(estimator, "decision_function") and not hasattr(estimator, "predict_proba")
    if not scores_only or isinstance(estimator, type):
        return estimator
    return TemperatureScaled(estimator, refit=True, random_state=0)


def _log_floored(proba: Any) -> Floats:
    """Return the logarithms (n, c) of probabilities, in which zeros are taken for the least float32."""
    logarithms: Floats = np.log(np.maximum(np.asarray(proba, dtype=float), _LEAST))
    return logarithms


def _held_out(
    codes: Codes, share: float, rng: np.random.Generator, groups: Codes | None
) -> npt.NDArray[np.bool_]:
    """Return which rows (n,) are held out: a share of every class, never all of it; or none if too few."""
    if groups is not None and groups.any():
        return _held_groups(codes, share, rng, groups)
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes)
    place = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    taken = np.minimum(np.round(share * counts), counts - 1)
    held = np.zeros(len(codes), dtype=bool)
    if taken.sum() >= _FEWEST:
        held[order] = place < np.repeat(taken, counts)
    return held


def _held_groups(
    codes: Codes, share: float, rng: np.random.Generator, groups: Codes
) -> npt.NDArray[np.bool_]:
    """Return the same for groups (n,): a share of them, without those that a class would be lost with."""
    n_groups = int(groups.max()) + 1
    n_held = min(max(round(share * n_groups), 1), n_groups - 1)
    held = np.isin(groups, rng.permutation(n_groups)[:n_held])
    for c in np.setdiff1d(codes, codes[~held]):
        held &= groups != groups[codes == c][0]
    return held if held.sum() >= _FEWEST else np.zeros(len(codes), dtype=bool)
