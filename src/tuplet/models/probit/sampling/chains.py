"""Markov chains of the sampler: burn-in, kept draws, continuation; several at once in `run_chains`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tuplet.core.interrupts import held_interrupts
from tuplet.core.parallel import fan_out, n_workers, one_blas_thread, open_workers
from tuplet.core.processes import LOOK, Monitor, StoppedError, report
from tuplet.core.progress import Progress, Show
from tuplet.core.typing import Codes, Floats
from tuplet.joint.ghk_kernels import mean_probabilities
from tuplet.models.probit.sampling.correlation import CorrelationStep, Hamiltonian, Identity
from tuplet.models.probit.sampling.means import LinearSettings, MeanDraws, MeanSettings
from tuplet.models.probit.sampling.sampler import MOST_TOGETHER, State, init, offsets_of, settled, step
from tuplet.models.probit.sampling.together import Together


class Run(NamedTuple):
    """What chains have kept, and whether they were interrupted."""

    chains: list[ChainDraws]
    interrupted: bool


def run_chains(
    plan: ChainPlan,
    rngs: Sequence[np.random.Generator],
    ends: Sequence[ChainEnd | None],
    *,
    n_jobs: int | None = None,
    show: Show = "auto",
) -> Run:
    """Run a chain for each generator; the draws do not depend on `n_jobs`.

    Parameters
    ----------
    plan : ChainPlan
    rngs : sequence of Generator
    ends : sequence of ChainEnd or None
        State from which each chain continues; None for one that begins.
    n_jobs : int, optional
        Workers, as joblib counts them. stochtree holds Python's lock, so threads would not help.
    show : bool or "auto"
        Whether progress is shown.
    """
    number = min(n_workers(n_jobs), len(rngs))
    fresh = [end is None for end in ends]
    total = sum(plan.n_iterations if new else plan.n_draws * plan.thin for new in fresh)
    with Progress("Sampling", total, show=show) as progress:
        run = _side_by_side if number > 1 else _in_turn
        return run(plan, rngs, ends, number, progress)


@dataclass(frozen=True)
class ChainPlan:
    """What all chains of a fit have in common.

    Parameters
    ----------
    prepared : object
        What blocks are made from.
    signs : int array (q, n)
        See `State`.
    offsets : float array (q,)
    means : MeanSettings
    rule : CorrelationStep or Together
    n_features : int
    n_burn, n_draws, thin : int
        Iterations that are dropped, draws that are kept after them, and iterations for each of these.
    """

    prepared: Any
    signs: Codes
    offsets: Floats
    means: MeanSettings
    rule: CorrelationStep | Together
    n_features: int
    n_burn: int
    n_draws: int
    thin: int = 1

    @classmethod
    def make(
        cls, X: Floats, signs: Codes, means: MeanSettings, rule: CorrelationStep, *lengths: int
    ) -> ChainPlan:
        """Prepare rows X (n, d) with signs (q, n); lengths are `n_burn`, `n_draws` and `thin`."""
        offsets = offsets_of(signs)
        prepared = means.prepare(X, signs, offsets)
        moved: CorrelationStep | Together = rule
        together = isinstance(means, LinearSettings) and isinstance(rule, Hamiltonian | Identity)
        if together and len(signs) <= MOST_TOGETHER:
            prior = rule if isinstance(rule, Hamiltonian) else None
            moved = Together.make(prior, prepared, signs, offsets)
            prepared, signs = moved.design, np.ascontiguousarray(signs[:, moved.groups.rows])
        return cls(prepared, signs, offsets, means, moved, X.shape[1], *lengths)

    @property
    def n_iterations(self) -> int:
        """Steps of a chain from its start."""
        return self.n_burn + self.n_draws * self.thin


@dataclass(frozen=True)
class ChainEnd:
    """State of a chain when it kept its last draw: enough to continue it."""

    latent: Floats  # (q, n)
    correlation: Any
    records: list[Any]  # the mean function of each label
    rng: np.random.Generator


@dataclass(frozen=True)
class ChainDraws:
    """What a chain has kept."""

    correlations: Floats  # (draws, q, q)
    levels: Floats  # (draws, q) mean probability of each label over the training rows
    means: MeanDraws | None  # None without draws
    accepted: float  # share of accepted moves of R
    end: ChainEnd | None

    def __len__(self) -> int:
        return len(self.correlations)


class MarkovChain:
    """A chain under way.

    Parameters
    ----------
    plan : ChainPlan
    rng : Generator
        Everything random follows from it.
    end : ChainEnd, optional
        Go on from there, without burn-in; `rng` is then not used.
    """

    def __init__(self, plan: ChainPlan, rng: np.random.Generator, end: ChainEnd | None = None) -> None:
        self.plan = plan
        self.rng = rng if end is None else copy.deepcopy(end.rng)
        blocks = plan.means.blocks(plan.prepared, len(plan.signs))
        self.state = (
            init(plan.signs, blocks, plan.rule, self.rng, plan.offsets)
            if end is None
            else _resume(plan, blocks, end)
        )
        self.n_left = plan.n_iterations if end is None else plan.n_draws * plan.thin
        self._end = end
        self._last: tuple[State, list[Any], Any] | None = None
        self._kept: list[tuple[Floats, Floats, list[Any]]] = []
        self._accepted: list[float] = []

    def advance(self) -> None:
        """Take one step, and keep it if it is time."""
        drawing = self.plan.n_draws * self.plan.thin
        if self.n_left == drawing:
            self.state = settled(self.state)
            self.state.blocks.settle()
        self.state, info = step(self.state, self.rng)
        self.n_left -= 1
        if self.n_left < drawing:
            self._accepted.append(info.accepted)
            if self.n_left % self.plan.thin == 0:
                self._keep()

    def _keep(self) -> None:
        state = self.state
        records = state.blocks.record(self.rng)
        randomness = self.rng.bit_generator.state  # a copy of the generator would cost as much as a step
        # Together at the end, so that an interrupt finds all of a draw or nothing.
        self._kept.append((state.matrix, mean_probabilities(state.means), records))
        self._last = state, records, randomness

    def draws(self) -> ChainDraws:
        """Return what has been kept so far."""
        q = len(self.plan.signs)
        kept = self._kept
        return ChainDraws(
            np.array([draw[0] for draw in kept]).reshape(-1, q, q),
            np.array([draw[1] for draw in kept]).reshape(-1, q),
            self.plan.means.collect([draw[2] for draw in kept], self.plan.n_features) if kept else None,
            float(np.mean(self._accepted)) if self._accepted else float("nan"),
            self._ended(),
        )

    def _ended(self) -> ChainEnd | None:
        """Return the state at the last draw."""
        if self._last is None:
            return self._end
        state, records, randomness = self._last
        rng = copy.deepcopy(self.rng)
        rng.bit_generator.state = randomness
        return ChainEnd(state.latent, state.correlation, records, rng)


def _in_turn(
    plan: ChainPlan, rngs: Sequence[Any], ends: Sequence[ChainEnd | None], number: int, progress: Progress
) -> Run:
    """Step the chains in turn, so that after an interrupt all have come equally far."""
    chains: list[MarkovChain] = []
    try:
        with held_interrupts() as pressed:

            def go_on(n_steps: int) -> bool:
                progress.advance(steps=n_steps)
                return not pressed()

            chains += [MarkovChain(plan, rng, end) for rng, end in zip(rngs, ends, strict=True)]
            _advance(chains, go_on)
            stopped = pressed()
    except KeyboardInterrupt:
        stopped = True
    return Run([chain.draws() for chain in chains], stopped)


def _advance(chains: Sequence[MarkovChain], go_on: Callable[[int], bool]) -> None:
    for chain in _turns(chains):
        chain.advance()
        if not go_on(1):
            break


def _turns(chains: Sequence[MarkovChain]) -> Iterator[MarkovChain]:
    """Yield the chains in turn while they have steps left."""
    while any(chain.n_left for chain in chains):
        yield from (chain for chain in chains if chain.n_left)


def _side_by_side(
    plan: ChainPlan, rngs: Sequence[Any], ends: Sequence[ChainEnd | None], number: int, progress: Progress
) -> Run:
    """Deal the chains to workers, which stop after the first interrupt and are ended by the second."""
    monitor, kept = Monitor(), dict[int, list[ChainDraws]]()
    with open_workers(keep=True) as workers:

        def work(i: int) -> tuple[int, list[ChainDraws]]:
            return i, workers.run(_run_some, plan, rngs[i::number], ends[i::number], monitor=monitor)

        def look() -> float:
            progress.advance(steps=monitor.n_steps - progress.done)
            monitor.stop = pressed()
            return LOOK

        try:
            with held_interrupts() as pressed:
                for i, draws in fan_out(work, range(number), number, workers, between=look):
                    kept[i] = draws
        except (KeyboardInterrupt, StoppedError):
            monitor.stop = True
    if not monitor.stop:
        progress.advance(steps=progress.total - progress.done)  # clusters report no steps
    return Run(_in_order([kept[i] for i in sorted(kept)]), monitor.stop)


def _in_order(dealt: list[list[ChainDraws]]) -> list[ChainDraws]:
    """Return chains that were dealt one to each in turn, in their order."""
    most = max(map(len, dealt), default=0)
    return [part[k] for k in range(most) for part in dealt if k < len(part)]


def _run_some(plan: ChainPlan, rngs: Sequence[Any], ends: Sequence[ChainEnd | None]) -> list[ChainDraws]:
    """Step some chains in turn: after an interrupt, none of them has nothing to show."""
    with one_blas_thread():
        chains = [MarkovChain(plan, rng, end) for rng, end in zip(rngs, ends, strict=True)]
        _advance(chains, report)
        return [chain.draws() for chain in chains]


def _resume(plan: ChainPlan, blocks: Any, end: ChainEnd) -> State:
    means = blocks.restore(end.records) + plan.offsets[:, None]
    return State(
        plan.signs, plan.offsets, end.latent, means, blocks, plan.rule, end.correlation, adapting=False
    )
