"""A noisy-or as small tables, so that engines only ever see tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.joint.inference.factor import Factor


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
