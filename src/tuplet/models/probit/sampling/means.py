"""Means of the latent variables: what blocks do, and linear blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Floats


class MeanBlocks(Protocol):
    """The mean functions of all labels and their place in the chain.

    Blocks change in place: the engines of forests do, and copying them would cost more than a step.
    """

    is_cheap: bool
    """Whether a step costs no more than drawing the latent variables does."""

    def step(self, target: Floats, covariance: Floats, rng: np.random.Generator) -> Floats:
        """Move given target = means + noise (q, n) of this covariance (q, q); return the new means (q, n)."""

    def settle(self) -> None:
        """End what is for the first steps only: draws are kept from now on."""

    def record(self, rng: np.random.Generator) -> list[Any]:
        """Return the function of each label as it is now, as a value."""

    def restore(self, records: list[Any]) -> Floats:
        """Take the functions of a record; return the means (q, n)."""


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

    def prepare(self, X: Floats) -> Any:
        """Return what all chains need of rows X (n, d)."""

    def blocks(self, prepared: Any, q: int) -> MeanBlocks:
        """Make the blocks of q labels."""

    def collect(self, records: list[list[Any]], n_features: int) -> MeanDraws:
        """Gather what the blocks recorded: a list of labels for each draw."""


@dataclass(frozen=True)
class LinearSettings:
    """Prior of linear means: standard deviations of the slopes and of the intercept, around its offset."""

    scale: float = 1.0
    intercept_scale: float = 2.5

    def prepare(self, X: Floats) -> LinearDesign:
        """Rotate the predictors X (n, d) once for all chains."""
        return LinearDesign.make(X, self.scale, self.intercept_scale)

    def blocks(self, prepared: LinearDesign, q: int) -> LinearBlocks:
        """Make the blocks of q labels."""
        return LinearBlocks(prepared, q)

    def collect(self, records: list[list[Floats]], n_features: int) -> LinearDraws:
        """Gather what the blocks recorded: a list of labels for each draw."""
        return LinearDraws(np.array(records, dtype=float))


@dataclass(frozen=True)
class LinearDesign:
    """Predictors of linear means, rotated once so that coefficients given the variance are independent.

    Means are `rotated` times positions, which are standard normal a priori. With more predictors than rows
    there are as many positions as rows; the rows say nothing about the rest of the coefficients.

    Parameters
    ----------
    rotated : float array (n, r)
        Predictors with an intercept in front, times deviations and axes.
    deviations : float array (d + 1,)
        Prior standard deviations of the coefficients.
    axes : float array (d + 1, r)
        Orthonormal columns; coefficients are `deviations` times `axes` times positions, and, where r < d + 1,
        times a standard normal vector that is orthogonal to the axes.
    strengths : float array (r,)
        Squared lengths of the columns of `rotated`.
    """

    rotated: Floats
    deviations: Floats
    axes: Floats
    strengths: Floats

    @classmethod
    def make(cls, X: Floats, scale: float, intercept_scale: float) -> LinearDesign:
        """Prepare standardised predictors X (n, d); the scales are prior standard deviations."""
        full = _with_intercept(X)
        deviations = np.full(full.shape[1], scale)
        deviations[0] = intercept_scale
        full *= deviations
        if len(full) < full.shape[1]:
            strengths, left = np.linalg.eigh(full @ full.T)
            some = strengths > 1e-10 * strengths[-1]
            strengths, left = strengths[some], left[:, some]
            roots = np.sqrt(strengths)
            return cls(left * roots, deviations, full.T @ (left / roots), strengths)
        strengths, axes = np.linalg.eigh(full.T @ full)
        return cls(full @ axes, deviations, axes, np.maximum(strengths, 0.0))

    def take(self, rows: npt.NDArray[np.intp]) -> LinearDesign:
        """Return the design with its rows in another order."""
        return replace(self, rotated=np.ascontiguousarray(self.rotated[rows]))

    def coefficients(self, positions: Floats, rng: np.random.Generator) -> Floats:
        """Return coefficients (q, d + 1) of positions (q, r)."""
        free = positions @ self.axes.T
        if self.axes.shape[1] < len(self.axes):
            other = rng.standard_normal(free.shape)
            free += other - (other @ self.axes) @ self.axes.T
        return free * self.deviations

    def positions(self, coefficients: Floats) -> Floats:
        """Return positions (q, r) of coefficients (q, d + 1)."""
        return np.asarray(coefficients / self.deviations @ self.axes, dtype=float)


class LinearBlocks:
    """Linear means with normal priors: conjugate, so each step is an independent draw of all of them."""

    is_cheap = True

    def __init__(self, design: LinearDesign, q: int) -> None:
        self.design = design
        self.position: Floats = np.zeros((q, len(design.strengths)))

    def step(self, target: Floats, covariance: Floats, rng: np.random.Generator) -> Floats:
        """See `MeanBlocks.step`."""
        # Along the axes of the covariance and of the design, all positions are independent.
        variances, axes = np.linalg.eigh(covariance)
        variances = np.maximum(variances, 1e-12)[:, None]
        spread = 1 / (self.design.strengths / variances + 1)
        centre = spread * (axes.T @ (target @ self.design.rotated)) / variances
        self.position = axes @ (centre + np.sqrt(spread) * rng.standard_normal(centre.shape))
        return self.means()

    def means(self) -> Floats:
        """Return the means (q, n)."""
        return np.asarray(self.position @ self.design.rotated.T, dtype=float)

    def settle(self) -> None:
        """See `MeanBlocks.settle`; linear means are the same from the beginning."""

    def record(self, rng: np.random.Generator) -> list[Floats]:
        """Return the coefficients (d + 1,) of each label, the intercept first."""
        return list(self.design.coefficients(self.position, rng))

    def restore(self, records: list[Floats]) -> Floats:
        """Take the coefficients of a record; return the means (q, n)."""
        self.position = self.design.positions(np.array(records, dtype=float))
        return self.means()


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
