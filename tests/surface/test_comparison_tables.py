"""Printed forms of comparisons: escapes, ties, footnotes, and a page that stands alone."""

import re
import sys
from html.parser import HTMLParser

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuplet.core.exceptions import InputError, MissingDependencyError
from tuplet.surface.comparisons import latex_table, markdown_table, text_table
from tuplet.surface.comparisons.tables import display_width, escape_latex
from tuplet.surface.pages import Picture, PlainTable, ScoreTable, Section, html_page
from tuplet.surface.pages.grid import score_grid

mpl.use("Agg")

SETS, MODELS = ["emotions", "scene", "yeast"], ["chain", "powerset", "prior"]
MEAN = pd.DataFrame(
    [[0.3104, 0.3096, 0.12], [0.7, np.nan, 0.2], [np.nan, np.nan, -0.00001]], index=SETS, columns=MODELS
)
STD = 0.1 * MEAN.abs()
RANKS = pd.Series({"prior": 2.5, "chain": 1.204, "powerset": 1.196})
SLOW, BROKEN = "over time: more than 60 s", "ValueError: 50% of a_b & <i>c</i> | `d`"
MISSING = pd.DataFrame({"powerset": [None, SLOW, BROKEN], "chain": ["", "", BROKEN]}, index=SETS)
HOSTILE = [
    "[a]",
    "*b*",
    "<script>alert(1)</script>",
    "q\"uo'te",
    r"\input{x}",
    "a--b",
    "x_1|y",
    "~^#$%&{}",
    "数据",
]


def best_of(**options):
    """Names of the models that are marked, for each data set."""
    grid = score_grid(ScoreTable(**options))
    return [[grid.models[j] for j, cell in enumerate(line) if cell.best] for line in grid.lines]


# -- cells -------------------------------------------------------------------------------------------------


def test_all_that_round_to_the_best_are_marked():
    assert best_of(mean=MEAN, digits=4) == [["chain"], ["chain"], ["prior"]]
    assert best_of(mean=MEAN) == [["chain", "powerset"], ["chain"], ["prior"]]
    assert best_of(mean=MEAN, digits=2, greater_is_better=False) == [["prior"], ["prior"], ["prior"]]
    assert best_of(mean=MEAN[["chain"]]) == [[], [], []]  # nothing to compare with


@given(
    values=st.lists(st.one_of(st.none(), st.floats(-9, 9)), min_size=2, max_size=6),
    digits=st.integers(0, 4),
    greater=st.booleans(),
)
def test_nothing_in_a_line_is_printed_better_than_the_marked(values, digits, greater):
    mean = pd.DataFrame([values], columns=[f"m{i}" for i in range(len(values))], dtype=float)
    (cells,) = score_grid(ScoreTable(mean, digits=digits, greater_is_better=greater)).lines
    printed = [float(cell.text) if cell.is_number else None for cell in cells]
    known = [number for number in printed if number is not None]
    best = (max if greater else min)(known, default=None)
    assert [cell.best for cell in cells] == [number is not None and number == best for number in printed]


def test_signs_letters_and_numbers_that_are_not_whole_truths():
    mean = MEAN.copy()
    missing = MISSING.copy()
    missing.loc["emotions", "chain"] = "fold 2 failed"
    grid = score_grid(ScoreTable(mean, missing=missing))
    texts = [[cell.text for cell in line] for line in grid.lines]
    assert texts == [
        ["0.310", "0.310", "0.120"],
        ["0.700", "over time", "0.200"],
        ["failed", "failed", "0.000"],
    ]
    assert grid.notes == {"a": "fold 2 failed", "b": SLOW, "c": BROKEN}
    assert [cell.note for cell in grid.lines[2]] == ["c", "c", ""]
    assert [cell.best for cell in grid.lines[0]] == [False, True, False]  # the first lacks a fold


def test_infinite_scores_lose_and_have_no_deviation():
    mean = pd.DataFrame([[-np.inf, -2.0]], index=["s"], columns=["a", "b"])
    (line,) = score_grid(ScoreTable(mean, std=mean.abs())).lines
    assert [(cell.text, cell.spread, cell.best) for cell in line] == [
        ("-∞", "", False),
        ("-2.000", "2.000", True),
    ]


