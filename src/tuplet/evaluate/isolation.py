"""Work in a process of its own: it may be stopped, it may crash, and its memory can be measured."""

from __future__ import annotations

import atexit
import ctypes
import gc
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor, process_executor

__all__ = [
    "CrashedError",
    "MemoryMeter",
    "OverTimeError",
    "StoppedError",
    "run_isolated",
    "stop_workers",
]

T = TypeVar("T")

_IDLE_SECONDS = 300
"""How long a worker waits for the next piece of work before it ends by itself."""


class OverTimeError(Exception):
    """The work took longer than it was given, and was stopped."""


class StoppedError(Exception):
    """The work was given up, by `stop_workers`."""


class CrashedError(Exception):
    """The process that did the work is gone: it crashed, or the system had no memory left for it."""


def run_isolated(
    function: Callable[..., T], *args: Any, time_limit: float | None = None, n_threads: int
) -> T:
    """Return `function(*args)`, computed in another process.

    Threads alone could not be stopped, and a time limit by signals waits for compiled code to return.

    Parameters
    ----------
    function : callable
        Anything that cloudpickle can send, also what a notebook or a script without a main guard defines.
    time_limit : float, optional
        Seconds; then the process is killed and `OverTimeError` raised.
    n_threads : int
        Threads that numerical libraries may use in it.
    """
    with _worker(n_threads) as executor:
        future = executor.submit(function, *args)
        try:
            return future.result(timeout=time_limit)
        except FutureTimeout:
            if future.done():  # the work itself raised a TimeoutError
                raise
            raise OverTimeError from None
        except (BrokenProcessPool, CancelledError) as error:
            if executor in _stopped:
                raise StoppedError from None
            raise CrashedError(_what_happened(error)) from None


def _what_happened(error: BaseException) -> str:
    message = str(error)
    if "un-serialize" in message:
        cause = str(error.__cause__).strip().strip('"').strip().splitlines()[-1:]
        return f"it cannot be sent to another process ({' '.join(cause)}); pass isolate=False"
    code = message.rpartition("{")[2].partition("}")[0] if "{" in message else "no exit code"
    return f"its process ended ({code}); it may have run out of memory"


# -- workers -----------------------------------------------------------------------------------------------

_idle: dict[int, list[ProcessPoolExecutor]] = {}
_busy: set[ProcessPoolExecutor] = set()
_stopped: WeakSet[ProcessPoolExecutor] = WeakSet()
_lock = threading.Lock()


@contextmanager
def _worker(n_threads: int) -> Iterator[ProcessPoolExecutor]:
    """Lend a process; it is kept for the next piece of work unless something went wrong in this one.

    Each is an executor with a single process, so that stopping one leaves the others at work.
    """
    with _lock:
        idle = _idle.setdefault(n_threads, [])
        executor = idle.pop() if idle else None
    if executor is None:
        executor = _new_worker(n_threads)
    with _lock:
        _busy.add(executor)
    try:
        yield executor
    except (OverTimeError, CrashedError, StoppedError, KeyboardInterrupt):
        _kill(executor)
        raise
    except BaseException:
        _release(executor, n_threads)
        raise
    else:
        _release(executor, n_threads)


def _new_worker(n_threads: int) -> ProcessPoolExecutor:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    executor = ProcessPoolExecutor(
        max_workers=1,
        timeout=_IDLE_SECONDS,
        env=dict.fromkeys(names, str(n_threads)),
        initializer=_prepare,
        initargs=(os.getpid(),),
    )
    executor.submit(int).result()  # wait until it is ready: imports are no part of anybody's time
    return executor


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


def _release(executor: ProcessPoolExecutor, n_threads: int) -> None:
    with _lock:
        _busy.discard(executor)
        _idle.setdefault(n_threads, []).append(executor)


def _kill(executor: ProcessPoolExecutor) -> None:
    with _lock:
        _busy.discard(executor)
    executor.shutdown(wait=False, kill_workers=True)


def stop_workers() -> None:
    """End all processes; what is still at work in them is lost."""
    with _lock:
        executors = [*_busy, *(executor for idle in _idle.values() for executor in idle)]
        _stopped.update(executors)
        _idle.clear()
        _busy.clear()
    for executor in executors:
        executor.shutdown(wait=False, kill_workers=True)


atexit.register(stop_workers)


# -- memory ------------------------------------------------------------------------------------------------


class MemoryMeter:
    """Most memory that this process held at any time since the meter was made, beyond what it held then."""

    def __init__(self) -> None:
        _give_back()
        self._resettable = _reset_peak()
        self._start = _status("VmRSS") if self._resettable else _lifetime_peak()

    def peak_mb(self) -> float:
        """Return megabytes; where the system's peak cannot be reset, how much it has grown."""
        peak = _status("VmHWM") if self._resettable else _lifetime_peak()
        return peak - self._start if math.isnan(peak) else max(0.0, peak - self._start)


def _give_back() -> None:
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
