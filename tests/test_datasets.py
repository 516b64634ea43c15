import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tuplet.datasets import Dataset, list_datasets, load_dataset, load_penguins
from tuplet.exceptions import InputError, MissingDependencyError
from tuplet.space import ClassSpace

# -- penguins ----------------------------------------------------------------------------------------------


def test_penguins():
    penguins = load_penguins()
    assert penguins.X.shape == (344, 5)
    assert penguins.Y.shape == (344, 3)
    assert list(penguins.Y.columns) == ["species", "island", "sex"]
    assert penguins.Y.nunique().tolist() == [3, 3, 2]
    assert penguins.Y["species"].value_counts().to_dict() == {"Adelie": 152, "Gentoo": 124, "Chinstrap": 68}
    assert all(np.issubdtype(dtype, np.number) for dtype in penguins.X.dtypes)


def test_missing_values_are_kept():
    penguins = load_penguins()
    assert penguins.Y.isna().sum().tolist() == [0, 0, 11]
    assert penguins.X.isna().sum().tolist() == [2, 2, 2, 2, 0]
    assert set(penguins.X.index[penguins.X.isna().any(axis=1)]) <= set(
        penguins.Y.index[penguins.Y["sex"].isna()]
    )


def test_each_call_gives_data_of_its_own():
    X, Y = load_penguins(return_X_y=True)
    Y.loc[0, "species"] = None
    X.loc[0] = 0
    again = load_penguins()
    assert again.Y.loc[0, "species"] == "Adelie"
    assert again.X.loc[0, "bill_length_mm"] == 39.1


def test_the_frame_has_everything_and_the_origin_is_told():
    penguins = load_penguins()
    assert penguins.frame.shape == (344, 8)
    assert "CC0" in penguins.description
    assert repr(penguins).startswith("Dataset(penguins: 344 rows")


def test_penguins_by_name():
    X, Y = load_dataset("penguins", return_X_y=True)
    pd.testing.assert_frame_equal(Y, load_penguins().Y)
    assert X.shape == (344, 5)
    with pytest.raises(InputError, match="n_labels is for multi-label sets"):
        load_dataset("penguins", n_labels=2)


# -- splits ------------------------------------------------------------------------------------------------


def small(**shipped):
    X = pd.DataFrame({"x": np.arange(6.0)})
    return Dataset("small", X, pd.DataFrame({"y": [0, 1] * 3}), "", **shipped)


def test_a_split_takes_the_rows_apart():
    train = np.array([True, True, False, True, False, False])
    X_train, Y_train, X_test, Y_test = small(train=train).split()
    assert X_train["x"].tolist() == [0, 1, 3]
    assert X_test["x"].tolist() == [2, 4, 5]
    assert (Y_train["y"].tolist(), Y_test["y"].tolist()) == ([0, 1, 1], [0, 0, 1])
    folds = small(folds=np.array([0, 1, 2, 0, 1, 2]))
    assert [folds.split(fold)[2]["x"].tolist() for fold in range(3)] == [[0, 3], [1, 4], [2, 5]]


def test_a_split_that_is_not_there_is_an_error():
    with pytest.raises(InputError, match="'small' comes with no split and no folds"):
        small().split()
    with pytest.raises(InputError, match="a split, but no folds; call split"):
        small(train=np.ones(6, dtype=bool)).split(fold=0)
    folds = small(folds=np.array([0, 1, 2, 0, 1, 2]))
    for wrong in (None, 3, -1):
        with pytest.raises(InputError, match=r"3 folds; say which .*split\(fold=2\)"):
            folds.split(wrong)


def test_many_class_variables_are_not_all_shown():
    Y = pd.DataFrame(np.zeros((2, 30), dtype=int), columns=[f"label{j}" for j in range(30)])
    assert repr(Dataset("wide", Y[[]], Y, "")).endswith("label7 and 22 more)")


# -- benchmark sets ----------------------------------------------------------------------------------------

