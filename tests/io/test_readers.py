import gzip
import io
import json
import os
import re
import time
import warnings
import zipfile
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import loadmat, savemat
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from benchmark_sets import load_benchmark
from draws import examples
from tuplet import FeatureEncoder
from tuplet.core.exceptions import DataFormatError, InputError, NoTargetsError, TupletError, TupletWarning
from tuplet.io import Dataset, read_svmlight, read_table, write_arff, write_parquet
from tuplet.io.tables.chunks import read_chunks
from tuplet.io.tables.mat import read_mat_variables

# -- CSV and TSV -------------------------------------------------------------------------------------------

MIXED = '''\
age,city,member,late,place,score
31,Ulm,true,0,north,1.5
45,"Bad Tölz, Kurort",false,1,south,?
,NA,,1,north,-2e3
7,"say ""hi""",TRUE,0,None,0
'''


def test_types_of_a_csv_file():
    data = read_table(StringIO(MIXED), targets=["place", "late"])
    assert list(data.Y.columns) == ["place", "late"]
    assert list(data.X.columns) == ["age", "city", "member", "score"]
    assert data.X["age"].tolist()[:2] == [31, 45]
    assert data.X["city"].tolist()[1::2] == ["Bad Tölz, Kurort", 'say "hi"']
    assert data.X.isna().sum().tolist() == [1, 1, 1, 1]
    assert data.X["member"].dtype == "boolean"
    assert data.X["score"].dtype == float
    assert data.Y["late"].dtype.kind == "i"
    assert data.Y["place"].tolist() == ["north", "south", "north", "None"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_separators_gzip_and_the_index(mark, tmp_path):
    text = mark.join(["", "x", "y"]) + "\r\n" + mark.join(["r1", "1", "a"]) + "\r\n"
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    data = read_table(path, "y")
    assert data.name == "t"
    assert data.X.index.tolist() == ["r1"]
    assert data.X["x"].tolist() == [1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["2024-05-16", "", "2023-01-02"], ["2024-05-16", None, "2023-01-02"]),
        (
            ["2024-05-16T10:30", "2024-05-16 10:30:15.5", "NA"],
            ["2024-05-16 10:30", "2024-05-16 10:30:15.5", None],
        ),
        (
            ["2024-05-16T10:30Z", "2024-05-16T10:30:00+02:00", "?"],
            ["2024-05-16 10:30Z", "2024-05-16 08:30Z", None],
        ),
    ],
)
def test_iso_dates_of_features_are_dates(fields, expected):
    text = "when,due,late\n" + "".join(f"{field},{field},0\n" for field in fields)
    data = read_table(StringIO(text), targets=["due", "late"])
    wanted = pd.to_datetime(pd.Series(expected), format="ISO8601", utc="Z" in expected[0])
    assert (data.X["when"].isna() == wanted.isna()).all()
    assert (data.X["when"].dropna() == wanted.dropna()).all()
    assert data.Y["due"].dropna().tolist() == [field for field in fields if field[0:1] == "2"], (
        "labels stay text"
    )


def test_decimal_commas():
    data = read_table(StringIO("age;weight;code;y\n31;72,5;1,2,3;0\n45;80;4;1\n;-1,5e2;#N/A;1\n"), "y")
    assert data.X["weight"].tolist() == ["72,5", "80", "-1,5e2"]
    np.testing.assert_array_equal(
        FeatureEncoder().fit_transform(data.X[["weight"]]).T, [[72.5, 80.0, -150.0]]
    )
    assert data.X["code"].tolist()[:2] == ["1,2,3", "4"]
    assert data.X.isna().sum().tolist() == [1, 0, 1]


def test_an_empty_line_of_one_column_is_a_row():
    for text in ("x\n1\n\n3\n", "\nx\n1\n\n3\n\n\n", "x\r\n1\r\n\r\n3"):
        X = read_table(StringIO(text), targets=[]).X
        assert X["x"].isna().tolist() == [False, True, False]
        chunks = [chunk.frame for chunk in read_chunks(BytesIO(text.encode()), block=3)]
        assert pd.concat(chunks)["x"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize("odd", ["2024-13-45", "16.05.2024", "5/16/2024", "soon", "20240516", "2024-05-16x"])
def test_other_dates_are_text(odd):
    data = read_table(StringIO(f"when,late\n2024-05-16,0\n{odd},1\n"), targets="late")
    assert data.X["when"].tolist() == ["2024-05-16", odd]


def test_tsv_standard_input_and_open_files(tmp_path, monkeypatch):
    (tmp_path / "t.tsv").write_text("a\tb\n1,5\tx\n")
    assert read_table(tmp_path / "t.tsv", "b").X["a"].tolist() == ["1,5"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(BytesIO(b"a\tb\n1\t0\n")))
    data = read_table("-", "b")
    assert (data.X["a"].tolist(), data.Y["b"].tolist()) == ([1], [0])
    with (tmp_path / "t.tsv").open("rb") as file:
        assert read_table(file, "b").name == "t"


def test_split_and_folds_are_columns_with_underscores():
    text = "x,y,__train__,__fold__,__raw__y\n1,0,True,1,5\n2,1,False,2,6\n"
    data = read_table(StringIO(text), "y")
    assert list(data.X.columns) == ["x"]
    assert data.train.tolist() == [True, False]
    assert data.folds.tolist() == [0, 1]
    with pytest.raises(DataFormatError, match="'__fold__' must hold whole numbers"):
        read_table(StringIO("x,y,__fold__\n1,0,a\n"), "y")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "empty"),
        ("a,b\n", None, "no rows"),
        ("a,b\n1,2\n3\n", 3, "expected 2 fields .* found 1"),
        ("a,b\n1,2,3\n", 2, "expected 2 fields .* found 3"),
        ('a,b\n1,"2\n', 2, "quotes"),
        ('a,b\n1,"2"\n"3"\n', 3, "expected 2 fields .* found 1"),
        ("a,a\n1,2\n", 1, "two columns are called 'a'"),
        ("a,,b\n1,2,3\n", 1, "column 2 has no name"),
        ("a,b\n1,\0\n", 2, "null byte"),
    ],
)
def test_broken_csv_files(text, line, message):
    with pytest.raises(DataFormatError, match=message) as caught:
        read_table(StringIO(text), 0, "csv")
    assert caught.value.line == line


