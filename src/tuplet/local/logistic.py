"""The default classifier, and properties of logistic regressions that allow faster evaluation and fits."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.special import expit
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from tuplet.core.typing import Floats
from tuplet.local.ridge import RidgeLogistic
from tuplet.space.features.admit import ParentsBeside
from tuplet.space.features.estimators import COLUMN_WISE, is_column_wise, last_step, weight_arguments
from tuplet.space.features.inputs import Features
from tuplet.space.features.scaling import LimitedScaler

LINEAR = (LogisticRegression, RidgeLogistic)
"""Classifiers whose logits are linear functions of their inputs."""


def default_estimator(sparse: bool = False) -> Pipeline:
    """Imputed and standardised logistic regression: what `estimator=None` means in every model.

    Missing values become the mean of their column (0 if the column has no value at all), then columns are
    limited to the range of the training values, widened by its own width on both sides, and scaled to unit
    variance; outliers among the training values do not count, and sparse input is not centred. Several
    classes are one softmax model, not one model per class. The penalty is chosen by held-out rows: see
    `RidgeLogistic`.

    To change the default, change a copy of it and pass that as `estimator`; the steps have the names that
    scikit-learn's `make_pipeline` gives. For scikit-learn's own classifier with its fixed penalty, put a
    `LogisticRegression(max_iter=2000)` in the place of the last step.

    Parameters
    ----------
    sparse : bool
        Whether X is a sparse matrix, which must not be centred.

    Returns
    -------
    Pipeline
        Of SimpleImputer, LimitedScaler and RidgeLogistic.

    Examples
    --------
    >>> default_estimator()[-1]
    RidgeLogistic()
    >>> fixed = default_estimator().set_params(ridgelogistic__C=0.1)
    >>> fixed[-1]
    RidgeLogistic(C=0.1)
    """
    return make_pipeline(
        SimpleImputer(keep_empty_features=True),
        LimitedScaler(with_mean=not sparse),
        RidgeLogistic(),
    )


def fit_scaler(X: Features, sample_weight: Floats | None = None) -> Any:
    """Return the imputer and scaler of `default_estimator`, fitted; for models that are not estimators."""
    scaler = default_estimator(sparse=sp.issparse(X))[:-1]
    with config_context(enable_metadata_routing=False):
        return scaler.fit(X, **weight_arguments(scaler, sample_weight))


def is_plain_logistic(classifier: Any) -> bool:
    """Return whether a classifier is the penalised softmax regression that the compiled code fits.

    That is scikit-learn's LogisticRegression with its default solver and penalty and any C, tol, max_iter, or
    `RidgeLogistic`.
    """
    if type(classifier) is RidgeLogistic:
        return True
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
    return type(estimator) in LINEAR and (len(estimator.classes_) == 2 or _is_softmax(estimator))


def linear_predictor(estimator: Any, inputs: Any) -> Floats:
    """Logits of an additive classifier, whose `probabilities` are its `predict_proba`.

    Shape (n, c), or (n, 1) for two classes: the logit of the second.
    """
    if type(estimator) in LINEAR and isinstance(inputs, np.ndarray):
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
    # What selects columns passes those of the parents: see `admit_columns`.
    passing = (*COLUMN_WISE, ColumnTransformer, ParentsBeside)
    return step is None or step == "passthrough" or type(step) in passing


def _is_softmax(estimator: Any) -> bool:
    if type(estimator) is RidgeLogistic:
        return True
    return estimator.solver != "liblinear" and getattr(estimator, "multi_class", "auto") != "ovr"
