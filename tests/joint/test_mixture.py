import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from draws import examples
from outcome_tables import agree, assert_ranking, possible_codes, project, restrict
from tuplet.core.exceptions import ImpossibleEvidenceError, InputError, IntractableError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Atoms, Autoregressive, FactorGraph, Mixture, MonteCarlo, Search
from tuplet.joint.base import all_outcomes
from tuplet.joint.inference import Factor
from tuplet.joint.mixture import OutcomeBounds, _BitLayout

# -- random components and their truth --------------------------------------------------------------------


def log(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


def sparse(rng, shape, zeros=0.2):
    """Random weights; some are zero, never the first of the last axis."""
    weights = rng.gamma(0.7, size=shape) + 1e-3
    weights[..., 1:][rng.random(weights[..., 1:].shape) < zeros] = 0.0
    return weights


def chain(cards, n, rng, **options):
    order = [int(v) for v in rng.permutation(len(cards))]
    outcomes = all_outcomes(cards)
    truth, tables = np.ones((n, len(outcomes))), {}
    for place, v in enumerate(order):
        weights = sparse(rng, (n, *(cards[u] for u in order[:place]), cards[v]))
        tables[v] = weights / weights.sum(axis=-1, keepdims=True)
        truth *= tables[v][(slice(None), *outcomes[:, [*order[:place], v]].T)]

    def conditional(variable, rows, codes):
        earlier = order[: order.index(variable)]
        return log(tables[variable][(rows, *(codes[:, v] for v in earlier))])

    return Autoregressive(cards, order, conditional, n, **options), truth


def atoms(cards, n, rng):
    outcomes = all_outcomes(cards)
    weights = sparse(rng, (n, len(outcomes)), zeros=0.6)
    truth = weights / weights.sum(axis=1, keepdims=True)
    return Atoms(cards, outcomes[None], log(truth)), truth


def graph(cards, n, rng):
    """A chain of pairs."""
    outcomes, truth, factors = all_outcomes(cards), 1.0, []
    for v in range(len(cards)):
        scope = (v,) if v == 0 else (v - 1, v)
        table = sparse(rng, (*(cards[u] for u in scope), n), zeros=0.0)
        factors.append(Factor(scope, np.log(table)))
        truth = truth * table[tuple(outcomes[:, u] for u in scope)].T
    return FactorGraph(cards, factors, n), truth / truth.sum(axis=1, keepdims=True)


def nested(cards, n, rng):
    parts = [atoms(cards, n, rng), chain(cards, n, rng)]
    return mix(parts, n, rng)


def mix(parts, n, rng, zeros=0.2, **options):
    weights = sparse(rng, (n, len(parts)), zeros)
    weights /= weights.sum(axis=1, keepdims=True)
    truth = sum(weights[:, c, None] * part for c, (_, part) in enumerate(parts))
    # Weights need not be normalised.
    return Mixture(
        log(weights) + rng.normal(size=(n, 1)), tuple(joint for joint, _ in parts), **options
    ), truth


FORMS = (atoms, chain, graph, nested)


def random_mixture(cards, n, rng, **options):
    forms = rng.choice(len(FORMS), size=rng.integers(1, 4))
    return mix([FORMS[f](cards, n, rng) for f in forms], n, rng, **options)


# -- comparisons ------------------------------------------------------------------------------------------


def assert_exact(joint, truth, rng):
    cards, outcomes = joint.cards, all_outcomes(joint.cards)
    assert joint.tolerance == 0
    np.testing.assert_allclose(np.exp(joint.log_prob(outcomes[:, None])).T, truth, atol=1e-9)
    partial = np.stack([possible_codes(truth, cards, rng) for _ in range(3)])
    expected = [(truth * agree(cards, codes)).sum(axis=1) for codes in partial]
    np.testing.assert_allclose(np.exp(joint.log_prob(partial)), expected, atol=1e-9)
    for codes in partial:
        best = (truth * agree(cards, codes)).max(axis=1)
        assert (np.exp(joint._bound(codes[None])[0]) >= best - 1e-9).all()
    for j, marginal in enumerate(joint.marginals()):
        np.testing.assert_allclose(marginal, project(truth, cards, [j]), atol=1e-9)
    for (i, j), table in joint.pairwise().items():
        np.testing.assert_allclose(table.reshape(len(truth), -1), project(truth, cards, [i, j]), atol=1e-9)
    entropy = -(truth * np.log(np.where(truth > 0, truth, 1.0))).sum(axis=1)
    np.testing.assert_allclose(joint.entropy(), entropy, atol=1e-9)
    if max(cards) <= 2:
        expected_counts = Atoms(cards, outcomes[None], log(truth)).count_marginals()
        np.testing.assert_allclose(joint.count_marginals(), expected_counts, atol=1e-9)
    assert_ranking(joint, truth)


CARDS = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)
SEEDS = st.integers(0, 2**32 - 1)
quick = examples(25)

