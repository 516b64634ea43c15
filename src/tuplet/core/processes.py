"""Workers, whose work can be stopped and may crash; on this machine they are processes.

Processes are forked from a server that has the library loaded, where the system has such servers, and started
anew elsewhere. The server runs one thread, so that forking is safe: BLAS and OpenMP start none in it. The
workers of clusters are in `core.clusters`.
"""

from __future__ import annotations

import importlib
import io
import itertools
import logging
import multiprocessing
import multiprocessing.util
import os
import pickle
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tuplet.core import clock
from tuplet.core.delegates import PRELOADED

_log = logging.getLogger("tuplet.core.processes")

T = TypeVar("T")

_IDLE_SECONDS = 300
"""How long a worker waits for the next piece of work before it ends by itself."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that set the number of threads of numerical libraries."""

LOOK = 0.2
"""Seconds between two reports of progress, and between two looks at whether work should stop."""

_LARGE = 2**20
"""Bytes of an array from which on it is sent to a worker once instead of with every task."""

_waiting: dict[int, list[Process]] = {}
"""Number of a process -> worker processes that wait for its next run."""

n_nested: int | None = None
"""Number of workers that a task in this process may use; None for any number."""

_server_owner: int | None = None
"""Number of the process that has started the server."""

_lists = threading.Lock()
"""Held while the lists of busy and idle workers change; runs in several threads share the idle ones."""

_starts = threading.Lock()
"""Held while a process is started, since that changes the environment of this one."""


class OverTimeError(Exception):
    """The work took longer than it was given, and was stopped."""


class CrashedError(Exception):
    """The process that did the work is gone, or the work could not get there and back."""


class StoppedError(Exception):
    """The work was given up, by `Workers.stop`."""


class Monitor:
    """The view that a caller has of work that calls `report`: the steps so far, and whether to stop."""

    def __init__(self) -> None:
        self.n_steps, self.stop = 0, False
        self._lock = threading.Lock()

    def add(self, n_steps: int) -> None:
        """Count steps."""
        with self._lock:
            self.n_steps += n_steps


