"""Search for the best network from local scores: CPU time, one thread, one run.

Scores are BIC scores of data sampled from random networks over variables with 2 or 3 values (1,000 rows);
"weak" has a fifth of the penalty, so that many more sets of parents survive pruning and proofs are hard. The
optimum is proven by dynamic programming or by SCIP with cluster cuts; the rest comes with its gap, in nats,
to the best bound known. Branchings are compared with networkx.

    python benchmarks/bench_structure.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Iterator, Sequence

import networkx
import numpy as np

from timing import cpu
from tuplet.structure import (
    Family,
    LocalScores,
    best_forest,
    best_network,
    candidate_parent_sets,
    edges,
    find_dag,
    moral_width,
    score_of,
    search_bounded,
    search_orders,
    solve_integer,
)

N = 1000
SECONDS = 10.0  # for a proof by SCIP


def sample(m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Codes (n, m) from a random network with up to 3 parents each, and the numbers of values (m,)."""
    cards, order = rng.integers(2, 4, size=m), rng.permutation(m)
    codes = np.zeros((N, m), dtype=np.intp)
    for place, v in enumerate(order):
        parents = rng.choice(order[:place], min(place, int(rng.integers(4))), replace=False) if place else []
        block = np.zeros(N, dtype=np.intp)
        for p in parents:
            block = block * cards[p] + codes[:, p]
        tables = rng.dirichlet(np.ones(cards[v]), size=block.max() + 1)
        codes[:, v] = (rng.random(N)[:, None] > tables[block].cumsum(axis=1)[:, :-1]).sum(axis=1)
    return codes, cards


class Bic:
    """Log-likelihood of counts minus a share of the BIC penalty."""

    def __init__(self, m: int, share: float) -> None:
        self.codes, self.cards = sample(m, np.random.default_rng(m))
        self.rate = share * 0.5 * np.log(N)

    def penalty(self, child: int, parents: tuple[int, ...]) -> float:
        """The penalty grows with the set."""
        return float(self.rate * np.prod(self.cards[list(parents)]) * (self.cards[child] - 1))

    def bound(self, child: int, parents: tuple[int, ...]) -> float:
        """No log-likelihood is positive."""
        return -self.penalty(child, parents)

    def scores(self, families: Sequence[Family]) -> Iterator[float]:
        """Score a level of sets."""
        for child, parents, _ in families:
            block = np.zeros(N, dtype=np.intp)
            for p in parents:
                block = block * self.cards[p] + self.codes[:, p]
            counts = np.bincount(block * self.cards[child] + self.codes[:, child])
            counts = np.append(counts, np.zeros(-len(counts) % self.cards[child], dtype=np.intp))
            rows = counts.reshape(-1, self.cards[child])
            log_likelihood = _entropy(rows) - _entropy(rows.sum(axis=1))
            yield log_likelihood - self.penalty(child, parents)


def _entropy(counts: np.ndarray) -> float:
    return float((counts * np.log(np.maximum(counts, 1))).sum())


def report(what: str, seconds: float, score: float, upper: float, width: int) -> None:
    """Print one line."""
    gap = max(0.0, upper - score)
    print(f"    {what:44s} {seconds:9.4f} {score:14.3f} {gap:10.3f} {width:6d}", flush=True)


def compare(m: int, max_parents: int, share: float, *, exact: bool, integer: bool) -> None:
    """Run the searches that fit a problem."""
    problem = Bic(m, share)
    began = time.process_time()
    found = candidate_parent_sets(m, max_parents, problem.scores, bound=problem.bound)
    seconds = time.process_time() - began
    kind = "BIC" if share == 1 else "weak"
    scores = found.scores
    print(f"  {m} variables, {kind}: {found.n_scored:,} sets scored in {seconds:.1f} s, {len(scores):,} kept")
    parents, score = search_orders(scores, random_state=0)
    upper = find_dag(scores, method="order", random_state=0).upper_bound
    if exact:
        best = best_network(scores, max_variables=m)
        upper = score_of(best, scores)
        report(
            "dynamic programming",
            cpu(lambda: best_network(scores, max_variables=m), 3),
            upper,
            upper,
            moral_width(best),
        )
    if integer:
        began = time.process_time()
        answer = solve_integer(scores, parents, deadline=time.monotonic() + SECONDS)
        seconds = time.process_time() - began
        upper = min(upper, answer.upper_bound)
        name = "SCIP, proven" if answer.proven else f"SCIP, stopped after {SECONDS:.0f} s"
        report(
            name, seconds, score_of(answer.parents, scores), answer.upper_bound, moral_width(answer.parents)
        )
    report(
        "orders, 100 climbs",
        cpu(lambda: search_orders(scores, random_state=0), 2),
        score,
        upper,
        moral_width(parents),
    )
    for width in (3, 5):
        narrow, reached = search_bounded(scores, width, start=parents, random_state=0)
        seconds = cpu(lambda width=width: search_bounded(scores, width, start=parents, random_state=0), 1)
        report(f"orders of width {width}", seconds, reached, upper, moral_width(narrow))


def branchings() -> None:
    """Time branchings against networkx."""
    rng = np.random.default_rng(0)
    for m in (20, 60, 200):
        gains = rng.normal(0.5, 1.0, size=(m, m))
        ours = cpu(lambda gains=gains: best_forest(gains), 3)
        print(f"  branching of {m:3d} variables {ours:9.4f} s", end="")
        if m < 200:
            graph = networkx.DiGraph()
            graph.add_weighted_edges_from((j, i, gains[j, i]) for j in range(m) for i in range(m) if i != j)
            theirs = cpu(lambda graph=graph: networkx.maximum_branching(graph), 1)
            weight = networkx.maximum_branching(graph).size(weight="weight")
            assert np.isclose(weight, sum(gains[edge] for edge in edges(best_forest(gains))))
            print(f", networkx {theirs:.4f} s: {theirs / ours:.0f}x", end="")
        print()


def warm_up() -> None:
    """Compile everything once."""
    scores = LocalScores.of([{(): 0.0, (1,): 1.0}, {(): 0.0, (0,): 2.0}])
    for method in ("exact", "integer", "order"):
        find_dag(scores, method=method)
    search_bounded(scores, 1)


def main() -> None:
    """Print the table."""
    began = time.process_time()
    warm_up()
    print(f"compiling, or loading what was compiled: {time.process_time() - began:.1f} s")
    print(f"    {'':44s} {'CPU s':>9s} {'score':>14s} {'gap':>10s} {'width':>6s}")
    compare(16, 3, 1.0, exact=True, integer=True)
    compare(16, 3, 0.2, exact=True, integer=False)
    compare(20, 3, 1.0, exact=True, integer=True)
    compare(20, 3, 0.2, exact=True, integer=False)
    compare(25, 3, 1.0, exact=False, integer=True)
    compare(30, 3, 1.0, exact=False, integer=True)
    compare(60, 2, 1.0, exact=False, integer=True)
    branchings()


if __name__ == "__main__":
    main()
