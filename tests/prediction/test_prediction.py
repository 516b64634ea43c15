"""A joint prediction says in labels what the table of all outcomes says in codes."""

import sys
import warnings
from dataclasses import dataclass, replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm

from draws import examples
from tuplet import ChainClassifier, load_penguins
from tuplet.core.exceptions import (
    ApproximationWarning,
    ImpossibleEvidenceError,
    InputError,
    IntractableError,
    LabelError,
    MissingDependencyError,
)
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Atoms, Autoregressive, Enumerate, FactorGraph, Mixture, MonteCarlo, Probit
from tuplet.joint.base import JointDistribution, Ranking, all_outcomes
from tuplet.joint.inference import BeliefPropagation, Exact, Factor
from tuplet.losses import Abstain, Hamming
from tuplet.prediction import JointPrediction
from tuplet.space import ClassSpace

mpl.use("Agg")
quick = examples(25)

Y = pd.DataFrame(
    {
        "kind": ["c", "a", "b", "a"],
        "size": pd.array([2, 1, None, 2], dtype="Int64"),
        "new": [True, False, True, False],
    },
    index=[10, 20, 30, 40],
)
KINDS = {
    "pandas": Y,
    "polars": pl.DataFrame({"kind": ["c", "a", "b"], "size": [2, 1, None], "new": [True, False, True]}),
    "array": np.array([["c", 2, True], ["a", 1, False], ["b", None, True]], dtype=object),
}


def table(cards, n, seed=0, zeros=0.0):
    """The probabilities (n, outcomes) of all outcomes, at random, and the distribution that holds them."""
    rng = np.random.default_rng(seed)
    outcomes = all_outcomes(cards)
    weights = rng.dirichlet(np.ones(len(outcomes)), size=n)
    weights[:, 1:] *= rng.random((n, len(outcomes) - 1)) >= zeros
    weights /= weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return outcomes, weights, Atoms(tuple(cards), outcomes[None], np.log(weights))


def predict(labels=Y, n=4, seed=0, zeros=0.0, index=True):
    space = ClassSpace.from_labels(labels)
    outcomes, weights, joint = table(space.cards, n, seed, zeros)
    names = pd.Index([f"r{i}" for i in range(n)], name="id") if index else None
    return outcomes, weights, JointPrediction(joint, space, names)


# -- against enumeration -----------------------------------------------------------------------------------


@quick
@given(st.sampled_from(list(KINDS)), st.integers(1, 5), st.integers(0, 10**6), st.sampled_from([0.0, 0.5]))
def test_every_answer_is_that_of_the_table_of_outcomes(kind, n, seed, zeros):
    outcomes, weights, prediction = predict(KINDS[kind], n, seed, zeros)
    space, rows = prediction.space, np.arange(n)
    best = weights.argmax(axis=1)
    np.testing.assert_array_equal(space.encode(prediction.mode()), outcomes[best])
    assert prediction.mode_proven().all()

    marginals = prediction.marginals()
    for j, name in enumerate(space.names):
        expected = np.stack(
            [weights[:, outcomes[:, j] == c].sum(axis=1) for c in range(space.cards[j])], axis=1
        )
        np.testing.assert_allclose(np.asarray(marginals[name]), expected, atol=1e-12)
        assert list(marginals[name].columns) == [
            str(label) if kind == "polars" else label for label in space.categories[j]
        ]

    chosen = np.random.default_rng(seed).integers(len(outcomes), size=n)
    codes = outcomes[chosen].copy()
    np.testing.assert_allclose(prediction.prob(space.decode(codes)), weights[rows, chosen], atol=1e-12)
    codes[:, 1] = UNKNOWN
    agree = (outcomes[None, :, [0, 2]] == codes[:, None, [0, 2]]).all(axis=2)
    partial = (weights * agree).sum(axis=1)
    np.testing.assert_allclose(prediction.prob(space.decode(codes)), partial, atol=1e-12)
    assert prediction.entropy() == pytest.approx(
        -(weights * np.log(np.where(weights, weights, 1))).sum(axis=1)
    )

    hamming = np.stack([np.asarray(marginals[name]).argmax(axis=1) for name in space.names], axis=1)
    np.testing.assert_array_equal(space.encode(prediction.decide("hamming")), hamming)
    np.testing.assert_array_equal(space.encode(prediction.decide(Hamming())), hamming)


