"""Labels of every container and type become codes, and the same labels again."""

import datetime
import pickle
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from draws import examples
from tuplet.core.exceptions import InputError, LabelError
from tuplet.core.typing import UNKNOWN
from tuplet.space import ClassSpace, declare_order
from tuplet.space.words import clip, combination_texts, contrast_texts, shorten


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_points_in_time_are_labels_that_can_be_named(unit):
    days = np.array(["2020-01-01", "2020-01-02"], dtype=f"datetime64[{unit}]")
    space = ClassSpace.from_labels(days)
    for label in (pd.Timestamp("2020-01-02"), datetime.datetime(2020, 1, 2), days[1]):
        assert space.codes_of(space.names[0], [label]).tolist() == [1]
    with pytest.raises(LabelError, match=r"Unknown label '2021-05-01'.* '2020-01-01', '2020-01-02'"):
        space.codes_of(space.names[0], [pd.Timestamp("2021-05-01")])
    assert len(space.decode_frame(space.encode(days))) == 2


def test_half_precision_labels():
    labels = np.array([[0, 2], [1, 0]], dtype=np.float16)
    space = ClassSpace.from_labels(labels)
    np.testing.assert_array_equal(space.decode(space.encode(labels)), labels)


def test_declared_orders_and_mixed_labels_of_spaces_by_hand():
    space = ClassSpace(("a", "b"), ([0, "x"], ["no", "yes"]))
    assert space.categories[0].tolist() == [0, "x"]
    assert space.select(["b"]).knows_positive(0)


# -- round trips -------------------------------------------------------------------------------------------

quick = examples(25)

TEXTS = st.text("aZ0é ,\n日", max_size=4)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
PANDAS = {
    "int64": INTEGERS,
    "int8": st.integers(-128, 127),
    "uint64": st.integers(0, 2**64 - 1),
    "bool": st.booleans(),
    "float64": st.integers(-(10**6), 10**6).map(float) | st.none(),
    "object": TEXTS | st.integers(-3, 3) | st.none(),
    "str": TEXTS | st.none(),
    "string": TEXTS | st.none(),
    "string[pyarrow]": TEXTS | st.none(),
    "Int64": INTEGERS | st.none(),
    "UInt8": st.integers(0, 255) | st.none(),
    "boolean": st.booleans() | st.none(),
    "int64[pyarrow]": INTEGERS | st.none(),
    "category": st.sampled_from("abc") | st.none(),
    "datetime64[ns]": st.dates(datetime.date(1970, 1, 1), datetime.date(2100, 1, 1)).map(str) | st.none(),
    "datetime64[us, Europe/Paris]": st.dates(datetime.date(1990, 1, 1), datetime.date(2030, 1, 1)).map(str),
}
POLARS = {
    pl.Int64(): INTEGERS | st.none(),
    pl.UInt8(): st.integers(0, 255) | st.none(),
    pl.Boolean(): st.booleans() | st.none(),
    pl.String(): TEXTS | st.none(),
    pl.Float32(): st.integers(-100, 100).map(float) | st.none(),
    pl.Categorical(): st.sampled_from(["x", "y", "z"]) | st.none(),
    pl.Enum(["c", "b", "a", "never seen"]): st.sampled_from("abc") | st.none(),
    pl.Date(): st.dates(datetime.date(1900, 1, 1)) | st.none(),
    pl.Datetime("ns"): st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2100, 1, 1)) | st.none(),
}
NUMPY = {
    "int64": INTEGERS,
    "uint8": st.integers(0, 255),
    "bool": st.booleans(),
    "float32": st.integers(-100, 100).map(float) | st.just(np.nan),
    "U4": TEXTS,
    "object": TEXTS | st.integers(-3, 3) | st.booleans() | st.none(),
    "datetime64[D]": st.dates() | st.just(np.datetime64("NaT")),
}


def columns(values, n):
    """n labels, one of them not missing."""
    return st.lists(values, min_size=n, max_size=n).filter(lambda column: not all(pd.isna(x) for x in column))