# -- every query ------------------------------------------------------------------------------------------


@given(CARDS, SEEDS)
@quick
def test_every_query_equals_enumeration(cards, seed):
    rng = np.random.default_rng(seed)
    joint, truth = random_mixture(cards, 3, rng)
    assert_exact(joint, truth, rng)


@given(st.integers(1, 5).map(lambda m: (2,) * m), SEEDS)
@quick
def test_binary_mixtures_equal_enumeration(cards, seed):
    rng = np.random.default_rng(seed)
    joint, truth = random_mixture(cards, 2, rng)
    assert_exact(joint, truth, rng)


@given(CARDS, SEEDS)
@quick
def test_conditioning_marginals_and_rows_equal_enumeration(cards, seed):
    rng = np.random.default_rng(seed)
    joint, truth = random_mixture(cards, 3, rng)
    evidence = possible_codes(truth, cards, rng)
    joint, truth = joint.condition(evidence), restrict(truth, cards, evidence)
    assert_exact(joint, truth, rng)
    evidence = possible_codes(truth, cards, rng)
    assert_exact(joint.condition(evidence), restrict(truth, cards, evidence), rng)
    assert_exact(joint[[2, 0]], truth[[2, 0]], rng)
    variables = [int(v) for v in rng.permutation(len(cards))[: rng.integers(1, len(cards) + 1)]]
    assert_exact(joint.marginal(variables), project(truth, cards, variables), rng)


@given(CARDS, SEEDS)
@examples(15, derandomize=True)
def test_draws_have_the_right_frequencies(cards, seed):
    rng = np.random.default_rng(seed)
    joint, truth = random_mixture(cards, 3, rng)
    draws = joint.sample(3000, rng=5)
    assert draws.shape == (3000, 3, len(cards))
    np.testing.assert_array_equal(draws, joint.sample(3000, rng=5))
    found = (draws[:, :, None] == all_outcomes(cards)).all(axis=3).mean(axis=0)
    assert (found[truth == 0] == 0).all()
    assert (np.abs(found - truth) <= 5 * np.sqrt(np.maximum(truth * (1 - truth), 0) / 3000) + 2 / 3000).all()


def test_one_component_and_equal_components_change_nothing():
    rng = np.random.default_rng(0)
    one, truth = graph((2, 3, 2), 2, rng)
    assert_exact(Mixture(np.full((2, 1), 3.0), (one,)), truth, rng)
    assert_exact(Mixture(rng.normal(size=(2, 3)), (one, one, one)), truth, rng)


def test_evidence_that_only_some_components_explain():
    first = Atoms((2, 2), np.array([[[0, 0], [0, 1]]]), np.log([[0.5, 0.5]] * 2))
    second = Atoms((2, 2), np.array([[[1, 1], [0, 1]]]), np.log([[0.9, 0.1]] * 2))
    joint = Mixture(np.zeros((2, 2)), (first, second))
    given_one = joint.condition([[1, UNKNOWN], [0, UNKNOWN]])
    np.testing.assert_allclose(np.exp(given_one.log_weights), [[0, 1], [1 / 1.1, 0.1 / 1.1]])
    np.testing.assert_allclose(given_one.marginals()[1], [[0, 1], [0.5 / 1.1, 0.6 / 1.1]])
    with pytest.raises(ImpossibleEvidenceError, match="row 0"):
        joint.condition([1, 0])
    fallback, log_evidence = joint._condition(np.array([[1, 0], [0, 0]]))
    np.testing.assert_allclose(np.exp(log_evidence), [0, 0.25])
    np.testing.assert_allclose(fallback.marginals()[0][0], joint.marginals()[0][0])