@quick
@given(st.sampled_from(list(KINDS)), st.integers(1, 4), st.integers(0, 10**6), st.integers(1, 20))
def test_the_top_combinations_are_those_of_the_table(kind, n, seed, k):
    _, weights, prediction = predict(KINDS[kind], n, seed, 0.5, index=False)
    top = prediction.top_k(k)
    assert list(top.columns) == ["row", "rank", *prediction.space.names, "probability"]
    assert isinstance(top, pl.DataFrame if kind == "polars" else pd.DataFrame)
    row, rank, chance = (np.asarray(top[name]) for name in ("row", "rank", "probability"))
    order = -np.sort(-weights, axis=1)
    for i in range(n):
        expected = order[i, :k][order[i, :k] > 0]
        np.testing.assert_allclose(chance[row == i], expected)
        np.testing.assert_array_equal(rank[row == i], np.arange(1, len(expected) + 1))
    labels = {name: top[name].to_list() for name in prediction.space.names}
    np.testing.assert_allclose(prediction[row].prob(labels), chance)


@quick
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_given_is_the_table_cut_and_normalised(n, seed):
    outcomes, weights, prediction = predict(n=n, seed=seed)
    known = np.random.default_rng(seed).integers(UNKNOWN, 3, size=n)
    labels = prediction.space.decode_column(0, known)
    after = prediction.given(kind=labels, new=True)
    kept = (
        weights * ((outcomes[:, 0] == known[:, None]) | (known[:, None] == UNKNOWN)) * (outcomes[:, 2] == 1)
    )
    kept /= kept.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(after.distribution.log_prob(outcomes[:, None])).T, kept, atol=1e-12)
    pd.testing.assert_index_equal(after.mode().index, prediction.index)


def test_ways_to_say_what_is_known():
    prediction = predict()[2]
    labels = ["a", None, "b", "a"]
    expected = prediction.given(kind=labels, new=True).to_frame()
    frame = pd.DataFrame({"kind": labels, "new": [True] * 4})
    for after in (
        prediction.given({"kind": labels, "new": True}),
        prediction.given({"kind": pd.Series(labels)}, new=np.ones(4, bool)),
        prediction.given(frame),
        prediction.given(pl.DataFrame({"new": [True] * 4, "kind": labels})),
        prediction.given(frame.assign(size=None, more=1)),
        prediction.given(np.array([[kind, None, True] for kind in labels], dtype=object)),
        prediction.given(frame[["kind"]]).given(new=True),
    ):
        pd.testing.assert_frame_equal(after.to_frame(), expected)
    pd.testing.assert_frame_equal(prediction.given().to_frame(), prediction.to_frame())
    np.testing.assert_array_equal(prediction.prob({}), 1)
    np.testing.assert_allclose(prediction.prob({"new": True}), prediction.marginals()["new"][True])
    np.testing.assert_allclose(prediction.prob(frame), prediction.prob({"new": True, "kind": labels}))


def test_some_variables_only():
    outcomes, weights, prediction = predict()
    part = prediction.marginal("new", "kind")
    assert part.space.names == ("new", "kind")
    assert list(part.mode().columns) == ["new", "kind"]
    expected = np.zeros((4, 2, 3))
    for code, column in zip(outcomes, weights.T, strict=True):
        expected[:, code[2], code[0]] += column
    np.testing.assert_allclose(prediction.pairwise("new", "kind"), expected)
    np.testing.assert_allclose(part.prob({"new": True, "kind": "c"}), expected[:, 1, 2])


