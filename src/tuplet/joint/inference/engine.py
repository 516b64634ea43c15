"""How a product of factors is queried: frozen settings objects, of which `Exact` is the default."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from tuplet.core.exceptions import InputError, IntractableError
from tuplet.core.limits import PASS_CELLS, TABLE_CELLS, rows_per_block
from tuplet.core.typing import Codes, Floats
from tuplet.joint.inference import eliminate
from tuplet.joint.inference.eliminate import Forward, Scratch, conditional
from tuplet.joint.inference.factor import Factor, Problem, require_possible
from tuplet.joint.inference.plan import Plan, Step, make_plan

_KEPT_TABLES = 8
"""Tables of the largest size that one row may keep; most queries keep the tables of all steps."""

_Complex = npt.NDArray[np.complex128]


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

    def converged(self, problem: Problem) -> npt.NDArray[np.bool_]:
        """Rows (n,) whose sums can be relied on."""
        return np.ones(problem.n, dtype=bool)


@dataclass(frozen=True)
class Exact(Engine):
    """Variable elimination along a min-fill order.

    Parameters
    ----------
    max_table : int
        Largest table, in cells of one row, that may be built, and an eighth of all that may be kept; beyond
        it a query raises `IntractableError`.
    chunk_cells : int
        Cells of the tables of one chunk of rows; bounds the memory of a query to a small multiple of it.
    """

    max_table: int = TABLE_CELLS
    chunk_cells: int = PASS_CELLS

    tolerance = 0.0

    def __post_init__(self) -> None:
        if self.max_table < 1 or self.chunk_cells < 1:
            raise InputError(
                f"Exact: max_table and chunk_cells must be positive, found {self.max_table} and"
                f" {self.chunk_cells}."
            )

    def n_cells(self, problem: Problem) -> int:
        """Cells of all tables of one row."""
        tables = problem.tabulated
        return sum(make_plan(tables.cards, tables.scopes, frozenset()).sizes)

    def log_partition(self, problem: Problem) -> Floats:
        """See `Engine.log_partition`; minus infinity where the factors of a row contradict each other."""
        problem = problem.tabulated
        answer = np.empty(problem.n)
        plan = self.plan(problem, "summing over all outcomes")
        for rows, scratch in self._chunks(plan, problem.n, keep=False):
            answer[rows] = eliminate.sum_out(plan, problem.rows(rows), scratch).log_value
        return answer

    def sum_hidden(self, problem: Problem) -> list[Factor]:
        """Factors of the visible variables whose product is that of the problem, hidden ones summed out."""
        plan = self._plan(problem, hidden_first=True)
        plan = replace(plan, steps=plan.steps[: len(problem.hidden)])
        self._require_small(plan, "summing out hidden variables")
        answers: dict[tuple[int, ...], Floats] = {}
        for rows, scratch in self._chunks(plan, problem.n, keep=False):
            for factor in eliminate.sum_hidden(plan, problem.rows(rows), scratch):
                shape = (*factor.log_table.shape[:-1], problem.n)
                answers.setdefault(factor.scope, np.zeros(shape))[..., rows] += factor.log_table
        return [Factor(scope, table) for scope, table in answers.items()]

    def maximum(self, problem: Problem) -> Floats:
        """Log of the largest weight of a visible outcome, (n,)."""
        problem = problem.tabulated
        answer = np.empty(problem.n)
        plan = self.plan(problem, "the mode", maximum=True)
        for rows, scratch in self._chunks(plan, problem.n, keep=False):
            answer[rows] = eliminate.maximise(plan, problem.rows(rows), scratch).log_value
        return answer

    def marginals(self, problem: Problem) -> tuple[Floats, Floats]:
        """See `Engine.marginals`."""
        offsets = np.concatenate([[0], np.cumsum(problem.cards[: problem.n_visible])])
        if problem.is_product:
            return _normalised(problem, offsets)
        flat = np.empty((offsets[-1], problem.n))

        def visit(step: Step, table: Floats, rows: slice) -> None:
            v = step.variable
            if v < problem.n_visible:
                marginal = table.reshape(len(table), -1, table.shape[-1]).sum(axis=1)
                flat[offsets[v] : offsets[v + 1], rows] = marginal

        log_partition = self._visit(problem, "marginals", visit)
        return np.ascontiguousarray(np.clip(flat, 0.0, 1.0).T), log_partition

    def factor_marginals(self, problem: Problem) -> list[Floats]:
        """Posterior of every cell of every factor of the `tabulated` problem, each (*cards of the scope, n).

        It is the gradient of `log_partition` with respect to the factors' log-tables.
        """
        problem = problem.tabulated
        plan = self.plan(problem, "factor marginals", keep=True)
        answers = [np.ones((*factor.log_table.shape[:-1], problem.n)) for factor in problem.factors]
        wanted: dict[int, list[int]] = {}
        for position, i in enumerate(plan.factor_step):
            wanted.setdefault(i, []).append(position)

        def visit(step: Step, table: Floats, rows: slice) -> None:
            for position in wanted.get(plan.step_of[step.variable], ()):
                scope = problem.factors[position].scope
                drop = tuple(axis for axis, v in enumerate(step.scope) if v not in scope)
                ordered = table.sum(axis=drop)  # axes in elimination order; put them back
                answers[position].transpose(plan.transposes[position])[..., rows] = ordered

        self._visit(problem, "factor marginals", visit)
        return answers

    def entropy(self, problem: Problem) -> Floats:
        """Entropy of all variables together, hidden ones included, (n,)."""
        answer = np.zeros(problem.n)

        def visit(step: Step, table: Floats, rows: slice) -> None:
            # H(clique) - H(separator) = H(variable | separator)
            answer[rows] += entr(table).reshape(-1, table.shape[-1]).sum(axis=0)
            answer[rows] -= entr(table.sum(axis=0)).reshape(-1, table.shape[-1]).sum(axis=0)

        self._visit(problem, "entropy", visit)
        return np.maximum(answer, 0.0)

    def count_marginals(self, problem: Problem) -> Floats:
        """P(Y_j = 1, |Y| = s) of the visible variables, (n, m, m + 1)."""
        answer = np.empty((problem.n, problem.n_visible, problem.n_visible + 1))
        for rows, plan, forward in self._forward(problem, "count marginals"):
            n = rows.stop - rows.start
            answer[rows] = count_marginals(plan, forward, problem.n_visible, n)
        return answer

    def top_k(self, problem: Problem, k: int) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
        """See `Engine.top_k`."""
        problem = problem.tabulated
        plan = self.plan(problem, "the mode", maximum=True, keep=True)
        m = problem.n_visible
        codes = np.empty((problem.n, k, m), dtype=np.intp)
        log_weight = np.empty((problem.n, k))
        for rows, scratch in self._chunks(plan, problem.n):
            part = problem.rows(rows)
            forward = eliminate.maximise(plan, part, scratch)
            best, regret = eliminate.read_best(plan, forward, m, k, part.n)
            codes[rows] = best.transpose(1, 0, 2)
            log_weight[rows] = (forward.log_value + regret).T
        return codes, log_weight, np.ones(problem.n, bool)

    def mode_and_lead(self, problem: Problem) -> tuple[Codes, Floats, Floats]:
        """Best outcomes (n, m), their log-weights (n,), and how much smaller the second largest are, (n,)."""
        problem = problem.tabulated
        plan = self.plan(problem, "the mode", maximum=True, keep=True)
        codes = np.empty((problem.n, problem.n_visible), dtype=np.intp)
        log_weight, lead = np.empty((2, problem.n))
        for rows, scratch in self._chunks(plan, problem.n):
            part = problem.rows(rows)
            forward = eliminate.maximise(plan, part, scratch)
            best, lead[rows] = eliminate.read_mode(plan, forward, problem.n_visible, part.n, with_lead=True)
            codes[rows], log_weight[rows] = best[0], forward.log_value
        return codes, log_weight, lead

    def sample(self, problem: Problem, size: int, rng: np.random.Generator) -> Codes:
        """See `Engine.sample`."""
        codes = np.empty((size, problem.n, problem.n_visible), dtype=np.intp)
        for rows, plan, forward in self._forward(problem, "sampling"):
            n = rows.stop - rows.start
            step = rows_per_block(n, self.chunk_cells)
            for start in range(0, size, step):
                part = min(step, size - start)
                drawn = eliminate.sample(plan, forward, part, n, rng)
                codes[start : start + part, rows] = drawn[..., : problem.n_visible]
        return codes

    # -- passes over chunks of rows -----------------------------------------------------------------------

    def _forward(self, problem: Problem, query: str) -> Iterator[tuple[slice, Plan, eliminate.Forward]]:
        """Yield the sum-product passes of all rows; contradictions are an error."""
        problem = problem.tabulated
        plan = self.plan(problem, query, keep=True)
        for rows, scratch in self._chunks(plan, problem.n):
            forward = eliminate.sum_out(plan, problem.rows(rows), scratch)
            require_possible(forward.log_value, rows.start)
            yield rows, plan, forward

    def _visit(self, problem: Problem, query: str, visit: Callable[[Step, Floats, slice], None]) -> Floats:
        """Visit the posterior tables of all cliques, chunk by chunk; return the log-partition (n,)."""
        log_partition = np.empty(problem.n)
        for rows, plan, forward in self._forward(problem, query):
            log_partition[rows] = forward.log_value
            for step, table in eliminate.beliefs(plan, forward):
                visit(step, table, rows)
        return log_partition

    def plan(self, problem: Problem, query: str, *, maximum: bool = False, keep: bool = False) -> Plan:
        """Plan for a problem, or `IntractableError` if a table, or all that are kept, would be too large."""
        plan = self._plan(problem, hidden_first=maximum)
        self._require_small(plan, query, keep=keep)
        return plan

    def _plan(self, problem: Problem, *, hidden_first: bool) -> Plan:
        first = frozenset(problem.hidden) if hidden_first else frozenset()
        return make_plan(problem.cards, problem.scopes, first)

    def _require_small(self, plan: Plan, query: str, *, keep: bool = False) -> None:
        sizes = plan.sizes
        largest = max(sizes, default=0)
        if largest > self.max_table or (keep and sum(sizes) > _KEPT_TABLES * self.max_table):
            variable = plan.steps[sizes.index(largest)].variable
            raise IntractableError(
                f"FactorGraph: {query} by eliminating variable {variable} needs a table of {largest:,}"
                f" cells, and {sum(sizes):,} in all (max_table={self.max_table:,}). Use"
                " engine=BeliefPropagation(), or raise Exact(max_table=...).",
                variable=variable,
            )

    def _chunks(self, plan: Plan, n: int, *, keep: bool = True) -> Iterator[tuple[slice, Scratch]]:
        cells = sum(plan.sizes) if keep else max(plan.sizes, default=1)
        size = min(n, rows_per_block(cells, self.chunk_cells))
        scratch = Scratch(plan, size, keep)
        return ((slice(start, min(start + size, n)), scratch) for start in range(0, n, max(1, size)))


# -- numbers of positive labels ----------------------------------------------------------------------------


def count_marginals(plan: Plan, forward: Forward, n_visible: int, n: int) -> Floats:
    """P(Y_j = 1, |Y| = s) of the first `n_visible` variables, shape (n, n_visible, n_visible + 1)."""
    size = n_visible + 1
    roots = np.exp(2j * np.pi * np.arange(size // 2 + 1) / size)  # the others are their conjugates
    spectrum = np.empty((len(roots), n_visible, n), dtype=complex)
    conditionals = [conditional(forward, i) for i in range(len(plan.steps))]
    for position, root in enumerate(roots):
        spectrum[position] = _tilted_marginals(plan, conditionals, n_visible, root)
    # sum over s of P(., |Y| = s) root^s is the conjugate of numpy's forward transform.
    counts = np.fft.irfft(np.conj(spectrum), n=size, axis=0)
    return np.clip(counts.transpose(2, 1, 0), 0.0, 1.0)


def _tilted_marginals(plan: Plan, conditionals: list[Floats], n_visible: int, root: complex) -> _Complex:
    """E[root^|Y| 1(Y_j = 1)] for every visible j, (n_visible, b)."""
    inner = []  # per step: conditional times tilt, over the clique
    messages: list[_Complex] = []  # per step: expectation of the tilts at and below it, given the separator
    for i, step in enumerate(plan.steps):
        table = _tilt(conditionals[i], step, n_visible, root)
        inner.append(table)
        for child in step.children:
            table = table * _expand(messages[child], plan.steps[child], step, plan)
        messages.append(table.sum(axis=0))
    return _backward(plan, inner, messages, n_visible)


def _tilt(table: Floats, step: Step, n_visible: int, root: complex) -> _Complex:
    if step.variable >= n_visible or table.shape[0] < 2:
        return table.astype(complex)
    weights = np.array([1.0, root]).reshape(2, *([1] * (table.ndim - 1)))
    return table * weights


def _backward(plan: Plan, inner: list[_Complex], messages: list[_Complex], n_visible: int) -> _Complex:
    # Per step: weight of all that is not at or below it, over the separator. For the last step of a connected
    # part of the graph that is the product of the other parts.
    roots = [i for i, step in enumerate(plan.steps) if step.parent < 0]
    outside = dict(zip(roots, _all_but_one([messages[i] for i in roots]), strict=True))
    rows: list[_Complex] = [np.zeros(1, dtype=complex)] * n_visible
    for i in reversed(range(len(plan.steps))):
        step = plan.steps[i]
        table = inner[i] * outside.pop(i)
        arriving = [_expand(messages[child], plan.steps[child], step, plan) for child in step.children]
        for child, rest in zip(step.children, _all_but_one(arriving), strict=True):
            drop = plan.steps[child].parent_drop
            product = table * rest
            outside[child] = product.sum(axis=drop) if drop else product
        if step.variable < n_visible and len(table) == 2:
            whole = math.prod(arriving, start=table)
            rows[step.variable] = whole[1].reshape(-1, whole.shape[-1]).sum(axis=0)
    return np.stack(np.broadcast_arrays(*rows))


def _all_but_one(factors: list[_Complex]) -> list[_Complex | complex]:
    """Return for every factor the product of the others, without dividing (a factor may be zero)."""
    before: list[_Complex | complex] = [1.0 + 0j]
    after: list[_Complex | complex] = [1.0 + 0j]
    for factor in factors[:-1]:
        before.append(before[-1] * factor)
    for factor in factors[:0:-1]:
        after.append(after[-1] * factor)
    return [left * right for left, right in zip(before, reversed(after), strict=True)] if factors else []


def _expand(message: _Complex, child: Step, step: Step, plan: Plan) -> _Complex:
    shape = tuple(plan.cards[v] if v in child.separator else 1 for v in step.scope)
    return message.reshape(*shape, message.shape[-1])


def _normalised(problem: Problem, offsets: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Marginals (n, sum of k) and log-partition (n,) of a problem that `is_product`: each table by itself."""
    flat, log_partition = np.empty((problem.n, offsets[-1])), np.zeros(problem.n)
    for factor in problem.factors:
        (v,), table = factor.scope, factor.log_table
        top = np.maximum.reduce(list(table))
        with np.errstate(invalid="ignore"):  # rows that have no outcome are an error below
            weights = np.exp(table - top)
        total = np.add.reduce(list(weights))
        flat[:, offsets[v] : offsets[v + 1]] = (weights / total).T
        log_partition += top + np.log(total)
    return flat, require_possible(log_partition)
