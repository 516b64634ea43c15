"""Explicit outcomes with weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuplet.core.exceptions import InputError
from tuplet.core.limits import CACHE_CELLS, PASS_CELLS, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, Ranking, category_offsets
from tuplet.joint.collect import collect, distinct, outcome_keys, positions, repeated, tally

_ROUNDING = 1e-14
"""How far the sum of weights may be from 1 by rounding; such weights are not divided by it again."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Atoms(JointDistribution):
    """A list of outcomes per row and their log-weights; every other outcome has probability zero.

    What a class powerset, posterior draws and small tables return.

    Parameters
    ----------
    cards : tuple of int
        Cardinalities of the m variables.
    codes : array of int, shape (n, a, m) or (1, a, m)
        The atoms. With a leading 1 all rows share them. The atoms of a row must be distinct; use
        `Atoms.from_draws` for draws, which may repeat.
    log_weights : array, shape (n, a)
        Unnormalised; minus infinity for an atom that a row does not have.

    Examples
    --------
    >>> import numpy as np
    >>> joint = Atoms((2, 3), np.array([[[0, 0], [1, 2]]]), np.log([[0.25, 0.75]]))
    >>> joint.marginals()[1].round(2)
    array([[0.25, 0.  , 0.75]])
    """

    cards: tuple[int, ...]
    codes: Codes
    log_weights: Floats

    def __post_init__(self) -> None:
        cards = tuple(int(card) for card in self.cards)
        codes, log_weights = np.asarray(self.codes), np.asarray(self.log_weights, dtype=float)
        shape = (*log_weights.shape, len(cards))
        if log_weights.ndim != 2 or codes.shape not in {shape, (1, *shape[1:])} or 0 in shape[1:]:
            raise InputError(
                f"Atoms: codes of shape {codes.shape} do not fit log_weights of shape {log_weights.shape}"
                f" and {len(cards)} variables."
            )
        codes = _checked(codes, cards)
        object.__setattr__(self, "cards", cards)
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "log_weights", _normalised(log_weights))
        self._require_distinct()
        if self._shared:
            self._drop_absent()

    def _drop_absent(self) -> None:
        """Drop shared atoms that no row has if atoms repeat: codes must identify an atom."""
        present = self.log_weights.max(axis=0, initial=-np.inf) > -np.inf
        if not present.all() and len(np.unique(self.codes[0], axis=0)) < len(present):
            object.__setattr__(self, "codes", self.codes[:, present])
            object.__setattr__(self, "log_weights", self.log_weights[:, present])

    def _require_distinct(self) -> None:
        present = self.log_weights > -np.inf
        if self._shared:
            present = np.any(present, axis=0, keepdims=True)
        row = repeated(outcome_keys(self.codes, self.cards), present)
        if row is not None:
            where = "" if self._shared else f" of row {row}"
            raise InputError(
                f"Atoms: the atoms{where} must be distinct, but an outcome comes more than once; collect"
                " them with Atoms.from_draws, which adds up their weights."
            )

    @classmethod
    def _trusted(cls, cards: tuple[int, ...], codes: Codes, log_weights: Floats) -> Self:
        """Build from parts known to be right, weights normalised: checks would cost more than queries do."""
        atoms = object.__new__(cls)
        for name, value in (("cards", cards), ("codes", codes), ("log_weights", log_weights)):
            object.__setattr__(atoms, name, value)
        return atoms

    @classmethod
    def from_draws(cls, cards: tuple[int, ...], draws: Codes, log_weights: Floats | None = None) -> Atoms:
        """Collect draws (size, n, m), which may repeat, into distinct atoms; weights (size, n) add up."""
        cards, draws = tuple(int(card) for card in cards), np.asarray(draws)
        if draws.ndim != 3 or draws.shape[2] != len(cards) or not len(draws) or not cards:
            raise InputError(
                f"Atoms.from_draws: draws must be of shape (size, n, {len(cards)}), with a size of at least"
                f" 1, found {draws.shape}."
            )
        weights = np.zeros(draws.shape[:2]) if log_weights is None else np.asarray(log_weights, dtype=float)
        if weights.shape != draws.shape[:2]:
            raise InputError(
                f"Atoms.from_draws: log_weights must be of shape {draws.shape[:2]}, found {weights.shape}."
            )
        codes = _checked(draws, cards).transpose(1, 0, 2)
        chosen, weights = collect(outcome_keys(codes, cards), _normalised(weights.T))
        return cls._trusted(cards, codes[np.arange(len(codes))[:, None], chosen], weights)

    @classmethod
    def from_weights(cls, cards: tuple[int, ...], codes: Codes, weights: Floats) -> Atoms:
        """Atoms (a, m), distinct and the same for all rows, with weights (n, a) that are not negative.

        For classifiers of combinations, whose weights are probabilities already: their logarithms, which
        marginals do not need, are taken on first use.
        """
        total = weights @ np.ones((weights.shape[1], 1))  # faster than sums of short rows
        if not (np.isfinite(total) & (total > 0)).all():
            raise InputError("Atoms: the weights of a row must be finite and not all zero.")
        if np.abs(total - 1.0).max(initial=0.0) > _ROUNDING:
            weights = weights / total
        return cls.from_blocks(cards, codes, len(weights), weights.__getitem__)

    @classmethod
    def from_blocks(
        cls, cards: tuple[int, ...], codes: Codes, n: int, weights_of: Callable[[slice], Floats]
    ) -> Atoms:
        """Atoms (a, m), distinct and the same for all n rows, with probabilities (r, a) of blocks of rows.

        Queries that read them once, such as marginals, never hold the probabilities of all rows.
        """
        atoms = object.__new__(cls)
        for name, value in (("cards", cards), ("codes", codes[None]), ("_n", n), ("_given", weights_of)):
            object.__setattr__(atoms, name, value)
        return atoms

    def __getattr__(self, name: str) -> Floats:
        """Take the logarithms of weights that were given as such."""
        if name != "log_weights" or "_given" not in self.__dict__:
            raise AttributeError(f"Atoms has no attribute {name!r}.")
        log_weights = np.empty((len(self), self.codes.shape[1]))
        with np.errstate(divide="ignore"):
            for rows in row_blocks(*log_weights.shape, CACHE_CELLS):
                np.log(self._weights_of(rows), out=log_weights[rows])
        object.__setattr__(self, "log_weights", log_weights)
        return log_weights

    def _weights_of(self, rows: slice) -> Floats:
        """Probabilities (r, a) of the atoms of some rows."""
        given = self.__dict__.get("_given")
        return np.exp(self.log_weights[rows]) if given is None else given(rows)

    def __len__(self) -> int:
        return self.__dict__["_n"] if "_n" in self.__dict__ else len(self.log_weights)

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        codes = self.codes if self._shared else self.codes[rows]
        taken = self._trusted(self.cards, codes, self.log_weights[rows])
        if len(rows) == 1 and not self._shared:
            taken._drop_absent()
        return taken

    @property
    def _shared(self) -> bool:
        return len(self.codes) == 1

    # -- agreement with partial outcomes ------------------------------------------------------------------

    def _log_prob(self, codes: Codes) -> Floats:
        known = codes != UNKNOWN
        if self._shared and known.all():
            return self._look_up(codes)
        if self._shared and known.size and known[0, 0].any() and (known == known[0, 0]).all():
            variables = tuple(np.flatnonzero(known[0, 0]).tolist())
            return self._marginal(variables)._look_up(codes[..., variables])
        return self._over_matches(codes, _log_sum)

    def _look_up(self, codes: Codes) -> Floats:
        """Log-weights (s, n) of complete codes (s, n, m), where all rows share the atoms."""
        found = positions(self.codes[0], codes, self.cards)
        log_weights = self.log_weights[np.arange(len(self)), found]
        return np.where(found == UNKNOWN, -np.inf, log_weights)

    def _log_probs(self, outcomes: Codes) -> Floats:
        if not self._shared:
            return super()._log_probs(outcomes)
        found = positions(self.codes[0], outcomes, self.cards)
        answer = np.full((len(self), len(outcomes)), -np.inf)
        answer[:, found != UNKNOWN] = self.log_weights[:, found[found != UNKNOWN]]
        return answer

    def _log_table(self) -> Floats:
        table = np.full((len(self), self.n_outcomes), -np.inf)
        cells = outcome_keys(self.codes, self.cards)  # in the order of all outcomes, as there are few
        if self._shared:
            table[:, cells[0]] = self.log_weights
        else:
            row, atom = np.nonzero(self.log_weights > -np.inf)
            table[row, cells[row, atom]] = self.log_weights[row, atom]
        return table

    def _bound(self, codes: Codes) -> Floats:
        return self._over_matches(codes, lambda log_weights: log_weights.max(axis=-1))

    def _over_matches(self, codes: Codes, reduce: Callable[[Floats], Floats]) -> Floats:
        """Reduce the log-weights (s, n, a) of the atoms that agree with the known part of codes (s, n, m)."""
        answer = np.empty(codes.shape[:2])
        for rows in self._blocks(self.log_weights.shape[1]):
            n_cells = self.log_weights[rows].size
            for some in row_blocks(len(codes), n_cells, PASS_CELLS):
                match = self._matches(codes[some, rows], rows)
                answer[some, rows] = reduce(np.where(match, self.log_weights[rows], -np.inf))
        return answer

    def _matches(self, codes: Codes, rows: slice) -> npt.NDArray[np.bool_]:
        """Which atoms of some rows agree with the known part of codes (s, r, m), as (s, r, a)."""
        atoms = self.codes if self._shared else self.codes[rows]
        match = np.ones((*codes.shape[:2], atoms.shape[1]), bool)
        for j in range(self.n_variables):
            wanted = codes[..., j, None]
            free = wanted == UNKNOWN
            if not free.all():
                agree = atoms[..., j] == wanted
                agree |= free
                match &= agree
        return match

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        kept = np.where(self._matches(codes[None], slice(None))[0], self.log_weights, -np.inf)
        log_evidence = _log_sum(kept)
        impossible = np.isneginf(log_evidence)
        kept -= np.where(impossible, 0.0, log_evidence)[:, None]
        kept[impossible] = self.log_weights[impossible]
        return self._trusted(self.cards, self.codes, kept), log_evidence

    # -- sums over atoms ----------------------------------------------------------------------------------

    def _flat_marginals(self) -> Floats:
        flat = np.zeros((len(self), sum(self.cards)))
        if self._shared:
            values = indicator(self.codes[0], self.cards)
            for rows in row_blocks(len(self), values.shape[0], CACHE_CELLS):
                flat[rows] = self._weights_of(rows) @ values
        else:
            for rows, columns, weights in self._columns():
                for j, card in enumerate(self.cards):
                    flat[rows, self.offsets[j] : self.offsets[j + 1]] = tally(columns[j], card, weights)
        return np.minimum(flat, 1.0)

    def _marginal(self, variables: tuple[int, ...]) -> Atoms:
        cards = tuple(self.cards[v] for v in variables)
        codes = self.codes[..., list(variables)]
        keys = outcome_keys(codes, cards)
        if self._shared:
            chosen, log_weights = distinct(keys[0], self.log_weights)
            return self._trusted(cards, codes[:, chosen], log_weights)
        places, log_weights = collect(keys, self.log_weights)
        return self._trusted(cards, codes[np.arange(len(codes))[:, None], places], log_weights)

    def pairwise(self) -> dict[tuple[int, int], Floats]:
        """See `JointDistribution.pairwise`."""
        m, n, cards = self.n_variables, len(self), self.cards
        pairs = {(i, j): np.empty((n, cards[i], cards[j])) for i in range(m) for j in range(i + 1, m)}
        if self._shared:
            weights = self._weights_of(slice(None)).T.copy()  # (a, n): turned once, read for every variable
            for i in range(m - 1):
                sizes = tuple(cards[i] * card for card in cards[i + 1 :])
                cells = self.codes[0, :, i, None] * np.array(cards[i + 1 :]) + self.codes[0, :, i + 1 :]
                flat = indicator(cells, sizes).T @ weights
                for j, table in enumerate(np.split(flat, np.cumsum(sizes)[:-1]), start=i + 1):
                    pairs[i, j][:] = table.T.reshape(n, cards[i], cards[j])
            return pairs
        for rows, columns, weights in self._columns():
            for (i, j), table in pairs.items():
                cells = columns[i] * cards[j] + columns[j]
                table[rows] = tally(cells, cards[i] * cards[j], weights).reshape(-1, *table.shape[1:])
        return pairs

    def _count_marginals(self) -> Floats:
        m, n = self.n_variables, len(self)
        answer = np.empty((n, m, m + 1))
        if self._shared:
            positive = self.codes[0] == 1
            atom, variable = np.nonzero(positive)
            column = variable * (m + 1) + positive.sum(axis=1)[atom]
            cells = sparse.csr_array((np.ones(len(atom)), (atom, column)), shape=(len(positive), m * (m + 1)))
            for rows in self._blocks(len(positive)):
                answer[rows] = (self._weights_of(rows) @ cells).reshape(-1, m, m + 1)
            return answer
        for rows, columns, weights in self._columns():
            positive = columns == 1
            count = positive.sum(axis=0)
            for j in range(m):
                answer[rows, j] = tally(count, m + 1, weights * positive[j])
        return answer

    def entropy(self) -> Floats:
        """See `JointDistribution.entropy`."""
        answer = np.empty(len(self))
        for rows in self._blocks(self.codes.shape[1]):
            log_weights = self.log_weights[rows]
            finite = np.where(np.isneginf(log_weights), 0.0, log_weights)
            answer[rows] = np.maximum(0.0, -(self._weights_of(rows) * finite).sum(axis=1))
        return answer

    def _columns(self) -> Iterator[tuple[slice, Codes, Floats]]:
        """Yield blocks of rows (slice), the codes of their own atoms (m, r, a) and their weights (r, a)."""
        for rows in self._blocks(self.codes.shape[1] * self.n_variables):
            # Contiguous by variable, as each is read many times.
            columns = np.ascontiguousarray(self.codes[rows].transpose(2, 0, 1))
            yield rows, columns, np.exp(self.log_weights[rows])

    def _blocks(self, cells_per_row: int) -> Iterator[slice]:
        """Cut the rows into blocks of bounded memory."""
        return row_blocks(len(self), cells_per_row, PASS_CELLS)

    # -- outcomes -----------------------------------------------------------------------------------------

    def _top_k(self, k: int) -> Ranking:
        order = np.empty((len(self), min(k, self.log_weights.shape[1])), dtype=np.intp)
        for rows in self._blocks(self.log_weights.shape[1]):
            order[rows] = _largest(self.log_weights[rows], k)
        log_prob = np.take_along_axis(self.log_weights, order, axis=1)
        codes = np.where(np.isneginf(log_prob)[..., None], UNKNOWN, self._gather(order))
        missing = k - order.shape[1]
        if missing > 0:
            codes = np.pad(codes, ((0, 0), (0, missing), (0, 0)), constant_values=UNKNOWN)
            log_prob = np.pad(log_prob, ((0, 0), (0, missing)), constant_values=-np.inf)
        return Ranking(codes, log_prob, np.ones(len(self), bool))

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        uniform = rng.random((size, len(self)))
        chosen = np.empty((len(self), size), dtype=np.intp)
        for rows in row_blocks(len(self), self.codes.shape[1], CACHE_CELLS):
            for i, cumulative in enumerate(np.cumsum(self._weights_of(rows), axis=1), start=rows.start):
                chosen[i] = np.searchsorted(cumulative, uniform[:, i] * cumulative[-1], side="right")
        return self._gather(chosen).transpose(1, 0, 2)

    def _gather(self, places: npt.NDArray[np.intp]) -> Codes:
        """Atoms at places (n, k) of the list, as codes (n, k, m)."""
        if self._shared:
            return self.codes[0][places]
        return self.codes[np.arange(len(self))[:, None], places]

    def to_atoms(self, limit: int = 0) -> Atoms:
        """See `JointDistribution.to_atoms`; already there, whatever the limit."""
        return self


