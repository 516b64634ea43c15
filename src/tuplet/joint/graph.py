"""A product of factors over the class variables, with optional hidden variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeVar, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import ImpossibleEvidenceError, IntractableError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, Ranking
from tuplet.joint.bucket_search import Best, best_outcomes, is_long
from tuplet.joint.inference.belief import BeliefPropagation
from tuplet.joint.inference.engine import Engine, Exact
from tuplet.joint.inference.factor import (
    AnyFactor,
    Factor,
    Problem,
    RuleFactor,
    absorb,
    evidence_factors,
    require_possible,
)
from tuplet.joint.inference.signed import SignedElimination
from tuplet.joint.search import Search, best_first

_BLOCK = 2**12
"""Rows that are expanded at once when each of them gets evidence of its own."""

_FEW_PATTERNS = 8
_RARE = 256
"""Beyond a few patterns of known variables, one of fewer rows than this gets no plan of its own."""

_ELIMINATED = 2**17
"""Cells of one row up to which maxima are made by elimination; beyond, branch and bound is faster."""

_CERTAIN = 2**20
"""Values that are tried before a rule counts as one that is to blame for a contradiction."""

_Answer = TypeVar("_Answer")


@final
@dataclass(frozen=True, eq=False, repr=False)
class FactorGraph(JointDistribution):
    """p(y | x_i) proportional to a product of factors, hidden variables summed out.

    What independent models, Bayesian networks, conditional trees, generative models given x and
    probabilistic rules return.

    Parameters
    ----------
    cards : tuple of int
        Cardinalities of the m class variables, numbered 0 to m - 1.
    factors : sequence of Factor or RuleFactor
        Their scopes may also name hidden variables, numbered from m on. Contradictions are errors that name
        the rules to blame.
    n : int
        Number of rows.
    hidden_cards : tuple of int
        Cardinalities of the hidden variables. The mode is then the marginal MAP: hidden variables are
        summed out before anything is maximised.
    engine : Engine
        `Exact()`, `BeliefPropagation()` or, for rules, `SignedElimination()`.
    log_normalizer : array (n,) or float, optional
        Log of the sum of the product over all outcomes, where it is known: 0 for a Bayesian network.
        Complete outcomes then cost no elimination.
    search : Search
        Budget of the search for the mode where elimination does not give it: where its tables would be
        large, and for rules of many variables.

    Examples
    --------
    >>> import numpy as np
    >>> agree = Factor((0, 1), np.log([[4.0, 1.0], [1.0, 2.0]])[..., None])
    >>> joint = FactorGraph((2, 2), [agree], n=1)
    >>> joint.marginals()[0]
    array([[0.625, 0.375]])
    >>> joint.condition([1, UNKNOWN]).mode().codes
    array([[1, 1]])
    """

    cards: tuple[int, ...]
    factors: Sequence[AnyFactor]
    n: int
    hidden_cards: tuple[int, ...] = ()
    engine: Engine = field(default_factory=Exact)
    log_normalizer: Floats | float | None = None
    search: Search = field(default_factory=Search)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cards", tuple(int(card) for card in self.cards))
        object.__setattr__(self, "factors", tuple(self.factors))
        if self.log_normalizer is not None:
            known = np.broadcast_to(np.asarray(self.log_normalizer, dtype=float), (self.n,))
            object.__setattr__(self, "log_normalizer", known)
        self._problem.validate()

    @classmethod
    def independent(cls, log_marginals: Sequence[Floats]) -> FactorGraph:
        """Independent variables with these normalised log-probabilities (n, k_j): a graph without edges."""
        cards = tuple(table.shape[1] for table in log_marginals)
        factors = [Factor((j,), np.asarray(table).T) for j, table in enumerate(log_marginals)]
        return cls(cards, factors, n=len(log_marginals[0]), log_normalizer=0.0)

    @cached_property
    def _problem(self) -> Problem:
        return Problem((*self.cards, *self.hidden_cards), tuple(self.factors), self.n, len(self.cards))

    @cached_property
    def _log_normalizer(self) -> Floats:
        if self.log_normalizer is not None:
            return np.asarray(self.log_normalizer)
        if isinstance(self.engine, SignedElimination):
            self.marginals()  # the same pass gives both
            return self.__dict__["_log_normalizer"]
        return self._ask(lambda: require_possible(self.engine.log_partition(self._problem)))

    @cached_property
    def converged(self) -> npt.NDArray[np.bool_]:
        """Rows (n,) whose sums can be relied on: False where belief propagation did not settle."""
        return self.engine.converged(self._problem)

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`."""
        return self.engine.tolerance

    def __len__(self) -> int:
        return self.n

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        known = self.__dict__.get("_log_normalizer", self.log_normalizer)
        known = None if known is None else np.asarray(known)[rows]
        factors = [factor.rows(rows) for factor in self.factors]
        return replace(self, factors=factors, n=len(rows), log_normalizer=known)

    def _log_prob(self, codes: Codes) -> Floats:
        if not self.hidden_cards and (codes != UNKNOWN).all():
            return self._problem.log_weight(codes) - self._log_normalizer
        return self._over_rows(codes, self.engine.log_partition) - self._log_normalizer

    def _bound(self, codes: Codes) -> Floats:
        if self.tolerance:
            return np.full(codes.shape[:2], np.inf)  # estimates bound nothing
        if not isinstance(self.engine, Exact) or self._problem.tabulated.hidden:
            return self._log_prob(codes)
        return self._over_rows(codes, self.engine.maximum) - self._log_normalizer

    def _over_rows(self, codes: Codes, query: Callable[[Problem], Floats]) -> Floats:
        """Answer a query about every row under the evidence in codes (s, n, m), as (s, n)."""
        flat = codes.reshape(-1, self.n_variables)
        return self._given(np.arange(len(flat)) % max(1, self.n), flat, query).reshape(codes.shape[:2])

    def _given(self, rows: npt.NDArray[np.intp], codes: Codes, query: Callable[[Problem], Floats]) -> Floats:
        """Answer a query about some rows (r,), each under evidence of its own in codes (r, m), as (r,)."""
        answer = np.empty(len(rows))
        has_rules = bool(self._problem.rules)  # which are not absorbed: engines need them whole
        for block, same in _blocks(codes != UNKNOWN):
            if same and not has_rules:
                part = absorb(self._problem, codes[block], rows[block])
            else:
                part = self._problem.rows(rows[block])
                part = part.plus(evidence_factors(part.cards, codes[block]))
            answer[block] = query(part)
        return answer

    def _flat_marginals(self) -> Floats:
        flat, log_partition = self._ask(lambda: self.engine.marginals(self._problem))
        self._ask(lambda: require_possible(log_partition))
        if self.log_normalizer is None:
            self.__dict__.setdefault("_log_normalizer", log_partition)  # spare the next query the same pass
        return flat

    # -- the most probable outcomes -----------------------------------------------------------------------

    def _top_k(self, k: int) -> Ranking:
        log_z = self._log_normalizer
        if self.hidden_cards:
            try:
                best = Best(*self.engine.top_k(self._problem, k))
            except IntractableError:
                # Sums may fit where maxima over the same variables do not: hidden ones may then go in any
                # order.
                return self._search_top_k(k)
        else:
            best = self._best_outcomes(k)
        log_prob = best.log_weight - log_z[:, None]
        best.codes[np.isneginf(log_prob)] = UNKNOWN
        return Ranking(best.codes, log_prob, best.proven)

    def _mode_and_next(self) -> tuple[Ranking, Floats] | None:
        """Return the mode and the log-probability (n,) of the second best outcome, where that is quick."""
        if self.hidden_cards or self._searches or not isinstance(self.engine, Exact):
            return None
        codes, log_weight, lead = self.engine.mode_and_lead(self._problem)
        log_prob = log_weight - self._log_normalizer
        return Ranking(codes[:, None], log_prob[:, None], np.ones(self.n, bool)), log_prob - lead

    def _best_outcomes(self, k: int) -> Best:
        """Return the best outcomes by elimination or, where that is slower or impossible, by a search."""
        if not self._searches:
            return Best(*self.engine.top_k(self._problem, k))
        best = best_outcomes(self._problem, k, self.search.max_nodes)
        unproven = np.flatnonzero(~best.proven)
        if len(unproven) and not self.tolerance:
            with suppress(IntractableError):
                best.put(unproven, *self.engine.top_k(self._problem.rows(unproven), k))
        lost = np.flatnonzero(np.isneginf(best.log_weight[:, 0]) & ~best.proven)
        if len(lost):  # the search ended before it had found anything
            engine = self.engine if self.tolerance else BeliefPropagation()
            best.put(lost, *engine.top_k(self._problem.rows(lost), k))
        return best

    @cached_property
    def _searches(self) -> bool:
        """Whether the compiled search is the first to look for the best outcomes."""
        if any(is_long(factor) for factor in self.factors):
            return True
        if self._tables is None:  # a search among tables of single rows takes longer than an estimate
            return bool(self._problem.rules)
        return self._tables.n_cells(self._problem) > _ELIMINATED

    def _search_top_k(self, k: int) -> Ranking:
        """Marginal MAP by branch and bound: a partial outcome's probability bounds its completions'."""
        flat = self._flat_marginals()
        certainty = [marginal.max(axis=1).mean() for marginal in np.split(flat, self.offsets[1:-1], axis=1)]
        order = np.argsort(certainty)[::-1]  # the surest first: the bound then falls late

        def expand(
            rows: npt.NDArray[np.intp], codes: Codes, variables: npt.NDArray[np.intp], bounds: Floats
        ) -> Floats:
            card = self.cards[variables[0]]
            children = np.repeat(codes[:, None], card, axis=1)
            children[np.arange(len(codes)), :, variables] = np.arange(card)
            rows = np.repeat(rows, card)
            log_weight = self._given(rows, children.reshape(len(rows), -1), self.engine.log_partition)
            return (log_weight - self._log_normalizer[rows]).reshape(-1, card)

        return best_first(self.n, self.cards, [int(v) for v in order], expand, k, self.search, dive=max(k, 4))

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        return self._ask(lambda: self.engine.sample(self._problem, size, rng))

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        if (codes == UNKNOWN).all():
            return self, np.zeros(self.n)
        log_evidence = self._log_prob(codes[None])[0]
        known = np.where(np.isneginf(log_evidence)[:, None], UNKNOWN, codes)
        factors = (*self.factors, *evidence_factors(self.cards, known))
        normalizer = self._log_normalizer + np.where(np.isneginf(log_evidence), 0.0, log_evidence)
        return replace(self, factors=factors, log_normalizer=normalizer), log_evidence

    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        rest = [v for v in range(len(self._problem.cards)) if v not in variables]
        place = {old: new for new, old in enumerate([*variables, *rest])}
        return replace(
            self,
            cards=tuple(self.cards[v] for v in variables),
            factors=[factor.renamed(place) for factor in self.factors],
            hidden_cards=tuple(self._problem.cards[v] for v in rest),
            # With hidden variables, every node of a search is a sum.
            search=min(self.search, Search(), key=lambda search: search.max_nodes),
        )

    def _log_probs(self, outcomes: Codes) -> Floats:
        if self.hidden_cards:
            return super()._log_probs(outcomes)
        total = np.zeros((len(outcomes), 1))
        for factor in self.factors:  # one row as long as all rows are alike
            if isinstance(factor, RuleFactor):
                total = total + factor.at(outcomes[:, None])
            else:
                total = total + factor.log_table[tuple(outcomes[:, v] for v in factor.scope)]
        return total.T - self._log_normalizer[:, None]

    def _log_table(self) -> Floats:
        if self.hidden_cards:
            return super()._log_table()
        # Adding whole tables is many times faster than looking up one outcome after the other.
        table = np.zeros((*self.cards, self.n))
        for factor in self.factors:
            order = np.argsort(factor.scope)
            shape = [self.cards[v] if v in factor.scope else 1 for v in range(self.n_variables)]
            table += factor.log_table.transpose(*order, len(order)).reshape(*shape, -1)
        return table.reshape(-1, self.n).T - self._log_normalizer[:, None]

    # -- summaries ----------------------------------------------------------------------------------------

    @property
    def _tables(self) -> Exact | None:
        """The engine that has tables of the exact distribution, if any."""
        engine = self.engine.exact if isinstance(self.engine, SignedElimination) else self.engine
        return engine if isinstance(engine, Exact) else None

    def entropy(self) -> Floats:
        """See `JointDistribution.entropy`; with hidden variables by enumeration."""
        engine = self._tables
        if engine is None or self._problem.tabulated.hidden:
            return super().entropy()
        return self._ask(lambda: engine.entropy(self._problem))

    def _count_marginals(self) -> Floats:
        engine = self._tables
        if engine is None:
            return super()._count_marginals()
        return self._ask(lambda: engine.count_marginals(self._problem))

    # -- contradictions -----------------------------------------------------------------------------------

    def _ask(self, query: Callable[[], _Answer]) -> _Answer:
        """Answer a query; an error about a row without possible outcomes names the rules to blame."""
        try:
            return query()
        except ImpossibleEvidenceError:
            bad = np.flatnonzero(np.isneginf(self.engine.log_partition(self._problem)))
            if not len(bad) or not self._problem.rules:
                raise
            raise ImpossibleEvidenceError(_contradiction_text(self._problem, bad)) from None

    def _reason_against(self, codes: Codes, row: int) -> str:
        given = self._problem.rows(np.array([row])).plus(evidence_factors(self.cards, codes[None]))
        rules = culprits(given)
        return f" The rules exclude it:{_rule_lines(rules)}" if rules else ""


