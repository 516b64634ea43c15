"""Logistic regression whose ridge penalty is chosen by held-out rows, the default of all models."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self, final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tuplet.core.exceptions import ConvergenceWarning, InputError
from tuplet.core.limits import CACHE_CELLS, row_blocks
from tuplet.core.parameters import Number, check_parameters, declare
from tuplet.core.typing import Codes, Floats
from tuplet.local.many_logistic import ManyLogistic
from tuplet.local.penalties import Target, choose_for_rows, logistic_batch


@final
class RidgeLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression with a ridge penalty that is chosen by rows held out.

    The model is scikit-learn's `LogisticRegression`: one softmax model of all classes, C sum_i w_i nll_i +
    ||W||^2 / 2. C = "auto" takes the C from 1e-7 to 100 with which rows that were held out are most probable.
    At the lower end nothing is left of the slopes, and every row has the frequencies of the classes; so
    features that predict nothing, however many, do little harm.

    Parameters
    ----------
    C : "auto" or float
        Inverse strength of the penalty.
    tol : float
        Largest entry of the gradient of the mean loss at the end.
    max_iter : int
        Limit of iterations.

    Attributes
    ----------
    C_ : float
        The strength that was used.
    classes_ : array, shape (k,)
    coef_ : array, shape (1, d) for two classes, otherwise (k, d)
    intercept_ : array, shape (1,) or (k,)
    n_iter_ : array of int, shape (1,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a frame.

    Notes
    -----
    Standardise the features: the penalty treats all columns alike. Five folds are held out of up to 5,000
    labels, otherwise up to three, as many as have 5,000 labels, and one if there are more than 32 classes.
    Which rows these are follows from the rows themselves, so fits repeat whatever the order of the rows.
    Equal rows, and the units of whole weights, are spread over the folds. A prior of C around 0.3 decides
    where there are a few rows only.

    From 300 rows for each column on, C is 1 without a choice. Of more than 32,768 rows, and of tables whose
    principal axes would take long, a sample chooses.

    In a model of several class variables one C is chosen for all of them, by up to twelve. Columns of
    parents, in chains, have at least C = 0.3: they are few, and their effects are not small where those of
    hundreds of features are.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 50))
    >>> RidgeLogistic().fit(X, X[:, 0] + X[:, 1] > 0).C_
    1.0
    >>> RidgeLogistic().fit(X, rng.random(100) > 0.5).C_
    1e-07
    """

    _parameters = declare("max_iter", C=("auto", Number(above=0)), tol=Number(above=0))

    def __init__(
        self, C: float | Literal["auto"] = "auto", *, tol: float = 1e-4, max_iter: int = 2000
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from rows X (n, d), classes y (n,) and weights (n,).

        Rows of one of the `groups` (n,) are held out together where the penalty is chosen.
        """
        check_parameters(self)
        X, y = validate_data(self, X, y, dtype=np.float64, accept_sparse="csr")
        check_classification_targets(y)
        weight, together = None, None
        if groups is not None:
            together = np.unique(column_or_1d(groups), return_inverse=True)[1]
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            used = weight > 0
            X, y, weight = X[used], y[used], weight[used]
            together = None if together is None else together[used]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("RidgeLogistic: y has one class only; nothing can be learned to tell apart.")
        self._fit_codes(X, codes, weight, together)
        return self

    def _fit_codes(self, X: Any, codes: Codes, weight: Floats | None, groups: Codes | None) -> None:
        batch = logistic_batch(X, weight, tol=self.tol, max_iter=self.max_iter)
        C = self.C
        if C == "auto":
            target = Target(codes, len(self.classes_))
            C = choose_for_rows(X, X, codes[:, None], [target], weight, groups, batch)
        if batch is not None and batch.takes(len(self.classes_)):
            one_block = np.zeros(len(codes), dtype=np.intp)
            fits = batch.with_strength(C).fit(codes, one_block, 1, len(self.classes_), weight)
            self._set(C, *logits_of(fits), int(fits.n_iter[0]))
            return
        plain = LogisticRegression(C=C, tol=self.tol, max_iter=self.max_iter)
        if len(self.classes_) > 2 and not sparse.issparse(X):
            fitted = fit_in_blocks(plain, X, codes, weight)
        else:
            fitted = plain.fit(X, codes, weight)
        self._set(C, fitted.coef_, fitted.intercept_, int(fitted.n_iter_[0]))

    def _set(self, C: float, coef: Floats, intercept: Floats, n_iter: int) -> None:
        self.C_, self.coef_, self.intercept_ = float(C), coef, intercept
        self.n_iter_ = np.array([n_iter], dtype=np.int32)

    @classmethod
    def from_fits(cls, fits: ManyLogistic, C: float) -> RidgeLogistic:
        """Return the regression of the only block, fitted to its k present classes as 0 .. k - 1."""
        self = cls(C)
        self.classes_, self.n_features_in_ = np.arange(int(fits.present[0].sum())), fits.coef.shape[2]
        self._set(C, *logits_of(fits), int(fits.n_iter[0]))
        return self

    def decision_function(self, X: Any) -> Floats:
        """Logits (n, k), or (n,) of the second of two classes."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr")
        logits = np.asarray(X @ self.coef_.T) + self.intercept_
        return logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_log_proba(self, X: Any) -> Floats:
        """Log-probabilities (n, k) of the classes."""
        logits = self.decision_function(X)
        if logits.ndim == 1:
            return np.column_stack([log_expit(-logits), log_expit(logits)])
        return np.asarray(log_softmax(logits, axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, k) of the classes."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most probable class (n,) of each row."""
        log_proba = self.predict_log_proba(X)
        return self.classes_[log_proba.argmax(axis=1)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def logits_of(fits: ManyLogistic) -> tuple[Floats, Floats]:
    """Return the coefficients and intercepts of the only block, as scikit-learn has them."""
    present = np.flatnonzero(fits.present[0])
    rows = present[1:] if len(present) == 2 else present
    return fits.coef[0, rows], fits.intercept[0, rows]


def fit_in_blocks(estimator: LogisticRegression, Z: Floats, y: Codes, weight: Floats | None) -> Any:
    """Fit a plain logistic regression of three or more classes 0 .. k - 1, some rows at a time.

    The objective, the algorithm and its limits are those of scikit-learn, which holds several arrays of all
    rows times all classes: five times the data for 64 classes and 20 features. Blocks of rows stay in the
    cache, which also takes half of the time.
    """
    fitted, k, n = clone(estimator), int(y.max()) + 1, len(y)
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    ridge = 1 / (fitted.C * (n if weight is None else weight.sum()))
    limits: Any = {
        "maxiter": fitted.max_iter,
        "gtol": fitted.tol,
        "ftol": 64 * np.finfo(float).eps,
        "maxls": 50,
    }
    found = minimize(
        _mean_loss,
        np.zeros(k * (Z.shape[1] + 1)),
        args=(Z, y, share, ridge),
        jac=True,
        method="L-BFGS-B",
        options=limits,
    )
    if found.status == 1:
        warnings.warn(
            f"Logistic regression has not converged in {fitted.max_iter} iterations; raise max_iter.",
            ConvergenceWarning,
            stacklevel=2,
        )
    theta = found.x.reshape(k, -1)
    fitted.coef_, fitted.intercept_ = np.ascontiguousarray(theta[:, :-1]), theta[:, -1].copy()
    fitted.classes_, fitted.n_iter_ = np.arange(k), np.array([found.nit], dtype=np.int32)
    fitted.n_features_in_ = Z.shape[1]
    return fitted


_RANGE = 600.0
"""Largest logit, in absolute terms, whose exponential is taken as it is: see `tuplet.local.logistic`."""


def _mean_loss(theta: Floats, Z: Floats, y: Codes, share: Floats, ridge: float) -> tuple[float, Floats]:
    """Penalised mean negative log-likelihood of coefficients and intercepts (k, d + 1), and its gradient."""
    theta = theta.reshape(-1, Z.shape[1] + 1)
    coef = theta[:, :-1]
    value, gradient = 0.5 * ridge * float((coef**2).sum()), np.zeros_like(theta)
    ones = np.ones(len(theta))
    for rows in row_blocks(len(y), len(theta), CACHE_CELLS):
        part, own, weight = Z[rows], y[rows], share[rows]
        logits = part @ coef.T
        logits += theta[:, -1]
        if max(logits.max(), -logits.min()) > _RANGE:
            logits -= logits.max(axis=1, keepdims=True)
        at = np.arange(len(own)), own
        value -= float(weight @ logits[at])
        total = np.exp(logits, out=logits) @ ones  # faster than sums of short rows
        value += float(weight @ np.log(total))
        logits *= (weight / total)[:, None]
        logits[at] -= weight
        gradient[:, :-1] += logits.T @ part
        gradient[:, -1] += np.ones(len(own)) @ logits
    gradient[:, :-1] += ridge * coef
    return value, gradient.ravel()
