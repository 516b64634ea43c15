"""Sums over all outcomes with one binary hidden variable per noisy-or rule, whose weights may be negative.

f(y) = p (1 - Q(y)) + (1 - p) Q(y) = sum over b in {0, 1} of w_b prod_j q_j(y_j)^b with w = (p, 1 - 2p): a
hidden variable that is tied to the other variables one by one, so no table grows with the length of a rule,
and variables and rules are eliminated in whatever order is cheapest. On models of 30 labels and 30 rules that
needs some 1/30 of the cells that tables over the labels need.

The price is the sign: digits cancel where a rule is almost surely broken. The backward pass shows how much:
it computes how far every cell of every message moves the answer. (That the shares of a variable add up
to one is no test: both passes may lose the same digits.) Everything is in linear space, works for extended
numbers, and nothing is divided by a message, which may be zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from tuplet.core.exceptions import IntractableError
from tuplet.core.limits import BLOCK_CELLS, PASS_CELLS, TABLE_CELLS, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.inference.belief import BeliefPropagation
from tuplet.joint.inference.engine import Engine, Exact
from tuplet.joint.inference.factor import Factor, Problem, RuleFactor, evidence_factors
from tuplet.joint.inference.plan import Plan, Step, cheapest_plan

_LONG = 3
"""Variables from which on a product gets a hidden variable of its own."""

_SIGNED_COST = 3
"""Cells without signs that cost as much as one with signs, whose sums may have to be repeated."""

_LOST = 1e-10
"""Estimated error from which on a row is summed again; the error itself is ten times smaller, or less."""

_HOPELESS = 1e-7
"""Error from which on extended precision, some three digits more, is not tried."""


def choose_engine(problem: Problem, max_cells: int = 2 * TABLE_CELLS) -> Engine:
    """Choose how sums over rules are made.

    That is the exact engine with the fewest cells, and belief propagation, which estimates, where none of
    them fits into `max_cells` cells of one row.
    """
    exact = _exact(max_cells)
    cells = exact.n_cells(problem)
    if any(_has_bit(rule) for rule in problem.rules):
        signed = SignedElimination(exact)
        signed_cells = signed.n_cells(problem)
        if signed_cells <= max_cells and (_SIGNED_COST * signed_cells < cells or cells > max_cells):
            return signed
    return exact if cells <= max_cells else BeliefPropagation()


@dataclass(frozen=True)
class SignedElimination(Engine):
    """Sums of rules by elimination with one hidden variable per rule, whatever the length of the rule.

    Weights may be negative, so digits may cancel: the rounding error of every row is estimated, and rows
    beyond 1e-10 are summed in extended precision and, where that does not help, by `exact`.

    Parameters
    ----------
    exact : Exact
        Engine for rows in which digits cancel, and for draws and summaries as far as its tables fit.
    chunk_cells : int
        Cells of the tables of one chunk of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint.inference import RuleFactor
    >>> rule = RuleFactor((0, 1, 2), 0.9, q=(np.array([1.0, 0.0]),) * 3)
    >>> np.exp(SignedElimination().log_partition(Problem((2, 2, 2), (rule,), 1, 3)))
    array([6.4])
    """

    exact: Exact = field(default_factory=lambda: _exact(2 * TABLE_CELLS))
    chunk_cells: int = BLOCK_CELLS

    tolerance = 0.0

    def n_cells(self, problem: Problem) -> int:
        """Cells of all tables of one row."""
        return _Layout.of(problem).n_cells

    def log_partition(self, problem: Problem) -> Floats:
        """See `Engine.log_partition`; minus infinity where the factors of a row contradict each other."""
        return self.marginals(problem)[1]

    def marginals(self, problem: Problem) -> tuple[Floats, Floats]:
        """See `Engine.marginals`; they mean nothing where the second answer is minus infinity."""
        flat, log_z, error = self.attempt(problem, np.float64)
        again = np.flatnonzero((error > _LOST) & (error <= _HOPELESS))
        if len(again):
            flat[again], log_z[again], error[again] = self.attempt(problem.rows(again), np.longdouble)
        lost = np.flatnonzero(error > _LOST)
        if len(lost):
            flat[lost], log_z[lost] = self._without_signs(problem.rows(lost))
        return flat, log_z

    def _without_signs(self, problem: Problem) -> tuple[Floats, Floats]:
        log_z = self.exact.log_partition(problem)
        flat = np.ones((problem.n, sum(problem.cards[: problem.n_visible])))
        possible = np.flatnonzero(log_z > -np.inf)  # the marginals of other rows are an error of the engine
        if len(possible):
            flat[possible] = self.exact.marginals(problem.rows(possible))[0]
        return flat, log_z

    def attempt(self, problem: Problem, dtype: npt.DTypeLike) -> tuple[Floats, Floats, Floats]:
        """Return `marginals` in numbers of this type, and an estimate (n,) of their error."""
        flat = np.empty((problem.n, sum(problem.cards[: problem.n_visible])))
        log_z, error = np.empty(problem.n), np.empty(problem.n)
        layout = _Layout.of(problem)
        passes = _Passes(layout, problem, dtype)
        with np.errstate(all="ignore"):
            for rows in row_blocks(problem.n, layout.n_cells, self.chunk_cells):
                flat[rows], log_z[rows], error[rows] = passes.sums(rows)
        return flat, log_z, error

    def top_k(self, problem: Problem, k: int) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
        """See `Engine.top_k`: as `exact` does."""
        return self.exact.top_k(problem, k)

    def sample(self, problem: Problem, size: int, rng: np.random.Generator) -> Codes:
        """See `Engine.sample`: by `exact`, or one variable given those before where its tables do not fit."""
        try:
            return self.exact.sample(problem, size, rng)
        except IntractableError:
            return self._sample_in_turn(problem, size, rng)

    def _sample_in_turn(self, problem: Problem, size: int, rng: np.random.Generator) -> Codes:
        """Draw each variable given those before; equal prefixes share one pass."""
        n, m = problem.n, problem.n_visible
        ends = np.cumsum(problem.cards[:m])
        rows = np.tile(np.arange(n), size)
        codes = np.full((size * n, m), UNKNOWN)
        for j in range(m):
            prefixes, number = np.unique(np.column_stack([rows, codes[:, :j]]), axis=0, return_inverse=True)
            known = np.full((len(prefixes), m), UNKNOWN)
            known[:, :j] = prefixes[:, 1:]
            given = problem.rows(prefixes[:, 0]).plus(evidence_factors(problem.cards, known))
            belief = self.marginals(given)[0][:, ends[j] - problem.cards[j] : ends[j]]
            cumulative = np.cumsum(belief, axis=1)[number.ravel()]
            threshold = rng.random(len(codes)) * cumulative[:, -1]
            codes[:, j] = (cumulative[:, :-1] <= threshold[:, None]).sum(axis=1)
        return codes.reshape(size, n, m)


def _exact(max_cells: int) -> Exact:
    """Return the engine without signs; tables of rules are large, and so are its chunks."""
    return Exact(max_table=max_cells, chunk_cells=2 * PASS_CELLS)


def _has_bit(rule: RuleFactor) -> bool:
    """Whether a rule gets a hidden variable of its own."""
    return rule.q is not None and len(rule.scope) >= _LONG


class _Layout(NamedTuple):
    """How the variables of a problem and the bits of its rules are eliminated.

    The slots of the plan are one belief for each variable, then the tables of the other factors.
    """

    plan: Plan
    n_variables: int  # of the problem; bits follow

    @classmethod
    def of(cls, problem: Problem) -> _Layout:
        """Plan the elimination."""
        cards = list(problem.cards)
        scopes: list[tuple[int, ...]] = [(v,) for v in range(len(cards))]
        for factor in problem.factors:
            if isinstance(factor, RuleFactor) and _has_bit(factor):
                scopes += [(len(cards),), *((v, len(cards)) for v in factor.scope)]
                cards.append(2)
            elif len(factor.scope) > 1:
                scopes.append(factor.scope)
        return cls(cheapest_plan(tuple(cards), tuple(scopes)), len(problem.cards))

    @property
    def n_cells(self) -> int:
        """Cells of all tables of one row."""
        return sum(self.plan.sizes)


@dataclass(frozen=True, eq=False)
class _Passes:
    """Forward and backward passes over the rows of a problem, in numbers of one type."""

    layout: _Layout
    problem: Problem
    dtype: npt.DTypeLike

    def sums(self, rows: slice) -> tuple[Floats, Floats, Floats]:
        """Return marginals side by side, log of the sum of all weights, and the estimated error of both."""
        entering = {slot: table[..., rows] for slot, table in self._entering.items()}
        messages, sizes, log_z = self._forward(entering)
        loss = np.zeros(log_z.shape)
        shares = [np.empty(0)] * self.problem.n_visible
        for v, share in self._backward(entering, messages, sizes, loss):
            shares[v] = share * entering[v]
        error = loss * np.finfo(log_z.dtype).eps
        error[~(np.isfinite(log_z) & np.isfinite(error))] = np.inf
        flat = np.concatenate([share / share.sum(axis=0) for share in shares])
        return np.clip(flat.T, 0.0, 1.0).astype(float), log_z.astype(float) + self._log_scale[rows], error

    # -- what enters the steps ----------------------------------------------------------------------------

    @cached_property
    def _log_beliefs(self) -> list[Floats]:
        """Product of the factors over each single variable, (k, n)."""
        beliefs: list[Floats] = [np.zeros((card, self.problem.n)) for card in self.problem.cards]
        for factor in self.problem.factors:
            if len(factor.scope) == 1:
                beliefs[factor.scope[0]] += factor.log_table
        return beliefs

    @cached_property
    def _scales(self) -> list[Floats]:
        # Beliefs that add up to one keep products over thousands of variables from overflowing.
        scales = [logsumexp(belief, axis=0) for belief in self._log_beliefs]
        return [np.where(np.isneginf(scale), 0.0, scale) for scale in scales]

    @cached_property
    def _log_scale(self) -> Floats:
        """Log of what all tables were divided by, (n,)."""
        total = np.sum(self._scales, axis=0)
        for factor in self.problem.factors:
            if not factor.scope:
                total = total + factor.log_table
            elif isinstance(factor, Factor) and len(factor.scope) > 1:
                total = total + _peak(factor)
        return total

    @cached_property
    def _tables(self) -> list[np.ndarray]:
        """Tables over several variables or bits, in the order of the layout, (*cards, 1 or n)."""
        tables: list[np.ndarray] = []
        for factor in self.problem.factors:
            if isinstance(factor, RuleFactor) and _has_bit(factor):
                assert factor.q is not None
                tables.append(np.array([[factor.p], [1.0 - 2.0 * factor.p]]))
                tables += [np.stack([np.ones_like(q), q], axis=1)[..., None] for q in factor.q]
            elif isinstance(factor, RuleFactor) and len(factor.scope) > 1:
                tables.append(factor.table()[..., None])
            elif isinstance(factor, Factor) and len(factor.scope) > 1:
                tables.append(np.exp(factor.log_table - _peak(factor)))
        transposes = self.layout.plan.transposes[self.layout.n_variables :]
        return [table.transpose(axes) for table, axes in zip(tables, transposes, strict=True)]

    @cached_property
    def _entering(self) -> dict[int, np.ndarray]:
        """Tables that differ between rows, by their slots: first of all the beliefs."""
        pairs = zip(self._log_beliefs, self._scales, strict=True)
        beliefs = [np.exp(belief - scale) for belief, scale in pairs]
        own = {slot: table for slot, table in enumerate(self._tables, len(beliefs)) if table.shape[-1] > 1}
        every = dict(enumerate(beliefs)) | own
        return {slot: np.ascontiguousarray(table, dtype=self.dtype) for slot, table in every.items()}

    @cached_property
    def _statics(self) -> list[np.ndarray | None]:
        """Product of the tables that enter each step and are the same for all rows."""
        products: list[np.ndarray | None] = []
        for step in self.layout.plan.steps:
            product: np.ndarray | None = None
            for slot, shape in step.inputs:
                place = slot - self.layout.n_variables
                if 0 <= place < len(self._tables) and slot not in self._entering:
                    table = self._tables[place].reshape(*shape, 1)
                    product = table if product is None else product * table
            products.append(product)
        return products

    def _inputs(self, step: Step, entering: dict[int, np.ndarray], messages: list[Any]) -> list[_Input]:
        """What arrives at a step and differs between rows."""
        n_factors = len(self.layout.plan.transposes)
        inputs = []
        for slot, shape in step.inputs:
            if slot in entering or slot >= n_factors:
                table = entering[slot] if slot in entering else messages[slot - n_factors]
                inputs.append(_Input(slot, table.reshape(*shape, -1)))
        return inputs

    # -- passes -------------------------------------------------------------------------------------------

    def _forward(self, entering: dict[int, np.ndarray]) -> tuple[list[Any], list[Any], np.ndarray]:
        """Messages of all steps, what they would be without cancellation, and the log of the sum of all."""
        messages: list[Any] = []
        sizes: list[Any] = []
        log_z: Any = 0.0
        for step, static in zip(self.layout.plan.steps, self._statics, strict=True):
            table = _product([static, *(item.table for item in self._inputs(step, entering, messages))])
            message = _fold(table)
            messages.append(message)
            # Only sums over bits have signs: their messages are weights of rules again.
            sizes.append(_fold(np.abs(table)) if step.variable >= self.layout.n_variables else message)
            if step.parent < 0:
                log_z = log_z + np.log(message)  # a product over a thousand components may overflow
        return messages, sizes, log_z

    def _backward(
        self, entering: dict[int, np.ndarray], messages: list[Any], sizes: list[Any], loss: Floats
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield for each visible variable the derivative (k, n) of log Z with respect to its beliefs.

        To `loss` (n,) is added how much log Z changes if every cell of every message is off by one rounding.
        """
        plan, n = self.layout.plan, len(loss)
        arriving: dict[int, Any] = {}
        for i in reversed(range(len(plan.steps))):
            step = plan.steps[i]
            outside = arriving.pop(i) if step.parent >= 0 else 1.0 / messages[i]
            loss += (np.abs(outside) * sizes[i]).reshape(-1, n).sum(axis=0).astype(float)
            inputs = self._inputs(step, entering, messages)
            base = _product([self._statics[i], outside[None]])
            for (slot, table), rest in zip(inputs, _all_but_one([a for _, a in inputs]), strict=True):
                child = slot - len(plan.transposes)
                if child >= 0 or slot < self.problem.n_visible:
                    share = _onto(_product([base, rest]), (*table.shape[:-1], n))
                    if child >= 0:
                        arriving[child] = share.reshape(*messages[child].shape[:-1], n)
                    else:
                        yield slot, share.reshape(entering[slot].shape)


