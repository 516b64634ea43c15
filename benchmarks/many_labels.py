"""Trees and their mixtures with many labels: enron (53) and rcv1subset1 (all 101).

Nine tenths of the rows are learnt from, the others judged (first of ten iterative-stratified folds), one
thread. "edges fitted" are those that the screening of residuals lets through, of all there are; without
screening, enron shows what it costs in log-likelihood. "proven" is the share of test rows whose most probable
combination comes with a certificate.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py many_labels
"""

from __future__ import annotations

import resource
import time

import numpy as np
import pandas as pd

from benchmark_sets import load_benchmark
from tuplet import TreeClassifier, TreeMixtureClassifier
from tuplet.evaluate import StratifiedFolds
from tuplet.evaluate.report import markdown_table
from tuplet.metrics import exact_match

CASES = [
    ("enron", "tree, all edges", TreeClassifier(screening=None)),
    ("enron", "tree", TreeClassifier()),
    ("enron", "mixture of 3", TreeMixtureClassifier(n_trees=3, progress=False)),
    ("rcv1subset1", "tree", TreeClassifier()),
    ("rcv1subset1", "mixture of 3", TreeMixtureClassifier(n_trees=3, progress=False)),
]


def line(name: str, kind: str, model: object) -> dict[str, object]:
    """Fit, predict and judge."""
    data = load_benchmark(name)
    train, test = next(iter(StratifiedFolds(10, random_state=0).split(data.X, data.Y)))
    begun = time.process_time()
    model.fit(data.X.iloc[train], data.Y.iloc[train])
    fitted = time.process_time()
    joint = model.predict_joint(data.X.iloc[test])
    best = joint.distribution.top_k(1)
    predicted = time.process_time()
    gains = getattr(model, "gains_", None)
    m = data.Y.shape[1]
    return {
        "model": f"{name}, {kind}",
        "edges fitted": "" if gains is None else f"{int(np.isfinite(gains).sum())} of {m * (m - 1)}",
        "fit, CPU s": fitted - begun,
        "mode, CPU s": predicted - fitted,
        "proven": best.proven.mean(),
        "log-likelihood": joint.log_prob(data.Y.iloc[test]).mean(),
        "exact match": exact_match(data.Y.iloc[test], joint.mode()),
        "peak memory, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def main() -> None:
    """Print the table."""
    table = pd.DataFrame([line(*case) for case in CASES]).set_index("model")
    texts = table.pop("edges fitted")
    table.index = [f"{name} ({text})" if text else name for name, text in texts.items()]
    print(markdown_table(table, best="none", corner="set, model (edges fitted)"))


if __name__ == "__main__":
    main()
