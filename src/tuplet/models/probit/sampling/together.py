"""Coefficients and correlations moved together, the latent variables integrated out as far as possible.

Given z, coefficients and R are easy to draw, but z says far more about them than the labels do: where labels
follow from x almost surely, a chain that alternates between both moves a twentieth of the way at a time. So
z is written as what sequential conditioning makes of uniform numbers u (`tuplet.joint.ghk_kernels`): given u,
and with z no longer fixed, the density of coefficients and R is that of their prior times the product of the
weights of all rows, smooth and nearly as wide as the posterior distribution. A Hamiltonian move leaves it
unchanged; then z follows from u, and is drawn again given the rest before the next move.

Given z, everything is drawn once as well, before each such move, which costs next to nothing: directions in
which one of the two chains is slow are often those in which the other is not (Y. Yu, X.-L. Meng, Journal of
Computational and Graphical Statistics 20, 2011, call it interweaving).

The order in which labels are visited may differ between rows, if it does not change along the chain. What is
visited later says nothing about what came before, so labels that are nearly sure come last: their e, which
would matter to the others only if R were what it is not, are then not among what is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuplet.core.typing import Codes, Floats
from tuplet.joint.ghk_kernels import find_points, follow_points, slope_orthants
from tuplet.models.probit.sampling.correlation import Hamiltonian, HamiltonianState, StepSize
from tuplet.models.probit.sampling.correlation_kernels import carry_slope
from tuplet.models.probit.sampling.design import LinearDesign
from tuplet.models.probit.sampling.modes import curvature_roots, find_modes, hazard, information_of, times

_SURE = 1.0
"""Size of a mean from which a label is visited late."""

_FIRST_SIZE, _ACCEPTANCE = 0.05, 0.6
"""First step size, and the share of accepted trajectories to which it is adapted."""

_GIVEN = 0.3
"""First step size of moves of R given the latent variables, times the root of the number of rows."""

_FARTHER = 2.0
"""Steps of the free numbers of R, relative to those of positions. Given u, the density of R is much narrower
than the posterior one; trajectories that end beyond its centre make up for some of that."""

_PSEUDO = 20
"""Weight of the first guess of the masses, in steps."""


@dataclass(frozen=True)
class TogetherState:
    """Free numbers of R, the matrix that they parametrise, and what is adapted."""

    matrix: Floats  # (q, q)
    theta: Floats
    size: StepSize
    masses: Floats  # (q r + len(theta),) mean squared slopes of positions and of free numbers
    given: StepSize  # of moves of R given the latent variables


@dataclass(frozen=True)
class RowGroups:
    """Rows in which labels are visited in the same order.

    Parameters
    ----------
    rows : int array (n,)
        The rows, group by group.
    orders : int array (G, q)
    starts : int array (G + 1,)
    """

    rows: Codes
    orders: Codes
    starts: Codes

    @classmethod
    def make(cls, means: Floats) -> RowGroups:
        """Visit labels with means (q, n) near zero first; rare patterns share the order of the average."""
        sure = np.abs(means) > _SURE
        patterns, number, counts = np.unique(sure.T, axis=0, return_inverse=True, return_counts=True)
        # Each group has a Cholesky factor, which should cost no more than its rows do.
        common = np.flatnonzero(counts >= len(means) ** 2 / 16)
        place = np.full(len(patterns), len(common))
        place[common] = np.arange(len(common))
        group = place[number.ravel()]
        orders = [*np.argsort(patterns[common], axis=1, kind="stable"), np.argsort(sure.mean(axis=1))]
        starts = np.searchsorted(np.sort(group), np.arange(len(orders) + 1))
        return cls(np.argsort(group, kind="stable"), np.array(orders, np.intp), starts.astype(np.intp))


@dataclass(frozen=True)
class Together:
    """Hamiltonian move of linear means and correlations.

    Parameters
    ----------
    rule : Hamiltonian or None
        Prior and parametrisation of R; None for the identity.
    groups : RowGroups
        `design` and everything that is given to `step` have the rows in this order.
    design : LinearDesign
    offsets : float array (q,)
    positions : float array (q, r)
        Where chains start, but for noise.
    roots : float array (q, r, r) or (q, r)
        Matrices, or diagonals, that turn independent numbers into positions about as they vary.
    theta : float array (number of free numbers,)
        Where chains start, but for noise.
    masses : float array (q r + number of free numbers,)
        First guess of the curvature of independent numbers and free numbers.
    n_steps : int
        Leapfrog steps of a trajectory.
    """

    rule: Hamiltonian | None
    groups: RowGroups
    design: LinearDesign
    offsets: Floats
    positions: Floats
    roots: Floats
    theta: Floats
    masses: Floats
    n_steps: int = 3

    @classmethod
    def make(cls, rule: Hamiltonian | None, design: LinearDesign, signs: Codes, offsets: Floats) -> Together:
        """Start near the mode of labels without correlations; signs (q, n)."""
        positions, means = find_modes(design, signs, offsets)
        groups = RowGroups.make(means)
        weights = information_of(means, signs)
        theta, masses = np.zeros(0), np.ones(positions.size)
        if rule is not None:
            matrix, information = _first_correlation(means, signs, weights)
            theta = rule.free_of(matrix)
            masses = np.concatenate([masses, rule.per_number(1 + information)])
        roots = curvature_roots(design, weights)
        return cls(rule, groups, design.take(groups.rows), offsets, positions, roots, theta, masses)

    def start(self, q: int, n: int, rng: np.random.Generator) -> TogetherState:
        """Return a state near the mode of pairs of labels."""
        spread = self.masses[self.positions.size :] ** -0.5
        theta = self.theta + spread * rng.standard_normal(len(self.theta))
        size = StepSize.start(_FIRST_SIZE, _ACCEPTANCE)
        return TogetherState(
            self._matrix(theta), theta, size, self.masses, StepSize.start(_GIVEN / math.sqrt(n))
        )

    def begin(self, blocks: Any, rng: np.random.Generator) -> Floats:
        """Put `LinearBlocks` near the mode, and return the means (q, n)."""
        blocks.position = self.positions + times(self.roots, rng.standard_normal(self.positions.shape))
        return blocks.means() + self.offsets[:, None]

    def interweave(
        self,
        state: TogetherState,
        blocks: Any,
        latent: Floats,
        means: Floats,
        rng: np.random.Generator,
        adapting: bool,
    ) -> tuple[TogetherState, Floats]:
        """Move R and `LinearBlocks` given the latent variables (q, n); return the state and the means."""
        if self.rule is not None:
            residuals = latent - means
            given = HamiltonianState(state.matrix, state.theta, state.given)
            given, _ = self.rule.step(given, residuals @ residuals.T, latent.shape[1], rng, adapting)
            state = replace(state, matrix=given.matrix, theta=given.theta, given=given.size)
        offsets = self.offsets[:, None]
        return state, blocks.step(latent - offsets, state.matrix, rng) + offsets

    def step(
        self,
        state: TogetherState,
        blocks: Any,
        signs: Codes,
        latent: Floats,
        means: Floats,
        rng: np.random.Generator,
        adapting: bool,
    ) -> tuple[TogetherState, Floats, Floats, float]:
        """Move R and `LinearBlocks`; return the state, latent variables, means and the acceptance."""
        surface = _Surface(self, blocks.position, signs.astype(float), *np.empty((3, *latent.shape)))
        surface.look(state.matrix, means, latent)
        at = np.concatenate([np.zeros(blocks.position.size), state.theta])
        here = surface.value(at)
        if adapting:
            state = _adapted(state, here.slope)
        there, log_ratio = _trajectory(surface, at, here, state, self.n_steps, rng, adapting)
        accepted = math.exp(min(0.0, log_ratio))
        if adapting:
            state = replace(state, size=state.size.update(accepted))
        if rng.random() >= accepted:
            return state, latent, means, accepted
        at, here = there
        blocks.position = surface.position(at)
        state = replace(state, theta=at[blocks.position.size :], matrix=here.matrix)
        return state, surface.latent(here.matrix), surface.means, accepted

    def _matrix(self, theta: Floats) -> Floats:
        q = len(self.offsets)
        return np.eye(q) if self.rule is None else self.rule.matrix_of(theta, q)


@dataclass(frozen=True)
class _Place:
    """Log-density and slope at some positions and free numbers, and what they stand for."""

    value: float
    slope: Floats
    matrix: Floats


@dataclass(frozen=True)
class _Surface:
    """Log-density of steps away from a position, in independent numbers, and of free numbers, given u.

    The arrays (q, n) serve all places: new ones would cost as much as the work.
    """

    rule: Together
    origin: Floats
    signs: Floats
    log_u: Floats
    means: Floats
    slopes: Floats

    def look(self, matrix: Floats, means: Floats, latent: Floats) -> None:
        """Find the u of latent variables."""
        groups = self.rule.groups
        find_points(groups.orders, groups.starts, matrix, self.signs, means, latent, self.log_u)

    def position(self, at: Floats) -> Floats:
        """Return the positions (q, r) of a place."""
        numbers = at[: self.origin.size].reshape(self.origin.shape)
        return self.origin + times(self.rule.roots, numbers)

    def value(self, at: Floats) -> _Place:
        rule, groups = self.rule, self.rule.groups
        position, theta = self.position(at), at[rule.positions.size :]
        rule.design.means(position, out=self.means)
        np.add(self.means, rule.offsets[:, None], out=self.means)
        matrix = rule._matrix(theta)
        matrix_slope = np.empty_like(matrix)
        value = slope_orthants(
            groups.orders,
            groups.starts,
            matrix,
            self.signs,
            self.means,
            self.log_u,
            self.slopes,
            matrix_slope,
        )
        value -= 0.5 * float((position**2).sum())
        slope = [times(rule.roots, rule.design.slopes(self.slopes) - position, transposed=True).ravel()]
        if rule.rule is not None and len(theta):
            prior, prior_slope = rule.rule.prior_of(theta, len(matrix))
            value += prior
            slope.append(prior_slope + carry_slope(theta, matrix_slope, rule.rule.n_factors > 0))
        return _Place(value, np.concatenate(slope), matrix)

    def latent(self, matrix: Floats) -> Floats:
        """Return the latent variables (q, n) that u stands for at the place that was looked at last."""
        groups, latent = self.rule.groups, np.empty_like(self.log_u)
        follow_points(groups.orders, groups.starts, matrix, self.signs, self.means, self.log_u, latent)
        return latent


def _trajectory(
    surface: _Surface,
    at: Floats,
    here: _Place,
    state: TogetherState,
    n_steps: int,
    rng: np.random.Generator,
    adapting: bool,
) -> tuple[tuple[Floats, _Place], float]:
    """Follow the Hamiltonian flow; return where it ends and the logarithm of the Metropolis ratio."""
    # A length that varies keeps trajectories from closing upon themselves.
    step = state.size.size(adapting) * rng.uniform(0.7, 1.3) / np.sqrt(state.masses)
    step[surface.origin.size :] *= _FARTHER
    momentum = rng.standard_normal(len(at))
    start = here.value - 0.5 * float((momentum**2).sum())
    for _ in range(n_steps):
        momentum = momentum + 0.5 * step * here.slope
        at = at + step * momentum
        here = surface.value(at)
        if not math.isfinite(here.value):
            return (at, here), -math.inf
        momentum = momentum + 0.5 * step * here.slope
    ratio = here.value - 0.5 * float((momentum**2).sum()) - start
    return (at, here), ratio if math.isfinite(ratio) else -math.inf


def _adapted(state: TogetherState, slope: Floats) -> TogetherState:
    """Learn the masses: the mean squared slope is the mean curvature."""
    masses = state.masses + (slope**2 - state.masses) / (_PSEUDO + state.size.count)
    return replace(state, masses=masses)


def _first_correlation(means: Floats, signs: Codes, weights: Floats) -> tuple[Floats, Floats]:
    """Return a Newton step (q, q) of each correlation from zero, and the information that it rests on."""
    residuals = signs * hazard(signs * means)
    information = weights @ weights.T
    matrix = np.clip((residuals @ residuals.T) / (1 + information), -0.9, 0.9)
    np.fill_diagonal(matrix, 1.0)
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < 0.1:  # towards the identity, as far as it takes
        matrix = np.eye(len(matrix)) + (matrix - np.eye(len(matrix))) * 0.9 / (1 - least)
    return matrix, information
