"""A conditional random field: scores of labels given x, and of pairs of labels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal, final

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.sparse import csgraph
from scipy.special import logsumexp

from tuplet.core.exceptions import ConvergenceWarning, IntractableError
from tuplet.core.limits import ENUMERATION_LIMIT, HELD_CELLS, LISTED_CELLS
from tuplet.core.parameters import PAIRS, Number, Whole, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.belief import BeliefPropagation
from tuplet.joint.inference.engine import Engine, Exact
from tuplet.joint.inference.factor import Factor
from tuplet.joint.inference.plan import make_plan
from tuplet.local.columns import Scaling
from tuplet.local.logistic import fit_scaler
from tuplet.local.penalties import Target, choose_for_rows, least_of_parents
from tuplet.models.base import JointClassifier
from tuplet.models.given_edges import edge_positions
from tuplet.models.prior import bounded_joint
from tuplet.models.random_field.field import FieldWeights, PairwiseField
from tuplet.models.random_field.likelihood import (
    EliminationLikelihood,
    HalvesLikelihood,
    Likelihood,
    PseudoLikelihood,
    half_outcomes,
)
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features, n_rows

_AUTO_OUTCOMES, _MOST_OUTCOMES = ENUMERATION_LIMIT, LISTED_CELLS
"""Outcomes of two halves that "auto", and "exact", sum over by matrix products."""

_FTOL = 64 * np.finfo(float).eps
"""Relative change of the objective at which L-BFGS ends in any case."""

_AUTO_CELLS = HELD_CELLS
"""Cells of the tables of all rows that "auto" eliminates with in every step of the fit."""

_ENGINE_TABLE = 2**18
"""Largest table of one row with which predictions are exact, unless an engine is given."""


@final
class RandomFieldClassifier(JointClassifier):
    """Pairwise conditional random field over the class variables: ML-CRF.

        log p(y | x) = sum_j (b_j + w_j x)[y_j] + sum_ij V_ij(x)[y_i, y_j] - log Z(x)

    Parameters
    ----------
    edges : "all", "tree", int, or sequence of pairs
        Which pairs of class variables have a V_ij: all; a tree, or so many pairs, whose residuals given x
        are the most correlated; or those named, by name or position.
    pairwise : {"constant", "linear"}
        Whether V_ij is the same for all rows or linear in x.
    likelihood : {"auto", "exact", "pseudo"}
        What is maximised: the likelihood, or the pseudo-likelihood, the product of all p(y_j | x, the other
        labels), which needs no Z. "auto" is exact where that takes little time.
    C : "auto" or float
        Inverse strength of the L2 penalty on all weights but the b_j, as in scikit-learn. "auto" is chosen by
        held-out rows, as in `RidgeLogistic`; the constants of pairs have at least 0.3 then.
    max_iter : int
        Largest number of L-BFGS iterations.
    tol : float
        No entry of the gradient of the mean loss is larger at the end.
    engine : "auto" or Engine
        How the fitted field is queried; "auto" is `Exact()` where tables are small enough, otherwise
        `BeliefPropagation()`, whose answers are approximations, marked as such.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.

    Attributes
    ----------
    C_ : float
        The inverse strength that was used.
    edges_ : list of pairs of int
    pair_weights_ : list of arrays, shape (k_i, k_j)
        V_ij of each edge, at the mean of x if it depends on x.
    likelihood_ : {"exact", "pseudo"}
    n_iter_ : int
    engine_ : Engine
    seen_ : list of arrays of int
        Codes of each variable that training rows show. The others have next to no probability: that of a
        pseudo-row's share, as in `SmoothedClassifier`.

    Notes
    -----
    Features are standardised and gaps filled by means. Without edges the field is one logistic regression
    for each variable. Missing labels are summed out of the likelihood; in the pseudo-likelihood their terms
    are left out, and as neighbours they enter by their training frequencies.

    The exact fit starts from that of the pseudo-likelihood. A field of any width whose pairs are constant is
    summed by matrix products over two halves of the variables (see `HalvesLikelihood`), one of small
    width by elimination.

    References
    ----------
    N. Ghamrawi, A. McCallum, Collective multi-label classification, CIKM 2005. M. Pakdaman Naeini, I. Batal,
    Z. Liu, C. Hong, M. Hauskrecht, An optimization-based framework to learn conditional random fields for
    multi-label classification, SDM 2014, whose structures are learned by L1 penalties; here by screening.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.5], [0.5], [1.0], [1.1]]
    >>> y = [["dry", "hat"]] * 3 + [["wet", "umbrella"]] * 3
    >>> model = RandomFieldClassifier().fit(X, y)
    >>> model.predict_joint([[0.5]]).prob({"y0": "wet", "y1": ["hat"]}).round(1)
    array([0.2])
    """

    _parameters = declare(
        "columns max_iter",
        edges=("all", "tree", Whole(at_least=0), PAIRS),
        pairwise=("constant", "linear"),
        likelihood=("auto", "exact", "pseudo"),
        C=("auto", Number(above=0)),
        tol=Number(above=0),
        engine=("auto", Engine),
    )

    def __init__(
        self,
        edges: Literal["all", "tree"] | int | Sequence[tuple[int | str, int | str]] = "all",
        *,
        pairwise: Literal["constant", "linear"] = "constant",
        likelihood: Literal["auto", "exact", "pseudo"] = "auto",
        C: float | Literal["auto"] = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        engine: Any = "auto",
        columns: ColumnChoices = None,
    ) -> None:
        self.edges = edges
        self.pairwise = pairwise
        self.likelihood = likelihood
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine
        self.columns = columns

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        self.scaler_ = fit_scaler(X, sample_weight) if sparse.issparse(X) else Scaling.learn(X, weights)
        given, X = X, self.scaler_.transform(X)
        self.seen_ = [np.flatnonzero(np.bincount(code[code != UNKNOWN])) for code in codes.T]
        self.n_known_ = weights @ (codes != UNKNOWN)
        codes = _renumber(codes, self.seen_)
        cards = tuple(max(1, len(seen)) for seen in self.seen_)
        targets = [Target(code, card) for code, card in zip(codes.T, cards, strict=True)]
        chosen = self.C == "auto"
        self.C_ = (
            choose_for_rows(given, X, codes, targets, sample_weight, self._groups)
            if chosen
            else float(self.C)
        )
        edges = self._given_edges()
        if edges is None:
            edges = self._learn_edges(X, codes, weights, cards)
        self.field_ = PairwiseField(cards, edges)
        self.edges_ = list(self.field_.edges)
        self._maximise(X, codes, weights)
        self.engine_ = self._choose_engine()
        self.pair_weights_ = [table[..., 0] for table in self._full_pairs(self.weights_.pair[-1:])]

    def _given_edges(self) -> list[tuple[int, int]] | None:
        """Return the edges that follow from the settings, None if they are to be learned."""
        every = list(combinations(range(self.space_.n_variables), 2))
        if isinstance(self.edges, str):
            return every if self.edges == "all" else None
        if isinstance(self.edges, (int, np.integer)):
            return None if self.edges < len(every) else every
        return list(dict.fromkeys((min(edge), max(edge)) for edge in edge_positions(self, "edges")))

    def _learn_edges(
        self, X: Features, codes: Codes, weights: Floats, cards: tuple[int, ...]
    ) -> list[tuple[int, int]]:
        """Choose the edges by the correlations of what a field without edges leaves unexplained."""
        field = PairwiseField(cards, ())
        alone = PseudoLikelihood(field, codes, weights)
        fitted, _ = self._optimise(X, alone, FieldWeights.zeros(X.shape[1], field, False), weights)
        blocks = [likelihood(fitted.scores(X[rows]))[1].single for rows, likelihood in alone.blocks()]
        residual = np.concatenate(blocks) / weights[:, None]
        return _strongest_edges(_edge_strengths(field, residual, weights), self.edges)

    def _maximise(self, X: Features, codes: Codes, weights: Floats) -> None:
        linear = self.pairwise == "linear"
        start = FieldWeights.zeros(X.shape[1], self.field_, linear)
        pseudo = PseudoLikelihood(self.field_, codes, weights)
        exact = self._exact_likelihood(codes, weights)
        self.likelihood_ = "pseudo" if exact is None else "exact"
        self.weights_, self.n_iter_ = self._optimise(X, pseudo, start, weights)
        if exact is not None and len(self.edges_):
            self.weights_, more = self._optimise(X, exact, self.weights_, weights)
            self.n_iter_ += more

    def _exact_likelihood(self, codes: Codes, weights: Floats) -> Likelihood | None:
        """Return the exact likelihood in the form that fits the field; None for the pseudo-likelihood."""
        if self.likelihood == "pseudo":
            return None
        field, forced = self.field_, self.likelihood == "exact"
        _, q, r = half_outcomes(field.cards)
        shared = self.pairwise == "constant"
        cells = sum(_plan_sizes(field))
        if shared and q * r <= _AUTO_OUTCOMES:
            return HalvesLikelihood(field, codes, weights)
        if cells * len(codes) <= _AUTO_CELLS:
            return EliminationLikelihood(field, codes, weights)
        if not forced:
            return None
        if shared and q * r <= _MOST_OUTCOMES:
            return HalvesLikelihood(field, codes, weights)
        if cells <= Exact().max_table:
            return EliminationLikelihood(field, codes, weights)
        raise IntractableError(
            f"RandomFieldClassifier: the exact likelihood of {len(field.edges):,} edges needs tables of"
            f" {cells:,} cells for each row; use likelihood='pseudo', or fewer edges, as edges='tree' has."
        )

    def _optimise(
        self, X: Features, likelihood: Likelihood, start: FieldWeights, weights: Floats
    ) -> tuple[FieldWeights, int]:
        """Return the weights of the largest penalised likelihood, by L-BFGS, and the number of iterations.

        The objective is scikit-learn's: the negative log-likelihood over the total weight of the rows, and
        |weights|^2 / (2 C total) with free intercepts.
        """
        total = weights.sum()
        # Constants of pairs are few beside slopes and matter more.
        C_pair = self.C_ if self.C != "auto" else max(self.C_, least_of_parents(len(self.space_.cards) - 1))
        ridge = start.ridges(self.C_, C_pair) / total
        blocks = [(X[rows], part) for rows, part in likelihood.blocks()]

        def objective(flat: Floats) -> tuple[float, Floats]:
            now = start.like(flat)
            slope = ridge * flat
            loss = 0.5 * float(slope @ flat)
            for rows, part in blocks:
                value, by_scores = part(now.scores(rows))
                loss -= value / total
                slope -= now.pull_back(rows, by_scores) / total
            return loss, slope

        options: Any = {"maxiter": int(self.max_iter), "gtol": self.tol, "ftol": _FTOL, "maxls": 50}
        found = minimize(objective, start.flat, jac=True, method="L-BFGS-B", options=options)
        if found.status and np.abs(found.jac).max(initial=0.0) > self.tol:
            warnings.warn(
                f"RandomFieldClassifier: L-BFGS has not converged in {found.nit:,} iterations; raise max_iter"
                " or tol, or lower C.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return start.like(found.x), max(1, int(found.nit))

    # -- prediction ---------------------------------------------------------------------------------------

    def _choose_engine(self) -> Engine:
        if isinstance(self.engine, Engine):
            return self.engine
        largest = max(_plan_sizes(PairwiseField(self.space_.cards, self.edges_)), default=1)
        return Exact() if largest <= _ENGINE_TABLE else BeliefPropagation()

    def _predict_joint(self, X: Features) -> JointDistribution:
        scores = self.weights_.scores(self.scaler_.transform(X))
        singles = self.field_.single_tables(scores.single)
        factors = [Factor((j,), self._full_single(j, table)) for j, table in enumerate(singles)]
        factors += [
            Factor(edge, table)
            for edge, table in zip(self.edges_, self._full_pairs(scores.pair), strict=True)
        ]
        graph = FactorGraph(self.space_.cards, factors, n=n_rows(X), engine=self.engine_)
        return bounded_joint(graph, self.label_counts_)

    def _full_single(self, j: int, table: Floats) -> Floats:
        """A variable's log-table (k_j, n), from that of the values that were seen."""
        seen, card = self.seen_[j], self.space_.cards[j]
        if len(seen) == card or not len(seen):
            return np.broadcast_to(table, (card, table.shape[1]))
        n = self.n_known_[j]
        full = np.repeat(logsumexp(table, axis=0)[None] - np.log((n + card) * (n + 1)), card, axis=0)
        full[seen] = table
        return full

    def _full_pairs(self, pair: Floats) -> list[Floats]:
        """Log-tables (k_i, k_j, n or 1) of the edges; 0 for values that were not seen."""
        answer, cards = [], self.space_.cards
        for (i, j), table in zip(self.edges_, self.field_.pair_tables(pair), strict=True):
            if len(self.seen_[i]) == cards[i] and len(self.seen_[j]) == cards[j]:
                answer.append(table)
                continue
            full = np.zeros((cards[i], cards[j], table.shape[2]))
            full[np.ix_(self.seen_[i], self.seen_[j])] = table
            answer.append(full)
        return answer


