"""A local model with one classifier for each configuration of the parents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuplet.core.limits import LISTED_CELLS
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.base import Bound, LocalModel, configurations
from tuplet.local.logistic import default_estimator
from tuplet.local.prepared import Base, ManyClassifiers, PreparedFeatures
from tuplet.local.smoothing import label_counts, pseudo_row
from tuplet.space.features.inputs import Features, n_rows, require_size, take_rows

STRENGTH = 5.0
"""How many rows the model without parents is worth by default.

Held-out log-likelihoods of families with three parents, in one fold: on Rf1, where splitting is right, all
from 1 to 10 are alike (-0.123 to -0.124 a row); on Adult, where it is not, more is better (-0.697 with 1,
-0.671 with 5), as on four of six small sets. Backing off to a model with the parents as inputs, or to the one
without parents after a correction for the configuration's frequencies, was no better on either.
"""


@final
class SplitModel(LocalModel):
    """One classifier for each configuration of the parents, which backs off to the model without parents.

    A configuration c with rows of weight N_c and the classifier p_c has the probabilities

        p'(y | x, c) = (N_c p_c(y | x) + s p_0(y | x)) / (N_c + s),

    where p_0 is learnt from all rows, and both have the pseudo-row of all rows (see `smoothing`). So
    configurations that are rare, empty, or lack classes are close to p_0, and no probability is zero.

    Parameters
    ----------
    estimator : classifier, optional
        Anything with `predict_proba`; `default_estimator()` if None. Cloned, never fitted itself. Of a
        pipeline, all steps but the last are fitted once, to all rows. Logistic regressions with
        scikit-learn's default solver and penalty, and `MixedNaiveBayes`, are fitted all at once.
    strength : float
        Number s > 0 of rows that p_0 is worth.
    n_jobs : int, optional
        Configurations that are fitted side by side.

    Notes
    -----
    A row with an unknown parent is used for p_0 alone. A configuration whose rows do not suffice for the
    estimator (such as cross-validation inside of it) is left to p_0; an estimator that cannot be fitted to
    all rows raises its error.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [0.5], [2.5]])
    >>> parents, child = np.array([[0], [0], [0], [0], [1], [1]]), np.array([0, 0, 1, 1, 1, 1])
    >>> model = SplitModel(strength=1.0).fit(X, parents, child, parent_cards=(3,), child_card=2)
    >>> np.exp(model.log_proba(X[:3], np.array([[0], [1], [2]]))).round(2)
    array([[0.57, 0.43],
           [0.16, 0.84],
           [0.3 , 0.7 ]])
    >>> model.log_table(X).shape
    (3, 2, 6)
    """

    is_split = True

    def __init__(
        self, estimator: Any = None, *, strength: float = STRENGTH, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.strength = strength
        self.n_jobs = n_jobs

    @staticmethod
    def n_parameters(child_card: int, parent_cards: Sequence[int], n_features: int = 0) -> int:
        """See `LocalModel.n_parameters`; with 0 features a free distribution for each configuration.

        Examples
        --------
        >>> SplitModel.n_parameters(3, (2, 4)), SplitModel.n_parameters(3, (2, 4), 10)
        (16, 176)
        """
        return (child_card - 1) * math.prod(parent_cards) * (n_features + 1)

    def fit(
        self,
        X: Features,
        parents: Codes,
        child: Codes,
        *,
        parent_cards: Sequence[int],
        child_card: int,
        sample_weight: Floats | None = None,
        groups: Codes | None = None,
    ) -> Self:
        """See `LocalModel.fit`."""
        estimator = default_estimator(sparse=sparse.issparse(X)) if self.estimator is None else self.estimator
        prepared = PreparedFeatures.make(estimator, X, child, sample_weight, groups)
        blocks, q = configurations(parents, parent_cards), math.prod(parent_cards)
        require_size(f"Models of {q:,} configurations of the parents", q * child_card, X.shape[1] + 1)
        self.experts_ = prepared.fit(
            child, blocks, q, child_card, sample_weight, groups=groups, n_jobs=self.n_jobs
        )
        if prepared.alone is None:
            self.base_ = Base.fit(prepared, child, child_card, sample_weight, groups=groups)
        self.prepared_ = prepared.without_rows()
        self.parent_cards_, self.child_card_ = tuple(parent_cards), int(child_card)
        known, counts = prepared.share, label_counts(child, child_card, sample_weight)
        self.share_ = pseudo_row(counts) if known is None else known
        return self

    def log_proba(self, X: Features, parents: Codes) -> Floats:
        """See `LocalModel.log_proba`; where a parent is `UNKNOWN` it is that without parents."""
        Z, blocks = self.prepared_.ready(X), configurations(parents, self.parent_cards_)
        known = isinstance(X, PreparedFeatures) and X.alone is not None
        return self._log_proba(Z, blocks, X.alone if known else self.base_.proba(Z))

    def log_table(self, X: Features, observed: Codes | None = None) -> Floats:
        """See `LocalModel.log_table`."""
        if observed is not None:
            return super().log_table(X, observed)
        Z = self.prepared_.ready(X)
        return self._log_table(Z).reshape(*self.parent_cards_, self.child_card_, n_rows(Z))

    def bind(self, X: Features, positions: Sequence[int] | None = None) -> Bound:
        """See `LocalModel.bind`."""
        Z = self.prepared_.ready(X)
        places = list(range(len(self.parent_cards_))) if positions is None else list(positions)
        cells = math.prod(self.parent_cards_) * self.child_card_ * n_rows(Z)
        if not isinstance(self.experts_, ManyClassifiers) and cells <= LISTED_CELLS:
            return _Tabulated(np.moveaxis(self._log_table(Z), 1, 2), places, self.parent_cards_)
        return _OnDemand(self, Z, self.base_.proba(Z), places)

    def _log_proba(self, Z: Features, blocks: Codes, base: Floats) -> Floats:
        """Log-probabilities (n, k) of prepared rows, for which p_0 gives `base` (n, k)."""
        if not self.parent_cards_:
            return np.log(base)
        own = self.experts_.proba(Z, blocks)
        total = np.where(blocks == UNKNOWN, 0.0, self.experts_.totals[blocks])
        return np.log(mix(own, total[:, None], base, self.strength, self.share_))

    def _log_table(self, Z: Features) -> Floats:
        """Log-probabilities (q, k, n)."""
        base = self.base_.proba(Z).T
        if not self.parent_cards_:
            return np.log(base)[None]
        own, total = self.experts_.table(Z), self.experts_.totals[:, None, None]
        table = mix(own, total, base, self.strength, self.share_[:, None])
        return np.log(table, out=table)


def mix(own: Floats, total: Floats, base: Floats, strength: float, share: Floats) -> Floats:
    """Mix probabilities of configurations that have `total` rows with those of the model without parents.

    `own`, which gets the share of the pseudo-row that `base` has already, is overwritten.
    """
    weight = total / (total + strength)
    own *= weight * (1.0 - share.sum())
    own += weight * share
    own += (1.0 - weight) * base
    return own


@dataclass(frozen=True)
class _Tabulated:
    """A table of all values."""

    table: Floats  # (q, n, k)
    places: list[int]
    cards: tuple[int, ...]

    def __call__(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        return self.table[configurations(codes[:, self.places], self.cards), rows]


@dataclass(frozen=True)
class _OnDemand:
    """The classifiers are evaluated once for each distinct pair of a row and a configuration."""

    model: SplitModel
    Z: Features
    base: Floats  # (n, k)
    places: list[int]

    def __call__(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        blocks = configurations(codes[:, self.places], self.model.parent_cards_)
        pairs, inverse = np.unique(blocks * len(self.base) + rows, return_inverse=True)
        blocks, rows = np.divmod(pairs, len(self.base))
        return self.model._log_proba(take_rows(self.Z, rows), blocks, self.base[rows])[inverse]
