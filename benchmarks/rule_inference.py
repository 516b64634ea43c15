"""The approximation study of paper 004 (section 4.1): exact inference beside loopy belief propagation.

Ten models of each of three sizes and 100 rows of each, drawn as the paper does: labels with two to four
categories, noisy-or rules of two to five literals with inhibitions 1 - sqrt(U), p = 1, beliefs from a flat
Dirichlet. Times are CPU seconds of one thread for batches of 100 rows, without the time to plan a model,
which is told apart: a plan is made once. The authors' figures come from their R code, on their machine.

    python benchmarks/run.py rule_inference
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tuplet.core.exceptions import ConvergenceWarning
from tuplet.joint import FactorGraph
from tuplet.joint.bucket_search import best_outcomes
from tuplet.joint.inference import BeliefPropagation, RuleFactor
from tuplet.models.rules import rule_graph

SIZES = {"small": 5, "medium": 10, "large": 30}
REPLICATES, ROWS = 10, 100
AUTHORS = {
    "correlation of loopy and exact marginals": (0.99494, 0.99557, 0.99506),
    "rows that loopy propagation did not settle, %": (4.5, 9.4, 27.0),
    "largest error of a loopy marginal": ("", "", "0.974 over all sizes"),
    "loopy MPE = exact MPE, median %": (96.5, 94.0, ""),
    "argmax of marginals = exact MPE, median %": (68.0, 42.0, ""),
    "exact marginals, rows/s": (1000 / 18.7, 1000 / 26.9, 1000 / 1216),
    "exact MPE with its probability, rows/s": (1000 / 67, 1000 / 19819, "out of memory"),
}


def draw(size: int, seed: int) -> FactorGraph:
    """Draw a model and its rows."""
    rng = np.random.default_rng([size, seed])
    cards = tuple(int(card) for card in rng.integers(2, 5, size))
    literals = [(j, c) for j, card in enumerate(cards) for c in range(card)]
    factors = []
    for _ in range(size):
        q: dict[int, np.ndarray] = {}
        for i in rng.choice(len(literals), rng.integers(2, 6), replace=False):
            j, c = literals[i]
            q.setdefault(j, np.ones(cards[j]))[c] = 1.0 - np.sqrt(rng.random())
        factors.append(RuleFactor(tuple(sorted(q)), 1.0, q=tuple(q[j] for j in sorted(q))))
    beliefs = [np.log(rng.dirichlet(np.ones(card), ROWS)) for card in cards]
    return rule_graph(beliefs, factors)


def timed(query: Callable[[], Any]) -> tuple[Any, float]:
    """Return an answer and the CPU seconds that it took."""
    begun = time.process_time()
    answer = query()
    return answer, time.process_time() - begun


def equal(codes: np.ndarray, best: np.ndarray) -> float:
    """Share of rows with the same outcome, in percent."""
    return 100.0 * float((codes == best).all(axis=1).mean())


def measure(size: int, seed: int) -> dict[str, Any]:
    """Measure one model."""
    joint = draw(size, seed)
    _, planning = timed(lambda: (joint[:1].marginals(), joint[:1].mode()))  # plans and compiles
    marginals, marginal_time = timed(lambda: np.hstack(joint.marginals()))
    mode, mode_time = timed(joint.mode)  # the sum of all weights is known from the marginals
    fresh = replace(joint)
    _, whole_time = timed(fresh.mode)
    engine = BeliefPropagation()
    problem = joint._problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        (loopy, _), loopy_time = timed(lambda: engine.marginals(problem))
        (decoded, _, _), decode_time = timed(lambda: engine.top_k(problem, 1))
    quick = best_outcomes(problem, 1, 10 * size).codes[:, 0]
    by_label = np.column_stack([p.argmax(axis=1) for p in joint.marginals()])
    return {
        "cells": joint.engine.n_cells(problem),
        "planning": planning,
        "correlation": np.corrcoef(loopy.ravel(), marginals.ravel())[0, 1],
        "unsettled": 100.0 * float((~engine.convergence(problem).converged).mean()),
        "error": np.abs(loopy - marginals).max(),
        "loopy MPE": equal(decoded[:, 0], mode.codes),
        "hasty MPE": equal(quick, mode.codes),
        "by label": equal(by_label, mode.codes),
        "proven": 100.0 * float(mode.proven.mean()),
        "marginals/s": ROWS / marginal_time,
        "MPE/s": ROWS / mode_time,
        "MPE with p/s": ROWS / whole_time,
        "loopy/s": ROWS / loopy_time,
        "loopy MPE/s": ROWS / decode_time,
    }


def summary(table: pd.DataFrame) -> dict[str, Any]:
    """Summarise the models of one size."""
    return {
        "correlation of loopy and exact marginals": table["correlation"].mean(),
        "rows that loopy propagation did not settle, %": table["unsettled"].mean(),
        "largest error of a loopy marginal": table["error"].max(),
        "loopy MPE = exact MPE, median %": table["loopy MPE"].median(),
        "loopy MPE = exact MPE, all rows, %": table["loopy MPE"].mean(),
        "search of 10 values a label = exact MPE, all rows, %": table["hasty MPE"].mean(),
        "argmax of marginals = exact MPE, median %": table["by label"].median(),
        "MPE proven, %": table["proven"].mean(),
        "exact marginals, rows/s": table["marginals/s"].median(),
        "exact marginals, rows/s, slowest model": table["marginals/s"].min(),
        "exact MPE with its probability, rows/s": table["MPE with p/s"].median(),
        "exact MPE with its probability, rows/s, slowest model": table["MPE with p/s"].min(),
        "search for the MPE alone, rows/s": table["MPE/s"].median(),
        "search for the MPE alone, rows/s, slowest model": table["MPE/s"].min(),
        "loopy marginals, rows/s": table["loopy/s"].median(),
        "loopy MPE, rows/s": table["loopy MPE/s"].median(),
        "cells of exact sums, median": table["cells"].median(),
        "cells of exact sums, largest": table["cells"].max(),
        "CPU s to plan a model, median": table["planning"].median(),
    }


def show(value: Any) -> str:
    """Return a number with as many digits as it deserves."""
    if isinstance(value, str):
        return value
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if value >= 1 or value < 0.1 else f"{value:.5f}"


def main() -> None:
    """Print the table."""
    draw(5, 99).mode()  # compile outside the clock
    columns = {}
    for name, size in SIZES.items():
        lines = [measure(size, seed) for seed in range(REPLICATES)]
        columns[name] = summary(pd.DataFrame(lines))
    rows = []
    for figure in columns["small"]:
        theirs = AUTHORS.get(figure, ("", "", ""))
        line = {"figure": figure}
        for place, (name, values) in enumerate(columns.items()):
            line[f"{name} ({SIZES[name]}/{SIZES[name]})"] = show(values[figure])
            line[f"authors, {name}"] = show(theirs[place])
        rows.append(line)
    print("| " + " | ".join(rows[0]) + " |")
    print("|---" * len(rows[0]) + "|")
    for line in rows:
        print("| " + " | ".join(line.values()) + " |")


if __name__ == "__main__":
    main()
