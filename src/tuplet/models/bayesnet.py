"""Bayesian networks over the class variables, with any classifier as local model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, final

import numpy as np
import pandas as pd

from tuplet.exceptions import InputError, TupletWarning
from tuplet.inference import Engine, Exact, Factor
from tuplet.joint import FactorGraph, JointDistribution
from tuplet.local.families import FamilyScorer
from tuplet.local.inputs import Features, n_rows
from tuplet.models.base import JointClassifier
from tuplet.models.explanation import LocalNetwork
from tuplet.models.links import estimators_by_variable
from tuplet.plots import plot_graph
from tuplet.progress import Progress, Show, duration_text
from tuplet.structure import Candidates, candidate_parent_sets, find_dag
from tuplet.typing import Codes, Floats, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BayesNetClassifier"]

Variable = int | str

_FOLDS = 5
"""Parts of the rows that are held out in turn, for the criterion "cv" and the choice of parametrisations."""

_WIDEST_TABLE = 2**16
"""Cells of the largest table that prediction needs for a row, unless `max_width` says otherwise."""


@final
class BayesNetClassifier(JointClassifier):
    """A Bayesian network over the class variables given x: p(y | x) = prod_j p(y_j | x, y_parents(j)).

    Every local distribution is any classifier. The graph is the one with the best score of all that have at
    most `max_parents` parents each: proven to be so, or with the gap that is left (paper term: generalised
    Bayesian network classifier, GBNC).

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        Any scikit-learn classifier with `predict_proba`; `default_estimator()`, imputed and standardised
        logistic regression, if None: its many fits run compiled, and are by far the fastest.
    max_parents : int
        Largest number of parents of a class variable.
    parametrisation : {"auto", "split", "inputs"}
        How parents enter: "split" has a classifier for each of their configurations, as the paper does;
        "inputs" gives them to one classifier as one-hot columns; "auto" takes for each variable what scores
        more.
    criterion : {"bic", "bic-true", "aic", "aic-true", "cv"} or callable
        What the graph maximises; see `FamilyScorer`. "bic" is the paper's, which does not count the weights
        of the features; "cv" is the log-likelihood of rows held out.
    required, forbidden : sequence of (parent, child)
        Edges that must or must not be there, by names or positions of the class variables.
    method : {"auto", "exact", "integer", "order"}
        Search of the graph; see `tuplet.structure.find_dag`.
    max_width : int, None or "auto"
        Largest width of the moral graph, which decides what prediction costs. "auto" keeps tables of a row
        below 65,536 cells; None allows any.
    time_budget : float, optional
        Seconds for `fit`, about half of them for scores and the rest for the search; what is found by then
        is a valid model.
    engine : Engine, optional
        How the joint distribution is queried; `Exact()` unless told.
    n_jobs : int, optional
        Fits that run side by side.
    random_state : int, Generator or None
        For folds and searches, and for estimators whose own `random_state` is None.
    progress : bool or "auto"
        A line with the time left on standard error; "auto" shows it in terminals.

    Attributes
    ----------
    parents_ : tuple of tuples of int
        Parents of each class variable.
    models_ : list of LocalModel
        p(y_j | x, parents) of each class variable.
    found_ : Found
        Score of the graph, upper bound, gap, whether it is proven and by what method.
    candidates_ : Candidates
        Local scores of all sets of parents that can matter, and how many were scored and skipped.
    proven_ : bool
        Whether no graph is better: the search has a proof, and no set of parents was left out.
    seconds_ : dict
        Wall time of the phases "scores", "search" and "models".

    Notes
    -----
    A configuration that is rare, empty or lacks labels backs off to the model without parents, so no label
    has probability zero.

    An interrupt (Ctrl-C) while scoring ends it as the time budget does, with a warning.

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

    def __init__(
        self,
        estimator: Any = None,
        *,
        max_parents: int = 3,
        parametrisation: Literal["auto", "split", "inputs"] = "auto",
        criterion: Any = "bic",
        required: Sequence[tuple[Variable, Variable]] = (),
        forbidden: Sequence[tuple[Variable, Variable]] = (),
        method: Literal["auto", "exact", "integer", "order"] = "auto",
        max_width: int | Literal["auto"] | None = "auto",
        time_budget: float | None = None,
        engine: Engine | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        progress: Show = "auto",
    ) -> None:
        self.estimator = estimator
        self.max_parents = max_parents
        self.parametrisation = parametrisation
        self.criterion = criterion
        self.required = required
        self.forbidden = forbidden
        self.method = method
        self.max_width = max_width
        self.time_budget = time_budget
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return estimators_by_variable(self.estimator, names)

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        self._check()
        begun = time.monotonic()
        rng = np.random.default_rng(self.random_state)
        scorer = FamilyScorer(
            X,
            codes,
            self.space_.cards,
            estimators=self._estimators(self.space_.names),
            parametrisation=self.parametrisation,
            score=self.criterion,
            n_folds=max(2, min(_FOLDS, len(codes))),
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
            random_state=rng,
        )
        self.candidates_ = self._score_families(scorer, begun)
        scored = time.monotonic()
        self.found_ = find_dag(
            self.candidates_.scores,
            method=self.method,
            time_limit=self._time_left(begun),
            max_width=self._widest(),
            random_state=rng,
        )
        searched = time.monotonic()
        self.parents_ = self.found_.parents
        self.models_ = [scorer.model(child, parents) for child, parents in enumerate(self.parents_)]
        self.proven_ = self.found_.proven and self.candidates_.complete
        self.seconds_ = {
            "scores": scored - begun,
            "search": searched - scored,
            "models": time.monotonic() - searched,
        }

    def _check(self) -> None:
        if not isinstance(self.max_parents, (int, np.integer)) or self.max_parents < 0:
            raise InputError(
                f"BayesNetClassifier: max_parents must be a whole number from 0, found {self.max_parents!r}."
            )
        if self.time_budget is not None and not self.time_budget > 0:
            raise InputError(
                f"BayesNetClassifier: time_budget must be a number of seconds, found {self.time_budget!r}."
            )

    def _score_families(self, scorer: FamilyScorer, begun: float) -> Candidates:
        """Score all sets of parents that can matter, or as many as half of the time allows."""
        m = self.space_.n_variables
        deadline = None if self.time_budget is None else begun + self.time_budget / 2
        with Progress("Scoring sets of parents", m, show=self.progress) as bar:

            def advance(done: int, planned: int) -> None:
                bar.total = planned
                bar.advance(steps=done - bar.done)

            candidates = candidate_parent_sets(
                m,
                min(self.max_parents, m - 1),
                scorer.score,
                bound=scorer.bound,
                required=self._edges("required"),
                forbidden=self._edges("forbidden"),
                progress=advance,
                deadline=deadline,
            )
        if candidates.stopped:
            _say_incomplete(candidates, self.time_budget)
        return candidates

    def _edges(self, which: Literal["required", "forbidden"]) -> list[tuple[int, int]]:
        """Return the user's edges as positions."""
        edges = []
        for edge in getattr(self, which):
            if isinstance(edge, str) or len(edge) != 2:
                raise InputError(
                    f"BayesNetClassifier: {which} must hold pairs (parent, child), found {edge!r}."
                )
            edges.append((self._position(edge[0], which), self._position(edge[1], which)))
        return edges

    def _position(self, variable: Variable, which: str) -> int:
        if isinstance(variable, str):
            return self.space_.position(variable)
        if not 0 <= variable < self.space_.n_variables:
            raise InputError(
                f"BayesNetClassifier: {which} names the class variable {variable}, but they are numbered"
                f" from 0 to {self.space_.n_variables - 1}."
            )
        return int(variable)

    def _time_left(self, begun: float) -> float | None:
        if self.time_budget is None:
            return None
        return max(1.0, self.time_budget - (time.monotonic() - begun))

    def _widest(self) -> int | None:
        """Return the largest width at which a table of any w + 1 variables stays small."""
        if self.max_width != "auto":
            return self.max_width
        cells = np.cumprod(sorted(map(float, self.space_.cards), reverse=True))
        return max(1, int((cells <= _WIDEST_TABLE).sum()) - 1)

    # -- prediction ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        factors = [
            Factor((*parents, child), model.log_table(X))
            for child, (parents, model) in enumerate(zip(self.parents_, self.models_, strict=True))
        ]
        engine = Exact() if self.engine is None else self.engine
        return FactorGraph(self.space_.cards, factors, n_rows(X), engine=engine, log_normalizer=0.0)

    # -- reading the model --------------------------------------------------------------------------------

    def edges(self) -> pd.DataFrame:
        """Edges of the graph: `parent`, `child` and `strength`, the strongest first.

        The strength is what the score of the child loses without that parent, with the best of its other
        parents: nats of penalised log-likelihood over all training rows. A required parent has none.
        """
        names, scores = self.space_.names, self.candidates_.scores
        lines = []
        for child, parents in enumerate(self.parents_):
            smaller = [each for each in scores.candidates(child) if set(each[0]) < set(parents)]
            for parent in parents:
                without = max((value for given, value in smaller if parent not in given), default=np.nan)
                lines.append((names[parent], names[child], scores.value(child, parents) - without))
        frame = pd.DataFrame(lines, columns=["parent", "child", "strength"])
        return frame.sort_values("strength", ascending=False, ignore_index=True)

    def plot(self, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the graph over the class variables; edges are as strong as `edges` says.

        Parameters
        ----------
        title : str
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        """
        strengths = {
            (self.space_.position(parent), self.space_.position(child)): strength
            for parent, child, strength in self.edges().itertuples(index=False)
        }
        return plot_graph(self.parents_, self.space_.names, strengths=strengths, title=title, ax=ax)

    def explain(self, X: Any, row: int = 0) -> LocalNetwork:
        """Bayesian network p(y | x) of one row of X: its tables, and how strong each edge is for this row.

        Parameters
        ----------
        X : array, sparse matrix or frame
            With the columns of `fit`.
        row : int
            Position of the row in X.
        """
        joint = self.predict_joint(X)
        return LocalNetwork(cast(FactorGraph, joint.distribution), self.parents_, joint.space, row)


def _say_incomplete(candidates: Candidates, budget: float | None) -> None:
    why = "interrupted" if candidates.stopped == "interrupt" else f"out of its {duration_text(budget or 0)}"
    warnings.warn(
        f"BayesNetClassifier: scoring was {why} after {candidates.n_scored} sets of parents; the graph is the"
        " best of these, not of all.",
        TupletWarning,
        stacklevel=4,
    )
