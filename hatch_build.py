"""Compile the kernels of the package into an extension module while a wheel is built.

The module saves every user, worker process and container the seconds that numba takes to compile. It needs a
C compiler; without one, or with TUPLET_PURE set, the wheel has Python files only, and numba compiles instead.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import sysconfig
import types
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent / "src" / "tuplet"
NAMES = f"_compiled_*{sysconfig.get_config_var('EXT_SUFFIX')}"

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script, in the process that compiles
    BuildHookInterface = object


class CompiledKernels(BuildHookInterface):
    """Add the extension module to a wheel; where it cannot be made, the wheel goes without."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, in a process of its own, for the Python that runs the build."""
        for old in PACKAGE.glob(NAMES):  # of this Python; a checkout may serve several
            with suppress(OSError):
                old.unlink()
        if self.target_name != "wheel" or os.environ.get("TUPLET_PURE"):
            return
        done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
        made = list(PACKAGE.glob(NAMES))
        if done.returncode or not made:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            self.app.display_warning(f"Kernels are not compiled ahead of time ({reason}); numba will do it.")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"] += [f"src/tuplet/{path.name}" for path in made]


def _import_kernels() -> Any:
    """Import the kernels without the rest of the package, whose dependencies a build does without."""
    for folder in [PACKAGE, *(path.parent for path in PACKAGE.rglob("*/__init__.py"))]:
        name = ".".join(("tuplet", *folder.relative_to(PACKAGE).parts))
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return importlib.import_module("tuplet.core.compiled")


def _wrapper(entry: Any, dispatcher: Any) -> Any:
    """Return a function that only calls the compiled one: that keeps its options, which exporting ignores."""
    count = entry.function.__code__.co_argcount
    arguments = ", ".join(f"a{i}" for i in range(count))
    names: dict[str, Any] = {"dispatcher": dispatcher}
    exec(f"def wrapper({arguments}):\n    return dispatcher({arguments})", names)
    return names["wrapper"]


def _numba_type(argument: Any, compiled: Any) -> Any:
    from numba import from_dtype
    from numba import types as of_numba

    if isinstance(argument, str):
        return from_dtype(compiled.DTYPES[argument])
    if isinstance(argument, compiled.Array):
        return of_numba.Array(from_dtype(compiled.DTYPES[argument.letter]), argument.ndim, "C")
    fields = [_numba_type(field, compiled) for field in argument.fields]
    if len(set(fields)) == 1:
        return of_numba.NamedUniTuple(fields[0], len(fields), argument.made_by)
    return of_numba.NamedTuple(fields, argument.made_by)


def compile_kernels() -> None:
    """Write the extension module into the package."""
    warnings.simplefilter("ignore")  # numba announces that this part of it will be replaced one day
    compiled = _import_kernels()
    entries = compiled.entries()
    from numba.pycc import CC, compiler

    plain = compiler.Flags

    def flags() -> Any:
        made = plain()
        made.release_gil = True
        return made

    compiler.Flags = flags  # exported functions hold Python's lock otherwise, and there is no option for it
    module = CC(f"_compiled_{compiled.digest()}", source_module=compiled)
    module.output_dir = str(PACKAGE)
    if compiled.is_x86():
        module.target_cpu = compiled.X86_LEVEL
    for entry in entries:
        dispatcher = compiled.dispatchers(entry.__module__, cached=False)[entry.__name__]
        for variant, signature in enumerate(entry.signatures):
            arguments = tuple(_numba_type(argument, compiled) for argument in signature)
            module.export(entry.exported(variant), arguments)(_wrapper(entry, dispatcher))
    module.compile()


if __name__ == "__main__":
    compile_kernels()