class Workers:
    """The workers of one run: each does one piece of work at a time, and more unless something goes wrong.

    Threads could not be stopped, and a time limit by signals waits for compiled code to return.

    Parameters
    ----------
    n_threads : int
        Threads that numerical libraries may use in each process.
    make : callable, optional
        Returns a new worker, which has what `Process` has; by default a process of this machine.
    keep : bool
        Whether processes that are idle at the end wait for the next run, which then starts faster.

    Attributes
    ----------
    start_seconds : float
        How long it took until the last new worker was ready.
    """

    def __init__(
        self, n_threads: int = 1, *, make: Callable[[], Any] | None = None, keep: bool = False
    ) -> None:
        self.n_threads, self.is_local, self._keep = n_threads, make is None, keep and make is None
        self._make: Callable[[], Any] = (lambda: Process(n_threads)) if make is None else make
        self._arrays, self._stopped, self.start_seconds = SharedArrays(), False, 0.0
        self._busy: set[Any] = set()
        self._idle: list[Any] = _waiting_processes() if self._keep else []
        _kill_at_exit(self, self._busy)
        if not self._keep:
            _kill_at_exit(self, self._idle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()

    @property
    def n_idle(self) -> int:
        """Number of workers that wait for work."""
        return len(self._idle)

    def run(
        self,
        function: Callable[..., T],
        *args: Any,
        time_limit: float | None = None,
        deadline: float | None = None,
        monitor: Monitor | None = None,
    ) -> T:
        """Return `function(*args)`, computed by a worker; what it raises is raised here.

        Parameters
        ----------
        function : callable
            Anything that cloudpickle can send, also what a notebook or a script without a main guard defines.
        time_limit : float, optional
            Seconds that the work may take; then it is ended and `OverTimeError` raised.
        deadline : float, optional
            When the answer must be here, by `clock.now`; the start of a worker counts, too.
        monitor : Monitor, optional
            Gets the steps that the work reports. Workers of a cluster report none.
        """
        message = self.pack(function, *args)
        while True:
            with self.lease(deadline) as worker:
                used = worker.used
                try:
                    return worker.request(message, _sooner(time_limit, deadline), monitor)
                except CrashedError:
                    self._kill(worker)
                    if not (self.is_local and used) or self._stopped:
                        raise
                    # The process may have died while it was idle: a new one tries again.

    def pack(self, function: Callable[..., Any], *args: Any) -> Message:
        """Return a request for `function(*args)`, to be sent to a worker."""
        return self._arrays.pack((function, args))

    @contextmanager
    def lease(self, deadline: float | None = None) -> Iterator[Any]:
        """Give a worker that is ready to one caller, who returns it, or kills it by an error."""
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
        """End all workers; what is still at work in them is lost, and no more is taken."""
        with _lists:
            self._stopped = True
            ended = [*self._busy, *(() if self._keep else self._idle)]
            self._busy.clear()
        for worker in ended:
            worker.kill()

    def _take(self, deadline: float | None) -> Any:
        """Return an idle worker, or a new one."""
        with _lists:
            self._require_running()
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive:  # processes end by themselves after a while
                    self._busy.add(worker)
                    return worker
        start = clock.now()
        worker = self._make()
        with _lists:
            self._busy.add(worker)
        try:
            worker.wait(_sooner(None, deadline))  # until it is ready: imports are no part of a time limit
            self._require_running()
        except BaseException:
            self._kill(worker)
            raise
        self.start_seconds = clock.now() - start
        _log.debug("%s ready after %.1f s", worker, self.start_seconds)
        return worker

    def _require_running(self) -> None:
        if self._stopped:
            raise StoppedError

    def _give_back(self, worker: Any) -> None:
        with _lists:
            if worker in self._busy:
                self._busy.discard(worker)
                worker.used = True
                self._idle.append(worker)

    def _kill(self, worker: Any) -> None:
        with _lists:
            self._busy.discard(worker)
        worker.kill()


def _waiting_processes() -> list[Process]:
    """Return the processes that wait for the next run; a forked process has none of its parent's."""
    if os.getpid() not in _waiting:
        _waiting[os.getpid()] = []
        _kill_at_exit(None, _waiting[os.getpid()])
    return _waiting[os.getpid()]


def _kill_at_exit(owner: Any, workers: Iterable[Any]) -> None:
    """End workers with their owner, or at the exit of this process; Python would wait for idle ones."""
    multiprocessing.util.Finalize(
        owner, lambda: [worker.kill() for worker in list(workers)], exitpriority=100
    )


def _sooner(time_limit: float | None, deadline: float | None) -> float | None:
    """Return the seconds that are left until the limit or the deadline."""
    if deadline is None:
        return time_limit
    left = max(0.0, deadline - clock.now())
    return left if time_limit is None else min(time_limit, left)


# -- one process, from outside -----------------------------------------------------------------------------


class Process:
    """A worker: a process of this machine and the pipe to it.

    Attributes
    ----------
    used : bool
        Whether it has done some work.
    answered : bool
        Whether it has answered the last request.
    """

    def __init__(self, n_threads: int) -> None:
        context = _context()
        self.used, self.answered, self._killed = False, False, False
        self._held: set[int] = set()
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, n_threads), name="tuplet worker")
        with _starting(n_threads):
            self._process.start()
        far.close()

    def __repr__(self) -> str:
        return f"process {self._process.pid}"

    @property
    def is_alive(self) -> bool:
        """Whether the process runs and was not killed."""
        return not self._killed and bool(self._process.is_alive())

    def request(self, message: Message, time_limit: float | None, monitor: Monitor | None) -> Any:
        """Return the answer to a message, or raise what the work raised."""
        self.answered = False
        self._held &= message.live
        new = {key: buffer for key, buffer in message.buffers if key not in self._held}
        try:
            self._pipe.send((message.keys, list(new), message.live, monitor is not None))
            for part in (message.data, *new.values()):
                self._pipe.send_bytes(part)
        except OSError:
            raise CrashedError(self._end()) from None
        self._held |= new.keys()
        return self.wait(time_limit, monitor)

    def wait(self, time_limit: float | None, monitor: Monitor | None = None) -> Any:
        """Return what comes next, or raise it; steps that the work reports go to a monitor."""
        try:
            if monitor is not None:
                self._follow(monitor)
            elif not self._pipe.poll(time_limit):
                raise OverTimeError
            message = self._pipe.recv_bytes()
        except (EOFError, OSError):
            raise CrashedError(self._end()) from None
        self.answered = True
        return unpacked(message)

    def _follow(self, monitor: Monitor) -> None:
        """Count the steps that are reported until there is an answer, and pass on a wish to stop."""
        told = False
        while True:
            if self._pipe.poll(LOOK):
                if (n_steps := self._pipe.recv()) is None:
                    return
                monitor.add(n_steps)
            if monitor.stop and not told:
                self._pipe.send(None)
                told = True

    def kill(self) -> None:
        """End the process at once."""
        _log.debug("%s is ended", self)
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


@dataclass(frozen=True)
class Message:
    """Pickled content; large arrays, each under its key, are outside of the pickle."""

    data: bytes
    buffers: list[tuple[int, memoryview]]
    live: set[int]  # keys of all arrays that may be sent again

    @property
    def keys(self) -> list[int]:
        """Keys of the arrays in the order in which they are needed."""
        return [key for key, _ in self.buffers]