def test_damaged_utf8_names_its_line():
    content = "a,b\näö,2\nüß,3\n".encode().replace("ü".encode(), b"\xfc")
    with pytest.raises(DataFormatError, match=r"'file object', line 3: a byte that is not UTF-8"):
        read_table(BytesIO(content), "b")


# -- text as spreadsheets write it -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sep=;\nx;y\n1;a\n2;b\n", {"x": [1, 2], "y": ["a", "b"]}),
        ('"sep=\t"\nx\ty\n1\ta\n2\tb\n', {"x": [1, 2], "y": ["a", "b"]}),
        ("x|y\n1|a;b\n2|b,c\n", {"x": [1, 2], "y": ["a;b", "b,c"]}),
        ("price, EUR;y\n3,5;a\n4,5;b\n", {"price, EUR": ["3,5", "4,5"], "y": ["a", "b"]}),
        ('"name, first";y\n"A, b";1\n"C";0\n', {"name, first": ["A, b", "C"], "y": [1, 0]}),
        ("x,y,\n1,a,\n2,b,\n", {"x": [1, 2], "y": ["a", "b"]}),
        ("x,y\n1,a,,\n2,,,\n,,,\n,\n", {"x": [1, 2], "y": ["a", None]}),
        ('x,y,\n1,"a,b"\n2,b,\n', {"x": [1, 2], "y": ["a,b", "b"]}),
        ("x , y\n1 ,  a \n2, b\nNA , NA \n", {"x": [1, 2, None], "y": ["a", "b", None]}),
        ('x, y\n1, "a, b"\n2, " b "\n', {"x": [1, 2], "y": ["a, b", "b"]}),
        ("# by Anne, in May\n#\nx,y\n1,a\n2,b\n", {"x": [1, 2], "y": ["a", "b"]}),
        ("# by Anne\n#x,y\n1,a\n2,b\n", {"#x": [1, 2], "y": ["a", "b"]}),
        ("#Export,2024\nx,y\n1,a\n2,b\n", {"x": [1, 2], "y": ["a", "b"]}),
        ("x,y\n#1,a\n#2,b\n", {"x": ["#1", "#2"], "y": ["a", "b"]}),
        ("x,y\n#N/A,a\n#DIV/0!,b\n3,#WERT!\n", {"x": [None, None, 3], "y": ["a", "b", None]}),
        ("n;g;y\n1.234;0,5;a\n950;1;b\n", {"n": ["1.234", "950"], "g": ["0,5", "1"], "y": ["a", "b"]}),
        ("n;g;y\n1.234;0.5;a\n950;1;b\n", {"n": [1.234, 950], "g": [0.5, 1], "y": ["a", "b"]}),
        ('{"x": 1, "y": "NA"}\n\n{"x": null, "y": "b"}\n', {"x": [1, None], "y": ["NA", "b"]}),
        ('[{"x": 1, "y": "a"},\n {"x": "b"}]', {"x": ["1", "b"], "y": ["a", None]}),
    ],
)
@pytest.mark.filterwarnings("ignore:The class variable 'y' has one label only")
def test_odd_tables(text, expected):
    whole = read_table(BytesIO(text.encode()), "y").frame
    pieces = pd.concat([chunk.frame for chunk in read_chunks(BytesIO(text.encode()))])
    for frame in (whole, pieces):
        assert {name: [None if pd.isna(v) else v for v in frame[name]] for name in expected} == expected


def test_comments_between_rows_are_counted():
    for quote in ("", '"'):
        text = f"x,y,z\n1,{quote}a{quote},2\n# by Anne\n2,b,3\n# end,,\n"
        with pytest.warns(TupletWarning, match="has 2 lines that begin with #, left out as comments"):
            assert read_table(StringIO(text), "y").X["x"].tolist() == [1, 2]
    with pytest.raises(DataFormatError, match="comments only"):
        read_table(StringIO("# a\n# b\n"), "y", "csv")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"])
def test_encodings(encoding):
    text = "größe,y\n" + "".join(f"{i},{'été' if i % 2 else 'plain'}\n" for i in range(40))
    content = text.encode(encoding)
    found = "cp1252" if encoding == "latin-1" else encoding
    with pytest.warns(TupletWarning, match=f"(?i)is not in UTF-8, and is read as {found}"):
        data = read_table(BytesIO(content), "y")
    assert data.Y["y"].tolist()[:2] == ["plain", "été"]
    given = read_table(BytesIO(content), "y", encoding=encoding)
    assert given.X.columns.tolist() == ["größe"]
    chunks = list(read_chunks(BytesIO(content), block=50, encoding=encoding))
    assert len(chunks) > 3
    assert pd.concat([chunk.frame for chunk in chunks])["y"].tolist() == given.Y["y"].tolist()


