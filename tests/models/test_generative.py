"""Generative Bayesian network classifiers, against pyAgrum and against enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from draws import examples
from tuplet.core.exceptions import InputError, IntractableError
from tuplet.io import load_penguins, sample_mdc_problem
from tuplet.joint.inference.plan import make_plan
from tuplet.models import GenerativeBayesNetClassifier, InformationGainFilter
from tuplet.models.generative.networks import Network, ThreePartGraph
from tuplet.models.generative.tables import count_tables, gap_factors, touched_families
from tuplet.space.features.discrete import DiscreteColumns, learn_bins

gum = pytest.importorskip("pyagrum")

STRUCTURES = ["cb-obs", "tree-tree", "polytree-polytree", "pure-filter", "small-tw"]
structures = pytest.mark.parametrize("structure", STRUCTURES)


def random_network(seed, d=4, m=5, most=3, tops=3):
    """A network of d classes and m features, with states s0, s1, ..."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 2 + tops, size=d + m)
    parents, tables = [], []
    for v in range(d + m):
        n_parents = min(v, int(rng.integers(0, most + 1)))
        above = tuple(sorted(rng.choice(v, size=n_parents, replace=False).tolist())) if v else ()
        parents.append(above)
        shape = tuple(cards[list(above)].tolist())
        tables.append(rng.dirichlet(np.ones(cards[v]), size=shape or None).reshape(*shape, cards[v]))
    names = tuple([f"C{c}" for c in range(d)] + [f"F{f}" for f in range(m)])
    states = tuple(tuple(f"s{i}" for i in range(card)) for card in cards)
    return Network(names, states, tuple(parents), tuple(tables)), d


def frame_of(network, codes, d):
    columns = {
        network.names[d + f]: [None if code < 0 else network.states[d + f][code] for code in codes[:, f]]
        for f in range(codes.shape[1])
    }
    return pd.DataFrame(columns, dtype=object)


def drawn(network, d, n, gaps, seed):
    """Features of n rows of a network, some of them missing."""
    rng = np.random.default_rng(seed)
    codes = network.sample(n, rng)[:, d:]
    return np.where(rng.random(codes.shape) < gaps, -1, codes)


def gum_network(network):
    theirs = gum.BayesNet()
    for name, states in zip(network.names, network.states, strict=True):
        theirs.add(gum.LabelizedVariable(name, name, list(states)))
    for child, members in enumerate(network.parents):
        for p in members:
            theirs.addArc(network.names[p], network.names[child])
    for v, members in enumerate(network.parents):
        for codes in itertools.product(*(range(network.cards[p]) for p in members)):
            at = {network.names[p]: code for p, code in zip(members, codes, strict=True)}
            theirs.cpt(network.names[v])[at] = network.tables[v][codes].tolist()
    return theirs


def gum_marginals(network, d, codes):
    """Marginals (n, sum of cards) of the classes, row by row."""
    engine = gum.LazyPropagation(gum_network(network))
    rows = []
    for row in codes:
        engine.setEvidence({network.names[d + f]: int(code) for f, code in enumerate(row) if code >= 0})
        engine.makeInference()
        rows.append(np.concatenate([engine.posterior(network.names[c]).tolist() for c in range(d)]))
    return np.array(rows)


def enumerated(network, d, row):
    """Probabilities of all outcomes of the classes of one row: everything is summed that is not seen."""
    cards = network.cards
    values = [range(card) for card in cards[:d]] + [
        range(card) if code < 0 else [code] for card, code in zip(cards[d:], row, strict=True)
    ]
    outcomes = np.array(list(itertools.product(*values)))
    log_prob = network.log_prob(outcomes)
    shape = cards[:d]
    place = np.ravel_multi_index(outcomes[:, :d].T, shape)
    table = np.array([logsumexp(log_prob[place == i]) for i in range(np.prod(shape))])
    return np.exp(table - logsumexp(table)).reshape(shape)


# -- prediction --------------------------------------------------------------------------------------------


@given(st.integers(0, 2**20), st.sampled_from([0.0, 0.3, 1.0]))
@examples(25)
def test_marginals_are_those_of_pyagrum(seed, gaps):
    network, d = random_network(seed)
    codes = drawn(network, d, 5, gaps, seed)
    model = GenerativeBayesNetClassifier.from_bif(network, classes=network.names[:d])
    found = np.hstack(model.predict_proba(frame_of(network, codes, d)))
    np.testing.assert_allclose(found, gum_marginals(network, d, codes), atol=1e-10)


