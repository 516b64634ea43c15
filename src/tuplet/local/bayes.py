"""Naive Bayes for features of mixed kinds."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tuplet.core.limits import row_blocks
from tuplet.core.parameters import Number, check_parameters, declare
from tuplet.core.typing import Floats
from tuplet.local.many_bayes import BayesBatch, BayesLayout, categorical_columns
from tuplet.space.features.inputs import require_size


@final
class MixedNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes with a normal distribution for each number and a free one for each category.

    Given the class, features are independent. A value that is missing (NaN), in training or prediction, or a
    category that was not seen in training, is ignored.

    Parameters
    ----------
    categorical : "auto", or array-like of int or bool
        Which columns hold categories, coded by any numbers: positions, or a mask. "auto" takes those with no
        other values than 0 and 1, as one-hot encoding returns them; other codes cannot be distinguished from
        counts and measurements.
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
        Of the numbers; NaN for columns of categories or without values, and for classes without weight.
    categories_ : list of arrays
        Values of each column of categories. 0 and 1 come together, whether or not both were seen.
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

    _parameters = declare(categorical=object, alpha=Number(above=0), variance_floor=Number(above=0))

    def __init__(
        self, *, categorical: Any = "auto", alpha: float = 1.0, variance_floor: float = 1e-3
    ) -> None:
        self.categorical = categorical
        self.alpha = alpha
        self.variance_floor = variance_floor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X (n, d), classes y (n,) and weights (n,)."""
        check_parameters(self)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        counts = np.bincount(codes, weight, minlength=len(self.classes_)).astype(float)
        with np.errstate(divide="ignore"):  # a class without weight is impossible
            self.class_log_prior_ = np.log(counts / counts.sum())
        used = weight > 0
        self._estimate(X[used], codes[used], counts[None], weight[used])
        return self

    def _estimate(self, X: Floats, codes: npt.NDArray[Any], counts: Floats, weight: Floats) -> None:
        self.categorical_ = categorical_columns(X, self.categorical)
        layout = BayesLayout.make(X, self.categorical, self.alpha, self.variance_floor)
        require_size("Naive Bayes with a column for each value of a category", len(X), layout.width)
        one_block = np.zeros(len(X), dtype=np.intp)
        self._many = BayesBatch(X, layout).estimate(codes, one_block, counts, counts > 0, weight)
        present, numeric = counts[0] > 0, ~self.categorical_[layout.number_at]
        scale = self._many.scale[:, numeric]
        self.mean_, self.variance_ = np.full((2, len(present), X.shape[1]), np.nan)
        at = np.ix_(present, layout.number_at[numeric])
        self.mean_[at] = self._many.mean[:, numeric]
        self.variance_[at] = np.divide(1.0, scale**2, where=scale > 0, out=np.zeros(scale.shape))
        self._set_categories(X, layout, present)

    def _set_categories(self, X: Floats, layout: BayesLayout, present: npt.NDArray[np.bool_]) -> None:
        self.categories_, self.category_log_prob_ = [], []
        for j in np.flatnonzero(self.categorical_):
            values = _categories(X[:, j])
            c = int(np.searchsorted(layout.category_at, j))
            places = np.searchsorted(layout.column, c) + np.searchsorted(layout.values[c], values)
            log_prob = np.full((len(present), len(values)), np.nan)
            log_prob[present] = self._many.log_share[:, places]
            self.categories_.append(values)
            self.category_log_prob_.append(log_prob)

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Log-densities (n, k) of the rows of X together with each class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        joint, layout = np.full((len(X), len(self.classes_)), -np.inf), self._many.layout
        for block in row_blocks(len(X), layout.width):
            joint[block, self._many.pairs[0]] = self._many.log_joint(0, layout.encode(X[block])).T
        return joint

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


def _categories(column: Floats) -> Floats:
    """Values of a column; both of 0 and 1 where there is nothing else."""
    values = np.unique(column[~np.isnan(column)])
    return np.array([0.0, 1.0]) if np.isin(values, (0, 1)).all() else values
