"""Work in processes of its own: it may be stopped, and it may crash."""

from __future__ import annotations

import importlib
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Self, TypeVar

from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor, process_executor

__all__ = ["CrashedError", "OverTimeError", "StoppedError", "Workers"]

T = TypeVar("T")

_IDLE_SECONDS = 300
"""How long a worker waits for the next piece of work before it ends by itself."""


class OverTimeError(Exception):
    """The work took longer than it was given, and was stopped."""


class CrashedError(Exception):
    """The process that did the work is gone, or the work could not get there and back."""


class StoppedError(Exception):
    """The work was given up, by `Workers.stop`."""


class Workers:
    """Processes that do one piece of work at a time, kept for the next one unless something goes wrong.

    Threads could not be stopped, and a time limit by signals waits for compiled code to return. Each process
    is an executor of its own, so that stopping one leaves the others at work.

    Parameters
    ----------
    n_threads : int
        Threads that numerical libraries may use in each process.
    modules : sequence of str
        What a process imports before any work is sent to it.

    Attributes
    ----------
    start_seconds : float
        How long it took until the last new process was ready.
    """

    def __init__(self, n_threads: int = 1, modules: Sequence[str] = ()) -> None:
        self.n_threads, self.modules = n_threads, tuple(modules)
        self._lock = threading.Lock()
        self._idle: list[ProcessPoolExecutor] = []
        self._alive: set[ProcessPoolExecutor] = set()
        self._stopped = False
        self.start_seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.n_threads, self.modules)  # on another machine there are other processes

    def run(
        self,
        function: Callable[..., T],
        *args: Any,
        time_limit: float | None = None,
        deadline: float | None = None,
    ) -> T:
        """Return `function(*args)`, computed in another process.

        Parameters
        ----------
        function : callable
            Anything that cloudpickle can send, also what a notebook or a script without a main guard defines.
        time_limit : float, optional
            Seconds that the work may take; then the process is killed and `OverTimeError` raised.
        deadline : float, optional
            When the answer must be here, by `time.monotonic`; the start of a process counts, too.
        """
        while True:
            executor, used = self._take(deadline)
            try:
                future = executor.submit(function, *args)
                answer = _wait(future, _sooner(time_limit, deadline))
            except BaseException as error:
                self._kill(executor)
                if self._stopped:
                    raise StoppedError from None
                if used and isinstance(error, BrokenProcessPool):
                    continue  # it may have died of what was done before: a new one decides
                if isinstance(error, (OverTimeError, KeyboardInterrupt)):
                    raise
                raise CrashedError(_what_happened(error)) from None
            self._give_back(executor)
            return answer

    def stop(self) -> None:
        """End all processes; what is still at work in them is lost, and no more is taken."""
        with self._lock:
            self._stopped = True
            alive = list(self._alive)
            self._alive.clear()
            self._idle.clear()
        for executor in alive:
            executor.shutdown(wait=False, kill_workers=True)

    def _take(self, deadline: float | None) -> tuple[ProcessPoolExecutor, bool]:
        """Return an idle process, or a new one; and whether it was used before."""
        with self._lock:
            if self._stopped:
                raise StoppedError
            if self._idle:
                return self._idle.pop(), True
            executor = _new_executor(self.n_threads, self.modules)
            self._alive.add(executor)
        start = time.monotonic()
        try:
            # Until it is ready: imports are no part of a time limit.
            _wait(executor.submit(int), _sooner(None, deadline))
        except OverTimeError:
            self._kill(executor)
            raise
        except Exception as error:
            self._kill(executor)
            raise (StoppedError() if self._stopped else CrashedError(_what_happened(error))) from None
        self.start_seconds = time.monotonic() - start
        return executor, False

    def _give_back(self, executor: ProcessPoolExecutor) -> None:
        with self._lock:
            if not self._stopped:
                self._idle.append(executor)

    def _kill(self, executor: ProcessPoolExecutor) -> None:
        with self._lock:
            self._alive.discard(executor)
        executor.shutdown(wait=False, kill_workers=True)


def _sooner(time_limit: float | None, deadline: float | None) -> float | None:
    """Return the seconds that are left until the limit or the deadline."""
    if deadline is None:
        return time_limit
    left = max(0.0, deadline - time.monotonic())
    return left if time_limit is None else min(time_limit, left)


def _wait(future: Future[T], time_limit: float | None) -> T:
    try:
        return future.result(timeout=time_limit)
    except FutureTimeout:
        if future.done():  # the work itself raised a TimeoutError
            raise
        raise OverTimeError from None


def _what_happened(error: BaseException) -> str:
    message = str(error)
    if "un-serialize" in message or not isinstance(error, BrokenProcessPool):
        cause = str(error.__cause__ or error).strip().strip('"').strip().splitlines()[-1:]
        return f"it cannot be sent to another process and back ({' '.join(cause)})"
    code = message.rpartition("{")[2].partition("}")[0] if "{" in message else "no exit code"
    memory = "; it may have run out of memory" if "SIGKILL" in code else ""
    return f"its process ended ({code}){memory}"


def _new_executor(n_threads: int, modules: Sequence[str]) -> ProcessPoolExecutor:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return ProcessPoolExecutor(
        max_workers=1,
        timeout=_IDLE_SECONDS,
        env=dict.fromkeys(names, str(n_threads)),
        initializer=_prepare,
        initargs=(os.getpid(), modules),
    )


def _prepare(parent: int, modules: Sequence[str]) -> None:
    """Let a new process import the library, and end when the process that started it does.

    A run that is killed cannot end its workers; without this they would go on for nobody.
    """
    for module in modules:
        importlib.import_module(module)

    # loky would replace a process that holds 300 MB more than before, as large data do, and warn of it.
    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
