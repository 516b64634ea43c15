"""One chain: burn-in, kept draws, and where to go on."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from tuplet.probit.correlation import CorrelationStep
from tuplet.probit.means import MeanDraws, MeanSettings
from tuplet.probit.sampler import State, init, offsets_of, settled, step
from tuplet.typing import Codes, Floats


@dataclass(frozen=True)
class Plan:
    """What all chains of a fit have in common.

    Parameters
    ----------
    X : float array (n, d)
    signs : int array (q, n)
        See `State`.
    means : MeanSettings
    rule : CorrelationStep
    n_burn, n_draws, thin : int
        Iterations that are dropped, draws that are kept after them, and iterations for each of these.
    """

    X: Floats
    signs: Codes
    means: MeanSettings
    rule: CorrelationStep
    n_burn: int
    n_draws: int
    thin: int = 1

    @property
    def n_iterations(self) -> int:
        """Steps of a chain from its start."""
        return self.n_burn + self.n_draws * self.thin


@dataclass(frozen=True)
class ChainEnd:
    """Where a chain was when it kept its last draw: enough to go on from."""

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


class Chain:
    """A chain under way.

    Parameters
    ----------
    plan : Plan
    rng : Generator
        Everything random follows from it.
    end : ChainEnd, optional
        Go on from there, without burn-in; `rng` is then not used.
    """

    def __init__(self, plan: Plan, rng: np.random.Generator, end: ChainEnd | None = None) -> None:
        self.plan = plan
        self.rng = rng if end is None else copy.deepcopy(end.rng)
        blocks = plan.means.blocks(plan.X, len(plan.signs))
        self.state = (
            init(plan.signs, blocks, plan.rule, self.rng) if end is None else _resume(plan, blocks, end)
        )
        self.n_left = plan.n_iterations if end is None else plan.n_draws * plan.thin
        self._end: ChainEnd | None = end
        self._kept: list[tuple[Floats, Floats, list[Any]]] = []
        self._accepted: list[float] = []

    def advance(self) -> None:
        """Take one step, and keep it if it is time."""
        drawing = self.plan.n_draws * self.plan.thin
        if self.n_left == drawing:
            self.state = settled(self.state)
            for block in self.state.blocks:
                block.settle()
        self.state, info = step(self.state, self.rng)
        self.n_left -= 1
        if self.n_left < drawing:
            self._accepted.append(info.accepted)
            if self.n_left % self.plan.thin == 0:
                self._keep()

    def _keep(self) -> None:
        state = self.state
        records = [block.record() for block in state.blocks]
        end = ChainEnd(state.latent, state.correlation, records, copy.deepcopy(self.rng))
        # Together at the end, so that an interrupt finds all of a draw or nothing.
        self._kept.append((state.matrix, ndtr(state.means).mean(axis=1), records))
        self._end = end

    def draws(self) -> ChainDraws:
        """Return what has been kept so far."""
        q = len(self.plan.signs)
        kept = self._kept
        return ChainDraws(
            np.array([draw[0] for draw in kept]).reshape(-1, q, q),
            np.array([draw[1] for draw in kept]).reshape(-1, q),
            self.plan.means.collect([draw[2] for draw in kept], self.plan.X.shape[1]) if kept else None,
            float(np.mean(self._accepted)) if self._accepted else float("nan"),
            self._end,
        )


def _resume(plan: Plan, blocks: Any, end: ChainEnd) -> State:
    offsets = offsets_of(plan.signs)
    means = np.stack([block.restore(record) for block, record in zip(blocks, end.records, strict=True)])
    means += offsets[:, None]
    return State(
        plan.signs, offsets, end.latent, means, tuple(blocks), plan.rule, end.correlation, adapting=False
    )
