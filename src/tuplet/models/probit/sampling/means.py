"""Means of the latent variables: what blocks do, and linear blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tuplet.core.typing import Codes, Floats
from tuplet.models.probit.sampling.design import LinearDesign
from tuplet.models.probit.sampling.modes import estimate_scales


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

    def prepare(self, X: Floats, signs: Codes, offsets: Floats) -> Any:
        """Return what all chains need of rows X (n, d) with signs (q, n) and offsets (q,)."""

    def blocks(self, prepared: Any, q: int) -> MeanBlocks:
        """Make the blocks of q labels."""

    def collect(self, records: list[list[Any]], n_features: int) -> MeanDraws:
        """Gather what the blocks recorded: a list of labels for each draw."""


@dataclass(frozen=True)
class LinearSettings:
    """Prior of linear means: standard deviations of the slopes and of the intercept, around its offset.

    The slopes of standardised predictors of a label have one scale, which is estimated if it is None.
    """

    scale: float | None = None
    intercept_scale: float = 2.5

    def prepare(self, X: Floats, signs: Codes, offsets: Floats) -> LinearDesign:
        """Rotate the predictors X (n, d) once for all chains."""
        design = LinearDesign.make(X, len(signs), self.scale or 1.0, self.intercept_scale)
        return design if self.scale else design.with_scales(estimate_scales(design, signs, offsets))

    def blocks(self, prepared: LinearDesign, q: int) -> LinearBlocks:
        """Make the blocks of q labels."""
        return LinearBlocks(prepared)

    def collect(self, records: list[list[Floats]], n_features: int) -> LinearDraws:
        """Gather what the blocks recorded: a list of labels for each draw."""
        return LinearDraws(np.array(records, dtype=float))


class LinearBlocks:
    """Linear means with normal priors: conjugate, so each step is an independent draw of all of them."""

    is_cheap = True

    def __init__(self, design: LinearDesign) -> None:
        self.design = design
        self.position: Floats = np.zeros_like(design.deviations)

    def step(self, target: Floats, covariance: Floats, rng: np.random.Generator) -> Floats:
        """See `MeanBlocks.step`."""
        # Columns of the design are orthogonal, so positions of different columns are independent. The slopes
        # of a label have one scale: the axes along which labels are independent are the same for all of them.
        precision, design = np.linalg.inv(covariance), self.design
        pull = precision @ (target @ design.rotated) * design.deviations
        for columns in (slice(0, 1), slice(1, None)):
            if pull[:, columns].size:
                scales = design.deviations[:, columns][:, :1]
                self.position[:, columns] = _draw_positions(
                    scales * precision * scales.T, design.strengths[columns], pull[:, columns], rng
                )
        return self.means()

    def means(self) -> Floats:
        """Return the means (q, n)."""
        return self.design.means(self.position)

    def settle(self) -> None:
        """See `MeanBlocks.settle`; linear means are the same from the beginning."""

    def record(self, rng: np.random.Generator) -> list[Floats]:
        """Return the coefficients (d + 1,) of each label, the intercept first."""
        return list(self.design.coefficients(self.position, rng))

    def restore(self, records: list[Floats]) -> Floats:
        """Take the coefficients of a record; return the means (q, n)."""
        self.position = self.design.positions(np.array(records, dtype=float))
        return self.means()


def _draw_positions(precision: Floats, strengths: Floats, pull: Floats, rng: np.random.Generator) -> Floats:
    """Draw positions (q, r): column j has precision 1 + strengths_j precision and its pull."""
    values, axes = np.linalg.eigh(precision)
    spread = 1 / (1 + np.maximum(values, 0.0)[:, None] * strengths)
    # The symmetric root does not depend on the signs of axes, which rounding may change.
    noise = axes.T @ rng.standard_normal(pull.shape)
    return np.asarray(axes @ (spread * (axes.T @ pull) + np.sqrt(spread) * noise), dtype=float)


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
        full = np.concatenate([np.ones((len(X), 1)), X], axis=1)
        flat = full @ self.coefficients.reshape(-1, width).T
        return np.ascontiguousarray(flat.reshape(len(X), n_draws, q).transpose(1, 0, 2))
