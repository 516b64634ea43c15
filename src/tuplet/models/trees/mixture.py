"""Mixtures of conditional trees: each new component is the best forest that is not there yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Literal, final

import numpy as np

from tuplet.core.parameters import Whole, declare
from tuplet.core.progress import Show
from tuplet.core.typing import Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.local.families import Parametrisation
from tuplet.models.given_edges import Pairs, given_edges
from tuplet.models.mixtures.base import GrownMixture, MakeSource, MapInference, Sizes, TrainingRows
from tuplet.models.mixtures.growth import ComponentSource
from tuplet.models.trees.learners import EDGE_PARAMETERS, TREE_PARAMETERS, TreeLearner, make_trees
from tuplet.models.trees.logistic import joints_of
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features
from tuplet.structure.parents import Edge, ParentSets, edges
from tuplet.structure.trees import best_forest

_N_LEFT_OUT = 24
"""Edges of a forest that are left out in turn, where it has more."""

_MAX_TRIES = 1000
"""Sets of edges to leave out that are tried in the search for a forest that is new."""


@final
class TreeMixtureClassifier(GrownMixture):
    """A mixture of conditional trees: p(y | x) = sum_k lambda_k p(y | x, tree k).

    Trees come one at a time, each learnt from the rows that the mixture so far explains badly: row n weighs
    1 - p(y_n | x_n). After each, EM fits all parameters. The mixture stops growing when two more trees did
    not help to explain rows held out; then the parameters of the best one are fitted to all rows, the
    structures fixed (paper term: MC).

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        For the trees; see `TreeClassifier`.
    n_trees : int or "auto"
        Number of trees, all different: fewer if there are not as many. "auto" stops by validation on a
        quarter of the rows.
    max_trees : int
        Limit for "auto".
    parametrisation, C, C_shift, n_folds, screening, required, forbidden
        See `TreeClassifier`. C and C_shift are chosen once.
    tol : float
        Relative change of the penalised log-likelihood at which EM ends.
    max_iter : int
        Limit of iterations of EM.
    map_inference : {"exact", "annealing"}
        How the most probable combination is found: by branch and bound, with a proof or the statement that
        there is none, or by 150 random flips as in the paper, without one.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    random_state : int, Generator or None
        For annealing, and with an `estimator` for folds and for what it left open.
    n_jobs : int, optional
        Fits that run side by side.
    progress : bool or "auto"
        A line on standard error; "auto" shows it in terminals.

    Attributes
    ----------
    components_ : tuple
        The fitted trees.
    parents_ : tuple of ParentSets
        The parents of each class variable in each tree.
    C_, C_shared_, C_shift_ : float or None
        See `TreeClassifier`.
    weights_ : array, shape (K,)
        Weights lambda_k of the trees.
    responsibilities_ : array, shape (n, K)
        Probability of each tree given x and y of the training rows, without those of weight zero.
    log_likelihood_path_ : tuple of float
        Penalised log-likelihood at the start of the last EM and after each of its iterations; never falls.
    growth_paths_ : tuple of tuples of float
        The same for every size that was tried on the way.
    validation_path_ : tuple of float
        Mean log-likelihood of the rows held out for every size that was tried; empty if `n_trees` is given.
    n_iter_ : int
        Iterations of the last EM.
    converged_ : bool
        Whether the last EM ended by its tolerance.

    Notes
    -----
    EM weighs the rows by the responsibilities as they are; with penalties fixed, the penalised
    log-likelihood never falls: a variable whose new model is worse keeps the old one.

    Where the label of a parent is missing in training, its child has the model without parents; the
    responsibilities of such rows rest on that. At prediction missing labels are summed out.

    Of more than 32,768 rows a sample of about that size decides on penalties, number and structures of trees;
    their parameters and weights are then fitted to all rows.

    An interrupt (Ctrl-C) ends the growth with a warning; the trees so far are kept.

    References
    ----------
    C. Hong, I. Batal, M. Hauskrecht, A mixtures-of-trees framework for multi-label classification, CIKM 2014.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> rain = X[:, 0] + rng.normal(size=200) > 0
    >>> y = np.column_stack([rain, rain ^ (rng.random(200) < 0.1), rng.random(200) < 0.5])
    >>> model = TreeMixtureClassifier(n_trees=2).fit(X, y)
    >>> len(model.parents_), model.weights_.shape
    (2, (2,))
    >>> model.predict([[2.0, 0.0]], loss="subset")[0, :2]
    array([ True,  True])
    """

    _parameters = (
        GrownMixture._parameters
        | TREE_PARAMETERS
        | EDGE_PARAMETERS
        | declare(n_trees=("auto", Whole(at_least=1)), max_trees=Whole(at_least=1))
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_trees: int | Literal["auto"] = "auto",
        max_trees: int = 20,
        parametrisation: Parametrisation = "split",
        C: float | Literal["auto"] = "auto",
        C_shift: float | Literal["auto"] = "auto",
        n_folds: int = 3,
        screening: float | Literal["auto"] | None = "auto",
        required: Pairs = (),
        forbidden: Pairs = (),
        tol: float = 1e-4,
        max_iter: int = 50,
        map_inference: MapInference = "exact",
        columns: ColumnChoices = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        progress: Show = "auto",
    ) -> None:
        self.estimator = estimator
        self.n_trees = n_trees
        self.max_trees = max_trees
        self.parametrisation = parametrisation
        self.C = C
        self.C_shift = C_shift
        self.n_folds = n_folds
        self.screening = screening
        self.required = required
        self.forbidden = forbidden
        self.tol = tol
        self.max_iter = max_iter
        self.map_inference = map_inference
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    @property
    def _sizes(self) -> Sizes:
        return Sizes(self.n_trees, self.max_trees)

    @property
    def parents_(self) -> tuple[ParentSets, ...]:
        """Parents of each class variable in each tree."""
        return tuple(tree.parents for tree in self.components_)

    def _source(self, rng: np.random.Generator) -> MakeSource:
        rules = given_edges(self, most=1)
        made: list[TreeLearner] = []

        def make(rows: TrainingRows, learnt: Floats | None) -> ComponentSource:
            given = rows.X, rows.codes, rows.weights, rng, learnt, made[-1] if made else None
            made.append(make_trees(self, *given, rows.groups))
            self.C_, self.C_shared_, self.C_shift_ = made[-1].strengths
            return TreeSource(made[-1], *rules)

        return make

    @property
    def _is_bounded(self) -> bool:
        return self.estimator is None

    def _joints(self, X: Features) -> Sequence[JointDistribution]:
        return joints_of(self.components_, X)


@final
@dataclass(frozen=True)
class TreeSource:
    """The best forests; see `ComponentSource`. A structure is a `ParentSets`."""

    trees: TreeLearner
    required: Sequence[Edge] = ()
    forbidden: Sequence[Edge] = ()

    def propose(self, weight: Floats, seen: Sequence[ParentSets]) -> ParentSets | None:
        """See `ComponentSource.propose`."""
        return new_forest(self.trees.edges(weight).gains, seen, self.required, self.forbidden)

    def fit(self, structure: ParentSets, weight: Floats, start: Any = None) -> Any:
        """See `ComponentSource.fit`."""
        return self.trees.fit(structure, weight, start)


def new_forest(
    gains: Floats, seen: Sequence[ParentSets], required: Sequence[Edge] = (), forbidden: Sequence[Edge] = ()
) -> ParentSets | None:
    """Return the best forest of positive gains that is not among those seen; None if there is none.

    Forests come in descending order: the next best lacks some edge of those that were better. (Lawler 1972)
    Of forests with many edges only those are left out whose children lose least with another parent, or none:
    the search for a forest without each of 160 edges took longer than fitting it.

    Examples
    --------
    >>> import numpy as np
    >>> gains = np.array([[0.0, 2.0], [1.0, 0.0]])
    >>> new_forest(gains, [((), (0,))])
    ((1,), ())
    >>> new_forest(gains, [((), (0,)), ((1,), ())])
    ((), ())
    """

    def free(forest: ParentSets) -> set[Edge]:
        return set(edges(forest)) - set(required)  # all forests have these

    queue: list[tuple[float, tuple[Edge, ...], ParentSets]] = []
    tried: set[tuple[Edge, ...]] = set()

    def look_at(banned: tuple[Edge, ...]) -> None:
        if banned not in tried:
            tried.add(banned)
            forest = best_forest(gains, required=required, forbidden=banned)
            heappush(queue, (-sum(float(gains[edge]) for edge in free(forest)), banned, forest))

    look_at(tuple(sorted(forbidden)))
    while queue and len(tried) < _MAX_TRIES:
        _, banned, forest = heappop(queue)
        if forest not in seen:
            return forest
        for edge in _cheapest(gains, free(forest)):
            look_at(tuple(sorted((*banned, edge))))
    return None


def _cheapest(gains: Floats, some: set[Edge]) -> list[Edge]:
    """Return the edges whose children lose least with their second best parent, or none."""
    if len(some) <= _N_LEFT_OUT:
        return sorted(some)
    others = np.where(np.eye(len(gains), dtype=bool), 0.0, gains)
    ordered = sorted(some)
    losses = [gains[p, c] - max(0.0, np.delete(others[:, c], p).max()) for p, c in ordered]
    return [ordered[k] for k in np.argsort(losses, kind="stable")[:_N_LEFT_OUT].tolist()]
