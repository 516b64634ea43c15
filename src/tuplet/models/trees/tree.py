"""Conditional trees: every class variable given x and at most one other class variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast, final

import numpy as np
import pandas as pd

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError
from tuplet.core.parameters import PAIRS, declare
from tuplet.core.typing import Codes, Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.families import Parametrisation
from tuplet.models.base import JointClassifier
from tuplet.models.explanation import LocalNetwork
from tuplet.models.given_edges import Pairs, given_edges, given_parents
from tuplet.models.trees.learners import EDGE_PARAMETERS, TREE_PARAMETERS, make_trees, random_tree
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features
from tuplet.structure.parents import ParentSets
from tuplet.structure.trees import best_forest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
class TreeClassifier(JointClassifier):
    """A tree or forest over the class variables given x: p(y | x) = prod_i p(y_i | x, y_parent(i)).

    Each class variable has at most one parent. An edge is worth the held-out log-likelihood that the child
    gains from the parent; the forest with the largest sum of gains is found exactly (paper term:
    conditional tree-structured Bayesian network, CTBN).

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        Any scikit-learn classifier with `predict_proba`. None means logistic regression on imputed and
        standardised features, with `C` and `C_shift`: the fits of all edges run compiled, and are by far the
        fastest.
    parametrisation : {"split", "inputs"}
        How a parent enters. "split" has a model for each of its values: with logistic regression the model
        without parents plus penalised shifts of its coefficients, otherwise one classifier for each value
        that backs off to the one without parents (`SplitModel`). "inputs" has one slope for all values: with
        logistic regression the parent shifts the intercepts, otherwise it enters as one-hot columns.
    C : float or "auto"
        Inverse strength of the penalty of models without parents. "auto" takes what predicts held-out rows
        best, of 0.0001, 0.0003, 0.001, ..., 100; where such a model is shifted by a parent it has a C of its
        own, chosen with that of the shifts by the edges that promise most. Only without `estimator`.
    C_shift : float or "auto"
        The same for the shifts.
    n_folds : int
        Folds for held-out likelihoods. Without `estimator` they follow from the rows alone: neither their
        order nor chance matter, and weights count as repeated rows do.
    screening : float, "auto" or None
        Edges are fitted only between variables whose residuals, those of the models without parents, are
        correlated by more than so many standard errors. "auto" fits all edges up to 25 class variables;
        beyond that, to each child its 8 strongest parents above two standard errors. None always fits all.
        Only without `estimator`.
    structure : "learn", "random" or sequence of (parent, child)
        "random" draws a tree; given edges are taken as they are. Nothing is scored then.
    required, forbidden : sequence of (parent, child)
        Edges that must or must not be there, by names or positions of the class variables.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    random_state : int, Generator or None
        For a random tree, and with an `estimator` for folds and for what it left open.
    n_jobs : int, optional
        Fits that run side by side.

    Attributes
    ----------
    parents_ : tuple of tuples of int
        The parent of each class variable, if it has one.
    gains_ : array, shape (m, m)
        `gains_[j, i]`: held-out log-likelihood that variable i gains from parent j, summed over the rows;
        minus infinity where that was not fitted. None if the structure was not learnt.
    scores_ : array, shape (m,)
        Held-out log-likelihoods without parents. None if the structure was not learnt.
    C_, C_shared_, C_shift_ : float or None
        Inverse strengths of penalties as used: of models without parents, of those that are shifted by a
        parent, and of the shifts; None with an `estimator`.
    tree_ : LogisticTree or ClassifierTree
        The fitted local models.

    Notes
    -----
    Of more than 32,768 rows a sample of about that size chooses penalties and scores the edges, unless there
    is an `estimator`; its gains and scores are scaled to all rows. The sample follows from the rows alone, as
    folds do. The models of the tree are fitted to all rows.

    References
    ----------
    I. Batal, C. Hong, M. Hauskrecht, An efficient probabilistic framework for multi-dimensional
    classification, CIKM 2013.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> rain = X[:, 0] + rng.normal(size=200) > 0
    >>> wet = rain ^ (rng.random(200) < 0.1)
    >>> y = np.column_stack([rain, wet, wet ^ (rng.random(200) < 0.1)])
    >>> model = TreeClassifier().fit(X, y)
    >>> model.parents_
    ((1,), (2,), ())
    >>> model.predict([[2.0, 0.0]], loss="subset")
    array([[ True,  True,  True]])
    """

    _parameters = TREE_PARAMETERS | EDGE_PARAMETERS | declare(structure=("learn", "random", PAIRS))

    def __init__(
        self,
        estimator: Any = None,
        *,
        parametrisation: Parametrisation = "split",
        C: float | Literal["auto"] = "auto",
        C_shift: float | Literal["auto"] = "auto",
        n_folds: int = 3,
        screening: float | Literal["auto"] | None = "auto",
        structure: Literal["learn", "random"] | Pairs = "learn",
        required: Pairs = (),
        forbidden: Pairs = (),
        columns: ColumnChoices = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.parametrisation = parametrisation
        self.C = C
        self.C_shift = C_shift
        self.n_folds = n_folds
        self.screening = screening
        self.structure = structure
        self.required = required
        self.forbidden = forbidden
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        rng = np.random.default_rng(self.random_state)
        rules, given = given_edges(self, most=1), self._given(rng)  # errors before any work
        trees = make_trees(self, X, codes, sample_weight, rng, groups=self._groups)
        self.C_, self.C_shared_, self.C_shift_ = trees.strengths
        self.gains_, self.scores_ = None, None
        if given is None:
            edges = trees.edges(sample_weight)
            self.gains_, self.scores_ = edges.gains, edges.alone
            given = best_forest(edges.gains, **rules._asdict())
        self.parents_ = given
        self.tree_ = trees.fit(self.parents_, sample_weight).without_rows()

    def _given(self, rng: np.random.Generator) -> ParentSets | None:
        """Return the structure that is not to be learnt, if there is one."""
        named = not isinstance(self.structure, str)
        if not named and self.structure == "learn":
            return None
        if len(self.required) or len(self.forbidden):
            raise InputError(
                "TreeClassifier: required and forbidden edges are for structure='learn'; leave them out, or"
                " name all edges in `structure`."
            )
        if not named:
            return random_tree(self.space_.n_variables, rng)
        return given_parents(self, "structure", most=1)

    def _predict_joint(self, X: Features) -> JointDistribution:
        return self.tree_.joint(X)

    # -- reading the model --------------------------------------------------------------------------------

    def edges(self) -> pd.DataFrame:
        """Edges of the forest: `parent`, `child` and `strength`, the strongest first.

        The strength is the gain in held-out log-likelihood, in nats over all training rows; NaN where the
        edge was not scored, because it was given or because a required one did not pass the screening.
        """
        names, gains = self.space_.names, np.full((len(self.parents_),) * 2, np.nan)
        if self.gains_ is not None:
            gains = np.where(np.isfinite(self.gains_), self.gains_, np.nan)
        lines = [
            (names[parent], names[child], gains[parent, child])
            for child, parents in enumerate(self.parents_)
            for parent in parents
        ]
        frame = pd.DataFrame(lines, columns=["parent", "child", "strength"])
        return frame.sort_values("strength", ascending=False, ignore_index=True)

    def plot(self, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the forest; edges have the strengths of `edges`.

        Parameters
        ----------
        title : str
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        """
        strengths = None
        if self.gains_ is not None:
            strengths = {(p[0], i): float(self.gains_[p[0], i]) for i, p in enumerate(self.parents_) if p}
        return delegate(
            "plot_graph", self.parents_, self.space_.names, strengths=strengths, title=title, ax=ax
        )

    def explain(self, X: Any, row: int = 0) -> LocalNetwork:
        """Tree p(y | x) of one row of X: its tables, and how strong each edge is for this row.

        Parameters
        ----------
        X : array, sparse matrix or frame
            With the columns of `fit`.
        row : int
            Position of the row in X.
        """
        joint = self.predict_joint(X)
        return LocalNetwork(cast(FactorGraph, joint.distribution), self.parents_, joint.space, row)
