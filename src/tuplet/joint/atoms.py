"""Explicit outcomes with weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logsumexp

from tuplet.exceptions import InputError
from tuplet.joint.base import JointDistribution, Ranking
from tuplet.typing import UNKNOWN, Codes, Floats

__all__ = ["Atoms", "indicator"]

_MATCH_CELLS = 2**24
"""Cells of the comparison of outcomes with atoms that are held at once."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Atoms(JointDistribution):
    """A list of outcomes per row and their log-weights; every other outcome has probability zero.

    What a class powerset, posterior draws and small tables return.

    Parameters
    ----------
    cards : tuple of int
        Cardinalities of the m variables.
    codes : array of int, shape (n, a, m) or (1, a, m)
        The atoms. With a leading 1 all rows share them. The atoms of a row must be distinct; use
        `Atoms.from_draws` for draws, which may repeat.
    log_weights : array, shape (n, a)
        Unnormalised; minus infinity for an atom that a row does not have.

    Examples
    --------
    >>> import numpy as np
    >>> joint = Atoms((2, 3), np.array([[[0, 0], [1, 2]]]), np.log([[0.25, 0.75]]))
    >>> joint.marginals()[1].round(2)
    array([[0.25, 0.  , 0.75]])
    """

    cards: tuple[int, ...]
    codes: Codes
    log_weights: Floats

    def __post_init__(self) -> None:
        codes, log_weights = np.asarray(self.codes), np.asarray(self.log_weights, dtype=float)
        n, a = log_weights.shape
        if codes.shape not in {(n, a, len(self.cards)), (1, a, len(self.cards))} or a == 0:
            raise InputError(
                f"Atoms: codes of shape {codes.shape} do not fit log_weights of shape {log_weights.shape}"
                f" and {len(self.cards)} variables."
            )
        total = logsumexp(log_weights, axis=1, keepdims=True)
        if not np.isfinite(total).all():
            raise InputError("Atoms: the weights of a row must be finite and not all zero.")
        object.__setattr__(self, "cards", tuple(int(card) for card in self.cards))
        object.__setattr__(self, "codes", codes.astype(np.intp, copy=False))
        object.__setattr__(self, "log_weights", log_weights - total)

    @classmethod
    def from_draws(cls, cards: tuple[int, ...], draws: Codes, log_weights: Floats | None = None) -> Atoms:
        """Collect draws (size, n, m), which may repeat, into distinct atoms; weights (size, n) add up."""
        size, n, m = draws.shape
        weights = np.zeros((size, n)) if log_weights is None else log_weights
        _, identity = np.unique(draws.reshape(-1, m), axis=0, return_inverse=True)
        key = identity.reshape(size, n).T  # one number per outcome, the same in all rows
        order = np.argsort(key, axis=1, kind="stable")
        key, weights = np.take_along_axis(key, order, 1), np.take_along_axis(weights.T, order, 1)
        first = np.concatenate([np.ones((n, 1), bool), key[:, 1:] != key[:, :-1]], axis=1)
        slot = np.cumsum(first, axis=1) - 1
        peak = weights.max(axis=1, keepdims=True)
        summed = np.zeros((n, int(slot.max()) + 1))
        np.add.at(summed, (np.arange(n)[:, None], slot), np.exp(weights - peak))
        codes = np.zeros((*summed.shape, m), dtype=np.intp)
        codes[np.nonzero(first)[0], slot[first]] = draws.transpose(1, 0, 2)[
            np.nonzero(first)[0], order[first]
        ]
        with np.errstate(divide="ignore"):
            return cls(cards, codes, np.log(summed) + peak)

    def __len__(self) -> int:
        return len(self.log_weights)

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        codes = self.codes if self._shared else self.codes[rows]
        return type(self)(self.cards, codes, self.log_weights[rows])

    @property
    def _shared(self) -> bool:
        return len(self.codes) == 1

    def _log_prob(self, codes: Codes) -> Floats:
        return self._over_matches(codes, lambda log_weights: logsumexp(log_weights, axis=-1))

    def _bound(self, codes: Codes) -> Floats:
        return self._over_matches(codes, lambda log_weights: log_weights.max(axis=-1))

    def _over_matches(self, codes: Codes, reduce) -> Floats:  # type: ignore[no-untyped-def]
        """Reduce the log-weights (s, n, a) of the atoms that agree with the known part of codes (s, n, m)."""
        s, n, _ = codes.shape
        answer = np.empty((s, n))
        step = max(1, _MATCH_CELLS // max(1, n * self.log_weights.shape[1]))
        for start in range(0, s, step):
            part = codes[start : start + step]
            match = np.ones((len(part), n, self.log_weights.shape[1]), bool)
            for j in range(self.n_variables):
                wanted = part[..., j, None]
                match &= (self.codes[..., j] == wanted) | (wanted == UNKNOWN)
            with np.errstate(divide="ignore"):
                answer[start : start + step] = reduce(np.where(match, self.log_weights, -np.inf))
        return answer

    def _flat_marginals(self) -> Floats:
        flat = np.zeros((len(self), sum(self.cards)))
        if self._shared:
            flat = np.exp(self.log_weights) @ indicator(self.codes[0], self.cards)
        else:
            weights = np.exp(self.log_weights)
            rows = np.arange(len(self))[:, None]
            for j, offset in enumerate(self.offsets[:-1]):
                np.add.at(flat, (rows, self.codes[..., j] + offset), weights)
        return np.minimum(flat, 1.0)

    def _top_k(self, k: int) -> Ranking:
        order = np.argsort(-self.log_weights, axis=1, kind="stable")[:, :k]
        log_prob = np.take_along_axis(self.log_weights, order, axis=1)
        codes = np.where(np.isneginf(log_prob)[..., None], UNKNOWN, self._gather(order))
        missing = k - order.shape[1]
        if missing > 0:
            codes = np.pad(codes, ((0, 0), (0, missing), (0, 0)), constant_values=UNKNOWN)
            log_prob = np.pad(log_prob, ((0, 0), (0, missing)), constant_values=-np.inf)
        return Ranking(codes, log_prob, np.ones(len(self), bool))

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        cumulative = np.cumsum(np.exp(self.log_weights), axis=1)
        uniform = rng.random((size, len(self))) * cumulative[:, -1]
        chosen = np.empty((len(self), size), dtype=np.intp)
        for i, row in enumerate(cumulative):
            chosen[i] = np.searchsorted(row, uniform[:, i], side="right")
        return self._gather(chosen).transpose(1, 0, 2)

    def _gather(self, positions: npt.NDArray[np.intp]) -> Codes:
        """Atoms at positions (n, k), as codes (n, k, m)."""
        if self._shared:
            return self.codes[0][positions]
        return np.take_along_axis(self.codes, positions[..., None], axis=1)

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        match = ((self.codes == codes[:, None]) | (codes[:, None] == UNKNOWN)).all(axis=2)
        with np.errstate(divide="ignore"):
            kept = np.where(match, self.log_weights, -np.inf)
            log_evidence = logsumexp(kept, axis=1)
        impossible = np.isneginf(log_evidence)[:, None]
        return Atoms(self.cards, self.codes, np.where(impossible, self.log_weights, kept)), log_evidence

    def _marginal(self, variables: tuple[int, ...]) -> Atoms:
        cards = tuple(self.cards[v] for v in variables)
        codes = self.codes[..., list(variables)]
        shape = (len(self), *codes.shape[1:])
        return Atoms.from_draws(cards, np.broadcast_to(codes, shape).transpose(1, 0, 2), self.log_weights.T)

    def entropy(self) -> Floats:
        """See `JointDistribution.entropy`."""
        finite = np.where(np.isneginf(self.log_weights), 0.0, self.log_weights)
        return np.maximum(0.0, -(np.exp(self.log_weights) * finite).sum(axis=1))

    def _count_marginals(self) -> Floats:
        m = self.n_variables
        positive = (self.codes == 1).astype(float)
        count = np.eye(m + 1)[(self.codes == 1).sum(axis=2)]
        if self._shared:
            return np.einsum("na,aj,as->njs", np.exp(self.log_weights), positive[0], count[0], optimize=True)
        return np.einsum("na,naj,nas->njs", np.exp(self.log_weights), positive, count, optimize=True)

    def to_atoms(self, limit: int = 0) -> Atoms:
        """See `JointDistribution.to_atoms`; already there, whatever the limit."""
        return self


def indicator(outcomes: Codes, cards: tuple[int, ...]) -> sparse.csr_array:
    """Which values outcomes (a, m) have, as a 0/1 matrix (a, sum of cards); sparse, as both may be many."""
    a, m = outcomes.shape
    columns = outcomes + np.concatenate([[0], np.cumsum(cards[:-1])]).astype(np.intp)
    parts = (np.ones(a * m), columns.ravel(), np.arange(0, a * m + 1, m))
    return sparse.csr_array(parts, shape=(a, sum(cards)))
