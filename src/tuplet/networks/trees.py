"""Trees, polytrees and bridges of small width, by mutual information and greedy gains."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from tuplet.networks._kernels import width_of
from tuplet.networks.polytrees import orient, spanning_forest
from tuplet.networks.scores import CountScorer
from tuplet.structure import ParentSets, best_forest
from tuplet.typing import Floats

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
    parents: Sets = orient(
        spanning_forest(gains), _independent(gains, scorer, classes, None, significance), rooms
    )
    bridge = [_greedy_classes(scorer, f, (most + 1) // 2) for f in features]
    gains = _feature_information(plain, bridge)
    free = _independent(gains, scorer, features, bridge, significance)
    rooms = [most - len(members) for members in bridge]
    above = orient(spanning_forest((gains + gains.T) / 2), free, rooms)
    d = len(classes)
    for members, tops in zip(bridge, above, strict=True):
        parents.append(sorted([*members, *(d + p for p in tops)]))
    return _as_sets(parents)


def learn_small_width(scorer: CountScorer, *, max_width: int = 5, feature_forest: bool = False) -> ParentSets:
    """Learn a tree of classes, and bridges as good as a bound on the width of the pruned graph allows.

    From all edges of a class to a feature, the one that raises the score most comes next, if the min-fill
    width stays within the bound; what is refused once is not asked again.

    Parameters
    ----------
    scorer : CountScorer
    max_width : int
        At least 1, since the classes form a tree.
    feature_forest : bool
        Whether features then get one feature parent each, where that raises the score.

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
    classes, features = _parts(scorer)
    room = scorer.data.max_parents - feature_forest
    bridge = _narrow_bridge(scorer, parents, max_width, room)
    d = len(classes)
    tree: ParentSets = ((),) * len(features)
    if feature_forest:
        gains = np.zeros((len(features), len(features)))
        for f in features:
            gains[:, f - d] = scorer.gains(f, bridge[f - d], features)[d:]
        tree = best_forest(gains)
    for members, above in zip(bridge, tree, strict=True):
        parents.append(sorted([*members, *(d + p for p in above)]))
    return _as_sets(parents)


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
    return orient(spanning_forest(gains), np.zeros(gains.shape, dtype=bool), rooms)


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


def _narrow_bridge(scorer: CountScorer, class_parents: Sets, max_width: int, room: int) -> Sets:
    """Class parents of each feature, the best edge of all first, within a width of the pruned graph."""
    classes, features = _parts(scorer)
    d = len(classes)
    graph = np.zeros((d, d), dtype=bool)
    for child, members in enumerate(class_parents):
        _marry(graph, [child, *members])
    bridge: Sets = [[] for _ in features]
    gains = np.array([scorer.gains(f, (), classes)[:d] for f in features]).reshape(len(features), d)
    refused = np.full(gains.shape, room < 1)
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
        if len(bridge[row]) < room:
            gains[row] = scorer.gains(features[row], bridge[row], classes)[:d]
    return bridge


def _marry(graph: npt.NDArray[np.bool_], members: list[int]) -> None:
    for a, b in combinations(members, 2):
        graph[a, b] = graph[b, a] = True
