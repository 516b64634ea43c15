"""One door to all searches for a network: which one fits, what it found, and how good that is for certain."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, TypeAlias, final, get_args

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Seed
from tuplet.structure.bounded import search_bounded
from tuplet.structure.decompose import drop_hopeless, group_bound, lift_parents, project, strong_components
from tuplet.structure.exact import best_network
from tuplet.structure.integer import Solution, has_scip, solve_integer
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.orders import search_orders
from tuplet.structure.parents import ParentSets, moral_width, score_of

Method: TypeAlias = Literal["auto", "exact", "integer", "order"]
"""Searches by name; see `find_dag`."""

_EASY = 22
"""Variables up to which dynamic programming is the first choice: 32 MB, and less than a second."""

_POSSIBLE = 25
"""Variables up to which it is tried where nothing else gives a proof: 256 MB, and some ten seconds."""

_TRIAL = 10.0
"""Seconds for SCIP where dynamic programming is possible too."""

_STRENGTH = ("order", "integer", "exact")
"""The methods; a network in parts is said to come from the first of those that its parts come from."""

_PATIENCE = 60.0
"""Seconds for a proof that may never come, unless told otherwise."""


@final
@dataclass(frozen=True)
class Found:
    """A network and what is known about it.

    Attributes
    ----------
    parents : ParentSets
    score : float
    upper_bound : float
        No network made of the listed candidates (and of the allowed width) scores more.
    gap : float
        `upper_bound - score`, in units of the score (nats for log-likelihoods).
    proven : bool
        Whether no network is better: the gap is zero, up to the solver's tolerance.
    method : str
        What found or proved it: "exact", "integer", "order" or "bounded".
    seconds : float
        Wall time.

    Examples
    --------
    >>> found = find_dag(LocalScores.of([{(): -3.0, (1,): -1.0}, {(): -2.0, (0,): -1.5}]))
    >>> found.parents, found.score, found.gap, found.proven, found.method
    (((1,), ()), -3.0, 0.0, True, 'exact')
    """

    parents: ParentSets
    score: float
    upper_bound: float
    gap: float
    proven: bool
    method: str
    seconds: float


def find_dag(
    scores: LocalScores,
    *,
    method: Method = "auto",
    time_limit: float | None = None,
    max_width: int | None = None,
    random_state: Seed = None,
) -> Found:
    """Search the network with the highest score.

    Parameters
    ----------
    scores : LocalScores
        Candidates, as `candidate_parent_sets` returns them; required and forbidden edges are given there.
    method : {"auto", "exact", "integer", "order"}
        "exact" is dynamic programming, "integer" SCIP, "order" hill climbing over orders, which seldom
        proves anything but comes with a bound. "auto" takes dynamic programming for up to 22 variables, SCIP
        beyond where it is installed, and otherwise orders. Variables that cannot be on a common cycle are
        searched apart, so what counts is the largest group of those that can.
    time_limit : float, optional
        Seconds after which the best network so far is returned. By default a proof gets a minute.
    max_width : int, optional
        Largest width of the moral graph. If the best network of all is narrow enough it is the answer;
        otherwise an order search with bounded width gives one, and the best of all remains its bound.
    random_state : int, Generator or None
        Of the searches over orders.

    Returns
    -------
    Found

    Examples
    --------
    >>> scores = LocalScores.of([{(): -3.0, (1,): -1.0}, {(): -2.0, (0,): -1.5}])
    >>> find_dag(scores, method="order", random_state=0).parents
    ((1,), ())
    """
    if method not in get_args(Method):
        raise InputError(f"find_dag: method must be one of {', '.join(get_args(Method))}; found {method!r}.")
    began = time.monotonic()
    rng = np.random.default_rng(random_state)
    patience = _PATIENCE if time_limit is None else time_limit
    scores = scores.prune()
    # With a width to keep, the second half of the time is for keeping it.
    answer, used = _any_width(scores, method, began + patience / (1 if max_width is None else 2), rng)
    if max_width is not None and moral_width(answer.parents) > max_width:
        deadline = began + patience
        narrow, _ = search_bounded(
            scores, max_width, start=answer.parents, random_state=rng, deadline=deadline
        )
        answer, used = Solution(narrow, answer.upper_bound, False), "bounded"
    score = score_of(answer.parents, scores)
    gap = max(0.0, answer.upper_bound - score)
    if answer.proven or gap <= 1e-9 * (1.0 + abs(score)):  # sums in another order differ by rounding
        gap = 0.0
    return Found(answer.parents, score, score + gap, gap, gap == 0.0, used, time.monotonic() - began)


def _any_width(
    scores: LocalScores, method: Method, deadline: float, rng: np.random.Generator
) -> tuple[Solution, str]:
    """Search without regard to width: a quick network first, then group by group what could be better."""
    n_starts = max(100, 10 * scores.n_variables)
    start, reached = search_orders(scores, n_starts=n_starts, random_state=rng, deadline=deadline)
    if method == "order":
        return Solution(start, group_bound(scores, start), False), "order"
    rest = drop_hopeless(scores, reached)
    parents, upper, proven, used = dict(enumerate(start)), 0.0, True, _STRENGTH[-1]
    for group in sorted(strong_components(rest), key=len):
        part = project(rest, group)
        answer, how = _solve(part, _within(start, group), method, deadline)
        parents |= lift_parents(rest, group, answer.parents)
        upper += answer.upper_bound
        proven &= answer.proven
        used = min(used, how, key=_STRENGTH.index)
    found = tuple(parents[v] for v in range(scores.n_variables))
    return Solution(found, upper, proven), used


def _within(parents: ParentSets, group: npt.NDArray[np.intp]) -> ParentSets:
    """Return the edges inside a group, with its variables numbered from 0."""
    place = {v: k for k, v in enumerate(group.tolist())}
    return tuple(tuple(place[p] for p in parents[v] if p in place) for v in place)


def _solve(scores: LocalScores, start: ParentSets, method: Method, deadline: float) -> tuple[Solution, str]:
    """Solve one group of variables by the method asked for, or by what suits its size."""
    answer, used = Solution(start, scores.bound, False), "order"
    if method == "integer" or (method == "auto" and scores.n_variables > _EASY and has_scip()):
        end = deadline
        if method == "auto" and scores.n_variables <= _POSSIBLE:
            now = time.monotonic()
            end = now + min(_TRIAL, (deadline - now) / 2)
        answer = solve_integer(scores, start, deadline=end)
        used = "integer"
    if not answer.proven and (method == "exact" or (method == "auto" and scores.n_variables <= _POSSIBLE)):
        best = best_network(scores, max_variables=_POSSIBLE, deadline=deadline)
        if best is not None:
            answer, used = Solution(best, score_of(best, scores), True), "exact"
    if answer.proven:
        return answer, used
    upper = min(answer.upper_bound, group_bound(scores, answer.parents))
    return answer._replace(upper_bound=upper), used