@given(st.integers(0, 2**20), st.sampled_from([0.0, 0.4]))
@examples(25)
def test_the_mode_and_all_outcomes_are_those_of_enumeration(seed, gaps):
    network, d = random_network(seed, d=3, m=4)
    codes = drawn(network, d, 4, gaps, seed)
    model = GenerativeBayesNetClassifier.from_bif(network, classes=network.names[:d])
    joint = model.predict_joint(frame_of(network, codes, d)).distribution
    best = joint.mode()
    assert best.proven.all()
    for i, row in enumerate(codes):
        table = enumerated(network, d, row)
        outcomes = np.array(list(np.ndindex(table.shape)))
        log_prob = joint[i].log_prob(outcomes[:, None])[:, 0]
        np.testing.assert_allclose(np.exp(log_prob), table.ravel(), atol=1e-10)
        assert table[tuple(best.codes[i])] == pytest.approx(table.max(), abs=1e-12)


@structures
def test_a_learned_model_agrees_with_pyagrum(structure):
    network, d = random_network(3, d=5, m=6)
    codes = network.sample(400, random_state=1)
    X = frame_of(network, codes[:, d:], d)
    Y = frame_of(network, codes[:, :d], 0).set_axis(network.names[:d], axis=1)
    model = GenerativeBayesNetClassifier(structure, random_state=0).fit(X, Y)
    learned = model.to_network()
    rows = drawn(network, d, 12, 0.2, 5)
    # Learned states are those that occur, sorted: names say which code is which.
    again = np.array(
        [
            [
                -1 if c < 0 else learned.states[d + f].index(network.states[d + f][c])
                for f, c in enumerate(row)
            ]
            for row in rows
        ]
    )
    graph = model.predict_joint(frame_of(network, rows, d)).distribution.components[0]  # without a pseudo-row
    np.testing.assert_allclose(np.hstack(graph.marginals()), gum_marginals(learned, d, again), atol=1e-10)


def test_many_rows_with_random_gaps_agree_with_one_at_a_time():
    network, d = random_network(11, d=4, m=7)
    codes = drawn(network, d, 300, 0.3, 0)
    model = GenerativeBayesNetClassifier.from_bif(network, classes=network.names[:d])
    X = frame_of(network, codes, d)
    together = np.hstack(model.predict_proba(X))
    alone = np.vstack([np.hstack(model.predict_proba(X.iloc[[i]])) for i in range(0, 300, 10)])
    np.testing.assert_allclose(together[::10], alone, atol=1e-12)


def test_the_class_graph_is_planned_once():
    X, Y = load_penguins(return_X_y=True)
    model = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    complete = X[X.notna().all(axis=1)]
    model.predict(complete[:5])
    model.predict(complete[:5], loss="subset")
    before = make_plan.cache_info().misses
    model.predict(complete)
    model.predict(complete[:1], loss="subset")
    assert make_plan.cache_info().misses == before


def test_a_missing_feature_that_is_joined_to_too_much_is_told_by_name():
    # The first feature is above eight others, each below a class of its own: summed out, it joins them all.
    d = 8
    parents = [()] * d + [()] + [(c, d) for c in range(d)]
    graph = ThreePartGraph(tuple(parents), d)
    cards = [8] * d + [2] + [1] * d
    tables = [np.zeros([cards[u] for u in (*members, v)]) for v, members in enumerate(parents)]
    codes = np.array([[-1] + [0] * d])
    assert touched_families(graph, codes < 0).all()
    with pytest.raises(IntractableError, match="Summing out the missing feature 'F0'"):
        gap_factors(graph, tables, cards, codes, [f"F{f}" for f in range(d + 1)])


# -- learning ----------------------------------------------------------------------------------------------


