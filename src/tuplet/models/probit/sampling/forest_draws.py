"""Drawn forests in a few arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Codes, Floats
from tuplet.models.probit.sampling.forest_kernels import count_splits, predict_forests


class ForestRecord(NamedTuple):
    """One forest: its trees in preorder, one behind the other."""

    features: npt.NDArray[np.int32]  # (nodes,) feature of a split, -1 for a leaf
    values: Floats  # (nodes,) threshold of a split (x <= threshold goes left), value of a leaf
    leaf_variance: float


@dataclass(frozen=True)
class ForestDraws:
    """Forests of all kept draws and labels, about 30 bytes for a tree.

    All fields are plain arrays, so that any format that stores arrays stores draws exactly.

    Parameters
    ----------
    features : int16 or int32 array (nodes,)
        Trees in preorder: the feature of a split, -1 for a leaf.
    cuts : int32 array (splits,)
        Which of its feature's thresholds a split has.
    leaves : float array (leaves,)
    thresholds : float array
        Thresholds that occur, sorted, feature by feature.
    threshold_starts : int array (d + 1,)
        Where those of each feature start.
    node_starts, leaf_starts : int array (draws q + 1,)
        Where the forests of each draw, and in it of each label, start.
    leaf_variances : float array (draws, q)
        Prior variance of the leaves.
    largest : int
        Number of nodes of the largest tree, or more.
    """

    features: npt.NDArray[Any]
    cuts: npt.NDArray[np.int32]
    leaves: Floats
    thresholds: Floats
    threshold_starts: Codes
    node_starts: Codes
    leaf_starts: Codes
    leaf_variances: Floats
    largest: int

    @classmethod
    def collect(cls, records: list[list[ForestRecord]], n_features: int) -> ForestDraws:
        """Gather what the blocks recorded: a list of labels for each draw."""
        flat = [record for labels in records for record in labels]
        features = _joined([r.features for r in flat], np.int32)
        values = _joined([r.values for r in flat], float)
        splits = features >= 0
        node_starts = _starts([len(r.features) for r in flat])
        leaf_starts = np.concatenate([[0], np.cumsum(~splits)])[node_starts]
        cuts, thresholds, starts = _number_cuts(features[splits], values[splits], n_features)
        shape = (len(records), len(records[0]) if records else 0)
        return cls(
            features.astype(np.int16) if n_features < 2**15 else features,
            cuts,
            values[~splits],
            thresholds,
            starts,
            node_starts,
            leaf_starts,
            np.array([r.leaf_variance for r in flat]).reshape(shape),
            int(np.diff(node_starts).max(initial=1)),
        )

    @classmethod
    def join(cls, parts: list[ForestDraws]) -> ForestDraws:
        """Put the draws of several chains one behind the other."""
        if len(parts) == 1:
            return parts[0]
        n_features = len(parts[0].threshold_starts) - 1
        features = np.concatenate([part.features for part in parts])
        splits = features[features >= 0]
        values = np.concatenate([part._split_values() for part in parts])
        cuts, thresholds, starts = _number_cuts(splits, values, n_features)
        return cls(
            features,
            cuts,
            np.concatenate([part.leaves for part in parts]),
            thresholds,
            starts,
            _starts(np.concatenate([np.diff(part.node_starts) for part in parts])),
            _starts(np.concatenate([np.diff(part.leaf_starts) for part in parts])),
            np.concatenate([part.leaf_variances for part in parts]),
            max(part.largest for part in parts),
        )

    def __len__(self) -> int:
        return len(self.leaf_variances)

    @property
    def n_bytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    def take(self, draws: slice) -> ForestDraws:
        """Return some of the draws, `slice(start, stop)`."""
        q = self.leaf_variances.shape[1]
        start, stop, _ = draws.indices(len(self))
        nodes = self.node_starts[start * q : stop * q + 1]
        leaves = self.leaf_starts[start * q : stop * q + 1]
        splits = nodes - leaves
        return ForestDraws(
            self.features[nodes[0] : nodes[-1]],
            self.cuts[splits[0] : splits[-1]],
            self.leaves[leaves[0] : leaves[-1]],
            self.thresholds,
            self.threshold_starts,
            nodes - nodes[0],
            leaves - leaves[0],
            self.leaf_variances[start:stop],
            self.largest,
        )

    def record(self, draw: int, label: int) -> ForestRecord:
        """Return one forest as it was recorded."""
        q = self.leaf_variances.shape[1]
        one = self.take(slice(draw, draw + 1))
        nodes = slice(one.node_starts[label], one.node_starts[label + 1])
        values = np.empty(len(one.features))
        values[one.features >= 0] = one._split_values()
        values[one.features < 0] = one.leaves
        assert 0 <= label < q
        return ForestRecord(
            one.features[nodes].astype(np.int32), values[nodes], float(one.leaf_variances[0, label])
        )

    def predict(self, X: Floats) -> Floats:
        """See `MeanDraws.predict`."""
        means = np.empty((len(self), len(X), self.leaf_variances.shape[1]))
        predict_forests(
            self._ranks(X),
            self.features,
            self.cuts,
            self.leaves,
            self.node_starts,
            self.leaf_starts,
            self.largest,
            means,
        )
        return means

    def split_counts(self) -> npt.NDArray[np.int32]:
        """Number of splits on each feature in each draw and label, (draws, q, d)."""
        n_features = len(self.threshold_starts) - 1
        counts = count_splits(self.features, self.node_starts, n_features)
        return counts.reshape(*self.leaf_variances.shape, n_features)

    def _split_values(self) -> Floats:
        splits = self.features[self.features >= 0].astype(np.intp)
        return self.thresholds[self.threshold_starts[splits] + self.cuts]

    def _ranks(self, X: Floats) -> npt.NDArray[np.int32]:
        """Return how many thresholds of its column lie below each entry of X, (d, n)."""
        ranks = np.zeros(X.shape[::-1], np.int32)
        for j in np.flatnonzero(np.diff(self.threshold_starts)):
            own = self.thresholds[self.threshold_starts[j] : self.threshold_starts[j + 1]]
            ranks[j] = np.searchsorted(own, X[:, j])
        return ranks


def _number_cuts(
    features: npt.NDArray[Any], values: Floats, n_features: int
) -> tuple[npt.NDArray[np.int32], Floats, Codes]:
    """Number the thresholds of each feature; return the numbers, the thresholds and where they start."""
    order = np.lexsort((values, features))
    sorted_features, sorted_values = features[order], values[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(sorted_features) != 0) | (np.diff(sorted_values) != 0)
    counts = np.bincount(sorted_features[new], minlength=n_features)
    starts = _starts(counts)
    cuts = np.empty(len(order), np.int32)
    cuts[order] = np.cumsum(new) - 1 - starts[sorted_features.astype(np.intp)]
    return cuts, sorted_values[new], starts


def _starts(sizes: Sequence[int] | npt.NDArray[Any]) -> Codes:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def _joined(parts: list[Any], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
