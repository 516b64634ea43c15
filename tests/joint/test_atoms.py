"""What `Atoms` refuses, what its sums give, and that neither time nor memory grows out of bounds."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Atoms, FactorGraph, JointDistribution
from tuplet.joint.atoms import _largest
from tuplet.joint.base import all_outcomes
from tuplet.joint.collect import outcome_keys
from tuplet.testing import check_joint
from tuplet.testing.strategies import atoms

few = examples(25)


def shared(n: int, a: int, cards: tuple[int, ...], seed: int = 0) -> Atoms:
    rng = np.random.default_rng(seed)
    outcomes = np.stack(np.unravel_index(rng.choice(np.prod(cards), a, replace=False), cards), axis=1)
    return Atoms(cards, outcomes[None], rng.normal(size=(n, a)))


def own(n: int, a: int, cards: tuple[int, ...], seed: int = 0) -> Atoms:
    rng = np.random.default_rng(seed)
    return Atoms.from_draws(cards, rng.integers(0, cards, size=(a, n, len(cards))), rng.normal(size=(a, n)))


def unshared(joint: Atoms) -> Atoms:
    """Return the same atoms, every row with a list of its own."""
    codes = np.broadcast_to(joint.codes, (len(joint), *joint.codes.shape[1:]))
    return Atoms(joint.cards, codes, joint.log_weights)


def peak_memory(call) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1, 2])
@pytest.mark.parametrize("n", [1, 2])
def test_codes_outside_their_variable_are_refused(bad, n):
    codes = np.zeros((n, 2, 3), int)
    codes[:, 1] = [1, bad, 2]
    with pytest.raises(InputError, match=f"code {bad} of variable 1 is outside its 2 values") as caught:
        Atoms((2, 2, 3), codes, np.zeros((2, 2)))
    assert caught.value.variable == 1
    with pytest.raises(InputError, match=f"code {bad} of variable 1"):
        Atoms.from_draws((2, 2, 3), codes.transpose(1, 0, 2))


def test_repeated_atoms_are_refused_whether_shared_or_not():
    twice = np.array([[[0, 1], [1, 1], [0, 1]]])
    with pytest.raises(InputError, match=r"must be distinct.*Atoms\.from_draws"):
        Atoms((2, 2), twice, np.zeros((4, 3)))
    lists = np.concatenate([np.array([[[0, 0], [1, 1], [0, 1]]]), twice])
    with pytest.raises(InputError, match=r"atoms of row 1 must be distinct.*Atoms\.from_draws"):
        Atoms((2, 2), lists, np.zeros((2, 3)))


def test_what_fills_up_a_short_list_may_repeat():
    lists = np.array([[[0, 0], [1, 1], [0, 1]], [[0, 1], [0, 0], [0, 0]]])
    joint = Atoms((2, 2), lists, np.array([[0.0, 0.0, 0.0], [0.0, -np.inf, -np.inf]]))
    assert np.exp(joint.log_prob([0, 1])).round(3).tolist() == [0.333, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Atoms((2,), np.array([[[0.5], [1.0]]]), np.zeros((1, 2))), "must be integers"),
        (lambda: Atoms((2,), np.array([[[0], [1]]]), np.zeros(2)), "do not fit"),
        (lambda: Atoms((2,), np.array([[[0], [1]]]), np.zeros((1, 3))), "do not fit"),
        (lambda: Atoms((2,), np.array([[[0], [1]]]), np.full((1, 2), -np.inf)), "not all zero"),
        (lambda: Atoms((2,), np.array([[[0], [1]]]), np.array([[0.0, np.nan]])), "finite"),
        (lambda: Atoms((2,), np.array([[[0], [1]]]), np.array([[0.0, np.inf]])), "finite"),
        (lambda: Atoms.from_draws((2, 2), np.zeros((3, 4), int)), "must be of shape"),
        (lambda: Atoms.from_draws((2,), np.zeros((0, 4, 1), int)), "at least 1"),
        (lambda: Atoms.from_draws((2,), np.zeros((3, 4, 1), int), np.zeros((4, 3))), "log_weights"),
        (lambda: Atoms.from_draws((2,), np.zeros((3, 4, 1), int), np.full((3, 4), -np.inf)), "not all zero"),
    ],
)
def test_bad_atoms_are_one_clear_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_rows_are_taken_without_checking_them_again(monkeypatch):
    joint = own(5, 4, (2, 3))
    monkeypatch.setattr(Atoms, "__post_init__", lambda self: pytest.fail("checked again"))
    known = np.where([True, False], joint.sample(1, 0)[0], UNKNOWN)
    assert len(joint[1:3]) == 2
    assert joint.condition(known).marginal([1]).cards == (3,)


# -- sums ----------------------------------------------------------------------------------------------------


@few
@given(atoms())
def test_lists_of_single_rows_answer_as_shared_ones_do(joint):
    check_joint(unshared(joint))


@few
@given(atoms())
def test_pairs_equal_those_of_the_contract(joint):
    for pair, table in JointDistribution.pairwise(joint).items():
        np.testing.assert_allclose(joint.pairwise()[pair], table, atol=1e-12)


def test_the_marginal_of_shared_atoms_stays_shared():
    joint = shared(30, 200, (3,) * 8)
    smaller = joint.marginal([5, 2, 7])
    assert smaller.codes.shape == (1, len(np.unique(joint.codes[0][:, [5, 2, 7]], axis=0)), 3)
    np.testing.assert_allclose(
        np.hstack(smaller.marginals()), np.hstack([joint.marginals()[v] for v in (5, 2, 7)]), atol=1e-12
    )


def test_sums_of_tiny_weights_are_not_lost_beside_large_ones():
    joint = Atoms((2, 2), all_outcomes((2, 2))[None], np.array([[0.0, -1.0, -5000.0, -5001.0]] * 2))
    expected = -5000.0 + np.log1p(np.exp(-1.0)) - np.log1p(np.exp(-1.0))
    for same in (joint, unshared(joint)):
        np.testing.assert_allclose(same.marginal([0]).log_prob([1]), expected, rtol=1e-12)


def test_equal_outcomes_have_equal_keys_in_lexicographic_order():
    rng = np.random.default_rng(0)
    for cards in [(2,) * 5, (3, 1, 4), (2,) * 150, (1000,) * 20, (10**9, 10**9, 10**9)]:
        codes = rng.integers(0, np.minimum(cards, 3), size=(300, len(cards)))
        _, expected = np.unique(codes, axis=0, return_inverse=True)
        _, found = np.unique(outcome_keys(codes, cards), return_inverse=True)
        np.testing.assert_array_equal(found.ravel(), expected.ravel())


@pytest.mark.parametrize("m", [3, 100])
def test_draws_of_few_and_many_variables_are_collected_row_by_row(m):
    rng = np.random.default_rng(1)
    draws = np.repeat(rng.integers(0, 2, size=(8, 3, m)), 2, axis=0)
    log_weights = rng.normal(size=draws.shape[:2])
    joint = Atoms.from_draws((2,) * m, draws, log_weights)
    for i in range(3):
        weights = np.exp(log_weights[:, i])
        for outcome in np.unique(draws[:, i], axis=0):
            same = (draws[:, i] == outcome).all(axis=1)
            expected = weights[same].sum() / weights.sum()
            np.testing.assert_allclose(np.exp(joint[i].log_prob(outcome)), expected, atol=1e-12)


def test_draws_are_told_apart_by_numbers_and_not_by_sorting_rows_of_a_table(monkeypatch):
    draws = np.random.default_rng(2).integers(0, 2, size=(50, 20, 62))
    monkeypatch.setattr(np, "unique", lambda *args, **kwargs: pytest.fail("rows were sorted"))
    assert len(Atoms.from_draws((2,) * 62, draws)) == 20


# -- no rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [shared, own])
def test_no_rows_give_empty_batches(make):
    empty = make(4, 3, (2, 2, 3))[[]]
    assert empty.marginal([0]).log_prob([[0]]).shape == (0,)
    assert empty.draw(3).marginals()[2].shape == (0, 3)
    assert empty.pairwise()[0, 2].shape == (0, 2, 3)
    assert empty.marginal([0, 1]).count_marginals().shape == (0, 2, 3)
    assert empty.entropy().shape == (0,)
    assert empty.condition([0, UNKNOWN, UNKNOWN]).mode().codes.shape == (0, 3)


def test_draws_of_no_rows_are_atoms_of_no_rows():
    empty = FactorGraph.independent([np.log([[0.5, 0.5]])])[[]]
    assert len(empty.draw(3)) == 0


# -- bounded memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [shared, own])
def test_log_prob_holds_a_bounded_part_of_the_comparisons(make, monkeypatch):
    joint = make(60, 50, (3,) * 6)
    codes = np.where(np.arange(6) < 3, joint.sample(7, 0), UNKNOWN)
    whole = joint.log_prob(codes), joint._bound(codes)
    held = []
    matches = Atoms._matches
    monkeypatch.setattr(Atoms, "_matches", lambda *args: held.append(matches(*args)) or held[-1])
    monkeypatch.setattr("tuplet.core.limits.working_cells", lambda: 32 * 200)
    np.testing.assert_array_equal(joint.log_prob(codes), whole[0])
    np.testing.assert_array_equal(joint._bound(codes), whole[1])
    assert max(block.size for block in held) <= 200


@pytest.mark.parametrize("make", [shared, own])
def test_sums_do_not_depend_on_the_size_of_blocks(make, monkeypatch):
    joint = make(40, 20, (2,) * 6)
    whole = joint._flat_marginals(), joint._count_marginals(), joint.pairwise()[1, 4]
    monkeypatch.setattr("tuplet.core.limits.working_cells", lambda: 32 * 300)
    for found, expected in zip(
        (joint._flat_marginals(), joint._count_marginals(), joint.pairwise()[1, 4]), whole, strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize(
    ("query", "joint"),
    [
        (lambda joint: joint.count_marginals(), shared(200, 2000, (2,) * 14)),
        (lambda joint: joint.count_marginals(), own(400, 400, (2,) * 40)),
        (lambda joint: joint.condition([0] + [UNKNOWN] * 13), shared(200, 2000, (2,) * 14)),
        (lambda joint: joint.condition(joint.sample(1, 0)[0]), own(400, 400, (2,) * 40)),
        (lambda joint: joint.marginal([0, 1]), shared(200, 2000, (2,) * 14)),
        (lambda joint: joint.pairwise(), shared(200, 2000, (2,) * 14)),
    ],
    ids=["counts shared", "counts", "condition shared", "condition", "marginal", "pairwise"],
)
def test_queries_need_little_more_memory_than_weights_and_answers(query, joint):
    """A few arrays (n, a) and the answers (n, about 2 m m), never (n, a, m) numbers."""
    n, a = joint.log_weights.shape
    answers = n * 2 * joint.n_variables**2
    assert peak_memory(lambda: query(joint)) < 8 * (5 * n * a + 2 * answers)


@pytest.mark.parametrize("n", [1, 3])
def test_an_absent_atom_may_repeat_another_one(n):
    codes = np.array([[[0, 0], [0, 0], [1, 1]]])
    weights = np.tile([0.0, 0.25, 0.75], (n, 1))
    with np.errstate(divide="ignore"):
        joint = Atoms((2, 2), codes, np.log(weights))
        own = Atoms((2, 2), np.repeat(codes, 2, axis=0), np.log([[0.0, 0.25, 0.75]] * 2))
    for each in (joint, own, own[:1]):
        np.testing.assert_allclose(np.exp(each.log_prob([0, 0])), 0.25)
        np.testing.assert_allclose(np.exp(each.log_prob([0, UNKNOWN])), 0.25)
        np.testing.assert_allclose(np.exp(each._log_table()), np.tile([0.25, 0, 0, 0.75], (len(each), 1)))


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32 - 1))
@examples(40)
def test_the_largest_are_those_of_a_stable_sort(a, k, seed):
    values = np.random.default_rng(seed).integers(0, 6, size=(4, a)).astype(float)
    values[values == 0] = -np.inf
    expected = np.argsort(-values, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(_largest(values, k), expected)


def test_answers_do_not_depend_on_the_sizes_of_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    outcomes = all_outcomes((2,) * 5)[None]
    whole = Atoms((2,) * 5, outcomes, rng.normal(size=(7, 32)))
    monkeypatch.setattr("tuplet.core.limits.working_cells", lambda: 32 * 70)
    parts = Atoms((2,) * 5, outcomes, whole.log_weights)
    assert len(list(parts._blocks(32))) > 2
    np.testing.assert_allclose(parts._flat_marginals(), whole._flat_marginals(), atol=1e-12)
    np.testing.assert_allclose(parts.count_marginals(), whole.count_marginals(), atol=1e-12)
    np.testing.assert_allclose(parts.entropy(), whole.entropy(), atol=1e-12)
    np.testing.assert_array_equal(parts.top_k(3).codes, whole.top_k(3).codes)
    np.testing.assert_array_equal(parts.sample(3, 0), whole.sample(3, 0))


def test_weights_may_be_given_block_by_block():
    rng = np.random.default_rng(0)
    codes, weights = np.array([[0, 0], [1, 1], [1, 2]]), rng.dirichlet(np.ones(3), size=7)
    asked = []
    joint = Atoms.from_blocks((2, 3), codes, 7, lambda rows: asked.append(rows) or weights[rows].copy())
    expected = Atoms((2, 3), codes[None], np.log(weights))
    assert len(joint) == 7
    assert not asked  # nothing is computed before it is needed
    for ours, theirs in zip(joint.marginals(), expected.marginals(), strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert "log_weights" not in joint.__dict__
    np.testing.assert_array_equal(joint.sample(5, rng=1), expected.sample(5, rng=1))
    np.testing.assert_array_equal(joint.mode().codes, expected.mode().codes)
    np.testing.assert_allclose(joint.log_weights, expected.log_weights)
