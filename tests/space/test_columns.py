"""What columns of a frame are found to be, and what they become."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logit
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from draws import examples
from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    ClassSpace,
    FeatureEncoder,
    GenerativeBayesNetClassifier,
    IndependentClassifier,
    JointStackingClassifier,
    TreeClassifier,
    load_model,
)
from tuplet.core.exceptions import InputError, TupletWarning
from tuplet.space.features.dates import find_format, varying_parts, written_days
from tuplet.space.features.numerals import WrittenNumbers, find_style
from tuplet.space.features.rates import LabelIndicators, learn_rates
from tuplet.space.features.reading import TableReader
from tuplet.space.features.texts import learn_terms

N = 600
RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=(N, 2))
SPACE = ClassSpace.from_labels(Y)
LABELS = LabelIndicators.of(SPACE, SPACE.encode(Y))


def kind_of(column, labels=None, **given):
    """Return kind, reason and number of columns of one column."""
    frame = pd.DataFrame({"c": column})
    reader, read = TableReader.learn(frame.assign(other=np.arange(len(frame)) / 7), given, labels)
    return reader.kinds[0], reader.reasons[0], read.shape[1] - 1


# -- kinds -------------------------------------------------------------------------------------------------

WORDS = np.array(
    [
        "the",
        "heart",
        "lung",
        "knee",
        "pain",
        "fever",
        "cough",
        "mild",
        "severe",
        "left",
        "right",
        "stable",
        "worse",
        "better",
    ]
)


@pytest.mark.parametrize(
    ("column", "kind", "width"),
    [
        (RNG.normal(size=N), "number", 1),
        (RNG.integers(10**6, size=N), "number", 1),  # integers are never dropped for being distinct
        (RNG.random(N) < 0.5, "number", 1),
        ([f"{x:.2f}" for x in RNG.normal(size=N)], "number", 1),
        ([f"{x:.2f}".replace(".", ",") for x in RNG.normal(size=N)], "number", 1),
        (["1,5", "2", "3,25"] * 200, "number", 1),
        (["007", "008", "010"] * 200, "category", 1),
        (pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), unit="h"), "date", 5),
        ([f"{1 + d % 28:02d}.{1 + d % 12:02d}.202{d % 3}" for d in range(N)], "date", 5),
        (["2020-03-01", "2021-04-05 12:30"] * 300, "date", 7),
        (["a", "b", "c"] * 200, "category", 1),
        ([f"w{i % 60}" for i in range(N)], "category", 1),  # without labels: the most frequent ones
        ([" ".join(RNG.choice(WORDS, 6)) for _ in range(N)], "text", 12),
        (["the same words in each of them", "another text of as many words"] * 300, "category", 1),
        (["x"] * N, "drop", 0),
        ([1.5] * N, "drop", 0),
        ([None] * N, "drop", 0),
        (["x", None] * (N // 2), "category", 1),
        ([1.5, None] * (N // 2), "number", 1),
    ],
)
def test_kinds(column, kind, width):
    found, reason, n = kind_of(column)
    assert (found, n) == (kind, width), reason


def test_identifiers_are_left_out_with_a_warning():
    ids = [f"P{i:05d}" for i in range(N)]
    with pytest.warns(TupletWarning, match="'c' is left out: it has 600 different values in 600 rows"):
        assert kind_of(ids)[0] == "drop"
    nearly = [f"P{i - i % 2 * (i < 50):05d}" for i in range(N)]  # 575 of 600
    with pytest.warns(TupletWarning, match="575 different values"):
        assert kind_of(pd.Categorical(nearly))[0] == "drop"
    assert kind_of([f"P{i // 2}" for i in range(N)])[0] == "category"
    assert kind_of(ids[:20])[0] == "category"  # too few rows
    assert kind_of(ids, c="category")[0] == "category"


def test_counters_are_kept_with_a_warning():
    with pytest.warns(TupletWarning, match="'c' counts the rows from 1 to 600"):
        assert kind_of(RNG.permutation(N) + 1)[0] == "number"
    numbers = pd.DataFrame({"nr": np.arange(N), "size": RNG.normal(size=N)})
    with pytest.warns(TupletWarning, match="'nr' counts the rows from 0 to 599"):
        ChainClassifier().fit(numbers, Y)  # nothing but numbers
    ChainClassifier().fit(numbers.assign(nr=2 * numbers["nr"]), Y)


@pytest.mark.filterwarnings("ignore:The column")
def test_numbers_of_rows_beyond_the_training_rows_are_missing_unless_labels_follow_them():
    rng, numbers = np.random.default_rng(0), np.arange(N)
    labels = rng.integers(0, 2, N)
    X = pd.DataFrame({"line": rng.permutation(N), "place": ["a", "b"] * (N // 2)})
    new = pd.DataFrame({"line": [0, N - 1, N, -1], "place": "a"})
    encoder = FeatureEncoder().fit(X, labels)
    assert encoder.summary()["kind"][0] == "number"
    assert "correlated with no label" in encoder.summary()["reason"][0]
    middle = (N - 1) / 2
    assert encoder.transform(new)[:, 0].tolist() == [0, N - 1, middle, middle]
    later = FeatureEncoder().fit(X.assign(line=numbers), (numbers > N / 2).astype(int))
    assert later.transform(new)[:, 0].tolist() == [0, N - 1, N, -1]


def test_columns_that_are_nearly_numbers_or_dates():
    numbers = [f"{x:.3f}" for x in RNG.normal(size=N - 2)] + ["unknown", "?"]
    with pytest.warns(
        TupletWarning, match="holds numbers, but also 'unknown', '\\?', which count as missing"
    ):
        assert kind_of(numbers)[0] == "number"
    with pytest.warns(TupletWarning, match=r"holds numbers, but also '3\+', so it is a category"):
        assert kind_of(["1", "2", "0"] * 199 + ["3+"] * 3)[0] == "category"
    dates = [f"{1 + d % 28}.{1 + d % 12}.2020" for d in range(N - 1)] + ["never"]
    with pytest.warns(TupletWarning, match="holds dates, but also 'never'"):
        assert kind_of(dates)[0] == "date"


# -- numbers as text ---------------------------------------------------------------------------------------


STYLES = {  # decimal mark, mark between thousands, what is before and behind
    "plain": (".", "", "", ""),
    "British": (".", ",", "", ""),
    "German": (",", ".", "", ""),
    "Austrian": (",", "", "", ""),
    "French": (",", "\u202f", "", ""),
    "old French": (",", "\u00a0", "", "\u00a0€"),
    "Swiss": (".", "’", "CHF ", ""),
    "American": (".", ",", "$", ""),
    "in percent": (",", ".", "", " %"),
}


@examples(60)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.sampled_from(sorted(STYLES)))
def test_written_numbers_are_read_again(values, style):
    decimal, group, before, behind = STYLES[style]
    marks = str.maketrans({",": group, ".": decimal})
    texts = [
        f"{'-' * (value < 0)}{before}{f'{abs(value):,.4f}'.translate(marks)}{behind}" for value in values
    ]
    found = find_style(texts)
    assert found is not None
    assert not found.example
    expected = np.array(values) / (100 if "%" in behind else 1)
    np.testing.assert_allclose(found.reader.read(pd.Series(texts))[0], expected, atol=1e-4)


def test_codes_with_leading_zeros_are_no_numbers():
    assert find_style(["01", "02"]) is None
    assert find_style(["0", "0.5", "-1e-3"]) == (WrittenNumbers(), "", True)
    np.testing.assert_array_equal(WrittenNumbers().read(pd.Series([1.5, None]))[0], [1.5, np.nan])


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["12,345", "1,5"], [12.345, 1.5]),
        (["12,345", "1,234,567"], [12345, 1234567]),
        (["12.345,5", "1.234"], [12345.5, 1234]),
        (["12,345", "1500"], [12.345, 1500]),  # thousands without a mark
        (["0,234", "1,234"], [0.234, 1.234]),
        (["12.345", "1.234.567"], [12345, 1234567]),
        (["45%", "7.5 %", "0"], [0.45, 0.075, 0]),
        (["€ 3", "-€ 4,50", "5"], [3, -4.5, 5]),
        (["(1,234.50)", "12.00-", "+3.25", "−1"], [-1234.5, -12, 3.25, -1]),
        (["1,5E+03", "2,25"], [1500, 2.25]),
        (["5\u202f‰", "3 ‰"], [0.005, 0.003]),
        ([" 12 ", ".5", "7."], [12, 0.5, 7]),
    ],
)
def test_one_style_for_a_column(texts, numbers):
    found = find_style(texts)
    assert not found.example
    np.testing.assert_allclose(found.reader.read(pd.Series(texts))[0], numbers)


@pytest.mark.parametrize(
    ("texts", "numbers", "words"),
    [
        (["1,234", "12,500"], [1234, 12500], "commas between thousands: 1,234 is read as 1234"),
        (["1.234", "12.500"], [1.234, 12.5], "decimal point: 1.234 is read as 1.234"),
        (["€ 1.234", "12.500 €"], [1234, 12500], "points between thousands, €: € 1.234 is read as 1234"),
        (["1,234%", "12,500%"], [0.01234, 0.125], "decimal comma, percent: 1,234% is read as 0.01234"),
    ],
)
def test_numbers_that_can_be_read_in_two_ways(texts, numbers, words):
    found = find_style(texts)
    np.testing.assert_allclose(found.reader.read(pd.Series(texts))[0], numbers)
    assert str(found).endswith(words)
    other = found.reader.with_decimal("," if found.reader.decimal == "." else ".")
    ratio = other.read(pd.Series(texts))[0] / numbers
    np.testing.assert_allclose(np.abs(np.log10(ratio)), 3)


@pytest.mark.parametrize(
    "texts",
    [
        ["1,23,4", "2"], ["12.34.5", "1"], ["45%", "30"], ["€ 3", "$ 4"], ["(3", "4)"], ["1'23", "4"],
        ["- -3", "4"], ["192.168.1.1", "192.168.1.2"], ["3 kg", "4 kg"], ["1e999", "x"], ["", " "],
    ],
)  # fmt: skip
def test_other_texts_are_no_numbers(texts):
    assert find_style(texts) is None


def test_other_columns_decide_for_numbers_with_two_readings():
    frame = pd.DataFrame({"a": ["1,234", "2,500"] * 20, "b": ["0,5", "1,25"] * 20, "c": ["1.234", "2"] * 20})
    encoder = FeatureEncoder().fit(frame)
    np.testing.assert_allclose(encoder.transform(frame)[0], [1.234, 0.5, 1234])
    grouped = "decimal comma, points between thousands: 1.234 is read as 1234"
    assert encoder.summary()["reason"].tolist() == [
        "numbers, written as text (decimal comma: 1,234 is read as 1.234), as in other columns",
        "numbers, written as text (decimal comma)",
        f"numbers, written as text ({grouped}), as in other columns",
    ]
    alone = FeatureEncoder().fit(frame[["a"]])
    assert alone.transform(frame[["a"]])[0, 0] == 1234


def test_numbers_without_marks_have_the_decimals_of_others():
    frame = pd.DataFrame({"a": ["45 %", "50 %"] * 20, "b": ["0,5", "1,25"] * 20})
    encoder = FeatureEncoder().fit(frame)
    np.testing.assert_allclose(encoder.transform(pd.DataFrame({"a": ["12,5 %"], "b": ["3"]})), [[0.125, 3]])


def test_numbers_that_are_written_in_another_way_than_in_training():
    frame = pd.DataFrame(
        {
            "a": ["1.234,5", "2"] * 20,
            "n": ["1.234", "7"] * 20,
            "p": ["€ 3,50", "€ 4"] * 20,
            "b": [0.5, 1] * 20,
        }
    )
    encoder = FeatureEncoder(impute=False).fit(frame)
    with pytest.warns(TupletWarning, match="'a' holds 'x', which count as missing: its numbers were written"):
        answer = encoder.transform(pd.DataFrame({"a": ["x", "7,5"], "n": "2.500", "p": "€ 5", "b": 1}))
    np.testing.assert_array_equal(answer[:, :3], [[np.nan, 2500, 5], [7.5, 2500, 5]])
    with pytest.warns(TupletWarning) as caught:
        answer = encoder.transform(pd.DataFrame({"a": ["9.45", "1"], "n": "3,105", "p": "$ 5.50", "b": 1}))
    np.testing.assert_array_equal(answer[:, :3], [[9.45, 3105, np.nan], [1, 3105, np.nan]])
    assert [str(each.message).partition(", which")[2].partition(":")[0] for each in caught] == [
        " are read with decimal point",
        " are read with commas between thousands",
        " count as missing",
    ]


def test_one_number_far_down_decides_for_all():
    column = [f"{i},{100 + i % 900}" for i in range(1, 999) for _ in range(12)]
    texts = pd.Series([f"{text}{i % 7}" if i == 11_000 else text for i, text in enumerate(column)])
    assert find_style(texts.unique().tolist()).reader == WrittenNumbers(",")


def test_readings_of_numbers_can_be_declared():
    frame = pd.DataFrame({"a": ["1,234", "2,500"] * 20, "b": ["45%", "50%"] * 20})
    declared = FeatureEncoder(columns={"a": "decimal comma", "b": "category"}).fit(frame)
    assert declared.transform(frame)[0].tolist() == [1.234, 0]
    assert declared.summary()["reason"].tolist() == ["declared, decimal comma", "declared, 2 frequent values"]


# -- dates as text -----------------------------------------------------------------------------------------


@examples(30)
@given(
    st.lists(st.dates(dt.date(1970, 1, 1), dt.date(2060, 12, 31)), min_size=1),
    st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d %b %Y", "%d-%m-%Y"]),
)
def test_written_dates_are_read_again(dates, format):
    # Days above 12 are evidence of the order of day and month.
    dates = [*dates, dt.date(2001, 2, 13), dt.date(2001, 3, 25)]
    texts = pd.Series([date.strftime(format) for date in dates])
    found = find_format(texts.unique().tolist(), texts)
    assert not found.doubt
    expected = [(date - dt.date(1970, 1, 1)).days for date in dates]
    np.testing.assert_array_equal(written_days(texts, found.format)[0], expected)


def test_the_order_of_day_and_month_by_evidence():
    days = ["01/05", "01/09", "02/03", "02/07", "03/02", "03/11", "04/01"]  # sorted if the month comes first
    month_first = pd.Series([f"{day}/2020" for day in days])
    assert find_format(month_first.tolist(), month_first) == ("%m/%d/%Y", False)
    mixed_up = month_first.sample(frac=1, random_state=1)
    assert find_format(mixed_up.tolist(), mixed_up) == ("%d/%m/%Y", True)
    assert "other way round" in kind_of(list(mixed_up) * 10)[1]
    assert kind_of(list(mixed_up) * 10, c="%m/%d/%Y")[0] == "date"


def test_parts_of_dates_where_labels_go_with_them():
    days = RNG.integers(1500, size=N)
    date = pd.Timestamp("2019-01-01") + pd.to_timedelta(days, unit="D")
    assert varying_parts(days.astype(float)) == ("season", "weekday")
    assert kind_of(date, LABELS)[2] == 1
    y = (np.cos(2 * np.pi * days / 365.2425) + RNG.normal(size=N) > 0).astype(int)[:, None]
    space = ClassSpace.from_labels(y)
    frame = pd.DataFrame({"c": date})
    reader, read = TableReader.learn(frame, labels=LabelIndicators.of(space, space.encode(y)))
    assert reader.names == (("c", "c season sin", "c season cos"),)
    angle = 2 * np.pi * read["c"] / 365.2425
    np.testing.assert_allclose(read["c season cos"], np.cos(angle))


# -- many values -------------------------------------------------------------------------------------------


def test_rates_are_those_of_the_other_folds():
    value = RNG.integers(8, size=N)
    y = (RNG.random(N) < 0.1 + 0.1 * value).astype(int)[:, None]
    space = ClassSpace.from_labels(y)
    column = pd.Series(value.astype(str))
    rates, training = learn_rates(column, LabelIndicators.of(space, y))
    fold = np.random.default_rng(0).permutation(N) % 5
    found = []
    for prior in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0):
        expected, gain = np.zeros(N), np.zeros(N)
        for i in range(N):
            rest = fold != fold[i]
            base = (y[rest, 0].sum() + 0.5) / (rest.sum() + 1)
            same = rest & (value == value[i])
            rate = (y[same, 0].sum() + prior * base) / (same.sum() + prior)
            expected[i] = logit(rate) - logit(base)
            gain[i] = np.log((rate if y[i, 0] else 1 - rate) / (base if y[i, 0] else 1 - base))
        found.append((gain.mean(), expected))
    np.testing.assert_allclose(training[0], max(found, key=lambda each: each[0])[1])
    everything = rates.read(pd.Series(["7", "new", None]))[0]
    assert everything[0] > 1
    assert everything[1] == 0


def test_values_that_predict_nothing_are_left_out():
    wards = pd.Series([f"ward {w}" for w in RNG.integers(100, size=N)])
    assert learn_rates(wards, LABELS) is None
    assert kind_of(wards, LABELS)[0] == "drop"
    assert kind_of(wards, LABELS, c="target")[::2] == ("target", 2)
    effect = RNG.normal(size=100) * 2
    codes = wards.str[5:].astype(int)
    y = (effect[codes] + RNG.logistic(size=N) > 0).astype(int)[:, None]
    encoder = FeatureEncoder()
    frame = pd.DataFrame({"ward": wards})
    trained = encoder.fit_transform(frame, y)
    assert encoder.summary().loc[0, ["kind", "n_columns"]].tolist() == ["target", 1]
    assert np.corrcoef(trained[:, 0], effect[codes])[0, 1] > 0.5
    # Training rows are encoded without their own label, so they fit less well than new ones would.
    own = encoder.transform(frame)
    assert np.corrcoef(own[:, 0], y[:, 0])[0, 1] > np.corrcoef(trained[:, 0], y[:, 0])[0, 1]


def test_labels_may_be_missing_rare_or_weighted():
    codes = np.column_stack([np.arange(60) % 2, np.arange(60) == 0])
    codes[::7, 0] = -1
    space = ClassSpace(("a", "b"), (np.array([0, 1]), np.array([0, 1])))
    labels = LabelIndicators.of(space, codes, np.arange(60) + 1.0)
    assert labels.names == ("a=1",)
    assert np.isnan(labels.values[::7]).all()
    doubled = LabelIndicators.of(space, np.repeat(codes, 2, axis=0))
    single = LabelIndicators.of(space, codes, np.full(60, 2.0))
    columns = RNG.normal(size=(60, 3))
    # Twice the rows are more evidence than weights of two; the correlation is the same.
    ratio = (doubled.correlated(np.repeat(columns, 2, axis=0)) + doubled.needed_deviation(6)) / (
        single.correlated(columns) + single.needed_deviation(6)
    )
    np.testing.assert_allclose(ratio, np.sqrt(2))
    assert LabelIndicators.of(space, codes[:5]) is None


def test_correlations_are_those_of_numpy():
    columns = np.where(RNG.random((N, 4)) < 0.7, 0, RNG.normal(size=(N, 4)))
    expected = np.abs(np.corrcoef(columns.T, Y.T)[:4, 4:]).max(axis=1) * np.sqrt(N)
    for form in (columns, sparse.csr_array(columns)):
        np.testing.assert_allclose(LABELS.correlated(form) + LABELS.needed_deviation(8), expected)


def test_rare_values_are_one():
    column = ["a"] * 400 + ["b"] * 180 + ["c"] * 4 + ["d"] * 4 + ["e"] * 2 + ["f"] * 10
    frame = pd.DataFrame({"c": column})
    encoder = FeatureEncoder().fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["c=a", "c=b", "c=f", "c=(rare)"]
    answer = encoder.transform(pd.DataFrame({"c": ["c", "new", None, "f"]}))
    assert answer.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]
    one = FeatureEncoder().fit(pd.DataFrame({"c": ["a"] * 300 + ["b"] * 299 + ["c"]}))
    assert one.get_feature_names_out().tolist() == ["c=a", "c=b"]  # one row is no column


# -- text --------------------------------------------------------------------------------------------------


def test_terms_have_the_weights_of_scikit_learn():
    texts = pd.Series([" ".join(RNG.choice(WORDS, 6)) for _ in range(N)])
    terms = learn_terms(texts, None)
    reference = TfidfVectorizer(vocabulary=terms.terms, sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    np.testing.assert_allclose(terms.weigh(texts).toarray(), reference.fit_transform(texts).toarray())
    np.testing.assert_allclose(
        np.column_stack(terms.read(texts)), reference.transform(texts).toarray()[:, terms.chosen]
    )


def test_terms_that_go_with_a_label():
    texts = pd.Series([" ".join(RNG.choice(WORDS, 6)) for _ in range(N)])
    assert learn_terms(texts, LABELS) is None
    y = (texts.str.contains("fever") & (RNG.random(N) < 0.9)).astype(int).to_numpy()[:, None]
    space = ClassSpace.from_labels(y)
    terms = learn_terms(texts, LabelIndicators.of(space, y))
    assert "c: fever" in terms.names("c")
    assert len(terms.names("c")) < 4
    assert not np.any(terms.read(pd.Series([None, "", "nothing known"])))
    assert learn_terms(pd.Series([f"{i} a{i} b{i}" for i in range(N)]), LABELS) is None  # no term twice


# -- what users declare ------------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {
        "size": RNG.normal(size=N),
        "code": RNG.integers(4, size=N),
        "seen": pd.Series(pd.date_range("2020-01-01", periods=N, freq="D").strftime("%d.%m.%Y")),
        "place": RNG.choice(["a", "b", "c"], size=N),
        "remark": [" ".join(RNG.choice(WORDS, 5)) for _ in range(N)],
    }
)


def test_kinds_can_be_declared():
    declared = {"code": "category", "seen": "drop", "place": "target", "remark": "category", "size": "number"}
    encoder = FeatureEncoder(declared)
    encoder.fit(FRAME, Y)
    kinds = dict(zip(*encoder.summary()[["column", "kind"]].to_numpy().T, strict=True))
    assert kinds == declared
    assert encoder.categories_["code"] == (0, 1, 2, 3)
    assert clone(encoder).columns == declared
    text = FeatureEncoder({"place": "text"}).fit(FRAME)
    assert text.summary()["kind"][3] == "text"
    number = FeatureEncoder({"seen": "number", "place": "drop"})
    with pytest.raises(InputError, match="'seen' is declared as numbers, but has none"):
        number.fit(FRAME)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"plase": "drop"}, r"columns names 'plase', which is no column of X; did you mean 'place'\?"),
        ({"zzz": "drop"}, "no column of X; these are 'size', 'code'"),
        ({"place": "txt"}, "declares 'place' as 'txt'; a column can be 'number', 'date'"),
        ({"place": "date"}, "'place' is declared as dates, but their format is not known"),
        ({"place": "%d.%m.%Y"}, "'place' is declared as dates of the format '%d.%m.%Y', but has none"),
    ],
)
def test_wrong_declarations_are_named(columns, message):
    with pytest.raises(InputError, match=message):
        ChainClassifier(columns=columns).fit(FRAME, Y)


def test_declarations_need_names_and_an_effect():
    with pytest.raises(InputError, match="X has no names"):
        ChainClassifier(columns={"a": "drop"}).fit(np.ones((4, 2)), [[0, 1], [1, 0]] * 2)
    own = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    with pytest.raises(InputError, match="columns has no effect, because the pipeline of LogisticRegression"):
        ChainClassifier(own, columns={"place": "drop"}).fit(FRAME, Y)
    with pytest.raises(InputError, match="'place' is declared 'target', for which fit needs labels"):
        FeatureEncoder({"place": "target"}).fit(FRAME)


def test_numbers_can_be_declared_in_a_frame_of_numbers():
    numbers = FRAME[["size", "code"]]
    model = ChainClassifier(columns={"code": "category", "size": "drop"}).fit(numbers, Y)
    assert model.encoder_.get_feature_names_out().tolist() == ["code=0", "code=1", "code=2", "code=3"]
    assert model.predict(numbers).shape == (N, 2)


# -- in models ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ChainClassifier(),
        TreeClassifier(),
        ChainClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
        BayesNetClassifier(),
        GenerativeBayesNetClassifier(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_column_without_meaning_changes_little(model):
    rng = np.random.default_rng(1)
    X = FRAME[["size", "place"]]
    y = np.column_stack([X["size"] + rng.logistic(size=N) > 0, (X["place"] == "a") ^ (rng.random(N) < 0.2)])
    more = FRAME.drop(columns="code").assign(
        ward=[f"w{w}" for w in rng.integers(150, size=N)], country="DE", id=[f"P{i:04d}" for i in range(N)]
    )
    train, test = np.arange(400), np.arange(400, N)
    plain = clone(model).fit(X.iloc[train], y[train]).predict_joint(X.iloc[test]).log_prob(y[test])
    with pytest.warns(TupletWarning, match="'id' is left out"):
        fitted = clone(model).fit(more.iloc[train], y[train])
    joint = fitted.predict_joint(more.iloc[test])
    assert np.mean(joint.log_prob(y[test])) > np.mean(plain) - 0.05
    kinds = fitted.encoder_.summary().set_index("column")["kind"]
    assert kinds[["ward", "country", "id", "remark"]].tolist() == ["drop"] * 4
    assert kinds["seen"] == "date"


def test_polars_and_rows_in_pieces_are_the_same():
    model = ChainClassifier().fit(FRAME, Y)
    whole = model.predict_joint(FRAME).log_prob(Y)
    pieces = [model.predict_joint(FRAME.iloc[[i]]).log_prob(Y[[i]])[0] for i in range(5)]
    np.testing.assert_allclose(whole[:5], pieces)
    frame = pl.DataFrame({name: FRAME[name].tolist() for name in FRAME})
    same = ChainClassifier().fit(frame, Y).predict_joint(frame).log_prob(Y)
    np.testing.assert_allclose(same, whole)


def test_models_inside_of_models_get_what_the_outer_one_declares():
    outer = JointStackingClassifier(
        [ChainClassifier(), TreeClassifier()],
        columns={"remark": "drop", "seen": "drop"},
        cv=2,
        progress=False,
    ).fit(FRAME, Y)
    assert outer.encoder_.summary()["kind"].tolist() == ["number", "number", "drop", "category", "drop"]
    assert outer.predict(FRAME).shape == (N, 2)


@pytest.mark.parametrize(
    "model", [ChainClassifier(), BayesNetClassifier(), TreeClassifier(LogisticRegression(), random_state=0)]
)
def test_a_transformer_can_take_the_place_of_the_encoder(model):
    X = RNG.normal(size=(N, 5))
    fitted = clone(model).set_params(columns=PCA(2)).fit(X, Y)
    assert fitted.encoder_.get_feature_names_out().tolist() == ["pca0", "pca1"]
    expected = clone(model).fit(PCA(2).fit_transform(X), Y).predict_joint(PCA(2).fit(X).transform(X))
    np.testing.assert_allclose(fitted.predict_joint(X).log_prob(Y), expected.log_prob(Y), atol=1e-9)
    sparse_ones = OneHotEncoder(handle_unknown="ignore")
    words = ChainClassifier(columns=sparse_ones).fit(FRAME[["place"]], Y)
    assert words.predict(FRAME[["place"]]).shape == (N, 2)


def test_the_encoder_is_a_step_of_a_pipeline():
    y = (FRAME["size"] + RNG.logistic(size=N) > 0).astype(int)
    step = make_pipeline(FeatureEncoder({"seen": "drop"}), LogisticRegression())
    assert cross_val_score(step, FRAME, y, cv=3).mean() > 0.6
    frame = FeatureEncoder().set_output(transform="pandas").fit_transform(FRAME, y)
    assert "place=b" in frame


def test_what_was_learned_can_be_saved(tmp_path):
    rng = np.random.default_rng(2)
    wards = rng.integers(80, size=N)
    y = (rng.normal(size=80)[wards] * 2 + FRAME["remark"].str.contains("fever") * 3 - 1 > 0).astype(int)
    X = FRAME.assign(ward=np.char.add("w", wards.astype(str)), dose=FRAME["size"].map("{:.2f}".format))
    X = X.assign(place=X["place"].where(rng.random(N) > 0.01, "rare"))
    model = ChainClassifier().fit(X, np.column_stack([y, Y[:, 0]]))
    kinds = model.encoder_.summary()["kind"].tolist()
    assert kinds == ["number", "number", "date", "category", "text", "target", "number"]
    model.save(tmp_path / "m.tuplet")
    again = load_model(tmp_path / "m.tuplet")
    expected = model.predict_proba(X)
    for ours, theirs in zip(again.predict_proba(X), expected, strict=True):
        np.testing.assert_allclose(ours, theirs)
    pd.testing.assert_frame_equal(again.encoder_.summary(), model.encoder_.summary())


def test_sparse_features_stay_sparse():
    X = sparse.random_array((N, 20), density=0.1, rng=0, format="csr")
    model = ChainClassifier(LogisticRegression()).fit(X, Y)
    assert model.encoder_ is None
    assert model.predict(X).shape == (N, 2)


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean", "int64[pyarrow]", "bool[pyarrow]"])
@pytest.mark.parametrize("missing", [0, 5, N - 1])
def test_missing_values_of_nullable_columns(kind, missing):
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    values = [i % 2 for i in range(N)]
    values[missing] = None
    if missing == 5:
        values[0] = values[-1] = 1  # looks constant from both ends
    if "bool" in kind:
        values = [None if value is None else bool(value) for value in values]
    column = pd.array(values, kind)
    for frame in (pd.DataFrame({"k": column}), FRAME.assign(k=column)):
        model = IndependentClassifier().fit(frame, Y)
        assert np.isfinite(model.predict_joint(frame).log_prob(Y)).all()
