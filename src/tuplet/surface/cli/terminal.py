"""What all commands share: tables, checks of output files, errors in one sentence, warnings in one line."""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tuplet.core.exceptions import InputError, TupletError, TupletWarning

_WIDTH = 100
"""Width of the output without a terminal."""

INTERRUPTED = 130
"""Exit code of a program that was stopped by Ctrl-C."""

_PYTHON_WORDS = (
    (r"^(read_table|read_chunks|load_dataset|compare): ", ""),
    (r"; give targets=, by", "; give --targets, by"),
    (r"\btargets=(?=['\d-])", "--targets "),
    (r"\btargets=", "--targets"),
    (r"\b(encoding|missing)=(?=[. ])", r"--\1"),
    (r"columns=\{'([^']*)': '([^']*)'\}", r"--column \1=\2"),
)
"""Python arguments in messages, and the options of the command line that replace them."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Output(Console):
    """A console that leaves the handling of a closed pipe to `command`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def result_console() -> Console:
    """Return the console of results: standard output, with a suitable width."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for bars on terminals that support ASCII only
    width = None if sys.stdout.isatty() else _WIDTH
    return _Output(width=width, highlight=False, soft_wrap=False)


def print_text(text: str) -> None:
    """Print a sentence on standard output without markup: file names may contain brackets."""
    result_console().print(text, markup=False, soft_wrap=True)


def print_warning(text: str) -> None:
    """Print a warning in one line on standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[yellow]warning:[/yellow] {escape(text)}")


def print_hint(text: str) -> None:
    """Print a hint on standard error, if that is a terminal."""
    if sys.stderr.isatty():
        Console(stderr=True, highlight=False).print(escape(text))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, left: int = 1
) -> None:
    """Print a table whose first `left` columns are text and whose other columns are numbers."""
    lines = Table(box=None, pad_edge=False, header_style="dim", show_header=any(columns))
    for j, column in enumerate(columns):
        justify: Literal["left", "right"] = "left" if j < left else "right"
        lines.add_column(escape(column), justify=justify, no_wrap=True, overflow="ellipsis")
    for row in rows:
        lines.add_row(*(escape(str(cell)) for cell in row))
    console = result_console()
    if title:
        console.print(title, style="bold", markup=False)
    console.print(lines)


def is_special(path: str) -> bool:
    """Whether a path is a pipe or a device, which can be written to but not replaced."""
    place = Path(path).expanduser()
    return place.exists() and not place.is_file() and not place.is_dir()


def require_output(path: str, *read: str | Path | None, special: bool = False) -> None:
    """Refuse an output that cannot be written or would overwrite an input, before any work is done.

    Parameters
    ----------
    path : str
    *read : str, Path or None
        Input files; none of them may be replaced.
    special : bool
        Whether pipes and devices are allowed.
    """
    place = Path(path).expanduser()
    if not place.parent.is_dir():
        raise InputError(f"there is no folder {str(place.parent)!r} for the output; create it first.")
    if not os.access(place.parent, os.W_OK):
        raise InputError(f"the folder {str(place.parent)!r} cannot be written to; choose another one.")
    if place.is_dir():
        raise InputError(f"The output {path!r} is a folder; name a file.")
    if not special and (path == "-" or is_special(path)):
        raise InputError(f"The output {path!r} is not a regular file; give the name of a file.")
    for each in read:
        if each is not None and str(each) != "-" and _is_same(place, Path(each).expanduser()):
            raise InputError(
                f"The output {path!r} is the input {str(each)!r}, which would be lost; give another name."
            )


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and one.samefile(other)
    except OSError:  # one of them does not exist
        return False


def command(function: _Command) -> _Command:
    """End a command after any error with one sentence and an exit code: 1, or 130 after Ctrl-C."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            with _short_warnings(), _sigterm_as_interrupt():
                return function(*args, **kwargs)
        except TupletError as error:
            _fail(_with_options(str(error)), 1)
        except KeyboardInterrupt:
            _stopped()
        except BrokenPipeError:
            # The reader of our output has closed it; avoid an error when Python closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except MemoryError:
            _fail("there is not enough memory; use fewer rows or a simpler model.", 1)
        except OSError as error:
            _fail(f"{error.strerror or error}{f': {error.filename!r}' if error.filename else ''}.", 1)
        except typer.Exit:
            raise
        except Exception as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # how a compiled loop reports Ctrl-C
                _stopped()
            if (
                type(error).__name__ == "NotFittedError"
            ):  # by name: commands that fit nothing load no scikit-learn
                _fail(_with_options(str(error)), 1)
            _fail(f"{_where(error)}. This is a bug in tuplet; please report it with the command.", 1)

    return cast(_Command, guarded)


def _stopped() -> None:
    _fail("stopped; no file was written.", INTERRUPTED)


def _fail(message: str, code: int) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"[red]error:[/red] {escape(message)}")
    raise typer.Exit(code) from None


def _where(error: Exception) -> str:
    """Return the message of an unexpected error in one line, with its place."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    message = (str(error).splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {message} ({Path(last.filename).name}, line {last.lineno})"


def _with_options(message: str) -> str:
    for pattern, ours in _PYTHON_WORDS:
        message = re.sub(pattern, ours, message)
    return message


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Print each warning of tuplet once in one line, and ignore those of other packages."""
    printed: set[str] = set()

    def print_one(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, TupletWarning) and str(message) not in printed:
            printed.add(str(message))
            print_warning(_with_options(str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", TupletWarning)
        warnings.showwarning = print_one
        yield


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that partial output is removed."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread: the embedding program handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