# -- the search for the mode ------------------------------------------------------------------------------


def beyond_enumeration(seed, forms, n=4, **options):
    """More outcomes than are simply evaluated."""
    rng = np.random.default_rng(seed)
    cards = tuple(int(card) for card in rng.integers(2, 4, size=6))
    return mix([form(cards, n, rng) for form in forms], n, rng, **options)


@given(SEEDS, st.lists(st.sampled_from(FORMS), min_size=1, max_size=4), st.integers(1, 7))
@examples(25)
def test_branch_and_bound_proves_the_best(seed, forms, k):
    joint, truth = beyond_enumeration(seed, forms)
    assert joint.n_outcomes >= 64
    assert_ranking(joint, truth, k)


@given(SEEDS, st.lists(st.sampled_from(FORMS), min_size=1, max_size=4))
@examples(25)
def test_branch_and_bound_after_conditioning(seed, forms):
    joint, truth = beyond_enumeration(seed, forms)
    evidence = possible_codes(truth, joint.cards, np.random.default_rng(seed), share=0.8)
    assert_ranking(joint.condition(evidence), restrict(truth, joint.cards, evidence), k=3)


@given(SEEDS, st.lists(st.sampled_from(FORMS), min_size=2, max_size=4), st.sampled_from([0, 1, 3]))
@examples(25)
def test_small_budgets_give_valid_outcomes_and_honest_flags(seed, forms, max_nodes):
    joint, truth = beyond_enumeration(seed, forms, search=Search(max_nodes))
    mode = joint.mode()
    value = np.exp(joint.log_prob(mode.codes))
    np.testing.assert_allclose(np.exp(mode.log_prob), value)
    assert (value > 0).all()
    np.testing.assert_allclose(value[mode.proven], truth.max(axis=1)[mode.proven])


def test_blocks_of_rows_give_the_same_answers(monkeypatch):
    rng = np.random.default_rng(5)
    cards, n = (2,) * 8, 11
    joints = [chain(cards, n, rng)[0] for _ in range(3)]
    whole = Mixture(np.zeros((n, 3)), tuple(joints)).top_k(3)
    monkeypatch.setattr("tuplet.core.limits.working_cells", lambda: 32 * 1)
    monkeypatch.setattr("tuplet.joint.mixture._BLOCK", 4)
    parts = Mixture(np.zeros((n, 3)), tuple(joints)).top_k(3)
    assert whole.proven.all()
    assert parts.proven.all()
    np.testing.assert_array_equal(parts.codes, whole.codes)
    np.testing.assert_allclose(parts.log_prob, whole.log_prob)


def test_the_mode_need_not_be_the_mode_of_a_component():
    """Two components that favour different outcomes share a second choice."""
    outcomes = all_outcomes((2,) * 7)
    weights = np.full((2, 1, 128), 1e-4)
    weights[0, 0, [3, 64]] = 0.5, 0.45
    weights[1, 0, [99, 64]] = 0.5, 0.45
    parts = tuple(Atoms((2,) * 7, outcomes[None], np.log(weight)) for weight in weights)
    mode = Mixture(np.zeros((1, 2)), parts).mode()
    assert mode.proven.all()
    np.testing.assert_array_equal(mode.codes[0], outcomes[64])


