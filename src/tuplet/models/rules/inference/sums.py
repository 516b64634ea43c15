"""Sums over all outcomes of beliefs times rules, by whatever exact method is cheapest.

| method | cells | numbers |
|---|---|---|
| enumeration | all outcomes | logarithms, never negative |
| elimination | tables over class variables | never negative |
| signed | class variables and one hidden variable per rule | signed, checked |
| inclusion-exclusion | subsets of rules times categories | signed, checked |

Signed numbers cancel. Rows that may have lost too many digits are summed again, in extended precision and,
where that does not help, with numbers that are never negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from tuplet.core.exceptions import IntractableError
from tuplet.core.limits import BLOCK_CELLS, FEW_OUTCOMES
from tuplet.core.typing import Floats
from tuplet.joint.inference.engine import Exact
from tuplet.joint.inference.factor import Factor, Problem, noisy_or
from tuplet.joint.inference.plan import make_plan
from tuplet.models.rules.inference.factor import RuleFactor
from tuplet.models.rules.inference.signed import Signed

ExactMethod = Literal["enumeration", "elimination", "signed", "inclusion-exclusion"]

_CHUNK = BLOCK_CELLS // 2
"""Cells of an enumeration that are worked on at once."""

_SIGNED_COST = 3.0
"""Cells of a method without signs that are as good as one with signs, which may have to be repeated."""

_SMALL = FEW_OUTCOMES
"""Cells of a rule's table up to which it is one; longer rules run along hidden variables."""

_LOST = 1e-10
"""Estimated error from which on a row is summed again; the error itself is ten times smaller, or less."""

_HOPELESS = 1e-7
"""Error from which on extended precision, some three digits more, is not tried."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Log-partition and marginals of beliefs times rules.

    Parameters
    ----------
    cards : tuple of int
    factors : tuple of RuleFactor
    method : str, optional
        One of the table above; by default the cheapest.
    max_cells : int
        Cells of one row that an exact method may need in all.
    """

    cards: tuple[int, ...]
    factors: tuple[RuleFactor, ...]
    method: ExactMethod | None = None
    max_cells: int = 2**23

    @cached_property
    def costs(self) -> dict[ExactMethod, int]:
        """Cells of one row that each applicable method needs in all."""
        costs: dict[ExactMethod, int] = {"enumeration": math.prod(self.cards)}
        if costs["enumeration"] <= 64:
            return costs  # nothing is cheaper, and plans take time
        costs["elimination"] = table_cells(self.cards, self.factors)
        products = [factor for factor in self.factors if factor.is_product]
        if any(len(factor.scope) > 2 for factor in products):
            costs["signed"] = self._signed.n_cells
        if len(products) == len(self.factors) and len(products) <= 24:
            costs["inclusion-exclusion"] = _InclusionExclusion(self.cards, self.factors).n_cells
        return costs

    @cached_property
    def chosen(self) -> ExactMethod | None:
        """The method that is used, or None if none fits into `max_cells`."""
        if self.method is not None:
            return self.method
        weighted: dict[ExactMethod, float] = {
            name: cells * (_SIGNED_COST if name in ("signed", "inclusion-exclusion") else 1.0)
            for name, cells in self.costs.items()
            if cells <= self.max_cells
        }
        return min(weighted, key=lambda name: weighted[name]) if weighted else None  # type: ignore[index]

    @cached_property
    def _signed(self) -> Signed:
        return Signed(self.cards, self.factors)

    @cached_property
    def _exact(self) -> Exact:
        return Exact(max_table=2**62, chunk_cells=2**21)

    def marginals(self, log_beliefs: Sequence[Floats]) -> tuple[list[Floats], Floats]:
        """Marginals (n, k_j) and log of the sum of all weights (n,) for log-beliefs (n, k_j).

        Where a row has no outcome of positive weight, the logarithm is minus infinity, and the marginals mean
        nothing.
        """
        if not len(log_beliefs[0]):
            return [np.empty((0, card)) for card in self.cards], np.empty(0)
        self._require_room()
        if self.chosen == "enumeration":
            return Enumeration(self.cards, self.factors).marginals(log_beliefs)
        if self.chosen == "elimination":
            return self._never_negative(log_beliefs)
        return self._with_signs(log_beliefs)

    def log_partition(self, log_beliefs: Sequence[Floats]) -> Floats:
        """Log of the sum of all weights (n,) for log-beliefs (n, k_j)."""
        if self.chosen == "elimination" and len(log_beliefs[0]):
            self._require_room()
            return self._exact.log_partition(rule_problem(self.cards, log_beliefs, self.factors))
        return self.marginals(log_beliefs)[1]

    def _never_negative(self, log_beliefs: Sequence[Floats]) -> tuple[list[Floats], Floats]:
        problem = rule_problem(self.cards, log_beliefs, self.factors)
        log_z = self._exact.log_partition(problem)
        possible = log_z > -np.inf  # the marginals of other rows are an error of the engine
        flat = np.full((problem.n, sum(self.cards)), 1.0)
        if possible.all():
            flat, log_z = self._exact.marginals(problem)
        elif possible.any():
            flat[possible] = self._exact.marginals(problem.rows(np.flatnonzero(possible)))[0]
        return np.split(flat, np.cumsum(self.cards)[:-1], axis=1), log_z

    def _with_signs(self, log_beliefs: Sequence[Floats]) -> tuple[list[Floats], Floats]:
        marginals, log_z, error = self._attempt(log_beliefs, np.float64)
        bad = np.flatnonzero(error > _LOST)
        if len(bad) and self.chosen == "signed":
            again = bad[error[bad] <= _HOPELESS]
            if len(again):
                part, log_part, error_part = self._attempt([b[again] for b in log_beliefs], np.longdouble)
                _put(marginals, log_z, again, part, log_part)
                error[again] = error_part
                bad = np.flatnonzero(error > _LOST)
        if len(bad):
            self._require_fallback()
            _put(marginals, log_z, bad, *self._never_negative([b[bad] for b in log_beliefs]))
        return marginals, log_z

    def _require_room(self) -> None:
        needed = min(self.costs.values()) if self.chosen is None else self.costs.get(self.chosen, 0)
        if needed > self.max_cells:
            raise IntractableError(
                f"RuleJoint: exact sums by {self.chosen or 'any method'} need {needed:,} cells for a row"
                f" (max_cells={self.max_cells:,}); raise max_cells, or use method='propagation'."
            )

    def _require_fallback(self) -> None:
        cells = self.costs.get("elimination", 0)
        if cells > 4 * self.max_cells:
            raise IntractableError(
                "RuleJoint: the beliefs break the rules so surely that digits cancel, and sums without"
                f" cancellation need {cells:,} cells for a row (max_cells={self.max_cells:,}); raise"
                " max_cells, soften hard rules, or use method='propagation'."
            )

    def _attempt(
        self, log_beliefs: Sequence[Floats], dtype: npt.DTypeLike
    ) -> tuple[list[Floats], Floats, Floats]:
        """Sum with signs: marginals, log-partition, and the estimated error of both."""
        method = self._signed
        if self.chosen == "inclusion-exclusion":
            method = _InclusionExclusion(self.cards, self.factors)  # type: ignore[assignment]
        # Beliefs that add up to one keep products over thousands of class variables from overflowing.
        scales = [logsumexp(belief, axis=1) for belief in log_beliefs]
        safe = [np.where(np.isneginf(scale), 0.0, scale) for scale in scales]
        beliefs = [
            np.ascontiguousarray(np.exp(belief - scale[:, None]).T, dtype=dtype)
            for belief, scale in zip(log_beliefs, safe, strict=True)
        ]
        with np.errstate(all="ignore"):
            shares, log_z, error = method.marginals(beliefs)
            totals = [share.sum(axis=0) for share in shares]
            error[~(np.isfinite(log_z) & np.isfinite(error))] = np.inf
            marginals = [
                np.clip((share / total).T, 0.0, 1.0).astype(float)
                for share, total in zip(shares, totals, strict=True)
            ]
            return marginals, log_z.astype(float) + np.sum(safe, axis=0), error


