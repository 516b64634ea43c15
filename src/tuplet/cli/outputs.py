"""Where output may go: not over what is read, not into folders, and not in place of devices."""

from __future__ import annotations

import os
from pathlib import Path

from tuplet.exceptions import InputError


def is_special(path: str) -> bool:
    """Whether a path is a pipe or a device, which can be written to but not replaced."""
    place = Path(path).expanduser()
    return place.exists() and not place.is_file() and not place.is_dir()


def require_output(path: str, *read: str | Path | None, special: bool = False) -> None:
    """Refuse an output that could not be written, or would be lost input, before any work is done.

    Parameters
    ----------
    path : str
    *read : str, Path or None
        Files that are read; none of them may be replaced.
    special : bool
        Whether pipes and devices will do.
    """
    place = Path(path).expanduser()
    if not place.parent.is_dir():
        raise InputError(f"there is no folder {str(place.parent)!r} for the output; make it first.")
    if not os.access(place.parent, os.W_OK):
        raise InputError(f"the folder {str(place.parent)!r} cannot be written to; name another one.")
    if place.is_dir():
        raise InputError(f"The output {path!r} is a folder; name a file.")
    if not special and (path == "-" or is_special(path)):
        raise InputError(
            f"The output {path!r} is no ordinary file, and what is written must be one; name it."
        )
    for each in read:
        if each is not None and str(each) != "-" and _is_same(place, Path(each).expanduser()):
            raise InputError(
                f"The output {path!r} is the file that is read, {str(each)!r}, which would be lost; give it"
                " another name."
            )


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and one.samefile(other)
    except OSError:  # one of them is not there yet
        return False
