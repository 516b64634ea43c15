"""Work in parallel: `fan_out`, and `run_many` and `run_in_batches` on top of it.

All of them use the backend that `joblib.parallel_config` names: "loky" and "multiprocessing" mean worker
processes on this machine (`core.processes`), "dask" and "ray" tasks of the cluster (`core.clusters`),
"threading" and "sequential" what joblib means by them. Work inside of a task keeps to its limit.
"""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, Literal, TypeAlias, TypeVar

from joblib import cpu_count, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from sklearn import config_context, get_config
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from tuplet.core import clock, processes
from tuplet.core.clusters import cluster_workers
from tuplet.core.exceptions import TupletError
from tuplet.core.processes import CrashedError, Workers

S = TypeVar("S")
T = TypeVar("T")

_Warning: TypeAlias = tuple[Any, type[Warning], str, int]
"""Message, category, file and line."""

_SAVED, _SAVED_READY = 1.0, 0.2
"""Seconds that other processes must be expected to save before they are started, or used if they wait."""

_BATCH = 8
"""Tasks for each worker before results are yielded."""

_SHARES = 32
"""Shares of the tasks for each thread: few enough to cost little, enough that threads end together."""


class _Limits:
    """Limits of one thread that callers in several Python threads have set.

    Some libraries count threads for each Python thread, others for the whole process. With the latter, a
    caller that enters while another one is inside finds one thread, and would leave it so for good. So the
    last one to leave restores what the first one found.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside = threading.Lock(), 0
        self._first: Any = None

    def enter(self) -> Any:
        """Set a limit and return it."""
        with self._lock:
            limit = _controller().limit(limits=1, user_api="blas")
            if self._n_inside == 0:
                self._first = limit
            self._n_inside += 1
            return limit

    def leave(self, limit: Any) -> None:
        """Take back a limit."""
        with self._lock:
            limit.restore_original_limits()
            self._n_inside -= 1
            if self._n_inside == 0:
                self._first.restore_original_limits()


_limits, _here = _Limits(), threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep linear algebra on one thread.

    The matrices of a local model are small: threads spend their time waiting for each other. A logistic
    regression on a thousand rows is several times slower in wall time, and thirty times in CPU time, with
    the default number of threads. Parallel work goes over the fits instead.
    """
    if getattr(_here, "limited", False):  # by a caller
        yield
        return
    limit, _here.limited = _limits.enter(), True
    try:
        yield
    finally:
        _here.limited = False
        _limits.leave(limit)


@cache
def _controller() -> ThreadpoolController:
    """Return the loaded libraries; looking for them takes a thousand times as long as limiting them."""
    import scipy.linalg  # noqa: F401  # has a BLAS of its own, which must be loaded to be found

    return ThreadpoolController()


def n_workers(n_jobs: int | None) -> int:
    """Return how many workers `n_jobs` means, as joblib counts them, within the limit of an outer task."""
    wanted = get_active_backend()[1] if n_jobs is None else n_jobs
    number = effective_n_jobs(n_jobs)
    if wanted is not None and wanted > 0:  # clusters count all their cores
        number = min(number, wanted)
    return number if processes.n_nested is None else min(number, processes.n_nested)


def open_workers(n_threads: int = 1, *, keep: bool = False) -> Workers:
    """Return workers of the cluster that joblib's backend stands for, else processes of this machine."""
    return Workers(n_threads, make=cluster_workers(), keep=keep)


