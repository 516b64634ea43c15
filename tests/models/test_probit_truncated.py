"""Normal variables of known sign, against scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_ndtr, ndtri_exp

from tuplet.joint.ghk_kernels import draw_sweep
from tuplet.models.probit.sampling.sampler import draw_signed_normal, uniforms


def draw_signed(mean, scale, sign, uniform, out):
    """Draw one label without others."""
    draw = np.empty((1, len(mean)))
    precision = np.array([[scale**-2.0]])
    draw_sweep(mean[None], np.array(sign)[None], precision, uniform[None], np.zeros_like(draw), draw)
    out[:] = draw[0]


def inverted(mean, scale, sign, uniform):
    """Draws by scipy's inversion of log-probabilities, which is exact in the tails but for cancellation."""
    t = sign * mean / scale
    return sign * scale * (t - ndtri_exp(np.log(uniform) + log_ndtr(t)))


@pytest.mark.parametrize("scale", [1.0, 0.03])
@pytest.mark.parametrize("sign", [1, -1])
def test_inversion_is_that_of_scipy(sign, scale):
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.uniform(-45, 30, 4000), rng.normal(size=4000)])
    uniform = np.concatenate([rng.random(7998), [1e-300, 1 - 1e-16]])
    mean, out = sign * scale * t, np.empty(8000)
    draw_signed(mean, scale, np.full(8000, sign), uniform, out)
    expected = inverted(mean, scale, sign, uniform)
    # Quantiles are a polynomial with an error of 2e-10, in units of the scale.
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=3e-10 * scale)


@pytest.mark.parametrize("mean", [-50.0, -6.0, -0.5, 0.0, 2.0, 40.0])
@pytest.mark.parametrize("sign", [1, -1, 0])
def test_draws_have_the_distribution_of_scipy(mean, sign):
    draws = draw_signed_normal(np.full(4000, mean), 0.7, np.full(4000, sign), np.random.default_rng(3))
    low, high = (-np.inf if sign < 1 else -mean / 0.7), (np.inf if sign > -1 else -mean / 0.7)
    assert stats.kstest(draws, stats.truncnorm(low, high, mean, 0.7).cdf).pvalue > 1e-3
    assert (draws * sign >= 0).all()


def test_no_restriction_is_the_plain_normal_distribution():
    uniform, out = np.linspace(0.001, 0.999, 99), np.empty(99)
    draw_signed(np.full(99, 1.5), 2.0, np.zeros(99, np.intp), uniform, out)
    np.testing.assert_allclose(out, stats.norm(1.5, 2).isf(uniform), atol=1e-9)


@given(
    st.floats(-1e12, 1e12),
    st.floats(1e-8, 1e4),
    st.sampled_from([-1, 0, 1]),
    st.floats(2.0**-54, 1 - 2.0**-53),
)
def test_extreme_means_stay_finite_and_on_their_side(mean, scale, sign, uniform):
    out = np.empty(1)
    draw_signed(np.array([mean]), scale, np.array([sign]), np.array([uniform]), out)
    assert np.isfinite(out[0])
    assert out[0] * sign >= 0


def test_a_sweep_draws_each_label_given_the_others():
    rng = np.random.default_rng(1)
    q, n = 4, 300
    factor = rng.normal(size=(q, q + 2))
    covariance = factor @ factor.T
    deviations = np.sqrt(np.diag(covariance))
    R = covariance / np.outer(deviations, deviations)
    means, latent = rng.normal(size=(q, n)), rng.normal(size=(q, n))
    signs, uniform = rng.integers(-1, 2, (q, n)), uniforms((q, n), rng)
    residuals, drawn = latent - means, np.empty((q, n))
    draw_sweep(means, signs, np.linalg.inv(R), uniform, residuals, drawn)
    for k in range(q):
        others = [j for j in range(q) if j != k]
        weights = np.linalg.solve(R[np.ix_(others, others)], R[others, k])
        scale = np.sqrt(1 - weights @ R[others, k])
        expected = np.empty(n)
        # Labels before k have been drawn already, those after it not yet.
        now = np.where(np.arange(q)[:, None] < k, drawn, latent) - means
        draw_signed(means[k] + weights @ now[others], scale, signs[k], uniform[k], expected)
        np.testing.assert_allclose(drawn[k], expected, atol=1e-9)
    np.testing.assert_allclose(residuals, drawn - means)
