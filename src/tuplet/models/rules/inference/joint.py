"""Beliefs about single class variables, made one distribution by rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Self, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import ImpossibleEvidenceError, InputError
from tuplet.core.limits import ENUMERATION_LIMIT
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, Ranking
from tuplet.joint.inference.belief import BeliefPropagation
from tuplet.joint.inference.engine import Exact
from tuplet.joint.inference.factor import Problem
from tuplet.joint.search import Search, best_first
from tuplet.models.rules.inference.factor import RuleFactor
from tuplet.models.rules.inference.maxima import best_outcomes
from tuplet.models.rules.inference.sums import Enumeration, ExactMethod, Sums, rule_problem, table_cells

Method = Literal["auto", "propagation"] | ExactMethod

_BLOCK = 2**12
"""Rows with evidence of their own that are summed at once."""

_METHODS = ("auto", "enumeration", "elimination", "signed", "inclusion-exclusion", "propagation")

_NODES = 2**20
"""Values that are tried before a rule counts as one that cannot be spared."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class RuleJoint(JointDistribution):
    """P(l | x_i), proportional to prod_j x_ij(l_j) prod_k f_k(l).

    Parameters
    ----------
    cards : tuple of int
        Cardinalities of the m class variables.
    log_beliefs : sequence of m arrays (n, k_j)
        Logarithms of the beliefs x, which need not be normalised; minus infinity excludes a category.
    factors : sequence of RuleFactor
    method : "auto", "enumeration", "elimination", "signed", "inclusion-exclusion" or "propagation"
        How sums are made; by default the exact method with the fewest cells, and belief propagation, which
        estimates, if none fits into `max_cells`. The most probable outcomes are always searched exactly.
    max_cells : int
        Cells of one row that exact sums may need in all.
    search : Search
        Budget of the search for the most probable outcomes.
    propagation : BeliefPropagation
        Settings of the estimate.
    log_z : array (n,), optional
        Log of the sum of all weights, where it is known.

    Examples
    --------
    >>> import numpy as np
    >>> either = RuleFactor((0, 1), 0.9, q=(np.array([1.0, 0.0]), np.array([1.0, 0.0])), text="a | b")
    >>> joint = RuleJoint((2, 2), np.log([[[0.7, 0.3]], [[0.5, 0.5]]]), [either])
    >>> joint.marginals()[1].round(3)
    array([[0.274, 0.726]])
    >>> joint.mode().codes
    array([[0, 1]])
    """

    cards: tuple[int, ...]
    log_beliefs: Sequence[Floats]
    factors: Sequence[RuleFactor]
    method: Method = "auto"
    max_cells: int = 2**23
    search: Search = field(default_factory=lambda: Search(max_nodes=2**18))
    propagation: BeliefPropagation = field(default_factory=BeliefPropagation)
    log_z: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "cards", tuple(int(card) for card in self.cards))
        beliefs = tuple(np.asarray(belief, dtype=float) for belief in self.log_beliefs)
        object.__setattr__(self, "log_beliefs", beliefs)
        object.__setattr__(self, "factors", tuple(self.factors))
        _validate(self.cards, beliefs, self.factors, self.method)

    @property
    def log_normalizer(self) -> Floats:
        """Log of the sum of all weights, (n,): log P(all rules hold | x_i) if the beliefs are normalised."""
        return self._log_normalizer

    @property
    def chosen_method(self) -> str:
        """How sums are made."""
        return "propagation" if self._estimates else str(self._sums.chosen)

    @cached_property
    def converged(self) -> npt.NDArray[np.bool_]:
        """Rows (n,) whose sums can be relied on: False where belief propagation did not settle."""
        if not self._estimates:
            return np.ones(len(self), dtype=bool)
        return self.propagation.convergence(self._problem(self.log_beliefs)).converged

    @cached_property
    def _sums(self) -> Sums:
        method = None if self.method in ("auto", "propagation") else self.method
        return Sums(self.cards, tuple(self.factors), method, self.max_cells)  # type: ignore[arg-type]

    @cached_property
    def _estimates(self) -> bool:
        return self.method == "propagation" or self._sums.chosen is None

    @cached_property
    def _log_normalizer(self) -> Floats:
        if self.log_z is not None:
            return self.log_z
        if not self._estimates and self._sums.chosen != "elimination":
            self.marginals()  # the same pass gives both
            return self.__dict__["_log_normalizer"]
        return self._possible(self._log_partition(self.log_beliefs))

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`."""
        return float("inf") if self._estimates else 0.0

    def __len__(self) -> int:
        return len(self.log_beliefs[0])

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        known = self.__dict__.get("_log_normalizer", self.log_z)
        beliefs = [belief[rows] for belief in self.log_beliefs]
        return replace(self, log_beliefs=beliefs, log_z=None if known is None else known[rows])

    # -- sums ---------------------------------------------------------------------------------------------

    def _problem(self, log_beliefs: Sequence[Floats]) -> Problem:
        return rule_problem(self.cards, log_beliefs, self.factors)

    def _log_partition(self, log_beliefs: Sequence[Floats]) -> Floats:
        if self._estimates:
            return self.propagation.log_partition(self._problem(log_beliefs))
        return self._sums.log_partition(log_beliefs)

    def _flat_marginals(self) -> Floats:
        if self._estimates:
            flat, log_z = self.propagation.marginals(self._problem(self.log_beliefs))
        else:
            marginals, log_z = self._sums.marginals(self.log_beliefs)
            flat = np.concatenate(marginals, axis=1)
        self._possible(log_z)
        self.__dict__.setdefault("_log_normalizer", log_z if self.log_z is None else self.log_z)
        return flat

    def _possible(self, log_z: Floats) -> Floats:
        """Raise where no outcome is possible, with the rules that are to blame."""
        bad = np.flatnonzero(~(log_z > -np.inf))
        if len(bad):
            row = int(bad[0])
            beliefs = [belief[row : row + 1] for belief in self.log_beliefs]
            raise ImpossibleEvidenceError(
                _contradiction_text(self.cards, beliefs, self.factors, row, len(bad))
            )
        return log_z

    def _log_weight(self, codes: Codes) -> Floats:
        """Unnormalised log-weight of complete codes (s, n, m), as (s, n)."""
        total = np.zeros(codes.shape[:2])
        rows = np.arange(len(self))
        for j, belief in enumerate(self.log_beliefs):
            total += belief[rows, codes[..., j]]
        for factor in self.factors:
            total += factor.log_values(codes)
        return total

    def _log_prob(self, codes: Codes) -> Floats:
        if (codes != UNKNOWN).all():
            return self._log_weight(codes) - self._log_normalizer
        flat = codes.reshape(-1, self.n_variables)
        rows = np.arange(len(flat)) % max(1, len(self))
        answer = np.empty(len(flat))
        for start in range(0, len(flat), _BLOCK):
            block = slice(start, start + _BLOCK)
            answer[block] = self._log_partition(self._masked(flat[block], rows[block]))
        return answer.reshape(codes.shape[:2]) - self._log_normalizer

    def _masked(self, codes: Codes, rows: npt.NDArray[np.intp] | slice = slice(None)) -> list[Floats]:
        """Log-beliefs of some rows (r,) with everything but the known values of codes (r, m) excluded."""
        masked = []
        for j, belief in enumerate(self.log_beliefs):
            known = codes[:, j, None]
            allowed = (known == UNKNOWN) | (known == np.arange(self.cards[j]))
            masked.append(np.where(allowed, belief[rows], -np.inf))
        return masked

    def _reason_against(self, codes: Codes, row: int) -> str:
        rules = culprits(self.cards, self._masked(codes[None], np.array([row])), self.factors)
        return f" The rules exclude it:{_rule_lines(self.factors, rules)}" if rules else ""

    def _log_table(self) -> Floats:
        table = Enumeration(self.cards, tuple(self.factors)).log_table(self.log_beliefs)
        return table - self._log_normalizer[:, None]

    def _bound(self, codes: Codes) -> Floats:
        return np.full(codes.shape[:2], np.inf) if self._estimates else self._log_prob(codes)

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        if (codes == UNKNOWN).all():
            return self, np.zeros(len(self))
        log_evidence = self._log_prob(codes[None])[0]
        impossible = np.isneginf(log_evidence)
        known = np.where(impossible[:, None], UNKNOWN, codes)
        log_z = self._log_normalizer + np.where(impossible, 0.0, log_evidence)
        return replace(self, log_beliefs=self._masked(known), log_z=log_z), log_evidence

    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        return _Projection(self, variables)

    # -- outcomes -----------------------------------------------------------------------------------------

    def _top_k(self, k: int) -> Ranking:
        log_z = self._log_normalizer
        codes, log_weight, proven = best_outcomes(
            self.cards, tuple(self.factors), self.log_beliefs, k, self.search.max_nodes
        )
        lost = np.flatnonzero(np.isneginf(log_weight[:, 0]))
        if len(lost):  # the search ended before it had found anything
            part = self._problem([belief[lost] for belief in self.log_beliefs])
            codes[lost], _, _ = self.propagation.top_k(part, k)
        codes = codes.transpose(1, 0, 2)
        real = codes[..., 0] != UNKNOWN
        # The search adds up differences; the weights themselves are added once more, without them.
        weight = np.where(real, self._log_weight(np.maximum(codes, 0)), -np.inf)
        order = np.argsort(-weight, axis=0, kind="stable")
        codes = np.take_along_axis(codes, order[..., None], axis=0).transpose(1, 0, 2)
        log_prob = np.take_along_axis(weight, order, axis=0).T - log_z[:, None]
        codes[np.isneginf(log_prob)] = UNKNOWN
        return Ranking(codes, log_prob, proven)

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        if self._estimates:
            return self.propagation.sample(self._problem(self.log_beliefs), size, rng)
        self._possible(self._log_normalizer)
        if self._has_tables:
            return self._engine.sample(self._problem(self.log_beliefs), size, rng)
        return _sample_in_turn(self, size, rng)

    # -- summaries ----------------------------------------------------------------------------------------

    @property
    def _engine(self) -> Exact:
        return Exact(max_table=2**62, chunk_cells=2**21)

    @cached_property
    def _has_tables(self) -> bool:
        """Whether tables over class variables, which serve all queries, fit into memory."""
        return table_cells(self.cards, self.factors) <= 2 * self.max_cells

    def entropy(self) -> Floats:
        """See `JointDistribution.entropy`."""
        problem = self._problem(self.log_beliefs)
        small = self.n_outcomes <= ENUMERATION_LIMIT
        if small or self._estimates or problem.hidden or not self._has_tables:
            return super().entropy()
        self._possible(self._log_normalizer)
        return self._engine.entropy(problem)

    def _count_marginals(self) -> Floats:
        if self.n_outcomes <= 2**10 or self._estimates or not self._has_tables:
            return super()._count_marginals()
        self._possible(self._log_normalizer)
        return self._engine.count_marginals(self._problem(self.log_beliefs))


def check_method(method: str, factors: Sequence[RuleFactor]) -> None:
    """Refuse a method of `RuleJoint` that does not exist, or not for these rules."""
    if method not in _METHODS:
        raise InputError(f"RuleJoint: method must be one of {', '.join(_METHODS)}; found {method!r}.")
    odd = [factor.text for factor in factors if not factor.is_product]
    if method == "inclusion-exclusion" and odd:
        raise InputError(f"RuleJoint: inclusion-exclusion needs rules that are disjunctions, not {odd[0]!r}.")


def culprits(
    cards: tuple[int, ...], log_beliefs: Sequence[Floats], factors: Sequence[RuleFactor]
) -> list[int]:
    """Return positions of rules that leave one row (1, k_j) no outcome, none of which could be spared.

    Rule after rule is left out; those without which there would be an outcome stay.
    """
    supports = [np.where(np.isneginf(belief), -np.inf, 0.0) for belief in log_beliefs]
    kept = [k for k, factor in enumerate(factors) if factor.p in (0.0, 1.0)]
    if any(np.isneginf(support).all() for support in supports):
        return []
    for k in list(kept):
        rest = [other for other in kept if other != k]
        if _impossible(cards, supports, [factors[other] for other in rest]):
            kept = rest
    return kept


def _contradiction_text(
    cards: tuple[int, ...], log_beliefs: Sequence[Floats], factors: Sequence[RuleFactor], row: int, n_bad: int
) -> str:
    """Return a message with the rules that contradict each other given the log-beliefs (1, k_j) of a row."""
    rules = culprits(cards, log_beliefs, factors)
    more = f" ({n_bad - 1} more rows have none either)" if n_bad > 1 else ""
    if not rules:
        return (
            f"Row {row} has no possible outcome{more}: a class variable has no category of positive belief."
        )
    excluded = any(np.isneginf(belief).any() for belief in log_beliefs)
    given = " given the categories that the beliefs exclude" if excluded else ""
    problem = "these rules contradict each other" if len(rules) > 1 else "this rule cannot be satisfied"
    return (
        f"Row {row} has no possible outcome{more}: {problem}{given}:{_rule_lines(factors, rules)}\n"
        "Give one of them a probability between 0 and 1, or drop it."
    )


def _rule_lines(factors: Sequence[RuleFactor], rules: Sequence[int]) -> str:
    """Return some of the rules, by position, for a message: a line each."""
    return "".join(f"\n  - {factors[k].text} (p = {factors[k].own_p:g})" for k in rules)


def _impossible(cards: tuple[int, ...], supports: Sequence[Floats], factors: Sequence[RuleFactor]) -> bool:
    _, log_weight, proven = best_outcomes(cards, tuple(factors), supports, 1, _NODES)
    return bool(np.isneginf(log_weight[0, 0]) and proven[0])


def _validate(
    cards: tuple[int, ...], beliefs: tuple[Floats, ...], factors: Sequence[RuleFactor], method: str
) -> None:
    check_method(method, factors)
    n = len(beliefs[0]) if beliefs else 0
    for j, belief in enumerate(beliefs):
        if belief.shape != (n, cards[j]) or np.isnan(belief).any() or np.isposinf(belief).any():
            raise InputError(
                f"RuleJoint: the log-beliefs of variable {j} must be numbers or -inf of shape"
                f" ({n}, {cards[j]}), found shape {belief.shape}.",
                variable=j,
            )
    for factor in factors:
        known = all(0 <= v < len(cards) for v in factor.scope)
        if not known or factor.cards != tuple(cards[v] for v in factor.scope) or len(beliefs) != len(cards):
            raise InputError(
                f"RuleJoint: the rule {factor.text!r} over variables {factor.scope} does not fit the"
                f" cards {cards}."
            )


def _sample_in_turn(joint: JointDistribution, size: int, rng: np.random.Generator) -> Codes:
    """Draw (size, n, m): each variable given those before; equal prefixes share one pass."""
    n, m = len(joint), joint.n_variables
    rows = np.tile(np.arange(n), size)
    codes = np.full((size * n, m), UNKNOWN)
    for j in range(m):
        prefixes, number = np.unique(np.column_stack([rows, codes[:, :j]]), axis=0, return_inverse=True)
        known = np.full((len(prefixes), m), UNKNOWN)
        known[:, :j] = prefixes[:, 1:]
        given, _ = joint[prefixes[:, 0]]._condition(known)
        cumulative = np.cumsum(given.marginals()[j], axis=1)[number.ravel()]
        threshold = rng.random(len(codes)) * cumulative[:, -1]
        codes[:, j] = (cumulative[:, :-1] <= threshold[:, None]).sum(axis=1)
    return codes.reshape(size, n, m)


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Projection(JointDistribution):
    """The distribution of some variables of another one.

    Parameters
    ----------
    whole : JointDistribution
    variables : tuple of int
        Its variables that are kept, in this order.
    search : Search
        Budget of the search for the most probable outcomes where there are too many to list.
    """

    whole: JointDistribution
    variables: tuple[int, ...]
    search: Search = field(default_factory=Search)

    @property
    def cards(self) -> tuple[int, ...]:  # type: ignore[override]
        """Cardinalities of the variables."""
        return tuple(self.whole.cards[v] for v in self.variables)

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`."""
        return self.whole.tolerance

    def __len__(self) -> int:
        return len(self.whole)

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        return replace(self, whole=self.whole._take(rows))

    def _embed(self, codes: Codes) -> Codes:
        full = np.full((*codes.shape[:-1], self.whole.n_variables), UNKNOWN)
        full[..., list(self.variables)] = codes
        return full

    def _log_prob(self, codes: Codes) -> Floats:
        return self.whole._log_prob(self._embed(codes))

    def _bound(self, codes: Codes) -> Floats:
        return np.full(codes.shape[:2], np.inf) if self.tolerance else self._log_prob(codes)

    def _flat_marginals(self) -> Floats:
        marginals = self.whole.marginals()
        return np.concatenate([marginals[v] for v in self.variables], axis=1)

    def _top_k(self, k: int) -> Ranking:
        if self.n_outcomes <= ENUMERATION_LIMIT:
            found = self.to_atoms().top_k(k)
            return found if not self.tolerance else found._replace(proven=np.zeros(len(self), bool))
        certainty = [marginal.max(axis=1).mean() for marginal in self.marginals()]
        order = [int(v) for v in np.argsort(certainty)[::-1]]  # the surest first: the bound then falls late

        def expand(
            rows: npt.NDArray[np.intp], codes: Codes, variables: npt.NDArray[np.intp], bounds: Floats
        ) -> Floats:
            card = self.cards[variables[0]]
            children = np.repeat(codes[:, None], card, axis=1)
            children[np.arange(len(codes)), :, variables] = np.arange(card)
            chosen = self._take(np.repeat(rows, card))
            return chosen._log_prob(children.reshape(1, len(chosen), -1))[0].reshape(-1, card)

        found = best_first(len(self), self.cards, order, expand, k, self.search, dive=max(k, 4))
        return found if not self.tolerance else found._replace(proven=np.zeros(len(self), bool))

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        return self.whole._sample(size, rng)[..., list(self.variables)]

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        given, log_evidence = self.whole._condition(self._embed(codes))
        return replace(self, whole=given), log_evidence

    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        return replace(self, variables=tuple(self.variables[v] for v in variables))