def test_chains_in_different_orders_are_proven_with_few_evaluations():
    m, n, n_chains = 14, 10, 6
    rng = np.random.default_rng(0)
    bias, pull = rng.normal(-1, 2, size=(n, m)), rng.normal(0, 0.8, size=(m, m))
    asked = [0]

    def make(order):
        def conditional(variable, rows, codes):
            asked[0] += len(rows)
            earlier = order[: order.index(variable)]
            z = bias[rows, variable] + codes[:, earlier] @ pull[variable, earlier]
            return -np.logaddexp(0, np.stack([z, -z], axis=1))

        return Autoregressive((2,) * m, order, conditional, n)

    joint = Mixture(
        np.zeros((n, n_chains)), tuple(make(rng.permutation(m).tolist()) for _ in range(n_chains))
    )
    mode = joint.mode()
    assert mode.proven.all()
    assert asked[0] < 600 * n * n_chains  # all outcomes would be 16,383
    best = np.concatenate([joint[[i]].to_atoms().mode().log_prob for i in range(n)])
    np.testing.assert_allclose(mode.log_prob, best)


@given(CARDS, SEEDS, st.integers(1, 6))
@quick
def test_outcome_bounds_bound_every_completion(cards, seed, width):
    rng = np.random.default_rng(seed)
    joint, truth = chain(cards, 3, rng)
    evidence = possible_codes(truth, cards, rng, share=0.8)
    joint, truth = joint.condition(evidence), restrict(truth, cards, evidence)
    listed = OutcomeBounds.above(joint, np.log(rng.random(3) * 0.3), width)
    rows = rng.integers(3, size=5)
    partial = np.stack([possible_codes(truth, cards, rng)[rows] for _ in range(2)])
    bound = listed.bound(rows, *_BitLayout.of(cards).pack(partial))
    for codes, bounds in zip(partial, bound, strict=True):
        assert (np.exp(bounds) >= (truth[rows] * agree(cards, codes)).max(axis=1) - 1e-9).all()


def test_outcome_bounds_pack_many_and_wide_variables():
    m = 40
    cards = (5,) * m

    def conditional(variable, rows, codes):
        return np.log(np.tile([0.96, 0.01, 0.01, 0.01, 0.01], (len(rows), 1)))

    joint = Autoregressive(cards, range(m), conditional, n=1)
    best = m * np.log(0.96)
    listed = OutcomeBounds.above(joint, np.array([best + np.log(0.01)]), 10**4)
    assert listed.packed.shape[0] == 2  # 21 variables of three bits fit a word
    codes = np.full((3, 1, m), UNKNOWN)
    codes[1, 0, [0, 39]] = 0, 4
    codes[2, 0, [3, 38]] = 2, 2
    expected = [best, best + np.log(0.01 / 0.96), best + np.log(0.01)]
    packed = _BitLayout.of(cards).pack(codes)
    np.testing.assert_allclose(listed.bound(np.array([0]), *packed)[:, 0], expected)


# -- estimates --------------------------------------------------------------------------------------------


def test_sampled_components_state_their_tolerance_and_keep_the_proof_of_the_mode():
    rng = np.random.default_rng(3)
    cards = (2, 3, 2, 2, 3, 2)
    parts = [chain(cards, 3, rng, engine=MonteCarlo(200)), graph(cards, 3, rng)]
    joint, truth = mix(parts, 3, rng)
    assert joint.tolerance == pytest.approx(2 / 200**0.5)
    for j, marginal in enumerate(joint.marginals()):
        np.testing.assert_allclose(marginal, project(truth, cards, [j]), atol=joint.tolerance)
    assert_ranking(joint, truth)


def test_estimated_evidence_is_no_proof():
    rng = np.random.default_rng(4)
    cards = (2,) * 12
    joint, _ = mix([chain(cards, 2, rng, engine=MonteCarlo(20)), graph(cards, 2, rng)], 2, rng, zeros=0.0)
    known = np.full(12, UNKNOWN)
    known[joint.components[0].order[-1]] = 0
    given_last = joint.condition(known)
    assert given_last.tolerance > joint.tolerance
    assert not given_last.mode().proven.any()


# -- arguments --------------------------------------------------------------------------------------------


