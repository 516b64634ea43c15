"""The neighbourhoods of rows, for all models that use them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from tuplet.core.exceptions import InputError
from tuplet.core.limits import row_blocks
from tuplet.core.typing import Codes, Floats
from tuplet.local.logistic import fit_scaler
from tuplet.local.row_samples import row_keys
from tuplet.models.count_tables import CountTables, counted_rows
from tuplet.space.features.inputs import Features, n_rows, take_rows

Positions = npt.NDArray[np.intp]

_N_COMPARED = 1024
"""Training rows by which distances are compared, at most."""


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
        Of the n training rows; a search tree if there are few columns.
    rows : array or CSR matrix, shape (n, d)
        The training rows, prepared.
    weights : array, shape (n,)
    k : int
        Size of a neighbourhood.
    factors : array, shape (d,), or None
        What scaled columns are multiplied by.
    """

    scaler: Any
    search: NearestNeighbors
    rows: Features
    weights: Floats
    k: int
    factors: Floats | None = None

    @classmethod
    def fit(
        cls,
        X: Features,
        k: int,
        sample_weight: Floats | None,
        *,
        standardize: bool | Literal["auto"],
        n_jobs: int | None,
        groups: Codes | None = None,
        labels: Floats | None = None,
    ) -> Neighborhoods:
        """Prepare the search; `k` is reduced to the number of rows of other groups where there are fewer.

        With `standardize="auto"`, columns may be weighted by their correlations with labels (n, w).
        """
        if isinstance(X, pd.DataFrame):
            raise InputError(
                "Distances need numbers, but an estimator that treats the columns of a frame by itself left"
                " X as it is; pass one that takes numbers, or encode X before."
            )
        weights = np.ones(n_rows(X)) if sample_weight is None else sample_weight
        scaler = fit_scaler(X, sample_weight if standardize else None)
        if not standardize:
            scaler = scaler[:-1]  # gaps are filled in all the same
        rows = scaler.transform(X)
        search = NearestNeighbors(n_jobs=n_jobs).fit(rows)
        own = 1.0 if groups is None else float(np.bincount(groups, weights).max())
        plain = cls(scaler, search, rows, weights, max(1, min(int(k), int(weights.sum() - own))))
        if standardize != "auto" or labels is None:
            return plain
        return plain._with_factors(X, labels, groups)

    def _with_factors(self, X: Features, labels: Floats, groups: Codes | None) -> Neighborhoods:
        """Return neighbourhoods with weighted columns if labels (n, w) are predicted better by these."""
        factors = relevance(self.rows, labels, self.weights)
        if len(factors) == 1 or not factors.any():
            return self
        keys = row_keys(X, np.zeros((len(labels), 0), np.intp))
        # What is judged by some rows is factors that do not come from their labels.
        judges = (keys if groups is None else groups) % 2 == 0
        others = relevance(self.rows, labels, np.where(judges, 0.0, self.weights))
        if not judges.any() or not others.any():
            return self
        some = np.flatnonzero(judges)[np.argsort(keys[judges], kind="stable")[:_N_COMPARED]]
        weighted = self._weighted(others)._score(labels, some, groups)
        return self._weighted(factors) if weighted > self._score(labels, some, groups) else self

    def _weighted(self, factors: Floats) -> Neighborhoods:
        """Return neighbourhoods by distances in which columns are multiplied by factors (d,)."""
        rows = _scaled(self.rows, factors)
        search = NearestNeighbors(n_jobs=self.search.n_jobs).fit(rows)
        return replace(self, search=search, rows=rows, factors=factors)

    def _score(self, labels: Floats, some: Positions, groups: Codes | None) -> float:
        """Return the mean log-probability of labels (n, w) of some training rows, each row left out."""
        weights, own = self.weights[some, None], labels[some]
        prior = (1.0 + (weights * own).sum(axis=0)) / (2.0 + weights.sum())
        counts = self.sums_among_training(labels, some, groups) + self.lacking(labels, some, groups)
        return CountTables.shrunk(
            prior, counted_rows(counts, [weights * (1 - own), weights * own], self.k)
        ).score

    def sums_among_training(self, columns: Floats, some: Positions, groups: Codes | None = None) -> Floats:
        """Return the sums (r, w) of columns (n, w) over the neighbourhoods of some training rows (r,).

        A row is no neighbour of itself, unless its weight is above 1, nor of others of its group.
        """
        if groups is None:
            return self._sums(take_rows(self.rows, some), some, columns)
        return self._sums_among_others(some, groups, columns, 2 * self.k)

    def lacking(self, columns: Floats, some: Positions, groups: Codes | None = None) -> Floats:
        """Return by how much `sums_among_training` are below those of new rows on average, by chance alone.

        Of n rows of which t have a label, t - 1 of n - 1 others have it beside a row that does, and t of
        n - 1 beside one that does not: neighbours drawn at random are unlike the row. New rows find t of n.
        """
        size: Floats = np.minimum(self.weights, 1.0)
        own = size[:, None] * columns
        if groups is not None:
            sums = [np.bincount(groups, self.weights * each).astype(float) for each in columns.T]
            own = np.stack(sums, axis=1)[groups]
            size = np.bincount(groups, self.weights).astype(float)[groups]
        total, weight = self.weights @ columns, self.weights.sum()
        others = np.maximum(weight - size[some], np.finfo(float).tiny)[:, None]
        return np.asarray(self.k * (total / weight - (total - own[some]) / others))

    def sums_around(self, X: Features, columns: Floats) -> Floats:
        """Return the sums (rows of X, w) of columns (n, w) over the neighbourhood of each row of X."""
        Z = self.scaler.transform(X)
        return self._sums(Z if self.factors is None else _scaled(Z, self.factors), None, columns)

    def _sums(self, Z: Features, own: Positions | None, columns: Floats) -> Floats:
        """Return the sums over neighbourhoods of prepared rows; `own` are the positions of training rows."""
        total = self.weights.sum()
        if total <= self.k:  # everything is near
            sums = np.tile(self.weights @ columns, (n_rows(Z), 1))
            if own is not None:
                sums -= np.minimum(self.weights[own], 1.0)[:, None] * columns[own]
            return sums
        return self._fill(Z, own, columns, -(-self.k * len(self.weights) // total))

    def _fill(self, Z: Features, own: Positions | None, columns: Floats, n_near: float) -> Floats:
        """Fill the k places of each row; rows whose `n_near` nearest are too light ask for more of them."""
        most = len(self.weights) - (own is not None)
        n_near = min(int(n_near), most)
        answer = np.empty((n_rows(Z), columns.shape[1]))
        for block in row_blocks(n_rows(Z), 4 * n_near + columns.shape[1]):
            mine = None if own is None else own[block]
            near, weights = self._nearest(Z[block], mine, n_near)
            answer[block] = self._places(near, weights) @ columns
            light = np.flatnonzero(weights.sum(axis=1) < self.k)
            if n_near < most and len(light):
                some = light + block.start
                answer[some] = self._fill(
                    take_rows(Z, some), None if own is None else own[some], columns, 4 * n_near
                )
        return answer

    def _sums_among_others(self, some: Positions, groups: Codes, columns: Floats, n_near: int) -> Floats:
        """Return the sums over neighbourhoods of training rows among the rows of other groups (n,)."""
        n_near = min(n_near, len(self.weights))
        answer = np.empty((len(some), columns.shape[1]))
        for block in row_blocks(len(some), 4 * n_near + columns.shape[1]):
            mine = some[block]
            near = self._search(take_rows(self.rows, mine), n_near)
            weights = np.where(groups[near] == groups[mine, None], 0.0, self.weights[near])
            answer[block] = self._places(near, weights) @ columns
            light = np.flatnonzero(weights.sum(axis=1) < self.k)
            if n_near < len(self.weights) and len(light):
                more = self._sums_among_others(mine[light], groups, columns, 4 * n_near)
                answer[light + block.start] = more
        return answer

    def _nearest(self, Z: Features, own: Positions | None, n_near: int) -> tuple[Positions, Floats]:
        """Return the nearest training rows (r, c), nearest first, and their weights (r, c).

        A training row comes first itself, with the weight that it has beyond 1.
        """
        if own is None:
            near = self._search(Z, n_near)
            return near, self.weights[near]
        mine = own[:, None]
        near = _without(self._search(Z, n_near + 1), mine) if n_near else np.zeros_like(mine)[:, :0]
        beside = np.maximum(self.weights[mine] - 1.0, 0.0)
        return np.hstack([mine, near]), np.hstack([beside, self.weights[near]])

    def _search(self, Z: Features, n_near: int) -> Positions:
        return np.asarray(self.search.kneighbors(Z, n_near, return_distance=False))

    def _places(self, near: Positions, weights: Floats) -> sparse.csr_array:
        """Fill the k places of each row with rows (r, c) of these weights, nearest first."""
        before = np.cumsum(weights, axis=1) - weights
        taken = np.clip(self.k - before, 0.0, weights)
        starts = np.arange(len(near) + 1) * near.shape[1]
        return sparse.csr_array((taken.ravel(), near.ravel(), starts), shape=(len(near), len(self.weights)))


def _without(near: Positions, own: Positions) -> Positions:
    """Return rows (r, c) without `own` (r, 1), or without the nearest where enough others are as near."""
    kept = near != own
    kept[kept.all(axis=1), 0] = False
    return near[kept].reshape(len(near), -1)


def _scaled(rows: Any, factors: Floats) -> Any:
    """Return rows (n, d) with each column multiplied by a factor (d,)."""
    return _times(rows, factors).tocsr() if sparse.issparse(rows) else rows * factors


def _times(rows: Any, factors: Any) -> Any:
    """Return the product, entry by entry, of rows (n, d), which may be sparse, with factors."""
    return rows.multiply(factors) if hasattr(rows, "multiply") else rows * factors


def relevance(rows: Any, labels: Floats, weights: Floats) -> Floats:
    """Return the root of the mean squared correlation (d,) of columns (n, d) with labels (n, w).

    Of squared correlations the mean of those that chance produces, 1 / (N - 1), is subtracted, and negative
    ones become zero. The largest is 1, unless all are zero.
    """
    share = weights / max(weights.sum(), np.finfo(float).tiny)
    centred = labels - share @ labels
    spread = share @ centred**2
    varying = spread > 1e-12
    if not varying.any():
        return np.zeros(rows.shape[1])
    variance = np.maximum(share @ _times(rows, rows) - (share @ rows) ** 2, 1e-12)
    covariance = rows.T @ (share[:, None] * centred[:, varying])
    squared = (covariance**2 / (variance[:, None] * spread[varying])).mean(axis=1)
    answer = np.sqrt(np.maximum(squared - 1.0 / max(weights.sum() - 1.0, 1.0), 0.0))
    return np.asarray(answer / max(answer.max(), np.finfo(float).tiny))
