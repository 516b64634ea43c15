"""The surface is what `__all__` says, everywhere."""

import importlib
import pkgutil

import pytest

import tuplet

MODULES = [
    name for _, name, _ in pkgutil.walk_packages(tuplet.__path__, "tuplet.") if not name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_all_names_exist_and_are_sorted(name):
    module = importlib.import_module(name)
    assert hasattr(module, "__all__"), f"{name} does not say what it offers"
    for public in module.__all__:
        assert hasattr(module, public), f"{name}.__all__ names {public}, which does not exist"


def test_every_public_class_has_a_runnable_example():
    for public in tuplet.__all__:
        item = getattr(tuplet, public)
        if isinstance(item, type) and not issubclass(item, Exception) and item is not tuplet.JointClassifier:
            assert ">>>" in (item.__doc__ or ""), f"{public} has no example"
