"""Factors: log-tables over a few variables, the batch axis last; products, and noisy-or rules as factors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import ImpossibleEvidenceError, InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats


@dataclass(frozen=True, eq=False)
class Factor:
    """A non-negative table over the variables in `scope`, kept as logarithms.

    Parameters
    ----------
    scope : tuple of int
        Distinct variables, in the order of the table's axes.
    log_table : array, shape (*cards of the scope, 1 or n)
        Minus infinity is allowed and means impossible. A last axis of 1 means: the same for all rows.
    """

    scope: tuple[int, ...]
    log_table: Floats

    def __post_init__(self) -> None:
        # Tables of other types would be computed with in their own, lower precision.
        object.__setattr__(self, "scope", tuple(int(v) for v in self.scope))
        object.__setattr__(self, "log_table", np.asarray(self.log_table, dtype=np.float64))

    def rows(self, rows: slice | npt.NDArray[np.intp]) -> Factor:
        """Return the factor of some rows; one that all rows share stays as it is."""
        return self if self.log_table.shape[-1] == 1 else Factor(self.scope, self.log_table[..., rows])

    def ordered(self) -> Factor:
        """Return the same factor with its variables in ascending order."""
        order = np.argsort(self.scope)
        axes = (*order, len(order))
        return Factor(tuple(self.scope[i] for i in order), self.log_table.transpose(axes))

    def at(self, codes: Codes) -> Floats:
        """Log-values at complete codes (s, n, m), as (s, n)."""
        index = tuple(codes[..., v] for v in self.scope)
        rows = np.arange(codes.shape[1]) if self.log_table.shape[-1] != 1 else 0
        return self.log_table[(*index, rows)]


@dataclass(frozen=True, eq=False)
class Problem:
    """A product of factors for n rows: the first `n_visible` variables are visible, the rest is hidden."""

    cards: tuple[int, ...]
    factors: tuple[Factor, ...]
    n: int
    n_visible: int

    @cached_property
    def scopes(self) -> tuple[tuple[int, ...], ...]:
        """Structure of the product, which together with the cards determines every plan."""
        return tuple(factor.scope for factor in self.factors)

    @property
    def hidden(self) -> tuple[int, ...]:
        """Variables that are summed out before anything else."""
        return tuple(range(self.n_visible, len(self.cards)))

    def rows(self, rows: slice | npt.NDArray[np.intp]) -> Problem:
        """Return the same product for some rows."""
        n = len(range(self.n)[rows]) if isinstance(rows, slice) else len(rows)
        return replace(self, factors=tuple(factor.rows(rows) for factor in self.factors), n=n)

    def plus(self, factors: Iterable[Factor]) -> Problem:
        """Return the product with further factors."""
        return replace(self, factors=(*self.factors, *factors))

    def log_weight(self, codes: Codes) -> Floats:
        """Unnormalised log-weight of complete codes (s, n, all variables), as (s, n)."""
        total = np.zeros(codes.shape[:2])
        for factor in self.factors:
            total += factor.at(codes)
        return total

    def validate(self) -> None:
        """Check that scopes, cards and batch sizes agree."""
        cards, batches = self.cards, {1, self.n}
        for factor in self.factors:
            shape, scope = factor.log_table.shape, factor.scope
            known = all(0 <= v < len(cards) for v in scope)
            if not known or shape[:-1] != tuple([cards[v] for v in scope]) or shape[-1] not in batches:
                expected = ", ".join([str(cards[v]) if v < len(cards) else "?" for v in scope])
                raise InputError(
                    f"A factor over variables {scope} must have a table of shape ({expected}, 1 or {self.n}),"
                    f" found {shape}."
                )
            if len(set(scope)) < len(scope):
                raise InputError(f"A factor's scope must not repeat a variable, found {scope}.")


def require_possible(log_partition: Floats, first_row: int = 0) -> Floats:
    """Raise where the factors of a row contradict each other or are no numbers; return the argument."""
    if np.isnan(log_partition).any() or np.isposinf(log_partition).any():
        raise InputError("FactorGraph: a log-table has nan or +inf in it; use finite numbers or -inf.")
    if np.isneginf(log_partition).any():
        row = first_row + int(np.flatnonzero(np.isneginf(log_partition))[0])
        raise ImpossibleEvidenceError(
            f"FactorGraph: the factors of row {row} contradict each other: every outcome has weight zero."
        )
    return log_partition


def evidence_factors(cards: tuple[int, ...], codes: Codes) -> list[Factor]:
    """Unary factors that forbid everything but the known values of codes (n, m)."""
    factors = []
    for v in np.flatnonzero((codes != UNKNOWN).any(axis=0)):
        values = np.arange(cards[v])[:, None]
        allowed = (values == codes[:, v]) | (codes[:, v] == UNKNOWN)
        factors.append(Factor((int(v),), np.where(allowed, 0.0, -np.inf)))
    return factors


def absorb(problem: Problem, codes: Codes, rows: npt.NDArray[np.intp] | None = None) -> Problem:
    """Fix variables that are known in all rows: their axes go, so that nothing is left to eliminate.

    Parameters
    ----------
    codes : array of int, shape (r, m)
        A variable must be known in all rows or in none. The fixed variables stay in the numbering as
        variables with a single value.
    rows : array of int, shape (r,), optional
        The rows of the problem that the codes belong to, with repetitions; all of them in order if None.
    """
    chosen = np.arange(problem.n) if rows is None else rows
    known = {int(v) for v in np.flatnonzero(codes[0] != UNKNOWN)} if len(codes) else set()
    factors = []
    for factor in problem.factors:
        free = tuple(v for v in factor.scope if v not in known)
        fixed = [v for v in factor.scope if v in known]
        if not fixed:
            factors.append(factor if rows is None else factor.rows(chosen))
            continue
        axes = [factor.scope.index(v) for v in fixed]
        table = np.moveaxis(factor.log_table, axes, range(len(axes)))
        batch = chosen if table.shape[-1] != 1 else 0
        # Advanced indices with a slice between them put the batch first: (r, free...).
        picked = table[(*(codes[:, v] for v in fixed), *(slice(None) for _ in free), batch)]
        factors.append(Factor(free, np.moveaxis(picked, 0, -1)))
    cards = tuple(1 if v in known else card for v, card in enumerate(problem.cards))
    return replace(problem, cards=cards, factors=tuple(factors), n=len(chosen))


def noisy_or(
    scope: Sequence[int], inhibitions: Sequence[Floats], probability: float, first_hidden: int
) -> list[Factor]:
    """Factors whose product, hidden variables summed out, is p (1 - Q(y)) + (1 - p) Q(y).

    Q(y) is the product over the scope of the inhibition q_j(y_j): the probability that no variable triggers
    the rule. One hidden "triggered so far" variable per variable of the scope runs along it, so no table is
    larger than 2 x 2 x k however long the scope is.

    Parameters
    ----------
    scope : sequence of int
        The l variables of the rule.
    inhibitions : sequence of arrays (k_j,)
        q_j of every value, between 0 and 1; 1 everywhere disconnects the variable.
    probability : float
        p, the probability that a triggered rule holds.
    first_hidden : int
        Number of the first of the l hidden binary variables that the factors use.

    Returns
    -------
    list of Factor
        Over `scope` and the hidden variables first_hidden to first_hidden + l - 1.
    """
    if not len(scope) or len(scope) != len(inhibitions) or not 0 <= probability <= 1:
        raise InputError(
            f"noisy_or: needs at least one variable, an inhibition for each, and a probability in [0, 1];"
            f" found {len(scope)} variables, {len(inhibitions)} inhibitions and p = {probability}."
        )
    factors = []
    for step, (variable, inhibition) in enumerate(zip(scope, inhibitions, strict=True)):
        q = np.asarray(inhibition, dtype=float)
        off = np.stack([q, 1.0 - q])  # from "not triggered": (to, value)
        on = np.stack([np.zeros_like(q), np.ones_like(q)])  # once triggered, always triggered
        if step == 0:
            factors.append(_factor((first_hidden, variable), off))
        else:
            previous = first_hidden + step - 1
            factors.append(_factor((previous, previous + 1, variable), np.stack([off, on])))
    last = first_hidden + len(factors) - 1
    factors.append(_factor((last,), np.array([1.0 - probability, probability])))
    return factors


def _factor(scope: tuple[int, ...], table: Floats) -> Factor:
    with np.errstate(divide="ignore"):
        return Factor(scope, np.log(table)[..., None])
