"""Loopy belief propagation on pairs of variables, compiled, where no product of messages underflows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tuplet.core.limits import row_blocks
from tuplet.core.typing import Codes, Floats
from tuplet.joint.inference.factor import Problem
from tuplet.joint.inference.messages import Parts, PropagationInfo
from tuplet.joint.inference.pair_kernels import settle_pairs

_MAX_ITER = 50
"""Iterations without damping, as long as the changes become smaller: most rows need fewer than ten."""

_RANGE = 600.0
"""Nats between the largest and the smallest product of messages up to which none of them underflows."""


class Settled(NamedTuple):
    """Where a propagation ended."""

    beliefs: Floats  # (values of all variables, n)
    log_partition: Floats  # (n,)
    residual: Floats  # (n,)
    n_iter: Codes  # (n,) minus the limit where a row has not converged

    @property
    def info(self) -> PropagationInfo:
        """How it ended, row by row."""
        return PropagationInfo(int(np.abs(self.n_iter).max(initial=0)), self.residual, self.n_iter > 0)


@dataclass(frozen=True)
class PairGraph:
    """Tables of pairs and of single variables, in linear space.

    Parameters
    ----------
    pairs, places, starts, cells, tables, biases
        See `settle_pairs`.
    log_scale : array, shape (n,)
        Logarithm of what tables and biases were divided by.
    """

    pairs: Codes
    places: Codes
    starts: Codes
    cells: Codes
    tables: Floats
    biases: Floats
    log_scale: Floats

    @classmethod
    def of(cls, problem: Problem) -> PairGraph | None:
        """Prepare a problem of tables; None if it has wider ones, no cycle, or products could underflow."""
        cards = problem.cards
        if not problem.n or max((len(scope) for scope in problem.scopes), default=0) > 2:
            return None
        parts = Parts.of(problem)
        if parts.forest or not _is_moderate(parts):
            return None
        pairs = np.array([factor.scope for factor in parts.factors], dtype=np.intp)
        flat = [factor.log_table.reshape(-1, factor.log_table.shape[-1]) for factor in parts.factors]
        widths = [cards[v] - 1 for v in pairs.ravel()]
        if len({table.shape[1] for table in flat}) > 1:
            flat = [np.broadcast_to(table, (len(table), problem.n)) for table in flat]
        tables, table_scale = _linear(flat)
        biases, bias_scale = _linear(parts.biases)
        scale = np.broadcast_to(parts.constant + table_scale + bias_scale, (problem.n,))
        cells = _running([len(table) for table in flat])
        return cls(pairs, _running(widths), _running(cards), cells, tables, biases, scale)

    def rows(self, rows: Codes) -> PairGraph:
        """Return the graph of some rows."""
        own = self.tables.shape[1] > 1
        tables = np.ascontiguousarray(self.tables[:, rows]) if own else self.tables
        biases = np.ascontiguousarray(self.biases[:, rows])
        return replace(self, tables=tables, biases=biases, log_scale=self.log_scale[rows])

    def clamp(self, variable: int, codes: Codes) -> PairGraph:
        """Fix a variable to codes (n,)."""
        here, biases = slice(*self.starts[variable : variable + 2]), self.biases.copy()
        biases[here] *= np.arange(here.stop - here.start)[:, None] == codes
        return replace(self, biases=biases)

    def settle(self, maximum: bool, damping: float, tol: float, max_iter: int) -> Settled:
        """Propagate: without damping where rows converge quickly so, the others from the start with it."""
        quick = self._settle(maximum, 0.0, tol, min(max_iter, _MAX_ITER), False)
        left = np.flatnonzero(quick.n_iter < 0)
        if len(left):
            part = self.rows(left)._settle(maximum, damping, tol, max_iter, True)
            for mine, theirs in zip(quick, part, strict=True):
                mine[..., left] = theirs
        return quick

    def _settle(self, maximum: bool, damping: float, tol: float, max_iter: int, patient: bool) -> Settled:
        n = self.biases.shape[1]
        beliefs, sums, residual = np.empty(self.biases.shape), np.empty(n), np.full(n, np.inf)
        n_iter = np.zeros(n, dtype=np.intp)
        given = (self.pairs, self.places, self.starts, self.cells, self.tables, self.biases)
        limits = (maximum, float(damping), float(tol), int(max_iter), patient)
        settle_pairs(*given, *limits, beliefs, sums, residual, n_iter)
        return Settled(beliefs, sums + self.log_scale, residual, np.where(n_iter > 0, n_iter, -max_iter))


def settle_blocks(
    problem: Problem, maximum: bool, damping: float, tol: float, max_iter: int
) -> Settled | None:
    """Propagate for a problem of tables, block by block of rows; None if it is not for `PairGraph`."""
    answers = []
    own = sum(factor.log_table[..., 0].size for factor in problem.factors if factor.log_table.shape[-1] > 1)
    for rows in row_blocks(problem.n, own + sum(problem.cards)):
        graph = PairGraph.of(problem.rows(rows))
        if graph is None:
            return None
        answers.append(graph.settle(maximum, damping, tol, max_iter))
    if not answers:
        return None
    return Settled(*(np.concatenate(parts, axis=-1) for parts in zip(*answers, strict=True)))


def _linear(log_tables: list[Floats]) -> tuple[Floats, Floats]:
    """Stack tables (c, n or 1) divided by their largest numbers; the sum (n or 1,) of the logs of these."""
    peaks = [table.max(axis=0) for table in log_tables]
    parts = [table - peak for table, peak in zip(log_tables, peaks, strict=True)]
    return np.exp(np.concatenate(parts)), np.sum(peaks, axis=0)


def _is_moderate(parts: Parts) -> bool:
    """Return whether products of messages at a variable stay far from underflow, whatever the iteration.

    A message differs between two values of a variable by no more than the factor does anywhere, as long as
    that has no zeros; biases may have some, which stay what they are.
    """
    spread = np.zeros((len(parts.biases), len(parts.constant)))
    for factor in parts.factors:
        for axis, v in enumerate(factor.scope):
            with np.errstate(invalid="ignore"):
                spread[v] += np.ptp(factor.log_table, axis=axis).max(axis=0)
    for v, bias in enumerate(parts.biases):
        finite = np.where(np.isneginf(bias), bias.max(axis=0), bias)
        with np.errstate(invalid="ignore"):
            spread[v] += np.ptp(finite, axis=0)
    return bool((spread < _RANGE).all())


def _running(sizes: list[int] | tuple[int, ...]) -> Codes:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