def test_draws_follow_the_distribution_and_the_seed():
    outcomes, weights, prediction = predict(n=2)
    draws = prediction.sample(4000, random_state=0)
    assert list(draws.columns) == ["draw", "row", "kind", "size", "new"]
    assert draws["draw"].tolist() == np.repeat(np.arange(4000), 2).tolist()
    pd.testing.assert_frame_equal(draws, prediction.sample(4000, random_state=0))
    codes = prediction.space.encode(draws)
    for i, name in enumerate(prediction.index):
        mine = codes[draws["row"] == name]
        found = (mine[:, None] == outcomes).all(axis=2).mean(axis=0)
        np.testing.assert_allclose(found, weights[i], atol=0.04)
    assert len(prediction.sample(0)) == 0


# -- containers --------------------------------------------------------------------------------------------


def test_pandas_results_carry_the_index_and_types():
    prediction = predict()[2]
    for labels in (prediction.mode(), prediction.decide("subset"), prediction.decide("hamming")):
        pd.testing.assert_index_equal(labels.index, prediction.index)
        pd.testing.assert_series_equal(labels.dtypes, Y.dtypes)
    frame = prediction.to_frame()
    assert list(frame.columns) == ["kind", "size", "new", "probability", "P(kind)", "P(size)", "P(new)"]
    pd.testing.assert_frame_equal(frame[["kind", "size", "new"]], prediction.mode())
    np.testing.assert_allclose(frame["probability"], prediction.prob(prediction.mode()))
    np.testing.assert_allclose(frame["P(kind)"], prediction.prob(prediction.mode()[["kind"]]))
    assert set(prediction.top_k(2)["row"]) == set(prediction.index)
    assert prediction.marginals()["size"].columns.name == "size"


def test_polars_in_polars_out():
    prediction = predict(KINDS["polars"])[2]
    for frame in (prediction.mode(), prediction.to_frame(), prediction.sample(2), prediction.top_k(1)):
        assert isinstance(frame, pl.DataFrame)
        assert frame.schema["size"] == pl.Int64
    assert prediction.top_k(1)["row"].to_list() == list(prediction.index)
    assert prediction.to_frame().columns[-4:] == ["probability", "P(kind)", "P(size)", "P(new)"]


def test_one_column_and_sparse_labels_come_back_as_such():
    assert predict(np.array([3, 5]))[2].mode().shape == (4,)
    series = predict(pd.Series(["x", "y"], name="kind"))[2].mode()
    assert series.name == "kind"
    assert list(series.index) == ["r0", "r1", "r2", "r3"]
    labels = predict(sparse.csr_matrix(np.eye(3)))[2].mode()
    assert sparse.isspmatrix_csr(labels)
    assert list(predict(np.array([["u", "v"]]))[2].top_k(1).columns) == [
        "row",
        "rank",
        "y0",
        "y1",
        "probability",
    ]


def test_columns_give_way_to_the_names_of_variables():
    labels = pd.DataFrame({"row": ["a", "b"], "rank": [1, 2], "probability": [0, 1], "draw": [3, 4]})
    prediction = predict(labels)[2]
    expected = ["row_", "rank_", "row", "rank", "probability", "draw", "probability_"]
    assert list(prediction.top_k(2).columns) == expected
    assert list(prediction.sample(2).columns) == ["draw_", "row_", "row", "rank", "probability", "draw"]
    assert "probability_" in prediction.to_frame()


def test_rows_by_position_slice_and_mask():
    prediction = predict()[2]
    frame = prediction.to_frame()
    for rows, expected in [
        (1, [1]),
        (-1, [3]),
        (slice(2), [0, 1]),
        ([2, 0], [2, 0]),
        (np.array([True, False, False, True]), [0, 3]),
    ]:
        assert len(prediction[rows]) == len(expected)
        pd.testing.assert_frame_equal(prediction[rows].to_frame(), frame.iloc[expected])
    assert [len(one) for one in prediction] == [1, 1, 1, 1]
    for wrong in (4, -5, [0, 9], "a", 1.5, [["a"]]):
        with pytest.raises(InputError, match=r"found .*"):
            prediction[wrong]
    with pytest.raises(IndexError, match="there are 4 rows, at the positions 0 to 3; found 4"):
        prediction[4]


