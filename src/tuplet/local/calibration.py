"""p(y | inputs) from any scikit-learn classifier, over all k categories: calibrated, smoothed, never zero."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from sklearn import config_context
from sklearn.base import clone

from tuplet.core.exceptions import InputError
from tuplet.core.limits import CACHE_CELLS, PASS_CELLS, row_blocks
from tuplet.core.parallel import one_blas_thread
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.cross_fitting import Positions, cross_fit, folds_of_groups, inner_folds
from tuplet.local.logistic import is_additive, is_plain_logistic, linear_predictor, probabilities
from tuplet.local.ridge import RidgeLogistic, fit_in_blocks
from tuplet.local.smoothing import pseudo_row
from tuplet.space.features.estimators import (
    group_arguments,
    is_one_of,
    last_step,
    name_of,
    require_probabilities,
    weight_arguments,
)
from tuplet.space.features.inputs import Features, n_rows, require_size, take_rows
from tuplet.space.features.labelled import among, without_labels

_FEWEST = 30
"""Rows below which nothing is held out: the model without parents dominates configurations that small."""

_HELD_OUT, _PARTS = 80, 4
"""Rows, or groups, that suffice to find two numbers; they come from as many of four parts as it takes."""

_CELLS = 2**18
"""Probabilities beyond which the numbers are found from a part of the rows."""

POWERS = (0.05, 20.0)
"""Powers that are considered. Where every held-out row is right, the likelihood has no maximum."""

_POWERS = (0.25, 2.5)
_SHARES = np.array([0.001, 0.003, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25])
"""Limits of the one number and values of the other that are tried; see `Calibration`."""

_PRIOR = 2.0
"""Weight of the squared logarithm of a power: a normal prior with standard deviation 1/2."""

_LEAST = -700.0
"""Replaces logarithms below it, such as that of zero."""

_FORESTS = {"sklearn.ensemble": ("RandomForestClassifier", "ExtraTreesClassifier")}
_TREES = {
    "sklearn.tree": ("DecisionTreeClassifier",),
    "sklearn.ensemble": (
        *_FORESTS["sklearn.ensemble"],
        "BaggingClassifier",
        "GradientBoostingClassifier",
        "HistGradientBoostingClassifier",
        "AdaBoostClassifier",
    ),
}
_NEIGHBOURS = {"sklearn.neighbors": ("KNeighborsClassifier", "RadiusNeighborsClassifier")}
_LIBRARIES = ("xgboost", "lightgbm", "catboost")


# -- calibration of classifiers that memorise their training rows, such as trees and neighbours ------------


@dataclass(frozen=True)
class Calibration:
    """Probabilities mixed with the frequencies of the classes, then raised to a power.

        p'(y) proportional to ((1 - s) p(y) + s f(y)) ^ b

    A forest returns zero for a class that a leaf lacks, which only a share s of the frequencies f corrects;
    boosting is overconfident everywhere, which a power b < 1 corrects (temperature 1/b).

    Parameters
    ----------
    power : float
        The number b.
    share : float
        The number s.
    frequencies : array, shape (c,)

    Examples
    --------
    >>> Calibration(0.5, 0.1, np.array([0.5, 0.5])).apply(np.array([[1.0, 0.0]])).round(3)
    array([[0.813, 0.187]])
    """

    power: float
    share: float
    frequencies: Floats

    @classmethod
    def learn(cls, proba: Floats, y: Codes, weight: Floats | None, frequencies: Floats) -> Calibration:
        """Find the numbers under which labels y (n,) of held-out rows are most likely.

        Parameters
        ----------
        proba : array, shape (n, c)
            Predictions for rows that the classifier was not fitted to.

        Notes
        -----
        A normal prior of log b around 0, with standard deviation 1/2, limits the influence of a few rows.
        """
        weight = np.ones(len(y)) if weight is None else weight
        some = slice(None, None, -(-proba.size // _CELLS))
        proba, y, weight = proba[some], y[some], weight[some]
        best, chosen = -np.inf, (1.0, float(_SHARES[0]))
        for share in _SHARES:
            log = np.log((1 - share) * proba + share * frequencies)
            power = best_power(log, y, weight, bounds=_POWERS, prior=_PRIOR)
            right = power * log[np.arange(len(y)), y] - np.log(np.exp(power * log).sum(axis=1))
            value = weight @ right - _PRIOR * np.log(power) ** 2
            if value > best:
                best, chosen = value, (power, float(share))
        return cls(*chosen, frequencies)

    def apply(self, proba: Floats) -> Floats:
        """Return calibrated probabilities (n, c)."""
        mixed = ((1 - self.share) * proba + self.share * self.frequencies) ** self.power
        return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def best_power(
    log_proba: Floats,
    codes: Codes,
    weight: Floats | None = None,
    *,
    bounds: tuple[float, float] = POWERS,
    prior: float = 0.0,
) -> float:
    """Return the power b at which softmax(b log_proba) makes labels most probable; 1 / b is a temperature.

    Parameters
    ----------
    log_proba : array, shape (n, c)
        Log-probabilities or logits.
    codes : int array, shape (n,)
        The column of `log_proba` that is right.
    weight : array, shape (n,), optional
    bounds : tuple of float
        Least and largest power.
    prior : float
        Subtracts prior * (log b)^2 from the log-likelihood.

    Notes
    -----
    In b the log-likelihood sum_i w_i (b l_iy - logsumexp_c b l_ic) is concave: its slope, the right
    column less the expected one, only falls. So the maximum is where the slope is zero, and nowhere else. The
    zero is searched for in log b, in which b and 1 / b are equally far from 1.

    Examples
    --------
    >>> log_proba = np.log([[0.9, 0.1]] * 4)  # 90 % sure, three times out of four right
    >>> round(best_power(log_proba, np.array([0, 0, 0, 1])), 6)  # ln 3 / ln 9
    0.5
    """
    weight = np.ones(len(codes)) if weight is None else weight
    peak = log_proba.max(axis=1)
    right = float(weight @ np.maximum(log_proba[np.arange(len(codes)), codes] - peak, _LEAST))
    blocks = list(row_blocks(len(log_proba), log_proba.shape[1], PASS_CELLS))

    def slope(log_b: float) -> float:
        b, expected = np.exp(log_b), np.empty(len(codes))
        for rows in blocks:  # there may be millions of columns and rows: nothing of that size is copied
            # A probability of zero stays zero at every power; its logarithm only has to be finite.
            logits = np.maximum(log_proba[rows] - peak[rows, None], _LEAST)
            tempered = np.exp(b * logits)
            expected[rows] = np.einsum("ic,ic->i", tempered, logits) / tempered.sum(axis=1)
        return float(b * (right - weight @ expected) - 2 * prior * log_b)

    low, high = np.log(bounds)
    if slope(low) <= 0:  # no better than a guess: as flat as it gets, unless nothing depends on b at all
        return 1.0 if slope(low) == slope(high) == 0 else bounds[0]
    if slope(high) >= 0:
        return bounds[1]
    return float(np.exp(brentq(slope, low, high, xtol=1e-10)))


def calibrated(
    fit: Callable[..., Any],
    estimator: Any,
    inputs: Features,
    y: Codes,
    weight: Floats | None,
    groups: Codes | None = None,
) -> tuple[Any, Calibration | None]:
    """Fit a classifier, and learn its calibration.

    Out-of-bag predictions of a forest cost nothing; otherwise a quarter of the rows is held out for a first
    fit, and further quarters if that is not enough rows. Bags of a forest divide groups, so they do not serve
    where there are groups.

    Parameters
    ----------
    fit : callable
        (estimator, inputs, y, weight, groups) -> fitted clone.
    y : int array, shape (n,)
        Classes 0 to c - 1, all of them present.
    groups : int array, shape (n,), optional
        Rows of one group are held out together.
    """
    if len(y) < _FEWEST or not needs_calibration(estimator):
        return fit(estimator, inputs, y, weight, groups), None
    frequencies = np.bincount(y, weight) / (len(y) if weight is None else weight.sum())
    if groups is None and _has_out_of_bag(estimator):
        fitted, proba = _fit_forest(fit, estimator, inputs, y, weight)
        rows = np.flatnonzero(proba.sum(axis=1) > 0)
    else:
        fitted = fit(estimator, inputs, y, weight, groups)
        rows, proba = _hold_out(fit, estimator, inputs, y, weight, groups)
    if not len(rows):
        return fitted, None
    some = None if weight is None else weight[rows]
    return fitted, Calibration.learn(proba[rows], y[rows], some, frequencies)


def is_made_of_trees(estimator: Any) -> bool:
    """Return whether a classifier is a tree, a forest or boosting, maybe behind other steps."""
    last = last_step(without_labels(estimator))
    return is_one_of(last, _TREES) or type(last).__module__.split(".")[0] in _LIBRARIES


def needs_calibration(estimator: Any) -> bool:
    """Return whether a classifier consists of trees or neighbours, which are overconfident."""
    return is_made_of_trees(estimator) or is_one_of(last_step(without_labels(estimator)), _NEIGHBOURS)


def _has_out_of_bag(estimator: Any) -> bool:
    """Return whether a classifier has out-of-bag predictions of its training rows."""
    if is_one_of(estimator, _FORESTS):
        return bool(estimator.bootstrap) and not estimator.warm_start
    return False


def _fit_forest(
    fit: Callable[..., Any], estimator: Any, inputs: Features, y: Codes, weight: Floats | None
) -> tuple[Any, Floats]:
    """Fit a forest; return its out-of-bag probabilities (n, c), zeros where every tree has seen a row."""
    changed = type(estimator)(**estimator.get_params(deep=False)).set_params(oob_score=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
        fitted = fit(changed, inputs, y, weight, None)
    return fitted, np.nan_to_num(np.asarray(fitted.oob_decision_function_, dtype=float))


def _hold_out(
    fit: Callable[..., Any],
    estimator: Any,
    inputs: Features,
    y: Codes,
    weight: Floats | None,
    groups: Codes | None,
) -> tuple[Codes, Floats]:
    """Return rows that were held out, and probabilities (n, c) that are valid for these."""
    proba = np.zeros((len(y), int(y.max()) + 1))

    def learn(rows: Positions, some: Floats | None) -> tuple[Any, Codes]:
        present, codes = np.unique(y[rows], return_inverse=True)
        together = None if groups is None else groups[rows]
        return fit(among(estimator, present), take_rows(inputs, rows), codes, some, together), present

    def predict(fitted: tuple[Any, Codes], rows: Positions) -> None:
        model, present = fitted
        answer = np.asarray(model.predict_proba(take_rows(inputs, rows)), dtype=float)
        proba[np.ix_(rows, present)] = answer / answer.sum(axis=1, keepdims=True)

    n_units = len(y) if groups is None else len(np.unique(groups))
    n_parts = min(_PARTS, -(-_HELD_OUT * _PARTS // n_units))
    parts = inner_folds(None, y, weight, _PARTS, groups=groups)[:n_parts]
    folds = [fold for fold in parts if len(np.unique(y[fold.train])) > 1]
    return cross_fit(folds, learn, predict).rows, proba


# -- smoothing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SmoothedClassifier:
    """A fitted classifier whose probabilities cover every category and never reach zero.

    A forest gives a leaf's frequencies, a single class gives 1 to itself, and a category that the training
    rows lack has no column at all: each of them would make a test row impossible. So the pseudo-row of
    `tuplet.local.smoothing` is added to the N that the classifier saw:

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
        cls,
        estimator: Any,
        inputs: Features,
        child: Codes,
        card: int,
        sample_weight: Floats | None = None,
        groups: Codes | None = None,
    ) -> SmoothedClassifier:
        """Fit a clone of `estimator` to the rows whose code in `child` (n,) is known and weighs something.

        The classes are renumbered without gaps, because some estimators take nothing else. Rows of one of the
        `groups` (n,) are held out together.
        """
        used = child != UNKNOWN
        if sample_weight is not None:
            used &= sample_weight > 0
        if not used.all():
            inputs, child = take_rows(inputs, used), child[used]
            sample_weight = None if sample_weight is None else sample_weight[used]
            groups = None if groups is None else groups[used]
        counts = np.bincount(child, sample_weight, minlength=card).astype(float)
        classes = np.unique(child)
        if len(classes) < 2:
            return cls(None, classes, counts)
        require_probabilities(estimator)
        require_size(
            f"Fitting {name_of(estimator)} to {len(classes):,} classes", n_rows(inputs), len(classes)
        )
        fitted, calibration = calibrated(
            _fit, among(estimator, classes), inputs, np.searchsorted(classes, child), sample_weight, groups
        )
        return cls(fitted, classes[np.asarray(fitted.classes_)], counts, calibration)

    @property
    def card(self) -> int:
        """Number of categories k."""
        return len(self.counts)

    def log_proba(self, inputs: Features) -> Floats:
        """Log-probabilities (n, k)."""
        proba = self.smoothed_proba(inputs)
        return np.log(proba, out=proba)

    def smoothed_proba(self, inputs: Features) -> Floats:
        """Probabilities (n, k), none of them zero."""
        n = n_rows(inputs)
        require_size(f"The probabilities of {self.card:,} categories", n, self.card)
        if self.estimator is None:
            return np.repeat(self.smooth(np.ones((1, len(self.classes)))), n, axis=0)
        if not self._goes_by_blocks(inputs):
            return self.smooth(self.proba(inputs))
        answer, smoothing = np.empty((n, self.card)), self.smoothing
        for rows in row_blocks(n, self.card, CACHE_CELLS):  # the many passes of a softmax stay in the cache
            answer[rows] = self._smoothed_block(inputs, *smoothing, rows)
        return answer

    def smoothed_blocks(self, inputs: Features, added: Floats | float = 0.0) -> Callable[[slice], Floats]:
        """Return a function that gives the probabilities (r, k) of a block of rows, none of them zero.

        Where that is cheap they are computed when they are asked for, so that those of all rows, which may
        be many times larger than the inputs, need no memory. Those of the categories that are `added` (k,)
        leave the rest to the classifier.
        """
        rest = 1.0 - np.sum(added)
        if self.estimator is None or not self._goes_by_blocks(inputs):
            return (rest * self.smoothed_proba(inputs) + added).__getitem__
        require_size(f"The probabilities of {self.card:,} categories", n_rows(inputs), self.card)
        scale, share = self.smoothing
        return partial(self._smoothed_block, inputs, rest * scale, rest * share + added)

    def _goes_by_blocks(self, inputs: Features) -> bool:
        return is_additive(self.estimator) and isinstance(inputs, np.ndarray)

    def _smoothed_block(self, inputs: Floats, scale: float, share: Floats, rows: slice) -> Floats:
        proba = probabilities(linear_predictor(self.estimator, inputs[rows]), scale)
        return self._add_share(proba, share)

    def proba(self, inputs: Features) -> Floats:
        """Probabilities (n, c) of the seen classes, calibrated but not smoothed."""
        if is_additive(self.estimator):
            return probabilities(linear_predictor(self.estimator, inputs))
        with one_blas_thread():  # chains are evaluated when they are queried, after `predict_joint`
            proba = predict_proba(self.estimator, inputs)
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

    @property
    def smoothing(self) -> tuple[float, Floats]:
        """What probabilities are multiplied by, and what is added to those of the categories (k,)."""
        share = pseudo_row(self.counts)
        return 1.0 - float(share.sum()), share

    def smooth(self, proba: Floats) -> Floats:
        """Smoothed probabilities (..., k), from those of the seen classes (..., c), which are overwritten."""
        scale, share = self.smoothing
        proba *= scale
        return self._add_share(proba, share)

    def _add_share(self, proba: Floats, share: Floats) -> Floats:
        if len(self.classes) < self.card:
            seen, proba = proba, np.zeros((*proba.shape[:-1], self.card))
            proba[..., self.classes] = seen
        proba += share
        return proba


