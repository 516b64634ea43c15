"""The model to start with against the best peer.

`AutoJointClassifier` with ten minutes and no other setting, which looks at training rows alone, beside all
peers, on the same test rows: emotions, scene and yeast with their standard split, Rf1 and Adult averaged over
three shuffled folds (seed 0). Its runs are those of `auto.py`, whose cache is used. Peers multiply the
probabilities of their labels, each lifted to at least 1e-4; the last table counts the test rows where that
was needed for a true label. Ours has no such floor.

The figures from the project's beginning stand beside, because some were measured by another rule: those of
chains agree with probabilities along the true labels, which are unknown at prediction. A model counts as met
only if it reaches both.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py peers
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from auto import FIVE, LONG, PEERS, measure, n_folds, split_of
from benchmark_sets import load_benchmark
from tuplet.evaluate import Comparison, compare, default_peers
from tuplet.surface.comparisons import markdown_table

CACHE = Path(__file__).parent / "cache" / "peers"
SCORES = {"exact_match": "exact match", "joint_log_likelihood": "joint log-likelihood"}
"""What `compare` and `auto.py` call them."""

OURS = "AutoJointClassifier"


def peers_on(name: str) -> Comparison:
    """Return what all peers make of one set."""
    data = load_benchmark(name)
    return compare(
        default_peers(),
        data,
        cv=[split_of(data, fold) for fold in range(n_folds(name))],
        scores=list(SCORES),
        calibration=False,
        n_jobs=2,
        cache=CACHE,
        time_limit=420,
        progress=True,
    )


def ours_on(name: str, score: str) -> float:
    """Return a score of ours, averaged over the folds."""
    runs = [measure(name, "auto", LONG, fold) for fold in range(n_folds(name))]
    return float(np.mean([run[SCORES[score]] for run in runs]))


def verdicts(score: str, table: pd.DataFrame) -> list[str]:
    """Return a line for each data set: ours beside the best peer."""
    peers = table.drop(columns=OURS)
    lines = []
    for name, first in zip(FIVE, PEERS[SCORES[score]], strict=True):
        mine, best = table.loc[name, OURS], peers.loc[name].max()
        verdict = "met" if mine >= max(best, first) else "NOT MET"
        lines.append(
            f"- {name}: ours {mine:.3f}, best peer {best:.3f} ({peers.loc[name].idxmax()}); {verdict}"
            f" (best peer when the project began: {first})"
        )
    return lines


def main() -> None:
    """Print the tables."""
    found = {name: peers_on(name) for name in FIVE}
    reasons = pd.DataFrame(
        {name: result.missing(next(iter(SCORES))).loc[name] for name, result in found.items()}
    )
    reasons = reasons.T.reindex(columns=[OURS, *default_peers()])
    for score, title in SCORES.items():
        table = pd.DataFrame({name: result.table(score).loc[name] for name, result in found.items()}).T
        table.insert(0, OURS, [ours_on(name, score) for name in FIVE])
        print(f"**{title}**\n")
        print(markdown_table(table, missing=reasons) + "\n")
        print("\n".join(verdicts(score, table)) + "\n")
    floored = pd.DataFrame({name: result.table("n_floored").loc[name] for name, result in found.items()}).T
    counts = markdown_table(floored, best="none", digits=1)
    print(f"**test rows with a floored label**, mean of the folds\n\n{counts}")


if __name__ == "__main__":
    main()
