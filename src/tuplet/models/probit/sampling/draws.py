"""The kept draws of all chains: what a fitted model consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Floats
from tuplet.models.probit.sampling.chains import ChainDraws
from tuplet.models.probit.sampling.forests import ForestDraws
from tuplet.models.probit.sampling.means import MeanDraws


@dataclass(frozen=True)
class Draws:
    """Draws from the posterior distribution of a multivariate probit model.

    Parameters
    ----------
    correlations : float array (chains, draws, q, q)
    levels : float array (chains, draws, q)
        Mean probability of each label over the training rows: what to watch of the means.
    means : tuple of MeanDraws
        Mean functions of each chain.
    offsets : float array (q,)
        What is added to all means.
    """

    correlations: Floats
    levels: Floats
    means: tuple[MeanDraws, ...]
    offsets: Floats

    @classmethod
    def collect(cls, chains: Sequence[ChainDraws], offsets: Floats) -> Draws:
        """Gather chains, as many draws of each as the shortest has."""
        n = min(map(len, chains))
        return cls(
            np.stack([chain.correlations[:n] for chain in chains]),
            np.stack([chain.levels[:n] for chain in chains]),
            tuple(chain.means.take(slice(0, n)) for chain in chains if chain.means is not None),
            offsets,
        )

    def __len__(self) -> int:
        """Number of draws of all chains."""
        return self.correlations.shape[0] * self.correlations.shape[1]

    def extended(self, more: Draws) -> Draws:
        """Return these draws with more of the same chains behind them."""
        means = tuple(type(a).join([a, b]) for a, b in zip(self.means, more.means, strict=True))  # type: ignore[attr-defined]
        return Draws(
            np.concatenate([self.correlations, more.correlations], axis=1),
            np.concatenate([self.levels, more.levels], axis=1),
            means,
            self.offsets,
        )

    def predict(self, X: Floats) -> Floats:
        """Return latent means (draws of all chains, n, q), chain by chain."""
        return np.concatenate([chain.predict(X) for chain in self.means]) + self.offsets

    def split_counts(self) -> npt.NDArray[np.int32]:
        """Number of splits on each feature in each draw and label, (all draws, q, d): forests only."""
        return np.concatenate(
            [chain.split_counts() for chain in self.means if isinstance(chain, ForestDraws)]
        )

    def flat_correlations(self) -> Floats:
        """Return the correlation matrices (draws of all chains, q, q), chain by chain."""
        q = len(self.offsets)
        return self.correlations.reshape(-1, q, q)


@dataclass(frozen=True)
class MeansAt:
    """Latent means at rows X that are computed on demand, since all at once would not fit.

    Parameters
    ----------
    draws : Draws
    X : float array (n, d)
    low, high : float array (q,)
        Means are limited to this range.
    """

    draws: Draws
    X: Floats
    low: Floats
    high: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """Draws, rows and labels."""
        return len(self.draws), len(self.X), len(self.draws.offsets)

    def rows(self, index: npt.NDArray[Any]) -> Floats:
        """Return the means (draws, r, q) of some rows."""
        means = self.draws.predict(self.X[index])
        return np.clip(means, self.low, self.high, out=means)
