"""How columns become numbers: `FeatureEncoder` and skrub's `TableVectorizer`; and columns that mean nothing.

Held-out joint log-likelihood per row, a third of the rows held out, models with default settings. First ten
tables with either encoder (`columns=TableVectorizer()`), and the difference with its standard error over
held-out rows; positive is better for `FeatureEncoder`. The seven generated tables were written by the authors
of `FeatureEncoder`, with effects that it can represent; the three others were not. Then a table of 3,000
rows, 29 features and 7 class variables with every model, and what each loses if six columns are added that
have nothing to do with the labels: a record number as text, a date as text, a remark of six words, 400 wards,
a constant and a counter.
Models whose search is random and quick are fitted with ten seeds, and their log-likelihoods averaged.
Every fit is kept in benchmarks/cache/encoders; delete it to measure anew.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py encoders
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import tuplet
from benchmark_sets import load_benchmark
from encoder_tables import GENERATED, Table

CACHE = Path(__file__).parent / "cache" / "encoders"
SHIPPED = ("penguins", "flags", "Adult")
MODELS = ("ChainClassifier", "TreeClassifier")
ENCODERS = ("FeatureEncoder", "TableVectorizer")
EVERY = {
    "PriorClassifier": {},
    "IndependentClassifier": {},
    "ChainClassifier": {},
    "PowersetClassifier": {},
    "BayesNetClassifier": {"progress": False},
    "TreeClassifier": {},
    "TreeMixtureClassifier": {"progress": False},
    "TreeEnsembleClassifier": {},
    "RandomFieldClassifier": {},
    "GenerativeBayesNetClassifier": {},
    "SharedForestClassifier": {},
    "NeighborClassifier": {},
    "InstanceLogisticClassifier": {},
    "StackedFeaturesClassifier": {},
    "WeightedStackingClassifier": {},
    "OutputCodingClassifier": {},
    "MixtureClassifier": {"progress": False},
    "RuleStackingClassifier": {"progress": False},
    "JointStackingClassifier": {"progress": False},
    "ProbitClassifier": {"progress": False, "random_state": 0},
    "ProbitForestClassifier": {"progress": False, "random_state": 0},
    "AutoJointClassifier": {"progress": False, "random_state": 0, "n_jobs": 1},
}
"""Models of the second table, with settings that do not change what is learned."""

RANDOM = ("TreeEnsembleClassifier", "GenerativeBayesNetClassifier", "SharedForestClassifier")
SEEDS = 10
"""Models whose search is random and quick, and the number of fits whose log-likelihoods are averaged."""


def table_of(name: str) -> Table:
    """Return features and labels."""
    if name in GENERATED:
        return GENERATED[name]()
    data = tuplet.load_penguins() if name == "penguins" else load_benchmark(name)
    return data.X, data.Y


def model_of(name: str, encoder: str) -> Any:
    """Return a model, yet to be fitted."""
    settings: dict[str, Any] = dict(EVERY[name])
    if name == "JointStackingClassifier":
        settings["models"] = [tuplet.ChainClassifier(), tuplet.TreeClassifier()]
    if encoder == "TableVectorizer":
        from skrub import TableVectorizer

        settings["columns"] = TableVectorizer()
    return getattr(tuplet, name)(**settings)


def log_likelihoods(table: str, model: str, encoder: str = "FeatureEncoder") -> tuple[np.ndarray, float]:
    """Return the joint log-likelihood of each held-out row and the CPU seconds, measured or kept."""
    file = CACHE / f"{table}-{model}-{encoder}.json".replace(" ", "_").replace(",", "")
    if file.exists():
        kept = json.loads(file.read_text())
        return np.array(kept["log_likelihood"]), kept["seconds"]
    X, Y = table_of(table)
    parts = train_test_split(X, Y, test_size=1 / 3, random_state=0)
    X_train, X_test, Y_train, Y_test = (part.reset_index(drop=True) for part in parts)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [model_of(model, encoder) for _ in range(SEEDS if model in RANDOM else 1)]
        for seed, each in enumerate(fits):
            if model in RANDOM:
                each.set_params(random_state=seed)
            each.fit(X_train, Y_train)
        found = np.mean([each.predict_joint(X_test).log_prob(Y_test) for each in fits], axis=0)
    seconds = time.process_time() - begun
    CACHE.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"log_likelihood": found.tolist(), "seconds": seconds}))
    print(f"{table}, {model}, {encoder}: {found.mean():.4f}, {seconds:.1f} s", file=sys.stderr, flush=True)
    return found, seconds


def compare(first: np.ndarray, second: np.ndarray) -> str:
    """Return the mean difference of two log-likelihoods, with its standard error."""
    gap = first - second
    return f"{gap.mean():+.3f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.3f}"


def encoders() -> pd.DataFrame:
    """Return a line for each table and model."""
    lines = []
    for table in (*GENERATED, *SHIPPED):
        for model in MODELS:
            (ours, seconds), (theirs, others) = (log_likelihoods(table, model, each) for each in ENCODERS)
            lines.append(
                {
                    "table": table,
                    "model": model,
                    "prior": f"{log_likelihoods(table, 'PriorClassifier')[0].mean():.3f}",
                    "FeatureEncoder": f"{ours.mean():.3f}",
                    "TableVectorizer": f"{theirs.mean():.3f}",
                    "difference": compare(ours, theirs),
                    "CPU s": f"{seconds:.1f} / {others:.1f}",
                }
            )
    return pd.DataFrame(lines)


def added_junk() -> pd.DataFrame:
    """Return a line for each model."""
    lines = []
    for model in EVERY:
        plain, _ = log_likelihoods("clinic", model)
        more, seconds = log_likelihoods("clinic, junk added", model)
        lines.append(
            {
                "model": model,
                "29 features": f"{plain.mean():.3f}",
                "six columns added": f"{more.mean():.3f}",
                "difference": compare(more, plain),
                "CPU s": f"{seconds:.1f}",
            }
        )
    return pd.DataFrame(lines)


SECTIONS: dict[str, Callable[[], pd.DataFrame]] = {
    "Ten tables": encoders,
    "Columns without meaning": added_junk,
}


def markdown(frame: pd.DataFrame) -> str:
    """Return a frame of texts as a table."""
    rows = [frame.columns, ["---"] * frame.shape[1], *frame.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Print the tables."""
    for title, make in SECTIONS.items():
        print(f"**{title}**\n\n{markdown(make())}\n")


if __name__ == "__main__":
    main()
