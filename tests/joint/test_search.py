import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN
from tuplet.joint.base import all_outcomes
from tuplet.joint.search import OpenNodes, Search, best_first


class Table:
    """A table of log-probabilities, searched with bounds that are loose by a given amount."""

    def __init__(self, cards, log_prob, looseness=0.0):
        self.cards, self.log_prob, self.looseness = cards, log_prob, looseness
        self.outcomes = all_outcomes(cards)
        self.opened = []

    def expand(self, rows, codes, variables, bounds):
        assert len({self.cards[v] for v in variables}) == 1
        assert (codes[np.arange(len(rows)), variables] == UNKNOWN).all()
        self.opened += [(int(row), *code.tolist()) for row, code in zip(rows, codes, strict=True)]
        card = self.cards[variables[0]]
        values = np.empty((len(rows), card))
        for r, (row, code, variable) in enumerate(zip(rows, codes, variables, strict=True)):
            for value in range(card):
                child = code.copy()
                child[variable] = value
                agree = ((self.outcomes == child) | (child == UNKNOWN)).all(axis=1)
                values[r, value] = self.log_prob[row, agree].max()
                if (child == UNKNOWN).any():
                    values[r, value] += self.looseness
        return values

    def search(self, k, budget=10**6, order=None, **options):
        order = range(len(self.cards)) if order is None else order
        return best_first(len(self.log_prob), self.cards, order, self.expand, k, Search(budget), **options)

    def assert_valid(self, ranking):
        """Outcomes are distinct, in order, and have the probabilities stated; what is proven is right."""
        k = ranking.log_prob.shape[1]
        best = -np.sort(-self.log_prob, axis=1)[:, :k]
        for i, (codes, log_prob) in enumerate(zip(ranking.codes, ranking.log_prob, strict=True)):
            real = log_prob > -np.inf
            assert (codes[~real] == UNKNOWN).all()
            assert len(np.unique(codes[real], axis=0)) == real.sum()
            position = [int(np.flatnonzero((self.outcomes == code).all(axis=1))[0]) for code in codes[real]]
            np.testing.assert_allclose(self.log_prob[i, position], log_prob[real])
            assert (np.diff(log_prob[real]) <= 0).all()
            if ranking.proven[i]:
                np.testing.assert_allclose(log_prob, best[i])


def random_table(rng, cards, n, looseness=0.0):
    weights = rng.gamma(0.3, size=(n, int(np.prod(cards)))) + 1e-9
    weights[:, 1:][rng.random(weights[:, 1:].shape) < 0.3] = 0.0
    with np.errstate(divide="ignore"):
        return Table(cards, np.log(weights / weights.sum(axis=1, keepdims=True)), looseness)


CARDS = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)


@given(
    CARDS,
    st.integers(0, 2**32 - 1),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.3, 1e6]),
    st.integers(0, 3),
)
@examples(25)
def test_finds_and_proves_the_best_whatever_the_bounds(cards, seed, k, looseness, dive):
    rng = np.random.default_rng(seed)
    table = random_table(rng, cards, 3, looseness)
    ranking = table.search(min(k, len(table.outcomes)), order=rng.permutation(len(cards)), dive=dive)
    assert ranking.proven.all()
    table.assert_valid(ranking)


@given(CARDS, st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 6), st.booleans())
@examples(25)
def test_a_small_budget_never_claims_too_much(cards, seed, k, budget, with_start):
    rng = np.random.default_rng(seed)
    table = random_table(rng, cards, 3, looseness=0.5)
    k = min(k, len(table.outcomes))
    start = None
    if with_start:
        chosen = np.stack([rng.permutation(len(table.outcomes))[: k + 1] for _ in range(3)])
        start = (table.outcomes[chosen], np.take_along_axis(table.log_prob, chosen, axis=1))
    ranking = table.search(k, budget, start=start)
    table.assert_valid(ranking)
    if start is not None:
        assert (ranking.log_prob[:, 0] >= start[1].max(axis=1) - 1e-12).all()


def test_no_node_is_opened_twice_and_perfect_bounds_open_few():
    table = random_table(np.random.default_rng(0), (2,) * 8, 5)
    assert table.search(1, dive=1).proven.all()
    assert len(table.opened) == len(set(table.opened))
    assert len(table.opened) == 5 * 8  # one dive, and nothing can be better


def test_a_row_is_searched_alike_alone_and_among_others():
    table = random_table(np.random.default_rng(1), (2, 3, 2, 2, 3, 2, 3, 2), 6, looseness=4.0)
    everyone = table.search(3, budget=10, dive=1)
    assert not everyone.proven.all()
    for i in range(6):
        alone = Table(table.cards, table.log_prob[i : i + 1], 4.0).search(3, budget=10, dive=1)
        for whole, part in zip(everyone, alone, strict=True):
            np.testing.assert_array_equal(whole[i : i + 1], part)


def test_ties_give_distinct_outcomes_and_a_proof():
    table = Table((2, 2, 3), np.full((1, 12), -np.log(12)))
    ranking = table.search(5)
    assert ranking.proven.all()
    table.assert_valid(ranking)
    # Once five equal outcomes are known, nothing else can be better.
    assert len(table.opened) < 9


def test_more_values_than_the_budget_has_room_for_stay_honest():
    rng = np.random.default_rng(0)
    weights = rng.random((2, 3, 400))
    log_prob = np.log(weights / weights.sum(axis=(1, 2), keepdims=True))
    opened = []

    def expand(rows, codes, variables, bounds):
        opened.extend(rows)
        if variables[0] == 0:  # a bound that says nothing, so that all 400 children look alike
            return np.zeros((len(rows), 400))
        return log_prob[rows, :, codes[:, 0]]

    ranking = best_first(2, (400, 3), (0, 1), expand, 1, Search(max_nodes=5))
    assert not ranking.proven.any()
    assert len(opened) < 2 * 60
    proof = best_first(2, (400, 3), (0, 1), expand, 1, Search(max_nodes=500))
    assert proof.proven.all()
    np.testing.assert_allclose(proof.log_prob[:, 0], log_prob.max(axis=(1, 2)))


def test_a_long_search_keeps_its_open_nodes_within_bounds():
    table = random_table(np.random.default_rng(2), (3,) * 6, 2, looseness=1e6)
    ranking = table.search(2, budget=60)
    assert not ranking.proven.any()
    table.assert_valid(ranking)


def test_many_outcomes_of_many_variables_are_searched_in_few_rows_at_a_time(monkeypatch):
    sizes = []

    class Counted(OpenNodes):
        def __init__(self, b, m, capacity, store):
            sizes.append(b * m * capacity * store.itemsize)
            super().__init__(b, m, capacity, store)

    monkeypatch.setattr("tuplet.joint.search.OpenNodes", Counted)
    monkeypatch.setattr("tuplet.joint.search._BYTES", 2**20)
    m = 40

    def expand(rows, codes, variables, bounds):
        return np.repeat(bounds[:, None], 2, axis=1) + np.log([0.9, 0.1])

    best_first(50, (2,) * m, range(m), expand, 20, Search(max_nodes=1), None)
    assert len(sizes) > 1
    assert max(sizes) <= 2**20


def test_no_rows():
    table = Table((2, 3), np.empty((0, 6)))
    ranking = table.search(2)
    assert ranking.codes.shape == (0, 2, 2)
    assert ranking.proven.shape == (0,)


def test_budget_must_not_be_negative():
    with pytest.raises(InputError, match="max_nodes"):
        Search(max_nodes=-1)
