"""Ctrl-C between two steps of long work, rather than in the middle of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def held_interrupts() -> Iterator[Callable[[], bool]]:
    """Hold the first Ctrl-C until the work checks for it; a second one raises `KeyboardInterrupt` at once.

    An exception that a signal raises inside a compiled kernel comes out of it as a `SystemError`, and
    elsewhere it may leave a step half done. Work that is done in short steps checks between them instead:

        with held_interrupts() as interrupted:
            while work_left and not interrupted():
                step()

    Nothing changes, and the function always returns False, outside of the main thread, which alone receives
    signals, and where Ctrl-C is ignored or left to the system.

    Yields
    ------
    callable
        Returns whether Ctrl-C was pressed.

    Examples
    --------
    >>> n_steps = 0
    >>> with held_interrupts() as interrupted:
    ...     while n_steps < 3 and not interrupted():
    ...         n_steps += 1
    >>> n_steps
    3
    """
    n_pressed = 0

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal n_pressed
        n_pressed += 1
        if n_pressed > 1:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    held = threading.current_thread() is threading.main_thread() and callable(before)
    if held:
        signal.signal(signal.SIGINT, press)
    try:
        yield lambda: n_pressed > 0
    except SystemError:
        if n_pressed > 1:  # a kernel turns the second one into this
            raise KeyboardInterrupt from None
        raise
    finally:
        if held:
            signal.signal(signal.SIGINT, before)
