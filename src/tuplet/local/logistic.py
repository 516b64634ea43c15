"""The default classifier, and properties of logistic regressions that allow faster evaluation and fits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from tuplet.core.exceptions import ConvergenceWarning
from tuplet.core.limits import CACHE_CELLS, row_blocks
from tuplet.core.typing import Codes, Floats
from tuplet.space.features.estimators import COLUMN_WISE, is_column_wise, last_step, weight_arguments
from tuplet.space.features.inputs import Features

_EPSILON = float(np.finfo(float).eps)


def default_estimator(sparse: bool = False) -> Pipeline:
    """Imputed and standardised logistic regression: what `estimator=None` means in every model.

    Missing values become the mean of their column (0 if the column has no value at all), then columns are
    scaled to unit variance; sparse input is not centred. Several classes are one softmax model, not one
    model per class. The penalty is scikit-learn's, C = 1.

    To tune the default, change a copy of it and pass that as `estimator`; the steps have the names that
    scikit-learn's `make_pipeline` gives.

    Parameters
    ----------
    sparse : bool
        Whether X is a sparse matrix, which must not be centred.

    Returns
    -------
    Pipeline
        Of SimpleImputer, StandardScaler and LogisticRegression.

    Examples
    --------
    >>> default_estimator()[-1]
    LogisticRegression(max_iter=2000)
    >>> stronger = default_estimator().set_params(logisticregression__C=0.1)
    >>> stronger[-1]
    LogisticRegression(C=0.1, max_iter=2000)
    """
    return make_pipeline(
        SimpleImputer(keep_empty_features=True),
        StandardScaler(with_mean=not sparse),
        LogisticRegression(max_iter=2000),
    )


def fit_scaler(X: Features, sample_weight: Floats | None = None) -> Any:
    """Return the imputer and scaler of `default_estimator`, fitted; for models that are not estimators."""
    scaler = default_estimator(sparse=sp.issparse(X))[:-1]
    with config_context(enable_metadata_routing=False):
        return scaler.fit(X, **weight_arguments(scaler, sample_weight))


def is_plain_logistic(classifier: Any) -> bool:
    """Return whether a classifier is the penalised softmax regression that the compiled code fits.

    That is scikit-learn's LogisticRegression with its default solver and penalty and any C, tol, max_iter.
    """
    if type(classifier) is not LogisticRegression:
        return False
    settings = classifier.get_params()
    same = settings["solver"] == "lbfgs" and settings["fit_intercept"] and not settings["dual"]
    ridge = settings.get("penalty", "l2") in ("l2", "deprecated") and not settings.get("l1_ratio")
    softmax = settings.get("multi_class", "auto") in ("auto", "deprecated")
    sound = 0 < settings["C"] < np.inf and settings["tol"] > 0
    return bool(same and ridge and softmax and sound and settings["class_weight"] is None)


def is_logistic_pipeline(estimator: Any) -> bool:
    """Return whether an estimator is a plain logistic regression, alone or behind column-wise steps.

    Its fits are compiled and deterministic, and its parameters can be counted.
    """
    return is_column_wise(estimator) and is_plain_logistic(last_step(estimator))


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


def _mean_loss(theta: Floats, Z: Floats, y: Codes, share: Floats, ridge: float) -> tuple[float, Floats]:
    """Penalised mean negative log-likelihood of coefficients and intercepts (k, d + 1), and its gradient."""
    theta = theta.reshape(-1, Z.shape[1] + 1)
    coef = theta[:, :-1]
    value, gradient = 0.5 * ridge * float((coef**2).sum()), np.zeros_like(theta)
    for rows in row_blocks(len(y), len(theta), CACHE_CELLS):
        part, own, weight = Z[rows], y[rows], share[rows]
        logits = part @ coef.T
        logits += theta[:, -1]
        logits -= logits.max(axis=1, keepdims=True)
        at = np.arange(len(own)), own
        value -= float(weight @ logits[at])
        total = np.exp(logits, out=logits).sum(axis=1)
        value += float(weight @ np.log(total))
        logits *= (weight / total)[:, None]
        logits[at] -= weight
        gradient[:, :-1] += logits.T @ part
        gradient[:, -1] += logits.sum(axis=0)
    gradient[:, :-1] += ridge * coef
    return value, gradient.ravel()


_RANGE = 600.0
"""Largest logit, in absolute terms, whose exponential is taken as it is.

Then neither sums overflow nor terms vanish, and the maxima of all rows, which take as long as the
exponentials, are not needed.
"""


def is_additive(estimator: Any) -> bool:
    """Return whether a fitted classifier's logits are a function of x plus a linear one of the parents.

    True for logistic regression, alone or after steps that treat each column by itself. Then the costly
    part, x, is computed once for all values of the parents.
    """
    if isinstance(estimator, Pipeline):
        return is_additive(estimator.steps[-1][1]) and all(
            _keeps_parents(step) for _, step in estimator.steps[:-1]
        )
    return type(estimator) is LogisticRegression and (len(estimator.classes_) == 2 or _is_softmax(estimator))


def linear_predictor(estimator: Any, inputs: Any) -> Floats:
    """Logits of an additive classifier, whose `probabilities` are its `predict_proba`.

    Shape (n, c), or (n, 1) for two classes: the logit of the second.
    """
    if type(estimator) is LogisticRegression and isinstance(inputs, np.ndarray):
        # Without scikit-learn's checks of the inputs, which take several times as long as the product for
        # the dozens of small classifiers of a chain.
        logits = np.asarray(inputs @ estimator.coef_.T)
        logits += estimator.intercept_
        if np.isfinite(logits.sum()):
            return logits
    decision = np.asarray(estimator.decision_function(inputs), dtype=float)
    return decision.reshape(len(decision), -1)


def probabilities(logits: Floats, scale: float = 1.0) -> Floats:
    """Probabilities (..., c) of logits (..., c), or (..., 2) of (..., 1), times a scale.

    The logits may be overwritten.
    """
    if logits.shape[-1] == 1:
        proba = np.empty((*logits.shape[:-1], 2))
        expit(logits[..., 0], out=proba[..., 1])
        np.subtract(1.0, proba[..., 1], out=proba[..., 0])
        return proba if scale == 1.0 else np.multiply(proba, scale, out=proba)
    if logits.size and max(logits.max(), -logits.min()) > _RANGE:
        logits -= logits.max(axis=-1, keepdims=True)
    np.exp(logits, out=logits)
    total = logits @ np.ones(logits.shape[-1])  # faster than sums of short rows
    logits *= (scale / total)[..., None]
    return logits


def _keeps_parents(step: Any) -> bool:
    # A ColumnTransformer passes the parents' columns through: see `admit_columns`.
    return step is None or step == "passthrough" or type(step) in (*COLUMN_WISE, ColumnTransformer)


def _is_softmax(estimator: LogisticRegression) -> bool:
    return estimator.solver != "liblinear" and getattr(estimator, "multi_class", "auto") != "ovr"