def test_tables_are_smoothed_shares_of_complete_rows():
    codes = np.array([[0, 0], [0, 1], [0, 1], [1, -1], [-1, 0], [1, 0]])
    tables = count_tables(((), (0,)), codes, (2, 3), ("a", "b"), 0.5)
    np.testing.assert_allclose(tables[0], [(3 + 0.5) / 6, (2 + 0.5) / 6])
    np.testing.assert_allclose(
        tables[1], [[1.5 / 4.5, 2.5 / 4.5, 0.5 / 4.5], [1.5 / 2.5, 0.5 / 2.5, 0.5 / 2.5]]
    )
    weighted = count_tables(((), (0,)), codes, (2, 3), ("a", "b"), 0.5, np.full(6, 2.0))
    np.testing.assert_allclose(weighted[0], [(6 + 0.5) / 11, (4 + 0.5) / 11])
    with pytest.raises(
        InputError, match=r"The table of 'b' given its 1 parents would have .* lower max_parents"
    ):
        count_tables(((), (0,)), codes, (2**14, 2**14), ("a", "b"), 1.0)


@structures
def test_all_learners_beat_the_majority_on_penguins(structure):
    X, Y = load_penguins(return_X_y=True)
    model = GenerativeBayesNetClassifier(structure, random_state=0).fit(X[::2], Y[::2])
    answer = model.predict(X[1::2])
    majority = Y["species"].value_counts(normalize=True).max()
    assert (answer["species"] == Y["species"][1::2]).mean() > majority + 0.2
    assert model.graph_.parents[:3] == model.class_parents_
    assert len(model.bridge_parents_) == len(model.feature_parents_) == 5
    assert model.width_ == model.graph_.width <= 2
    assert model.induced_size_ == model.graph_.induced_size((3, 3, 2))
    assert sum(len(part.classes) for part in model.components_) == 3


def test_bounds_are_kept():
    network, _ = random_network(0, d=10, m=10)
    X, Y = sample_mdc_problem(network, 400, random_state=0, classes=list(network.names[:10]))
    for k in (1, 2, 4):
        model = GenerativeBayesNetClassifier(max_component=k, max_parents=2, random_state=0).fit(X, Y)
        assert max(len(part.classes) for part in model.components_) <= k
        assert max(map(len, model.graph_.parents)) <= 2
    model = GenerativeBayesNetClassifier(max_component=None, max_width=1, random_state=0).fit(X, Y)
    assert model.width_ <= 1
    swaps = GenerativeBayesNetClassifier(moves="swaps", random_state=0).fit(X, Y)
    inserts = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    assert np.isfinite([swaps.score_, inserts.score_]).all()
    again = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    assert again.graph_ == inserts.graph_


@pytest.mark.parametrize("criterion", ["bic", "aic", "k2", "bdeu"])
def test_every_criterion_learns(criterion):
    X, Y = load_penguins(return_X_y=True)
    model = GenerativeBayesNetClassifier(criterion=criterion, n_starts=1, random_state=0).fit(X, Y)
    assert any(model.bridge_parents_)


@structures
def test_more_classes_than_rows_and_constant_columns(structure):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"same": ["a"] * 6, "number": rng.normal(size=6), "nothing": [np.nan] * 6})
    Y = pd.DataFrame(rng.integers(2, size=(6, 9)), columns=[f"y{j}" for j in range(9)])
    Y["y0"] = 1
    model = GenerativeBayesNetClassifier(structure, random_state=0).fit(X, Y)
    proba = model.predict_proba(X)
    assert all(np.isfinite(p).all() and (p > 0).all() for p in proba)


def test_missing_labels_and_features_in_training():
    X, Y = load_penguins(return_X_y=True)
    rng = np.random.default_rng(0)
    X, Y = X.mask(rng.random(X.shape) < 0.2), Y.mask(rng.random(Y.shape) < 0.3)
    model = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    full = load_penguins(return_X_y=True)[1]
    assert (model.predict(X)["species"] == full["species"]).mean() > 0.8


def test_an_unseen_value_counts_as_missing():
    X = pd.DataFrame({"sky": ["grey", "blue"] * 20, "wind": ["w", "e", "w", "w"] * 10})
    Y = pd.DataFrame({"rain": [1, 0] * 20})
    model = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    new = pd.DataFrame({"sky": ["green", None], "wind": ["w", "w"]})
    unseen, missing = model.predict_proba(new)[0]
    np.testing.assert_allclose(unseen, missing)


# -- features as discrete variables ------------------------------------------------------------------------


