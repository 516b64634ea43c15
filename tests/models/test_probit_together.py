"""Coefficients and correlations moved together: derivatives, points and starts against slow versions."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import ndtr, ndtri

from tuplet.joint.ghk_kernels import find_points, follow_points, mean_probabilities, slope_orthants
from tuplet.models.probit.sampling.correlation import Hamiltonian
from tuplet.models.probit.sampling.correlation_kernels import carry_slope, correlation_of
from tuplet.models.probit.sampling.means import LinearSettings
from tuplet.models.probit.sampling.sampler import label_signs, offsets_of
from tuplet.models.probit.sampling.together import RowGroups, Together, _Surface

ORDERS, STARTS = np.array([[0, 1, 2, 3], [2, 0, 3, 1]]), np.array([0, 3, 7])


def rows(seed=0):
    """Correlations, signs (some not known), means and points of seven rows and four labels."""
    rng = np.random.default_rng(seed)
    R = correlation_of(0.5 * rng.normal(size=6), 4, False)
    return R, rng.integers(-1, 2, (4, 7)).astype(float), rng.normal(size=(4, 7)), np.log(rng.random((4, 7)))


def by_hand(R, signs, means, log_u):
    """Log-weights and latent variables, row by row."""
    total, latent = 0.0, np.empty_like(means)
    for order, first, last in zip(ORDERS, STARTS, STARTS[1:], strict=False):
        L = np.linalg.cholesky(R[np.ix_(order, order)])
        for i in range(first, last):
            e = np.zeros(4)
            for k, label in enumerate(order):
                a, s, u = (means[label, i] + L[k] @ e) / L[k, k], signs[label, i], np.exp(log_u[k, i])
                p = ndtr(s * a) if s else 1.0
                total += np.log(p)
                e[k] = -(s or 1) * ndtri(u * p)
                latent[label, i] = (a + e[k]) * L[k, k]
    return total, latent


def test_weights_and_latent_variables_are_those_of_sequential_conditioning():
    R, signs, means, log_u = rows()
    slopes, R_slope, latent, back = np.empty((4, 7)), np.empty((4, 4)), np.empty((4, 7)), np.empty((4, 7))
    value = slope_orthants(ORDERS, STARTS, R, signs, means, log_u, slopes, R_slope)
    follow_points(ORDERS, STARTS, R, signs, means, log_u, latent)
    expected, expected_latent = by_hand(R, signs, means, log_u)
    assert value == pytest.approx(expected, abs=1e-8)
    np.testing.assert_allclose(latent, expected_latent, atol=1e-8)
    assert (latent * signs >= 0).all()
    find_points(ORDERS, STARTS, R, signs, means, latent, back)
    np.testing.assert_allclose(back, log_u, atol=1e-7)


def test_a_matrix_that_is_not_positive_definite_has_no_density():
    R, signs, means, log_u = rows()
    R[0, 1] = R[1, 0] = 1.5
    assert (
        slope_orthants(ORDERS, STARTS, R, signs, means, log_u, np.empty((4, 7)), np.empty((4, 4))) == -np.inf
    )


@pytest.mark.parametrize("n_factors", [0, 2])
def test_slopes_of_free_numbers(n_factors):
    rng = np.random.default_rng(1)
    slope = rng.normal(size=(5, 5))
    slope += slope.T
    theta = 0.5 * rng.normal(size=10)
    error = check_grad(
        lambda t: (slope * correlation_of(t, 5, n_factors > 0)).sum(),
        lambda t: carry_slope(t, slope, n_factors > 0),
        theta,
    )
    assert error < 1e-5


@pytest.mark.parametrize(
    "rule", [Hamiltonian(), Hamiltonian("inverse-wishart"), Hamiltonian(n_factors=2), None]
)
@pytest.mark.parametrize("n_features", [3, 60])  # more than rows: as many positions as rows
def test_density_and_gradient_of_everything(rule, n_features):
    rng = np.random.default_rng(2)
    X, codes = rng.normal(size=(40, n_features)), rng.integers(-1, 2, (40, 3))
    signs = label_signs(codes)
    design = LinearSettings().prepare(X, signs, offsets_of(signs))
    move = Together.make(rule, design, signs, offsets_of(signs))
    signs = signs[:, move.groups.rows].astype(float)
    log_u = np.log(rng.random((3, 40)))
    surface = _Surface(move, move.positions, signs, log_u, np.empty((3, 40)), np.empty((3, 40)))
    at = 0.3 * rng.normal(size=len(move.masses))
    assert check_grad(lambda x: surface.value(x).value, lambda x: surface.value(x).slope, at) < 1e-3


def test_unsure_labels_are_visited_first():
    means = np.array([[0.1, 3, 0.1, 3], [3, 0.1, 3, 0.1], [0.2, 0.2, 0.2, 0.2]])
    groups = RowGroups.make(means)
    for order, first, last in zip(groups.orders, groups.starts, groups.starts[1:], strict=False):
        for row in groups.rows[first:last]:
            np.testing.assert_array_equal(
                np.sort(np.abs(means[order, row]) > 1), np.abs(means[order, row]) > 1
            )
    assert sorted(groups.rows) == [0, 1, 2, 3]


def test_chains_start_at_the_mode():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    signs = label_signs((X[:, :2] + rng.normal(size=(200, 2)) > 0).astype(int))
    move = Together.make(
        None, LinearSettings(1.0).prepare(X, signs, offsets_of(signs)), signs, offsets_of(signs)
    )
    surface = _Surface(
        move, move.positions, signs[:, move.groups.rows].astype(float), *np.zeros((3, 2, 200)) - 1.0
    )
    slope = surface.value(np.zeros(len(move.masses))).slope  # in units of the posterior deviation
    assert np.abs(slope).max() < 1e-3


def test_coefficients_that_the_rows_say_nothing_about_are_drawn_from_the_prior():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(5, 40))
    design = LinearSettings(1.5).prepare(X, np.ones((3, 5)), np.zeros(3))
    assert design.rotated.shape == (5, 5)
    positions = rng.normal(size=(3, 5))
    draws = np.array([design.coefficients(positions, rng) for _ in range(2000)])
    full = np.column_stack([np.ones(5), X])
    np.testing.assert_allclose(draws[0] @ full.T, design.means(positions), atol=1e-8)
    np.testing.assert_allclose(design.positions(draws[0]), positions, atol=1e-8)
    # The variance that is left is that of the prior outside of the space of the rows.
    projection = design.axes @ design.axes.T
    expected = (1 - np.diag(projection)) * 1.5**2
    np.testing.assert_allclose(draws[:, 0, 1:].var(axis=0), expected, atol=0.2 * expected.max())


def test_mean_probabilities():
    means = np.random.default_rng(5).normal(size=(2, 700))
    np.testing.assert_allclose(mean_probabilities(means), ndtr(means).mean(axis=1), rtol=1e-10)
