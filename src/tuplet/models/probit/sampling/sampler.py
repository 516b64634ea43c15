"""The Gibbs sampler of multivariate probit: `init` and `step` on an explicit state.

The model: z_i = G(x_i) + e_i with e_i ~ N(0, R), and label k of row i is 1 exactly if z_ik > 0. A step draws
the latent z label by label and moves R, several times in turn, and moves the mean function of every label:
once, or each time if that costs little.
Arrays are label-major here, (q, n), since every step goes label by label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.models.probit.sampling.correlation import CorrelationStep
from tuplet.models.probit.sampling.latent_kernels import draw_signed, draw_sweep
from tuplet.models.probit.sampling.means import MeanBlock

N_INNER = 5
"""Draws of z and R for each move of the means. Correlated latent variables follow each other slowly; a draw
of them costs a few percent of a sweep over the trees, and correlations mix several times faster."""


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
    blocks : tuple of MeanBlock
        The mean function of each label.
    rule : CorrelationStep
    correlation : CorrelationState
        Its `matrix` is R.
    adapting : bool
        Whether step sizes are still tuned; draws may be kept once they are not.
    """

    signs: Codes
    offsets: Floats
    latent: Floats
    means: Floats
    blocks: tuple[MeanBlock, ...]
    rule: CorrelationStep
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
    blocks: Sequence[MeanBlock],
    rule: CorrelationStep,
    rng: np.random.Generator,
    offsets: Floats | None = None,
) -> State:
    """Return a first state: means are the offsets, labels are next to uncorrelated.

    Parameters
    ----------
    signs : int array (q, n)
        See `State`.
    blocks : sequence of MeanBlock
        One for each label, all zero so far.
    rule : CorrelationStep
    rng : Generator
    offsets : float array (q,), optional
        By default `offsets_of(signs)`.
    """
    q, n = signs.shape
    offsets = offsets_of(signs) if offsets is None else offsets
    means = np.repeat(offsets[:, None], n, axis=1)
    latent = np.stack([draw_signed_normal(means[k], 1.0, signs[k], rng) for k in range(q)])
    return State(signs, offsets, latent, means, tuple(blocks), rule, rule.start(q, n, rng))


def step(state: State, rng: np.random.Generator) -> tuple[State, Info]:
    """Draw the latent variables, the correlations and the mean functions, each given the rest."""
    accepted = 0.0
    cheap = all(block.is_cheap for block in state.blocks)
    for i in range(N_INNER):
        state = _draw_latent(state, rng)
        state, probability = _move_correlation(state, rng)
        accepted += probability / N_INNER
        if cheap or i == N_INNER - 1:
            state = _move_means(state, rng)
    return state, Info(accepted)


def _draw_latent(state: State, rng: np.random.Generator) -> State:
    """Draw z label by label given the others (equation 4)."""
    residuals, latent = state.latent - state.means, np.empty_like(state.latent)
    draw_sweep(
        state.means, state.signs, _precision(state.matrix), uniforms(latent.shape, rng), residuals, latent
    )
    return replace(state, latent=latent)


def _move_correlation(state: State, rng: np.random.Generator) -> tuple[State, float]:
    residuals = state.latent - state.means
    cross = residuals @ residuals.T
    correlation, accepted = state.rule.step(state.correlation, cross, residuals.shape[1], rng, state.adapting)
    return replace(state, correlation=correlation), accepted


def _move_means(state: State, rng: np.random.Generator) -> State:
    """Move the mean function of each label on its pseudo-response (equation 5)."""
    precision = _precision(state.matrix)
    means = state.means.copy()
    residuals = state.latent - means
    for k, block in enumerate(state.blocks):
        variance = 1 / float(precision[k, k])
        weights: Floats = -variance * precision[k]
        weights[k] = 0.0
        target = state.latent[k] - weights @ residuals - state.offsets[k]
        means[k] = block.step(target, variance, rng) + state.offsets[k]
        residuals[k] = state.latent[k] - means[k]
    return replace(state, means=means)


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
    mean = np.ascontiguousarray(mean, dtype=float)
    out = np.empty_like(mean)
    draw_signed(mean, float(scale), np.ascontiguousarray(sign, dtype=np.intp), uniforms(mean.shape, rng), out)
    return out
