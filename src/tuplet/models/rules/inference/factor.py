"""A rule over numbered class variables: the factor that it contributes to the joint distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes, Floats


@final
@dataclass(frozen=True, eq=False)
class RuleFactor:
    """f(l) = p (1 - Q(l)) + (1 - p) Q(l), where Q(l) is how much the labels l break the rule.

    Q is a product of inhibitions q_j(l_j) (noisy-or rules, and formulas by which at least one of several
    things is so), or a table of zeros and ones (other formulas).

    Parameters
    ----------
    scope : tuple of int
        The class variables of the rule, in increasing order.
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
    def is_product(self) -> bool:
        """Whether Q is a product over the scope."""
        return self.q is not None

    def values(self, codes: Codes) -> Floats:
        """F at complete codes (..., m), as (...)."""
        return self._weigh(*self._parts(codes))

    def log_values(self, codes: Codes) -> Floats:
        """Logarithms of `values`."""
        with np.errstate(divide="ignore"):
            return np.log(self.values(codes))

    def breach_table(self) -> Floats:
        """Q of every combination of the scope, shape `cards`."""
        return self._table_parts()[0]

    def table(self) -> Floats:
        """F of every combination of the scope, shape `cards`."""
        return self._weigh(*self._table_parts())

    def log_table(self) -> Floats:
        """Logarithms of `table`."""
        with np.errstate(divide="ignore"):
            return np.log(self.table())

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

    @property
    def own_p(self) -> float:
        """Probability of the rule as it was given."""
        return 1.0 - self.p if self.flipped else self.p

    def _weigh(self, breach: Floats, kept: Floats) -> Floats:
        # Not p - (2p - 1) Q: that would leave 1e-17 where a hard rule gives zero.
        return self.p * kept + (1.0 - self.p) * breach