def test_several_levels_of_row_names():
    space = ClassSpace.from_labels(Y)
    index = pd.MultiIndex.from_product([["a", "b"], [1, 2]])
    prediction = JointPrediction(table(space.cards, 4)[2], space, index)
    pd.testing.assert_index_equal(prediction.mode().index, index)
    assert prediction.top_k(1)["row"].tolist() == list(index)
    assert "('a', 1)" in repr(prediction)


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "error", "message"),
    [
        ({"knd": "a"}, InputError, "no class variable 'knd'; .* Did you mean 'kind'"),
        ({"kind": "z"}, LabelError, "Unknown label 'z' of 'kind'; the known ones are 'a', 'b', 'c'"),
        ({"kind": ["a", "b"]}, InputError, "given: 'kind' has 2 labels for the 4 rows"),
        (pd.DataFrame({"kind": ["a"] * 4, "sizes": 1}), InputError, "no class variable 'sizes'"),
        (Y.head(2), InputError, "given: Y has 2 labels for the 4 rows"),
        (
            pd.DataFrame({"a": [1.0] * 4, "b": 2}),
            InputError,
            "given: none of the columns 'a', 'b' is a class variable; these are 'kind', 'size', 'new'",
        ),
    ],
)
def test_what_cannot_be_known(known, error, message):
    with pytest.raises(error, match=message):
        predict()[2].given(known)


def test_the_same_rows_in_another_order_are_an_error():
    prediction = predict()[2]
    labels = prediction.mode()
    mixed_up = labels.iloc[[1, 0, 3, 2]]
    for query, known in [
        (prediction.log_prob, mixed_up),
        (prediction.prob, mixed_up[["kind"]]),
        (prediction.given, mixed_up[["kind"]]),
        (prediction.given, {"kind": mixed_up["kind"]}),
        (prediction.prob, {"kind": mixed_up["kind"]}),
    ]:
        with pytest.raises(InputError, match=f"{query.__name__}: the prediction and .* in another order"):
            query(known)
    np.testing.assert_allclose(prediction.prob(labels), prediction.prob(labels.reset_index(drop=True)))
    assert predict(index=False)[2].prob(mixed_up).shape == (4,)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: p.top_k(2.5), "top_k: k must be a whole number of at least 1, found 2.5"),
        (lambda p: p.top_k("3"), "top_k: k must be a whole number of at least 1, found '3'"),
        (lambda p: p.top_k(0), "top_k: k must be a whole number"),
        (lambda p: p.sample(1.5), "sample: size must be a whole number of at least 0, found 1.5"),
        (lambda p: p.plot(k=0), "plot: k must be a whole number"),
        (lambda p: p.plot(row=1000), "plot: there are 4 rows, at the positions 0 to 3; found 1000"),
        (
            lambda p: p.plot(row="a"),
            "plot: a row goes by its position, from 0 to 3, not by its name; found 'a'",
        ),
        (lambda p: p.plot(row=[0, 1]), "plot: one row can be drawn at a time, found 2"),
        (lambda p: p.pairwise("kind", "kind"), "pairwise needs two different variables, found 'kind' twice"),
        (lambda p: p.marginal(["kind", "new"]), r"pass names one by one: marginal\('kind', 'new'\)"),
        (lambda p: p.marginal("kind", "kind"), "marginal needs one or more different variables"),
        (lambda p: p.marginal(), "marginal needs one or more different variables, found none"),
        (lambda p: p.marginal("knd"), "Did you mean 'kind'"),
    ],
)
def test_arguments_that_cannot_be_used(ask, message):
    with pytest.raises(InputError, match=message):
        ask(predict()[2])


def test_columns_with_integers_as_names():
    labels = pd.DataFrame(np.array([[0, 5], [1, 6]]))
    prediction = predict(labels)[2]
    assert list(prediction.mode().columns) == [0, 1]
    assert list(prediction.marginals()) == [0, 1]
    assert prediction.marginals()[1].columns.name == 1
    assert list(prediction.top_k(1).columns) == ["row", "rank", 0, 1, "probability"]
    assert list(prediction.sample(1).columns) == ["draw", "row", 0, 1]
    assert list(prediction.to_frame().columns) == [0, 1, "probability", "P(0)", "P(1)"]
    np.testing.assert_allclose(prediction.pairwise(0, 1), prediction.pairwise("0", "1"))
    np.testing.assert_allclose(prediction.prob({1: 6}), prediction.marginals()[1][6])
    np.testing.assert_allclose(prediction.given({0: 1}).prob({0: 1}), 1)
    assert list(prediction.marginal(1).mode().columns) == [1]


