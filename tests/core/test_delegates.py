"""Models and predictions refer to what presents and stores them through `tuplet.core.delegates` alone."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tuplet
from rooms import ROOMS
from tuplet.core.delegates import DELEGATES, delegate

SOURCES = Path(tuplet.__file__).parent
LOWER = ("models", "prediction", "metrics")
HIGHER = ("evaluate", "io", "surface")
TABLES = {"core/delegates.py", "core/compiled.py", "io/saved_models/registry.py"}
"""Tables of modules of higher rooms: delegates, kernels compiled ahead of time, types of saved models."""


def imported(tree):
    """Yield the modules of all imports in a file, inside functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def modules_named_in_strings(tree):
    """Yield the texts in a file, docstrings aside, that name modules of ours, also as "module:name"."""
    documented = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documented:
            first, *rest = node.value.partition(":")[0].split(".")
            place = SOURCES.joinpath(*rest)
            if first == "tuplet" and rest and (place.is_dir() or place.with_suffix(".py").exists()):
                yield node.value


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


def test_no_other_module_names_a_module_of_a_higher_room_in_a_string():
    wrong = [
        (name_of(path), text)
        for room in ROOMS
        for path in (SOURCES / room).rglob("*.py")
        if path.name != "__init__.py" and name_of(path) not in TABLES
        for text in modules_named_in_strings(parsed(path))
        if ROOMS.index(text.split(".")[1].partition(":")[0]) > ROOMS.index(room)
    ]
    assert wrong == []


def test_pictures_and_pages_are_not_imported_with_a_model():
    code = (
        "import sys, tuplet.models.chain, tuplet.models.decision, tuplet.models.trees;"
        "print([name for name in sys.modules if name.startswith(('tuplet.surface', 'tuplet.io'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
