"""Search over orders of the variables: fast, anytime, without proof."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.core import clock
from tuplet.core.typing import Seed
from tuplet.structure.kernels import climb
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.parents import ParentSets, score_of, topological_order

Ints = npt.NDArray[np.int64]

_KICK = 4
"""One variable in so many is moved at random before the best order so far is climbed again."""


def search_orders(
    scores: LocalScores,
    *,
    n_starts: int = 100,
    start: ParentSets | None = None,
    random_state: Seed = None,
    deadline: float | None = None,
) -> tuple[ParentSets, float]:
    """Return the best network found by hill climbing over orders, and its score.

    For a given order every child takes its best set among its predecessors. A step moves one variable to
    its best place. Climbs start from random orders and, in turn, from the best order so far with some
    variables moved at random.

    Parameters
    ----------
    scores : LocalScores
    n_starts : int
        Number of climbs.
    start : ParentSets, optional
        A network whose order is the first one; the answer scores no less.
    random_state : int, Generator or None
    deadline : float, optional
        Value of `tuplet.core.clock.now()` after which no further climb starts. The first is always made.

    Examples
    --------
    >>> scores = LocalScores.of([{(): -3.0, (1,): -1.0}, {(): -2.0, (0,): -1.5}])
    >>> search_orders(scores, random_state=0)
    (((1,), ()), -3.0)
    """
    rng = np.random.default_rng(random_state)
    least = 1e-12 * (1.0 + np.abs(scores.values[scores.starts[:-1]]).sum())
    best_order = scores.feasible_order() if start is None else np.array(topological_order(start), np.int64)
    best_families, best_score = np.empty(0, np.int64), -np.inf
    for k in range(max(1, n_starts)):
        if k and clock.is_over(deadline):
            break
        order = _start(k, best_order, scores, rng)
        families = np.empty(scores.n_variables, dtype=np.int64)
        if not climb(order, scores.starts, scores.masks, scores.values, families, least):
            order = scores.feasible_order(rng)
            climb(order, scores.starts, scores.masks, scores.values, families, least)
        if (score := float(scores.values[families].sum())) > best_score:
            best_order, best_families, best_score = order, families, score
    parents = scores.network(best_families)
    return parents, score_of(parents, scores)


def _start(k: int, best_order: Ints, scores: LocalScores, rng: np.random.Generator) -> Ints:
    if k == 0:
        return best_order.copy()
    if k % 2:
        return rng.permutation(scores.n_variables)
    return _kicked(best_order, rng)


def _kicked(order: Ints, rng: np.random.Generator) -> Ints:
    m = len(order)
    moved = rng.choice(m, size=max(1, m // _KICK), replace=False)
    rest = [v for v in order.tolist() if v not in set(moved.tolist())]
    for v in moved.tolist():
        rest.insert(int(rng.integers(len(rest) + 1)), v)
    return np.array(rest, dtype=np.int64)
