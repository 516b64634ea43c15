"""Public names that are imported on first use, so that importing a package costs next to nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

_importing = threading.RLock()
"""Held while a name is imported: Python shows a thread partly initialised modules if another one imports
modules that depend on each other, as those of scikit-learn do, in another order."""


def lazy_names(
    package: str, homes: Mapping[str, str], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package whose names are defined elsewhere.

    Type checkers do not follow them: the package also imports the same names under `if TYPE_CHECKING`.

    Parameters
    ----------
    package : str
    homes : mapping of str to str
        Modules, and the names that each defines, separated by blanks.
    modules : sequence of str
        Modules of the package that are public themselves.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home_of and name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with _importing:
            if name in home_of:
                value = getattr(import_module(home_of[name]), name)
            else:
                value = import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, value)  # found at once from now on
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of, *modules})

    return get, names