@pytest.mark.parametrize("loss", ["f1", Abstain("f2", 0.3)])
def test_which_label_is_positive_is_not_guessed(loss):
    sick, old = ["flu", "none", "flu"], [True, False, True]
    message = "needs to know which label is positive, but 'status' has 'flu' and 'none'; code them as 0/1 or"
    with pytest.raises(InputError, match=message):
        predict(pd.DataFrame({"status": sick, "old": old}))[2].decide(loss)
    declared = pd.Categorical(sick, ["none", "flu"])
    assert predict(pd.DataFrame({"status": declared, "old": old}))[2].decide(loss).shape == (4, 2)
    numbers = np.array([[0, 1], [1, 1]])
    for fine in (numbers, numbers.astype(bool), numbers.astype(object), sparse.csr_array(numbers)):
        assert predict(fine)[2].decide(loss).shape == (4, 2)


def test_impossible_evidence_is_named():
    space = ClassSpace.from_labels(Y)
    codes = np.array([[[0, 0, 0], [1, 1, 1]]])
    prediction = JointPrediction(
        Atoms(space.cards, codes, np.zeros((4, 2))), space, pd.Index(["p", "q", "r", "s"])
    )
    message = r"given: kind='a', new=True has probability zero in row q \(and in 1 more\)"
    with pytest.raises(ImpossibleEvidenceError, match=message):
        prediction.given(kind=["b", "a", "b", "a"], new=True)
    assert np.isneginf(prediction.log_prob({"kind": "c"})).all()


def test_parts_that_do_not_belong_together():
    space = ClassSpace.from_labels(Y)
    with pytest.raises(InputError, match=r"cardinalities \(2,\) does not belong to ClassSpace\(kind: a"):
        JointPrediction(table((2,), 3)[2], space)
    with pytest.raises(InputError, match="index of 3 names does not fit 4 rows"):
        JointPrediction(table(space.cards, 4)[2], space, pd.RangeIndex(3))


# -- estimates ---------------------------------------------------------------------------------------------


def chain(m=6, n=4, size=100):
    """A chain in which every variable leans to the one before it, with sampled marginals."""

    def conditional(variable, rows, codes):
        lean = 0.3 + 0.4 * (codes[:, variable - 1] == 1) if variable else np.full(len(rows), 0.4)
        return np.log(np.stack([1 - lean, lean], axis=1))

    space = ClassSpace(tuple(f"t{j}" for j in range(m)), ([0, 1],) * m)
    return JointPrediction(Autoregressive((2,) * m, range(m), conditional, n, engine=MonteCarlo(size)), space)


ESTIMATES = {
    "marginals": lambda p: p.marginals(),
    "to_frame": lambda p: p.to_frame(),
    "entropy": lambda p: p.entropy(),
    "pairwise": lambda p: p.pairwise("t0", "t5"),
    "log_prob": lambda p: p.log_prob({"t5": 1}),
    "prob": lambda p: p.prob({"t5": 1}),
    "decide": lambda p: p.decide("hamming"),
}
EXACT = {
    "mode": lambda p: p.mode(),
    "top_k": lambda p: p.top_k(3),
    "sample": lambda p: p.sample(2),
    "log_prob": lambda p: p.log_prob(np.zeros((4, 6), int)),
    "given": lambda p: p.given(t0=1),
    "subset": lambda p: p.decide("subset"),
    "or_none": lambda p: p.decide(Abstain("subset", 0.9)),
    "repr": repr,
    "html": lambda p: p._repr_html_(),
}


