"""Cumulative logistic regression for classes in a meaningful order, with shifts where the odds need them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse as sp
from scipy.optimize import minimize
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import Tags, assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tuplet.core.exceptions import ConvergenceWarning, InputError
from tuplet.core.parameters import Number, Whole, check_parameters, declare
from tuplet.core.typing import Codes, Floats
from tuplet.local.cross_fitting import Fold, inner_folds
from tuplet.local.logistic import default_estimator
from tuplet.local.row_samples import SAMPLE_SIZE, sample_rows
from tuplet.local.shifts import Shifts
from tuplet.space.features.inputs import Features, take_rows

_STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
"""Values of C and C_shift that are tried."""

_USUAL = 1.0
"""C where too few rows could be held out to choose one."""

_FEWEST, _FOLDS = 30, 3
"""Rows below which nothing is held out, and number of folds."""

_ROUGH = 1e-3
"""Tolerance of fits that only choose a strength."""

_CLOSEST = 1e-10
"""Least distance of two thresholds: below, the logarithm of a difference of probabilities has no digits."""


@final
class OrdinalClassifier(ClassifierMixin, BaseEstimator):
    """Cumulative logistic regression: P(y <= j | x) = expit(threshold_j - coef x), with a ridge penalty.

    All classes share one coefficient per feature (proportional odds), so there is much less to learn than
    with one for each class. Where held-out rows need more, the logits of each class are shifted by a linear
    function of x with a penalty of its own. Two classes are the logistic regression of scikit-learn with the
    same C.

    As the `estimator` of a model it is used for the ordered class variables with more than two categories;
    the others have the default. See `ordinal_estimator` for the one with imputed and scaled features.

    Parameters
    ----------
    C : float or "auto"
        Inverse strength of the penalty of the coefficients, ||coef||^2 / (2 C); thresholds are free. "auto"
        takes what predicts held-out rows best, of 0.001, 0.01, ..., 100.
    C_shift : float, "auto" or None
        The same for the shifts; None means none, which is the model of proportional odds. There are none with
        two classes, and none where X is sparse.
    tol : float
        Largest entry of the gradient of the mean log-likelihood at which the fit ends.
    max_iter : int

    Attributes
    ----------
    classes_ : array, shape (k,)
        In their order: that of an ordered Categorical, otherwise sorted. Classes that do not occur are left
        out.
    coef_ : array, shape (d,)
        Positive where higher classes are more probable with larger values of a feature.
    thresholds_ : array, shape (k - 1,)
        Increasing.
    shifts_ : array, shape (k, d + 1), or None
        What is added to the logits of the classes: coefficients, the intercept last.
    C_, C_shift_ : float or None
        Inverse strengths as used.
    n_iter_ : int

    Notes
    -----
    With the probabilities p_0 of the cumulative model, those of the model are proportional to
    p_0(y | x) exp(W_y x + b_y); see `shifts`. Cumulative probabilities with a slope for each threshold could
    cross, and would be none.

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
    array([[0.17, 0.66, 0.17]])
    """

    _parameters = declare(
        C=("auto", Number(above=0)),
        C_shift=("auto", Number(above=0), None),
        tol=Number(above=0),
        max_iter=Whole(at_least=1),
    )

    def __init__(
        self,
        C: float | Literal["auto"] = "auto",
        *,
        C_shift: float | Literal["auto"] | None = "auto",
        tol: float = 1e-5,
        max_iter: int = 1000,
    ) -> None:
        self.C = C
        self.C_shift = C_shift
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Maximise the penalised likelihood.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, d)
        y : array, shape (n,)
        sample_weight : array, shape (n,), optional
        groups : array, shape (n,), optional
            Rows of one group are held out together.
        """
        check_parameters(self)
        self.classes_, codes = _classes_and_codes(y)
        X, codes = validate_data(self, X, codes, accept_sparse=["csr", "csc"], dtype=np.float64)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        codes, present = _without_gaps(codes, weight)
        self.classes_ = self.classes_[present]
        if len(self.classes_) < 2:
            raise InputError(f"OrdinalClassifier needs at least 2 classes, found 1 class: {self.classes_}.")
        self.C_, self.C_shift_ = self._choose(_Rows(X, codes, weight), groups)
        self._learn(_Rows(X, codes, weight))
        return self

    def _choose(self, rows: _Rows, groups: Any) -> tuple[float, float | None]:
        """Return C and C_shift as given, or as held-out rows choose them."""
        shifted = self.C_shift if rows.can_be_shifted else None
        if self.C != "auto" and shifted != "auto":
            return self.C, shifted
        folds = rows.folds(groups)
        if not folds:
            return (_USUAL if self.C == "auto" else self.C), (None if shifted == "auto" else shifted)
        parts = [_Part.make(rows, fold) for fold in folds]
        C = _climb(_STRENGTHS, lambda C: sum(each.without_shifts(C) for each in parts), self.C)
        if shifted != "auto":
            return C, shifted
        plain = sum(each.without_shifts(C) for each in parts)
        values = [sum(each.with_shifts(C, strength) for each in parts) for strength in _STRENGTHS]
        best = int(np.argmax(values))
        return C, (_STRENGTHS[best] if values[best] > plain else None)

    def _learn(self, rows: _Rows) -> None:
        model, found = Cumulative.fit(rows, self.C_, self.tol, self.max_iter)
        self.coef_, self.thresholds_, self.n_iter_ = model.coef, model.thresholds, int(found.nit)
        if found.status == 1:
            warnings.warn(
                f"OrdinalClassifier has not converged in {self.max_iter} iterations; raise max_iter, or scale"
                " the features.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.shifts_ = None
        if self.C_shift_ is not None:
            self.shifts_ = fit_class_shifts(model, rows, self.C_shift_).theta[0]

    def linear_scores(self, X: Features) -> Floats:
        """Linear functions of x that decide: coef x (n, 1), with shifts also those of the classes (n, 1 + k).

        `class_probabilities` makes probabilities of them.
        """
        scores = np.asarray(X @ self.coef_)[:, None]
        if self.shifts_ is None:
            return scores
        return np.hstack([scores, np.asarray(X @ self.shifts_[:, :-1].T) + self.shifts_[:, -1]])

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, k) of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=["csr", "csc"], dtype=np.float64)
        return class_probabilities(self.linear_scores(X), self.thresholds_)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most probable class (n,)."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

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

    Returns
    -------
    Pipeline
        Of SimpleImputer, LimitedScaler and `OrdinalClassifier`.

    Examples
    --------
    >>> ordinal_estimator()[-1]
    OrdinalClassifier()
    """
    steps = default_estimator(sparse)[:-1]
    return make_pipeline(*steps.named_steps.values(), OrdinalClassifier())


def class_probabilities(scores: Floats, thresholds: Floats) -> Floats:
    """Probabilities (n, k) of the linear scores (n, 1) or (n, 1 + k) of an `OrdinalClassifier`.

    A difference of two cumulative probabilities would lose its digits where both are close to one, so each is
    taken as expit(b) expit(-a) (1 - exp(a - b)).
    """
    log_proba = np.zeros((len(scores), len(thresholds) + 1))
    distance = thresholds - scores[:, :1]
    log_proba[:, :-1] += log_expit(distance)
    log_proba[:, 1:] += log_expit(-distance)
    log_proba[:, 1:-1] += np.log(-np.expm1(-np.diff(thresholds)))
    if scores.shape[1] > 1:
        log_proba += scores[:, 1:]
    return np.asarray(softmax(log_proba, axis=1))


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
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def _without_gaps(codes: Codes, weight: Floats | None) -> tuple[Codes, Codes]:
    """Renumber the classes without those that have no weight; return codes (n,) and the classes left."""
    present = np.bincount(codes, weight) > 0
    return np.maximum(np.cumsum(present)[codes] - 1, 0), np.flatnonzero(present)


# -- the choice of strengths -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Rows to learn from, of classes without gaps."""

    X: Features
    y: Codes
    weight: Floats | None

    @property
    def weights(self) -> Floats:
        return np.ones(len(self.y)) if self.weight is None else self.weight

    @property
    def can_be_shifted(self) -> bool:
        return not sp.issparse(self.X) and int(self.y.max()) > 1

    def take(self, rows: Codes, weight: Floats | None) -> _Rows:
        return _Rows(take_rows(self.X, rows), self.y[rows], weight)

    def folds(self, groups: Any) -> list[Fold]:
        """Return the folds that choose strengths; none if there are too few rows or groups."""
        if len(self.y) < _FEWEST or (groups is not None and len(np.unique(groups)) < _FOLDS):
            return []
        codes = self.y[:, None]
        together = None if groups is None else np.unique(groups, return_inverse=True)[1]
        folds = inner_folds(self.X, codes, self.weight, _FOLDS, groups=together)
        sample = sample_rows(self.X, codes, self.weight, SAMPLE_SIZE)
        return folds if len(sample.rows) == len(codes) else [_within(fold, sample.rows) for fold in folds]