@st.composite
def tables(draw, types):
    n = draw(st.integers(1, 6))
    chosen = draw(st.lists(st.sampled_from(list(types)), min_size=1, max_size=4))
    return [(dtype, draw(columns(types[dtype], n))) for dtype in chosen]


def check_codes(space, Y):
    """The codes are positions among the categories; forgetting some labels only loses these."""
    codes = space.encode(Y)
    assert ((codes >= UNKNOWN) & (codes < np.array(space.cards))).all()
    forgotten = codes.copy()
    forgotten[0] = UNKNOWN
    if (forgotten >= 0).any(axis=0).all():
        np.testing.assert_array_equal(space.encode(space.decode(forgotten)), forgotten)
    return codes


@quick
@given(tables(PANDAS))
def test_pandas_frames_come_back(table):
    Y = pd.DataFrame({f"v{j}": pd.Series(column, dtype=dtype) for j, (dtype, column) in enumerate(table)})
    Y.index = pd.Index([f"row {i}" for i in range(len(Y))])
    space = ClassSpace.from_labels(Y)
    pd.testing.assert_frame_equal(space.decode(check_codes(space, Y), Y.index), Y)
    pd.testing.assert_frame_equal(space.decode_frame(space.encode(Y), Y.index), Y)


@quick
@given(tables(POLARS))
def test_polars_frames_come_back(table):
    Y = pl.DataFrame([pl.Series(f"v{j}", column, dtype=t) for j, (t, column) in enumerate(table)])
    space = ClassSpace.from_labels(Y)
    back = space.decode(check_codes(space, Y))
    assert back.schema == Y.schema
    assert back.equals(Y)


@quick
@given(st.data(), st.sampled_from(list(NUMPY)), st.integers(1, 5), st.integers(1, 3))
def test_arrays_come_back(data, dtype, n, m):
    Y = np.array([data.draw(columns(NUMPY[dtype], n)) for _ in range(m)], dtype=dtype).T
    for labels in (Y, Y[:, 0]):
        space = ClassSpace.from_labels(labels)
        back = space.decode(check_codes(space, labels))
        assert back.dtype == labels.dtype
        np.testing.assert_array_equal(back, labels)


@quick
@given(
    st.sampled_from([sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix]),
    st.sampled_from([bool, np.int8, float]),
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=5),
)
def test_sparse_matrices_come_back_as_csr(make, dtype, rows):
    Y = make(np.array(rows, dtype=dtype))
    space = ClassSpace.from_labels(Y)
    assert space.cards == (2, 2, 2)
    codes = space.encode(Y)
    np.testing.assert_array_equal(codes, np.array(rows, dtype=int))
    back = space.decode(codes)
    assert back.format == "csr"
    assert isinstance(back, sparse.sparray) == isinstance(Y, sparse.sparray)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back.toarray(), Y.toarray())
    codes[0, 0] = UNKNOWN
    dense = space.decode(codes)
    assert isinstance(dense, np.ndarray)
    assert np.isnan(dense[0, 0])
    np.testing.assert_array_equal(space.encode(dense), codes)


@pytest.mark.parametrize(
    "Y",
    [
        pd.Series(["b", "a"], name="kind", index=[7, 9]),
        pd.Series([3, 1], name=4, index=[7, 9]),
        pd.Series([True, False], index=[7, 9]),
        pd.cut(pd.Series([1.0, 2.0], index=[7, 9]), 3),
        pd.Series(pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True), index=[7, 9]),
        pd.Series(pd.period_range("2020", periods=2, freq="M"), index=[7, 9]),
        pd.Series([Decimal(1), Decimal(2)], index=[7, 9]),
        pd.Series([1, 0], dtype="Sparse[int64]", index=[7, 9]),
    ],
)
def test_pandas_series_come_back_with_name_type_and_index(Y):
    space = ClassSpace.from_labels(Y)
    assert space.single
    pd.testing.assert_series_equal(space.decode(space.encode(Y), Y.index), Y)


def test_polars_series_come_back_with_name():
    for Y in (pl.Series("kind", ["b", None, "a"]), pl.Series([2, 1])):
        space = ClassSpace.from_labels(Y)
        back = space.decode(space.encode(Y))
        assert back.equals(Y, check_names=True, check_dtypes=True)


