"""Cumulative logistic regression (proportional odds) for classes in a meaningful order."""

from __future__ import annotations

import warnings
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tuplet.core.exceptions import ConvergenceWarning, InputError
from tuplet.core.parameters import Number, Whole, check_parameters, declare
from tuplet.core.typing import Codes, Floats

_CLOSEST = 1e-10
"""Least distance of two thresholds: below, the logarithm of a difference of probabilities has no digits."""


@final
class OrdinalClassifier(ClassifierMixin, BaseEstimator):
    """Cumulative logistic regression: P(y <= j | x) = expit(threshold_j - coef x), with a ridge penalty.

    All classes share one coefficient per feature (proportional odds), so there is much less to learn than
    with one for each class. Two classes are the logistic regression of scikit-learn with the same C. As the
    `estimator` of a model it is used for the ordered class variables with more than two categories; the others
    have the default.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty of the coefficients, ||coef||^2 / (2 C); thresholds are free.
    tol : float
        Largest entry of the gradient of the mean log-likelihood at which the fit ends.
    max_iter : int

    Attributes
    ----------
    classes_ : array, shape (k,)
        In their order: that of an ordered Categorical, otherwise sorted. Classes that do not occur are left
        out.
    coef_ : array, shape (d,)
        Positive where large values of a feature speak for high classes.
    thresholds_ : array, shape (k - 1,)
        Increasing.
    n_iter_ : int

    References
    ----------
    P. McCullagh, Regression models for ordinal data, Journal of the Royal Statistical Society B 42, 1980.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> model = OrdinalClassifier().fit(X, [1, 1, 2, 2, 3, 3])
    >>> model.predict([[0.5], [2.5], [9.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[2.5]]).round(2)
    array([[0.22, 0.56, 0.22]])
    """

    _parameters = declare(C=Number(above=0), tol=Number(above=0), max_iter=Whole(at_least=1))

    def __init__(self, C: float = 1.0, *, tol: float = 1e-5, max_iter: int = 1000) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Maximise the penalised likelihood.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, d)
        y : array, shape (n,)
        sample_weight : array, shape (n,), optional
        """
        check_parameters(self)
        self.classes_, codes = _classes_and_codes(y)
        X, codes = validate_data(self, X, codes, accept_sparse=["csr", "csc"], dtype=np.float64)
        if len(self.classes_) < 2:
            raise InputError(f"OrdinalClassifier needs samples of at least 2 classes, found {self.classes_}.")
        weight = _check_sample_weight(sample_weight, X)
        codes, self.classes_ = _without_gaps(codes, self.classes_, weight)
        found = _maximise(X, codes, weight, self.C, self.tol, self.max_iter)
        self.coef_, self.thresholds_ = found.x[: X.shape[1]], _thresholds(found.x[X.shape[1] :])
        self.n_iter_ = int(found.nit)
        if found.status == 1:
            warnings.warn(
                f"OrdinalClassifier has not converged in {self.max_iter} iterations; raise max_iter, or scale"
                " the features.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, k) of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=["csr", "csc"], dtype=np.float64)
        return class_probabilities(np.asarray(X @ self.coef_), self.thresholds_)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most probable class (n,)."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def ordinal_estimator(sparse: bool = False) -> Pipeline:
    """Imputed and standardised cumulative logistic regression, the counterpart of `default_estimator`.

    Parameters
    ----------
    sparse : bool
        Whether X is a sparse matrix, which must not be centred.

    Examples
    --------
    >>> ordinal_estimator()[-1]
    OrdinalClassifier()
    """
    return make_pipeline(
        SimpleImputer(keep_empty_features=True), StandardScaler(with_mean=not sparse), OrdinalClassifier()
    )


def class_probabilities(scores: Floats, thresholds: Floats) -> Floats:
    """Probabilities (n, k) of scores (n,) between increasing thresholds (k - 1,).

    A difference of two cumulative probabilities would lose its digits where both are close to one, so each is
    taken as expit(b) expit(-a) (1 - exp(a - b)).
    """
    log_proba = np.zeros((len(scores), len(thresholds) + 1))
    distance = thresholds - scores[:, None]
    log_proba[:, :-1] += log_expit(distance)
    log_proba[:, 1:] += log_expit(-distance)
    log_proba[:, 1:-1] += np.log(-np.expm1(-np.diff(thresholds)))
    proba = np.exp(log_proba)
    return np.asarray(proba / proba.sum(axis=1, keepdims=True))


def _classes_and_codes(y: Any) -> tuple[npt.NDArray[Any], Codes]:
    """Return the classes that occur, in their order, and the position of each label among them."""
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        codes = np.asarray(pd.Categorical(y).codes)
        if (codes < 0).any():
            raise InputError("OrdinalClassifier: y has missing labels; leave these rows out.")
        present, codes = np.unique(codes, return_inverse=True)
        return np.asarray(dtype.categories[present]), codes
    if y is None:
        raise InputError("OrdinalClassifier requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def _without_gaps(
    codes: Codes, classes: npt.NDArray[Any], weight: Floats
) -> tuple[Codes, npt.NDArray[Any]]:
    """Leave out classes without weight, whose thresholds would have no finite value."""
    present = np.bincount(codes, weight, minlength=len(classes)) > 0
    return np.maximum(np.cumsum(present)[codes] - 1, 0), classes[present]


# -- the penalised likelihood ------------------------------------------------------------------------------


def _maximise(X: Any, y: Codes, weight: Floats, C: float, tol: float, max_iter: int) -> Any:
    """Minimise `negative_log_likelihood` by L-BFGS, from the frequencies of the classes."""
    share, ridge = weight / weight.sum(), 1 / (C * weight.sum())
    up_to = np.cumsum(np.bincount(y, share))[:-1]
    theta = np.log(up_to / (1 - up_to))
    begin = np.concatenate([np.zeros(X.shape[1]), theta[:1], np.log(np.diff(theta))])
    limits: Any = {"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxls": 50}
    return minimize(
        negative_log_likelihood, begin, (X, y, share, ridge), "L-BFGS-B", jac=True, options=limits
    )


def negative_log_likelihood(
    params: Floats, X: Any, y: Codes, share: Floats, ridge: float
) -> tuple[float, Floats]:
    """Penalised negative log-likelihood of classes y (n,) with weights `share` (n,), and its gradient.

    Parameters
    ----------
    params : array, shape (d + k - 1,)
        Coefficients, the first threshold, and logarithms of the distances between thresholds: so every value
        is feasible. The likelihood is concave in coefficients and thresholds, of which these are a smooth
        one-to-one function: there is one maximum and no other stationary point.

    Notes
    -----
    With s the score of a row and a < b the thresholds around its class, log p is
    log expit(b - s) + log expit(s - a) + log(1 - exp(a - b)).
    """
    d = X.shape[1]
    coef, gaps = params[:d], np.exp(params[d + 1 :]) + _CLOSEST
    theta = np.concatenate([[-np.inf], _thresholds(params[d:]), [np.inf]])
    scores = X @ coef
    upper, lower = theta[y + 1] - scores, theta[y] - scores
    inner = np.concatenate([[0.0], np.log(-np.expm1(-gaps)), [0.0]])
    value = -share @ (log_expit(upper) + log_expit(-lower) + inner[y]) + 0.5 * ridge * float(coef @ coef)
    of_upper, of_lower = share * expit(-upper), share * expit(lower)
    k = len(theta) - 1
    slopes = np.bincount(y, of_upper, k)[:-1] - np.bincount(y, of_lower, k)[1:]  # of thresholds, gaps apart
    of_gaps = np.bincount(y, share, k)[1:-1] / np.expm1(gaps) + np.cumsum(slopes[::-1])[::-1][1:]
    gradient = np.concatenate(
        [X.T @ (of_lower - of_upper) - ridge * coef, [slopes.sum()], of_gaps * np.exp(params[d + 1 :])]
    )
    return float(value), -gradient


def _thresholds(free: Floats) -> Floats:
    """Thresholds (k - 1,) of the first one and the logarithms of the distances between them."""
    return free[0] + np.concatenate([[0.0], np.cumsum(np.exp(free[1:]) + _CLOSEST)])
