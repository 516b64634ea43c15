"""Factors: log-tables over a few variables, the batch axis last; rules, which may be long; and products."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import ImpossibleEvidenceError, InputError
from tuplet.core.limits import FEW_OUTCOMES
from tuplet.core.typing import UNKNOWN, Codes, Floats

_LONG = FEW_OUTCOMES
"""Cells of a rule's table beyond which it is not built: hidden variables run along the rule instead."""


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

    def renamed(self, place: Mapping[int, int]) -> Factor:
        """Return the same factor over other variables."""
        return Factor(tuple(place[v] for v in self.scope), self.log_table)


@final
@dataclass(frozen=True, eq=False)
class RuleFactor:
    """f(y) = p (1 - Q(y)) + (1 - p) Q(y), where Q(y) is how much the values y break a rule.

    Q is a product of inhibitions q_j(y_j) (noisy-or rules, and formulas by which at least one of several
    things is so), or a table of zeros and ones (other formulas). A product needs no table, however many
    variables it has. A rule is the same for all rows.

    Parameters
    ----------
    scope : tuple of int
        The variables of the rule.
    p : float
        Probability of the rule, between 0 and 1.
    q : tuple of arrays (k_j,), optional
        Inhibitions of each variable of the scope, between 0 and 1.
    violated : array of 0 and 1, shape (cards of the scope), optional
        Where the rule is broken; given exactly if `q` is not.
    text : str
        Name of the rule in messages and tables.
    flipped : bool
        Whether Q is where the rule holds, not where it is broken; `p` is then one minus the rule's own.
    """

    scope: tuple[int, ...]
    p: float
    q: tuple[Floats, ...] | None = None
    violated: Floats | None = None
    text: str = "a rule"
    flipped: bool = False

    def __post_init__(self) -> None:
        if (self.q is None) is (self.violated is None) or not 0 <= self.p <= 1 or not self.scope:
            raise InputError(
                f"RuleFactor: needs a scope, either q or violated, and p between 0 and 1; found scope"
                f" {self.scope} and p = {self.p}."
            )

    @property
    def cards(self) -> tuple[int, ...]:
        """Number of values of each variable of the scope."""
        if self.q is not None:
            return tuple(len(q) for q in self.q)
        assert self.violated is not None
        return self.violated.shape

    @property
    def n_cells(self) -> int:
        """Cells of the factor's table (a Python int: it may be huge)."""
        return math.prod(self.cards)

    @property
    def own_p(self) -> float:
        """Probability of the rule as it was given."""
        return 1.0 - self.p if self.flipped else self.p

    @cached_property
    def log_table(self) -> Floats:
        """Logarithms of `table`, (*cards, 1), as in `Factor`."""
        with np.errstate(divide="ignore"):
            return np.log(self.table())[..., None]

    def table(self) -> Floats:
        """Return f of every combination of the scope, shape `cards`."""
        return self._weigh(*self._table_parts())

    def breach_table(self) -> Floats:
        """Return Q of every combination of the scope, shape `cards`."""
        return self._table_parts()[0]

    def at(self, codes: Codes) -> Floats:
        """Log-values at complete codes (..., m), as (...)."""
        with np.errstate(divide="ignore"):
            return np.log(self._weigh(*self._parts(codes)))

    def rows(self, rows: slice | npt.NDArray[np.intp]) -> RuleFactor:
        """Return the factor of some rows, which is the same."""
        return self

    def renamed(self, place: Mapping[int, int]) -> RuleFactor:
        """Return the same rule over other variables."""
        return replace(self, scope=tuple(place[v] for v in self.scope))

    def along_hidden(self, first_hidden: int) -> list[Factor]:
        """Return tables whose product, hidden variables summed out, is the rule; it must be a product.

        One hidden "triggered so far" variable for each variable of the scope, numbered from `first_hidden`
        on, runs along it, so no table is larger than 2 x 2 x k however long the scope is.
        """
        assert self.q is not None
        factors = []
        for step, (variable, q) in enumerate(zip(self.scope, self.q, strict=True)):
            off = np.stack([q, 1.0 - q])  # from "not triggered": (to, value)
            on = np.stack([np.zeros_like(q), np.ones_like(q)])  # once triggered, always triggered
            hidden = first_hidden + step
            if step == 0:
                factors.append(_factor((hidden, variable), off))
            else:
                factors.append(_factor((hidden - 1, hidden, variable), np.stack([off, on])))
        last = first_hidden + len(self.scope) - 1
        return [*factors, _factor((last,), np.array([1.0 - self.p, self.p]))]

    def _parts(self, codes: Codes) -> tuple[Floats, Floats]:
        """Q and 1 - Q at complete codes (..., m)."""
        if self.violated is not None:
            breach = self.violated[tuple(codes[..., v] for v in self.scope)]
            return breach, 1.0 - breach
        total = np.zeros(codes.shape[:-1])
        for v, log_q in zip(self.scope, self._log_q(), strict=True):
            total = total + log_q[codes[..., v]]
        return np.exp(total), -np.expm1(total)

    def _table_parts(self) -> tuple[Floats, Floats]:
        """Q and 1 - Q of every combination of the scope."""
        if self.violated is not None:
            return self.violated, 1.0 - self.violated
        total = np.zeros(())
        for log_q in self._log_q():
            total = total[..., None] + log_q
        return np.exp(total), -np.expm1(total)

    def _log_q(self) -> list[Floats]:
        """Logarithms of the inhibitions, by which 1 - Q keeps its digits where Q is almost 1."""
        assert self.q is not None
        with np.errstate(divide="ignore"):
            return [np.log(q) for q in self.q]

    def _weigh(self, breach: Floats, kept: Floats) -> Floats:
        # Not p - (2p - 1) Q: that would leave 1e-17 where a hard rule gives zero.
        return self.p * kept + (1.0 - self.p) * breach


AnyFactor: TypeAlias = Factor | RuleFactor


@dataclass(frozen=True, eq=False)
class Problem:
    """A product of factors for n rows: the first `n_visible` variables are visible, the rest is hidden."""

    cards: tuple[int, ...]
    factors: tuple[AnyFactor, ...]
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

    @cached_property
    def tabulated(self) -> Problem:
        """The same product as tables alone; further hidden variables run along rules that are too long."""
        if not self.rules:
            return self
        n_variables, tables = len(self.cards), []
        for factor in self.factors:
            if isinstance(factor, Factor):
                tables.append(factor)
            elif factor.q is None or factor.n_cells <= _LONG:
                tables.append(Factor(factor.scope, factor.log_table))
            else:
                tables += factor.along_hidden(n_variables)
                n_variables += len(factor.scope)
        hidden = (2,) * (n_variables - len(self.cards))
        return replace(self, cards=(*self.cards, *hidden), factors=tuple(tables))

    @cached_property
    def is_product(self) -> bool:
        """Whether each variable has one table of its own and nothing else, and none is hidden."""
        scopes = sorted(factor.scope for factor in self.factors)
        return not self.rules and not self.hidden and scopes == [(v,) for v in range(len(self.cards))]

    @property
    def rules(self) -> list[RuleFactor]:
        """The factors that are rules."""
        return [factor for factor in self.factors if isinstance(factor, RuleFactor)]

    def plus(self, factors: Iterable[AnyFactor]) -> Problem:
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
            scope = factor.scope
            shape = factor.log_table.shape if isinstance(factor, Factor) else (*factor.cards, 1)
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
    problem = problem.tabulated
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


def _factor(scope: tuple[int, ...], table: Floats) -> Factor:
    with np.errstate(divide="ignore"):
        return Factor(scope, np.log(table)[..., None])
