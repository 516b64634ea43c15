"""Models and predictions refer to what presents and stores them through `tuplet.core.delegates` alone."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tuplet
from tuplet.core.delegates import DELEGATES, delegate

SOURCES = Path(tuplet.__file__).parent
LOWER = ("models", "prediction", "metrics")
HIGHER = ("evaluate", "io", "surface")
IMPORTERS = {"core/delegates.py", "core/lazy.py", "core/compiled.py"}
"""Modules that import others by name: two tables of names, and the cache of compiled code."""


def imported(tree):
    """Yield the modules of all imports in a file, inside functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def imported_by_name(tree):
    """Yield the texts that `import_module` and `__import__` are called with, as far as they are constant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__"):
                yield from (
                    part.value
                    for part in ast.walk(node.args[0])
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path):
    return str(path.relative_to(SOURCES))


@pytest.mark.parametrize("name", DELEGATES)
def test_every_delegate_is_a_function(name):
    module, _, function = DELEGATES[name].partition(":")
    assert callable(getattr(import_module(module), function))


def test_all_names_that_are_delegated_to_are_in_the_table():
    used = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "delegate":
                used.add(ast.literal_eval(node.args[0]))
    assert used == set(DELEGATES)


def test_a_delegate_that_is_not_in_the_table_is_an_error():
    with pytest.raises(KeyError, match="plot_nothing"):
        delegate("plot_nothing")


def test_models_and_predictions_import_nothing_that_presents_or_stores_them():
    higher = tuple(f"tuplet.{room}" for room in HIGHER)
    wrong = [
        (name_of(path), module)
        for room in LOWER
        for path in (SOURCES / room).rglob("*.py")
        for module in imported(parsed(path))
        if module in higher or module.startswith(tuple(f"{room}." for room in higher))
    ]
    assert wrong == []


def test_no_other_module_imports_a_module_of_ours_by_its_name_in_a_string():
    wrong = [
        (name_of(path), text)
        for path in SOURCES.rglob("*.py")
        if path.name != "__init__.py" and name_of(path) not in IMPORTERS
        for text in imported_by_name(parsed(path))
        if text.split(".")[0] == "tuplet"
    ]
    assert wrong == []


def test_pictures_and_pages_are_not_imported_with_a_model():
    code = (
        "import sys, tuplet.models.chain, tuplet.models.decision, tuplet.models.trees;"
        "print([name for name in sys.modules if name.startswith(('tuplet.surface', 'tuplet.io'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
