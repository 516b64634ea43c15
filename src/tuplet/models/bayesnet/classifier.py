"""`BayesNetClassifier`: settings, fit, prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast, final, get_args

import numpy as np
import pandas as pd

from tuplet.core import clock
from tuplet.core.clock import TimeBudget
from tuplet.core.exceptions import InputError
from tuplet.core.limits import ENUMERATION_LIMIT
from tuplet.core.parameters import FUNCTION, Having, Number, Whole, declare
from tuplet.core.progress import Show
from tuplet.core.typing import Codes, Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.engine import Engine, Exact
from tuplet.local.families import PARAMETRISATIONS, Score
from tuplet.models.base import JointClassifier
from tuplet.models.bayesnet.learning import (
    find_candidates,
    find_graph,
    gap_of,
    is_slow,
    make_scorer,
    offered_sets,
    possible_roles,
    prefers_feature_parents,
)
from tuplet.models.bayesnet.mixed_families import MixedFamilyScorer, Role
from tuplet.models.bayesnet.network import ColumnKinds, FeatureViews, FittedNetwork, Graph
from tuplet.models.bayesnet.screening import SCREEN_FROM
from tuplet.models.bayesnet.shift_families import ShiftScorer
from tuplet.models.explanation import LocalNetwork
from tuplet.models.given_edges import Pairs, given_edges
from tuplet.space.classes import ClassSpace
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features, n_rows, take_rows
from tuplet.structure.search import Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDEST_TABLE = ENUMERATION_LIMIT
"""Cells of the largest table that prediction needs for a row, unless `max_width` is given."""

_ALL_TABLES = 2**17
"""Cells of all tables where sets of parents are screened: with 80 labels, tables of 65,536 cells each made
marginals ten times slower, and held-out rows no more likely."""


@final
class BayesNetClassifier(JointClassifier):
    """A Bayesian network over the class variables given x: p(y | x) = prod_j p(y_j | x, y_parents(j)).

    Every local distribution is any classifier. Up to 19 class variables, the graph is the one with the best
    score of all that have at most `max_parents` parents each: proven to be so, or with the gap that is left
    (paper term: generalised Bayesian network classifier, GBNC). From 20 on, sets of parents are screened;
    see the notes.

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        Any scikit-learn classifier with `predict_proba`. None means logistic regression on imputed and
        standardised features, with penalties that are chosen by held-out rows: its many fits run compiled,
        and are by far the fastest.
    max_parents : int
        Largest number of parents of a class variable.
    parametrisation : {"auto", "shift", "split", "inputs"}
        How parents enter. "shift" shifts the coefficients of the model without parents, as `TreeClassifier`
        does: by an amount for each configuration, or, if that predicts held-out rows better, by one amount
        for all configurations and an effect of each parent; only without `estimator`. "split" has a
        classifier for each configuration, as the paper does; "inputs" gives parents to one classifier as
        one-hot columns. "auto" is "shift" if that is possible, and otherwise takes of the other two, for each
        variable, what scores more.
    criterion : {"auto", "bic", "bic-true", "aic", "aic-true", "cv"} or callable
        What the graph maximises; see `FamilyScorer`. "bic" is the paper's, which does not count the weights
        of the features; "cv" is the log-likelihood of rows held out. "auto" is "cv" for shifts, "bic" for
        other logistic regressions and naive Bayes, and "cv" otherwise. Shifts have "cv" only, less the
        logarithm of the number of sets of up to the same size, since the best of many sets looks good by
        chance; a criterion other than "auto" and "cv" excludes them.
    discrete_as : {"auto", "inputs", "parents", "both"}
        How discrete features enter: "inputs" one-hot, or as the estimators take them; "parents" as further
        parents of class variables, kept from the classifiers, as the paper does; or "both". "auto" takes for
        each class variable what predicts held-out rows best; see `MixedFamilyScorer`. Without any other
        features, "parents" gives smoothed frequencies for each configuration. For shifts, discrete features
        are inputs: "parents" and "both" exclude them, and "auto" does so if a dozen class variables, without
        class parents, are predicted better with features as parents.
    discrete_features : sequence of int or str
        Positions or names of columns of numbers that are discrete features, besides the columns of a frame
        that are text, categories or booleans: those always are.
    max_feature_parents : int
        Largest number of features among the parents of a class variable.
    shortlist : int, None or "auto"
        Number of sets of parents that are scored for each class variable, with all their subsets: those that
        promise most by a cheap guess (see `Shortlist`). None scores all. "auto" does so too, except where
        the criterion is "cv" and classifiers are others than logistic regressions: then the list has 5; and
        except from 20 class variables on, where sets are screened.
    required, forbidden : sequence of (parent, child)
        Edges that must or must not be there, by names or positions of the class variables.
    method : {"auto", "exact", "integer", "order"}
        Search of the graph; see `tuplet.structure.find_dag`.
    max_width : int, None or "auto"
        Largest width of the moral graph, which decides what prediction costs. "auto" keeps tables of a row
        below 65,536 cells, and from 20 class variables on those of all variables below 131,072 in total; None
        allows any.
    time_budget : float, optional
        Seconds for `fit`, about half of them for scores and the rest for the search; what is found by then
        is a valid model. With shifts, everything that the best tree needs is scored in any case, and the
        answer scores no less than that tree. None sets no limit to the scores, and a minute to the search.
    engine : Engine, optional
        How the joint distribution is queried; `Exact()` by default.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    n_jobs : int, optional
        Fits that run side by side.
    random_state : int, Generator or None
        For folds and searches, and for estimators whose own `random_state` is None.
    progress : bool or "auto"
        A line with the time left on standard error; "auto" shows it in terminals.

    Attributes
    ----------
    parents_ : tuple of tuples of int
        Class variables that are parents of each class variable.
    feature_parents_ : tuple of tuples of str
        Names of the discrete features that are parents of each class variable.
    discrete_as_ : tuple of str
        How discrete features enter for each class variable: "inputs", "parents" or "both".
    models_ : list of LocalModel
        p(y_j | x, parents) of each class variable, the class parents first.
    found_ : Found
        Score of the graph, upper bound, gap, whether it is proven and by what method.
    candidates_ : Candidates
        Local scores of all sets of parents that can matter, and how many were scored and skipped.
    proven_ : bool
        Whether no graph is better: the search has a proof, and no set of parents was left out by a screening,
        a shortlist, the time budget or an interrupt. `found_.proven` is about the sets that were scored.
    gap_ : float
        How much higher the score of any graph can be, at most; infinity where nothing is known of sets that
        were left out, as after a screening.
    seconds_ : dict
        Wall time of the phases "scores", "search" and "models".

    Notes
    -----
    From 20 class variables on, with `shortlist="auto"`, each class variable has at most 8 single parents that
    are scored: those whose residuals, of the models without parents, are most correlated with its own, by
    more than two standard errors (with shifts all up to 25 class variables). Sets of several parents are made
    of the 6 that gain most by themselves; a parent that gains nothing by itself is in none. The search starts
    from the best forest of single parents. `shortlist=None` scores all sets.

    Beyond 32,768 rows shifts are scored by a sample of so many rows, the same for the same rows; the models
    are fitted to all rows.

    With shifts, sets are left out for which a class variable has more intercepts than there are rows.

    A configuration that is rare, empty or lacks labels backs off to the model without parents, so no label
    has probability zero. A row whose value of a feature parent is missing or new has the probabilities of
    the model with the class parents alone; missing values that occur in training are a category of their own.

    An interrupt (Ctrl-C) while scoring ends it as the time budget does, with a warning; so does one during
    the search.

    References
    ----------
    Generalised Bayesian network classifiers; equations (4), (13) and (20).

    Examples
    --------
    >>> X = [[0.0], [0.1], [1.0], [1.1], [1.2], [0.2]] * 8
    >>> y = [["dry", "no"], ["dry", "no"], ["wet", "yes"], ["dry", "no"], ["wet", "yes"], ["wet", "yes"]] * 8
    >>> model = BayesNetClassifier().fit(X, y)
    >>> model.parents_, model.proven_
    (((1,), ()), True)
    >>> model.predict([[0.0], [1.1]], loss="subset")
    array([['dry', 'no'],
           ['wet', 'yes']], dtype='<U3')
    """

    _parameters = declare(
        "columns estimator required forbidden n_jobs random_state progress",
        max_parents=Whole(at_least=0),
        parametrisation=("auto", "shift", *PARAMETRISATIONS),
        criterion=(*get_args(Score), FUNCTION),
        discrete_as=("auto", *get_args(Role)),
        discrete_features=Having("a sequence of names or positions of columns", "__iter__"),
        max_feature_parents=Whole(at_least=0),
        shortlist=("auto", None, Whole(at_least=0)),
        method=get_args(Method),
        max_width=("auto", None, Whole(at_least=0)),
        time_budget=(Number(above=0), None),
        engine=(Engine, None),
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        max_parents: int = 3,
        parametrisation: Literal["auto", "shift", "split", "inputs"] = "auto",
        criterion: Any = "auto",
        discrete_as: Literal["auto", "inputs", "parents", "both"] = "auto",
        discrete_features: Sequence[int | str] = (),
        max_feature_parents: int = 3,
        shortlist: int | Literal["auto"] | None = "auto",
        required: Pairs = (),
        forbidden: Pairs = (),
        method: Literal["auto", "exact", "integer", "order"] = "auto",
        max_width: int | Literal["auto"] | None = "auto",
        time_budget: float | None = None,
        engine: Engine | None = None,
        columns: ColumnChoices = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        progress: Show = "auto",
    ) -> None:
        self.estimator = estimator
        self.max_parents = max_parents
        self.parametrisation = parametrisation
        self.criterion = criterion
        self.discrete_as = discrete_as
        self.discrete_features = discrete_features
        self.max_feature_parents = max_feature_parents
        self.shortlist = shortlist
        self.required = required
        self.forbidden = forbidden
        self.method = method
        self.max_width = max_width
        self.time_budget = time_budget
        self.engine = engine
        self.columns = columns
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    # -- features -----------------------------------------------------------------------------------------

    _feature_form = "columns"  # of which there are several views, see `FeatureViews`
    _text_is_discrete = True

    def _validate(self, X: Any, estimators: list[Any], *, reset: bool = False) -> Features:
        features = super()._validate(X, estimators, reset=reset)
        if reset:
            names = getattr(self, "feature_names_in_", None)
            self._columns = ColumnKinds.of(X, self.n_features_in_, names, self.discrete_features)
        return features

    def _learn_encoder(
        self, X: Features, space: ClassSpace, codes: Codes, weights: Floats | None, groups: Codes | None
    ) -> Features:
        X = self._columns.declared(X)
        read = super()._learn_encoder(X, space, codes, weights, groups)
        whole = None if self.encoder_ is None else self.encoder_.matrix_
        kinds = self._columns.after_reading(X, read)
        self._views = FeatureViews.learn(read, kinds, whole, self._estimators(space.names))
        return read

    def _encode(self, X: Features) -> Features:
        return super()._encode(self._columns.declared(X))

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        rules = given_edges(self, self.max_parents)._asdict()
        budget, rng = TimeBudget(self.time_budget or np.inf), np.random.default_rng(self.random_state)
        scorer = self._scorer(X, codes, sample_weight, budget.after(budget.seconds / 2), rng)
        size = min(self.max_parents, self.space_.n_variables - 1)
        offered = offered_sets(
            scorer,
            self.shortlist,
            is_slow(self.criterion, self._estimators(self.space_.names)),
            self.space_.cards,
            max_parents=size,
            weight=sample_weight,
            **rules,
        )
        self.candidates_ = find_candidates(
            offered,
            self.space_.n_variables,
            size,
            budget=budget,
            certain=int(isinstance(scorer, ShiftScorer)),
            show=self.progress,
            **rules,
        )
        scored = clock.now()
        self.found_ = find_graph(
            self.candidates_,
            method=self.method,
            budget=budget,
            max_width=_width_limit(self.max_width, self.space_.cards),
            random_state=rng,
        )
        searched = clock.now()
        self._network = FittedNetwork.fit(self._views, self.found_.parents, scorer)
        self.parents_, self.discrete_as_ = self._network.parents, self._network.roles
        self.models_ = list(self._network.models)
        self.feature_parents_ = tuple(tuple(some) for some in self._network.strengths)
        # A shortlist leaves out what it does not list, whatever that might score.
        cut = offered is not scorer and self.candidates_.n_skipped > 0
        self.proven_ = self.found_.proven and self.candidates_.complete and not cut
        self.gap_ = np.inf if cut else gap_of(self.found_, self.candidates_)
        self.seconds_ = {
            "scores": scored - budget.start,
            "search": searched - scored,
            "models": clock.now() - searched,
        }

    def _scorer(
        self,
        X: Features,
        codes: Codes,
        sample_weight: Floats | None,
        deadline: float | None,
        rng: np.random.Generator,
    ) -> MixedFamilyScorer | ShiftScorer:
        """Return the scorer of the parametrisation; "auto" leaves a choice where features may be parents."""
        roles = possible_roles(
            self._views,
            self.discrete_as,
            self._estimators(self.space_.names),
            self.criterion,
            self.max_feature_parents,
        )
        mixed = partial(self._mixed_scorer, roles, deadline=deadline, rng=rng)
        if not self._is_shifted(X):
            return mixed(X, codes, sample_weight, self._groups)
        shifts = ShiftScorer(
            self._views.inputs(X, "inputs"),
            codes,
            self.space_.cards,
            sample_weight,
            screening=None if self.shortlist is None else "auto",
            n_jobs=self.n_jobs,
            groups=self._groups,
        )
        if self.parametrisation == "shift" or len(roles) == 1:
            return shifts
        rows = shifts.rows
        some = None if sample_weight is None else sample_weight[rows]
        together = None if self._groups is None else self._groups[rows]
        if prefers_feature_parents(mixed(take_rows(X, rows), codes[rows], some, together), shifts):
            return mixed(X, codes, sample_weight, self._groups)
        return shifts

    def _mixed_scorer(
        self,
        roles: Sequence[Role],
        X: Features,
        codes: Codes,
        sample_weight: Floats | None,
        groups: Codes | None,
        *,
        deadline: float | None,
        rng: np.random.Generator,
    ) -> MixedFamilyScorer:
        return make_scorer(
            self._views,
            roles,
            X,
            codes,
            self.space_.cards,
            max_features=self.max_feature_parents,
            deadline=deadline,
            rng=rng,
            estimators=self._estimators(self.space_.names),
            parametrisation=self.parametrisation,
            score=self.criterion,
            sample_weight=sample_weight,
            groups=groups,
            n_jobs=self.n_jobs,
        )

    def _is_shifted(self, X: Features) -> bool:
        """Whether parents shift the logits of models without parents: chosen, and possible."""
        if self.parametrisation not in ("auto", "shift"):
            return False
        wrong = None
        if any(each is not None for each in self._estimators(self.space_.names)):
            wrong = "estimator must be None: shifts are those of logistic regressions"
        elif callable(self.criterion) or self.criterion not in ("auto", "cv"):
            wrong = 'criterion must be "auto" or "cv": there are scores of held-out rows alone'
        elif self.discrete_as not in ("auto", "inputs"):
            wrong = 'discrete_as must be "auto" or "inputs"'
        if wrong and self.parametrisation == "shift":
            raise InputError(f'BayesNetClassifier: with parametrisation="shift", {wrong}.')
        return wrong is None

    # -- prediction ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        engine = Exact() if self.engine is None else self.engine
        factors = self._network.factors(X)
        return FactorGraph(self.space_.cards, factors, n_rows(X), engine=engine, log_normalizer=0.0)

    # -- reading the model --------------------------------------------------------------------------------

    @property
    def _graph(self) -> Graph:
        strengths = self._network.strengths
        return Graph.make(self.space_.names, self.parents_, self.candidates_.scores, strengths)

    def edges(self) -> pd.DataFrame:
        """Edges of the graph: `parent`, `child`, `strength` and `kind`, the strongest first.

        The strength is what the score of the child loses without that parent, with the best of its other
        class parents, or with its other features: nats of penalised log-likelihood over all training rows. A
        required parent has none. The kind is that of the parent: "class" or "feature".
        """
        return self._graph.table()

    def plot(self, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the graph over class variables and features that are parents, with the strengths of `edges`.

        Parameters
        ----------
        title : str
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        """
        return self._graph.plot(title, ax)

    def explain(self, X: Any, row: int = 0) -> LocalNetwork:
        """Bayesian network p(y | x) of one row of X: its tables, and how strong each edge is for this row.

        Features that are parents have the values of the row.

        Parameters
        ----------
        X : array, sparse matrix or frame
            With the columns of `fit`.
        row : int
            Position of the row in X.
        """
        joint = self.predict_joint(X)
        network = LocalNetwork(cast(FactorGraph, joint.distribution), self.parents_, joint.space, row)
        features = self._encode(self._validate(X, self._estimators()))
        observed = self._network.observed(features, network.row)
        return replace(network, observed=observed)


def _width_limit(max_width: Any, cards: Sequence[int]) -> int | None:
    """Return the largest width; for "auto" the one at which a table of any w + 1 variables stays small."""
    if max_width != "auto":
        return None if max_width is None else int(max_width)
    most = _WIDEST_TABLE if len(cards) < SCREEN_FROM else min(_WIDEST_TABLE, _ALL_TABLES / len(cards))
    log_cells = np.cumsum(np.log2(sorted(cards, reverse=True)))  # the product of many would overflow
    return max(1, int((log_cells <= np.log2(most) + 1e-9).sum()) - 1)
