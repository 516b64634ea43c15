"""Work against the clock: pieces side by side in processes of their own, cut off at a deadline."""

from __future__ import annotations

import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import joblib

from tuplet.core.clock import TimeBudget
from tuplet.core.processes import CrashedError, OverTimeError, StoppedError, Workers
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
    """Processes that work on the same rows, which they read once from a temporary file.

    Parameters
    ----------
    rows : Rows
    n_workers : int
    clock : TimeBudget
    """

    def __init__(self, rows: Rows, n_workers: int, clock: TimeBudget) -> None:
        self.clock, self.n_workers, self.interrupted = clock, n_workers, False
        self._workers = Workers(1, ["tuplet.models.stacking.clock"])
        self._folder = tempfile.TemporaryDirectory(prefix="tuplet-")
        self._file = str(Path(self._folder.name) / "rows")
        self._rows, self._any_done = rows, False
        joblib.dump(rows, self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.stop()
        self._folder.cleanup()

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
        lock = threading.Lock()

        def work(task: Task) -> None:
            result = self._here(task, reserve) if task.light else self._there(task, reserve)
            with lock:
                done[task.key] = result
                self._any_done |= result.status == "ok"
                if told is not None:
                    told(task, result)

        with ThreadPoolExecutor(self.n_workers) as threads:
            futures = [threads.submit(work, task) for task in tasks if not task.light]
            try:
                for task in tasks:
                    if task.light:
                        work(task)
                for future in futures:
                    future.result()
            except KeyboardInterrupt:
                self._give_up(futures)
                if self.interrupted:
                    raise
                self.interrupted = True
        return done

    def _give_up(self, futures: Sequence[Future[None]]) -> None:
        for future in futures:
            future.cancel()
        self._workers.stop()  # and the threads that wait for them go on
        self._workers = Workers(1, self._workers.modules)

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
                self._file,
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


@lru_cache(maxsize=1)
def _read(file: str) -> Rows:
    rows: Rows = joblib.load(file)
    return rows


def _work(file: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Do a task in another process."""
    return _guarded(_read(file), function, args)


def _guarded(rows: Rows, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return an answer, or an error in words: errors of some packages do not survive the way back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these are candidates, not what the user chose
        try:
            return function(rows, *args)
        except Exception as error:
            return _Failure(f"{type(error).__name__}: {' '.join(str(error).split())}")