NAMES = [
    "emotions", "scene", "yeast", "birds", "medical", "enron", "flags", "image", "mediamill_reduced",
    *(f"rcv1subset{i}" for i in range(1, 6)),
    "edm", "enb", "jura", "jura_mdc", "enb_mdc", "Rf1", "Adult",
]  # fmt: skip


@pytest.fixture
def manifest():
    folder = os.environ.get("TUPLET_DATA")
    if not folder:
        pytest.skip("needs the benchmark sets; set TUPLET_DATA to the folder with manifest.json")
    return {
        entry["name"]: entry for entry in json.loads((Path(folder) / "manifest.json").read_text())["sets"]
    }


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_a_set_is_what_the_manifest_says(name, manifest):
    entry, data = manifest[name], load_dataset(name)
    assert data.X.shape == (entry["rows"], entry["features"]["total"])
    nominal = [isinstance(dtype, pd.CategoricalDtype) for dtype in data.X.dtypes]
    assert sum(nominal) == entry["features"]["nominal"]
    assert all(dtype.kind in "if" for dtype, text in zip(data.X.dtypes, nominal, strict=True) if not text)
    assert not any(column.startswith("__") for column in data.frame)
    assert list(data.Y.columns) == entry["target_names"]
    assert int(data.frame.isna().sum().sum()) == entry["missing_values"]
    listed = list_datasets().set_index("name").loc[name]
    cards = ClassSpace.from_labels(data.Y).cards
    assert listed["cardinalities"] == cards
    if entry["task"] != "multi-target regression":
        assert list(cards) == entry["target_cardinalities"]
        assert len(data.Y.drop_duplicates()) == entry["distinct_label_sets"]
    if entry["task"] == "multi-label":
        assert all(dtype.kind == "i" for dtype in data.Y.dtypes)
        assert data.Y.sum().tolist() == entry["label_counts"]
        assert data.Y.sum(axis=1).mean() == pytest.approx(entry["label_cardinality"], abs=5e-5)
    assert entry["source"] in data.description


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_splits_and_folds_are_those_of_the_manifest(name, manifest):
    entry, data = manifest[name], load_dataset(name)
    assert (data.train is not None) == ("__train__" in entry["aux_columns"])
    assert (data.folds is not None) == ("__fold__" in entry["aux_columns"])
    if data.train is not None:
        sizes = entry["split"]["train"], entry["split"]["test"]
        assert tuple(len(part) for part in data.split()[::2]) == sizes
        assert list_datasets().set_index("name").loc[name, "split"] == f"{sizes[0]} / {sizes[1]}"
    if data.folds is not None:
        assert np.unique(data.folds).tolist() == list(range(10))


@pytest.mark.data
@pytest.mark.parametrize("name", ["enb", "jura"])
def test_numeric_targets_are_cut_as_the_manifest_says(name, manifest):
    rules = manifest[name]["mdc_discretisation"]["ours_equal_frequency"]
    numbers, classes = load_dataset(name, discretise=False).Y, load_dataset(name).Y
    for target, rule in rules.items():
        assert classes[target].value_counts().sort_index().tolist() == rule["counts"]
        assert classes[target].tolist() == [sum(cut < v for cut in rule["cuts"]) for v in numbers[target]]


@pytest.mark.data
def test_raw_targets_of_rf1(manifest):
    raw, classes = load_dataset("Rf1", discretise=False).Y, load_dataset("Rf1").Y
    assert list(raw.columns) == list(classes.columns)
    for target, levels in manifest["Rf1"]["mdc_discretisation"]["per_target"].items():
        for level in levels:
            part = raw[target][classes[target] == level["cls"]]
            assert len(part) == level["count"]
            assert (part.min(), part.max()) == pytest.approx((level["raw_min"], level["raw_max"]))


