"""Every query of every form equals enumeration, and what the forms promise beyond that."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from tuplet.core.exceptions import InputError, IntractableError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Atoms, FactorGraph, JointDistribution
from tuplet.joint.base import all_outcomes
from tuplet.testing import check_joint, enumerate_joint
from tuplet.testing.strategies import FORMS, cardinalities, joints

thorough = examples(25)


@pytest.mark.parametrize("form", sorted(FORMS))
@thorough
@given(data=st.data())
def test_every_query_equals_enumeration(form, data):
    check_joint(data.draw(FORMS[form]()))


@pytest.mark.parametrize("form", sorted(FORMS))
@thorough
@given(data=st.data())
def test_every_query_equals_enumeration_on_binary_variables(form, data):
    check_joint(data.draw(FORMS[form](data.draw(cardinalities(binary=True)))))


@thorough
@given(joints(), st.data())
def test_conditioning_twice_is_conditioning_once(joint, data):
    outcome = joint.sample(1, 0)[0]
    first = np.array(data.draw(st.lists(st.booleans(), min_size=outcome.shape[1], max_size=outcome.shape[1])))
    a, b = np.where(first, outcome, UNKNOWN), np.where(first, UNKNOWN, outcome)
    second = np.where(np.arange(outcome.shape[1]) % 2 == 0, b, UNKNOWN)
    at_once = joint.condition(np.where(second == UNKNOWN, a, second))
    in_turn = joint.condition(a).condition(second)
    np.testing.assert_allclose(np.hstack(in_turn.marginals()), np.hstack(at_once.marginals()), atol=1e-9)


@thorough
@given(joints())
def test_atoms_of_a_joint_are_the_same_distribution(joint):
    np.testing.assert_allclose(enumerate_joint(joint.to_atoms()), enumerate_joint(joint), atol=1e-9)


@thorough
@given(joints())
def test_a_batch_of_no_rows_is_a_batch(joint):
    empty = joint[[]]
    assert len(empty) == 0
    assert empty.log_prob([UNKNOWN] * empty.n_variables).shape == (0,)
    assert [table.shape for table in empty.marginals()] == [(0, card) for card in joint.cards]
    assert empty.mode().codes.shape == (0, joint.n_variables)
    assert empty.sample(3, 0).shape == (3, 0, joint.n_variables)


def independent(m: int, n: int = 2) -> FactorGraph:
    return FactorGraph.independent([np.log(np.full((n, 2), 0.5))] * m)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda j: j.log_prob([0, 0]), "must be of shape"),
        (lambda j: j.log_prob([0, 0, 7]), "outside its 2 values"),
        (lambda j: j.log_prob([0, 0, -2]), "outside its 2 values"),
        (lambda j: j.log_prob([0.5, 0, 0]), "must be integers"),
        (lambda j: j.top_k(0), "at least 1"),
        (lambda j: j.sample(-1), "must not be negative"),
        (lambda j: j.draw(0), "at least 1"),
        (lambda j: j.marginal([0, 0]), "distinct"),
        (lambda j: j.marginal([3]), "below 3"),
        (lambda j: j.condition(np.zeros((4, 2, 3), int)), "shape"),
    ],
)
def test_bad_arguments_are_one_clear_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call(independent(3))


def test_enumeration_beyond_the_limit_says_what_to_do():
    with pytest.raises(IntractableError, match=r"1,073,741,824 outcomes.*draw\(1000\)"):
        independent(30).to_atoms()


def test_counts_need_binary_variables():
    joint = Atoms((2, 3), all_outcomes((2, 3))[None], np.zeros((1, 6)))
    with pytest.raises(InputError, match="variable 1 has 3 values"):
        joint.count_marginals()


def test_draws_become_atoms_with_their_frequencies():
    draws = np.array([[[0, 1]], [[0, 1]], [[1, 0]], [[0, 1]]])
    joint = Atoms.from_draws((2, 2), draws)
    np.testing.assert_allclose(np.exp(joint.log_prob([0, 1])), [0.75])
    np.testing.assert_allclose(np.exp(joint.log_prob([1, 1])), [0.0])


def test_counts_of_many_labels_are_those_of_independent_coins():
    m, n = 60, 3
    rng = np.random.default_rng(0)
    p = rng.random((n, m))
    joint = FactorGraph.independent([np.log(np.stack([1 - p[:, j], p[:, j]], axis=1)) for j in range(m)])
    counts = joint.count_marginals()
    np.testing.assert_allclose(counts.sum(axis=2), p, atol=1e-10)
    expected = np.ones((n, 1))
    for j in range(m):  # the distribution of the count by adding one coin after the other
        expected = (
            np.pad(expected, ((0, 0), (0, 1))) * (1 - p[:, [j]])
            + np.pad(expected, ((0, 0), (1, 0))) * p[:, [j]]
        )
    sizes = np.arange(1, m + 1)
    np.testing.assert_allclose(counts.sum(axis=1)[:, 1:] / sizes, expected[:, 1:], atol=1e-10)


def test_repr_tells_form_rows_and_cards():
    assert repr(independent(3)) == "FactorGraph(n=2, cards=(2, 2, 2))"
    assert isinstance(independent(3), JointDistribution)
