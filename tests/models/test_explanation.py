"""A Bayesian network of one row: tables, strengths of edges, text, HTML, picture."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from draws import examples
from tuplet.core.exceptions import ApproximationWarning, InputError, NoSuchRowError
from tuplet.joint import FactorGraph
from tuplet.joint.inference import BeliefPropagation, Exact, Factor
from tuplet.models.explanation import LocalNetwork
from tuplet.space import ClassSpace
from tuplet.testing import enumerate_joint

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def random_network(rng, cards, n=2, zeros=0.0, engine=None, max_parents=3):
    """A network over variables in a random order, with random conditional tables for n rows."""
    m = len(cards)
    order, parents = rng.permutation(m), [()] * m
    for place, v in enumerate(order):
        size = rng.integers(0, min(place, max_parents) + 1)
        parents[v] = tuple(sorted(int(u) for u in rng.choice(order[:place], size, replace=False)))
    factors = []
    for child, given_ in enumerate(parents):
        table = rng.gamma(0.7, size=(*(cards[v] for v in given_), cards[child], n)) + 1e-3
        table[..., 1:, :][rng.random(table[..., 1:, :].shape) < zeros] = 0.0
        with np.errstate(divide="ignore"):
            factors.append(Factor((*given_, child), np.log(table / table.sum(axis=-2, keepdims=True))))
    space = ClassSpace(
        tuple(f"v{j}" for j in range(m)),
        tuple(np.array([f"{j}{'abcd'[c]}" for c in range(k)]) for j, k in enumerate(cards)),
    )
    joint = FactorGraph(cards, factors, n, engine=engine or Exact(), log_normalizer=0.0)
    return joint, tuple(parents), space


def table_of(joint, row):
    """All outcomes of a row as one array with an axis for each variable."""
    return enumerate_joint(joint)[row].reshape(joint.cards)


def entropy_of(table, variables):
    others = tuple(v for v in range(table.ndim) if v not in variables)
    return entropy(table.sum(axis=others).ravel())


def information(table, one, other, rest):
    """I(one; other | rest), as a sum of four entropies."""
    return (
        entropy_of(table, {one, *rest})
        + entropy_of(table, {other, *rest})
        - entropy_of(table, {one, other, *rest})
        - entropy_of(table, set(rest))
    )


cards_of = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)


@examples(25)
@given(cards_of, st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3]))
def test_everything_agrees_with_enumeration(cards, seed, zeros):
    joint, parents, space = random_network(np.random.default_rng(seed), cards, zeros=zeros)
    network = LocalNetwork(joint, parents, space, row=1)
    truth = table_of(joint, 1)
    names = list(space.names)

    frame = network.edges()
    assert sorted(zip(frame["parent"], frame["child"], strict=True)) == sorted(
        (names[p], names[c]) for c, given_ in enumerate(parents) for p in given_
    )
    assert frame["strength"].is_monotonic_decreasing
    for parent, child, strength in frame.itertuples(index=False):
        one, other = names.index(parent), names.index(child)
        rest = set(parents[other]) - {one}
        # A sum of four entropies of up to a few nats each has that many digits.
        assert strength == pytest.approx(information(truth, one, other, rest), abs=1e-12)
        assert strength >= 0

    labels, chances = network._labels
    for j, (label, chance) in enumerate(zip(labels, chances, strict=True)):
        alone = truth.sum(axis=tuple(v for v in range(len(cards)) if v != j))
        assert chance == pytest.approx(alone.max(), abs=1e-12)
        assert alone[list(space.categories[j]).index(label)] == pytest.approx(alone.max(), abs=1e-12)
    for j, table in enumerate(network.tables().values()):
        family = truth.sum(axis=tuple(v for v in range(len(cards)) if v not in (*parents[j], j)))
        # Axes of what is left are in the order of the variables; the child goes last.
        family = np.moveaxis(family, sorted((*parents[j], j)).index(j), -1).reshape(-1, cards[j])
        possible = family.sum(axis=1) > 0
        expected = family[possible] / family[possible].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(table.to_numpy()[possible], expected, atol=1e-10)


def test_tables_speak_in_labels():
    space = ClassSpace(
        ("season", "rain", "wet"),
        (np.array(["summer", "winter"]), np.array([False, True]), np.array([3, 5, 9])),
    )
    rng = np.random.default_rng(0)
    wet = rng.dirichlet(np.ones(3), size=(2, 2))
    factors = [
        Factor((0,), np.log([[0.4], [0.6]])),
        Factor((0, 1), np.log([[0.9, 0.1], [0.5, 0.5]])[..., None]),
        Factor((0, 1, 2), np.log(wet)[..., None]),
    ]
    # The order of the factors is nothing to rely on, and a table may be shared by all rows.
    joint = FactorGraph((2, 2, 3), factors[::-1], n=4)
    tables = LocalNetwork(joint, ((), (0,), (0, 1)), space, row=-1).tables()
    assert list(tables) == ["season", "rain", "wet"]
    assert tables["season"].shape == (1, 2)
    pd.testing.assert_index_equal(tables["rain"].index, pd.Index(["summer", "winter"], name="season"))
    assert tables["rain"].loc["summer", True] == pytest.approx(0.1)
    assert tables["wet"].index.names == ["season", "rain"]
    assert tables["wet"].columns.tolist() == [3, 5, 9]
    np.testing.assert_allclose(tables["wet"].loc[("winter", False)], wet[1, 0])


def test_an_edge_that_is_idle_in_a_row_has_no_strength():
    copy = np.log([[0.99, 0.01], [0.01, 0.99]])
    deaf = np.log([[0.8, 0.2], [0.8, 0.2]])
    certain = np.array([[0.5, 1.0, 0.5], [0.5, 0.0, 0.5]])
    with np.errstate(divide="ignore"):
        parent = Factor((0,), np.log(certain))
    joint = FactorGraph((2, 2), [parent, Factor((0, 1), np.stack([copy, copy, deaf], axis=-1))], n=3)
    space = ClassSpace(("a", "b"), (["x", "y"],) * 2)
    strength = [LocalNetwork(joint, ((), (0,)), space, row).edges()["strength"][0] for row in range(3)]
    assert strength[0] == pytest.approx(np.log(2) - entropy([0.99, 0.01]))
    assert strength[1] == pytest.approx(0, abs=1e-15)
    assert strength[2] == pytest.approx(0, abs=1e-15)


def test_estimating_engines_warn_and_are_right_on_forests():
    rng = np.random.default_rng(3)
    exact, parents, space = random_network(rng, (2, 3, 2, 4), max_parents=1)
    assert any(parents)
    loose = FactorGraph(exact.cards, exact.factors, 2, engine=BeliefPropagation(), log_normalizer=0.0)
    network = LocalNetwork(loose, parents, space, row=1)
    with pytest.warns(ApproximationWarning, match="edges: probabilities are approximations"):
        frame = network.edges()
    expected = LocalNetwork(exact, parents, space, row=1).edges()
    pd.testing.assert_frame_equal(frame, expected, atol=1e-8)
    assert "approximations without a guarantee" in repr(network)


# -- for people --------------------------------------------------------------------------------------------


def test_repr_tells_label_probability_and_reasons():
    joint, parents, space = random_network(np.random.default_rng(4), (2, 3, 2, 2))
    network = LocalNetwork(joint, parents, space, row=1)
    lines = repr(network).splitlines()
    n_edges = sum(map(len, parents))
    assert lines[0] == f"LocalNetwork of row 1: 4 class variables, {n_edges} edges"
    assert len(lines) == 2 + 4
    strengths = {(p, c): s for p, c, s in network.edges().itertuples(index=False)}
    for j, line in enumerate(lines[2:]):
        marginal = joint[1].marginals()[j][0]
        assert line.split()[0] == space.names[j]
        assert f"{space.categories[j][marginal.argmax()]} " in line
        assert line.endswith(f" {marginal.max():.3f}")
        for parent in parents[j]:
            name = space.names[parent]
            assert f"{name} {strengths[name, space.names[j]]:.2g}" in line


def test_a_repr_of_many_variables_stops_and_one_that_is_too_wide_says_so():
    joint, parents, space = random_network(np.random.default_rng(5), (2,) * 30, n=1)
    assert repr(LocalNetwork(joint, parents, space)).splitlines()[-1] == "... 10 more"
    narrow = FactorGraph(joint.cards, joint.factors, 1, engine=Exact(max_table=2), log_normalizer=0.0)
    text = repr(LocalNetwork(narrow, parents, space))
    assert "max_table=2" in text
    assert "max_table=2" in LocalNetwork(narrow, parents, space)._repr_html_()


def test_html_is_escaped_and_has_bars():
    space = ClassSpace(("<script>", "b"), (["<b>", "&"], [0, 1]))
    factors = [
        Factor((0,), np.log([[0.75], [0.25]])),
        Factor((0, 1), np.log([[0.5, 0.5], [0.1, 0.9]])[..., None]),
    ]
    html = LocalNetwork(FactorGraph((2, 2), factors, 1), ((), (0,)), space)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<b>" not in html
    assert html.count("width:75.0%") == 1
    assert html.count("width:60.0%") == 1  # 0.75 * 0.5 + 0.25 * 0.9


def test_the_picture_shows_labels_and_strengths():
    joint, parents, space = random_network(np.random.default_rng(6), (2, 3, 2, 2), n=3)
    network = LocalNetwork(joint, parents, space, row=2)
    ax = network.plot()
    texts = [text.get_text() for text in ax.texts]
    marginals = [table[0] for table in joint[2].marginals()]
    for j, table in enumerate(marginals):
        assert space.names[j] in texts
        assert f"{space.categories[j][table.argmax()]} {table.max():.3f}" in texts
    assert all(f"{value:.2g}" in texts for value in network.edges()["strength"])
    assert "row 2" in ax.get_title(loc="left")
    _, mine = plt.subplots()
    assert network.plot(ax=mine) is mine


# -- what cannot be explained ------------------------------------------------------------------------------


def test_errors():
    joint, parents, space = random_network(np.random.default_rng(4), (2, 3, 2, 2))
    assert any(parents)
    with pytest.raises(NoSuchRowError, match="LocalNetwork: there are 2 rows"):
        LocalNetwork(joint, parents, space, row=2)
    with pytest.raises(InputError, match="one row can be explained at a time, found 2"):
        LocalNetwork(joint, parents, space, row=[0, 1])
