import socket
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest

from tuplet.core.exceptions import InputError
from tuplet.io import Dataset, list_datasets, load_dataset, load_penguins
from tuplet.io.loading import OPENML
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


# -- OpenML ------------------------------------------------------------------------------------------------


@pytest.fixture
def openml(tmp_path, monkeypatch):
    """Answers in the place of OpenML: set `rows` or `error`; `calls` has the parameters of each request."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    server = SimpleNamespace(rows=593, error=None, calls=[])

    def fetch(**options):
        server.calls.append((options, socket.getdefaulttimeout()))
        if server.error is not None:
            raise server.error
        answers = np.where(np.arange(server.rows * 6).reshape(-1, 6) % 5 == 0, "TRUE", "FALSE")
        target = pd.DataFrame(answers, columns=[f"label{j}" for j in range(6)]).astype("category")
        return SimpleNamespace(data=pd.DataFrame(np.ones((server.rows, 72))).add_prefix("x"), target=target)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    return server


def test_labels_of_openml_become_numbers(openml, tmp_path):
    data = load_dataset("emotions")
    assert data.X.shape == (593, 72)
    assert set(data.Y.dtypes.astype(str)) == {"int8"}
    assert data.Y.iloc[0].tolist() == [1, 0, 0, 0, 0, 1]
    [(options, timeout)] = openml.calls
    assert options["data_id"] == 40589
    assert options["data_home"] == str(tmp_path / "tuplet" / "openml")
    assert timeout is not None
    assert socket.getdefaulttimeout() is None
    X, Y = load_dataset("emotions", return_X_y=True)
    assert X.equals(data.X)
    assert Y.equals(data.Y)


def test_sets_of_another_size_are_refused(openml):
    openml.rows = 10
    with pytest.raises(
        InputError, match="sent 10 rows, 72 features and 6 labels for 'emotions', which has 593"
    ):
        load_dataset("emotions")


@pytest.mark.parametrize(
    "error", [URLError("no route"), TimeoutError("slow"), ValueError("bad\nlines"), KeyError()]
)
def test_without_a_network_the_error_names_the_query(error, openml):
    openml.error = error
    with pytest.raises(
        InputError, match=r"could not be fetched from OpenML \(name yeast, version 4: .*read_table"
    ):
        load_dataset("yeast")


# -- names -------------------------------------------------------------------------------------------------


def test_the_list_has_what_can_be_loaded():
    listed = list_datasets().set_index("name")
    assert listed.index.tolist() == ["penguins", *OPENML]
    penguins, row = load_penguins(), listed.loc["penguins"]
    assert (row["rows"], row["features"]) == penguins.X.shape
    assert row["variables"] == penguins.Y.shape[1]
    assert row["cardinalities"] == ClassSpace.from_labels(penguins.Y).cards


@pytest.mark.data
def test_sizes_are_those_of_the_benchmark_sets(benchmark_set):
    for name, known in OPENML.items():
        X, Y, _ = benchmark_set(name)
        assert (*X.shape, Y.shape[1]) == (known.rows, known.features, known.labels)


def test_unknown_names_are_errors():
    with pytest.raises(InputError, match="no set 'Penguin'; did you mean 'penguins'"):
        load_dataset("Penguin")
    with pytest.raises(InputError, match="no set 'xyz'; there are penguins, emotions, yeast"):
        load_dataset("xyz")