def predict_proba(estimator: Any, inputs: Features) -> Floats:
    """Return the probabilities (n, c) of a fitted classifier, as an array that may be overwritten."""
    if is_one_of(estimator, _FORESTS) and isinstance(inputs, np.ndarray):
        with np.errstate(over="ignore"):
            small = np.ascontiguousarray(inputs, dtype=np.float32)
        # A chain of forests asks about a few rows thousands of times, and the checks of scikit-learn, which
        # are repeated for each tree, take several times as long as the trees.
        if small.shape[1] == estimator.n_features_in_ and np.isfinite(small).all():
            return _mean_of_trees(estimator, small)
    return np.array(estimator.predict_proba(inputs), dtype=float)


def _mean_of_trees(forest: Any, inputs: npt.NDArray[np.float32]) -> Floats:
    total = np.zeros((len(inputs), len(forest.classes_)))
    for tree in forest.estimators_:
        total += tree.tree_.predict(inputs)
    total /= len(forest.estimators_)
    return total


def _fit(
    estimator: Any, inputs: Features, y: Codes, weight: Floats | None, groups: Codes | None = None
) -> Any:
    """Fit a clone to classes 0 .. c - 1."""
    known = type(estimator) is not RidgeLogistic and is_plain_logistic(estimator)
    plain = y.max() > 1 and known and isinstance(inputs, np.ndarray)
    if plain and np.isfinite(inputs.sum()):
        return fit_in_blocks(estimator, inputs, y, weight)
    fitted = clone(estimator)
    with (
        folds_of_groups(fitted, y, groups),
        config_context(enable_metadata_routing=False),  # the arguments name their steps already
        warnings.catch_warnings(),
    ):
        # Combinations of labels may be many and rare; they are classes all the same.
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
        return fitted.fit(inputs, y, **weight_arguments(fitted, weight), **group_arguments(fitted, groups))
