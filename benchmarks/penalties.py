"""The penalty that the default chooses, beside fixed ones.

All 21 benchmark sets; of sets with more than 50 class variables the ten most frequent labels, for the
Bayesian network of those with more than 14. Five folds, but the first two of sets with more than 2,500 rows,
and for networks the first of sets with more than a million cells. Networks have half a minute for a fit.
"Chosen" is the model with its default settings. The others have as `estimator` a LogisticRegression with the
given C on imputed and standardised features. Figures are differences of mean joint log-likelihoods of
held-out rows, chosen minus fixed, with one paired standard error; those in bold are below minus one standard
error. CPU is that of `fit`, chosen over C = 1, once beside scikit-learn's
LogisticRegression and once beside `RidgeLogistic`, which runs the same compiled code with C = 1.

The last table has wide ones: generated noise with a few factors (normal, exponential and 0/1 columns), and
300 training rows of wide benchmark sets. Figures are differences from `PriorClassifier`, the training
frequencies.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py penalties
    TUPLET_DATA=folder/of/sets python benchmarks/penalties.py emotions      measures one set
    TUPLET_DATA=folder/of/sets python benchmarks/penalties.py --finished    prints what there is

Finished cells are kept in benchmarks/cache/penalties, so that an interrupted run continues.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from benchmark_sets import benchmark_names, load_benchmark, read_manifest
from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    IndependentClassifier,
    PowersetClassifier,
    PriorClassifier,
    RidgeLogistic,
    TreeClassifier,
    default_estimator,
)

CACHE = Path(__file__).parent / "cache" / "penalties"
FIXED = (0.01, 0.1, 1.0)
N_FOLDS, FEW_FOLDS, MANY_ROWS, MANY_CELLS, N_LABELS, BUDGET = 5, 2, 2_500, 1_000_000, 10, 30.0
MOST_LABELS = {"chain": 50, "bayesnet": 14}
MODELS: dict[str, Callable[..., Any]] = {
    "chain": ChainClassifier,
    "bayesnet": lambda estimator=None: BayesNetClassifier(
        estimator, time_budget=BUDGET, random_state=0, progress=False
    ),
}
WIDE_MODELS: dict[str, Callable[[], Any]] = {
    "independent": IndependentClassifier,
    "chain": ChainClassifier,
    "powerset": PowersetClassifier,
    "tree": TreeClassifier,
    "bayesnet": lambda: BayesNetClassifier(random_state=0, progress=False),
}


# -- benchmark sets ----------------------------------------------------------------------------------------


def estimator_of(setting: str) -> Any:
    """Return the estimator of a setting: "chosen", a fixed C, or "compiled", our own code with C = 1."""
    if setting == "chosen":
        return None
    last = (
        RidgeLogistic(1.0) if setting == "compiled" else LogisticRegression(C=float(setting), max_iter=2000)
    )
    return default_estimator().set_params(ridgelogistic=last)


@cache
def data(name: str, model: str) -> tuple[Any, Any, list[tuple[np.ndarray, np.ndarray]]]:
    """Return features, labels and folds of a set."""
    m = len(read_manifest()[name]["target_names"])
    rows = load_benchmark(name, n_labels=N_LABELS if m > MOST_LABELS[model] else None)
    folds = list(KFold(N_FOLDS, shuffle=True, random_state=0).split(rows.X))
    if model == "bayesnet" and rows.X.size > MANY_CELLS:
        return rows.X, rows.Y, folds[:1]
    return rows.X, rows.Y, folds[: FEW_FOLDS if len(rows.Y) > MANY_ROWS else N_FOLDS]


def measure(name: str, model: str, setting: str) -> dict[str, Any]:
    """Return log-likelihoods of held-out rows and CPU seconds of all fits."""
    X, Y, folds = data(name, model)
    make = PriorClassifier if setting == "prior" else lambda: MODELS[model](estimator_of(setting))
    log_prob, seconds = [], 0.0
    for train, test in folds:
        start = time.process_time()
        fitted = make().fit(X.iloc[train], Y.iloc[train])
        seconds += time.process_time() - start
        log_prob += fitted.predict_joint(X.iloc[test]).log_prob(Y.iloc[test]).round(5).tolist()
    return {"log_prob": log_prob, "seconds": seconds}


def cell(name: str, model: str, setting: str) -> tuple[np.ndarray, float]:
    """Return what `measure` returns, from the cache if it is there."""
    answer = kept(f"{name}-{model}-{setting}", lambda: measure(name, model, setting))
    return np.array(answer["log_prob"]), float(answer["seconds"])


def kept(title: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return a result from the cache; it is made if it is not there."""
    path = CACHE / f"{title}.json"
    if not path.exists():
        answer = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(answer))
        print(title, np.round(np.mean(answer["log_prob"]), 3), file=sys.stderr, flush=True)
    return dict(json.loads(path.read_text()))


def compared(ours: np.ndarray, theirs: np.ndarray) -> tuple[str, bool]:
    """Return the mean difference as text, and whether it is no lower than minus one standard error."""
    difference = ours - theirs
    difference = difference[np.isfinite(difference)]  # rows with a label that was not in training
    mean, error = difference.mean(), difference.std() / np.sqrt(len(difference))
    fine = bool(mean >= -error)
    text = f"{mean:+.3f} ± {error:.3f}"
    return text if fine else f"**{text}**", fine


