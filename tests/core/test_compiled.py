"""Compiled functions: the extension module, numba in its place, and what is not writable."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

from tuplet.core import compiled
from tuplet.core.exceptions import TupletWarning
from tuplet.structure import kernels as structure

ENTRIES = {f"{entry.__module__}.{entry.__name__}": entry for entry in compiled.entries()}
needs_extension = pytest.mark.skipif(
    compiled._extension() is None, reason="needs the extension module: `make kernels`"
)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_signature_declares_every_argument(name):
    entry = ENTRIES[name]
    parameters = inspect.signature(entry.function).parameters
    assert entry.signatures
    assert all(len(signature) == len(parameters) for signature in entry.signatures)


@needs_extension
@pytest.mark.parametrize("name", ENTRIES)
def test_the_extension_module_has_every_entry(name):
    entry = ENTRIES[name]
    assert all(hasattr(compiled._extension(), entry.exported(v)) for v in range(len(entry.signatures)))


def families():
    """Families of three children: where each child's start, and their parents as bit sets."""
    return np.array([0, 2, 4, 5]), np.array([[6], [0], [4], [0], [0]], dtype=np.uint64)


@needs_extension
def test_numba_and_the_extension_module_agree():
    starts, masks = families()
    by_numba = compiled.dispatchers("tuplet.structure.kernels")["undominated"]
    np.testing.assert_array_equal(structure.undominated(starts, masks), by_numba(starts, masks))


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (np.zeros((3, 2)), True),
        (np.zeros((3, 2), order="F"), False),
        (np.zeros((3, 4))[:, ::2], False),
        (np.zeros(3), False),
        (np.zeros((3, 2), dtype=np.float32), False),
        (np.zeros((3, 2), dtype=np.int64), False),
        (np.zeros((3, 2), dtype=">f8"), False),
        ([[0.0, 0.0]], False),
    ],
)
def test_machine_code_gets_only_arrays_that_it_was_made_for(given, fits):
    assert compiled._fit((compiled.Array("f", 2),), (given,)) is fits
    record = compiled.Record(tuple, ("i", compiled.Array("f", 2)))
    assert compiled._fit((record,), ((1, given),)) is fits


def test_other_arrays_are_compiled_for_by_numba():
    starts, masks = families()
    spread = np.zeros((5, 2), dtype=np.uint64)
    spread[:, :1] = masks
    expected = structure.undominated(starts, masks)
    np.testing.assert_array_equal(structure.undominated(starts, spread[:, :1]), expected)


def test_the_digest_depends_on_every_source(monkeypatch, tmp_path):
    before = compiled.digest()
    changed = tmp_path / "changed.py"
    for name in compiled.KERNELS:
        source = compiled._source(name)
        changed.write_bytes(source.read_bytes() + b"\n")
        with monkeypatch.context() as patch:
            sources = {other: compiled._source(other) for other in compiled.KERNELS}
            patch.setattr(compiled, "_source", (sources | {name: changed}).get)
            assert compiled.digest() != before


def test_without_a_writable_folder_numba_compiles_all_the_same(monkeypatch):
    import numba

    plain = numba.njit

    def njit(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function 'flip': no locator available for file 'kernels.py'")
        return plain(*args, **options)

    monkeypatch.setattr(numba, "njit", njit)
    compiled._warn_uncached.cache_clear()
    with pytest.warns(TupletWarning, match="NUMBA_CACHE_DIR") as caught:
        made = [compiled._dispatcher(f, compiled._Part(f, frozenset()), True) for f in (_double, _triple)]
    assert len(caught) == 1
    assert [function(2) for function in made] == [4, 6]


def _double(x):
    return 2 * x


def _triple(x):
    return 3 * x


@needs_extension
def test_a_fit_with_the_extension_module_loads_no_numba():
    code = """
import sys, tuplet
X, Y = tuplet.load_penguins(return_X_y=True)
for model in (tuplet.TreeClassifier(), tuplet.BayesNetClassifier(), tuplet.GenerativeBayesNetClassifier()):
    model.fit(X, Y).predict(X)
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_older_processor_gets_code_by_numba():
    code = """
from tuplet.core import compiled
assert compiled._extension() is None
"""
    names = _dispatched()
    if not {"X86_V3", "AVX2"} & set(names):
        pytest.skip("a processor of another kind")
    disabled = dict(os.environ, NPY_DISABLE_CPU_FEATURES=" ".join(names))
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=disabled)


def _dispatched():
    """Features of this processor that numpy can do without."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
