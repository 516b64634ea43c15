"""The names that types of tuplet have in files: unique, harmless to restore, and free of modules."""

import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

from tuplet.io.saved_models import save_model
from tuplet.io.saved_models.registry import NAMES, OBJECTS, RECIPES, TUPLES
from tuplet.models import ChainClassifier

ALL = [*OBJECTS.items(), *TUPLES.items(), *RECIPES.items()]


def resolved(path):
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def test_names_and_classes_are_unique():
    assert len({name for name, _ in ALL}) == len({path for _, path in ALL}) == len(ALL) == len(NAMES)
    assert all(name.isidentifier() and not name.startswith("_") for name, _ in ALL)


@pytest.mark.parametrize(("name", "path"), ALL)
def test_a_name_stands_for_a_class_where_it_is_defined(name, path):
    found = resolved(path)
    assert isinstance(found, type)
    assert f"{found.__module__}:{found.__qualname__}" == path


@pytest.mark.parametrize("name", OBJECTS)
def test_restoring_an_object_runs_no_code_of_its_class(name):
    found = resolved(OBJECTS[name])
    assert found.__new__ is object.__new__
    assert not hasattr(found, "__del__")
    restore = getattr(found, "__setstate__", None)
    assert restore is None or restore.__module__ in ("sklearn.base", "dataclasses")


@pytest.mark.parametrize("name", TUPLES)
def test_restoring_a_named_tuple_runs_no_code_of_its_class(name):
    found = resolved(TUPLES[name])
    assert found.__bases__ == (tuple,)
    assert list(found._fields) == list(found.__annotations__)


def test_a_model_is_loaded_in_a_new_process_which_imports_only_its_own_parts(tmp_path):
    pytest.importorskip("skops")
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = ChainClassifier().fit(X, X > 0)
    save_model(model, tmp_path / "model.tuplet")
    code = (
        "import sys, numpy as np, tuplet;"
        f" model = tuplet.load_model({str(tmp_path / 'model.tuplet')!r});"
        " X = np.random.default_rng(0).normal(size=(20, 2));"
        " print(model.predict_joint(X).log_prob(X > 0).tolist());"
        " print([name for name in sys.modules if name.startswith('tuplet.models.probit.sampling')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    log_probs, others = result.stdout.splitlines()
    assert eval(log_probs) == model.predict_joint(X).log_prob(X > 0).tolist()
    assert others == "[]"
