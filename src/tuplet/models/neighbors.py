"""Labels from the labels of the nearest training rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from tuplet.core.parameters import Number, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.onehot import OneHot, one_hot_width
from tuplet.local.row_samples import row_keys, sample_weights
from tuplet.local.smoothing import bounded_tables
from tuplet.models.base import JointClassifier
from tuplet.models.count_tables import CountTables, counted_rows
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
    smoothing : "auto" or float
        Rows added to every count, s > 0; 1 is Laplace's rule, and that of ML-kNN. "auto" adds rows with the
        distribution of the counts of all rows, whether they have the label or not: as many as predict
        training rows best that are left out. Where neighbours are of no use, these are so many that
        predictions are the training frequencies.
    standardize : "auto" or bool
        Whether columns are scaled to unit variance before distances are taken. "auto" does, and multiplies
        each column by its correlation with the labels if training rows are then predicted better from the
        others: columns without information do not matter for distances.
    n_learned : int or None
        Training rows whose neighbourhoods are learned from, a sample where there are more, because each has
        to be compared with all; None takes all. A label that few rows of the sample have, or lack, is learned
        from about 128 others that have, or lack, it. Neighbours themselves come from all rows.
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
    training rows, the row itself and others of its group left out. Without a row that has the label, fewer
    of the others have it, which makes neighbours of few rows look as if they had the opposite labels; with
    "auto", counts of training rows are therefore raised, or lowered, to what a new row can expect where
    neighbours have nothing in common. A variable of several labels has this for
    each label against all others, and the answers are normalised; for two labels that changes nothing, since
    the counts of one are those of the other, mirrored.

    A neighbour without a label counts by the training frequencies, so counts need not be whole; tables are
    then read, and filled, between their neighbouring entries.

    References
    ----------
    M.-L. Zhang, Z.-H. Zhou, ML-KNN: a lazy learning approach to multi-label learning, Pattern Recognition 40,
    2007.

    Examples
    --------
    >>> X = [[i / 10] for i in range(20)]
    >>> y = [["dry", "hat"]] * 10 + [["wet", "umbrella"], ["wet", "hat"]] * 5
    >>> model = NeighborClassifier(n_neighbors=3).fit(X, y)
    >>> model.predict_joint([[0.05], [1.15]]).marginals()["y0"].round(2)
    y0   dry   wet
    0   0.90  0.10
    1   0.09  0.91
    """

    _parameters = declare(
        "columns n_neighbors n_learned n_jobs",
        standardize=("auto", bool),
        smoothing=("auto", Number(above=0)),
    )

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        smoothing: float | Literal["auto"] = "auto",
        standardize: bool | Literal["auto"] = "auto",
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
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        self.columns_ = OneHot.fit(codes, self.space_.cards, weights).columns(codes)
        near = Neighborhoods.fit(
            X,
            self.n_neighbors,
            sample_weight,
            standardize=self.standardize,
            labels=self.columns_,
            n_jobs=self.n_jobs,
            groups=self._groups,
        )
        self.neighborhoods_ = near
        keys = None
        if self.n_learned is not None and len(codes) > self.n_learned:
            keys = row_keys(X, codes)
        self._learn(np.where(self._known(codes), near.weights[:, None], 0.0), keys)

    def _known(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Whether the label is known, (n, w), for each column."""
        widths = [one_hot_width(card) for card in self.space_.cards]
        return np.repeat(codes != UNKNOWN, widths, axis=1)

    def _learn(self, weights: Floats, keys: npt.NDArray[np.uint64] | None) -> None:
        """Learn priors and likelihoods from weights (n, w) of the labels, 0 where one is not known.

        Given the keys (n,) of the rows, likelihoods are learned from a sample.
        """
        s = 1.0 if self.smoothing == "auto" else self.smoothing
        positive = weights * self.columns_
        prior = (s + positive.sum(axis=0)) / (2 * s + weights.sum(axis=0))
        weights -= positive  # those of rows without the label
        rows, sides = np.arange(len(weights)), [weights, positive]
        if keys is not None and self.n_learned is not None:
            rows, sides = _sampled(sides, keys, self.neighborhoods_.weights, self.n_learned)
        self.prior_, self.likelihood_, _ = self._tables(prior, rows, sides)

    def _tables(self, prior: Floats, rows: Positions, sides: Sequence[Floats]) -> CountTables:
        """Return the tables of rows (r,), whose weights on either side of each label are (r, w)."""
        near = self.neighborhoods_
        counts = near.sums_among_training(self.columns_, rows, self._groups)
        if self.smoothing == "auto":
            counts += near.lacking(self.columns_, rows, self._groups)
            return CountTables.shrunk(prior, counted_rows(counts, sides, near.k))
        return CountTables.with_rows(prior, counted_rows(counts, sides, near.k), self.smoothing)

    def _predict_joint(self, X: Features) -> JointDistribution:
        counts = self.neighborhoods_.sums_around(X, self.columns_)
        proba = CountTables(self.prior_, self.likelihood_).proba(counts)
        return FactorGraph.independent(self._log_marginals(proba))

    def _log_marginals(self, proba: Floats) -> list[Floats]:
        """Log-tables (n, k_j) from the probabilities (n, w) of single labels."""
        tables, start = [], 0
        for card in self.space_.cards:
            width = one_hot_width(card)
            part = proba[:, start : start + width]
            if card <= 2:
                part = np.hstack([1.0 - part.sum(axis=1, keepdims=True), part])
            tables.append(part)
            start += width
        return bounded_tables(tables, self.label_counts_)


def _sampled(
    sides: Sequence[Floats], keys: npt.NDArray[np.uint64], weights: Floats, size: int
) -> tuple[Positions, list[Floats]]:
    """Return the rows (r,) that are learned from, and the weights (r, w) of either side of each label there.

    One sample serves all labels. A side that fewer than `_FEWEST` of its rows have gets a sample of its own
    rows instead: all rows of a side are then equally likely.

    Parameters
    ----------
    sides : arrays, shape (n, w)
        Weights of rows without and with each label; 0 for all others.
    keys, weights : arrays, shape (n,)
        Of the rows; see `sample_weights`.
    """
    common = sample_weights(keys, weights, size)
    answer = [np.where(side > 0, common[:, None], 0.0) for side in sides]
    for side, kept in zip(sides, answer, strict=True):
        for j in np.flatnonzero(np.count_nonzero(kept, axis=0) < _FEWEST):
            kept[:, j] = sample_weights(keys, side[:, j], _FEWEST)
    rows = np.flatnonzero((common > 0) | np.any([kept.any(axis=1) for kept in answer], axis=0))
    return rows, [kept[rows] for kept in answer]
