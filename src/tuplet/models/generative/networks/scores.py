"""Decomposable scores of families from counts: what structure learning maximises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Literal, TypeAlias, final, get_args

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.models.generative.networks.kernels import (
    FEW_CELLS,
    LIKELIHOOD,
    STEP,
    Data,
    Pool,
    candidate_scores,
)

Criterion: TypeAlias = Literal["bic", "aic", "k2", "bdeu", "likelihood"]
"""Scores by name; see `CountScorer`."""

_FAMILIES, _ENTRIES = 2**17, 2**22
"""Families, and entries of their lists, that are remembered; memory is taken as they fill up."""

_MOST_PARENTS = 20
"""Parents of a variable where nothing else bounds them."""


@final
class CountScorer:
    """Scores of families of discrete variables, by counts in rows of codes.

    | criterion | score of a variable with r values and q configurations of its parents |
    |---|---|
    | "likelihood" | sum of N_jk log(N_jk / N_j) over configurations j and values k |
    | "bic" | likelihood - log(N) / 2 q (r - 1) |
    | "aic" | likelihood - q (r - 1) |
    | "k2" | log marginal likelihood, Dirichlet prior of one pseudo-row per cell |
    | "bdeu" | the same with `equivalent_size` / (q r) pseudo-rows per cell |

    q counts all configurations, whether or not they occur; N is the sum of weights, at least 1.

    Parameters
    ----------
    codes : array of int, shape (n, v)
        The d classes first. `UNKNOWN` where a value is missing: a family is then scored on its complete
        rows, by what it gains there over a family without parents, and that one's score on all rows comes
        on top.
    cards : sequence of int, length v
    n_classes : int
        d; classes have no features as parents.
    criterion : {"bic", "aic", "k2", "bdeu", "likelihood"}
    sample_weight : array, shape (n,), optional
        How many rows each row counts for.
    max_parents : int, optional
        Largest number of parents that searches give a variable; 20 if None.
    equivalent_size : float
        Pseudo-rows of "bdeu".

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 0], [1, 1], [1, 1], [0, 1], [1, 1]])
    >>> scorer = CountScorer(codes, (2, 2), n_classes=1)
    >>> round(scorer.score(1, (0,)), 4), round(scorer.score(1, ()), 4)
    (-3.7013, -4.715)
    """

    def __init__(
        self,
        codes: Codes,
        cards: Sequence[int],
        n_classes: int,
        *,
        criterion: Criterion = "bic",
        sample_weight: Floats | None = None,
        max_parents: int | None = None,
        equivalent_size: float = 10.0,
    ) -> None:
        if criterion not in get_args(Criterion):
            known = ", ".join(get_args(Criterion))
            raise InputError(f"CountScorer: criterion must be one of {known}; found {criterion!r}.")
        if not 0 < equivalent_size < math.inf:
            raise InputError(f"CountScorer: equivalent_size must be above 0, found {equivalent_size!r}.")
        self.n_variables, self.n_classes = codes.shape[1], n_classes
        self.criterion, self.max_parents = criterion, max_parents
        self.n_rows = total = float(len(codes)) if sample_weight is None else float(sample_weight.sum())
        columns = np.ascontiguousarray(codes.T, dtype=np.int32)
        counts = np.arange(len(codes) + 1.0)
        self.data = Data(
            columns,
            np.array(cards, dtype=np.int64),
            (columns == UNKNOWN).any(axis=1),
            np.empty(0) if sample_weight is None else np.asarray(sample_weight, dtype=float),
            *_bits(columns, cards),
            counts * np.log(np.maximum(counts, 1.0)),
            np.zeros(self.n_variables),
            int(criterion in ("k2", "bdeu")),
            {"bic": math.log(max(total, 1.0)) / 2, "aic": 1.0}.get(criterion, 0.0),
            equivalent_size if criterion == "bdeu" else 1.0,
            int(criterion == "bdeu"),
            n_classes,
            min(_MOST_PARENTS if max_parents is None else int(max_parents), self.n_variables),
        )
        self._score_alone()

    @property
    def cards(self) -> tuple[int, ...]:
        """Number of values of each variable."""
        return tuple(self.data.cards.tolist())

    def likelihood(self) -> CountScorer:
        """Return a scorer of the same rows by log-likelihood: its gains are n times mutual information."""
        plain = copy(self)
        plain.criterion = "likelihood"
        plain.data = self.data._replace(kind=0, penalty=0.0, alone=np.zeros(self.n_variables))
        plain._score_alone()
        return plain

    def sample(self, rows: npt.NDArray[np.intp], sample_weight: Floats | None = None) -> CountScorer:
        """Return a scorer of some rows, with weights of their own, that estimates the scores of all rows.

        A fitted parameter raises the likelihood by 1/2 on average, whether or not it is needed. So with s
        times as many rows the penalised likelihood is expected to be s (L - f / 2) + f / 2 - c f, where L is
        that of the sample and f the number of free parameters; c is the penalty for all rows. Divided by s,
        this is L with the penalty 1/2 + (c - 1/2) / s. Marginal likelihoods ("k2", "bdeu") are taken as they
        are: configurations without rows cost them nothing, so a lower penalty would reward those.
        """
        part = CountScorer(
            self.data.columns[:, rows].T.astype(np.intp),
            self.cards,
            self.n_classes,
            criterion=self.criterion,
            sample_weight=sample_weight,
            max_parents=self.max_parents,
            equivalent_size=self.data.prior if self.criterion == "bdeu" else 10.0,
        )
        if self.data.kind == LIKELIHOOD:
            scale = self.n_rows / part.n_rows
            part.data = part.data._replace(penalty=0.5 + (self.data.penalty - 0.5) / scale)
        return part

    def _score_alone(self) -> None:
        """Learn the score of every variable without parents on its known rows, which gaps are measured by."""
        whole = self.data._replace(missing=np.zeros(self.n_variables, dtype=bool))
        excluded = np.zeros(self.n_variables, dtype=bool)
        for v, card in enumerate(self.data.cards):
            scores = np.empty(self.n_variables)
            score = candidate_scores(whole, v, np.empty(0, np.int64), excluded, False, scores)
            self.data.alone[v] = score + self.data.penalty * (card - 1)

    def score(self, child: int, parents: Sequence[int]) -> float:
        """Score of one family."""
        return self.score_with(child, parents, ())[0]

    def score_with(
        self, child: int, parents: Sequence[int], candidates: Sequence[int]
    ) -> tuple[float, Floats]:
        """Score of a family, and scores (v,) with one further parent each; minus infinity for others."""
        wanted = np.zeros(self.n_variables, dtype=bool)
        wanted[list(candidates)] = True
        wanted[[child, *parents]] = False
        scores = np.empty(self.n_variables)
        own = candidate_scores(
            self.data, child, np.array(sorted(parents), dtype=np.int64), wanted, False, scores
        )
        return own, scores

    def gains(self, child: int, parents: Sequence[int], candidates: Sequence[int]) -> Floats:
        """What each candidate adds to a family (v,), in whole steps; 0 for variables that are none.

        Steps are as coarse as 1e-6, so that sums of the same numbers in another order are ties.
        """
        own, scores = self.score_with(child, parents, candidates)
        return np.where(np.isfinite(scores), np.floor((scores - own) / STEP + 0.5) * STEP, 0.0)

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """Score of a whole network."""
        return sum(self.score(child, members) for child, members in enumerate(parents))

    def pool(self, random_state: Seed = None) -> Pool:
        """Return room for what a search remembers of families."""
        rng = np.random.default_rng(random_state)
        words = rng.integers(1, 2**64 - 1, size=2 * self.n_variables, dtype=np.uint64)
        return Pool(
            np.zeros(2 * _FAMILIES, np.uint64),
            np.empty(2 * _FAMILIES, np.int64),
            words,
            np.empty(_FAMILIES, np.int64),
            np.empty(_FAMILIES, np.int64),
            np.empty(_FAMILIES),
            np.empty(_ENTRIES + self.n_variables, np.int32),
            np.zeros(3, np.int64),
        )


def _bits(
    columns: npt.NDArray[np.int32], cards: Sequence[int]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the rows of every value as bit sets (values, words), and where those of a variable start.

    Variables with so many values that nothing is ever counted by bits have none.
    """
    n_words = max(1, -(-columns.shape[1] // 64))
    parts, starts, n = [], [], 0
    for column, card in zip(columns, cards, strict=True):
        bits = np.zeros((card if card <= FEW_CELLS else 0, 64 * n_words), dtype=bool)
        bits[:, : len(column)] = column == np.arange(len(bits))[:, None]
        parts.append(np.packbits(bits, axis=1, bitorder="little").view(np.uint64))
        starts.append(n)
        n += len(bits)
    return np.concatenate(parts), np.array(starts, dtype=np.int64)