def test_the_first_letters_decide_the_encoding_of_pieces():
    content = b"x,y\n" + b"1,a\n" * 9 + "2,ä\n3,ü\n".encode("cp1252") + b"1,a\n" * 9
    with pytest.warns(TupletWarning, match="read as cp1252"):
        frame = pd.concat([chunk.frame for chunk in read_chunks(BytesIO(content), block=12)])
    assert set(frame["y"]) == {"a", "ä", "ü"}
    with pytest.warns(TupletWarning, match="read as latin-1"):
        assert read_table(BytesIO(content.replace(b"a", b"\x81")), "y").Y["y"].iloc[9] == "ä"
    mixed = content.replace(b"1,a", "1,äöü".encode(), 1)
    with pytest.raises(DataFormatError, match="line 11: a byte that is not UTF-8"):
        list(read_chunks(BytesIO(mixed), block=12))
    with pytest.raises(DataFormatError, match="this is not text in utf-16"):
        list(read_chunks(BytesIO(b"x,y\n1,ab\n"), encoding="utf-16"))
    with pytest.raises(InputError, match="encoding='base64' is not known"):
        read_table(BytesIO(b"x,y\n1,2\n"), "y", encoding="base64")


def test_texts_that_are_no_values():
    text = "x,y\nNA,NA\n2,b\n-,?\n"
    data = read_table(StringIO(text), "y", missing={"y": [], "*": ["-", "NA"]})
    assert data.Y["y"].tolist() == ["NA", "b", "?"]
    assert data.X["x"].isna().tolist() == [True, False, True]
    assert read_table(StringIO(text), "y", missing=["?"]).X["x"].tolist() == ["NA", "2", "-"]
    with pytest.warns(TupletWarning, match="'y' has one label only, 'b' and 2 missing values; if these are"):
        read_table(StringIO(text), "y")
    with pytest.raises(InputError, match="missing must be a list of texts"):
        read_table(StringIO(text), "y", missing="NA")


# -- which columns are class variables ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("y1", ["y1"]),
        (["y2", "y1"], ["y2", "y1"]),
        ("y*", ["y1", "y2"]),
        ("y[2-9]", ["y2"]),
        ("re:.*[12]", ["x1", "y1", "y2"]),
        (re.compile("Y.", re.IGNORECASE), ["y1", "y2"]),
        (-1, ["y2"]),
        ([-1, -2], ["y2", "y1"]),
        (range(-2, 0), ["y1", "y2"]),
        (slice(-2, None), ["y1", "y2"]),
        ("-2:", ["y1", "y2"]),
        (":1", ["x1"]),
        (["y*", 2, "y1"], ["y1", "y2"]),
        ([], []),
    ],
)
def test_targets(targets, expected):
    data = read_table(StringIO("x1,x,y1,y2\n1,2,3,4\n"), targets)
    assert list(data.Y.columns) == expected
    assert sorted([*data.X.columns, *data.Y.columns]) == ["x", "x1", "y1", "y2"]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ("z", r"no column that targets='z' stands for; its columns are x, y"),
        (2, "targets=2 is no position in .* 2 columns; use 0 to 1"),
        (-3, "targets=-3 is no position"),
        ("re:(", "is no regular expression"),
        (True, "found True"),
        ([1.5], "found 1.5"),
        (None, "the class variables of .* are not known; give targets=.* of x, y"),
        (slice(5, 9), "has no column"),
    ],
)
def test_targets_that_stand_for_nothing(targets, message):
    with pytest.raises(InputError, match=message):
        read_table(StringIO("x,y\n1,2\n"), targets)


def test_names_win_over_patterns_and_slices():
    data = read_table(StringIO("1:2,a*,ab\n1,2,3\n"), ["1:2", "a*"])
    assert list(data.Y.columns) == ["1:2", "a*"]


def test_paths_that_cannot_be_read(tmp_path):
    for wrong, message in (
        (tmp_path / "no.csv", "there is no file"),
        (tmp_path, "cannot be read"),
        ("a\0b", "cannot"),
    ):
        with pytest.raises(InputError, match=message):
            read_table(wrong, "y")
    with pytest.raises(InputError, match="expected a path, '-' or a file object, found int"):
        read_table(3, "y")
    with pytest.raises(InputError, match="format must be one of arff, csv"):
        read_table(StringIO("x"), "y", "xls")
    with pytest.raises(InputError, match="targets and labels both"):
        read_table(StringIO("x"), "y", labels="x.xml")


# -- ARFF --------------------------------------------------------------------------------------------------

ARFF = r"""
% A comment, with 'quotes
@RELATION 'made up: -C 2'   % and another

@attribute colour {red, 'dark blue', "it's", '?'}
@attribute ok{0,1}
@Attribute 'the size' REAL
@attribute n integer
@attribute text string
@attribute day date "yyyy-MM-dd"
@attribute moment DATE

@DATA
red, 1, 1.5, 3, 'a, b\'s \\ 5% \n', 2020-02-03, 2020-02-03T04:05:06
'dark blue',0,?,4,"say \"hi\"",?,?   % note
% whole line
"it's" , ?, 1e3, 5, plain text here, '2021-12-31', "1999-01-01T00:00:00"

'?',1,-0,6,?,2020-01-01,?
?,1,NaN,7,'?',2020-01-01,?
"""


