"""One clock for deadlines and budgets of seconds.

A deadline is a value of `now`; None, or infinity, is no deadline. Callers use `clock.now()`, so that a test
that replaces `now` replaces it for all of them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import final


def now() -> float:
    """Return the seconds of the clock that deadlines refer to; tests replace it."""
    return time.monotonic()


def is_over(deadline: float | None) -> bool:
    """Return whether a deadline has passed."""
    return deadline is not None and now() > deadline


@final
@dataclass(frozen=True)
class TimeBudget:
    """Seconds for some work, counted from `start`; any number of them by default.

    Examples
    --------
    >>> budget = TimeBudget(60.0)
    >>> budget.left <= 60.0, is_over(budget.after(30.0)), is_over(TimeBudget().after(math.inf))
    (True, False, False)
    """

    seconds: float = math.inf
    start: float = field(default_factory=lambda: now())

    @property
    def used(self) -> float:
        """Seconds since the start."""
        return now() - self.start

    @property
    def left(self) -> float:
        """Seconds that are left, not below zero."""
        return max(0.0, self.seconds - self.used)

    def after(self, seconds: float) -> float:
        """Return the deadline at which so many seconds have been used."""
        return self.start + seconds
