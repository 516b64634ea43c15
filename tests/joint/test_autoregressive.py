"""Chains: every answer against the table of all outcomes, and what an answer may cost."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from outcome_tables import agree, assert_ranking, possible_codes, project, restrict
from tuplet.core.exceptions import ImpossibleEvidenceError, InputError, IntractableError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Autoregressive, Enumerate, MonteCarlo, Search
from tuplet.joint.autoregressive import Subset
from tuplet.joint.base import all_outcomes
from tuplet.joint.linear_chain import LinearChain, LinearTerms
from tuplet.testing.strategies import SoftmaxConditional, linear_chains

# -- random chains and their truth ------------------------------------------------------------------------


class Tables:
    """Conditionals as tables, which note what they are asked."""

    def __init__(self, cards, order, n, rng, zeros=0.2):
        self.cards, self.order, self.asked, self.n_calls = cards, order, [], 0
        self.tables = {}
        for place, v in enumerate(order):
            weights = rng.gamma(0.7, size=(n, *(cards[u] for u in order[:place]), cards[v])) + 1e-3
            weights[..., 1:][rng.random(weights[..., 1:].shape) < zeros] = 0.0
            self.tables[v] = weights / weights.sum(axis=-1, keepdims=True)

    def __call__(self, variable, rows, codes):
        assert len(rows) == len(codes) > 0
        earlier = self.order[: self.order.index(variable)]
        assert (codes[:, earlier] != UNKNOWN).all()
        self.n_calls += 1
        self.asked += [(variable, *key) for key in np.column_stack([rows, codes[:, earlier]]).tolist()]
        with np.errstate(divide="ignore"):
            return np.log(self.tables[variable][(rows, *(codes[:, v] for v in earlier))])

    def truth(self):
        outcomes = all_outcomes(self.cards)
        n = len(self.tables[self.order[0]])
        p = np.ones((n, len(outcomes)))
        for place, v in enumerate(self.order):
            p *= self.tables[v][(slice(None), *outcomes[:, [*self.order[:place], v]].T)]
        return p


def make(cards, seed, n=3, zeros=0.2, **options):
    rng = np.random.default_rng(seed)
    order = [int(v) for v in rng.permutation(len(cards))]
    tables = Tables(cards, order, n, rng, zeros)
    return Autoregressive(cards, order, tables, n, **options), tables.truth()


def assert_sums(joint, truth, atol):
    """Everything that sums over outcomes."""
    cards = joint.cards
    for j, marginal in enumerate(joint.marginals()):
        np.testing.assert_allclose(marginal, project(truth, cards, [j]), atol=atol)
    for (i, j), table in joint.pairwise().items():
        np.testing.assert_allclose(table.reshape(len(truth), -1), project(truth, cards, [i, j]), atol=atol)
    if max(cards) <= 2:
        ones = all_outcomes(cards) == 1
        counts = ones.sum(axis=1)[:, None] == np.arange(len(cards) + 1)
        expected = np.einsum("no,oj,os->njs", truth, ones.astype(float), counts.astype(float))
        np.testing.assert_allclose(joint.count_marginals(), expected, atol=atol)


def assert_exact(joint, truth, rng):
    """Every query against enumeration."""
    cards, outcomes = joint.cards, all_outcomes(joint.cards)
    assert joint.tolerance == 0
    np.testing.assert_allclose(np.exp(joint.log_prob(outcomes[:, None])).T, truth, atol=1e-9)
    partial = np.stack([possible_codes(truth, cards, rng) for _ in range(3)])
    expected = [(truth * agree(cards, codes)).sum(axis=1) for codes in partial]
    np.testing.assert_allclose(np.exp(joint.log_prob(partial)), expected, atol=1e-9)
    assert_sums(joint, truth, atol=1e-9)
    assert_ranking(joint, truth)
    entropy = -(truth * np.log(np.where(truth > 0, truth, 1.0))).sum(axis=1)
    np.testing.assert_allclose(joint.entropy(), entropy, atol=1e-9)
    atoms = joint.to_atoms()
    np.testing.assert_allclose(np.exp(atoms.log_prob(outcomes[:, None])).T, truth, atol=1e-9)
    # A bound holds for every completion and is exact for complete outcomes.
    for codes in partial:
        best = (truth * agree(cards, codes)).max(axis=1)
        assert (np.exp(joint._bound(codes[None])[0]) >= best - 1e-9).all()


def assert_frequencies(joint, truth, size=3000):
    draws = joint.sample(size, rng=7)
    assert draws.shape == (size, len(truth), len(joint.cards))
    found = (draws[:, :, None] == all_outcomes(joint.cards)).all(axis=3).mean(axis=0)
    assert (found[truth == 0] == 0).all()
    assert (np.abs(found - truth) <= 5 * np.sqrt(np.maximum(truth * (1 - truth), 0) / size) + 2 / size).all()


CARDS = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)
SEEDS = st.integers(0, 2**32 - 1)
quick = examples(25)
seeded = examples(15, derandomize=True)  # random errors: the same ones every time

# -- exact answers ----------------------------------------------------------------------------------------


@given(CARDS, SEEDS)
@quick
def test_every_query_equals_enumeration(cards, seed):
    joint, truth = make(cards, seed)
    assert_exact(joint, truth, np.random.default_rng(seed))


@given(st.lists(st.just(2), min_size=1, max_size=5).map(tuple), SEEDS)
@quick
def test_binary_chains_equal_enumeration(cards, seed):
    joint, truth = make(cards, seed)
    assert_exact(joint, truth, np.random.default_rng(seed))


@given(CARDS, SEEDS)
@quick
def test_conditioning_twice_equals_enumeration(cards, seed):
    rng = np.random.default_rng(seed)
    joint, truth = make(cards, seed)
    first = possible_codes(truth, cards, rng, share=0.7)
    truth = restrict(truth, cards, first)
    joint = joint.condition(first)
    assert_exact(joint, truth, rng)
    second = possible_codes(truth, cards, rng, share=0.7)
    assert_exact(joint.condition(second), restrict(truth, cards, second), rng)


@given(CARDS, SEEDS)
@quick
def test_marginals_of_several_variables_equal_enumeration(cards, seed):
    rng = np.random.default_rng(seed)
    joint, truth = make(cards, seed)
    if rng.random() < 0.5:
        evidence = possible_codes(truth, cards, rng, share=0.7)
        joint, truth = joint.condition(evidence), restrict(truth, cards, evidence)
    variables = [int(v) for v in rng.permutation(len(cards))[: rng.integers(1, len(cards) + 1)]]
    smaller, expected = joint.marginal(variables), project(truth, cards, variables)
    assert_exact(smaller, expected, rng)
    evidence = possible_codes(expected, smaller.cards, rng)
    assert_exact(smaller.condition(evidence), restrict(expected, smaller.cards, evidence), rng)
    assert_exact(smaller.marginal([0]), project(expected, smaller.cards, [0]), rng)
    assert_exact(smaller[[1, 0]], expected[[1, 0]], rng)


@given(CARDS, SEEDS)
@quick
def test_rows_can_be_chosen_and_chosen_again(cards, seed):
    rng = np.random.default_rng(seed)
    joint, truth = make(cards, seed, n=5)
    evidence = possible_codes(truth, cards, rng, share=0.8)
    joint, truth = joint.condition(evidence), restrict(truth, cards, evidence)
    part = joint[[4, 1, 1, 3]][1:]
    assert_exact(part, truth[[1, 1, 3]], rng)
    assert len(joint[2]) == 1
    assert len(joint[np.zeros(5, bool)].marginals()[0]) == 0


@given(CARDS, SEEDS)
@seeded
def test_draws_have_the_right_frequencies(cards, seed):
    joint, truth = make(cards, seed)
    assert_frequencies(joint, truth)
    evidence = possible_codes(truth, cards, np.random.default_rng(seed), share=0.7)
    assert_frequencies(joint.condition(evidence), restrict(truth, cards, evidence))


def test_draws_are_exchangeable_and_seeded():
    joint, _ = make((2, 3, 2), 0, n=2)
    draws = joint.sample(2000, rng=1)
    np.testing.assert_array_equal(draws, joint.sample(2000, rng=1))
    np.testing.assert_allclose(draws[:1000].mean(axis=0), draws[1000:].mean(axis=0), atol=0.1)
    assert joint.sample(0, rng=1).shape == (0, 2, 3)


def test_first_variables_of_the_order_stay_a_chain():
    joint, _ = make((2, 3, 2, 2), 5)
    a, b, *_, last = joint.order
    assert isinstance(joint.marginal([b, a]), Autoregressive)
    assert isinstance(joint.marginal([last]), Subset)
    known = np.full((3, 4), UNKNOWN)
    known[:, last] = 0
    assert isinstance(joint.condition(known).marginal([b, a]), Subset)


def test_conflicting_and_impossible_codes():
    def conditional(variable, rows, codes):
        with np.errstate(divide="ignore"):
            if variable == 0:
                return np.log(np.tile([0.5, 0.5], (len(rows), 1)))
            return np.log(np.eye(2))[codes[:, 0]]

    joint = Autoregressive((2, 2), (0, 1), conditional, n=2)
    known = joint.condition([[0, UNKNOWN], [1, UNKNOWN]])
    np.testing.assert_array_equal(known.log_prob([0, UNKNOWN]), [0.0, -np.inf])
    np.testing.assert_array_equal(known.log_prob([UNKNOWN, 1]), [-np.inf, 0.0])
    with pytest.raises(ImpossibleEvidenceError, match="row 0"):
        joint.condition([0, 1])
    # A row that cannot be explained keeps what was known before.
    given_one, log_evidence = known._condition(np.array([[UNKNOWN, 1], [UNKNOWN, 1]]))
    np.testing.assert_array_equal(log_evidence, [-np.inf, 0.0])
    np.testing.assert_allclose(given_one.marginals()[1], [[1, 0], [0, 1]])


# -- the search for the mode ------------------------------------------------------------------------------


@given(SEEDS, st.sampled_from([0, 1, 5]))
@quick
def test_small_budgets_give_valid_outcomes_and_honest_flags(seed, max_nodes):
    cards = (2, 3, 2, 2, 3, 2, 2)
    joint, truth = make(cards, seed, search=Search(max_nodes))
    mode = joint.mode()
    value = np.exp(joint.log_prob(mode.codes))
    np.testing.assert_allclose(np.exp(mode.log_prob), value)
    assert (value > 0).all()
    np.testing.assert_allclose(value[mode.proven], truth.max(axis=1)[mode.proven])


def test_a_hopeless_budget_still_finds_an_outcome_that_the_evidence_allows():
    m = 12

    def conditional(variable, rows, codes):
        if variable < m - 1:  # every greedy choice is wrong
            return np.log(np.tile([0.1, 0.9], (len(rows), 1)))
        with np.errstate(divide="ignore"):
            return np.log(np.where((codes[:, :-1] == 0).all(axis=1)[:, None], [0.0, 1.0], [1.0, 0.0]))

    joint = Autoregressive((2,) * m, range(m), conditional, n=2, search=Search(max_nodes=1))
    mode = joint.condition([*[UNKNOWN] * (m - 1), 1]).mode()
    np.testing.assert_array_equal(mode.codes, [[0] * (m - 1) + [1]] * 2)
    np.testing.assert_allclose(mode.log_prob, 0.0, atol=1e-9)


# -- Monte Carlo ------------------------------------------------------------------------------------------


@given(CARDS, SEEDS)
@seeded
def test_estimates_keep_to_the_stated_tolerance(cards, seed):
    rng = np.random.default_rng(seed)
    joint, truth = make(cards, seed, engine=MonteCarlo(400, seed % 100))
    assert joint.tolerance == pytest.approx(0.1)
    assert_sums(joint, truth, joint.tolerance)
    partial = possible_codes(truth, cards, rng)
    expected = (truth * agree(cards, partial)).sum(axis=1)
    np.testing.assert_allclose(np.exp(joint.log_prob(partial)), expected, atol=joint.tolerance)
    entropy = -(truth * np.log(np.where(truth > 0, truth, 1.0))).sum(axis=1)
    np.testing.assert_allclose(joint.entropy(), entropy, atol=0.1)
    # Whatever needs no sum is exact.
    outcomes = all_outcomes(cards)
    np.testing.assert_allclose(np.exp(joint.log_prob(outcomes[:, None])).T, truth, atol=1e-9)
    assert_ranking(joint, truth)
    assert_frequencies(joint, truth)
    variables = rng.permutation(len(cards))[:2]
    assert_sums(joint.marginal(variables), project(truth, cards, variables), joint.tolerance)


@given(SEEDS)
@seeded
def test_estimates_given_evidence_keep_to_the_stated_tolerance(seed):
    cards, rng = (2, 3, 2, 4, 3, 2), np.random.default_rng(seed)
    joint, truth = make(cards, seed, zeros=0.1, engine=MonteCarlo(1000))
    evidence = np.full((3, 6), UNKNOWN)
    late = list(joint.order[4:])
    evidence[:, late] = np.where(rng.random((3, 2)) < 0.3, UNKNOWN, 0)
    joint, truth = joint.condition(evidence), restrict(truth, cards, evidence)
    assert 0 < joint.tolerance <= 1
    assert_sums(joint, truth, joint.tolerance)
    outcomes = all_outcomes(cards)
    np.testing.assert_allclose(np.exp(joint.log_prob(outcomes[:, None])).T, truth, atol=joint.tolerance)
    draws = joint.sample(500, rng=0)
    assert ((draws == evidence) | (evidence == UNKNOWN)).all()


def test_weighted_evidence_widens_the_tolerance_and_leading_evidence_does_not():
    joint, _ = make((2,) * 12, 3, zeros=0.0, engine=MonteCarlo(100))
    known = np.full((3, 12), UNKNOWN)
    known[:, joint.order[0]] = 0
    leading = joint.condition(known)
    assert leading.tolerance == pytest.approx(0.2)
    assert leading.scores_exactly
    known[:, joint.order[-1]] = 0
    weighted = joint.condition(known)
    assert 0.4 <= weighted.tolerance <= 1
    assert not weighted.scores_exactly


def test_few_points_sum_few_paths_exactly():
    joint, truth = make((2, 2, 2, 2, 2), 1, engine=MonteCarlo(8))
    known = np.full((3, 5), UNKNOWN)
    known[:, joint.order[3]] = 0  # eight paths lead there
    expected = (truth * agree(joint.cards, known)).sum(axis=1)
    np.testing.assert_allclose(np.exp(joint.log_prob(known)), expected)


def test_an_estimate_does_not_depend_on_the_other_rows():
    joint, _ = make((2, 2, 2, 1, 2, 2), 4, n=6, engine=MonteCarlo(50))
    for query in (Autoregressive._flat_marginals, Autoregressive.entropy, Autoregressive.count_marginals):
        np.testing.assert_allclose(query(joint)[[4, 2]], query(joint[[4, 2]]), atol=1e-12)


def test_estimates_are_unbiased_and_no_worse_than_independent_draws():
    cards, size = (2, 3, 2, 3), 10
    tables = make(cards, 6, n=2)[0].conditional
    errors = []
    for seed in range(300):
        joint = Autoregressive(cards, tables.order, tables, 2, engine=MonteCarlo(size, seed))
        pair = joint.pairwise()[0, 3].reshape(2, -1)
        errors.append(pair - project(tables.truth(), cards, [0, 3]))
    p = project(tables.truth(), cards, [0, 3])
    variance = p * (1 - p) / size
    assert (np.abs(np.mean(errors, axis=0)) <= 4 * np.sqrt(variance / 300) + 1e-12).all()
    assert (np.var(errors, axis=0) <= variance * (1 + 4 * np.sqrt(2 / 300)) + 1e-12).all()


def test_equal_rows_get_equal_estimates_and_seeds_matter():
    joint, _ = make((3, 3, 3, 3, 3), 4, n=2, engine=MonteCarlo(20))
    twice = joint[[1, 1]]
    np.testing.assert_array_equal(*twice._flat_marginals())
    other, _ = make((3, 3, 3, 3, 3), 4, n=2, engine=MonteCarlo(20, seed=1))
    assert (joint._flat_marginals() != other._flat_marginals()).any()


# -- linear chains: compiled code against the walk over prefixes --------------------------------------------


@dataclass(frozen=True)
class Called:
    """A conditional that can only be called, whatever it is made of."""

    conditional: Callable

    def __call__(self, variable, rows, codes):
        return self.conditional(variable, rows, codes)


def slow(joint):
    """Return the same distribution, answered by walks and by the search in Python."""
    return replace(joint, conditional=Called(joint.conditional))


def coin_terms(n, p=0.25):
    return LinearTerms(np.full((n, 1), np.log(p / (1 - p))), {}, np.arange(2), 1.0, np.zeros(2))


CHAINS = linear_chains(n=3) | linear_chains(cards=(2,) * 7, n=2)


@given(CHAINS, st.integers(1, 12), st.sampled_from([0, 1, 3, 2048]), st.booleans())
@examples(60)
def test_the_compiled_search_finds_what_the_search_in_python_finds(joint, k, budget, known):
    if known:
        evidence = joint.sample(1, 0)[0]
        evidence[:, ::2] = UNKNOWN
        joint = joint.condition(evidence)
    joint = replace(joint, search=Search(budget))
    found, expected = joint.top_k(k), slow(joint).top_k(k)
    assert (found.proven | ~expected.proven).all()  # strictly best first needs the fewest nodes
    both = found.proven & expected.proven
    np.testing.assert_allclose(found.log_prob[both], expected.log_prob[both], atol=1e-9)
    real = found.log_prob > -np.inf
    assert ((found.codes == UNKNOWN).all(axis=2) == ~real).all()
    np.testing.assert_allclose(
        slow(joint).log_prob(np.maximum(found.codes, 0).transpose(1, 0, 2)).T[real], found.log_prob[real]
    )
    for codes, log_prob in zip(found.codes, found.log_prob, strict=True):
        held = codes[log_prob > -np.inf]
        assert len(np.unique(held, axis=0)) == len(held)
        assert (np.diff(log_prob[log_prob > -np.inf]) <= 0).all()


def test_open_nodes_that_are_dropped_are_remembered():
    """With few nodes to open, few are held, and what is dropped counts against the proof."""
    rng = np.random.default_rng(0)
    m, k = 3, 600
    terms = [LinearTerms(rng.normal(size=(2, k)), {}, np.arange(k), 1.0, np.zeros(k)) for _ in range(m)]
    chain = LinearChain.pack((k,) * m, range(m), terms)
    known = np.full((2, m), UNKNOWN)
    few = chain.search(np.arange(2), known, 3, max_nodes=4, beam=16)
    many = chain.search(np.arange(2), known, 3, max_nodes=10**6, beam=16)
    assert many.proven.all()
    assert not few.proven.any()
    assert (few.log_prob <= many.log_prob + 1e-12).all()
    best = np.stack([each.base.argmax(axis=1) for each in terms], axis=1)
    np.testing.assert_array_equal(many.codes[:, 0], best)


@given(CHAINS, st.integers(1, 40), st.integers(0, 3), st.booleans())
@examples(40)
def test_compiled_estimates_are_those_of_the_walk(joint, size, seed, known):
    joint = replace(joint, engine=MonteCarlo(size, seed))
    if known:
        evidence = joint.sample(1, 0)[0]
        evidence[:, 1:] = np.where(np.arange(joint.n_variables - 1) % 3, UNKNOWN, evidence[:, 1:])
        joint = replace(joint, evidence=evidence)
    walked = slow(joint)
    np.testing.assert_allclose(joint._flat_marginals(), walked._flat_marginals(), atol=1e-9)
    np.testing.assert_allclose(joint.entropy(), walked.entropy(), atol=1e-9)
    assert joint.tolerance == pytest.approx(walked.tolerance)


@given(CHAINS)
@examples(40)
def test_compiled_log_probabilities_and_tables_are_those_of_the_walk(joint):
    walked, draws = slow(joint), joint.sample(4, 0)
    partial = np.where(np.arange(joint.n_variables) % 2, draws, UNKNOWN)
    for codes in (draws, partial, np.zeros_like(draws)):
        np.testing.assert_allclose(np.exp(joint.log_prob(codes)), np.exp(walked.log_prob(codes)), atol=1e-12)
        np.testing.assert_allclose(joint._bound(codes), walked._bound(codes), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.exp(joint._log_table()), np.exp(walked._log_table()), atol=1e-12)


def test_tables_of_all_outcomes_equal_the_walk_over_prefixes(monkeypatch):
    """Also over several blocks of rows, under evidence, and for the marginal of a prefix of the order."""
    monkeypatch.setattr("tuplet.core.limits.working_cells", lambda: 32 * 100)
    terms = [
        LinearTerms(np.random.default_rng(v).normal(size=(7, k)), {}, np.arange(k), 1.0, np.zeros(k))
        for v, k in enumerate((4, 3, 3, 5))
    ]
    terms[3] = terms[3]._replace(effects={1: np.arange(15.0).reshape(3, 5) / 5, 2: np.eye(3, 5)})
    fast = Autoregressive((4, 3, 3, 5), (2, 0, 1, 3), SoftmaxConditional((2, 0, 1, 3), tuple(terms)), n=7)
    joint = slow(fast)
    known = np.where(np.arange(4) % 2 == 0, joint.sample(1, 0)[0], UNKNOWN)
    for walked, quick in (
        (joint, fast),
        (joint.condition(known), fast.condition(known)),
        (joint.marginal(joint.order[:3]), fast.marginal(joint.order[:3])),
    ):
        assert quick._dense is not None
        np.testing.assert_allclose(quick._flat_marginals(), walked._flat_marginals(), atol=1e-12)
        np.testing.assert_allclose(quick.entropy(), walked.entropy(), atol=1e-12)
        np.testing.assert_allclose(quick.pairwise()[0, 2], walked.pairwise()[0, 2], atol=1e-12)


def test_auto_enumerates_what_fits_and_samples_the_rest():
    def coins(variable, rows, codes):
        return np.log(np.tile([0.75, 0.25], (len(rows), 1)))

    assert Autoregressive((2,) * 12, range(12), coins, n=1).tolerance == 0
    assert Autoregressive((2,) * 13, range(13), coins, n=1).tolerance > 0
    linear = SoftmaxConditional(tuple(range(16)), (coin_terms(1),) * 16)
    assert Autoregressive((2,) * 16, range(16), linear, n=1).tolerance == 0
    wide = Autoregressive((2,) * 53, range(53), coins, n=4)
    assert wide.tolerance == pytest.approx(2 / 1000**0.5)
    np.testing.assert_allclose(wide._flat_marginals().reshape(4, 53, 2)[..., 1], 0.25)
    np.testing.assert_allclose(wide.entropy(), 53 * 0.5623351446188083)
    # Enough evidence makes the rest small enough to enumerate.
    known = np.full(53, UNKNOWN)
    known[10:] = 0
    assert wide.condition(known).tolerance == 0


def test_evidence_found_by_sampling_does_not_blur_what_is_enumerated_later():
    m = 14

    def conditional(variable, rows, codes):
        z = 1.5 * codes[:, :variable].sum(axis=1) - variable + 0.3 * rows
        return -np.logaddexp(0, np.stack([z, -z], axis=1))

    joint = Autoregressive((2,) * m, range(m), conditional, n=2, engine="auto")
    assert joint.tolerance > 0
    known = np.full((2, m), UNKNOWN)
    known[0, [12, 13]], known[1, 13] = 1, 1
    given_both = joint.condition(known)
    assert given_both.tolerance > 0
    enumerated = given_both[0]
    assert enumerated.tolerance == 0
    draws = enumerated.sample(5, 0)
    np.testing.assert_allclose(enumerated.log_prob(draws), enumerated.to_atoms().log_prob(draws))


def test_enumeration_beyond_its_limit_is_refused():
    joint, _ = make((2,) * 8, 0, zeros=0.0, engine=Enumerate(limit=100))
    with pytest.raises(IntractableError, match="limit=100"):
        joint.marginals()
    with pytest.raises(IntractableError, match="limit=10"):
        make((2,) * 8, 0, zeros=0.0)[0].to_atoms(limit=10)
    assert joint.mode().proven.all()


# -- how often the conditional is asked -------------------------------------------------------------------


def recorded(cards=(2, 3, 2, 3), n=4, **options):
    joint, _ = make(cards, 0, n=n, zeros=0.0, **options)
    joint.conditional.asked.clear()
    joint.conditional.n_calls = 0
    return joint, joint.conditional


def test_complete_outcomes_cost_one_call_per_variable():
    joint, tables = recorded()
    joint.log_prob(np.zeros((4, 4), int))
    assert tables.n_calls == 4
    assert len(tables.asked) == 4 * 4


def test_outcomes_of_a_row_share_their_prefixes():
    joint, tables = recorded()
    joint.log_prob(all_outcomes(joint.cards)[:, None])
    assert tables.n_calls == 4
    assert len(tables.asked) == len(set(tables.asked))


def test_variables_after_the_last_known_one_are_not_asked_for():
    joint, tables = recorded()
    known = np.full(4, UNKNOWN)
    known[joint.order[1]] = 0
    joint.log_prob(known)
    assert {variable for variable, *_ in tables.asked} == set(joint.order[:2])
    assert tables.n_calls == 2


@pytest.mark.parametrize("engine", [Enumerate(), MonteCarlo(50)])
def test_sums_evaluate_every_prefix_once_and_are_kept(engine):
    joint, tables = recorded(engine=engine)
    joint.marginals()
    joint.entropy()
    joint.marginals()
    assert tables.n_calls == 4
    assert len(tables.asked) == len(set(tables.asked))


def test_draws_and_the_search_evaluate_every_prefix_once():
    for query in (lambda j: j.sample(100, 0), lambda j: j.top_k(3)):
        joint, tables = recorded((2, 3, 2, 3, 2))
        query(joint)
        assert len(tables.asked) == len(set(tables.asked))


def test_impossible_prefixes_are_not_followed():
    joint, truth = make((3, 3, 3, 3), 3, zeros=0.6)
    tables = joint.conditional
    tables.asked.clear()
    joint.marginals()
    assert (
        len([key for key in tables.asked if key[0] == joint.order[-1]])
        == (project(truth, joint.cards, joint.order[:-1]) > 0).sum()
    )


# -- sizes ------------------------------------------------------------------------------------------------


def test_many_labels_many_parts(monkeypatch):
    """A chain of 53 labels, walked in parts that fit a small memory, as in one."""

    def conditional(variable, rows, codes):
        pull = 0.3 * (codes[:, :variable] == 1).sum(axis=1) - 2.5 + 0.1 * rows
        return -np.logaddexp(0, np.stack([pull, -pull], axis=1))

    joint = Autoregressive((2,) * 53, range(53), conditional, n=20)
    whole = joint._flat_marginals()
    monkeypatch.setattr("tuplet.core.limits.working_cells", lambda: 32 * 5_000)
    parts = Autoregressive((2,) * 53, range(53), conditional, n=20)
    np.testing.assert_allclose(parts._flat_marginals(), whole)
    draws = joint.sample(30, 0)
    np.testing.assert_allclose(parts.log_prob(draws), joint.log_prob(draws))
    assert np.isfinite(joint.log_prob(draws)).all()


def test_tiny_probabilities_stay_finite():
    def conditional(variable, rows, codes):
        return np.tile([-1e4, 0.0], (len(rows), 1))

    joint = Autoregressive((2,) * 300, range(300), conditional, n=1)
    assert joint.log_prob(np.zeros(300, int)) == pytest.approx(-3e6)
    given_zeros = joint.condition(np.where(np.arange(300) < 150, 0, UNKNOWN))
    assert given_zeros.mode().log_prob == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(given_zeros.marginals()[0], [[1.0, 0.0]])


def test_bad_arguments_are_named():
    def conditional(variable, rows, codes):
        return np.zeros((len(rows), 3))

    with pytest.raises(InputError, match="order"):
        Autoregressive((2, 2), (0, 0), conditional, n=1)
    with pytest.raises(InputError, match="evidence"):
        Autoregressive((2, 2), (0, 1), conditional, n=1, evidence=np.zeros((3, 1, 2), int))
    with pytest.raises(InputError, match="engine"):
        Autoregressive((2, 2), (0, 1), conditional, n=1, engine="exact")
    with pytest.raises(InputError, match="found \\(1, 3\\)"):
        Autoregressive((2, 2), (0, 1), conditional, n=1).marginals()
    with pytest.raises(InputError, match="size"):
        MonteCarlo(size=0)


@pytest.mark.parametrize("cards", [(2,) * 12, (3, 2, 4, 2, 3, 2, 5)])
def test_bounds_behind_a_prefix_prove_the_mode_of_dependent_variables(cards):
    """The search against all outcomes, with variables of two and of more values and with shares."""
    rng, n, terms = np.random.default_rng(0), 20, []
    for j, card in enumerate(cards):
        c = 1 if card == 2 else card
        effects = {i: rng.normal(size=(cards[i], c)) for i in range(j)}
        share = rng.uniform(0, 0.02, card)
        terms.append(LinearTerms(rng.normal(size=(n, c)), effects, np.arange(card), 1 - share.sum(), share))
    chain = LinearChain.pack(cards, range(len(cards)), terms)
    truth = np.log(chain.tables(np.arange(n)))
    found = chain.search(np.arange(n), np.full((n, len(cards)), UNKNOWN), 2, max_nodes=10**5, beam=16)
    assert found.proven.all()
    np.testing.assert_allclose(found.log_prob, -np.sort(-truth, axis=1)[:, :2], atol=1e-12)
    few = chain.search(np.arange(n), np.full((n, len(cards)), UNKNOWN), 1, max_nodes=20, beam=1)
    np.testing.assert_allclose(few.log_prob[few.proven, 0], truth.max(axis=1)[few.proven], atol=1e-12)