def test_a_dense_arff_file():
    data = read_table(StringIO(ARFF))
    assert data.name == "made up"
    assert list(data.Y.columns) == ["colour", "ok"]
    colour = data.Y["colour"]
    assert colour.cat.categories.tolist() == ["red", "dark blue", "it's", "?"]
    assert not colour.cat.ordered
    assert colour.cat.codes.tolist() == [0, 1, 2, 3, -1]
    assert data.Y["ok"].tolist() == [1, 0, pd.NA, 1, 1]
    assert data.X["the size"].isna().tolist() == [False, True, False, False, True]
    assert data.X["n"].tolist() == [3, 4, 5, 6, 7]
    assert data.X["n"].dtype.kind == "i"
    assert data.X["text"].tolist()[:3] == ["a, b's \\ 5% \n", 'say "hi"', "plain text here"]
    assert data.X["text"].isna().tolist() == [False, False, False, True, False]
    assert data.X["day"].dt.day.tolist()[::2] == [3, 31, 1]
    assert data.X["moment"][0] == pd.Timestamp("2020-02-03T04:05:06")


SPARSE = """\
@relation sparse
@attribute a numeric
@attribute b {yes, no}
@attribute c {0, 1}
@attribute d string
@attribute e integer
@attribute f {x y, z}
@data
{0 1.5, 1 no, 2 1, 3 'a, b', 4 2, 5 z}
{}
{ 4 ? , 1 ? }
{5 'x y', 3 "q"}
1,no,0,s,3,z
{2 1}
"""


def test_a_sparse_row_leaves_out_zeros_and_the_first_of_the_values():
    data = read_table(StringIO(SPARSE), ["b", "c"])
    assert data.X["a"].tolist() == [1.5, 0, 0, 0, 1, 0]
    assert data.Y["b"].tolist()[:2] == ["no", "yes"]
    assert data.Y["b"].isna().tolist() == [False, False, True, False, False, False]
    assert data.Y["b"].tolist()[3:] == ["yes", "no", "yes"]
    assert data.Y["c"].tolist() == [1, 0, 0, 0, 0, 1]
    assert data.X["d"].isna().tolist() == [False, True, True, False, False, True]
    assert data.X["e"].isna().tolist() == [False, False, True, False, False, False]
    assert data.X["f"].tolist() == ["z", "x y", "x y", "x y", "z", "x y"]


def test_dense_and_sparse_agree_with_another_writer():
    liac_arff = pytest.importorskip("arff")
    rng = np.random.default_rng(0)
    header = {"relation": "r", "attributes": [("a", "REAL"), ("b c", ["no", "y'es"]), ("d", "INTEGER")]}
    rows = [[float(v), "y'es" if v > 0 else "no", int(4 * v)] for v in rng.normal(size=30).round(3)]
    dense = read_table(StringIO(liac_arff.dumps(header | {"data": rows})), "b c").frame
    assert dense[["a", "b c", "d"]].astype(object).to_numpy().tolist() == rows
    zeros = [[0.0 if v < 0.5 else v, n, i] for v, n, i in rows]
    text = "@relation r\n@attribute a REAL\n@attribute 'b c' {no, 'y\\'es'}\n@attribute d INTEGER\n@data\n"
    for v, name, i in zeros:
        pairs = [f"0 {v}" if v else "", "1 'y\\'es'" if name != "no" else "", f"2 {i}" if i else ""]
        text += "{" + ",".join(filter(None, pairs)) + "}\n"
    assert (
        read_table(StringIO(text), "b c").frame[["a", "b c", "d"]].astype(object).to_numpy().tolist() == zeros
    )