def _within(fold: Fold, rows: Codes) -> Fold:
    """Return the part of a fold that lies in some rows."""
    train, test = np.isin(fold.train, rows), np.isin(fold.test, rows)
    weight = None if fold.train_weight is None else fold.train_weight[train]
    return Fold(fold.train[train], weight, fold.test[test], fold.test_weight[test])


@dataclass(frozen=True)
class _Part:
    """Rows to learn from and rows that were held out; both have the classes of the former, `kept` (k',)."""

    learnt: _Rows
    kept: Codes
    held: Features
    truth: Codes
    weight: Floats
    fitted: dict[float, Cumulative]

    @classmethod
    def make(cls, rows: _Rows, fold: Fold) -> _Part:
        learnt = rows.take(fold.train, fold.train_weight)
        y, kept = _without_gaps(learnt.y, learnt.weight)
        learnt = _Rows(learnt.X, y, learnt.weight)
        return cls(learnt, kept, take_rows(rows.X, fold.test), rows.y[fold.test], fold.test_weight, {})

    def without_shifts(self, C: float) -> float:
        """Log-likelihood of the held-out rows."""
        if len(self.kept) < 2:
            return 0.0
        if C not in self.fitted:
            self.fitted[C] = Cumulative.fit(self.learnt, C, _ROUGH, 200)[0]
        return self._log_likelihood(self.fitted[C].scores(self.held), self.fitted[C].thresholds)

    def with_shifts(self, C: float, C_shift: float) -> float:
        if len(self.kept) < 3:
            return self.without_shifts(C)
        model = self.fitted[C]
        theta = fit_class_shifts(model, self.learnt, C_shift, _ROUGH).theta[0]
        shifts = self.held @ theta[:, :-1].T + theta[:, -1]
        return self._log_likelihood(np.hstack([model.scores(self.held), shifts]), model.thresholds)

    def _log_likelihood(self, scores: Floats, thresholds: Floats) -> float:
        """Of probabilities that are smoothed by one row, as those of local models are."""
        n, k = len(self.learnt.y), len(self.kept)
        smoothed = np.full((len(scores), int(max(self.kept.max(), self.truth.max())) + 1), 1 / (k * (n + 1)))
        smoothed[:, self.kept] += class_probabilities(scores, thresholds) * n / (n + 1)
        return float(self.weight @ np.log(smoothed[np.arange(len(smoothed)), self.truth]))


