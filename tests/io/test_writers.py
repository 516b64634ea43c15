import gzip
import os
import stat
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_sets import load_benchmark
from draws import examples
from tuplet.core.atomic_files import open_atomic
from tuplet.core.exceptions import InputError
from tuplet.io import Dataset, load_penguins, read_table, write_arff, write_parquet

WRITERS = {
    "arff": write_arff,
    "mulan": lambda data, path: write_arff(data, path, meka=False),
    "parquet": write_parquet,
}


def rich():
    """Columns of every kind."""
    X = pd.DataFrame(
        {
            "float": [0.1, np.nan, -np.inf, 1e-300],
            "float32": np.array([0.1, 2, 3, np.nan], dtype=np.float32),
            "int": [2**60, -1, 0, 5],
            "int8": np.array([1, 2, 3, 4], dtype=np.int8),
            "Int64": pd.array([1, None, 3, 4], dtype="Int64"),
            "bool": [True, False, True, True],
            "boolean": pd.array([True, None, False, True], dtype="boolean"),
            "text, with 'quotes'": ["a,b", 'it\'s "so"', "line\nbreak\t% \\", None],
            "{odd} name?%": ["?", "", " blank ", "%"],
            "nominal": pd.Categorical(["b", None, "a", "?"], ["b", "never", "a", "?"]),
            "ordered": pd.Categorical(["S", "L", "S", None], ["S", "M", "L"], ordered=True),
            "numbers": pd.Categorical([3, 1, None, 3], [3, 1, 2], ordered=True),
            "binary": pd.Categorical(["0", "1", "1", "0"]),
            "day": pd.to_datetime(
                ["2020-01-02", None, "1960-05-06 07:08:09.125", "2021-01-01"], format="ISO8601"
            ),
        }
    )
    Y = pd.DataFrame(
        {
            "label": np.array([0, 1, 1, 0], dtype=np.int8),
            "none": np.zeros(4, dtype=np.int64),
            "gap": pd.array([1, None, 0, 1], dtype="Int8"),
            "place": ["n", "s", None, "n"],
            "size": pd.Categorical(["L", "S", "S", "L"], ["S", "M", "L"], ordered=True),
            "01": pd.Categorical(["0", "1", "1", "0"]),
            "yes": [True, False, False, True],
            "whole": [1.0, 2.0, np.nan, 1.0],
            "many": [10, 9, -3, 10],
        }
    )
    return Dataset(
        "rich", X, Y, "Made\nup: 'so'.", np.array([True, False, True, True]), np.array([0, 1, 1, 0])
    )


def with_one_gap(frame):
    """Return a frame whose columns of objects have None for every gap; pandas 2 warns about others."""
    frame = frame.reset_index(drop=True)
    for name in frame.columns[frame.dtypes == "O"]:
        frame[name] = frame[name].where(frame[name].notna(), None)
    return frame


def assert_same(read, written):
    pd.testing.assert_index_equal(read.X.index, pd.RangeIndex(len(written.X)))
    pd.testing.assert_index_equal(read.Y.index, pd.RangeIndex(len(written.Y)))
    pd.testing.assert_frame_equal(with_one_gap(read.X), with_one_gap(written.X))
    pd.testing.assert_frame_equal(with_one_gap(read.Y), with_one_gap(written.Y))
    assert read.name == written.name
    assert read.description == written.description
    for mine, theirs in ((read.train, written.train), (read.folds, written.folds)):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("form", WRITERS)
def test_everything_comes_back(form):
    file = BytesIO()
    WRITERS[form](rich(), file)
    assert_same(read_table(BytesIO(file.getvalue())), rich())


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_penguins_come_back_from_a_path(form, suffix, tmp_path):
    path = tmp_path / f"p.{'parquet' if form == 'parquet' else 'arff'}{suffix}"
    WRITERS[form](load_penguins(), path)
    assert_same(read_table(path), load_penguins())
    assert path.read_bytes().startswith(b"\x1f\x8b") == bool(suffix)
    assert (tmp_path / "p.xml").exists() == (form == "mulan")


@pytest.mark.data
@pytest.mark.parametrize("name", ["flags", "birds", "enb_mdc", "emotions"])
@pytest.mark.parametrize("form", ["arff", "parquet"])
def test_benchmark_sets_come_back(name, form, tmp_path):
    if not os.environ.get("TUPLET_DATA"):
        pytest.skip("needs the benchmark sets; set TUPLET_DATA to the folder with manifest.json")
    data = load_benchmark(name)
    WRITERS[form](data, tmp_path / f"t.{form}")
    assert_same(read_table(tmp_path / f"t.{form}"), data)


