"""The Gibbs sampler: against integrals and closed forms, Geweke's test, simulation-based calibration."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

from tuplet.core.typing import UNKNOWN
from tuplet.models.probit.sampling.chains import ChainPlan, MarkovChain
from tuplet.models.probit.sampling.correlation import Hamiltonian, correlation_step
from tuplet.models.probit.sampling.forests import ForestBlock, ForestDraws, ForestSettings, load_features
from tuplet.models.probit.sampling.means import LinearDraws, LinearSettings
from tuplet.models.probit.sampling.sampler import init, label_signs, offsets_of, settled, step
from tuplet.models.probit.sampling.together import Together


class Zero:
    """Mean functions that are zero."""

    is_cheap = True

    def step(self, target, covariance, rng):
        return np.zeros_like(target)


def orthants(rho):
    """Probability that two standard normals of this correlation have the same sign."""
    return 0.5 + np.arcsin(rho) / np.pi


def run(state, rng, n_burn, n_draws, read):
    for _ in range(n_burn):
        state, _ = step(state, rng)
    state, answer = settled(state), []
    for _ in range(n_draws):
        state, _ = step(state, rng)
        answer.append(read(state))
    return np.array(answer)


def begin(settings, X, signs, rule, rng):
    """Start a chain as a fit does, but without offsets."""
    offsets = np.zeros(len(signs))
    prepared = settings.prepare(X, signs, offsets)
    if isinstance(settings, LinearSettings) and isinstance(rule, Hamiltonian):
        rule = Together.make(rule, prepared, signs, offsets)
        prepared, signs = rule.design, np.ascontiguousarray(signs[:, rule.groups.rows])
    return init(signs, settings.blocks(prepared, len(signs)), rule, rng, offsets)


# -- the whole step against integrals ----------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "n_draws"), [("hmc", 2000), ("metropolis", 1200)])
def test_correlation_of_two_labels_agrees_with_quadrature(kind, n_draws):
    # With means of zero labels agree with probability 1/2 + arcsin(rho) / pi; rho is uniform a priori.
    n_equal, n_other = 28, 12
    codes = np.array([[1, 1], [0, 0]] * (n_equal // 2) + [[1, 0], [0, 1]] * (n_other // 2))
    grid = np.linspace(-1, 1, 20_001)[1:-1]
    weight = orthants(grid) ** n_equal * (1 - orthants(grid)) ** n_other
    mean = (grid * weight).sum() / weight.sum()
    sd = np.sqrt((grid**2 * weight).sum() / weight.sum() - mean**2)
    rng = np.random.default_rng(0)
    state = init(label_signs(codes), Zero(), correlation_step(kind), rng, np.zeros(2))
    rho = run(state, rng, 200, n_draws, lambda s: s.matrix[0, 1])
    effective = array_stats.ess(rho[None, :, None], chain_axis=0, draw_axis=1)[0]
    assert effective > 50
    assert abs(rho.mean() - mean) < 4 * sd / np.sqrt(effective)
    # Of 50 effective draws a standard deviation has a relative error of a tenth.
    assert rho.std() == pytest.approx(sd, rel=0.35)


def test_linear_means_and_correlations_that_move_together_agree_with_quadrature():
    # Coefficients next to zero: labels agree with probability 1/2 + arcsin(rho) / pi.
    n_equal, n_other = 28, 12
    codes = np.array([[1, 1], [0, 0]] * (n_equal // 2) + [[1, 0], [0, 1]] * (n_other // 2))
    grid = np.linspace(-1, 1, 20_001)[1:-1]
    weight = orthants(grid) ** n_equal * (1 - orthants(grid)) ** n_other
    mean = (grid * weight).sum() / weight.sum()
    sd = np.sqrt((grid**2 * weight).sum() / weight.sum() - mean**2)
    rng = np.random.default_rng(0)
    settings = LinearSettings(1e-3, 1e-3)
    state = begin(settings, rng.normal(size=(40, 1)), label_signs(codes), Hamiltonian(), rng)
    rho = run(state, rng, 200, 1500, lambda s: s.matrix[0, 1])
    effective = array_stats.ess(rho[None, :, None], chain_axis=0, draw_axis=1)[0]
    assert effective > 200
    assert abs(rho.mean() - mean) < 4 * sd / np.sqrt(effective)
    assert rho.std() == pytest.approx(sd, rel=0.15)


def test_scales_of_slopes_agree_with_integration():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 1))
    codes = (np.outer(X[:, 0], [0.0, 0.7, 2.0]) + rng.normal(size=(150, 3)) > 0.3).astype(int)
    signs = label_signs(codes)
    offsets = offsets_of(signs)
    found = LinearSettings().prepare(X, signs, offsets).deviations[:, 1]
    grid, edges, scales = np.linspace(-4, 4, 161), np.linspace(-4.025, 4.025, 162), np.geomspace(1e-3, 3, 60)
    a, b = np.meshgrid(grid / 2, grid, indexing="ij")
    priors = np.diff(stats.norm.cdf(edges / scales[:, None]), axis=1)
    for sign, offset, scale in zip(signs, offsets, found, strict=True):
        log_p = stats.norm.logpdf(a, scale=2.5)
        for x, s in zip(X[:, 0], sign, strict=True):
            log_p += stats.norm.logcdf(s * (offset + a + b * x))
        p = np.exp(log_p - log_p.max()).sum(axis=0)
        weights = (priors @ p) * scales / (1 + scales**2)  # half-Cauchy, even in the logarithm
        assert scale == pytest.approx((weights * scales).sum() / weights.sum(), rel=0.25)
    assert found[0] < found[1] < found[2]


def test_a_label_that_is_never_known_leaves_the_prior():
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 2, 30), np.full(30, UNKNOWN)])
    signs = label_signs(codes)
    assert set(signs[1]) == {0}
    state = init(signs, Zero(), Hamiltonian(), rng)
    rho = run(state, rng, 200, 2500, lambda s: s.matrix[0, 1])
    # Uniform on (-1, 1); draws of rho follow the imputed labels, so they are correlated.
    assert abs(rho.mean()) < 0.2
    assert rho.var() == pytest.approx(1 / 3, abs=0.08)


@pytest.mark.parametrize("kind", ["hmc", "metropolis"])
def test_linear_means_of_one_label_agree_with_integration_over_both_coefficients(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 1))
    codes = (X[:, :1] + rng.normal(size=(25, 1)) > 0.4).astype(int)
    signs = label_signs(codes)
    grid = np.linspace(-5, 5, 401)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    log_weight = -(a**2) / (2 * 2.5**2) - b**2 / 2
    for x, sign in zip(X[:, 0], signs[0], strict=True):
        log_weight += stats.norm.logcdf(sign * (a + b * x))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    state = begin(LinearSettings(1.0), X, signs, correlation_step(kind), rng)
    draws = run(state, rng, 200, 3000, lambda s: s.blocks.record(rng)[0])
    for j, axis in enumerate((a, b)):
        mean = (axis * weight).sum()
        sd = np.sqrt((axis**2 * weight).sum() - mean**2)
        effective = array_stats.ess(draws[None, :, j : j + 1], chain_axis=0, draw_axis=1)[0]
        assert abs(draws[:, j].mean() - mean) < 4 * sd / np.sqrt(effective)
        assert draws[:, j].std() == pytest.approx(sd, rel=0.15)


def test_a_linear_block_draws_from_its_conjugate_posterior():
    rng = np.random.default_rng(0)
    X, target, variance = rng.normal(size=(20, 3)), rng.normal(size=20), 0.4
    settings = LinearSettings(0.8, 2.0)
    blocks = settings.blocks(settings.prepare(X, np.ones((1, 20)), np.zeros(1)), 1)
    full = np.column_stack([np.ones(20), X])
    precision = full.T @ full / variance + np.diag([1 / 4, *[1 / 0.64] * 3])
    covariance = np.linalg.inv(precision)
    draws = []
    for _ in range(20_000):
        (fitted,) = blocks.step(target[None], np.array([[variance]]), rng)
        draws += blocks.record(rng)
    np.testing.assert_allclose(fitted, full @ draws[-1], atol=1e-12)
    np.testing.assert_allclose(np.mean(draws, axis=0), covariance @ full.T @ target / variance, atol=0.012)
    np.testing.assert_allclose(np.cov(np.transpose(draws)), covariance, atol=0.006)
    np.testing.assert_allclose(blocks.restore(draws[:1])[0], full @ draws[0], atol=1e-12)
    np.testing.assert_allclose(LinearDraws(np.array([[draws[0]]])).predict(X)[0, :, 0], full @ draws[0])


def test_offsets_are_quantiles_of_frequencies():
    signs = label_signs(np.array([[1, 0, 1], [1, 0, UNKNOWN], [0, 0, 1]]))
    np.testing.assert_allclose(stats.norm.cdf(offsets_of(signs)), [2.5 / 4, 0.5 / 4, 2.5 / 3])


# -- forests -----------------------------------------------------------------------------------------------


def grown(n=300, d=6, n_trees=20, n_draws=15, seed=0):
    """Draws of two forests, what stochtree predicts for new rows, and these rows; ties are common."""
    rng = np.random.default_rng(seed)
    X, new = np.round(rng.normal(size=(2, n, d)), 1)
    target = 2 * np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=n)
    data, other = load_features(X), load_features(new)
    blocks = [ForestBlock(data, ForestSettings(n_trees)), ForestBlock(data, ForestSettings(n_trees, 4.0))]
    records, expected = [], []
    for _ in range(n_draws):
        for block in blocks:
            fitted = block.step(target, 0.1, rng)
            np.testing.assert_allclose(fitted, block._forest.predict(data).ravel(), atol=1e-12)
        records.append([block.record() for block in blocks])
        expected.append([block._forest.predict(other).ravel() for block in blocks])
    return ForestDraws.collect(records, d), records, np.array(expected).transpose(0, 2, 1), new, blocks


def test_predictions_from_arrays_are_those_of_stochtree():
    draws, _, expected, new, _ = grown()
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(draws.predict(new), expected, rtol=0, atol=1e-12)


def test_draws_survive_being_taken_apart_and_pickled():
    draws, records, _, new, _ = grown()
    again = pickle.loads(pickle.dumps(ForestDraws.join([draws.take(slice(0, 4)), draws.take(slice(4, 15))])))
    for name, value in vars(draws).items():
        np.testing.assert_array_equal(getattr(again, name), value)
    np.testing.assert_array_equal(draws.take(slice(3, 9)).predict(new), draws.predict(new)[3:9])
    for label in (0, 1):
        record = draws.record(7, label)
        np.testing.assert_array_equal(record.features, records[7][label].features)
        np.testing.assert_array_equal(record.values, records[7][label].values)
        assert record.leaf_variance == records[7][label].leaf_variance


def test_split_counts_are_those_of_stochtree():
    draws, _, _, _, blocks = grown()
    counts = draws.split_counts()
    assert counts.shape == (15, 2, 6)
    for label, block in enumerate(blocks):
        np.testing.assert_array_equal(counts[-1, label], block._forest.get_overall_split_counts(6))


def test_a_forest_goes_on_from_a_record():
    draws, _, _, _, blocks = grown()
    fresh = ForestBlock(blocks[0].data, blocks[0].settings)
    np.testing.assert_allclose(fresh.restore(draws.record(14, 0)), blocks[0].fitted, atol=1e-12)
    assert fresh.leaf_variance == blocks[0].leaf_variance
    rng = np.random.default_rng(0)
    for _ in range(5):
        fitted = fresh.step(np.zeros(300), 0.1, rng)
    np.testing.assert_allclose(fitted, fresh._forest.predict(fresh.data).ravel(), atol=1e-12)


def test_a_thousand_draws_of_fourteen_labels_fit_into_200_megabytes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    (block,) = ForestSettings(200).blocks(X, 1).labels
    target = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=500)
    for _ in range(60):
        block.step(target, 1.0, rng)
    records = []
    for _ in range(20):
        block.step(target, 1.0, rng)
        records.append([block.record()])
    draws = ForestDraws.collect(records, 20)
    assert draws.n_bytes * 1000 * 14 / 20 < 200e6
    assert len(pickle.dumps(draws)) < 1.01 * draws.n_bytes + 2000


def test_leaf_scale_is_drawn_from_its_conditional_distribution():
    _, _, _, _, blocks = grown()
    block = blocks[0]
    record = block.record()
    leaves = record.values[record.features < 0]
    shape, scale = 3 + len(leaves) / 2, 0.5 * 2 / 20 + (leaves**2).sum() / 2
    import stochtree

    seed, draws = stochtree.RNG(1), []
    for _ in range(3000):
        block._learn_scale(seed)
        draws.append(block.leaf_variance)
    assert stats.kstest(draws, stats.invgamma(shape, scale=scale).cdf).pvalue > 1e-3


def test_chains_repeat_and_go_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    signs = label_signs(rng.integers(0, 2, (40, 2)))
    plan = ChainPlan.make(X, signs, ForestSettings(5), Hamiltonian(), 5, 4, 2)

    def draws(plan, end=None):
        chain = MarkovChain(plan, np.random.default_rng(7), end)
        while chain.n_left:
            chain.advance()
        return chain.draws()

    first, again = draws(plan), draws(plan)
    np.testing.assert_array_equal(first.correlations, again.correlations)
    np.testing.assert_array_equal(first.means.leaves, again.means.leaves)
    assert len(first) == 4
    further = draws(replace(plan, n_burn=99), first.end)  # no burn-in when a chain goes on
    assert len(further) == 4
    assert not np.array_equal(further.correlations[0], first.correlations[-1])
    linear = ChainPlan.make(X, signs, LinearSettings(), Hamiltonian(), 5, 4, 2)
    part = draws(replace(linear, n_draws=2))
    rest = draws(replace(linear, n_draws=2), part.end)
    whole = draws(linear)
    # Linear blocks keep nothing but their coefficients: the chain in two parts is the chain in one.
    np.testing.assert_allclose(rest.correlations, whole.correlations[2:], atol=1e-9)
    np.testing.assert_allclose(rest.means.coefficients, whole.means.coefficients[2:], atol=1e-9)


# -- joint tests -------------------------------------------------------------------------------------------

N_ROWS = 15
FLAT = 1e12  # a variance of the noise under which blocks draw from their prior


def prior_blocks(settings, X, rng, n_sweeps):
    """Move fresh blocks of two labels to draws from their prior."""
    blocks = settings.blocks(settings.prepare(X, np.ones((2, len(X))), np.zeros(2)), 2)
    for _ in range(n_sweeps):
        prior_means(blocks, len(X), rng)
    return blocks


def prior_means(blocks, n, rng):
    """Move blocks of two labels by their prior alone; return the means."""
    return blocks.step(np.zeros((2, n)), FLAT * np.eye(2), rng)


def renew_labels(state, rng):
    """Draw latent variables and labels given means and correlations."""
    latent = state.means + np.linalg.cholesky(state.matrix) @ rng.standard_normal(state.means.shape)
    return replace(state, latent=latent, signs=np.where(latent > 0, 1, -1))


def statistics_of(means, rho, signs):
    return [
        rho,
        rho**2,
        *means.mean(axis=1),
        *(means**2).mean(axis=1),
        (means[0] * means[1]).mean(),
        *(signs > 0).mean(axis=1),
        (signs[0] == signs[1]).mean(),
        rho * (signs[0] == signs[1]).mean(),
        (means * signs).mean(),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hmc", "metropolis"])
@pytest.mark.parametrize(
    ("settings", "n_sweeps"),
    [(LinearSettings(0.7, 0.7), 1), (ForestSettings(4, 3.0), 5), (ForestSettings(4), 5)],
    ids=["linear", "forest", "learned"],
)
def test_geweke(settings, n_sweeps, kind):
    """Parameters and data drawn from the model have the joint distribution that the chain leaves unchanged.

    Forests from their prior are a chain, too: their prior is what stochtree's moves make of it.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 2))
    rule = correlation_step(kind)
    blocks = prior_blocks(settings, X, rng, 100)
    independent = []
    for _ in range(6000):
        for _ in range(n_sweeps):
            means = prior_means(blocks, N_ROWS, rng)
        rho = rng.uniform(-1, 1)
        root = np.linalg.cholesky(np.array([[1, rho], [rho, 1]]))
        signs = np.where(means + root @ rng.standard_normal(means.shape) > 0, 1, -1)
        independent.append(statistics_of(means, rho, signs))
    signs = np.where(rng.random((2, N_ROWS)) < 0.5, 1, -1)
    state = begin(settings, X, signs, rule, rng)
    for _ in range(300):
        state, _ = step(renew_labels(state, rng), rng)
    state, chained = settled(state), []
    for i in range(24_000):
        state, _ = step(renew_labels(state, rng), rng)
        if i % 2 == 0:
            chained.append(statistics_of(state.means, state.matrix[0, 1], state.signs))
    scores = []
    for a, b in zip(np.transpose(independent), np.transpose(chained), strict=True):
        sizes = [array_stats.ess(v[None, :, None], chain_axis=0, draw_axis=1)[0] for v in (a, b)]
        scores.append((a.mean() - b.mean()) / np.sqrt(a.var() / sizes[0] + b.var() / sizes[1]))
    assert np.abs(scores).max() < 4, scores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "n_sweeps"),
    [(LinearSettings(0.7, 0.7), 1), (ForestSettings(4), 100)],
    ids=["linear", "forest"],
)
def test_simulation_based_calibration(settings, n_sweeps):
    """The rank of the true value among posterior draws is uniform."""
    rng = np.random.default_rng(1)
    n_draws, n_worlds = 19, 240
    ranks = []
    for _ in range(n_worlds):
        X = rng.normal(size=(N_ROWS, 1))
        blocks = prior_blocks(settings, X, rng, n_sweeps)
        means = prior_means(blocks, N_ROWS, rng)
        rho = rng.uniform(-1, 1)
        root = np.linalg.cholesky(np.array([[1, rho], [rho, 1]]))
        signs = np.where(means + root @ rng.standard_normal(means.shape) > 0, 1, -1)
        state = begin(settings, X, signs, Hamiltonian(), rng)

        def read(s):
            return [s.matrix[0, 1], s.means[0].mean(), s.means[1].mean()]

        draws = run(state, rng, 150, n_draws * 20, read)[19::20]
        ranks.append((draws < [rho, *means.mean(axis=1)]).sum(axis=0))
    for values in np.transpose(ranks):
        counts = np.bincount(values // 2, minlength=10)
        assert stats.chisquare(counts).pvalue > 1e-3, counts
