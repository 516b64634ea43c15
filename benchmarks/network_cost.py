"""What a Bayesian network over class variables costs: fits and CPU time against variables, parents and rows.

yeast, logistic regression, split parametrisation, BIC, one thread. "sets" are all sets of parents that there
are; those not scored were ruled out by a bound. Proven graphs are the best of all.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py network_cost
"""

from __future__ import annotations

import time
from math import comb

import pandas as pd

from benchmark_sets import load_benchmark
from tuplet import BayesNetClassifier
from tuplet.surface.comparisons import markdown_table

CASES = [
    *[(m, 3, 2417) for m in (4, 6, 8, 10, 12, 14)],
    *[(10, k, 2417) for k in (0, 1, 2, 4)],
    *[(10, 3, n) for n in (300, 600, 1200)],
]


def line(m: int, max_parents: int, n: int) -> dict[str, object]:
    """Fit once; return what it took."""
    data = load_benchmark("yeast", n_labels=m)
    rows = data.X.sample(n, random_state=0).index
    model = BayesNetClassifier(
        max_parents=max_parents, parametrisation="split", criterion="bic", random_state=0, progress=False
    )
    begun = time.process_time()
    model.fit(data.X.loc[rows], data.Y.loc[rows])
    seconds = time.process_time() - begun
    return {
        "class variables": m,
        "max_parents": max_parents,
        "rows": n,
        "sets": m * sum(comb(m - 1, k) for k in range(max_parents + 1)),
        "scored": model.candidates_.n_scored,
        "edges": sum(map(len, model.parents_)),
        "proven": "yes" if model.proven_ else "no",
        "CPU s": round(seconds, 2),
        "ms per scored set": round(1000 * seconds / model.candidates_.n_scored, 2),
    }


def main() -> None:
    """Print the table."""
    table = pd.DataFrame([line(*case) for case in CASES])
    print(table.to_markdown(index=False) if hasattr(table, "to_markdown") else markdown_table(table))


if __name__ == "__main__":
    main()
