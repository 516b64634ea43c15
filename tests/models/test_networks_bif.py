"""Networks as values, their files, and rows sampled from them."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.io import read_bif, sample_mdc_problem, write_bif
from tuplet.models.generative.networks import Network, bif_text

gum = pytest.importorskip("pyagrum")

HEAD = """
// a comment with a } brace
network "two words" { property made by hand; }
/* variable ghost { } */
variable a { type discrete [ 2 ] { x, y }; property "position = (1, 2)"; }
variable b { type discrete [2] { "low one", high }; }
variable c { type discrete { u, v, w }; }
"""
ROOTS = "probability ( a ) { table 0.3, 0.7; }\nprobability ( b ) { table 0.4 0.6; }\n"
ROWS = """probability ( c | b, a ) {
  ("low one", x) 0.1, 0.5, 0.4; (high, x) 0.2, 0.5, 0.3;
  ("low one", y) 0.3, 0.1, 0.6; (high, y) 0.4, 0.1, 0.5; }
"""
FLAT = "probability ( c | b, a ) { table 0.1,0.3,0.2,0.4, 0.5,0.1,0.5,0.1, 0.4,0.6,0.3,0.5; }\n"
CHILD_FASTEST = "probability ( c b a ) { table 0.1 0.5 0.4 0.3 0.1 0.6 0.2 0.5 0.3 0.4 0.1 0.5; }\n"
DEFAULT = """probability ( c | b, a ) { default 0.4, 0.1, 0.5;
  ("low one", x) 0.1, 0.5, 0.4; (high, x) 0.2, 0.5, 0.3; ("low one", y) 0.3, 0.1, 0.6; }
