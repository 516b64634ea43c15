"""p(y | inputs) from any scikit-learn classifier, over all k categories and never zero."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from tuplet.core.exceptions import InputError
from tuplet.core.parallel import one_blas_thread
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.calibration import Calibration, calibrated
from tuplet.space.features.estimators import name_of, require_probabilities, weight_arguments
from tuplet.space.features.inputs import Features, n_rows, require_size, take_rows


@dataclass(frozen=True)
class SmoothedClassifier:
    """A fitted classifier whose probabilities cover every category and never reach zero.

    A forest gives a leaf's frequencies, a single class gives 1 to itself, and a category that the training
    rows lack has no column at all: each of them would make a test row impossible. So one pseudo-row is
    added to the N that the classifier saw, worth the training marginal (itself smoothed after Laplace):

        p'(y) = (N p(y) + (count(y) + 1) / (N + k)) / (N + 1)

    which fades as N grows and is the marginal where there are no rows to learn from.

    Trees, their ensembles and neighbours are overconfident, which a pseudo-row cannot correct. Their
    probabilities p are calibrated first, by rows that they were not fitted to; see `Calibration`.

    Parameters
    ----------
    estimator : classifier or None
        Fitted to the classes 0 .. len(classes) - 1; None where fewer than two classes were seen.
    classes : array of int, shape (c,)
        The code that each column of `estimator.predict_proba` stands for.
    counts : array, shape (k,)
        Total training weight of every category.
    calibration : Calibration or None
    """

    estimator: Any
    classes: Codes
    counts: Floats
    calibration: Calibration | None = None

    @classmethod
    def fit(
        cls, estimator: Any, inputs: Features, child: Codes, card: int, sample_weight: Floats | None = None
    ) -> SmoothedClassifier:
        """Fit a clone of `estimator` to the rows whose code in `child` (n,) is known and weighs something.

        The classes are renumbered without gaps, because some estimators take nothing else.
        """
        used = child != UNKNOWN
        if sample_weight is not None:
            used &= sample_weight > 0
        if not used.all():
            inputs, child = take_rows(inputs, used), child[used]
            sample_weight = None if sample_weight is None else sample_weight[used]
        counts = np.bincount(child, sample_weight, minlength=card).astype(float)
        classes = np.unique(child)
        if len(classes) < 2:
            return cls(None, classes, counts)
        require_probabilities(estimator)
        require_size(
            f"Fitting {name_of(estimator)} to {len(classes):,} classes", n_rows(inputs), len(classes)
        )
        fitted, calibration = calibrated(
            _fit, estimator, inputs, np.searchsorted(classes, child), sample_weight
        )
        return cls(fitted, classes[np.asarray(fitted.classes_)], counts, calibration)

    @property
    def card(self) -> int:
        """Number of categories k."""
        return len(self.counts)

    def log_proba(self, inputs: Features) -> Floats:
        """Log-probabilities (n, k)."""
        require_size(f"The probabilities of {self.card:,} categories", n_rows(inputs), self.card)
        if self.estimator is None:
            return np.repeat(np.log(self.smooth(np.ones((1, len(self.classes))))), n_rows(inputs), axis=0)
        return np.log(self.smooth(self.proba(inputs)))

    def proba(self, inputs: Features) -> Floats:
        """Probabilities (n, c) of the seen classes, calibrated but not smoothed."""
        with one_blas_thread():  # chains are evaluated when they are queried, after `predict_joint`
            proba = np.array(self.estimator.predict_proba(inputs), dtype=float)  # a copy: it is changed below
        if proba.shape[1] != len(self.classes):
            raise InputError(
                f"{name_of(self.estimator)}.predict_proba gave {proba.shape[1]} columns for"
                f" {len(self.classes)} classes; its number of outputs must be that of the classes."
            )
        total = proba.sum(axis=1, keepdims=True)
        if not (np.isfinite(total) & (total > 0)).all():
            raise InputError(
                f"{name_of(self.estimator)}.predict_proba gave rows that are no probabilities; choose another"
                " estimator or look at the scale of the features."
            )
        proba /= total
        return proba if self.calibration is None else self.calibration.apply(proba)

    def smooth(self, proba: Floats) -> Floats:
        """Smoothed probabilities (..., k), from those of the seen classes (..., c), which are overwritten."""
        total = self.counts.sum()
        share = (self.counts + 1) / (total + self.card) / (total + 1)
        proba *= total / (total + 1)
        if len(self.classes) < self.card:
            seen, proba = proba, np.zeros((*proba.shape[:-1], self.card))
            proba[..., self.classes] = seen
        proba += share
        return proba


def _fit(estimator: Any, inputs: Features, y: Codes, weight: Floats | None) -> Any:
    """Fit a clone to classes 0 .. c - 1."""
    fitted = clone(estimator)
    with (
        config_context(enable_metadata_routing=False),  # the arguments name their steps already
        warnings.catch_warnings(),
    ):
        # Combinations of labels may be many and rare; they are classes all the same.
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
        return fitted.fit(inputs, y, **weight_arguments(fitted, weight))
