"""Labels from the labels of the nearest training rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from tuplet.core.parameters import Number, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.cross_fitting import drawn_order
from tuplet.local.onehot import OneHot, one_hot_width
from tuplet.models.base import JointClassifier
from tuplet.models.neighborhoods import Neighborhoods, Positions
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features

_FEWEST = 128
"""Rows from which the neighbourhoods of a rare label are learned, if there are so many."""


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
    n_learned : int or None
        Training rows whose neighbourhoods are learned from, drawn at random where there are more, because
        each has to be compared with all; None takes all. A label that few of the drawn rows have, or lack, is
        learned from the first 128 that are drawn with it. Neighbours themselves come from all rows.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
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

    _parameters = declare("columns n_neighbors standardize n_learned n_jobs", smoothing=Number(above=0))

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        smoothing: float = 1.0,
        standardize: bool = True,
        n_learned: int | None = 16_384,
        columns: ColumnChoices = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing
        self.standardize = standardize
        self.n_learned = n_learned
        self.columns = columns
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        near = Neighborhoods.fit(
            X, self.n_neighbors, sample_weight, standardize=self.standardize, n_jobs=self.n_jobs
        )
        self.neighborhoods_ = near
        one_hot = OneHot.fit(codes, self.space_.cards, near.weights)
        self.columns_ = one_hot.columns(codes)
        weights = np.where(self._known(codes), near.weights[:, None], 0.0)
        self._learn(weights)

    def _known(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Whether the label is known, (n, w), for each column."""
        widths = [one_hot_width(card) for card in self.space_.cards]
        return np.repeat(codes != UNKNOWN, widths, axis=1)

    def _learn(self, weights: Floats) -> None:
        """Learn priors and likelihoods from weights (n, w) of the labels, 0 where one is not known."""
        s, k = self.smoothing, self.neighborhoods_.k
        positive = weights * self.columns_
        self.prior_ = (s + positive.sum(axis=0)) / (2 * s + weights.sum(axis=0))
        weights -= positive  # those of rows without the label
        rows, sides = _drawn([weights, positive], self.n_learned)
        counts = self.neighborhoods_.sums_among_training(self.columns_, rows)
        tables = np.stack([_histogram(counts, side, k) for side in sides])
        self.likelihood_ = (s + tables) / (s * (k + 1) + tables.sum(axis=2, keepdims=True))

    def _predict_joint(self, X: Features) -> JointDistribution:
        counts = self.neighborhoods_.sums_around(X, self.columns_)
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


def _drawn(sides: Sequence[Floats], n_learned: int | None) -> tuple[Positions, list[Floats]]:
    """Return the rows (r,) that are learned from, and the weights (r, w) of either side of each label there.

    The first `n_learned` rows of a random order serve all labels. For a side that fewer than `_FEWEST` of
    them have, the first that have it count, and no others: all rows of a side are then equally likely.

    Parameters
    ----------
    sides : arrays, shape (n, w)
        Weights of rows without and with each label; 0 for all others.
    """
    n = len(sides[0])
    order = drawn_order(n, n_learned)
    if n_learned is None or n <= n_learned:
        return order, list(sides)
    common = order[:n_learned]
    chosen = [[_first_rows(side[:, j], common, order) for j in range(side.shape[1])] for side in sides]
    rows = np.unique(np.concatenate([common, *(part for parts in chosen for part in parts)]))
    answer = [np.zeros((len(rows), side.shape[1])) for side in sides]
    for side, parts, kept in zip(sides, chosen, answer, strict=True):
        for j, part in enumerate(parts):
            kept[np.searchsorted(rows, part), j] = side[part, j]
    return rows, answer


def _first_rows(weights: Floats, common: Positions, order: Positions) -> Positions:
    """Return the common rows that have weight, or the first few in an order of all if that is too few."""
    found = common[weights[common] > 0]
    return found if len(found) >= _FEWEST else order[weights[order] > 0][:_FEWEST]


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
