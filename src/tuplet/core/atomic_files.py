"""Atomic writes: a file is replaced only when the new one is complete."""

from __future__ import annotations

import gzip
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from tuplet.core.exceptions import InputError


@contextmanager
def open_atomic(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when the block ends, and is deleted if it fails.

    Until then, and after a failure, `path` is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "answer.txt"
    ...     with open_atomic(path) as file:
    ...         _ = file.write(b"42")
    ...     path.read_text()
    '42'
    """
    path = Path(path).expanduser()
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_bytes(where: str | Path | IO[Any], write: Callable[[IO[Any]], object], writer: str) -> None:
    """Call `write` on a path, "-" (standard output) or an open file; paths that end in .gz are compressed."""
    if not isinstance(where, (str, Path)):
        write(where)
        return
    if str(where) == "-":
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:
        with open_atomic(where) as file:
            if str(where).endswith(".gz"):
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    write(cast(IO[bytes], packed))
            else:
                write(file)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{writer}: {str(where)!r} cannot be written: {reason}.") from None
