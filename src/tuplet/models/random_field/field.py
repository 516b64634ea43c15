"""Pairwise fields over class variables: layout of the scores, factors, and weights linear in x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Codes, Floats
from tuplet.joint.inference.factor import Factor
from tuplet.local.onehot import one_hot_width
from tuplet.space.features.inputs import Features


class Scores(NamedTuple):
    """What multiplies the statistics of an outcome: its log-weight is the sum of these products."""

    single: Floats  # (n, w) for the indicators of single values
    pair: Floats  # (n or 1, e) for the products of two indicators; a first axis of 1 serves all rows


@dataclass(frozen=True, eq=False)
class PairwiseField:
    """log-weight(y) = sum_a single_a f_a(y) + sum_ab pair_ab f_a(y) f_b(y) over indicators f of values.

    The indicators are the columns of `OneHot`: one for a binary variable, namely of its second value, none
    for a constant, and one for each value of any other. So a field without edges is a set of logistic
    regressions, parametrised as scikit-learn's.

    Parameters
    ----------
    cards : tuple of int
        Cardinalities of the m variables.
    edges : sequence of pairs of int
        Which variables interact; those with constants are left out.
    """

    cards: tuple[int, ...]
    edges: Sequence[tuple[int, int]]

    def __post_init__(self) -> None:
        kept = [(i, j) for i, j in self.edges if self.cards[i] > 1 and self.cards[j] > 1]
        object.__setattr__(self, "edges", tuple(kept))

    # -- layout -------------------------------------------------------------------------------------------

    @cached_property
    def widths(self) -> list[int]:
        """Number of indicators of each variable."""
        return [one_hot_width(card) for card in self.cards]

    @cached_property
    def starts(self) -> npt.NDArray[np.intp]:
        """First indicator of each variable; the last entry is the number of all, w."""
        return np.concatenate([[0], np.cumsum(self.widths)]).astype(np.intp)

    @cached_property
    def variable(self) -> npt.NDArray[np.intp]:
        """The variable (w,) that each indicator belongs to."""
        return np.repeat(np.arange(len(self.cards)), self.widths)

    @cached_property
    def members(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The two indicators, (e,) each, of every pair score: edge by edge, row by row of its table."""
        blocks = [np.meshgrid(self._columns(i), self._columns(j), indexing="ij") for i, j in self.edges]
        if not blocks:
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        return (
            np.concatenate([first.ravel() for first, _ in blocks]),
            np.concatenate([second.ravel() for _, second in blocks]),
        )

    @cached_property
    def edge_starts(self) -> npt.NDArray[np.intp]:
        """First pair score of each edge; the last entry is the number of all, e."""
        sizes = [self.widths[i] * self.widths[j] for i, j in self.edges]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)

    def _columns(self, variable: int) -> npt.NDArray[np.intp]:
        return np.arange(self.starts[variable], self.starts[variable + 1])

    def indicators(self, codes: Codes) -> Floats:
        """Indicators (q, w) of complete codes (q, m)."""
        codes = codes[:, self.variable]
        value = np.arange(self.starts[-1]) - self.starts[self.variable]
        value += np.array(self.cards)[self.variable] == 2  # the one indicator of a binary variable
        return (codes == value).astype(float)

    def products(self, indicators: Floats) -> Floats:
        """Products (q, e) of the indicators (q, w) of each pair."""
        first, second = self.members
        return indicators[:, first] * indicators[:, second]

    # -- factors ------------------------------------------------------------------------------------------

    def single_tables(self, single: Floats) -> list[Floats]:
        """Log-tables (k_j, n) of the variables."""
        parts = [
            single[:, start:stop].T for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True)
        ]
        return [_pad(part, card, 0) for part, card in zip(parts, self.cards, strict=True)]

    def pair_tables(self, pair: Floats) -> list[Floats]:
        """Log-tables (k_i, k_j, n or 1) of the edges."""
        tables = []
        for (i, j), start, stop in zip(self.edges, self.edge_starts[:-1], self.edge_starts[1:], strict=True):
            part = pair[:, start:stop].T.reshape(self.widths[i], self.widths[j], -1)
            tables.append(_pad(_pad(part, self.cards[i], 0), self.cards[j], 1))
        return tables

    def factors(self, scores: Scores) -> list[Factor]:
        """The variables' factors, in their order, then the edges'."""
        singles = [Factor((v,), table) for v, table in enumerate(self.single_tables(scores.single))]
        pairs = zip(self.edges, self.pair_tables(scores.pair), strict=True)
        return [*singles, *(Factor(edge, table) for edge, table in pairs)]

    def expectations(self, marginals: Sequence[Floats]) -> Scores:
        """Means (n, w) of the indicators and (n, e) of their products, from the marginals of `factors`."""
        m, n = len(self.cards), marginals[0].shape[-1]
        single = [table[-w:] for table, w in zip(marginals[:m], self.widths, strict=True) if w]
        pair = [
            table[-self.widths[i] :, -self.widths[j] :].reshape(-1, n)
            for (i, j), table in zip(self.edges, marginals[m:], strict=True)
        ]
        empty = np.zeros((0, n))
        return Scores(np.concatenate([empty, *single]).T, np.concatenate([empty, *pair]).T)


class FieldWeights(NamedTuple):
    """Weights of x, and of 1 in the last row, in the scores of a field."""

    single: Floats  # (d + 1, w)
    pair: Floats  # (1 or d + 1, e)

    @classmethod
    def zeros(cls, d: int, field: PairwiseField, linear: bool) -> FieldWeights:
        """Weights of d features, all 0; those of pairs for every feature if `linear`."""
        w, e = int(field.starts[-1]), int(field.edge_starts[-1])
        return cls(np.zeros((d + 1, w)), np.zeros((d + 1 if linear else 1, e)))

    @property
    def flat(self) -> Floats:
        """The weights as a vector."""
        return np.concatenate([self.single.ravel(), self.pair.ravel()])

    def like(self, flat: Floats) -> FieldWeights:
        """Weights of this shape from a vector."""
        cut = self.single.size
        return FieldWeights(flat[:cut].reshape(self.single.shape), flat[cut:].reshape(self.pair.shape))

    def ridges(self, C: float, C_pair: float) -> Floats:
        """Strengths of the penalties, as a vector: 1 / C of slopes, 1 / C_pair of the constants of pairs.

        Intercepts are free.
        """
        single, pair = np.full(self.single.shape, 1.0 / C), np.full(self.pair.shape, 1.0 / C)
        single[-1], pair[-1] = 0.0, 1.0 / C_pair
        return np.concatenate([single.ravel(), pair.ravel()])

    def scores(self, X: Features) -> Scores:
        """Scores of the rows of X (n, d)."""
        pair = self.pair if len(self.pair) == 1 else X @ self.pair[:-1] + self.pair[-1]
        return Scores(X @ self.single[:-1] + self.single[-1], pair)

    def pull_back(self, X: Features, slope: Scores) -> Floats:
        """Gradient by the weights, as a vector, from the gradient by the scores."""
        single = np.vstack([X.T @ slope.single, slope.single.sum(axis=0)])
        pair = slope.pair if len(self.pair) == 1 else np.vstack([X.T @ slope.pair, slope.pair.sum(axis=0)])
        return np.concatenate([single.ravel(), pair.ravel()])


def _pad(part: Floats, card: int, axis: int) -> Floats:
    """Put zeros for the first value of a binary variable, or the only one of a constant, in front."""
    if part.shape[axis] == card:
        return part
    shape = list(part.shape)
    shape[axis] = 1
    return np.concatenate([np.zeros(shape), part], axis=axis)
