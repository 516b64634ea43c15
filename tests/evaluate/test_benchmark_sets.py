import json
import os

import numpy as np
import pandas as pd
import pytest

from benchmark_sets import benchmark_names, load_benchmark, load_benchmarks, read_manifest
from tuplet.core.exceptions import InputError
from tuplet.space import ClassSpace

NAMES = [
    "emotions", "scene", "yeast", "birds", "medical", "enron", "flags", "image", "mediamill_reduced",
    *(f"rcv1subset{i}" for i in range(1, 6)),
    "edm", "enb", "jura", "jura_mdc", "enb_mdc", "Rf1", "Adult",
]  # fmt: skip


@pytest.fixture
def manifest():
    if not os.environ.get("TUPLET_DATA"):
        pytest.skip("needs the benchmark sets; set TUPLET_DATA to the folder with manifest.json")
    return read_manifest()


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_a_set_is_what_the_manifest_says(name, manifest):
    entry, data = manifest[name], load_benchmark(name)
    assert data.X.shape == (entry["rows"], entry["features"]["total"])
    nominal = [isinstance(dtype, pd.CategoricalDtype) for dtype in data.X.dtypes]
    assert sum(nominal) == entry["features"]["nominal"]
    assert all(dtype.kind in "if" for dtype, text in zip(data.X.dtypes, nominal, strict=True) if not text)
    assert not any(column.startswith("__") for column in data.frame)
    assert list(data.Y.columns) == entry["target_names"]
    assert int(data.frame.isna().sum().sum()) == entry["missing_values"]
    if entry["task"] != "multi-target regression":
        assert list(ClassSpace.from_labels(data.Y).cards) == entry["target_cardinalities"]
        assert len(data.Y.drop_duplicates()) == entry["distinct_label_sets"]
    if entry["task"] == "multi-label":
        assert all(dtype.kind == "i" for dtype in data.Y.dtypes)
        assert data.Y.sum().tolist() == entry["label_counts"]
        assert data.Y.sum(axis=1).mean() == pytest.approx(entry["label_cardinality"], abs=5e-5)


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_splits_and_folds_are_those_of_the_manifest(name, manifest):
    entry, data = manifest[name], load_benchmark(name)
    assert (data.train is not None) == ("__train__" in entry["aux_columns"])
    assert (data.folds is not None) == ("__fold__" in entry["aux_columns"])
    if data.train is not None:
        sizes = entry["split"]["train"], entry["split"]["test"]
        assert tuple(len(part) for part in data.split()[::2]) == sizes
    if data.folds is not None:
        assert np.unique(data.folds).tolist() == list(range(10))


@pytest.mark.data
@pytest.mark.parametrize("name", ["enb", "jura"])
def test_numeric_targets_are_cut_as_the_manifest_says(name, manifest):
    rules = manifest[name]["mdc_discretisation"]["ours_equal_frequency"]
    numbers, classes = load_benchmark(name, discretise=False).Y, load_benchmark(name).Y
    for target, rule in rules.items():
        assert classes[target].value_counts().sort_index().tolist() == rule["counts"]
        assert classes[target].tolist() == [sum(cut < v for cut in rule["cuts"]) for v in numbers[target]]


@pytest.mark.data
def test_raw_targets_of_rf1(manifest):
    raw, classes = load_benchmark("Rf1", discretise=False).Y, load_benchmark("Rf1").Y
    assert list(raw.columns) == list(classes.columns)
    for target, levels in manifest["Rf1"]["mdc_discretisation"]["per_target"].items():
        for level in levels:
            part = raw[target][classes[target] == level["cls"]]
            assert len(part) == level["count"]
            assert (part.min(), part.max()) == pytest.approx((level["raw_min"], level["raw_max"]))


@pytest.mark.data
def test_the_most_common_labels(manifest):
    data = load_benchmark("enron", n_labels=10)
    counts = dict(zip(manifest["enron"]["target_names"], manifest["enron"]["label_counts"], strict=True))
    assert data.Y.shape[1] == 10
    left_out = [count for name, count in counts.items() if name not in data.Y]
    assert min(counts[name] for name in data.Y) >= max(left_out)
    assert list(data.Y.columns) == [name for name in counts if name in data.Y]
    for wrong in (0, 54, 2.5):
        with pytest.raises(InputError, match=r"found .* for 'enron', which is multi-label with 53"):
            load_benchmark("enron", n_labels=wrong)
    with pytest.raises(InputError, match=r"n_labels must be .* of a multi-label set; found 2 for 'Adult'"):
        load_benchmark("Adult", n_labels=2)


@pytest.mark.data
def test_names_are_declared_in_full(manifest):
    Y = load_benchmark("Adult").Y
    for target, levels in manifest["Adult"]["target_levels"].items():
        assert sorted(Y[target].cat.categories) == sorted(levels)


@pytest.mark.data
def test_names_are_those_of_tables(manifest):
    assert sorted(benchmark_names()) == sorted(NAMES)
    assert list(load_benchmarks("flags", "enb")) == ["flags", "enb"]
    for unknown in ("xyz", "andes"):  # andes is a Bayesian network
        with pytest.raises(InputError, match=f"no benchmark set '{unknown}'; there are emotions"):
            load_benchmark(unknown)


# -- folders -----------------------------------------------------------------------------------------------


def test_without_a_folder(monkeypatch):
    monkeypatch.delenv("TUPLET_DATA", raising=False)
    with pytest.raises(InputError, match=r"Set TUPLET_DATA to the folder with manifest.json"):
        load_benchmark("emotions")


def test_files_that_are_not_those_of_the_manifest_are_errors(tmp_path, monkeypatch):
    (tmp_path / "tiny.parquet").write_bytes(b"PAR1")
    entry = {"name": "tiny", "file": "tiny.parquet", "task": "multi-label", "sha256": "0"}
    (tmp_path / "manifest.json").write_text(json.dumps({"sets": [entry]}))
    monkeypatch.setenv("TUPLET_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"tiny.parquet' is not the file that the manifest describes"):
        load_benchmark("tiny")
