"""Scores of families from counts, against sums that are written down as in the text books."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from slow_scores import slow_score
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN
from tuplet.joint.inference.plan import min_fill_order
from tuplet.models.generative.networks import CountScorer
from tuplet.structure.kernels import width_of

CRITERIA = ["bic", "aic", "k2", "bdeu", "likelihood"]


@st.composite
def rows(draw, gaps=True):
    """Rows of codes with few and with many values, dependent, perhaps with gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n, v = draw(st.integers(1, 150)), draw(st.integers(2, 6))
    cards = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 12]), min_size=v, max_size=v)))
    codes = rng.integers(cards, size=(n, v))
    for j in range(1, v):
        copied = rng.random(n) < 0.6
        codes[copied, j] = codes[copied, j - 1] % cards[j]
    if gaps and draw(st.booleans()):
        codes[rng.random(codes.shape) < 0.15] = UNKNOWN
    weights = rng.gamma(1.0, size=n) if draw(st.booleans()) else None
    return codes, cards, weights


@given(rows(), st.sampled_from(CRITERIA))
@examples(25)
def test_scores_are_the_sums_of_the_text_books(data, criterion):
    codes, cards, weights = data
    scorer = CountScorer(codes, cards, 1, criterion=criterion, sample_weight=weights, equivalent_size=3.0)
    ones = np.ones(len(codes)) if weights is None else weights
    rng = np.random.default_rng(0)
    for child in range(len(cards)):
        others = [v for v in range(len(cards)) if v != child]
        parents = sorted(int(p) for p in rng.permutation(others)[: rng.integers(0, 4)])
        own, scores = scorer.score_with(child, parents, others)
        assert own == pytest.approx(slow_score(codes, cards, child, parents, ones, criterion, 3.0), abs=1e-8)
        for j in others:
            if j in parents:
                assert scores[j] == -np.inf
            else:
                expected = slow_score(codes, cards, child, [*parents, j], ones, criterion, 3.0)
                assert scores[j] == pytest.approx(expected, abs=1e-8)


def test_gains_of_the_likelihood_are_mutual_information():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=(200, 3))
    codes[:, 2] = (codes[:, 0] + codes[:, 1]) % 3
    plain = CountScorer(codes, (3, 3, 3), 1).likelihood()
    table = np.zeros((3, 3))
    np.add.at(table, (codes[:, 0], codes[:, 2]), 1 / 200)
    expected = (table * np.log(table / np.outer(table.sum(axis=1), table.sum(axis=0)))).sum()
    assert plain.gains(2, (), (0,))[0] == pytest.approx(200 * expected, abs=1e-6)
    assert plain.gains(0, (), (2,))[2] == pytest.approx(200 * expected, abs=1e-6)
    assert plain.score(2, (0, 1)) == pytest.approx(0.0, abs=1e-9)


def test_whole_weights_are_repetitions():
    rng = np.random.default_rng(1)
    codes, weights = rng.integers(2, size=(40, 4)), rng.integers(1, 4, size=40)
    weighted = CountScorer(codes, (2,) * 4, 2, sample_weight=weights.astype(float))
    repeated = CountScorer(np.repeat(codes, weights, axis=0), (2,) * 4, 2)
    for parents in ((), (0,), (0, 1), (0, 1, 2)):
        assert weighted.score(3, parents) == pytest.approx(repeated.score(3, parents), abs=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_sample_estimates_the_scores_of_all_rows(criterion):
    rng = np.random.default_rng(2)
    n, cards = 40_000, (3, 3, 4, 3)
    codes = rng.integers(cards, size=(n, 4))
    codes[:, 3] = np.where(rng.random(n) < 0.1, codes[:, 0], codes[:, 3])
    whole = CountScorer(codes, cards, 1, criterion=criterion)
    assert whole.sample(np.arange(n)).score(3, (0, 1)) == pytest.approx(whole.score(3, (0, 1)), abs=1e-6)
    parts = [whole.sample(np.arange(start, n, 20)) for start in range(20)]
    weighted = whole.sample(np.arange(0, n, 20), np.full(n // 20, 20.0))
    assert weighted.data.penalty == pytest.approx(whole.data.penalty)  # as many rows as there are
    if whole.data.kind:  # marginal likelihoods are those of the sample
        assert parts[0].score(3, (0,)) == CountScorer(codes[::20], cards, 1, criterion=criterion).score(
            3, (0,)
        )
        return
    for parents in ((0,), (0, 1), (0, 1, 2)):
        gains = [20 * (part.score(3, parents) - part.score(3, ())) for part in parts]
        expected = whole.score(3, parents) - whole.score(3, ())
        assert abs(np.mean(gains) - expected) < 4 * np.std(gains) / np.sqrt(20)


@given(st.integers(1, 9), st.integers(0, 2**20))
@examples(25)
def test_width_is_that_of_min_fill(n, seed):
    rng = np.random.default_rng(seed)
    graph = np.triu(rng.random((n, n)) < 0.4, 1)
    graph |= graph.T
    near = [set(np.flatnonzero(row).tolist()) for row in graph]
    edges = [(a, b) for a in range(n) for b in near[a] if a < b]
    width = 0
    for v in min_fill_order((2,) * n, edges):
        width = max(width, len(near[v]))
        for u in near[v]:
            near[u] = (near[u] | near[v]) - {u, v}
    assert width_of(graph, n) == width
    assert all((width_of(graph, limit) > limit) == (width > limit) for limit in range(n))


def test_a_variable_with_very_many_values():
    n = 1200
    codes = np.column_stack([np.arange(n), np.arange(n) % 2, np.arange(n) // 3])
    cards = (n, 2, n // 3)
    scorer = CountScorer(codes, cards, 1)
    for child, parents in ((0, (1,)), (1, (0,)), (1, (2,)), (2, (0, 1)), (0, ())):
        expected = slow_score(codes, cards, child, parents, np.ones(n), "bic")
        assert scorer.score(child, parents) == pytest.approx(expected, abs=1e-6)
    _, scores = scorer.score_with(1, (), (0, 2))
    assert scores[2] == pytest.approx(slow_score(codes, cards, 1, (2,), np.ones(n), "bic"), abs=1e-6)


def test_settings_are_checked():
    codes = np.zeros((3, 2), dtype=int)
    with pytest.raises(InputError, match="criterion must be one of bic"):
        CountScorer(codes, (1, 1), 1, criterion="mdl")
    with pytest.raises(InputError, match="equivalent_size must be above 0"):
        CountScorer(codes, (1, 1), 1, criterion="bdeu", equivalent_size=0)
