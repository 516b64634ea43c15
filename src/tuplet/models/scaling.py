"""Features on one scale, for models that are no scikit-learn estimators with a scaler of their own."""

from __future__ import annotations

from typing import Any

from scipy import sparse
from sklearn import config_context

from tuplet.core.typing import Floats
from tuplet.local.logistic import default_estimator
from tuplet.space.features.estimators import weight_arguments
from tuplet.space.features.inputs import Features


def fit_scaler(X: Features, sample_weight: Floats | None = None) -> Any:
    """Return what `default_estimator` does before it classifies, fitted: means for gaps, unit variance."""
    scaler = default_estimator(sparse=sparse.issparse(X))[:-1]
    with config_context(enable_metadata_routing=False):
        return scaler.fit(X, **weight_arguments(scaler, sample_weight))
