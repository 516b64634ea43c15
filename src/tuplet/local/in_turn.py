"""Much work whose answers are wanted one after the other, until somebody stops asking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from tuplet.local.parallel import run_many

T = TypeVar("T")

_BATCH = 8
"""Tasks for each worker before answers are handed over."""


def run_in_turn(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], n_jobs: int | None, *, threads: bool
) -> Iterator[T]:
    """Yield `function(*task)` for each task in turn, some of them computed side by side.

    A few tasks at a time: when the caller stops asking, nothing is left that would have to be cancelled.

    Examples
    --------
    >>> list(run_in_turn(pow, [(2, 3), (3, 2)], None, threads=True))
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
