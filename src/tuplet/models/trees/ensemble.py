"""Averages of random conditional trees."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np

from tuplet.core.parameters import Whole, declare
from tuplet.core.typing import Codes, Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.local.families import Parametrisation
from tuplet.models.base import JointClassifier
from tuplet.models.mixtures.base import mixture_of
from tuplet.models.trees.learners import TREE_PARAMETERS, make_trees, random_tree
from tuplet.models.trees.logistic import joints_of
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features, n_rows
from tuplet.structure.parents import ParentSets


@final
class TreeEnsembleClassifier(JointClassifier):
    """The average of conditional trees with random structures (paper term: ECTBN).

    What `ChainClassifier(n_chains=10)` is to chains. Nothing is searched: the fit is as fast as that of the
    trees. `TreeMixtureClassifier` learns structures and weights.

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        See `TreeClassifier`.
    n_trees : int
        Number of trees; reduced to the number of different ones, m^(m - 1), where that is smaller.
    parametrisation, C, C_shift, n_folds
        See `TreeClassifier`; folds are used to choose C and C_shift, on a sample of the rows if there are
        more than 32,768.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    random_state : int, Generator or None
        For the structures, and for what an `estimator` left open.
    n_jobs : int, optional
        Fits that run side by side.

    Attributes
    ----------
    parents_ : tuple of ParentSets
        The parents of each class variable in each tree.
    components_ : tuple
        The fitted trees.
    C_, C_shared_, C_shift_ : float or None
        See `TreeClassifier`.

    Examples
    --------
    >>> X = [[0.0], [0.1], [1.0], [1.1], [1.2]]
    >>> y = [["dry", "hat"], ["dry", "hat"], ["wet", "umbrella"], ["wet", "hat"], ["wet", "umbrella"]]
    >>> model = TreeEnsembleClassifier(random_state=0).fit(X, y)
    >>> sorted(model.parents_)
    [((), (0,)), ((1,), ())]
    """

    _parameters = TREE_PARAMETERS | declare(n_trees=Whole(at_least=1))

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_trees: int = 10,
        parametrisation: Parametrisation = "split",
        C: float | Literal["auto"] = "auto",
        C_shift: float | Literal["auto"] = "auto",
        n_folds: int = 3,
        columns: ColumnChoices = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_trees = n_trees
        self.parametrisation = parametrisation
        self.C = C
        self.C_shift = C_shift
        self.n_folds = n_folds
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        rng = np.random.default_rng(self.random_state)
        self.parents_ = _random_trees(self.space_.n_variables, self.n_trees, rng)
        trees = make_trees(self, X, codes, sample_weight, rng, groups=self._groups)
        self.C_, self.C_shared_, self.C_shift_ = trees.strengths
        self.components_ = tuple(
            trees.fit(parents, sample_weight).without_rows() for parents in self.parents_
        )

    def _predict_joint(self, X: Features) -> JointDistribution:
        joints = joints_of(self.components_, X)
        return mixture_of(joints, np.full(len(joints), 1 / len(joints)), n_rows(X))


def _random_trees(m: int, n_trees: int, rng: np.random.Generator) -> tuple[ParentSets, ...]:
    """Draw distinct trees, as many as requested or as there are."""
    wanted = min(n_trees, m ** (m - 1)) if m < 13 else n_trees
    found: dict[ParentSets, None] = {}
    while len(found) < wanted:
        found[random_tree(m, rng)] = None
    return tuple(found)
