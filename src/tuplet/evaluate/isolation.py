"""Work in processes of its own: it may be stopped, it may crash, and its memory can be measured."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any, Self, TypeVar

from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor, process_executor

__all__ = ["CrashedError", "MemoryMeter", "OverTimeError", "StoppedError", "Workers"]

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
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._lock = threading.Lock()
        self._idle: list[ProcessPoolExecutor] = []
        self._alive: set[ProcessPoolExecutor] = set()
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.n_threads,)  # on another machine there are other processes

    def run(self, function: Callable[..., T], *args: Any, time_limit: float | None = None) -> T:
        """Return `function(*args)`, computed in another process.

        Parameters
        ----------
        function : callable
            Anything that cloudpickle can send, also what a notebook or a script without a main guard defines.
        time_limit : float, optional
            Seconds; then the process is killed and `OverTimeError` raised.
        """
        while True:
            executor, used = self._take()
            try:
                future = executor.submit(function, *args)
                answer = _wait(future, time_limit)
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

    def _take(self) -> tuple[ProcessPoolExecutor, bool]:
        """Return an idle process, or a new one; and whether it was used before."""
        with self._lock:
            if self._stopped:
                raise StoppedError
            if self._idle:
                return self._idle.pop(), True
            executor = _new_executor(self.n_threads)
            self._alive.add(executor)
        try:
            executor.submit(int).result()  # until it is ready: imports are no part of anybody's time
        except Exception as error:
            self._kill(executor)
            raise (StoppedError() if self._stopped else CrashedError(_what_happened(error))) from None
        return executor, False

    def _give_back(self, executor: ProcessPoolExecutor) -> None:
        with self._lock:
            if not self._stopped:
                self._idle.append(executor)

    def _kill(self, executor: ProcessPoolExecutor) -> None:
        with self._lock:
            self._alive.discard(executor)
        executor.shutdown(wait=False, kill_workers=True)


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
        return f"it cannot be sent to another process and back ({' '.join(cause)}); pass isolate=False"
    code = message.rpartition("{")[2].partition("}")[0] if "{" in message else "no exit code"
    memory = "; it may have run out of memory" if "SIGKILL" in code else ""
    return f"its process ended ({code}){memory}"


def _new_executor(n_threads: int) -> ProcessPoolExecutor:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return ProcessPoolExecutor(
        max_workers=1,
        timeout=_IDLE_SECONDS,
        env=dict.fromkeys(names, str(n_threads)),
        initializer=_prepare,
        initargs=(os.getpid(),),
    )


def _prepare(parent: int) -> None:
    """Let a new process import the library, and end when the process that started it does.

    A run that is killed cannot end its workers; without this they would go on for nobody.
    """
    import tuplet.evaluate.work  # noqa: F401

    # loky would replace a process that holds 300 MB more than before, as large data do, and warn of it.
    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# -- memory ------------------------------------------------------------------------------------------------


class MemoryMeter:
    """Most memory that this process held at any time since the meter was made, beyond what it held then."""

    def __init__(self) -> None:
        _return_free_memory()
        self._resettable = _reset_peak()
        self._start = _status("VmRSS") if self._resettable else _lifetime_peak()

    def peak_mb(self) -> float:
        """Return megabytes; where the system's peak cannot be reset, how much it has grown."""
        peak = _status("VmHWM") if self._resettable else _lifetime_peak()
        return peak - self._start if math.isnan(peak) else max(0.0, peak - self._start)


def _return_free_memory() -> None:
    """Give free memory back to the system, or a fit that uses it again would seem to need none."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, TypeError, AttributeError):  # only the C library of Linux has it
        return


def _reset_peak() -> bool:
    """Let the system's record of this process's peak start anew; only Linux can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1024


def _lifetime_peak() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