"""


@st.composite
def networks(draw):
    n = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    order = rng.permutation(n)
    cards = rng.integers(1, 4, size=n)
    parents = [()] * n
    for place, v in enumerate(order):
        parents[v] = tuple(sorted(int(u) for u in order[:place] if rng.random() < 0.4))
    tables = tuple(
        rng.dirichlet(np.ones(cards[v]), size=tuple(cards[list(parents[v])].tolist())).reshape(
            *cards[list(parents[v])].tolist(), cards[v]
        )
        for v in range(n)
    )
    states = tuple(tuple(f"s {i}" if rng.random() < 0.3 else f"s{i}" for i in range(c)) for c in cards)
    names = tuple(f"v{v} (cm)" if rng.random() < 0.3 else f"v{v}" for v in range(n))
    return Network(names, states, tuple(parents), tables)


@pytest.mark.parametrize(
    "text", [ROWS, FLAT, CHILD_FASTEST, DEFAULT], ids=["rows", "flat", "other", "default"]
)
def test_all_forms_of_a_table_are_read(text):
    network = read_bif(HEAD + ROOTS + text)
    assert network.name == "two words"
    assert network.names == ("a", "b", "c")
    assert network.states[1] == ("low one", "high")
    assert network.parents == ((), (), (0, 1))
    assert network.properties == {"a": ("position = (1, 2)",)}
    expected = [[[0.1, 0.5, 0.4], [0.2, 0.5, 0.3]], [[0.3, 0.1, 0.6], [0.4, 0.1, 0.5]]]
    np.testing.assert_allclose(network.tables[2], expected, atol=1e-15)


def test_pyagrum_reads_the_same_network(tmp_path):
    path = tmp_path / "net.bif"
    text = HEAD[HEAD.index("variable a") :].replace('"low one"', "low")
    text = text.replace('property "position = (1, 2)";', "").replace("discrete {", "discrete[3] {")
    path.write_text("network n { }\n" + text + ROOTS + FLAT)
    ours, theirs = read_bif(path), gum.loadBN(str(path))
    for v, name in enumerate(ours.names):
        for codes in itertools.product(*(range(ours.cards[u]) for u in (*ours.parents[v], v))):
            at = {ours.names[u]: code for u, code in zip((*ours.parents[v], v), codes, strict=True)}
            assert theirs.cpt(name)[at] == pytest.approx(ours.tables[v][codes], abs=1e-7)


@given(networks())
@examples(25)
def test_what_is_written_is_read_to_the_last_digit(network):
    again = read_bif(bif_text(network))
    assert (again.names, again.states, again.parents) == (network.names, network.states, network.parents)
    for table, expected in zip(again.tables, network.tables, strict=True):
        np.testing.assert_array_equal(table, expected)


def test_files_may_be_compressed_and_keep_properties(tmp_path):
    network = read_bif(HEAD + ROOTS + ROWS)
    for name in ("net.bif", "net.bif.gz"):
        write_bif(network, tmp_path / name)
        assert read_bif(tmp_path / name).properties == network.properties
    packed = (tmp_path / "net.bif.gz").read_bytes()
    assert gzip.decompress(packed).decode() == (tmp_path / "net.bif").read_text()
    written = gum.loadBN(str(_plain(tmp_path, network)))
    assert written.size() == 3


def _plain(folder: Path, network: Network) -> Path:
    """Write a network with names that pyAgrum's reader takes."""
    states = tuple(tuple(s.replace(" ", "_") for s in each) for each in network.states)
    write_bif(Network(network.names, states, network.parents, network.tables), folder / "plain.bif")
    return folder / "plain.bif"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + ROOTS, "'c' has no probability block; the file is incomplete"),
        (HEAD + ROOTS + ROWS[:-3], "is not closed; the file is incomplete"),
        (
            HEAD + ROOTS + ROWS.replace("0.1, 0.5, 0.4", "0.1, 0.5, 0.5"),
            "of 'c' given a=x, b=low one sum to 1.1",
        ),
        (HEAD + ROOTS.replace("0.3, 0.7", "0.3, 0.8") + ROWS, "the probabilities of 'a' sum to 1.1"),
        (HEAD + ROOTS + ROWS.replace("(high, y) 0.4, 0.1, 0.5;", ""), "for 3 of 4 configurations"),
        (HEAD + ROOTS + ROWS.replace("0.1, 0.5, 0.4", "0.1, 0.9"), "needs 12 probabilities where 11"),
        (HEAD + ROOTS + ROWS.replace("0.1, 0.5, 0.4", "0.1, five, 0.4"), "an entry that is no number"),
        (HEAD + ROOTS + ROWS.replace("0.1, 0.5, 0.4", "-0.1, 0.7, 0.4"), "no probability"),
        (HEAD + ROOTS + ROWS.replace("(high, x)", "(medium, x)"), "for b=medium, a state that 'b' lacks"),
        (HEAD + ROOTS + ROWS.replace("(high, x)", "(high)"), "but there are 2 parents"),
        (HEAD + ROOTS + ROWS + ROWS, "two probability blocks of the variable 'c'"),
        (HEAD.replace("[ 2 ]", "[ 3 ]") + ROOTS + ROWS, "'a' should have 3 states, found 2"),
        (HEAD + ROOTS.replace("( b )", "( d )") + ROWS, "names 'd', which is no variable"),
        (HEAD + ROOTS.replace("table 0.3", "tabel 0.3") + ROWS, "cannot be read from 'tabel"),
        (HEAD + HEAD, "two variables of the name 'a'"),
        ("nothing { here }", "no variable in it"),
        (
            HEAD + ROOTS.replace("( a ) { table 0.3, 0.7", "( a | c ) { default 0.3, 0.7") + ROWS,
            "the graph has a cycle, 'a' -> 'c' -> 'a'",
        ),
    ],
)
def test_a_bad_file_is_told_in_one_sentence(text, message):
    with pytest.raises(InputError, match="read_bif: BIF text: ") as error:
        read_bif(text)
    assert message in str(error.value)
    assert str(error.value).count(". ") == 0


