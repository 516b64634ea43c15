"""Tables piece by piece: the same rows as all at once, whatever the size of the pieces."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuplet.core.exceptions import DataFormatError, InputError
from tuplet.io import load_penguins, read_table, write_arff, write_parquet
from tuplet.io.tables.chunks import read_chunks

cells = st.text(st.sampled_from('ab,;"\n\t 1é'), max_size=6)


def together(*args, **kwargs):
    return pd.concat([chunk.frame for chunk in read_chunks(*args, **kwargs)])


@given(st.lists(st.tuples(cells, st.integers(-9, 9)), min_size=1, max_size=30), st.integers(5, 200))
def test_pieces_of_text_make_the_whole(rows, block):
    """With quotes, separators and line feeds within fields, and pieces that end anywhere."""
    text = pd.DataFrame(rows, columns=["text", "number"]).to_csv(index=False)
    whole = read_table(io.StringIO(text), targets=[], format="csv").X
    pieces = together(io.BytesIO(text.encode()), words=["text"], format="csv", block=block)
    assert len(pieces) == len(whole)
    assert pieces.index.tolist() == list(range(len(whole)))
    assert pieces["number"].tolist() == whole["number"].tolist()
    # Text that looks like a number is one for the whole, which was not told otherwise.
    assert [str(t) for t in pieces["text"].fillna("")] == [
        text if text not in ("", "?") else "" for text, _ in _as_read(rows)
    ]


def _as_read(rows):
    """What is made of line ends and of blanks at the ends."""
    for text, number in rows:
        yield text.replace("\r", "\n").strip(), number


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.zip", "tsv", "parquet", "arff", "jsonl", "feather"])
def test_every_format_in_pieces(tmp_path, suffix):
    data = load_penguins()
    path = tmp_path / f"penguins.{suffix}"
    if suffix == "parquet":
        write_parquet(data, path)
    elif suffix == "arff":
        write_arff(data, path)
    elif suffix == "feather":
        data.frame.to_feather(path)
    elif suffix == "jsonl":
        data.frame.to_json(path, orient="records", lines=True)
    else:
        data.frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    chunks = list(read_chunks(path, rows=50, block=2000))
    assert len(chunks) > 3
    frame = pd.concat([chunk.frame for chunk in chunks])
    for name in ("bill_length_mm", "year"):
        np.testing.assert_array_equal(frame[name].to_numpy(float), data.X[name].to_numpy(float))
    assert frame["species"].astype(str).tolist() == data.Y["species"].astype(str).tolist()
    shares = [chunk.share for chunk in chunks]
    if suffix in ("csv.gz", "csv.zip"):
        assert shares == [None] * len(shares)
    else:
        assert shares == sorted(shares)
        assert shares[-1] == 1


def test_an_index_stays_an_index():
    frame = together(io.BytesIO(b",x\nfirst,1\nsecond,2\n"), block=8)
    assert frame.index.tolist() == ["first", "second"]
    assert frame["x"].tolist() == [1, 2]


def test_errors_name_the_line_of_the_file():
    text = "a,b\n" + "1,2\n" * 50 + "1,2,3\n" + "1,2\n" * 50
    chunks = read_chunks(io.BytesIO(text.encode()), format="csv", block=40)
    with pytest.raises(DataFormatError, match=r"line 52: expected 2 fields .* found 3"):
        list(chunks)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,b\n"])
def test_nothing_is_an_error(content):
    with pytest.raises(DataFormatError, match=r"empty|no rows"):
        list(read_chunks(io.BytesIO(content), format="csv"))


def test_cut_archives_and_missing_files(tmp_path):
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)
    with pytest.raises(DataFormatError, match="cut short"):
        list(read_chunks(io.BytesIO(packed[:-20]), format="csv"))
    with pytest.raises(InputError, match="there is no file"):
        list(read_chunks(tmp_path / "nowhere.csv"))
    with pytest.raises(InputError, match="expected a path"):
        list(read_chunks(3))


def test_a_damaged_parquet_file(tmp_path):
    path = tmp_path / "x.parquet"
    write_parquet(load_penguins(), path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataFormatError, match="damaged or cut short"):
        list(read_chunks(path))


@pytest.mark.parametrize("last", ["01", '"01"'])
def test_codes_of_digits_are_text(last):
    """Zeros in front mean something; a number would lose them."""
    data = read_table(io.StringIO(f"size,zero,half,code\n1,0,0.5,10\n2,00,1,\n3,1,02.5,{last}"), targets=-1)
    assert data.Y["code"].tolist() == ["10", np.nan, "01"]
    assert data.X["zero"].tolist() == ["0", "00", "1"]
    assert data.X["half"].tolist() == [0.5, 1, 2.5]
    assert data.X["size"].tolist() == [1, 2, 3]