class SharedArrays:
    """Large arrays of the tasks of one run, numbered so that each is sent to a worker only once.

    An array is known by its memory for as long as it lives, and must not change during the run.
    """

    _numbers = itertools.count()

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], tuple[weakref.ref[Any], int]] = {}
        self._lock = threading.Lock()

    def pack(self, content: Any) -> Message:
        """Return anything that cloudpickle can send as a message."""
        file, buffers = io.BytesIO(), []

        def is_small(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes >= _LARGE:
                buffers.append((self._key(raw), raw))
            return raw.nbytes < _LARGE

        try:
            with self._lock:
                cloudpickle.Pickler(file, pickle.HIGHEST_PROTOCOL, buffer_callback=is_small).dump(content)
                live = {key for owner, key in self._known.values() if owner() is not None}
        except Exception as error:
            raise CrashedError(_unsendable(error)) from None
        return Message(file.getvalue(), buffers, live)

    def _key(self, raw: memoryview) -> int:
        owner: Any = raw.obj
        while isinstance(getattr(owner, "base", None), np.ndarray):  # a view, or a transposed array
            owner = owner.base
        place = id(owner), np.frombuffer(raw, np.uint8).ctypes.data, raw.nbytes
        known, key = self._known.get(place, (None, 0))
        if known is None or known() is not owner:
            key = next(self._numbers)
            self._known[place] = weakref.ref(owner), key
        return key


class Packed:
    """An object that is pickled once for many tasks, and sent to each worker once."""

    def __init__(self, content: Any) -> None:
        self._data = np.frombuffer(_pickled(content), np.uint8)

    def open(self) -> Any:
        """Return a copy of the object."""
        return pickle.loads(self._data.data)


def _pickled(content: Any) -> bytes:
    try:
        return bytes(cloudpickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL))
    except Exception as error:
        raise CrashedError(_unsendable(error)) from None


def _unsendable(error: BaseException) -> str:
    return f"it cannot be sent to another process and back ({' '.join(str(error).split()) or repr(error)})"


def unpacked(message: bytes) -> Any:
    """Return the answer in a message of `answer`, or raise what the work raised."""
    try:
        kind, content = pickle.loads(message)
    except Exception as error:
        raise CrashedError(_unsendable(error)) from None
    if kind == "unsendable":
        raise CrashedError(content)
    if kind == "raised":
        raise content
    return content


# -- one process, from inside ------------------------------------------------------------------------------


class _Reporter:
    """The way from the work in this process to a `Monitor`."""

    def __init__(self) -> None:
        self.pipe: Any = None
        self._n_steps, self._last, self._stop = 0, 0.0, False

    def begin(self, pipe: Any) -> None:
        """Report through a pipe, or not at all."""
        self.pipe, self._n_steps, self._last, self._stop = pipe, 0, clock.now(), False

    def report(self, n_steps: int) -> bool:
        """Report some steps; return whether to go on."""
        if self.pipe is None:
            return True
        self._n_steps += n_steps
        if clock.now() - self._last > LOOK:
            self.pipe.send(self._n_steps)
            self._n_steps, self._last = 0, clock.now()
        if self.pipe.poll():
            self.pipe.recv()
            self._stop = True
        return not self._stop


_reporter = _Reporter()
report = _reporter.report


def _serve(pipe: Any, n_threads: int) -> None:
    """Do the work that comes through a pipe until it is closed, or nothing has come for a while."""
    global n_nested
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the one that waits decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare()
    threadpool_limits(n_threads)  # a server that someone else started may have any number
    n_nested = n_threads
    pipe.send_bytes(pickle.dumps(("value", None)))
    held: dict[int, bytes] = {}
    with suppress(EOFError, OSError):
        while pipe.poll(_IDLE_SECONDS):
            if (request := pipe.recv()) is None:  # a wish to stop work that had just ended
                continue
            keys, new, live, monitored = request
            data = pipe.recv_bytes()
            held = {key: array for key, array in held.items() if key in live}
            held |= {key: pipe.recv_bytes() for key in new}
            _reporter.begin(pipe if monitored else None)
            reply = answer(data, [held[key] for key in keys])
            if monitored:
                pipe.send(None)
            pipe.send_bytes(reply)


def prepare() -> None:
    """Import what most work needs, so that it is no part of a time limit."""
    for module in PRELOADED:
        importlib.import_module(module)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: a run that is killed cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def answer(data: bytes, buffers: Iterable[Any]) -> bytes:
    """Do a piece of work and return what came of it as a message.

    Arrays are copied: other work gets them too, and compiled code takes only what it can write to.
    """
    try:
        function, args = pickle.loads(data, buffers=[bytearray(each) for each in buffers])
    except BaseException as error:
        return pickle.dumps(("unsendable", _unsendable(error)))
    try:
        outcome = ("value", function(*args))
    except BaseException as error:
        return _report(error)
    try:
        return _pickled(outcome)
    except CrashedError as error:
        return pickle.dumps(("unsendable", str(error)))


def _report(error: BaseException) -> bytes:
    """Return an error as a message, with its traceback as a note."""
    trace = "".join(traceback.format_exception(error))
    try:
        if not isinstance(error, Exception):  # sys.exit() must not end the process that reads this
            raise TypeError
        error.add_note(f"In a worker process:\n{trace}")
        message = _pickled(("raised", error))
        pickle.loads(message)  # some errors can be sent and not read
    except Exception:
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        plain.add_note(f"In a worker process:\n{trace}")
        return pickle.dumps(("raised", plain))
    return message
