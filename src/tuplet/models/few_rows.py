"""Models of a few rows: how much of the training frequencies their predictions need.

A model of five rows is worse than the frequencies of the labels as often as not, and choices that it makes
by held-out rows are mostly noise. So the whole model is compared with the frequencies by leaving each row
out, and mixed with them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.mixture import Mixture
from tuplet.local.cross_fitting import Positions, cross_fit, inner_folds
from tuplet.local.smoothing import smoothed_frequencies
from tuplet.models.mixture_weights import mixture_weights
from tuplet.space.features.inputs import Features, take_rows

FEW_ROWS = 16
"""Rows from which on models are not judged. On seven tables, generated and real, mixtures with the
frequencies predict new rows better with 5, 8 and 12 rows, and no better with 20."""


def are_few(codes: Codes, sample_weight: Floats | None) -> bool:
    """Return whether there are so few rows, and so little weight, that a model is judged."""
    weight = len(codes) if sample_weight is None else sample_weight.sum()
    return 1 < len(codes) < FEW_ROWS and weight < FEW_ROWS


def frequency_share(
    fit: Callable[[Positions, Floats | None], Any],
    X: Features,
    codes: Codes,
    sample_weight: Floats | None,
    groups: Codes | None,
) -> float:
    """Return the share of the frequencies in the mixture with a model that predicts left-out rows best.

    One row is added that only the frequencies explain: a few lucky rows are no proof.

    Parameters
    ----------
    fit : callable
        (positions, weights of these rows or None) -> fitted `JointClassifier`.
    X : features, n rows
    codes : int array, shape (n, m)
    sample_weight : array, shape (n,), or None
    groups : int array, shape (n,), or None
        Rows of one group are left out together.
    """

    def log_probs(model: Any, rows: Positions) -> Floats:
        own = model._joint_of(take_rows(X, rows)).log_prob(codes[rows])
        return np.column_stack([own, _log_frequencies(model.label_counts_, codes[rows])])

    folds = inner_folds(X, codes, sample_weight, FEW_ROWS, groups=groups)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the fit to all rows have been shown
            held = cross_fit(folds, fit, log_probs)
    except ValueError:  # some estimators need rows of every class, which a fold may lack
        return 0.0
    if not held.predictions:
        return 0.0
    log_prob = np.vstack([*held.predictions, [-np.inf, 0.0]])
    weights = None if held.weights is None else np.append(held.weights, 1.0)
    return float(mixture_weights(log_prob, weights).weights[1])


def _log_frequencies(counts: Sequence[Floats], codes: Codes) -> Floats:
    """Return the log-probabilities (n,) of rows by the frequencies of labels with these counts."""
    total = np.zeros(len(codes))
    for each, column in zip(counts, codes.T, strict=True):
        total += np.where(column == UNKNOWN, 0.0, np.log(smoothed_frequencies(each))[column])
    return total


def with_frequencies(joint: JointDistribution, share: float, counts: Sequence[Floats]) -> JointDistribution:
    """Return (1 - share) * joint + share * the product of the frequencies of labels with these counts."""
    n = len(joint)
    if share == 0.0 or not n:
        return joint
    rows = [np.tile(np.log(smoothed_frequencies(each)), (n, 1)) for each in counts]
    frequencies = FactorGraph.independent(rows)
    if share == 1.0:
        return frequencies
    return Mixture(np.broadcast_to(np.log([1 - share, share]), (n, 2)), (joint, frequencies))
