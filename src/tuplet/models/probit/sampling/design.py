"""Predictors of linear means: centred, rotated, and scaled for each label."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Floats


@dataclass(frozen=True)
class LinearDesign:
    """Predictors of linear means, rotated once so that coefficients given the variance are independent.

    The means of a label are `rotated` times its `deviations` times its positions, which are standard normal a
    priori. With more predictors than rows there are no more positions than rows; the rows say nothing about
    the rest of the coefficients.

    Parameters
    ----------
    rotated : float array (n, r)
        Ones for the intercept, and centred predictors times axes.
    strengths : float array (r,)
        Squared lengths of the columns of `rotated`, which are orthogonal.
    deviations : float array (q, r)
        Prior standard deviations: of the intercept, and of what all slopes of a label have in common.
    centre : float array (d,)
        Means of the predictors.
    axes : float array (d, r - 1)
        Orthonormal columns; where there are fewer than d of them, slopes have a normal part that is
        orthogonal to them.
    """

    rotated: Floats
    strengths: Floats
    deviations: Floats
    centre: Floats
    axes: Floats

    @classmethod
    def make(cls, X: Floats, q: int, scale: float, intercept_scale: float) -> LinearDesign:
        """Prepare standardised predictors X (n, d) for q labels; the scales are prior standard deviations."""
        centre = X.mean(axis=0)
        rotated, strengths, axes = _rotate(X - centre)
        rotated = np.concatenate([np.ones((len(X), 1)), rotated], axis=1)
        deviations = np.full((q, rotated.shape[1]), scale)
        deviations[:, 0] = intercept_scale
        return cls(rotated, np.append(float(len(X)), strengths), deviations, centre, axes)

    def take(self, rows: npt.NDArray[np.intp]) -> LinearDesign:
        """Return the design with its rows in another order."""
        return replace(self, rotated=np.ascontiguousarray(self.rotated[rows]))

    def with_scales(self, scales: Floats) -> LinearDesign:
        """Return the design with other prior standard deviations (q,) of the slopes of each label."""
        deviations = np.repeat(scales[:, None], self.deviations.shape[1], axis=1)
        deviations[:, 0] = self.deviations[:, 0]
        return replace(self, deviations=deviations)

    def means(self, positions: Floats, out: Floats | None = None) -> Floats:
        """Return the means (q, n) of positions (q, r)."""
        return np.matmul(positions * self.deviations, self.rotated.T, out=out)

    def slopes(self, slopes: Floats) -> Floats:
        """Return derivatives (q, r) by positions of what has derivatives (q, n) by means."""
        return slopes @ self.rotated * self.deviations

    def coefficients(self, positions: Floats, rng: np.random.Generator) -> Floats:
        """Return coefficients (q, d + 1) of positions (q, r), the intercepts first."""
        scaled = positions * self.deviations
        slopes = scaled[:, 1:] @ self.axes.T
        d, r = self.axes.shape
        if r < d:
            # All slopes of a label have one scale, which is not kept if all predictors are constant.
            other = rng.standard_normal(slopes.shape) * (self.deviations[:, -1:] if r else 0.0)
            slopes += other - (other @ self.axes) @ self.axes.T
        return np.column_stack([scaled[:, 0] - slopes @ self.centre, slopes])

    def positions(self, coefficients: Floats) -> Floats:
        """Return positions (q, r) of coefficients (q, d + 1)."""
        slopes = coefficients[:, 1:]
        intercepts = coefficients[:, 0] + slopes @ self.centre
        return np.column_stack([intercepts, slopes @ self.axes]) / self.deviations


def _rotate(X: Floats) -> tuple[Floats, Floats, Floats]:
    """Return X (n, d) times axes, the squared lengths of its columns, and the axes."""
    if len(X) < X.shape[1]:
        strengths, left = np.linalg.eigh(X @ X.T)
        some = strengths > 1e-10 * strengths[-1]
        strengths, left = strengths[some], left[:, some]
        roots = np.sqrt(strengths)
        return left * roots, strengths, X.T @ (left / roots)
    strengths, axes = np.linalg.eigh(X.T @ X)
    return X @ axes, np.maximum(strengths, 0.0), axes