class _Input(NamedTuple):
    """A table that arrives at a step and differs between rows."""

    slot: int
    table: Any  # broadcasts over the clique


def _peak(factor: Factor) -> Floats:
    """Largest log-value of a factor in each row, (1 or n,), finite."""
    peak = factor.log_table.reshape(-1, factor.log_table.shape[-1]).max(axis=0)
    return np.where(np.isneginf(peak), 0.0, peak)


def _product(arrays: Sequence[Any]) -> Any:
    """Product of arrays that broadcast, small ones first; None counts for nothing."""
    present = [array for array in arrays if array is not None]
    result = present[0]
    for array in present[1:]:
        result = result * array
    return result


def _all_but_one(arrays: list[Any]) -> list[Any]:
    """Return for every array the product of the others; None if there are none."""
    if len(arrays) == 1:
        return [None]
    return [_product(arrays[:i] + arrays[i + 1 :]) for i in range(len(arrays))]


def _onto(table: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the axes along which a table is longer than the shape, and repeat along shorter ones."""
    drop = tuple(a for a in range(table.ndim - 1) if shape[a] == 1 and table.shape[a] > 1)
    total = table.sum(axis=drop, keepdims=True) if drop else table
    return np.broadcast_to(total, shape) if total.shape != shape else total


def _fold(table: Any) -> Any:
    """Sum over the first axis; for a few values, plain additions are twice as fast."""
    result = table[0] + table[1] if len(table) > 1 else table[0]
    for part in table[2:]:
        result = result + part
    return result
