"""Messages between factors and variables, swept forth and back along one order of the factors.

Messages are log-tables with a maximum of zero. The sum of all other messages to a variable is that of
the earlier ones in the sweep plus that of the later ones, never a total minus one message: nothing is lost to
cancellation, and minus infinity (impossible) stays what it is, without a floor. Impossible is only ever
derived from impossible, so a table of nothing else proves that the factors of its row contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Codes, Floats
from tuplet.joint.inference.factor import AnyFactor, Factor, Problem

Reduce = Callable[..., Floats]
SUM: Reduce = np.logaddexp.reduce
MAX: Reduce = np.maximum.reduce

_quiet = np.errstate(invalid="ignore")
"""Tables that are not numbers, and the sums of contradictory rows, give nan without a complaint of numpy."""


class PropagationInfo(NamedTuple):
    """How a propagation ended, row by row."""

    iterations: int
    residual: Floats  # (n,) largest change of a belief in the last iteration
    converged: npt.NDArray[np.bool_]  # (n,)


class Parts(NamedTuple):
    """A problem sorted by what belongs together; see `Messages`."""

    factors: tuple[Factor, ...]
    biases: list[Floats]
    constant: Floats
    forest: bool

    @classmethod
    def of(cls, problem: Problem) -> Parts:
        """Sort the factors of a problem of tables."""
        biases = [np.zeros((card, problem.n)) for card in problem.cards]
        constant = np.zeros(problem.n)
        wide = []
        for factor in problem.factors:
            factor = _without_single_values(factor, problem.cards)
            if not factor.scope:
                constant = constant + factor.log_table
            elif len(factor.scope) == 1:
                biases[factor.scope[0]] = biases[factor.scope[0]] + factor.log_table
            else:
                wide.append(factor)
        wide = _merge_nested(wide)
        order, forest = _breadth_first(len(problem.cards), [factor.scope for factor in wide])
        return cls(tuple(wide[f] for f in order), biases, constant, forest)


@dataclass
class Messages:
    """The state of a propagation for n rows; `Messages.start` makes it, `sweep` and `clamp` change it.

    Parameters
    ----------
    factors : tuple of Factor
        Scopes of two variables or more, none inside another's, breadth first from the roots.
    biases : list of arrays (k, n)
        Product of the factors over one variable, for every variable.
    constant : array (n,)
        Product of the factors over no variable.
    forest : bool
        Whether the factors and variables form no cycle; one pair of sweeps then gives the exact answer.
    sent : list of lists of arrays (k, n)
        Message from every factor to every variable of its scope.
    """

    factors: tuple[Factor, ...]
    biases: list[Floats]
    constant: Floats
    forest: bool
    sent: list[list[Floats]]

    @classmethod
    def start(cls, problem: Problem) -> Self:
        """Prepare a problem; every message is uniform at first."""
        parts = Parts.of(problem)
        sent = [[np.zeros((problem.cards[v], problem.n)) for v in factor.scope] for factor in parts.factors]
        return cls(*parts, sent)

    def rows(self, rows: npt.NDArray[np.intp]) -> Messages:
        """Return a copy of the state of some rows."""
        return Messages(
            tuple(factor.rows(rows) for factor in self.factors),
            [bias[:, rows] for bias in self.biases],
            self.constant[rows],
            self.forest,
            [[message[:, rows] for message in messages] for messages in self.sent],
        )

    def put(self, rows: npt.NDArray[np.intp], part: Messages) -> None:
        """Take over the messages of some rows."""
        for mine, theirs in zip(self.sent, part.sent, strict=True):
            for target, source in zip(mine, theirs, strict=True):
                target[:, rows] = source

    def clamp(self, variable: int, codes: Codes) -> None:
        """Fix a variable to codes (n,); the messages stay, a good start for the next sweeps."""
        values = np.arange(len(self.biases[variable]))[:, None]
        self.biases[variable] = np.where(values == codes, self.biases[variable], -np.inf)

    @_quiet
    def sweep(self, reduce: Reduce, damping: float) -> None:
        """Send every message twice: from the leaves to the roots, and back.

        Every factor hears what was sent earlier in the same sweep, so news travels any distance at once.
        """
        down = range(len(self.factors))
        for order in (down[::-1], down):
            later, _ = self._running(order[::-1], [np.zeros(1)] * len(self.biases))
            totals = list(self.biases)
            for f in order:
                scope = self.factors[f].scope
                arriving = [totals[v] + rest for v, rest in zip(scope, later[f], strict=True)]
                for axis, v in enumerate(scope):
                    message = _peak_at_zero(_outgoing(self.factors[f], arriving, axis, reduce))
                    if damping:
                        message = (1 - damping) * message + damping * self.sent[f][axis]
                    self.sent[f][axis] = message
                    totals[v] = totals[v] + message

    @_quiet
    def beliefs(self) -> list[Floats]:
        """Probabilities of every variable's values, each (k, n); all zero where that is a contradiction."""
        return [_normalise(total) for total in self._totals()]

    @_quiet
    def log_partition(self) -> Floats:
        """Bethe estimate of the log of the sum of all weights, (n,); minus infinity if that is provably zero.

        Notes
        -----
        With Z_f and Z_v the sums of the unnormalised beliefs of factors and variables, and d_v the number
        of factors around v, log Z = sum_f log Z_f + sum_v (1 - d_v) log Z_v: exact on forests, whatever the
        scale of the messages.
        """
        down = range(len(self.factors))
        earlier, totals = self._running(down, self.biases)
        later, _ = self._running(down[::-1], [np.zeros(1)] * len(self.biases))
        log_total, impossible = self.constant, np.isneginf(self.constant)
        degree = [1] * len(self.biases)
        for f, factor in enumerate(self.factors):
            arriving = [a + b for a, b in zip(earlier[f], later[f], strict=True)]
            log_sum = SUM(arriving[0] + _outgoing(factor, arriving, 0, SUM), axis=0)
            log_total, impossible = log_total + log_sum, impossible | np.isneginf(log_sum)
            for v in factor.scope:
                degree[v] -= 1
        for total, weight in zip(totals, degree, strict=True):
            log_sum = SUM(total, axis=0)
            impossible = impossible | np.isneginf(log_sum)
            log_total = log_total + (weight * log_sum if weight else 0.0)
        return np.where(impossible, -np.inf, log_total)

    def _totals(self) -> list[Floats]:
        return self._running(range(len(self.factors)), self.biases)[1]

    def _running(
        self, order: Sequence[int], start: Sequence[Floats]
    ) -> tuple[dict[int, list[Floats]], list[Floats]]:
        """Sums of messages at the variables around every factor just before its turn, and at the end."""
        totals = list(start)
        before = {}
        for f in order:
            scope = self.factors[f].scope
            before[f] = [totals[v] for v in scope]
            for v, message in zip(scope, self.sent[f], strict=True):
                totals[v] = totals[v] + message
        return before, totals