@pytest.mark.parametrize("query", ESTIMATES)
def test_a_query_that_samples_says_so_once(query):
    prediction = chain()
    assert prediction.tolerance == pytest.approx(0.2)
    message = rf"^{query}: probabilities are estimated within 0\.2 \(four standard errors\); ChainClassifier"
    with pytest.warns(ApproximationWarning, match=message) as caught:
        ESTIMATES[query](prediction)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    exact = replace(prediction, distribution=replace(prediction.distribution, engine=Enumerate()))
    assert exact.tolerance == 0
    ESTIMATES[query](exact)


@pytest.mark.parametrize("query", EXACT)
def test_a_query_that_does_not_sample_is_silent(query):
    EXACT[query](chain())


def test_estimated_evidence_says_so():
    prediction = chain(m=12, size=50)
    with pytest.warns(ApproximationWarning, match="given: probabilities are estimates, with the error"):
        after = prediction.given(t11=1)
    with pytest.warns(ApproximationWarning, match="top_k: ") as caught:
        after.top_k(1)
    assert len(caught) == 1
    with pytest.warns(ApproximationWarning, match="log_prob: "):
        after.log_prob(np.ones((4, 12), int))
    assert repr(after).splitlines()[0].endswith("probabilities are estimates")


def test_a_mixture_of_chains_is_as_good_as_its_parts():
    one = chain()
    both = replace(one, distribution=Mixture(np.zeros((4, 2)), (one.distribution, one.distribution)))
    with pytest.warns(ApproximationWarning, match="estimated within 0.2 .*ChainClassifier"):
        both.marginals()
    both.entropy()  # few enough combinations to enumerate


def test_approximations_without_a_guarantee():
    ring = [Factor((i, (i + 1) % 3), np.log([[[0.6], [0.4]], [[0.4], [0.6]]])) for i in range(3)]
    space = ClassSpace(("a", "b", "c"), ([0, 1],) * 3)
    loopy = JointPrediction(FactorGraph((2,) * 3, ring, 1, engine=BeliefPropagation()), space)
    with pytest.warns(
        ApproximationWarning, match="marginals: probabilities are approximations without a guar"
    ):
        loopy.marginals()
    assert loopy.tolerance == np.inf


# -- searches that end early -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Unsure(JointDistribution):
    """A distribution whose search proves the mode of even rows only, or that has no mode at all."""

    inner: Atoms
    hopeless: bool = False

    @property
    def cards(self):
        return self.inner.cards

    @property
    def tolerance(self):
        return 0.01

    def __len__(self):
        return len(self.inner)

    def _take(self, rows):
        return Unsure(self.inner._take(rows), self.hopeless)

    def _top_k(self, k):
        if self.hopeless:
            raise IntractableError("mode: too large.")
        codes, log_prob, _ = self.inner._top_k(k)
        return Ranking(codes, log_prob, np.arange(len(self)) % 2 == 0)

    def _flat_marginals(self):
        raise IntractableError("marginals: too large.")

    def _log_prob(self, codes):
        return self.inner._log_prob(codes)

    def _sample(self, size, rng):
        return self.inner._sample(size, rng)

    def _condition(self, codes):
        return self.inner._condition(codes)

    def _marginal(self, variables):
        return self.inner._marginal(variables)


