"""Naive Bayes classifiers of many blocks, as they answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.kernels import sort_rows
from tuplet.local.bayes_layout import BayesLayout
from tuplet.local.smoothed import require_size
from tuplet.typing import UNKNOWN, Codes, Floats

__all__ = ["BayesExperts"]


@dataclass(frozen=True)
class BayesExperts:
    """One naive Bayes classifier for each of q blocks; see `Experts`. Rows are as the layout encodes them.

    Parameters
    ----------
    layout : BayesLayout
    counts : array, shape (q, k)
        Training weight of every class in every block.
    several : array of bool, shape (q, k)
        Which classes are present where there are at least two: s pairs, in that order. Blocks with one class
        are sure of it.
    log_prior : array, shape (s,)
    mean : array, shape (s, d)
    scale : array, shape (s, d)
        One over the standard deviations; 0 for columns that say nothing in a block.
    log_share : array, shape (s, v)
        Log-probabilities of the values of categories; 0 for those that say nothing in a block.
    """

    layout: BayesLayout
    counts: Floats
    several: npt.NDArray[np.bool_]
    log_prior: Floats
    mean: Floats
    scale: Floats
    log_share: Floats

    @cached_property
    def totals(self) -> Floats:
        """See `Experts.totals`."""
        return np.asarray(self.counts.sum(axis=1))

    def proba(self, Z: Floats, blocks: Codes) -> Floats:
        """See `Experts.proba`."""
        k = self.counts.shape[1]
        answer = np.where((blocks != UNKNOWN)[:, None], self._certain[blocks], 0.0)
        mixed = np.flatnonzero((blocks != UNKNOWN) & self._is_mixed[blocks])
        order, starts = sort_rows(blocks[mixed], len(self.counts))
        rows = mixed[order]
        log_joint, Z = np.full((k, len(rows)), -np.inf), Z.take(rows, axis=0)
        for g in np.flatnonzero(np.diff(starts)).tolist():
            own = slice(starts[g], starts[g + 1])
            log_joint[self.several[g], own] = self._log_joint(g, Z[own])
        answer[rows] = _softmax(log_joint).T
        return answer

    def table(self, Z: Floats) -> Floats:
        """See `Experts.table`."""
        (q, k), n = self.counts.shape, len(Z)
        require_size(f"Probabilities by {q:,} classifiers", q * n, k)
        answer = np.repeat(self._certain[:, :, None], n, axis=2)
        for g in np.flatnonzero(self._is_mixed).tolist():
            answer[g, self.several[g]] = _softmax(self._log_joint(g, Z))
        return answer

    @cached_property
    def _is_mixed(self) -> npt.NDArray[np.bool_]:
        return np.array(self.several.any(axis=1))

    @cached_property
    def _certain(self) -> Floats:
        """Probabilities (q, k) of blocks with a single class; 0 elsewhere."""
        return np.where(self._is_mixed[:, None], 0.0, self.counts > 0)

    @cached_property
    def _slots(self) -> Codes:
        """The first pair of every block (q + 1,)."""
        return np.concatenate([[0], np.cumsum(self.several.sum(axis=1))])

    @cached_property
    def _log_scale(self) -> Floats:
        """Logarithms (s, d) of the factors in front of the normal densities."""
        there = self.scale > 0
        log = np.log(self.scale, where=there, out=np.zeros(self.scale.shape))
        return np.where(there, log - 0.5 * np.log(2 * np.pi), 0.0)

    @cached_property
    def _bias(self) -> Floats:
        return np.asarray(self.log_prior + self._log_scale.sum(axis=1))

    def _log_joint(self, g: int, Z: Floats) -> Floats:
        """Log-densities (c, n) of rows Z together with each of the c classes of a block."""
        slots = range(self._slots[g], self._slots[g + 1])
        numbers, answer = self.layout.numbers(Z), np.empty((len(slots), len(Z)))
        for i, slot in enumerate(slots):
            deviation = numbers - self.mean[slot]
            deviation *= self.scale[slot]
            answer[i] = self._bias[slot] - 0.5 * np.einsum("ij,ij->i", deviation, deviation)
        gaps = np.flatnonzero(np.isnan(answer[0]))
        if len(gaps):
            answer[:, gaps] = self._with_gaps(slots, numbers[gaps])
        if self.log_share.shape[1]:
            answer += self.log_share[slots.start : slots.stop] @ self.layout.indicators(Z).T
        return answer

    def _with_gaps(self, slots: range, numbers: Floats) -> Floats:
        """Return what `_log_joint` has of numbers (n, d), some of them missing; they are left out."""
        there, answer = ~np.isnan(numbers), np.empty((len(slots), len(numbers)))
        for i, slot in enumerate(slots):
            deviation = np.where(there, numbers - self.mean[slot], 0.0) * self.scale[slot]
            answer[i] = self.log_prior[slot] + there @ self._log_scale[slot]
            answer[i] -= 0.5 * np.einsum("ij,ij->i", deviation, deviation)
        return answer


def _softmax(log_joint: Floats) -> Floats:
    """Probabilities (k, n) in proportion to joint densities, whose logarithms are overwritten."""
    with np.errstate(invalid="ignore"):  # infinitely far from all classes: refused below
        log_joint -= log_joint.max(axis=0, initial=-np.inf)
        proba = np.exp(log_joint, out=log_joint)
        proba /= proba.sum(axis=0)
    if not np.isfinite(proba).all():
        raise InputError(
            "MixedNaiveBayes: the features of some rows are too far from all classes for probabilities; look"
            " at the scale of the features."
        )
    return proba
