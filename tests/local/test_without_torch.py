"""`tuplet.local.deep` where torch is not installed: it can be imported and says what to install."""

import importlib
import sys

import pytest

from tuplet.core.exceptions import MissingDependencyError


@pytest.fixture
def deep_without_torch(monkeypatch):
    kept = {name: module for name, module in sys.modules.items() if name.startswith("tuplet.local.deep")}
    for name in kept:
        monkeypatch.delitem(sys.modules, name)
    # This makes `import skorch` fail; to hide torch itself would confuse scipy, which looks for it.
    monkeypatch.setitem(sys.modules, "skorch", None)
    yield importlib.import_module("tuplet.local.deep")
    for name in [name for name in sys.modules if name.startswith("tuplet.local.deep")]:
        del sys.modules[name]
    sys.modules.update(kept)


@pytest.mark.parametrize("name", ["DeepClassifier", "MLP", "ConvNet", "ResNet18"])
def test_networks_say_what_to_install(deep_without_torch, name):
    with pytest.raises(MissingDependencyError, match=f"{name} needs torch and skorch; run `pip install"):
        getattr(deep_without_torch, name)(3)


def test_temperature_scaling_needs_no_torch(deep_without_torch):
    from sklearn.naive_bayes import GaussianNB

    model = deep_without_torch.TemperatureScaled(GaussianNB()).fit([[0.0], [1.0]] * 30, [0, 1] * 30)
    assert model.n_held_out_ == 12