def test_meka_and_mulan_name_the_labels(tmp_path):
    body = "@attribute a {0,1}\n@attribute b numeric\n@attribute 'c d' {0,1}\n@data\n1,2,0\n"
    for option, expected in (("-C 1", ["a"]), ("-C -1", ["c d"]), ("-C -2 -V", ["b", "c d"])):
        data = read_table(StringIO(f"@relation 'r: {option}'\n{body}"))
        assert list(data.Y.columns) == expected
        assert data.name == "r"
    path, labels = tmp_path / "r-train.arff", tmp_path / "r.xml"
    path.write_text(f"@relation r\n{body}")
    labels.write_text(
        '<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">'
        '<label name="c d"><label name="a"/></label></labels>'
    )
    assert list(read_table(path).Y.columns) == ["c d", "a"]
    assert list(read_table(path, "b").Y.columns) == ["b"]
    assert list(read_table(BytesIO(path.read_bytes()), labels=labels).Y.columns) == ["c d", "a"]
    with pytest.raises(InputError, match=r"class variables of .* are not known"):
        read_table(BytesIO(path.read_bytes()))


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("<labels>", "no well-formed XML"),
        ("<labels/>", "expected <label name"),
        ("<labels><label/></labels>", "each with a name"),
        ('<labels><label name="zz"/></labels>', "the data have no column 'zz'"),
        ('<labels><label name="x"/><label name="x"/></labels>', "'x' is listed twice"),
        ('<!DOCTYPE l [<!ENTITY a "b">]><labels><label name="x"/></labels>', "no document type"),
    ],
)
def test_broken_label_lists(xml, message):
    with pytest.raises(DataFormatError, match=message):
        read_table(StringIO("x,z\n1,2\n"), labels=StringIO(xml))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("@relation r\n@attribute a numeric\n", None, "no @data"),
        ("@relation r\n@data\n1\n", 2, "@data comes before any @attribute"),
        ("@attribute a numeric\n@data\n", None, "no rows"),
        ("@attribute a relational\n@data\n", 1, "'a' is relational"),
        ("@attribute a complex\n@data\n", 1, "type of 'a' must be"),
        ("@attribute a {x, y\n@data\n", 1, "closing brace"),
        ("@attribute a {x, x}\n@data\n", 1, "one twice"),
        ("@attribute 'a numeric\n@data\n", 1, "expected '@attribute name type'"),
        ("@attribute a real\n@attribute a real\n@data\n", 2, "two attributes are called 'a'"),
        ("hello\n", 1, "expected @relation"),
        ("@attribute a date 'GG'\n@data\n", 1, "dates of the format 'GG'"),
        ("@attribute a real\n@data\n1\n1,2\n", 4, "expected 1 values, .* found 2"),
        ("@attribute a real\n@data\n1\nx\n", 4, "'x' is no number, but 'a' is numeric"),
        ("@attribute a {u,v}\n@data\nu\nw\n", 4, "'w' is no declared value of 'a'"),
        ("@attribute a string\n@data\n'u\n", 3, "a quote that does not end"),
        ("@attribute a real\n@data\n{0 1\n", 3, "closing brace"),
        ("@attribute a real\n@data\n{1 1}\n", 3, "positions in a sparse row are 0 to 0"),
        ("@attribute a real\n@data\n{0 1, 0 2}\n", 3, "each once"),
        ("@attribute a real\n@data\n{0 1,}\n", 3, "nothing follows the last comma"),
        ("@attribute a real\n@data\n{a 1}\n", 3, "expected 'position value'"),
        ("@attribute a real\n@data\n{0 1}\n{0 b}\n", 4, "'b' is no number"),
        ("@attribute a date yyyy\n@data\nx\n", None, "a date of 'a'"),
        ("@relation 'r: -C 3'\n@attribute a real\n@data\n1\n", None, "has -C 3, but there are 1"),
        ("% tuplet: {\n@attribute a real\n@data\n1\n", 1, "note of write_arff is damaged"),
        ("% tuplet: {}\n@attribute a real\n@data\n1\n", None, "note about types and targets does not fit"),
    ],
)
def test_broken_arff_files(text, line, message):
    with pytest.raises(DataFormatError, match=message) as caught:
        read_table(StringIO(text), 0, "arff")
    assert caught.value.line == line


def test_a_sparse_file_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("tuplet.io.tables.source.MAX_CELLS", 30)
    with pytest.raises(DataFormatError, match="6 rows of 6 columns are more than the 30 cells"):
        read_table(StringIO(SPARSE.replace("1,no,0,s,3,z", "{}")), "b")


# -- SVM-light ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_agrees_with_scikit_learn(zero_based):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 7)) * (rng.random((40, 7)) < 0.4)
    X[0, 0] = X[0, -1] = 1.0
    Y = (rng.random((40, 3)) < 0.4).astype(int)
    Y[1] = 0
    file = BytesIO()
    dump_svmlight_file(X, sparse.csr_matrix(Y), file, zero_based=zero_based, multilabel=True, comment="made")
    data = read_table(BytesIO(file.getvalue()), format="svmlight")
    np.testing.assert_allclose(data.X, X)
    np.testing.assert_array_equal(data.Y, Y)
    assert data.X.columns[0] == ("x0" if zero_based else "x1")
    assert list(data.Y.columns) == ["y0", "y1", "y2"]
    theirs = load_svmlight_file(BytesIO(file.getvalue()), multilabel=True)[0]
    ours, labels = read_svmlight(BytesIO(file.getvalue()))
    assert abs(ours - theirs).max() == 0
    pd.testing.assert_frame_equal(labels, data.Y)


def test_svmlight_details():
    text = "# head\n-1,2 qid:3 1:.5 10:1e2 # c\n\n 3:1\n+2\n \r\n2:7\n\t# neither\n"
    data = read_table(StringIO(text))
    assert data.X.shape == (6, 10)
    assert data.Y.to_dict("list") == {"y-1": [1, 0, 0, 0, 0, 0], "y2": [1, 0, 1, 0, 0, 0]}
    assert data.X["x10"].tolist() == [100, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "no rows"),
        ("1 2:3\n\na 1:1\n2 1:1\n", 3, "expected labels, whole numbers .* found 'a 1:1'"),
        ("1.5 2:3\n", 1, "expected labels"),
        ("1,,2 2:3\n", 1, "expected labels"),
        ("inf 2:3\n", 1, "expected labels"),
        ("1 2:\n", 1, "expected labels, .* then index:value .* found '1 2:'"),
        ("1 2:3 x\n", 1, "then index:value"),
        ("1 3:1 3:2\n", 1, "indices that rise"),
        ("1 -3:1\n", 1, "indices that rise"),
        ("1 9999999999:1\n", 1, "indices that rise"),
        ("1 2000000000:1\n", None, "more than the 100,000,000 cells .* read_svmlight"),
    ],
)
def test_broken_svmlight_files(text, line, message):
    with pytest.raises(DataFormatError, match=message) as caught:
        read_table(StringIO(text), format="svmlight")
    assert caught.value.line == line


