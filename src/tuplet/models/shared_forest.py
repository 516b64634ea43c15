"""One forest for all class variables, and the joint distribution of the rows that share its leaves."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.tree._tree import Tree

from tuplet.core.exceptions import InputError
from tuplet.core.limits import LISTED_CELLS, PASS_CELLS, row_blocks
from tuplet.core.parameters import declare
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution
from tuplet.joint.collect import distinct_outcomes
from tuplet.joint.graph import FactorGraph
from tuplet.joint.mixture import Mixture
from tuplet.local.cross_fitting import inner_folds
from tuplet.local.smoothing import smoothed_frequencies
from tuplet.models.base import JointClassifier
from tuplet.models.leaf_kernels import add_leaves
from tuplet.models.mixture_weights import mixture_weights
from tuplet.models.prior import least_mass
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.estimators import name_of, seeded
from tuplet.space.features.inputs import Features, require_size, take_rows
from tuplet.space.features.labelled import labels_named

_MOST_DRAWN = 2**16
"""Rows that a tree of the default forest is grown on at most, to bound the time and memory of a million rows.

With 100,000 generated rows, 2**15 lose 0.07 nats a row against all rows, 2**16 lose 0.03.
"""

_MOST_TRIED = 512
"""Features that a split of the default forest tries at most.

