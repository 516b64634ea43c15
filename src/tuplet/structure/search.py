"""Search for a network: the method is chosen by size, and the result has a bound on the best score.

Below `find_dag` are the parts that it combines: the division of variables into groups that can be solved
apart, and dynamic programming over sets of variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final, get_args

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tuplet.core import clock
from tuplet.core.exceptions import InputError, IntractableError
from tuplet.core.typing import UNKNOWN, Floats, Seed
from tuplet.structure.bounded import search_bounded
from tuplet.structure.integer import Solution, has_scip, solve_integer
from tuplet.structure.kernels import best_within, extend_table, flip
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.orders import search_orders
from tuplet.structure.parents import ParentSets, moral_width, score_of
from tuplet.structure.trees import listed_forest

Method: TypeAlias = Literal["auto", "exact", "integer", "order"]
"""Searches by name; see `find_dag`."""

_EASY = 22
"""Variables up to which dynamic programming is the first choice: 32 MB, and less than a second."""

_POSSIBLE = 25
"""Variables up to which it is tried where nothing else gives a proof: 256 MB, and some ten seconds."""

_TRIAL = 10.0
"""Seconds for SCIP where dynamic programming is possible too."""

_QUICK = 100
"""Climbs of the search over orders for a first network."""

_STRENGTH = ("order", "integer", "exact")
"""The methods, weakest first; the method of a network in parts is the weakest one of its parts."""

_PATIENCE = 60.0
"""Seconds for a proof, which may not be found at all, by default."""

_GROUP = 14
"""Variables of a group whose best network is part of a bound: some milliseconds each."""

_LOW = 12
"""Variables whose subsets are handled together: the tables of all children over them stay in the cache."""


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
        otherwise an order search with bounded width gives one, and the best of all remains its bound. With
        more than 25 variables "auto" does not look for the best of all where a quick network is too wide.
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
    began = clock.now()
    rng = np.random.default_rng(random_state)
    patience = _PATIENCE if time_limit is None else time_limit
    scores = scores.prune()
    # With a width to keep, the second half of the time is for keeping it.
    end = began + patience / (1 if max_width is None else 2)
    answer, used = _any_width(scores, method, max_width, end, rng)
    if _is_too_wide(answer.parents, max_width):
        assert max_width is not None
        deadline = began + patience
        narrow, _ = search_bounded(
            scores, max_width, start=answer.parents, random_state=rng, deadline=deadline
        )
        answer, used = Solution(narrow, answer.upper_bound, False), "bounded"
    score = score_of(answer.parents, scores)
    gap = max(0.0, answer.upper_bound - score)
    if answer.proven or gap <= 1e-9 * (1.0 + abs(score)):  # sums in another order differ by rounding
        gap = 0.0
    return Found(answer.parents, score, score + gap, gap, gap == 0.0, used, clock.now() - began)


def _is_too_wide(parents: ParentSets, max_width: int | None) -> bool:
    return max_width is not None and moral_width(parents, max_width) > max_width


def _any_width(
    scores: LocalScores, method: Method, max_width: int | None, deadline: float, rng: np.random.Generator
) -> tuple[Solution, str]:
    """Search without regard to width: a quick network first, then group by group what could be better.

    Where the quick one is too wide, so is in all likelihood the best, and the time that a proof of it would
    take is better spent on narrow ones: up to the size that is solved exactly in any case, "auto" goes on.
    """
    m = scores.n_variables
    again: dict[str, Any] = {"random_state": rng, "deadline": deadline}
    start, reached = search_orders(scores, n_starts=_QUICK, start=listed_forest(scores), **again)
    is_wide = method == "auto" and m > _POSSIBLE and _is_too_wide(start, max_width)
    if not is_wide and 10 * m > _QUICK:
        start, reached = search_orders(scores, n_starts=10 * m - _QUICK, start=start, **again)
    if is_wide or method == "order":
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
    """Solve one group of variables by the given method, or by one that suits its size."""
    answer, used = Solution(start, scores.bound, False), "order"
    if method == "integer" or (method == "auto" and scores.n_variables > _EASY and has_scip()):
        end = deadline
        if method == "auto" and scores.n_variables <= _POSSIBLE:
            now = clock.now()
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


# -- groups of variables -----------------------------------------------------------------------------------


def drop_hopeless(scores: LocalScores, reached: float) -> LocalScores:
    """Drop families that no network better than one of score `reached` can have.

    No child gains anything over its best family, so a family that alone loses more than the known network
    loses in total is in no better network. The known network itself keeps its families.
    """
    best = scores.values[scores.starts[:-1]]
    loss = best[scores.children] - scores.values
    rounding = 1e-9 * (1.0 + np.abs(best).sum())
    return scores.take(loss <= scores.bound - reached + rounding)


def strong_components(scores: LocalScores) -> list[npt.NDArray[np.intp]]:
    """Group the variables so that every cycle of possible edges lies within a group.

    Then each group can be solved apart: parents from other groups never make a cycle.
    """
    families, columns = np.nonzero(scores.parents != UNKNOWN)
    parents = scores.parents[families, columns]
    m = scores.n_variables
    possible = csr_array((np.ones(len(parents)), (parents, scores.children[families])), shape=(m, m))
    n_groups, group = connected_components(possible, directed=True, connection="strong")
    return [np.flatnonzero(group == g) for g in range(n_groups)]


def project(scores: LocalScores, group: npt.NDArray[np.intp]) -> LocalScores:
    """Return the problem of some variables when all others are parents free of charge.

    Variables are numbered as in `group`. Of the families with equal parents inside, the best stands for
    all. The best network of the projection has at least the score that these children have in any network.
    """
    m = scores.n_variables
    place = np.full(m + 1, len(group))  # outside, and the padding at -1, go to the end
    place[group] = np.arange(len(group))
    rows = np.flatnonzero(place[scores.children] < len(group))
    inside = np.sort(place[scores.parents[rows]], axis=1)
    keys = np.column_stack([place[scores.children[rows]], inside])
    _, first = np.unique(keys, axis=0, return_index=True)  # the first is the best, since families are sorted
    parents = np.where(inside == len(group), UNKNOWN, inside)[first]
    return LocalScores._sorted(len(group), keys[first, 0], parents, scores.values[rows[first]])


def lift_parents(
    scores: LocalScores, group: npt.NDArray[np.intp], parents: ParentSets
) -> dict[int, tuple[int, ...]]:
    """Turn a network of a projection into sets of parents of the whole problem, with the same scores."""
    outside = np.zeros((1, scores.masks.shape[1]), dtype=np.uint64)
    for v in np.setdiff1d(np.arange(scores.n_variables), group):
        flip(outside, 0, v)
    lifted = {}
    for child, members in zip(group.tolist(), parents, strict=True):
        allowed = outside.copy()
        for v in members:
            flip(allowed, 0, group[v])
        lifted[child] = scores.members(best_within(child, allowed, scores.starts, scores.masks))
    return lifted


def group_bound(scores: LocalScores, parents: ParentSets) -> float:
    """Bound the score of any network from above: cycles are forbidden inside groups of variables only.

    Parameters
    ----------
    scores : LocalScores
    parents : ParentSets
        A good network; variables that it joins are put into the same group, where their conflicts count.
    """
    total = 0.0
    for group in _groups(parents, _GROUP):
        part = project(scores, np.array(group))
        best = best_network(part)
        total += part.bound if best is None else score_of(best, part)
    return min(total, scores.bound)


def _groups(parents: ParentSets, size: int) -> list[list[int]]:
    """Cut the variables into groups, each grown by the variable with most neighbours in it."""
    near: list[set[int]] = [set(members) for members in parents]
    for child, members in enumerate(parents):
        for v in members:
            near[v].add(child)
    rest, groups = set(range(len(parents))), []
    while rest:
        group: list[int] = []
        while rest and len(group) < size:
            v = max(sorted(rest), key=lambda u: len(near[u].intersection(group)))
            group.append(v)
            rest.remove(v)
        groups.append(group)
    return groups


# -- dynamic programming -----------------------------------------------------------------------------------


def best_network(
    scores: LocalScores, *, max_variables: int = 24, deadline: float | None = None
) -> ParentSets | None:
    """Return a network of the highest score.

    Parameters
    ----------
    scores : LocalScores
    max_variables : int
        The table has 2**m numbers of 8 bytes, and every further variable doubles the time: 8 MB and a
        fraction of a second for 20 variables, 128 MB and some seconds for 24.
    deadline : float, optional
        Value of `tuplet.core.clock.now()` at which to give up and return None.

    Raises
    ------
    IntractableError
        If there are more than `max_variables` variables.

    Notes
    -----
    The last variable of a best network over a set S has the best parents that it can have in the rest of S,
    so best(S) = max over v in S of best(S - v) + local(v, S - v). Instead of keeping local(v, .) for all
    sets, as in the reference, or searching it in the list of families, sets are cut into a high and a low
    part: for one high part, local(v, .) over all low parts is a running maximum over subsets, which costs
    the same however many families there are. Nothing else is stored: the choices are found again from the
    scores.

    References
    ----------
    Silander and Myllymäki (2006). A simple approach for finding the globally optimal Bayesian network
    structure.

    Examples
    --------
    >>> scores = LocalScores.of([{(): -3.0, (1,): -1.0}, {(): -2.0, (0,): -1.5}])
    >>> best_network(scores)
    ((1,), ())
    """
    m = scores.n_variables
    if m > max_variables:
        raise IntractableError(
            f"Exact search over {m} variables needs a table of {2**m:,} sets (max_variables={max_variables})."
            ' Use method="integer" or method="order", or raise max_variables.'
        )
    scores.feasible_order()
    best = _table(scores, deadline)
    return None if best is None else scores.network(_read_back(scores, best))


def _table(scores: LocalScores, deadline: float | None) -> Floats | None:
    """Score of the best network over every set of variables, shape (2**m,); None if time runs out."""
    m = scores.n_variables
    n_low = min(m, _LOW)
    best, within = np.empty(1 << m), np.empty((m, 1 << n_low))
    for high in range(1 << (m - n_low)):  # in Python, so that interrupts and deadlines take effect
        if clock.is_over(deadline):
            return None
        extend_table(high, n_low, best, within, scores.starts, scores.masks, scores.values)
    return best


def _read_back(scores: LocalScores, best: Floats) -> list[int]:
    """Take away last variables, from the whole set down; the same sums as in the table, hence equality."""
    families = [-1] * scores.n_variables
    rest = len(best) - 1
    while rest:
        for v in range(scores.n_variables):
            if rest >> v & 1:
                others = rest ^ (1 << v)
                f = best_within(v, np.array([[others]], dtype=np.uint64), scores.starts, scores.masks)
                if f >= 0 and best[others] + scores.values[f] == best[rest]:
                    families[v], rest = int(f), others
                    break
    return families