def test_an_unproven_answer_says_so():
    space = ClassSpace.from_labels(Y)
    prediction = JointPrediction(Unsure(table(space.cards, 4)[2]), space)
    assert prediction.mode_proven().tolist() == [True, False, True, False]
    with pytest.warns(
        ApproximationWarning, match="mode: a more probable combination may exist in 2 of 4 rows"
    ):
        prediction.mode()
    with pytest.warns(ApproximationWarning, match="top_k: "):
        prediction.top_k(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text, html = repr(prediction), prediction._repr_html_()
    assert text.splitlines()[0].endswith("probabilities are estimates")
    assert (
        text.splitlines()[-1] == "* a more probable combination may exist: these probabilities are estimates"
    )
    assert text.count("*") == 3
    assert html.count("*") == 3


def test_a_repr_never_fails():
    space = ClassSpace.from_labels(Y)
    hopeless = JointPrediction(Unsure(table(space.cards, 4)[2], hopeless=True), space)
    assert repr(hopeless).splitlines()[1] == "mode: too large."
    assert "too large" in hopeless._repr_html_()
    empty = predict()[2][[]]
    assert repr(empty) == "JointPrediction: 0 rows, 3 class variables"
    assert empty._repr_html_()


# -- for people --------------------------------------------------------------------------------------------


def test_repr():
    space = ClassSpace(("species", "sex"), (["Adelie", "Gentoo"], ["female", "male"]))
    joint = Atoms((2, 2), all_outcomes((2, 2))[None], np.log([[0.1, 0.2, 0.0004, 0.6996]] * 8))
    assert repr(JointPrediction(joint, space)) == (
        "JointPrediction: 8 rows, 2 class variables\n"
        "   species  sex   probability\n"
        + "".join(f"{i}  Gentoo   male        0.700\n" for i in range(6))
        + "... 2 more rows"
    )


def test_many_variables_do_not_wrap():
    m = 60
    codes = (np.arange(3 * m).reshape(1, 3, m) // [[[1], [2], [3]]]) % 2
    long = ClassSpace(tuple(f"a rather long name {j}" for j in range(m)), (["no such thing\n", "yes"],) * m)
    text = repr(JointPrediction(Atoms((2,) * m, codes, np.log([[0.2, 0.5, 0.3]])), long))
    assert max(map(len, text.splitlines())) <= 110
    assert "... 57 more" in text
    tags = ClassSpace(tuple(f"t{j}" for j in range(m)), ([0, 1],) * m)
    codes = np.zeros((1, 1, m), int)
    codes[0, 0, [3, 40]] = 1
    prediction = JointPrediction(Atoms((2,) * m, codes, np.zeros((1, 1))), tags)
    assert "0  t3, t40                 1.000" in repr(prediction)
    assert "t3, t40" in prediction._repr_html_()


def test_long_names_stay_apart():
    names = tuple(f"a_rather_long_tag_name_{j}" for j in range(3))
    space = ClassSpace(names, (["x" * 30 + end for end in "ab"],) * 3)
    text = repr(JointPrediction(table((2,) * 3, 2)[2], space))
    assert len(set(text.splitlines()[1].split())) == 4


def test_a_repr_is_cheap_and_says_what_it_shows():
    calls = []

    def conditional(variable, rows, codes):
        calls.append(len(rows))
        return np.log(np.full((len(rows), 2), 0.5))

    m = 20
    space = ClassSpace(tuple(f"t{j}" for j in range(m)), ([0, 1],) * m)
    prediction = JointPrediction(Autoregressive((2,) * m, range(m), conditional, 100), space)
    text, html = repr(prediction), prediction._repr_html_()
    assert len(calls) <= 6 * m
    assert sum(calls) < 20_000
    assert text.splitlines()[0].endswith("20 class variables, marginals estimated within 0.063")
    assert "search for this view is short, mode() takes longer" in text
    assert "bars show its probability" in html


def test_a_note_is_shown_and_stays():
    prediction = replace(predict()[2], note="votes, not probabilities")
    for shown in (prediction, prediction[:2], prediction.given(new=True), prediction.marginal("kind")):
        assert repr(shown).splitlines()[0].endswith(", votes, not probabilities")
        assert "votes, not probabilities" in shown._repr_html_()


def test_html_is_escaped_and_has_a_bar_for_each_probability():
    space = ClassSpace(("<script>",), (["<b>", "&"],))
    html = JointPrediction(Atoms((2,), np.array([[[0], [1]]]), np.log([[0.75, 0.25]])), space)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<b>" not in html
    assert html.count("width:75.0%") == 2


def test_plot():
    prediction = predict()[2]
    ax = prediction.plot(row=-1, k=3)
    widths = [bar.get_width() for bar in ax.patches]
    expected = prediction[-1].top_k(3)["probability"].tolist()
    np.testing.assert_allclose(widths, [*expected, 1 - sum(expected)])
    texts = [tick.get_text() for tick in ax.get_yticklabels()]
    assert texts[-1] == "all others"
    assert " · ".join(map(str, prediction.mode().iloc[-1])) == texts[0]
    assert "row r3" in ax.get_title(loc="left")
    assert prediction.plot(0, k=100, ax=ax) is ax
    plt.close("all")


def test_a_plot_of_many_labels_can_be_read():
    m = 30
    names = tuple(f"a_rather_long_tag_name_{j}" for j in range(m))
    space = ClassSpace(names, ([0, 1],) * m)
    chances = [np.log([[1 - p, p]]) for p in np.linspace(0.05, 0.9, m)]
    ax = JointPrediction(FactorGraph.independent(chances), space).plot()
    ax.figure.canvas.draw()
    assert len(ax.patches) == 8  # the rest would dwarf them
    texts = [tick.get_text() for tick in ax.get_yticklabels()]
    assert len(set(texts)) == 8
    assert "in all of them: a_rathe" in ax.get_xlabel()
    assert "all other combinations together: 0.9" in ax.get_xlabel()
    assert ax.get_title(loc="left") == "30 class variables, row 0"
    frame = ax.figure.bbox
    drawn = [ax.xaxis.label, ax.title, *ax.get_yticklabels(), *ax.texts]
    for text in drawn:
        box = text.get_window_extent()
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1
    plt.close("all")


def test_labels_with_dollars_are_drawn_as_they_are():
    space = ClassSpace(("price",), (["$1", "$2_^"],))
    ax = JointPrediction(table((2,), 1)[2], space).plot()
    ax.figure.canvas.draw()
    plt.close("all")


def test_plots_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"pip install tuplet\[plots\]"):
        predict()[2].plot()


def test_errors_from_below_the_rim_speak_of_variables_by_name():
    space = ClassSpace(("weather", "umbrella"), (np.array(["dry", "wet", "snow"]), np.array([False, True])))
    table = np.log(np.full((3, 2, 1), 1 / 6))
    narrow = FactorGraph((3, 2), [Factor((0, 1), table)], 1, engine=Exact(max_table=4))
    prediction = JointPrediction(narrow, space)
    with pytest.raises(IntractableError, match=r"eliminating '(weather|umbrella)' needs a table of 6 cells"):
        prediction.marginals()
    with pytest.raises(InputError, match="'weather' has 3 values"):
        prediction.decide("f1")


# -- credible intervals ------------------------------------------------------------------------------------


def probit_prediction():
    rng = np.random.default_rng(0)
    means, half = rng.normal(size=(50, 3, 2)), rng.uniform(-0.5, 0.5, size=50)
    correlations = np.array([[[1, r], [r, 1]] for r in half])
    space = ClassSpace.from_labels(pd.DataFrame({"a": ["no", "yes"], "b": [0, 1]}))
    return means, JointPrediction(Probit(means, correlations), space, pd.Index(list("xyz")))


def test_intervals_of_labels_are_quantiles_of_the_draws():
    means, prediction = probit_prediction()
    table = prediction.intervals(level=0.8)
    assert table["row"].tolist() == list("xxyyzz")
    assert table["variable"].tolist() == ["a", "b"] * 3
    assert table["label"].tolist() == ["yes", "1"] * 3
    draws = norm.cdf(means).reshape(50, 6)
    # A tenth of the draws below and above; which of two neighbouring draws is the limit is a convention.
    for limit, share in (("lower", 0.1), ("upper", 0.9)):
        below = (draws < table[limit].to_numpy() - 1e-12).mean(axis=0)
        np.testing.assert_allclose(below, share, atol=1.01 / 50)
    np.testing.assert_allclose(table["probability"], draws.mean(axis=0), atol=1e-9)


def test_intervals_of_combinations_hold_their_probability():
    _, prediction = probit_prediction()
    table = prediction.intervals({"a": "yes", "b": [0, 1, 1]})
    assert table.index.tolist() == list("xyz")
    assert ((table["lower"] < table["probability"]) & (table["probability"] < table["upper"])).all()


def test_a_distribution_without_draws_has_no_intervals():
    X, y = load_penguins(return_X_y=True)
    prediction = ChainClassifier().fit(X, y).predict_joint(X[:2])
    with pytest.raises(InputError, match="need draws of a model's parameters, which Autoregressive does not"):
        prediction.intervals()
