"""CPU time of a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["cpu"]


def cpu(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the least CPU seconds of several runs: other programs can only add to it."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)
