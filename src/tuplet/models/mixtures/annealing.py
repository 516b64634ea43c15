"""The most probable outcome of a mixture by simulated annealing, as the paper on trees finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution, Ranking
from tuplet.joint.mixture import Mixture

HOTTEST, COLDEST = 1.0, 0.05
"""Temperatures, in nats, between which the chain cools down geometrically."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Annealed(JointDistribution):
    """A mixture whose mode is looked for by single flips from the best mode of a component, without proof.

    Everything else, also rankings of more than one outcome, is answered by the mixture itself.

    Parameters
    ----------
    mixture : Mixture
    n_flips : int
        Proposals for each row: a random variable gets another random value.
    seed : int
    """

    mixture: Mixture
    n_flips: int = 150
    seed: int = 0

    @property
    def cards(self) -> tuple[int, ...]:  # type: ignore[override]
        """Cardinalities of the class variables."""
        return self.mixture.cards

    def __len__(self) -> int:
        return len(self.mixture)

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`."""
        return self.mixture.tolerance

    @property
    def scores_exactly(self) -> bool:
        """See `JointDistribution.scores_exactly`."""
        return self.mixture.scores_exactly

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        return type(self)(self.mixture._take(rows), self.n_flips, self.seed)

    def _log_prob(self, codes: Codes) -> Floats:
        return self.mixture._log_prob(codes)

    def _bound(self, codes: Codes) -> Floats:
        return self.mixture._bound(codes)

    def _flat_marginals(self) -> Floats:
        return self.mixture._flat_marginals()

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        return self.mixture._sample(size, rng)

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        return self.mixture._condition(codes)

    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        return self.mixture._marginal(variables)

    def _log_table(self) -> Floats:
        return self.mixture._log_table()

    def _count_marginals(self) -> Floats:
        return self.mixture._count_marginals()

    def _top_k(self, k: int) -> Ranking:
        if k > 1:
            return self.mixture._top_k(k)
        codes, log_prob = self._anneal()
        return Ranking(codes[:, None], log_prob[:, None], np.zeros(len(self), dtype=bool))

    def _anneal(self) -> tuple[Codes, Floats]:
        """Return the best outcome (n, m) met by the chain of each row, and its log-probability (n,)."""
        rng, rows = np.random.default_rng(self.seed), np.arange(len(self))
        modes = np.stack([component.mode().codes for component in self.mixture.components])
        scores = self._log_prob(modes)
        first = scores.argmax(axis=0)
        best, best_score = modes[first, rows], scores[first, rows]
        now, score = best.copy(), best_score.copy()
        free = np.flatnonzero(np.array(self.cards) > 1)
        cards = np.array(self.cards)
        for temperature in np.geomspace(HOTTEST, COLDEST, self.n_flips) if len(free) else ():
            flipped, variable = now.copy(), rng.choice(free, len(now))
            step = rng.integers(1, cards[variable])
            flipped[rows, variable] = (now[rows, variable] + step) % cards[variable]
            trial = self._log_prob(flipped[None])[0]
            with np.errstate(over="ignore", invalid="ignore"):
                accepted = rng.random(len(now)) < np.exp((trial - score) / temperature)
            now[accepted], score[accepted] = flipped[accepted], trial[accepted]
            better = score > best_score
            best[better], best_score[better] = now[better], score[better]
        return best, best_score