def test_svmlight_files_without_labels():
    with pytest.raises(NoTargetsError, match=r"class variables of .* are not known"):
        read_table(StringIO("1:2\n"), format="svmlight")
    with pytest.raises(DataFormatError, match="no row has a label"):
        read_svmlight(StringIO("1:2\n"))
    assert read_table(StringIO("1:2\n"), targets=[], format="svmlight").X["x1"].tolist() == [2.0]


# -- MATLAB ------------------------------------------------------------------------------------------------


def mat(**variables):
    file = BytesIO()
    savemat(file, variables, do_compression=variables.pop("packed", False))
    return file.getvalue()


def collection(n=20, **changes):
    """A file as the multi-dimensional collection has them."""
    rng = np.random.default_rng(2)
    original = np.column_stack(
        [rng.normal(size=n), rng.integers(1, 4, n), rng.integers(0, 2, n), rng.integers(1, 6, n)]
    )
    target = np.column_stack([np.arange(n) % 3 + 1, np.arange(n) % 2 + 1])
    cells = np.empty((4, 1), dtype=object)
    for fold in range(4):
        test = np.arange(fold, n, 4)
        cells[fold, 0] = {"test": test[:, None] + 1, "train": np.setdiff1d(np.arange(n), test)[:, None] + 1}
    kinds = {"d_wo_o": [[2]], "d_w_o": [[4]], "b": [[3]], "c": [[1]]}
    return {
        "data": {"orig": original, "norm": rng.random((n, 9))}, "target": target, "data_type": kinds,
        "data_name": "Toy", "idx_folds": cells,
    } | changes  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_of_the_multi_dimensional_collection(packed):
    made = collection()
    data = read_table(BytesIO(mat(packed=packed, **made)))
    assert data.name == "Toy"
    assert data.X.shape == (20, 4)
    np.testing.assert_array_equal(data.X.astype(float), made["data"]["orig"])
    np.testing.assert_array_equal(data.Y, made["target"])
    assert [isinstance(dtype, pd.CategoricalDtype) for dtype in data.X.dtypes] == [False, True, True, True]
    assert [data.X[name].cat.ordered for name in ("x2", "x3", "x4")] == [False, False, True]
    assert data.X["x2"].cat.categories.tolist() == [1, 2, 3]
    assert data.folds.tolist() == [i % 4 for i in range(20)]
    assert all(dtype.kind == "i" for dtype in data.Y.dtypes)


def test_numeric_data_are_the_normed_ones():
    made = collection(
        data={"orig": np.zeros((0, 0)), "norm": np.eye(20, 5)}, data_type={"c": np.arange(5) + 1}
    )
    np.testing.assert_array_equal(read_table(BytesIO(mat(**made))).X, np.eye(20, 5))


@pytest.mark.parametrize("turn", [(False, False), (False, True), (True, False), (True, True)])
def test_matrices_in_both_orientations(turn):
    X, Y = np.arange(15.0).reshape(5, 3), np.where(np.arange(10).reshape(5, 2) % 3, 1, -1)
    data = read_table(BytesIO(mat(data=X.T if turn[0] else X, target=Y.T if turn[1] else Y)))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.Y, (Y + 1) // 2)
    scattered = read_table(BytesIO(mat(data=sparse.csc_matrix(X), target=sparse.csc_matrix(Y).T)))
    np.testing.assert_array_equal(scattered.X, X)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged or cut short"),
        (b"MATLAB 7.3 MAT-file, Platform".ljust(600), "MATLAB 7.3 file"),
        (b"\0" * 512 + b"\x89HDF\r\n\x1a\n", "MATLAB 7.3 file"),
        (mat(target=np.eye(3)), "no variable 'data'"),
        (mat(data=np.eye(3)), "no variable 'target'"),
        (mat(data="text", target=np.eye(3)), "'data' must be a matrix of numbers"),
        (mat(data=np.ones((4, 5)), target=np.ones((2, 3))), "no length in common"),
        (mat(**collection(data_type={"b": [[9]]})), "names feature 9, of 4"),
    ],
)
def test_broken_mat_files(content, message):
    with pytest.raises(DataFormatError, match=message):
        read_table(BytesIO(content), format="mat")


@pytest.mark.parametrize("packed", [False, True])
def test_variables_agree_with_scipy(packed):
    made = {
        "a": np.arange(6.0).reshape(2, 3), "b": np.arange(24, dtype=np.int16).reshape(2, 3, 4), "c": "text ö",
        "d": np.array([[True, False]]), "e": np.zeros((0, 3)), "f": sparse.random(5, 4, 0.4, "csc"),
        "g": np.array([[1.5, -2]], dtype=np.float32), "h": {"u": np.eye(2), "v": {"w": "deep"}},
    }  # fmt: skip
    content = mat(packed=packed, **made)
    read = read_mat_variables(content)
    theirs = {name: value for name, value in loadmat(BytesIO(content)).items() if not name.startswith("__")}
    assert set(read) == set(theirs) == set(made)
    for name in "abdeg":
        np.testing.assert_array_equal(read[name], theirs[name])
        assert read[name].shape == theirs[name].shape
    np.testing.assert_array_equal(read["f"], theirs["f"].toarray())
    assert read["c"] == "text ö"
    np.testing.assert_array_equal(read["h"]["u"], np.eye(2))
    assert read["h"]["v"] == {"w": "deep"}


