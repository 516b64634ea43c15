"""Rows in blocks, one classifier for each: the contract of such classifiers, and how rows are sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.space.features.inputs import Features


class BlockClassifiers(Protocol):
    """Fitted classifiers of q blocks of rows. Classes that a block lacks have probability zero."""

    @property
    def totals(self) -> Floats:
        """Training weight of every block (q,), zero where there is no classifier."""

    def proba(self, Z: Features, blocks: Codes) -> Floats:
        """Probabilities (n, k) of rows Z, each by the classifier of its own block (n,); 0 if `UNKNOWN`."""

    def table(self, Z: Features) -> Floats:
        """Probabilities (q, k, n) of all rows by the classifiers of all blocks."""


def class_weights(y: Codes, blocks: Codes, q: int, k: int, weight: Floats | None) -> Floats:
    """Weight of every class in every block (q, k)."""
    used = (y != UNKNOWN) & (blocks != UNKNOWN)
    some = None if weight is None else weight[used]
    return np.bincount(blocks[used] * k + y[used], some, minlength=q * k).reshape(q, k).astype(float)


def sort_into_blocks(block: Codes, q: int) -> tuple[Codes, Codes]:
    """Positions (n,) in stable order of their blocks, and where each of the q blocks starts (q + 1,)."""
    # numpy sorts 16-bit keys by radix, in a tenth of the time.
    keys = block.astype(np.uint16) if q <= 2**16 else block
    starts = np.concatenate([[0], np.bincount(block, minlength=q).cumsum()])
    return np.argsort(keys, kind="stable"), starts


@dataclass(frozen=True)
class Blocks:
    """Training rows of q blocks and the logits that each block needs.

    Parameters
    ----------
    rows, starts : int array (s,), (q + 1,)
        Block g has the rows `rows[starts[g] : starts[g + 1]]`.
    slots : int array (s,)
        The logit of each row's class; with one logit for two classes, that is 0 for the second of them and 1
        for the first, which has none.
    weight : float array (s,)
        Weights of the rows, which sum to 1 in each block.
    class_weight : float array (q, k)
        Total weight of every class.
    block_at, label_at, slot_at : int array (l,)
        The logits of all blocks: that of class `label_at` in `block_at` is number `slot_at`.
    """

    rows: Codes
    starts: Codes
    slots: Codes
    weight: Floats
    class_weight: Floats
    block_at: Codes
    label_at: Codes
    slot_at: Codes

    @classmethod
    def make(cls, block: Codes, labels: Codes, weight: Floats, rows: Codes, q: int, k: int) -> Blocks:
        """Sort `rows`, whose blocks, labels and weights (> 0) are found in arrays over all rows."""
        order, starts = sort_into_blocks(block[rows], q)
        rows = rows[order]
        g, label, w = block[rows], labels[rows], weight[rows]
        class_weight = np.bincount(g * k + label, w, minlength=q * k).reshape(q, k).astype(float)
        slot = _slots(class_weight > 0)
        n_logits = slot.max(axis=1, keepdims=True, initial=-1) + 1
        n_logits[n_logits == 2] = 1
        block_at, label_at = np.nonzero((slot >= 0) & (slot < n_logits))
        share = w / class_weight.sum(axis=1)[g]
        slot_at = slot[block_at, label_at]
        return cls(rows, starts, slot[g, label], share, class_weight, block_at, label_at, slot_at)

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which classes have weight in which block (q, k)."""
        return self.class_weight > 0

    def start(self, width: int) -> Floats:
        """Parameters (q, k, width + 1) by logit: zeros, and intercepts that give the classes' frequencies."""
        q, k = self.class_weight.shape
        present = self.present
        log = np.log(self.class_weight, where=present, out=np.zeros((q, k)))
        n_present = present.sum(axis=1)
        middle = log.sum(axis=1) / np.maximum(n_present, 1)
        first = log[np.arange(q), present.argmax(axis=1)]
        base = np.where(n_present == 2, first, middle)
        theta = np.zeros((q, k, width + 1))
        theta[self.block_at, self.slot_at, -1] = log[self.block_at, self.label_at] - base[self.block_at]
        return theta

    def by_class(self, theta: Floats) -> Floats:
        """Reorder parameters (q, k, ...) by logit to parameters by class, with zeros for classes without."""
        out = np.zeros_like(theta)
        out[self.block_at, self.label_at] = theta[self.block_at, self.slot_at]
        return out


def _slots(present: npt.NDArray[np.bool_]) -> Codes:
    """Number the classes of each block from 0, of two classes the second; -1 for those that are absent."""
    slot = np.where(present, present.cumsum(axis=1) - 1, -1)
    two = present.sum(axis=1, keepdims=True) == 2
    return np.where(two & present, 1 - slot, slot)