def _climb(values: Sequence[float], score: Callable[[float], float], given: float | str) -> float:
    """Return the value with the best score, walking up from the middle; the one that is given, if it is."""
    if not isinstance(given, str):
        score(given)
        return given
    known: dict[int, float] = {}

    def at(i: int) -> float:
        if i not in known:
            known[i] = score(values[i]) if 0 <= i < len(values) else -np.inf
        return known[i]

    place = values.index(_USUAL)
    while (better := max((place - 1, place + 1), key=at)) != place and at(better) > at(place):
        place = better
    return values[place]


# -- the penalised likelihood ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cumulative:
    """P(y <= j | x) = expit(threshold_j - coef x)."""

    coef: Floats
    thresholds: Floats

    @classmethod
    def fit(cls, rows: _Rows, C: float, tol: float, max_iter: int) -> tuple[Cumulative, Any]:
        """Minimise `negative_log_likelihood` by L-BFGS, from the frequencies of the classes."""
        d, weight = rows.X.shape[1], rows.weights
        share, ridge = weight / weight.sum(), 1 / (C * weight.sum())
        up_to = np.cumsum(np.bincount(rows.y, share))[:-1]
        theta = np.log(up_to / (1 - up_to))
        begin = np.concatenate([np.zeros(d), theta[:1], np.log(np.diff(theta))])
        limits: Any = {"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxls": 50}
        found = minimize(
            negative_log_likelihood,
            begin,
            (rows.X, rows.y, share, ridge),
            method="L-BFGS-B",
            jac=True,
            options=limits,
        )
        return cls(found.x[:d], _thresholds(found.x[d:])), found

    def scores(self, X: Features) -> Floats:
        """Linear scores (n, 1)."""
        return np.asarray(X @ self.coef)[:, None]


def fit_class_shifts(model: Cumulative, rows: _Rows, C: float, tol: float = 1e-4) -> Shifts:
    """Fit what is added to the log-probabilities of a cumulative model; see `shifts`."""
    weight, k = rows.weights, len(model.thresholds) + 1
    mean = weight @ rows.X / weight.sum()
    Z = np.ascontiguousarray(np.vstack([rows.X, mean]))
    proba = class_probabilities(model.scores(Z), model.thresholds)
    offset = np.ascontiguousarray(np.log(np.maximum(proba, np.finfo(float).tiny)).T)
    one_block = np.zeros(len(rows.y), dtype=np.intp)
    return Shifts.fit(Z, offset, rows.y, one_block, 1, k, weight, C=C, tol=tol)


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
