"""One forest for all class variables, and the joint distribution of the rows that share its leaves."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree._tree import Tree

from tuplet.core.exceptions import InputError
from tuplet.core.limits import LISTED_CELLS
from tuplet.core.parameters import declare
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.mixture import Mixture
from tuplet.models.base import JointClassifier
from tuplet.models.mixture_weights import mixture_weights
from tuplet.space.features.estimators import name_of, seeded
from tuplet.space.features.inputs import Features, require_size

_LEAST = 1e-4
"""Least weight of the product of marginals: combinations that training rows lack must not be impossible."""


@final
class SharedForestClassifier(JointClassifier):
    """One forest for all class variables together: every tree splits for all of them at once.

    A row to be predicted meets training rows in the leaves that it falls into. What these rows have, with
    shares averaged over the trees, is a joint distribution over combinations of labels. It is mixed with the
    product of its own marginals, drawn towards the frequencies of the labels, so that nothing is impossible.
    How much of each is learned from rows that a tree was not grown on.

    Parameters
    ----------
    estimator : forest, optional
        A `RandomForestClassifier`, or an `ExtraTreesClassifier` with `bootstrap=True`. By default 100
        extremely random trees that try half of the features, with at least two rows in a leaf.
    random_state : int, Generator or None
        Seed of a forest that has none.

    Attributes
    ----------
    forest_ : forest
        Its splits: `apply` and `feature_importances_` work, but its leaves are kept elsewhere.
    combination_share_ : float
        Weight of the combinations that training rows show, against the product of marginals.
    prior_share_ : float
        How far marginals are drawn towards the frequencies of the labels.

    Notes
    -----
    The cost hardly grows with the number of class variables. Trees of a `PowersetClassifier` look at
    combinations as classes that have nothing in common; here two combinations are as different as the labels
    that they differ in. Missing labels are the most frequent ones where trees are grown, and count nowhere
    else.

    Examples
    --------
    >>> from tuplet import load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> model = SharedForestClassifier(random_state=0).fit(X[::2], y[::2])
    >>> model.predict_joint(X[1:2]).mode()["species"].tolist()
    ['Adelie']
    """

    _parameters = declare("estimator random_state")

    def __init__(self, estimator: Any = None, *, random_state: Seed = None) -> None:
        self.estimator = estimator
        self.random_state = random_state

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return [_forest(self.estimator)]

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        rng = np.random.default_rng(self.random_state)
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        self._prior = [_frequencies(codes[:, j], card, weight) for j, card in enumerate(self.space_.cards)]
        filled = np.where(codes == UNKNOWN, [p.argmax() for p in self._prior], codes)
        self.forest_ = seeded(clone(_forest(self.estimator)), int(rng.integers(2**31 - 1)))
        self.forest_.fit(X, filled if filled.shape[1] > 1 else filled[:, 0], sample_weight=sample_weight)
        self._patterns, pattern = np.unique(codes, axis=0, return_inverse=True)
        bags = _bags(self.forest_, len(codes))
        leaves = self._leaves(X)
        self._table = _leaf_table(
            leaves, _weighted(self.forest_, bags, weight), pattern.ravel(), len(self._patterns)
        )
        # Two numbers are learned from what rows meet elsewhere, so some of many rows will do.
        some = np.arange(0, len(codes), -(-len(codes) * len(self._patterns) // LISTED_CELLS))
        met = self._met(_elsewhere(leaves, bags)[some])
        self._learn_shares(met, codes[some], pattern.ravel()[some], weight[some])
        _forget_labels(self.forest_)

    def _learn_shares(self, met: Floats, codes: Codes, pattern: Codes, weight: Floats) -> None:
        """Find how much to believe of leaves, from what rows (n, P) meet in trees not grown on them."""
        self.prior_share_, self.combination_share_ = 1.0, 0.0
        used = np.flatnonzero((codes != UNKNOWN).all(axis=1) & (met.sum(axis=1) > 0))
        if not len(used):
            return
        met, codes, weight = met[used], codes[used], weight[used]
        marginals = self._marginals(met)

        own = np.stack([p[np.arange(len(codes)), codes[:, j]] for j, p in enumerate(marginals)])
        prior = np.stack([p[codes[:, j]] for j, p in enumerate(self._prior)])
        self.prior_share_ = _share(prior.ravel(), own.ravel(), np.tile(weight, len(own)))
        alone = ((1 - self.prior_share_) * own + self.prior_share_ * prior).prod(axis=0)
        complete = met * self._is_complete
        total = complete.sum(axis=1)
        together = np.divide(
            complete[np.arange(len(used)), pattern[used]], total, where=total > 0, out=0 * total
        )
        self.combination_share_ = _share(together, alone, weight)

    # -- predicting ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        met = self._met(self._leaves(X))
        product = FactorGraph.independent(
            [np.log(p) for p in self._drawn(self._marginals(met), self.prior_share_)]
        )
        if not self.combination_share_ > 0:
            return product
        combinations = met[:, self._is_complete]
        empty = combinations.sum(axis=1) == 0  # no training row in any leaf: then there are marginals only
        combinations[empty] = 1.0
        shares = np.where(empty, 0.0, self.combination_share_)
        with np.errstate(divide="ignore"):
            atoms = Atoms(self.space_.cards, self._patterns[self._is_complete][None], np.log(combinations))
            return Mixture(np.log(np.stack([shares, 1 - shares], axis=1)), (atoms, product))

    @property
    def _is_complete(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self._patterns != UNKNOWN).all(axis=1))

    def _leaves(self, X: Features) -> Any:
        """Return which leaves rows fall into: ones in a sparse array (n, nodes of all trees)."""
        places = self.forest_.apply(X).astype(np.intp)
        sizes = np.array([tree.tree_.node_count for tree in self.forest_.estimators_])
        columns = places + (np.cumsum(sizes) - sizes)
        n, t = places.shape
        starts = np.arange(0, n * t + 1, t)
        return sparse.csr_array((np.ones(n * t), columns.ravel(), starts), shape=(n, int(sizes.sum())))

    def _met(self, leaves: Any) -> Floats:
        """Return weights (n, P) of the label patterns of training rows in these leaves, not normalised."""
        require_size("The combinations that rows meet in leaves", leaves.shape[0], len(self._patterns))
        return np.asarray((leaves @ self._table).toarray())

    def _marginals(self, met: Floats) -> list[Floats]:
        """Return probabilities (n, k) of each variable among those who were met and have it."""
        answer = []
        for j, prior in enumerate(self._prior):
            has = self._patterns[:, j, None] == np.arange(len(prior))
            shares = met @ has
            total = shares.sum(axis=1, keepdims=True)
            answer.append(np.divide(shares, total, out=np.tile(prior, (len(met), 1)), where=total > 0))
        return answer

    def _drawn(self, marginals: list[Floats], share: float) -> list[Floats]:
        return [(1 - share) * p + share * prior for p, prior in zip(marginals, self._prior, strict=True)]


def _forest(given: Any) -> Any:
    forest = given
    if given is None:
        forest = ExtraTreesClassifier(100, bootstrap=True, max_features=0.5, min_samples_leaf=2)
    if not hasattr(forest, "apply") or not getattr(forest, "bootstrap", False):
        raise InputError(
            "SharedForestClassifier: estimator must be a RandomForestClassifier, or an ExtraTreesClassifier"
            f" with bootstrap=True, found {name_of(forest)}."
        )
    return forest


def _frequencies(codes: Codes, card: int, weight: Floats) -> Floats:
    """Return frequencies of the labels, one row added to each."""
    known = codes != UNKNOWN
    counts = np.bincount(codes[known], weight[known], minlength=card) + 1.0
    return np.asarray(counts / counts.sum())


def _bags(forest: Any, n: int) -> Floats:
    """Return how often each tree was given each row, (n, trees)."""
    return np.stack([np.bincount(rows, minlength=n) for rows in forest.estimators_samples_], axis=1).astype(
        float
    )


def _weighted(forest: Any, bags: Floats, weight: Floats) -> Floats:
    """Return how much of each row each tree was given, (n, trees).

    Forests of scikit-learn before 1.9 draw rows evenly and weigh them; later ones draw them by their weights,
    which they then keep.
    """
    return bags if hasattr(forest, "_sample_weight") else bags * weight[:, None]


def _leaf_table(leaves: Any, bags: Floats, pattern: Codes, n_patterns: int) -> Any:
    """Return the shares of label patterns among the rows of every leaf, sparse (leaves, P)."""
    members = sparse.csr_array((bags.ravel(), leaves.indices, leaves.indptr), shape=leaves.shape)
    has = sparse.csr_array(
        (np.ones(len(pattern)), pattern, np.arange(len(pattern) + 1)), shape=(len(pattern), n_patterns)
    )
    table = sparse.csr_array(members.T @ has)
    total = np.asarray(table.sum(axis=1)).ravel()
    scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return sparse.csr_array(sparse.diags_array(scale) @ table)


def _elsewhere(leaves: Any, bags: Floats) -> Any:
    """Return the leaves of rows in trees that were not grown on them."""
    return sparse.csr_array(
        ((bags == 0).astype(float).ravel(), leaves.indices, leaves.indptr), shape=leaves.shape
    )


def _forget_labels(forest: Any) -> None:
    """Let go of the label counts in the nodes: with a hundred variables, nearly all of a forest's memory."""
    for each in forest.estimators_:
        state = each.tree_.__getstate__()
        state["values"] = np.zeros((each.tree_.node_count, 1, 1))
        bare = Tree(each.tree_.n_features, np.ones(1, dtype=np.intp), 1)
        bare.__setstate__(state)
        each.tree_ = bare


def _share(first: Floats, second: Floats, weight: Floats) -> float:
    """Return the share of the first of two probabilities (n,) of events in their most likely mixture."""
    with np.errstate(divide="ignore"):
        log_prob = np.log(np.column_stack([first, second]))
    return float(np.clip(mixture_weights(log_prob, weight).weights[0], _LEAST, 1 - _LEAST))
