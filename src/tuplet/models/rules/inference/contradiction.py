"""Which rules contradict each other, where a row has no possible outcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuplet.core.typing import Floats
from tuplet.models.rules.inference.factor import RuleFactor
from tuplet.models.rules.inference.maxima import best_outcomes

_NODES = 2**20
"""Values that are tried before a rule counts as one that cannot be spared."""


def contradiction(
    cards: tuple[int, ...], log_beliefs: Sequence[Floats], factors: Sequence[RuleFactor], row: int, n_bad: int
) -> str:
    """Say which rules contradict each other given the log-beliefs (1, k_j) of a row."""
    rules = culprits(cards, log_beliefs, factors)
    more = f" ({n_bad - 1} more rows have none either)" if n_bad > 1 else ""
    if not rules:
        return (
            f"Row {row} has no possible outcome{more}: a class variable has no category of positive belief."
        )
    excluded = any(np.isneginf(belief).any() for belief in log_beliefs)
    given = " given the categories that the beliefs exclude" if excluded else ""
    said = "these rules contradict each other" if len(rules) > 1 else "this rule cannot be satisfied"
    return (
        f"Row {row} has no possible outcome{more}: {said}{given}:{rule_lines(factors, rules)}\n"
        "Give one of them a probability between 0 and 1, or drop it."
    )


def rule_lines(factors: Sequence[RuleFactor], rules: Sequence[int]) -> str:
    """Return some of the rules, by position, for a message: a line each."""
    return "".join(f"\n  - {factors[k].text} (p = {factors[k].own_p:g})" for k in rules)


def culprits(
    cards: tuple[int, ...], log_beliefs: Sequence[Floats], factors: Sequence[RuleFactor]
) -> list[int]:
    """Return positions of rules that leave one row (1, k_j) no outcome, none of which could be spared.

    Rule after rule is left out; those without which there would be an outcome stay.
    """
    supports = [np.where(np.isneginf(belief), -np.inf, 0.0) for belief in log_beliefs]
    kept = [k for k, factor in enumerate(factors) if factor.p in (0.0, 1.0)]
    if any(np.isneginf(support).all() for support in supports):
        return []
    for k in list(kept):
        rest = [other for other in kept if other != k]
        if _impossible(cards, supports, [factors[other] for other in rest]):
            kept = rest
    return kept


def _impossible(cards: tuple[int, ...], supports: Sequence[Floats], factors: Sequence[RuleFactor]) -> bool:
    _, log_weight, proven = best_outcomes(cards, tuple(factors), supports, 1, _NODES)
    return bool(np.isneginf(log_weight[0, 0]) and proven[0])
