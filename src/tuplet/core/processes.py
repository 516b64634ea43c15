"""Worker processes: work in them can be stopped, and may crash.

Processes are forked from a server that has the library loaded, where the system has such servers, and started
anew elsewhere. The server runs one thread, so that forking is safe: BLAS and OpenMP start none in it.
"""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import multiprocessing.util
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

import cloudpickle  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tuplet.core import clock
from tuplet.core.delegates import PRELOADED

_log = logging.getLogger("tuplet.core.processes")

T = TypeVar("T")

_IDLE_SECONDS = 300
"""How long a worker waits for the next piece of work before it ends by itself."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that set the number of threads of numerical libraries."""

_shared: dict[int, Workers] = {}
"""Number of a process -> the workers that all its parallel fits share."""

_server_owner: int | None = None
"""Number of the process that has started the server."""

_starts = threading.Lock()
"""Held while a process is started, since that changes the environment of this one."""


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
        self._stopped, self._n_stops = False, 0
        self.start_seconds = 0.0
        # At the exit of the process that made them; Python would wait for idle ones.
        multiprocessing.util.Finalize(self, _kill_all, args=(self._alive,), exitpriority=100)

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
            When the answer must be here, by `clock.now`; the start of a process counts, too.
        """
        message = pack((function, args))
        while True:
            with self.lease(deadline) as worker:
                used = worker.used
                try:
                    return worker.request(message, _sooner(time_limit, deadline))
                except CrashedError:
                    self._kill(worker)
                    if not used or self._stopped:
                        raise
                    # It may have died while it was idle: a new process tries again.

    @contextmanager
    def lease(self, deadline: float | None = None) -> Iterator[_Worker]:
        """Give a process that is ready to one caller, who returns it, or kills it by an error."""
        worker = self._take(deadline)
        try:
            yield worker
        except BaseException as error:
            if not worker.answered:
                self._kill(worker)
            if self._stopped and not isinstance(error, KeyboardInterrupt):
                raise StoppedError from None
            raise
        finally:
            self._give_back(worker)

    def stop(self) -> None:
        """End all processes; what is still at work in them is lost, and no more is taken."""
        self._end(stopped=True)

    def restart(self) -> None:
        """End all processes, and take further work."""
        self._end(stopped=False)

    def _end(self, *, stopped: bool) -> None:
        with self._lock:
            self._stopped = stopped
            self._n_stops += 1
            alive = list(self._alive)
            self._alive.clear()
            self._idle.clear()
        for worker in alive:
            worker.kill()

    def _take(self, deadline: float | None) -> _Worker:
        """Return an idle process, or a new one."""
        with self._lock:
            if self._stopped:
                raise StoppedError
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive:  # it ends by itself after a while
                    return worker
                self._alive.discard(worker)
            n_stops = self._n_stops
        start = clock.now()
        worker = _Worker(self.n_threads, self.modules)
        with self._lock:
            self._alive.add(worker)
        try:
            worker.wait(_sooner(None, deadline))  # until it is ready: imports are no part of a time limit
        except BaseException:
            self._kill(worker)
            raise
        if n_stops != self._n_stops:  # while it started
            self._kill(worker)
            raise StoppedError
        self.start_seconds = clock.now() - start
        _log.debug("process %s ready after %.1f s", worker.pid, self.start_seconds)
        return worker

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if worker in self._alive:
                worker.used = True
                self._idle.append(worker)

    def _kill(self, worker: _Worker) -> None:
        with self._lock:
            self._alive.discard(worker)
        worker.kill()


def _kill_all(workers: set[_Worker]) -> None:
    for worker in list(workers):
        worker.kill()


def shared_workers() -> Workers:
    """Return the processes, with one thread each, that all parallel fits of this process share."""
    if os.getpid() not in _shared:  # a forked process has none of its parent's
        _shared[os.getpid()] = Workers()
    return _shared[os.getpid()]


def _sooner(time_limit: float | None, deadline: float | None) -> float | None:
    """Return the seconds that are left until the limit or the deadline."""
    if deadline is None:
        return time_limit
    left = max(0.0, deadline - clock.now())
    return left if time_limit is None else min(time_limit, left)


# -- one process, from outside -----------------------------------------------------------------------------


class _Worker:
    """A process and the pipe to it.

    Attributes
    ----------
    used : bool
        Whether it has done some work.
    answered : bool
        Whether it has answered the last request.
    """

    def __init__(self, n_threads: int, modules: Sequence[str]) -> None:
        context = _context()
        self.used, self.answered, self._killed = False, False, False
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, n_threads, modules), name="tuplet worker")
        with _starting(n_threads):
            self._process.start()
        far.close()

    @property
    def pid(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs and was not killed."""
        return not self._killed and bool(self._process.is_alive())

    def request(self, message: bytes, time_limit: float | None = None) -> Any:
        """Return the answer to a message, or raise what the work raised."""
        self.answered = False
        try:
            self._pipe.send_bytes(message)
        except OSError:
            raise CrashedError(self._end()) from None
        return self.wait(time_limit)

    def wait(self, time_limit: float | None) -> Any:
        """Return what comes next, or raise it."""
        try:
            if not self._pipe.poll(time_limit):
                raise OverTimeError
            message = self._pipe.recv_bytes()
        except (EOFError, OSError):
            raise CrashedError(self._end()) from None
        kind, content = _unpacked(message)
        self.answered = True
        if kind == "raised":
            raise content
        return content

    def kill(self) -> None:
        """End the process at once."""
        _log.debug("process %s is ended", self.pid)
        self._killed = True
        with suppress(ValueError, OSError):
            self._process.kill()
        with suppress(RuntimeError):  # at the end of the program, where Python waits for it by itself
            threading.Thread(target=self._process.join, daemon=True).start()  # or it stays as a zombie

    def _end(self) -> str:
        """Wait for the end of the process and describe it in words."""
        with suppress(ValueError, AssertionError):
            self._process.join(5)
        code = self._process.exitcode
        if code is None:
            return "its process does not answer"
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        memory = "; it may have run out of memory" if name == "SIGKILL" else ""
        return f"its process ended ({name}){memory}"


