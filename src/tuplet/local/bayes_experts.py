"""Naive Bayes classifiers of many blocks, as they answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuplet.exceptions import InputError
from tuplet.kernels import sort_rows
from tuplet.local.bayes_layout import BayesLayout
from tuplet.local.inputs import require_size
from tuplet.typing import UNKNOWN, Codes, Floats

_ROOT = math.sqrt(2 * math.pi)

_CHUNK = 2**16
"""Deviations, of rows times classes times columns, that are computed at once: what fits into a cache."""


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
        q, k = self.counts.shape
        place = np.where((blocks == UNKNOWN) | ~self._is_mixed[blocks], q, blocks)
        order, starts = sort_rows(place, q + 1)
        rows, certain = order[: starts[q]], order[starts[q] :]
        log_joint, Z = np.full((k, len(rows)), -np.inf), Z.take(rows, axis=0)
        for g in np.flatnonzero(starts[1:-1] > starts[:-2]).tolist():
            own = slice(starts[g], starts[g + 1])
            log_joint[self.several[g], own] = self._log_joint(g, Z[own])
        answer = np.zeros((len(blocks), k))
        answer[rows] = _softmax(log_joint).T
        if len(certain):
            known = (blocks[certain] != UNKNOWN)[:, None]
            answer[certain] = np.where(known, self._certain[blocks[certain]], 0.0)
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
    def _slots(self) -> list[int]:
        """The first pair of every block (q + 1,)."""
        return [0, *self.several.sum(axis=1).cumsum().tolist()]

    @cached_property
    def _log_scale(self) -> Floats:
        """Logarithms (s, d) of the factors in front of the normal densities."""
        return np.log(np.where(self.scale > 0, self.scale / _ROOT, 1.0))

    @cached_property
    def _bias(self) -> Floats:
        return np.asarray(self.log_prior + self._log_scale.sum(axis=1))

    def _log_joint(self, g: int, Z: Floats) -> Floats:
        """Log-densities (c, n) of rows Z together with each of the c classes of a block."""
        slots = slice(self._slots[g], self._slots[g + 1])
        numbers, mean, scale = self.layout.numbers(Z), self.mean[slots, None], self.scale[slots, None]
        answer = np.empty((len(mean), len(Z)))
        step = 1 + _CHUNK // (mean.size + 1)
        for start in range(0, len(Z), step):
            rows = slice(start, start + step)
            deviation = numbers[rows] - mean
            deviation *= scale
            np.einsum("cij,cij->ci", deviation, deviation, out=answer[:, rows])
        answer *= -0.5
        answer += self._bias[slots, None]
        gaps = np.flatnonzero(np.isnan(answer[0]))
        if len(gaps):
            answer[:, gaps] = self._with_gaps(slots, numbers[gaps])
        if self.log_share.shape[1]:
            answer += self.log_share[slots] @ self.layout.indicators(Z).T
        return answer

    def _with_gaps(self, slots: slice, numbers: Floats) -> Floats:
        """Return what `_log_joint` has of numbers (n, d), some of them missing; they are left out."""
        there = ~np.isnan(numbers)
        answer = self.log_prior[slots, None] + self._log_scale[slots] @ there.T
        for own, mean, scale in zip(answer, self.mean[slots], self.scale[slots], strict=True):
            deviation = np.where(there, numbers - mean, 0.0) * scale
            own -= 0.5 * np.einsum("ij,ij->i", deviation, deviation)
        return np.asarray(answer)


def _softmax(log_joint: Floats) -> Floats:
    """Probabilities (k, n) in proportion to joint densities, whose logarithms are overwritten."""
    with np.errstate(invalid="ignore"):  # infinitely far from all classes: refused below
        log_joint -= log_joint.max(axis=0)
        proba = np.exp(log_joint, out=log_joint)
        total = proba.sum(axis=0)
    if not np.isfinite(total).all():
        raise InputError(
            "MixedNaiveBayes: the features of some rows are too far from all classes for probabilities; look"
            " at the scale of the features."
        )
    proba /= total
    return proba
