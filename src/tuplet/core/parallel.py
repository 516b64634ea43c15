"""Many small tasks in parallel, each on one BLAS thread."""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from sklearn import config_context, get_config
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from tuplet.core.exceptions import TupletError
from tuplet.core.processes import CrashedError, pack, shared_workers

T = TypeVar("T")

_Warning: TypeAlias = tuple[Any, type[Warning], str, int]
"""Message, category, file and line."""

_SAVED, _SAVED_READY = 1.0, 0.2
"""Seconds that other processes must be expected to save before they are started, or used if they wait."""

_BATCH = 8
"""Tasks for each worker before results are yielded."""


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


def run_many(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], n_jobs: int | None = None
) -> list[T]:
    """Return `[function(*task) for task in tasks]`, computed by `n_jobs` workers.

    This process is one of them: it does tasks itself, and other processes join in once they are ready. They
    are started only if the remaining tasks are expected to take long enough, so that little work is not
    slower with several workers. A backend chosen with `joblib.parallel_config` is used instead.
    """
    tasks = list(tasks)
    n_workers = min(effective_n_jobs(n_jobs), len(tasks))
    if n_workers > 1 and not _is_default_backend():
        return list(Parallel(n_jobs=n_jobs)(delayed(_run_one)(function, task) for task in tasks))
    if n_workers > 1:
        return _SharedWork(function, tasks, n_workers).run()
    with one_blas_thread():
        return [function(*task) for task in tasks]


def run_in_batches(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], n_jobs: int | None, *, threads: bool
) -> Iterator[T]:
    """Yield `function(*task)` for each task in order, computed in parallel a few at a time.

    When the caller stops iterating, no work is left that would have to be cancelled.

    Examples
    --------
    >>> list(run_in_batches(pow, [(2, 3), (3, 2)], None, threads=True))
    [8, 9]
    """
    n_workers = effective_n_jobs(n_jobs)
    if n_workers == 1:
        yield from (function(*task) for task in tasks)
        return
    pool = Parallel(n_jobs, prefer="threads")
    waiting = iter(tasks)
    while some := list(islice(waiting, _BATCH * n_workers)):
        yield from pool(delayed(function)(*t) for t in some) if threads else run_many(function, some, n_jobs)


def _is_default_backend() -> bool:
    return type(get_active_backend()[0]).__name__ == "LokyBackend"


def _run_one(function: Callable[..., T], task: tuple[Any, ...]) -> T:
    with one_blas_thread():
        return function(*task)


class _SharedWork:
    """Tasks that this process does from the front one at a time, and others from the back some at a time."""

    def __init__(self, function: Callable[..., Any], tasks: list[tuple[Any, ...]], n_workers: int) -> None:
        self.function, self.tasks, self.n_workers = function, tasks, n_workers
        self._answers: dict[int, Any] = {}
        self._warnings: list[_Warning] = []
        self._failures: list[BaseException] = []
        self._lock, self._front, self._back = threading.Lock(), 0, len(tasks)
        self._workers = shared_workers()
        self._leased: list[Any] = []

    def run(self) -> list[Any]:
        """Return the results in the order of the tasks."""
        helpers: list[threading.Thread] = []
        start = time.perf_counter()
        try:
            while (places := self._take(from_back=False)) and not self._failures:
                for place in places:
                    self._answers[place] = _run_one(self.function, self.tasks[place])
                if not helpers and self._worth_help((time.perf_counter() - start) / (places[-1] + 1)):
                    helpers = [
                        threading.Thread(target=self._help, daemon=True) for _ in range(1, self.n_workers)
                    ]
                    for helper in helpers:
                        helper.start()
            for helper in helpers:
                helper.join()
        except BaseException as error:
            self._back = self._front  # what is left is not begun
            if isinstance(error, KeyboardInterrupt):
                self._workers.restart()
            for worker in self._leased:
                worker.kill()
            raise
        seen: dict[Any, Any] = {}  # the same warning of several processes is one
        for warning in self._warnings:
            warnings.warn_explicit(*warning, registry=seen)
        if self._failures:
            raise self._failures[0]
        return [self._answers[place] for place in range(len(self.tasks))]

    def _take(self, *, from_back: bool) -> range:
        """Return the places of the next tasks: one, or a share of what is left for a process."""
        with self._lock:
            left = self._back - self._front
            if from_back:
                size = min(left, max(1, left // (2 * self.n_workers)))
                self._back -= size
                return range(self._back, self._back + size)
            size = min(left, 1)
            self._front += size
            return range(self._front - size, self._front)

    def _worth_help(self, seconds_each: float) -> bool:
        saved = seconds_each * (self._back - self._front) * (1 - 1 / self.n_workers)
        return saved > (_SAVED_READY if self._workers.n_idle else _SAVED)

    def _help(self) -> None:
        """Let one process, as soon as it is ready, do tasks until there are no more."""
        try:
            with self._workers.lease() as worker:
                self._leased.append(worker)
                while (places := self._take(from_back=True)) and not self._failures:
                    some = [self.tasks[place] for place in places]
                    answers, caught = worker.request(pack((_run_some, (self.function, some, get_config()))))
                    self._warnings += caught
                    self._answers.update(zip(places, answers, strict=True))
        except CrashedError as crash:
            self._failures.append(TupletError(f"Work in {self.n_workers} processes failed: {crash}."))
        except BaseException as error:
            self._failures.append(error)


def _run_some(
    function: Callable[..., T], tasks: list[tuple[Any, ...]], config: dict[str, Any]
) -> tuple[list[T], list[_Warning]]:
    """Do some tasks in another process, under scikit-learn's settings of the first; return warnings, too."""
    with warnings.catch_warnings(record=True) as caught, config_context(**config):
        warnings.simplefilter("always")
        with parallel_config(backend="sequential"):
            answers = [_run_one(function, task) for task in tasks]
    return answers, [(_sendable(each.message), each.category, each.filename, each.lineno) for each in caught]


def _sendable(warning: Any) -> Any:
    """Return a warning, or its text if it cannot be sent to another process."""
    try:
        return pickle.loads(pickle.dumps(warning))
    except Exception:
        return UserWarning(str(warning))
