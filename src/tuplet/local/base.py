"""Contracts: of a local model p(y_j | x, y_parents), and of classifiers of blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import all_outcomes
from tuplet.joint.linear_chain import LinearTerms
from tuplet.space.features.inputs import Features, n_rows, require_size

Bound: TypeAlias = Callable[[npt.NDArray[np.intp], Codes], Floats]
"""(positions of rows (r,), codes (r, v) with the parents among them) -> log-probabilities (r, k)."""


@runtime_checkable
class LinearBound(Protocol):
    """A bound model whose logits are the sum of what x and what each parent adds."""

    def terms(self) -> LinearTerms:
        """Return the parts of the sums, with the parents by their positions in the codes."""


class LocalModel(ABC):
    """p(y_j | x, y_parents) for one class variable: codes and features in, log-probabilities out.

    A new local model writes `fit`, `bind`, `log_proba` and `n_parameters`; a name in
    `families.PARAMETRISATIONS` makes it a `parametrisation` of Bayesian networks and trees.

    Parameters
    ----------
    estimator : classifier, optional
        Anything with `predict_proba`; `default_estimator()` if None. Cloned, never fitted itself.
    n_jobs : int, optional
        Fits that run side by side, where a model has several.
    """

    parent_cards_: tuple[int, ...]
    child_card_: int

    is_split: ClassVar[bool] = False
    """Whether the rows of each configuration of the parents can be learnt by themselves, given the model
    without parents."""

    @abstractmethod
    def __init__(self, estimator: Any = None, *, n_jobs: int | None = None) -> None:
        """Store the settings."""

    @staticmethod
    @abstractmethod
    def n_parameters(child_card: int, parent_cards: Sequence[int], n_features: int = 0) -> int:
        """Return the number of free parameters with softmax regressions on `n_features` columns."""

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
        groups: Codes | None = None,
    ) -> Self:
        """Learn from rows X, codes of the parents (n, p) and of the child (n,).

        Rows whose child is `UNKNOWN` are left out; the parents of the others may be `UNKNOWN`. X may be
        `PreparedFeatures` of the same estimator, which many fits share. Rows of one of the `groups` (n,) are
        held out together where a fit holds rows out.
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
        """Log-probabilities (n, k) of the child given the rows of X and codes of the parents (n, p).

        X may be rows of the `PreparedFeatures` that the model was fitted to.
        """

    def prepare(self, X: Features) -> Features:
        """Return what the models of one network have in common for the rows of X, or X itself.

        All of them take it in the place of X, so that it is computed once.
        """
        return X

    def log_table(self, X: Features, observed: Codes | None = None) -> Floats:
        """Log-probabilities for every value of the parents, shape (*parent_cards, k, n): a factor's table.

        Parameters
        ----------
        X : features, n rows
        observed : int array, shape (n, f), optional
            Codes of the last f parents in each row; the table has no axes for these.
        """
        observed = np.zeros((n_rows(X), 0), dtype=np.intp) if observed is None else observed
        cards = self.parent_cards_[: len(self.parent_cards_) - observed.shape[1]]
        outcomes = all_outcomes(cards) if cards else np.zeros((1, 0), dtype=np.intp)
        n, q, k = n_rows(X), len(outcomes), self.child_card_
        require_size(f"A table over {q:,} values of the parents", n * q, k)
        rows = np.tile(np.arange(n), q)
        flat = self.bind(X)(rows, np.hstack([np.repeat(outcomes, n, axis=0), observed[rows]]))
        return np.ascontiguousarray(np.moveaxis(flat.reshape(*cards, n, k), -2, -1))


# -- classifiers of blocks of rows -------------------------------------------------------------------------


class BlockClassifiers(Protocol):
    """Fitted classifiers of q blocks of rows. Classes that a block lacks have probability zero."""

    @property
    def totals(self) -> Floats:
        """Training weight of every block (q,), zero where there is no classifier."""

    def proba(self, Z: Features, blocks: Codes) -> Floats:
        """Probabilities (n, k) of rows Z, each by the classifier of its own block (n,); 0 if `UNKNOWN`."""

    def table(self, Z: Features) -> Floats:
        """Probabilities (q, k, n) of all rows by the classifiers of all blocks."""


def configurations(parents: Codes, cards: Sequence[int]) -> Codes:
    """Return the number (n,) of each row's configuration, of codes (n, p); `UNKNOWN` if a parent is unknown.

    The last parent runs fastest.

    Examples
    --------
    >>> configurations(np.array([[0, 1], [1, 0], [-1, 2]]), (2, 3))
    array([ 1,  3, -1])
    """
    if not len(cards):
        return np.zeros(len(parents), dtype=np.intp)
    known = (parents != UNKNOWN).all(axis=1)
    if known.all():
        return np.ravel_multi_index(tuple(parents.T), tuple(cards))
    answer = np.full(len(parents), UNKNOWN, dtype=np.intp)
    answer[known] = np.ravel_multi_index(tuple(parents[known].T), tuple(cards))
    return answer


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
