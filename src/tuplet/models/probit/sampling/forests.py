"""Means that are sums of trees: moved by stochtree, kept in a few arrays, split on features with weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError, MissingDependencyError
from tuplet.core.typing import Codes, Floats
from tuplet.models.probit.sampling.forest_kernels import (
    count_splits,
    log_dirichlet_counts,
    predict_forests,
)

LEARNED_SHAPE, LEARNED_MEAN = 3.0, 0.5
"""Inverse-gamma prior of the variance of a sum of trees whose scale is learned: shape and mean."""

EQUAL_SWEEPS = 100
"""First sweeps of a chain in which all features are split on with equal probability; never of kept draws."""

_LEAF_ROWS = 5
"""Fewest training rows of a leaf, the default of stochtree; alpha and beta control the depth."""

_SHARES = (np.arange(40) + 0.5) / 40
"""Grid of c / (c + d), c the concentration of the Dirichlet prior over d features; Beta(1/2, 1) a priori."""

_ODDS, _LOG_PRIOR = _SHARES / (1 - _SHARES), -0.5 * np.log(_SHARES)


@dataclass(frozen=True)
class ForestSettings:
    """Prior of a sum of trees.

    Parameters
    ----------
    n_trees : int
    shrinkage : float or None
        r: the prior standard deviation of the sum at any x is 3 / r. None learns it.
    alpha, beta : float
        A node at depth d is split with prior probability alpha / (1 + d)^beta.
    select_features : bool
        Whether the features to split on are drawn with probabilities that are learned, from a prior under
        which few of them matter, or with equal ones.
    """

    n_trees: int = 20
    shrinkage: float | None = None
    alpha: float = 0.95
    beta: float = 2.0
    select_features: bool = True

    @property
    def leaf_variance(self) -> float:
        """Prior variance of a leaf, or where it starts."""
        r = 4.0 if self.shrinkage is None else self.shrinkage
        return (3 / r) ** 2 / self.n_trees

    def prepare(self, X: Floats, signs: Codes, offsets: Floats) -> Floats:
        """Return X (n, d): what stochtree makes of it does not travel to workers."""
        if len(X) < 3:
            raise InputError(f"Forests of probit models need at least 3 rows, found n_samples = {len(X)}.")
        return X

    def blocks(self, prepared: Floats, q: int) -> ForestBlocks:
        """Make the blocks of q labels."""
        data = load_features(prepared)
        return ForestBlocks([ForestBlock(data, self) for _ in range(q)])

    def collect(self, records: list[list[ForestRecord]], n_features: int) -> ForestDraws:
        """Gather what the blocks recorded: a list of labels for each draw."""
        return ForestDraws.collect(records, n_features)


class ForestBlocks:
    """Sums of trees of all labels; see `MeanBlocks`."""

    is_cheap = False

    def __init__(self, labels: list[ForestBlock]) -> None:
        self.labels = labels

    def step(self, target: Floats, covariance: Floats, rng: np.random.Generator) -> Floats:
        """Move the mean function of each label on its pseudo-response (equation 5)."""
        precision = np.linalg.inv(covariance)
        residuals = target - np.stack([block.fitted for block in self.labels])
        for k, block in enumerate(self.labels):
            variance = 1 / float(precision[k, k])
            weights: Floats = -variance * precision[k]
            weights[k] = 0.0
            residuals[k] = target[k] - block.step(target[k] - weights @ residuals, variance, rng)
        return target - residuals

    def settle(self) -> None:
        """See `ForestBlock.settle`."""
        for block in self.labels:
            block.settle()

    def record(self, rng: np.random.Generator) -> list[ForestRecord]:
        """Return the trees of each label."""
        return [block.record() for block in self.labels]

    def restore(self, records: list[ForestRecord]) -> Floats:
        """Take the trees of a record; return the means (q, n)."""
        return np.stack([block.restore(one) for block, one in zip(self.labels, records, strict=True)])


class ForestBlock:
    """The sum of trees of one label.

    Parameters
    ----------
    data : stochtree.Dataset
        Features of the training rows, shared by all labels.
    settings : ForestSettings
    """

    def __init__(self, data: Any, settings: ForestSettings) -> None:
        import stochtree

        n, d, b = data.num_observations(), data.num_covariates(), settings.n_trees
        self.data, self.settings = data, settings
        self.fitted = np.zeros(n)
        self.leaf_variance = settings.leaf_variance
        self._n_sweeps = 0
        self._residual = stochtree.Residual(np.zeros(n))
        self._tree_prior = stochtree.ForestModelConfig(
            num_trees=b,
            num_features=d,
            num_observations=n,
            feature_types=np.zeros(d, dtype=int),
            variable_weights=np.full(d, 1 / d),
            alpha=settings.alpha,
            beta=settings.beta,
            # stochtree stops where not even the first split leaves more than this on both sides.
            min_samples_leaf=min(_LEAF_ROWS, (n - 1) // 2),
            leaf_model_scale=self.leaf_variance,
        )
        self._noise = stochtree.GlobalModelConfig(global_error_variance=1.0)
        self._kept = stochtree.ForestContainer(b, 1, True, False)  # stays empty: draws are recorded instead
        self._forest = stochtree.Forest(b, 1, True, False)
        self._sampler = stochtree.ForestSampler(data, self._noise, self._tree_prior)
        self._scale_model = stochtree.LeafVarianceModel()
        self._sampler.prepare_for_sampler(data, self._residual, self._forest, 0, np.zeros(1))

    def step(self, target: Floats, variance: float, rng: np.random.Generator) -> Floats:
        """Move every tree once, given target = means + noise (n,) of this variance; return the means."""
        import stochtree

        self._residual.update_data(target - self.fitted)
        self._weigh_features(rng)
        self._noise.update_global_error_variance(variance)
        # A generator of its own for each sweep: the chain then follows from numpy's alone.
        seed = stochtree.RNG(int(rng.integers(2**31)))
        self._sampler.sample_one_iteration(
            self._kept,
            self._forest,
            self.data,
            self._residual,
            seed,
            self._noise,
            self._tree_prior,
            False,
            False,
        )
        self.fitted = np.array(self._sampler.get_cached_forest_predictions())
        if self.settings.shrinkage is None:
            self._learn_scale(seed)
        return self.fitted

    def _weigh_features(self, rng: np.random.Generator) -> None:
        """Draw the splitting probabilities given the trees; the first sweeps use equal ones."""
        d = self.data.num_covariates()
        self._n_sweeps += 1
        if self.settings.select_features and d > 1 and self._n_sweeps > EQUAL_SWEEPS:
            counts = np.asarray(self._forest.get_overall_split_counts(d))
            self._tree_prior.update_variable_weights(draw_feature_weights(counts, rng))

    def _learn_scale(self, seed: Any) -> None:
        """Draw the prior variance of the leaves given the leaves: inverse-gamma, as its own prior."""
        # stochtree halves both arguments.
        twice = 2 * LEARNED_SHAPE, 2 * LEARNED_MEAN * (LEARNED_SHAPE - 1) / self.settings.n_trees
        self.leaf_variance = float(self._scale_model.sample_one_iteration(self._forest, seed, *twice))
        self._tree_prior.update_leaf_model_scale(self.leaf_variance)

    def settle(self) -> None:
        """Select features from now on, however few sweeps there were: kept draws are of one model."""
        self._n_sweeps = max(self._n_sweeps, EQUAL_SWEEPS)

    def record(self) -> ForestRecord:
        """Return the trees in preorder."""
        trees = self._forest.forest_cpp
        features: list[int] = []
        values: list[float] = []
        is_leaf, leaf, feature, threshold = (
            trees.IsLeafNode,
            trees.NodeLeafValues,
            trees.SplitIndex,
            trees.SplitThreshold,
        )
        left, right = trees.LeftChildNode, trees.RightChildNode
        for t in range(self.settings.n_trees):
            todo = [0]
            while todo:
                node = todo.pop()
                if is_leaf(t, node):
                    features.append(-1)
                    values.append(leaf(t, node)[0])
                else:
                    features.append(feature(t, node))
                    values.append(threshold(t, node))
                    todo += (right(t, node), left(t, node))
        return ForestRecord(np.array(features, np.int32), np.array(values), self.leaf_variance)

    def restore(self, record: ForestRecord) -> Floats:
        """Take the trees of a record; return the means (n,)."""
        nodes = zip(record.features.tolist(), record.values.tolist(), strict=True)
        self._forest = _grow_tree(nodes)
        for _ in range(1, self.settings.n_trees):
            self._forest.merge_forest(_grow_tree(nodes))
        self.leaf_variance = record.leaf_variance
        self._n_sweeps = EQUAL_SWEEPS
        self._tree_prior.update_leaf_model_scale(self.leaf_variance)
        self._residual.update_data(np.zeros(len(self.fitted)))
        self._sampler.reconstitute_from_forest(self._forest, self.data, self._residual, True)
        self.fitted = np.array(self._sampler.get_cached_forest_predictions())
        return self.fitted


def load_features(X: Floats) -> Any:
    """Return rows X (n, d) as stochtree holds them.

    Raises
    ------
    MissingDependencyError
        Without stochtree.
    """
    try:
        import stochtree
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "Forests of probit models need stochtree; run `pip install tuplet[bart]`."
        ) from None
    data = stochtree.Dataset()
    data.add_covariates(np.ascontiguousarray(X, dtype=float))
    return data


def draw_feature_weights(counts: npt.NDArray[np.int32], rng: np.random.Generator) -> Floats:
    """Draw the splitting probabilities of d features given how often trees split on each.

    Parameters
    ----------
    counts : int array (d,)
    rng : Generator

    Returns
    -------
    float array (d,)
        A draw from Dirichlet(c / d + counts), the concentration c drawn before it, given the counts.

    References
    ----------
    A. R. Linero, Bayesian regression trees for high-dimensional prediction and variable selection, Journal of
    the American Statistical Association 113 (2018).
    """
    shape = _draw_concentration(counts, rng) / len(counts) + counts
    # A gamma variable of a tiny shape underflows; its logarithm, by U^(1 / shape), does not.
    log_weight = np.log(rng.standard_gamma(shape + 1)) + np.log(1 - rng.random(len(counts))) / shape
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum()


def _grow_tree(nodes: Iterator[tuple[int, float]]) -> Any:
    """Return a forest of one tree, whose nodes are the next ones in preorder."""
    import stochtree

    forest = stochtree.Forest(1, 1, True, False)
    root = _parse(nodes)
    forest.set_root_leaves(float(root) if isinstance(root, float) else 0.0)
    todo = [(0, root)]
    while todo:
        node, part = todo.pop()
        if isinstance(part, float):
            continue
        feature, threshold, *children = part
        values = [child if isinstance(child, float) else 0.0 for child in children]
        forest.add_numeric_split(0, node, feature, threshold, *values)
        todo += [
            (forest.left_child_node(0, node), children[0]),
            (forest.right_child_node(0, node), children[1]),
        ]
    return forest


def _parse(nodes: Iterator[tuple[int, float]]) -> Any:
    """Return the next subtree: the value of a leaf, or feature, threshold, left and right subtree."""
    feature, value = next(nodes)
    if feature < 0:
        return value
    left = _parse(nodes)
    return feature, value, left, _parse(nodes)


def _draw_concentration(counts: npt.NDArray[np.int32], rng: np.random.Generator) -> float:
    """Draw c from its posterior on a grid, the probabilities integrated out."""
    grid = len(counts) * _ODDS
    log_density = log_dirichlet_counts(counts, grid) + _LOG_PRIOR
    total = np.exp(log_density - log_density.max()).cumsum()
    return float(grid[np.searchsorted(total, rng.random() * total[-1])])


# -- draws -------------------------------------------------------------------------------------------------


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
