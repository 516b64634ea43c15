"""The map of the package: one list of rooms, in import order, which the documentation repeats."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from rooms import ROOMS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tuplet"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def test_the_rooms_are_the_layers():
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(ROOMS)
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_the_design_lists_the_rooms_in_import_order():
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    tree = design.partition("src/tuplet/\n")[2].partition("```")[0]
    assert re.findall(r"^  (\w+)/ ", tree, flags=re.MULTILINE) == ROOMS


def test_the_guide_for_contributors_lists_the_rooms_in_import_order():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("`core`"))
    assert re.findall(r"`(\w+)`", line) == ROOMS


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_names_from_the_modules_that_define_them(path):
    """Packages import names on first use, under a lock: that must not happen while a module is imported."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and (folder := folder_of(node.module)):
            names = {alias.name for alias in node.names} - defined_in(folder) - {"__version__"}
            assert not names, f"line {node.lineno}: import {', '.join(names)} from where they are defined"


def folder_of(module):
    """Return the folder of a package of ours, None if it is something else."""
    first, *rest = module.split(".")
    folder = PACKAGE.joinpath(*rest)
    return folder if first == "tuplet" and (folder / "__init__.py").exists() else None


@cache
def defined_in(folder):
    """Modules of a package, and functions that its `__init__.py` defines."""
    functions = (
        node.name for node in parsed(folder / "__init__.py").body if isinstance(node, ast.FunctionDef)
    )
    return {found.stem for found in folder.iterdir()} | set(functions)


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))
