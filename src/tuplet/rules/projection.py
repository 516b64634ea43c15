"""Some class variables of a distribution, the others summed out by it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self, final

import numpy as np
import numpy.typing as npt

from tuplet.joint import JointDistribution, Search
from tuplet.joint.base import ENUMERATION_LIMIT, Ranking
from tuplet.joint.search import best_first
from tuplet.typing import UNKNOWN, Codes, Floats


@final
@dataclass(frozen=True, eq=False, repr=False)
class Projection(JointDistribution):
    """The distribution of some variables of another one.

    Parameters
    ----------
    whole : JointDistribution
    variables : tuple of int
        Its variables that are asked for, in this order.
    search : Search
        Budget of the search for the most probable outcomes where there are too many to list.
    """

    whole: JointDistribution
    variables: tuple[int, ...]
    search: Search = field(default_factory=Search)

    @property
    def cards(self) -> tuple[int, ...]:  # type: ignore[override]
        """Cardinalities of the variables."""
        return tuple(self.whole.cards[v] for v in self.variables)

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`."""
        return self.whole.tolerance

    def __len__(self) -> int:
        return len(self.whole)

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        return replace(self, whole=self.whole._take(rows))

    def _embed(self, codes: Codes) -> Codes:
        full = np.full((*codes.shape[:-1], self.whole.n_variables), UNKNOWN)
        full[..., list(self.variables)] = codes
        return full

    def _log_prob(self, codes: Codes) -> Floats:
        return self.whole._log_prob(self._embed(codes))

    def _bound(self, codes: Codes) -> Floats:
        return np.full(codes.shape[:2], np.inf) if self.tolerance else self._log_prob(codes)

    def _flat_marginals(self) -> Floats:
        marginals = self.whole.marginals()
        return np.concatenate([marginals[v] for v in self.variables], axis=1)

    def _top_k(self, k: int) -> Ranking:
        if self.n_outcomes <= ENUMERATION_LIMIT:
            found = self.to_atoms().top_k(k)
            return found if not self.tolerance else found._replace(proven=np.zeros(len(self), bool))
        certainty = [marginal.max(axis=1).mean() for marginal in self.marginals()]
        order = [int(v) for v in np.argsort(certainty)[::-1]]  # the surest first: the bound then falls late

        def expand(
            rows: npt.NDArray[np.intp], codes: Codes, variables: npt.NDArray[np.intp], bounds: Floats
        ) -> Floats:
            card = self.cards[variables[0]]
            children = np.repeat(codes[:, None], card, axis=1)
            children[np.arange(len(codes)), :, variables] = np.arange(card)
            chosen = self._take(np.repeat(rows, card))
            return chosen._log_prob(children.reshape(1, len(chosen), -1))[0].reshape(-1, card)

        found = best_first(len(self), self.cards, order, expand, k, self.search, dive=max(k, 4))
        return found if not self.tolerance else found._replace(proven=np.zeros(len(self), bool))

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        return self.whole._sample(size, rng)[..., list(self.variables)]

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        given, log_evidence = self.whole._condition(self._embed(codes))
        return replace(self, whole=given), log_evidence

    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        return replace(self, variables=tuple(self.variables[v] for v in variables))
