"""What it is to have a classifier for each block of rows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tuplet.local.inputs import Features
from tuplet.typing import UNKNOWN, Codes, Floats


class Experts(Protocol):
    """Fitted classifiers of q blocks. Their probabilities are their own: zero for classes not seen."""

    @property
    def totals(self) -> Floats:
        """Training weight of every block (q,), zero where there is no classifier."""

    def proba(self, Z: Features, blocks: Codes) -> Floats:
        """Probabilities (n, k) of rows Z, each by the classifier of its own block (n,); 0 if `UNKNOWN`."""

    def table(self, Z: Features) -> Floats:
        """Probabilities (q, k, n) of all rows by the classifiers of all blocks."""


class Layout(Protocol):
    """How experts want to see rows."""

    def encode(self, X: Any) -> Floats:
        """Return rows as they are given to `Experts.proba`."""


class Batch(Protocol):
    """The rows of a child, prepared for classifiers of any blocks of them."""

    @property
    def layout(self) -> Layout | None:
        """How its experts want to see rows; None if as they are."""

    @property
    def rows(self) -> Floats:
        """All rows as its experts want to see them."""

    def fit(
        self,
        y: Codes,
        blocks: Codes,
        n_blocks: int,
        n_classes: int,
        weight: Floats | None = None,
        *,
        n_jobs: int | None = None,
    ) -> Experts:
        """Fit one classifier to each block (n,) of codes y (n,), without rows where either is `UNKNOWN`."""


def class_weights(y: Codes, blocks: Codes, q: int, k: int, weight: Floats | None) -> Floats:
    """Weight of every class in every block (q, k)."""
    used = (y != UNKNOWN) & (blocks != UNKNOWN)
    some = None if weight is None else weight[used]
    return np.bincount(blocks[used] * k + y[used], some, minlength=q * k).reshape(q, k).astype(float)