def culprits(problem: Problem) -> list[RuleFactor]:
    """Return rules that leave a problem of one row no outcome, none of which could be spared.

    Rule after rule is left out; those without which there would be an outcome stay.
    """
    others = [factor for factor in problem.factors if isinstance(factor, Factor)]
    supports = [
        Factor(factor.scope, np.where(np.isneginf(factor.log_table), -np.inf, 0.0)) for factor in others
    ]
    base = replace(problem, factors=tuple(supports), n_visible=len(problem.cards))
    kept = [rule for rule in problem.rules if rule.p in (0.0, 1.0)]
    if _impossible(base):
        return []
    for rule in list(kept):
        rest = [other for other in kept if other is not rule]
        if _impossible(base.plus(rest)):
            kept = rest
    return kept


def _impossible(problem: Problem) -> bool:
    best = best_outcomes(problem, 1, _CERTAIN)
    return bool(np.isneginf(best.log_weight[0, 0]) and best.proven[0])


def _contradiction_text(problem: Problem, bad: npt.NDArray[np.intp]) -> str:
    """Return a message with the rules that contradict each other in the first of some rows."""
    row = problem.rows(bad[:1])
    rules = culprits(row)
    more = f" ({len(bad) - 1} more rows have none either)" if len(bad) > 1 else ""
    start = f"Row {bad[0]} has no possible outcome{more}:"
    if not rules:
        return f"{start} a class variable has no category of positive belief."
    tables = [factor.log_table for factor in row.factors if isinstance(factor, Factor)]
    excluded = any(np.isneginf(table).any() for table in tables)
    given = " given the categories that the beliefs exclude" if excluded else ""
    problem_text = "these rules contradict each other" if len(rules) > 1 else "this rule cannot be satisfied"
    return (
        f"{start} {problem_text}{given}:{_rule_lines(rules)}\n"
        "Give one of them a probability between 0 and 1, or drop it."
    )


def _rule_lines(rules: Sequence[RuleFactor]) -> str:
    """Return rules for a message: a line each."""
    return "".join(f"\n  - {rule.text} (p = {rule.own_p:g})" for rule in rules)


def _blocks(known: npt.NDArray[np.bool_]) -> Iterator[tuple[npt.NDArray[np.intp], bool]]:
    """Blocks of rows, and whether the same variables are known in all rows of a block.

    Known variables then drop out of the plan. A plan for each of many patterns would cost more than it saves:
    rows of rare patterns stay together, with evidence as factors.
    """
    _, pattern, count = np.unique(known, axis=0, return_inverse=True, return_counts=True)
    pattern = pattern.ravel()
    rare = count < _RARE if len(count) > _FEW_PATTERNS else np.zeros(len(count), bool)
    groups = [(np.flatnonzero(pattern == p), True) for p in np.flatnonzero(~rare)]
    groups.append((np.flatnonzero(rare[pattern]), False))
    for group, same in groups:
        for start in range(0, len(group), _BLOCK):
            yield group[start : start + _BLOCK], same