def indicator(outcomes: Codes, cards: tuple[int, ...]) -> Any:
    """Which values outcomes (a, m) have, as a 0/1 matrix (a, sum of cards), sparse if it is large."""
    a, m = outcomes.shape
    columns = outcomes + category_offsets(cards)[:-1]
    if a * sum(cards) <= CACHE_CELLS:
        dense = np.zeros((a, sum(cards)))
        dense[np.arange(a)[:, None], columns] = 1.0
        return dense
    parts = (np.ones(a * m), columns.ravel(), np.arange(0, a * m + 1, m))
    return sparse.csr_array(parts, shape=(a, sum(cards)))


def _checked(codes: npt.NDArray, cards: tuple[int, ...]) -> Codes:
    """Return codes (..., m) as integers, or raise where one is not a value of its variable."""
    if codes.size and codes.dtype.kind not in "iu":
        raise InputError(f"Atoms: codes must be integers, found an array of {codes.dtype}.")
    flat = codes.reshape(-1, len(cards))
    if len(flat):
        low, high = flat.min(axis=0), flat.max(axis=0)
        for j in np.flatnonzero((low < 0) | (high >= np.array(cards))):
            found = low[j] if low[j] < 0 else high[j]
            raise InputError(
                f"Atoms: code {found} of variable {j} is outside its {cards[j]} values (0 to {cards[j] - 1});"
                " an atom needs a value of every variable.",
                variable=int(j),
            )
    return codes.astype(np.intp, copy=False)


