"""The contract of a joint distribution: codes in, codes and numbers out, a batch of n rows at a time."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import (
    ApproximationWarning,
    ImpossibleEvidenceError,
    InputError,
    IntractableError,
)
from tuplet.core.limits import ENUMERATION_LIMIT, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed

if TYPE_CHECKING:
    from tuplet.joint.atoms import Atoms


class Mode(NamedTuple):
    """The most probable outcome of every row."""

    codes: Codes  # (n, m)
    log_prob: Floats  # (n,)
    proven: npt.NDArray[np.bool_]  # (n,) False where a search ended on its budget


class Ranking(NamedTuple):
    """The k most probable outcomes of every row, best first.

    Where a row has fewer outcomes of positive probability than k, the rest is `UNKNOWN` with
    log-probability minus infinity.
    """

    codes: Codes  # (n, k, m)
    log_prob: Floats  # (n, k)
    proven: npt.NDArray[np.bool_]  # (n,)


class JointDistribution(ABC):
    """p(Y | x_i) for a batch of n rows over m categorical variables.

    A distribution has cardinalities, not names. Shapes read `sample..., n, m`. Every query is exact unless
    `tolerance` states an error; no answer is sampled silently.

    A new form writes the abstract methods below; everything else derives from them and may be overridden
    where the form has a faster way.
    """

    cards: tuple[int, ...]

    # -- what a form writes -------------------------------------------------------------------------------

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows n."""

    @abstractmethod
    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        """Return the distributions of the rows with these non-negative positions, in this order."""

    @abstractmethod
    def _log_prob(self, codes: Codes) -> Floats:
        """Return log p of codes (s, n, m) as (s, n); `UNKNOWN` positions are summed out."""

    @abstractmethod
    def _flat_marginals(self) -> Floats:
        """Return the marginals of all variables side by side, (n, sum of cards)."""

    @abstractmethod
    def _top_k(self, k: int) -> Ranking:
        """Return the k most probable outcomes, k at least 1 and at most the number of outcomes."""

    @abstractmethod
    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        """Return independent draws (size, n, m)."""

    @abstractmethod
    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        """Return p(. | known positions of codes (n, m)) and the log-probability of these positions (n,).

        A row whose known positions are impossible gets minus infinity and any distribution at all; the
        caller decides whether that is an error. The known variables stay in the result, with all
        probability on the known value.
        """

    @abstractmethod
    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        """Return the distribution of these variables, in this order, the others summed out."""

    @property
    def tolerance(self) -> float:
        """Stated absolute error of this distribution's probabilities; 0 means exact, inf no guarantee."""
        return 0.0

    @property
    def scores_exactly(self) -> bool:
        """Whether log-probabilities of complete outcomes are exact, whatever the `tolerance` of sums."""
        return self.tolerance == 0

    @property
    def has_exact_marginals(self) -> bool:
        """Whether the marginals of single variables are exact, whatever the `tolerance` of other sums."""
        return self.tolerance == 0

    def _bound(self, codes: Codes) -> Floats:
        """Return an upper bound (s, n) on the log-probability of every completion of codes (s, n, m).

        The search for the mode of a `Mixture` leans on it. The sum over the completions always is one; a
        form that can maximise instead overrides this.
        """
        return self._log_prob(codes)

    # -- shapes -------------------------------------------------------------------------------------------

    @property
    def n_variables(self) -> int:
        """Number of class variables m."""
        return len(self.cards)

    @property
    def n_outcomes(self) -> int:
        """Number of combinations of values, whatever their probability (a Python int: it may be huge)."""
        return math.prod(self.cards)

    @property
    def offsets(self) -> npt.NDArray[np.intp]:
        """Where each variable starts in a flat (n, sum of cards) array; one longer than `cards`."""
        return category_offsets(self.cards)

    def __getitem__(self, rows: int | slice | npt.ArrayLike) -> Self:
        """Return some rows, always as a batch again."""
        if isinstance(rows, slice):
            return self._take(np.arange(len(self))[rows])
        chosen = np.asarray(rows)
        if not chosen.size:
            chosen = chosen.astype(np.intp)  # an empty list has no type of its own
        return self._take(np.atleast_1d(np.arange(len(self))[chosen]))

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        cards = ", ".join(map(str, self.cards[:8])) + (", ..." if self.n_variables > 8 else "")
        return f"{type(self).__name__}(n={len(self)}, cards=({cards}))"

    # -- queries ------------------------------------------------------------------------------------------

    def log_prob(self, codes: npt.ArrayLike) -> Floats:
        """Log-probability of outcomes.

        Parameters
        ----------
        codes : array of int, shape (..., n, m) or anything that broadcasts to it
            `UNKNOWN` positions are summed out, so this is also the probability of a partial label set.

        Returns
        -------
        array, shape (..., n)
        """
        array = self._as_codes(codes)
        lead = array.shape[:-2]
        flat = array.reshape(math.prod(lead), *array.shape[-2:])
        return self._log_prob(flat).reshape(*lead, len(self))

    def marginals(self) -> list[Floats]:
        """Probabilities of the values of each variable, a list of m arrays (n, k_j).

        They are computed once and then remembered, so the arrays are read-only.
        """
        (flat,) = self._remembered("marginals", lambda: (self._flat_marginals(),))
        return split_categories(flat, self.cards)

    def mode(self) -> Mode:
        """Most probable outcome of every row (the most probable explanation); remembered, read-only."""
        best = Ranking(*self._remembered("mode", lambda: self.top_k(1)))
        return Mode(best.codes[:, 0], best.log_prob[:, 0], best.proven)

    def top_k(self, k: int) -> Ranking:
        """K most probable outcomes of every row, best first."""
        if k < 1:
            raise InputError(f"top_k: k must be at least 1, found {k}.")
        k = min(int(k), self.n_outcomes)
        if not len(self):
            return Ranking(np.empty((0, k, self.n_variables), np.intp), np.empty((0, k)), np.empty(0, bool))
        return self._top_k(k)

    def sample(self, size: int, rng: Seed = None) -> Codes:
        """Independent draws, shape (size, n, m)."""
        if size < 0:
            raise InputError(f"sample: size must not be negative, found {size}.")
        return self._sample(int(size), np.random.default_rng(rng))

    def condition(self, codes: npt.ArrayLike) -> JointDistribution:
        """Distribution given the known positions of `codes` (n, m) or (m,); `UNKNOWN` = free."""
        array = self._as_codes(codes)
        if array.ndim != 2:
            raise InputError(f"condition: codes must be of shape (n, m), found {np.shape(codes)}.")
        joint, log_evidence = self._condition(array)
        if np.isneginf(log_evidence).any():
            row = int(np.flatnonzero(np.isneginf(log_evidence))[0])
            raise ImpossibleEvidenceError(
                f"condition: the known values of row {row} have probability zero"
                f" ({np.isneginf(log_evidence).sum()} such rows in all); leave one of them unknown."
            )
        return joint

    def marginal(self, variables: Sequence[int]) -> JointDistribution:
        """Distribution of some variables, in the order given; the others are summed out."""
        chosen = tuple(int(v) for v in variables)
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(self.n_variables)):
            raise InputError(
                f"marginal: variables must be distinct positions below {self.n_variables}, found {chosen}."
            )
        return self._marginal(chosen)

    def pairwise(self) -> dict[tuple[int, int], Floats]:
        """Joint probabilities of all pairs i < j of variables, each of shape (n, k_i, k_j)."""
        m, n = self.n_variables, len(self)
        pairs = {
            (i, j): np.zeros((n, self.cards[i], self.cards[j])) for i in range(m) for j in range(i + 1, m)
        }
        for i in range(m - 1):
            for value in range(self.cards[i]):
                known = np.full((n, m), UNKNOWN)
                known[:, i] = value
                given, log_evidence = self._condition(known)
                marginals = given.marginals()
                for j in range(i + 1, m):
                    pairs[i, j][:, value] = np.exp(log_evidence)[:, None] * marginals[j]
        return pairs

    def entropy(self) -> Floats:
        """Shannon entropy in nats, shape (n,)."""
        return np.concatenate([atoms.entropy() for atoms in self._table_blocks()])

    def count_marginals(self) -> Floats:
        """P(Y_j = 1 and exactly s variables are 1), shape (n, m, m + 1), for binary variables.

        Instance-wise F-measures need no more of a distribution than this.
        """
        self._require_binary("count_marginals")
        return self._count_marginals()

    def _count_marginals(self) -> Floats:
        return self.to_atoms()._count_marginals()

    def to_atoms(self, limit: int = ENUMERATION_LIMIT) -> Atoms:
        """Every outcome with its probability: exact, or `IntractableError` beyond `limit` outcomes a row."""
        from tuplet.joint.atoms import Atoms

        if self.n_outcomes > limit:
            raise IntractableError(
                f"{type(self).__name__}: the {self.n_variables} variables have {self.n_outcomes:,} outcomes,"
                f" too many to enumerate (limit={limit:,} of to_atoms). Ask for top_k, or estimate with the"
                " distribution's draw(1000)."
            )
        return Atoms(self.cards, all_outcomes(self.cards)[None], self._log_table())

    def _table_blocks(self) -> Iterator[Atoms]:
        """Yield all outcomes of some rows at a time, at least once; see `to_atoms`."""
        return (self[block].to_atoms() for block in row_blocks(max(1, len(self)), self.n_outcomes))

    def _log_table(self) -> Floats:
        """Log-probabilities (n, number of outcomes) of all outcomes, in the order of `all_outcomes`."""
        return self._log_probs(all_outcomes(self.cards))

    def _log_probs(self, outcomes: Codes) -> Floats:
        """Log-probabilities (n, a) of outcomes (a, m) that are the same for all rows."""
        shape = (len(outcomes), len(self), self.n_variables)
        return self._log_prob(np.broadcast_to(outcomes[:, None], shape)).T

    def draw(self, size: int, rng: Seed = None) -> Atoms:
        """Monte Carlo: `size` draws per row as a distribution of its own."""
        from tuplet.joint.atoms import Atoms

        if size < 1:
            raise InputError(f"draw: size must be at least 1, found {size}.")
        return Atoms.from_draws(self.cards, self.sample(size, rng))

    # -- helpers ------------------------------------------------------------------------------------------

    def _reason_against(self, codes: Codes, row: int) -> str:
        """Return why known values (m,) are impossible in a row, in words; empty if not known."""
        return ""

    def _remembered(
        self, query: str, compute: Callable[[], tuple[npt.NDArray, ...]]
    ) -> tuple[npt.NDArray, ...]:
        """Return the arrays of a query, computed at most once: all losses and scores use the same two."""
        memory = self.__dict__.setdefault("_memory", {})
        if query not in memory:
            memory[query] = arrays = compute()
            for array in arrays:
                array.setflags(write=False)
        return memory[query]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_memory"}

    def _as_codes(self, codes: npt.ArrayLike) -> Codes:
        """Check codes and broadcast them to (..., n, m)."""
        array = np.asarray(codes)
        if array.size and array.dtype.kind not in "iu":
            raise InputError(f"Codes must be integers, found an array of {array.dtype}.")
        array = array.astype(np.intp, copy=False)
        n, m = len(self), self.n_variables
        shape = (n, m) if array.ndim < 2 else (*array.shape[:-2], n, m)
        try:
            array = np.broadcast_to(array, shape)
        except ValueError:
            raise InputError(f"Codes must be of shape (..., {n}, {m}), found {np.shape(codes)}.") from None
        outside = (array < UNKNOWN) | (array >= np.array(self.cards))
        if outside.any():
            where = tuple(int(i) for i in np.argwhere(outside)[0])
            raise InputError(
                f"Code {array[where]} of variable {where[-1]} is outside its {self.cards[where[-1]]} values"
                f" (0 to {self.cards[where[-1]] - 1}, or {UNKNOWN} for unknown).",
                variable=where[-1],
            )
        return array

    def _require_binary(self, query: str) -> None:
        wide = [j for j, card in enumerate(self.cards) if card > 2]
        if wide:
            raise InputError(
                f"{query}: needs binary variables, but variable {wide[0]} has {self.cards[wide[0]]} values.",
                variable=wide[0],
            )


