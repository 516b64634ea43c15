"""The best network by integer programming: a 0/1 variable per family, cycles cut off where they appear.

The cuts are those of clusters of variables (`cluster_cut`). Needs SCIP, `pip install tuplet[scip]`.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core import clock
from tuplet.core.exceptions import MissingDependencyError
from tuplet.core.typing import UNKNOWN, Floats
from tuplet.structure.kernels import find_clusters
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.parents import ParentSets, find_cycle, score_of

Bools = npt.NDArray[np.bool_]

_SETTINGS = {
    "misc/usesymmetry": 0,  # the program looks symmetric until the cuts are there
    "branching/relpscost/initcand": 5,  # strong branching on thousands of dense columns is slow
    "branching/relpscost/inititer": 20,
    "branching/relpscost/sbiterquot": 0.05,
}

LEAST_EXCESS = 1e-4
"""Least violation for which a cut is added."""

_MAX_CUTS = 40
"""Cuts per round."""


class Solution(NamedTuple):
    """A network, and an upper bound on the score of every network; `proven` if it is known to be the best."""

    parents: ParentSets
    upper_bound: float
    proven: bool


def has_scip() -> bool:
    """Return whether SCIP can be used."""
    return find_spec("pyscipopt") is not None


def solve_integer(scores: LocalScores, start: ParentSets, *, deadline: float | None = None) -> Solution:
    """Search the best network with SCIP, beginning with a good one.

    Parameters
    ----------
    scores : LocalScores
    start : ParentSets
        A network made of listed families.
    deadline : float, optional
        Value of `tuplet.core.clock.now()` at which to stop; an interrupt (Ctrl-C) stops too.

    Notes
    -----
    The program minimises what the children lose against their best families. Every child takes exactly one
    family. Acyclicity is one inequality per set of variables (Jaakkola et al. 2010; Bartlett and Cussens
    2017), far too many to list: a constraint handler adds those that the solution at hand violates.

    Examples
    --------
    >>> scores = LocalScores.of([{(): -3.0, (1,): -1.0}, {(): -2.0, (0,): -1.5}])
    >>> solve_integer(scores, ((), ()))
    Solution(parents=((1,), ()), upper_bound=-3.0, proven=True)
    """
    scip = _pyscipopt()
    best = scores.values[scores.starts[:-1]]
    model = scip.Model()
    model.hideOutput()
    model.setParams(_SETTINGS)
    model.setHeuristics(scip.SCIP_PARAMSETTING.OFF)  # they ignore cycles; the start is good already
    if deadline is not None:
        model.setParam("limits/time", max(1e-3, deadline - clock.now()))
    losses = best[scores.children] - scores.values
    use = [model.addVar(vtype="B", obj=loss) for loss in losses.tolist()]
    for begin, end in zip(scores.starts[:-1], scores.starts[1:], strict=True):
        model.addCons(scip.quicksum(use[begin:end]) == 1)
    model.includeConshdlr(
        _handler_class()(scores, use),
        "acyclic",
        "no directed cycle among the chosen families",
        sepapriority=1,
        enfopriority=-1,  # after integrality
        chckpriority=-1,
        sepafreq=1,
        needscons=False,
    )
    _give_start(model, use, scores, start)
    model.optimize()
    answer = _answer(model, use, scores, start)
    model.freeProb()  # calls `conslock`, which needs the model: not left to the end of the model
    return answer


def cluster_cut(scores: LocalScores, cluster: Bools) -> tuple[npt.NDArray[np.intp], Floats, float]:
    """Return the cut of a set of variables: families, their coefficients, and the least value of the sum.

    In a network some child of the cluster has no parent in it: the families of its children without a parent
    in it sum up to at least one (equation 20 of the paper, with >= for >). As the families of a child sum up
    to one, those *with* a parent inside can be counted instead, negatively; each child does what is shorter.
    """
    within = (cluster[scores.parents] & (scores.parents != UNKNOWN)).any(axis=1)
    families, coefficients, least = [], [], 1.0
    for child in np.flatnonzero(cluster):
        begin, end = scores.starts[child : child + 2]
        inside = begin + np.flatnonzero(within[begin:end])
        if 2 * len(inside) < end - begin:
            families.append(inside)
            coefficients.append(np.full(len(inside), -1.0))
            least -= 1.0
        else:
            families.append(begin + np.flatnonzero(~within[begin:end]))
            coefficients.append(np.ones(len(families[-1])))
    return np.concatenate(families), np.concatenate(coefficients), least


def violated_clusters(scores: LocalScores, weights: Floats) -> list[Bools]:
    """Find sets of variables whose cut is violated by weights (f,) of the families, the most violated first.

    A search by growing sets, without guarantee; a cycle in a choice that is not fractional is always found
    by looking for it (`find_cycle`).
    """
    used = np.flatnonzero(weights > 1e-6)
    clusters, excess = find_clusters(
        scores.n_variables, scores.children[used], scores.parents[used], weights[used], LEAST_EXCESS
    )
    order = np.argsort(-excess, kind="stable")
    found = {clusters[k].tobytes(): clusters[k] for k in order[excess[order] > LEAST_EXCESS]}
    return list(found.values())[:_MAX_CUTS]


def _give_start(model: Any, use: list[Any], scores: LocalScores, start: ParentSets) -> None:
    solution = model.createSol()
    for child, members in enumerate(start):
        model.setSolVal(solution, use[scores.family(child, members)], 1.0)
    model.addSol(solution)


def _answer(model: Any, use: list[Any], scores: LocalScores, start: ParentSets) -> Solution:
    """Read the best solution. The solver works to tolerances, so scores are summed up again."""
    solution = model.getBestSol()
    chosen = [f for f, x in enumerate(use) if model.getSolVal(solution, x) > 0.5]
    found = max([start, scores.network(chosen)], key=lambda parents: score_of(parents, scores))
    score = score_of(found, scores)
    if model.getStatus() == "optimal":
        return Solution(found, score, True)
    return Solution(found, max(score, scores.bound - max(0.0, model.getDualbound())), False)


@cache
def _handler_class() -> Any:
    """Define the constraint handler; its base class exists only where SCIP is installed."""
    scip = _pyscipopt()
    result = scip.SCIP_RESULT

    class Acyclic(scip.Conshdlr):  # type: ignore[misc, name-defined]
        """Forbid directed cycles. The names of the methods are those that SCIP calls."""

        def __init__(self, scores: LocalScores, use: list[Any]) -> None:
            self.scores, self.use = scores, use

        def conslock(self, constraint: Any, locktype: Any, nlockspos: int, nlocksneg: int) -> None:
            for x in self.use:  # a cycle can come from a larger or a smaller value of any variable
                self.model.addVarLocks(x, nlockspos + nlocksneg, nlockspos + nlocksneg)

        def consinitsol(self, constraints: Any) -> None:
            self.columns = [self.model.getTransformedVar(x) for x in self.use]

        def conscheck(self, constraints: Any, solution: Any, *details: Any) -> dict[str, Any]:
            return {"result": result.INFEASIBLE if self._cycle(solution) else result.FEASIBLE}

        def consenfops(self, *details: Any) -> dict[str, Any]:
            return {"result": result.INFEASIBLE if self._cycle(None) else result.FEASIBLE}

        def consenfolp(self, *details: Any) -> dict[str, Any]:
            cycle = self._cycle(None)
            if not cycle:
                return {"result": result.FEASIBLE}
            cluster = np.zeros(self.scores.n_variables, dtype=bool)
            cluster[list(cycle)] = True
            return {"result": result.CUTOFF if self._cut(cluster) else result.SEPARATED}

        def conssepalp(self, *details: Any) -> dict[str, Any]:
            clusters = violated_clusters(self.scores, self._weights(None))
            cutoffs = [self._cut(cluster) for cluster in clusters]
            if any(cutoffs):
                return {"result": result.CUTOFF}
            return {"result": result.SEPARATED if clusters else result.DIDNOTFIND}

        def _weights(self, solution: Any) -> Floats:
            """Values of the variables (f,); None means the current solution of the relaxation."""
            return np.array([self.model.getSolVal(solution, x) for x in self.use])

        def _cycle(self, solution: Any) -> tuple[int, ...]:
            chosen = np.flatnonzero(self._weights(solution) > 0.5)
            parents: list[tuple[int, ...]] = [()] * self.scores.n_variables
            for f in chosen.tolist():
                parents[self.scores.children[f]] = self.scores.members(f)
            return find_cycle(parents)

        def _cut(self, cluster: Any) -> bool:
            """Add the cut of a cluster; return whether nothing is left at this node."""
            families, coefficients, least = cluster_cut(self.scores, cluster)
            row = self.model.createEmptyRowUnspec("cluster", lhs=least, rhs=None, local=False)
            self.model.cacheRowExtensions(row)
            for f, coefficient in zip(families.tolist(), coefficients.tolist(), strict=True):
                self.model.addVarToRow(row, self.columns[f], coefficient)
            self.model.flushRowExtensions(row)
            cutoff = self.model.addCut(row, forcecut=True)
            self.model.releaseRow(row)
            return bool(cutoff)

    return Acyclic


def _pyscipopt() -> Any:
    try:
        import pyscipopt
    except ImportError:
        raise MissingDependencyError(
            "Integer programming needs SCIP; run `pip install tuplet[scip]`, or use another method."
        ) from None
    return pyscipopt
