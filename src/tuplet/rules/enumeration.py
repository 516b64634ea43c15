"""Sums over all outcomes by looking at each of them, and by inclusion and exclusion of rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tuplet.rules.factor import RuleFactor
from tuplet.typing import Floats

_CHUNK = 2**21
"""Cells that are worked on at once."""


def log_weight_table(cards: tuple[int, ...], factors: Sequence[RuleFactor]) -> Floats:
    """Log-weight that the rules give to every outcome, the last variable running fastest, (L,)."""
    table = np.zeros(cards)
    for factor in factors:
        table += factor.log_table().reshape([c if v in factor.scope else 1 for v, c in enumerate(cards)])
    return table.ravel()


@dataclass(frozen=True, eq=False)
class Enumeration:
    """Every outcome with its weight, in log space: nothing can get lost.

    Parameters
    ----------
    cards : tuple of int
    factors : tuple of RuleFactor
    """

    cards: tuple[int, ...]
    factors: tuple[RuleFactor, ...]

    @cached_property
    def _log_rules(self) -> Floats:
        return log_weight_table(self.cards, self.factors)

    def log_table(self, log_beliefs: Sequence[Floats]) -> Floats:
        """Log-weights (n, L) of all outcomes for log-beliefs (n, k_j)."""
        table = np.zeros((len(log_beliefs[0]), 1))
        for belief in log_beliefs:
            table = (table[:, :, None] + belief[:, None, :]).reshape(len(belief), -1)
        table += self._log_rules
        return table

    def marginals(self, log_beliefs: Sequence[Floats]) -> tuple[list[Floats], Floats]:
        """Marginals (n, k_j) of all variables and log of the sum of all weights (n,)."""
        n = len(log_beliefs[0])
        answers, log_z = [np.empty_like(belief) for belief in log_beliefs], np.empty(n)
        for rows in _chunks(n, len(self._log_rules)):
            table = self.log_table([belief[rows] for belief in log_beliefs])
            peak = table.max(axis=1)
            peak = np.where(np.isneginf(peak), 0.0, peak)
            weights = np.exp(table - peak[:, None]).reshape(-1, *self.cards)
            total = weights.reshape(len(weights), -1).sum(axis=1)
            with np.errstate(divide="ignore"):
                log_z[rows] = peak + np.log(total)
            safe = np.where(total == 0.0, 1.0, total)[:, None]
            for j, answer in enumerate(answers):
                others = tuple(a + 1 for a in range(len(self.cards)) if a != j)
                answer[rows] = weights.sum(axis=others) / safe
        return answers, log_z


@dataclass(frozen=True, eq=False)
class InclusionExclusion:
    """Sum over subsets of the rules, for few noisy-or rules over many class variables.

    prod_k (p_k + (1 - 2 p_k) Q_k) is a sum over the 2^K subsets S of prod_{k not in S} p_k prod_{k in S}
    (1 - 2 p_k) Q_k, and for a subset the class variables are independent: matrix products do the work.

    Parameters
    ----------
    cards : tuple of int
    factors : tuple of RuleFactor
        All of them products.
    """

    cards: tuple[int, ...]
    factors: tuple[RuleFactor, ...]

    @property
    def n_cells(self) -> int:
        """Cells of all tables of one row."""
        return 2 ** len(self.factors) * sum(self.cards)

    @cached_property
    def _tables(self) -> tuple[Floats, list[Floats]]:
        """Weights (2^K,) of the subsets, and of each variable the product of inhibitions (k_j, 2^K)."""
        weights = np.ones(1)
        inhibitions = [np.ones((card, 1)) for card in self.cards]
        for factor in self.factors:
            weights = np.concatenate([weights * factor.p, weights * (1.0 - 2.0 * factor.p)])
            assert factor.q is not None
            q = dict(zip(factor.scope, factor.q, strict=True))
            for j, table in enumerate(inhibitions):
                inhibitions[j] = np.hstack([table, table * q[j][:, None] if j in q else table])
        return weights, inhibitions

    def marginals(self, beliefs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray, Floats]:
        """Share of the sum that each value of each class variable has, for beliefs (k_j, n).

        Returns
        -------
        shares (k_j, n), logarithms of the sums (n,) and an estimate (n,) of the relative error of both
        """
        n = beliefs[0].shape[1]
        answers = [np.empty_like(belief) for belief in beliefs]
        z, size = np.empty(n, dtype=beliefs[0].dtype), np.empty(n)
        for rows in _chunks(n, 2 ** len(self.factors) * len(self.cards)):
            part = [belief[:, rows] for belief in beliefs]
            size[rows] = self._chunk(part, [a[:, rows] for a in answers], z[rows])
        # Every summand is a product of so many numbers, each rounded once.
        n_roundings = len(self.cards) + len(self.factors)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = (size / np.abs(z)).astype(float) * n_roundings * np.finfo(z.dtype).eps
            return answers, np.log(z), error

    def _chunk(self, beliefs: list[np.ndarray], answers: list[np.ndarray], z: np.ndarray) -> np.ndarray:
        """Fill in shares and sums; return the sums of absolute values."""
        weights, inhibitions = self._tables
        factors = [belief.T @ table for belief, table in zip(beliefs, inhibitions, strict=True)]  # (n, 2^K)
        after = [np.ones_like(factors[0])]
        for factor in factors[:0:-1]:
            after.append(after[-1] * factor)
        before = np.broadcast_to(weights, factors[0].shape)
        for j, factor in enumerate(factors):
            rest = before * after.pop()
            answers[j][:] = (rest @ inhibitions[j].T).T * beliefs[j]
            before = before * factor
        z[:] = before.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            for answer in answers:
                answer /= z
        return np.abs(before).sum(axis=1).astype(float)


def _chunks(n: int, cells: int) -> Iterator[slice]:
    step = max(1, _CHUNK // max(1, cells))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
