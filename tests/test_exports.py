"""The public names of a package are its `__all__`."""

import ast
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import tuplet
from public import SNAPSHOT, addresses, describe

PACKAGES = [
    "tuplet",
    *(name for _, name, is_package in pkgutil.walk_packages(tuplet.__path__, "tuplet.") if is_package),
]
LAZY = [
    name
    for name in PACKAGES
    if "lazy_names(" in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", PACKAGES)
def test_all_names_of_a_package_exist(name):
    module = importlib.import_module(name)
    assert hasattr(module, "__all__"), f"{name} has no __all__"
    for public in module.__all__:
        assert hasattr(module, public), f"{name}.__all__ names {public}, which does not exist"


def test_every_public_class_has_a_runnable_example():
    for public in tuplet.__all__:
        item = getattr(tuplet, public)
        if isinstance(item, type) and not issubclass(item, Exception) and item is not tuplet.JointClassifier:
            assert ">>>" in (item.__doc__ or ""), f"{public} has no example"


@pytest.mark.parametrize("name", LAZY)
def test_type_checkers_see_the_names_that_are_imported_on_first_use(name):
    module = importlib.import_module(name)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        module.no_such_name  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, tuplet; print({'numpy', 'scipy', 'sklearn', 'pandas', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_public_names_and_signatures_are_those_of_the_snapshot():
    """A change of the interface is a visible difference: `make snapshot` writes the file anew."""
    assert describe() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


def test_public_modules_are_attributes():
    code = "import tuplet; print(*(getattr(tuplet, name.split('.')[1]).__name__ for name in {names}))"
    names = [name for name in addresses() if name != "tuplet"]
    done = subprocess.run(
        [sys.executable, "-c", code.format(names=names)], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == [".".join(name.split(".")[:2]) for name in names]
