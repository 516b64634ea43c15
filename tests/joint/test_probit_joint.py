"""The form `Probit`: every query against enumeration, and against what normal vectors are known to do."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from draws import examples
from tuplet.core.exceptions import InputError, IntractableError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Atoms, Mixture, Probit, Search
from tuplet.joint.base import all_outcomes
from tuplet.testing import check_joint


def posterior(n_draws, n, q, seed=0, spread=0.2, dof=3):
    """Draws around one matrix and one mean."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(q, q + dof))
    factors = base + spread * rng.normal(size=(n_draws, q, q + dof))
    matrices = factors @ factors.transpose(0, 2, 1)
    scale = np.sqrt(np.einsum("dii->di", matrices))
    matrices /= scale[:, :, None] * scale[:, None]
    return rng.normal(size=(n, q)) + 2 * spread * rng.normal(size=(n_draws, n, q)), matrices


@examples(8)
@given(
    q=st.integers(1, 4),
    n=st.integers(1, 3),
    n_draws=st.sampled_from([1, 7, 64]),
    seed=st.integers(0, 1000),
    dof=st.integers(-1, 4),
)
def test_every_query_agrees_with_enumeration(q, n, n_draws, seed, dof):
    check_joint(Probit(*posterior(n_draws, n, q, seed, dof=max(dof, 1 - q)), seed=seed))


def test_a_conditioned_distribution_keeps_to_its_statement():
    joint = Probit(*posterior(30, 3, 4, 1))
    check_joint(joint.condition([[1, -1, -1, -1], [-1, -1, 0, -1], [-1, -1, -1, -1]]))
    check_joint(joint.condition([-1, 1, -1, -1]).marginal([3, 0]))  # the known variable is not among them
    check_joint(joint.condition([0, 1, 1, 0]))


@pytest.mark.parametrize("q", [2, 4, 8])
@pytest.mark.parametrize("n_draws", [1, 40, 400])
def test_the_tolerance_covers_the_error_of_the_default(q, n_draws):
    means, matrices = posterior(n_draws, 3, q, q + n_draws, dof=1)
    joint = Probit(means, matrices)
    fine = Probit(means, matrices, n_points=2**14 // n_draws, seed=7)
    outcomes = fine.sample(15, 0)
    error = np.abs(np.exp(joint.log_prob(outcomes)) - np.exp(fine.log_prob(outcomes))).max()
    assert error <= joint.tolerance
    evidence = np.full(q, UNKNOWN)
    evidence[-1] = 1
    one, other = joint.condition(evidence), fine.condition(evidence)
    outcomes = other.sample(15, 0)
    error = np.abs(np.exp(one.log_prob(outcomes)) - np.exp(other.log_prob(outcomes))).max()
    assert error <= one.tolerance


def test_marginals_are_exact_for_each_draw():
    means, matrices = posterior(50, 4, 5)
    joint = Probit(means, matrices, n_points=1)
    expected = ndtr(means).mean(axis=0)
    for j, marginal in enumerate(joint.marginals()):
        np.testing.assert_allclose(marginal[:, 1], expected[:, j], rtol=1e-12)


def test_given_evidence_probabilities_add_up_to_one():
    joint = Probit(*posterior(20, 2, 4)).condition([UNKNOWN, 1, UNKNOWN, UNKNOWN])
    logs = joint.log_prob(all_outcomes((2,) * 4)[:, None])
    np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1.0, rtol=1e-10)
    assert np.isneginf(logs[all_outcomes((2,) * 4)[:, 1] == 0]).all()


def test_a_search_finds_what_enumeration_finds():
    means, matrices = posterior(20, 3, 10, 3)
    joint = Probit(means, matrices, n_points=16, search=Search(max_nodes=20_000))
    ranking = joint.top_k(5)
    assert ranking.proven.all()
    expected = joint.to_atoms().top_k(5)
    np.testing.assert_array_equal(ranking.codes, expected.codes)
    np.testing.assert_allclose(ranking.log_prob, expected.log_prob, rtol=1e-9)


def test_a_search_without_budget_says_so_and_gives_a_good_answer():
    means, matrices = posterior(20, 3, 14, 3)
    means = 0.2 * means
    short = Probit(means, matrices, n_points=16, search=Search(max_nodes=1)).mode()
    long = Probit(means, matrices, n_points=16, search=Search(max_nodes=50_000)).mode()
    assert not short.proven.any()
    assert (short.log_prob <= long.log_prob + 1e-9).all()
    assert (short.log_prob > long.log_prob - 1.5).all()


def test_many_labels():
    means, matrices = posterior(40, 2, 50, 0, dof=20)
    joint = Probit(means, matrices, n_points=8, search=Search(max_nodes=64))
    mode = joint.mode()
    np.testing.assert_allclose(joint.log_prob(mode.codes), mode.log_prob, rtol=1e-9)
    assert np.isfinite(joint.log_prob(1 - mode.codes)).all()
    counts = joint.count_marginals()
    np.testing.assert_allclose(
        counts.sum(axis=2), np.stack([m[:, 1] for m in joint.marginals()], axis=1), atol=joint.tolerance
    )
    with pytest.raises(IntractableError):
        joint.entropy()


def test_rows_may_be_computed_when_they_are_asked_for():
    means, matrices = posterior(10, 6, 3)

    class Lazy:
        shape = means.shape

        def rows(self, index):
            return means[:, index]

    lazy, eager = Probit(Lazy(), matrices), Probit(means, matrices)
    codes = [1, UNKNOWN, 0]
    np.testing.assert_array_equal(lazy[[4, 1]].log_prob(codes), eager[[4, 1]].log_prob(codes))
    np.testing.assert_array_equal(lazy.marginals()[2], eager.marginals()[2])
    np.testing.assert_array_equal(lazy.mode().codes, eager.mode().codes)


