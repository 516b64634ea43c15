"""Compiled functions: machine code from the time of installation, or by numba on first use.

A kernel is a module of plain functions over arrays. `entry` marks those that the library calls, `inner` those
that only other functions of the same module call; the names of these begin with an underscore. A kernel holds
all that its functions call and the records that they take, because numba's cache notices changes in the file
of a function only. Kernels lie in files named `kernels.py` or `*_kernels.py`, beside the modules that call
them. Nothing is compiled when such a module is imported.

* If the package was built with a C compiler, `hatch_build.py` has compiled all entries into one extension
  module, which is called. Its name contains a digest of the kernels' sources, so that a module made from
  other sources is never found. Code for newer x86 processors than the present one is not used either.
* Otherwise numba compiles a kernel on its first call, which takes seconds, and caches the result on disk. If
  no folder is writable, every process compiles anew, and a warning is issued once.

Arrays are C-contiguous. Arguments are declared by a letter for the type and a digit for the number of axes:
"f" float64, "i" int64, "s" int32, "h" int16, "w" uint64, "b" bool; "f2" is a matrix, "i" an integer. The name
of a `NamedTuple` stands for a record of such arguments. An array of another type or layout is no error: numba
then compiles the function once more.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from tuplet.core.exceptions import TupletWarning

KERNELS = (
    "tuplet.models.probit.sampling.correlation_kernels",
    "tuplet.models.probit.sampling.forest_kernels",
    "tuplet.joint.chain_kernels",
    "tuplet.joint.ghk_kernels",
    "tuplet.local.logistic_kernels",
    "tuplet.joint.inference.pair_kernels",
    "tuplet.joint.search_kernels",
    "tuplet.models.generative.networks.kernels",
    "tuplet.models.leaf_kernels",
    "tuplet.structure.kernels",
)
"""All modules with compiled functions."""

REORDERED = frozenset({"reassoc", "contract", "nsz", "arcp"})
"""Freedoms of floating-point code in which sums may be reordered, so that they run in vector registers;
infinities and NaN keep their meaning."""

IN_ORDER = frozenset({"contract"})
"""Only products and sums may be fused; for arithmetic that relies on the order of its operations."""

DTYPES: Mapping[str, Any] = {
    "f": np.dtype(np.float64),
    "i": np.dtype(np.int64),
    "s": np.dtype(np.int32),
    "h": np.dtype(np.int16),
    "w": np.dtype(np.uint64),
    "b": np.dtype(np.bool_),
}
"""Types of arguments by their letters."""

X86_LEVEL = "x86-64-v3"
"""What the extension module is compiled for on x86: the level of most processors since about 2015."""

_X86_FEATURES = ("AVX2", "FMA3", "F16C")
"""Features that come with that level, where numpy does not name the level itself."""

_log = logging.getLogger("tuplet.core.compiled")

F = TypeVar("F", bound=Callable[..., Any])


class Array(NamedTuple):
    """An argument that is an array."""

    letter: str
    ndim: int


class Record(NamedTuple):
    """An argument that is a `NamedTuple` of others."""

    made_by: Any
    fields: tuple[Argument, ...]


Argument: TypeAlias = "str | Array | Record"
"""A scalar is declared by its letter alone."""


class _Part(NamedTuple):
    function: Any
    fastmath: frozenset[str]
    inlined: bool = False


_parts: dict[str, list[_Part]] = {}
"""Functions of each kernel, in the order of their definition."""


def inner(*, fastmath: frozenset[str] = frozenset(), inlined: bool = False) -> Callable[[F], F]:
    """Mark a function that is compiled as a part of those that call it.

    Parameters
    ----------
    fastmath : set of str
        Freedoms of floating-point code, as numba names them.
    inlined : bool
        Whether each call is replaced by the code of the function. A call with several arrays takes longer
        than tens of operations, since numba counts references to them.
    """

    def mark(function: F) -> F:
        _parts.setdefault(function.__module__, []).append(_Part(function, fastmath, inlined))
        return function

    return mark


def entry(
    *signatures: str, fastmath: frozenset[str] = frozenset(), records: Mapping[str, Any] | None = None
) -> Callable[[F], F]:
    """Mark a function that the library calls.

    Parameters
    ----------
    signatures : str
        Arguments, separated by blanks; several, if it is called with several types.
    fastmath : set of str
        Freedoms of floating-point code, as numba names them.
    records : mapping of str to (class, str), optional
        Named tuples that a signature refers to, with the declarations of their fields.
    """

    def mark(function: F) -> F:
        parsed = [tuple(_parse(signature, records or {})) for signature in signatures]
        return Entry(function, parsed, fastmath)  # type: ignore[return-value]

    return mark


def _parse(signature: str, records: Mapping[str, Any]) -> Iterator[Argument]:
    for word in signature.split():
        if word in records:
            made_by, fields = records[word]
            yield Record(made_by, tuple(_parse(fields, records)))
        else:
            yield Array(word[0], int(word[1:])) if word[1:] else word


class Entry:
    """A compiled function that the library calls."""

    def __init__(
        self, function: Any, signatures: list[tuple[Argument, ...]], fastmath: frozenset[str]
    ) -> None:
        self.function, self.signatures, self.fastmath = function, signatures, fastmath
        self.__doc__, self.__name__, self.__module__ = (
            function.__doc__,
            function.__name__,
            function.__module__,
        )
        _parts.setdefault(self.__module__, []).append(_Part(self, fastmath))
        self._found = False
        self._ready: list[Any] = []

    def exported(self, variant: int) -> str:
        """Name of this function in the extension module."""
        return f"{self.__module__.replace('.', '_')}_{self.__name__}_{variant}"

    def __call__(self, *args: Any) -> Any:
        """Call the function of the extension module, or else the one that numba compiles."""
        if not self._found:
            module = _extension()
            if module is not None:
                self._ready = [getattr(module, self.exported(v)) for v in range(len(self.signatures))]
            self._found = True
        for signature, function in zip(self.signatures, self._ready, strict=False):
            if _fit(signature, args):
                return function(*args)
        return dispatchers(self.__module__)[self.__name__](*args)


def _fit(signature: tuple[Argument, ...], args: Any) -> bool:
    """Tell whether arrays have the declared types and layouts; machine code does not check them."""
    for declared, given in zip(signature, args, strict=True):
        if isinstance(declared, Array):
            if not (
                isinstance(given, np.ndarray)
                and given.dtype == DTYPES[declared.letter]
                and given.ndim == declared.ndim
                and given.flags.c_contiguous
                and given.flags.aligned
            ):
                return False
        elif isinstance(declared, Record) and not _fit(declared.fields, given):
            return False
    return True


# -- the extension module ----------------------------------------------------------------------------------


def digest() -> str:
    """Return a digest of the sources of all kernels, which the name of their extension module contains."""
    sums = hashlib.sha256(Path(__file__).read_bytes())
    for name in KERNELS:
        sums.update(_source(name).read_bytes())
    return sums.hexdigest()[:16]


def _source(name: str) -> Path:
    return Path(__file__).parents[1].joinpath(*name.split(".")[1:]).with_suffix(".py")


@cache
def _extension() -> Any:
    """Return the extension module with all kernels; None if there is none for these sources and processor."""
    if is_x86() and not _is_recent():
        return None
    try:
        return importlib.import_module(f"tuplet._compiled_{digest()}")
    except (ImportError, OSError):
        return None


def is_x86() -> bool:
    """Tell whether this is a 64-bit x86 processor."""
    return platform.machine().lower() in ("x86_64", "amd64")


def _is_recent() -> bool:
    # The only list of processor features that needs no further package; it heeds NPY_DISABLE_CPU_FEATURES.
    features = getattr(importlib.import_module("numpy._core._multiarray_umath"), "__cpu_features__", {})
    if "X86_V3" in features:
        return bool(features["X86_V3"])
    return all(features.get(name, False) for name in _X86_FEATURES)


# -- numba -------------------------------------------------------------------------------------------------


def entries() -> list[Entry]:
    """Import all kernels and return their entries."""
    for name in KERNELS:
        importlib.import_module(name)
    return [part.function for name in KERNELS for part in _parts[name] if isinstance(part.function, Entry)]


@cache
def dispatchers(module: str, cached: bool = True) -> dict[str, Any]:
    """Return numba's versions of the functions of a kernel, each compiled on its first call.

    They replace the functions in the module, because numba looks up called functions there.
    """
    _log.info("%s is compiled by numba on first use", module)
    made = {}
    for part in _parts[module]:
        function, is_entry = part.function, isinstance(part.function, Entry)
        if is_entry:
            function = function.function
        made[function.__name__] = _dispatcher(function, part, cached and is_entry)
        function.__globals__[function.__name__] = made[function.__name__]
    return made


def _dispatcher(function: Any, part: _Part, cached: bool) -> Any:
    from numba import njit as typed

    njit: Any = typed  # the annotations leave out some options
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(part.fastmath)}
    if part.inlined:
        options["forceinline"] = True
    if not cached:  # wrappers for Python would take most of the time
        return njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba has found no folder that it may write to
        _warn_uncached()
        return njit(**options)(function)


@cache
def _warn_uncached() -> None:
    warnings.warn(
        "Compiled functions cannot be kept, because neither the package nor a cache folder is writable: every"
        " process compiles them anew, which takes seconds. Set NUMBA_CACHE_DIR to a folder that is writable.",
        TupletWarning,
        stacklevel=2,
    )