def test_many_reasons_have_different_letters():
    names = [f"s{i}" for i in range(60)]
    mean = pd.DataFrame({"a": np.nan, "b": 1.0}, index=names)
    notes = score_grid(ScoreTable(mean, missing=pd.DataFrame({"a": names}, index=names))).notes
    assert list(notes.values()) == names
    assert [*notes][24:28] == ["y", "z", "aa", "bb"]


def test_tables_that_cannot_be_printed():
    with pytest.raises(InputError, match=r"`missing` names \['neither'\]"):
        markdown_table(MEAN, missing=pd.DataFrame({"neither": ["x"]}, index=["scene"]))
    with pytest.raises(InputError, match=r"`ranks` names \['neither'\]"):
        text_table(MEAN, ranks=pd.Series({"neither": 1.0}))
    with pytest.raises(InputError, match=r"different names for its models; \['a'\] occur twice"):
        latex_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InputError, match="digits >= 0, found -1"):
        markdown_table(MEAN, digits=-1)
    for function in (markdown_table, latex_table, text_table):
        with pytest.raises(InputError, match=f"{function.__name__}: best must be one of"):
            function(MEAN, best="loud")


# -- Markdown ----------------------------------------------------------------------------------------------


def markdown_cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_markdown():
    lines = markdown_table(MEAN, STD, ranks=RANKS, missing=MISSING).split("\n")
    assert markdown_cells(lines[0]) == ["data set", *MODELS]
    assert re.fullmatch(r"\|:-+\|-+:\|-+:\|-+:\|", lines[1])
    assert markdown_cells(lines[2]) == ["emotions", "**0.310** ± 0.031", "**0.310** ± 0.031", "0.120 ± 0.012"]
    assert markdown_cells(lines[3])[2] == "over time <sup>a</sup>"
    assert markdown_cells(lines[5]) == ["average rank", "**1.20**", "**1.20**", "2.50"]
    assert lines[6:] == [
        "",
        f"- <sup>a</sup> {SLOW}",
        r"- <sup>b</sup> ValueError: 50% of a_b \& \<i\>c\</i\> \| \`d\`",
    ]
    assert len({display_width(line) for line in lines[:6]}) == 1


def test_hostile_names_in_markdown():
    mean = pd.DataFrame(0.5, index=HOSTILE, columns=HOSTILE)
    lines = markdown_table(mean, best="italic").split("\n")
    assert all(len(markdown_cells(line)) == len(HOSTILE) + 1 for line in lines)
    assert len({display_width(line) for line in lines}) == 1
    shown = [re.sub(r"\\([^\w\s])", r"\1", cell) for cell in markdown_cells(lines[0])[1:]]
    assert shown == HOSTILE
    assert markdown_cells(lines[2])[1] == "*0.500*"


# -- text --------------------------------------------------------------------------------------------------


def test_text_columns_are_straight():
    lines = text_table(MEAN, STD, ranks=RANKS, missing=MISSING, width=100).split("\n")
    assert lines[0].split() == ["data", "set", *MODELS]
    assert {line.index("±") for line in lines[2:4]} == {lines[2].index("±")}
    assert lines[2].count("*") == 2
    assert lines[6].startswith("average rank")
    assert lines[6].count("*") == 2
    assert "over time [a]" in lines[3]
    assert lines[8:] == ["* best of its line", f"[a] {SLOW}", f"[b] {BROKEN}"]
    assert not any(line.endswith(" ") for line in lines)


@given(width=st.integers(1, 120), n_models=st.integers(1, 12))
def test_text_is_never_broken_within_a_number(width, n_models):
    models = [f"model number {i}" for i in range(n_models)]
    mean = pd.DataFrame(np.arange(3.0 * n_models).reshape(3, -1), index=SETS, columns=models)
    table = text_table(mean, mean, width=width)
    blocks = table.split("\n\n")[: -1 if n_models > 1 else None]
    pairs = [pair for block in blocks for pair in re.findall(r"(\d+\.\d{3}) ± +(\d+\.\d{3})", block)]
    assert sorted(float(number) for number, _ in pairs) == sorted(mean.to_numpy().ravel())
    for block in blocks:
        lines = block.split("\n")
        assert [line.split()[0] for line in lines[2:]] == SETS
        columns = lines[0].count("model number")
        assert columns == 1 or max(map(len, lines)) <= width