def settings_of(model: str) -> list[str]:
    """Return the settings that are measured for a model."""
    return ["prior", "chosen", *map(str, FIXED), *(["compiled"] if model == "chain" else [])]


def finished(model: str) -> list[str]:
    """Return the sets of the table: all, or with --finished those whose cells are in the cache."""
    names = benchmark_names()
    if "--finished" not in sys.argv:
        return names
    return [n for n in names if all((CACHE / f"{n}-{model}-{s}.json").exists() for s in settings_of(model))]


def section(model: str) -> None:
    """Print the table of one model."""
    compiled = model == "chain"
    heads = ["set", "rows", "chosen", "- prior", *(f"- C={C:g}" for C in FIXED), "CPU / C=1"]
    heads += ["CPU / compiled C=1"] * compiled
    print(f"\n**{model}, default settings**\n\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    wins, ratios = [], []
    for name in finished(model):
        ours, seconds = cell(name, model, "chosen")
        against = {setting: cell(name, model, setting) for setting in settings_of(model)}
        texts, fine = zip(*(compared(ours, against[str(C)][0]) for C in FIXED), strict=True)
        wins.append(all(fine))
        ratios.append([seconds / against[s][1] for s in ("1.0", "compiled") if s in against])
        shown = [f"{ratio:.2f}" for ratio in ratios[-1]]
        mean = f"{ours[np.isfinite(ours)].mean():.3f}"
        prior = compared(ours, against["prior"][0])[0]
        print(f"| {name} | {len(ours)} |", " | ".join([mean, prior, *texts, *shown]), "|", flush=True)
    most = ", ".join(f"{max(column):.2f}" for column in zip(*ratios, strict=True))
    print(
        f"\nBetter than each fixed C, or within one standard error of it, on {sum(wins)} of {len(wins)} sets."
    )
    print(f"Largest ratio of CPU time: {most}.")


# -- wide tables -------------------------------------------------------------------------------------------


def wide_tables() -> Iterator[tuple[str, Callable[[], tuple[Any, Any, Any, Any]]]]:
    """Yield titles of wide tables, and makers of their training rows and new rows."""
    shapes = ((640, 401, 12), (555, 49, 6))
    for kind in ("normal", "exponential", "0/1", "noise"):
        for n, d, m in shapes:
            yield f"{kind}, {n} x {d}, {m} labels", lambda n=n, d=d, m=m, kind=kind: generated(n, d, m, kind)
    for name in ("birds", "medical", "enron", "scene", "rcv1subset1", "mediamill_reduced"):
        yield f"300 rows of {name}", lambda name=name: part_of(name)


def generated(n: int, d: int, m: int, kind: str) -> tuple[Any, Any, Any, Any]:
    """Return n training rows and as many new ones: features and labels depend on five factors."""
    rng = np.random.default_rng(n + d)
    factors = rng.normal(size=(2 * n, 5))
    X = 0.5 * factors @ rng.normal(size=(5, d)) + rng.normal(size=(2 * n, d))
    pull = 0.0 if kind == "noise" else 0.3
    Y = pull * factors @ rng.normal(size=(5, m)) + rng.normal(size=(2 * n, m)) + rng.normal(size=m) > 0
    X = {"exponential": np.exp(X), "0/1": (X > 2).astype(float)}.get(kind, X)
    return X[:n], Y[:n].astype(int), X[n:], Y[n:].astype(int)


def part_of(name: str) -> tuple[Any, Any, Any, Any]:
    """Return 300 training rows of a set with its six most frequent labels, and the others."""
    rows = load_benchmark(name, n_labels=6)
    order = np.random.default_rng(0).permutation(len(rows.Y))
    train, test = order[:300], order[300:2300]
    return rows.X.iloc[train], rows.Y.iloc[train], rows.X.iloc[test], rows.Y.iloc[test]


def wide_cell(
    title: str, make: Callable[[], tuple[Any, Any, Any, Any]], model: Callable[[], Any]
) -> np.ndarray:
    """Return the log-likelihoods of the new rows."""

    def log_probs() -> dict[str, Any]:
        X, Y, X_new, Y_new = make()
        return {"log_prob": model().fit(X, Y).predict_joint(X_new).log_prob(Y_new).round(5).tolist()}

    return np.array(kept(title.replace("/", ""), log_probs)["log_prob"])


def wide_section() -> None:
    """Print the table of wide tables."""
    print("\n**Wide tables, minus the training frequencies**\n\n| table | " + " | ".join(WIDE_MODELS) + " |")
    print("|---" * (1 + len(WIDE_MODELS)) + "|")
    for title, make in wide_tables():
        prior = wide_cell(f"{title}-prior", make, PriorClassifier)
        cells = [
            compared(wide_cell(f"{title}-{name}", make, model), prior)[0]
            for name, model in WIDE_MODELS.items()
        ]
        print(f"| {title} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] and sys.argv[1] != "--finished":
        for each in MODELS:
            for setting in settings_of(each):
                cell(sys.argv[1], each, setting)
    else:
        section("chain")
        section("bayesnet")
        wide_section()
