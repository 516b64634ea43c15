"""Linear stacking: every label is a sparse weighted sum of the predictions for all labels."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from tuplet.core.parameters import Number, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, split_categories
from tuplet.joint.graph import FactorGraph
from tuplet.local.cross_fitting import cross_fit, inner_folds
from tuplet.local.smoothing import bounded_tables
from tuplet.models.base import JointClassifier
from tuplet.models.independent import IndependentClassifier
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features, take_rows

_LEAST = 1e-3
"""Scores are cut to stay so far inside of 0 and 1 before they are read as probabilities."""

_SHARES, _N_FOLDS = (0.0, 0.25, 0.5, 0.75, 1.0), 3
"""Shares of learned weights that are tried, and the folds that choose one."""

_ITERATIONS, _TOLERANCE = 500, 1e-6


@final
class WeightedStackingClassifier(JointClassifier):
    """Scores of labels as sparse linear combinations of base classifiers' probabilities: MLWSE.

    Weights minimise a squared error, plus a term in which dissimilar labels push each other's weights apart,
    plus an absolute value that selects classifiers. Scores are read as probabilities.

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        See `IndependentClassifier`, which is the first layer.
    correlation : float
        Weight of the pairwise term.
    sparsity : float
        Weight of the absolute values.
    n_folds : int
        The probabilities that weights are learned from are those of classifiers that have not seen the row.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    n_jobs : int, optional
        Fits that run side by side, by joblib.

    Attributes
    ----------
    first_ : IndependentClassifier
    weights_ : array, shape (K, K)
        Column c holds the weights of category c of all variables, side by side.
    learned_share_ : float
        Share of the learned weights in `weights_`; the rest is that of the first layer alone. Weights of
        rows held out choose it: K weights for each category need more rows than there may be.

    Notes
    -----
    With probabilities Z (n, K), labels Y (n, K) as 0/1 columns, and C the cosine similarity of these columns:
    min_W 1/2 |Z W - Y|^2 + correlation/2 tr((1 - C) W'W) + sparsity |W|_1, by accelerated proximal steps. The
    correlations enter the squared error only through the weights: given x, labels are independent.

    References
    ----------
    Y. Xia, K. Chen, Y. Yang, Multi-label classification with weighted classifier selection and stacked
    ensemble, Information Sciences 557, 2021.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]] * 2
    >>> y = ([["dry", "hat"]] * 4 + [["wet", "umbrella"]] * 3 + [["wet", "hat"]]) * 2
    >>> WeightedStackingClassifier(n_folds=2).fit(X, y).predict([[0.05], [1.05]])
    array([['dry', 'hat'],
           ['wet', 'umbrella']], dtype='<U8')
    """

    _parameters = declare(
        "columns estimator n_folds n_jobs", correlation=Number(at_least=0), sparsity=Number(at_least=0)
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        correlation: float = 1e-4,
        sparsity: float = 1e-3,
        n_folds: int = 5,
        columns: ColumnChoices = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.correlation = correlation
        self.sparsity = sparsity
        self.n_folds = n_folds
        self.columns = columns
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        groups = self._groups
        held = cross_fit(
            inner_folds(X, codes, sample_weight, self.n_folds, self.space_, groups=groups),
            lambda rows, weights: self._first(
                take_rows(X, rows), codes[rows], weights, None if groups is None else groups[rows]
            ),
            lambda layer, rows: np.hstack(layer._joint_of(take_rows(X, rows)).marginals()),
        )
        self.first_ = self._first(X, codes, sample_weight, groups)
        self.weights_, self.learned_share_ = np.eye(sum(self.space_.cards)), 0.0
        if held.predictions:
            Z = np.vstack(held.predictions)
            Y = self._one_hot(codes[held.rows], Z)
            some = None if groups is None else groups[held.rows]
            self.learned_share_ = self._share(Z, Y, held.weights, codes[held.rows], some)
            self.weights_ = self._mixed(self._learned(Z, Y, held.weights), self.learned_share_)

    def _learned(self, Z: Floats, Y: Floats, weights: Floats | None) -> Floats:
        return stacking_weights(Z, Y, weights, correlation=self.correlation, sparsity=self.sparsity)

    def _mixed(self, learned: Floats, share: float) -> Floats:
        return (1.0 - share) * np.eye(len(learned)) + share * learned

    def _share(
        self, Z: Floats, Y: Floats, weights: Floats | None, codes: Codes, groups: Codes | None
    ) -> float:
        """Return the share of learned weights with which rows of Z (r, K) are predicted best, held out."""
        folds = inner_folds(Z, codes, weights, _N_FOLDS, groups=groups)
        totals = np.zeros(len(_SHARES))
        for fold in folds:
            learned = self._learned(Z[fold.train], Y[fold.train], fold.train_weight)
            for place, share in enumerate(_SHARES):
                tables = self._tables(Z[fold.test] @ self._mixed(learned, share))
                totals[place] += fold.test_weight @ _own_log_prob(tables, codes[fold.test])
        return float(_SHARES[int(np.argmax(totals))])

    def _first(self, X: Features, codes: Codes, weights: Any, groups: Codes | None) -> IndependentClassifier:
        model = IndependentClassifier(self.estimator, n_jobs=self.n_jobs)
        return model._fit_codes(X, self.space_, codes, weights, groups)

    def _one_hot(self, codes: Codes, output: Floats) -> Floats:
        """Return labels as 0/1 columns; missing ones are replaced by the prediction of the first layer."""
        target, start = output.copy(), 0
        for j, card in enumerate(self.space_.cards):
            known = np.flatnonzero(codes[:, j] != UNKNOWN)
            target[known, start : start + card] = codes[known, j, None] == np.arange(card)
            start += card
        return target

    def _predict_joint(self, X: Features) -> JointDistribution:
        scores = np.hstack(self.first_._joint_of(X).marginals()) @ self.weights_
        return FactorGraph.independent(self._tables(scores))

    def _tables(self, scores: Floats) -> list[Floats]:
        """Return scores (n, K) as log-probabilities (n, k_j) of each variable."""
        tables = split_categories(np.clip(scores, _LEAST, 1 - _LEAST), self.space_.cards)
        return bounded_tables(tables, self.label_counts_)


def _own_log_prob(tables: list[Floats], codes: Codes) -> Floats:
    """Return the log-probabilities (n,) of codes (n, m) by tables (n, k_j); missing ones are left out."""
    total, rows = np.zeros(len(codes)), np.arange(len(codes))
    for table, column in zip(tables, codes.T, strict=True):
        total += np.where(column == UNKNOWN, 0.0, table[rows, column])
    return total


def label_similarity(Y: Floats, weights: Floats) -> Floats:
    """Cosine similarity (K, K) of the columns of Y (n, K); 1 on the diagonal."""
    inner = (Y * weights[:, None]).T @ Y
    norms = np.sqrt(np.maximum(np.diag(inner), np.finfo(float).tiny))
    similarity = inner / np.outer(norms, norms)
    np.fill_diagonal(similarity, 1.0)
    return np.asarray(similarity)


def stacking_weights(
    Z: Floats, Y: Floats, weights: Floats | None = None, *, correlation: float, sparsity: float
) -> Floats:
    """Weights (D, K) that minimise the objective of `WeightedStackingClassifier`.

    Parameters
    ----------
    Z : array, shape (n, D)
        Predictions of the classifiers.
    Y : array, shape (n, K)
        Labels.
    weights : array, shape (n,), optional
    correlation, sparsity : float

    Examples
    --------
    >>> Z = np.array([[0.9, 0.2], [0.2, 0.8], [0.7, 0.1]])
    >>> W = stacking_weights(Z, np.round(Z), correlation=0.0, sparsity=0.0)
    >>> np.allclose(W, np.linalg.lstsq(Z, np.round(Z))[0], atol=1e-4)
    True
    """
    weights = np.ones(len(Z)) if weights is None else weights
    gram, cross = (Z * weights[:, None]).T @ Z, (Z * weights[:, None]).T @ Y
    apart = 1.0 - label_similarity(Y, weights)
    # A small ridge holds the pairwise term, which alone is not convex, above zero.
    lift = -correlation * min(0.0, float(np.linalg.eigvalsh(apart).min()))
    gram = gram + lift * np.eye(len(gram))
    step = 1.0 / (np.linalg.norm(gram, 2) + correlation * np.linalg.norm(apart, 2) + 1e-12)
    start = np.linalg.solve(gram + 0.1 * np.eye(len(gram)), cross)
    now, ahead, momentum = start, start, 1.0
    for _ in range(_ITERATIONS):
        moved = ahead - step * (gram @ ahead - cross + correlation * ahead @ apart)
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * sparsity, 0.0)
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / grown * (new - now)
        change = np.abs(new - now).max()
        now, momentum = new, grown
        if change < _TOLERANCE:
            break
    return np.asarray(now)