def test_another_program_finds_the_labels_of_meka_and_mulan(tmp_path):
    liac_arff = pytest.importorskip("arff")
    data = rich()
    data = Dataset("rich: of all", data.X.drop(columns="day"), data.Y, "")
    write_arff(data, tmp_path / "m.arff")
    with (tmp_path / "m.arff").open() as file:
        theirs = liac_arff.load(file)
    assert theirs["relation"] == "rich: -C 9"
    names = [name for name, _ in theirs["attributes"]]
    assert names[:9] == list(data.Y.columns)
    assert dict(theirs["attributes"])["size"] == ["S", "M", "L"]
    assert dict(theirs["attributes"])["none"] == ["0", "1"]
    assert [row[names.index("size")] for row in theirs["data"]] == ["L", "S", "S", "L"]
    assert [row[names.index("{odd} name?%")] for row in theirs["data"]] == ["?", "", " blank ", "%"]
    write_arff(data, tmp_path / "u.arff", meka=False)
    note, rest = (tmp_path / "u.arff").read_text().split("\n", 1)
    assert note.startswith("% tuplet: ")
    (tmp_path / "u.arff").write_text(rest)
    assert list(read_table(tmp_path / "u.arff").Y.columns) == list(data.Y.columns)


def test_the_index_is_not_kept():
    data = rich()
    moved = Dataset("rich", data.X.set_axis(list("wxyz")), data.Y.set_axis(list("wxyz")), "")
    for form, write in WRITERS.items():
        file = BytesIO()
        write(moved, file)
        assert read_table(BytesIO(file.getvalue())).X.index.tolist() == [0, 1, 2, 3], form


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@examples(25)
@given(st.lists(st.tuples(TEXT, st.none() | TEXT, st.none() | st.floats()), min_size=1, max_size=6), TEXT)
def test_any_text_comes_back(rows, name):
    nominal, text, numbers = zip(*rows, strict=True)
    X = pd.DataFrame({"t" + name: pd.Series(text, dtype="str"), "f": pd.Series(numbers, dtype=float)})
    Y = pd.DataFrame({"y" + name: pd.Categorical(nominal)})
    data = Dataset("any", X, Y, name)
    for form, write in WRITERS.items():
        file = BytesIO()
        write(data, file)
        read = read_table(BytesIO(file.getvalue()), format="parquet" if form == "parquet" else "arff")
        assert_same(read, data)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.Series([1 + 2j]), "holds complex128"),
        (pd.Series(pd.to_datetime(["2020-01-01T00:00:00.000001"])), "microseconds.* use write_parquet"),
        (pd.Series(pd.to_datetime(["2020-01-01"], utc=True)), "a zone"),
        (pd.Series([2**60, None], dtype="Int64"), "cannot keep exactly"),
        (pd.Series([{1}], dtype=object), "holds object"),
        (pd.Series(pd.Categorical([1, "1"])), "written alike"),
        (pd.Series(pd.Categorical([pd.Timestamp(0)])), "categories of 'x' must be text"),
    ],
)
def test_what_arff_cannot_keep_is_an_error(column, message):
    X = column.to_frame("x")
    data = Dataset("d", X, pd.DataFrame({"y": [0] * len(X)}), "")
    with pytest.raises(InputError, match=message):
        write_arff(data, BytesIO())


def test_columns_need_names():
    for names in ([0], [""], ["y"]):
        data = Dataset("d", pd.DataFrame([[1.0]], columns=names), pd.DataFrame({"y": [0]}), "")
        for write in WRITERS.values():
            with pytest.raises(InputError, match="columns need names"):
                write(data, BytesIO())
    nested = Dataset("d", pd.DataFrame({"x": [{1, 2}]}), pd.DataFrame({"y": [0]}), "")
    with pytest.raises(InputError, match=r"write_parquet: 'x' holds list.* not single values"):
        write_parquet(nested, BytesIO())


# -- files in full or not at all ---------------------------------------------------------------------------


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def fail():
        with open_atomic(path) as file:
            file.write(b"new")
            assert path.read_bytes() == b"old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [each.name for each in tmp_path.iterdir()] == ["f"]
    assert path.read_bytes() == b"old"
    with open_atomic(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("form", WRITERS)
def test_a_column_that_fails_leaves_the_old_file(form, tmp_path, monkeypatch):
    path = tmp_path / f"old.{form}"
    path.write_bytes(b"old")
    bad = Dataset("d", pd.DataFrame({"x": [1 + 2j]}), pd.DataFrame({"y": [0]}), "")
    with pytest.raises(InputError):
        WRITERS[form](bad, path)
    assert path.read_bytes() == b"old"


def test_folders_that_are_not_there(tmp_path):
    for write in WRITERS.values():
        with pytest.raises(InputError, match="cannot be written: No such file or directory"):
            write(load_penguins(), tmp_path / "nowhere" / "x.arff")


def test_packed_files_are_the_same_each_time(tmp_path):
    for name in ("a.arff.gz", "b.arff.gz"):
        write_arff(load_penguins(), tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("a.arff.gz", "b.arff.gz"))
    assert first == second
    assert gzip.decompress(first).startswith(b"% tuplet: ")


def test_standard_output(capfdbinary):
    write_arff(load_penguins(), "-")
    assert_same(read_table(BytesIO(capfdbinary.readouterr().out)), load_penguins())
