"""Many small pieces of work: side by side, each on one BLAS thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

__all__ = ["one_blas_thread", "run_many"]

T = TypeVar("T")


class _Limit:
    """One BLAS thread for the whole process while at least one caller asks for it.

    The number of threads belongs to the process: of several Python threads, the first to enter would restore
    the limit of another one that is still at work. So callers are counted, and the last one restores.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside = threading.Lock(), 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limiter.restore_original_limits()


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep linear algebra on one thread.

    The matrices of a local model are small: threads spend their time waiting for each other. A logistic
    regression on a thousand rows is several times slower in wall time, and thirty times in CPU time, with
    the default number of threads. Parallel work goes over the fits instead.
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


@cache
def _controller() -> ThreadpoolController:
    """Return the loaded libraries; looking for them takes a thousand times as long as limiting them."""
    import scipy.linalg  # noqa: F401  # has a BLAS of its own, which must be loaded to be found

    return ThreadpoolController()


def run_many(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], n_jobs: int | None = None
) -> list[T]:
    """Return `[function(*task) for task in tasks]`, computed by `n_jobs` joblib workers."""
    return list(Parallel(n_jobs=n_jobs)(delayed(_run_one)(function, task) for task in tasks))


def _run_one(function: Callable[..., T], task: tuple[Any, ...]) -> T:
    with one_blas_thread():
        return function(*task)
