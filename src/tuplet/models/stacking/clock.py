"""Work against the clock: pieces side by side in processes of their own, cut off at a deadline."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, final

from tuplet.core.clock import TimeBudget
from tuplet.core.parallel import fan_out, open_workers
from tuplet.core.processes import CrashedError, OverTimeError, Packed, StoppedError
from tuplet.models.stacking.held_out import Rows

_PART, _FIRST_PART = 0.12, 0.5
"""Share of the time left that a task of unknown length may take: now that others are done, and before."""

_LATE = 0.4
"""Share of the whole time that tasks of unknown length must leave to the others."""


@final
@dataclass(frozen=True)
class Task:
    """A piece of work: `function(rows, *args)`.

    Attributes
    ----------
    expected : float
        Seconds that it should take.
    light : bool
        Whether it surely takes a moment only, so that it can be done right here, where it cannot be stopped.
    unknown : bool
        Whether nobody knows how long it takes; then it gets a part of what is left, or one that never ends
        would take the time of all others.
    """

    key: Any
    function: Callable[..., Any]
    args: tuple[Any, ...]
    expected: float = 0.0
    light: bool = False
    unknown: bool = False


@final
@dataclass(frozen=True)
class Done:
    """What became of a task: a value, or the reason why there is none."""

    value: Any = None
    status: str = "ok"


@final
class Crew:
    """Workers on the same rows, which are sent to each of them once.

    Parameters
    ----------
    rows : Rows
    n_workers : int
    clock : TimeBudget
    """

    def __init__(self, rows: Rows, n_workers: int, clock: TimeBudget) -> None:
        self.clock, self.n_workers, self.interrupted = clock, n_workers, False
        self._workers, self._any_done = open_workers(), False
        self._rows, self._packed = rows, Packed(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.stop()

    def run(
        self,
        tasks: Sequence[Task],
        reserve: Callable[[], float] = float,
        told: Callable[[Task, Done], None] | None = None,
    ) -> dict[Any, Done]:
        """Do tasks in their order until so many seconds (`reserve`) are left; what was cut off says so.

        A task that is expected to take longer than there is time is not begun. An interrupt ends the run,
        with what is done, and sets `interrupted`; a second one is for the caller.
        """
        done: dict[Any, Done] = {}
        light = iter([task for task in tasks if task.light])

        def enter(task: Task, result: Done) -> None:
            done[task.key] = result
            self._any_done |= result.status == "ok"
            if told is not None:
                told(task, result)

        def do_light() -> float | None:
            """Do one light task while others are awaited."""
            task = next(light, None)
            if task is not None:
                enter(task, self._here(task, reserve))
            return None if task is None else 0.0

        def work(task: Task) -> tuple[Task, Done]:
            return task, self._there(task, reserve)

        heavy = [task for task in tasks if not task.light]
        try:
            for task, result in fan_out(work, heavy, self.n_workers, self._workers, between=do_light):
                enter(task, result)
            while do_light() is not None:
                pass
        except KeyboardInterrupt:
            self._workers.stop()
            self._workers = open_workers()
            if self.interrupted:
                raise
            self.interrupted = True
        return done

    def _here(self, task: Task, reserve: Callable[[], float]) -> Done:
        if self.clock.left - reserve() <= task.expected:
            return Done(status="no time")
        return _outcome(_guarded(self._rows, task.function, task.args))

    def _there(self, task: Task, reserve: Callable[[], float]) -> Done:
        kept = reserve()
        if self.clock.left - kept <= task.expected:
            return Done(status="no time")
        limit = self._limit() if task.unknown else None
        if limit is not None and limit <= 0:
            return Done(status="no time")
        try:
            value = self._workers.run(
                _work,
                self._packed,
                task.function,
                task.args,
                time_limit=limit,
                deadline=self.clock.after(self.clock.seconds - kept),
            )
        except OverTimeError:
            return Done(status="over time")
        except StoppedError:
            return Done(status="stopped")
        except CrashedError as crash:
            return Done(status=f"crashed: {crash}")
        return _outcome(value)

    @property
    def start_seconds(self) -> float:
        """How long a new process takes until it can work."""
        return self._workers.start_seconds

    def _limit(self) -> float:
        """Seconds that a task of unknown length gets."""
        left = self.clock.left
        if not self._any_done:
            return left * _FIRST_PART
        # To be cut off costs a new process: not for less than the time that it takes to start.
        return min(max(left * _PART, self.start_seconds), left - self.clock.seconds * _LATE)


@dataclass(frozen=True)
class _Failure:
    reason: str


def _outcome(value: Any) -> Done:
    return Done(status=f"failed: {value.reason}") if isinstance(value, _Failure) else Done(value)


def _work(rows: Packed, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Do a task in another process."""
    return _guarded(rows.open(), function, args)


def _guarded(rows: Rows, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return an answer, or an error in words: errors of some packages do not survive the way back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these are candidates, not what the user chose
        try:
            return function(rows, *args)
        except Exception as error:
            return _Failure(f"{type(error).__name__}: {' '.join(str(error).split())}")
