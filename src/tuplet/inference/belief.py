"""Loopy belief propagation: approximate answers where exact tables do not fit.

Messages are log-tables, normalised to a maximum of zero and cut off at -700, so that a variable's
message can be taken out of a product by subtraction. All rows run together; a row that has converged
leaves the batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import ConvergenceWarning
from tuplet.inference.engine import Engine
from tuplet.inference.factor import Problem, absorb
from tuplet.inference.local_search import best_by_flips
from tuplet.typing import UNKNOWN, Codes, Floats

__all__ = ["BeliefPropagation", "PropagationInfo"]

_FLOOR = -700.0


class PropagationInfo(NamedTuple):
    """How a propagation ended, row by row."""

    iterations: int
    residual: Floats  # (n,) largest change of a belief in the last iteration
    converged: npt.NDArray[np.bool_]  # (n,)


class _Beliefs(NamedTuple):
    variables: list[Floats]  # (k, n), probabilities (for maxima: max-marginals with a sum of one)
    factors: list[Floats]  # log, (*cards of the scope, n), unnormalised


@dataclass(frozen=True)
class BeliefPropagation(Engine):
    """Loopy sum-product and max-product with damping; exact on trees.

    Nothing is guaranteed on graphs with cycles, so `tolerance` is infinite and no mode is proven. Rows that
    have not converged raise a `ConvergenceWarning`; `convergence` tells which.

    Parameters
    ----------
    max_iter : int
    tol : float
        A row has converged when no belief changes by more than this.
    damping : float
        Share of the old message in the new one, in log space; from 0 up to, not including, 1.
    """

    max_iter: int = 200
    tol: float = 1e-6
    damping: float = 0.3

    tolerance = float("inf")

    def convergence(self, problem: Problem) -> PropagationInfo:
        """Run sum-product and tell how it ended."""
        return self._propagate(problem, np.logaddexp.reduce)[1]

    def log_partition(self, problem: Problem) -> Floats:
        """Bethe estimate of the log of the sum of all weights, (n,)."""
        return self._bethe(problem, self._run(problem))

    def _bethe(self, problem: Problem, beliefs: _Beliefs) -> Floats:
        total = np.zeros(problem.n)
        degree = np.zeros(len(problem.cards))
        for factor, log_belief in zip(problem.factors, beliefs.factors, strict=True):
            if not factor.scope:
                total += factor.log_table
                continue
            b = _normalise(log_belief)
            ratio = factor.log_table - np.log(np.where(b > 0, b, 1.0))
            total += np.where(b > 0, b * np.where(b > 0, ratio, 0.0), 0.0).reshape(-1, problem.n).sum(axis=0)
            degree[list(factor.scope)] += 1
        for v, b in enumerate(beliefs.variables):
            total += (degree[v] - 1) * (b * np.log(np.where(b > 0, b, 1.0))).sum(axis=0)
        return total

    def marginals(self, problem: Problem) -> tuple[Floats, Floats]:
        """See `Engine.marginals`."""
        beliefs = self._run(problem)
        flat = np.concatenate(beliefs.variables[: problem.n_visible]).T.copy()
        return flat, self._bethe(problem, beliefs)

    def top_k(self, problem: Problem, k: int) -> tuple[Codes, Floats, npt.NDArray[np.bool_]]:
        """See `Engine.top_k`: decoded beliefs, improved by single flips, weighed exactly if nothing hides."""
        starts = [self._run(problem)]
        if not problem.hidden:
            starts.append(self._run(problem, np.maximum.reduce))
        visible = range(problem.n_visible)
        candidates = np.stack([[b.variables[v].argmax(axis=0) for v in visible] for b in starts])
        codes, log_weight = best_by_flips(
            candidates.transpose(0, 2, 1), problem.cards[: problem.n_visible], k, self._weigher(problem)
        )
        return codes, log_weight, np.zeros(problem.n, bool)

    def sample(self, problem: Problem, size: int, rng: np.random.Generator) -> Codes:
        """See `Engine.sample`: variable by variable from the belief given what was drawn before."""
        codes = np.full((size * problem.n, problem.n_visible), UNKNOWN)
        part = problem.rows(np.tile(np.arange(problem.n), size))
        for v in range(problem.n_visible):
            cumulative = np.cumsum(self._run(absorb(part, codes)).variables[v], axis=0)
            codes[:, v] = (cumulative[:-1] <= rng.random(len(codes)) * cumulative[-1]).sum(axis=0)
        return codes.reshape(size, problem.n, problem.n_visible)

    def _weigher(self, problem: Problem) -> Callable[[Codes], Floats]:
        if not problem.hidden:
            return problem.log_weight

        def weigh(codes: Codes) -> Floats:
            rows = np.tile(np.arange(problem.n), len(codes))
            estimate = self.log_partition(absorb(problem.rows(rows), codes.reshape(-1, problem.n_visible)))
            return estimate.reshape(codes.shape[:2])

        return weigh

    def _run(self, problem: Problem, reduce: Callable = np.logaddexp.reduce) -> _Beliefs:
        beliefs, info = self._propagate(problem, reduce)
        if not info.converged.all():
            warnings.warn(
                f"Belief propagation did not converge in {info.iterations} iterations for"
                f" {(~info.converged).sum()} of {problem.n} rows (largest change"
                f" {info.residual.max():.1e}); raise max_iter or damping, or use Exact().",
                ConvergenceWarning,
                stacklevel=4,
            )
        return beliefs

    def _propagate(self, problem: Problem, reduce: Callable) -> tuple[_Beliefs, PropagationInfo]:
        messages = _Messages.uniform(problem)
        residual = np.full(problem.n, np.inf)
        active = np.arange(problem.n)
        iteration = 0
        while iteration < self.max_iter and len(active):
            iteration += 1
            part = messages.rows(active)
            old = part.variable_beliefs()
            part.update(reduce, self.damping)
            new = part.variable_beliefs()
            changes = [np.abs(a - b).max(axis=0) for a, b in zip(new, old, strict=True)]
            residual[active] = np.max(changes, axis=0) if changes else 0.0
            messages.put(active, part)
            # The first iteration starts from nothing; a small change then says nothing either.
            active = active[(residual[active] > self.tol) | (iteration < 2)]
        beliefs = _Beliefs(messages.variable_beliefs(), messages.factor_beliefs())
        return beliefs, PropagationInfo(iteration, residual, residual <= self.tol)


@dataclass
class _Messages:
    """The messages of one propagation: from every factor to every variable of its scope."""

    problem: Problem
    to_variable: list[list[Floats]]  # per factor, per position in its scope: (k, n)

    @classmethod
    def uniform(cls, problem: Problem) -> _Messages:
        shape = [[(problem.cards[v], problem.n) for v in factor.scope] for factor in problem.factors]
        return cls(problem, [[np.zeros(s) for s in shapes] for shapes in shape])

    def rows(self, rows: npt.NDArray[np.intp]) -> _Messages:
        return _Messages(self.problem.rows(rows), [[t[:, rows] for t in row] for row in self.to_variable])

    def put(self, rows: npt.NDArray[np.intp], part: _Messages) -> None:
        for mine, theirs in zip(self.to_variable, part.to_variable, strict=True):
            for target, source in zip(mine, theirs, strict=True):
                target[:, rows] = source

    def totals(self) -> list[Floats]:
        """Sum of the messages that arrive at every variable."""
        totals = [np.zeros((card, self.problem.n)) for card in self.problem.cards]
        for factor, messages in zip(self.problem.factors, self.to_variable, strict=True):
            for v, message in zip(factor.scope, messages, strict=True):
                totals[v] += message
        return totals

    def variable_beliefs(self) -> list[Floats]:
        return [_normalise(total) for total in self.totals()]

    def factor_beliefs(self) -> list[Floats]:
        totals = self.totals()
        return [self._factor_belief(f, totals)[0] for f in range(len(self.problem.factors))]

    def _factor_belief(self, f: int, totals: list[Floats]) -> tuple[Floats, list[Floats]]:
        """Log-belief of a factor, and the messages from its variables that went into it."""
        factor = self.problem.factors[f]
        rank = len(factor.scope)
        belief = np.broadcast_to(factor.log_table, (*factor.log_table.shape[:-1], self.problem.n))
        arriving = []
        for axis, (v, own) in enumerate(zip(factor.scope, self.to_variable[f], strict=True)):
            message = _cut(totals[v] - own)
            arriving.append(message)
            shape = [1] * rank + [message.shape[1]]
            shape[axis] = message.shape[0]
            belief = belief + message.reshape(shape)
        return belief, arriving

    def update(self, reduce: Callable, damping: float) -> None:
        """Send all messages from factors to variables once, from the messages of the last round."""
        totals = self.totals()
        fresh = []
        for f, factor in enumerate(self.problem.factors):
            belief, arriving = self._factor_belief(f, totals)
            row = []
            for axis, message in enumerate(arriving):
                others = tuple(a for a in range(len(factor.scope)) if a != axis)
                out = _cut((reduce(belief, axis=others) if others else belief) - message)
                row.append((1 - damping) * out + damping * self.to_variable[f][axis] if others else out)
            fresh.append(row)
        self.to_variable = fresh


def _cut(message: Floats) -> Floats:
    """Normalise to a maximum of zero and cut off what is practically impossible."""
    peak = message.max(axis=0)
    return np.maximum(message - np.where(np.isneginf(peak), 0.0, peak), _FLOOR)


def _normalise(log_table: Floats) -> Floats:
    axes = tuple(range(log_table.ndim - 1))
    peak = log_table.max(axis=axes)
    table = np.exp(log_table - np.where(np.isneginf(peak), 0.0, peak))
    total = table.sum(axis=axes)
    return table / np.where(total == 0.0, 1.0, total)