def test_wide_letters_and_long_names_in_text():
    mean = pd.DataFrame(
        {"a": [0.5, 0.25], "b": [0.1, 0.2]}, index=["数据集", "a name that is much too long " * 3]
    )
    lines = text_table(mean, best="none", width=80).split("\n")
    assert len({display_width(line) for line in lines}) == 1
    assert "…" in lines[3]
    assert "*" not in "".join(lines)


# -- LaTeX -------------------------------------------------------------------------------------------------


def bare(latex):
    """What is left of LaTeX code without escaped characters."""
    return re.sub(r"\\[\\&%$#_{}]", "", latex)


def check_latex(code, n_columns):
    """Check what a compiler would stumble over: braces, dollars, columns, arguments of line ends."""
    depth = 0
    for char in re.sub(r"\\[{}]", "", code):
        depth += {"{": 1, "}": -1}.get(char, 0)
        assert depth >= 0
    assert depth == 0
    begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", code) for word in ("begin", "end"))
    assert begun == ended[::-1]
    rows = [line for line in code.split("\n") if line.endswith(r"\\")]
    assert rows
    for row in rows:
        cells = re.split(r"(?<!\\)&", row.removesuffix(r"\\"))
        assert len(cells) == n_columns
        assert all(bare(cell).count("$") % 2 == 0 for cell in cells)
        assert not row.lstrip().startswith(("[", "*"))  # an argument of the line end before
        assert not re.search(r"[%#~]", bare(row))
    outside_math = re.sub(r"\$[^$]*\$", "", bare("\n".join(rows)))
    assert not re.search(r"[_^<>|\"]", outside_math)


def test_latex():
    marks = pd.DataFrame({"prior": ["•"]}, index=["emotions"])
    code = latex_table(
        MEAN, STD, ranks=RANKS, missing=MISSING, marks=marks, caption="50% of a_b", label="tab:one"
    )
    check_latex(code, 4)
    lines = code.split("\n")
    assert lines[:4] == [r"\begin{table}[tbp]", r"\centering", r"\caption{50\% of a\_b}", r"\label{tab:one}"]
    assert lines[4:6] == [r"\begin{tabular}{lrrr}", r"\toprule"]
    assert lines[8] == (
        r"emotions & $\mathbf{0.310} \pm 0.031$ & $\mathbf{0.310} \pm 0.031$ & $0.120 \pm 0.012$ $\bullet$ \\"
    )
    assert lines[9].split(" & ")[2] == r"over time\textsuperscript{a}"
    assert lines[11:13] == [r"\midrule", r"average rank & $\mathbf{1.20}$ & $\mathbf{1.20}$ & $2.50$ \\"]
    assert (
        r"\textsuperscript{b} ValueError: 50\% of a\_b \& \textless{}i\textgreater{}c"
        r"\textless{}/i\textgreater{} \textbar{} \textasciigrave{}d\textasciigrave{}\par"
    ) in lines


def test_hostile_names_in_latex():
    check_latex(latex_table(pd.DataFrame(-0.5, index=HOSTILE, columns=HOSTILE)), len(HOSTILE) + 1)
    assert escape_latex("a---b") == "a-{}-{}-b"
    assert escape_latex(r"\input{x}") == r"\textbackslash{}input\{x\}"


@given(st.text(alphabet=r"\{}&%$#_~^<>|`\"[]*-ab ", min_size=1, max_size=12))
def test_any_name_survives_latex(name):
    check_latex(latex_table(pd.DataFrame({name: [1.0], "b" + name: [2.0]}, index=[name])), 3)


# -- HTML --------------------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """Tags that are open or empty, ids, links and texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.texts, self.urls = [], [], [], [], [], []
        self.cells = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        for name in ("href", "src", "clip-path"):
            value = attributes.get(name) or ""
            (self.links if "#" in value else self.urls).extend([value] if value else [])
        if tag == "td":
            self.cells.append(attributes | {"text": ""})

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if "td" in self.open:
            self.cells[-1]["text"] += data


