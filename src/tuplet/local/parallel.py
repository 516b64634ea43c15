"""Many small pieces of work: side by side, each on one BLAS thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

__all__ = ["one_blas_thread", "run_many"]

T = TypeVar("T")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep linear algebra on one thread.

    The matrices of a local model are small: threads spend their time waiting for each other. A logistic
    regression on a thousand rows is several times slower in wall time, and thirty times in CPU time, with
    the default number of threads. Parallel work goes over the fits instead.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Return the loaded libraries; looking for them takes a thousand times as long as limiting them."""
    return ThreadpoolController()


def run_many(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], n_jobs: int | None = None
) -> list[T]:
    """Return `[function(*task) for task in tasks]`, computed by `n_jobs` joblib workers."""
    return list(Parallel(n_jobs=n_jobs)(delayed(_run_one)(function, task) for task in tasks))


def _run_one(function: Callable[..., T], task: tuple[Any, ...]) -> T:
    with one_blas_thread():
        return function(*task)
