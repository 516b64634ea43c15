"""The nearest training rows of a row, as weights: what instance-based models average over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from tuplet.exceptions import InputError
from tuplet.local.inputs import Features, n_rows
from tuplet.models.scaling import fit_scaler
from tuplet.typing import Floats


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
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise InputError(f"The number of neighbors must be a positive integer, found {k!r}.")
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
        asked = min(self._n_asked, n - 1)
        near = np.zeros((n, 0), dtype=np.intp)
        if asked:
            near = self.search.kneighbors(None, asked, return_distance=False)
        own = np.arange(n)[:, None]
        weights = np.hstack([np.maximum(self.weights[own] - 1.0, 0.0), self.weights[near]])
        return self._matrix(np.hstack([own, near]), weights)

    def around(self, X: Features) -> sparse.csr_array:
        """Return how much of each training row is near each row of X, (rows of X, n)."""
        asked = min(self._n_asked, len(self.weights))
        near = self.search.kneighbors(self.scaler.transform(X), asked, return_distance=False)
        return self._matrix(near, self.weights[near])

    @property
    def _n_asked(self) -> int:
        """Rows that surely weigh k together, the lightest ones, if one unit is left out."""
        total = np.cumsum(np.sort(self.weights))
        return int(np.searchsorted(total, self.k + 1.0 - 1e-9)) + 1

    def _matrix(self, near: Any, weights: Floats) -> sparse.csr_array:
        """Fill the k places of each row with rows (r, c) of these weights, nearest first."""
        before = np.cumsum(weights, axis=1) - weights
        taken = np.clip(self.k - before, 0.0, weights)
        starts = np.arange(len(near) + 1) * near.shape[1]
        return sparse.csr_array((taken.ravel(), near.ravel(), starts), shape=(len(near), len(self.weights)))
