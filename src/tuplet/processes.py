"""Work in processes of its own: it can be stopped, and it may crash.

Processes are forked from a server that has the library loaded, where the system has such servers, and started
anew elsewhere. The server runs one thread, so that forking is safe: BLAS and OpenMP start none in it.
"""

from __future__ import annotations

import atexit
import importlib
import logging
import multiprocessing.util  # whose exit function waits for children: ours, registered later, runs before it
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

import cloudpickle  # type: ignore[import-untyped]

__all__ = ["CrashedError", "OverTimeError", "StoppedError", "Workers", "now", "shared_workers"]

_log = logging.getLogger("tuplet.processes")

T = TypeVar("T")

_IDLE_SECONDS = 300
"""How long a worker waits for the next piece of work before it ends by itself."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Variables that tell numerical libraries how many threads to start."""

_LOADED = ("tuplet.models.chain", "tuplet.evaluate.work", "tuplet.models.stacking.clock", "sklearn.ensemble")
"""What the server imports before it forks."""


def now() -> float:
    """Return the seconds of the clock that deadlines refer to; tests replace it."""
    return time.monotonic()


class OverTimeError(Exception):
    """The work took longer than it was given, and was stopped."""


class CrashedError(Exception):
    """The process that did the work is gone, or the work could not get there and back."""


class StoppedError(Exception):
    """The work was given up, by `Workers.stop`."""


