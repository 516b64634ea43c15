"""Networks whose moral graph has bounded width, so that exact inference stays cheap; for many variables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.core import clock
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Floats, Seed
from tuplet.structure.kernels import grow_bags, wander
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.orders import search_orders
from tuplet.structure.parents import ParentSets, is_acyclic, moral_width, score_of, topological_order
from tuplet.structure.trees import listed_forest

Ints = npt.NDArray[np.int64]

_MOVES = 100
"""Moves of one round; the clock is looked at between rounds."""

_COOLING = 0.01
"""Temperature of the last round, as a share of the first one's."""

_ANNEALED = 0.8
"""Share of the time for moves; the rest is for the exchange of single sets."""

_ORDERS = 20
"""Orders that are tried at the start, where required edges make some of them impossible."""

_SETS = 20
"""Sets of a child that are tried in an exchange, the best first."""


def search_bounded(
    scores: LocalScores,
    max_width: int,
    *,
    n_rounds: int = 300,
    start: ParentSets | None = None,
    random_state: Seed = None,
    deadline: float | None = None,
) -> tuple[ParentSets, float]:
    """Return the best network found whose moral graph has at most a given width, and its score.

    Parameters
    ----------
    scores : LocalScores
    max_width : int
        The largest table of exact inference then has at most max_width + 1 variables.
    n_rounds : int
        Rounds of a hundred moves.
    start : ParentSets, optional
        A network of any width whose order is the first one; by default that of `search_orders`.
    random_state : int, Generator or None
    deadline : float, optional
        Value of `tuplet.core.clock.now()` to end at. A network is returned in any case.

    Notes
    -----
    Given an order, a tree of cliques of the allowed width grows variable by variable; each takes its best
    parents inside one clique (Nie et al. 2014; Scanagatta et al. 2016). Orders are annealed by moving one
    variable at a time. At the end single sets are exchanged for better ones where the moral graph, without
    regard to the tree, allows it. The answer scores no less than the best forest, if that is narrow enough.

    Examples
    --------
    >>> table = {(): -3.0, (0,): -2.5, (1,): -2.4, (0, 1): -1.0}
    >>> scores = LocalScores.of([{(): -1.0}, {(): -1.0}, table])
    >>> search_bounded(scores, 1, random_state=0)
    (((), (), (1,)), -4.4)
    """
    if max_width < 0:
        raise InputError(f"Bounded search: max_width must not be negative, found {max_width}.")
    rng = np.random.default_rng(random_state)
    end = None if deadline is None else deadline - (1 - _ANNEALED) * (deadline - clock.now())
    scores = scores.take((scores.parents != UNKNOWN).sum(axis=1) <= max_width)
    if start is None:
        start, _ = search_orders(scores, random_state=rng, deadline=end)
    families = _anneal(scores, start, max_width, n_rounds, rng, end)
    found = [_exchange(scores, families, max_width, deadline)]
    known = (start, listed_forest(scores))
    found += [network for network in known if network is not None and moral_width(network) <= max_width]
    parents = max(found, key=lambda network: score_of(network, scores))
    return parents, score_of(parents, scores)


def _anneal(
    scores: LocalScores,
    start: ParentSets,
    max_width: int,
    n_rounds: int,
    rng: np.random.Generator,
    end: float | None,
) -> Ints:
    """Return the best families met on a walk over orders that allows smaller and smaller losses."""
    worth = _worth(scores)
    order, bags, chosen = _first(scores, start, max_width, worth, rng)
    best = chosen.copy()
    tables = (scores.starts, scores.masks, scores.values, worth)
    heat = (scores.bound - scores.values[chosen].sum()) / scores.n_variables
    began = clock.now()
    for k in range(n_rounds):
        done = k / n_rounds
        if end is not None:
            done = max(done, (clock.now() - began) / max(1e-9, end - began))
        if done >= 1.0:
            break
        moves, slack = _moves(scores.n_variables, rng)
        wander(moves, heat * _COOLING**done * slack, max_width, *tables, order, bags, chosen, best)
    return best


def _moves(m: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Random moves (from, to), and the losses that they may cause, in units of the temperature."""
    if m < 2:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0)
    places = rng.integers(m, size=_MOVES)
    targets = (places + rng.integers(1, m, size=_MOVES)) % m
    return np.column_stack([places, targets]), rng.exponential(size=_MOVES)


def _first(
    scores: LocalScores, start: ParentSets, max_width: int, worth: Floats, rng: np.random.Generator
) -> tuple[Ints, npt.NDArray[np.uint64], Ints]:
    """Grow a first network: along the order of the given one, or, where that fails, along random ones."""
    order = np.array(topological_order(start), dtype=np.int64)
    for _ in range(_ORDERS):
        bags = np.zeros((len(order), scores.masks.shape[1]), dtype=np.uint64)
        chosen = np.zeros(len(order), dtype=np.int64)
        if grow_bags(0, order, max_width, scores.starts, scores.masks, worth, bags, chosen):
            return order, bags, chosen
        order = scores.feasible_order(rng)
    raise InputError(
        f"Bounded search: no network of width {max_width} with the required edges was found; raise max_width."
    )


def _worth(scores: LocalScores) -> Floats:
    """What every child loses when it may not have a parent, shape (m children, m parents)."""
    begins = scores.starts[:-1]
    best = scores.values[begins]
    least = np.minimum.reduceat(scores.values, begins)
    worth = np.empty((scores.n_variables, scores.n_variables))
    for v in range(scores.n_variables):
        without = np.where((scores.parents == v).any(axis=1), -np.inf, scores.values)
        worth[:, v] = best - np.maximum(np.maximum.reduceat(without, begins), least)
    return worth


def _exchange(scores: LocalScores, families: Ints, max_width: int, deadline: float | None) -> ParentSets:
    """Give children better sets as long as the network stays acyclic and the moral graph narrow."""
    chosen = families.copy()
    still = child = 0
    while still < len(chosen) and not clock.is_over(deadline):
        begin = scores.starts[child]
        for f in range(begin, min(begin + _SETS, chosen[child])):
            trial = chosen.copy()
            trial[child] = f
            parents = scores.network(trial)
            if is_acyclic(parents) and moral_width(parents, max_width) <= max_width:
                chosen, still = trial, -1
                break
        still += 1
        child = (child + 1) % len(chosen)
    return scores.network(chosen)