def fan_out(
    work: Callable[[S], T],
    items: Iterable[S],
    number: int,
    workers: Workers | None = None,
    *,
    between: Callable[[], float | None] | None = None,
) -> Iterator[T]:
    """Yield `work(item)` for each item as they are finished, so many at a time.

    Items are taken one by one when there is room, after earlier results have been used. If the caller stops
    iterating, or anything is raised, the workers are stopped.

    Parameters
    ----------
    work : callable
        Called in a thread of its own, where it waits for `workers.run`; right here if there are no workers
        and one item at a time.
    items : iterable
    number : int
        How many items at a time.
    workers : Workers, optional
    between : callable, optional
        Called while results are awaited; returns after how many seconds to call it again, None for after the
        next result.
    """
    if workers is None and number == 1:
        yield from map(work, items)
        return
    source, waiting = iter(items), set[Future[T]]()
    with ThreadPoolExecutor(number) as threads:
        try:
            while True:
                waiting |= {threads.submit(work, item) for item in islice(source, number - len(waiting))}
                if not waiting:
                    return
                done, waiting = wait(waiting, between() if between else None, FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            if workers is not None:
                workers.stop()
            raise


def run_many(
    function: Callable[..., T],
    tasks: Iterable[tuple[Any, ...]],
    n_jobs: int | None = None,
    *,
    prefer: Literal["processes", "threads"] = "processes",
    require: Literal["sharedmem"] | None = None,
) -> list[T]:
    """Return `[function(*task) for task in tasks]`, computed by `n_jobs` workers.

    On one machine this process is one of them: it does tasks itself, and other processes join in once they
    are ready. They are started only if the remaining tasks are expected to take long enough, so that little
    work is not slower with several workers.

    Parameters
    ----------
    function : callable
    tasks : iterable of tuple
    n_jobs : int, optional
        Number of workers, as joblib counts them.
    prefer : {"processes", "threads"}
        "threads" for compiled code that releases Python's lock; clusters are used all the same.
    require : {"sharedmem"}, optional
        Threads of this process whatever the backend, for tasks that write into arrays.
    """
    tasks = list(tasks)
    number = min(n_workers(n_jobs), len(tasks), cpu_count() if require else len(tasks))
    if number < 2:
        with one_blas_thread():
            return [function(*task) for task in tasks]
    kind = "ThreadingBackend" if require else type(get_active_backend()[0]).__name__
    if kind == "ThreadingBackend" or (kind in _PROCESSES and prefer == "threads"):
        return _in_threads(function, tasks, number)
    if kind in _PROCESSES or kind in _CLUSTERS:
        return _Batch(function, tasks, number).run()
    return list(Parallel(n_jobs=n_jobs)(delayed(_run_one)(function, task) for task in tasks))


def run_in_batches(
    function: Callable[..., T],
    tasks: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    *,
    prefer: Literal["processes", "threads"] = "processes",
) -> Iterator[T]:
    """Yield `function(*task)` for each task in order, computed in parallel a few at a time.

    When the caller stops iterating, no work is left that would have to be cancelled.

    Examples
    --------
    >>> list(run_in_batches(pow, [(2, 3), (3, 2)], None))
    [8, 9]
    """
    number, waiting = n_workers(n_jobs), iter(tasks)
    size = 1 if number == 1 else _BATCH * number
    while some := list(islice(waiting, size)):
        yield from run_many(function, some, n_jobs, prefer=prefer)


_PROCESSES = ("LokyBackend", "MultiprocessingBackend")
"""Backends of joblib that stand for processes of this machine."""

_CLUSTERS = ("DaskDistributedBackend", "RayBackend")
"""Backends of joblib that stand for a cluster."""


def _in_threads(function: Callable[..., T], tasks: list[tuple[Any, ...]], number: int) -> list[T]:
    size, config = -(-len(tasks) // (_SHARES * number)), get_config()
    answers: dict[int, list[T]] = {}

    def work(start: int) -> tuple[int, list[T]]:
        return start, _run_share(function, tasks[start : start + size], config)

    answers.update(fan_out(work, range(0, len(tasks), size), number))
    return [answer for start in sorted(answers) for answer in answers[start]]


def _run_one(function: Callable[..., T], task: tuple[Any, ...]) -> T:
    """Do one task of several that run side by side: what is parallel in it runs in turn."""
    with parallel_config(backend="sequential"), one_blas_thread():
        return function(*task)


def _run_share(function: Callable[..., T], tasks: list[tuple[Any, ...]], config: dict[str, Any]) -> list[T]:
    """Do some tasks in turn, under scikit-learn's settings of the caller."""
    with config_context(**config), parallel_config(backend="sequential"), one_blas_thread():
        return [function(*task) for task in tasks]


class _Batch:
    """Tasks that workers do from the back some at a time, and this process from the front one at a time."""

    def __init__(self, function: Callable[..., Any], tasks: list[tuple[Any, ...]], number: int) -> None:
        self.function, self.tasks, self.number = function, tasks, number
        self._answers: dict[int, Any] = {}
        self._warnings: list[_Warning] = []
        self._failures: list[BaseException] = []
        self._lock, self._front, self._back = threading.Lock(), 0, len(tasks)
        self._workers = open_workers(keep=True)

    def run(self) -> list[Any]:
        """Return the results in the order of the tasks."""
        with self._workers:
            if self._workers.is_local:
                self._share()
            else:
                self._collect(self.number)
        seen: dict[Any, Any] = {}  # the same warning of several processes is one
        for warning in self._warnings:
            warnings.warn_explicit(*warning, registry=seen)
        if self._failures:
            raise self._failures[0]
        return [self._answers[place] for place in range(len(self.tasks))]

    def _share(self) -> None:
        """Do tasks here, and let workers join in if that is worth it."""
        helper = threading.Thread(target=self._collect, args=(self.number - 1,), daemon=True)
        start = clock.now()
        while (places := self._take(from_back=False)) and not self._failures:
            for place in places:
                self._answers[place] = _run_one(self.function, self.tasks[place])
            if helper.ident is None and self._worth_help((clock.now() - start) / (places[-1] + 1)):
                helper.start()
        if helper.ident is not None:
            helper.join()

    def _take(self, *, from_back: bool) -> range:
        """Return the places of the next tasks: one, or a share of what is left for a worker."""
        with self._lock:
            left = self._back - self._front
            if from_back:
                size = min(left, max(1, left // (2 * self.number)))
                self._back -= size
                return range(self._back, self._back + size)
            size = min(left, 1)
            self._front += size
            return range(self._front - size, self._front)

    def _worth_help(self, seconds_each: float) -> bool:
        saved = seconds_each * (self._back - self._front) * (1 - 1 / self.number)
        return saved > (_SAVED_READY if self._workers.n_idle else _SAVED)

    def _collect(self, number: int) -> None:
        """Let so many workers do tasks until there are no more."""
        try:
            for _ in fan_out(self._help, iter(self._is_left, False), number, self._workers):
                pass
        except CrashedError as crash:
            self._failures.append(TupletError(f"Work in {self.number} processes failed: {crash}."))
        except BaseException as error:
            self._failures.append(error)

    def _is_left(self) -> bool:
        return self._front < self._back

    def _help(self, _: bool) -> None:
        """Let one worker do a share of the tasks, which is taken when the worker is ready."""
        with self._workers.lease() as worker:
            if places := self._take(from_back=True):
                some = [self.tasks[place] for place in places]
                message = self._workers.pack(_run_recorded, self.function, some, get_config())
                answers, caught = worker.request(message, None, None)
                self._warnings += caught
                self._answers.update(zip(places, answers, strict=True))


def _run_recorded(
    function: Callable[..., T], tasks: list[tuple[Any, ...]], config: dict[str, Any]
) -> tuple[list[T], list[_Warning]]:
    """Do some tasks in another process; return their warnings, too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = _run_share(function, tasks, config)
    return answers, [(_sendable(each.message), each.category, each.filename, each.lineno) for each in caught]


def _sendable(warning: Any) -> Any:
    """Return a warning, or its text if it cannot be sent to another process."""
    try:
        return pickle.loads(pickle.dumps(warning))
    except Exception:
        return UserWarning(str(warning))
