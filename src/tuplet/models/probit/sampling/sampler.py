"""The sampler of multivariate probit: `init` and `step` on an explicit state.

The model: z_i = G(x_i) + e_i with e_i ~ N(0, R), and label k of row i is 1 exactly if z_ik > 0. A step draws
the latent z label by label, and then the mean functions and R: linear means together with R by a Hamiltonian
move (`Together`), otherwise one after the other, given z: several times, if there are few labels, but the
moves of forests, which are expensive, once.
Arrays are label-major here, (q, n), since every step goes label by label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.ghk_kernels import draw_sweep
from tuplet.models.probit.sampling.correlation import CorrelationStep
from tuplet.models.probit.sampling.means import MeanBlocks
from tuplet.models.probit.sampling.together import Together

N_INNER = 5
"""Draws of z and R in a step. Correlated latent variables follow each other slowly; a draw of them costs a
few percent of a sweep over the trees, and correlations mix several times faster."""

MOST_TOGETHER = 30
"""Labels up to which linear means and correlations are moved together; the cost grows with their square."""


@dataclass(frozen=True)
class State:
    """Where a chain is.

    The arrays are values; the blocks change in place, so a state is stepped from once.

    Parameters
    ----------
    signs : int array (q, n)
        1 and -1 for labels 1 and 0; 0 where a label is not known.
    offsets : float array (q,)
        Constants that the mean functions are added to.
    latent : float array (q, n)
        z.
    means : float array (q, n)
        G at the training rows, offsets included.
    blocks : MeanBlocks
        The mean functions of all labels.
    rule : CorrelationStep or Together
    correlation : CorrelationState
        Its `matrix` is R.
    adapting : bool
        Whether step sizes are still tuned; draws may be kept once they are not.
    """

    signs: Codes
    offsets: Floats
    latent: Floats
    means: Floats
    blocks: MeanBlocks
    rule: CorrelationStep | Together
    correlation: Any
    adapting: bool = True

    @property
    def matrix(self) -> Floats:
        """The correlation matrix R (q, q)."""
        return self.correlation.matrix


class Info(NamedTuple):
    """Statistics of a step."""

    accepted: float  # mean acceptance probability of the moves of R


def label_signs(codes: Codes) -> Codes:
    """Return signs (q, n) of codes (n, q): 1 and -1 for codes 1 and 0, and 0 for `UNKNOWN`."""
    return np.ascontiguousarray(np.where(codes == UNKNOWN, 0, 2 * codes - 1).T, dtype=np.intp)


def offsets_of(signs: Codes) -> Floats:
    """Return quantiles (q,) of the shares of positive labels, kept inside by half a pseudo-row of each."""
    positive, known = (signs > 0).sum(axis=1), (signs != 0).sum(axis=1)
    return ndtri((positive + 0.5) / (known + 1))


def init(
    signs: Codes,
    blocks: MeanBlocks,
    rule: CorrelationStep | Together,
    rng: np.random.Generator,
    offsets: Floats | None = None,
) -> State:
    """Return a first state: labels are next to uncorrelated, and means are the offsets, or near their mode.

    Parameters
    ----------
    signs : int array (q, n)
        See `State`.
    blocks : MeanBlocks
        All zero so far.
    rule : CorrelationStep or Together
    rng : Generator
    offsets : float array (q,), optional
        By default `offsets_of(signs)`.
    """
    q, n = signs.shape
    offsets = offsets_of(signs) if offsets is None else offsets
    correlation = rule.start(q, n, rng)
    means = np.repeat(offsets[:, None], n, axis=1)
    if isinstance(rule, Together):
        means = rule.begin(blocks, rng)
    latent = np.stack([draw_signed_normal(means[k], 1.0, signs[k], rng) for k in range(q)])
    return State(signs, offsets, latent, means, blocks, rule, correlation)


def step(state: State, rng: np.random.Generator) -> tuple[State, Info]:
    """Draw the latent variables, the correlations and the mean functions."""
    if isinstance(state.rule, Together):
        return _move_together(_draw_latent(state, rng), state.rule, rng)
    accepted, cheap, rule = 0.0, state.blocks.is_cheap, state.rule
    n_inner = 1 if cheap and len(state.signs) > MOST_TOGETHER else N_INNER
    for i in range(n_inner):
        state = _draw_latent(state, rng)
        state, probability = _move_correlation(state, rule, rng)
        accepted += probability / n_inner
        if cheap or i == n_inner - 1:
            state = _move_means(state, rng)
    return state, Info(accepted)


def _draw_latent(state: State, rng: np.random.Generator) -> State:
    """Draw z label by label given the others (equation 4)."""
    residuals, latent = state.latent - state.means, np.empty_like(state.latent)
    draw_sweep(
        state.means, state.signs, _precision(state.matrix), uniforms(latent.shape, rng), residuals, latent
    )
    return replace(state, latent=latent)


def _move_together(state: State, rule: Together, rng: np.random.Generator) -> tuple[State, Info]:
    blocks, adapting = state.blocks, state.adapting
    correlation, means = rule.interweave(state.correlation, blocks, state.latent, state.means, rng, adapting)
    correlation, latent, means, accepted = rule.step(
        correlation, blocks, state.signs, state.latent, means, rng, adapting
    )
    return replace(state, correlation=correlation, latent=latent, means=means), Info(accepted)


def _move_correlation(state: State, rule: CorrelationStep, rng: np.random.Generator) -> tuple[State, float]:
    residuals = state.latent - state.means
    cross = residuals @ residuals.T
    correlation, accepted = rule.step(state.correlation, cross, residuals.shape[1], rng, state.adapting)
    return replace(state, correlation=correlation), accepted


def _move_means(state: State, rng: np.random.Generator) -> State:
    offsets = state.offsets[:, None]
    return replace(state, means=state.blocks.step(state.latent - offsets, state.matrix, rng) + offsets)


def _precision(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrix), dtype=float)


def settled(state: State) -> State:
    """Return the state with its tuning fixed: what comes after is a Markov chain with the right target."""
    return replace(state, adapting=False)


def uniforms(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw uniform numbers that are neither 0 nor 1: all their quantiles are finite."""
    return np.maximum(rng.random(shape), 2.0**-54)


def draw_signed_normal(mean: Floats, scale: float, sign: Codes, rng: np.random.Generator) -> Floats:
    """Draw from N(mean_i, scale^2) restricted to the side of zero that `sign_i` names.

    Parameters
    ----------
    mean : float array (n,)
    scale : float
        Standard deviation, above zero.
    sign : int array (n,)
        1 for positive values, -1 for negative ones, 0 for no restriction.
    rng : Generator

    Returns
    -------
    float array (n,)

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draw = draw_signed_normal(np.array([-50.0, 3.0, 0.5]), 1.0, np.array([1, 1, -1]), rng)
    >>> np.sign(draw).tolist()
    [1.0, 1.0, -1.0]
    """
    means = np.array(mean, dtype=float)[None]
    out, signs = np.empty_like(means), np.array(sign, dtype=np.intp)[None]
    precision = np.array([[float(scale) ** -2]])
    draw_sweep(means, signs, precision, uniforms(means.shape, rng), np.zeros_like(means), out)
    return out[0]
