"""Several chains: in step with each other in one process, or each in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from tuplet.interrupts import held_interrupts
from tuplet.local.parallel import one_blas_thread
from tuplet.probit.chain import Chain, ChainDraws, ChainEnd, Plan
from tuplet.processes import shared_workers
from tuplet.progress import Progress, Show

_LOOK = 0.2
"""Seconds between two looks at how far the processes are."""


class Run(NamedTuple):
    """What chains have kept, and whether they were interrupted."""

    chains: list[ChainDraws]
    interrupted: bool


def run_chains(
    plan: Plan,
    rngs: Sequence[np.random.Generator],
    ends: Sequence[ChainEnd | None],
    *,
    n_jobs: int | None = None,
    show: Show = "auto",
) -> Run:
    """Run a chain for each generator; the draws do not depend on `n_jobs`.

    Parameters
    ----------
    plan : Plan
    rngs : sequence of Generator
    ends : sequence of ChainEnd or None
        Where each chain goes on from; None for one that begins.
    n_jobs : int, optional
        Processes, as joblib counts them. stochtree holds Python's lock, so threads would not help.
    show : bool or "auto"
        Whether progress is shown.
    """
    n_jobs = min(effective_n_jobs(n_jobs), len(rngs))
    fresh = [end is None for end in ends]
    total = sum(plan.n_iterations if new else plan.n_draws * plan.thin for new in fresh)
    with Progress("Sampling", total, show=show) as progress:
        run = _side_by_side if n_jobs > 1 else _in_turn
        return run(plan, rngs, ends, n_jobs, progress)


def _in_turn(
    plan: Plan, rngs: Sequence[Any], ends: Sequence[ChainEnd | None], n_jobs: int, progress: Progress
) -> Run:
    """Step the chains in turn, so that after an interrupt all have come equally far."""
    chains: list[Chain] = []
    try:
        with held_interrupts() as pressed:
            chains += [Chain(plan, rng, end) for rng, end in zip(rngs, ends, strict=True)]
            for chain in _turns(chains):
                chain.advance()
                progress.advance()
                if pressed():
                    break
            stopped = pressed()
    except KeyboardInterrupt:
        stopped = True
    return Run([chain.draws() for chain in chains], stopped)


def _turns(chains: Sequence[Chain]) -> Iterator[Chain]:
    """Yield the chains in turn while they have steps left."""
    while any(chain.n_left for chain in chains):
        yield from (chain for chain in chains if chain.n_left)


def _side_by_side(
    plan: Plan, rngs: Sequence[Any], ends: Sequence[ChainEnd | None], n_jobs: int, progress: Progress
) -> Run:
    """Deal the chains to processes; a shared file tells how far they are and whether to stop."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "board"
        board = np.memmap(path, np.int64, "w+", shape=len(rngs) + 1)
        tasks: list[Any] = [
            (rngs[i::n_jobs], ends[i::n_jobs], str(path), i + 1) for i in range(min(n_jobs, len(rngs)))
        ]
        workers, threads = shared_workers(), ThreadPoolExecutor(n_jobs)
        futures: list[Future[list[ChainDraws]]] = []
        try:
            with held_interrupts() as pressed:
                futures += [threads.submit(workers.run, _run_some, plan, *task) for task in tasks]
                _wait(futures, board, progress, pressed)
        except KeyboardInterrupt:  # the second: no waiting for steps that are under way
            board[0] = True
            workers.restart()
        threads.shutdown()
        kept = [f for f in futures if not board[0] or f.exception() is None]
        answer = Run(_in_order([future.result() for future in kept]), bool(board[0]))
        del board  # or the folder could not be removed everywhere
    return answer


def _in_order(dealt: list[list[ChainDraws]]) -> list[ChainDraws]:
    """Return chains that were dealt one to each in turn, in their order."""
    most = max(map(len, dealt), default=0)
    return [part[k] for k in range(most) for part in dealt if k < len(part)]


def _wait(
    futures: list[Future[list[ChainDraws]]], board: Any, progress: Progress, pressed: Callable[[], bool]
) -> None:
    """Show progress until all are done; an interrupt asks the processes to come to an end."""
    left = set(futures)
    while left:
        left = wait(left, _LOOK).not_done
        progress.advance(steps=int(board[1:].sum()) - progress.done)
        board[0] = pressed()


def _run_some(
    plan: Plan, rngs: Sequence[Any], ends: Sequence[ChainEnd | None], path: str, place: int
) -> list[ChainDraws]:
    """Step some chains in turn: after an interrupt, none of them has nothing to show."""
    board = np.memmap(path, np.int64, "r+")
    with one_blas_thread():
        chains = [Chain(plan, rng, end) for rng, end in zip(rngs, ends, strict=True)]
        for chain in _turns(chains):
            if board[0]:
                break
            chain.advance()
            board[place] += 1
        return [chain.draws() for chain in chains]