def test_a_space_survives_pickling():
    Y = pd.DataFrame({"a": pd.Categorical(["x", "y"]), 3: [1, 2]})
    space = pickle.loads(pickle.dumps(ClassSpace.from_labels(Y)))
    pd.testing.assert_frame_equal(space.decode(space.encode(Y)), Y)


# -- what is learned ---------------------------------------------------------------------------------------


def test_names_are_kept_or_made_up():
    assert ClassSpace.from_labels([1, 2]).names == ("y",)
    assert ClassSpace.from_labels([[1, 2]]).names == ("y0", "y1")
    assert ClassSpace.from_labels(pd.Series([1], name="kind")).names == ("kind",)
    assert ClassSpace.from_labels(pd.Series([1], name=5)).names == ("y",)
    Y = pd.DataFrame([[1, 2]], columns=[0, ("a", 1)])
    assert ClassSpace.from_labels(Y).names == ("0", "('a', 1)")
    multi = pd.DataFrame({("a", 1): [1], ("b", 2): [2]})
    space = ClassSpace.from_labels(multi)
    pd.testing.assert_frame_equal(space.decode(space.encode(multi)), multi)


def test_categories_are_sorted_unless_declared():
    Y = pd.DataFrame({"a": ["z", "b"], "b": pd.Categorical(["z", "b"], ["z", "k", "b"])})
    space = ClassSpace.from_labels(Y)
    assert [list(labels) for labels in space.categories] == [["b", "z"], ["z", "k", "b"]]
    assert space.cards == (2, 3)
    assert space.n_variables == 2
    assert repr(space) == "ClassSpace(a: b | z; b: z | k | b)"


def test_ordered_variables_are_remembered():
    stage = pd.Categorical(["II", "I", None], ["I", "II", "III"], ordered=True)
    Y = pd.DataFrame({"stage": stage, "kind": pd.Categorical(["a", "b", "a"]), "n": [1, 2, 1]})
    space = ClassSpace.from_labels(Y)
    assert space.ordered == (True, False, False)
    assert repr(space) == "ClassSpace(stage: I < II < III; kind: a | b; n: 1 | 2)"
    assert "I &lt; II" in space._repr_html_()
    assert space.select(["n", "stage"]).ordered == (False, True)
    assert pickle.loads(pickle.dumps(space)).ordered == space.ordered
    pd.testing.assert_frame_equal(space.decode(space.encode(Y)), Y)
    enum = pl.DataFrame({"stage": pl.Series(["II", "I"], dtype=pl.Enum(["I", "II"])), "kind": ["a", "b"]})
    assert ClassSpace.from_labels(enum).ordered == (True, False)
    assert ClassSpace(("a",), (np.array(["x", "y"]),)).ordered == (False,)


def test_an_order_can_be_given():
    Y = [["mid", 3], ["low", 1], [None, 2]]
    space = ClassSpace.from_labels(Y, order={"y0": ["low", "mid", "high"]})
    assert [list(labels) for labels in space.categories] == [["low", "mid", "high"], [1, 2, 3]]
    assert space.ordered == (True, False)
    assert space.encode(Y).tolist() == [[1, 2], [0, 0], [UNKNOWN, 1]]
    assert space.decode(space.encode(Y)).tolist() == Y
    assert ClassSpace.from_labels(Y, order=["y1"]).ordered == (False, True)
    frame = pd.DataFrame(Y, columns=["size", "n"])
    space = ClassSpace.from_labels(frame, order={"size": ["low", "mid", "high"], "n": [3, 2, 1]})
    back = space.decode(space.encode(frame))
    assert back["size"].cat.ordered
    assert back["n"].cat.categories.tolist() == [3, 2, 1]
    assert back["n"].tolist() == frame["n"].tolist()


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ({"size": ["low", "high"]}, "lacks 'mid'"),
        ({"size": ["low", "mid", "low"]}, "has a label twice"),
        ({"n": ["1", "2", "3"]}, "lacks 1"),
        (["size"], r"not known; give them .* order=\{'size'"),
        ({"weight": [1]}, "no class variable 'weight'"),
        ("size", "map names to labels"),
    ],
)
def test_a_wrong_order_is_an_error(order, message):
    Y = pd.DataFrame({"size": ["mid", "low"], "n": [1, 2]})
    with pytest.raises(InputError, match=message):
        ClassSpace.from_labels(Y, order=order)


