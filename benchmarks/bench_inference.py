"""Batched inference against pyAgrum's Shafer-Shenoy, row by row: CPU time, one thread, one run.

A Bayesian network over 74 binary variables whose moral graph has width 5, and for every row a likelihood
of every variable (which a classifier adds to a label network). Both libraries answer the same queries on the
same numbers, and the answers are compared before anything is timed.

    python benchmarks/bench_inference.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools
from collections.abc import Callable

import numpy as np
import pyagrum as gum

from timing import cpu
from tuplet.joint import FactorGraph
from tuplet.joint.inference import Factor, make_plan

M, WIDTH, N, N_PEER = 74, 5, 1000, 40


def random_network(rng: np.random.Generator) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Conditional tables (parents..., child) over a random partial 5-tree."""
    cliques = [list(range(WIDTH))]
    tables = []
    for child in range(M):
        if child < WIDTH:
            parents = list(range(child))[-3:]
        else:
            base = cliques[int(rng.integers(max(0, len(cliques) - 6), len(cliques)))]
            parents = sorted(int(p) for p in rng.choice(base, 4, replace=False))
            cliques.append([*base[1:], child] if rng.random() < 0.7 else [*base[:-1], child])
        tables.append(((*parents, child), rng.dirichlet(np.ones(2), size=(2,) * len(parents))))
    return tables


def peer_network(tables: list[tuple[tuple[int, ...], np.ndarray]]) -> gum.BayesNet:
    """Build the same network for pyAgrum."""
    network = gum.BayesNet()
    for v in range(M):
        network.add(gum.LabelizedVariable(f"v{v}", "", 2))
    for (*parents, child), table in tables:
        for parent in parents:
            network.addArc(f"v{parent}", f"v{child}")
        for values in itertools.product(range(2), repeat=len(parents)):
            where = {f"v{p}": x for p, x in zip(parents, values, strict=True)}
            network.cpt(f"v{child}")[where] = table[values].tolist()
    return network


def peer_marginals(engine: gum.ShaferShenoyInference, likelihood: np.ndarray) -> np.ndarray:
    """Marginals of all variables for one row's likelihoods (m, 2), as pyAgrum's users compute them."""
    engine.setEvidence({f"v{v}": row.tolist() for v, row in enumerate(likelihood)})
    engine.makeInference()
    return np.array([engine.posterior(v).toarray() for v in range(M)])


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    tables = random_network(rng)
    likelihoods = rng.random((N, M, 2)) + 0.05
    likelihoods /= likelihoods.max(axis=2, keepdims=True)
    network = [Factor(scope, np.log(table)[..., None]) for scope, table in tables]

    def ours(rows: slice) -> FactorGraph:
        log = np.log(likelihoods[rows])
        return FactorGraph((2,) * M, [*network, *(Factor((v,), log[:, v].T) for v in range(M))], len(log))

    peer = gum.ShaferShenoyInference(peer_network(tables))
    joint = ours(slice(0, 5))
    found = np.stack(joint.marginals(), axis=1)
    difference = max(np.abs(found[i] - peer_marginals(peer, likelihoods[i])).max() for i in range(5))
    plan = make_plan(joint.cards, joint._problem.scopes)
    print(f"{M} binary variables, width {plan.width}, {sum(plan.sizes):,} cells a row;", end=" ")
    print(f"largest difference of marginals {difference:.1e}")

    peer_time = cpu(lambda: [peer_marginals(peer, likelihoods[i]) for i in range(N_PEER)], 3) / N_PEER
    rows = [("pyAgrum Shafer-Shenoy, marginals, a row at a time", peer_time)]
    queries: list[tuple[str, Callable[[FactorGraph], object]]] = [
        ("marginals", lambda j: j.marginals()),
        ("mode with its probability", lambda j: j.mode()),
        ("marginals and mode", lambda j: (j.marginals(), j.mode())),
        ("top 5 with probabilities", lambda j: j.top_k(5)),
    ]
    for name, query in queries:
        batch = cpu(lambda query=query: query(ours(slice(0, N))), 5) / N
        rows.append((f"Tuplet, {name}, batch of {N}", batch))
    for name, query in queries[:2]:
        single = cpu(lambda query=query: [query(ours(slice(i, i + 1))) for i in range(N_PEER)], 3) / N_PEER
        rows.append((f"Tuplet, {name}, a row at a time", single))
    print(f"{'CPU time of one row':52s} {'ms':>8s} {'times pyAgrum':>14s}")
    for name, seconds in rows:
        print(f"{name:52s} {1e3 * seconds:8.4f} {peer_time / seconds:13.1f}x")


if __name__ == "__main__":
    main()