def simple_page(mean, **options):
    return html_page("T", [Section("H", tables=[ScoreTable(mean, **options)])])


def test_page_stands_alone_and_is_well_formed():
    _, ax = plt.subplots()
    ax.plot([1, 2], [3, 4], "o", color="black", label="a -- $x$ <b>")
    ax.legend()
    sections = [
        Section(
            "First & last", "One.\n\nTwo <b>.", [ScoreTable(MEAN, STD, RANKS, MISSING)], [Picture(ax, "P")]
        ),
        Section("Second", tables=[MEAN, PlainTable(MEAN, "plain")], figures=[ax.figure, ax]),
    ]
    page = html_page("A <title>", sections, text="Intro.")
    plt.close("all")
    outline = Outline(page)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert not outline.urls
    targets = {re.sub(r"^(url\()?#|\)$", "", link) for link in outline.links}
    assert targets <= set(outline.ids)
    assert not re.search(r"https?://(?!www\.w3\.org)|@import|<link|src=", page)
    assert outline.tags.count("svg") == 3
    assert outline.tags.count("table") == 3
    assert outline.tags.count("p") == 3 + 2  # of text and of footnotes
    assert "#000000" not in page.split("</style>")[1]
    assert "prefers-color-scheme: dark" in page


def test_the_same_results_give_the_same_page():
    def build():
        _, ax = plt.subplots()
        ax.plot([1, 2], [3, 4], clip_on=True)
        page = html_page("T", [Section("H", figures=[ax])])
        plt.close("all")
        return page

    assert build() == build()


def test_hostile_names_in_html():
    mean = pd.DataFrame(0.5, index=HOSTILE, columns=HOSTILE)
    reasons = pd.DataFrame({HOSTILE[2]: ["</td><script>alert(2)</script>"]}, index=[HOSTILE[2]])
    page = simple_page(mean, missing=reasons, caption='"><script>', corner="<corner>")
    outline = Outline(page)
    assert outline.tags.count("script") == 1
    assert all(outline.texts.count(name) == 2 for name in HOSTILE)
    assert "</td><script>alert(2)</script>" in "".join(outline.texts)


def test_cells_carry_numbers_for_sorting():
    mean = MEAN.copy()
    mean.loc["scene", "prior"] = -np.inf
    cells = Outline(simple_page(mean, std=STD, ranks=RANKS, missing=MISSING)).cells
    assert cells[0] == {"class": "best", "data-value": "0.3104", "text": "0.310 ± 0.031"}
    assert cells[4] == {"class": "sign", "text": "over timea"}
    assert cells[5]["data-value"] == "-Infinity"
    assert [cell["text"] for cell in cells[-3:]] == ["1.20", "1.20", "2.50"]


@pytest.mark.parametrize(("greater", "first"), [(True, "descending"), (False, "ascending")])
def test_the_first_click_brings_the_best_up(greater, first):
    page = simple_page(MEAN, greater_is_better=greater)
    assert page.count(f'data-first="{first}"><span>') >= len(MODELS)
    assert ("higher" if greater else "lower") + " is better" in page


def test_plain_tables_show_frames_as_they_are():
    frame = pd.DataFrame(
        {"p": [0.25, 3e-9, np.nan], "n": [593, 7, 0], "kind": ["a<b", None, "c"], "ok": [True, False, True]},
        index=pd.Index(SETS, name="set"),
    )
    cells = Outline(html_page("T", [Section("H", tables=[PlainTable(frame)])])).cells
    assert [cell["text"] for cell in cells] == [
        *("0.250", "593", "a<b", "True"),
        *("3.0e-09", "7", "—", "False"),
        *("—", "0", "c", "True"),
    ]
    assert [cell.get("data-value") for cell in cells[4:6]] == ["3e-09", "7.0"]


def test_pictures_that_are_none(monkeypatch):
    with pytest.raises(InputError, match="must be a matplotlib Figure or Axes, found str"):
        html_page("T", [Section("H", figures=["<svg>"])])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install tuplet\[plots\]"):
        html_page("T", [Section("H", figures=["<svg>"])])
    assert "<h2>H</h2>" in html_page("T", [Section("H")])