def test_declared_orders_in_all_containers():
    stages = ["I", "II", "III"]
    frame = pd.DataFrame({"stage": ["II", None, "I"], "n": [1, 2, 3]}, index=[5, 6, 7])
    staged = declare_order(frame, {"stage": stages})
    assert staged["stage"].dtype == pd.CategoricalDtype(stages, ordered=True)
    assert staged.index.equals(frame.index)
    assert staged["n"].dtype == frame["n"].dtype
    assert frame["stage"].dtype != staged["stage"].dtype
    assert declare_order(frame["stage"], {"stage": stages}).cat.ordered
    assert ClassSpace.from_labels(declare_order(staged, {"stage": stages[::-1]})).cards == (3, 3)
    array = declare_order(np.array([[2, 0], [1, 1]]), ["y0"])
    assert ClassSpace.from_labels(array).ordered == (True, False)
    assert declare_order([3, 1, 2], ["y"]).cat.categories.tolist() == [1, 2, 3]
    polars = declare_order(pl.from_pandas(frame), {"stage": stages})
    assert polars["stage"].dtype == pl.Enum(stages)
    assert polars["n"].to_list() == [1, 2, 3]
    with pytest.raises(InputError, match="Enum of polars holds text only, found 1"):
        declare_order(polars, ["n"])


def test_types_that_cannot_be_compared_have_a_fixed_order():
    values = [(1, 2), "b", 2, 1.0, "a"]
    for order in (values, values[::-1]):
        Y = pd.Series(order, dtype=object)
        assert list(ClassSpace.from_labels(Y).categories[0]) == [1.0, 2, "a", "b", (1, 2)]


def test_lists_keep_the_types_of_their_labels():
    space = ClassSpace.from_labels([["a", 1], ["b", None], [np.nan, 2]])
    assert [list(labels) for labels in space.categories] == [["a", "b"], [1, 2]]
    assert space.encode([["b", 2.0], [None, 1]]).tolist() == [[1, 1], [UNKNOWN, 0]]
    assert list(ClassSpace.from_labels(["a", np.nan]).categories[0]) == ["a"]


def test_masked_entries_are_missing():
    Y = np.ma.array([[1, 9], [2, 3]], mask=[[False, True], [False, False]])
    space = ClassSpace.from_labels(Y)
    assert space.encode(Y).tolist() == [[0, UNKNOWN], [1, 0]]


def test_a_constant_variable_has_one_category_unless_it_is_a_yes_or_no():
    assert ClassSpace.from_labels([["same", 7], ["same", 7]]).cards == (1, 1)
    assert ClassSpace.from_labels(sparse.csr_array((3, 2))).cards == (2, 2)
    for labels in (
        np.ones(3, int),
        np.zeros(3, "uint8"),
        np.zeros(3, bool),
        np.array([1.0, np.nan]),
        np.array([True, None], dtype=object),
        [[1], [None]],
        pd.Series([True, None], dtype="boolean"),
        pd.Series([1, None], dtype="Int64"),
        pl.Series([False, None]),
        pl.Series([1, None]),
    ):
        space = ClassSpace.from_labels(labels)
        assert space.categories[0].tolist() == [0, 1]
        assert space.yes_no(0)
        back = space.decode(np.array([[0], [1]]))
        assert getattr(back, "dtype", None) == getattr(labels, "dtype", getattr(back, "dtype", None))
    assert ClassSpace.from_labels(pd.Categorical([1, 1])).cards == (1,)  # declared to be so


def test_which_label_is_positive_is_not_guessed():
    Y = pd.DataFrame(
        {
            "guess": ["flu", "none"],
            "one_two": [1, 2],
            "number": [0, 1],
            "truth": [True, True],
            "declared": pd.Categorical(["flu", "none"], ["none", "flu"]),
        }
    )
    space = ClassSpace.from_labels(Y)
    assert [space.knows_positive(j) for j in range(5)] == [False, False, True, True, True]
    assert space.select(["declared", "guess"]).knows_positive(0)
    enum = pl.DataFrame({"a": pl.Series(["no"], dtype=pl.Enum(["no", "yes"])), "b": ["no"]})
    assert [ClassSpace.from_labels(enum).knows_positive(j) for j in range(2)] == [True, False]
    assert ClassSpace(("a",), (["no", "yes"],)).knows_positive(0)