def test_no_rows():
    joint, _ = random_mixture((2, 3, 4, 2, 4), 3, np.random.default_rng(0))
    none = joint[np.zeros(3, bool)]
    assert none.mode().codes.shape == (0, 5)
    assert none.sample(2, 0).shape == (2, 0, 5)


def test_entropy_beyond_enumeration_is_refused():
    parts = tuple(FactorGraph.independent([np.log([[0.5, 0.5]])] * 20) for _ in range(2))
    with pytest.raises(IntractableError, match="20 variables"):
        Mixture(np.zeros((1, 2)), parts).entropy()


def test_bad_arguments_are_named():
    part, _ = atoms((2, 2), 2, np.random.default_rng(0))
    other, _ = atoms((2, 3), 2, np.random.default_rng(0))
    with pytest.raises(InputError, match="do not fit 1 components"):
        Mixture(np.zeros((2, 2)), (part,))
    with pytest.raises(InputError, match="cardinalities"):
        Mixture(np.zeros((2, 2)), (part, other))
    with pytest.raises(InputError, match="not all zero"):
        Mixture(np.full((2, 1), -np.inf), (part,))


def test_weights_are_normalised():
    part, _ = atoms((2, 2), 2, np.random.default_rng(0))
    joint = Mixture(np.array([[1.0, 2.0], [-500.0, -np.inf]]), (part, part))
    np.testing.assert_allclose(logsumexp(joint.log_weights, axis=1), 0.0, atol=1e-12)


@examples(30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 12), st.integers(0, 2))
def test_shared_atoms_with_graphs_are_ranked_as_by_enumeration(seed, k, n_atoms, n_graphs):
    rng = np.random.default_rng(seed)
    cards, n = (3, 2, 4, 3, 2), 6
    outcomes = all_outcomes(cards)
    listed = rng.permutation(len(outcomes))[:n_atoms]
    weights = sparse(rng, (n, n_atoms))
    truth = np.zeros((n, len(outcomes)))
    truth[:, listed] = weights / weights.sum(axis=1, keepdims=True)
    parts = [(Atoms(cards, outcomes[listed][None], log(weights)), truth), atoms(cards, n, rng)]
    parts = parts[: 1 + (seed % 2)] + [graph(cards, n, rng) for _ in range(n_graphs)]
    mixing = sparse(rng, (n, len(parts)), zeros=0.3)
    mixing /= mixing.sum(axis=1, keepdims=True)
    joint = Mixture(log(mixing), tuple(part for part, _ in parts))
    expected = sum(mixing[:, [c]] * table for c, (_, table) in enumerate(parts))
    assert joint._n_listed() > 0
    assert_ranking(joint, expected, k)


@pytest.mark.parametrize("cards", [(2, 2, 2, 2), (3, 1, 2, 4), (2,) * 7])
def test_the_mode_next_to_a_little_of_another_component_is_that_of_all_outcomes(cards):
    rng = np.random.default_rng(len(cards))
    scopes = [(j, j + 1) for j in range(len(cards) - 1)]
    factors = [Factor(scope, rng.normal(size=(*(cards[v] for v in scope), 40)) / 3) for scope in scopes]
    graph = FactorGraph(cards, factors, n=40)
    best, last = graph._mode_and_next()
    two = graph.top_k(2)
    np.testing.assert_array_equal(best.codes[:, 0], two.codes[:, 0])
    np.testing.assert_allclose(best.log_prob[:, 0], two.log_prob[:, 0])
    np.testing.assert_allclose(last, two.log_prob[:, 1])
    other = FactorGraph.independent([np.log(rng.dirichlet(np.full(card, 0.2), 40)) for card in cards])
    joint = Mixture(np.tile(np.log([0.92, 0.08]), (40, 1)), (graph, other))
    mode, table = joint.mode(), joint._log_table()
    assert mode.proven.all()
    np.testing.assert_allclose(mode.log_prob, table.max(axis=1))
    np.testing.assert_allclose(joint.log_prob(mode.codes), table.max(axis=1))
    assert (table.argmax(axis=1) != graph._log_table().argmax(axis=1)).any()  # rows of both kinds