def _edge_strengths(field: PairwiseField, residual: Floats, weights: Floats) -> Floats:
    """Return the mean squared correlation of two variables given x, (m, m).

    Parameters
    ----------
    field : PairwiseField
        Gives the layout of the indicators.
    residual : array, shape (n, w)
        Indicators less their probabilities given x; 0 where a label is missing.
    weights : array, shape (n,)
    """
    covariance = (residual.T * weights) @ residual
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    squares = (covariance / scale / scale[:, None]) ** 2
    m = len(field.cards)
    member = np.equal.outer(np.arange(m), field.variable).astype(float)
    smaller = np.minimum.outer(field.widths, field.widths)
    strength = (member @ squares @ member.T) / np.maximum(smaller, 1)
    np.fill_diagonal(strength, 0.0)
    return strength


def _strongest_edges(strength: Floats, edges: Any) -> list[tuple[int, int]]:
    """The tree of the largest sum of strengths (m, m), or so many of the strongest edges."""
    if isinstance(edges, str):
        tree = csgraph.minimum_spanning_tree(-strength).tocoo()
        return sorted((int(min(i, j)), int(max(i, j))) for i, j in zip(tree.row, tree.col, strict=True))
    first, second = np.triu_indices(len(strength), 1)
    best = np.argsort(-strength[first, second], kind="stable")[:edges]
    return sorted((int(first[e]), int(second[e])) for e in best)


def _plan_sizes(field: PairwiseField) -> list[int]:
    """Cells of the tables of elimination."""
    if len(field.edges) == math.comb(len(field.cards), 2):  # the order is no matter, and long to find
        return [math.prod(field.cards[v:]) for v in range(len(field.cards))]
    singles = tuple((v,) for v in range(len(field.cards)))
    return make_plan(field.cards, (*singles, *field.edges), frozenset()).sizes


def _renumber(codes: Codes, seen: list[Codes]) -> Codes:
    """Return codes (n, m) that run over the values that were seen."""
    if all(len(s) == code.max(initial=UNKNOWN) + 1 for s, code in zip(seen, codes.T, strict=True)):
        return codes
    columns = [
        np.where(c == UNKNOWN, UNKNOWN, np.searchsorted(s, c)) for c, s in zip(codes.T, seen, strict=True)
    ]
    return np.column_stack(columns)
