"""Orthant probabilities against scipy's multivariate normal distribution."""

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from scipy.stats import multivariate_normal

from tuplet.joint import Probit
from tuplet.joint.base import all_outcomes
from tuplet.joint.ghk_kernels import draw_outcomes, fill_tables, log_paths
from tuplet.joint.orthants import Points, _copies, unit_points


def correlation(q, dof, seed):
    factor = np.random.default_rng(seed).normal(size=(q, dof))
    matrix = factor @ factor.T + 1e-12 * np.eye(q)
    scale = np.sqrt(np.diag(matrix))
    return matrix / scale / scale[:, None]


def orthants(mean, matrix):
    """Probabilities of all sign vectors, by scipy."""
    answer = []
    for code in all_outcomes((2,) * len(mean)):
        sign = 2 * code - 1
        cov = matrix * np.outer(sign, sign)
        answer.append(
            multivariate_normal.cdf(
                sign * mean, np.zeros(len(mean)), cov, maxpts=50_000, abseps=1e-7, releps=1e-7
            )
        )
    return np.array(answer)


@pytest.mark.parametrize("seed", [0, 1])
def test_ten_thousand_points_give_three_digits(seed):
    matrix = correlation(5, 8, seed)
    mean = 0.7 * np.random.default_rng(seed).normal(size=5)
    joint = Probit(mean[None, None], matrix[None], n_points=10_000, seed=seed)
    truth = orthants(mean, matrix)
    found = np.exp(joint.log_prob(all_outcomes((2,) * 5)[:, None]))[:, 0]
    likely = truth > 0.01
    assert (np.abs(found / truth - 1)[likely] < 1e-3).all()
    np.testing.assert_allclose(found.sum(), 1.0, rtol=1e-12)


def test_two_variables_by_the_formula_of_sheppard():
    for rho in (-0.99, -0.5, 0.0, 0.7, 0.999):
        joint = Probit(np.zeros((1, 1, 2)), np.array([[[1.0, rho], [rho, 1.0]]]))
        expected = 0.25 + np.arcsin(rho) / (2 * np.pi)
        np.testing.assert_allclose(np.exp(joint.log_prob([1, 1])), expected, atol=1e-5)


def test_independent_variables_are_exact_however_improbable():
    mean = np.array([-60.0, 3.0, 0.2, 45.0])
    joint = Probit(mean[None, None], np.eye(4)[None])
    for code in all_outcomes((2,) * 4):
        expected = log_ndtr((2 * code - 1) * mean).sum()
        np.testing.assert_allclose(joint.log_prob(code), expected, rtol=1e-9)


def test_paths_and_tables_are_the_same_numbers():
    q, n_points = 6, 500
    matrices = np.stack([correlation(q, 8, seed) for seed in range(3)])
    points = Points(matrices, n_points, seed=1)
    visit = points.visit((3, 0, 5, 1, 2, 4))
    scaled = visit.scale(np.random.default_rng(0).normal(size=(3, 2, q)))
    tables = np.empty((2, 2**q))
    fill_tables(np.empty((2, 0), np.intp), scaled, visit.factors, visit.u, visit.log_u, tables)
    codes = all_outcomes((2,) * q)
    for row in range(2):
        logs = np.empty((len(codes), 1))
        log_paths(np.full(len(codes), row), codes, scaled, visit.factors, visit.u, visit.log_u, logs)
        np.testing.assert_allclose(np.exp(logs[:, 0]), tables[row], rtol=1e-9)
    np.testing.assert_allclose(tables.sum(axis=1), 1.0, rtol=1e-12)


def test_groups_of_points_average_to_the_whole():
    points = Points(np.stack([correlation(3, 4, seed) for seed in range(4)]), 16, seed=0)
    visit = points.visit((0, 1, 2))
    scaled = visit.scale(np.random.default_rng(1).normal(size=(4, 1, 3)))
    rows, codes = np.zeros(1, np.intp), np.array([[1, 0, 1]])
    apart, whole = np.empty((1, 4)), np.empty((1, 1))
    log_paths(rows, codes, scaled, visit.factors, visit.u, visit.log_u, apart)
    log_paths(rows, codes, scaled, visit.factors, visit.u, visit.log_u, whole)
    np.testing.assert_allclose(np.exp(apart).mean(), np.exp(whole[0, 0]), rtol=1e-12)


def test_factors_are_those_of_cholesky():
    matrix = correlation(4, 6, 0)
    visit = Points(matrix[None], 1, seed=0).visit((2, 0, 3, 1))
    order = np.ix_([2, 0, 3, 1], [2, 0, 3, 1])
    lower = np.linalg.cholesky(matrix[order])
    diagonal = np.diag(lower)
    expected = np.tril(lower, -1) / diagonal[:, None] + np.diag(1 / diagonal)
    np.testing.assert_allclose(visit.factors[..., 0], expected, atol=1e-12)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_singular_matrices_give_finite_answers(rank):
    matrix = np.clip(correlation(4, rank, 3), -1, 1)
    joint = Probit(np.array([[[0.3, -0.2, 0.5, 0.1]]]), matrix[None])
    logs = joint.log_prob(all_outcomes((2,) * 4)[:, None])
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs).sum(), 1.0, rtol=1e-9)
    np.testing.assert_allclose(np.exp(joint.log_prob([1, -1, -1, -1])), ndtr(0.3), atol=1e-6)


def test_draws_given_known_signs_follow_the_truncated_normal():
    matrix = correlation(3, 4, 5)
    mean = np.array([0.4, -0.3, 0.2])
    truth = orthants(mean, matrix).reshape(2, 2, 2)
    visit = Points(matrix[None], 4096, seed=0).visit((0, 1, 2))
    scaled = visit.scale(mean[None, None])
    rng, size = np.random.default_rng(0), 20_000
    codes = np.empty((1, size, 3), np.intp)
    picks, normals = rng.random((1, size)), rng.standard_normal((1, size, 2))
    draw_outcomes(np.array([[1]]), scaled, visit.factors, visit.log_u, picks, normals, codes)
    assert (codes[..., 0] == 1).all()
    frequency = np.bincount(2 * codes[0, :, 1] + codes[0, :, 2], minlength=4) / size
    np.testing.assert_allclose(frequency, truth[1].ravel() / truth[1].sum(), atol=5 * 0.5 / size**0.5)


def test_points_are_inside_the_cube_and_evenly_spread():
    for n_draws, n_points in ((1, 100), (7, 16), (50, 1)):
        points = unit_points(n_draws, n_points, 4, seed=3)
        assert points.shape == (4, n_draws * n_points)
        assert ((points > 0) & (points < 1)).all()
    blocks = unit_points(8, 16, 3, seed=0).reshape(3, 8, 16)
    assert (np.sort(np.floor(16 * blocks), axis=2) == np.arange(16)).all()  # each draw is stratified


@pytest.mark.parametrize("number", [1, 3])
def test_compiled_code_gets_arrays_in_its_own_layout(number):
    """Any other layout would be compiled anew, which takes seconds."""
    turned = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    found = _copies(turned, number)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, np.concatenate([turned] * number, axis=-1))
    found[:] = 0.0
    assert turned.any()
