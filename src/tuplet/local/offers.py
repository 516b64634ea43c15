"""The score of a family under several parametrisations, and which of them to take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuplet.local.likelihood import Child
from tuplet.local.penalties import Parametrisation
from tuplet.typing import UNKNOWN, Codes


def evaluate(
    child: Child,
    parents: Codes,
    parent_cards: Sequence[int],
    offers: Sequence[tuple[Parametrisation, float]],
    floor: float,
) -> tuple[float, Parametrisation]:
    """Score of a family, and the parametrisation that has it; minus infinity if it is not above the floor."""
    best, chosen = -np.inf, offers[0][0]
    for kind, penalty in offers:
        goal = max(best, floor)
        if -penalty <= goal:  # no log-likelihood is positive
            continue
        ask = child.split if kind == "split" else child.inputs
        value = ask(parents, parent_cards, goal + penalty) - penalty
        if value > best:
            best, chosen = value, kind
    return best, chosen


def better_parametrisation(child: Child, parents: Codes, parent_cards: Sequence[int]) -> Parametrisation:
    """Return the parametrisation with which rows that were held out have the higher likelihood.

    Penalties cannot tell: (ln N)/2 for each configuration is too little for splitting, since each has all its
    coefficients anew, and as much for each coefficient is too much, since they are shrunk. Splitting must
    be better by ln N, for with few rows it would often win by luck.
    """
    if not len(parent_cards):
        return "split"
    goal = child.inputs(parents, parent_cards) + np.log(max(child.total, 1.0))
    return "split" if child.split(parents, parent_cards, goal) > goal else "inputs"


def information(a: Codes, b: Codes) -> float:
    """Mutual information of two variables, in the rows where both are known, less its expected excess."""
    both = (a != UNKNOWN) & (b != UNKNOWN)
    if not both.any():
        return 0.0
    a, b, k = a[both], b[both], int(b.max()) + 1
    counts = np.bincount(a * k + b, minlength=(int(a.max()) + 1) * k).reshape(-1, k)
    shares, seen = counts / len(a), counts > 0
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    excess = (seen.any(axis=1).sum() - 1) * (seen.any(axis=0).sum() - 1) / (2 * len(a))
    return float(shares[seen] @ np.log(shares[seen] / apart[seen]) - excess)