def test_variables_go_by_the_keys_of_their_columns_too():
    space = ClassSpace.from_labels(pd.DataFrame(np.eye(3, dtype=int)))
    assert space.names == ("0", "1", "2")
    assert space.keys == (0, 1, 2)
    assert space.position(2) == space.position("2") == space.position(np.int64(2)) == 2
    assert space.codes_of(1, [0, 1]).tolist() == [0, 1]
    assert space.select([2, "0"]).keys == (2, 0)
    assert list(space.decode_frame(np.eye(3, dtype=int)).columns) == [0, 1, 2]
    with pytest.raises(InputError, match="no class variable 3"):
        space.position(3)
    with pytest.raises(InputError, match="no class variable"):
        space.position(["0"])
    assert ClassSpace.from_labels(pd.DataFrame({("a", 1): [1], ("b", 2): [2]})).keys[0] == "('a', 1)"
    assert ClassSpace.from_labels([[1, 2]]).keys == ("y0", "y1")


@pytest.mark.parametrize("kind", ["int", "array of text", "pandas", "polars", "mixed"])
def test_many_categories_are_fast(kind):
    numbers = np.random.default_rng(0).permutation(100_000)
    text = numbers.astype(str)
    Y = {
        "int": numbers,
        "array of text": text,
        "pandas": pd.Series(text),
        "polars": pl.Series(text),
        "mixed": np.array([*text[1:], 1], dtype=object),
    }[kind]
    start = time.process_time()
    space = ClassSpace.from_labels(Y)
    back = space.decode(space.encode(Y))
    assert time.process_time() - start < 5
    assert space.cards == (100_000,)
    np.testing.assert_array_equal(np.asarray(back), np.asarray(Y))
    assert len(repr(space)) < 200


# -- encoding something else -------------------------------------------------------------------------------

SPACE = ClassSpace.from_labels(pd.DataFrame({"kind": ["a", "b"], "size": [1, 2], "new": [True, False]}))


@pytest.mark.parametrize(
    "Y",
    [
        [["b", 1, True]],
        np.array([["b", 1.0, 1]], dtype=object),
        pd.DataFrame({"new": [True], "other": [0], "size": np.array([1], "int8"), "kind": ["b"]}),
        pl.DataFrame({"size": [1], "kind": ["b"], "new": [True]}),
        pd.DataFrame({"kind": pd.Categorical(["b"], ["q", "b"]), "size": [True], "new": [1]}),
        pl.DataFrame({"size": [1.0], "kind": pl.Series(["b"], dtype=pl.Categorical), "new": [1]}),
    ],
)
def test_other_containers_and_equal_labels_are_understood(Y):
    assert SPACE.encode(Y).tolist() == [[1, 0, 1]]


def test_sparse_and_dense_understand_each_other():
    dense = np.array([[0, 1], [1, 0]])
    for learned in (sparse.csr_array(dense), dense, dense.astype(bool), dense.astype(float)):
        space = ClassSpace.from_labels(learned)
        for other in (
            sparse.csr_matrix(dense),
            dense,
            dense.astype(bool),
            pd.DataFrame(dense),
            dense.tolist(),
        ):
            np.testing.assert_array_equal(space.encode(other), dense)


def test_one_variable_is_matched_whatever_it_is_called():
    space = ClassSpace.from_labels(pd.Series(["a", "b"], name="kind"))
    assert space.encode(pd.Series(["b"], name="other")).tolist() == [[1]]
    assert space.encode([["b"]]).tolist() == [[1]]
    assert space.encode(pd.DataFrame({"x": [1], "kind": ["b"]})).tolist() == [[1]]
    assert space.decode(np.array([[1]])).tolist() == ["b"]