@pytest.mark.data
def test_the_most_common_labels(manifest):
    data = load_dataset("enron", n_labels=10)
    counts = dict(zip(manifest["enron"]["target_names"], manifest["enron"]["label_counts"], strict=True))
    assert data.Y.shape[1] == 10
    left_out = [count for name, count in counts.items() if name not in data.Y]
    assert min(counts[name] for name in data.Y) >= max(left_out)
    assert list(data.Y.columns) == [name for name in counts if name in data.Y]
    for wrong in (0, 54, 2.5):
        with pytest.raises(InputError, match="n_labels must be from 1 to 53, the labels of 'enron'"):
            load_dataset("enron", n_labels=wrong)
    with pytest.raises(InputError, match="which 'Adult' is not"):
        load_dataset("Adult", n_labels=2)


@pytest.mark.data
def test_names_are_declared_in_full(manifest):
    Y = load_dataset("Adult").Y
    for target, levels in manifest["Adult"]["target_levels"].items():
        assert sorted(Y[target].cat.categories) == sorted(levels)


@pytest.mark.data
def test_names_that_are_no_sets_are_errors(manifest):
    with pytest.raises(InputError, match="no set 'adult'; did you mean 'Adult'"):
        load_dataset("adult")
    with pytest.raises(InputError, match="no set 'xyz'; there are penguins, emotions"):
        load_dataset("xyz")
    with pytest.raises(InputError, match="'andes' is a Bayesian network"):
        load_dataset("andes")
    assert "andes" not in set(list_datasets()["name"])


# -- folders -----------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path):
    """A folder with one small set."""
    pytest.importorskip("pyarrow")
    folder = tmp_path / "sets"
    folder.mkdir()
    frame = pd.DataFrame(
        {"x": [1.0, 2.0], "place": pd.Categorical(["a", "b"]), "yes": [0, 1], "__fold__": [1, 2]}
    )
    frame.to_parquet(folder / "tiny.parquet")
    entry = {
        "name": "tiny", "file": "tiny.parquet", "title": "Tiny", "what": "two rows", "source": "here",
        "licence": "none", "notes": [], "task": "multi-label", "target_names": ["yes"],
        "target_cardinalities": [2], "n_targets": 1, "rows": 2, "label_cardinality": 0.5, "split": None,
        "features": {"total": 2, "numeric": 1, "nominal": 1}, "aux_columns": ["__fold__"],
        "sha256": hashlib.sha256((folder / "tiny.parquet").read_bytes()).hexdigest(),
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps({"sets": [entry]}))
    return folder


def test_folders_are_found(tiny, tmp_path, monkeypatch):
    monkeypatch.delenv("TUPLET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert list_datasets()["name"].tolist() == ["penguins"]
    with pytest.raises(InputError, match=r"no folder of benchmark sets; set TUPLET_DATA .*cache/tuplet"):
        load_dataset("tiny")
    given = load_dataset("tiny", folder=tiny)
    assert given.folds.tolist() == [0, 1]
    assert list(given.X.columns) == ["x", "place"]
    shutil.copytree(tiny, tmp_path / "cache" / "tuplet")
    assert load_dataset("tiny").X.shape == (2, 2)
    monkeypatch.setenv("TUPLET_DATA", str(tiny))
    assert list_datasets()["name"].tolist() == ["penguins", "tiny"]
    assert list_datasets()["split"].tolist() == ["", "folds"]


def test_folders_that_are_broken_are_errors(tiny, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"the folder, '.*nowhere', does not exist"):
        load_dataset("tiny", folder=tmp_path / "nowhere")
    monkeypatch.setenv("TUPLET_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"the folder that TUPLET_DATA names, '.*', has no manifest.json"):
        load_dataset("tiny")
    with (tiny / "tiny.parquet").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=r"tiny.parquet' is not the file that the manifest describes"):
        load_dataset("tiny", folder=tiny)
    (tiny / "tiny.parquet").unlink()
    with pytest.raises(InputError, match="but there is no such file"):
        load_dataset("tiny", folder=tiny)
    (tiny / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest.json' cannot be read"):
        list_datasets(tiny)


def test_parquet_needs_pyarrow(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install tuplet\[data\]"):
        load_dataset("tiny", folder=tiny)