class Workers:
    """Processes that do one piece of work at a time, kept for the next one unless something goes wrong.

    Threads could not be stopped, and a time limit by signals waits for compiled code to return.

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
        self._idle: list[_Worker] = []
        self._alive: set[_Worker] = set()
        self._stopped = False
        self.start_seconds = 0.0
        _made.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.n_threads, self.modules)  # on another machine there are other processes

    @property
    def n_idle(self) -> int:
        """Number of processes that wait for work."""
        return len(self._idle)

    def run(
        self,
        function: Callable[..., T],
        *args: Any,
        time_limit: float | None = None,
        deadline: float | None = None,
    ) -> T:
        """Return `function(*args)`, computed in another process; what it raises is raised here.

        Parameters
        ----------
        function : callable
            Anything that cloudpickle can send, also what a notebook or a script without a main guard defines.
        time_limit : float, optional
            Seconds that the work may take; then the process is killed and `OverTimeError` raised.
        deadline : float, optional
            When the answer must be here, by `now`; the start of a process counts, too.
        """
        message = _packed((function, args))
        self._require_going()
        while True:
            worker, used = self._take(deadline)
            try:
                outcome = worker.ask(message, _sooner(time_limit, deadline))
            except BaseException as error:
                self._kill(worker)
                self._require_going(error)
                if used and isinstance(error, CrashedError):
                    continue  # it may have died of what was done before: a new one decides
                raise
            self._give_back(worker)
            return outcome()

    def stop(self) -> None:
        """End all processes; what is still at work in them is lost, and no more is taken."""
        with self._lock:
            self._stopped = True
            alive = list(self._alive)
            self._alive.clear()
            self._idle.clear()
        for worker in alive:
            worker.kill()

    def restart(self) -> None:
        """End all processes, and take further work."""
        self.stop()
        self._stopped = False

    def _take(self, deadline: float | None) -> tuple[_Worker, bool]:
        """Return an idle process, or a new one; and whether it was used before."""
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        start = now()
        worker = _Worker(self.n_threads, self.modules)
        with self._lock:
            self._alive.add(worker)
        try:
            self._require_going()
            worker.wait(_sooner(None, deadline))  # until it is ready: imports are no part of a time limit
        except BaseException as error:
            self._kill(worker)
            self._require_going(error)
            raise
        self.start_seconds = now() - start
        _log.debug("process %s ready after %.1f s", worker.pid, self.start_seconds)
        return worker, False

    def _require_going(self, error: BaseException | None = None) -> None:
        """Raise `StoppedError` if there is no more work to be done; an interrupt goes first."""
        if self._stopped and not isinstance(error, KeyboardInterrupt):
            raise StoppedError from None

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if not self._stopped:
                self._idle.append(worker)

    def _kill(self, worker: _Worker) -> None:
        with self._lock:
            self._alive.discard(worker)
        worker.kill()


_made: weakref.WeakSet[Workers] = weakref.WeakSet()
_shared: dict[int, Workers] = {}


def shared_workers() -> Workers:
    """Return the processes, with one thread each, that all parallel fits of this process share."""
    return _shared.setdefault(os.getpid(), Workers())


@atexit.register
def _stop_all() -> None:
    for workers in list(_made):
        workers.stop()


def _sooner(time_limit: float | None, deadline: float | None) -> float | None:
    """Return the seconds that are left until the limit or the deadline."""
    if deadline is None:
        return time_limit
    left = max(0.0, deadline - now())
    return left if time_limit is None else min(time_limit, left)


# -- one process, from outside -----------------------------------------------------------------------------


class _Worker:
    """A process and the pipe to it."""

    def __init__(self, n_threads: int, modules: Sequence[str]) -> None:
        context = _context()
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, n_threads, modules), name="tuplet worker")
        with _starting(n_threads):
            self._process.start()
        far.close()

    @property
    def pid(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    def ask(self, message: bytes, time_limit: float | None) -> Callable[[], Any]:
        """Send work; return a function that returns its answer, or raises what it raised."""
        try:
            self._pipe.send_bytes(message)
        except OSError:
            raise CrashedError(self._end()) from None
        return self.wait(time_limit)

    def wait(self, time_limit: float | None) -> Callable[[], Any]:
        """Wait for the next message."""
        try:
            if not self._pipe.poll(time_limit):
                raise OverTimeError
            message = self._pipe.recv_bytes()
        except (EOFError, OSError):
            raise CrashedError(self._end()) from None
        return _unpacked(message)

    def kill(self) -> None:
        """End the process at once."""
        _log.debug("process %s is ended", self.pid)
        with suppress(ValueError, OSError):
            self._process.kill()
        threading.Thread(target=self._process.join, daemon=True).start()  # or it stays as a zombie

    def _end(self) -> str:
        """Return how the process ended."""
        with suppress(ValueError, AssertionError):
            self._process.join(5)
        code = self._process.exitcode
        if code is None:
            return "its process does not answer"
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        memory = "; it may have run out of memory" if name == "SIGKILL" else ""
        return f"its process ended ({name}){memory}"


def _context() -> Any:
    methods = multiprocessing.get_all_start_methods()
    wanted = os.environ.get("TUPLET_START_METHOD", "forkserver")
    context: Any = multiprocessing.get_context(wanted if wanted in methods else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(list(_LOADED))
    return context


_starts = threading.Lock()


@contextmanager
def _starting(n_threads: int) -> Iterator[None]:
    """Start a process, or the server, with one thread per library and without importing the user's script.

    Python would import the main module in it, which runs a script that has no main guard once more; what a
    script defines is sent by value instead.
    """
    threads = 1 if _context().get_start_method() == "forkserver" else n_threads
    nothing: dict[str, Any] = dict.fromkeys(("__spec__", "__file__"))
    with (
        _starts,
        _replaced(vars(sys.modules["__main__"]), nothing),
        _replaced(os.environ, dict.fromkeys(_THREADS, str(threads))),
    ):
        yield


@contextmanager
def _replaced(entries: MutableMapping[str, Any], others: Mapping[str, Any]) -> Iterator[None]:
    """Replace entries for a while."""
    before = {name: entries[name] for name in others if name in entries}
    entries.update(others)
    try:
        yield
    finally:
        for name in others:
            del entries[name]
        entries.update(before)


# -- messages ----------------------------------------------------------------------------------------------


def _packed(content: Any) -> bytes:
    try:
        return bytes(cloudpickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL))
    except Exception as error:
        raise CrashedError(_unsendable(error)) from None


def _unsendable(error: BaseException) -> str:
    return f"it cannot be sent to another process and back ({' '.join(str(error).split()) or repr(error)})"


def _unpacked(message: bytes) -> Callable[[], Any]:
    try:
        kind, content = pickle.loads(message)
    except Exception as error:
        raise CrashedError(_unsendable(error)) from None
    if kind == "unsendable":
        raise CrashedError(content)

    def outcome() -> Any:
        if kind == "raised":
            raise content
        return content

    return outcome


# -- one process, from inside ------------------------------------------------------------------------------


def _serve(pipe: Any, n_threads: int, modules: Sequence[str]) -> None:
    """Do the work that comes through a pipe until it is closed, or nothing has come for a while."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the one that waits decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for module in modules:
        importlib.import_module(module)
    if n_threads > 1:  # the server has one
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        threadpool_limits(n_threads)
    pipe.send_bytes(pickle.dumps(("value", None)))
    with suppress(EOFError, OSError):
        while pipe.poll(_IDLE_SECONDS):
            pipe.send_bytes(_answer(pipe.recv_bytes()))


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: a run that is killed cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answer(message: bytes) -> bytes:
    """Do a piece of work and return what came of it as a message."""
    try:
        function, args = pickle.loads(message)
    except BaseException as error:
        return pickle.dumps(("unsendable", _unsendable(error)))
    try:
        outcome = ("value", function(*args))
    except Exception as error:
        outcome = ("raised", error)
    except BaseException as error:  # sys.exit() must not end the process that reads this
        outcome = ("raised", RuntimeError(f"{type(error).__name__}: {error}"))
    try:
        return _packed(outcome)
    except CrashedError as error:
        return pickle.dumps(("unsendable", str(error)))
