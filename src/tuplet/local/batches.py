"""Which classifiers are fitted to all blocks of rows in one go, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuplet.local.bayes import MixedNaiveBayes
from tuplet.local.bayes_layout import BayesLayout
from tuplet.local.blocks import Batch, class_weights
from tuplet.local.inputs import Features
from tuplet.local.logistic import is_plain_logistic
from tuplet.local.many_bayes import BayesBatch
from tuplet.local.many_logistic import LogisticBatch, ManyLogistic
from tuplet.typing import UNKNOWN, Codes, Floats

_LARGEST = 1e100
"""Numbers up to which squares cannot overflow; beyond, each classifier sees for itself."""

_MAX_CELLS = 2**26
"""Cells of encoded rows; a category with a value for each row would have as many columns as rows."""


def make_batch(classifier: Any, Z: Features, weight: Floats | None) -> Batch | None:
    """Return the batch for a classifier and all rows, or None if it must be fitted block by block."""
    if not isinstance(Z, np.ndarray):
        return None
    if is_plain_logistic(classifier):
        settings = (classifier.C, classifier.tol, classifier.max_iter)
        return Regressions(LogisticBatch(Z, weight), Z, *settings)
    if is_plain_bayes(classifier) and _is_moderate(Z):
        layout = BayesLayout.make(Z, classifier)
        return BayesBatch(Z, layout) if len(Z) * layout.width <= _MAX_CELLS else None
    return None


# -- regressions -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Regressions:
    """Logistic regressions in one compiled call; see `Batch`.

    Parameters
    ----------
    batch : LogisticBatch
        Of the rows (n, d).
    rows : array, shape (n, d)
    C, tol : float
    max_iter : int
        Settings of the classifier.
    """

    batch: LogisticBatch
    rows: Floats
    C: float
    tol: float
    max_iter: int

    @property
    def layout(self) -> None:
        """See `Batch.layout`."""
        return

    def fit(
        self,
        y: Codes,
        blocks: Codes,
        n_blocks: int,
        n_classes: int,
        weight: Floats | None = None,
        *,
        n_jobs: int | None = None,
    ) -> LinearExperts:
        """See `Batch.fit`."""
        many = self.batch.fit(
            y,
            blocks,
            n_classes=n_classes,
            n_blocks=n_blocks,
            C=self.C,
            sample_weight=weight,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=n_jobs,
        )
        return LinearExperts(many, class_weights(y, blocks, n_blocks, n_classes, weight).sum(axis=1))

    def fit_beside(
        self, columns: Floats, y: Codes, n_classes: int, weight: Floats | None = None
    ) -> ManyLogistic:
        """Fit one regression to all rows, with further columns (n, p) on the right."""
        return self.batch.fit(
            y,
            n_classes=n_classes,
            extra=columns,
            C=self.C,
            sample_weight=weight,
            tol=self.tol,
            max_iter=self.max_iter,
        )


@dataclass(frozen=True)
class LinearExperts:
    """Softmax regressions; see `Experts`."""

    many: ManyLogistic
    totals: Floats

    def proba(self, Z: Features, blocks: Codes) -> Floats:
        """See `Experts.proba`."""
        known = blocks != UNKNOWN
        if known.all():
            return np.exp(self.many.log_proba(Z, blocks))
        answer = np.zeros((len(blocks), self.many.coef.shape[1]))
        answer[known] = np.exp(self.many.log_proba(Z[known], blocks[known]))
        return answer

    def table(self, Z: Features) -> Floats:
        """See `Experts.table`: one matrix product."""
        # The answer lies in memory as (q, k, n); seen otherwise, every later pass would jump.
        log_proba = np.moveaxis(self.many.log_proba_all(Z), 2, 1)
        return np.exp(log_proba, out=log_proba)


# -- what can be fitted in one go --------------------------------------------------------------------------


def is_plain_bayes(classifier: Any) -> bool:
    """Return whether a classifier is a `MixedNaiveBayes` with settings that it would accept."""
    if type(classifier) is not MixedNaiveBayes:
        return False
    return bool(0 < classifier.alpha < np.inf and 0 < classifier.variance_floor < np.inf)


def _is_moderate(Z: Any) -> bool:
    """Return whether an array holds numbers, none of them huge or infinite; some may be missing."""
    return Z.dtype.kind in "fiub" and not (np.abs(Z.astype(np.float64, copy=False)) > _LARGEST).any()