def _context() -> Any:
    wanted = os.environ.get("TUPLET_START_METHOD", "forkserver")
    if _server_owner not in (None, os.getpid()):  # a forked process cannot use its parent's server
        wanted = "spawn"
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context(wanted if wanted in methods else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(list(PRELOADED))
    return context


@contextmanager
def _starting(n_threads: int) -> Iterator[None]:
    """Start a process, or the server, with one thread per library and without importing the user's script.

    Python would import the main module in it, which runs a script that has no main guard once more; what a
    script defines is sent by value instead.
    """
    global _server_owner
    served = _context().get_start_method() == "forkserver"
    nothing: dict[str, Any] = dict.fromkeys(("__spec__", "__file__"))
    with (
        _starts,
        _replaced(vars(sys.modules["__main__"]), nothing),
        _replaced(os.environ, dict.fromkeys(_THREADS, "1" if served else str(n_threads))),
    ):
        _server_owner = os.getpid() if served else _server_owner
        this = multiprocessing.current_process()
        this.daemon, daemon = False, this.daemon  # daemons, such as those of a Pool, may have no children
        try:
            yield
        finally:
            this.daemon = daemon


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


def pack(content: Any) -> bytes:
    """Return anything that cloudpickle can send as bytes."""
    try:
        return bytes(cloudpickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL))
    except Exception as error:
        raise CrashedError(_unsendable(error)) from None


def _unsendable(error: BaseException) -> str:
    return f"it cannot be sent to another process and back ({' '.join(str(error).split()) or repr(error)})"


def _unpacked(message: bytes) -> tuple[str, Any]:
    try:
        kind, content = pickle.loads(message)
    except Exception as error:
        raise CrashedError(_unsendable(error)) from None
    if kind == "unsendable":
        raise CrashedError(content)
    return kind, content


# -- one process, from inside ------------------------------------------------------------------------------


def _serve(pipe: Any, n_threads: int, modules: Sequence[str]) -> None:
    """Do the work that comes through a pipe until it is closed, or nothing has come for a while."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the one that waits decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for module in modules:
        importlib.import_module(module)
    threadpool_limits(n_threads)  # a server that someone else started may have any number
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
    except BaseException as error:
        return _report(error)
    try:
        return pack(outcome)
    except CrashedError as error:
        return pickle.dumps(("unsendable", str(error)))


def _report(error: BaseException) -> bytes:
    """Return an error as a message, with its traceback as a note."""
    trace = "".join(traceback.format_exception(error))
    try:
        if not isinstance(error, Exception):  # sys.exit() must not end the process that reads this
            raise TypeError
        error.add_note(f"In a worker process:\n{trace}")
        message = pack(("raised", error))
        pickle.loads(message)  # some errors can be sent and not read
    except Exception:
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        plain.add_note(f"In a worker process:\n{trace}")
        return pickle.dumps(("raised", plain))
    return message
