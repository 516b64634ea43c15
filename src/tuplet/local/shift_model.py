"""A local model in which the parents shift the logits of the model without parents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import all_outcomes
from tuplet.local.base import Bound, LocalModel, configurations
from tuplet.local.columns import PrincipalColumns, SparseColumns, StandardisedRows
from tuplet.local.onehot import OneHot
from tuplet.local.shifts import TOL, Baseline, Shifts, bounded_log_proba
from tuplet.space.features.inputs import Features, n_rows, require_size


@final
@dataclass(frozen=True)
class PreparedRows:
    """Rows in the columns that all shift models of a network have in common.

    Parameters
    ----------
    Z, leading
        See `Prepared`; the mean is last, where the pseudo-rows of a fit are.
    """

    Z: Floats | StandardisedRows
    leading: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows, without the mean, and of columns."""
        return len(self.leading) - 1, int(self.Z.shape[1])


@final
class ShiftModel(LocalModel):
    """Logistic regression whose logits each configuration of the parents shifts.

    With the model without parents p_0 and the configuration c,

        p(y | x, c) = softmax(log p_0(y | x) + W_c x + b_c),

    where W_c is penalised and x are the leading principal axes of the features; see `shifts`. So the models
    of rare configurations are close to p_0. Its answers have the pseudo-row of `tuplet.local.smoothing`. If
    additive, all configurations have the same W, and b_c is a sum over the parents.

    Parameters
    ----------
    columns : PrincipalColumns or SparseColumns
        Learnt from the training rows.
    C_base : float
        Inverse strength of the penalty of p_0.
    C_shift : float
        The same for the shifts.
    is_additive : bool
    tol : float

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [0.5], [2.5]])
    >>> parents, child = np.array([[0], [0], [0], [0], [1], [1]]), np.array([0, 0, 1, 1, 1, 1])
    >>> model = ShiftModel(PrincipalColumns.learn(X, np.ones(6)), C_base=1.0, C_shift=1.0)
    >>> model = model.fit(X, parents, child, parent_cards=(3,), child_card=2)
    >>> np.exp(model.log_proba(X[:3], np.array([[0], [1], [2]]))).round(2)
    array([[0.79, 0.21],
           [0.16, 0.84],
           [0.26, 0.74]])
    >>> model.log_table(X).shape
    (3, 2, 6)
    """

    def __init__(
        self,
        columns: PrincipalColumns | SparseColumns,
        *,
        C_base: float,
        C_shift: float,
        is_additive: bool = False,
        tol: float = TOL,
    ) -> None:
        self.columns = columns
        self.C_base = C_base
        self.C_shift = C_shift
        self.is_additive = is_additive
        self.tol = tol

    @staticmethod
    def n_parameters(child_card: int, parent_cards: Sequence[int], n_features: int = 0) -> int:
        """See `LocalModel.n_parameters`.

        Examples
        --------
        >>> ShiftModel.n_parameters(3, (2, 4)), ShiftModel.n_parameters(3, (2, 4), 10)
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
        """See `LocalModel.fit`; X may be `PreparedRows`."""
        rows = self.prepare(X)
        weight = np.ones(len(child)) if sample_weight is None else sample_weight
        self.parent_cards_, self.child_card_ = tuple(parent_cards), int(child_card)
        y = np.ascontiguousarray(child)
        self.base_ = Baseline.fit(rows.Z, y, self.child_card_, weight, C=self.C_base)
        family = ShiftFamily(child, self.child_card_, parents, self.parent_cards_, self.is_additive)
        offset = self.base_.logits(rows.Z)
        self.shifts_ = family.fit(rows.leading, offset, weight, C=self.C_shift, tol=self.tol)
        return self

    def prepare(self, X: Features) -> PreparedRows:
        """See `LocalModel.prepare`: the rows in standardised columns and along principal axes."""
        return X if isinstance(X, PreparedRows) else PreparedRows(*self.columns.prepare(X, with_mean=True))

    def log_table(self, X: Features, observed: Codes | None = None) -> Floats:
        """See `LocalModel.log_table`."""
        if observed is not None:
            return super().log_table(X, observed)
        rows = self.prepare(X)
        q = math.prod(self.parent_cards_)
        require_size(f"A table over {q:,} values of the parents", rows.shape[0] * q, self.child_card_)
        logits = self.shifts_.logits(rows.leading, self.base_.logits(rows.Z))[:, :, :-1]
        table = bounded_log_proba(logits, self.base_.share)
        return table.reshape(*self.parent_cards_, self.child_card_, rows.shape[0])

    def log_proba(self, X: Features, parents: Codes) -> Floats:
        """See `LocalModel.log_proba`; where a parent is `UNKNOWN` nothing is shifted."""
        return self.bind(X)(np.arange(n_rows(X)), parents)

    def bind(self, X: Features, positions: Sequence[int] | None = None) -> Bound:
        """See `LocalModel.bind`."""
        rows = self.prepare(X)
        offset = self.base_.logits(rows.Z)
        places = list(range(len(self.parent_cards_))) if positions is None else list(positions)

        def log_proba_of(some: npt.NDArray[np.intp], codes: Codes) -> Floats:
            blocks = configurations(codes[:, places], self.parent_cards_)
            logits = self.shifts_.own_logits(rows.leading[some], offset[:, some], blocks)
            return np.ascontiguousarray(bounded_log_proba(logits, self.base_.share).T)

        return log_proba_of


@final
@dataclass(frozen=True)
class ShiftFamily:
    """A child with parents whose configurations shift its logits.

    Parameters
    ----------
    child : int array, shape (n,)
    card : int
    parents : int array, shape (n, p)
    parent_cards : tuple of int
    is_additive : bool
    """

    child: Codes
    card: int
    parents: Codes
    parent_cards: tuple[int, ...]
    is_additive: bool

    @property
    def n_configurations(self) -> int:
        """Number q of configurations of the parents."""
        return math.prod(self.parent_cards)

    @cached_property
    def blocks(self) -> Codes:
        """Configuration (n,) of each row, `UNKNOWN` if a parent is unknown."""
        return np.ascontiguousarray(configurations(self.parents, self.parent_cards))

    def fit(self, Z: Floats, offset: Floats, weight: Floats, *, C: float, tol: float) -> Shifts:
        """Fit the shifts of all configurations.

        Parameters
        ----------
        Z : array, shape (n + 1, r)
            Columns whose coefficients are shifted, the mean last. Without parents none is: they were fitted
            to these rows already.
        offset : array, shape (c, n + 1)
            Logits of the model without parents.
        weight : array, shape (n,)
        C : float
            Inverse strength of the penalty of the shifts; that of the parents' own effects is 1.
        tol : float
        """
        if self.is_additive and self.parent_cards:
            return self._fit_common(Z, offset, weight, C, tol)
        Z = Z if self.parent_cards else np.zeros((len(Z), 0))
        y, q = np.ascontiguousarray(self.child), self.n_configurations
        return Shifts.fit(Z, offset, y, self.blocks, q, self.card, weight, C=C, tol=tol)

    def _fit_common(self, Z: Floats, offset: Floats, weight: Floats, C: float, tol: float) -> Shifts:
        """One shift of the coefficients for all configurations, and effects of the parents that add up."""
        one_hot = OneHot.fit(self.parents, self.parent_cards, weight)
        # The penalty is the same for all columns, but an effect is not small where a coefficient is.
        columns = one_hot.columns(self.parents) / math.sqrt(C)
        mean = weight @ columns / max(weight.sum(), np.finfo(float).tiny)
        table = np.concatenate([Z, np.concatenate([columns, mean[None]])], axis=1)
        one_block = np.zeros(len(self.child), dtype=np.intp)
        y = np.ascontiguousarray(self.child)
        common = Shifts.fit(table, offset, y, one_block, 1, self.card, weight, C=C, tol=tol)
        theta, r = common.theta[0], Z.shape[1]  # (c, r + w + 1)
        added = self._added(one_hot, theta[:, r:-1].T / math.sqrt(C))
        slopes = np.repeat(theta[None, :, :r], self.n_configurations, axis=0)
        return Shifts(np.concatenate([slopes, (added + theta[:, -1])[:, :, None]], axis=2), common.penalty)

    def _added(self, one_hot: OneHot, slopes: Floats) -> Floats:
        """What each configuration adds to the logits (q, c), from what one unit of each column adds."""
        outcomes: Any = all_outcomes(self.parent_cards)
        effects = one_hot.effects(slopes)
        return np.sum([effect[code] for effect, code in zip(effects, outcomes.T, strict=True)], axis=0)
