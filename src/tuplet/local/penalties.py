"""What a family pays for its parameters, so that its training likelihood can be compared with others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

Parametrisation: TypeAlias = Literal["split", "inputs"]

Penalty: TypeAlias = Callable[[float, float], float]
"""(number of free parameters, number of rows) -> penalty >= 0, which must grow with the parameters."""


def _bic(n_free: float, n: float) -> float:
    return 0.5 * n_free * math.log(max(n, 1.0))


def _aic(n_free: float, n: float) -> float:
    return n_free


PENALTIES: dict[str, tuple[Penalty, bool]] = {
    "bic": (_bic, False),
    "bic-true": (_bic, True),
    "aic": (_aic, False),
    "aic-true": (_aic, True),
}
"""Penalties by name, and whether they count the coefficients of the features too."""


def n_parameters(
    parametrisation: Parametrisation, child_card: int, parent_cards: Sequence[int], n_features: int = 0
) -> int:
    """Return the number of free parameters of a family with softmax regressions on `n_features` columns.

    With 0 features it is what the paper's BIC counts for "split", a free distribution for each configuration,
    and what is left of it for "inputs", where the parents shift the logits one by one.

    Examples
    --------
    >>> n_parameters("split", 3, (2, 4)), n_parameters("inputs", 3, (2, 4))
    (16, 10)
    >>> n_parameters("split", 3, (2, 4), 10), n_parameters("inputs", 3, (2, 4), 10)
    (176, 30)
    """
    if parametrisation == "split":
        return (child_card - 1) * math.prod(parent_cards) * (n_features + 1)
    return (child_card - 1) * (n_features + 1 + sum(card - 1 for card in parent_cards))