def test_labels_of_one_variable():
    assert SPACE.codes_of("size", 2) == 1
    assert SPACE.codes_of("size", 2).shape == ()
    assert SPACE.codes_of("kind", None) == UNKNOWN
    assert SPACE.codes_of("kind", pd.Series(["b", None])).tolist() == [1, UNKNOWN]
    with pytest.raises(InputError, match="'kind' must be one label or one column, found shape \\(1, 2\\)"):
        SPACE.codes_of("kind", [["a", "b"]])


def test_some_variables_can_be_selected():
    part = SPACE.select(["new", "kind"])
    assert part.names == ("new", "kind")
    pd.testing.assert_frame_equal(
        part.decode(np.array([[1, 0]])), pd.DataFrame({"new": [True], "kind": ["a"]})
    )


def test_unknown_decodes_to_missing_in_a_type_that_can_hold_it():
    frame = SPACE.decode(np.array([[0, 0, 0], [UNKNOWN, UNKNOWN, UNKNOWN]]))
    text = pd.Series(["a"]).dtype  # another one since pandas 3
    assert list(frame.dtypes) == [text, "Int64", "boolean"]
    assert frame.iloc[1].isna().all()
    codes = np.array([[0], [UNKNOWN]])
    assert np.isnan(ClassSpace.from_labels([[1], [2]]).decode(codes)[1, 0])
    assert ClassSpace.from_labels([[True], [False]]).decode(codes)[1, 0] is None
    assert ClassSpace.from_labels([[2**60 + 1]]).decode(codes).tolist() == [[2**60 + 1], [None]]


def test_a_space_can_be_declared():
    space = ClassSpace(("a", "b"), (["x", "y"], [0, 1, 2]))
    assert space.cards == (2, 3)
    pd.testing.assert_frame_equal(space.decode(np.array([[1, 2]])), pd.DataFrame({"a": ["y"], "b": [2]}))
    with pytest.raises(InputError, match="distinct"):
        ClassSpace(("a", "a"), (["x"], ["y"]))


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([0.5, 1.0], "Unknown label type: continuous. 'y' holds fractional numbers such as 0.5"),
        (np.array([0.5, None], dtype=object), "continuous"),
        (pl.DataFrame({"a": [1.5, None]}), "'a' holds fractional"),
        ([1.0, np.inf], "infinity"),
        (np.array([1j]), "Unknown label type: 'y' holds values of type complex"),
        (np.zeros((0, 2)), r"at least one row and one column, found shape \(0, 2\)"),
        (np.zeros((2, 0)), "at least one row and one column"),
        (pd.DataFrame(), "at least one row"),
        ([], "at least one row"),
        (np.zeros((1, 1, 1)), "one or two dimensions, found 3"),
        (3, "one or two dimensions, found 0"),
        (None, "one or two dimensions, found 0"),
        ([[1], [1, 2]], "different numbers of labels"),
        (pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), "same name: 'a'"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "same name: '1'"),
        (pd.DataFrame({"a": [1], "b": [None]}), "All labels of 'b' are missing"),
        (np.array([np.nan]), "All labels of 'y' are missing"),
        (pd.DataFrame({"a": [[1], [2]]}), "'a' holds lists"),
        (pl.DataFrame({"a": [[1], [2]]}), "'a' holds lists"),
        (pl.LazyFrame({"a": [1]}), "collect"),
        (np.array([(1, 2)], dtype=[("a", int), ("b", int)]), "structured"),
        (sparse.csr_array(np.array([[0, 2]])), "0 and 1 only; 'y1' holds 2"),
        (sparse.csr_array(np.array([[0, np.nan]])), "0 and 1 only; 'y1' holds nan"),
    ],
)
def test_labels_that_cannot_be_learned(Y, message):
    with pytest.raises(InputError, match=message):
        ClassSpace.from_labels(Y)