def test_few_values_are_bins_of_their_own_and_many_are_cut_evenly():
    few = learn_bins(np.array([0.0, 1.0, 1.0, 5.0]), 3)
    np.testing.assert_allclose(few.edges, [0.5, 3.0])
    assert few.states == ("0", "1", "5")
    many = learn_bins(np.arange(100.0), 4)
    np.testing.assert_allclose(many.edges, [24.5, 49.5, 74.5])
    assert many.codes(np.array([-9.0, 24.6, np.nan, 1e9])).tolist() == [0, 1, -1, 3]
    # A value that most rows share leaves fewer bins, none of them empty.
    heavy = learn_bins(np.array([0.0] * 90 + list(range(1, 11))), 5)
    assert (np.bincount(heavy.codes(np.array([0.0] * 90 + list(range(1, 11))))) > 0).all()
    repeated = learn_bins(np.repeat([1.0, 2, 3, 4, 5, 6, 7], [3, 1, 1, 2, 1, 2, 1]), 3)
    weighted = learn_bins(np.arange(1.0, 8), 3, np.array([3.0, 1, 1, 2, 1, 2, 1]))
    np.testing.assert_array_equal(repeated.edges, weighted.edges)
    assert learn_bins(np.array([np.nan]), 3).states == ("none",)


def test_wide_tables_are_coded_as_column_by_column():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 19)) < 0.3, 0.0, rng.normal(size=(40, 19)).round(1))
    names = [f"x{j}" for j in range(19)]
    alone = [learn_bins(column, 4) for column in X.T]
    expected = np.column_stack([each.codes(column) for each, column in zip(alone, X.T, strict=True)])
    for form in (X, sparse.csr_array(X), np.asfortranarray(X), pd.DataFrame(X, columns=names)):
        np.testing.assert_array_equal(DiscreteColumns.learn(form, names, 4).codes(form), expected)


def test_columns_of_all_kinds():
    X = pd.DataFrame(
        {
            "flag": [True, False, True],
            "day": pd.to_datetime(["2020-01-01", "2021-01-01", None]),
            "kind": pd.Categorical(["b", "a", None], categories=["b", "a", "c"]),
            "number": [1, 2, 3],
        }
    )
    columns = DiscreteColumns.learn(X, list(X), 2)
    assert columns.cards == (2, 2, 2, 2)
    assert columns.codes(X).tolist() == [[1, 0, 0, 0], [0, 1, 1, 0], [1, -1, -1, 1]]
    with pytest.raises(InputError, match="must hold numbers in the column 'number'"):
        columns.codes(X.assign(number="x"))


def test_arrays_sparse_matrices_and_frames_are_the_same():
    rng = np.random.default_rng(0)
    X, Y = rng.integers(2, size=(80, 4)).astype(float), rng.integers(2, size=(80, 2))
    Y[:, 0] = X[:, 1]
    for features in (X, sparse.csr_array(X), pd.DataFrame(X, columns=list("abcd"))):
        model = GenerativeBayesNetClassifier(random_state=0).fit(features, Y)
        assert model.bridge_parents_[1] == (0,)
        assert (model.predict(features)[:, 0] == Y[:, 0]).all()


