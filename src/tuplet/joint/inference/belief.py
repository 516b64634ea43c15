"""Loopy belief propagation: approximate answers where exact tables do not fit.

Products of pairs run compiled (`pairs.py`); wider tables, and those with zeros, are swept in log space
(`messages.py`). All rows of a block run together; a row that has converged leaves the batch. Modes are
improved by flips of single variables.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import ConvergenceWarning, InputError
from tuplet.core.limits import PASS_CELLS, rows_per_block
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.inference.engine import Engine
from tuplet.joint.inference.factor import Problem, absorb, require_possible
from tuplet.joint.inference.messages import MAX, SUM, Messages, PropagationInfo, Reduce
from tuplet.joint.inference.pairs import PairGraph, settle_blocks

_DECODE_ITER = 20
"""Iterations between two variables of a decoded outcome, which is only a start for better ones."""


@dataclass(frozen=True)
class BeliefPropagation(Engine):
    """Loopy sum-product and max-product with damping.

    Exact where factors and variables form a forest, which takes one iteration without damping; a factor
    whose variables all belong to another one counts as a part of that. Nothing is guaranteed on graphs with
    cycles, so `tolerance` is infinite and no mode is proven. Rows that have not converged give a
    `ConvergenceWarning`; `convergence` returns which. Factors that contradict each other are noticed where
    the zeros of single factors lead to the contradiction, not where only a search would find it.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations; each sends all messages forth and back once.
    tol : float
        A row has converged when no belief changes by more than this; for sums of all weights, as log_prob
        needs them, by more than its power 2/3.
    damping : float
        Share of the old message in the new one, from 0 up to, not including, 1. Rows whose factors are all
        over pairs, without zeros, are damped only if they do not converge without it.
    chunk_cells : int
        Cells of the tables of one block of rows; bounds the memory of a query to a small multiple of it.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint.inference import Factor, Problem
    >>> agree = np.log([[4.0, 1.0], [1.0, 2.0]])[..., None]
    >>> ring = Problem((2, 2, 2), tuple(Factor(scope, agree) for scope in [(0, 1), (1, 2), (2, 0)]), 1, 3)
    >>> BeliefPropagation().marginals(ring)[0][:, :2].round(2)
    array([[0.85, 0.15]])
    """

    max_iter: int = 200
    tol: float = 1e-6
    damping: float = 0.3
    chunk_cells: int = PASS_CELLS

    tolerance = float("inf")

    def __post_init__(self) -> None:
        for name, valid, wanted in (
            ("max_iter", self.max_iter >= 1, "at least 1"),
            ("tol", self.tol > 0, "above 0"),
            ("damping", 0 <= self.damping < 1, "at least 0 and below 1"),
            ("chunk_cells", self.chunk_cells >= 1, "at least 1"),
        ):
            if not valid:
                raise InputError(f"BeliefPropagation: {name} must be {wanted}, found {getattr(self, name)}.")

    def convergence(self, problem: Problem) -> PropagationInfo:
        """Run sum-product and return how it ended."""
        return self._run(problem).info

    def converged(self, problem: Problem) -> npt.NDArray[np.bool_]:
        """See `Engine.converged`."""
        return self.convergence(problem).converged

    def log_partition(self, problem: Problem) -> Floats:
        """Bethe estimate of the log of the sum of all weights, (n,); see `Messages.log_partition`."""
        # Where messages have converged the estimate is stationary: it changes by the square of their error.
        run = replace(self, tol=max(self.tol, self.tol ** (2 / 3)))._run(problem)
        _warn_unless_converged([run.info])
        return run.log_partition

    def marginals(self, problem: Problem) -> tuple[Floats, Floats]:
        """See `Engine.marginals`."""
        run = self._run(problem)
        _warn_unless_converged([run.info])
        flat = run.beliefs[: sum(problem.cards[: problem.n_visible])]
        return np.ascontiguousarray(flat.T), run.log_partition

    def top_k(self, problem: Problem, k: int) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
        """See `Engine.top_k`: decoded beliefs, improved by single flips, weighed exactly if nothing hides."""
        problem = problem.tabulated
        cards = problem.cards[: problem.n_visible]
        starts = self._candidates(problem)
        codes = np.empty((problem.n, k, len(cards)), dtype=np.intp)
        log_weight = np.empty((problem.n, k))
        # All flips of all k best are weighed at once, where something hides by a propagation each.
        cells = k * sum(cards) * (_cells(problem) if problem.hidden else len(cards))
        for rows in self._blocks(problem.n, cells):
            part = problem.rows(rows)
            weigh = self._weigher(part)
            weigh_flips = None if part.hidden or _has_zeros(part) else partial(_flip_weights, part)
            codes[rows], log_weight[rows] = _best_by_flips(starts[:, rows], cards, k, weigh, weigh_flips)
        return codes, log_weight, np.zeros(problem.n, bool)

    def sample(self, problem: Problem, size: int, rng: np.random.Generator) -> Codes:
        """See `Engine.sample`: variable by variable from the belief given what was drawn before."""

        def draw(belief: Floats) -> Codes:
            cumulative = np.cumsum(belief, axis=0)
            return (cumulative[:-1] <= rng.random(belief.shape[1]) * cumulative[-1]).sum(axis=0)

        problem = problem.tabulated
        require_possible(self.log_partition(problem))
        codes = np.empty((size * problem.n, problem.n_visible), dtype=np.intp)
        infos: list[PropagationInfo] = []
        for block in self._blocks(len(codes), _cells(problem)):
            part = problem.rows(np.arange(block.start, block.stop) % problem.n)
            codes[block], info = self._decode(part, SUM, draw, self.max_iter)
            infos.append(info)
        _warn_unless_converged(infos)
        return codes.reshape(size, problem.n, problem.n_visible)

    def _candidates(self, problem: Problem) -> Codes:
        """Outcomes (c, n, m) of positive weight, if belief propagation sees any, to start a search from."""
        reduces = (SUM,) if problem.hidden else (SUM, MAX)
        starts = np.empty((len(reduces) + 1, problem.n, problem.n_visible), dtype=np.intp)
        infos: list[PropagationInfo] = []
        for i, reduce in enumerate(reduces):
            run = self._run(problem, reduce)
            infos.append(run.info)
            beliefs = _by_variable(run.beliefs, problem.cards[: problem.n_visible])
            starts[i] = np.stack([_most_probable(belief) for belief in beliefs], axis=1)
        impossible = np.isneginf(self._weigher(problem)(starts[:-1]).max(axis=0))
        doubtful = np.flatnonzero(impossible | self._has_ties(run.beliefs, problem))
        starts[-1] = starts[-2]
        for some in self._blocks(len(doubtful), _cells(problem)):
            # Values that are equally good for each variable need not go together.
            rows, max_iter = doubtful[some], min(self.max_iter, _DECODE_ITER)
            starts[-1, rows], _ = self._decode(problem.rows(rows), reduce, _most_probable, max_iter)
        _warn_unless_converged(infos)
        return starts

    def _has_ties(self, beliefs: Floats, problem: Problem) -> npt.NDArray[np.bool_]:
        """Rows (n,) in which a variable has two values of the same, largest belief."""
        tied = np.zeros(problem.n, dtype=bool)
        for belief in _by_variable(beliefs, problem.cards[: problem.n_visible]):
            if len(belief) > 1:
                second, first = np.partition(belief, -2, axis=0)[-2:]
                tied |= first - second <= self.tol
        return tied

    def _weigher(self, problem: Problem) -> Callable[[Codes], Floats]:
        if not problem.hidden:
            return problem.log_weight

        def weigh(codes: Codes) -> Floats:
            rows = np.tile(np.arange(problem.n), len(codes))
            estimate = self.log_partition(absorb(problem, codes.reshape(-1, problem.n_visible), rows))
            return estimate.reshape(codes.shape[:2])

        return weigh

    def _decode(
        self, problem: Problem, reduce: Reduce, choose: Callable[[Floats], Codes], max_iter: int
    ) -> tuple[Codes, PropagationInfo]:
        """Fix variable by variable to what `choose` makes of its belief (k, n); codes (n, n_visible)."""
        graph = PairGraph.of(problem)
        state = _LogState(Messages.start(problem)) if graph is None else _PairState(graph)
        codes = np.zeros((problem.n, problem.n_visible), dtype=np.intp)
        residual, iterations = np.zeros(problem.n), 0
        for v in range(problem.n_visible):
            if problem.cards[v] > 1:
                info, belief = state.settle(self, reduce, max_iter, v)
                iterations, residual = max(iterations, info.iterations), np.maximum(residual, info.residual)
                codes[:, v] = choose(belief)
                state.clamp(v, codes[:, v])
        return codes, PropagationInfo(iterations, residual, residual <= self.tol)

    def _blocks(self, n: int, cells: int) -> Iterator[slice]:
        """Blocks of n rows, each row with so many cells, that have at most `chunk_cells` cells."""
        step = rows_per_block(cells, self.chunk_cells)
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def _run(self, problem: Problem, reduce: Reduce = SUM) -> _Run:
        """Propagate to the end."""
        problem = problem.tabulated
        settled = settle_blocks(problem, reduce is MAX, self.damping, self.tol, self.max_iter)
        if settled is not None:
            return _Run(settled.beliefs, settled.log_partition, settled.info)
        beliefs, log_partition = np.empty((sum(problem.cards), problem.n)), np.empty(problem.n)
        infos: list[PropagationInfo] = []
        for rows in self._blocks(problem.n, _cells(problem)):
            messages = Messages.start(problem.rows(rows))
            infos.append(self._settle(messages, reduce, self.max_iter))
            beliefs[:, rows] = np.concatenate(messages.beliefs())
            log_partition[rows] = messages.log_partition()
        return _Run(beliefs, log_partition, _joined(infos))

    def _settle(self, messages: Messages, reduce: Reduce, max_iter: int) -> PropagationInfo:
        """Sweep until every row has converged, or `max_iter` times."""
        n = len(messages.constant)
        if messages.forest:
            messages.sweep(reduce, 0.0)
            return PropagationInfo(1, np.zeros(n), np.ones(n, bool))
        residual = np.full(n, np.inf)
        active = np.arange(n)
        iteration = 0
        while iteration < max_iter and len(active):
            iteration += 1
            part = messages.rows(active)
            old = part.beliefs()
            part.sweep(reduce, self.damping)
            messages.put(active, part)
            changes = [np.abs(a - b).max(axis=0) for a, b in zip(part.beliefs(), old, strict=True)]
            residual[active] = np.max(changes, axis=0)
            # The first iteration starts from uniform messages: a small change then does not mean convergence.
            active = active[(residual[active] > self.tol) | (iteration < 2)]
        return PropagationInfo(iteration, residual, residual <= self.tol)


class _Run(NamedTuple):
    """Where a propagation ended."""

    beliefs: Floats  # (values of all variables, n)
    log_partition: Floats  # (n,), of sums only
    info: PropagationInfo


def _by_variable(flat: Floats, cards: tuple[int, ...]) -> list[Floats]:
    """Views (k, n) of the values of each variable."""
    return np.split(flat[: sum(cards)], np.cumsum(cards)[:-1])


def _most_probable(belief: Floats) -> Codes:
    """Values (n,) of the largest belief (k, n)."""
    return belief.argmax(axis=0)


@dataclass
class _LogState:
    """Messages in log space that go on from where they were when variables are fixed."""

    messages: Messages

    def settle(
        self, engine: BeliefPropagation, reduce: Reduce, max_iter: int, v: int
    ) -> tuple[PropagationInfo, Floats]:
        """Propagate; return how it ended and the belief (k, n) of a variable."""
        return engine._settle(self.messages, reduce, max_iter), self.messages.beliefs()[v]

    def clamp(self, v: int, codes: Codes) -> None:
        """Fix a variable to codes (n,)."""
        self.messages.clamp(v, codes)


@dataclass
class _PairState:
    """The same for pairs, which are propagated from the start each time."""

    graph: PairGraph

    def settle(
        self, engine: BeliefPropagation, reduce: Reduce, max_iter: int, v: int
    ) -> tuple[PropagationInfo, Floats]:
        """See `_LogState.settle`."""
        settled = self.graph.settle(reduce is MAX, engine.damping, engine.tol, max_iter)
        return settled.info, settled.beliefs[slice(*self.graph.starts[v : v + 2])]

    def clamp(self, v: int, codes: Codes) -> None:
        """See `_LogState.clamp`."""
        self.graph = self.graph.clamp(v, codes)


def _cells(problem: Problem) -> int:
    """Cells of the tables of one row."""
    return sum(problem.cards) + sum(math.prod([problem.cards[v] for v in scope]) for scope in problem.scopes)


def _joined(infos: list[PropagationInfo]) -> PropagationInfo:
    """How the propagations of several blocks of rows ended, as one."""
    return PropagationInfo(
        max((info.iterations for info in infos), default=0),
        np.concatenate([np.empty(0), *(info.residual for info in infos)]),
        np.concatenate([np.empty(0, bool), *(info.converged for info in infos)]),
    )


def _warn_unless_converged(infos: list[PropagationInfo]) -> None:
    info = _joined(infos)
    if not info.converged.all():
        warnings.warn(
            f"Belief propagation did not converge in {info.iterations} iterations for"
            f" {(~info.converged).sum()} of {len(info.converged)} rows (largest change"
            f" {info.residual.max():.1e}); raise max_iter or damping, or use Exact().",
            ConvergenceWarning,
            stacklevel=5,
        )


def _best_by_flips(
    candidates: Codes,
    cards: tuple[int, ...],
    k: int,
    weigh: Callable[[Codes], Floats],
    weigh_flips: Callable[[Codes, Floats], Floats] | None = None,
    max_rounds: int = 50,
) -> tuple[Codes, Floats]:
    """Return the k best outcomes that single flips reach from the candidates.

    In every round all flips of one variable of the current k best are weighed, until nothing changes.

    Parameters
    ----------
    candidates : array of int, shape (c, n, m)
    weigh : callable
        Log-weights (s, n) of codes (s, n, m).
    weigh_flips : callable, optional
        Those of `_all_flips` of codes (c, n, m) with these weights (c, n), where that is cheaper.

    Returns
    -------
    codes (n, k, m) and log_weights (n, k), best first; `UNKNOWN` and minus infinity where fewer were found
    """
    hashes = [
        np.random.default_rng(j).integers(0, 2**63, card, dtype=np.uint64) for j, card in enumerate(cards)
    ]
    pool, weights = _keep_best(candidates, weigh(candidates), k, hashes)
    for _ in range(max_rounds):
        real = np.maximum(pool, 0)
        flips = _all_flips(real, cards)
        if not len(flips):
            break
        merged = np.concatenate([pool, flips])
        new = weigh(flips) if weigh_flips is None else weigh_flips(real, weigh(real))
        merged_weights = np.concatenate([weights, new])
        before = weights
        pool, weights = _keep_best(merged, merged_weights, k, hashes)
        if weights.shape == before.shape and np.array_equal(weights, before):
            break
    missing = k - len(pool)
    pool = np.pad(pool, ((0, missing), (0, 0), (0, 0)), constant_values=UNKNOWN)
    weights = np.pad(weights, ((0, missing), (0, 0)), constant_values=-np.inf)
    return pool.transpose(1, 0, 2), weights.T


def _flip_weights(problem: Problem, codes: Codes, weights: Floats) -> Floats:
    """Log-weights of `_all_flips` of codes (c, n, m) with these weights (c, n), from what each flip changes.

    Only the factors around a variable change with it; their tables must have no zeros.
    """
    given = [np.zeros((card, *codes.shape[:2])) for card in problem.cards]
    rows = np.arange(codes.shape[1])
    for factor in problem.factors:
        batch = rows if factor.log_table.shape[-1] != 1 else 0
        for axis, v in enumerate(factor.scope):
            table = np.moveaxis(factor.log_table, axis, 0)
            others: list[Any] = [codes[..., u] for u in factor.scope if u != v]
            given[v] += table[(slice(None), *others, np.broadcast_to(batch, codes.shape[:2]))]
    flips = []
    for v, table in enumerate(given):
        before = np.take_along_axis(table, codes[None, ..., v], axis=0)[0]
        for shift in range(1, len(table)):
            place = (codes[None, ..., v] + shift) % len(table)
            flips.append(weights - before + np.take_along_axis(table, place, axis=0)[0])
    return np.concatenate(flips)


def _has_zeros(problem: Problem) -> bool:
    return any(not np.isfinite(factor.log_table).all() for factor in problem.factors)


def _all_flips(codes: Codes, cards: tuple[int, ...]) -> Codes:
    """Every outcome that differs from one of codes (c, n, m) in one variable."""
    flips = []
    for j, card in enumerate(cards):
        for shift in range(1, card):
            flipped = codes.copy()
            flipped[..., j] = (flipped[..., j] + shift) % card
            flips.append(flipped)
    return np.concatenate(flips) if flips else np.empty((0, *codes.shape[1:]), dtype=np.intp)


def _keep_best(codes: Codes, weights: Floats, k: int, hashes: list) -> tuple[Codes, Floats]:
    """Keep the k best distinct outcomes of every row; repeated ones are recognised by a 64-bit hash."""
    key = np.zeros(weights.shape, dtype=np.uint64)
    for j, table in enumerate(hashes):
        key += table[np.maximum(codes[..., j], 0)]
    order = np.lexsort((codes[..., 0] == UNKNOWN, key), axis=0)  # real outcomes before placeholders
    sorted_key = np.take_along_axis(key, order, axis=0)
    repeated = np.zeros(key.shape, bool)
    np.put_along_axis(repeated, order[1:], sorted_key[1:] == sorted_key[:-1], axis=0)
    ranked = np.where(repeated | (codes[..., 0] == UNKNOWN), -np.inf, weights)
    best = np.argsort(-ranked, axis=0, kind="stable")[:k]
    chosen = np.take_along_axis(codes, best[..., None], axis=0)
    chosen_weights = np.take_along_axis(ranked, best, axis=0)
    return np.where(np.isneginf(chosen_weights)[..., None], UNKNOWN, chosen), chosen_weights