def test_folds_that_do_not_cover_the_rows_are_left_out():
    made = collection()
    made["idx_folds"][0, 0]["test"] = np.array([[1]])
    assert read_table(BytesIO(mat(**made))).folds is None


# -- Parquet -----------------------------------------------------------------------------------------------


def test_parquet_of_others(tmp_path):
    frame = pd.DataFrame(
        {
            "x": [1.5, None], "size": pd.Categorical(["S", "L"], ["S", "M", "L"], ordered=True),
            "y": pd.array([0, 1], dtype="int8"), "ok": [True, False], "text": ["a", None],
        }
    )  # fmt: skip
    frame.to_parquet(tmp_path / "t.parquet")
    data = read_table(tmp_path / "t.parquet", ["y"])
    pd.testing.assert_frame_equal(data.X, frame.drop(columns="y"))
    pd.testing.assert_frame_equal(data.Y, frame[["y"]])


def test_broken_parquet_files(tmp_path):
    def content(frame):
        file = BytesIO()
        frame.to_parquet(file)
        return file.getvalue()

    nested = content(pd.DataFrame({"a": [[1], [2]]}))
    with pytest.raises(DataFormatError, match=r"'a' holds list.*flatten it"):
        read_table(BytesIO(nested), "a")
    with pytest.raises(DataFormatError, match="no rows"):
        read_table(BytesIO(content(pd.DataFrame({"a": [1]})[:0])), "a")
    for wrong in (b"", b"PAR1", b"PAR1PAR1", nested[:-9]):
        with pytest.raises(DataFormatError):
            read_table(BytesIO(wrong), "a", "parquet")


# -- the manifest ------------------------------------------------------------------------------------------


@pytest.fixture
def manifest():
    folder = os.environ.get("TUPLET_DATA")
    if not folder:
        pytest.skip("needs the benchmark sets; set TUPLET_DATA to the folder with manifest.json")
    entries = json.loads((Path(folder) / "manifest.json").read_text())["sets"]
    return Path(folder), {entry["name"]: entry for entry in entries}


@pytest.mark.data
def test_every_set_is_what_the_manifest_says(manifest):
    folder, entries = manifest
    for entry in entries.values():
        if not entry["file"].endswith(".parquet") or re.fullmatch("rcv1subset[2-5]", entry["name"]):
            continue  # the first of the five subsets stands for all
        data = read_table(folder / entry["file"], targets=entry["target_names"])
        assert data.X.shape == (entry["rows"], entry["features"]["total"])
        nominal = sum(isinstance(dtype, pd.CategoricalDtype) for dtype in data.X.dtypes)
        assert nominal == entry["features"]["nominal"]
        assert list(data.Y.columns) == entry["target_names"]
        if entry["label_cardinality"] is not None:
            assert data.Y.sum(axis=1).mean() == pytest.approx(entry["label_cardinality"], abs=5e-5)
        assert (data.train is None) == ("__train__" not in entry["aux_columns"])
        assert (data.folds is None) == ("__fold__" not in entry["aux_columns"])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "form"),
    [
        *(
            (name, form)
            for name in ("flags", "birds", "jura_mdc")
            for form in ("meka", "mulan", "sparse", "csv")
        ),
        ("edm", "meka"),
        ("emotions", "sparse"),
        ("emotions", "svmlight"),  # the one with nothing but numbers and 0/1 labels
    ],
)
def test_sets_survive_other_formats(name, form, manifest, tmp_path):
    entry, data = manifest[1][name], load_benchmark(name)
    path = tmp_path / f"{name}.{'arff' if form in ('meka', 'mulan', 'sparse') else form}"
    if form == "svmlight":
        dump_svmlight_file(data.X, data.Y.to_numpy(), str(path), multilabel=True, zero_based=False)
        read = read_table(path)
    elif form == "csv":
        data.frame.to_csv(path, index=False)
        read = read_table(path, targets=entry["target_names"])
    else:
        write_arff(data, path, meka=form != "mulan")
        # Without our note, as MEKA and Mulan would have written it.
        text = path.read_text().split("\n", 1)[1]
        path.write_text(_sparse(text) if form == "sparse" else text)
        read = read_table(path)
    assert read.X.shape == (entry["rows"], entry["features"]["total"])
    assert read.Y.shape == (entry["rows"], entry["n_targets"])
    if form != "svmlight":
        assert list(read.Y.columns) == entry["target_names"]
    if entry["label_cardinality"] is not None:
        assert read.Y.sum(axis=1).mean() == pytest.approx(entry["label_cardinality"], abs=5e-5)
    np.testing.assert_array_equal(read.Y.astype(str), data.Y.astype(str))
    for name_, column in zip(read.X, data.X, strict=True):
        theirs = data.X[column]
        if theirs.dtype.kind in "if":
            np.testing.assert_array_equal(read.X[name_].astype(float), theirs.astype(float))
        else:
            assert read.X[name_].astype(str).tolist() == theirs.astype(str).tolist()


def _sparse(text):
    """Rewrite a dense file as Weka does: zeros and the first of the values are left out."""
    head, rows = text.split("@data\n")
    kinds = [line.split(" {", 1) for line in head.splitlines() if line.startswith("@attribute")]
    first = [kind[1].rstrip("}").split(",")[0] if len(kind) > 1 else "0" for kind in kinds]
    sparse_rows = []
    for row in rows.splitlines():
        values = row.split(",")
        assert len(values) == len(first)
        kept = [
            f"{j} {v}"
            for j, (v, zero) in enumerate(zip(values, first, strict=True))
            if v not in (zero, f"{zero}.0")
        ]
        sparse_rows.append("{" + ", ".join(kept) + "}")
    return head + "@data\n" + "\n".join(sparse_rows) + "\n"


