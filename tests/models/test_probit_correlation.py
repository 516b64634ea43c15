"""Steps of the correlation matrix: against quadrature, known priors and each other."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import check_grad

from tuplet.models.probit.sampling.correlation import (
    Hamiltonian,
    Metropolis,
    StepSize,
    _draw_inverse_wishart,
    correlation_step,
)
from tuplet.models.probit.sampling.correlation_kernels import correlation_of, density_of, trajectory


def residuals(n, R, seed=0):
    return np.random.default_rng(seed).multivariate_normal(np.zeros(len(R)), R, n)


def run(rule, cross, n, n_draws, *, n_burn=1500, seed=0, thin=1):
    rng = np.random.default_rng(seed)
    state = rule.start(len(cross), n, rng)
    for _ in range(n_burn):
        state, _ = rule.step(state, cross, n, rng, True)
    draws, accepted = [], []
    for i in range(n_draws * thin):
        state, probability = rule.step(state, cross, n, rng, False)
        accepted.append(probability)
        if i % thin == 0:
            draws.append(state.matrix)
    return np.array(draws), float(np.mean(accepted))


def moments_by_quadrature(cross, n, prior):
    """Posterior mean and second moment of the one correlation of two labels."""

    def log_density(r):
        fit = (cross[0, 0] + cross[1, 1] - 2 * r * cross[0, 1]) / (1 - r * r)
        return -n / 2 * np.log(1 - r * r) - fit / 2

    grid = np.linspace(-0.9999, 0.9999, 20_001)
    top = log_density(grid).max()

    def moment(power):
        return quad(lambda r: r**power * np.exp(log_density(r) - top) * prior(r), -1, 1, limit=500)[0]

    return moment(1) / moment(0), moment(2) / moment(0)


# -- two labels: quadrature --------------------------------------------------------------------------------

PRIORS = [
    ({}, lambda r: 1.0),
    ({"eta": 4.0}, lambda r: (1 - r * r) ** 3),
    ({"prior": "inverse-wishart"}, lambda r: 1.0),  # marginally uniform with q + 1 degrees of freedom
]


@pytest.mark.parametrize(("settings", "prior"), PRIORS)
@pytest.mark.parametrize(("n", "rho"), [(12, 0.5), (60, -0.9), (200, 0.1)])
def test_hamiltonian_agrees_with_quadrature(settings, prior, n, rho):
    E = residuals(n, np.array([[1, rho], [rho, 1]]))
    mean, square = moments_by_quadrature(E.T @ E, n, prior)
    draws, accepted = run(Hamiltonian(**settings), E.T @ E, n, 12_000)
    sd = np.sqrt(square - mean**2)
    # Consecutive draws are close to independent; four standard errors, had they three times the variance.
    assert abs(draws[:, 0, 1].mean() - mean) < 4 * sd * np.sqrt(3 / 12_000)
    assert abs((draws[:, 0, 1] ** 2).mean() - square) < 8 * sd * np.sqrt(3 / 12_000)
    assert 0.6 < accepted < 0.97


@pytest.mark.parametrize(("settings", "prior"), PRIORS)
def test_metropolis_agrees_with_quadrature(settings, prior):
    n = 40
    E = residuals(n, np.array([[1, 0.5], [0.5, 1]]), seed=1)
    mean, square = moments_by_quadrature(E.T @ E, n, prior)
    draws, accepted = run(Metropolis(**settings), E.T @ E, n, 5000, n_burn=500)
    sd = np.sqrt(square - mean**2)
    assert abs(draws[:, 0, 1].mean() - mean) < 4 * sd * np.sqrt(12 / 5000)  # an effective tenth of them
    assert 0.2 < accepted < 0.4


def test_factors_agree_with_integration_over_the_loadings():
    n = 25
    E = residuals(n, np.array([[1, -0.6], [-0.6, 1]]), seed=2)
    cross = E.T @ E
    grid = np.linspace(-5, 5, 801)
    a, b = np.meshgrid(grid, grid)
    r = a * b / np.sqrt((1 + a * a) * (1 + b * b))
    fit = (cross[0, 0] + cross[1, 1] - 2 * r * cross[0, 1]) / (1 - r * r)
    log_weight = -n / 2 * np.log(1 - r * r) - fit / 2 - (a * a + b * b) / 2
    weight = np.exp(log_weight - log_weight.max())
    mean = (r * weight).sum() / weight.sum()
    sd = np.sqrt((r * r * weight).sum() / weight.sum() - mean**2)
    draws, _ = run(Hamiltonian(n_factors=1), cross, n, 20_000)
    assert abs(draws[:, 0, 1].mean() - mean) < 4 * sd * np.sqrt(10 / 20_000)


# -- more labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "variance"),
    [({}, 1 / 6), ({"eta": 3.0}, 1 / 10), ({"prior": "inverse-wishart"}, 1 / 3)],
)
def test_without_rows_the_prior_is_drawn(settings, variance):
    # LKJ(eta): each correlation is Beta(eta - 1 + q / 2) on (-1, 1), of variance 1 / (2 eta + q - 1).
    draws, _ = run(Hamiltonian(**settings), np.zeros((5, 5)), 0, 12_000, n_burn=3000)
    pairs = draws[:, *np.triu_indices(5, 1)]
    np.testing.assert_allclose(pairs.var(axis=0), variance, rtol=0.15)
    np.testing.assert_allclose(pairs.mean(axis=0), 0, atol=0.06)


def test_hamiltonian_and_metropolis_agree():
    R = np.array([[1, 0.7, 0.8], [0.7, 1, 0.9], [0.8, 0.9, 1]])
    E = residuals(80, R)
    one, _ = run(Hamiltonian(), E.T @ E, 80, 8000)
    other, accepted = run(Metropolis(), E.T @ E, 80, 6000, n_burn=1000)
    np.testing.assert_allclose(one.mean(axis=0), other.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(one.std(axis=0), other.std(axis=0), atol=0.015)
    assert 0.2 < accepted < 0.4


@pytest.mark.parametrize(
    ("q", "factors", "eta", "dof"), [(2, 0, 1.0, 0.0), (5, 0, 2.5, 0.0), (5, 0, -5.0, 6.0), (6, 2, 1.0, 0.0)]
)
def test_density_and_gradient(q, factors, eta, dof):
    rng = np.random.default_rng(0)
    n = 30
    E = rng.normal(size=(n, q))
    cross = E.T @ E
    size = q * factors if factors else q * (q - 1) // 2

    def density(theta):
        return density_of(theta, cross, float(n), eta, dof, factors > 0)[0]

    def by_hand(theta):
        R = correlation_of(theta, q, factors > 0)
        log_det, inverse = np.linalg.slogdet(R)[1], np.linalg.inv(R)
        value = -n / 2 * log_det - (inverse * cross).sum() / 2
        if factors:
            return value - (theta**2).sum() / 2
        column = np.concatenate([np.arange(i) for i in range(q)])
        jacobian = ((1 + (q - 2 - column) / 2) * np.log(1 - np.tanh(theta) ** 2)).sum()
        return value + (eta - 1) * log_det - dof / 2 * np.log(np.diag(inverse)).sum() + jacobian

    a, b = 0.7 * rng.normal(size=(2, size))
    assert density(a) - density(b) == pytest.approx(by_hand(a) - by_hand(b), rel=1e-9)
    gradient = check_grad(density, lambda t: density_of(t, cross, float(n), eta, dof, factors > 0)[1], a)
    assert gradient < 1e-4 * n


@pytest.mark.parametrize("factors", [0, 2])
def test_trajectories_run_backwards(factors):
    rng = np.random.default_rng(0)
    E = rng.normal(size=(50, 4))
    theta = 0.3 * rng.normal(size=8 if factors else 6)
    momentum = rng.normal(size=len(theta))
    args = (E.T @ E, 50.0, 1.0, 0.0, factors > 0)
    there, ratio = trajectory(theta, momentum, *args, 0.02, 1)
    slope = density_of(theta, *args)[1] + density_of(there, *args)[1]
    back, reverse = trajectory(there, -(momentum + 0.01 * slope), *args, 0.02, 1)
    np.testing.assert_allclose(back, theta, atol=1e-12)
    assert reverse == pytest.approx(-ratio, abs=1e-9)


def test_inverse_wishart_draws_have_their_mean():
    rng = np.random.default_rng(0)
    scale = np.array([[2, 0.5, 0.1], [0.5, 1, 0], [0.1, 0, 3]])
    draws = np.mean([_draw_inverse_wishart(12.0, scale, rng) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(draws, scale / (12 - 3 - 1), atol=0.02)


@pytest.mark.parametrize("kind", ["hmc", "metropolis", "factors"])
@pytest.mark.parametrize(("q", "n"), [(14, 5), (6, 0), (1, 10)])
def test_more_labels_than_rows_stay_positive_definite(kind, q, n):
    E = np.random.default_rng(0).normal(size=(n, q))
    draws, _ = run(correlation_step(kind), E.T @ E, n, 200, n_burn=200)
    assert (np.linalg.eigvalsh(draws) > 0).all()
    np.testing.assert_array_equal(draws[:, range(q), range(q)], 1.0)


def test_equal_residuals_stay_in_range():
    e = np.random.default_rng(0).normal(size=(40, 1))
    E = np.repeat(e, 4, axis=1)
    draws, _ = run(Hamiltonian(), E.T @ E, 40, 300, n_burn=300)
    assert np.isfinite(draws).all()
    assert draws[-1, 0, 1] > 0.99


def test_fifty_labels():
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(50, 2))
    covariance = loadings @ loadings.T + np.eye(50)
    deviations = np.sqrt(np.diag(covariance))
    R = covariance / np.outer(deviations, deviations)
    E = residuals(1000, R)
    draws, _ = run(correlation_step("factors", n_factors=2), E.T @ E, 1000, 200, n_burn=600)
    assert np.abs(draws.mean(axis=0) - R).max() < 0.12


def test_step_size_finds_the_asked_acceptance():
    size = StepSize.start(5.0)
    for _ in range(2000):
        size = size.update(np.exp(-size.size(True)))
    assert np.exp(-size.size(False)) == pytest.approx(0.8, abs=0.02)


def test_identity_stays():
    draws, accepted = run(correlation_step("identity"), np.eye(3), 10, 3, n_burn=0)
    np.testing.assert_array_equal(draws, np.broadcast_to(np.eye(3), (3, 3, 3)))
    assert accepted == 1
