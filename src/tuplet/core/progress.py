"""Progress of long work, on one line of the terminal."""

from __future__ import annotations

import logging
import shutil
import sys
import time
from types import TracebackType
from typing import IO, Literal, Self

_log = logging.getLogger("tuplet.core.progress")

Show = bool | Literal["auto"]
"""True shows progress, False does not, "auto" does if standard error is a terminal."""

_REDRAW, _LINE = 0.1, 10.0
"""Seconds between two states of the line in a terminal, and between two lines in a file."""

_BAR = 24
"""Characters of the bar."""


class Progress:
    """A line that shows how much of some work is done and how long the rest will take.

    In a terminal the line is redrawn in place; elsewhere (a log, a notebook) a new line appears every ten
    seconds. Everything goes to standard error, so results can be piped. Whether shown or not, the end of the
    work is logged at level INFO, and what is under way at level DEBUG.

    Parameters
    ----------
    label : str
        What is being done.
    total : int
        Number of steps.
    show : bool or "auto"
        "auto" shows it where standard error is a terminal.
    stream : text file, optional
        Where to write; standard error by default.

    Examples
    --------
    >>> with Progress("Fitting", 3, show=True, stream=sys.stdout) as progress:
    ...     for name in ("a", "b", "c"):
    ...         progress.advance(name)
    Fitting  3/3 in 0 s
    """

    def __init__(self, label: str, total: int, *, show: Show = "auto", stream: IO[str] | None = None) -> None:
        self.label, self.total, self.done = label, total, 0
        self.stream = sys.stderr if stream is None else stream
        self._terminal = self.stream.isatty()
        self._shown = self._terminal if show == "auto" else bool(show)
        self._start = self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        how = "" if self.done >= self.total else ", stopped"
        _log.info("%s: %d of %d in %.1f s%s", self.label, self.done, self.total, self.seconds, how)
        self._write(
            f"{self.label}  {self.done}/{self.total} in {duration_text(self.seconds)}{how}", last=True
        )

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._start

    def advance(self, note: str = "", *, steps: int = 1, remaining: float | None = None) -> None:
        """Count finished steps and redraw the line.

        Parameters
        ----------
        note : str
            What is under way.
        steps : int
            How many steps are done now that were not before.
        remaining : float, optional
            Seconds that the rest will take; by default the steps left take as long as those done.
        """
        self.done += steps
        _log.debug("%s: %d of %d %s", self.label, self.done, self.total, note)
        now = time.monotonic()
        if now - self._last < (_REDRAW if self._terminal else _LINE):
            return
        self._last = now
        if remaining is None and self.done:
            remaining = self.seconds / self.done * (self.total - self.done)
        left = "" if remaining is None else f"  {duration_text(remaining)} left"
        self._write(f"{self.label}  {self._bar()}{self.done}/{self.total}{left}  {note}".rstrip())

    def _bar(self) -> str:
        if not self._terminal:
            return ""
        filled = round(_BAR * self.done / max(1, self.total))
        return "━" * filled + "╌" * (_BAR - filled) + "  "

    def _write(self, text: str, last: bool = False) -> None:
        if not self._shown:
            return
        if self._terminal:
            # Cut, or a long line would wrap and could not be redrawn; then clear what the last one left.
            text = "\r" + text[: shutil.get_terminal_size().columns - 1] + "\x1b[K"
        self.stream.write(text + ("\n" if last or not self._terminal else ""))
        self.stream.flush()


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units.

    Examples
    --------
    >>> [duration_text(s) for s in (0.4, 42, 200, 4020, 90_000)]
    ['0 s', '42 s', '3 min 20 s', '1 h 7 min', '1 d 1 h']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    units = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
    size, name, small, part = next(unit for unit in units if whole >= unit[0])
    rest = whole % size // small
    return f"{whole // size} {name}" + (f" {rest} {part}" if rest else "")
