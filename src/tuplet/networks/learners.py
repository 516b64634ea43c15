"""The structure learners by their names, with one set of options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from tuplet.exceptions import InputError
from tuplet.networks.orders import greedy_network, search_network
from tuplet.networks.scores import CountScorer, Criterion
from tuplet.networks.three_part import ThreePartGraph
from tuplet.networks.trees import learn_polytree_polytree, learn_small_width, learn_tree_tree
from tuplet.structure import ParentSets
from tuplet.typing import Seed

Structure: TypeAlias = Literal["cb-obs", "tree-tree", "polytree-polytree", "pure-filter", "small-tw"]
"""Learners by name; see `learn_structure`."""

_SMALL = 5
"""Width of "small-tw" where none is asked for, as in the paper."""


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
    n_starts, n_kicks, patience, tenure : int
        "cb-obs": see `search_network`.
    significance : float
        "polytree-polytree": of the tests of independence.
    feature_forest : bool
        "small-tw": whether features may have a feature parent.
    random_state : int, Generator or None
        "cb-obs".
    """

    max_component: int | None = 15
    max_width: int | None = None
    moves: Literal["insertions", "swaps"] = "insertions"
    n_starts: int = 3
    n_kicks: int = 10
    patience: int | None = None
    tenure: int = 30
    significance: float = 0.05
    feature_forest: bool = False
    random_state: Seed = None

    def __post_init__(self) -> None:
        for name, least in (
            ("max_component", 1),
            ("max_width", 1),
            ("n_starts", 1),
            ("n_kicks", 0),
            ("patience", 0),
            ("tenure", 0),
        ):
            value = getattr(self, name)
            optional = name in ("max_component", "max_width", "patience")
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not (optional and value is None) and (not whole or value < least):
                raise InputError(f"{name} must be a whole number from {least}, found {value!r}.")
        if self.moves not in ("insertions", "swaps"):
            raise InputError(f"moves must be 'insertions' or 'swaps', found {self.moves!r}.")
        if not 0 < self.significance < 1:
            raise InputError(f"significance must be between 0 and 1, found {self.significance!r}.")


def default_criterion(structure: Structure) -> Criterion:
    """Return what a learner maximises in the paper: the K2 metric for "pure-filter", else BIC."""
    return "k2" if structure == "pure-filter" else "bic"


def learn_structure(
    scorer: CountScorer, structure: Structure = "cb-obs", options: LearnerOptions | None = None
) -> ThreePartGraph:
    """Learn the graph of a generative classifier.

    Parameters
    ----------
    scorer : CountScorer
        Rows of classes and features, and the criterion; its `max_parents` bounds all parents of a node.
    structure : {"cb-obs", "tree-tree", "polytree-polytree", "pure-filter", "small-tw"}
    options : LearnerOptions, optional

    Examples
    --------
    >>> first = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 8)
    >>> codes = np.column_stack([first, 1 - first, first, first])
    >>> learn_structure(CountScorer(codes, (2, 2, 2, 2), n_classes=2), "pure-filter").parents
    ((), (0,), (0,), (0,))
    """
    options = LearnerOptions() if options is None else options
    if structure not in get_args(Structure):
        raise InputError(f"structure must be one of {', '.join(get_args(Structure))}; found {structure!r}.")
    return ThreePartGraph(_parents(scorer, structure, options), scorer.n_classes)


def _parents(scorer: CountScorer, structure: Structure, options: LearnerOptions) -> ParentSets:
    if structure == "tree-tree":
        return learn_tree_tree(scorer)
    if structure == "polytree-polytree":
        return learn_polytree_polytree(scorer, significance=options.significance)
    if structure == "pure-filter":
        return greedy_network(scorer, tuple(range(scorer.n_variables))).parents
    if structure == "small-tw":
        width = _SMALL if options.max_width is None else options.max_width
        return learn_small_width(scorer, max_width=width, feature_forest=options.feature_forest)
    return search_network(
        scorer,
        max_component=options.max_component,
        max_width=options.max_width,
        moves=options.moves,
        n_starts=options.n_starts,
        n_kicks=options.n_kicks,
        patience=options.patience,
        tenure=options.tenure,
        random_state=options.random_state,
    ).parents
