"""Upper bounds on outcomes of an `Autoregressive`, by which the mode of a mixture of chains is proven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import Ranking
from tuplet.joint.policies import AboveThreshold, Beam

_CELLS = 2**22
"""Comparisons of partial assignments with outcomes that are held at once."""


@dataclass(frozen=True)
class OutcomeBounds:
    """All outcomes above some probability, and a bound on every other one.

    The product of a chain's first conditionals bounds a partial assignment only as far as it fixes the first
    variables of the chain. A mixture of chains in different orders fixes few of these at a time; but an
    outcome more probable than the best one known so far must be so in at least one of its components, and
    of those outcomes a chain has few and finds them fast.

    Parameters
    ----------
    layout : BitLayout
    packed : array of uint64, shape (words, n, a)
        Outcomes, best first.
    log_prob : array, shape (n, a)
        Minus infinity for padding.
    log_floor : array, shape (n,)
        Upper bound on the log-probability of every outcome that is not listed.
    """

    layout: BitLayout
    packed: npt.NDArray[np.uint64]
    log_prob: Floats
    log_floor: Floats

    @classmethod
    def above(cls, joint: Autoregressive, log_threshold: Floats, width: int) -> OutcomeBounds:
        """List the outcomes above a threshold (n,), as far as that needs no more than `width` prefixes."""
        scale = joint._log_evidence  # a chain is walked without dividing by the evidence
        policy = AboveThreshold(log_threshold + scale, width, np.full(len(joint), -np.inf))
        layout = BitLayout.of(joint.cards)
        # Packed part by part: as codes, padded to the longest row, they would take gigabytes.
        held = [
            (part.query, part.rank(), layout.pack(part.codes)[0], part.log_mass)
            for part in joint._chain.complete(joint.evidence, policy)
        ]
        shape = (len(joint), 1 + max((int(rank.max()) for _, rank, _, _ in held), default=0))
        packed, log_prob = np.zeros((layout.n_words, *shape), np.uint64), np.full(shape, -np.inf)
        for query, rank, outcomes, log_mass in held:
            packed[:, query, rank], log_prob[query, rank] = outcomes, log_mass
        order = np.argsort(-log_prob, axis=1, kind="stable")
        log_prob = np.take_along_axis(log_prob, order, axis=1) - scale[:, None]
        packed = np.take_along_axis(packed, order[None], axis=2)
        return cls(layout, packed, log_prob, policy.floor - scale)

    def bound(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """Return upper bounds (s, r) on every completion of codes (s, r, m) of some rows (r,)."""
        s, r, _ = codes.shape
        answer = np.empty((s, r))
        step = max(1, _CELLS // max(1, s * self.log_prob.shape[1]))
        for start in range(0, r, step):
            part = slice(start, start + step)
            answer[:, part] = self._best_match(rows[part], codes[:, part])
        return np.maximum(answer, self.log_floor[rows])

    def _best_match(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        wanted, mask = self.layout.pack(codes)
        match = np.ones((*codes.shape[:2], self.log_prob.shape[1]), bool)
        for listed, value, bits in zip(self.packed, wanted, mask, strict=True):
            match &= (listed[rows] & bits[..., None]) == value[..., None]
        first = match.argmax(axis=2)
        return np.where(match.any(axis=2), self.log_prob[rows, first], -np.inf)


class BitLayout(NamedTuple):
    """Where the bits of each variable lie, so that outcomes are compared by the word and not by the code."""

    word: npt.NDArray[np.intp]  # (m,)
    shift: npt.NDArray[np.uint64]  # (m,)
    mask: npt.NDArray[np.uint64]  # (m,)

    @classmethod
    def of(cls, cards: tuple[int, ...]) -> BitLayout:
        """Fill words of 64 bits with the variables, none of them across two."""
        word, shift, used = [], [], [0]
        bits = [max(1, (card - 1).bit_length()) for card in cards]
        for need in bits:
            if used[-1] + need > 64:
                used.append(0)
            word.append(len(used) - 1)
            shift.append(used[-1])
            used[-1] += need
        mask = [((1 << need) - 1) << at for need, at in zip(bits, shift, strict=True)]
        return cls(np.array(word), np.array(shift, dtype=np.uint64), np.array(mask, dtype=np.uint64))

    @property
    def n_words(self) -> int:
        """Number of words that an outcome takes."""
        return int(self.word[-1]) + 1

    def pack(self, codes: Codes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Return the known values of codes (..., m) and the bits that they occupy, each (words, ...)."""
        shape = (self.n_words, *codes.shape[:-1])
        packed, mask = np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.uint64)
        for j, word in enumerate(self.word):
            known = codes[..., j] != UNKNOWN
            value = np.where(known, codes[..., j], 0).astype(np.uint64)
            packed[word] |= value << self.shift[j]
            mask[word] |= np.where(known, self.mask[j], np.uint64(0))
        return packed, mask


def likely_outcomes(joint: Autoregressive, k: int) -> Codes:
    """Return up to k good outcomes (n, k, m) of a chain, by its best prefixes and without proof."""
    n, m = len(joint), joint.n_variables
    found = Ranking(np.full((n, k, m), UNKNOWN), np.full((n, k), -np.inf), np.zeros(n, bool))
    for part in joint._chain.complete(joint.evidence, Beam(k)):
        place = (part.query, part.rank())
        found.codes[place], found.log_prob[place] = part.codes, part.log_prob
    joint._rescue(found)
    return found.codes