def test_single_precision_means_are_fine():
    means, matrices = posterior(10, 2, 3)
    one, other = Probit(means.astype(np.float32), matrices), Probit(means, matrices)
    np.testing.assert_allclose(one.log_prob([1, 0, 1]), other.log_prob([1, 0, 1]), rtol=1e-5)


def test_marginal_intervals_are_quantiles_of_the_draws():
    means, matrices = posterior(999, 3, 2)
    found = Probit(means, matrices).marginal_intervals(0.9)
    expected = np.quantile(ndtr(means), [0.05, 0.95], axis=0, method="inverted_cdf")
    np.testing.assert_allclose(found, np.moveaxis(expected, 0, -1), atol=1e-12)


def test_intervals_of_outcomes_are_quantiles_of_single_draws():
    means, matrices = posterior(61, 2, 3, 5)
    outcome = np.array([1, 0, 1])
    alone = [
        np.exp(Probit(means[d : d + 1], matrices[d : d + 1]).log_prob(outcome)) for d in range(len(means))
    ]
    expected = np.quantile(alone, [0.1, 0.9], axis=0, method="inverted_cdf")
    found = Probit(means, matrices).intervals(outcome, level=0.8, n_points=256)
    np.testing.assert_allclose(found, expected.T, atol=2e-3)


def test_intervals_given_evidence_weigh_the_draws():
    means = np.array([[[3.0, 0.0]], [[-3.0, 1.0]], [[-3.0, 1.0]]])
    matrices = np.tile(np.eye(2), (3, 1, 1))
    joint = Probit(means, matrices).condition([1, UNKNOWN])  # only the first draw foresaw this
    np.testing.assert_allclose(joint.intervals([UNKNOWN, 1]), 0.5, atol=0.01)
    np.testing.assert_allclose(joint.marginal_intervals()[0], [[1.0, 1.0], [0.5, 0.5]], atol=0.01)


def test_intervals_hold_the_mean_and_shrink_with_the_level():
    joint = Probit(*posterior(200, 3, 4))
    wide, narrow = joint.intervals(joint.mode().codes, 0.99), joint.intervals(joint.mode().codes, 0.5)
    p = np.exp(joint.mode().log_prob)
    assert ((wide[:, 0] < p) & (p < wide[:, 1])).all()
    assert ((wide[:, 0] < narrow[:, 0]) & (narrow[:, 1] < wide[:, 1])).all()


def test_seeds_change_the_points_and_nothing_else():
    means, matrices = posterior(5, 2, 4)
    one, other = (Probit(means, matrices, seed=seed) for seed in (0, 1))
    gap = np.abs(one.log_prob([1, 1, 0, 0]) - other.log_prob([1, 1, 0, 0]))
    assert (gap > 0).all()
    assert (gap < 0.05).all()


def test_pickles_and_works_inside_a_mixture():
    joint = Probit(*posterior(8, 2, 3))
    joint.mode()
    again = pickle.loads(pickle.dumps(joint))
    np.testing.assert_array_equal(again.log_prob([1, 0, 1]), joint.log_prob([1, 0, 1]))
    atoms = Atoms.from_draws(joint.cards, joint.sample(100, 0))
    check_joint(Mixture(np.log(np.full((2, 2), 0.5)), (joint, atoms)))


def test_no_rows():
    joint = Probit(*posterior(4, 3, 2))[np.zeros(3, bool)]
    assert joint.log_prob([1, 0]).shape == (0,)
    assert joint.marginals()[0].shape == (0, 2)
    assert joint.count_marginals().shape == (0, 2, 3)
    assert joint.intervals([1, 0]).shape == (0, 2)


@pytest.mark.parametrize(
    ("means", "matrices", "message"),
    [
        (np.zeros((2, 1, 2)), np.eye(2)[None], "do not fit 1 correlation"),
        (np.zeros((1, 1, 2)), 2 * np.eye(2)[None], "unit diagonal"),
        (np.zeros((1, 1, 2)), np.eye(2), "shape"),
        (np.full((1, 1, 2), np.nan), np.eye(2)[None], "finite"),
    ],
)
def test_what_cannot_be_a_distribution_is_refused(means, matrices, message):
    with pytest.raises(InputError, match=message):
        Probit(means, matrices)


def test_a_level_must_be_a_share():
    with pytest.raises(InputError, match="level"):
        Probit(*posterior(4, 1, 2)).intervals([1, 0], level=95)


def test_what_is_decided_for_a_row_does_not_depend_on_the_others(monkeypatch):
    rng = np.random.default_rng(0)
    n, q = 9, 13
    factor = rng.normal(size=(q, 3))
    R = factor @ factor.T + np.eye(q)
    scale = np.sqrt(np.diag(R))
    joint = Probit(rng.normal(size=(1, n, q)), (R / np.outer(scale, scale))[None])
    counts, best = joint._count_marginals(), joint.top_k(3)
    for rows in (slice(0, 1), slice(4, 9)):
        np.testing.assert_array_equal(joint[rows]._count_marginals(), counts[rows])
        np.testing.assert_array_equal(joint[rows].top_k(3).codes, best.codes[rows])
    monkeypatch.setattr("tuplet.core.limits.working_cells", lambda: 32 * 1)
    np.testing.assert_array_equal(joint._count_marginals(), counts)
    np.testing.assert_allclose(
        counts.sum(axis=2), np.stack([m[:, 1] for m in joint.marginals()], axis=1), atol=0.04
    )