def _outgoing(factor: Factor, arriving: list[Floats], axis: int, reduce: Reduce) -> Floats:
    """Reduce a factor times what arrives at the other variables to one variable, (k, 1 or n)."""
    table = factor.log_table
    for other in reversed(range(len(arriving))):  # from the back: the axes in front keep their places
        if other != axis:
            shape = [1] * table.ndim
            shape[other], shape[-1] = arriving[other].shape
            table = reduce(table + arriving[other].reshape(shape), axis=other)
    return table


def _peak_at_zero(log_table: Floats) -> Floats:
    """Shift a log-table (k, n) so that the largest value of every row is zero, if any is possible."""
    # The smallest number instead of minus infinity, which must not be subtracted from itself.
    return log_table - np.maximum(MAX(log_table, axis=0), np.finfo(float).min)


def _normalise(log_table: Floats) -> Floats:
    table = np.exp(_peak_at_zero(log_table))
    total = table.sum(axis=0)
    return table / np.where(total == 0.0, 1.0, total)


def _without_single_values(factor: AnyFactor, cards: tuple[int, ...]) -> Factor:
    """Drop variables with one value from a scope: they carry nothing, but could close a cycle."""
    scope = tuple(v for v in factor.scope if cards[v] > 1)
    shape = tuple(cards[v] for v in scope)
    return Factor(scope, factor.log_table.reshape(*shape, factor.log_table.shape[-1]))


def _merge_nested(factors: Iterable[Factor]) -> list[Factor]:
    """Multiply every factor whose scope lies inside another's into that one.

    Apart they would be a cycle, round which both hear their own opinion again. Factors over one variable
    are harmless and stay outside, so that tables which all rows share need not be copied for each of them.
    """
    merged: list[Factor] = []
    around: dict[int, list[int]] = {}
    for factor in sorted(factors, key=lambda factor: -len(factor.scope)):
        members = set(factor.scope)
        hosts = [i for i in around.get(factor.scope[0], ()) if members <= set(merged[i].scope)]
        if hosts:
            host = merged[hosts[-1]]  # the smallest
            merged[hosts[-1]] = Factor(host.scope, host.log_table + _aligned(factor, host.scope))
            continue
        for v in factor.scope:
            around.setdefault(v, []).append(len(merged))
        merged.append(factor)
    return merged


def _aligned(factor: Factor, scope: tuple[int, ...]) -> Floats:
    """Table of a factor with the axes of a wider scope, of length one for variables that it lacks."""
    order = [factor.scope.index(v) for v in scope if v in factor.scope]
    table = factor.log_table.transpose(*order, len(order))
    return np.expand_dims(table, [axis for axis, v in enumerate(scope) if v not in factor.scope])


def _breadth_first(n_variables: int, scopes: list[tuple[int, ...]]) -> tuple[list[int], bool]:
    """Order factors outwards from a root variable of every connected part, and whether there is no cycle."""
    around: list[list[int]] = [[] for _ in range(n_variables)]
    for f, scope in enumerate(scopes):
        for v in scope:
            around[v].append(f)
    order: dict[int, None] = {}  # an ordered set
    reached: dict[int, None] = {}
    forest = True
    for root in range(n_variables):
        queue = [] if root in reached else [root]
        reached[root] = None
        for v in queue:
            for f in around[v]:
                if f in order:
                    continue
                order[f] = None
                fresh = [u for u in scopes[f] if u not in reached]
                forest = forest and len(fresh) == len(scopes[f]) - 1
                reached.update(dict.fromkeys(fresh))
                queue.extend(fresh)
    return list(order), forest
