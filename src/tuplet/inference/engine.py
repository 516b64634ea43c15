"""How a product of factors is queried: frozen settings objects, of which `Exact` is the default."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from tuplet.exceptions import IntractableError
from tuplet.inference import eliminate
from tuplet.inference.counts import count_marginals
from tuplet.inference.eliminate import Scratch
from tuplet.inference.factor import Problem
from tuplet.inference.plan import Plan, Step, make_plan
from tuplet.typing import Codes, Floats

__all__ = ["Engine", "Exact"]


class Engine(ABC):
    """Answers queries about a `Problem`; codes and log-weights cover the visible variables only."""

    tolerance: float

    @abstractmethod
    def log_partition(self, problem: Problem) -> Floats:
        """Log of the sum of all weights, (n,)."""

    @abstractmethod
    def marginals(self, problem: Problem) -> tuple[Floats, Floats]:
        """Marginals of the visible variables side by side, (n, sum of cards), and `log_partition`."""

    @abstractmethod
    def top_k(self, problem: Problem, k: int) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
        """Best outcomes (n, k, m), their log-weights (n, k) with hidden variables summed out, proofs (n,)."""

    @abstractmethod
    def sample(self, problem: Problem, size: int, rng: np.random.Generator) -> Codes:
        """Draws (size, n, m)."""


@dataclass(frozen=True)
class Exact(Engine):
    """Variable elimination along a min-fill order.

    Parameters
    ----------
    max_table : int
        Largest table, in cells of one row, that may be built; beyond it a query raises `IntractableError`.
    chunk_cells : int
        Cells of the tables of one chunk of rows; bounds the memory of a query to a small multiple of it.
    """

    max_table: int = 2**22
    chunk_cells: int = 2**20

    tolerance = 0.0

    def log_partition(self, problem: Problem) -> Floats:
        """See `Engine.log_partition`."""
        answer = np.empty(problem.n)
        plan = self.plan(problem, "summing over all outcomes")
        for rows, scratch in self._chunks(plan, problem.n):
            answer[rows] = eliminate.sum_out(plan, problem.rows(rows), scratch).log_value
        return answer

    def maximum(self, problem: Problem) -> Floats:
        """Log of the largest weight of a visible outcome, (n,)."""
        answer = np.empty(problem.n)
        plan = self.plan(problem, "the mode", maximum=True)
        for rows, scratch in self._chunks(plan, problem.n):
            answer[rows] = eliminate.maximise(plan, problem.rows(rows), scratch).log_value
        return answer

    def marginals(self, problem: Problem) -> tuple[Floats, Floats]:
        """See `Engine.marginals`."""
        plan = self.plan(problem, "marginals")
        offsets = np.concatenate([[0], np.cumsum(problem.cards[: problem.n_visible])])
        flat, log_partition = np.empty((offsets[-1], problem.n)), np.empty(problem.n)
        for rows, scratch in self._chunks(plan, problem.n):
            forward = eliminate.sum_out(plan, problem.rows(rows), scratch)
            log_partition[rows] = forward.log_value

            def visit(step: Step, table: Floats, rows: slice = rows) -> None:
                v = step.variable
                if v < problem.n_visible:
                    marginal = table.reshape(len(table), -1, table.shape[-1]).sum(axis=1)
                    flat[offsets[v] : offsets[v + 1], rows] = marginal

            eliminate.beliefs(plan, forward, visit)
        return np.ascontiguousarray(np.clip(flat, 0.0, 1.0).T), log_partition

    def factor_marginals(self, problem: Problem) -> list[Floats]:
        """Posterior of every cell of every factor, each (*cards of the scope, n).

        It is the gradient of `log_partition` with respect to the factors' log-tables.
        """
        plan = self.plan(problem, "factor marginals")
        answers = [np.ones((*factor.log_table.shape[:-1], problem.n)) for factor in problem.factors]
        wanted: dict[int, list[int]] = {}
        for position, i in enumerate(plan.factor_step):
            wanted.setdefault(i, []).append(position)
        for rows, scratch in self._chunks(plan, problem.n):
            forward = eliminate.sum_out(plan, problem.rows(rows), scratch)

            def visit(step: Step, table: Floats, rows: slice = rows) -> None:
                for position in wanted.get(plan.step_of[step.variable], ()):
                    scope = problem.factors[position].scope
                    drop = tuple(axis for axis, v in enumerate(step.scope) if v not in scope)
                    ordered = table.sum(axis=drop)  # axes in elimination order; put them back
                    answers[position].transpose(plan.transposes[position])[..., rows] = ordered

            eliminate.beliefs(plan, forward, visit)
        return answers

    def clique_marginals(self, problem: Problem) -> list[tuple[tuple[int, ...], Floats]]:
        """Calibrated posterior of every clique: scopes and tables (*cards of the scope, n)."""
        plan = self.plan(problem, "clique marginals")
        answers = [np.empty((*(problem.cards[v] for v in step.scope), problem.n)) for step in plan.steps]
        for rows, scratch in self._chunks(plan, problem.n):
            forward = eliminate.sum_out(plan, problem.rows(rows), scratch)

            def visit(step: Step, table: Floats, rows: slice = rows) -> None:
                answers[plan.step_of[step.variable]][..., rows] = table

            eliminate.beliefs(plan, forward, visit)
        return [(step.scope, table) for step, table in zip(plan.steps, answers, strict=True)]

    def entropy(self, problem: Problem) -> Floats:
        """Entropy of all variables together, hidden ones included, (n,)."""
        plan = self.plan(problem, "entropy")
        answer = np.zeros(problem.n)
        for rows, scratch in self._chunks(plan, problem.n):
            forward = eliminate.sum_out(plan, problem.rows(rows), scratch)

            def visit(step: Step, table: Floats, rows: slice = rows) -> None:
                # H(clique) - H(separator) = H(variable | separator)
                answer[rows] += entr(table).reshape(-1, table.shape[-1]).sum(axis=0)
                separator = table.sum(axis=0)
                answer[rows] -= entr(separator).reshape(-1, table.shape[-1]).sum(axis=0)

            eliminate.beliefs(plan, forward, visit)
        return np.maximum(answer, 0.0)

    def count_marginals(self, problem: Problem) -> Floats:
        """P(Y_j = 1, |Y| = s) of the visible variables, (n, m, m + 1)."""
        plan = self.plan(problem, "count marginals")
        answer = np.empty((problem.n, problem.n_visible, problem.n_visible + 1))
        for rows, scratch in self._chunks(plan, problem.n):
            part = problem.rows(rows)
            forward = eliminate.sum_out(plan, part, scratch)
            answer[rows] = count_marginals(plan, forward, problem.n_visible, part.n)
        return answer

    def top_k(self, problem: Problem, k: int) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
        """See `Engine.top_k`."""
        plan = self.plan(problem, "the mode", maximum=True)
        m = problem.n_visible
        codes = np.empty((problem.n, k, m), dtype=np.intp)
        log_weight = np.empty((problem.n, k))
        for rows, scratch in self._chunks(plan, problem.n):
            part = problem.rows(rows)
            forward = eliminate.maximise(plan, part, scratch)
            best, regret = eliminate.decode(plan, forward, m, k, part.n)
            codes[rows] = best.transpose(1, 0, 2)
            log_weight[rows] = (forward.log_value + regret).T
        return codes, log_weight, np.ones(problem.n, bool)

    def sample(self, problem: Problem, size: int, rng: np.random.Generator) -> Codes:
        """See `Engine.sample`."""
        plan = self.plan(problem, "sampling")
        codes = np.empty((size, problem.n, problem.n_visible), dtype=np.intp)
        for rows, scratch in self._chunks(plan, problem.n):
            part = problem.rows(rows)
            forward = eliminate.sum_out(plan, part, scratch)
            drawn = eliminate.sample(plan, forward, size, part.n, rng)
            codes[:, rows] = drawn[..., : problem.n_visible]
        return codes

    def plan(self, problem: Problem, query: str, *, maximum: bool = False) -> Plan:
        """Plan for a problem, or `IntractableError` if a table would be too large."""
        first = frozenset(problem.hidden) if maximum else frozenset()
        plan = make_plan(problem.cards, problem.scopes, first)
        sizes = plan.sizes
        largest = max(sizes, default=0)
        if largest > self.max_table:
            variable = plan.steps[sizes.index(largest)].variable
            raise IntractableError(
                f"FactorGraph: {query} by eliminating variable {variable} needs a table of {largest:,}"
                f" cells (max_table={self.max_table:,}). Use engine=BeliefPropagation(), or raise"
                " Exact(max_table=...).",
                variable=variable,
            )
        return plan

    def _chunks(self, plan: Plan, n: int) -> Iterator[tuple[slice, Scratch]]:
        size = min(n, max(1, self.chunk_cells // max(1, sum(plan.sizes))))
        scratch = Scratch(plan, size)
        return ((slice(start, min(start + size, n)), scratch) for start in range(0, n, max(1, size)))
