"""The contract of a local model: p(y_j | x, y_parents)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import all_outcomes
from tuplet.space.features.inputs import Features, n_rows, require_size

Bound: TypeAlias = Callable[[npt.NDArray[np.intp], Codes], Floats]
"""(positions of rows (r,), codes (r, v) with the parents among them) -> log-probabilities (r, k)."""


@runtime_checkable
class GridBound(Protocol):
    """A bound model that evaluates every pair of some rows and some values of the parents cheaply."""

    def grid(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """Return the probabilities (r, q, k) of the child for rows (r,), each with all of codes (q, v)."""


class LocalModel(ABC):
    """p(y_j | x, y_parents) for one class variable: codes and features in, log-probabilities out.

    A new local model writes `fit`, `bind` and `log_proba`.
    """

    parent_cards_: tuple[int, ...]
    child_card_: int

    @abstractmethod
    def fit(
        self,
        X: Features,
        parents: Codes,
        child: Codes,
        *,
        parent_cards: Sequence[int],
        child_card: int,
        sample_weight: Floats | None = None,
    ) -> Self:
        """Learn from rows X, codes of the parents (n, p) and of the child (n,).

        Rows whose child is `UNKNOWN` are left out; the parents of the others may be `UNKNOWN`.
        """

    @abstractmethod
    def bind(self, X: Features, positions: Sequence[int] | None = None) -> Bound:
        """Return the model with x fixed to the rows of X: what depends on x alone is computed here, once.

        Parameters
        ----------
        X : features, n rows
        positions : sequence of int, optional
            Columns of the codes, which the bound model will be given, that hold the parents; by default the
            first p. A bound model needs the values of all parents.
        """

    @abstractmethod
    def log_proba(self, X: Features, parents: Codes) -> Floats:
        """Log-probabilities (n, k) of the child given the rows of X and codes of the parents (n, p)."""

    def log_table(self, X: Features) -> Floats:
        """Log-probabilities for every value of the parents, shape (*parent_cards, k, n): a factor's table."""
        outcomes = all_outcomes(self.parent_cards_) if self.parent_cards_ else np.zeros((1, 0), dtype=np.intp)
        n = n_rows(X)
        require_size(
            f"A table over {len(outcomes):,} values of the parents", n * len(outcomes), self.child_card_
        )
        rows = np.tile(np.arange(n), len(outcomes))
        flat = self.bind(X)(rows, np.repeat(outcomes, n, axis=0))
        return np.ascontiguousarray(
            np.moveaxis(flat.reshape(*self.parent_cards_, n, self.child_card_), -2, -1)
        )