def category_offsets(cards: Sequence[int]) -> npt.NDArray[np.intp]:
    """Return where each variable starts among the categories of all; one longer than `cards`."""
    return np.concatenate([[0], np.cumsum(cards)]).astype(np.intp)


def split_categories(flat: Floats, cards: Sequence[int]) -> list[Floats]:
    """Return views (n, k_j) of the columns (n, sum of cards) of each variable."""
    return np.split(flat, category_offsets(cards)[1:-1], axis=1)


def all_outcomes(cards: Sequence[int]) -> Codes:
    """Every combination of values, the last variable running fastest, shape (product of cards, m)."""
    # By division: numpy's own grids have 64 dimensions at most.
    after = np.concatenate([np.cumprod(np.array(cards, dtype=np.intp)[:0:-1])[::-1], [1]])
    return np.arange(math.prod(cards))[:, None] // after % np.array(cards, dtype=np.intp)


def warn_unproven(query: str, proven: npt.NDArray[np.bool_]) -> None:
    """Say in how many of n rows (n,) a search for the most probable combinations ended on its budget."""
    if not proven.all():
        warnings.warn(
            f"{query}: a more probable combination may exist in {(~proven).sum()} of {len(proven)} rows,"
            " where the search gave no proof; its budget is max_nodes of tuplet.joint.Search.",
            ApproximationWarning,
            stacklevel=4,
        )
