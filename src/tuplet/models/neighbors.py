"""Labels from the labels of the nearest training rows, and the neighbourhoods of all models that use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from tuplet.core.exceptions import InputError
from tuplet.core.parameters import Number, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.logistic import fit_scaler
from tuplet.local.onehot import OneHot, one_hot_width
from tuplet.models.base import JointClassifier
from tuplet.space.features.inputs import Features, n_rows


@final
class NeighborClassifier(JointClassifier):
    """Posterior of each label given how many of the nearest training rows have it: ML-kNN.

    Parameters
    ----------
    n_neighbors : int
        Size k of a neighbourhood; all other rows where there are fewer.
    smoothing : float
        Rows added to every count, s > 0; 1 is Laplace's rule.
    standardize : bool
        Whether columns are scaled to unit variance before distances are taken.
    n_jobs : int, optional
        Workers of the search for neighbours.

    Attributes
    ----------
    neighborhoods_ : Neighborhoods
    prior_ : array, shape (w,)
        Smoothed share of each label, one for a binary variable and one per label of any other.
    likelihood_ : array, shape (2, w, k + 1)
        P(so many neighbours have the label | the row has it not, or has it).

    Notes
    -----
    p(y | x) is the product of the marginals: the posterior of one label does not depend on
    the others. For a binary variable

        p(y_j = 1 | x) is proportional to P(y_j = 1) P(c_j(x) | y_j = 1),

    where c_j(x) counts the neighbours with the label and P(c | y_j) comes from the neighbourhoods of the
    training rows, the row itself left out. A variable of several labels has this for each label against
    all others, and the answers are normalised; for two labels that changes nothing, since the counts of one
    are those of the other, mirrored.

    A neighbour without a label counts by the training frequencies, so counts need not be whole; tables are
    then read, and filled, between their neighbouring entries.

    References
    ----------
    M.-L. Zhang, Z.-H. Zhou, ML-KNN: a lazy learning approach to multi-label learning, Pattern Recognition 40,
    2007.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> y = [["dry", "hat"]] * 3 + [["wet", "umbrella"], ["wet", "hat"], ["wet", "hat"]]
    >>> model = NeighborClassifier(n_neighbors=2).fit(X, y)
    >>> model.predict_joint([[0.05], [1.15]]).marginals()["y0"].round(2)
    y0  dry  wet
    0   0.8  0.2
    1   0.2  0.8
    """

    _parameters = declare("n_neighbors standardize n_jobs", smoothing=Number(above=0))

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        smoothing: float = 1.0,
        standardize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing
        self.standardize = standardize
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        near = Neighborhoods.fit(
            X, self.n_neighbors, sample_weight, standardize=self.standardize, n_jobs=self.n_jobs
        )
        self.neighborhoods_ = near
        one_hot = OneHot.fit(codes, self.space_.cards, near.weights)
        self.columns_ = one_hot.columns(codes)
        weights = np.where(self._known(codes), near.weights[:, None], 0.0)
        self._learn(near.among_training() @ self.columns_, weights)

    def _known(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Whether the label is known, (n, w), for each column."""
        widths = [one_hot_width(card) for card in self.space_.cards]
        return np.repeat(codes != UNKNOWN, widths, axis=1)

    def _learn(self, counts: Floats, weights: Floats) -> None:
        """Learn priors and likelihoods from counts (n, w) of the training rows and weights (n, w)."""
        s, k = self.smoothing, self.neighborhoods_.k
        positive = weights * self.columns_  # a label that is not known has weight 0
        self.prior_ = (s + positive.sum(axis=0)) / (2 * s + weights.sum(axis=0))
        tables = np.stack([_histogram(counts, weights - positive, k), _histogram(counts, positive, k)])
        self.likelihood_ = (s + tables) / (s * (k + 1) + tables.sum(axis=2, keepdims=True))

    def _predict_joint(self, X: Features) -> JointDistribution:
        counts = self.neighborhoods_.around(X) @ self.columns_
        without, having = (_read(table, counts) for table in self.likelihood_)
        having, without = having * self.prior_, without * (1 - self.prior_)
        return FactorGraph.independent(self._log_marginals(having / (having + without)))

    def _log_marginals(self, proba: Floats) -> list[Floats]:
        """Tables (n, k_j) from the probabilities (n, w) of single labels."""
        tables, start = [], 0
        for card in self.space_.cards:
            width = one_hot_width(card)
            part = proba[:, start : start + width]
            if card <= 2:
                part = np.hstack([1.0 - part.sum(axis=1, keepdims=True), part])
            tables.append(np.log(part / part.sum(axis=1, keepdims=True)))
            start += width
        return tables


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The k nearest training rows by Euclidean distance.

    Weights are numbers of rows: a row of weight 3 fills three of the k places, and stands beside itself
    twice. So weights mean what repeated rows mean.

    Parameters
    ----------
    scaler : transformer or None
        What comes before distances are taken.
    search : NearestNeighbors
        Of the n training rows.
    weights : array, shape (n,)
    k : int
        Size of a neighbourhood.
    """

    scaler: Any
    search: NearestNeighbors
    weights: Floats
    k: int

    @classmethod
    def fit(
        cls, X: Features, k: int, sample_weight: Floats | None, *, standardize: bool, n_jobs: int | None
    ) -> Neighborhoods:
        """Prepare the search; `k` is reduced to the number of other rows where there are fewer."""
        if isinstance(X, pd.DataFrame):
            raise InputError(
                "Distances need numbers, but an estimator that treats the columns of a frame by itself left"
                " X as it is; pass one that takes numbers, or encode X before."
            )
        weights = np.ones(n_rows(X)) if sample_weight is None else sample_weight
        scaler = fit_scaler(X, sample_weight if standardize else None)
        if not standardize:
            scaler = scaler[:-1]  # gaps are filled in all the same
        search = NearestNeighbors(n_jobs=n_jobs).fit(scaler.transform(X))
        return cls(scaler, search, weights, max(1, min(int(k), int(weights.sum() - 1))))

    def among_training(self) -> sparse.csr_array:
        """Return how much of each training row is near each training row, (n, n), itself left out once."""
        n = len(self.weights)
        n_near = min(self._n_queried, n - 1)
        near = np.zeros((n, 0), dtype=np.intp)
        if n_near:
            near = self.search.kneighbors(None, n_near, return_distance=False)
        own = np.arange(n)[:, None]
        weights = np.hstack([np.maximum(self.weights[own] - 1.0, 0.0), self.weights[near]])
        return self._matrix(np.hstack([own, near]), weights)

    def around(self, X: Features) -> sparse.csr_array:
        """Return how much of each training row is near each row of X, (rows of X, n)."""
        n_near = min(self._n_queried, len(self.weights))
        near = self.search.kneighbors(self.scaler.transform(X), n_near, return_distance=False)
        return self._matrix(near, self.weights[near])

    @property
    def _n_queried(self) -> int:
        """Rows that surely weigh k together, the lightest ones, if one unit is left out."""
        total = np.cumsum(np.sort(self.weights))
        return int(np.searchsorted(total, self.k + 1.0 - 1e-9)) + 1

    def _matrix(self, near: Any, weights: Floats) -> sparse.csr_array:
        """Fill the k places of each row with rows (r, c) of these weights, nearest first."""
        before = np.cumsum(weights, axis=1) - weights
        taken = np.clip(self.k - before, 0.0, weights)
        starts = np.arange(len(near) + 1) * near.shape[1]
        return sparse.csr_array((taken.ravel(), near.ravel(), starts), shape=(len(near), len(self.weights)))


def _between(counts: Floats, k: int) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the entry below each count, at most k - 1, and how far above it the count is."""
    low = np.clip(np.floor(counts).astype(np.intp), 0, k - 1)
    return low, np.clip(counts - low, 0.0, 1.0)


def _histogram(counts: Floats, weights: Floats, k: int) -> Floats:
    """Total weight (w, k + 1) of every count from 0 to k, for counts and weights (n, w)."""
    w = counts.shape[1]
    low, above = _between(counts, k)
    cell = low + np.arange(w) * (k + 1)
    total = np.bincount(cell.ravel(), (weights * (1 - above)).ravel(), minlength=w * (k + 1))
    total = total + np.bincount(cell.ravel() + 1, (weights * above).ravel(), minlength=w * (k + 1))
    return np.asarray(total, dtype=float).reshape(w, k + 1)


def _read(table: Floats, counts: Floats) -> Floats:
    """Return the entries of a table (w, k + 1) at counts (n, w)."""
    low, above = _between(counts, table.shape[1] - 1)
    column = np.arange(len(table))
    return (1 - above) * table[column, low] + above * table[column, low + 1]
