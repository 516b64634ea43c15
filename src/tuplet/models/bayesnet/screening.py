"""Which sets of parents are scored where there are too many class variables for all sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, final

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.structure.candidates import Family
from tuplet.structure.parents import Edge

Mask: TypeAlias = npt.NDArray[np.bool_]

SCREEN_FROM = 20
"""Class variables from which on sets of parents are screened."""

_CANDIDATES, _THRESHOLD = 8, 2.0
"""Single parents that are scored for each child, and standard errors by which their residuals are correlated;
as in `TreeClassifier`."""

_COMBINED = 6
"""Parents of a child that larger sets are made of: with three parents 35 sets. On yeast, sets of 6 of the 13
lose 0.01 nats a row against all, and none on held-out rows."""


class Scorer(Protocol):
    """Scores of families; see `FamilyScorer`."""

    def score(self, families: Sequence[Family]) -> Iterator[float]:
        """Yield the score of each family in turn."""

    @property
    def bound(self) -> Callable[[int, tuple[int, ...]], float] | None:
        """(child, parents) -> bound on the score of these parents and all their supersets, or None."""


@final
@dataclass
class ScreenedScorer:
    """Scores of single parents that pass a screening, and of sets of those that gain most by themselves.

    A parent that gains nothing by itself is in no larger set.

    Parameters
    ----------
    scorer : Scorer
    allowed : bool array, shape (m, m)
        `allowed[j, i]`: whether j is scored as a single parent of i.
    required : collection of (parent, child)
        Edges that all sets of the child contain.
    """

    scorer: Scorer
    allowed: Mask
    required: Collection[Edge] = ()
    _values: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)

    def score(self, families: Sequence[Family]) -> Iterator[float]:
        """See `FamilyScorer.score`."""
        for family, value in zip(families, self.scorer.score(families), strict=True):
            free = self._free(family.child, family.parents)
            if len(free) < 2:
                self._values[family.child, free] = value
            yield value

    def bound(self, child: int, parents: tuple[int, ...]) -> float:
        """Bound of the scorer; minus infinity for sets that are not to be scored."""
        free = self._free(child, parents)
        chosen = (
            self.allowed[list(free), child].all() if len(free) < 2 else self._combined(child) >= set(free)
        )
        if not chosen:
            return -np.inf
        return np.inf if self.scorer.bound is None else self.scorer.bound(child, parents)

    def _free(self, child: int, parents: Sequence[int]) -> tuple[int, ...]:
        return tuple(p for p in parents if (p, child) not in self.required)

    def _combined(self, child: int) -> set[int]:
        """Return the parents that gain most by themselves."""
        values = self._values
        alone = values.get((child, ()), -np.inf)
        gains = {j: values.get((child, (j,)), -np.inf) - alone for j in range(len(self.allowed))}
        return set(sorted((j for j in gains if gains[j] > 0), key=lambda j: -gains[j])[:_COMBINED])


def linked_pairs(tables: Sequence[Floats], codes: Codes, weight: Floats | None) -> Mask:
    """Return which pairs (m, m) of class variables are linked given x, as far as residuals show it.

    Those of the models without parents, [y_i = a] - p(a | x), are uncorrelated if two variables are
    independent given x. Each child has its strongest candidates, by the largest correlation over all pairs
    of values, in standard errors.

    Parameters
    ----------
    tables : sequence of arrays (n, k_i)
        Probabilities of the categories without parents.
    codes : int array, shape (n, m)
    weight : array, shape (n,), optional
    """
    blocks = [_residuals(table, codes[:, i]) for i, table in enumerate(tables)]
    starts = np.cumsum([0, *[len(block) for block in blocks[:-1]]])
    rows = np.concatenate(blocks)  # (sum of columns, n)
    products = (rows if weight is None else rows * weight) @ rows.T
    spread = (rows**2 if weight is None else (rows * weight) ** 2) @ (rows**2).T
    z = np.abs(products) / np.sqrt(np.maximum(spread, np.finfo(float).tiny))
    z = np.maximum.reduceat(np.maximum.reduceat(z, starts, axis=0), starts, axis=1)
    np.fill_diagonal(z, 0.0)
    least = -np.sort(-z, axis=0)[min(_CANDIDATES, len(z)) - 1]
    return np.asarray((z > _THRESHOLD) & (z >= least))


def _residuals(table: Floats, y: Codes) -> Floats:
    """Residuals (k, n) of one variable, without those of its first category, which the others give."""
    residuals = np.where(y != UNKNOWN, (y == np.arange(table.shape[1])[:, None]) - table.T, 0.0)
    return residuals[1:] if len(residuals) > 1 else residuals
