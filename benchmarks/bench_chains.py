"""Ten chains on yeast: the exact log-likelihood of their mixture against their own greedy prediction.

CPU time, one thread, the standard split of yeast (14 labels, 103 features, 917 test rows). scikit-learn's ten
chains with the same base classifier stand beside it; they cannot give a joint probability at all.

    TUPLET_DATA=folder/of/sets python benchmarks/bench_chains.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys

from sklearn.multioutput import ClassifierChain

from benchmark_sets import load_benchmark
from timing import cpu
from tuplet import ChainClassifier
from tuplet.local.logistic import default_estimator

N_CHAINS = 10


def main() -> None:
    """Print the table."""
    if "TUPLET_DATA" not in os.environ:
        sys.exit("bench_chains: set TUPLET_DATA to the folder with yeast.parquet and manifest.json.")
    X, Y, test, truth = (frame.to_numpy() for frame in load_benchmark("yeast").split())
    exact = ChainClassifier(n_chains=N_CHAINS, random_state=0).fit(X, Y)
    greedy = ChainClassifier(n_chains=N_CHAINS, random_state=0, inference="greedy").fit(X, Y)
    peers = [
        ClassifierChain(default_estimator(), order=[int(v) for v in order]).fit(X, Y)
        for order in exact.orders_
    ]
    own = cpu(lambda: greedy.predict(test))
    rows = [
        ("Tuplet, ten chains, greedy predict (their own)", own),
        ("Tuplet, exact mixture log-likelihood", cpu(lambda: exact.predict_joint(test).log_prob(truth))),
        ("Tuplet, exact mixture marginals", cpu(lambda: exact.predict_proba(test), 1)),
        ("scikit-learn, ten chains, predict", cpu(lambda: [peer.predict(test) for peer in peers])),
    ]
    likelihood = exact.predict_joint(test).log_prob(truth).mean()
    print(
        f"yeast, {len(test)} test rows, {truth.shape[1]} labels; mean joint log-likelihood {likelihood:.3f}"
    )
    print(f"{'':50s} {'CPU s':>8s} {'of own predict':>15s}")
    for name, seconds in rows:
        print(f"{name:50s} {seconds:8.3f} {seconds / own:14.2f}x")


if __name__ == "__main__":
    main()