# -- files, text, pictures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".bif", ".bif.gz"])
def test_a_model_comes_back_from_its_file(tmp_path, ending):
    X, Y = load_penguins(return_X_y=True)
    X["place"] = pd.Categorical(np.where(X["bill_depth_mm"] > 17, "deep; sea", "shore"))
    X["noted"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(len(X)), unit="D")
    Y["heavy"] = (X["body_mass_g"] > 4200).astype(int)
    model = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    model.to_bif(tmp_path / f"model{ending}")
    again = GenerativeBayesNetClassifier.from_bif(tmp_path / f"model{ending}")
    assert again.graph_ == model.graph_
    assert again.space_.names == model.space_.names
    pd.testing.assert_frame_equal(again.predict(X), model.predict(X), check_dtype=False)
    for found, expected in zip(again.predict_proba(X), model.predict_proba(X), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_a_network_without_marks_needs_the_names_of_its_classes():
    network, _ = random_network(0)
    with pytest.raises(InputError, match="does not say which variables are classes"):
        GenerativeBayesNetClassifier.from_bif(network)
    with pytest.raises(InputError, match="depends on features"):
        GenerativeBayesNetClassifier.from_bif(
            network, classes=[network.names[np.argmax([len(p) for p in network.parents])]]
        )
    with pytest.raises(InputError, match="there is no variable"):
        GenerativeBayesNetClassifier.from_bif(network, classes=["nobody"])
    with pytest.raises(InputError, match="each once"):
        GenerativeBayesNetClassifier.from_bif(network, classes=["C0", "C0"])


def test_a_summary_names_what_there_is():
    X, Y = load_penguins(return_X_y=True)
    model = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    text = model.summary()
    assert text.startswith("3 classes, 5 features; edges: ")
    assert f"width of the pruned graph {model.width_} " in text
    assert f"{model.score_:,.2f}" in text
    assert "'species'" in text


def test_a_plot_shows_all_nodes_and_edges():
    plt = pytest.importorskip("matplotlib.pyplot")
    from matplotlib.patches import FancyBboxPatch, Polygon

    X, Y = load_penguins(return_X_y=True)
    model = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    ax = model.plot(title="$ penguins")
    assert {text.get_text() for text in ax.texts} == {*Y, *X}
    assert sum(isinstance(patch, FancyBboxPatch) for patch in ax.patches) == 8
    n_edges = sum(map(len, model.graph_.parents))
    assert sum(isinstance(patch, Polygon) for patch in ax.patches) == n_edges
    _, other = plt.subplots(figsize=(3, 2))
    assert model.plot(ax=other) is other
    part = model.components_[0]
    shown = {text.get_text() for text in model.plot(component=0).texts}
    assert shown == {*(Y.columns[c] for c in part.classes), *(X.columns[f] for f in part.features)}
    with pytest.raises(InputError, match="component must be a position from 0 to"):
        model.plot(component=9)
    plt.close("all")


# -- the filter ----------------------------------------------------------------------------------------------


def test_the_filter_keeps_the_best_of_each_class():
    rng = np.random.default_rng(0)
    n = 300
    Y = rng.integers(2, size=(n, 2))
    noise = lambda y, p: np.where(rng.random(n) < p, 1 - y, y)  # noqa: E731
    X = pd.DataFrame({"a1": noise(Y[:, 0], 0.05), "none": rng.integers(2, size=n), "b1": noise(Y[:, 1], 0.1)})
    X["a2"], X["text"] = noise(Y[:, 0], 0.2), np.where(noise(Y[:, 1], 0.2), "x", "y")
    one = InformationGainFilter(1).fit(X, Y)
    assert one.get_feature_names_out().tolist() == ["a1", "b1"]
    assert list(InformationGainFilter(2).fit_transform(X, Y)) == ["a1", "b1", "a2", "text"]
    table = np.zeros((2, 2))
    np.add.at(table, (X["a1"], Y[:, 0]), 1 / n)
    expected = (table * np.log(table / np.outer(table.sum(1), table.sum(0)))).sum()
    assert one.gains_[0, 0] == pytest.approx(expected, abs=1e-8)
    array = InformationGainFilter(1).fit(X[["none", "a1"]].to_numpy(), Y[:, 0])
    assert array.transform(X[["none", "a1"]].to_numpy()).shape == (n, 1)


def test_the_filter_sees_training_rows_alone():
    X, Y = load_penguins(return_X_y=True)
    pipeline = make_pipeline(
        InformationGainFilter(2), GenerativeBayesNetClassifier(n_starts=1, random_state=0)
    )
    scores = cross_val_score(pipeline, X, Y["species"].to_numpy(), cv=3)
    assert scores.min() > 0.8


def test_the_filter_checks_what_it_gets():
    X = pd.DataFrame({"a": [0, 1, 0]})
    assert InformationGainFilter().fit(X, [0, 0, 0]).support_.tolist() == [True]
    with pytest.raises(InputError, match="requires y"):
        InformationGainFilter().fit(X, None)
    with pytest.raises(InputError, match="X has 3 rows, but y has 2"):
        InformationGainFilter().fit(X, [0, 1])


def test_many_rows_are_searched_by_a_sample(monkeypatch):
    X, Y = sample_mdc_problem(random_network(5)[0], 3000, random_state=0)[:2]
    whole = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    monkeypatch.setattr("tuplet.models.generative.classifier.SAMPLE_SIZE", 1000)
    model = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    assert model.score_ > whole.score_ - 30
    order = np.random.default_rng(0).permutation(len(X))
    other = GenerativeBayesNetClassifier(random_state=0).fit(X.iloc[order], Y.iloc[order])
    assert other.graph_ == model.graph_
