"""Sums over all outcomes with one binary hidden variable per noisy-or rule, whose weights may be negative.

f(l) = p (1 - Q(l)) + (1 - p) Q(l) = sum over b in {0, 1} of w_b prod_j q_j(l_j)^b with w = (p, 1 - 2p): a
hidden variable that is tied to the class variables one by one, so no table grows with the length of a rule,
and class variables and rules are eliminated in whatever order is cheapest. On models of 30 labels and 30
rules that needs some 1/30 of the cells that tables over the class variables need.

The price is the sign: digits cancel where a rule is almost surely broken. The backward pass shows how much:
it computes how far every cell of every message moves the answer. (That the shares of a variable add up
to one is no test: both passes may lose the same digits.) Everything is in linear space, works for extended
numbers, and nothing is divided by a message, which may be zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tuplet.core.limits import BLOCK_CELLS
from tuplet.core.typing import Floats
from tuplet.joint.inference.plan import Plan, Step
from tuplet.models.rules.inference.factor import RuleFactor
from tuplet.models.rules.inference.ordering import cheapest_plan

_CHUNK = BLOCK_CELLS
"""Cells of the tables that are worked on at once."""

_LONG = 3
"""Class variables from which on a product gets a hidden variable of its own."""

_WHOLE, _WEIGHTS = -1, -2
"""Places in a rule of its whole table, and of the weights of its hidden variable."""


@dataclass(frozen=True, eq=False)
class Signed:
    """Beliefs times rules, for sums over class variables.

    Parameters
    ----------
    cards : tuple of int
    factors : tuple of RuleFactor
    """

    cards: tuple[int, ...]
    factors: tuple[RuleFactor, ...]

    @cached_property
    def _layout(self) -> tuple[tuple[int, ...], list[tuple[int, ...]], list[tuple[int, int]]]:
        """Cards with hidden variables, scopes, and for each factor table its rule and place in the rule."""
        cards = list(self.cards)
        scopes: list[tuple[int, ...]] = [(j,) for j in range(len(self.cards))]
        origin: list[tuple[int, int]] = []
        for k, factor in enumerate(self.factors):
            if factor.is_product and len(factor.scope) >= _LONG:
                scopes += [(len(cards),), *((v, len(cards)) for v in factor.scope)]
                origin += [(k, _WEIGHTS), *((k, i) for i in range(len(factor.scope)))]
                cards.append(2)
            else:
                scopes.append(factor.scope)
                origin.append((k, _WHOLE))
        return tuple(cards), scopes, origin

    @cached_property
    def plan(self) -> Plan:
        """How everything is eliminated."""
        cards, scopes, _ = self._layout
        return cheapest_plan(cards, tuple(scopes))

    @property
    def n_cells(self) -> int:
        """Cells of all tables of one row."""
        return sum(self.plan.sizes)

    def _tables(self) -> list[np.ndarray]:
        """Tables of the rules, in the order of the layout."""
        tables = []
        for k, i in self._layout[2]:
            factor = self.factors[k]
            if i == _WHOLE:
                tables.append(factor.table())
            elif i == _WEIGHTS:
                tables.append(np.array([factor.p, 1.0 - 2.0 * factor.p]))
            else:
                assert factor.q is not None
                tables.append(np.stack([np.ones_like(factor.q[i]), factor.q[i]], axis=1))
        return tables

    def marginals(self, beliefs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray, Floats]:
        """Share of the sum that each value of each class variable has, for beliefs (k_j, n).

        Returns
        -------
        shares (k_j, n), logarithms of the sums (n,), no number where even the sign is lost, and an estimate
        (n,) of the relative error of both
        """
        n = beliefs[0].shape[1]
        answers = [np.empty_like(belief) for belief in beliefs]
        log_z = np.empty(n, dtype=beliefs[0].dtype)
        error = np.empty(n)
        statics = self._statics(self._tables())
        for rows in self._chunks(n):
            part = [belief[:, rows] for belief in beliefs]
            messages, sizes, log_z[rows] = self._forward(part, statics)
            loss = np.zeros(log_z[rows].shape)
            for j, share in self._backward(part, statics, messages, sizes, loss):
                answers[j][:, rows] = share * part[j]
            error[rows] = loss * np.finfo(log_z.dtype).eps
        return answers, log_z, error

    # -- passes -------------------------------------------------------------------------------------------

    def _chunks(self, n: int) -> Iterator[slice]:
        step = max(1, _CHUNK // self.n_cells)
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def _statics(self, tables: list[np.ndarray]) -> list[np.ndarray | None]:
        """Product of the rules' tables that enter each step: the same for all rows."""
        m, plan = len(self.cards), self.plan
        products: list[np.ndarray | None] = []
        for step in plan.steps:
            product: np.ndarray | None = None
            for slot, shape in step.inputs:
                if m <= slot < len(plan.transposes):
                    axes = plan.transposes[slot][:-1]
                    table = tables[slot - m].transpose(axes).reshape(*shape, 1)
                    product = table if product is None else product * table
            products.append(product)
        return products

    def _inputs(self, step: Step, beliefs: list[np.ndarray], messages: list[Any]) -> list[tuple[int, Any]]:
        """What arrives at a step and differs between rows: (slot, table that broadcasts over the clique)."""
        n_factors, m = len(self.plan.transposes), len(self.cards)
        return [
            (slot, (beliefs[slot] if slot < m else messages[slot - n_factors]).reshape(*shape, -1))
            for slot, shape in step.inputs
            if slot < m or slot >= n_factors
        ]

    def _forward(
        self, beliefs: list[np.ndarray], statics: list[np.ndarray | None]
    ) -> tuple[list[Any], list[Any], np.ndarray]:
        """Messages of all steps, what they would be without cancellation, and the log of the sum of all."""
        messages: list[Any] = []
        sizes: list[Any] = []
        log_z: Any = 0.0
        for step, static in zip(self.plan.steps, statics, strict=True):
            table = _product([static, *(array for _, array in self._inputs(step, beliefs, messages))])
            message = _fold(table)
            messages.append(message)
            # Only sums over hidden variables have signs: their messages are weights of rules again.
            sizes.append(_fold(np.abs(table)) if step.variable >= len(self.cards) else message)
            if step.parent < 0:
                log_z = log_z + np.log(message)  # a product over a thousand components may overflow
        return messages, sizes, log_z

    def _backward(
        self,
        beliefs: list[np.ndarray],
        statics: list[np.ndarray | None],
        messages: list[Any],
        sizes: list[Any],
        loss: Floats,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield for each class variable the derivative (k, n) of log Z with respect to its beliefs.

        To `loss` (n,) is added how much log Z changes if every cell of every message is off by one rounding.
        """
        n_factors, m, n = len(self.plan.transposes), len(self.cards), beliefs[0].shape[1]
        arriving: dict[int, Any] = {}
        for i in reversed(range(len(self.plan.steps))):
            step = self.plan.steps[i]
            outside = arriving.pop(i) if step.parent >= 0 else 1.0 / messages[i]
            loss += (np.abs(outside) * sizes[i]).reshape(-1, n).sum(axis=0).astype(float)
            inputs = self._inputs(step, beliefs, messages)
            base = _product([statics[i], outside[None]])
            for (slot, table), rest in zip(inputs, _all_but_one([a for _, a in inputs]), strict=True):
                share = _onto(_product([base, rest]), (*table.shape[:-1], n))
                if slot < m:
                    yield slot, share.reshape(beliefs[slot].shape)
                else:
                    child = slot - n_factors
                    arriving[child] = share.reshape(*messages[child].shape[:-1], n)


def _product(arrays: Sequence[Any]) -> Any:
    """Product of arrays that broadcast, small ones first; None counts for nothing."""
    present = [array for array in arrays if array is not None]
    result = present[0]
    for array in present[1:]:
        result = result * array
    return result


def _all_but_one(arrays: list[Any]) -> list[Any]:
    """Return for every array the product of the others; None if there are none."""
    if len(arrays) == 1:
        return [None]
    return [_product(arrays[:i] + arrays[i + 1 :]) for i in range(len(arrays))]


def _onto(table: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the axes along which a table is longer than the shape, and repeat along shorter ones."""
    drop = tuple(a for a in range(table.ndim - 1) if shape[a] == 1 and table.shape[a] > 1)
    total = table.sum(axis=drop, keepdims=True) if drop else table
    return np.broadcast_to(total, shape) if total.shape != shape else total


def _fold(table: Any) -> Any:
    """Sum over the first axis; for a few values, plain additions are twice as fast."""
    result = table[0] + table[1] if len(table) > 1 else table[0]
    for part in table[2:]:
        result = result + part
    return result