Half of them is best up to 1,449 features: four times the square root loses 0.02 to 0.08 nats a row on scene,
birds, medical and rcv1, and gains 0.03 on enron.
"""

_MOST_HELD_OUT = 2**12
"""Rows from which the two shares are learned at most; their standard errors are then about a hundredth."""

_N_FOLDS = 3
"""Parts in which groups of rows are held out, if there are groups."""

_WIDEST = float(np.finfo(np.float32).max)

_LEAST = 1e-4
"""Least weight of the product of marginals: combinations that training rows lack must not be impossible."""


@final
class SharedForestClassifier(JointClassifier):
    """One forest for all class variables together: every tree splits for all of them at once.

    A row to be predicted meets training rows in the leaves that it falls into. What these rows have, with
    shares averaged over the trees, is a joint distribution over combinations of labels. It is mixed with the
    product of its own marginals, drawn towards the frequencies of the labels, so that nothing is impossible.
    How much of each is learned from rows that a tree was not grown on, or, if rows have groups, from forests
    that were not grown on their groups.

    Parameters
    ----------
    estimator : forest, optional
        A `RandomForestClassifier`, or an `ExtraTreesClassifier` with `bootstrap=True`. By default 100
        extremely random trees that try half of the features, but at most 512, with at least two rows in a
        leaf. A tree is grown on as many rows as there are, drawn with replacement, but at most 65,536.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
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

    _parameters = declare("columns estimator random_state")

    def __init__(
        self, estimator: Any = None, *, columns: ColumnChoices = None, random_state: Seed = None
    ) -> None:
        self.estimator = estimator
        self.columns = columns
        self.random_state = random_state

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return [_forest(self.estimator)]

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        rng = np.random.default_rng(self.random_state)
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        self._prior = [smoothed_frequencies(counts) for counts in self.label_counts_]
        filled = np.where(codes == UNKNOWN, [p.argmax() for p in self._prior], codes)
        forest = _forest(self.estimator, X, self.space_.cards)
        self.forest_ = seeded(clone(forest), int(rng.integers(2**31 - 1)))
        classes = self._classes_to_grow_on(filled)
        classes = classes if classes.shape[1] > 1 else classes[:, 0]
        _grow(self.forest_, X, classes, sample_weight, sum(self.space_.cards))
        first, pattern = distinct_outcomes(codes, self.space_.cards)
        self._patterns = codes[first]
        # Two numbers are learned from what rows meet elsewhere, so some of many rows will do.
        most = min(_MOST_HELD_OUT, max(1, LISTED_CELLS // len(self._patterns)))
        some = np.arange(0, len(codes), -(-len(codes) // most))
        met = self._learn_leaves(_for_trees(X), pattern, weight, some)
        if self._groups is not None:  # a tree that was not grown on a row was grown on others of its group
            met = self._meet_other_groups(X, codes, sample_weight, some)
        self._learn_shares(met, codes[some], pattern[some], weight[some])

    def _classes_to_grow_on(self, codes: Codes) -> npt.NDArray[Any]:
        """Return codes (n, m), or the labels they stand for if parameters of the forest name some."""
        categories = self.space_.categories
        if not labels_named(self.forest_, [label for each in categories for label in each.tolist()]):
            return codes
        pairs = zip(categories, codes.T, strict=True)
        return np.column_stack([labels[column].astype(object) for labels, column in pairs])

    def _learn_leaves(self, X: Features, pattern: Codes, weight: Floats, some: Codes) -> Floats:
        """Learn the label patterns of every leaf; return what some rows meet in trees not grown on them."""
        n, n_nodes, first, members, tables, others = len(pattern), 0, 0, [], [], []
        # Forests of scikit-learn before 1.9 draw rows evenly and weigh them; later ones draw them by their
        # weights, which they then keep.
        even = np.ones(n) if hasattr(self.forest_, "_sample_weight") else weight
        trees = self.forest_.estimators_
        for each, drawn in zip(trees, self.forest_.estimators_samples_, strict=True):
            times = np.bincount(drawn, minlength=n)
            inside, outside = np.flatnonzero(times), np.flatnonzero(times[some] == 0)
            leaves = each.tree_.apply(X[np.concatenate([inside, some[outside]])]) + n_nodes
            members.append((leaves[: len(inside)] - first, pattern[inside], times[inside] * even[inside]))
            others.append((leaves[len(inside) :], outside))
            n_nodes += each.tree_.node_count
            # A table for some trees at a time: of a million rows, all members are half of the data.
            if each is trees[-1] or sum(len(part[0]) for part in members) > PASS_CELLS:
                places, kinds, weights = (np.concatenate(part) for part in zip(*members, strict=True))
                shape = n_nodes - first, len(self._patterns)
                tables.append(_leaf_table(places, kinds, weights, shape))
                first, members = n_nodes, []
        self._table = tables[0] if len(tables) == 1 else sparse.vstack(tables, format="csr")
        self._table.data /= len(trees)
        tables.clear()
        met = np.zeros((len(some), len(self._patterns)))
        for leaves, rows in others:
            self._add_leaves(leaves[None], rows, met)
        return met

    def _meet_other_groups(
        self, X: Features, codes: Codes, sample_weight: Floats | None, some: Codes
    ) -> Floats:
        """Return what some rows meet in forests that were grown without their groups, (r, P).

        These forests have as many trees as a row has that were not grown on it.
        """
        met = np.zeros((len(some), len(self._patterns)))
        forest = _forest(self.estimator, X)
        fewer = clone(forest).set_params(n_estimators=-(-forest.n_estimators // 3))
        for fold in inner_folds(X, codes, sample_weight, _N_FOLDS, groups=self._groups):
            part = clone(self).set_params(estimator=fewer)
            part._fit_codes(take_rows(X, fold.train), self.space_, codes[fold.train], fold.train_weight)
            held = np.flatnonzero(np.isin(some, fold.test))
            met[np.ix_(held, self._places(part._patterns))] = part._met(take_rows(X, some[held]))
        return met

    def _places(self, patterns: Codes) -> Codes:
        """Return which of the label patterns (P, m) some of them (p, m) are, (p,)."""
        _, which = distinct_outcomes(np.vstack([self._patterns, patterns]), self.space_.cards)
        return np.argsort(which[: len(self._patterns)])[which[len(self._patterns) :]]

    def _add_leaves(self, leaves: Codes, rows: Codes, met: Floats) -> None:
        """Add the label patterns in leaves (trees, r) to those that rows (r,) of `met` (n, P) have met."""
        table = self._table
        add_leaves(leaves, rows, table.indptr, table.indices, table.data, met)

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
        self._raise_shares()

    def _raise_shares(self) -> None:
        """Raise what goes to the frequencies of the labels to 1 / (N + 1) of all; see `local.smoothing`."""
        least = least_mass(self.label_counts_)
        self.combination_share_ = min(self.combination_share_, 1 - 2 * least)
        self.prior_share_ = max(self.prior_share_, least / (1 - self.combination_share_))

    # -- predicting ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        met = self._met(X)
        product = FactorGraph.independent(
            [np.log(p) for p in self._drawn(self._marginals(met), self.prior_share_)]
        )
        if not self.combination_share_ > 0:
            return product
        complete = self._is_complete
        combinations = met if complete.all() else met[:, complete]
        empty = combinations.sum(axis=1) == 0  # no training row in any leaf: then there are marginals only
        combinations[empty] = 1.0
        shares = np.where(empty, 0.0, self.combination_share_)
        atoms = Atoms.from_weights(self.space_.cards, self._patterns[complete], combinations)
        with np.errstate(divide="ignore"):
            return Mixture(np.log(np.stack([shares, 1 - shares], axis=1)), (atoms, product))

    @property
    def _is_complete(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self._patterns != UNKNOWN).all(axis=1))

    def _met(self, X: Features) -> Floats:
        """Return weights (n, P) of the label patterns of training rows in the leaves of X.

        They add up to one unless a leaf has no weight.
        """
        n, trees = X.shape[0], [each.tree_ for each in self.forest_.estimators_]
        require_size("The combinations that rows meet in leaves", n, len(self._patterns))
        starts = np.cumsum([0, *(tree.node_count for tree in trees)])
        X, met = _for_trees(X), np.zeros((n, len(self._patterns)))
        for block in row_blocks(n, len(trees)):
            part = X if block.stop - block.start == n else X[block]
            leaves = np.empty((len(trees), part.shape[0]), dtype=np.intp)
            for tree, start, row in zip(trees, starts, leaves, strict=False):
                np.add(tree.apply(part), start, out=row)
            self._add_leaves(leaves, np.arange(block.start, block.stop), met)
        return met

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


def _forest(given: Any, X: Features = None, cards: tuple[int, ...] = ()) -> Any:
    """Return the forest that is grown, checked; the default depends on X and the numbers of categories.

    The Gini impurity of 0 and 1 is twice their variance, so with binary class variables regression trees have
    the splits of classification trees, up to rounding. They take four fifths of the time with 6 variables and
    three fifths with 40. With k categories variances of k columns are dearer than the impurity of one.
    """
    if given is None:
        kind = ExtraTreesRegressor if cards and max(cards) == 2 else ExtraTreesClassifier
        forest = kind(100, bootstrap=True, max_features=0.5, min_samples_leaf=2)
        if X is not None and X.shape[0] > _MOST_DRAWN:
            forest.set_params(max_samples=_MOST_DRAWN)
        if X is not None and X.shape[1] > 2 * _MOST_TRIED:
            forest.set_params(max_features=_MOST_TRIED)
        return forest
    if not hasattr(given, "apply") or not getattr(given, "bootstrap", False):
        raise InputError(
            "SharedForestClassifier: estimator must be a RandomForestClassifier, or an ExtraTreesClassifier"
            f" with bootstrap=True, found {name_of(given)}."
        )
    return given


def _leaf_table(leaves: Codes, pattern: Codes, weight: Floats, shape: tuple[int, int]) -> Any:
    """Return the shares of label patterns among the rows (n,) of every leaf, sparse (nodes, P)."""
    table: Any = sparse.coo_array((weight, (leaves, pattern)), shape=shape).tocsr()
    total: Floats = np.asarray(table.sum(axis=1)).ravel()
    table.data /= np.repeat(total, np.diff(table.indptr))
    table.indptr, table.indices = table.indptr.astype(np.int32), table.indices.astype(np.int32)
    return table


def _for_trees(X: Features) -> Features:
    """Return X in the single precision of trees; numbers beyond its range are on the same side of a split."""
    with np.errstate(over="ignore"):
        narrow: Any = X.astype(np.float32)
    values = narrow.data if sparse.issparse(X) else narrow
    np.clip(values, -_WIDEST, _WIDEST, out=values)
    return narrow


def _grow(forest: Any, X: Features, y: npt.NDArray[Any], sample_weight: Floats | None, n_labels: int) -> None:
    """Fit a forest some trees at a time, and drop the label counts in the nodes of those that are done.

    With a hundred class variables these are nearly all of a forest's memory, and nothing reads them.
    """
    n_trees, warm_start = forest.n_estimators, forest.warm_start
    n_drawn = forest.max_samples if isinstance(forest.max_samples, int) else len(y)
    step = max(1, LISTED_CELLS // (n_drawn * n_labels))  # a tree has about one node for each row
    forest.set_params(warm_start=True)
    for stop in range(min(step, n_trees), n_trees + step, step):
        done = len(getattr(forest, "estimators_", ()))
        forest.set_params(n_estimators=min(stop, n_trees)).fit(X, y, sample_weight=sample_weight)
        for each in forest.estimators_[done:]:
            each.tree_ = _without_counts(each.tree_)
    forest.set_params(warm_start=warm_start)


def _without_counts(tree: Tree) -> Tree:
    state = tree.__getstate__()
    state["values"] = np.zeros((tree.node_count, 1, 1))
    bare = Tree(tree.n_features, np.ones(1, dtype=np.intp), 1)
    bare.__setstate__(state)
    return bare


def _share(first: Floats, second: Floats, weight: Floats) -> float:
    """Return the share of the first of two probabilities (n,) of events in their most likely mixture."""
    with np.errstate(divide="ignore"):
        log_prob = np.log(np.column_stack([first, second]))
    return float(np.clip(mixture_weights(log_prob, weight).weights[0], _LEAST, 1 - _LEAST))