@pytest.mark.parametrize(
    ("Y", "error", "message"),
    [
        ([["c", 1, True]], LabelError, "Unknown label 'c' of 'kind'; the known ones are 'a', 'b'."),
        ([["a", "1", True]], LabelError, "Unknown label '1' of 'size'; the known ones are 1, 2."),
        ([["a", 1, "True"]], LabelError, "Unknown label 'True' of 'new'"),
        ([["a", 1, 2]], LabelError, "Unknown label 2 of 'new'; the known ones are False, True."),
        ([["a", np.inf, True]], LabelError, "Unknown label inf of 'size'"),
        (pd.DataFrame({"kind": [["a"]], "size": [1], "new": [True]}), LabelError, "Unknown label"),
        ([["a", 1]], InputError, r"3 columns \('kind', 'size', 'new'\), found 2"),
        (["a"], InputError, "found 1"),
        (
            pd.DataFrame({"kinds": ["a"], "new": [True]}),
            InputError,
            "lacks the class variables 'kind', 'size'",
        ),
    ],
)
def test_labels_that_cannot_be_encoded(Y, error, message):
    with pytest.raises(error, match=message):
        SPACE.encode(Y)


def test_messages_stay_short():
    space = ClassSpace.from_labels(np.arange(1000))
    with pytest.raises(LabelError) as caught:
        space.encode(np.arange(5000, 6000))
    assert str(caught.value) == (
        "Unknown labels 5000, 5001, 5002, ... of 'y'; the known ones are 0, 1, 2, 3, 4, 5, 6, 7 and 992 more."
    )


def test_names_are_suggested():
    assert SPACE.position("size") == 1
    with pytest.raises(
        InputError, match=r"no class variable 'sise'; there are 'kind', 'size', 'new'. Did you"
    ):
        SPACE.position("sise")


def test_codes_of_the_wrong_shape():
    with pytest.raises(InputError, match=r"shape \(n, 3\), found \(2,\)"):
        SPACE.decode(np.array([0, 1]))


def test_html_is_escaped():
    html = ClassSpace.from_labels(pd.DataFrame({"<a>": ["<b>"]}))._repr_html_()
    assert "&lt;a&gt;" in html
    assert "<b>" not in html


# -- short texts -------------------------------------------------------------------------------------------


def test_long_names_are_cut_in_the_middle_and_stay_apart():
    assert clip("short") == "short"
    assert clip("a\nb") == "a b"
    names = [f"a_rather_long_tag_name_{i}" for i in range(30)]
    assert len(clip(names[0])) == 18
    assert len(set(shorten(names))) == 30
    assert max(map(len, shorten(names))) == 18
    middle = ["left " + "x" * 30 + str(i) + "y" * 30 + " right" for i in range(3)]
    assert len(set(shorten(middle))) == 3
    assert shorten(["same", "same"]) == ["same", "same"]
    alike = [f"How pleased are you with item {i} of these?" for i in (1, 10, 20)]
    assert shorten(alike) == ["…item 1…", "…item 10…", "…item 20…"]
    ends = ["the_first_common_part_30th_and_so_on", "the_first_common_part_20th_and_so_on"]
    assert shorten(ends) == ["…part_30th…", "…part_20th…"]


@quick
@given(st.lists(st.text("ab", max_size=80), max_size=5), st.integers(5, 30))
def test_different_texts_never_become_the_same(texts, width):
    assert len(set(shorten(texts, width))) == len(set(texts))


def test_combinations_that_are_too_long_are_told_by_their_differences():
    names = tuple(f"a_rather_long_tag_name_{i}" for i in range(12))
    space = ClassSpace(names, ([0, 1],) * 12)
    codes = np.zeros((3, 12), int)
    codes[:, :5] = 1
    codes[1, 10] = codes[2, 11] = 1
    texts, remarks = contrast_texts(space, codes)
    assert texts[0] == "(no other)"
    assert len(set(texts)) == 3
    assert remarks[0].startswith("in all of them: a_rathe")
    assert contrast_texts(space, codes[:, ::-1][:1])[1] == []
    assert all(len(text) <= 60 for text in combination_texts(space, codes))
    wide = ClassSpace(names, (["strongly agree", "agree"],) * 12)
    texts, remarks = contrast_texts(wide, codes)
    assert texts == [
        "strongly agree · strongly agree",
        "agree · strongly agree",
        "strongly agree · agree",
    ]
    assert remarks[0].startswith("bars show a_rathe")
    assert "=agree" in remarks[1]
