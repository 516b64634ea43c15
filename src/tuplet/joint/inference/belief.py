"""Loopy belief propagation: approximate answers where exact tables do not fit.

All rows of a block run together; a row that has converged leaves the batch. Modes are improved by flips of
single variables.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import ConvergenceWarning, InputError
from tuplet.core.limits import PASS_CELLS, rows_per_block
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.inference.engine import Engine
from tuplet.joint.inference.factor import Problem, absorb, require_possible
from tuplet.joint.inference.messages import MAX, SUM, Messages, Reduce

_DECODE_ITER = 20
"""Iterations between two variables of a decoded outcome, which is only a start for better ones."""


class PropagationInfo(NamedTuple):
    """How a propagation ended, row by row."""

    iterations: int
    residual: Floats  # (n,) largest change of a belief in the last iteration
    converged: npt.NDArray[np.bool_]  # (n,)


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
        A row has converged when no belief changes by more than this.
    damping : float
        Share of the old message in the new one, in log space; from 0 up to, not including, 1.
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
        infos: list[PropagationInfo] = []
        for _ in self._settled(problem, infos):
            pass
        return _joined(infos)

    def converged(self, problem: Problem) -> npt.NDArray[np.bool_]:
        """See `Engine.converged`."""
        return self.convergence(problem).converged

    def log_partition(self, problem: Problem) -> Floats:
        """Bethe estimate of the log of the sum of all weights, (n,); see `Messages.log_partition`."""
        answer = np.empty(problem.n)
        infos: list[PropagationInfo] = []
        for rows, messages in self._settled(problem, infos):
            answer[rows] = messages.log_partition()
        _warn_unless_converged(infos)
        return answer

    def marginals(self, problem: Problem) -> tuple[Floats, Floats]:
        """See `Engine.marginals`."""
        flat = np.empty((problem.n, sum(problem.cards[: problem.n_visible])))
        log_partition = np.empty(problem.n)
        infos: list[PropagationInfo] = []
        for rows, messages in self._settled(problem, infos):
            flat[rows] = np.concatenate(messages.beliefs()[: problem.n_visible]).T
            log_partition[rows] = messages.log_partition()
        _warn_unless_converged(infos)
        return flat, log_partition

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
            weigh = self._weigher(problem.rows(rows))
            codes[rows], log_weight[rows] = _best_by_flips(starts[:, rows], cards, k, weigh)
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
            messages = Messages.start(problem.rows(np.arange(block.start, block.stop) % problem.n))
            codes[block], info = self._decode(messages, SUM, problem.n_visible, draw, self.max_iter)
            infos.append(info)
        _warn_unless_converged(infos)
        return codes.reshape(size, problem.n, problem.n_visible)

    def _candidates(self, problem: Problem) -> Codes:
        """Outcomes (c, n, m) of positive weight, if belief propagation sees any, to start a search from."""
        reduces = (SUM,) if problem.hidden else (SUM, MAX)
        starts = np.empty((len(reduces) + 1, problem.n, problem.n_visible), dtype=np.intp)
        infos: list[PropagationInfo] = []
        for rows in self._blocks(problem.n, _cells(problem)):
            part = problem.rows(rows)
            for i, reduce in enumerate(reduces):
                messages = Messages.start(part)
                infos.append(self._settle(messages, reduce, self.max_iter))
                beliefs = messages.beliefs()[: problem.n_visible]
                starts[i, rows] = np.stack([belief.argmax(axis=0) for belief in beliefs], axis=1)
            impossible = np.isneginf(self._weigher(part)(starts[:-1, rows]).max(axis=0))
            starts[-1, rows] = self._untied(messages, reduce, starts[-2, rows], impossible)
        _warn_unless_converged(infos)
        return starts

    def _untied(
        self, messages: Messages, reduce: Reduce, codes: Codes, doubtful: npt.NDArray[np.bool_]
    ) -> Codes:
        """Decode doubtful rows, and those with ties, one variable given the other.

        Values that are equally good for each variable need not go together.
        """
        for belief in messages.beliefs()[: codes.shape[1]]:
            if len(belief) > 1:
                second, first = np.partition(belief, -2, axis=0)[-2:]
                doubtful = doubtful | (first - second <= self.tol)
        rows = np.flatnonzero(doubtful)
        codes = codes.copy()
        if len(rows):
            part, max_iter = messages.rows(rows), min(self.max_iter, _DECODE_ITER)
            codes[rows], _ = self._decode(part, reduce, codes.shape[1], lambda b: b.argmax(axis=0), max_iter)
        return codes

    def _weigher(self, problem: Problem) -> Callable[[Codes], Floats]:
        if not problem.hidden:
            return problem.log_weight

        def weigh(codes: Codes) -> Floats:
            rows = np.tile(np.arange(problem.n), len(codes))
            estimate = self.log_partition(absorb(problem, codes.reshape(-1, problem.n_visible), rows))
            return estimate.reshape(codes.shape[:2])

        return weigh

    def _decode(
        self,
        messages: Messages,
        reduce: Reduce,
        n_visible: int,
        choose: Callable[[Floats], Codes],
        max_iter: int,
    ) -> tuple[Codes, PropagationInfo]:
        """Fix variable by variable to what `choose` makes of its belief (k, n); codes (n, n_visible)."""
        codes = np.zeros((len(messages.constant), n_visible), dtype=np.intp)
        residual = np.zeros(len(codes))
        iterations = 0
        for v in range(n_visible):
            if len(messages.biases[v]) == 1:
                continue
            info = self._settle(messages, reduce, max_iter)
            iterations, residual = max(iterations, info.iterations), np.maximum(residual, info.residual)
            codes[:, v] = choose(messages.beliefs()[v])
            messages.clamp(v, codes[:, v])
        return codes, PropagationInfo(iterations, residual, residual <= self.tol)

    def _blocks(self, n: int, cells: int) -> Iterator[slice]:
        """Blocks of n rows, each row with so many cells, that have at most `chunk_cells` cells."""
        step = rows_per_block(cells, self.chunk_cells)
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def _settled(self, problem: Problem, infos: list[PropagationInfo]) -> Iterator[tuple[slice, Messages]]:
        """Sum-product, block by block of rows."""
        problem = problem.tabulated
        for rows in self._blocks(problem.n, _cells(problem)):
            messages = Messages.start(problem.rows(rows))
            infos.append(self._settle(messages, SUM, self.max_iter))
            yield rows, messages

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
    candidates: Codes, cards: tuple[int, ...], k: int, weigh: Callable[[Codes], Floats], max_rounds: int = 50
) -> tuple[Codes, Floats]:
    """Return the k best outcomes that single flips reach from the candidates.

    In every round all flips of one variable of the current k best are weighed, until nothing changes.

    Parameters
    ----------
    candidates : array of int, shape (c, n, m)
    weigh : callable
        Log-weights (s, n) of codes (s, n, m).

    Returns
    -------
    codes (n, k, m) and log_weights (n, k), best first; `UNKNOWN` and minus infinity where fewer were found
    """
    hashes = [
        np.random.default_rng(j).integers(0, 2**63, card, dtype=np.uint64) for j, card in enumerate(cards)
    ]
    pool, weights = _keep_best(candidates, weigh(candidates), k, hashes)
    for _ in range(max_rounds):
        flips = _all_flips(np.maximum(pool, 0), cards)
        if not len(flips):
            break
        merged = np.concatenate([pool, flips])
        merged_weights = np.concatenate([weights, weigh(flips)])
        before = weights
        pool, weights = _keep_best(merged, merged_weights, k, hashes)
        if weights.shape == before.shape and np.array_equal(weights, before):
            break
    missing = k - len(pool)
    pool = np.pad(pool, ((0, missing), (0, 0), (0, 0)), constant_values=UNKNOWN)
    weights = np.pad(weights, ((0, missing), (0, 0)), constant_values=-np.inf)
    return pool.transpose(1, 0, 2), weights.T


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
