"""The structure learners by their names, and the search for a good order of the variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Seed
from tuplet.models.generative.networks.kernels import (
    Rules,
    SearchTask,
    families_of,
    search_insertions,
    search_swaps,
)
from tuplet.models.generative.networks.scores import CountScorer, Criterion
from tuplet.models.generative.networks.three_part import ThreePartGraph
from tuplet.models.generative.networks.trees import (
    learn_polytree_polytree,
    learn_small_width,
    learn_tree_tree,
)
from tuplet.structure.parents import ParentSets

Ints = npt.NDArray[np.int64]

_SMALL = 5
"""Width of "small-tw" where none is given, as in the paper."""

_PATIENCE = {"insertions": 2, "swaps": 150}
"""Steps without a new best after which a search ends. A step of insertions tries every variable."""

_N_RESTARTS, _MOVED = 10, 0.3
"""Restarts from the best order so far, and the share of the variables that each of them moves at random."""

_MOST_WORK = 2**36
"""Work, in cells that were counted, after which no further search begins: seconds.

A hundred variables do not reach it; with 160 classes one search takes most of it.
"""

_TENURE = 30
"""Moves for which a moved variable stays where it is, unless moving it gives a new best."""


Structure: TypeAlias = Literal["cb-obs", "tree-tree", "polytree-polytree", "pure-filter", "small-tw"]
"""Learners by name; see `learn_structure`."""


@dataclass(frozen=True)
class LearnerOptions:
    """What bounds and steers a learner; each uses what concerns it.

    Parameters
    ----------
    max_component : int or None
        "cb-obs": largest number of classes of a component.
    max_width : int or None
        "cb-obs" and "small-tw": largest width of the pruned graph; 5 for "small-tw" if None.
    moves : {"insertions", "swaps"}
    n_starts : int
        "cb-obs": see `search_network`.
    random_state : int, Generator or None
        "cb-obs".
    """

    max_component: int | None = 15
    max_width: int | None = None
    moves: Literal["insertions", "swaps"] = "insertions"
    n_starts: int = 3
    random_state: Seed = None


def default_criterion(structure: Structure) -> Criterion:
    """Return what a learner maximises in the paper: the K2 metric for "pure-filter", else BIC."""
    return "k2" if structure == "pure-filter" else "bic"


def learn_structure(
    scorer: CountScorer,
    structure: Structure = "cb-obs",
    options: LearnerOptions | None = None,
    sample: CountScorer | None = None,
) -> ThreePartGraph:
    """Learn the graph of a generative classifier.

    Parameters
    ----------
    scorer : CountScorer
        Rows of classes and features, and the criterion; its `max_parents` bounds all parents of a node.
    structure : {"cb-obs", "tree-tree", "polytree-polytree", "pure-filter", "small-tw"}
    options : LearnerOptions, optional
    sample : CountScorer, optional
        "cb-obs": some of the rows, by which a good order is searched; a short search by all rows starts from
        it. See `CountScorer.sample`.

    Examples
    --------
    >>> first = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 8)
    >>> codes = np.column_stack([first, 1 - first, first, first])
    >>> learn_structure(CountScorer(codes, (2, 2, 2, 2), n_classes=2), "pure-filter").parents
    ((), (0,), (0,), (0,))
    """
    options = LearnerOptions() if options is None else options
    return ThreePartGraph(_parents(scorer, structure, options, sample), scorer.n_classes)


class Ordered(NamedTuple):
    """A network and the order that it comes from."""

    parents: ParentSets
    order: tuple[int, ...]
    score: float


def greedy_network(
    scorer: CountScorer,
    order: tuple[int, ...],
    *,
    max_component: int | None = None,
    max_width: int | None = None,
) -> Ordered:
    """Give each variable of an order, one after the other, the parents before it that improve it most.

    Parameters
    ----------
    scorer : CountScorer
        Its `max_parents` bounds the number of parents.
    order : tuple of int
        The classes in any order, then the features.
    max_component : int, optional
        Largest number of classes that class and bridge edges may hold together.
    max_width : int, optional
        Largest min-fill width of the pruned graph.

    References
    ----------
    Learning tractable multidimensional Bayesian network classifiers; algorithm 1.

    Examples
    --------
    >>> first = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 8)
    >>> codes = np.column_stack([first, 1 - first, first])
    >>> scorer = CountScorer(codes, (2, 2, 2), n_classes=2)
    >>> greedy_network(scorer, (1, 0, 2)).parents
    ((1,), (), (0,))
    >>> greedy_network(scorer, (1, 0, 2), max_component=1).parents
    ((), (), (0,))
    """
    task = _task(scorer, max_component, max_width, 0)
    return _from_order(scorer, task, np.array(order, dtype=np.int64))


def search_network(
    scorer: CountScorer,
    *,
    max_component: int | None = None,
    max_width: int | None = None,
    moves: Literal["insertions", "swaps"] = "insertions",
    n_starts: int = 3,
    random_state: Seed = None,
    start: Sequence[int] | None = None,
) -> Ordered:
    """Search the order whose `greedy_network` scores most: tabu search, with restarts.

    After the random starts, further searches begin from the best order so far with some variables moved. With
    hundreds of variables each search takes seconds, and there are fewer of them, at least one. This follows
    from the number of steps, not from a clock, so results are reproducible.

    Parameters
    ----------
    scorer : CountScorer
    max_component, max_width : int, optional
        See `greedy_network`.
    moves : {"insertions", "swaps"}
        "insertions" moves a variable to any place of its part of the order; "swaps" exchanges neighbours,
        as the paper does, most of which changes nothing.
    n_starts : int
        Random orders to start from.
    random_state : int, Generator or None
    start : sequence of int, optional
        A good order, to be improved by one search; nothing starts from random orders then.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(2, size=(200, 3))
    >>> codes[:, 2] = codes[:, 0] ^ (rng.random(200) < 0.1)
    >>> search_network(CountScorer(codes, (2, 2, 2), n_classes=2), random_state=0).parents
    ((), (), (0,))
    """
    rng = np.random.default_rng(random_state)
    task = _task(scorer, max_component, max_width, rng)
    search = search_insertions if moves == "insertions" else search_swaps
    d, n = scorer.n_classes, scorer.n_variables
    best, top = np.empty(0, np.int64), -np.inf
    for number in range(n_starts + _N_RESTARTS if start is None else 1):
        if number and task.pool.used[2] > _MOST_WORK:
            break
        if start is not None:
            order = np.array(start, dtype=np.int64)
        elif number < n_starts:
            order = np.concatenate([rng.permutation(d), d + rng.permutation(n - d)])
        else:
            order = _perturbed(best, d, rng)
        seed = rng.integers(1, 2**63, size=1).astype(np.uint64)
        score = search(task, order, _PATIENCE[moves], _TENURE, seed)
        if score > top:
            best, top = order, score
    return _from_order(scorer, task, best)


def _parents(
    scorer: CountScorer, structure: Structure, options: LearnerOptions, sample: CountScorer | None
) -> ParentSets:
    if structure == "tree-tree":
        return learn_tree_tree(scorer)
    if structure == "polytree-polytree":
        return learn_polytree_polytree(scorer)
    if structure == "pure-filter":
        return greedy_network(scorer, tuple(range(scorer.n_variables))).parents
    if structure == "small-tw":
        width = _SMALL if options.max_width is None else options.max_width
        return learn_small_width(scorer, max_width=width)
    search = partial(
        search_network,
        max_component=options.max_component,
        max_width=options.max_width,
        moves=options.moves,
        n_starts=options.n_starts,
        random_state=options.random_state,
    )
    start = None if sample is None else search(sample).order
    return search(scorer, start=start).parents


def _perturbed(order: Ints, d: int, rng: np.random.Generator) -> Ints:
    """Return an order in which some variables are elsewhere, classes among classes."""
    moved = order.tolist()
    for v in rng.choice(len(order), size=max(1, round(_MOVED * len(order))), replace=False).tolist():
        moved.remove(v)
        begin, end = (0, d) if v < d else (d, len(order))
        moved.insert(int(rng.integers(begin, end)), v)
    return np.array(moved, dtype=np.int64)


def _task(scorer: CountScorer, max_component: int | None, max_width: int | None, seed: Seed) -> SearchTask:
    bounds = [-1 if bound is None else int(bound) for bound in (max_component, max_width)]
    return SearchTask(scorer.data, scorer.pool(seed), Rules(*bounds))


def _from_order(scorer: CountScorer, task: SearchTask, order: Ints) -> Ordered:
    members = np.empty((scorer.n_variables, scorer.data.max_parents + 1), dtype=np.int64)
    counts = families_of(task, order, members)
    parents = tuple(tuple(row[:n].tolist()) for row, n in zip(members, counts, strict=True))
    return Ordered(parents, tuple(order.tolist()), scorer.total(parents))