def test_a_file_that_is_not_there_or_broken(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_bif(tmp_path / "nothing.bif")
    (tmp_path / "broken.bif.gz").write_bytes(b"\x1f\x8bnot gzip")
    with pytest.raises(InputError, match="cannot be read"):
        read_bif(tmp_path / "broken.bif.gz")


def test_a_network_is_checked():
    table = np.array([0.5, 0.5])
    with pytest.raises(InputError, match="equally many"):
        Network(("a",), (), ((),), (table,))
    with pytest.raises(InputError, match="several variables have the name"):
        Network(("a", "a"), (("x", "y"),) * 2, ((), ()), (table, table))
    with pytest.raises(InputError, match="shape"):
        Network(("a",), (("x", "y", "z"),), ((),), (table,))
    with pytest.raises(InputError, match="name of its own"):
        Network(("a",), (("x", "x"),), ((),), (table,))
    with pytest.raises(InputError, match="there is no variable 'b'"):
        Network(("a",), (("x", "y"),), ((),), (table,)).position("b")
    with pytest.raises(InputError, match="must not be negative"):
        Network(("a",), (("x", "y"),), ((),), (table,)).sample(-1)
    with pytest.raises(InputError, match="cannot be written"):
        bif_text(Network(("a",), (('"', "y"),), ((),), (table,)))


@given(networks())
@examples(15)
def test_samples_follow_the_network(network):
    codes = network.sample(20_000, random_state=1)
    outcomes = np.array(list(itertools.product(*map(range, network.cards))))
    expected = np.exp(network.log_prob(outcomes))
    np.testing.assert_allclose(expected.sum(), 1, atol=1e-9)
    place = np.ravel_multi_index(codes.T, network.cards)
    found = np.bincount(place, minlength=len(outcomes)) / len(codes)
    # Six standard deviations of a share, and six rows of outcomes that are too rare to have a normal one.
    assert (np.abs(found - expected) <= 6 * (np.sqrt(expected / len(codes)) + 1 / len(codes))).all()


def test_a_problem_has_a_third_of_the_variables_as_classes():
    network = read_bif(HEAD + ROOTS + ROWS)
    X, Y = sample_mdc_problem(network, 50, random_state=3)
    assert (X.shape, Y.shape) == ((50, 2), (50, 1))
    assert sorted([*X, *Y]) == ["a", "b", "c"]
    again = sample_mdc_problem(network, 50, random_state=3)
    pd.testing.assert_frame_equal(X, again[0])
    pd.testing.assert_frame_equal(Y, again[1])
    X, Y = sample_mdc_problem(network, 50, random_state=3, classes=["c", "a"])
    assert list(Y) == ["c", "a"]
    assert Y["c"].cat.categories.tolist() == ["u", "v", "w"]
    assert sample_mdc_problem(network, 5, 0, classes=2)[1].shape == (5, 2)


def test_classes_that_cannot_be():
    network = read_bif(HEAD + ROOTS + ROWS)
    for classes in (0, 3, ["a", "a"], ["a", "b", "c"], []):
        with pytest.raises(InputError, match="sample_mdc_problem"):
            sample_mdc_problem(network, 5, classes=classes)
    with pytest.raises(InputError, match="no variable 'z'"):
        sample_mdc_problem(network, 5, classes=["z"])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n", "n_parameters", "n_classes"), [("andes", 223, 1157, 74), ("munin1", 186, 15622, 62)]
)
def test_networks_of_the_paper(name, n, n_parameters, n_classes):
    # Numbers of nodes and parameters: Bayesian Network Repository; of classes: table 1 of the paper.
    import os

    path = Path(os.environ.get("TUPLET_DATA", "")) / f"{name}.bif.gz"
    if not path.is_file():
        pytest.skip("needs TUPLET_DATA")
    network = read_bif(path)
    assert (network.n_variables, network.n_parameters) == (n, n_parameters)
    assert sample_mdc_problem(network, 20, random_state=0)[1].shape == (20, n_classes)
