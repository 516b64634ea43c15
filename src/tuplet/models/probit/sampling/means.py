"""Means of the latent variables: what a block of one label does, and linear blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tuplet.core.typing import Floats


class MeanBlock(Protocol):
    """The mean function of one label and its place in the chain.

    A block changes in place: the engines of forests do, and copying them would cost more than a step.
    """

    is_cheap: bool
    """Whether a step costs no more than drawing the latent variables does."""

    def step(self, target: Floats, variance: float, rng: np.random.Generator) -> Floats:
        """Move given target = mean + noise (n,), the noise of this variance; return the new means (n,)."""

    def settle(self) -> None:
        """End what is for the first steps only: draws are kept from now on."""

    def record(self) -> Any:
        """Return the function as it is now, as a value."""

    def restore(self, record: Any) -> Floats:
        """Take the function of a record; return the means (n,)."""


class MeanDraws(Protocol):
    """Mean functions of all kept draws and labels."""

    def __len__(self) -> int:
        """Number of draws."""

    def predict(self, X: Floats) -> Floats:
        """Return means (draws, n, q) at rows X, without offsets."""

    def take(self, draws: slice) -> Any:
        """Return some of the draws, `slice(start, stop)`."""


class MeanSettings(Protocol):
    """Prior of the mean functions, and what makes them."""

    def blocks(self, X: Floats, q: int) -> Sequence[MeanBlock]:
        """Make a block for each of q labels; X (n, d)."""

    def collect(self, records: list[list[Any]], n_features: int) -> MeanDraws:
        """Gather what the blocks recorded: a list of labels for each draw."""


@dataclass(frozen=True)
class LinearSettings:
    """Prior of linear means: standard deviations of the slopes and of the intercept, around its offset."""

    scale: float = 1.0
    intercept_scale: float = 2.5

    def blocks(self, X: Floats, q: int) -> list[_LinearBlock]:
        """Make a block for each of q labels; X (n, d)."""
        design = _LinearDesign.make(X, self.scale, self.intercept_scale)
        return [_LinearBlock(design) for _ in range(q)]

    def collect(self, records: list[list[Floats]], n_features: int) -> LinearDraws:
        """Gather what the blocks recorded: a list of labels for each draw."""
        return LinearDraws(np.array(records, dtype=float))


@dataclass(frozen=True)
class _LinearDesign:
    """Predictors of linear means, rotated once so that coefficients given the variance are independent.

    Parameters
    ----------
    rotated : float array (n, d + 1)
        Predictors with an intercept in front, times `rotation`.
    rotation : float array (d + 1, d + 1)
        Coefficients are `rotation` times independent standard normals a priori.
    strengths : float array (d + 1,)
        Squared lengths of the columns of `rotated`.
    """

    rotated: Floats
    rotation: Floats
    strengths: Floats

    @classmethod
    def make(cls, X: Floats, scale: float, intercept_scale: float) -> _LinearDesign:
        """Prepare standardised predictors X (n, d); the scales are prior standard deviations."""
        full = _with_intercept(X)
        deviations = np.full(full.shape[1], scale)
        deviations[0] = intercept_scale
        scaled = full * deviations
        strengths, axes = np.linalg.eigh(scaled.T @ scaled)
        return cls(scaled @ axes, deviations[:, None] * axes, np.maximum(strengths, 0.0))


class _LinearBlock:
    """A linear mean with a normal prior: conjugate, so each step is an independent draw."""

    is_cheap = True

    def __init__(self, design: _LinearDesign) -> None:
        self.design = design
        self.position: Floats = np.zeros(len(design.strengths))

    def step(self, target: Floats, variance: float, rng: np.random.Generator) -> Floats:
        """See `MeanBlock.step`."""
        design = self.design
        spread = 1 / (design.strengths / variance + 1)
        centre = spread * (design.rotated.T @ target) / variance
        self.position = centre + np.sqrt(spread) * rng.standard_normal(len(centre))
        return design.rotated @ self.position

    def settle(self) -> None:
        """See `MeanBlock.settle`; linear means are the same from the beginning."""

    def record(self) -> Floats:
        """Return the coefficients (d + 1,), the intercept first."""
        return self.design.rotation @ self.position

    def restore(self, record: Floats) -> Floats:
        """Take the coefficients of a record; return the means (n,)."""
        self.position = np.asarray(np.linalg.solve(self.design.rotation, record), dtype=float)
        return self.design.rotated @ self.position


@dataclass(frozen=True)
class LinearDraws:
    """Coefficients of linear means.

    Parameters
    ----------
    coefficients : float array (draws, q, d + 1)
        Those of the intercepts come first.
    """

    coefficients: Floats

    @classmethod
    def join(cls, parts: list[LinearDraws]) -> LinearDraws:
        """Put the draws of several chains one behind the other."""
        return cls(np.concatenate([part.coefficients for part in parts]))

    def __len__(self) -> int:
        return len(self.coefficients)

    def take(self, draws: slice) -> LinearDraws:
        """Return some of the draws."""
        return LinearDraws(self.coefficients[draws])

    def predict(self, X: Floats) -> Floats:
        """See `MeanDraws.predict`."""
        n_draws, q, width = self.coefficients.shape
        flat = _with_intercept(X) @ self.coefficients.reshape(-1, width).T
        return np.ascontiguousarray(flat.reshape(len(X), n_draws, q).transpose(1, 0, 2))


def _with_intercept(X: Floats) -> Floats:
    """Put a column of ones in front of X."""
    return np.concatenate([np.ones((len(X), 1)), X], axis=1)
