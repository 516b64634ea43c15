"""Trees, polytrees and bridges of small width, by mutual information and greedy gains."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import chi2

from tuplet.core.typing import Floats
from tuplet.models.generative.networks.scores import CountScorer
from tuplet.structure.kernels import width_of
from tuplet.structure.parents import Edge, ParentSets
from tuplet.structure.trees import best_forest

Sets = list[list[int]]


def learn_tree_tree(scorer: CountScorer) -> ParentSets:
    """Learn a tree of classes, a tree of features, and between them class parents that raise the score.

    The class tree has the largest mutual information (Chow and Liu), directed away from the first class. Each
    feature takes class parents one by one while that raises its score, one fewer than `max_parents`. The
    feature tree has the largest sum of mutual information of parent and child given the child's class
    parents. Edges without information are left out.

    References
    ----------
    van der Gaag and de Waal (2006); their bridge is found by trying out accuracies, this one by its score.

    Examples
    --------
    >>> first = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 8)
    >>> codes = np.column_stack([first, 1 - first, first, first])
    >>> learn_tree_tree(CountScorer(codes, (2, 2, 2, 2), n_classes=2))
    ((), (0,), (0,), (0,))
    """
    plain = scorer.likelihood()
    classes, features = _parts(scorer)
    parents = _class_tree(plain)
    bridge = [_greedy_classes(scorer, f) for f in features]
    gains = _feature_information(plain, bridge)
    tree = best_forest(gains)
    d = len(classes)
    for members, above in zip(bridge, tree, strict=True):
        parents.append(sorted([*members, *(d + p for p in above)]))
    return _as_sets(parents)


def learn_polytree_polytree(scorer: CountScorer, *, significance: float = 0.05) -> ParentSets:
    """Learn polytrees of classes and of features, and between them class parents that raise the score.

    Skeletons are maximal spanning trees of mutual information, that of features given the class parents
    of the one and of the other, averaged. Two neighbours of a node that are independent by the G test
    become its parents (Rebane and Pearl); what is left is directed away from the lowest node. No node gets
    more than `max_parents` parents, and features get at most half of theirs, rounded up, from the classes.

    Parameters
    ----------
    scorer : CountScorer
    significance : float
        Of the G tests: neighbours are independent if the p-value is above it.

    References
    ----------
    de Waal and van der Gaag (2007).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(2, size=(300, 4))
    >>> codes[:, 2] = codes[:, 0] | codes[:, 1]
    >>> learn_polytree_polytree(CountScorer(codes, (2, 2, 2, 2), n_classes=3))
    ((), (), (0, 1), ())
    """
    plain = scorer.likelihood()
    classes, features = _parts(scorer)
    most = scorer.data.max_parents
    gains = _class_information(plain)
    rooms = [most] * len(classes)
    parents: Sets = _orient(
        _spanning_forest(gains), _independent(gains, scorer, classes, None, significance), rooms
    )
    bridge = [_greedy_classes(scorer, f, (most + 1) // 2) for f in features]
    gains = _feature_information(plain, bridge)
    free = _independent(gains, scorer, features, bridge, significance)
    rooms = [most - len(members) for members in bridge]
    above = _orient(_spanning_forest((gains + gains.T) / 2), free, rooms)
    d = len(classes)
    for members, tops in zip(bridge, above, strict=True):
        parents.append(sorted([*members, *(d + p for p in tops)]))
    return _as_sets(parents)


def learn_small_width(scorer: CountScorer, *, max_width: int = 5) -> ParentSets:
    """Learn a tree of classes, and bridges as good as a bound on the width of the pruned graph allows.

    From all edges of a class to a feature, the one that raises the score most comes next, if the min-fill
    width stays within the bound; an edge that is refused is not tried again.

    Parameters
    ----------
    scorer : CountScorer
    max_width : int
        At least 1, since the classes form a tree.

    References
    ----------
    Pastink and van der Gaag (2015), with the greedy search of the paper on tractable classifiers.

    Examples
    --------
    >>> first = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 8)
    >>> codes = np.column_stack([first, 1 - first, first, first])
    >>> learn_small_width(CountScorer(codes, (2, 2, 2, 2), n_classes=2))
    ((), (0,), (0,), (0,))
    """
    parents = _class_tree(scorer.likelihood())
    return _as_sets([*parents, *_narrow_bridge(scorer, parents, max_width)])


# -- parts -------------------------------------------------------------------------------------------------


def _parts(scorer: CountScorer) -> tuple[range, range]:
    return range(scorer.n_classes), range(scorer.n_classes, scorer.n_variables)


def _as_sets(parents: Sets) -> ParentSets:
    return tuple(tuple(sorted(members)) for members in parents)


def _class_information(plain: CountScorer) -> Floats:
    """Mutual information of all pairs of classes, times the number of rows, (d, d)."""
    classes, _ = _parts(plain)
    return np.array([plain.gains(c, (), classes)[: len(classes)] for c in classes])


def _class_tree(plain: CountScorer) -> Sets:
    """Parents of each class in the Chow-Liu tree, directed away from the lowest class of each part."""
    gains = _class_information(plain)
    rooms = [1] * len(gains)
    return _orient(_spanning_forest(gains), np.zeros(gains.shape, dtype=bool), rooms)


def _greedy_classes(scorer: CountScorer, feature: int, most: int | None = None) -> list[int]:
    """Class parents of a feature, added one by one while its score rises."""
    members: list[int] = []
    room = scorer.data.max_parents - 1 if most is None else most
    while len(members) < room:
        gains = scorer.gains(feature, members, range(scorer.n_classes))
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            break
        members.append(best)
    return members


def _feature_information(plain: CountScorer, bridge: Sets) -> Floats:
    """Information (m, m) of feature i on feature j given the class parents of j, times the rows."""
    _, features = _parts(plain)
    gains = np.zeros((len(features), len(features)))
    for f in features:
        gains[:, f - features.start] = plain.gains(f, bridge[f - features.start], features)[features.start :]
    return gains


def _independent(
    gains: Floats, scorer: CountScorer, variables: range, bridge: Sets | None, significance: float
) -> npt.NDArray[np.bool_]:
    """Tell which pairs a G test takes for independent, given the class parents of either."""
    cards = np.array([scorer.cards[v] for v in variables])
    n_configurations = np.ones(len(cards))
    if bridge is not None:
        n_configurations = np.array([np.prod([scorer.cards[c] for c in members]) for members in bridge])
    freedom = np.maximum((cards[:, None] - 1) * (cards - 1) * n_configurations, 1)
    p_value = chi2.sf(2 * gains, freedom)
    return np.asarray(np.minimum(p_value, p_value.T) > significance)


def _narrow_bridge(scorer: CountScorer, class_parents: Sets, max_width: int) -> Sets:
    """Class parents of each feature, the best edge of all first, within a width of the pruned graph."""
    classes, features = _parts(scorer)
    d = len(classes)
    graph = np.zeros((d, d), dtype=bool)
    for child, members in enumerate(class_parents):
        _marry(graph, [child, *members])
    bridge: Sets = [[] for _ in features]
    gains = np.array([scorer.gains(f, (), classes)[:d] for f in features]).reshape(len(features), d)
    refused = np.zeros(gains.shape, dtype=bool)
    while (left := np.where(refused, 0.0, gains)).max(initial=0.0) > 0:
        row, c = divmod(int(np.argmax(left)), d)
        trial = graph.copy()
        _marry(trial, [*bridge[row], c])
        if not np.array_equal(trial, graph) and width_of(trial, max_width) > max_width:
            refused[row, c] = True
            continue
        graph = trial
        bridge[row].append(c)
        gains[row] = 0.0
        if len(bridge[row]) < scorer.data.max_parents:
            gains[row] = scorer.gains(features[row], bridge[row], classes)[:d]
    return bridge


def _marry(graph: npt.NDArray[np.bool_], members: list[int]) -> None:
    for a, b in combinations(members, 2):
        graph[a, b] = graph[b, a] = True


def _spanning_forest(weights: Floats) -> list[Edge]:
    """Edges (i, j), i < j, of the forest with the largest sum of positive weights (m, m), symmetric.

    Of equal weights the pair that comes first is taken.

    Examples
    --------
    >>> _spanning_forest(np.array([[0, 3, 2, 0], [3, 0, 2, 0], [2, 2, 0, 0], [0, 0, 0, 0]], dtype=float))
    [(0, 1), (0, 2)]
    """
    first, second = np.nonzero(np.triu(weights, 1) > 0)
    order = np.argsort(-weights[first, second], kind="stable")
    ranks = np.zeros(weights.shape)  # the smallest is the best pair; no two are equal, as weights may be
    ranks[first[order], second[order]] = np.arange(1, len(order) + 1)
    chosen = np.nonzero(minimum_spanning_tree(ranks).toarray())
    return [(int(a), int(b)) for a, b in zip(*chosen, strict=True)]


def _orient(skeleton: list[Edge], independent: npt.NDArray[np.bool_], rooms: list[int]) -> list[list[int]]:
    """Direct the edges of a forest: two neighbours of a node that are independent point to it.

    1. Nodes in their order: two neighbours that are independent of each other become parents.
    2. A further neighbour of a node with parents becomes a parent too, if it is independent of one of
       them, and a child otherwise; as long as there are such.
    3. The lowest node with undirected edges gets them all as edges to children; then on with 2.

    Parameters
    ----------
    skeleton : list of (i, j)
        Edges of a forest.
    independent : array of bool, shape (m, m)
        Symmetric: which pairs are independent.
    rooms : list of int, length m
        Largest number of parents. An edge that finds room at neither end is left out.

    Returns
    -------
    list of lists of int
        Parents of each node.

    References
    ----------
    Rebane and Pearl (1987).

    Examples
    --------
    >>> independent = np.zeros((4, 4), dtype=bool)
    >>> independent[0, 1] = independent[1, 0] = True
    >>> _orient([(0, 2), (1, 2), (2, 3)], independent, [2, 2, 2, 2])
    [[], [], [0, 1], [2]]
    """
    return _Orientation(skeleton, independent, rooms).run()


class _Orientation:
    """Parents so far, and the neighbours to which an edge has no direction yet."""

    def __init__(self, skeleton: list[Edge], independent: npt.NDArray[np.bool_], rooms: list[int]) -> None:
        self.independent, self.rooms = independent, rooms
        self.parents: list[list[int]] = [[] for _ in rooms]
        self.open: list[set[int]] = [set() for _ in rooms]
        for a, b in skeleton:
            self.open[a].add(b)
            self.open[b].add(a)

    def run(self) -> list[list[int]]:
        for z in range(len(self.rooms)):
            self._collide(z)
        self._spread()
        for a in range(len(self.rooms)):
            for b in sorted(self.open[a]):
                self._direct(a, b)
            self._spread()
        return [sorted(members) for members in self.parents]

    def _collide(self, z: int) -> None:
        """Make parents of z of neighbours that are independent of each other."""
        for x, y in combinations(sorted(self.open[z] | set(self.parents[z])), 2):
            new = [v for v in (x, y) if v in self.open[z]]
            if self.independent[x, y] and len(self.parents[z]) + len(new) <= self.rooms[z]:
                for v in new:
                    self._direct(v, z)

    def _spread(self) -> None:
        """Direct the edges of nodes that have parents, until nothing changes."""
        waiting = [z for z, members in enumerate(self.parents) if members and self.open[z]]
        while waiting:
            z = waiting.pop(0)
            for w in sorted(self.open[z]):
                above = any(self.independent[w, x] for x in self.parents[z])
                ends = (w, z) if above and len(self.parents[z]) < self.rooms[z] else (z, w)
                self._direct(*ends)
                if self.parents[w] and self.open[w]:
                    waiting.append(w)

    def _direct(self, a: int, b: int) -> None:
        """Make a the parent of b; or the other way round, or nothing, where there is no room."""
        self.open[a].discard(b)
        self.open[b].discard(a)
        if len(self.parents[b]) < self.rooms[b]:
            self.parents[b].append(a)
        elif len(self.parents[a]) < self.rooms[a]:
            self.parents[a].append(b)
