"""Exact elimination along a plan: one forward pass, and what follows from it.

The forward pass eliminates variables one after the other and keeps, for every step, the table over its
clique and the message that is left. For sums, table / message is the conditional p(variable | separator):
read from the last step to the first it is a Bayesian network of the same distribution, from which marginals,
samples and entropies follow. For maxima, table - message is the regret against the best choice given the
separator, so a beam of k partial outcomes read in the same direction holds exactly the k best (every
partial outcome's score is the score of its best completion).

Sums run in linear space, rescaled now and then, which is several times faster than logarithms. If any number
under- or overflows on the way, numpy raises an error and the same rows run again in log space: no
answer depends on lost digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from tuplet.core.typing import Codes, Floats
from tuplet.joint.inference.factor import Factor, Problem
from tuplet.joint.inference.plan import Plan, Step

_SMALLEST_LOG = -700.0
"""exp of anything lower is not a normal number."""

_Keep: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Scratch:
    """Memory for the tables of one chunk of rows; later chunks write into it again.

    Fresh memory for every table costs more than the arithmetic that fills it.
    """

    plan: Plan
    n_rows: int
    keep: bool = True  # the tables of all steps; otherwise they follow each other in the same place

    @cached_property
    def _starts(self) -> list[int]:
        sizes = self.plan.sizes
        return list(accumulate(sizes[:-1], initial=0)) if self.keep else [0] * len(sizes)

    @cached_property
    def _memory(self) -> Floats:
        sizes = self.plan.sizes
        return np.empty((sum(sizes) if self.keep else max(sizes, default=0)) * self.n_rows)

    def table(self, i: int, n: int) -> Floats:
        """Room for the table of step i for n rows, (*clique, n)."""
        start = self._starts[i] * n
        return self._memory[start : start + self.plan.sizes[i] * n].reshape(*self.plan.steps[i].shape, n)

    def holds(self, table: Floats) -> bool:
        """Whether a table lies in this memory."""
        return table.base is self._memory


@dataclass(frozen=True, eq=False)
class Forward:
    """Outcome of a forward pass over b rows (b = 1 where rows are alike)."""

    log_value: Floats  # (b,) log of the sum, or of the maximum, of all weights
    tables: list[Floats]  # per step (k, *separator, b): weights of sums, log-weights of maxima
    messages: list[Floats]  # per step (*separator, b): sum or maximum of the table over its first axis
    scratch: Scratch


def sum_out(plan: Plan, problem: Problem, scratch: Scratch) -> Forward:
    """Sum over all variables."""
    try:
        with np.errstate(under="raise", over="raise", divide="ignore", invalid="ignore"):
            return _linear_forward(plan, problem, scratch)
    except FloatingPointError:
        return _log_forward(plan, problem, scratch, lambda variable: _keep_sums)


def sum_hidden(plan: Plan, problem: Problem, scratch: Scratch) -> list[Factor]:
    """Sum over the variables that the steps of a plan eliminate; return the factors that are left."""
    slots, scopes = _aligned(plan, problem), [*_aligned_scopes(plan, problem)]
    with np.errstate(divide="ignore", under="ignore", invalid="ignore"):
        for i, step in enumerate(plan.steps):
            slots.append(_keep_sums(_combine(step, slots, np.add, 0.0, scratch.table(i, problem.n)))[0])
            scopes.append(step.separator)
    used = {slot for step in plan.steps for slot, _ in step.inputs}
    return [Factor(scopes[slot], slots[slot]) for slot in range(len(slots)) if slot not in used]


def maximise(plan: Plan, problem: Problem, scratch: Scratch) -> Forward:
    """Maximise over the visible variables, the hidden ones summed out first (marginal MAP).

    The plan must eliminate the hidden variables first. Only the tables of visible variables mean anything.
    """
    visible = problem.n_visible
    return _log_forward(plan, problem, scratch, lambda v: _keep_maxima if v < visible else _keep_sums)


def _linear_forward(plan: Plan, problem: Problem, scratch: Scratch) -> Forward:
    """Forward pass in linear space; raises FloatingPointError where a number leaves the range."""
    slots, log_value = _exponentiate(plan, problem)
    tables, messages = [], []
    for i, step in enumerate(plan.steps):
        table = _combine(step, slots, np.multiply, 1.0, scratch.table(i, problem.n))
        message = _fold(np.add, table)
        tables.append(table)
        messages.append(message)
        if step.parent < 0:
            log_value = log_value + np.log(message)
        elif step.rescale:
            scale = message.reshape(-1, message.shape[-1]).max(axis=0)
            log_value = log_value + np.log(scale)
            message = message / _nonzero(scale)
        slots.append(message)
    return Forward(log_value, tables, messages, scratch)


def _exponentiate(plan: Plan, problem: Problem) -> tuple[list[Floats], Floats]:
    """Factors in linear space, each divided by its largest value in a row, and the logs of the divisors.

    Factors that all rows share and factors of single rows are each handled as one long array.
    """
    slots: list[Floats] = [np.ones(1)] * len(problem.factors)
    log_value = np.zeros(1)
    for shared in (True, False):
        group = [i for i, f in enumerate(problem.factors) if (f.log_table.shape[-1] == 1) is shared]
        if not group:
            continue
        aligned = [problem.factors[i].log_table.transpose(plan.transposes[i]) for i in group]
        flat = np.concatenate([table.reshape(-1, table.shape[-1]) for table in aligned])
        sizes = [table.size // table.shape[-1] for table in aligned]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        peaks = np.maximum.reduceat(flat, starts[:-1], axis=0)
        log_value = log_value + peaks.sum(axis=0)
        flat -= np.repeat(np.where(np.isneginf(peaks), 0.0, peaks), sizes, axis=0)
        if flat.min(initial=0.0, where=flat != -np.inf) < _SMALLEST_LOG:
            raise FloatingPointError("underflow")
        np.exp(flat, out=flat)
        for i, table, start, stop in zip(group, aligned, starts[:-1], starts[1:], strict=True):
            slots[i] = flat[start:stop].reshape(table.shape)
    return slots, log_value


def _log_forward(plan: Plan, problem: Problem, scratch: Scratch, keep: Callable[[int], _Keep]) -> Forward:
    """Forward pass in log space; `keep` maps a variable to how it is eliminated and what is kept of it."""
    slots = _aligned(plan, problem)
    log_value = sum((slots[slot] for slot in plan.constants), np.zeros(1))
    tables, messages = [], []
    with np.errstate(divide="ignore", under="ignore", invalid="ignore"):
        for i, step in enumerate(plan.steps):
            table = _combine(step, slots, np.add, 0.0, scratch.table(i, problem.n))
            log_message, kept_table, kept_message = keep(step.variable)(table)
            tables.append(kept_table)
            messages.append(kept_message)
            slots.append(log_message)
            if step.parent < 0:
                log_value = log_value + log_message
    return Forward(log_value, tables, messages, scratch)


def _aligned(plan: Plan, problem: Problem) -> list[Floats]:
    """Log-tables of the factors with their axes in elimination order."""
    return [f.log_table.transpose(axes) for f, axes in zip(problem.factors, plan.transposes, strict=True)]


def _aligned_scopes(plan: Plan, problem: Problem) -> Iterator[tuple[int, ...]]:
    for scope, axes in zip(problem.scopes, plan.transposes, strict=True):
        yield tuple(scope[axis] for axis in axes[:-1])


def _keep_sums(table: Floats) -> tuple[Floats, Floats, Floats]:
    peak = _fold(np.maximum, table)
    safe = np.where(np.isneginf(peak), 0.0, peak)
    weights = np.exp(table - safe)
    total = _fold(np.add, weights)
    return safe + np.log(total), weights, total


def _keep_maxima(table: Floats) -> tuple[Floats, Floats, Floats]:
    peak = _fold(np.maximum, table)
    return peak, table, peak


def _combine(step: Step, slots: list[Floats], operation: np.ufunc, neutral: float, out: Floats) -> Floats:
    """Product (or sum of logs) of all that arrives at a step, over its clique.

    Small tables first, and those that all rows share by themselves, so that few operations have full size.
    """
    shared: Floats | None = None
    single: Floats | None = None
    for slot, shape in step.inputs:
        table = slots[slot]
        if table.shape[-1] == 1:
            table = table.reshape(*shape, 1)
            shared = table if shared is None else operation(shared, table)
        else:
            table = table.reshape(*shape, -1)
            single = table if single is None else operation(single, table)
    if shared is None or single is None:
        result = single if shared is None else shared
        # A variable in no factor is uniform.
        return np.full((step.shape[0], 1), neutral) if result is None else result
    return operation(single, shared, out=out)


def _fold(operation: np.ufunc, table: Floats) -> Floats:
    """Reduce over the first axis; for a few values, plain binary operations are twice as fast."""
    if not 2 <= len(table) <= 8:
        return operation.reduce(table, axis=0)
    result = operation(table[0], table[1])
    for part in table[2:]:
        operation(result, part, out=result)
    return result


def _nonzero(values: Floats) -> Floats:
    """Zeros replaced by ones: what is divided by them is zero as well."""
    return values if values.all() else np.where(values == 0.0, 1.0, values)


def conditional(forward: Forward, i: int) -> Floats:
    """p(variable | separator) at step i of a sum-product pass, (k, *separator, b)."""
    return forward.tables[i] / _nonzero(forward.messages[i])


def beliefs(plan: Plan, forward: Forward) -> Iterator[tuple[Step, Floats]]:
    """Yield the posterior table (*clique, b) of every step, from the last to the first.

    The posteriors overwrite the tables of the forward pass where these are scratch: they are valid until the
    next pass only, and this one is used up.
    """
    held: dict[int, Floats] = {}
    with np.errstate(under="ignore"):
        for i in reversed(range(len(plan.steps))):
            step = plan.steps[i]
            above: Floats | float = 1.0
            if step.parent >= 0:
                above = held[step.parent]
                above = above.sum(axis=step.parent_drop) if step.parent_drop else above
            table = forward.tables[i]
            ratio = above / _nonzero(forward.messages[i])
            table = np.multiply(table, ratio, out=table if forward.scratch.holds(table) else None)
            if step.children:
                held[i] = table
            yield step, table


def sample(plan: Plan, forward: Forward, size: int, n: int, rng: np.random.Generator) -> Codes:
    """Draw (size, n, all variables) from a sum-product pass."""
    codes: dict[int, Codes] = {}
    rows = np.arange(n)
    for i in reversed(range(len(plan.steps))):
        step = plan.steps[i]
        cumulative = np.cumsum(_gather(forward.tables[i], step, codes, (size, n), rows), axis=0)
        threshold = rng.random((size, n)) * cumulative[-1]
        codes[step.variable] = (cumulative[:-1] <= threshold).sum(axis=0)
    return np.stack([codes[v] for v in range(len(plan.cards))], axis=-1)


def read_best(plan: Plan, forward: Forward, n_visible: int, k: int, n: int) -> tuple[Codes, Floats]:
    """Read the k best outcomes from a max-product pass: codes (k, n, visible variables) and regrets (k, n).

    Fewer than k come back where there are fewer outcomes; impossible ones have regret minus infinity.
    """
    if k == 1:
        return read_mode(plan, forward, n_visible, n)[0], np.zeros((1, n))
    rows = np.arange(n)
    score = np.zeros((1, n))
    live: dict[int, Codes] = {}  # values (beam, n) of the variables that a step to come looks at
    history: list[tuple[int, Codes, Codes]] = []  # variable, its value in every beam, the beam it extends
    for i in reversed(range(len(plan.steps))):
        step = plan.steps[i]
        if step.variable >= n_visible:
            continue
        choices = _gather(forward.tables[i], step, live, score.shape, rows)
        score, value, origin = _extend(score, choices, k)
        history.append((step.variable, value, origin))
        live[step.variable] = value
        live = {
            v: old if v == step.variable else old[origin, rows]
            for v, old in live.items()
            if plan.last_use[v] < i
        }
    return _trace_back(history, score.shape, n_visible), score


def read_mode(
    plan: Plan, forward: Forward, n_visible: int, n: int, with_lead: bool = False
) -> tuple[Codes, Floats]:
    """Read the best outcome, (1, n, visible variables), and its lead (n,) over the second, if asked for.

    The second departs from the best one at some step, and the regret of the best way to do so is read there.
    """
    codes: dict[int, Codes] = {}
    rows, lead = np.arange(n), np.full(n, np.inf)
    for i in reversed(range(len(plan.steps))):
        step = plan.steps[i]
        if step.variable >= n_visible:
            continue
        choices = _gather(forward.tables[i], step, codes, (1, n), rows)
        codes[step.variable] = choices.argmax(axis=0)
        if with_lead and len(choices) > 1:
            np.minimum(lead, _gap(choices[:, 0]), out=lead)
    return np.stack([codes[v] for v in range(n_visible)], axis=-1), lead


def _gap(choices: Floats) -> Floats:
    """Difference (n,) of the two largest of choices (card, n)."""
    if len(choices) == 2:
        return np.abs(choices[0] - choices[1])
    second, first = np.partition(choices, len(choices) - 2, axis=0)[-2:]
    return np.asarray(first - second)


def _extend(score: Floats, choices: Floats, k: int) -> tuple[Floats, Codes, Codes]:
    """Extend every beam (beam, n) by every choice (card, beam, n); keep the k best: score, value, beam."""
    peak = choices.max(axis=0)
    scores = score + (choices - np.where(np.isneginf(peak), 0.0, peak))
    flat = scores.transpose(1, 0, 2).reshape(-1, score.shape[1])
    # A stable sort of the negative: ties go to the better prefix, then to the lower value, as in the mode.
    best = np.argsort(-flat, axis=0, kind="stable")[:k]
    origin, value = np.divmod(best, len(choices))
    return np.take_along_axis(flat, best, axis=0), value, origin


def _trace_back(history: list[tuple[int, Codes, Codes]], shape: tuple[int, ...], n_visible: int) -> Codes:
    """Follow the beams from the last extension to the first: codes (k, n, visible variables)."""
    codes = np.empty((*shape, n_visible), dtype=np.intp)
    rows = np.arange(shape[1])
    beam = np.broadcast_to(np.arange(shape[0])[:, None], shape)
    for variable, value, origin in reversed(history):
        codes[..., variable] = value[beam, rows]
        beam = origin[beam, rows]
    return codes


def _gather(
    table: Floats, step: Step, codes: Mapping[int, Codes], shape: tuple[int, ...], rows: Codes
) -> Floats:
    """Entries (k, *shape) of a step's table at the separator values in codes, each of this shape."""
    batch = rows if table.shape[-1] != 1 else 0
    if step.separator:
        return table[(slice(None), *(codes[v] for v in step.separator), batch)]
    return np.broadcast_to(table[:, None], (len(table), *shape))
