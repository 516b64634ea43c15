"""Conditional trees and their mixtures beside the methods they were compared with.

The paper's Tables 2 to 5 and Figure 3, by our own run: exact match, CLL-loss (the negative joint
log-likelihood of a row), micro and macro F1 of the most probable combination. Features are standardised,
logistic regressions everywhere, C chosen inside of the training rows by one rule for all. Folds are
iterative-stratified, ten of them; of enron and the rcv1 subsets (with their ten most common labels) the first
two of ten are run, to keep the study repeatable. Wins and losses are paired t tests over folds at .05, with
the correction of Nadeau and Bengio for folds that share training rows.

BR: independent labels; CHF: outputs for the other labels as features; MLKNN and IBLR: ten neighbours; CC and
ECC: greedy chains, one and ten; PCC and EPCC: the same chains with exact inference; ML-CRF: a pairwise
conditional random field; MMOC: output codes; SC: one conditional tree; MC: a mixture of them. Of the paper's
future work, ECTBN is the average of ten random trees. As in the paper, MMOC is run on the four small sets
only, and PCC, EPCC and ML-CRF not on enron. The paper has no CLL-loss for ECC, EPCC and MMOC; here they have
joint distributions. CC and ECC only decide: their probability is all on what they predict, and lifted
to a floor elsewhere, so their likelihoods are no more than a reminder of that.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py trees
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from benchmark_sets import load_benchmark, load_benchmarks
from tuned import Tuned
from tuplet import (
    ChainClassifier,
    IndependentClassifier,
    InstanceLogisticClassifier,
    NeighborClassifier,
    OutputCodingClassifier,
    RandomFieldClassifier,
    StackedFeaturesClassifier,
    TreeClassifier,
    TreeEnsembleClassifier,
    TreeMixtureClassifier,
)
from tuplet.evaluate import Comparison, StratifiedFolds, compare
from tuplet.io import Dataset
from tuplet.metrics import SCORERS, DecisionScorer, macro_f1, micro_f1
from tuplet.surface.comparisons import markdown_table

HERE = Path(__file__).parent
SMALL = ("emotions", "scene", "image", "yeast")
RCV1 = tuple(f"rcv1subset{i}" for i in range(1, 6))
FEW_FOLDS = 2
SCORES = {
    "exact_match": SCORERS["exact_match"],
    "joint_log_likelihood": SCORERS["joint_log_likelihood"],
    "micro_f1": DecisionScorer(micro_f1, "subset"),
    "macro_f1": DecisionScorer(macro_f1, "subset"),
}
TITLES = {
    "exact_match": "Table 2: exact match",
    "joint_log_likelihood": "Table 3: joint log-likelihood of a row (CLL-loss is its negative)",
    "micro_f1": "Table 4: micro F1",
    "macro_f1": "Table 5: macro F1",
}
SETTINGS = {
    "scores": SCORES,
    "calibration": False,
    "n_jobs": 2,
    "cache": HERE / "cache" / "trees",
    "time_limit": 600,
    "progress": True,
}
N_TREES = (1, 2, 3, 5, 8, 12, 20)


def methods() -> dict[str, object]:
    """Return the methods of the paper by their names there."""
    return {
        "BR": Tuned(IndependentClassifier()),
        "CHF": Tuned(StackedFeaturesClassifier()),
        "MLKNN": NeighborClassifier(),
        "IBLR": Tuned(InstanceLogisticClassifier(use_features=True)),
        "CC": Tuned(ChainClassifier(order="random", inference="greedy")),
        "ECC": Tuned(ChainClassifier(n_chains=10, inference="greedy")),
        "PCC": Tuned(ChainClassifier(order="random")),
        "EPCC": Tuned(ChainClassifier(n_chains=10)),
        "ML-CRF": Tuned(RandomFieldClassifier()),
        "MMOC": Tuned(OutputCodingClassifier()),
        "ECTBN": TreeEnsembleClassifier(),
        "SC": TreeClassifier(),
        "MC": TreeMixtureClassifier(progress=False),
    }


def without(*names: str) -> dict[str, object]:
    """Return the methods except some."""
    return {name: model for name, model in methods().items() if name not in names}


def tables() -> Comparison:
    """Run the study of Tables 2 to 5, or what is left of it."""
    parts = [compare(methods(), load_benchmarks(*SMALL), cv=10, **SETTINGS)]
    enron = load_benchmark("enron")
    few = without("MMOC", "PCC", "EPCC", "ML-CRF")
    parts.append(compare(few, enron, cv=first_folds(enron), **SETTINGS))
    for name in RCV1:
        data = load_benchmark(name, n_labels=10)
        parts.append(compare(without("MMOC"), data, cv=first_folds(data), **SETTINGS))
    runs = pd.concat([part.runs for part in parts], ignore_index=True)
    return Comparison(runs, tuple(SCORES), models=list(methods()))


def first_folds(data: Dataset, n: int = FEW_FOLDS) -> list[tuple]:
    """Return the first few of ten iterative-stratified folds."""
    return list(StratifiedFolds(10, random_state=0).split(data.X, data.Y))[:n]


def show_tables(result: Comparison) -> None:
    """Print a table for each score, with wins, ties and losses of MC."""
    others = [name for name in result.models if name != "MC"]
    for score, title in TITLES.items():
        tests = result.tests.paired_t(score, correction="nadeau-bengio")
        counts = ", ".join(f"{name} {'/'.join(map(str, tests.count('MC', name)))}" for name in others)
        print(f"**{title}**\n\n{markdown_table(result.table(score), missing=result.missing(score))}\n")
        print(f"MC against the others, sets won / tied / lost: {counts}.\n")


def show_mixtures() -> None:
    """Print Figure 3: how the mixture does with a given number of trees."""
    models = {str(n): TreeMixtureClassifier(n_trees=n, progress=False) for n in N_TREES}
    parts = []
    for name in ("emotions", "scene", "image"):
        data = load_benchmark(name)
        parts.append(compare(models, data, cv=first_folds(data, 3), **SETTINGS))
    for score in ("joint_log_likelihood", "exact_match"):
        table = pd.concat([part.table(score) for part in parts])
        title = f"Figure 3: {score.replace('_', ' ')} with 1 to 20 trees (three of ten folds)"
        print(f"**{title}**\n\n{markdown_table(table)}\n")


def main() -> None:
    """Print the tables."""
    result = tables()
    if "--tables" not in sys.argv:
        show_mixtures()
    show_tables(result)


if __name__ == "__main__":
    main()