def table_cells(cards: tuple[int, ...], factors: Sequence[RuleFactor]) -> int:
    """Cells of one row of all tables of `rule_problem` (a Python int: it may be huge)."""
    structure = rule_problem(cards, [np.zeros((1, card)) for card in cards], factors)
    return sum(make_plan(structure.cards, structure.scopes).sizes)


def rule_problem(
    cards: tuple[int, ...], log_beliefs: Sequence[Floats], factors: Sequence[RuleFactor]
) -> Problem:
    """Beliefs times rules as tables that are never negative; long rules run along hidden variables."""
    tables = [Factor((j,), np.asarray(belief).T) for j, belief in enumerate(log_beliefs)]
    n_variables = len(cards)
    for factor in factors:
        if factor.q is None or factor.n_cells <= _SMALL:
            tables.append(Factor(factor.scope, factor.log_table()[..., None]))
        else:
            tables += noisy_or(factor.scope, factor.q, factor.p, n_variables)
            n_variables += len(factor.scope)
    hidden = (2,) * (n_variables - len(cards))
    return Problem((*cards, *hidden), tuple(tables), len(log_beliefs[0]), len(cards))


@dataclass(frozen=True, eq=False)
class Enumeration:
    """Every outcome with its weight, in log space: nothing can get lost.

    Parameters
    ----------
    cards : tuple of int
    factors : tuple of RuleFactor
    """

    cards: tuple[int, ...]
    factors: tuple[RuleFactor, ...]

    @cached_property
    def _log_rules(self) -> Floats:
        return _log_weight_table(self.cards, self.factors)

    def log_table(self, log_beliefs: Sequence[Floats]) -> Floats:
        """Log-weights (n, L) of all outcomes for log-beliefs (n, k_j)."""
        table = np.zeros((len(log_beliefs[0]), 1))
        for belief in log_beliefs:
            table = (table[:, :, None] + belief[:, None, :]).reshape(len(belief), -1)
        table += self._log_rules
        return table

    def marginals(self, log_beliefs: Sequence[Floats]) -> tuple[list[Floats], Floats]:
        """Marginals (n, k_j) of all variables and log of the sum of all weights (n,)."""
        n = len(log_beliefs[0])
        answers, log_z = [np.empty_like(belief) for belief in log_beliefs], np.empty(n)
        for rows in _chunks(n, len(self._log_rules)):
            table = self.log_table([belief[rows] for belief in log_beliefs])
            peak = table.max(axis=1)
            peak = np.where(np.isneginf(peak), 0.0, peak)
            weights = np.exp(table - peak[:, None]).reshape(-1, *self.cards)
            total = weights.reshape(len(weights), -1).sum(axis=1)
            with np.errstate(divide="ignore"):
                log_z[rows] = peak + np.log(total)
            safe = np.where(total == 0.0, 1.0, total)[:, None]
            for j, answer in enumerate(answers):
                others = tuple(a + 1 for a in range(len(self.cards)) if a != j)
                answer[rows] = weights.sum(axis=others) / safe
        return answers, log_z