def _normalised(log_weights: Floats) -> Floats:
    """Return log-weights (n, a) that sum to one in every row, or raise where they cannot."""
    total = np.empty(len(log_weights))
    with np.errstate(invalid="ignore"):
        for rows in row_blocks(len(log_weights), log_weights.shape[1], PASS_CELLS):
            total[rows] = _log_sum(log_weights[rows])  # nan or +inf in a row shows in its sum
    if not np.isfinite(total).all():
        raise InputError("Atoms: the weights of a row must be finite and not all zero.")
    return log_weights - total[:, None]


def _largest(values: Floats, k: int) -> npt.NDArray[np.intp]:
    """Positions of the k largest of the values (n, a) of each row, or of all of them; ties as they come."""
    if k == 1:
        return values.argmax(axis=1)[:, None]
    if 4 * k > values.shape[1]:
        return np.argsort(-values, axis=1, kind="stable")[:, :k]
    # Of the values that equal the k-th largest, the first ones count.
    least = -np.partition(-values, k - 1, axis=1)[:, k - 1, None]
    spare = k - (values > least).sum(axis=1, keepdims=True)
    equal = values == least
    chosen = (values > least) | (equal & (np.cumsum(equal, axis=1) <= spare))
    places = np.nonzero(chosen)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(values, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)


def _log_sum(log_values: Floats) -> Floats:
    """Log of the sum over the last axis, which is not empty; minus infinity where all values are."""
    peak = log_values.max(axis=-1)
    peak[np.isneginf(peak)] = 0.0
    with np.errstate(divide="ignore"):
        return peak + np.log(np.exp(log_values - peak[..., None]).sum(axis=-1))