# -- damaged files -----------------------------------------------------------------------------------------


def small():
    X = pd.DataFrame(
        {
            "a": [0.5, None, -3.25, 1e6] * 3,
            "colour, dark": pd.Categorical(["x y", "z'", None, "z'"] * 3, ["z'", "unused", "x y"]),
            "n": [1, 2, 3, 4] * 3,
            "text": ["plain", 'with "quotes"', "a,b", None] * 3,
        }
    )
    Y = pd.DataFrame({"late": [0, 1, 1, 0] * 3, "place": pd.Categorical(["n", "s", "s", "w"] * 3)})
    return Dataset("small", X, Y, "Made up.", np.arange(12) < 8, np.arange(12) % 3)


def bytes_of(form):
    data, file = small(), BytesIO()
    if form in ("csv", "csv.gz"):
        data.frame.to_csv(file, index=False)
    elif form == "csv.zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("small.csv"), data.frame.to_csv(index=False))
    elif form == "jsonl":
        data.frame.to_json(file, orient="records", lines=True)
    elif form == "feather":
        data.frame.to_feather(file)
    elif form == "tsv":
        data.frame.drop(columns=["text", "colour, dark"]).to_csv(file, index=False, sep="\t")
    elif form == "parquet":
        write_parquet(data, file)
    elif form == "arff":
        write_arff(data, file)
    elif form == "arff.sparse":
        file.write(SPARSE.encode())
    elif form in ("mat", "mat.packed"):
        return mat(packed=form != "mat", **collection())
    elif form == "svmlight":
        dump_svmlight_file(data.X[["a", "n"]].fillna(0), data.Y[["late"]].to_numpy(), file, multilabel=True)
    elif form == "xml":
        file.write(
            b'<?xml version="1.0"?>\n<labels>\n<label name="a"></label>\n<label name="b"/>\n</labels>\n'
        )
    return gzip.compress(file.getvalue(), mtime=0) if form.endswith(".gz") else file.getvalue()


FORMS = [
    "csv", "csv.gz", "csv.zip", "tsv", "jsonl", "parquet", "feather", "arff", "arff.sparse", "mat",
    "mat.packed", "svmlight", "xml",
]  # fmt: skip
FILES = {form: bytes_of(form) for form in FORMS}


def read_damaged(form, content):
    """Return the table, of sound shape, or None after an error of the tree, in one sentence or two."""
    try:
        if form == "xml":
            data = read_table(StringIO("a,b,c\n1,2,3\n"), labels=BytesIO(content))
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TupletWarning)  # of encodings and comments
                data = read_table(BytesIO(content), targets=[0], format=form.partition(".")[0])
    except TupletError as error:
        message = str(error)
    else:
        assert len(data.X) == len(data.Y) > 0
        return data
    assert re.fullmatch(r"read_table: [^\n]*\.", message)
    return None


@pytest.mark.parametrize("form", FORMS)
def test_sound_files_are_read(form):
    assert read_damaged(form, FILES[form]) is not None


@st.composite
def damage(draw, content):
    """A few bytes changed, taken out, put in or repeated, and perhaps the end cut off."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(changed)))
        kind = draw(st.sampled_from(["set", "flip", "drop", "put", "repeat"]))
        if kind == "set":
            changed[at : at + 1] = bytes([draw(st.sampled_from(b"\x00\xff,;:'\"\\{}%?@\n\r\t -<>&0919e"))])
        elif kind == "flip" and at < len(changed):
            changed[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "drop":
            del changed[at : at + draw(st.integers(1, 40))]
        elif kind == "put":
            changed[at:at] = draw(st.binary(max_size=12))
        else:
            changed[at:at] = changed[at : at + draw(st.integers(1, 60))]
    if draw(st.booleans()):
        del changed[draw(st.integers(0, len(changed))) :]
    return bytes(changed)


@pytest.mark.hypothesis
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", FORMS)
def test_damaged_files_give_an_error_of_the_tree_or_a_table(form):
    @examples(25, suppress_health_check=list(HealthCheck))
    @given(damage(FILES[form]))
    @example(b"")
    def check(content):
        start = time.process_time()
        read_damaged(form, content)
        assert time.process_time() - start < 10

    check()


@pytest.mark.parametrize("form", FORMS)
def test_files_cut_short_anywhere(form):
    content = FILES[form]
    step = max(1, len(content) // 150)
    for end in range(0, len(content) - 1, step):
        read_damaged(form, content[:end])


@pytest.mark.parametrize("form", ["csv.gz", "csv.zip", "parquet", "feather", "mat", "mat.packed", "xml"])
def test_files_with_an_end_notice_that_it_is_lacking(form):
    content = FILES[form]
    for end in range(1, len(content) - 2, max(1, len(content) // 60)):
        assert read_damaged(form, content[:end]) is None, end


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "arff", "svmlight"])
def test_rows_cut_short_are_noticed(form):
    content = FILES[form]
    last = content.rstrip(b"\n").rindex(b"\n")
    mark = {"svmlight": b":", "tsv": b"\t"}.get(form, b",")
    end = content.index(mark, last + 1)
    assert read_damaged(form, content[: end + (form == "svmlight")]) is None