@dataclass(frozen=True, eq=False)
class _InclusionExclusion:
    """Sum over subsets of the rules, for few noisy-or rules over many class variables.

    prod_k (p_k + (1 - 2 p_k) Q_k) is a sum over the 2^K subsets S of prod_{k not in S} p_k prod_{k in S}
    (1 - 2 p_k) Q_k, and for a subset the class variables are independent: matrix products do the work.

    Parameters
    ----------
    cards : tuple of int
    factors : tuple of RuleFactor
        All of them products.
    """

    cards: tuple[int, ...]
    factors: tuple[RuleFactor, ...]

    @property
    def n_cells(self) -> int:
        """Cells of all tables of one row."""
        return 2 ** len(self.factors) * sum(self.cards)

    @cached_property
    def _tables(self) -> tuple[Floats, list[Floats]]:
        """Weights (2^K,) of the subsets, and of each variable the product of inhibitions (k_j, 2^K)."""
        weights = np.ones(1)
        inhibitions = [np.ones((card, 1)) for card in self.cards]
        for factor in self.factors:
            weights = np.concatenate([weights * factor.p, weights * (1.0 - 2.0 * factor.p)])
            assert factor.q is not None
            q = dict(zip(factor.scope, factor.q, strict=True))
            for j, table in enumerate(inhibitions):
                inhibitions[j] = np.hstack([table, table * q[j][:, None] if j in q else table])
        return weights, inhibitions

    def marginals(self, beliefs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray, Floats]:
        """Share of the sum that each value of each class variable has, for beliefs (k_j, n).

        Returns
        -------
        shares (k_j, n), logarithms of the sums (n,) and an estimate (n,) of the relative error of both
        """
        n = beliefs[0].shape[1]
        answers = [np.empty_like(belief) for belief in beliefs]
        z, size = np.empty(n, dtype=beliefs[0].dtype), np.empty(n)
        for rows in _chunks(n, 2 ** len(self.factors) * len(self.cards)):
            part = [belief[:, rows] for belief in beliefs]
            size[rows] = self._chunk(part, [a[:, rows] for a in answers], z[rows])
        # Every summand is a product of so many numbers, each rounded once.
        n_roundings = len(self.cards) + len(self.factors)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = (size / np.abs(z)).astype(float) * n_roundings * np.finfo(z.dtype).eps
            return answers, np.log(z), error

    def _chunk(self, beliefs: list[np.ndarray], answers: list[np.ndarray], z: np.ndarray) -> np.ndarray:
        """Fill in shares and sums; return the sums of absolute values."""
        weights, inhibitions = self._tables
        factors = [belief.T @ table for belief, table in zip(beliefs, inhibitions, strict=True)]  # (n, 2^K)
        after = [np.ones_like(factors[0])]
        for factor in factors[:0:-1]:
            after.append(after[-1] * factor)
        before = np.broadcast_to(weights, factors[0].shape)
        for j, factor in enumerate(factors):
            rest = before * after.pop()
            answers[j][:] = (rest @ inhibitions[j].T).T * beliefs[j]
            before = before * factor
        z[:] = before.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            for answer in answers:
                answer /= z
        return np.abs(before).sum(axis=1).astype(float)


def _put(
    marginals: list[Floats], log_z: Floats, rows: npt.NDArray[np.intp], part: list[Floats], log_part: Floats
) -> None:
    for target, source in zip(marginals, part, strict=True):
        target[rows] = source
    log_z[rows] = log_part


def _log_weight_table(cards: tuple[int, ...], factors: Sequence[RuleFactor]) -> Floats:
    """Log-weight that the rules give to every outcome, the last variable running fastest, (L,)."""
    table = np.zeros(cards)
    for factor in factors:
        table += factor.log_table().reshape([c if v in factor.scope else 1 for v, c in enumerate(cards)])
    return table.ravel()


def _chunks(n: int, cells: int) -> Iterator[slice]:
    step = max(1, _CHUNK // max(1, cells))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
