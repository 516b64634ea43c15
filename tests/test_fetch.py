import hashlib
import http.server
import json
import socket
import threading
from functools import partial
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest

from tuplet.datasets import Dataset, fetch, list_datasets, load_dataset, write_parquet
from tuplet.datasets.fetch import OPENML, download, fetch_from_openml
from tuplet.exceptions import InputError, TupletError


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder with one small set, served over HTTP on this machine; its path, address and log."""
    pytest.importorskip("pyarrow")
    folder = tmp_path / "served"
    folder.mkdir()
    X = pd.DataFrame({"x": [1.0, 2.0], "place": pd.Categorical(["a", "b"])})
    write_parquet(Dataset("tiny", X, pd.DataFrame({"yes": [0, 1]}), ""), folder / "tiny.parquet")
    entry = {
        "name": "tiny", "file": "tiny.parquet", "title": "Tiny", "what": "two rows", "source": "here",
        "licence": "none", "notes": [], "task": "multi-label", "target_names": ["yes"],
        "target_cardinalities": [2], "n_targets": 1, "rows": 2, "label_cardinality": 0.5, "split": None,
        "features": {"total": 2, "numeric": 1, "nominal": 1}, "aux_columns": [],
        "sha256": hashlib.sha256((folder / "tiny.parquet").read_bytes()).hexdigest(),
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps({"sets": [entry]}))
    log = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, form, *args):
            log.append(str(args[0]))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("TUPLET_DATA", raising=False)
    yield folder, f"http://127.0.0.1:{server.server_address[1]}", log
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_served_folder_is_fetched_once(served, monkeypatch):
    _, address, log = served
    monkeypatch.setenv("TUPLET_DATA", address + "/")
    assert list_datasets()["name"].tolist() == ["penguins", "tiny"]
    assert len(log) == 1  # the manifest alone
    data = load_dataset("tiny")
    assert data.X["place"].tolist() == ["a", "b"]
    assert len(log) == 2
    load_dataset("tiny", folder=address)
    assert len(log) == 2


def test_a_manifest_that_is_none_is_not_kept(served):
    folder, address, _ = served
    good = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text("<html>please log in</html>")
    with pytest.raises(InputError, match=r"serves no manifest.json; check TUPLET_DATA"):
        load_dataset("tiny", folder=address)
    (folder / "manifest.json").write_text(good)
    assert len(load_dataset("tiny", folder=address).X) == 2


def test_a_file_with_another_checksum_is_not_kept(served, tmp_path):
    folder, address, _ = served
    with (folder / "tiny.parquet").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=r"tiny.parquet' sent is not the file .* SHA-256 differs"):
        load_dataset("tiny", folder=address)
    assert [path.name for path in (tmp_path / "cache").rglob("*tiny*")] == []


def test_addresses_without_answers(served, tmp_path):
    folder, address, _ = served
    (folder / "tiny.parquet").unlink()
    with pytest.raises(
        InputError, match=r"could not be fetched \(File not found\); check the address .* TUPLET_DATA"
    ):
        load_dataset("tiny", folder=address)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(InputError, match=r"could not be fetched .*refused"):
        load_dataset("tiny", folder=f"http://127.0.0.1:{port}")
    with pytest.raises(InputError, match="could not be fetched"):
        load_dataset("tiny", folder="http://[")
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_a_manifest_cannot_write_elsewhere(served, tmp_path):
    folder, address, _ = served
    text = (folder / "manifest.json").read_text().replace("tiny.parquet", "../../escaped.parquet")
    (folder / "manifest.json").write_text(text)
    with pytest.raises(InputError, match="no plain file name"):
        load_dataset("tiny", folder=address)
    assert not list(tmp_path.rglob("escaped*"))


def test_an_answer_that_breaks_off_leaves_nothing(tmp_path):
    class Broken:
        def __init__(self, request, timeout):
            assert timeout > 0
            self.blocks = [b"half"]

        def __enter__(self):
            return self

        def __exit__(self, *reason):
            return None

        def read(self, size):
            if not self.blocks:
                raise ConnectionResetError("reset by peer")
            return self.blocks.pop()

    (tmp_path / "f").write_text("old")
    with pytest.raises(InputError, match=r"could not be fetched \(reset by peer\)"):
        download("http://nowhere.invalid/f", tmp_path / "f", None, Broken)
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "old"


# -- OpenML ------------------------------------------------------------------------------------------------


def fake(rows=593, calls=None):
    def fetcher(**options):
        if calls is not None:
            calls.append(options)
        answers = np.where(np.arange(rows * 6).reshape(rows, 6) % 5 == 0, "TRUE", "FALSE")
        target = pd.DataFrame(answers, columns=[f"label{j}" for j in range(6)]).astype("category")
        return SimpleNamespace(data=pd.DataFrame(np.ones((rows, 72))).add_prefix("x"), target=target)

    return fetcher


def test_labels_of_openml_become_numbers(tmp_path):
    calls = []
    data = fetch_from_openml("emotions", tmp_path, fake(calls=calls))
    assert data.X.shape == (593, 72)
    assert set(data.Y.dtypes.astype(str)) == {"int8"}
    assert data.Y.iloc[0].tolist() == [1, 0, 0, 0, 0, 1]
    assert calls[0]["data_id"] == 40589
    assert calls[0]["data_home"] == str(tmp_path / "openml")
    assert socket.getdefaulttimeout() is None


def test_what_openml_sends_is_looked_at(tmp_path):
    with pytest.raises(
        InputError, match="sent 10 rows, 72 features and 6 labels for 'emotions', which has 593"
    ):
        fetch_from_openml("emotions", tmp_path, fake(rows=10))


@pytest.mark.parametrize(
    "error", [URLError("no route"), TimeoutError("slow"), ValueError("bad\nlines"), KeyError()]
)
def test_without_a_network_the_message_says_what_was_tried(error, tmp_path):
    def fetcher(**options):
        raise error

    with pytest.raises(
        TupletError, match=r"could not be fetched from OpenML \(name yeast, version 4: .*TUPLET_DATA"
    ):
        fetch_from_openml("yeast", tmp_path, fetcher)


def test_load_dataset_asks_openml_for_what_no_folder_has(served, tmp_path, monkeypatch):
    folder, _, _ = served
    asked = []

    def instead(name, cache):
        asked.append((name, cache))
        return fetch_from_openml(name, cache, fake())

    monkeypatch.setattr("tuplet.datasets.benchmark.fetch_from_openml", instead)
    for where in (None, folder):
        assert load_dataset("emotions", folder=where, n_labels=2).Y.shape == (593, 2)
    assert asked == [("emotions", tmp_path / "cache" / "tuplet")] * 2
    with pytest.raises(InputError, match="no folder of benchmark sets; set TUPLET_DATA"):
        load_dataset("emotions", download=False)
    with pytest.raises(InputError, match="no set 'emotions'"):
        load_dataset("emotions", folder=folder, download=False)
    load_dataset("tiny", folder=folder)
    assert len(asked) == 2


@pytest.mark.data
def test_sizes_are_those_of_the_benchmark_sets(benchmark_set):
    for name, known in OPENML.items():
        X, Y, _ = benchmark_set(name)
        assert (*X.shape, Y.shape[1]) == (known.rows, known.features, known.labels)


def test_paths_are_no_addresses():
    assert not fetch.is_address("data/https")
    assert fetch.is_address("https://example.org/data")
