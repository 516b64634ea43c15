"""Naive Bayes for features of mixed kinds."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tuplet.exceptions import InputError
from tuplet.typing import Floats

SAME = 1e-12
"""Part of their size by which numbers may differ and still be the same."""


@final
class MixedNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes with a normal distribution for each number and a free one for each category.

    Given the class, features are independent. A value that is missing (NaN), in training or prediction, or a
    category that training did not show, says nothing and is left out.

    Parameters
    ----------
    categorical : "auto", or array-like of int or bool
        Which columns hold categories, coded by any numbers: positions, or a mask. "auto" takes those with no
        other values than 0 and 1, as one-hot encoding gives them; other codes cannot be told from counts and
        measurements.
    alpha : float
        Number > 0 of pseudo-rows for each category in each class.
    variance_floor : float
        Variances within a class are at least this part of the column's own variance. A class with a few
        rows that happen to agree would otherwise be certain of everything.

    Attributes
    ----------
    classes_ : array, shape (k,)
    class_log_prior_ : array, shape (k,)
        Log-frequencies of the classes.
    categorical_ : array of bool, shape (d,)
        Which columns were taken to hold categories.
    mean_, variance_ : array, shape (k, d)
        Of the numbers; NaN for columns of categories.
    categories_ : list of arrays
        Values of each column of categories. 0 and 1 come together, whether or not training shows both.
    category_log_prob_ : list of arrays, shape (k, number of categories)
        One for each column of categories.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a frame.

    Notes
    -----
    Without categories and with variances above the floor this is scikit-learn's GaussianNB (but for
    its `var_smoothing` of 1e-9), with nothing else CategoricalNB, and with 0/1 columns BernoulliNB.

    Examples
    --------
    >>> X = np.array([[1.0, 0], [1.2, 0], [np.nan, 1], [3.0, 1], [3.3, 0]])
    >>> model = MixedNaiveBayes().fit(X, ["a", "a", "b", "b", "b"])
    >>> model.predict([[1.1, 0.0], [np.nan, 1.0]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[np.nan, 1.0]]).round(2)
    array([[0.22, 0.78]])
    """

    def __init__(
        self, *, categorical: Any = "auto", alpha: float = 1.0, variance_floor: float = 1e-3
    ) -> None:
        self.categorical = categorical
        self.alpha = alpha
        self.variance_floor = variance_floor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d), classes y (n,) and weights (n,)."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        for name, value in (("alpha", self.alpha), ("variance_floor", self.variance_floor)):
            if not 0 < value < np.inf:
                raise InputError(f"MixedNaiveBayes: {name} must be a number > 0, found {value!r}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        shares = np.zeros((len(self.classes_), len(X)))
        shares[codes, np.arange(len(X))] = weight
        totals = shares.sum(axis=1)
        with np.errstate(divide="ignore"):  # a class without weight is impossible
            self.class_log_prior_ = np.log(totals / totals.sum())
        self.categorical_ = self._which(X[weight > 0])
        self._fit_numbers(X, codes, weight, shares)
        self._fit_categories(X, weight, shares)
        return self

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Log-densities (n, k) of the rows of X together with each class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        joint = self._numbers(X[:, ~self.categorical_])
        joint += self._indicators(X) @ np.hstack([np.zeros((len(joint.T), 0)), *self.category_log_prob_]).T
        return joint + self.class_log_prior_

    def predict_log_proba(self, X: Any) -> Floats:
        """Log-probabilities (n, k) of the classes."""
        joint = self.predict_joint_log_proba(X)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, k) of the classes."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most probable class (n,) of each row."""
        joint = self.predict_joint_log_proba(X)
        return self.classes_[joint.argmax(axis=1)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # -- numbers ------------------------------------------------------------------------------------------

    def _fit_numbers(self, X: Floats, codes: Any, weight: Floats, shares: Floats) -> None:
        """Means and variances within classes of what is there; those of the column where nothing is.

        The second pass over deviations loses no digits where a column is far from zero.
        """
        numbers = X[:, ~self.categorical_]
        there = ~np.isnan(numbers)
        numbers = np.where(there, numbers, 0.0)
        count = shares @ there
        centre = _ratio(weight @ numbers, weight @ there, 0.0)
        spread = _ratio(weight @ (there * (numbers - centre) ** 2), weight @ there, 0.0)
        spread[_constant(numbers, there & (weight > 0)[:, None])] = 0.0
        mean = _ratio(shares @ numbers, count, centre)
        squares = shares @ (there * (numbers - mean[codes]) ** 2)
        variance = np.maximum(_ratio(squares, count, spread), self.variance_floor * spread)
        variance[:, spread == 0] = 0.0
        self.mean_, self.variance_ = np.full((2, len(shares), X.shape[1]), np.nan)
        self.mean_[:, ~self.categorical_], self.variance_[:, ~self.categorical_] = mean, variance

    def _numbers(self, numbers: Floats) -> Floats:
        """Log-densities (n, k) of columns of numbers; constant columns say nothing."""
        mean, variance = self.mean_[:, ~self.categorical_], self.variance_[:, ~self.categorical_]
        useful = (variance > 0).all(axis=0)
        mean, variance, numbers = mean[:, useful], variance[:, useful], numbers[:, useful]
        there = ~np.isnan(numbers)
        joint = np.empty((len(numbers), len(mean)))
        for c in range(len(mean)):
            surprise = np.log(2 * np.pi * variance[c]) + (numbers - mean[c]) ** 2 / variance[c]
            joint[:, c] = -0.5 * np.sum(surprise, axis=1, where=there)
        return joint

    # -- categories ---------------------------------------------------------------------------------------

    def _which(self, X: Floats) -> npt.NDArray[np.bool_]:
        if isinstance(self.categorical, str) and self.categorical == "auto":
            return np.array(((X == 0) | (X == 1) | np.isnan(X)).all(axis=0) & ~np.isnan(X).all(axis=0))
        chosen = np.asarray(self.categorical)
        mask = np.zeros(X.shape[1], dtype=bool)
        whole = chosen.ndim == 1 and (chosen.size == 0 or chosen.dtype.kind in "iub")
        inside = whole and (
            len(chosen) == len(mask)
            if chosen.dtype == bool
            else not chosen.size or -len(mask) <= chosen.min() <= chosen.max() < len(mask)
        )
        if not inside:
            raise InputError(
                f'MixedNaiveBayes: categorical must be "auto", positions of columns, or a mask of the'
                f" {len(mask)} columns of X; found {self.categorical!r}."
            )
        mask[chosen if chosen.size else []] = True
        return mask

    def _fit_categories(self, X: Floats, weight: Floats, shares: Floats) -> None:
        """Smoothed frequencies of the categories within classes."""
        columns = X[weight > 0][:, self.categorical_].T
        self.categories_ = [_categories(column) for column in columns]
        counts = shares @ self._indicators(X)
        starts = np.cumsum([len(values) for values in self.categories_])[:-1]
        self.category_log_prob_ = []
        for count in np.split(counts, starts, axis=1) if self.categories_ else []:
            total = count.sum(axis=1, keepdims=True) + self.alpha * count.shape[1]
            self.category_log_prob_.append(np.log(count + self.alpha) - np.log(total))

    def _indicators(self, X: Floats) -> Any:
        """Sparse matrix (n, number of all categories): which category each row has in each column."""
        rows, places, start = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)], 0
        for column, values in zip(X[:, self.categorical_].T, self.categories_, strict=True):
            place = np.searchsorted(values, column)
            known = np.flatnonzero(np.append(values, np.nan)[place] == column)
            rows.append(known)
            places.append(start + place[known])
            start += len(values)
        at = (np.concatenate(rows), np.concatenate(places))
        return sparse.csr_array((np.ones(len(at[0])), at), shape=(len(X), start))


def _ratio(above: Floats, below: Floats, otherwise: Any) -> Floats:
    """Return above / below, and something else where that is 0 / 0."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), otherwise)


def _constant(numbers: Floats, use: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether the numbers (n, d) to use are equal (d,); rounding gives even those a variance."""
    low = np.min(numbers, axis=0, where=use, initial=np.inf)
    return are_equal(low, np.max(numbers, axis=0, where=use, initial=-np.inf))


def are_equal(low: Floats, high: Floats) -> npt.NDArray[np.bool_]:
    """Return whether all numbers between two are the same but for rounding, or none; any shape.

    A mean that was filled in for what was missing is not quite the value of a constant column.
    """
    near = high - low <= SAME * np.maximum(np.abs(low), np.abs(high))
    return np.array(near | (low > high))


def _categories(column: Floats) -> Floats:
    """Values of a column; both of 0 and 1 where there is nothing else."""
    values = np.unique(column[~np.isnan(column)])
    return np.array([0.0, 1.0]) if np.isin(values, (0, 1)).all() else values
